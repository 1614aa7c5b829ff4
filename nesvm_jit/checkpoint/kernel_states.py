"""What of a run of a kernel machine has to be saved to go on with it bit by bit elsewhere."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..models.base import Smoothing
from ..problems.evaluation import NO_SUMS, Evaluation
from ..problems.kernel import KernelProblem
from ..problems.settling_kernel import Sums
from ..problems.smoothed_kernel import KernelWalk, SmoothedKernel
from ..solvers import gradient, least_squares, nesvm, newton, pairwise
from ..solvers.run import Run
from .checkpoint import Slot
from .form import (
    Form,
    anything,
    either,
    fields,
    flag,
    floats,
    known_fields,
    no,
    number,
    one_of,
    optional,
    rows_of,
    sequence,
    table,
    whole,
    whole_numbers,
    whole_up_to,
)
from .states import RUN_FIELDS, RunSaving, gradient_fields

_OF_EVALUATION = ("point", "value", "gradient", "objective", "alpha", "u", "felt")
SMOOTHED = ("newton", "gradient")  # engines whose problem is the smoothed one


class KernelSaving(RunSaving):
    """Saves a run of a kernel machine with the state of its engine, one of those named, and where
    its problem stands, or takes them up. Those that minimise F_μ do so on `smooth`."""

    def __init__(
        self,
        slot: Slot,
        problem: KernelProblem,
        engines: tuple[str, ...],
        smooth: SmoothedKernel | None = None,
    ):
        super().__init__(slot, problem)
        self._engines, self._smooth = engines, smooth

    def save(self, run: Run) -> None:
        """Save the run and where its problem stands, between two iterations."""
        engine, steps = _engine_state(self.state)
        self._slot.put(
            {
                "run": {
                    **self._facts_of(run),
                    "alpha": run.alpha,
                    "best": None if run.best is run.latest else _saved(run.best),
                    "latest": _saved(run.latest),
                },
                "engine": engine,
                "finer": run.problem is not self._problem and run.problem is not self._smooth,
                "problem": run.problem.state(),
                "steps": steps,
            }
        )

    def take_up(self, run: Run) -> Any:
        """Bring the run and its problem to what was saved; the state of the engine, if there is
        one. What is made again for the engine comes before the rows of K that were kept, as it
        did: the bits of rows depend on those that were computed beside them."""
        saved = self._slot.state
        if saved is None:
            return None
        self._slot.require_form(partial(_require_state, self._problem, self._engines), saved)
        known, engine = saved["run"], saved["engine"]
        self._continue(run, known)
        run.alpha = known["alpha"]
        run.latest = _evaluation(known["latest"])
        run.best = run.latest if known["best"] is None else _evaluation(known["best"])
        if saved["finer"]:
            run.problem = self._problem.on_finer_rows()
        elif engine in SMOOTHED:
            run.problem = self._smooth
        resume = partial(_resume, engine, run)
        self.state = self._slot.require_form(resume, saved["steps"])
        run.problem.restore(saved["problem"])
        return self.state


def _engine_state(state: Any) -> tuple[str, dict[str, Any]]:
    """The name of a state in a file, and what of it is saved. Where a walk stands is the latest
    evaluation."""
    if isinstance(state, (least_squares.Refined, least_squares.Iterated)):
        return "equations", least_squares.facts_of(state)
    steps = dict(vars(state))
    if isinstance(state, newton.State):
        return "newton", {**steps, "walk": {"centre": state.walk.centre}}
    return "gradient" if isinstance(state, nesvm.State) else "coordinate", steps


def _resume(engine: str, run: Run, steps: dict[str, Any]) -> Any:
    """The state of an engine that was saved."""
    if engine == "coordinate":
        return pairwise.State(**steps)
    if engine == "equations":
        return least_squares.resume(run.problem, steps)
    if engine == "gradient":
        return gradient.resume(run.problem, run, steps)
    assert run.latest is not None
    walk = KernelWalk(run.problem, run.latest, steps["walk"]["centre"])
    return newton.State(**{**steps, "walk": walk, "smoothing": Smoothing(*steps["smoothing"])})


def _saved(at: Evaluation | None) -> dict[str, Any]:
    """An evaluation, without what only linear machines know, and without what it is worth as a dual
    point, which has been noted."""
    assert at is not None
    known = None if at.known is None else {**at.known._asdict()}
    facts = {name: getattr(at, name) for name in _OF_EVALUATION}
    return {**facts, "smoothing": tuple(at.smoothing), "known": known}


def _evaluation(saved: dict[str, Any]) -> Evaluation:
    known = saved["known"] and Sums(**saved["known"])
    smoothing = Smoothing(*saved["smoothing"])
    return Evaluation(**{**saved, "smoothing": smoothing, "known": known}, sums=NO_SUMS)


# ---------------------------------------------------------------- forms


def _require_state(problem: KernelProblem, engines: tuple[str, ...], saved: Any) -> None:
    """Refuse what is no state of such a run on this problem."""
    fields(engine=one_of(*engines), rest=anything)(saved)
    engine, n = saved["engine"], problem.n_rows
    smoothed = engine in SMOOTHED
    evaluation = fields(
        point=floats(2 * n + 1 if smoothed else n + 1),
        smoothing=sequence(number, number),
        **dict.fromkeys(("value", "objective", "felt"), number),
        gradient=floats(2 * n + 1) if smoothed else either(floats(0), floats(2 * n + 1)),
        **dict.fromkeys(("alpha", "u"), floats(n) if smoothed else optional(floats(n))),
        known=optional(fields(f=floats(n), reach=number, terms=whole, moved=number)),
    )
    run = fields(
        **RUN_FIELDS,
        alpha=optional(floats(n)),
        best=optional(evaluation),
        latest=evaluation,
    )
    whole_form = fields(
        run=run,
        engine=one_of(engine),
        finer=no if smoothed or engine == "equations" else flag,
        problem=_where(n, smoothed),
        steps=_STEPS[engine](problem),
    )
    whole_form(saved)


def _where(n: int, smoothed: bool) -> Form:
    """Where a problem stands, and the rows of K that are kept."""
    kept = fields(
        clock=whole,
        **dict.fromkeys(("owner", "used", "with", "numbers", "sizes", "members"), whole_numbers),
    )
    return fields(
        **dict.fromkeys(("beta", "f"), floats(n)),
        rounding=sequence(number, number, number),
        terms=whole,
        rows=fields(computed=number, kept=optional(kept)),
        **({"spectral": table(number)} if smoothed else {}),
    )


def _pairs(problem: KernelProblem) -> Form:
    flags = dict.fromkeys(("begun", "settled"), flag)
    return fields(previous=rows_of(problem.n_rows), best=floats(3), idle=whole, **flags)


def _newton(problem: KernelProblem) -> Form:
    return fields(
        walk=fields(centre=optional(floats(problem.n_rows))),
        smoothing=sequence(number, number),
        smallest=number,
        begun=flag,
    )


def _gradient(problem: KernelProblem) -> Form:
    return known_fields(**gradient_fields(2 * problem.n_rows + 1))


def _equations(problem: KernelProblem) -> Form:
    n, used, sides = problem.n_rows, int(np.count_nonzero(problem.c)), 1 + problem.bias
    refined = fields(beta=floats(used), f=floats(used), b=number, k=whole)
    at = fields(**dict.fromkeys(("S", "R", "D"), floats(sides, n)), rest=floats(sides), fresh=flag)
    rank = whole_up_to(least_squares.RANK)
    return either(refined, fields(rank=rank, at=at, F=floats(sides, n), k=whole))


_STEPS: dict[str, Callable[[KernelProblem], Form]] = {
    "coordinate": _pairs,
    "newton": _newton,
    "gradient": _gradient,
    "equations": _equations,
}
