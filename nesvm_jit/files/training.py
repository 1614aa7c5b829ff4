"""Read the training files of the command line: text or on-disk matrices."""

from typing import Any

import numpy as np

from ..errors import FormatError, InputError
from ..jit import memory_bytes
from ..matrix.rows import as_scipy
from .libsvm.reader import read_checked, read_libsvm
from .ondisk.matrix import is_matrix, open_matrix
from .text import display_name

# Share of the computer's memory that rows may take; a larger on-disk matrix is read block by block.
IN_MEMORY = 0.4


def read_training(
    path: Any, kernel: str, n_features: int | None, float32: bool, stream: bool = False
) -> tuple[Any, np.ndarray | None]:
    """Read the rows and labels of a training file; of a precomputed kernel, the square matrix.

    An on-disk matrix that is to be streamed, or that is too large for the memory, is returned
    unread, and None for its labels.
    """
    if is_matrix(path):
        return _read_matrix(path, kernel, n_features, float32, stream)
    if stream:
        raise InputError(
            f"{display_name(path)}: only an on-disk matrix can be streamed; convert it"
        )
    dtype = np.float32 if float32 else np.float64
    if kernel != "precomputed":
        return read_checked(path, n_features, dtype)
    if n_features is not None:
        raise InputError("a precomputed kernel has as many features as rows, it takes no number")
    X, y = read_libsvm(path, None, dtype, zero_based=True)
    K = kernel_columns(X, path)
    n = K.shape[0]
    if not np.array_equal(X[:, [0]].toarray().ravel(), np.arange(1, n + 1)):
        raise FormatError(
            f"{display_name(path)}: a precomputed kernel needs 0:1, 0:2, ... in its rows"
        )
    if K.shape[1] != n:
        raise FormatError(
            f"{display_name(path)}: a precomputed kernel of {n} rows needs columns 1 to {n}, "
            f"got {K.shape[1]}"
        )
    return K, y


def _read_matrix(
    path: Any, kernel: str, n_features: int | None, float32: bool, stream: bool
) -> tuple[Any, np.ndarray | None]:
    matrix = open_matrix(path)
    if kernel == "precomputed":
        raise InputError("a precomputed kernel must be text, got an on-disk matrix")
    if n_features not in (None, matrix.n_cols):
        raise InputError(f"{matrix.name} has {matrix.n_cols} features, got {n_features}")
    if float32 and matrix.dtype != np.float32:
        raise InputError(f"{matrix.name} holds {matrix.dtype}; convert it with --float32")
    if stream or matrix.nbytes > IN_MEMORY * memory_bytes():
        return matrix, None
    matrix.verify()
    return as_scipy(matrix.read(0, matrix.n_rows)), matrix.labels


def kernel_columns(X: Any, path: Any) -> np.ndarray:
    """Return columns 1, 2, … of a precomputed file; its column 0 is the row's own number."""
    starts = X.indptr[:-1]
    if (np.diff(X.indptr) == 0).any() or (X.indices[starts] != 0).any():
        raise FormatError(f"{display_name(path)}: a precomputed kernel needs 0:serial in every row")
    return X[:, 1:].toarray()
