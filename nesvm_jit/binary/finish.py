"""How every run ends: at its best point, with exact zeros where they cost nothing, its values added
up afresh; also after Ctrl-C, which is caught here and nowhere else in a solve."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from ..kernels.loss import SQUARE
from ..models.base import Smoothing
from ..problems.evaluation import Evaluation
from ..problems.kernel import KernelProblem
from ..problems.linear import LinearProblem
from ..problems.smoothed_kernel import SmoothedKernel
from ..settings import CUT_SHORT, PAPERS
from ..solvers import newton
from ..solvers.run import Run, proves, relative_gap
from .solution import Solution

FEARED = (1.0, 1e-2, 1e-4)  # shares of what rounding may take from margins, tried at stalled points
SMALL = (1e-4, 1e-8)  # shares of the largest coefficient, below which coefficients are tried as 0


@contextmanager
def until_interrupted(run: Run) -> Iterator[None]:
    """Ctrl-C ends what is inside; the run keeps what was found."""
    try:
        yield
    except KeyboardInterrupt:
        run.status = "interrupted"


def conclude(run: Run, settle: Callable[[], dict[str, Any]]) -> Solution:
    """The solution of a run: `settle` evaluates its best point afresh, and once more if Ctrl-C
    comes only then."""
    try:
        found = settle()
    except KeyboardInterrupt:
        run.status = "interrupted"
        found = settle()
    return Solution(
        objective=float(run.objective),
        dual_objective=float(run.dual),
        alpha=run.alpha,
        gap=float(run.gap),
        certified=proves(run.gap, run.settings.tol),
        n_iter=run.iterations,
        status=_ending(run),
        solver=run.engine,
        why=run.why,
        model=run.settings.model,
        history=run.history(),
        **found,
    )


def with_objective(found: Solution, tol: float, objective: float) -> Solution:
    """The same solution with another P; certified, and `converged`, if that still proves it."""
    gap = relative_gap(objective, found.dual_objective)
    certified = proves(gap, tol)
    status = "stalled" if found.status == "converged" and not certified else found.status
    return replace(found, objective=objective, gap=gap, certified=certified, status=status)


def _require_zero(run: Run, no_dual_point: Any) -> None:
    """α = 0 is feasible and worth 0: where nothing better is known, it is the bound."""
    if run.alpha is None or not run.dual >= 0.0:
        run.forget_bound(no_dual_point)


def _is_settled(objective: float, run: Run) -> bool:
    """Whether a point of this P is to be returned as it is: it is certified, or found by the
    paper's algorithms, or by a run that was cut short."""
    certified = proves(relative_gap(objective, run.dual), run.settings.tol)
    return certified or run.settings.solver in PAPERS or run.status in CUT_SHORT


def _ending(run: Run) -> str:
    """How a run ended whose values are settled: `converged` if they prove it, and only then."""
    if run.status == "interrupted":
        return run.status
    if proves(run.gap, run.settings.tol):
        return "converged"
    if run.status in ("", "converged"):  # by itself, or by bounds that did not hold afresh
        return "epsilon" if run.settings.solver in PAPERS else "stalled"
    return run.status


# ---------------------------------------------------------------- linear machines


def settle_linear(
    problem: LinearProblem, run: Run, v0: np.ndarray, first: Smoothing
) -> dict[str, Any]:
    """The best point, or v⁰, with exact zeros where ℓ1 asks for them, and its values afresh."""
    best = run.best or problem.at(v0, first)
    latest = run.latest or best
    if not best.objective <= problem.shard.facts.costs and run.settings.returned == "best":
        run.note(best := problem.zero())
    if run.status != "converged" or run.alpha is None:
        for at in (best, latest):  # neither need have been certified
            run.certify(at)
    point, margins = best.point, best.margins
    P = best.objective
    if problem.model.smoothed_penalty and run.settings.returned == "best":
        point = sparsest_linear(problem, best, latest, run)
    if margins is None or point is not best.point:
        P, margins = problem.objective_at(point)
    if not _is_settled(P, run):
        for lifted in [problem.lift(point, margins, share) for share in FEARED]:
            lifted_P, lifted_margins = problem.objective_at(lifted)
            if lifted_P < P:
                point, P, margins = lifted, lifted_P, lifted_margins
    no_dual_point = problem.zero().alpha
    _require_zero(run, no_dual_point)
    run.settle(P, problem.value_of(run.alpha))
    _require_zero(run, no_dual_point)
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


def holds_afresh(problem: KernelProblem, run: Run) -> bool:
    """Whether the tolerance is met by the best point and its bound added up afresh, too."""
    assert run.best is not None
    beta, b = problem.split(run.best.point)
    if not np.array_equal(beta, problem.beta):
        problem.place(beta)
        run.certify(problem.current())
    at = problem.at(np.append(problem.beta, b))
    run.settle(at.objective, problem.value_of(run.alpha, at))
    return run.gap <= run.settings.tol


def settle_kernel(run: Run) -> dict[str, Any]:
    """β, b and the margins of the best point, certified afresh."""
    problem = run.problem  # which may be a finer one by now
    assert isinstance(problem, KernelProblem)
    beta, b = (problem.beta, 0.0) if run.best is None else problem.split(run.best.point)
    partly = problem.loss == SQUARE and not problem.c.all()  # f is not known of every row
    if partly or not np.array_equal(beta, problem.beta):
        problem.place(beta)
    run.certify(problem.current())
    return _settle_at(problem, np.append(beta, b), run)


def settle_smoothed(smooth: SmoothedKernel, run: Run) -> dict[str, Any]:
    """The same; a point with exact zeros is taken instead where that is as good, or good enough:
    the dual point, or its support."""
    if run.alpha is None:
        run.certify(run.latest or smooth.at(np.zeros(smooth.n_variables), newton.FIRST))
    problem = smooth.kernel
    _require_zero(run, np.zeros(problem.n_rows))
    beta, b = np.zeros(problem.n_rows), 0.0
    if run.best is not None:
        beta, b = run.problem.split(run.best.point)
    if run.settings.returned == "last":
        problem.stand(beta)
        return _settle_at(problem, np.append(beta, b), run)
    problem.place(run.alpha * problem.y)
    at = problem.current()
    if _is_good_enough(at.objective, run):
        beta, b = problem.split(at.point)
    else:
        beta = sparsest_kernel(problem, beta, b, run)
    return _settle_at(problem, np.append(beta, b), run)


def _settle_at(problem: KernelProblem, point: np.ndarray, run: Run) -> dict[str, Any]:
    """The point where the problem stands, or the best multiple of it, with its values afresh; zero
    where that is better."""
    at = problem.at(point)
    if not _is_settled(at.objective, run):
        point, at = _lifted(problem, point, at, run)
    if not at.objective <= problem.c.sum() and run.settings.returned == "best":
        point = np.zeros(problem.n_variables)
        problem.stand(point[:-1])
        at = problem.at(point)
    b = float(point[-1])
    zero = np.zeros(problem.n_rows)
    run.settle(at.objective, problem.value_of(zero if run.alpha is None else run.alpha, at))
    _require_zero(run, zero)
    return {"w": None, "beta": point[:-1].copy(), "b": b, "margins": problem.f + b}


def _lifted(
    problem: KernelProblem, point: np.ndarray, at: Evaluation, run: Run
) -> tuple[np.ndarray, Evaluation]:
    """The multiple of the point with the smallest gap, where the problem then stands. What rounding
    takes off the bound depends on the rows that may have a loss at the point."""

    def gap(at: Evaluation) -> float:
        bound = 0.0 if run.alpha is None else problem.value_of(run.alpha, at).value
        return at.objective - bound

    found = [(gap(at), point, at)]
    for lifted in [problem.lift(point, share) for share in FEARED]:
        problem.stand(lifted[:-1])
        at = problem.at(lifted)
        found.append((gap(at), lifted, at))
    _, point, at = min(found, key=lambda choice: choice[0])
    problem.stand(point[:-1])
    return point, at


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
