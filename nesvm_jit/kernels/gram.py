"""Kernel matrices: K_ij = k(x_i, z_j), tile by tile, the exponential fused into each tile."""

from typing import Any, NamedTuple

import numpy as np

from ..clock import pieces
from ..jit import chunk_bounds, chunk_count, helper, kernel, stream, takes
from ..matrix.matrix import shape
from .exp import exp_nonpositive
from .products import ByBlas, products_of_tile, way_of
from .spec import (
    RBF,
    Spec,
    centre_of,
    reach_of,
    squares_of,
    tile_starts,
    tiling,
)

# Bytes of a matrix that caches may hold; a larger one is written past them. Else each thread reads
# what it is about to write, also the lines that its neighbour is writing: writing the rows of a6a
# took 36 ms on one thread and 45 ms on two, past the caches 8 ms and 4 ms.
NEAR = 1 << 22
BLAS_PACE = 64  # products of BLAS for each number of a chunk: with fewer rows it is slower


@helper
def _transform(spec, cells):
    """cells = k(x_i, z_j) of a tile of squared distances (rbf) or products (poly)."""
    gamma, coef0 = cells.dtype.type(spec.gamma), cells.dtype.type(spec.coef0)
    one = cells.dtype.type(1.0)
    for i in range(cells.shape[0]):
        row = cells[i]
        if spec.kind == RBF:
            for j in range(len(row)):
                row[j] = exp_nonpositive(-gamma * row[j])
        else:
            for j in range(len(row)):
                base = gamma * row[j] + coef0
                power = one
                for _ in range(spec.degree):
                    power *= base
                row[j] = power


@helper
def _write(cells, row, n_bytes):
    """row = cells, in a matrix of so many bytes."""
    if n_bytes > NEAR:
        stream(cells, row)
    else:
        for t in range(len(row)):
            row[t] = cells[t]


def _work_of_tiles(rows, columns, way, spec, tiling, symmetric, K):
    """An exponential for every cell; products are BLAS's, or take a number for each feature."""
    share = len(tiling.starts) * tiling.rows * tiling.columns
    cells = min(len(rows.index) * len(columns.index), share)
    return cells * (16 + (0 if isinstance(way, ByBlas) else len(way.centre)))


@takes(_work_of_tiles)
@kernel
def _gram_tiles(k, n_tiles, rows, columns, way, spec, tiling, symmetric, K):
    """A tile of K; where it is symmetric, of the lower triangle, and mirrored."""
    s0, t0 = tiling.starts[k]
    s1 = min(len(rows.index), s0 + tiling.rows)
    t1 = min(len(columns.index), t0 + tiling.columns)
    A, B = rows.index[s0:s1], columns.index[t0:t1]
    cells = np.empty((s1 - s0, t1 - t0), K.dtype)
    products_of_tile(way, rows.X, A, columns.X, B, spec, symmetric, cells)
    _transform(spec, cells)
    for s in range(s0, s1):
        last = max(t0, min(t1, s + 1)) if symmetric else t1
        _write(cells[s - s0, : last - t0], K[rows.slots[s], t0:last], K.nbytes)
    if symmetric:
        mirrored = np.empty(s1 - s0, K.dtype)
        for t in range(t0, min(t1, s1)):
            first = max(s0, t + 1)
            for s in range(first, s1):
                mirrored[s - first] = cells[s - s0, t - t0]
            _write(mirrored[: s1 - first], K[t, first:s1], K.nbytes)
            if spec.kind == RBF and t >= s0:
                K[t, t] = K.dtype.type(1.0)


class Chosen(NamedTuple):
    """Rows of a matrix, and the rows of K that they are for."""

    X: Any
    index: np.ndarray
    slots: np.ndarray


class Tiling(NamedTuple):
    """Where each tile starts, and the rows and columns of one."""

    starts: np.ndarray
    rows: int
    columns: int


def _gram(X, Z, centre, squares, spec, tiles, size, how, symmetric, K):
    """K_ij = k(x_i, z_j); `tiles` lists where each tile starts, lower triangle if symmetric."""
    i, j = np.arange(len(K)), np.arange(K.shape[1])
    rows, columns, tiling = Chosen(X, i, i), Chosen(Z, j, j), Tiling(tiles, *size)
    way = way_of(how, centre, squares, X, K.size)
    _gram_tiles(len(tiles), rows, columns, way, spec, tiling, symmetric, K)


def _gram_part(X, A, B, slots, centre, squares, spec, tiles, size, how, K):
    """K[slots_s, t] = k(x_A(s), x_B(t)): the rows A and columns B of the kernel matrix of X."""
    rows, columns, tiling = Chosen(X, A, slots), Chosen(X, B, B), Tiling(tiles, *size)
    way = way_of(how, centre, squares, X, len(A) * len(B))
    _gram_tiles(len(tiles), rows, columns, way, spec, tiling, False, K)


@kernel
def _block_products(k, n_blocks, X, part, W, way, spec, size, sums, out):
    """Of the columns t of block k: f_s = Σ W_t K_st over t ≤ s, for the rows s of a part; where s
    is such a column too, out_t += Σ W_s K_st over s > t, K being symmetric."""
    t0, t1 = k * size[1], min((k + 1) * size[1], part.m)
    B = part.index[t0:t1]
    cells = np.empty((min(size[0], part.hi - part.lo), t1 - t0), W.dtype)
    for s0 in range(part.lo, part.hi, size[0]):
        s1 = min(part.hi, s0 + size[0])
        if s1 <= t0:
            continue
        tile = cells[: s1 - s0]
        products_of_tile(way, X, part.index[s0:s1], X, B, spec, False, tile)
        for s in range(s0, s1):  # all of a row at once, while it is in near memory
            row = tile[s - s0]
            _transform(spec, tile[s - s0 : s - s0 + 1])
            last = max(min(t1, s + 1) - t0, 0)  # of those up to the diagonal
            below = min(last, max(s - t0, 0))
            for v in range(len(W)):
                weights, products = W[v, t0:t1], out[v, t0:t1]
                total = 0.0
                for t in range(last):
                    total += weights[t] * row[t]
                sums[k, v, s - part.lo] = total
                if s < part.m:
                    w = W[v, s]
                    for t in range(below):
                        products[t] += w * row[t]


def _products_of_part(n_blocks, X, part, W, centre, squares, spec, size, how, sums, out):
    """Products of vectors W with a part of the kernel matrix, by blocks of columns."""
    way = way_of(how, centre, squares, X, (part.hi - part.lo) * part.m)
    _block_products(n_blocks, X, part, W, way, spec, size, sums, out)


class Part(NamedTuple):
    """Rows lo to hi of the kernel matrix between x_index, of which the first m are columns too."""

    index: np.ndarray
    lo: int
    hi: int
    m: int


def _work_of_sums(K, coefs, out):
    """Products are BLAS's."""
    return K.size


@takes(_work_of_sums)
@kernel
def _sum_columns(k, n_chunks, K, coefs, out):
    """out = K coefs, for the rows of chunk k."""
    lo, hi = chunk_bounds(len(K), n_chunks, k)
    np.dot(K[lo:hi], coefs, out[lo:hi])


def sums_of_columns(K: np.ndarray, coefs: np.ndarray) -> np.ndarray:
    """K coefs, in float64."""
    n, m = K.shape
    chunks = chunk_count(n, n * m * coefs.shape[1] // BLAS_PACE)
    if chunks == 1:
        return K @ coefs
    out = np.empty((n, coefs.shape[1]))
    _sum_columns(chunks, K, coefs, out)
    return out


class Columns(NamedTuple):
    """Rows z_j that the kernel is taken with again and again, and what belongs to them: where
    distances are measured from, their squares, and the largest γ‖z − centre‖²."""

    Z: Any
    spec: Spec
    centre: np.ndarray
    squares: np.ndarray
    reach: float


def columns_of(name: str, Z, spec: Spec) -> Columns:
    """A checked Z as the columns of kernel matrices."""
    centre = centre_of(Z, spec)
    return Columns(Z, spec, centre, squares_of(name, Z), reach_of(Z, spec, centre))


def kernel_between(name: str, X, columns: Columns, dtype=np.float64) -> np.ndarray:
    """k(X, Z); X may be Z, which takes half the time."""
    Z, spec, centre, squares, reach = columns
    symmetric = X is Z
    n, m = shape(X)[0], shape(Z)[0]
    xx = squares if symmetric else squares_of(name, X)
    reach = reach if symmetric else max(reach, reach_of(X, spec, centre))
    how, size = tiling(Z, dtype, reach)
    tiles, K = tile_starts(n, m, size, symmetric), np.empty((n, m), dtype)
    for some in pieces(len(tiles)):
        _gram(X, Z, centre, (xx, squares), spec, tiles[some], size, how, symmetric, K)
    return K
