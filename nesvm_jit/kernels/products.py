"""Products and squared distances of rows, a tile at a time, in one of four ways."""

from typing import NamedTuple

import numpy as np

from ..jit import helper, overload
from ..matrix.matrix import entry, row_bounds, row_dot, row_load, shape
from .spec import COLUMNS, DIFFERENCES, RBF, SPARSE, products_of_entries


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


def way_of(how: int, centre, squares, X, cells: int) -> Way:
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


def products_of_tile(way, X, A, Z, B, spec, symmetric, out):
    """out = X_A Z_Bᵀ or squared distances; the type of `way` chooses, so that a kernel is compiled
    with what it needs alone."""
    _BODIES[type(way)](way, X, A, Z, B, spec, symmetric, out)


@overload(products_of_tile, allocates=True)
def _chosen_products(way, X, A, Z, B, spec, symmetric, out):
    return _BODIES[way.instance_class]
