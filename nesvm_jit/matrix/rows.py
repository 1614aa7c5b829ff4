"""Rows of a matrix: their size, some of them, and rows without the columns that are empty."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .matrix import Csr, Matrix, is_checked, readonly, shape, trust_array, trust_csr

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


class Size(NamedTuple):
    """What decides in which order sums over rows are made; `row_bytes` are those of an average."""

    rows: int
    cols: int
    cells: int
    row_bytes: int

    @property
    def work(self) -> int:
        """What a pass over the rows takes, in numbers read in order: entries of compressed rows,
        each with its column, take as long as four."""
        return self.cells if self.cells >= self.rows * self.cols else 4 * self.cells


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
    if isinstance(X, Csr):
        return trust_csr(X.data, X.indices, X.indptr[lo : hi + 1], X.n_cols)
    return trust_array(X[lo:hi]) if is_checked(X) else X[lo:hi]


def take_rows(X: Matrix, index: np.ndarray) -> Matrix:
    """A copy of some rows."""
    if not isinstance(X, Csr):
        return trust_array(X[index]) if is_checked(X) else readonly(X[index])
    counts = (X.indptr[1:] - X.indptr[:-1])[index].astype(np.int64)
    indptr = np.zeros(len(index) + 1, dtype=np.int64)
    np.cumsum(counts, out=indptr[1:])
    # cell k of new row i is cell k of old row index[i]
    shift = X.indptr[:-1][index].astype(np.int64) - indptr[:-1]
    cells = np.arange(indptr[-1]) + np.repeat(shift, counts)
    return trust_csr(X.data[cells], X.indices[cells], indptr.astype(X.indptr.dtype), X.n_cols)


def widen(X: Csr, n_cols: int) -> Csr:
    """X with empty columns at its right, `n_cols` in all."""
    if n_cols < X.n_cols:
        raise ValueError(f"at least {X.n_cols} columns are required, got {n_cols}")
    return trust_csr(X.data, X.indices, X.indptr, n_cols)


def first_columns(X: Csr, n_cols: int) -> Csr:
    """X without its columns from number `n_cols` on."""
    if n_cols >= X.n_cols:
        return X
    lo, hi = X.indptr[0], X.indptr[-1]
    kept = X.indices[lo:hi] < n_cols
    before = np.append(0, np.cumsum(kept))  # cells that are kept, before each
    indptr = before[(X.indptr - lo).astype(np.int64)].astype(X.indptr.dtype)
    return trust_csr(X.data[lo:hi][kept], X.indices[lo:hi][kept], indptr, n_cols)


def as_scipy(X: Matrix) -> "csr_matrix":
    """X as a scipy CSR matrix that shares its numbers (a dense X is packed)."""
    from scipy.sparse import csr_matrix

    if not isinstance(X, Csr):
        return csr_matrix(X)
    index = np.dtype(f"i{X.indices.dtype.itemsize}")
    out = csr_matrix((len(X.indptr) - 1, X.n_cols), dtype=X.data.dtype)
    out.data, out.indices, out.indptr = X.data, X.indices.view(index), X.indptr.view(index)
    return out


# ---------------------------------------------------------------- empty columns


def narrowed(*matrices: Matrix) -> tuple[tuple[Matrix, ...], np.ndarray | None]:
    """The matrices without the columns that none of them uses, and those kept; all of them as
    they are, and None, where that would not help."""
    sparse = [X for X in matrices if isinstance(X, Csr)]
    if len(sparse) < len(matrices):
        return matrices, None
    if max(X.n_cols for X in sparse) <= sum(len(X.data) for X in sparse):
        return matrices, None
    kept = np.unique(np.concatenate([_stored_columns(X) for X in sparse]))
    return tuple(_renumber(X, kept) for X in sparse), kept.astype(np.int64)


def _stored_columns(X: Csr) -> np.ndarray:
    """The columns of X's entries; a slice of rows keeps the arrays of the whole."""
    return X.indices[X.indptr[0] : X.indptr[-1]]


def _renumber(X: Csr, kept: np.ndarray) -> Csr:
    """X with its columns counted among those kept."""
    lo, hi = X.indptr[0], X.indptr[-1]
    indices = np.searchsorted(kept, X.indices[lo:hi]).astype(X.indices.dtype)
    return trust_csr(X.data[lo:hi], indices, (X.indptr - lo).astype(X.indptr.dtype), len(kept))
