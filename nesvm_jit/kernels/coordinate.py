"""Coordinate ascent on the dual of a linear machine, one row at a time.

The dual is max Σα − ½Σ d_i α_i² − ½‖w‖² − ½s²/ρ, w = Σ α_i y_i x_i and s = Σ α_i y_i. Smoothing, or
a squared loss, puts d on the diagonal; a bias held near b⁰ by ½ρ(b − b⁰)² adds 1/ρ. Its gradient is
r_i − d_i α_i with r_i = 1 − y_i(x_i·w + b).
"""

from typing import NamedTuple

import numpy as np

from ..jit import by_layout, helper, loop
from ..jit.intrinsics import prefetch
from ..matrix.matrix import row_axpy, row_dot
from .loss import HINGE, SQUARE, median, true_loss

# What the dual knows of a row, side by side in one line of the cache: y, α and its bounds, d, the
# curvature ‖x‖² + d + 1/ρ, and r as last seen.
LABEL, ALPHA, LOWER, UPPER, DIAGONAL, CURVATURE, RESIDUAL = range(7)
WIDTH = 8
AHEAD = 8  # rows: at random each would wait for memory four times as long as it computes (w8a)
LINE = 64  # bytes


class Epoch(NamedTuple):
    """What a pass leaves: the largest and the smallest gradient that could move a row, b, and
    Σα, Σ α y, Σ d α² and Σ loss(r) by the residuals as last seen."""

    highest: float
    lowest: float
    b: float
    total: float
    excess: float
    squares: float
    loss: float


def dual_rows(n: int) -> np.ndarray:
    """Memory for n rows, each in a line of the cache."""
    cells = np.zeros(n * WIDTH + WIDTH)
    skip = (-cells.ctypes.data % LINE) // cells.itemsize
    return cells[skip : skip + n * WIDTH].reshape(n, WIDTH)


def _dense_near(X, flat, i):
    prefetch(flat, np.int64(i) * X.shape[1])


def _dense_soon(X, flat, i):
    pass


def _csr_near(X, flat, i):
    start = np.int64(X.indptr[i])
    prefetch(X.indices, start)
    prefetch(X.data, start)
    prefetch(X.data, start + 8)


def _csr_soon(X, flat, i):
    prefetch(X.indptr, np.int64(i))


@by_layout(_dense_near, _csr_near)
def row_near(X, flat, i):
    """Ask for the first entries of row i."""


@by_layout(_dense_soon, _csr_soon)
def row_soon(X, flat, i):
    """Ask for where row i begins."""


@loop
def _shuffle(order, state):
    """Fisher and Yates with random numbers of xorshift64*; `state` goes on from call to call."""
    x = state[0]
    for k in range(len(order) - 1):
        x ^= x >> np.uint64(12)
        x ^= x << np.uint64(25)
        x ^= x >> np.uint64(27)
        drawn = (x * np.uint64(2685821657736338717)) >> np.uint64(32)
        j = k + np.int64((drawn * np.uint64(len(order) - k)) >> np.uint64(32))
        order[k], order[j] = order[j], order[k]
    state[0] = x


@helper
def _loss(r, high, diagonal):
    """c max(r, 0) where α ≤ c; c r² = r²/(2d) where α is free; nothing where α is held at 0."""
    if high == np.inf:
        return 0.5 * true_loss(r, SQUARE) / diagonal
    return high * true_loss(r, HINGE)


@loop
def _dual_epoch(X, flat, dual, order, before, share, w):
    """α_i ← median{α_i + (r_i − d_i α_i)/curvature_i, lower, upper}, w and b following, for the
    rows of `order`; share is 1/ρ, or 0 without a bias. `flat` is X in one dimension if dense.

    A row at a bound whose gradient points further out of the box than any could move in the epoch
    before is left out of `order`, whose first entries, as many as returned, are those kept.
    """
    b, total, excess = before.b, before.total, before.excess
    squares, loss = before.squares, before.loss
    above, below = before.highest, before.lowest
    highest, lowest = -np.inf, np.inf
    cells = dual.reshape(-1)
    n, kept = len(order), 0
    for k in range(n):
        if k + 2 * AHEAD < n:
            far = order[k + 2 * AHEAD]
            prefetch(cells, far * WIDTH)
            row_soon(X, flat, far)
            row_near(X, flat, order[k + AHEAD])
        i = order[k]
        row = dual[i]
        y, a, low, high = row[LABEL], row[ALPHA], row[LOWER], row[UPPER]
        r = 1.0 - y * (row_dot(X, i, w) + b)
        d = row[DIAGONAL]
        loss += _loss(r, high, d) - _loss(row[RESIDUAL], high, d)
        row[RESIDUAL] = r
        g = r - d * a
        order[kept] = i
        if (a <= low and g < 0.0) or (a >= high and g > 0.0):
            if not (g < below or g > above):
                kept += 1
            continue
        kept += 1
        highest = max(highest, g)
        lowest = min(lowest, g)
        new = median(a + g / row[CURVATURE], low, high)
        if new != a:
            row[ALPHA] = new
            step = (new - a) * y
            total += new - a
            squares += d * (new * new - a * a)
            excess += step
            b += share * step
            row_axpy(X, i, step, w)
    return Epoch(highest, lowest, b, total, excess, squares, loss), kept
