"""P at a point of a linear machine from above, true in exact arithmetic for the problem as it is
stored: every rounding is allowed for, as docs/certificate.md derives it."""

from typing import Any

import numpy as np

from ..kernels.exact_sums import Sums, two_sum
from ..kernels.loss import RowData
from ..kernels.rounding import (
    half_square_above,
    margin_error,
    objective_above,
    raised_loss,
    residual,
    residual_error,
)
from .certificate import Vectors
from .rounding import UNIT, Columns, above, growth, kernel_sum, norm_above
from .sharpness import may_be_sharp, rounding_felt


def settle_objective(
    shard: Vectors, w: np.ndarray, b: float, tol: float, columns: Columns | None = None
) -> tuple[float, Any]:
    """P at (w, b) from above, and the margins there."""
    with np.errstate(over="ignore", invalid="ignore"):
        margins = shard.margins_at(w, b)
        least, objective = objective_bounds(shard, w, margins, columns)
        felt = rounding_felt(shard, objective, tol)
        if objective - least > felt and may_be_sharp(shard):
            objective = min(objective, _sharp_objective(shard, w, b, columns))
    return objective if objective == objective else np.inf, margins  # NaN proves nothing


def _sharp_objective(shard: Vectors, w: np.ndarray, b: float, columns: Columns | None) -> float:
    """P at (w, b) from above, by residuals that are nearly exact."""
    vectors, known = _errors_of_entries(shard, w, columns)
    numbers = (b, known, shard.model.loss)
    return _with_penalty(shard, w, shard.reduce_products(_sharp_losses, w, vectors, numbers))


def _sharp_losses(rows: RowData, sums: Sums, *rest: Any) -> float:
    """Σ c loss(r) from above, for r = 1 − y(x·w + b) = −y(x·w + b − y)."""
    (*roots, b, known, loss), y = rest, rows.y
    f, low = two_sum(sums.high, np.full(len(y), b))
    f, lower = two_sum(f, -y)
    low = (low + lower) + sums.low
    r = -y * (f + low)
    error = 2.0 * sums.error + growth(4.0) * np.abs(r) + growth(8.0) * UNIT * (1.0 + abs(b))
    error += growth(8.0) * np.abs(low)
    if roots:
        error += above(roots[0] * known, 3)
    return loss_of_residuals(rows, r, error, loss)


def objective_bounds(
    shard: Vectors, w: np.ndarray, margins: Any, columns: Columns | None = None
) -> tuple[float, float]:
    """P at w and its computed margins, as if they were exact, and from above."""
    more, known = _errors_of_entries(shard, w, columns)
    vectors = (margins, shard.row_norms(), shard.row_cells(), *more)
    found = shard.reduce(_losses, vectors, (shard.model.loss, norm_above(w), known))
    penalty, (plain, raised) = _penalty_above(shard, w), found.tolist()
    return _add_loss(shard, penalty, plain), _add_loss(shard, penalty, raised)


def _with_penalty(shard: Vectors, w: np.ndarray, loss: float) -> float:
    return _add_loss(shard, _penalty_above(shard, w), loss)


def _penalty_above(shard: Vectors, w: np.ndarray) -> float:
    if shard.model.smoothed_penalty:
        return above(float(np.abs(w).sum()), len(w))
    return half_square_above(norm_above(w))


def _add_loss(shard: Vectors, penalty: float, loss: float) -> float:
    return objective_above(penalty, loss, shard.facts.rows)


def _errors_of_entries(
    shard: Vectors, w: np.ndarray, columns: Columns | None
) -> tuple[tuple[Any, ...], float | None]:
    """The κ_i of every row and ε Σ|β_j|κ_j, where the entries of X are kernel values."""
    if columns is None:
        return (), None
    known = kernel_sum(columns.entries, w, columns.roots)
    return (shard.deal(columns.entries.roots),), known


def _losses(
    rows: RowData,
    f: np.ndarray,
    norms: np.ndarray,
    cells: np.ndarray,
    *rest: Any,
) -> np.ndarray:
    """Σ c loss(r_i) as computed, and where x_i·w + b is off by γ‖x_i‖‖w‖ and a rounding of itself,
    and a kernel value in place of an entry of X by ε κ_i κ_j."""
    *roots, loss, size, known = rest
    error = margin_error(cells, norms, size)
    if roots:
        error += above(roots[0] * known, 3)
    r, plain = _residuals(rows, f)
    return np.array([loss_of_residuals(rows, r, e, loss) for e in (plain, error + plain)])


def loss_above(rows: RowData, f: np.ndarray, error: Any, loss: int) -> float:
    """Σ c loss(1 − y f) for margins that are off by `error` and a few roundings of themselves."""
    r, plain = _residuals(rows, f)
    return loss_of_residuals(rows, r, error + plain, loss)


def _residuals(rows: RowData, f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """1 − y f, and the roundings of f and of itself in it."""
    r = residual(rows.y, f)
    return r, residual_error(f, r)


def loss_of_residuals(rows: RowData, r: np.ndarray, error: np.ndarray, loss: int) -> float:
    """Σ c loss(r) for residuals that are off by `error`."""
    return float(rows.c @ raised_loss(r, error, loss))
