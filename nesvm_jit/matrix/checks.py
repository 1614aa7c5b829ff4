"""Every check of the matrices, vectors and numbers that users pass. Code that receives a checked
value does not check it again."""

import math
from typing import Any

import numpy as np

from ..errors import InputError
from ..jit import chunk_bounds, chunk_count, exact_kernel, exact_loop
from ..settings import boolean as boolean
from ..settings import whole_number as whole_number
from .matrix import Csr, CsrArrays, Matrix, is_checked, readonly, trust_array, trust_csr

# Number types that kernels read without conversion.
KEPT = tuple(np.dtype(t) for t in (np.float64, np.float32, np.int8, np.uint8))
MOST_COLUMNS = 2**62  # with more columns, sums of indices could overflow

# Results of `csr_fault`, the worst last; ASCENDING means no fault.
ASCENDING, UNSORTED, INFINITE, BROKEN = range(4)


@exact_kernel
def _csr_faults(k, n_chunks, data, indices, indptr, n_cols, worst):
    """The worst fault of the rows of chunk k, without reading outside of the arrays."""
    first, last = chunk_bounds(len(indptr) - 1, n_chunks, k)
    columns, found = np.uint64(n_cols), ASCENDING
    for i in range(first, last):
        start, stop = indptr[i], indptr[i + 1]
        if start > stop or stop > len(indices):
            found = BROKEN
            break
        for j in range(start, stop):
            if indices[j] >= columns:
                found = BROKEN
                break
            if not np.isfinite(data[j]):
                found = max(found, INFINITE)
            if j > start and indices[j] <= indices[j - np.uint64(1)]:
                found = max(found, UNSORTED)
        if found == BROKEN:
            break
    worst[k] = found


def csr_fault(data, indices, indptr, n_cols) -> int:
    """Return the worst fault of compressed rows, without reading outside of the arrays."""
    worst = np.zeros(chunk_count(len(indptr) - 1, len(data)), np.int64)
    _csr_faults(len(worst), data, indices, indptr, n_cols, worst)
    return int(worst.max())


def _as_kept(a: np.ndarray, what: str) -> np.ndarray:
    """Convert `a` to a number type of kernels; an array that has one already is not copied."""
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


def as_matrix(X: Any, name: str = "X", borrow: bool = False) -> Matrix:
    """Check X and return it as kernels read it: a C-ordered read-only array, or a `Csr`.

    X may be an array, a memory map, anything that `np.asarray` takes, or a scipy matrix of any
    sparse format; a matrix that was checked before is returned at once. Data of float64, float32,
    int8, uint8 or bool in C order or canonical CSR are not copied; other layouts and types are
    copied once. Every entry must be finite, and indices of sparse data must be inside the shape.
    Indices that the caller could still change are copied, so that they stay inside the shape.
    With `borrow` they are not copied; the matrix must then not outlive the call that X was passed
    to.
    """
    if is_checked(X):
        return X
    if isinstance(X, CsrArrays):
        return _checked_csr(X, name, borrow)
    if hasattr(X, "tocsr") and hasattr(X, "nnz"):
        if len(X.shape) != 2:
            raise InputError(f"{name} must have 2 dimensions, got {len(X.shape)}")
        X = X.tocsr()
        if len(X.indptr) != X.shape[0] + 1 or X.indptr[0] != 0:
            raise InputError(f"a sparse {name} must have an indptr from 0 on, one more than rows")
        arrays = CsrArrays(X.data, X.indices, X.indptr, int(X.shape[1]))
        return _checked_csr(arrays, name, borrow)
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
    return trust_array(dense)


def as_validated(X: Any) -> Matrix:
    """Take a matrix that scikit-learn's `validate_data` returned for float numbers in C order or
    CSR. A dense X was found finite there; indices of sparse rows are checked here."""
    if isinstance(X, np.ndarray):
        return trust_array(np.require(X, requirements=["C", "A"]))
    return as_matrix(X, borrow=True)


def _refuse_masked(v: Any, name: str) -> None:
    if np.ma.is_masked(v):
        raise InputError(f"{name} must not have masked entries")


def _checked_csr(X: CsrArrays, name: str, borrow: bool) -> Csr:
    data, indices, indptr = (np.asarray(a) for a in X[:3])
    if data.ndim != 1 or indices.ndim != 1 or indptr.ndim != 1 or len(indptr) < 1:
        raise InputError(f"a sparse {name} must have data, indices and indptr of one dimension")
    if len(data) != len(indices):
        raise InputError(f"a sparse {name} has {len(data)} values but {len(indices)} indices")
    if indices.dtype.kind not in "iu" or indptr.dtype.kind not in "iu":
        raise InputError(f"a sparse {name} must have whole numbers as indices and indptr")
    n_cols = X.n_cols
    if not 0 <= n_cols < MOST_COLUMNS:
        raise InputError(f"the number of columns must be from 0 to 2^62, got {n_cols}")
    width = 8 if max(indices.dtype.itemsize, indptr.dtype.itemsize) > 4 else 4
    indices, indptr = (_as_index(a, width, borrow) for a in (indices, indptr))
    data = np.require(_as_kept(data, name), requirements=["C", "A"])
    worst = csr_fault(readonly(data), readonly(indices), readonly(indptr), int(n_cols))
    if worst == BROKEN:
        raise InputError(
            f"a sparse {name} has an index outside its {len(indptr) - 1} rows, "
            f"{n_cols} columns or {len(data)} values"
        )
    if worst == INFINITE:
        raise InputError(f"{name} must be finite, got NaN or infinity")
    if worst == UNSORTED:
        return _sorted_csr(CsrArrays(data, indices, indptr, int(n_cols)), name)
    return trust_csr(data, indices, indptr, int(n_cols))


def _as_index(a: np.ndarray, width: int, borrow: bool) -> np.ndarray:
    """Return `a` as unsigned numbers of `width` bytes, copied unless it is borrowed or can never
    change."""
    if not a.dtype.isnative or a.dtype.itemsize != width:
        return a.astype(f"i{width}").view(f"u{width}")
    if not (borrow or _never_changes(a)):
        a = a.copy()
    return np.require(a, requirements=["C", "A"]).view(f"u{width}")


def _never_changes(a: np.ndarray) -> bool:
    """Return True if neither `a` nor the array that it is a view of can be written to."""
    base: Any = a
    while isinstance(base, np.ndarray):
        if base.flags.writeable:
            return False
        base = base.base
    return base is None or isinstance(base, bytes)


def _sorted_csr(X: CsrArrays, name: str) -> Csr:
    """Return a copy of X with ascending columns, and entries of the same column added up."""
    from scipy.sparse import csr_matrix

    index = np.dtype(f"i{X.indices.dtype.itemsize}")
    values = X.data if X.data.dtype.kind == "f" else X.data.astype(np.float32)
    arrays = values, X.indices.view(index), X.indptr.view(index)
    copy = csr_matrix(arrays, shape=(len(X.indptr) - 1, X.n_cols), copy=True)
    copy.sum_duplicates()
    return _checked_csr(CsrArrays(copy.data, copy.indices, copy.indptr, X.n_cols), name, True)


@exact_loop
def _all_finite(values):
    """Return True if no entry is NaN or infinite."""
    infinite = 0
    for i in range(len(values)):
        infinite += not np.isfinite(values[i])
    return infinite == 0


# ---------------------------------------------------------------- vectors and numbers


def as_vector(name: str, v: Any, n: int | None = None) -> np.ndarray:
    """Return `v` as a contiguous vector of n finite float64 numbers; a scalar is repeated."""
    ready = type(v) is np.ndarray and v.dtype == np.float64 and v.ndim == 1 and v.flags.carray
    if ready and (n is None or len(v) == n) and np.isfinite(v).all():
        return v
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


def as_number(name: str, value: Any) -> float:
    """Require a finite real number and return it as float."""
    if type(value) is float and math.isfinite(value):
        return value
    if np.ndim(value) != 0:
        raise InputError(f"{name} must be one number, got shape {np.shape(value)}")
    return float(as_vector(name, value, 1)[0])


def as_precision(dtype: Any) -> np.dtype:
    """Require float64 or float32 and return the type."""
    try:
        kind = np.dtype(dtype)
    except TypeError:
        kind = None
    if kind not in (np.float64, np.float32):
        raise InputError(f"dtype must be float64 or float32, got {kind or repr(dtype)}")
    return kind


def output(name: str, v: np.ndarray | None, size: tuple[int, ...]) -> np.ndarray:
    """Return `v`, which must be a writable float64 array of this size, or new zeros for None."""
    if v is None:
        return np.zeros(size)
    fits = isinstance(v, np.ndarray) and v.dtype == np.float64 and v.shape == size
    if not (fits and v.flags.c_contiguous and v.flags.writeable and v.flags.aligned):
        raise InputError(f"{name} must be a writable C-ordered float64 array of shape {size}")
    return v


def square_kernel(n: int, p: int) -> None:
    """Require a precomputed kernel matrix to be square."""
    if n != p:
        raise InputError(f"a precomputed kernel must be square, got {n} rows and {p} columns")
