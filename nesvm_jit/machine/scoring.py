"""Compute scores of rows: a machine is prepared once, and X is read once for all sub-problems."""

from collections.abc import Callable

import numpy as np

from ..errors import InputError
from ..files.model.record import ModelRecord
from ..jit import one_blas_thread
from ..kernels.gram import Columns, columns_of, kernel_between, sums_of_columns
from ..kernels.public import as_spec
from ..kernels.sums import scores_of
from ..matrix.checks import as_matrix
from ..matrix.matrix import Csr, Matrix
from ..matrix.rows import first_columns, narrowed, row_slice, widen

BLOCK_CELLS = 1 << 22  # kernel values that are in memory at a time

# A function of checked rows that returns a column of scores per sub-problem. Calls change nothing,
# so any number of threads may make them at the same time.
Scorer = Callable[[Matrix], np.ndarray]


def scorer_of(record: ModelRecord) -> Scorer:
    """Return the function that scores rows by this machine."""
    if record.weights is not None:
        return _linear(record)
    return _precomputed(record) if record.kernel == "precomputed" else expansion(record)


def require_columns(X: Matrix, n_features: int) -> None:
    """Raise InputError if dense rows have more or fewer features than the machine."""
    p = X.shape[1]
    if p != n_features and not isinstance(X, Csr):
        raise InputError(f"X must have {n_features} columns, got {p}")


def _linear(record: ModelRecord) -> Scorer:
    assert record.weights is not None
    W, bias, p = np.ascontiguousarray(record.weights.T), record.bias, record.n_features

    def scores(X: Matrix) -> np.ndarray:
        require_columns(X, p)
        # features that training did not see are ignored, as LIBLINEAR does
        return scores_of(first_columns(X, p) if isinstance(X, Csr) else X, W, bias)

    return scores


def _precomputed(record: ModelRecord) -> Scorer:
    """Return a scorer that multiplies rows of the kernel matrix of all training samples by β."""
    assert record.coefs is not None
    n, bias = record.n_features, record.bias
    beta = np.zeros((record.coefs.shape[1], n))
    beta[:, record.support_index] = record.coefs.T

    def scores(X: Matrix) -> np.ndarray:
        require_columns(X, n)
        p = X.shape[1]
        if p != n:
            raise InputError(f"X must have a column for each of {n} samples, got {p}")
        return scores_of(X, beta, bias)

    return scores


def expansion(record: ModelRecord, block_cells: int = BLOCK_CELLS) -> Scorer:
    """Return a scorer that computes Σ β_i k(x_i, x) + b over the support vectors."""
    assert record.coefs is not None
    coefs, bias, n_features = np.ascontiguousarray(record.coefs), record.bias, record.n_features
    sigmoid = record.kernel == "sigmoid"
    spec = as_spec(*_kernel_of(record), n_features)
    vectors = columns_of("support vectors", as_matrix(record.support), spec)
    rows = max(1, block_cells // max(1, len(coefs)))

    def scores(X: Matrix) -> np.ndarray:
        require_columns(X, n_features)
        X, columns = _of_one_width(X, vectors)
        n = X.shape[0]
        found = np.empty((n, coefs.shape[1]))
        with one_blas_thread():
            for lo in range(0, n, rows):
                hi = min(n, lo + rows)
                block, used = _without_empty_columns(row_slice(X, lo, hi), columns)
                K = kernel_between("X", block, used)
                found[lo:hi] = sums_of_columns(np.tanh(K) if sigmoid else K, coefs)
        found += bias
        return found

    return scores


def _of_one_width(X: Matrix, columns: Columns) -> tuple[Matrix, Columns]:
    """Widen the narrower one of both by zero features, which count in distances as in LIBSVM."""
    p, width = X.shape[1], columns.Z.shape[1]
    if not isinstance(X, Csr) or p == width:
        return X, columns
    if p < width:
        return widen(X, width), columns
    assert isinstance(columns.Z, Csr)
    return X, columns._replace(Z=widen(columns.Z, p))


def _without_empty_columns(X: Matrix, columns: Columns) -> tuple[Matrix, Columns]:
    """Return both without the features that are empty in both, if that saves work."""
    if isinstance(X, np.ndarray) or isinstance(columns.Z, np.ndarray):
        return X, columns
    (X, Z), kept = narrowed(X, columns.Z)
    centre = columns.centre  # may be shorter than a row; it is zero in the columns after its end
    known = len(centre) if kept is None else int(np.searchsorted(kept, len(centre)))
    if kept is not None:
        centre = centre[kept[:known]]
    centre = np.append(centre, np.zeros(Z.shape[1] - known))
    return X, columns._replace(Z=Z, centre=centre)


def _kernel_of(record: ModelRecord) -> tuple[str, float, float, int]:
    """Return the kernel's name and parameters. A linear kernel is a polynomial of degree 1, and so
    is the argument of tanh in a sigmoid kernel."""
    if record.kernel == "linear":
        return "poly", 1.0, 0.0, 1
    if record.kernel == "sigmoid":
        return "poly", record.gamma, record.coef0, 1
    return record.kernel, record.gamma, record.coef0, record.degree
