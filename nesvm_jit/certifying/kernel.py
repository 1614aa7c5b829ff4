"""Bounds of a kernel machine: coefficients of rows, or of vectors that are no rows."""

import numpy as np

from ..binary.kernel_matrix import precomputed_matrix
from ..errors import InputError
from ..files.model.record import ModelRecord
from ..jit import memory_bytes
from ..kernels import gram
from ..kernels.loss import HINGE, SQUARE
from ..kernels.public import as_spec
from ..matrix.checks import as_matrix
from ..matrix.matrix import Matrix
from ..matrix.rows import narrowed
from ..models import MODELS
from ..problems.kernel import KernelProblem
from ..problems.kernel_errors import entries_of
from ..problems.kernel_rows import KernelRows
from ..problems.rounding import Columns
from .linear import WIDTHS, prove_linear
from .polish import KernelDual, polish
from .posed import COEFFICIENTS, MARGINS, POLISHED, Posed, Proven

BUDGET = 0.125  # share of the memory that kernel rows may take
OUTSIDE = 1e-9  # share of its bound by which a coefficient may exceed it and be one of a dual point


def kernel_of(X: Matrix, record: ModelRecord) -> KernelRows:
    """The rows of the kernel matrix between all rows of X."""
    if record.kernel == "precomputed":
        K, entries = precomputed_matrix(X)
        return KernelRows(None, None, 0.0, K=K, entries=entries)
    if record.kernel == "poly" and record.coef0 < 0.0:
        raise InputError(
            f"coef0 must not be negative: such a polynomial is no kernel, got {record.coef0:g}"
        )
    narrow = narrowed(X)[0][0]
    spec = as_spec(record.kernel, record.gamma, record.coef0, record.degree, X.shape[1])
    return KernelRows(narrow, spec, BUDGET * memory_bytes())


def prove_kernel(
    X: Matrix,
    posed: Posed,
    record: ModelRecord,
    beta: np.ndarray,
    b: float,
    alpha: np.ndarray | None,
) -> Proven:
    """P at (β, b) and the best D that the coefficients lead to, or the margins. Rows without a
    cost are vectors of the model that are no rows of the data."""
    if record.model == "lpsvm":
        return _prove_on_columns(X, posed, record, beta, b)
    rows, loss = kernel_of(X, record), MODELS[record.model]().loss
    problem = KernelProblem(rows, posed.sign, posed.c, posed.bias, loss)
    came_from, seconds = COEFFICIENTS, posed.with_coefficients
    if alpha is None or not _is_dual_point(alpha, posed, loss):
        seconds = posed.without
        alpha, came_from = _best_start(problem, beta, b, alpha)
    if loss == HINGE and seconds > 0.0:
        alpha, came_from = polish(KernelDual(problem, alpha), seconds), POLISHED
    found = problem.settle(np.append(beta, b), alpha)
    point = (found.objective, found.dual.value, found.beta, b, found.dual.alpha)
    return Proven(*point, came_from, problem.passes).at_least_zero()


def _is_dual_point(alpha: np.ndarray, posed: Posed, loss: int) -> bool:
    """Whether α is feasible but for rounding."""
    room = OUTSIDE * float(posed.c.max())
    outside = loss == HINGE and bool((alpha < -room).any() or (alpha > posed.c + room).any())
    excess = abs(float(alpha @ posed.sign)) if posed.bias else 0.0
    return not outside and excess <= 1e-6 * float(np.abs(alpha).sum())


def _best_start(
    problem: KernelProblem, beta: np.ndarray, b: float, alpha: np.ndarray | None
) -> tuple[np.ndarray, str]:
    """The best feasible point near the coefficients, where there are some, or of the margins."""
    y, c = problem.y, problem.c
    r = 1.0 - y * (problem.rows.times(beta)[0] + b)
    if problem.loss == SQUARE:
        tried = [2.0 * c * r]
    else:
        tried = [c * np.clip(0.5 + r / width, 0.0, 1.0) for width in WIDTHS]
    names = [MARGINS] * len(tried)
    if alpha is not None:
        tried, names = [alpha, *tried], [COEFFICIENTS, *names]
    signed = [problem.feasible(a * y) for a in tried]
    points = [
        problem.scaled(v, f) for v, f in zip(signed, problem.rows.times(*signed), strict=True)
    ]
    best = int(np.argmax([point.value for point in points]))
    return points[best].alpha, names[best]


def _prove_on_columns(
    X: Matrix, posed: Posed, record: ModelRecord, beta: np.ndarray, b: float
) -> Proven:
    """LP-SVM: the linear machine whose features are the columns of K."""
    used = np.flatnonzero(posed.c)
    if np.count_nonzero(beta) > np.count_nonzero(beta[used]):
        raise InputError("the support vectors of an LP-SVM must be rows of the data")
    columns = None
    if record.kernel == "precomputed":
        K = precomputed_matrix(X)[0]
    else:
        narrow = narrowed(X)[0][0]
        kernel = (record.kernel, record.gamma, record.coef0, record.degree)
        K = gram(narrow, None, *kernel)
        entries = entries_of(narrow, as_spec(*kernel, X.shape[1]), np.float64)
        columns = Columns(entries, entries.roots[used])
    features = as_matrix(np.ascontiguousarray(K[:, used]))
    found = prove_linear(features, posed, record.model, beta[used], b, None, columns)
    whole = np.zeros(len(beta))
    whole[used] = found.point
    return found._replace(point=whole)
