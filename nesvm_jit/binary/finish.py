"""How every run ends: at its best point, with exact zeros where they cost nothing, its values added
up afresh; also after Ctrl-C, which is caught here and nowhere else in a solve."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..models.base import Smoothing
from ..problems.evaluation import Evaluation
from ..problems.kernel import KernelProblem
from ..problems.linear import LinearProblem
from ..problems.smoothed_kernel import SmoothedKernel
from ..solvers import newton
from ..solvers.run import Run
from .solution import Solution

MOST_AGAIN = 3  # times that a run goes on when its tolerance is not met in exact arithmetic
SMALL = (1e-4, 1e-8)  # shares of the largest coefficient, below which coefficients are tried as 0


@contextmanager
def until_interrupted(run: Run) -> Iterator[None]:
    """Ctrl-C ends what is inside; the run keeps what was found."""
    try:
        yield
    except KeyboardInterrupt:
        run.status = "interrupted"


class Ending:
    """How a run ends: its best point, settled once unless the run goes on."""

    def __init__(self, run: Run, settle: Callable[[], dict[str, Any]]):
        self.run, self._settle, self._tol = run, settle, run.settings.tol
        self._found: dict[str, Any] | None = None

    def holds(self) -> bool:
        """Whether the tolerance is met in exact arithmetic, too."""
        self._found = self._settle()
        return self.run.gap <= self._tol

    def go_on(self, steps: Callable[[], None]) -> None:
        """More steps where the tolerance was met but for rounding, to one that makes up for it."""
        run, settings = self.run, self.run.settings
        try:
            for _ in range(MOST_AGAIN):
                if run.status != "converged" or self.holds():
                    break
                tighter = run.settings.tol - 2.0 * (run.gap - self._tol)
                if not tighter > 0.1 * self._tol:  # rounding takes more than steps can make up for
                    break
                run.settings, run.status = settings.derive(tol=tighter), ""
                self.forget()
                steps()
                run.status = run.status or "converged"
        finally:
            run.settings = settings

    def forget(self) -> None:
        """What was settled is not the end."""
        self._found = None

    def settle(self) -> dict[str, Any]:
        """What the solution consists of."""
        return self._found or self._settle()


def conclude(run: Run, settle: Callable[[], dict[str, Any]]) -> Solution:
    """The solution of a run: `settle` evaluates its best point afresh, and once more if Ctrl-C
    comes only then."""
    try:
        found = settle()
    except KeyboardInterrupt:
        run.status = "interrupted"
        found = settle()
    assert run.alpha is not None
    return Solution(
        objective=float(run.objective),
        dual_objective=float(run.dual),
        alpha=run.alpha,
        gap=float(run.gap),
        certified=bool(run.gap <= run.settings.tol),
        n_iter=run.iterations,
        status=run.status or "converged",
        solver=run.engine,
        why=run.why,
        model=run.settings.model,
        history=run.history(),
        **found,
    )


# ---------------------------------------------------------------- linear machines


def settle_linear(
    problem: LinearProblem, run: Run, v0: np.ndarray, first: Smoothing
) -> dict[str, Any]:
    """The best point, or v⁰, with exact zeros where ℓ1 asks for them, and its values afresh."""
    best = run.best or problem.at(v0, first)
    latest = run.latest or best
    if run.status != "converged" or run.alpha is None:
        for at in (best, latest):  # neither need have been certified
            run.certify(at)
    point = best.point
    if problem.model.smoothed_penalty:
        point = sparsest_linear(problem, best, latest, run)
    alpha = problem.zero().alpha if run.alpha is None else run.alpha
    objective, dual, margins = problem.settle(point, alpha, run.settings.tol)
    run.settle(objective, dual)
    run.alpha = problem.shard.collect(run.alpha)
    w, b = problem.split(point)
    return {"w": w.copy(), "beta": None, "b": b, "margins": problem.shard.collect(margins)}


def sparsest_linear(
    problem: LinearProblem, best: Evaluation, latest: Evaluation, run: Run
) -> np.ndarray:
    """The point with exact zeros, if its gap is still within the tolerance or what it was."""
    for zeros in problem.sparser(best.point, latest):
        P = problem.objective_at(zeros)[0]
        if best.objective >= P or P - run.dual <= run.settings.tol * P:
            return zeros
    return best.point


# ---------------------------------------------------------------- kernel machines


def settle_kernel(run: Run) -> dict[str, Any]:
    """β, b and the margins of the best point, with its values as they are in exact arithmetic."""
    problem = run.problem  # which may be a finer one by now
    assert isinstance(problem, KernelProblem)
    beta, b = (problem.beta, 0.0) if run.best is None else problem.split(run.best.point)
    if run.alpha is None or not np.array_equal(beta, problem.beta):
        problem.place(beta)
        run.certify(problem.current())
    return _settle_at(problem, np.append(beta, b), run)


def settle_smoothed(smooth: SmoothedKernel, run: Run) -> dict[str, Any]:
    """The same; a point with exact zeros is taken instead where that is as good, or good enough:
    the dual point, or its support."""
    if run.alpha is None:
        run.certify(run.latest or smooth.at(np.zeros(smooth.n_variables), newton.FIRST))
    problem = smooth.kernel
    beta, b = np.zeros(problem.n_rows), 0.0
    if run.best is not None:
        beta, b = run.problem.split(run.best.point)
    problem.place(run.alpha * problem.y)
    at = problem.current()
    if _is_good_enough(at.objective, run):
        beta, b = problem.split(at.point)
    else:
        beta = sparsest_kernel(problem, beta, b, run)
    return _settle_at(problem, np.append(beta, b), run)


def _settle_at(problem: KernelProblem, point: np.ndarray, run: Run) -> dict[str, Any]:
    """The point and the bound, with their values as they are in exact arithmetic."""
    if not np.isfinite(point).all():  # what overflowed is worse than nothing
        point = np.zeros(len(point))
    b = float(point[-1])
    alpha = np.zeros(problem.n_rows) if run.alpha is None else run.alpha
    objective, dual, beta, f = problem.settle(point, alpha)
    run.settle(objective, dual)
    return {"w": None, "beta": beta.copy(), "b": b, "margins": f + b}


def sparsest_kernel(problem: KernelProblem, beta: np.ndarray, b: float, run: Run) -> np.ndarray:
    """β with as many exact zeros as the tolerance allows; the problem then stands there."""
    size = np.abs(beta)
    zeros = [run.alpha == 0.0, *(size <= share * size.max(initial=0.0) for share in SMALL)]
    for zero in zeros:
        sparser = np.where(zero, 0.0, beta)
        problem.stand(sparser)
        if _is_good_enough(problem.at(np.append(sparser, b)).objective, run):
            return sparser
    problem.stand(beta)
    return beta


def _is_good_enough(objective: float, run: Run) -> bool:
    """Whether this P is no worse than the best, or is within the tolerance."""
    return objective <= run.objective or objective - run.dual <= run.settings.tol * objective
