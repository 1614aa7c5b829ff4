"""The size of a matrix, slices and copies of its rows, and the removal of empty columns."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .matrix import Csr, Matrix, is_checked, readonly, trust_array, trust_csr

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


class Size(NamedTuple):
    """The size of a matrix, on which the order of sums over rows depends; `row_bytes` is the
    average size of a row."""

    rows: int
    cols: int
    cells: int
    row_bytes: int

    @property
    def work(self) -> int:
        """The work of a pass over the rows, in numbers that are read in order; an entry of
        compressed rows, which has a column, counts as four."""
        return self.cells if self.cells >= self.rows * self.cols else 4 * self.cells


def size_of(X: Matrix) -> Size:
    """Return the size of X, which may be a slice of rows."""
    n, p = X.shape
    if isinstance(X, Csr):
        return sparse_size(n, p, int(X.indptr[-1]) - int(X.indptr[0]), X.data.dtype)
    return Size(n, p, X.size, p * X.itemsize)


def sparse_size(n: int, p: int, cells: int, dtype: np.dtype) -> Size:
    """Return the size of compressed rows, with 4 bytes for each index."""
    return Size(n, p, cells, cells * (dtype.itemsize + 4) // max(1, n))


def row_slice(X: Matrix, lo: int, hi: int) -> Matrix:
    """Return rows lo..hi, without a copy."""
    if isinstance(X, Csr):
        return trust_csr(X.data, X.indices, X.indptr[lo : hi + 1], X.n_cols)
    return trust_array(X[lo:hi]) if is_checked(X) else X[lo:hi]


def take_rows(X: Matrix, index: np.ndarray) -> Matrix:
    """Return a copy of the rows with these numbers."""
    if not isinstance(X, Csr):
        return trust_array(X[index]) if is_checked(X) else readonly(X[index])
    counts = (X.indptr[1:] - X.indptr[:-1])[index].astype(np.int64)
    indptr = np.zeros(len(index) + 1, dtype=np.int64)
    np.cumsum(counts, out=indptr[1:])
    # cell k of row i of the copy is cell k of row index[i]
    shift = X.indptr[:-1][index].astype(np.int64) - indptr[:-1]
    cells = np.arange(indptr[-1]) + np.repeat(shift, counts)
    return trust_csr(X.data[cells], X.indices[cells], indptr.astype(X.indptr.dtype), X.n_cols)


def widen(X: Csr, n_cols: int) -> Csr:
    """Return X with empty columns added on the right, `n_cols` in all."""
    if n_cols < X.n_cols:
        raise ValueError(f"at least {X.n_cols} columns are required, got {n_cols}")
    return trust_csr(X.data, X.indices, X.indptr, n_cols)


def first_columns(X: Csr, n_cols: int) -> Csr:
    """Return X without its columns from number `n_cols` on."""
    if n_cols >= X.n_cols:
        return X
    lo, hi = X.indptr[0], X.indptr[-1]
    kept = X.indices[lo:hi] < n_cols
    before = np.append(0, np.cumsum(kept))  # number of kept cells before each cell
    indptr = before[(X.indptr - lo).astype(np.int64)].astype(X.indptr.dtype)
    return trust_csr(X.data[lo:hi][kept], X.indices[lo:hi][kept], indptr, n_cols)


def as_scipy(X: Matrix) -> "csr_matrix":
    """Return X as a scipy CSR matrix that shares its numbers; a dense X is converted."""
    from scipy.sparse import csr_matrix

    if not isinstance(X, Csr):
        return csr_matrix(X)
    index = np.dtype(f"i{X.indices.dtype.itemsize}")
    out = csr_matrix((len(X.indptr) - 1, X.n_cols), dtype=X.data.dtype)
    out.data, out.indices, out.indptr = X.data, X.indices.view(index), X.indptr.view(index)
    return out


# ---------------------------------------------------------------- empty columns


def narrowed(*matrices: Matrix) -> tuple[tuple[Matrix, ...], np.ndarray | None]:
    """Return the matrices without the columns that are empty in all of them, and the numbers of
    the columns kept. Where that saves nothing, return the matrices as they are, and None."""
    sparse = [X for X in matrices if isinstance(X, Csr)]
    if len(sparse) < len(matrices):
        return matrices, None
    if max(X.n_cols for X in sparse) <= sum(len(X.data) for X in sparse):
        return matrices, None
    kept = np.unique(np.concatenate([X.indices[X.indptr[0] : X.indptr[-1]] for X in sparse]))
    return tuple(_renumber(X, kept) for X in sparse), kept.astype(np.int64)


def _renumber(X: Csr, kept: np.ndarray) -> Csr:
    """Return X with its columns numbered among those kept."""
    lo, hi = X.indptr[0], X.indptr[-1]
    indices = np.searchsorted(kept, X.indices[lo:hi]).astype(X.indices.dtype)
    return trust_csr(X.data[lo:hi], indices, (X.indptr - lo).astype(X.indptr.dtype), len(kept))
