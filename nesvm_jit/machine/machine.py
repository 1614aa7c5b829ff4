"""A trained machine: scores, labels, probabilities and its certificate, from a model record."""

from typing import Any

import numpy as np

from ..errors import InputError
from ..files.model.certificates import require_certificates
from ..files.model.record import ModelRecord
from ..files.model.text import read_model, write_model
from ..jit import interpreted_first, one_blas_thread
from ..kernels import gram, margins
from ..kernels.sums import _margins, row_chunks
from ..matrix.checks import as_matrix
from ..matrix.matrix import Csr, Matrix, shape
from ..matrix.rows import first_columns, narrowed, row_slice, widen
from .calibration import couple, normalise, sigmoid
from .multiclass import ovr_choice, pairs, vote
from .proven import proven_labels

BLOCK_CELLS = 1 << 22  # kernel values that are held at a time


class Machine:
    """Classes, weights or support vectors, and what is certain about them.

    `classes` are in LIBSVM's order: a positive score of the problem (i, j) speaks for class i, the
    only score of two classes for classes[0].
    """

    def __init__(
        self,
        record: ModelRecord,
        support_rows: np.ndarray | None = None,
        duals: list[np.ndarray] | None = None,
    ):
        self.record = record
        self.support_rows = support_rows  # numbers of the training rows; not kept in files
        self.duals = duals  # α/C of every sub-problem, to start from; not kept in files
        self.solutions: list[Any] | None = None  # `Found` of every sub-problem; not kept in files
        self._vectors: Matrix | None = None

    def __getstate__(self) -> dict[str, Any]:
        """All but the checked support vectors, which are made again."""
        return {**vars(self), "_vectors": None}

    @property
    def classes(self) -> np.ndarray:
        return self.record.classes

    @property
    def n_features(self) -> int:
        return self.record.n_features

    @property
    def problems(self) -> list[dict[str, Any]]:
        """The certificate of every sub-problem; empty for a model of another program."""
        if "problems" not in self.record.extra:
            return []
        require_certificates(self.record.extra["problems"])
        return self.record.extra["problems"]

    @property
    def gap(self) -> float:
        """The largest certified gap of all sub-problems."""
        return max((p["gap"] for p in self.problems), default=float("nan"))

    @property
    def n_support(self) -> int:
        """Support vectors of all sub-problems, each counted once."""
        if self.record.coefs is not None:
            return len(self.record.coefs)
        said = self.record.extra.get("n_support")
        return said if type(said) is int and said > 0 else 0

    @interpreted_first
    def decision_function(self, X: Any) -> np.ndarray:
        """One column of scores per sub-problem; one score per row for two classes."""
        scores = self.scores(as_matrix(X, borrow=True))
        return scores[:, 0] if scores.shape[1] == 1 else scores

    @interpreted_first
    def predict(self, X: Any) -> np.ndarray:
        """The label of every row."""
        return self.classes[self.chosen(self.scores(as_matrix(X, borrow=True)))]

    @interpreted_first
    def certified(self, X: Any) -> np.ndarray:
        """Whether the label of each row is proven to be that of the exact optimum."""
        X = as_matrix(X, borrow=True)
        self._require_columns(X)
        return proven_labels(self.record, self.problems, X)

    @interpreted_first
    def predict_proba(self, X: Any) -> np.ndarray:
        """A probability for every row and class, in the order of `classes`."""
        return self.probabilities(self.scores(as_matrix(X, borrow=True)))

    def chosen(self, scores: np.ndarray) -> np.ndarray:
        """The number of the class that scores speak for."""
        if self.record.multiclass == "ovo" and len(self.classes) > 2:
            return vote(scores, len(self.classes))
        return ovr_choice(scores)

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Calibrated probabilities from scores: Platt's sigmoids, coupled for several classes."""
        if self.record.probability is None:
            raise InputError("the model has no probabilities; train it with probability on")
        k = len(self.classes)
        if k > 2 and scores.shape[1] == k and self.record.multiclass == "ovr":
            return normalise(sigmoid(scores, *self.record.probability))
        first = sigmoid(scores, *self.record.probability)
        if k == 2:
            return np.hstack([first, 1.0 - first])
        r = np.zeros((len(scores), k, k))
        for column, (i, j) in enumerate(pairs(k)):
            r[:, i, j] = first[:, column]
            r[:, j, i] = 1.0 - first[:, column]
        return couple(r)

    def save(self, path: Any) -> None:
        """Write the model file; it appears whole or not at all."""
        write_model(path, self.record)

    @interpreted_first
    def scores(self, X: Matrix) -> np.ndarray:
        """A column per sub-problem. Sparse rows may lack features, or have some that training
        did not see."""
        self._require_columns(X)
        if self.record.weights is not None:
            return self._linear_scores(X)
        if self.record.kernel == "precomputed":
            return self._precomputed_scores(X)
        return self._kernel_scores(X)

    def _require_columns(self, X: Matrix) -> None:
        _, p = shape(X)
        if p != self.n_features and not isinstance(X, Csr):
            raise InputError(f"X must have {self.n_features} columns, got {p}")

    def _linear_scores(self, X: Matrix) -> np.ndarray:
        weights = self.record.weights
        assert weights is not None
        if isinstance(X, Csr):  # a feature that training did not see is left out, as LIBLINEAR does
            X = first_columns(X, len(weights))
        n, p = shape(X)
        out, chunks = np.empty((weights.shape[1], n)), row_chunks(X)
        for k, column in enumerate(weights.T):
            w = np.ascontiguousarray(column[:p])
            _margins(chunks, X, w, float(self.record.bias[k]), out[k])
        return out.T

    def _precomputed_scores(self, X: Matrix) -> np.ndarray:
        record = self.record
        _, p = shape(X)
        if p != record.n_features:
            raise InputError(
                f"X must have a column for each of {record.n_features} samples, got {p}"
            )
        assert record.coefs is not None
        assert record.support_index is not None
        beta = np.zeros((p, record.coefs.shape[1]))
        beta[record.support_index] = record.coefs
        columns = zip(beta.T.copy(), record.bias, strict=True)
        return np.stack([margins(X, column, b) for column, b in columns], axis=1)

    def _kernel_scores(self, X: Matrix) -> np.ndarray:
        record = self.record
        assert record.coefs is not None
        if self._vectors is None:
            self._vectors = as_matrix(record.support)
        V = self._vectors
        n, p = shape(X)
        width = max(p, record.n_features)  # unseen features count in distances, as in LIBSVM
        V = widen(V, width) if isinstance(V, Csr) else V
        X = widen(X, width) if isinstance(X, Csr) else X
        scores = np.empty((n, record.coefs.shape[1]))
        rows = max(1, BLOCK_CELLS // max(1, len(record.coefs)))
        with one_blas_thread():
            for lo in range(0, n, rows):
                hi = min(n, lo + rows)
                (block, vectors), _ = narrowed(row_slice(X, lo, hi), V)
                K = gram(block, vectors, *_kernel_of(record))
                scores[lo:hi] = (np.tanh(K) if record.kernel == "sigmoid" else K) @ record.coefs
        return scores + record.bias


def _kernel_of(record: ModelRecord) -> tuple[str, float, float, int]:
    """The kernel's name and parameters; LIBSVM's linear kernel is a polynomial of degree 1, and so
    is what its sigmoid takes the tanh of."""
    if record.kernel == "linear":
        return "poly", 1.0, 0.0, 1
    if record.kernel == "sigmoid":
        return "poly", record.gamma, record.coef0, 1
    return record.kernel, record.gamma, record.coef0, record.degree


def load_model(path: Any) -> Machine:
    """A machine from a model file: LIBLINEAR's text, LIBSVM's, or our own."""
    return Machine(read_model(path))
