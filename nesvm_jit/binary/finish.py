"""How every run ends: at its best point, its values added up afresh; also after Ctrl-C, which is
caught here, and for small fits, which are no runs, in small.py. What is added up is in
finish_linear.py and finish_kernel.py."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from ..clock import Halt, undisturbed, watching
from ..problems.rounding import growth, up
from ..settings import CUT_SHORT, PAPERS, Settings
from ..signals import remembered
from ..solvers.run import COLUMNS, Run, proves, relative_gap
from .solution import Solution

MOST_AGAIN = 3  # times that a run goes on when its tolerance is not met in exact arithmetic


@contextmanager
def until_interrupted(run: Run, left: Callable[[], float] | None = None) -> Iterator[None]:
    """Ctrl-C ends what is inside, and so does the end of the time that is left to the run; the run
    keeps what was found."""
    try:
        with remembered(), watching(run.remaining if left is None else left):
            yield
    except Halt as halt:
        run.status = halt.status
    except KeyboardInterrupt:
        run.status = "interrupted"


class Ending:
    """How a run ends: its best point, settled once unless the run goes on."""

    def __init__(self, run: Run, settle: Callable[[], dict[str, Any]]):
        self.run, self._settle, self._tol = run, settle, run.settings.tol
        self._found: dict[str, Any] | None = None
        self._estimates: tuple[float, float, Any] = run.objective, run.dual, run.alpha

    def holds(self) -> bool:
        """Whether the tolerance is met in exact arithmetic, too."""
        run = self.run
        self._estimates = run.objective, run.dual, run.alpha
        self._found = self._settle()
        return proves(run.gap, self._tol)

    def go_on(self, steps: Callable[[], None]) -> None:
        """More steps where the tolerance was met but for rounding, to one that makes up for it."""
        run, settings = self.run, self.run.settings
        try:
            for _ in range(MOST_AGAIN):
                if run.status != "converged" or self.holds():
                    break
                tighter = run.settings.tol - 2.0 * (run.gap - self._tol)
                if not self._tol > tighter > 0.1 * self._tol:  # steps cannot make up for rounding
                    break
                run.settings, run.status = settings.derive(tol=tighter), ""
                self.forget()
                steps()
                run.status = run.status or "converged"
        finally:
            run.settings = settings

    def forget(self) -> None:
        """What was settled is not the end: the run goes on from its own point, with estimates."""
        self._found = None
        self.run.objective, self.run.dual, self.run.alpha = self._estimates

    def settle(self) -> dict[str, Any]:
        """What the solution consists of."""
        return self._found or self._settle()


def conclude(run: Run, settle: Callable[[], dict[str, Any]]) -> Solution:
    """The solution of a run: `settle` evaluates its best point afresh, and once more if Ctrl-C or
    the end of its time comes only then: what is known is then settled in less time."""
    found = None
    if run.status not in CUT_SHORT:
        with until_interrupted(run):
            found = settle()
    if found is None:
        found = _settle_undisturbed(run, settle)
    return Solution(
        objective=float(run.objective),
        dual_objective=float(run.dual),
        alpha=run.alpha,
        gap=float(run.gap),
        certified=proves(run.gap, run.settings.tol),
        n_iter=run.iterations,
        status=_ending(run.status, run.gap, run.settings),
        solver=run.engine,
        why=run.why,
        model=run.settings.model,
        history=run.history(),
        **found,
    )


def untrained(c: np.ndarray, settings: Settings, status: str) -> Solution:
    """The kernel machine that is zero everywhere, of a fit that there was no time to begin."""
    zero, costs = np.zeros(len(c)), up(float(c.sum()) * (1.0 + growth(len(c))))
    row = (0, np.nan, np.nan, costs, 0.0, 1.0, 0.0, 0.0)
    history = {name: np.array([value]) for name, value in zip(COLUMNS, row, strict=True)}
    return Solution(
        w=None,
        beta=zero,
        b=0.0,
        objective=costs,
        dual_objective=0.0,
        alpha=zero.copy(),
        gap=1.0,
        certified=proves(1.0, settings.tol),
        n_iter=0,
        status="converged" if proves(1.0, settings.tol) else status,
        solver=settings.solver,
        why="there was no time to begin",
        model=settings.model,
        margins=zero.copy(),
        history=history,
    )


def _settle_undisturbed(run: Run, settle: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What `settle` finds, once more where Ctrl-C comes in the middle of it."""
    with undisturbed():
        try:
            return settle()
        except KeyboardInterrupt:
            run.status = "interrupted"
            return settle()


def with_objective(found: Solution, settings: Settings, objective: float) -> Solution:
    """The same solution with another P; certified, and `converged`, if that proves it."""
    gap = relative_gap(objective, found.dual_objective)
    status = _ending(found.status, gap, settings)
    certified = proves(gap, settings.tol)
    return replace(found, objective=objective, gap=gap, certified=certified, status=status)


def require_zero(run: Run, no_dual_point: Any) -> None:
    """α = 0 is feasible and worth 0: where nothing better is known, it is the bound."""
    if run.alpha is None or not run.dual >= 0.0:
        run.forget_bound(no_dual_point)


def _is_settled(run: Run) -> bool:
    """Whether the point whose values are settled is to be returned as it is: it is certified, or
    found by the paper's algorithms, or by a run that was cut short."""
    certified = proves(run.gap, run.settings.tol)
    return certified or run.settings.solver in PAPERS or run.status in CUT_SHORT


def alternatives(
    run: Run, lifted: Callable[[], list[np.ndarray]], zero: np.ndarray, costs: float
) -> list[np.ndarray]:
    """Points that may be better than the one whose values are settled: its best multiples where
    rounding keeps it from the tolerance, and zero, whose P is the sum of all costs."""
    others = [] if _is_settled(run) else lifted()
    if not run.objective <= costs and run.settings.returned == "best":
        others.append(zero)
    return others


def _ending(status: str, gap: float, settings: Settings) -> str:
    """How a run ended whose values are settled: `converged` if they prove it, and only then."""
    if status == "interrupted":
        return status
    if proves(gap, settings.tol):
        return "converged"
    if status in ("", "converged"):  # by itself, or by bounds that did not hold afresh
        return "epsilon" if settings.solver in PAPERS else "stalled"
    return status
