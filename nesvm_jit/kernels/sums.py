"""Sums over rows: margins, norms, and Σ a_i x_i by fixed chunks, so that the bits of a result
do not depend on the number of threads."""

import numpy as np

from ..jit import chunk_bounds, chunk_count, helper, kernel, partial_sums, prange
from ..matrix.checks import as_matrix, as_number, as_vector, output
from ..matrix.matrix import row_axpy, row_dot, shape
from ..matrix.matrix import row_norms as _norms_of_row
from ..matrix.rows import Size, size_of

COLUMNS = 4096  # columns a thread adds up at a time
PARTS = 4  # entries of X for each partial sum, at least


@helper
def clear(v):
    """v = 0."""
    for j in range(len(v)):
        v[j] = 0.0


@kernel
def _collect(parts, keep, out):
    """out_j = Σ_k parts[k, j] (plus what it held, if `keep`), always in the order of k."""
    n = len(out)
    for block in prange((n + COLUMNS - 1) // COLUMNS):
        lo, hi = block * COLUMNS, min(n, (block + 1) * COLUMNS)
        if not keep:
            for j in range(lo, hi):
                out[j] = 0.0
        for k in range(parts.shape[0]):
            for j in range(lo, hi):
                out[j] += parts[k, j]


def row_sums(size: Size) -> np.ndarray:
    """Room for the partial sums of Σ a_i x_i; kernels that run in rounds are given one."""
    p = size.cols
    # adding the parts up must cost less than making them
    n_chunks = min(chunk_count(size.rows, p), max(2, size.cells // (PARTS * max(p, 1))))
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
def _accumulate_parts(X, a, parts):
    n, _ = shape(X)
    n_chunks = parts.shape[0]
    for k in prange(n_chunks):
        lo, hi = chunk_bounds(n, n_chunks, k)
        _accumulate_rows(X, a, lo, hi, parts[k])


@kernel
def _accumulate_change_parts(X, new, old, parts):
    n, _ = shape(X)
    n_chunks = parts.shape[0]
    for k in prange(n_chunks):
        lo, hi = chunk_bounds(n, n_chunks, k)
        _accumulate_changed_rows(X, new, old, lo, hi, parts[k])


def _accumulate(X, a, parts, out, keep=False):
    """out = Σ a_i x_i over the rows with a_i ≠ 0, plus what it held, if `keep`."""
    _accumulate_parts(X, a, parts)
    _collect(parts, keep, out)


def _accumulate_change(X, new, old, parts, out):
    """out += Σ (new_i − old_i) x_i over the rows where they differ."""
    _accumulate_change_parts(X, new, old, parts)
    _collect(parts, True, out)


def margins(X, w, b=0.0, out=None):
    """f = Xw + b."""
    X = as_matrix(X, borrow=True)
    n, p = shape(X)
    out = output("out", out, (n,))
    w = as_vector("w", w, p)
    w = w.copy() if np.may_share_memory(w, out) else w
    _margins(X, w, as_number("b", b), chunk_count(n, 1), out)
    return out


def row_norms(X):
    """The norms ‖x_i‖₂ and ‖x_i‖_∞ of all rows, as two arrays, in one pass."""
    X = as_matrix(X, borrow=True)
    n, _ = shape(X)
    two, largest = np.zeros(n), np.zeros(n)
    _row_norms(X, chunk_count(n, 1), two, largest)
    return two, largest


def accumulate(X, a, out=None):
    """Xᵀa over the rows with a_i ≠ 0; with a = c∘y∘u this is (YX)ᵀu over support vectors."""
    X = as_matrix(X, borrow=True)
    n, p = shape(X)
    out = output("out", out, (p,))
    _accumulate(X, as_vector("a", a, n), row_sums(size_of(X)), out)
    return out


def accumulate_change(X, new, old, out):
    """Brings out = Xᵀold up to date: out += Xᵀ(new − old) over the rows where they differ."""
    X = as_matrix(X, borrow=True)
    n, p = shape(X)
    out = output("out", out, (p,))
    new, old = as_vector("new", new, n), as_vector("old", old, n)
    _accumulate_change(X, new, old, row_sums(size_of(X)), out)
    return out
