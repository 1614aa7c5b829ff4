"""Sums over rows: margins, norms, and Σ a_i x_i by fixed chunks, so that the bits of a result
do not depend on the number of threads."""

import numpy as np

from ..jit import chunk_bounds, chunk_count, helper, kernel, partial_sums
from ..matrix.matrix import row_axpy, row_dot, shape
from ..matrix.matrix import row_norms as _norms_of_row
from ..matrix.rows import Size, size_of

COLUMNS = 4096  # columns that a chunk adds up
# Bytes of rows that stay in a second-level cache while all columns of weights go over them.
KEPT_BYTES = 1 << 17
CELLS_PER_SUM = 4  # entries of X for each partial sum, at least: else adding them up takes longer


@helper
def clear(v):
    """v = 0."""
    for j in range(len(v)):
        v[j] = 0.0


@kernel
def _collect_columns(k, n_chunks, partials, keep, out):
    lo, hi = chunk_bounds(len(out), n_chunks, k)
    if not keep:
        for j in range(lo, hi):
            out[j] = 0.0
    for i in range(partials.shape[0]):
        for j in range(lo, hi):
            out[j] += partials[i, j]


def _collect(partials, keep, out):
    """out_j = Σ_i partials[i, j] (plus what it held, if `keep`), always in the order of i."""
    _collect_columns(-(-len(out) // COLUMNS), partials, keep, out)


def row_partials(size: Size) -> np.ndarray:
    """Memory for the partial sums of Σ a_i x_i; solvers make it once."""
    p = size.cols
    n_chunks = chunk_count(size.rows, size.work, p)
    return partial_sums(min(n_chunks, max(2, size.cells // (CELLS_PER_SUM * max(p, 1)))), p)


def row_chunks(X) -> int:
    """How many chunks a pass over the rows of X is cut into that adds nothing up."""
    size = size_of(X)
    return chunk_count(size.rows, size.work)


@kernel
def _margins(k, n_chunks, X, w, b, out):
    """f_i = x_i·w + b."""
    lo, hi = chunk_bounds(shape(X)[0], n_chunks, k)
    for i in range(lo, hi):
        out[i] = row_dot(X, i, w) + b


@kernel
def _scores(k, n_chunks, X, W, b, at_once, out):
    """F = X Wᵀ + b, a few rows at a time: they are read from memory once for all rows of W."""
    lo, hi = chunk_bounds(shape(X)[0], n_chunks, k)
    for first in range(lo, hi, at_once):
        last = min(first + at_once, hi)
        for j in range(len(W)):
            w = W[j]
            for i in range(first, last):
                out[i, j] = row_dot(X, i, w) + b[j]


def scores_of(X, W, b):
    """X Wᵀ + b of a checked matrix; the score of a row is the same in any company."""
    size = size_of(X)
    out = np.empty((size.rows, len(W)))
    at_once = max(1, KEPT_BYTES // max(1, size.row_bytes))
    _scores(chunk_count(size.rows, size.work * len(W)), X, W, b, at_once, out)
    return out


@kernel
def _row_norms(k, n_chunks, X, two, largest):
    """‖x_i‖₂ and ‖x_i‖_∞ of every row."""
    lo, hi = chunk_bounds(shape(X)[0], n_chunks, k)
    for i in range(lo, hi):
        square, top = _norms_of_row(X, i)
        two[i] = np.sqrt(square)
        largest[i] = top


def norms_of(X):
    """‖x_i‖₂ and ‖x_i‖_∞ of every row of a checked matrix, as two arrays."""
    n, _ = shape(X)
    two, largest = np.zeros(n), np.zeros(n)
    _row_norms(row_chunks(X), X, two, largest)
    return two, largest


@kernel
def _accumulate_partials(k, n_chunks, X, a, partials):
    lo, hi = chunk_bounds(shape(X)[0], n_chunks, k)
    g = partials[k]
    clear(g)
    for i in range(lo, hi):
        if a[i] != 0.0:
            row_axpy(X, i, a[i], g)


@kernel
def _accumulate_change_partials(k, n_chunks, X, new, old, partials):
    lo, hi = chunk_bounds(shape(X)[0], n_chunks, k)
    g = partials[k]
    clear(g)
    for i in range(lo, hi):
        if new[i] != old[i]:
            row_axpy(X, i, new[i] - old[i], g)


def _accumulate(X, a, partials, out, keep=False):
    """out = Σ a_i x_i over the rows with a_i ≠ 0, plus what it held, if `keep`."""
    _accumulate_partials(len(partials), X, a, partials)
    _collect(partials, keep, out)


def _accumulate_change(X, new, old, partials, out):
    """out += Σ (new_i − old_i) x_i over the rows where they differ."""
    _accumulate_change_partials(len(partials), X, new, old, partials)
    _collect(partials, True, out)
