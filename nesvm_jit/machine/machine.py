"""A trained machine: a model record with scores, labels, probabilities and a certificate."""

from typing import Any

import numpy as np

from ..errors import InputError
from ..files.model.certificates import require_certificates
from ..files.model.record import ModelRecord
from ..files.model.text import read_model, write_model
from ..jit import interpreted_first
from ..matrix.checks import as_matrix
from ..matrix.matrix import Matrix
from .calibration import couple, normalise, sigmoid
from .multiclass import choose, pairs
from .proven import proven_classes
from .scoring import Scorer, require_columns, scorer_of


class Machine:
    """A trained classifier with its certificate.

    `classes` are in LIBSVM's order. A positive score of the pair (i, j) means class i; a positive
    score of the only problem of two classes means classes[0].
    """

    def __init__(self, record: ModelRecord, support_rows: np.ndarray | None = None):
        self.record = record
        # Not written to files: the numbers of the training rows that are support vectors, and of
        # every sub-problem α/C, for warm starts, and its `Found`.
        self.support_rows = support_rows
        self.duals: list[np.ndarray] | None = None
        self.solutions: list[Any] | None = None
        self._scorer: Scorer | None = None  # made at the first call of `scores`

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the scorer, which is made again when it is needed."""
        return {**vars(self), "_scorer": None}

    def __repr__(self) -> str:
        record = self.record
        gap = f"gap {self.gap:.2e}" if self.problems else "no certificate"
        sizes = f"{len(self.classes)} classes, {self.n_features} features"
        return f"<Machine: {record.model}, {record.kernel} kernel, {sizes}, {gap}>"

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
        """The number of support vectors of all sub-problems, each counted once."""
        if self.record.coefs is not None:
            return len(self.record.coefs)
        said = self.record.extra.get("n_support")
        return said if type(said) is int and said > 0 else 0

    @interpreted_first
    def decision_function(self, X: Any) -> np.ndarray:
        """Return a column of scores per sub-problem; for two classes, one score per row."""
        scores = self.scores(as_matrix(X, borrow=True))
        return scores[:, 0] if scores.shape[1] == 1 else scores

    @interpreted_first
    def predict(self, X: Any) -> np.ndarray:
        """Return the label of every row."""
        return self.classes[self.chosen(self.scores(as_matrix(X, borrow=True)))]

    @interpreted_first
    def certified(self, X: Any) -> np.ndarray:
        """Return True for each row whose label is proven to be that of the exact optimum."""
        X = as_matrix(X, borrow=True)
        require_columns(X, self.n_features)
        return self.chosen(self.scores(X)) == proven_classes(self.record, self.problems, X)

    @interpreted_first
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return a probability for every row and class, in the order of `classes`."""
        return self.probabilities(self.scores(as_matrix(X, borrow=True)))

    def chosen(self, scores: np.ndarray) -> np.ndarray:
        """Return the number of the class that the scores of each row choose."""
        return choose(scores, len(self.classes), self.record.multiclass)

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Return calibrated probabilities from scores: Platt's sigmoids, coupled for several
        classes."""
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
        """Write the model file. It appears under its name when it is complete."""
        write_model(path, self.record)

    @interpreted_first
    def scores(self, X: Matrix) -> np.ndarray:
        """Return a column of scores per sub-problem. Sparse rows may have fewer features than the
        training rows, or more."""
        # if several threads make the first call at once, each makes the same scorer; one is kept
        scorer = self._scorer
        if scorer is None:
            scorer = self._scorer = scorer_of(self.record)
        return scorer(X)


def load_model(path: Any) -> Machine:
    """Read a machine from a model file: LIBLINEAR's text, LIBSVM's, or our own."""
    return Machine(read_model(path))
