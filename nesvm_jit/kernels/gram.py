"""Kernel matrices: K_ij = k(x_i, z_j), tile by tile, the exponential fused into each tile."""

from typing import NamedTuple

import numpy as np

from ..errors import InputError
from ..jit import exact_inline, helper, kernel, one_blas_thread, overload, prange, types
from ..matrix.checks import as_matrix, as_number, as_precision
from ..matrix.matrix import Csr, row_dot, row_load, shape
from ..settings import whole_number
from .projection import require_scale
from .sums import accumulate, margins, row_norms

POLY, RBF, SIGMOID = 1, 2, 3
KERNELS = {"poly": POLY, "rbf": RBF, "sigmoid": SIGMOID}
TILE = 256
TILE_CELLS = 1 << 19  # of a dense tile of rows, in each thread
THIN = 0.03  # below this density a tile of rows is not spread out for BLAS
THIN_TILE = (32, 8192)
BLAS, SPARSE, DIFFERENCES = 0, 1, 2  # how products or distances of a tile are made
HARSH = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 1e-4}  # error of γ‖x − z‖² by products
HIGHEST_DEGREE = 1000
CENTRED_ROWS = 1024  # at a time


class Spec(NamedTuple):
    """Which kernel: rbf exp(−γ‖x−z‖²), poly (γ x·z + r)^d, sigmoid tanh(γ x·z + r)."""

    kind: int
    gamma: float
    coef0: float
    degree: int


# Taylor polynomials on |r| ≤ ln2/2: the first term left out is below half a unit in the last place.
_LOG2E = 1.4426950408889634
_LN2_HI, _LN2_LO = 0.693145751953125, 1.42860682030941723212e-6
_MAGIC64, _MAGIC32 = 6755399441055744.0, 12582912.0  # 1.5·2^52, 1.5·2^23: adding one rounds


@exact_inline
def _exp64(x):
    """e^x = 2^k e^r with k = round(x/ln2), for x ≤ 0; below −708 zero."""
    if not x >= -708.0:
        return 0.0
    t = x * _LOG2E + _MAGIC64
    k = t - _MAGIC64
    r = (x - k * _LN2_HI) - k * _LN2_LO
    e = 1.0 / 6227020800.0
    e = e * r + 1.0 / 479001600.0
    e = e * r + 1.0 / 39916800.0
    e = e * r + 1.0 / 3628800.0
    e = e * r + 1.0 / 362880.0
    e = e * r + 1.0 / 40320.0
    e = e * r + 1.0 / 5040.0
    e = e * r + 1.0 / 720.0
    e = e * r + 1.0 / 120.0
    e = e * r + 1.0 / 24.0
    e = e * r + 1.0 / 6.0
    e = e * r + 0.5
    e = e * r + 1.0
    e = e * r + 1.0
    # adding the low bits of t (that is k) to the exponent of e multiplies it by 2^k
    return np.int64(np.float64(e).view(np.int64) + (np.float64(t).view(np.int64) << 52)).view(
        np.float64
    )


@exact_inline
def _exp32(x):
    """The same in single precision; below −87 zero."""
    if not x >= np.float32(-87.0):
        return np.float32(0.0)
    t = np.float32(x * np.float32(_LOG2E) + np.float32(_MAGIC32))
    k = np.float32(t - np.float32(_MAGIC32))
    r = np.float32((x - k * np.float32(_LN2_HI)) - k * np.float32(_LN2_LO))
    e = np.float32(1.0 / 5040.0)
    e = e * r + np.float32(1.0 / 720.0)
    e = e * r + np.float32(1.0 / 120.0)
    e = e * r + np.float32(1.0 / 24.0)
    e = e * r + np.float32(1.0 / 6.0)
    e = e * r + np.float32(0.5)
    e = e * r + np.float32(1.0)
    e = e * r + np.float32(1.0)
    bits = np.float32(e).view(np.int32) + np.int32(np.float32(t).view(np.int32) << np.int32(23))
    return np.int32(bits).view(np.float32)


def exp_nonpositive(x):
    """e^x for x ≤ 0 in the precision of x, in a form that vectorises."""
    return _exp32(x) if isinstance(x, np.float32) else _exp64(x)


@overload(exp_nonpositive)
def _exp_nonpositive(x):
    if x == types.float32:
        return lambda x: _exp32(x)
    return lambda x: _exp64(x)


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
        elif spec.kind == SIGMOID:
            for j in range(len(row)):
                row[j] = np.tanh(gamma * row[j] + coef0)
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


@helper
def _tile(X, i0, i1, Z, j0, j1, centre, squares, spec, how, symmetric, K):
    A, B = np.arange(i0, i1), np.arange(j0, j1)
    cells = np.empty((len(A), len(B)), K.dtype)
    _cells(X, A, Z, B, centre, squares, spec, how, symmetric, cells)
    for i in range(i0, i1):
        for j in range(j0, min(j1, i + 1) if symmetric else j1):
            K[i, j] = cells[i - i0, j - j0]
    if symmetric:
        for j in range(j0, min(j1, i1)):
            for i in range(max(i0, j + 1), i1):
                K[j, i] = cells[i - i0, j - j0]
            if spec.kind == RBF and j >= i0:
                K[j, j] = K.dtype.type(1.0)


@kernel
def _gram(X, Z, centre, squares, spec, tiles, size, how, symmetric, K):
    """K_ij = k(x_i, z_j); `tiles` lists where each tile starts, lower triangle if symmetric."""
    n, m = K.shape
    for t in prange(tiles.shape[0]):
        i0, j0 = tiles[t, 0], tiles[t, 1]
        i1, j1 = min(n, i0 + size[0]), min(m, j0 + size[1])
        _tile(X, i0, i1, Z, j0, j1, centre, squares, spec, how, symmetric, K)


@kernel
def _gram_part(X, A, B, slots, centre, squares, spec, tiles, size, how, K):
    """K[slots_s, t] = k(x_A(s), x_B(t)): the rows A and columns B of the kernel matrix of X."""
    for tile in prange(tiles.shape[0]):
        s0, t0 = tiles[tile, 0], tiles[tile, 1]
        s1, t1 = min(len(A), s0 + size[0]), min(len(B), t0 + size[1])
        cells = np.empty((s1 - s0, t1 - t0), K.dtype)
        _cells(X, A[s0:s1], X, B[t0:t1], centre, squares, spec, how, False, cells)
        for s in range(s0, s1):
            row = K[slots[s]]
            for t in range(t0, t1):
                row[t] = cells[s - s0, t - t0]


def density(X) -> float:
    """The share of entries that are stored."""
    n, p = shape(X)
    return len(X.data) / max(1, n * p) if isinstance(X, Csr) else 1.0


def tile_starts(n: int, m: int, size: tuple[int, int], symmetric: bool) -> np.ndarray:
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
    if reach * np.finfo(dtype).eps > HARSH[np.dtype(dtype)]:
        return DIFFERENCES, (side, side)
    if density(X) < THIN:
        return SPARSE, THIN_TILE
    return BLAS, (side, side)


def reach_of(X, spec: Spec, centre: np.ndarray) -> float:
    """At least the largest γ‖x_i − centre‖² (rbf; else 0): what rounding of distances goes with."""
    if spec.kind != RBF or shape(X)[0] == 0:
        return 0.0
    far = 0.0
    with np.errstate(over="ignore"):
        if isinstance(X, Csr):  # up to the rounding of these sums themselves
            inside = 2.0 * np.abs(margins(X, centre))
            far = float((row_norms(X)[0] ** 2 + inside).max()) + float(centre @ centre)
            if density(X) >= THIN:
                exact = row_norms(X)[0] ** 2 - 2.0 * margins(X, centre) + float(centre @ centre)
                far = float(exact.max()) + 1e-15 * far
        else:
            for lo in range(0, len(X), CENTRED_ROWS):
                part = X[lo : lo + CENTRED_ROWS] - centre
                far = max(far, float(np.einsum("ij,ij->i", part, part).max()))
        return spec.gamma * far


def as_spec(kernel: str, gamma: float | None, coef0: float, degree: int, p: int) -> Spec:
    """The kernel named, checked; γ is 1/p by default."""
    if kernel not in KERNELS:
        raise InputError(f"kernel must be one of {', '.join(KERNELS)}, got {kernel!r}")
    gamma = 1.0 / max(p, 1) if gamma is None else as_number("gamma", gamma)
    require_scale("gamma", gamma)
    degree = whole_number("degree", degree, 0, HIGHEST_DEGREE)
    return Spec(KERNELS[kernel], gamma, as_number("coef0", coef0), degree)


def centre_of(X, spec: Spec) -> np.ndarray:
    """The mean row for distances, zero for products."""
    n, p = shape(X)
    if spec.kind != RBF or n == 0:
        return np.zeros(p)
    return accumulate(X, np.full(n, 1.0 / n))


def squares_of(name: str, X) -> np.ndarray:
    """‖x_i‖² of every row."""
    squares = row_norms(X)[0] ** 2
    if not np.isfinite(squares).all():
        raise InputError(f"{name} must have rows whose squares can be added up, got larger entries")
    return squares


def gram(X, Z=None, kernel="rbf", gamma=None, coef0=0.0, degree=3, dtype=np.float64):
    """The kernel matrix k(X, Z), or k(X, X) at half the work when Z is None.

    rbf exp(−γ‖x−z‖²), poly (γ x·z + coef0)^degree, sigmoid tanh(γ x·z + coef0) (which is no
    kernel for training: K may be indefinite); γ is 1/features by default. `dtype` is of
    the result and of the arithmetic, float64 or float32.
    """
    dtype = as_precision(dtype)
    symmetric = Z is None
    X = as_matrix(X, borrow=True)
    Z = X if symmetric else as_matrix(Z, "Z", borrow=True)
    (n, p), (m, q) = shape(X), shape(Z)
    if p != q:
        raise InputError(f"X and Z must have the same number of columns, got {p} and {q}")
    spec = as_spec(kernel, gamma, coef0, degree, p)
    xx = squares_of("X", X)
    squares = (xx, xx if symmetric else squares_of("Z", Z))
    K = np.empty((n, m), dtype)
    centre = centre_of(X, spec)
    reach = reach_of(X, spec, centre)
    how, size = tiling(Z, dtype, reach if symmetric else max(reach, reach_of(Z, spec, centre)))
    tiles = tile_starts(n, m, size, symmetric)
    with one_blas_thread():
        _gram(X, Z, centre, squares, spec, tiles, size, how, symmetric, K)
    return K
