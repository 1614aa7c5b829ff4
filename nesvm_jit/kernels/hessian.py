"""Curvature of the loss: H = Xᵀ diag(d) X over the rows with d_i > 0, whole or times a vector."""

from typing import NamedTuple

import numpy as np

from ..clock import pieces
from ..jit import (
    SUM_CELLS,
    by_layout,
    chunk_bounds,
    chunk_count,
    helper,
    kernel,
    partial_sums,
)
from ..matrix.matrix import Csr, row_axpy, row_dot, row_load, shape
from ..matrix.rows import Size
from .sums import _collect, clear

SEGMENT = 512  # rows that one call of BLAS multiplies
MOST_SEGMENTS = 16  # of a panel: with few columns they are what keeps several threads busy
PANEL_CELLS = 1 << 20  # of a panel of wide rows, or it is one segment
LOADED = 64  # rows that are spread out at a time; a segment is a whole number of them
TILE = 128  # columns of H that one call of BLAS fills, at most
THICK = 10.0  # times the squared share of entries stored: from 1 on BLAS is faster than scattering


class Memory(NamedTuple):
    """Of the partial sums of H, each a lower triangle, and of a panel of rows that are multiplied
    by BLAS, in the precision of its products; thin rows need no panel."""

    partials: np.ndarray
    panel: np.ndarray


def hessian_memory(size: Size, dense: bool, dtype=np.float64) -> Memory:
    """Memory for `_hessian`, to be made once for matrices of about this size."""
    n, p = size.rows, size.cols
    thick = dense or THICK * size.cells * size.cells > float(n) * n * p * p
    if not thick:  # adding up the partial sums of a chunk costs as much as p rows
        chunks = chunk_count(n, size.work, 8 * p * p)
        return Memory(partial_sums(chunks, p * p), np.empty(0, dtype))
    segments = max(1, min(MOST_SEGMENTS, -(-n // SEGMENT), PANEL_CELLS // max(1, SEGMENT * p)))
    groups = max(1, min(segments, SUM_CELLS // max(1, p * p)))
    return Memory(partial_sums(groups, p * p), np.empty(segments * SEGMENT * p, dtype))


# ---------------------------------------------------------------- thin rows


@kernel
def _scatter_rows(k, n_chunks, X, d, partials):
    """Σ d_i x_i x_iᵀ over the rows of chunk k, entry by entry."""
    n, p = shape(X)
    lo, hi = chunk_bounds(n, n_chunks, k)
    clear(partials[k])
    H = partials[k, : p * p].reshape(p, p)
    for i in range(lo, hi):
        if d[i] != 0.0:
            start = X.indptr[i]
            for a in range(start, X.indptr[i + 1]):
                v = d[i] * X.data[a]
                row = H[X.indices[a]]
                for b in range(start, a + 1):
                    row[X.indices[b]] += v * X.data[b]


# ---------------------------------------------------------------- thick rows


@kernel
def _load_panel(k, n_chunks, X, rows, d, panel):
    """Rows of a panel, times √d, column by column within their segment, a few at a time."""
    _, p = shape(X)
    loaded = np.empty((LOADED, p), panel.dtype)
    first, last = chunk_bounds((len(rows) + LOADED - 1) // LOADED, n_chunks, k)
    for few in range(first, last):
        lo, hi = few * LOADED, min(len(rows), (few + 1) * LOADED)
        for s in range(lo, hi):
            row_load(X, rows[s], panel.dtype.type(np.sqrt(d[rows[s]])), loaded[s - lo])
        columns = segment(panel, lo // SEGMENT, len(rows), p)
        for j in range(p):
            for s in range(lo, hi):
                columns[j, s % SEGMENT] = loaded[s - lo, j]


@kernel
def _multiply_tiles(k, n_tiles, panel, n_rows, tiles, p, partials):
    """One tile of the product of a group of segments of the panel with itself, in the lower
    triangle. A thread has it to itself for all of them: cells that two threads add to in turn are
    sent from one core to the other each time."""
    group, i0, i1, j0, j1 = tiles[k]
    first, last = chunk_bounds((n_rows + SEGMENT - 1) // SEGMENT, len(partials), group)
    cells = np.empty((i1 - i0, j1 - j0), panel.dtype)
    sums = np.zeros(cells.shape)
    for which in range(first, last):
        columns = segment(panel, which, n_rows, p)
        np.dot(columns[i0:i1], columns[j0:j1].T, cells)
        for i in range(i1 - i0):
            for j in range(j1 - j0):
                sums[i, j] += cells[i, j]
    for i in range(i0, i1):
        for j in range(j0, min(j1, i + 1)):
            partials[group, i * p + j] += sums[i - i0, j - j0]


@helper
def segment(panel, which, n_rows, p):
    """The segment of this number in a panel of so many rows, a row for each column of X."""
    first = which * SEGMENT
    m = min(SEGMENT, n_rows - first)
    return panel[first * p : (first + m) * p].reshape(p, m)


def _add_panels(X, d, memory):
    """Σ d_i x_i x_iᵀ, panel by panel."""
    p = shape(X)[1]
    partials, panel = memory
    partials[:] = 0.0
    n_sides = -(-p // TILE)
    sides = [chunk_bounds(p, n_sides, i) for i in range(n_sides)]
    corners = [(*i, *j) for i in sides for j in sides if j <= i]
    tiles = [(g, *corner) for g in range(len(partials)) for corner in corners]
    tiles = np.array(tiles, np.int64).reshape(-1, 5)
    active, at_once = np.flatnonzero(d), len(panel) // p if p else SEGMENT
    for first in range(0, len(active), at_once):
        rows = active[first : first + at_once]
        _load_panel(chunk_count(-(-len(rows) // LOADED), 4 * len(rows) * p), X, rows, d, panel)
        for some in pieces(len(tiles)):
            _multiply_tiles(len(tiles[some]), panel, len(rows), tiles[some], p, partials)


# ---------------------------------------------------------------- all of them


@kernel
def _collect_triangles(k, n_chunks, partials, keep, H):
    """H_ij = H_ji = Σ of the partial sums, for the rows i of chunk k: as many cells in each."""
    p = len(H)
    first = np.int64(p * np.sqrt(k / n_chunks))
    last = np.int64(p * np.sqrt((k + 1) / n_chunks)) if k + 1 < n_chunks else p
    for i in range(first, last):
        for j in range(i + 1):
            total = H[i, j] if keep else 0.0
            for chunk in range(partials.shape[0]):
                total += partials[chunk, i * p + j]
            H[i, j] = total
            H[j, i] = total


def _hessian(X, d, memory, keep, H):
    """H = Σ d_i x_i x_iᵀ over the rows with d_i ≠ 0, plus what it held, if `keep`.

    Thick rows are multiplied in the precision of the panel, segments of 512 rows are added up in
    float64.
    """
    if memory.panel.size or not isinstance(X, Csr):
        _add_panels(X, d, memory)
    else:
        _scatter_rows(len(memory.partials), X, d, memory.partials)
    p = len(H)
    chunks = chunk_count(p, len(memory.partials) * p * p // 2)
    _collect_triangles(chunks, memory.partials, keep, H)


@kernel
def _hessian_times_partials(k, n_chunks, X, d, v, partials):
    lo, hi = chunk_bounds(shape(X)[0], n_chunks, k)
    g = partials[k]
    clear(g)
    for i in range(lo, hi):
        if d[i] != 0.0:
            row_axpy(X, i, d[i] * row_dot(X, i, v), g)


def _hessian_times(X, d, v, partials, out, keep=False):
    """out = Σ d_i (x_i·v) x_i over the rows with d_i ≠ 0, plus what it held, if `keep`."""
    _hessian_times_partials(len(partials), X, d, v, partials)
    _collect(partials, keep, out)


def _dense_squares(X, i, a, g):
    for j in range(X.shape[1]):
        g[j] += a * X[i, j] * np.float64(X[i, j])


def _csr_squares(X, i, a, g):
    for k in range(X.indptr[i], X.indptr[i + 1]):
        g[X.indices[k]] += a * X.data[k] * np.float64(X.data[k])


@by_layout(_dense_squares, _csr_squares)
def row_squares(X, i, a, g):
    """g += a x_i∘x_i."""


@kernel
def _diagonal_partials(k, n_chunks, X, d, partials):
    lo, hi = chunk_bounds(shape(X)[0], n_chunks, k)
    g = partials[k]
    clear(g)
    for i in range(lo, hi):
        if d[i] != 0.0:
            row_squares(X, i, d[i], g)


def _hessian_diagonal(X, d, partials, out, keep=False):
    """out_j = Σ d_i x_ij² over the rows with d_i ≠ 0, plus what it held, if `keep`."""
    _diagonal_partials(len(partials), X, d, partials)
    _collect(partials, keep, out)
