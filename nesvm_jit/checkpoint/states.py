"""What of a run has to be saved for another process to go on with it bit by bit."""

import time
from typing import Any

import numpy as np

from ..problems.linear import LinearProblem
from ..problems.walk import evaluation_of, saved_evaluation
from ..solvers.run import Run
from .checkpoint import Slot

_AS_IT_IS = ("engine", "why", "iterations", "best_row", "objective", "dual", "least_gap", "idle")


class Saving:
    """Saves a run on a linear problem with the state of its engine, or takes them up: the fields of
    the state, and a field `walk` as what the walk remembers."""

    def __init__(self, slot: Slot, problem: LinearProblem):
        self._slot, self._problem = slot, problem
        self.state: Any = None  # of the engine that runs
        self.asked = False  # to end where the state can be saved

    @property
    def ready(self) -> bool:
        """Whether the state can be saved; it is not where μ or the engine changes next."""
        return not self.state.settled

    def due(self) -> bool:
        """Whether it is time to save."""
        return self._slot.due()

    def save(self, run: Run) -> None:
        """Save the run and the state of its engine, between two iterations."""
        problem, collect = self._problem, self._problem.shard.collect
        same = run.best is run.latest
        engine = dict(vars(self.state))
        if "walk" in engine:
            engine["walk"] = engine["walk"].state()
        self._slot.put(
            {
                "run": {
                    "seconds": time.perf_counter() - run.started,
                    "rows": np.array(run.rows, dtype=float),
                    "alpha": None if run.alpha is None else collect(run.alpha),
                    "best": None if same else saved_evaluation(problem, run.best),
                    "best_is_latest": same,
                    "latest": saved_evaluation(problem, run.latest),
                    **{name: getattr(run, name) for name in _AS_IT_IS},
                },
                "problem": problem.state(),
                "engine": engine,
            }
        )

    def take_up(self, run: Run) -> dict[str, Any] | None:
        """Bring run and problem to what was saved; the state of the engine, if there is one."""
        saved = self._slot.state
        if saved is None:
            return None
        known, problem = saved["run"], self._problem
        for name in _AS_IT_IS:
            setattr(run, name, known[name])
        run.started -= known["seconds"]
        run.rows = [(int(row[0]), *row[1:]) for row in known["rows"].tolist()]
        run.latest = evaluation_of(problem, known["latest"])
        if known["alpha"] is not None:
            run.alpha = problem.shard.deal(known["alpha"])
        problem.restore(saved["problem"])
        engine = dict(saved["engine"])
        if "walk" in engine:
            engine["walk"] = problem.resume_walk(engine["walk"])
            run.latest = engine["walk"].at
        run.best = run.latest if known["best_is_latest"] else evaluation_of(problem, known["best"])
        return engine
