"""Sums over rows: margins, norms, and Σ a_i x_i by fixed chunks, so that the bits of a result
do not depend on the number of threads."""

import numpy as np

from ..jit import chunk_bounds, chunk_count, helper, kernel, partial_sums, prange
from ..matrix.matrix import row_axpy, row_dot, shape
from ..matrix.matrix import row_norms as _norms_of_row
from ..matrix.rows import Size

COLUMNS = 4096  # columns that a thread adds up at a time
CELLS_PER_SUM = 4  # entries of X for each partial sum, at least: else adding them up takes longer


@helper
def clear(v):
    """v = 0."""
    for j in range(len(v)):
        v[j] = 0.0


@kernel
def _collect(partials, keep, out):
    """out_j = Σ_k partials[k, j] (plus what it held, if `keep`), always in the order of k."""
    n = len(out)
    for block in prange((n + COLUMNS - 1) // COLUMNS):
        lo, hi = block * COLUMNS, min(n, (block + 1) * COLUMNS)
        if not keep:
            for j in range(lo, hi):
                out[j] = 0.0
        for k in range(partials.shape[0]):
            for j in range(lo, hi):
                out[j] += partials[k, j]


def row_partials(size: Size) -> np.ndarray:
    """Memory for the partial sums of Σ a_i x_i; solvers make it once."""
    p = size.cols
    n_chunks = min(chunk_count(size.rows, p), max(2, size.cells // (CELLS_PER_SUM * max(p, 1))))
    return partial_sums(n_chunks, p)


@kernel
def _margins(X, w, b, n_chunks, out):
    """f_i = x_i·w + b."""
    n, _ = shape(X)
    for k in prange(n_chunks):
        lo, hi = chunk_bounds(n, n_chunks, k)
        for i in range(lo, hi):
            out[i] = row_dot(X, i, w) + b


@kernel
def _row_norms(X, n_chunks, two, largest):
    """‖x_i‖₂ and ‖x_i‖_∞ of every row."""
    n, _ = shape(X)
    for k in prange(n_chunks):
        lo, hi = chunk_bounds(n, n_chunks, k)
        for i in range(lo, hi):
            square, top = _norms_of_row(X, i)
            two[i] = np.sqrt(square)
            largest[i] = top


def norms_of(X):
    """‖x_i‖₂ and ‖x_i‖_∞ of every row of a checked matrix, as two arrays."""
    n, _ = shape(X)
    two, largest = np.zeros(n), np.zeros(n)
    _row_norms(X, chunk_count(n, 1), two, largest)
    return two, largest


@helper
def _accumulate_rows(X, a, lo, hi, g):
    clear(g)
    for i in range(lo, hi):
        if a[i] != 0.0:
            row_axpy(X, i, a[i], g)


@helper
def _accumulate_changed_rows(X, new, old, lo, hi, g):
    clear(g)
    for i in range(lo, hi):
        if new[i] != old[i]:
            row_axpy(X, i, new[i] - old[i], g)


@kernel
def _accumulate_partials(X, a, partials):
    n, _ = shape(X)
    n_chunks = partials.shape[0]
    for k in prange(n_chunks):
        lo, hi = chunk_bounds(n, n_chunks, k)
        _accumulate_rows(X, a, lo, hi, partials[k])


@kernel
def _accumulate_change_partials(X, new, old, partials):
    n, _ = shape(X)
    n_chunks = partials.shape[0]
    for k in prange(n_chunks):
        lo, hi = chunk_bounds(n, n_chunks, k)
        _accumulate_changed_rows(X, new, old, lo, hi, partials[k])


def _accumulate(X, a, partials, out, keep=False):
    """out = Σ a_i x_i over the rows with a_i ≠ 0, plus what it held, if `keep`."""
    _accumulate_partials(X, a, partials)
    _collect(partials, keep, out)


def _accumulate_change(X, new, old, partials, out):
    """out += Σ (new_i − old_i) x_i over the rows where they differ."""
    _accumulate_change_partials(X, new, old, partials)
    _collect(partials, True, out)
