"""Kernel matrices: K_ij = k(x_i, z_j), tile by tile, the exponential fused into each tile."""

from typing import Any, NamedTuple

import numpy as np

from ..clock import pieces
from ..jit import helper, kernel, overload, takes
from ..matrix.matrix import entry, row_bounds, row_dot, row_load, shape
from .exp import exp_nonpositive
from .spec import (
    COLUMNS,
    DIFFERENCES,
    RBF,
    SPARSE,
    Spec,
    centre_of,
    products_of_entries,
    reach_of,
    squares_of,
    tile_starts,
    tiling,
)


@helper
def _load_centred(X, i, centre, out):
    """out = x_i − centre, in the precision of out; returns its squared norm."""
    row_load(X, i, out.dtype.type(1.0), out)
    square = out.dtype.type(0.0)
    for j in range(len(out)):
        out[j] = out.dtype.type(out[j] - centre[j])
        square += out[j] * out[j]
    return square


@helper
def _load_rows(X, A, centre, out, squares):
    """out = X_A moved by `centre`, and the squared norms of its rows."""
    for i in range(len(A)):
        squares[i] = _load_centred(X, A[i], centre, out[i])


@helper
def _distances(square, squares, row):
    """row = ‖x‖² + ‖z_j‖² − 2x·z_j, given the products."""
    two, zero = row.dtype.type(2.0), row.dtype.type(0.0)
    for j in range(len(row)):
        row[j] = max(square + squares[j] - two * row[j], zero)


@helper
def _thick_dots(X, A, Z, B, centre, distances, out):
    """out = X_A Z_Bᵀ, or ‖x_i − z_j‖² if `distances`, through BLAS on rows spread out dense.

    Distances are of rows moved by `centre`, which leaves them the same and their rounding small.
    """
    _, p = shape(X)
    a = np.empty((len(A), p), out.dtype)
    z = np.empty((len(B), p), out.dtype)
    aa = np.empty(len(A), out.dtype)
    zz = np.empty(len(B), out.dtype)
    _load_rows(X, A, centre, a, aa)
    _load_rows(Z, B, centre, z, zz)
    np.dot(a, z.T, out)
    if distances:
        for i in range(len(A)):
            _distances(aa[i], zz, out[i])


@helper
def _thin_dots(X, A, Z, B, squares, distances, symmetric, out):
    """The same in float64 by the nonzeros of each row of Z (up to the diagonal if symmetric)."""
    _, p = shape(X)
    row = np.empty(p)
    xx, zz = squares
    for s in range(len(A)):
        i = A[s]
        row_load(X, i, 1.0, row)
        for t in range(len(B)):
            j = B[t]
            wanted = j <= i or not symmetric
            dot = row_dot(Z, j, row) if wanted else 0.0
            out[s, t] = max(xx[i] + zz[j] - 2.0 * dot, 0.0) if distances else dot


@helper
def _combine(X, i, columns, out):
    """out = Σ_j x_ij columns_j over the entries of a row; four at a time, so that `out` is read and
    written less often."""
    lo, hi = row_bounds(X, i)
    whole = lo + (hi - lo) // 4 * 4
    out[:] = out.dtype.type(0.0)
    for k in range(lo, whole, 4):
        (j0, v0), (j1, v1) = entry(X, i, k), entry(X, i, k + 1)
        (j2, v2), (j3, v3) = entry(X, i, k + 2), entry(X, i, k + 3)
        a0, a1, a2, a3 = columns[j0], columns[j1], columns[j2], columns[j3]
        v0, v1 = out.dtype.type(v0), out.dtype.type(v1)
        v2, v3 = out.dtype.type(v2), out.dtype.type(v3)
        for t in range(len(out)):
            out[t] += (v0 * a0[t] + v1 * a1[t]) + (v2 * a2[t] + v3 * a3[t])
    for k in range(whole, hi):
        j, v = entry(X, i, k)
        a, v = columns[j], out.dtype.type(v)
        for t in range(len(out)):
            out[t] += v * a[t]


@helper
def _square(X, i, cells):
    """‖x_i‖² in the precision of the cells."""
    lo, hi = row_bounds(X, i)
    total = cells.dtype.type(0.0)
    for k in range(lo, hi):
        v = cells.dtype.type(entry(X, i, k)[1])
        total += v * v
    return total


@helper
def _entry_dots(X, A, Z, B, distances, out):
    """out = X_A Z_Bᵀ, or ‖x_i − z_j‖² if `distances`, as the columns of Z_B that each row of X has
    entries for, with these as weights."""
    _, p = shape(X)
    columns = np.zeros((p, len(B)), out.dtype)
    squares = np.empty(len(B), out.dtype)
    for t in range(len(B)):
        lo, hi = row_bounds(Z, B[t])
        for k in range(lo, hi):
            j, v = entry(Z, B[t], k)
            columns[j, t] = v
        squares[t] = _square(Z, B[t], squares)
    for s in range(len(A)):
        _combine(X, A[s], columns, out[s])
        if distances:
            _distances(_square(X, A[s], squares), squares, out[s])


@helper
def _differences(X, A, Z, B, out):
    """out = ‖x_i − z_j‖² as a sum of squares, whose error is small beside itself; the distance of
    large rows by products loses what they have in common."""
    _, p = shape(X)
    x = np.empty(p)
    z = np.empty((len(B), p))
    for t in range(len(B)):
        row_load(Z, B[t], 1.0, z[t])
    for s in range(len(A)):
        row_load(X, A[s], 1.0, x)
        for t in range(len(B)):
            total = 0.0
            row = z[t]
            for j in range(p):
                d = x[j] - row[j]
                total += d * d
            out[s, t] = total


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


class ByBlas(NamedTuple):
    """Products or distances of rows moved by `centre`, by BLAS."""

    centre: np.ndarray


class ByColumns(NamedTuple):
    """The same over the entries that are stored, of rows as they are, each with a column of a tile
    of the other rows, spread out."""

    centre: np.ndarray


class ByEntries(NamedTuple):
    """The same over the entries that are stored, by the squared norms of rows and columns."""

    centre: np.ndarray
    squares: tuple[np.ndarray, np.ndarray]


class ByDifferences(NamedTuple):
    """Distances as sums of squares."""

    centre: np.ndarray


Way = ByBlas | ByColumns | ByEntries | ByDifferences


def _way(how: int, centre, squares, X, cells: int) -> Way:
    """How so many cells of products with rows of X are made."""
    if how == SPARSE:
        return ByEntries(centre, squares)
    if how == DIFFERENCES:
        return ByDifferences(centre)
    if how == COLUMNS or products_of_entries(X, centre, cells):
        return ByColumns(centre)
    return ByBlas(centre)


def _by_blas(way, X, A, Z, B, spec, symmetric, out):
    _thick_dots(X, A, Z, B, way.centre, spec.kind == RBF, out)


def _by_columns(way, X, A, Z, B, spec, symmetric, out):
    _entry_dots(X, A, Z, B, spec.kind == RBF, out)


def _by_entries(way, X, A, Z, B, spec, symmetric, out):
    _thin_dots(X, A, Z, B, way.squares, spec.kind == RBF, symmetric, out)


def _by_differences(way, X, A, Z, B, spec, symmetric, out):
    _differences(X, A, Z, B, out)


_BODIES = {
    ByBlas: _by_blas,
    ByColumns: _by_columns,
    ByEntries: _by_entries,
    ByDifferences: _by_differences,
}


def _products(way, X, A, Z, B, spec, symmetric, out):
    """out = X_A Z_Bᵀ or squared distances; the type of `way` chooses, so that a kernel is compiled
    with what it needs alone."""
    _BODIES[type(way)](way, X, A, Z, B, spec, symmetric, out)


@overload(_products, allocates=True)
def _chosen_products(way, X, A, Z, B, spec, symmetric, out):
    return _BODIES[way.instance_class]


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
    _products(way, rows.X, A, columns.X, B, spec, symmetric, cells)
    _transform(spec, cells)
    for s in range(s0, s1):
        row = K[rows.slots[s]]
        for t in range(t0, min(t1, s + 1) if symmetric else t1):
            row[t] = cells[s - s0, t - t0]
    if symmetric:
        for t in range(t0, min(t1, s1)):
            for s in range(max(s0, t + 1), s1):
                K[t, s] = cells[s - s0, t - t0]
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
    way = _way(how, centre, squares, X, K.size)
    _gram_tiles(len(tiles), rows, columns, way, spec, tiling, symmetric, K)


def _gram_part(X, A, B, slots, centre, squares, spec, tiles, size, how, K):
    """K[slots_s, t] = k(x_A(s), x_B(t)): the rows A and columns B of the kernel matrix of X."""
    rows, columns, tiling = Chosen(X, A, slots), Chosen(X, B, B), Tiling(tiles, *size)
    way = _way(how, centre, squares, X, len(A) * len(B))
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
        _products(way, X, part.index[s0:s1], X, B, spec, False, tile)
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
    way = _way(how, centre, squares, X, (part.hi - part.lo) * part.m)
    _block_products(n_blocks, X, part, W, way, spec, size, sums, out)


class Part(NamedTuple):
    """Rows lo to hi of the kernel matrix between x_index, of which the first m are columns too."""

    index: np.ndarray
    lo: int
    hi: int
    m: int


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
