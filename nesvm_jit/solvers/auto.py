"""`auto`: which engine suits a linear problem, and when coordinate steps hand over to Newton's.

Decisions rest on shape, model and the gaps seen, never on clocks or threads: a problem has one
answer.
"""

from typing import Any

import numpy as np

from ..matrix.rows import Size
from ..problems.blocks import Blocks
from ..problems.linear import LinearProblem
from ..settings import HALF_SQUARE
from . import coordinate, newton
from .directions import WIDEST
from .run import Run
from .starts import smoothing_from

FEW_CELLS = 50_000  # of X, up to which coordinate steps before Newton's cost more than they save
NEWTON_STEPS = 8  # Newton steps that are left about where coordinate steps become slow
BLAS = 16.0  # products that a dense matrix product makes while one is added to a sparse place
ACTIVE = 0.5  # share of the rows that bend F_μ in an average step


def choose(data: Blocks, model: str, warm: bool, few_cells: int = FEW_CELLS) -> tuple[str, str]:
    """The engine for a linear problem, started warm or cold, and the reason for it."""
    p = data.size.cols
    if p > WIDEST and model not in HALF_SQUARE:
        return "homotopy", f"{p} features are too many for the Hessian that {model} needs"
    if not data.resident:
        return "newton", "the rows are not in memory, and newton takes the fewest passes"
    if p > WIDEST:
        return "coordinate", f"{p} features are too many for a Hessian, so row by row"
    if model == "csvm" and not warm and data.size.cells > few_cells:
        return "chain", ""
    return "newton", f"{p} features are few enough to factorise the Hessian"


def patience(size: Size) -> float:
    """How many epochs of coordinate steps cost as much as Newton's steps to the end."""
    n, p, cells = size.rows, size.cols, float(size.cells)
    outer = min(0.5 * cells * cells / max(n, 1), 0.5 * n * p * p / BLAS)
    step = 2.0 * cells + ACTIVE * outer + p**3 / 24.0
    return NEWTON_STEPS * step / (4.0 * max(cells, 1.0))  # a row at random costs twice its pass


def begin_chain(
    problem: LinearProblem, run: Run, v0: np.ndarray, w_star: np.ndarray, alpha0: Any
) -> coordinate.State:
    """Coordinate steps that Newton's may take over from."""
    run.engine, run.why = "coordinate", "epochs of coordinate steps sufficed"
    state = coordinate.begin(problem, run, v0, w_star, alpha0)
    state.patience = patience(problem.shard.data.size)
    return state


def hand_over(problem: LinearProblem, run: Run, state: Any) -> Any:
    """The state of the engine that goes on where one has ended by itself; None if none does.

    Newton's steps go on from the dual point that coordinate steps have found when they became slow.
    Where rounding keeps Newton's steps from the tolerance, as it does where rows are separable and
    α is far below C, coordinate steps go on, which do not add up α and C.
    """
    if run.done:
        return None
    if isinstance(state, newton.State) and problem.model.name in HALF_SQUARE:
        return _go_on_by_coordinates(problem, run) if problem.shard.data.resident else None
    chained = isinstance(state, coordinate.State) and np.isfinite(state.patience)
    at = run.latest
    if not chained or at is None:
        return None
    epochs = f"{run.iterations} {'epoch' if run.iterations == 1 else 'epochs'}"
    gap = f"{state.gap:.0e} then"
    run.engine = "newton"
    run.why = f"after {epochs} of coordinate steps the gap, {gap}, fell too slowly"
    return newton.begin(problem, at.point, smoothing_from(state.gap), at.alpha, margins=at.margins)


def _go_on_by_coordinates(problem: LinearProblem, run: Run) -> coordinate.State:
    """Coordinate steps from the best dual point, to their own end."""
    run.engine = "coordinate"
    run.why = f"after {run.iterations} iterations rounding kept Newton's steps from the tolerance"
    zero = np.zeros(problem.n_variables)
    return coordinate.begin(problem, run, zero, zero, run.alpha)
