"""`NESVC`, the machine as a scikit-learn estimator. The only module that imports scikit-learn."""

import functools
import sys
import warnings
from dataclasses import fields
from typing import Any, NoReturn

import numpy as np

try:
    from sklearn import get_config
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.utils import check_random_state, compute_class_weight
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
except ImportError as e:  # pragma: no cover
    raise ImportError(
        f"nesvm_jit.NESVC needs scikit-learn 1.6 or newer (pip install 'nesvm-jit[sklearn]'): {e}"
    ) from None

from .endings import describe_uncertified, outcomes_of
from .machine.machine import Machine
from .machine.multiclass import ovo_decision
from .machine.train import train_silently
from .matrix.checks import as_matrix, as_validated
from .matrix.matrix import Matrix
from .settings import Settings

DTYPES = (np.float64, np.float32)


class NESVC(ClassifierMixin, BaseEstimator):
    """A support vector classifier that ends with a certified duality gap.

    Parameters
    ----------
    C, kernel, gamma, degree, coef0, tol, max_iter, class_weight, probability, random_state,
    decision_function_shape : as in ``sklearn.svm.SVC``; kernel is linear, poly, rbf or
        precomputed, gamma a number, "scale" or "auto", and ``tol`` is the relative duality gap.
    model : "csvm", "lpsvm" (l1 norm) or "lssvm" (squared loss).
    fit_intercept : whether to have a bias, which is never penalised.
    solver : "auto", "nesvm", "homotopy", "newton" or "coordinate".
    multiclass : "ovo" or "ovr"; by default "ovr" when linear, "ovo" with a kernel.
    warm_start : start a linear fit from the last one.
    cache_mb, time_limit : memory for kernel rows, seconds of solving.
    approx, landmarks : "nystroem" approximates poly or rbf by so many landmarks (1000 if
        None), for many rows.

    Attributes
    ----------
    coef_, intercept_ : of the linear sub-problems, a row each.
    support_, support_vectors_, dual_coef_ : of kernel machines; a row of ``dual_coef_`` for each
        sub-problem.
    gap_, objective_, dual_objective_ : the largest certified gap, the sums of the bounds.
    n_iter_ : iterations of the longest sub-problem.
    machine_ : the ``nesvm_jit.Machine``; ``machine_.save(path)`` writes a model file of the class
        numbers 0, 1, ...
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: str = "linear",
        gamma: float | str | None = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        model: str = "csvm",
        fit_intercept: bool = True,
        solver: str = "auto",
        tol: float = 1e-3,
        multiclass: str | None = None,
        decision_function_shape: str = "ovr",
        probability: bool = False,
        class_weight: Any = None,
        warm_start: bool = False,
        cache_mb: float | None = None,
        approx: str | None = None,
        landmarks: int | None = None,
        max_iter: int = 100_000,
        time_limit: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.model = model
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.tol = tol
        self.multiclass = multiclass
        self.decision_function_shape = decision_function_shape
        self.probability = probability
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.cache_mb = cache_mb
        self.approx = approx
        self.landmarks = landmarks
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    classes_: np.ndarray

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "NESVC":
        """Train on X, dense or sparse, and labels y."""
        X, y = validate_data(
            self, X, y, dtype=DTYPES, order="C", accept_sparse="csr", accept_large_sparse=True
        )
        classes, codes = np.unique(y, return_inverse=True)
        if y.dtype.kind not in "biuSU" or 2 * len(classes) > len(y):
            check_classification_targets(y)  # else there is nothing that it would find
        if len(classes) < 2:
            raise ValueError(f"y must hold at least 2 classes, got 1 class: {classes[0]}")
        # a positive score speaks for the second of two classes here, for the first in LIBSVM
        order = [1, 0] if len(classes) == 2 else np.arange(len(classes))
        self.machine_ = train_silently(
            _checked(X),
            codes,
            multiclass=self.multiclass,
            probability=bool(self.probability),
            sample_weight=self._row_weights(X, y, classes, codes, sample_weight),
            classes=order,
            warm=self._last_machine(X, classes),
            keep_duals=bool(self.warm_start and self.kernel == "linear"),
            **self._settings(),
        )
        self.classes_ = classes
        self._set_attributes(X)
        return self

    def _settings(self) -> dict[str, Any]:
        """The parameters that are settings: by the same name, or by scikit-learn's."""
        kind: Any = type(self)
        return {
            **{name: getattr(self, name) for name in _shared_names(kind)},
            "bias": bool(self.fit_intercept),
            "seed": int(check_random_state(self.random_state).randint(2**31)),
            "max_iter": sys.maxsize if self.max_iter == -1 else self.max_iter,
        }

    def _row_weights(
        self, X: Any, y: Any, classes: np.ndarray, codes: np.ndarray, sample_weight: Any
    ) -> np.ndarray | None:
        """The weights of rows times those of their classes."""
        weight = None
        if sample_weight is not None:
            weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
        if self.class_weight is not None:
            by_class = compute_class_weight(self.class_weight, classes=classes, y=y)
            weight = by_class[codes] * (1.0 if weight is None else weight)
        return weight

    def _last_machine(self, X: Any, classes: np.ndarray) -> Machine | None:
        """What a warm start begins from: the last machine, if it has the shape of the next."""
        last: Machine | None = getattr(self, "machine_", None)
        if not (self.warm_start and self.kernel == "linear") or last is None:
            return None
        fits = (
            last.record.weights is not None
            and last.n_features == X.shape[1]
            and np.array_equal(classes, self.classes_)
            and last.record.multiclass == (self.multiclass or "ovr")
        )
        return last if fits else None

    def _set_attributes(self, X: Any) -> None:
        machine, record = self.machine_, self.machine_.record
        problems = record.extra["problems"]
        for name in ("coef_", "support_", "support_vectors_", "dual_coef_"):
            self.__dict__.pop(name, None)  # of another kernel
        self.intercept_ = record.bias
        if record.weights is not None:
            self.coef_ = np.ascontiguousarray(record.weights.T)
        else:
            assert record.coefs is not None
            self.support_ = machine.support_rows
            self.support_vectors_ = X[machine.support_rows]
            self.dual_coef_ = np.ascontiguousarray(record.coefs.T)
        self.gap_ = max(p["gap"] for p in problems)
        self.objective_ = sum(p["objective"] for p in problems)
        self.dual_objective_ = sum(p["dual_objective"] for p in problems)
        self.n_iter_ = max(p["iterations"] for p in problems)
        said = describe_uncertified(outcomes_of(problems), self.tol)
        if said:
            warnings.warn(said, ConvergenceWarning, stacklevel=3)

    def _scores(self, X: Any) -> np.ndarray:
        """A column per sub-problem."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=DTYPES, order="C", accept_sparse="csr", reset=False)
        return self.machine_.scores(_checked(X))

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores: positive for classes_[1] of two classes; else one column per class, or per
        pair of classes with decision_function_shape="ovo"."""
        if self.decision_function_shape not in ("ovr", "ovo"):
            got = self.decision_function_shape
            raise ValueError(f"decision_function_shape must be 'ovr' or 'ovo', got {got!r}")
        scores = self._scores(X)
        if scores.shape[1] == 1:
            return scores[:, 0]
        by_pairs = self.machine_.record.multiclass == "ovo"
        if by_pairs and self.decision_function_shape == "ovr":
            return ovo_decision(scores, len(self.classes_))
        return scores

    def predict(self, X: Any) -> np.ndarray:
        """The label of every row."""
        scores = self._scores(X)
        chosen = self.machine_.chosen(scores)
        return self.classes_[self.machine_.classes[chosen].astype(np.intp)]

    @available_if(lambda self: self.probability or _refuse(self))
    def predict_proba(self, X: Any) -> np.ndarray:
        """A probability for every row and class, in the order of classes_."""
        scores = self._scores(X)
        found = self.machine_.probabilities(scores)
        return found[:, np.argsort(self.machine_.classes)]

    @available_if(lambda self: self.probability or _refuse(self))
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """The logarithm of `predict_proba`."""
        return np.log(self.predict_proba(X))


def _checked(X: Any) -> Matrix:
    """X as `validate_data` returned it; it looks for NaN unless it is told to assume none."""
    return as_matrix(X, borrow=True) if get_config()["assume_finite"] else as_validated(X)


@functools.lru_cache
def _shared_names(estimator: Any) -> tuple[str, ...]:
    """The parameters of an estimator class that are settings."""
    known = {row.name for row in fields(Settings)}
    return tuple(name for name in estimator._get_param_names() if name in known)


def _refuse(estimator: NESVC) -> NoReturn:
    raise AttributeError("predict_proba is not available when probability=False")
