"""The matrix that every kernel reads, a dense array or a `Csr` tuple, and the row primitives that
all kernels are written in.

A matrix is checked once, by `as_matrix`. Kernels do not test whether an index is inside the
arrays, so a `Csr` can only be made from arrays that were checked.

Each primitive has two bodies, one of which is chosen by the type of X: at compile time in compiled
kernels, at run time in interpreted ones. Indices are unsigned, so that compiled code needs no
branch for negative ones.
"""

from typing import Any, NamedTuple, NoReturn
from weakref import WeakValueDictionary

import numpy as np

from ..jit import by_layout


class CsrArrays(NamedTuple):
    """Compressed rows that were not checked: row i should hold data[indptr[i]:indptr[i+1]] in the
    columns indices[indptr[i]:indptr[i+1]]."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    n_cols: int


class Csr(CsrArrays):
    """Checked compressed rows: columns ascend in each row and are below n_cols, and all numbers
    are finite."""

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""
        return len(self.indptr) - 1, self.n_cols

    @property
    def dtype(self) -> np.dtype:
        """The type of the numbers."""
        return np.dtype(self.data.dtype)

    # numba looks for methods of these names where compiled code makes such tuples
    def __new__(cls, data: Any, indices: Any, indptr: Any, n_cols: Any) -> "Csr":
        raise TypeError("a Csr is made by as_matrix, which checks the arrays")

    @classmethod
    def _make(cls, *_: Any) -> NoReturn:  # `_replace` ends here too
        raise TypeError("a Csr is made by as_matrix, which checks the arrays")


Matrix = np.ndarray | Csr

# Dense arrays that were checked, by their id; an entry ends with its array.
_CHECKED_ARRAYS: WeakValueDictionary[int, np.ndarray] = WeakValueDictionary()


def is_checked(X: Any) -> bool:
    """Return True if X came from `as_matrix`, or is made of rows of such a matrix."""
    return isinstance(X, Csr) or _CHECKED_ARRAYS.get(id(X)) is X


def trust_csr(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, n_cols: int) -> Csr:
    """Make a `Csr` of arrays that the caller has checked, or that need no check."""
    arrays = (readonly(a) for a in (data, indices, indptr))
    return tuple.__new__(Csr, (*arrays, n_cols))


def trust_array(dense: np.ndarray) -> np.ndarray:
    """Return a read-only view of C-ordered finite numbers, which counts as checked from now on."""
    view = readonly(dense)
    _CHECKED_ARRAYS[id(view)] = view
    return view


def readonly(a: np.ndarray) -> np.ndarray:
    """Return a read-only view, so that compiled code needs one type only, memory-mapped or not."""
    view = a.view(np.ndarray)
    view.flags.writeable = False
    return view


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
    # four running maxima: since there may be NaN, the compiler may not split one into several
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


def _dense_bounds(X, i):
    return 0, X.shape[1]


def _csr_bounds(X, i):
    return X.indptr[i], X.indptr[i + 1]


def _dense_entry(X, i, k):
    return k, np.float64(X[i, k])


def _csr_entry(X, i, k):
    return X.indices[k], np.float64(X.data[k])


@by_layout(_dense_shape, _csr_shape)
def shape(X):
    """Return the numbers of rows and columns of X."""


@by_layout(_dense_dot, _csr_dot)
def row_dot(X, i, w):
    """Return x_i · w."""


@by_layout(_dense_axpy, _csr_axpy)
def row_axpy(X, i, a, g):
    """Compute g += a x_i."""


@by_layout(_dense_norms, _csr_norms)
def row_norms(X, i):
    """Return ‖x_i‖² and ‖x_i‖_∞."""


@by_layout(_dense_load, _csr_load)
def row_load(X, i, a, out):
    """Set out = a x_i, as a dense row."""


@by_layout(_dense_bounds, _csr_bounds)
def row_bounds(X, i):
    """Return the numbers of the first entry of x_i and of the first entry after it."""


@by_layout(_dense_entry, _csr_entry)
def entry(X, i, k):
    """Return the column and the value of entry k, which is in row i."""
