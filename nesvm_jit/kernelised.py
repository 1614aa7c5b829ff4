"""The kernel form of a binary problem: f = Kβ + b, penalty ½βᵀKβ (‖β‖₁ in lpsvm)."""

from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import eigvalsh_tridiagonal

from .errors import InputError
from .jit import memory_bytes
from .kernels.gram import as_spec, gram
from .kernels.sums import row_norms
from .kernels.sweep import HINGE, SQUARE
from .matrix import Csr, Matrix, as_matrix, as_number, as_scipy, shape
from .models.kernel_problem import KernelProblem, KernelRows
from .narrow import narrowed
from .settings import Settings
from .solvers import Run
from .solvers.least_squares import least_squares
from .solvers.pairwise import pairwise

SYMMETRIC = 1e-10  # of the largest entry of a precomputed kernel
INDEFINITE = 1e-6  # of the largest eigenvalue, below zero: more than rounding
LANCZOS_STEPS = 40
ROUNDING = 0.03  # of the tolerance
NOT_SEMIDEFINITE = (
    "a kernel matrix must be positive semidefinite, or nothing could be certified; "
    "this one has a negative eigenvalue"
)


def gamma_of(gamma, X: Matrix) -> float:
    """γ as a number: 1/features by default, 1/(features · variance of X) for "scale"."""
    n, p = shape(X)
    if gamma is None or gamma == "auto":
        return 1.0 / max(p, 1)
    if gamma == "scale":
        cells = max(1, n * p)
        values = X if isinstance(X, np.ndarray) else X.data
        mean = float(values.sum(dtype=np.float64)) / cells
        square = float(np.square(values, dtype=np.float64).sum()) / cells
        variance = square - mean * mean
        return 1.0 / (p * variance) if variance > 0.0 else 1.0
    return as_number("gamma", gamma)


def budget_bytes(cache_mb: float | None) -> float:
    """The memory for kernel rows: what is asked for, or a quarter of the machine's."""
    return 0.25 * memory_bytes() if cache_mb is None else cache_mb * 2.0**20


def solve_kernel(
    X: Matrix, y: np.ndarray, c: np.ndarray, settings: Settings, rows: KernelRows | None = None
) -> Any:
    """A `Solution` with β in place of w; the rows of the kernel matrix may be there already."""
    from .binary import limits, run_to_the_end, solution

    if settings.model == "lpsvm":
        return _solve_l1(X, y, c, settings)
    budget = budget_bytes(settings.cache_mb)
    loss = HINGE if settings.model == "csvm" else SQUARE
    rows = rows or _rows(X, settings, budget)
    problem = KernelProblem(rows, y, c, settings.bias, loss)
    run = Run(problem, limits(settings))
    if settings.model == "csvm":
        run.engine, work = "coordinate", partial(pairwise, problem, None, run)
    else:
        run.engine, work = "newton", partial(least_squares, problem, budget, run)
    if settings.solver == "auto":
        run.why = f"the engine of {settings.model} with a kernel"
    run_to_the_end(run, work)
    point = np.zeros(len(y) + 1) if run.best is None else run.best
    beta, b = problem.split(point)
    if not np.array_equal(beta, problem.beta) or (loss == SQUARE and not c.all()):
        problem.place(beta)
    found = {"w": None, "beta": beta.copy(), "b": b, "margins": problem.f + b}
    run.certify()
    run.settle(problem.evaluate(point).objective)
    if run.dual > run.objective + INDEFINITE * abs(run.objective):
        raise InputError(NOT_SEMIDEFINITE)
    return solution(run, settings, **found)


def _rows(X: Matrix, settings: Settings, budget: float) -> KernelRows:
    if settings.kernel == "precomputed":
        return KernelRows(None, None, budget, K=_precomputed(X))
    gamma = gamma_of(settings.gamma, X)
    spec = as_spec(settings.kernel, gamma, settings.coef0, settings.degree, shape(X)[1])
    dtype, epsilon = precision(X, settings, gamma)
    return KernelRows(narrowed(X)[0][0], spec, budget, dtype, epsilon=epsilon)


def precision(X: Matrix, settings: Settings, gamma: float) -> tuple[Any, float]:
    """float32 for kernel values whose rounding is far below the tolerance, and their error.

    In exp(−γ‖x − z‖²) the exponent is off by a few roundings of γ‖x‖², and the value by as much.
    """
    double = np.float64, float(np.finfo(np.float64).eps)
    if settings.kernel != "rbf" or settings.model != "csvm":
        return double
    reach = gamma * float(row_norms(X)[0].max(initial=0.0)) ** 2
    epsilon = float(np.finfo(np.float32).eps) * (1.0 + 2.0 * reach)
    return (np.float32, epsilon) if epsilon <= ROUNDING * settings.tol else double


def shared_matrix(X: Matrix, settings: Settings) -> tuple[np.ndarray, float] | None:
    """The whole kernel matrix and its error, for several problems on the same rows; None where it
    takes more than half the budget."""
    gamma = gamma_of(settings.gamma, X)
    dtype, epsilon = precision(X, settings, gamma)
    n = shape(X)[0]
    if float(n) * n * np.dtype(dtype).itemsize > 0.5 * budget_bytes(settings.cache_mb):
        return None
    kernel = (settings.kernel, gamma, settings.coef0, settings.degree)
    return gram(narrowed(X)[0][0], None, *kernel, dtype=dtype), epsilon


def _precomputed(X: Matrix) -> np.ndarray:
    K = as_scipy(X).toarray() if isinstance(X, Csr) else X
    n, p = K.shape
    if n != p:
        raise InputError(f"a precomputed kernel must be square, got {n} rows and {p} columns")
    for lo in range(0, n, 256):
        part = K[lo : lo + 256]
        apart = np.abs(part - K[:, lo : lo + 256].T).max(initial=0.0)
        if apart > SYMMETRIC * np.abs(part).max(initial=0.0):
            raise InputError(
                "a precomputed kernel must be symmetric, got K[i, j] and K[j, i] apart"
            )
    lowest, highest = _extreme_eigenvalues(K)
    if lowest < -INDEFINITE * max(highest, -lowest):
        raise InputError(f"{NOT_SEMIDEFINITE} near {lowest:.3g}, the largest being {highest:.3g}")
    return K


def _extreme_eigenvalues(K: np.ndarray) -> tuple[float, float]:
    """Eigenvalues near the least and the largest of K, never outside, by Lanczos."""
    n = len(K)
    v = np.random.default_rng(0).standard_normal(n)
    basis = np.zeros((min(LANCZOS_STEPS, n), n))
    diagonal: list[float] = []
    beside: list[float] = []
    for k in range(len(basis)):
        basis[k] = v / np.linalg.norm(v)
        v = K @ basis[k]
        diagonal.append(float(basis[k] @ v))
        for _ in range(2):  # the second time for what rounding left
            v = v - basis[: k + 1].T @ (basis[: k + 1] @ v)
        beside.append(float(np.linalg.norm(v)))
        if beside[-1] <= 1e-12 * abs(diagonal[0]):
            break
    values = eigvalsh_tridiagonal(diagonal, beside[: len(diagonal) - 1])
    return float(values[0]), float(values[-1])


def _solve_l1(X: Matrix, y: np.ndarray, c: np.ndarray, settings: Settings):
    """‖β‖₁ as penalty: the linear LP-SVM whose features are the columns of K."""
    from dataclasses import replace

    from .binary import solve_checked

    if settings.kernel == "precomputed":
        K = _precomputed(X)
    else:
        n = shape(X)[0]
        budget = budget_bytes(settings.cache_mb)
        if 8.0 * n * n > budget:
            raise InputError(
                f"lpsvm with a kernel needs {8 * n * n / 2**20:.0f} MB for its {n} rows, "
                f"got a budget of {budget / 2**20:.0f} MB"
            )
        kernel = (settings.kernel, gamma_of(settings.gamma, X), settings.coef0, settings.degree)
        K = gram(narrowed(X)[0][0], None, *kernel)
    used = np.flatnonzero(c)  # a row without weight is no feature either
    K = K if len(used) == len(c) else np.ascontiguousarray(K[:, used])
    found = solve_checked(as_matrix(K), y, c, replace(settings, kernel="linear"))
    beta = np.zeros(len(c))
    beta[used] = found.w
    return replace(found, w=None, beta=beta)
