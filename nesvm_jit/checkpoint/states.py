"""What of a run has to be saved for another process to go on with it bit by bit."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ..kernels.coordinate import WIDTH
from ..problems.linear import LinearProblem
from ..problems.walk import evaluation_of, saved_evaluation
from ..solvers.engines import ENGINES
from ..solvers.run import COLUMNS, Run
from .checkpoint import Slot
from .form import (
    Form,
    anything,
    duration,
    either,
    fields,
    flag,
    floats,
    known_fields,
    number,
    one_of,
    one_random_state,
    optional,
    row_numbers,
    sequence,
    table,
    text,
    whole,
)

_AS_IT_IS = ("why", "iterations", "best_row", "objective", "dual", "least_gap", "idle")


class RunSaving:
    """Where a run is saved, whatever its problem, and what of it is saved as it is."""

    def __init__(self, slot: Slot, problem: Any):
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

    @staticmethod
    def _facts_of(run: Run) -> dict[str, Any]:
        """What is saved of every run."""
        seconds, rows = time.perf_counter() - run.started, np.array(run.rows, dtype=float)
        return {"seconds": seconds, "rows": rows, **{k: getattr(run, k) for k in _AS_IT_IS}}

    @staticmethod
    def _continue(run: Run, known: dict[str, Any]) -> None:
        """Bring a run to these facts."""
        for name in _AS_IT_IS:
            setattr(run, name, known[name])
        run.started -= known["seconds"]
        run.rows = [(int(row[0]), *row[1:]) for row in known["rows"].tolist()]


# The forms of what is saved of every run.
RUN_FIELDS: dict[str, Form] = {
    "seconds": duration,
    "rows": either(floats(0), floats(None, len(COLUMNS))),
    "why": text,
    "best_row": optional(whole),
    **dict.fromkeys(("iterations", "idle"), whole),
    **dict.fromkeys(("objective", "dual", "least_gap"), number),
}


class Saving(RunSaving):
    """Saves a run on a linear problem with the state of its engine, or takes them up: the fields of
    the state, and a field `walk` as what the walk remembers."""

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
                    **self._facts_of(run),
                    "engine": run.engine,
                    "alpha": None if run.alpha is None else collect(run.alpha),
                    "best": None if same else saved_evaluation(problem, run.best),
                    "best_is_latest": same,
                    "latest": saved_evaluation(problem, run.latest),
                },
                "problem": problem.state(),
                "engine": engine,
            }
        )

    def take_up(self, run: Run, resume: Callable[[LinearProblem, Run, dict[str, Any]], Any]) -> Any:
        """Bring run and problem to what was saved; the state of the engine that `resume` makes of
        it, if there is one."""
        saved = self._slot.state
        if saved is None:
            return None
        self._slot.require_form(linear_state(self._problem), saved)

        def make(saved: dict[str, Any]) -> Any:
            return resume(self._problem, run, self._restore(run, saved))

        return self._slot.require_form(make, saved)

    def _restore(self, run: Run, saved: dict[str, Any]) -> dict[str, Any]:
        known, problem = saved["run"], self._problem
        self._continue(run, known)
        run.engine = known["engine"]
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


def linear_state(problem: LinearProblem) -> Form:
    """The form of what `Saving` saves of a run on this problem."""
    n, p = problem.n_rows, problem.n_features
    v, smoothing, rows = problem.n_variables, sequence(number, number), optional(floats(n))
    centre = either(number, floats(p), floats(v))
    evaluation = sequence(
        *(floats(v), smoothing, number, either(floats(0), floats(v)), number),
        sequence(number, number, either(floats(0), floats(p))),
        *(number, rows, rows, centre, rows, optional(floats(n)), optional(anything), number),
        optional(one_of()),  # sums that only kernel machines know
    )
    run = fields(
        **RUN_FIELDS,
        alpha=rows,
        best=optional(evaluation),
        best_is_latest=flag,
        latest=optional(evaluation),
        engine=one_of(*ENGINES),
    )
    walk = fields(
        at=evaluation,
        centre=rows,
        penalty_centre=centre,
        factor=optional(either(floats(p, p), floats(v, v))),
        rows=anything,  # compared with those of the shard
    )
    engine = known_fields(
        **gradient_fields(v),
        v=floats(v),
        **dict.fromkeys(("smallest", "promise", "patience", "spread", "gap"), number),
        **dict.fromkeys(("next_look", "epochs", "idle"), whole),
        begun=flag,
        walk=walk,
        dual=floats(n, WIDTH),
        order=row_numbers(n),
        random=one_random_state,
        active=whole,
        epoch=sequence(*[number] * 7),
        best=sequence(number, number),
    )
    counted = fields(passes=number, spectral=table(number))
    return fields(run=run, problem=counted, engine=engine)


def gradient_fields(v: int) -> dict[str, Form]:
    """The forms of what gradient methods remember of v variables."""
    return {
        **dict.fromkeys(("w", "w_star", "history"), floats(v)),
        "y": optional(floats(v)),
        **dict.fromkeys(("smoothing", "start"), sequence(number, number)),
        **dict.fromkeys(("L", "F", "share"), number),
        **dict.fromkeys(("k", "t", "iterations"), whole),
        "settled": flag,
    }
