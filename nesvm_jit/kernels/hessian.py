"""Curvature of the loss: H = Xᵀ diag(d) X over the rows with d_i > 0, whole or times a vector."""

import numpy as np

from ..errors import InputError
from ..jit import (
    chunk_bounds,
    chunk_count,
    helper,
    kernel,
    one_blas_thread,
    overload,
    partial_sums,
    prange,
    types,
)
from ..matrix.checks import as_matrix, as_vector, output
from ..matrix.matrix import row_axpy, row_dot, row_load, shape
from ..matrix.rows import Size, size_of
from .sums import _collect, clear, row_sums

PANEL = 512  # dense rows multiplied by one call of BLAS
THICK = 10.0
TILE = 256  # columns of H it fills at a time, of the lower triangle only


@helper
def _add_panel(panel, used, room, H):
    """H += PᵀP of the first `used` rows P of the panel, lower triangle, tile by tile."""
    p = H.shape[0]
    columns = room[: p * used].reshape(p, used)
    for j in range(p):
        for i in range(used):
            columns[j, i] = panel[i, j]
    for lo in range(0, p, TILE):
        hi = min(p, lo + TILE)
        tile = room[p * used : p * used + (hi - lo) * hi].reshape(hi - lo, hi)
        np.dot(columns[lo:hi], columns[:hi].T, tile)
        for i in range(lo, hi):
            for j in range(i + 1):
                H[i, j] += tile[i - lo, j]


@helper
def _panel_outer(X, d, lo, hi, room, H):
    p = H.shape[0]
    panel = room[: PANEL * p].reshape(PANEL, p)
    used = 0
    for i in range(lo, hi):
        if d[i] != 0.0:
            row_load(X, i, room.dtype.type(np.sqrt(d[i])), panel[used])
            used += 1
            if used == PANEL:
                _add_panel(panel, used, room[PANEL * p :], H)
                used = 0
    if used > 0:
        _add_panel(panel, used, room[PANEL * p :], H)


@helper
def _thin_outer(X, d, lo, hi, H):
    for i in range(lo, hi):
        if d[i] != 0.0:
            start = X.indptr[i]
            for a in range(start, X.indptr[i + 1]):
                v = d[i] * X.data[a]
                row = H[X.indices[a]]
                for b in range(start, a + 1):
                    row[X.indices[b]] += v * X.data[b]


def _dense_outer(X, d, lo, hi, room, H):
    _panel_outer(X, d, lo, hi, room, H)


def _csr_outer(X, d, lo, hi, room, H):
    # a third full, rows are worth spreading out: BLAS does 20 products while one is scattered
    p = H.shape[0]
    cells = np.float64(X.indptr[hi] - X.indptr[lo]) / max(hi - lo, 1)
    if THICK * cells * cells > np.float64(p) * p:
        _panel_outer(X, d, lo, hi, room, H)
    else:
        _thin_outer(X, d, lo, hi, H)


def rows_outer(X, d, lo, hi, room, H):
    """H += Σ d_i x_i x_iᵀ over rows lo..hi with d_i ≠ 0, in the lower triangle."""
    outer = _dense_outer if isinstance(X, np.ndarray) else _csr_outer
    return outer(X, d, lo, hi, room, H)


@overload(rows_outer)
def _rows_outer(X, d, lo, hi, room, H):
    return _dense_outer if isinstance(X, types.Array) else _csr_outer


@helper
def _hessian_rows(X, d, lo, hi, cells, room, p):
    clear(cells)
    rows_outer(X, d, lo, hi, room, cells[: p * p].reshape(p, p))


@kernel
def _hessian(X, d, parts, rooms, keep, H):
    """H = Σ d_i x_i x_iᵀ, plus what it held, if `keep`; partial sums fill lower triangles, which
    are added and mirrored.

    `rooms` is where dense rows are multiplied, in its precision; their sums are in float64.
    """
    n, p = shape(X)
    n_chunks = parts.shape[0]
    for k in prange(n_chunks):
        lo, hi = chunk_bounds(n, n_chunks, k)
        _hessian_rows(X, d, lo, hi, parts[k], rooms[k], p)
    for i in prange(p):
        for j in range(i + 1):
            total = H[i, j] if keep else 0.0
            for k in range(n_chunks):
                total += parts[k, i * p + j]
            H[i, j] = total
            H[j, i] = total


@helper
def _hessian_times_rows(X, d, v, lo, hi, g):
    clear(g)
    for i in range(lo, hi):
        if d[i] != 0.0:
            row_axpy(X, i, d[i] * row_dot(X, i, v), g)


@kernel
def _hessian_times_parts(X, d, v, parts):
    n, _ = shape(X)
    n_chunks = parts.shape[0]
    for k in prange(n_chunks):
        lo, hi = chunk_bounds(n, n_chunks, k)
        _hessian_times_rows(X, d, v, lo, hi, parts[k])


def _hessian_times(X, d, v, parts, out, keep=False):
    """out = Σ d_i (x_i·v) x_i over the rows with d_i ≠ 0, plus what it held, if `keep`."""
    _hessian_times_parts(X, d, v, parts)
    _collect(parts, keep, out)


def _dense_squares(X, i, a, g):
    for j in range(X.shape[1]):
        g[j] += a * X[i, j] * np.float64(X[i, j])


def _csr_squares(X, i, a, g):
    for k in range(X.indptr[i], X.indptr[i + 1]):
        g[X.indices[k]] += a * X.data[k] * np.float64(X.data[k])


def row_squares(X, i, a, g):
    """g += a x_i∘x_i."""
    return _dense_squares(X, i, a, g) if isinstance(X, np.ndarray) else _csr_squares(X, i, a, g)


@overload(row_squares)
def _row_squares(X, i, a, g):
    return _dense_squares if isinstance(X, types.Array) else _csr_squares


@helper
def _diagonal_rows(X, d, lo, hi, g):
    clear(g)
    for i in range(lo, hi):
        if d[i] != 0.0:
            row_squares(X, i, d[i], g)


@kernel
def _diagonal_parts(X, d, parts):
    n, _ = shape(X)
    n_chunks = parts.shape[0]
    for k in prange(n_chunks):
        lo, hi = chunk_bounds(n, n_chunks, k)
        _diagonal_rows(X, d, lo, hi, parts[k])


def _hessian_diagonal(X, d, parts, out, keep=False):
    """out_j = Σ d_i x_ij² over the rows with d_i ≠ 0, plus what it held, if `keep`."""
    _diagonal_parts(X, d, parts)
    _collect(parts, keep, out)


def hessian_parts(size: Size) -> np.ndarray:
    """Room for the partial sums of `_hessian`; few chunks, since each has p² cells."""
    n, p = size.rows, size.cols
    return partial_sums(chunk_count(n, 8 * p * p), p * p)


def hessian_rooms(size: Size, dtype=np.float64) -> np.ndarray:
    """Room for the dense products of `_hessian`: a panel, its transpose and a tile per chunk."""
    n, p = size.rows, size.cols
    cells = (2 * PANEL + min(p, TILE)) * p
    return np.empty((chunk_count(n, 8 * p * p), cells), dtype)


def _as_curvature(d, n: int) -> np.ndarray:
    d = as_vector("d", d, n)
    if (d < 0).any():
        raise InputError(f"d must not be negative, got {d.min()}")
    return d


def hessian(X, d, out=None):
    """Xᵀ diag(d) X over the rows with d_i > 0, as a full symmetric p × p array."""
    X = as_matrix(X, borrow=True)
    n, p = shape(X)
    H = output("out", out, (p, p))
    with one_blas_thread():
        size = size_of(X)
        rooms = hessian_rooms(size)
        _hessian(X, _as_curvature(d, n), hessian_parts(size), rooms, False, H)
    return H


def hessian_times(X, d, v, out=None):
    """Xᵀ diag(d) X v over the rows with d_i > 0, each row touched once."""
    X = as_matrix(X, borrow=True)
    n, p = shape(X)
    out = output("out", out, (p,))
    _hessian_times(X, _as_curvature(d, n), as_vector("v", v, p), row_sums(size_of(X)), out)
    return out


def hessian_diagonal(X, d, out=None):
    """The diagonal of Xᵀ diag(d) X, which is what its products are preconditioned with."""
    X = as_matrix(X, borrow=True)
    n, p = shape(X)
    out = output("out", out, (p,))
    _hessian_diagonal(X, _as_curvature(d, n), row_sums(size_of(X)), out)
    return out
