"""The last word on a run: P at its point from above and D at its dual point from below, true in
exact arithmetic for the problem as it is stored.

Bounds inside the loops are estimates that steer. Here every rounding is allowed for by the formulas
of rounding.py; docs/certificate.md derives them.
"""

from typing import Any, NamedTuple

import numpy as np

from ..kernels.exact_sums import Sums, two_sum
from ..kernels.loss import HINGE, SQUARE, RowData
from .certificate import DualPoint, Vectors
from .rounding import (
    TINY,
    UNIT,
    EntryError,
    above,
    down,
    growth,
    norm_above,
    on_grid,
    sum_above,
    up,
)

# Shares of P, and of the tolerance, that rounding may take before sums are made nearly exactly; the
# first for data so small that this takes a few milliseconds, where sharper bounds cost nothing.
FELT_SMALL, FELT, FELT_OF_TOLERANCE = 2e-10, 1e-8, 0.01
SMALL_CELLS = 1 << 16  # entries of X
SHARP_CELLS = 1 << 22  # entries of X up to which sums are ever made so: about a second
SHRINK = 8  # times an α may be made smaller until it is feasible beyond doubt


class Settled(NamedTuple):
    """P from above, D from below with its α, and the margins of every row."""

    objective: float
    dual: DualPoint
    margins: Any


class Columns(NamedTuple):
    """Of a matrix whose entries are kernel values K̂_ij: their error, and the κ_j of its columns."""

    entries: EntryError
    roots: np.ndarray


class Spread(NamedTuple):
    """Of a dual point: how many entries are not zero, Σα, Σ|α|, Σα²/(4c), and what rounding in
    Σ α_i y_i x_i goes with, Σ|α_i|‖x_i‖ and Σ|α_i|‖x_i‖_∞."""

    entries: float
    total: float
    size: float
    squares: float
    norms: float
    largest: float


def settle_linear(
    shard: Vectors,
    w: np.ndarray,
    b: float,
    alpha: Any,
    tol: float,
    columns: Columns | None = None,
) -> Settled:
    """P at (w, b) and D at α, in a pass for the margins and one for Σ α_i y_i x_i. Where their
    roundings come to a noticeable share of the tolerance, sums are made nearly exactly instead."""
    objective, margins = settle_objective(shard, w, b, tol, columns)
    felt = _felt(shard, objective, tol)
    return Settled(objective, settle_dual(shard, alpha, felt, columns), margins)


def settle_objective(
    shard: Vectors, w: np.ndarray, b: float, tol: float, columns: Columns | None = None
) -> tuple[float, Any]:
    """P at (w, b) from above, and the margins there."""
    with np.errstate(over="ignore", invalid="ignore"):
        margins = shard.margins_at(w, b)
        least, objective = objective_bounds(shard, w, margins, columns)
        felt = _felt(shard, objective, tol)
        if objective - least > felt and _may_be_sharp(shard):
            objective = min(objective, _sharp_objective(shard, w, b, columns))
    return objective if objective == objective else np.inf, margins  # NaN proves nothing


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


def _felt(shard: Vectors, objective: float, tol: float) -> float:
    """The rounding that is felt beside a P of this size."""
    share = FELT_SMALL if shard.data.size.cells <= SMALL_CELLS else FELT
    return min(share, FELT_OF_TOLERANCE * tol) * objective


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
        error = growth(depth + 6.0) * _reach(shard, spread) + spread.entries * TINY
        if _felt_in_dual(shard, weights, error, spread) <= felt:
            return weights, error
    if _may_be_sharp(shard):
        exact, its_error = _sharp_weights(shard, alpha)
        if np.isfinite(exact).all():
            return exact, its_error
    return weights, error


def _sharp_weights(shard: Vectors, alpha: Any) -> tuple[np.ndarray, np.ndarray]:
    """Σ α_i y_i x_i nearly exactly, and how far every entry may be off."""
    sums = shard.column_products(shard.map(_signed, (alpha,)))
    exact = sums.high + sums.low
    return exact, growth(4.0) * np.abs(exact) + 2.0 * sums.error


def _may_be_sharp(shard: Vectors) -> bool:
    return shard.data.size.cells <= SHARP_CELLS


def _reach(shard: Vectors, spread: Spread) -> float:
    """What rounding in Σ α_i y_i x_i goes with: in its norm, or in any entry."""
    return spread.largest if shard.model.smoothed_penalty else spread.norms


def _felt_in_dual(shard: Vectors, weights: np.ndarray, error: float, spread: Spread) -> float:
    """About what rounding in Σ α_i y_i x_i takes off D: by it α of LP-SVM is made smaller."""
    if shard.model.smoothed_penalty:
        return error * spread.total
    return error * (norm_above(weights) + error)


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
    size = norm_above(w)
    return above(0.5 * size * size, 2) + TINY  # ** would raise where it overflows


def _add_loss(shard: Vectors, penalty: float, loss: float) -> float:
    return up(penalty + (above(loss, shard.facts.rows) + shard.facts.rows * TINY))


def _errors_of_entries(
    shard: Vectors, w: np.ndarray, columns: Columns | None
) -> tuple[tuple[Any, ...], float | None]:
    """The κ_i of every row and ε Σ|β_j|κ_j, where the entries of X are kernel values."""
    if columns is None:
        return (), None
    known = _kernel_sum(columns.entries, w, columns.roots)
    return (shard.deal(columns.entries.roots),), known


def _kernel_sum(entries: EntryError, beta: np.ndarray, roots: np.ndarray) -> float:
    """ε Σ|β_j|κ_j."""
    return above(entries.epsilon * sum_above(np.abs(beta) * roots), 3)


def column_errors(columns: Columns, w: np.ndarray) -> np.ndarray:
    """How far margins are off where the entries of X are kernel values."""
    return above(columns.entries.roots * _kernel_sum(columns.entries, w, columns.roots), 3)


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
    error = growth(cells + 5.0) * norms * size + (cells + 1.0) * TINY
    if roots:
        error += above(roots[0] * known, 3)
    return np.array([loss_above(rows, f, 0.0, loss), loss_above(rows, f, error, loss)])


def loss_above(rows: RowData, f: np.ndarray, error: Any, loss: int) -> float:
    """Σ c loss(1 − y f) for margins that are off by `error` and a few roundings of themselves."""
    r = 1.0 - rows.y * f
    return loss_of_residuals(rows, r, error + growth(6.0) * (np.abs(f) + np.abs(r)), loss)


def loss_of_residuals(rows: RowData, r: np.ndarray, error: np.ndarray, loss: int) -> float:
    """Σ c loss(r) for residuals that are off by `error`."""
    if loss == HINGE:
        return float(rows.c @ np.maximum(r + above(error, 2), 0.0))
    size = np.abs(r) + above(error, 2)
    return float(rows.c @ (above(size * size, 3) + TINY))


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
        if hoped - spread.total > felt and _may_be_sharp(shard):
            sharper = _shrunk_sharply(shard, whole, largest, columns)
            its_spread = _spread(shard, sharper)
            if its_spread.total > spread.total:
                alpha, spread = sharper, its_spread
    return DualPoint(_total_below(spread, shard.bias), alpha)


def _largest_column(
    shard: Vectors, alpha: Any, weights: np.ndarray, error: Any, columns: Columns | None
) -> float:
    """max_j |Σ α_i y_i x_ij| from above."""
    most = np.abs(weights) + error
    if columns is not None:
        most = most + columns.roots * _kernel_sum(*_entries_of(shard, columns, alpha))
    return above(float(most.max(initial=0.0)), 4)


def _entries_of(shard: Vectors, columns: Columns, alpha: Any) -> tuple[Any, ...]:
    return columns.entries, shard.collect(alpha), columns.entries.roots


def _half_square_below(spread: Spread, exact: bool, loss: int, size: float) -> float:
    """Σα − Σα²/(4c) − ½‖v‖², given ‖v‖ from above; 0 at α = 0."""
    if spread.entries == 0.0:
        return 0.0
    return value_below(spread, exact, loss, above(0.5 * size * size, 2) + TINY)


def value_below(spread: Spread, exact: bool, loss: int, half_square: float) -> float:
    """Σα − Σα²/(4c) less half a square that is given from above; Σα is exact on the grid."""
    value = _total_below(spread, exact)
    if loss == SQUARE:
        value = down(value - above(spread.squares, spread.entries + 4.0))
        value = down(value - spread.entries * TINY * (1.0 + spread.size))
    return down(value - up(half_square))


def _total_below(spread: Spread, exact: bool) -> float:
    """Σα from below: on the grid that makes Σα y = 0 the sum is exact."""
    if exact or spread.entries == 0.0:
        return spread.total
    return down(spread.total - growth(spread.entries + 6.0) * spread.size)


def _spread(shard: Vectors, alpha: Any) -> Spread:
    return Spread(*shard.reduce(spread_of, (alpha, shard.row_norms())).tolist())


def spread_of(rows: RowData, alpha: np.ndarray, norms: np.ndarray) -> np.ndarray:
    size, used = np.abs(alpha), alpha != 0.0
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
