"""Which rows of the data the support vectors of a model are."""

from collections import defaultdict
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix


class Matched(NamedTuple):
    """The row of every support vector, −1 for none, and whether it has the same bits."""

    rows: np.ndarray
    same: np.ndarray


def match(
    support: csr_matrix,
    X: csr_matrix,
    sv_class: np.ndarray | None,
    row_class: np.ndarray,
    hint: np.ndarray | None,
) -> Matched:
    """Each support vector with a row of its own, of its class where that is known. LIBSVM prints
    eight digits of a vector: where none has the same bits, one that is printed alike will do.
    Rows that the model itself names come first, if they are what it says."""
    m = support.shape[0]
    found = Matched(np.full(m, -1), np.zeros(m, dtype=bool))
    width = max(support.shape[1], X.shape[1])
    support, X = _canonical(support, width), _canonical(X, width)
    if hint is not None and len(hint) == m and hint.max(initial=-1) < X.shape[0]:
        difference = X[hint] - support
        if difference.nnz == 0 or not difference.data.any():
            return Matched(np.asarray(hint), np.ones(m, dtype=bool))
    taken = np.zeros(X.shape[0], dtype=bool)
    for printed in (False, True):
        missing = np.flatnonzero(found.rows < 0)
        if not len(missing):
            break
        free: dict[tuple, list[int]] = defaultdict(list)
        for i, key in enumerate(_keys(X, printed)):
            if not taken[i]:
                free[row_class[i] if sv_class is not None else 0, key].append(i)
        for j, key in zip(missing, _keys(support[missing], printed), strict=True):
            rows = free.get((sv_class[j] if sv_class is not None else 0, key))
            if rows:
                found.rows[j] = rows.pop(0)
                found.same[j] = not printed
                taken[found.rows[j]] = True
    return found


def _canonical(X: csr_matrix, width: int) -> csr_matrix:
    arrays = X.data.astype(np.float64), X.indices.astype(np.int64), X.indptr.astype(np.int64)
    out = csr_matrix(arrays, (X.shape[0], width), copy=True)
    out.sum_duplicates()
    out.eliminate_zeros()
    return out


def _keys(X: csr_matrix, printed: bool) -> list[tuple[bytes, bytes]]:
    """What two rows have in common if they are the same, or are printed alike."""
    values, indices = X.data, X.indices.astype(np.int64)
    if printed:
        seen, which = np.unique(values, return_inverse=True)
        values = np.array([float(f"{v:.8g}") for v in seen.tolist()])[which]
    ends = X.indptr.tolist()
    return [(indices[a:b].tobytes(), values[a:b].tobytes()) for a, b in pairwise(ends)]
