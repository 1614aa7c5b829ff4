"""One view of the data for every kernel: a dense array or a `Csr` tuple, and the few row
primitives that all kernels are written in.

Each primitive is an ordinary Python function that picks one of two bodies by the type of X,
at compile time in kernels and at run time when compilation is off. Indices are unsigned, so
that compiled code has no wrap-around branch.
"""

from typing import NamedTuple

import numpy as np

from .errors import InputError
from .jit import exact_loop, overload, types

# Stored as they are; every sum is in float64 whatever the data are.
KEPT = tuple(np.dtype(t) for t in (np.float64, np.float32, np.int8, np.uint8))


class Csr(NamedTuple):
    """Compressed rows: row i holds data[indptr[i]:indptr[i+1]] in the columns `indices`."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    n_cols: int


Matrix = np.ndarray | Csr


# ---------------------------------------------------------------- row primitives


def _dense_shape(X):
    return X.shape


def _csr_shape(X):
    return len(X.indptr) - 1, X.n_cols


def _dense_dot(X, i, w):
    total = 0.0
    for j in range(X.shape[1]):
        total += X[i, j] * w[j]
    return total


def _csr_dot(X, i, w):
    total = 0.0
    for k in range(X.indptr[i], X.indptr[i + 1]):
        total += X.data[k] * w[X.indices[k]]
    return total


def _dense_axpy(X, i, a, g):
    for j in range(X.shape[1]):
        g[j] += a * X[i, j]


def _csr_axpy(X, i, a, g):
    for k in range(X.indptr[i], X.indptr[i + 1]):
        g[X.indices[k]] += a * X.data[k]


def _dense_norms(X, i):
    square = 0.0
    for j in range(X.shape[1]):
        v = np.float64(X[i, j])
        square += v * v
    # four running maxima: NaN being allowed for, the compiler may not split one by itself
    m0, m1, m2, m3 = 0.0, 0.0, 0.0, 0.0
    whole = X.shape[1] // 4 * 4
    for j in range(0, whole, 4):
        m0 = max(m0, abs(np.float64(X[i, j])))
        m1 = max(m1, abs(np.float64(X[i, j + 1])))
        m2 = max(m2, abs(np.float64(X[i, j + 2])))
        m3 = max(m3, abs(np.float64(X[i, j + 3])))
    for j in range(whole, X.shape[1]):
        m0 = max(m0, abs(np.float64(X[i, j])))
    return square, max(max(m0, m1), max(m2, m3))


def _csr_norms(X, i):
    square = 0.0
    largest = 0.0
    for k in range(X.indptr[i], X.indptr[i + 1]):
        v = np.float64(X.data[k])
        square += v * v
        largest = max(largest, abs(v))
    return square, largest


def _dense_load(X, i, a, out):
    for j in range(X.shape[1]):
        out[j] = a * X[i, j]


def _csr_load(X, i, a, out):
    for j in range(out.shape[0]):
        out[j] = 0.0
    for k in range(X.indptr[i], X.indptr[i + 1]):
        out[X.indices[k]] = a * X.data[k]


def shape(X):
    """Rows and columns of X."""
    return _dense_shape(X) if isinstance(X, np.ndarray) else _csr_shape(X)


def row_dot(X, i, w):
    """x_i · w."""
    return _dense_dot(X, i, w) if isinstance(X, np.ndarray) else _csr_dot(X, i, w)


def row_axpy(X, i, a, g):
    """g += a x_i."""
    return _dense_axpy(X, i, a, g) if isinstance(X, np.ndarray) else _csr_axpy(X, i, a, g)


def row_norms(X, i):
    """‖x_i‖² and ‖x_i‖_∞."""
    return _dense_norms(X, i) if isinstance(X, np.ndarray) else _csr_norms(X, i)


def row_load(X, i, a, out):
    """out = a x_i, as a dense row."""
    return _dense_load(X, i, a, out) if isinstance(X, np.ndarray) else _csr_load(X, i, a, out)


@overload(shape)
def _shape(X):
    return _dense_shape if isinstance(X, types.Array) else _csr_shape


@overload(row_dot)
def _row_dot(X, i, w):
    return _dense_dot if isinstance(X, types.Array) else _csr_dot


@overload(row_axpy)
def _row_axpy(X, i, a, g):
    return _dense_axpy if isinstance(X, types.Array) else _csr_axpy


@overload(row_norms)
def _row_norms(X, i):
    return _dense_norms if isinstance(X, types.Array) else _csr_norms


@overload(row_load)
def _row_load(X, i, a, out):
    return _dense_load if isinstance(X, types.Array) else _csr_load


class Size(NamedTuple):
    """What decides in which order sums over rows are made; `row_bytes` are those of an average."""

    rows: int
    cols: int
    cells: int
    row_bytes: int


def size_of(X: Matrix) -> Size:
    """The size of X, which may be a slice of rows."""
    n, p = shape(X)
    if isinstance(X, Csr):
        return sparse_size(n, p, int(X.indptr[-1]) - int(X.indptr[0]), X.data.dtype)
    return Size(n, p, X.size, p * X.itemsize)


def sparse_size(n: int, p: int, cells: int, dtype: np.dtype) -> Size:
    """The size of compressed rows, whose indices count as 4 bytes each."""
    return Size(n, p, cells, cells * (dtype.itemsize + 4) // max(1, n))


def row_slice(X: Matrix, lo: int, hi: int) -> Matrix:
    """Rows lo..hi, without a copy."""
    return X._replace(indptr=X.indptr[lo : hi + 1]) if isinstance(X, Csr) else X[lo:hi]


def take_rows(X: Matrix, index: np.ndarray) -> Matrix:
    """A copy of some rows."""
    if not isinstance(X, Csr):
        return readonly(X[index])
    counts = (X.indptr[1:] - X.indptr[:-1])[index].astype(np.int64)
    indptr = np.zeros(len(index) + 1, dtype=np.int64)
    np.cumsum(counts, out=indptr[1:])
    # cell k of new row i is cell k of old row index[i]
    shift = X.indptr[:-1][index].astype(np.int64) - indptr[:-1]
    cells = np.arange(indptr[-1]) + np.repeat(shift, counts)
    return Csr(
        readonly(X.data[cells]),
        readonly(X.indices[cells]),
        readonly(indptr.astype(X.indptr.dtype)),
        X.n_cols,
    )


def as_scipy(X: Matrix):
    """X as a scipy CSR matrix that shares its numbers (a dense X is packed)."""
    from scipy.sparse import csr_matrix

    if not isinstance(X, Csr):
        return csr_matrix(X)
    index = np.dtype(f"i{X.indices.dtype.itemsize}")
    out = csr_matrix((len(X.indptr) - 1, X.n_cols), dtype=X.data.dtype)
    out.data, out.indices, out.indptr = X.data, X.indices.view(index), X.indptr.view(index)
    return out


# ---------------------------------------------------------------- the public edge

ASCENDING, UNSORTED, INFINITE, BROKEN = range(4)


@exact_loop
def csr_fault(data, indices, indptr, n_cols):
    """The worst fault of a matrix. Nothing is read that may be outside."""
    worst = ASCENDING
    for i in range(len(indptr) - 1):
        start, stop = indptr[i], indptr[i + 1]
        if start > stop or stop > len(indices):
            return BROKEN
        for j in range(start, stop):
            if indices[j] >= n_cols:
                return BROKEN
            if not np.isfinite(data[j]):
                worst = max(worst, INFINITE)
            if j > start and indices[j] <= indices[j - np.uint64(1)]:
                worst = max(worst, UNSORTED)
    return worst


def readonly(a: np.ndarray) -> np.ndarray:
    """A read-only view, so that compiled code meets one type, memory-mapped or not."""
    view = a.view()
    view.flags.writeable = False
    return view


def _as_kept(a: np.ndarray, what: str) -> np.ndarray:
    """`a` in a number type that kernels take, without a copy where it has one already."""
    a = np.asarray(a)
    if a.dtype == np.bool_:
        return a.view(np.uint8)
    if a.dtype in KEPT and a.dtype.isnative:
        return a
    if a.dtype.kind not in "iuf":
        raise InputError(f"{what} must hold real numbers, got dtype {a.dtype}")
    exact32 = (a.dtype.kind in "iu" and a.dtype.itemsize <= 2) or a.dtype == np.float16
    single = exact32 or a.dtype.newbyteorder("=") == np.float32
    return a.astype(np.float32 if single else np.float64)


def _unsigned(a: np.ndarray) -> np.ndarray:
    return a.view(np.dtype(f"u{a.dtype.itemsize}"))


def as_matrix(X, name: str = "X") -> Matrix:
    """The view of X that kernels read: a C-ordered read-only array, or a `Csr`.

    Takes arrays, memory maps, anything `np.asarray` takes, and every scipy sparse format.
    float64, float32, int8, uint8, bool data in C order or canonical CSR are not copied;
    other layouts and types are, once. Indices of sparse data are checked against the shape,
    and every entry must be finite.
    """
    if isinstance(X, Csr):
        return _checked_csr(X, name)
    if hasattr(X, "tocsr") and hasattr(X, "nnz"):
        if len(X.shape) != 2:
            raise InputError(f"{name} must have 2 dimensions, got {len(X.shape)}")
        X = X.tocsr()
        if len(X.indptr) != X.shape[0] + 1 or X.indptr[0] != 0:
            raise InputError(f"a sparse {name} must have an indptr from 0 on, one more than rows")
        return _checked_csr(Csr(X.data, X.indices, X.indptr, int(X.shape[1])), name)
    _refuse_masked(X, name)
    try:
        X = np.asarray(X)
    except ValueError as e:
        raise InputError(f"{name} must be a matrix of numbers: {e}") from None
    if X.ndim != 2:
        raise InputError(f"{name} must have 2 dimensions, got {X.ndim}")
    dense = np.require(_as_kept(X, name), requirements=["C", "A"])
    if dense.dtype.kind == "f" and not _all_finite(readonly(dense.reshape(-1))):
        raise InputError(f"{name} must be finite, got NaN or infinity")
    return readonly(dense)


def _refuse_masked(v, name: str) -> None:
    if np.ma.is_masked(v):
        raise InputError(f"{name} must not have masked entries")


def _checked_csr(X: Csr, name: str) -> Csr:
    data, indices, indptr = (np.asarray(a) for a in X[:3])
    if data.ndim != 1 or indices.ndim != 1 or indptr.ndim != 1 or len(indptr) < 1:
        raise InputError(f"a sparse {name} must have data, indices and indptr of one dimension")
    if len(data) != len(indices):
        raise InputError(f"a sparse {name} has {len(data)} values but {len(indices)} indices")
    if indices.dtype.kind not in "iu" or indptr.dtype.kind not in "iu":
        raise InputError(f"a sparse {name} must have whole numbers as indices and indptr")
    n_cols = X.n_cols
    if not 0 <= n_cols < 2**62:
        raise InputError(f"the number of columns must be from 0 to 2^62, got {n_cols}")
    wide = max(indices.dtype.itemsize, indptr.dtype.itemsize) > 4
    index = np.uint64 if wide else np.uint32
    indices, indptr = (
        _unsigned(np.require(a, requirements=["C", "A"]))
        if a.dtype.isnative and a.dtype.itemsize == np.dtype(index).itemsize
        else a.astype(f"i{np.dtype(index).itemsize}").view(index)
        for a in (indices, indptr)
    )
    data = np.require(_as_kept(data, name), requirements=["C", "A"])
    csr = Csr(readonly(data), readonly(indices), readonly(indptr), int(n_cols))
    worst = csr_fault(csr.data, csr.indices, csr.indptr, csr.n_cols)
    if worst == BROKEN:
        raise InputError(
            f"a sparse {name} has an index outside its {len(indptr) - 1} rows, "
            f"{n_cols} columns or {len(data)} values"
        )
    if worst == INFINITE:
        raise InputError(f"{name} must be finite, got NaN or infinity")
    return csr if worst == ASCENDING else _sorted_csr(csr, name)


def _sorted_csr(X: Csr, name: str) -> Csr:
    """A copy of X with ascending columns and duplicates added up."""
    from scipy.sparse import csr_matrix

    index = np.dtype(f"i{X.indices.dtype.itemsize}")
    arrays = (X.data, X.indices.view(index), X.indptr.view(index))
    wide = arrays[0].dtype if arrays[0].dtype.kind == "f" else np.float32
    copy = csr_matrix(
        (arrays[0].astype(wide), *arrays[1:]), shape=(len(X.indptr) - 1, X.n_cols), copy=True
    )
    copy.sum_duplicates()
    return _checked_csr(Csr(copy.data, copy.indices, copy.indptr, X.n_cols), name)


@exact_loop
def _all_finite(values):
    """Whether no entry is NaN or infinite: x − x is 0 for all others."""
    total = 0.0
    for i in range(len(values)):
        total += values[i] - values[i]
    return total == 0.0


def as_vector(name: str, v, n: int | None = None) -> np.ndarray:
    """`v` as contiguous, finite float64 numbers, n of them; a scalar is repeated n times."""
    _refuse_masked(v, name)
    try:
        a = np.asarray(v)
        if a.dtype.kind not in "biufO" or v is None:
            raise TypeError
        a = a.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError):
        shown = " ".join(f"{v!r:.60}".split())
        raise InputError(f"{name} must hold real numbers, got {shown}") from None
    if a.ndim == 0 and n is not None:
        a = np.full(n, a)
    if a.ndim != 1 or (n is not None and len(a) != n):
        wanted = "one dimension" if n is None else f"length {n}"
        raise InputError(f"{name} must have {wanted}, got shape {a.shape}")
    if not np.isfinite(a).all():
        raise InputError(f"{name} must be finite, got NaN or infinity")
    return np.require(a, requirements=["C", "A", "W"])


def as_number(name: str, value) -> float:
    """A finite real number."""
    return float(as_vector(name, value, 1)[0]) if np.ndim(value) == 0 else _no_number(name, value)


def _no_number(name: str, value):
    raise InputError(f"{name} must be one number, got shape {np.shape(value)}")


def as_precision(dtype) -> np.dtype:
    """float64 or float32."""
    try:
        kind = np.dtype(dtype)
    except TypeError:
        kind = None
    if kind not in (np.float64, np.float32):
        raise InputError(f"dtype must be float64 or float32, got {kind or repr(dtype)}")
    return kind


def output(name: str, v: np.ndarray | None, size: tuple[int, ...]) -> np.ndarray:
    """`v` where it can be written to as float64 of this size, or fresh zeros for None."""
    if v is None:
        return np.zeros(size)
    fits = isinstance(v, np.ndarray) and v.dtype == np.float64 and v.shape == size
    if not (fits and v.flags.c_contiguous and v.flags.writeable and v.flags.aligned):
        raise InputError(f"{name} must be a writable C-ordered float64 array of shape {size}")
    return v
