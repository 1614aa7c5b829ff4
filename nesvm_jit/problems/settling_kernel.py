"""The last word on a run of a kernel machine: P from above and D from below, true in exact
arithmetic for the exact kernel, by K in float64 between few rows (docs/certificate.md)."""

from typing import NamedTuple

import numpy as np

from ..kernels.loss import HINGE, RowData
from ..kernels.rounding import (
    Spread,
    objective_above,
    product_error,
    product_rate,
    quadratic_above,
    shifted_by,
    value_below,
)
from .certificate import DualPoint
from .kernel_rows import KernelRows
from .lower_bound import inside, spread_of
from .rounding import TINY, EntryError, above, growth, on_grid, up
from .upper_bound import loss_above


class SettledKernel(NamedTuple):
    """P from above at β and b, D from below with its α, and f = Kβ of every row."""

    objective: float
    dual: DualPoint
    beta: np.ndarray
    f: np.ndarray
    off: np.ndarray  # how far each f_i may be off


class Sums(NamedTuple):
    """f = Kβ as the steps of a run have left it: Σ|β_j|κ_j of all that was added, in so many
    terms."""

    f: np.ndarray
    reach: float
    terms: int
    moved: float = 0.0  # Σ|Δβ_j|, by which β is another now


def settle_kernel(
    rows: KernelRows,
    data: RowData,
    loss: int,
    bias: bool,
    beta: np.ndarray,
    b: float,
    alpha: np.ndarray,
    known: Sums | None = None,
) -> SettledKernel:
    """P at (β, b) and D at α, in float64 whatever K is kept in. With a bias α is put on a grid
    where Σ α_i y_i = 0 exactly, and β with it if they are one point."""
    same = np.array_equal(alpha * data.y, beta)
    signed = inside(data, alpha, loss) * data.y
    if bias:
        signed = on_grid(signed)
    start, beta = beta, signed if same else beta
    vectors = np.stack([beta] if same else [beta, signed])
    with np.errstate(over="ignore", invalid="ignore"):
        if known is not None:  # the grid has moved β a little
            moved = above(float(np.abs(vectors[0] - start).sum()), len(start) + 2.0)
            known = known._replace(moved=moved)
        (f, *more), lossy, entries, off = _products(rows, data, loss, vectors, b, known)
        quadratic, error = _quadratic_above(entries, beta, f)
        losses = loss_above(lossy, f + b, error, loss)
        objective = objective_above(up(0.5 * quadratic), losses, len(f))
        if not same:
            quadratic, _ = _quadratic_above(entries, signed, more[0])
        spread = Spread(*spread_of(data, signed * data.y, np.zeros(len(f)), loss).tolist())
        value = 0.0 if spread.entries == 0.0 else value_below(spread, bias, loss, 0.5 * quadratic)
    objective = objective if objective == objective else np.inf  # NaN proves nothing
    value = value if value == value else -np.inf
    off = np.maximum(off, error)
    return SettledKernel(objective, DualPoint(value, signed * data.y), beta, f, off)


def settle_known(
    rows: KernelRows,
    data: RowData,
    loss: int,
    bias: bool,
    beta: np.ndarray,
    b: float,
    known: Sums,
) -> SettledKernel:
    """P and D at β, a primal and a dual point in one, from f = Kβ as steps have left it: for a run
    that has to end at once. They are as true as those of `settle_kernel`, and less sharp."""
    signed = inside(data, beta * data.y, loss) * data.y
    if bias:
        signed = on_grid(signed)
    n, entries = len(beta), rows.entries
    with np.errstate(over="ignore", invalid="ignore"):
        moved = above(float(np.abs(signed - beta).sum()), n + 2.0)
        f, size = known.f, np.abs(signed)
        error = _error_of_known(known._replace(moved=moved), entries, f + b)
        error += shifted_by(entries.shift, size)
        quadratic = float(signed @ f) + growth(n + 8.0) * float(size @ np.abs(f))
        quadratic += above(float(size @ error), n) + 3.0 * n * TINY
        half = 0.5 * up(quadratic + growth(8.0) * abs(quadratic))
        objective = objective_above(up(half), loss_above(data, f + b, error, loss), n)
        spread = Spread(*spread_of(data, signed * data.y, np.zeros(n), loss).tolist())
        value = 0.0 if spread.entries == 0.0 else value_below(spread, bias, loss, half)
    objective = objective if objective == objective else np.inf
    value = value if value == value else -np.inf
    return SettledKernel(objective, DualPoint(value, signed * data.y), signed, f, error)


def _error_of_known(known: Sums, entries: EntryError, f: np.ndarray) -> np.ndarray:
    """How far f = Kβ as steps have left it may be off, K in the precision of these entries."""
    rate = entries.epsilon + growth(known.terms + 8.0) * (1.0 + entries.epsilon)
    error = above(rate * known.reach, 2.0 * known.terms + 16.0) * entries.roots
    error += above(known.moved * float(entries.roots.max(initial=0.0)), 4) * entries.roots
    return error + growth(8.0) * (1.0 + np.abs(f))


def margin_errors(rows: KernelRows, beta: np.ndarray, margins: np.ndarray) -> np.ndarray:
    """How far margins that were computed in float64 may be off."""
    entries = rows.entries if rows.finer is None else rows.fine().entries
    _, error = _quadratic_above(entries, beta, margins)
    return above(error + growth(16.0) * np.abs(margins), 4)


def _products(
    rows: KernelRows,
    data: RowData,
    loss: int,
    vectors: np.ndarray,
    b: float,
    known: Sums | None,
) -> tuple[np.ndarray, RowData, EntryError, np.ndarray]:
    """Kv of each vector, and how far those that are not computed afresh may be off; rows that K in
    single precision shows to have no loss at the first of them need nothing more, and count as
    rows without a cost."""
    if rows.finer is None:
        return rows.times(*vectors), data, rows.entries, np.zeros(len(data.y))
    fine, entries, used = rows.fine(), rows.entries, vectors.any(axis=0)
    if known is None or not np.isfinite(known.reach):
        beta = vectors[0]
        reach = above(float(np.abs(beta) @ entries.roots), len(beta))
        known = Sums(rows.times(beta)[0], reach, len(beta))
    f, error = known.f + b, np.full(len(data.y), np.inf)
    if loss == HINGE:
        error = _error_of_known(known, entries, f)
        data = data._replace(c=np.where(data.y * f - error > 1.0, 0.0, data.c))
    found = fine.times_between(vectors, np.flatnonzero((data.c > 0.0) & ~used))
    afresh = used | (data.c > 0.0)
    off = np.where(afresh, 0.0, error)
    return np.where(afresh, found, known.f), data, fine.entries, off


def _quadratic_above(
    entries: EntryError, beta: np.ndarray, f: np.ndarray
) -> tuple[float, np.ndarray]:
    """βᵀKβ from above, given f = Kβ as computed, and how far each f_i may be off.

    Sums over m entries are off by γ_m Σ|β_j|κ_iκ_j, entries of K by ε κ_iκ_j. Where K is only known
    to be positive semidefinite with τ added to its diagonal, both cover that matrix too.
    """
    m, size = float(np.count_nonzero(beta)), np.abs(beta)
    rate = product_rate(entries.epsilon, m)
    reach = above(float(size @ entries.roots), len(beta)) + m * TINY
    shifted = shifted_by(entries.shift, size)
    error = product_error(rate, reach, entries.roots, shifted, m)
    sums = (float(beta @ f), float(size @ np.abs(f)), rate, reach, float(size @ shifted))
    return quadratic_above(*sums, len(beta), m), error
