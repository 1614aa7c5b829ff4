"""The kernel form of a binary problem: f = Kβ + b, penalty ½βᵀKβ (‖β‖₁ in lpsvm)."""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import eigvalsh_tridiagonal

from .errors import InputError
from .jit import get_threads, memory_bytes
from .kernels.gram import POLY, RBF, Spec, as_spec, centre_of, gram, reach_of
from .kernels.sums import row_norms
from .kernels.sweep import HINGE, SQUARE
from .matrix import Csr, Matrix, as_matrix, as_number, as_scipy, shape, take_rows
from .models import MODELS
from .models.kernel_problem import KernelProblem, KernelRows
from .models.kernel_rows import entry_error
from .models.smoothed_kernel import SmoothedKernel
from .narrow import narrowed
from .settings import Settings
from .solvers import Run
from .solvers.least_squares import least_squares
from .solvers.levels import newton_in_levels, pairwise_in_levels
from .solvers.pairwise import pairwise

SYMMETRIC = 1e-10  # of the largest entry of a precomputed kernel
INDEFINITE = 1e-6  # of the largest eigenvalue, below zero: more than rounding
LANCZOS_STEPS = 40
LARGEST = 1e100  # of a kernel's values: sums of their products are still numbers
SMALL = (1e-4, 1e-8)  # of the largest coefficient
MANY_RUNS = 64  # of neighbours: beyond, one by one is faster
ROUNDING = 0.1  # of the tolerance may be lost by it
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


def worker_mb(settings: Settings) -> float:
    """MB for each of the problems that run at a time, the same for any number of threads: what is
    in memory decides the order of sums."""
    workers = max(os.cpu_count() or 1, get_threads())
    return budget_bytes(settings.cache_mb) / 2.0**20 / workers


def solve_kernel(
    X: Matrix,
    y: np.ndarray,
    c: np.ndarray,
    settings: Settings,
    rows: KernelRows | None = None,
    alpha0: np.ndarray | None = None,
) -> Any:
    """A `Solution` with β in place of w; the rows of the kernel matrix may be there already, and
    pairwise steps may start from a dual point."""
    from .binary import limits, run_to_the_end, solution

    if settings.model == "lpsvm":
        return _solve_l1(X, y, c, settings, rows)
    budget = budget_bytes(settings.cache_mb)
    loss = HINGE if settings.model == "csvm" else SQUARE
    rows = rows or kernel_rows(X, settings)
    problem = KernelProblem(rows, y, c, settings.bias, loss)
    run = Run(problem, limits(settings), engine=settings.solver)
    if settings.solver == "auto":
        run.engine = "coordinate" if loss == HINGE else "newton"
        run.why = f"the engine of {settings.model} with a kernel"
    smoothed = False
    if run.engine == "coordinate":
        work = partial(_work_in_pairs, problem, settings.seed, run, alpha0)
    elif run.engine == "newton" and loss == SQUARE:
        work = partial(least_squares, problem, budget, run)
    else:
        smoothed, work = True, partial(_work_smoothed, problem, settings, run)
    run_to_the_end(run, work)
    if isinstance(run.problem, KernelProblem):
        problem = run.problem  # which may be a finer one by now
    found = {"w": None, **_standing(problem, smoothed, run)}
    if run.dual > run.objective + INDEFINITE * abs(run.objective):
        raise InputError(NOT_SEMIDEFINITE)
    return solution(run, settings, **found)


def _work_in_pairs(problem: KernelProblem, seed: int, run: Run, alpha0: np.ndarray | None) -> None:
    """Pairwise steps; on finer rows where the rounding of K alone keeps the gap open."""
    if alpha0 is None:
        pairwise_in_levels(problem, run, np.random.default_rng(seed))
    else:
        pairwise(problem, alpha0, run)
    if problem.rows.finer is None:
        return
    if run.status == "converged" and not _settled(problem, run):
        run.status = ""
    if not run.done:
        beta = problem.beta
        finer = KernelProblem(problem.rows.finer(), problem.y, problem.c, problem.bias)
        run.begin_again(finer)
        pairwise(finer, beta * problem.y, run)


def _settled(problem: KernelProblem, run: Run) -> bool:
    """Whether the tolerance is met by the best point and its bound added up afresh, too."""
    assert run.best is not None
    beta, b = problem.split(run.best)
    if not np.array_equal(beta, problem.beta):
        problem.place(beta)
        run.certify()
    run.settle(problem.evaluate(np.append(problem.beta, b)).objective)
    return run.gap <= run.limits.tol


def _work_smoothed(problem: KernelProblem, settings: Settings, run: Run) -> None:
    """The engines that minimise F_μ in the kernel's metric."""
    from .binary import first_smoothing, gradient_methods

    smooth = SmoothedKernel(problem, MODELS[settings.model]())
    zero = np.zeros(smooth.n_variables)
    if run.engine == "newton":
        moving = settings.moving_centre is not False
        newton_in_levels(smooth, run, np.random.default_rng(settings.seed), moving)
        if not run.done:  # K may be so nearly singular that only pairs of coordinates go on
            run.hand_over(problem)
            pairwise(problem, run.alpha, run)
    else:
        run.problem = smooth
        gradient_methods(smooth, zero, zero, first_smoothing(settings), settings, run)


def _standing(problem: KernelProblem, smoothed: bool, run: Run) -> dict[str, Any]:
    """β, b and the margins of the best point, certified afresh; one with exact zeros is taken
    instead where that is as good, or good enough: the dual point, or its support."""
    beta, b = run.problem.split(run.best) if run.best is not None else (problem.beta, 0.0)
    beta, run.problem = beta.copy(), problem
    if run.alpha is None or not smoothed:
        partly = problem.loss == SQUARE and not problem.c.all()  # f is not known of every row
        if partly or not np.array_equal(beta, problem.beta):
            problem.place(beta)
        run.certify()
    else:
        problem.place(run.alpha * problem.y)
        dual, found = problem.current()
        if _enough(found.objective, run):
            beta, b = problem.split(dual)
        else:
            beta = _sparsest(problem, beta, b, run)
    point = np.append(beta, b)
    margins = problem.f + b
    run.settle(problem.evaluate(point).objective)
    return {"beta": point[:-1], "b": b, "margins": margins}


def _sparsest(problem: KernelProblem, beta: np.ndarray, b: float, run: Run) -> np.ndarray:
    """β with as many exact zeros as the tolerance allows; the problem then stands there."""
    size = np.abs(beta)
    zeros = [run.alpha == 0.0, *(size <= share * size.max(initial=0.0) for share in SMALL)]
    for zero in zeros:
        part = np.where(zero, 0.0, beta)
        problem.stand(part)
        if _enough(problem.evaluate(np.append(part, b)).objective, run):
            return part
    problem.stand(beta)
    return beta


def _enough(objective: float, run: Run) -> bool:
    """Whether this P is no worse than the best, or is within the tolerance."""
    return objective <= run.objective or objective - run.dual <= run.limits.tol * objective


def kernel_rows(X: Matrix, settings: Settings) -> KernelRows:
    """The rows of the kernel matrix, kept as the budget allows."""
    budget = budget_bytes(settings.cache_mb)
    if settings.kernel == "precomputed":
        return KernelRows(None, None, budget, K=_precomputed(X))
    spec, narrow = spec_of(X, settings), narrowed(X)[0][0]
    dtype, _ = precision(narrow, settings, spec)
    return KernelRows(narrow, spec, budget, dtype)


def spec_of(X: Matrix, settings: Settings) -> Spec:
    """The kernel, whose values on these rows must be numbers: none is beyond those of a row with
    itself."""
    gamma = gamma_of(settings.gamma, X)
    spec = as_spec(settings.kernel, gamma, settings.coef0, settings.degree, shape(X)[1])
    if spec.kind == POLY:
        with np.errstate(over="ignore"):
            largest = spec.gamma * float(row_norms(X)[0].max(initial=0.0)) ** 2 + spec.coef0
            if not np.float64(largest) ** spec.degree <= LARGEST:
                raise InputError(
                    "the values of the polynomial kernel must be smaller: gamma, coef0, the degree "
                    "or X are too large"
                )
    return spec


def finer_rows(X: Matrix, settings: Settings, part: np.ndarray | None) -> KernelRows:
    """The kernel between a part of the rows (or all) in float64, for what float32 cannot settle."""
    spec = spec_of(X, settings)
    X = X if part is None else take_rows(X, part)
    return KernelRows(narrowed(X)[0][0], spec, budget_bytes(settings.cache_mb))


def precision(X: Matrix, settings: Settings, spec: Spec) -> tuple[Any, float]:
    """float32 for kernel values whose rounding is far below the tolerance, else float64, and the
    error of an entry. P feels it C times as much as it feels the losses."""
    reach = reach_of(X, spec, centre_of(X, spec))
    errors = {dtype: entry_error(X, spec, dtype, reach) for dtype in (np.float32, np.float64)}
    in_pairs = settings.model == "csvm" and settings.solver in ("auto", "coordinate")
    small = errors[np.float32] * max(1.0, settings.C) <= ROUNDING * settings.tol
    dtype = np.float32 if spec.kind == RBF and in_pairs and small else np.float64
    return dtype, errors[dtype]


@dataclass(frozen=True)
class SharedMatrix:
    """One kernel matrix for several problems, and the error of its entries."""

    K: np.ndarray
    epsilon: float
    place: np.ndarray  # of every row in K
    finer: Callable[[np.ndarray | None], KernelRows] | None

    def rows(self, part: np.ndarray | None) -> KernelRows:
        """The kernel between a part of the rows, or all."""
        K = self.K if part is None else _between(self.K, self.place[part])
        finer = partial(self.finer, part) if self.finer else None
        return KernelRows(None, None, 0.0, K=K, epsilon=self.epsilon, finer=finer)

    def between(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """A copy of the kernel between two sets of rows."""
        return self.K[self.place[rows][:, None], self.place[columns]]


def _between(K: np.ndarray, places: np.ndarray) -> np.ndarray:
    """A copy of K between these places, in runs of neighbours: as fast as memory."""
    ends = np.flatnonzero(np.diff(places) != 1) + 1
    if len(ends) > MANY_RUNS:
        return K[places[:, None], places]
    starts, stops = np.append(0, ends), np.append(ends, len(places))
    out = np.empty((len(places), len(places)), K.dtype)
    here = [
        slice(int(places[a]), int(places[b - 1]) + 1) for a, b in zip(starts, stops, strict=True)
    ]
    there = [slice(int(a), int(b)) for a, b in zip(starts, stops, strict=True)]
    for row, to in zip(here, there, strict=True):
        for column, at in zip(here, there, strict=True):
            out[to, at] = K[row, column]
    return out


def shared_matrix(X: Matrix, settings: Settings, order: np.ndarray | None) -> SharedMatrix | None:
    """The kernel matrix of all rows, in this order or as they come; None where it takes more than
    half the budget. A precomputed one is there."""
    if settings.kernel == "precomputed":
        K = _precomputed(X)
        return SharedMatrix(K, float(np.finfo(float).eps), np.arange(len(K)), None)
    spec, narrow = spec_of(X, settings), narrowed(X)[0][0]
    dtype, epsilon = precision(narrow, settings, spec)
    n = shape(X)[0]
    if float(n) * n * np.dtype(dtype).itemsize > 0.5 * budget_bytes(settings.cache_mb):
        return None
    kernel = (settings.kernel, spec.gamma, settings.coef0, settings.degree)
    place = np.arange(n)
    rows = narrow if order is None else take_rows(narrow, order)
    if order is not None:
        place[order] = np.arange(n)
    K = gram(rows, None, *kernel, dtype=dtype)
    share = replace(settings, cache_mb=0.5 * worker_mb(settings))
    finer = partial(finer_rows, X, share) if dtype == np.float32 else None
    return SharedMatrix(K, epsilon, place, finer)


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


def _solve_l1(X: Matrix, y: np.ndarray, c: np.ndarray, settings: Settings, rows: KernelRows | None):
    """‖β‖₁ as penalty: the linear LP-SVM whose features are the columns of K."""
    from .binary import solve_checked

    if rows is not None:
        K = rows.store
    elif settings.kernel == "precomputed":
        K = _precomputed(X)
    else:
        n = shape(X)[0]
        budget = budget_bytes(settings.cache_mb)
        if 8.0 * n * n > budget:
            raise InputError(
                f"lpsvm with a kernel needs {8 * n * n / 2**20:.3g} MB for its {n} rows, "
                f"got a budget of {budget / 2**20:.3g} MB"
            )
        gamma = spec_of(X, settings).gamma
        kernel = (settings.kernel, gamma, settings.coef0, settings.degree)
        K = gram(narrowed(X)[0][0], None, *kernel)
    used = np.flatnonzero(c)  # a row without weight is no feature either
    K = K if len(used) == len(c) else np.ascontiguousarray(K[:, used])
    found = solve_checked(as_matrix(K), y, c, replace(settings, kernel="linear"))
    beta = np.zeros(len(c))
    beta[used] = found.w
    return replace(found, w=None, beta=beta)
