"""Columns that are far from zero beside their spread, moved to zero where a free bias makes that
exact.

With a free bias x_i·w + b = (x_i − m)·w + (b + m·w): the problem on the rows x_i − m is the same,
but not as badly conditioned. Nothing is rounded: where all entries of a column and m have one sign
and are within a factor of 2 of each other, x − m is a number of the same precision (Sterbenz 1974).
"""

import numpy as np

from ..matrix.checks import as_matrix
from ..matrix.matrix import Csr, CsrArrays, Matrix
from ..matrix.rows import row_slice

FAR = 1000.0  # times its spread is a column's distance from zero, where it is moved there
LARGEST = 1e100  # that a column may be: rows whose squares overflow are refused as they are
FIRST_ROWS = 64  # that are looked at to tell which columns may be such


def centre_columns(X: Matrix) -> tuple[Matrix, np.ndarray | None]:
    """X with columns that are far from zero moved there, and by how much each column was; X itself
    and None where no column is."""
    n, p = X.shape
    columns, _ = _far_columns(row_slice(X, 0, min(n, FIRST_ROWS)), np.arange(p))
    if not len(columns):
        return X, None
    columns, middle = _far_columns(X, columns)
    if not len(columns):
        return X, None
    shift = np.zeros(p)
    shift[columns] = middle
    return _moved(X, shift), shift


def _far_columns(X: Matrix, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Those of some columns, in ascending order, that are far from zero, and their middles."""
    n, _ = X.shape
    if not isinstance(X, Csr):
        if X.dtype.kind != "f":
            return columns[:0], np.empty(0)
        some = X if len(columns) == X.shape[1] else X[:, columns]
        low, high = some.min(axis=0), some.max(axis=0)
    else:
        columns, low, high = _full_columns(X, columns, n)
    middle = low + (high - low) / 2
    spread = high.astype(np.float64) - low
    size = np.abs(middle, dtype=np.float64)
    off = (size > 0.0) & (size >= FAR * spread) & (size <= LARGEST)
    return columns[off], middle[off]


def _full_columns(X: Csr, columns: np.ndarray, n: int) -> tuple[np.ndarray, ...]:
    """Those of some columns that every row has an entry in, and their least and largest."""
    lo, hi = X.indptr[0], X.indptr[-1]
    place = np.searchsorted(columns, X.indices[lo:hi])
    place = np.minimum(place, len(columns) - 1)
    known = columns[place] == X.indices[lo:hi] if len(columns) else np.zeros(hi - lo, dtype=bool)
    place, values = place[known], X.data[lo:hi][known]
    full = np.flatnonzero(np.bincount(place, minlength=len(columns)) == n)
    low, high = np.full(len(columns), np.inf), np.full(len(columns), -np.inf)
    np.minimum.at(low, place, values)
    np.maximum.at(high, place, values)
    return columns[full], low[full].astype(X.data.dtype), high[full].astype(X.data.dtype)


def _moved(X: Matrix, shift: np.ndarray) -> Matrix:
    """x − m of every row, which is exact."""
    if not isinstance(X, Csr):
        return as_matrix(X - shift.astype(X.dtype))
    lo, hi = int(X.indptr[0]), int(X.indptr[-1])
    indices = X.indices[lo:hi].astype(np.int64)
    data = X.data[lo:hi] - shift.astype(X.data.dtype)[indices]
    return as_matrix(CsrArrays(data, indices, (X.indptr - lo).astype(np.int64), X.shape[1]))
