"""Write LIBSVM (SVM-light) text."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...errors import InputError
from ...kernels.text.libsvm import HIGHEST_INDEX
from ...matrix.checks import as_matrix, as_vector, boolean
from ...matrix.matrix import Csr, Matrix
from ..text import writing


def write_libsvm(path: Any, X: Any, y: Any, zero_based: bool = False) -> None:
    """Write X and labels y as LIBSVM text; `read_libsvm` gives back the same bits.

    Explicit zeros of a sparse X are kept, zeros of an array are not written. `path` is a file
    name (compressed if it ends in .gz, .bz2 or .xz; written under a temporary name, then
    renamed), `-` for standard output, or an open binary file.
    """
    X = as_matrix(X, borrow=True)
    n, p = X.shape
    if n == 0:
        raise InputError("X must have at least one row to be written")
    y = as_vector("y", y, n)
    boolean("zero_based", zero_based)
    base = 0 if zero_based else 1
    if p - 1 + base > HIGHEST_INDEX:
        raise InputError(f"X must have at most {HIGHEST_INDEX + 1 - base} columns, got {p}")
    with writing(path) as f:
        for i in range(n):
            cells = [f"{j + base}:{_shortest(v)}" for j, v in _cells_of(X, i)]
            f.write((" ".join([_shortest(y[i]), *cells]) + "\n").encode("ascii"))


def _cells_of(X: Matrix, i: int) -> Iterator[tuple[int, float]]:
    """Yield (column, value) of every entry of row i that is written."""
    if isinstance(X, Csr):
        stored = slice(X.indptr[i], X.indptr[i + 1])
        return zip(X.indices[stored].tolist(), X.data[stored].tolist(), strict=True)
    columns = np.flatnonzero(X[i])
    return zip(columns.tolist(), X[i, columns].tolist(), strict=True)


def _shortest(value: float) -> str:
    """Return the shortest decimal text of a float64; whole numbers have no `.0`."""
    text = repr(float(value))
    return text[:-2] if text.endswith(".0") else text
