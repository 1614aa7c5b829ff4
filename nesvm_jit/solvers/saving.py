"""What of a run has to be saved for another process to go on with it bit by bit."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..checkpoint import Slot
from ..models.base import Smoothing
from ..models.problem import LinearProblem

if TYPE_CHECKING:
    from .run import Run


class Saving:
    """Saves a run on a linear problem at the top of the loops of its engines, or takes it up."""

    def __init__(self, slot: Slot, problem: LinearProblem):
        self._slot, self._problem = slot, problem
        self._loops: dict[str, dict] = {}  # states to go on from, by the name of the loop
        self.outer: dict[str, dict] = {}  # states of loops around the one that runs

    def pausing(
        self, run: "Run", loop: str, state: Callable[[], dict], steps: bool, asked: bool
    ) -> bool:
        """Save if it is time, or if the run was asked to end: then it ends."""
        if not asked and not self._slot.due():
            return False
        problem = self._problem
        self._slot.put(
            {
                "run": {
                    "seconds": time.perf_counter() - run.started,
                    "rows": np.array(run.rows, dtype=float),
                    "alpha": None if run.alpha is None else problem.part.collected(run.alpha),
                    **{name: getattr(run, name) for name in _AS_IT_IS},
                },
                "problem": problem.state(steps),
                "loops": {**self.outer, loop: state()},
            }
        )
        if asked:
            run.status = "interrupted"
        return asked

    def take_up(self, run: "Run") -> None:
        """Bring run and problem to the state saved, if there is one."""
        state = self._slot.state
        if state is None:
            return
        known = state["run"]
        for name in _AS_IT_IS:
            setattr(run, name, known[name])
        run.started -= known["seconds"]
        run.rows = [(int(row[0]), *row[1:]) for row in known["rows"].tolist()]
        run.smoothing = known["smoothing"] and Smoothing(*known["smoothing"])
        if known["alpha"] is not None:
            run.alpha = self._problem.part.dealt(known["alpha"])
        self._problem.restore(state["problem"])
        self._loops = state["loops"]

    def resumes(self, loop: str) -> bool:
        """Whether this loop is the one, or around the one, to go on with."""
        return loop in self._loops

    def resumed(self, loop: str) -> dict[str, Any] | None:
        """Its state, once."""
        return self._loops.pop(loop, None)


_AS_IT_IS = ("engine", "why", "rounds", "best", "best_row", "objective", "dual", "smoothing")
