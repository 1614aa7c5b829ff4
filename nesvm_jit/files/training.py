"""Training and test files as the command line takes them."""

import numpy as np

from ..errors import FormatError
from .libsvm import read_libsvm
from .text import display_name


def read_training(path, kernel: str, n_features: int | None, float32: bool):
    """The rows and labels of a training file; of a precomputed kernel, the square matrix."""
    dtype = np.float32 if float32 else np.float64
    if kernel != "precomputed":
        return read_libsvm(path, n_features, dtype)
    X, y = read_libsvm(path, None, dtype, zero_based=True)
    K = kernel_columns(X, path, 1)
    n = K.shape[0]
    serial = X[:, [0]].toarray().ravel()
    if not np.array_equal(serial, np.arange(1, n + 1)):
        raise FormatError(
            f"{display_name(path)}: a precomputed kernel needs 0:1, 0:2, … in its rows"
        )
    if K.shape[1] != n:
        raise FormatError(
            f"{display_name(path)}: a precomputed kernel of {n} rows needs columns 1 to {n}, "
            f"got {K.shape[1]}"
        )
    return K, y


def kernel_columns(X, path, least: int) -> np.ndarray:
    """Columns 1, 2, … of a precomputed file, whose column 0 is the row's own number."""
    if X.shape[1] < 1 + least:
        raise FormatError(f"{display_name(path)}: a precomputed kernel needs 0:serial and 1:value")
    return X[:, 1:].toarray()
