"""How a run of a kernel machine ends: at its best point, with exact zeros where they cost nothing,
or at a multiple of it, with values that are true in exact arithmetic."""

from typing import Any

import numpy as np

from ..problems.certificate import DualPoint
from ..problems.evaluation import Evaluation
from ..problems.kernel import KernelProblem
from ..problems.labels import bias_range, radius_of
from ..problems.rounding import growth, up
from ..problems.settling_kernel import SettledKernel
from ..problems.smoothed_kernel import SmoothedKernel
from ..solvers import newton
from ..solvers.run import Run
from .finish import alternatives, require_zero

QUICK_CELLS = 1 << 22  # kernel values computed again even where a run was cut short: 0.05 s
# Shares of what rounding may take from margins, tried at stalled points: sums over kernel values
# are judged with all of it, and are made twice.
FEARED = (1.0, 1.1, 3.0)
SMALL = (1e-4, 1e-8)  # shares of the largest coefficient, below which coefficients are tried as 0


def settle_kernel(run: Run) -> dict[str, Any]:
    """β, b and the margins of the best point, with its values as they are in exact arithmetic."""
    problem = run.problem  # which may be a finer one by now
    assert isinstance(problem, KernelProblem)
    beta, b = (problem.beta, 0.0) if run.best is None else problem.split(run.best.point)
    long = np.count_nonzero(beta) * problem.n_rows > QUICK_CELLS
    if long and run.status in ("time_limit", "interrupted") and run.best and _is_known(run.best):
        return _settle_at_once(problem, run, run.best)
    if run.alpha is None or not np.array_equal(beta, problem.beta):
        problem.place(beta)
        run.certify(problem.current())
    goes_on = run.engine == "coordinate" and problem.rows.finer is not None  # if not certified
    return _settle_at(problem, np.append(beta, b), run, lift=not goes_on)


def _is_known(at: Evaluation) -> bool:
    """Whether a point can be settled from sums that are known, of so many terms."""
    return at.known is not None and at.known.reach < np.inf


def _settle_at_once(problem: KernelProblem, run: Run, best: Evaluation) -> dict[str, Any]:
    """The best point of a run that was cut short and the better of its bound and that of the
    latest, without any more rows of K."""
    found, b = problem.settle_known(best), float(best.point[-1])
    bound = found.dual
    if run.latest is not None and _is_known(run.latest):
        bound = max(bound, problem.settle_known(run.latest).dual, key=lambda dual: dual.value)
    run.settle(found.objective, bound)
    require_zero(run, np.zeros(problem.n_rows))
    costs = up(float(problem.c.sum()) * (1.0 + growth(problem.n_rows)))
    if not run.objective <= costs:
        zero = np.zeros(problem.n_rows)
        found, b = found._replace(beta=zero, f=zero, off=zero), 0.0
        run.settle(costs, DualPoint(run.dual, run.alpha))
    return _solution_at(problem, run, found, b)


def _solution_at(
    problem: KernelProblem, run: Run, found: SettledKernel, b: float
) -> dict[str, Any]:
    """What a solution consists of at a point whose values are settled."""
    b_range = None
    if problem.bias:
        off = found.off + radius_of(run.objective, run.dual) * problem.rows.entries.roots
        b_range = bias_range(problem.y, problem.c, found.f, off, problem.loss)
    beta = found.beta.copy()
    return {"w": None, "beta": beta, "b": b, "margins": found.f + b, "bias_range": b_range}


def settle_smoothed(smooth: SmoothedKernel, run: Run) -> dict[str, Any]:
    """The same; a point with exact zeros is taken instead where that is as good, or good enough:
    the dual point, or its support."""
    if run.alpha is None:
        run.certify(run.latest or smooth.at(np.zeros(smooth.n_variables), newton.FIRST))
    problem = smooth.kernel
    require_zero(run, np.zeros(problem.n_rows))
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


def _settle_at(
    problem: KernelProblem, point: np.ndarray, run: Run, lift: bool = True
) -> dict[str, Any]:
    """The point where the problem stands, or the best multiple of it, and the bound, with their
    values as they are in exact arithmetic; zero where that is better."""
    zero = np.zeros(len(point))
    if not np.isfinite(point).all():  # what overflowed is worse than nothing
        point = zero
    no_dual_point = zero[:-1]
    alpha = no_dual_point if run.alpha is None else run.alpha
    found, b = problem.settle(point, alpha), float(point[-1])
    run.settle(found.objective, found.dual)
    require_zero(run, no_dual_point)
    v, f = np.append(found.beta, b), found.f

    def lifted() -> list[np.ndarray]:
        return [problem.lift(v, f, share) for share in FEARED] if lift else []

    for other in alternatives(run, lifted, zero, float(problem.c.sum())):
        settled = problem.settle(other, alpha)
        if settled.objective < run.objective:
            found, b = settled, float(other[-1])
            run.settle(found.objective, DualPoint(run.dual, run.alpha))
    return _solution_at(problem, run, found, b)


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
