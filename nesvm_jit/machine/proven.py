"""Prove that labels are those of the exact optimum, with the bounds of problems/labels.py."""

from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError
from ..files.model.record import ModelRecord
from ..kernels.public import as_spec
from ..kernels.sums import _margins, norms_of, row_chunks
from ..matrix.checks import as_matrix
from ..matrix.matrix import Csr, Matrix
from ..matrix.rows import as_scipy, first_columns, narrowed, take_rows
from ..problems.blocks import count_cells
from ..problems.kernel_rows import KernelRows
from ..problems.labels import radius_of
from ..problems.rounding import TINY, above, growth, norm_above, row_norms_above
from ..settings import HALF_SQUARE
from .multiclass import pairs

BLOCK = 4096  # rows whose kernel values are in memory at the same time


class Scores(NamedTuple):
    """x·w of every row and sub-problem, a bound of its error, and an upper bound of ‖x‖."""

    products: np.ndarray
    off: np.ndarray
    norms: np.ndarray


def proven_classes(record: ModelRecord, problems: list[dict[str, Any]], X: Matrix) -> np.ndarray:
    """Return for each row the number of the class that the exact optimum is proven to choose; −1
    where there is no proof. The machine itself may choose another one: far from the optimum, its
    bias can be outside all that is possible for the optimal one."""
    _require_provable(record, problems)
    n, k = X.shape[0], len(record.classes)
    found = np.full(n, -1)
    for lo in range(0, n, BLOCK):
        hi = min(n, lo + BLOCK)
        block = take_rows(X, np.arange(lo, hi))
        scores = _linear(record, block) if record.weights is not None else _kernel(record, block)
        low, high = _bounds(record, problems, scores)
        found[lo:hi] = _decided(low, high, k, record.multiclass)
    return found


def _require_provable(record: ModelRecord, problems: list[dict[str, Any]]) -> None:
    if not problems:
        raise InputError("labels are proven for models of this program, which hold a certificate")
    if record.model not in HALF_SQUARE:
        raise InputError(
            f"labels are proven for {' and '.join(HALF_SQUARE)}, whose penalty is strongly convex, "
            f"got {record.model}"
        )
    if "approx" in record.extra or record.kernel == "precomputed":
        what = "an approximation" if "approx" in record.extra else "a precomputed kernel"
        raise InputError(f"labels are proven for linear, poly and rbf machines, got {what}")
    if record.extra.get("bias") and not all(_has_range(p) for p in problems):
        raise InputError(
            "the model must hold bounds of its bias: train it on rows in memory, or without a bias"
        )


def _has_range(problem: dict[str, Any]) -> bool:
    ends = problem.get("bias_range")
    if not isinstance(ends, list) or len(ends) != 2:
        return False
    return all(isinstance(v, float) and v == v for v in ends)


def _bounds(
    record: ModelRecord, problems: list[dict[str, Any]], scores: Scores
) -> tuple[np.ndarray, np.ndarray]:
    """Return lower and upper bounds of the scores of the exact optimum."""
    low, high = np.empty_like(scores.products), np.empty_like(scores.products)
    for k, problem in enumerate(problems):
        radius = radius_of(problem["objective"], problem["dual_objective"])
        ends = problem["bias_range"] if record.extra.get("bias") else (0.0, 0.0)
        g = scores.products[:, k]
        reach = above(radius * scores.norms + scores.off[:, k], 4)
        for out, end, side in ((low, ends[0], -1.0), (high, ends[1], 1.0)):
            slip = growth(4.0) * (np.abs(g) + reach + abs(end))
            out[:, k] = g + end + side * (reach + slip)
    return low, high


def _decided(low: np.ndarray, high: np.ndarray, k: int, multiclass: str) -> np.ndarray:
    """Return for each row the class that all scores between the bounds choose, −1 if they do not
    agree."""
    if k == 2:
        return np.select([low[:, 0] > 0.0, high[:, 0] < 0.0], [0, 1], -1)
    if multiclass == "ovr":
        best, rows = low.argmax(axis=1), np.arange(len(low))
        others = high.copy()
        others[rows, best] = -np.inf
        return np.where(low[rows, best] > others.max(axis=1), best, -1)
    least, most = np.zeros((2, len(low), k))  # wins of each class
    for number, (i, j) in enumerate(pairs(k)):
        least[:, i] += low[:, number] > 0.0
        most[:, i] += ~(high[:, number] < 0.0)
        least[:, j] += high[:, number] < 0.0
        most[:, j] += ~(low[:, number] > 0.0)
    wins = np.ones(least.shape, dtype=bool)
    for i in range(k):
        for j in range(k):
            if i != j:  # of equal scores the first one is chosen
                wins[:, i] &= least[:, i] >= most[:, j] + (i > j)
    return np.where(wins.any(axis=1), wins.argmax(axis=1), -1)


def _linear(record: ModelRecord, X: Matrix) -> Scores:
    weights = record.weights
    assert weights is not None
    X = first_columns(X, len(weights)) if isinstance(X, Csr) else X
    n, p = X.shape
    cells = np.broadcast_to(count_cells(X), n)
    norms = row_norms_above(norms_of(X)[0], cells)
    products, off = np.empty((n, weights.shape[1])), np.empty((n, weights.shape[1]))
    for k, column in enumerate(weights.T):
        w, f = np.ascontiguousarray(column[:p]), np.empty(n)
        _margins(row_chunks(X), X, w, 0.0, f)
        products[:, k] = f
        off[:, k] = growth(cells + 8.0) * norms * norm_above(w) + (cells + 1.0) * TINY
    return Scores(products, off, norms)


def _kernel(record: ModelRecord, X: Matrix) -> Scores:
    """Compute the scores from K between the support vectors and the rows, in float64."""
    assert record.coefs is not None
    assert record.support is not None
    m, n = len(record.coefs), X.shape[0]
    width = max(X.shape[1], record.n_features)
    rows, vectors = as_scipy(X).astype(np.float64), record.support.copy()
    rows.resize(n, width)
    vectors.resize(m, width)
    from scipy.sparse import vstack

    whole = narrowed(as_matrix(vstack([vectors, rows], format="csr")))[0][0]
    spec = as_spec(record.kernel, record.gamma, record.coef0, record.degree, width)
    K = KernelRows(whole, spec, 0.0)
    coefs = np.zeros((record.coefs.shape[1], m + n))
    coefs[:, :m] = record.coefs.T
    f = K.times_between(coefs, np.arange(m, m + n))[:, m:]
    roots, size = K.entries.roots, np.abs(coefs[:, :m])
    terms = np.count_nonzero(coefs, axis=1) + 8.0
    rate = above(K.entries.epsilon + growth(terms + m) * (1.0 + K.entries.epsilon), 4)
    reach = above(size @ roots[:m], m + 4.0) + m * TINY
    off = above(np.outer(roots[m:], rate * reach), 8) + m * TINY
    return Scores(f.T, off, roots[m:])
