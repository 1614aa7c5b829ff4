"""`nesvm_jit.certify`: how far any model is from the optimum, proven without training."""

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse import vstack

from ..binary.costs import costs
from ..errors import InputError
from ..jit import interpreted_first
from ..machine.jobs import Problem, make_problems
from ..matrix.checks import as_matrix, as_vector
from ..matrix.matrix import Csr, Matrix
from ..matrix.rows import as_scipy, take_rows, widen
from ..settings import positive
from .given import FREE, PENALISED, Given, as_given
from .kernel import prove_kernel
from .linear import prove_linear, with_feature
from .matching import Matched, match
from .posed import Posed, Proven
from .result import Certificate, ProblemBounds
from .sums import exact_bounds

POLISH = 2.0  # seconds for models without coefficients, unless something else is asked for


@interpreted_first
def certify(
    model: Any,
    X: Any,
    y: Any,
    C: float | None = None,
    *,
    class_weight: Any = None,
    sample_weight: Any = None,
    bias: bool = True,
    bias_feature: float | None = None,
    polish: float | None = None,
    exact: bool = False,
) -> Certificate:
    """Prove how far a model is from the optimum of its problem on X and y.

    `model` is a `Machine`, a file of ours, of LIBSVM or LIBLINEAR, a trained SVC, LinearSVC or
    NESVC of scikit-learn, or (w, b) of labels −1 and +1, whose b is free, absent if not `bias`, or
    the weight of a feature of value `bias_feature`. C and weights of classes are the model's own,
    where it says them, else 1. For `polish` seconds in all the dual point is made better; by
    default two where it has to be made of margins, and none where the model has coefficients. With
    `exact` the bounds are added up in rational arithmetic, for small data.
    """
    start = time.perf_counter()
    given = as_given(model, bias, bias_feature)
    X = as_matrix(X, borrow=True)
    checker = Checker(given, X, y, C, class_weight, sample_weight)
    if polish is not None:
        positive("polish", polish, zero=True)
    return checker.run(start, polish, bool(exact))


class Checker:
    """A model, the data and the costs of rows; sub-problems are proven one by one."""

    def __init__(
        self, given: Given, X: Matrix, y: Any, C: Any, class_weight: Any, sample_weight: Any
    ):
        self.given, record = given, given.record
        self.X = _fitting(X, record.n_features, record.kernel)
        self.y = _numbers_of(given, y, X.shape[0])
        self.C = _cost(given, C)
        numbers = np.arange(len(record.classes))
        weights = _weights(given, class_weight)
        self.c = costs(self.C, self.y, numbers, sample_weight, weights)
        self.plain = costs(self.C, self.y, numbers, sample_weight, None)
        self.problems = make_problems(self.y, numbers, record.multiclass)
        self.notes: list[str] = []
        self.matched = None if record.coefs is None else self._match()

    def run(self, start: float, polish: float | None, exact: bool) -> Certificate:
        """Prove every sub-problem."""
        each = (POLISH if polish is None else polish) / len(self.problems)
        seconds = (0.0 if polish is None else each, each)
        found = [
            self._prove(number, problem, seconds, exact)
            for number, problem in enumerate(self.problems)
        ]
        record, (n, p) = self.given.record, self.X.shape
        return Certificate(
            model=record.model,
            kernel=record.kernel,
            C=self.C,
            bias=self.given.bias,
            multiclass=record.multiclass if len(record.classes) > 2 else None,
            n_samples=n,
            n_features=p,
            n_classes=len(record.classes),
            problems=tuple(found),
            notes=tuple(dict.fromkeys(self.notes)),
            seconds=time.perf_counter() - start,
        )

    def _prove(
        self, number: int, problem: Problem, seconds: tuple[float, float], exact: bool
    ) -> ProblemBounds:
        given, record = self.given, self.given.record
        part = np.arange(len(self.y)) if problem.rows is None else problem.rows
        sign = np.where(self.y[part] == problem.i, 1.0, -1.0)
        c = self.c[part]
        if problem.j is None and not given.rest_weighted:
            c = np.where(sign > 0.0, c, self.plain[part])
        posed = Posed(sign, c, given.bias == FREE, *seconds)
        if record.kernel == "linear":
            X, proven = self._prove_linear(number, part, posed)
        else:
            X, posed, proven = self._prove_kernel(number, part, posed)
        bounds = (proven.objective, proven.dual_objective)
        if exact:
            bounds = exact_bounds(record, X, posed, proven)
        sides = (
            (given.name(problem.i),)
            if problem.j is None
            else (
                given.name(problem.i),
                given.name(problem.j),
            )
        )
        return ProblemBounds(
            sides, len(part), *bounds, proven.dual_point, float(proven.passes), exact
        )

    def _prove_linear(self, number: int, part: np.ndarray, posed: Posed) -> tuple[Matrix, Proven]:
        given, record = self.given, self.given.record
        X = self.X if len(part) == len(self.y) else take_rows(self.X, part)
        b, alpha = float(record.bias[number]), None
        if record.coefs is None:
            assert record.weights is not None
            w = record.weights[:, number]
        else:
            assert record.support is not None
            column = record.coefs[:, number]
            w = record.support.T @ column
            alpha = self._alpha(column, part, posed.sign)
            self._warn_of_bounds(alpha, posed.c)
        w = np.append(w, np.zeros(self.X.shape[1] - len(w)))
        if given.bias == PENALISED:
            X = with_feature(X, given.feature)
            w, b = np.append(w, b / given.feature), 0.0
        w = np.ascontiguousarray(w)
        return X, prove_linear(X, posed, record.model, w, b, alpha)

    def _prove_kernel(
        self, number: int, part: np.ndarray, posed: Posed
    ) -> tuple[Matrix, Posed, Proven]:
        record, matched = self.given.record, self.matched
        assert record.coefs is not None
        assert matched is not None
        column, place = record.coefs[:, number], np.full(len(self.y), -1)
        place[part] = np.arange(len(part))
        where = np.where(matched.same, place[matched.rows], -1)
        extra = np.flatnonzero((where < 0) & (column != 0.0))
        beta = np.zeros(len(part) + len(extra))
        inside = where >= 0
        np.add.at(beta, where[inside], column[inside])
        beta[len(part) :] = column[extra]
        alpha = self._alpha(column, part, posed.sign)
        if record.model == "csvm" and "approx" not in record.extra:
            self._warn_of_bounds(alpha, posed.c)
        if alpha is not None:
            alpha = np.append(alpha, np.zeros(len(extra)))
        X = self._rows_and_vectors(part, extra)
        posed = posed._replace(
            sign=np.append(posed.sign, np.ones(len(extra))),
            c=np.append(posed.c, np.zeros(len(extra))),
        )
        return X, posed, prove_kernel(X, posed, record, beta, float(record.bias[number]), alpha)

    def _rows_and_vectors(self, part: np.ndarray, extra: np.ndarray) -> Matrix:
        """The rows of a sub-problem, and below them vectors of the model that are no rows."""
        record = self.given.record
        if record.kernel == "precomputed":
            K = as_scipy(self.X).toarray() if isinstance(self.X, Csr) else self.X
            return as_matrix(np.ascontiguousarray(K[np.ix_(part, part)]))
        X = self.X if len(part) == len(self.y) else take_rows(self.X, part)
        if not len(extra):
            return X
        assert record.support is not None
        vectors = record.support[extra]
        vectors.resize(len(extra), X.shape[1])
        if isinstance(X, Csr):
            return as_matrix(vstack([as_scipy(X).astype(np.float64), vectors], format="csr"))
        return as_matrix(np.vstack([X.astype(np.float64), vectors.toarray()]))

    def _match(self) -> Matched:
        """The rows that the support vectors are."""
        record = self.given.record
        if record.kernel == "precomputed":
            index = record.support_index
            assert index is not None
            return Matched(index, np.ones(len(index), dtype=bool))
        hint = self.given.support_rows
        found = match(record.support, as_scipy(self.X), record.sv_class, self.y, hint)
        missing = int(np.count_nonzero(found.rows < 0))
        if missing and "approx" not in record.extra:
            self.notes.append(
                f"{missing} of {len(found.rows)} support vectors are no rows of the data: is it "
                "what the model was trained on?"
            )
        return found

    def _alpha(self, column: np.ndarray, part: np.ndarray, sign: np.ndarray) -> np.ndarray | None:
        """α∘y = the coefficients, of the rows that the support vectors are; None where none is."""
        assert self.matched is not None
        place = np.full(len(self.y), -1)
        place[part] = np.arange(len(part))
        where = np.where(self.matched.rows >= 0, place[self.matched.rows], -1)
        used = (where >= 0) & (column != 0.0)
        if not used.any():
            return None
        signed = np.zeros(len(part))
        signed[where[used]] = column[used]
        return signed * sign

    def _warn_of_bounds(self, alpha: np.ndarray | None, c: np.ndarray) -> None:
        if alpha is not None and (alpha > 1.001 * c).any():
            k = int((alpha - c).argmax())
            self.notes.append(
                f"a coefficient of the model is {alpha[k]:.4g}, above the cost {c[k]:.4g} of its "
                "row: was it trained with another C, or with weights?"
            )


def _fitting(X: Matrix, n_features: int, kernel: str) -> Matrix:
    """X with as many columns as the model has features, at least."""
    n, p = X.shape
    if kernel == "precomputed":
        if p != n:
            raise InputError(f"a precomputed kernel must be square, got {n} rows and {p} columns")
        if n_features > n:
            raise InputError(f"the model is of {n_features} samples at least, got {n} rows")
        return X
    if p == n_features:
        return X
    if not isinstance(X, Csr):
        raise InputError(f"X must have {n_features} columns, got {p}")
    return widen(X, max(p, n_features))


def _numbers_of(given: Given, y: Any, n: int) -> np.ndarray:
    """The number of every row's class, as the model counts them."""
    if given.names is None:
        y, labels = as_vector("y", y, n), given.record.classes
    else:
        y, labels = np.asarray(y), np.asarray(given.names)
        if y.shape != (n,):
            raise InputError(f"y must have length {n}, got shape {y.shape}")
    numbers = np.full(n, -1)
    for k, label in enumerate(labels):
        numbers[y == label] = k
        if not (numbers == k).any():
            raise InputError(f"y must hold every class of the model, got no {given.name(k)}")
    if (numbers < 0).any():
        unknown = y[numbers < 0][0]
        raise InputError(f"y must hold classes of the model alone, got {unknown}")
    return numbers


def _cost(given: Given, C: Any) -> float:
    if C is None:
        return 1.0 if given.C is None else given.C
    positive("C", C)
    return float(C)


def _weights(given: Given, class_weight: Any) -> Any:
    """Weights of classes by their numbers."""
    if class_weight is None and given.class_weight is not None:
        class_weight = given.class_weight
        if isinstance(class_weight, Mapping):  # of the record's classes
            numbers = {float(label): k for k, label in enumerate(given.record.classes)}
            return {float(numbers[label]): w for label, w in class_weight.items()}
    if not isinstance(class_weight, Mapping):
        return class_weight
    names = [given.name(k) for k in range(len(given.record.classes))]
    unknown = [label for label in class_weight if label not in names]
    if unknown:
        raise InputError(f"class_weight must be of classes of the model, got {unknown[0]!r:.40}")
    return {float(names.index(label)): weight for label, weight in class_weight.items()}
