"""D near a dual point of a linear machine from below, true in exact arithmetic for the problem as
it is stored: α is moved to where it is feasible beyond doubt, and every rounding of its value is
allowed for, as docs/certificate.md derives it."""

from typing import Any

import numpy as np

from ..kernels.loss import HINGE, SQUARE, RowData
from ..kernels.rounding import Spread, half_square_above, sum_error, total_below, value_below
from .certificate import DualPoint, Vectors
from .rounding import (
    TINY,
    Columns,
    above,
    growth,
    kernel_sum,
    norm_above,
    on_grid,
    up,
)
from .sharpness import may_be_sharp

SHRINK = 8  # times an α may be made smaller until it is feasible beyond doubt


def settle_dual(
    shard: Vectors, alpha: Any, felt: float, columns: Columns | None = None
) -> DualPoint:
    """D near α from below; sums are made nearly exactly where their rounding takes more off it than
    what is felt."""
    with np.errstate(over="ignore", invalid="ignore"):
        alpha = shard.map(inside, (alpha,), (shard.model.loss,))
        if shard.bias:
            alpha = _balanced_exactly(shard, alpha)
        spread = _spread(shard, alpha)
        weights, error = _weights_and_error(shard, alpha, spread, felt)
        return dual_below(shard, alpha, spread, weights, error, columns, felt)


def inside(rows: RowData, alpha: np.ndarray, loss: int) -> np.ndarray:
    """α inside its box, and zero where a row costs nothing."""
    return np.clip(alpha, 0.0, rows.c) if loss == HINGE else np.where(rows.c > 0.0, alpha, 0.0)


def _weights_and_error(
    shard: Vectors, alpha: Any, spread: Spread, felt: float
) -> tuple[np.ndarray, Any]:
    """Σ α_i y_i x_i and how far its norm, or every entry, may be off: as if rows were added one
    after the other, by chunks, as they are, where that is felt, and else nearly exactly."""
    weights = shard.dual_weights(alpha)
    for depth in (spread.entries, min(spread.entries, shard.facts.depth)):
        error = sum_error(depth, _reach(shard, spread), spread.entries)
        if _felt_in_dual(shard, weights, error, spread) <= felt:
            return weights, error
    if may_be_sharp(shard):
        exact, its_error = _sharp_weights(shard, alpha)
        if np.isfinite(exact).all():
            return exact, its_error
    return weights, error


def _sharp_weights(shard: Vectors, alpha: Any) -> tuple[np.ndarray, np.ndarray]:
    """Σ α_i y_i x_i nearly exactly, and how far every entry may be off."""
    sums = shard.column_products(shard.map(_signed, (alpha,)))
    exact = sums.high + sums.low
    return exact, growth(4.0) * np.abs(exact) + 2.0 * sums.error


def _reach(shard: Vectors, spread: Spread) -> float:
    """What rounding in Σ α_i y_i x_i goes with: in its norm, or in any entry."""
    return spread.largest if shard.model.smoothed_penalty else spread.norms


def _felt_in_dual(shard: Vectors, weights: np.ndarray, error: float, spread: Spread) -> float:
    """About what rounding in Σ α_i y_i x_i takes off D: by it α of LP-SVM is made smaller."""
    if shard.model.smoothed_penalty:
        return error * spread.total
    return error * (norm_above(weights) + error)


def dual_below(
    shard: Vectors,
    alpha: Any,
    spread: Spread,
    weights: np.ndarray,
    error: Any,
    columns: Columns | None = None,
    felt: float = np.inf,
) -> DualPoint:
    """α, or the nearest point that is feasible in exact arithmetic, with its value from below,
    given Σ α_i y_i x_i as computed and the error of its entries, or of its norm if it is one
    number. Where making α smaller takes more than what is felt, its sums are made once more."""
    if not shard.model.smoothed_penalty:
        off = norm_above(error) if isinstance(error, np.ndarray) else error + len(weights) * TINY
        size = up(up(norm_above(weights) + off) + TINY)
        value = _half_square_below(spread, shard.bias, shard.model.loss, size)
        return DualPoint(value if value == value else -np.inf, alpha)
    largest = _largest_column(shard, alpha, weights, error, columns)
    if largest > 1.0:
        whole, hoped = alpha, spread.total / largest
        alpha = _shrunk(shard, whole, largest, columns)
        spread = _spread(shard, alpha)
        if hoped - spread.total > felt and may_be_sharp(shard):
            sharper = _shrunk_sharply(shard, whole, largest, columns)
            its_spread = _spread(shard, sharper)
            if its_spread.total > spread.total:
                alpha, spread = sharper, its_spread
    return DualPoint(total_below(spread, shard.bias), alpha)


def _largest_column(
    shard: Vectors, alpha: Any, weights: np.ndarray, error: Any, columns: Columns | None
) -> float:
    """max_j |Σ α_i y_i x_ij| from above."""
    most = np.abs(weights) + error
    if columns is not None:
        most = most + columns.roots * kernel_sum(*_entries_of(shard, columns, alpha))
    return above(float(most.max(initial=0.0)), 4)


def _entries_of(shard: Vectors, columns: Columns, alpha: Any) -> tuple[Any, ...]:
    return columns.entries, shard.collect(alpha), columns.entries.roots


def _half_square_below(spread: Spread, exact: bool, loss: int, size: float) -> float:
    """Σα − Σα²/(4c) − ½‖v‖², given ‖v‖ from above; 0 at α = 0."""
    if spread.entries == 0.0:
        return 0.0
    return value_below(spread, exact, loss, half_square_above(size))


def _spread(shard: Vectors, alpha: Any) -> Spread:
    numbers = (shard.model.loss,)
    return Spread(*shard.reduce(spread_of, (alpha, shard.row_norms()), numbers).tolist())


def spread_of(rows: RowData, alpha: np.ndarray, norms: np.ndarray, loss: int) -> np.ndarray:
    """A `Spread`; that of a hinge needs no squares."""
    size, used, squares = np.abs(alpha), alpha != 0.0, 0.0
    if loss == SQUARE:
        squares = (alpha[used] * (alpha[used] / (4.0 * rows.c[used]))).sum()
    sums = (
        np.count_nonzero(used),
        alpha.sum(),
        size.sum(),
        squares,
        size @ norms,
        size @ _tops(rows, norms),
    )
    return np.array(sums)


def _balanced_exactly(shard: Vectors, alpha: Any) -> Any:
    """The nearest point on a binary grid with Σ α_i y_i = 0."""
    beta = on_grid(shard.collect(shard.map(_signed, (alpha,))))
    return shard.map(_signed, (shard.deal(beta),))


def _signed(rows: RowData, alpha: np.ndarray) -> np.ndarray:
    """α∘y, and of it α again."""
    return alpha * rows.y


def _shrunk(shard: Vectors, alpha: Any, largest: float, columns: Columns | None) -> Any:
    """About α divided by the largest |Σ α_i y_i x_ij|, so that none is above 1: for t = 1/largest
    Σ|α′ − tα|‖x‖_∞ bounds what rounding α′, also to the grid, may add to any of them."""
    tops = shard.map(_tops, (shard.row_norms(),))
    if columns is not None:
        most = above(columns.entries.epsilon * float(columns.roots.max(initial=0.0)), 2)
        tops = shard.map(_tops, (shard.row_norms(), shard.deal(columns.entries.roots)), (most,))
    t = 1.0 / largest
    for _ in range(SHRINK):
        t *= 1.0 - 2.0**-48
        smaller = shard.map(_times, (alpha,), (t,))
        if shard.bias:
            smaller = _balanced_exactly(shard, smaller)
        moved = shard.reduce(_moved_by, (smaller, alpha, tops), (t,))
        reached = above(t * largest, 4) + above(moved, shard.facts.rows + 8.0)
        if reached <= 1.0:
            return smaller
        t /= reached
    return shard.map(_times, (alpha,), (0.0,))


def _shrunk_sharply(shard: Vectors, alpha: Any, largest: float, columns: Columns | None) -> Any:
    """The same by the nearly exact sums of every α′ that is tried."""
    t = 1.0 / largest
    for _ in range(SHRINK):
        smaller = shard.map(_times, (alpha,), (t,))
        if shard.bias:
            smaller = _balanced_exactly(shard, smaller)
        reached = _largest_column(shard, smaller, *_sharp_weights(shard, smaller), columns)
        if reached <= 1.0:
            return smaller
        t *= (1.0 - 2.0**-48) / reached
    return shard.map(_times, (alpha,), (0.0,))


def _tops(rows: RowData, norms: np.ndarray, *error: Any) -> np.ndarray:
    """‖x_i‖_∞ or more, with the error of kernel values."""
    tops = np.minimum(norms, rows.s)
    return above(tops + error[0] * error[1], 4) if error else tops


def _times(rows: RowData, alpha: np.ndarray, t: float) -> np.ndarray:
    return t * alpha


def _moved_by(
    rows: RowData, smaller: np.ndarray, alpha: np.ndarray, tops: np.ndarray, t: float
) -> float:
    """Σ|α′ − tα|‖x‖_∞ from above, but for the roundings of the sum."""
    exact = t * alpha
    moved = np.abs(smaller - exact) + growth(4.0) * (np.abs(exact) + np.abs(smaller)) + 2.0 * TINY
    return float(moved @ tops)
