"""Kernel matrices: K_ij = k(x_i, z_j), tile by tile, the exponential fused into each tile."""

from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError
from ..jit import helper, kernel
from ..matrix.matrix import Csr, row_dot, row_load, shape
from ..matrix.rows import size_of
from .exp import exp_nonpositive
from .sums import _accumulate, _margins, norms_of, row_chunks, row_partials

POLY, RBF = 1, 2
KERNELS = {"poly": POLY, "rbf": RBF}
TILE = 256  # rows and columns of K in a tile, at most
TILE_CELLS = 1 << 19  # of the rows of a tile spread out dense, at most: each thread has such memory
THIN = 0.03  # share of entries stored, below which products run over them instead of by BLAS
THIN_TILE = (32, 8192)  # rows and columns of such a tile
BLAS, SPARSE, DIFFERENCES = 0, 1, 2  # how products or distances of a tile are made
# The error of γ‖x − z‖² by products that is allowed; beyond it distances are sums of squares.
WORST_ERROR = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 1e-4}
CENTRED_ROWS = 1024  # rows whose distance to the centre is computed at a time


class Spec(NamedTuple):
    """Which kernel: rbf exp(−γ‖x−z‖²) or poly (γ x·z + coef0)^degree."""

    kind: int
    gamma: float
    coef0: float
    degree: int


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
def _thick_dots(X, A, Z, B, centre, distances, out):
    """out = X_A Z_Bᵀ, or ‖x_i − z_j‖² if `distances`, through BLAS on rows spread out dense.

    Distances are of rows moved by `centre`, which leaves them the same and their rounding small.
    """
    _, p = shape(X)
    a = np.empty((len(A), p), out.dtype)
    z = np.empty((len(B), p), out.dtype)
    aa = np.empty(len(A), out.dtype)
    zz = np.empty(len(B), out.dtype)
    for i in range(len(A)):
        aa[i] = _load_centred(X, A[i], centre, a[i])
    for j in range(len(B)):
        zz[j] = _load_centred(Z, B[j], centre, z[j])
    np.dot(a, z.T, out)
    if distances:
        two, zero = out.dtype.type(2.0), out.dtype.type(0.0)
        for i in range(len(A)):
            for j in range(len(B)):
                out[i, j] = max(aa[i] + zz[j] - two * out[i, j], zero)


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


@helper
def _cells(X, A, Z, B, centre, squares, spec, how, symmetric, out):
    """out = k(X_A, Z_B)."""
    if how == DIFFERENCES:
        _differences(X, A, Z, B, out)
    elif how == SPARSE:
        _thin_dots(X, A, Z, B, squares, spec.kind == RBF, symmetric, out)
    else:
        _thick_dots(X, A, Z, B, centre, spec.kind == RBF, out)
    _transform(spec, out)


@kernel
def _gram_tiles(k, n_tiles, rows, columns, centre, squares, spec, tiling, how, symmetric, K):
    """A tile of K; where it is symmetric, of the lower triangle, and mirrored."""
    s0, t0 = tiling.starts[k]
    s1 = min(len(rows.index), s0 + tiling.rows)
    t1 = min(len(columns.index), t0 + tiling.columns)
    A, B = rows.index[s0:s1], columns.index[t0:t1]
    cells = np.empty((s1 - s0, t1 - t0), K.dtype)
    _cells(rows.X, A, columns.X, B, centre, squares, spec, how, symmetric, cells)
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
    _gram_tiles(len(tiles), rows, columns, centre, squares, spec, tiling, how, symmetric, K)


def _gram_part(X, A, B, slots, centre, squares, spec, tiles, size, how, K):
    """K[slots_s, t] = k(x_A(s), x_B(t)): the rows A and columns B of the kernel matrix of X."""
    rows, columns, tiling = Chosen(X, A, slots), Chosen(X, B, B), Tiling(tiles, *size)
    _gram_tiles(len(tiles), rows, columns, centre, squares, spec, tiling, how, False, K)


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
    _gram(X, Z, centre, (xx, squares), spec, tiles, size, how, symmetric, K)
    return K


def density(X) -> float:
    """The share of entries that are stored."""
    n, p = shape(X)
    return len(X.data) / max(1, n * p) if isinstance(X, Csr) else 1.0


def tile_starts(n: int, m: int, size: tuple[int, int], symmetric: bool) -> np.ndarray:
    """The first row and column of every tile, of the lower triangle if symmetric."""
    starts = [
        (i, j)
        for i in range(0, n, size[0])
        for j in range(0, m, size[1])
        if not symmetric or j < i + size[0]
    ]
    return np.array(starts, dtype=np.int64).reshape(-1, 2)


def tiling(X, dtype, reach: float) -> tuple[int, tuple[int, int]]:
    """How a tile is made, given the largest γ‖x − centre‖², and its rows and columns."""
    side = int(max(16, min(TILE, TILE_CELLS // max(shape(X)[1], 1))))
    if reach * np.finfo(dtype).eps > WORST_ERROR[np.dtype(dtype)]:
        return DIFFERENCES, (side, side)
    if density(X) < THIN:
        return SPARSE, THIN_TILE
    return BLAS, (side, side)


def reach_of(X, spec: Spec, centre: np.ndarray) -> float:
    """At least the largest γ‖x_i − centre‖² (rbf; else 0): what rounding of distances goes with."""
    n, _ = shape(X)
    if spec.kind != RBF or n == 0:
        return 0.0
    far = 0.0
    with np.errstate(over="ignore"):
        if isinstance(X, Csr):  # up to the rounding of these sums themselves
            squares, products, square = norms_of(X)[0] ** 2, np.empty(n), float(centre @ centre)
            _margins(row_chunks(X), X, centre, 0.0, products)
            far = float((squares + 2.0 * np.abs(products)).max()) + square
            if density(X) >= THIN:
                exact = squares - 2.0 * products + square
                far = float(exact.max()) + 1e-15 * far
        else:
            for lo in range(0, len(X), CENTRED_ROWS):
                part = X[lo : lo + CENTRED_ROWS] - centre
                far = max(far, float(np.einsum("ij,ij->i", part, part).max()))
        return spec.gamma * far


def centre_of(X, spec: Spec) -> np.ndarray:
    """The mean row for distances, zero for products."""
    n, p = shape(X)
    centre = np.zeros(p)
    if spec.kind == RBF and n:
        _accumulate(X, np.full(n, 1.0 / n), row_partials(size_of(X)), centre)
    return centre


def squares_of(name: str, X) -> np.ndarray:
    """‖x_i‖² of every row."""
    squares = norms_of(X)[0] ** 2
    if not np.isfinite(squares).all():
        raise InputError(f"{name} must have rows whose squares can be added up, got larger entries")
    return squares
