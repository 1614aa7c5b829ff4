"""How a run of a linear machine ends: at its best point, with exact zeros where they cost nothing,
or at a multiple of it, with values that are true in exact arithmetic."""

from typing import Any

import numpy as np

from ..kernels.loss import RowData
from ..kernels.rounding import product_off
from ..models.base import Smoothing
from ..problems.certificate import DualPoint
from ..problems.evaluation import Evaluation
from ..problems.labels import bias_range, radius_of
from ..problems.linear import LinearProblem
from ..problems.rounding import norm_above
from ..problems.shard import Shard
from ..solvers.run import Run
from .finish import alternatives, require_zero

# Shares of what rounding may take from margins, tried at stalled points: sums over features may be
# nearly exact.
FEARED = (1.0, 1e-2, 1e-4)


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
    point, tol = best.point, run.settings.tol
    if problem.model.smoothed_penalty and run.settings.returned == "best":
        point = sparsest_linear(problem, best, latest, run)
    no_dual_point = problem.zero().alpha
    alpha = no_dual_point if run.alpha is None else run.alpha
    objective, dual, margins = problem.settle(point, alpha, tol)
    run.settle(objective, dual)
    require_zero(run, no_dual_point)
    v, f = point, margins

    def lifted() -> list[np.ndarray]:
        return [problem.lift(v, f, share) for share in FEARED]

    for other in alternatives(run, lifted, np.zeros(len(point)), problem.shard.facts.costs):
        objective, its_margins = problem.settle_objective(other, tol)
        if objective < run.objective:
            point, margins = other, its_margins
            run.settle(objective, DualPoint(run.dual, run.alpha))
    run.alpha = problem.shard.collect(run.alpha)
    w, b = problem.split(point)
    f = problem.shard.collect(margins)
    b_range = linear_bias_range(problem, radius_of(run.objective, run.dual), w, b, f)
    return {"w": w.copy(), "beta": None, "b": b, "margins": f, "bias_range": b_range}


def linear_bias_range(
    problem: LinearProblem, radius: float, w: np.ndarray, b: float, margins: np.ndarray
) -> tuple[float, float] | None:
    """Where every optimal b is, if there is a free one, of rows of this process: w* is in a ball of
    this radius about w where the penalty is ½‖w‖²."""
    shard = problem.shard
    if not problem.bias or not isinstance(shard, Shard) or problem.model.smoothed_penalty:
        return None
    rows, vectors = shard.rows, (margins, shard.row_norms(), shard.row_cells())
    numbers = (radius, norm_above(w), b)
    off = shard.map(_possible_change, vectors, numbers)
    return bias_range(rows.y, rows.c, margins - b, off, problem.model.loss)


def _possible_change(
    rows: RowData,
    f: np.ndarray,
    norms: np.ndarray,
    cells: np.ndarray,
    radius: float,
    size: float,
    b: float,
) -> np.ndarray:
    """How far x·w* can be from a margin less b, of any w* in the ball of this radius about a w of
    this norm."""
    return product_off(radius, cells, size, norms, f, b)


def sparsest_linear(
    problem: LinearProblem, best: Evaluation, latest: Evaluation, run: Run
) -> np.ndarray:
    """The point with exact zeros, if its gap is still within the tolerance or what it was."""
    for zeros in problem.sparser(best.point, latest):
        P = problem.objective_at(zeros)[0]
        if best.objective >= P or P - run.dual <= run.settings.tol * P:
            return zeros
    return best.point
