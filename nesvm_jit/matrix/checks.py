"""Every check of numbers that users hand in: matrices, vectors, single numbers. Whoever gets the
result trusts it."""

import numpy as np

from ..errors import InputError
from ..jit import exact_loop
from .matrix import Csr, Matrix
from .rows import readonly

# Stored as they are; every sum is in float64 whatever the data are.
KEPT = tuple(np.dtype(t) for t in (np.float64, np.float32, np.int8, np.uint8))


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
