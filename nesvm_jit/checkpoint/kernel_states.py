"""What of a run of pairwise steps has to be saved to go on with it bit by bit elsewhere."""

import time

import numpy as np

from ..models.base import UNSMOOTHED
from ..problems.evaluation import NO_GRADIENT, NO_SUMS, Evaluation
from ..problems.kernel import KernelProblem
from ..problems.settling_kernel import Sums
from ..solvers.pairwise import State
from ..solvers.run import COLUMNS, Run
from .checkpoint import Slot
from .form import (
    Form,
    duration,
    either,
    fields,
    flag,
    floats,
    number,
    one_of,
    optional,
    rows_of,
    sequence,
    text,
    whole,
    whole_numbers,
)

_AS_IT_IS = ("why", "iterations", "best_row", "objective", "dual", "least_gap", "idle")


class KernelSaving:
    """Saves a run of pairwise steps with where its problem stands, or takes them up."""

    ready = True  # between any two iterations

    def __init__(self, slot: Slot, problem: KernelProblem):
        self._slot, self._problem = slot, problem
        self.state: State | None = None
        self.asked = False  # to end where the state can be saved

    def due(self) -> bool:
        """Whether it is time to save."""
        return self._slot.due()

    def save(self, run: Run) -> None:
        """Save the run and where its problem stands, between two iterations."""
        best = run.best
        assert best is not None
        assert self.state is not None
        self._slot.put(
            {
                "run": {
                    "seconds": time.perf_counter() - run.started,
                    "rows": np.array(run.rows, dtype=float),
                    "alpha": run.alpha,
                    "best": {
                        "point": best.point,
                        "objective": best.objective,
                        "felt": best.felt,
                        "f": best.known.f,
                        "reach": best.known.reach,
                        "terms": best.known.terms,
                    },
                    **{name: getattr(run, name) for name in _AS_IT_IS},
                },
                "engine": "coordinate",
                "finer": run.problem is not self._problem,
                "problem": run.problem.state(),
                "steps": {name: getattr(self.state, name) for name in ("previous", "best", "idle")},
            }
        )

    def take_up(self, run: Run) -> State | None:
        """Bring the run and its problem to what was saved; the state of the steps, if there is
        one."""
        saved = self._slot.state
        if saved is None:
            return None
        self._slot.require_form(kernel_state(self._problem), saved)
        known = saved["run"]
        for name in _AS_IT_IS:
            setattr(run, name, known[name])
        run.started -= known["seconds"]
        run.rows = [(int(row[0]), *row[1:]) for row in known["rows"].tolist()]
        run.alpha = known["alpha"]
        best, P = known["best"], float(known["best"]["objective"])
        sums = Sums(best["f"], float(best["reach"]), int(best["terms"]))
        run.best = Evaluation(
            *(best["point"], UNSMOOTHED, P, NO_GRADIENT, P, NO_SUMS), felt=best["felt"], known=sums
        )
        if saved["finer"]:
            run.problem = self._problem.on_finer_rows()
        run.problem.restore(saved["problem"])
        return State(**saved["steps"], begun=True)


def kernel_state(problem: KernelProblem) -> Form:
    """The form of what is saved of a run on this problem."""
    n = problem.n_rows
    best = fields(
        point=floats(n + 1),
        **dict.fromkeys(("objective", "felt", "reach"), number),
        f=floats(n),
        terms=whole,
    )
    run = fields(
        seconds=duration,
        rows=either(floats(0), floats(None, len(COLUMNS))),
        alpha=optional(floats(n)),
        best=best,
        why=text,
        iterations=whole,
        best_row=optional(whole),
        **dict.fromkeys(("objective", "dual", "least_gap"), number),
        idle=whole,
    )
    kept = fields(
        clock=whole,
        **dict.fromkeys(("owner", "used", "with", "numbers", "sizes", "members"), whole_numbers),
    )
    where = fields(
        **dict.fromkeys(("beta", "f"), floats(n)),
        rounding=sequence(number, number, number),
        terms=whole,
        rows=fields(computed=number, kept=optional(kept)),
    )
    steps = fields(previous=rows_of(n), best=floats(3), idle=whole)
    engine = one_of("coordinate")
    return fields(run=run, engine=engine, finer=flag, problem=where, steps=steps)
