"""Curvature of the loss: H = Xᵀ diag(d) X over the rows with d_i > 0, whole or times a vector."""

import numpy as np

from ..jit import (
    chunk_bounds,
    chunk_count,
    helper,
    kernel,
    overload,
    partial_sums,
    prange,
    types,
)
from ..matrix.matrix import row_axpy, row_dot, row_load, shape
from ..matrix.rows import Size
from .sums import _collect, clear

PANEL = 512  # dense rows that one call of BLAS multiplies
THICK = 10.0  # times the squared share of entries stored: from 1 on BLAS is faster than scattering
TILE = 256  # columns of H that it fills at a time, of the lower triangle only


@helper
def _add_panel(panel, used, workspace, H):
    """H += PᵀP of the first `used` rows P of the panel, lower triangle, tile by tile."""
    p = H.shape[0]
    columns = workspace[: p * used].reshape(p, used)
    for j in range(p):
        for i in range(used):
            columns[j, i] = panel[i, j]
    for lo in range(0, p, TILE):
        hi = min(p, lo + TILE)
        tile = workspace[p * used : p * used + (hi - lo) * hi].reshape(hi - lo, hi)
        np.dot(columns[lo:hi], columns[:hi].T, tile)
        for i in range(lo, hi):
            for j in range(i + 1):
                H[i, j] += tile[i - lo, j]


@helper
def _panel_outer(X, d, lo, hi, workspace, H):
    p = H.shape[0]
    panel = workspace[: PANEL * p].reshape(PANEL, p)
    used = 0
    for i in range(lo, hi):
        if d[i] != 0.0:
            row_load(X, i, workspace.dtype.type(np.sqrt(d[i])), panel[used])
            used += 1
            if used == PANEL:
                _add_panel(panel, used, workspace[PANEL * p :], H)
                used = 0
    if used > 0:
        _add_panel(panel, used, workspace[PANEL * p :], H)


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


def _dense_outer(X, d, lo, hi, workspace, H):
    _panel_outer(X, d, lo, hi, workspace, H)


def _csr_outer(X, d, lo, hi, workspace, H):
    p = H.shape[0]
    cells = np.float64(X.indptr[hi] - X.indptr[lo]) / max(hi - lo, 1)
    if THICK * cells * cells > np.float64(p) * p:
        _panel_outer(X, d, lo, hi, workspace, H)
    else:
        _thin_outer(X, d, lo, hi, H)


def rows_outer(X, d, lo, hi, workspace, H):
    """H += Σ d_i x_i x_iᵀ over rows lo..hi with d_i ≠ 0, in the lower triangle."""
    outer = _dense_outer if isinstance(X, np.ndarray) else _csr_outer
    return outer(X, d, lo, hi, workspace, H)


@overload(rows_outer)
def _rows_outer(X, d, lo, hi, workspace, H):
    return _dense_outer if isinstance(X, types.Array) else _csr_outer


@helper
def _hessian_rows(X, d, lo, hi, cells, workspace, p):
    clear(cells)
    rows_outer(X, d, lo, hi, workspace, cells[: p * p].reshape(p, p))


@kernel
def _hessian(X, d, partials, workspaces, keep, H):
    """H = Σ d_i x_i x_iᵀ, plus what it held, if `keep`; partial sums fill lower triangles, which
    are added and mirrored.

    `workspaces` is where dense rows are multiplied, in its precision; a panel of 512 rows is summed
    in that precision too, and panels in float64.
    """
    n, p = shape(X)
    n_chunks = partials.shape[0]
    for k in prange(n_chunks):
        lo, hi = chunk_bounds(n, n_chunks, k)
        _hessian_rows(X, d, lo, hi, partials[k], workspaces[k], p)
    for i in prange(p):
        for j in range(i + 1):
            total = H[i, j] if keep else 0.0
            for k in range(n_chunks):
                total += partials[k, i * p + j]
            H[i, j] = total
            H[j, i] = total


@helper
def _hessian_times_rows(X, d, v, lo, hi, g):
    clear(g)
    for i in range(lo, hi):
        if d[i] != 0.0:
            row_axpy(X, i, d[i] * row_dot(X, i, v), g)


@kernel
def _hessian_times_partials(X, d, v, partials):
    n, _ = shape(X)
    n_chunks = partials.shape[0]
    for k in prange(n_chunks):
        lo, hi = chunk_bounds(n, n_chunks, k)
        _hessian_times_rows(X, d, v, lo, hi, partials[k])


def _hessian_times(X, d, v, partials, out, keep=False):
    """out = Σ d_i (x_i·v) x_i over the rows with d_i ≠ 0, plus what it held, if `keep`."""
    _hessian_times_partials(X, d, v, partials)
    _collect(partials, keep, out)


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
def _diagonal_partials(X, d, partials):
    n, _ = shape(X)
    n_chunks = partials.shape[0]
    for k in prange(n_chunks):
        lo, hi = chunk_bounds(n, n_chunks, k)
        _diagonal_rows(X, d, lo, hi, partials[k])


def _hessian_diagonal(X, d, partials, out, keep=False):
    """out_j = Σ d_i x_ij² over the rows with d_i ≠ 0, plus what it held, if `keep`."""
    _diagonal_partials(X, d, partials)
    _collect(partials, keep, out)


def hessian_partials(size: Size) -> np.ndarray:
    """Memory for the partial sums of `_hessian`; few chunks, since each has p² cells."""
    n, p = size.rows, size.cols
    return partial_sums(chunk_count(n, 8 * p * p), p * p)


def hessian_workspaces(size: Size, dtype=np.float64) -> np.ndarray:
    """Memory for the dense products of `_hessian`: a panel, its transpose and a tile per chunk."""
    n, p = size.rows, size.cols
    cells = (2 * PANEL + min(p, TILE)) * p
    return np.empty((chunk_count(n, 8 * p * p), cells), dtype)
