"""Sparse rows whose columns are mostly empty, renumbered so that memory follows the entries and
not the largest index: one index of 200 000 000 in a small file must not cost gigabytes."""

import numpy as np

from .matrix import Csr, Matrix


def narrowed(*matrices: Matrix) -> tuple[tuple[Matrix, ...], np.ndarray | None]:
    """The matrices without the columns that none of them uses, and those kept; all of them as
    they are, and None, where that would not help."""
    sparse = [X for X in matrices if isinstance(X, Csr)]
    if len(sparse) < len(matrices):
        return matrices, None
    if max(X.n_cols for X in sparse) <= sum(len(X.data) for X in sparse):
        return matrices, None
    kept = np.unique(np.concatenate([_stored(X) for X in sparse]))
    return tuple(_renumbered(X, kept) for X in sparse), kept.astype(np.int64)


def _stored(X: Csr) -> np.ndarray:
    """The columns of X's entries; a slice of rows keeps the arrays of the whole."""
    return X.indices[X.indptr[0] : X.indptr[-1]]


def _renumbered(X: Csr, kept: np.ndarray) -> Csr:
    lo, hi = X.indptr[0], X.indptr[-1]
    indices = np.searchsorted(kept, X.indices[lo:hi]).astype(X.indices.dtype)
    indptr = (X.indptr - lo).astype(X.indptr.dtype)
    for a in (indices, indptr):
        a.flags.writeable = False
    return Csr(X.data[lo:hi], indices, indptr, len(kept))
