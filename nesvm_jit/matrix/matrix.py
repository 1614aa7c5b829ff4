"""The matrix that every kernel reads: a dense array or a `Csr` tuple, and the few row primitives
that all kernels are written in.

A matrix is checked once, by `as_matrix`; whoever gets one trusts it. Kernels do not look whether
an index is inside, so a `Csr` can be made in no other way than from arrays that were checked.

Each primitive has two bodies, one of which is picked by the type of X, at compile time in compiled
kernels and at run time in interpreted ones. Indices are unsigned, so
that compiled code has no wrap-around branch.
"""

from typing import Any, NamedTuple, NoReturn
from weakref import WeakValueDictionary

import numpy as np

from ..jit import by_layout


class CsrArrays(NamedTuple):
    """Compressed rows that nobody has checked: row i should hold data[indptr[i]:indptr[i+1]] in
    the columns `indices`."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    n_cols: int


class Csr(CsrArrays):
    """Compressed rows, checked: columns ascend in each row and are inside, numbers are finite."""

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns, as arrays have it."""
        return len(self.indptr) - 1, self.n_cols

    @property
    def dtype(self) -> np.dtype:
        """Of the numbers."""
        return np.dtype(self.data.dtype)

    # numba, which makes such tuples in compiled code, asks for these names
    def __new__(cls, data: Any, indices: Any, indptr: Any, n_cols: Any) -> "Csr":
        raise TypeError("a Csr is made by as_matrix, which checks the arrays")

    @classmethod
    def _make(cls, *_: Any) -> NoReturn:  # `_replace` ends here too
        raise TypeError("a Csr is made by as_matrix, which checks the arrays")


Matrix = np.ndarray | Csr

# Dense arrays that were checked, by their id, as long as they live.
_CHECKED_ARRAYS: WeakValueDictionary[int, np.ndarray] = WeakValueDictionary()


def is_checked(X: Any) -> bool:
    """Whether X came from `as_matrix`, or from rows of what did."""
    return isinstance(X, Csr) or _CHECKED_ARRAYS.get(id(X)) is X


def trust_csr(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, n_cols: int) -> Csr:
    """A `Csr` of arrays that the caller has checked, or made so that they need no check."""
    arrays = (readonly(a) for a in (data, indices, indptr))
    return tuple.__new__(Csr, (*arrays, n_cols))


def trust_array(dense: np.ndarray) -> np.ndarray:
    """A read-only view of C-ordered finite numbers that counts as checked from now on."""
    view = readonly(dense)
    _CHECKED_ARRAYS[id(view)] = view
    return view


def readonly(a: np.ndarray) -> np.ndarray:
    """A read-only view, so that compiled code meets one type, memory-mapped or not."""
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
    """Rows and columns of X."""


@by_layout(_dense_dot, _csr_dot)
def row_dot(X, i, w):
    """x_i · w."""


@by_layout(_dense_axpy, _csr_axpy)
def row_axpy(X, i, a, g):
    """g += a x_i."""


@by_layout(_dense_norms, _csr_norms)
def row_norms(X, i):
    """‖x_i‖² and ‖x_i‖_∞."""


@by_layout(_dense_load, _csr_load)
def row_load(X, i, a, out):
    """out = a x_i, as a dense row."""


@by_layout(_dense_bounds, _csr_bounds)
def row_bounds(X, i):
    """The first entry of x_i, and the end of its entries."""


@by_layout(_dense_entry, _csr_entry)
def entry(X, i, k):
    """The column and the value of entry k, which is in row i."""
