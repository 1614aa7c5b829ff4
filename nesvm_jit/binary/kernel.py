"""The kernel form of a binary problem: f = Kβ + b, penalty ½βᵀKβ (‖β‖₁ in lpsvm)."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..errors import InputError
from ..kernels.gram import gram
from ..kernels.sweep import HINGE, SQUARE
from ..matrix.checks import as_matrix
from ..matrix.matrix import Matrix, shape
from ..matrix.rows import narrowed
from ..models import MODELS
from ..problems.kernel import KernelProblem
from ..problems.kernel_rows import KernelRows
from ..problems.smoothed_kernel import SmoothedKernel
from ..settings import Settings
from ..solvers.coarse import FIRST, newton_in_levels, pairwise_in_levels, run_in_pairs
from ..solvers.driver import always, drive, now_and_then
from ..solvers.least_squares import least_squares
from ..solvers.run import Run
from .finish import limits, run_to_the_end
from .kernel_matrix import (
    INDEFINITE,
    NOT_SEMIDEFINITE,
    budget_bytes,
    kernel_rows,
    precomputed_matrix,
    spec_of,
)
from .linear import begin_gradient, first_smoothing, gradient_method, solve_linear
from .solution import Solution
from .start import Start

SMALL = (1e-4, 1e-8)  # shares of the largest coefficient, below which coefficients are tried as 0


def solve_kernel(
    X: Matrix,
    y: np.ndarray,
    c: np.ndarray,
    settings: Settings,
    rows: KernelRows | None = None,
    alpha0: np.ndarray | None = None,
) -> Solution:
    """A `Solution` with β in place of w; the rows of the kernel matrix may be there already, and
    pairwise steps may start from a dual point."""
    if settings.model == "lpsvm":
        return _solve_l1(X, y, c, settings, rows)
    loss = HINGE if settings.model == "csvm" else SQUARE
    rows = rows or kernel_rows(X, settings)
    problem = KernelProblem(rows, y, c, settings.bias, loss)
    run = Run(problem, limits(settings), engine=settings.solver)
    if settings.solver == "auto":
        run.engine = "coordinate" if loss == HINGE else "newton"
        run.why = f"the engine of {settings.model} with a kernel"
    finish = partial(_finish, run)
    if run.engine == "coordinate":
        work = partial(_work_in_pairs, problem, settings.seed, run, alpha0)
    elif run.engine == "newton" and loss == SQUARE:
        work = partial(_work_directly, problem, budget_bytes(settings.cache_mb), run)
    else:
        smooth = SmoothedKernel(problem, MODELS[settings.model]())
        work = partial(_work_smoothed, smooth, settings, run)
        finish = partial(_finish_smoothed, smooth, run)
    found = run_to_the_end(run, work, finish, settings)
    if run.dual > run.objective + INDEFINITE * abs(run.objective):
        raise InputError(NOT_SEMIDEFINITE)
    return found


def _work_in_pairs(problem: KernelProblem, seed: int, run: Run, alpha0: np.ndarray | None) -> None:
    """Pairwise steps; on finer rows where the rounding of K alone keeps the gap open."""
    if alpha0 is None:
        pairwise_in_levels(problem, run, np.random.default_rng(seed))
    else:
        run_in_pairs(problem, alpha0, run)
    if problem.rows.finer is None:
        return
    if run.status == "converged" and not _holds_afresh(problem, run):
        run.status = ""
    if not run.done:
        beta = problem.beta
        finer = KernelProblem(problem.rows.finer(), problem.y, problem.c, problem.bias)
        run.begin_again(finer)
        run_in_pairs(finer, beta * problem.y, run)


def _work_directly(problem: KernelProblem, budget: float, run: Run) -> None:
    drive(least_squares(problem, budget), run, always)


def _work_smoothed(smooth: SmoothedKernel, settings: Settings, run: Run) -> None:
    """The engines that minimise F_μ in the kernel's metric."""
    zero = np.zeros(smooth.n_variables)
    if run.engine == "newton":
        moving = settings.moving_centre is not False
        newton_in_levels(smooth, run, np.random.default_rng(settings.seed), moving)
        if not run.done:  # K may be so nearly singular that only pairs of coordinates go on
            run.hand_over(smooth.kernel)
            run_in_pairs(smooth.kernel, run.alpha, run)
    else:
        run.problem = smooth
        state = begin_gradient(smooth, zero, zero, first_smoothing(settings), settings)
        drive(gradient_method(smooth, state, settings, run), run, now_and_then)


def _holds_afresh(problem: KernelProblem, run: Run) -> bool:
    """Whether the tolerance is met by the best point and its bound added up afresh, too."""
    assert run.best is not None
    beta, b = problem.split(run.best.point)
    if not np.array_equal(beta, problem.beta):
        problem.place(beta)
        run.certify(problem.current())
    at = problem.at(np.append(problem.beta, b))
    run.settle(at.objective, problem.value_of(run.alpha, at))
    return run.gap <= run.limits.tol


def _finish(run: Run) -> dict[str, Any]:
    """β, b and the margins of the best point, certified afresh."""
    problem = run.problem  # which may be a finer one by now
    assert isinstance(problem, KernelProblem)
    beta, b = (problem.beta, 0.0) if run.best is None else problem.split(run.best.point)
    partly = problem.loss == SQUARE and not problem.c.all()  # f is not known of every row
    if partly or not np.array_equal(beta, problem.beta):
        problem.place(beta)
    run.certify(problem.current())
    return _settle(problem, np.append(beta, b), run)


def _finish_smoothed(smooth: SmoothedKernel, run: Run) -> dict[str, Any]:
    """The same; a point with exact zeros is taken instead where that is as good, or good enough:
    the dual point, or its support."""
    if run.alpha is None:
        run.certify(run.latest or smooth.at(np.zeros(smooth.n_variables), FIRST))
    problem = smooth.kernel
    beta, b = np.zeros(problem.n_rows), 0.0
    if run.best is not None:
        beta, b = run.problem.split(run.best.point)
    problem.place(run.alpha * problem.y)
    at = problem.current()
    if _enough(at.objective, run):
        beta, b = problem.split(at.point)
    else:
        beta = _sparsest(problem, beta, b, run)
    return _settle(problem, np.append(beta, b), run)


def _settle(problem: KernelProblem, point: np.ndarray, run: Run) -> dict[str, Any]:
    """The point where the problem stands, with its values afresh."""
    b = float(point[-1])
    at = problem.at(point)
    run.settle(at.objective, problem.value_of(run.alpha, at))
    return {"w": None, "beta": point[:-1].copy(), "b": b, "margins": problem.f + b}


def _sparsest(problem: KernelProblem, beta: np.ndarray, b: float, run: Run) -> np.ndarray:
    """β with as many exact zeros as the tolerance allows; the problem then stands there."""
    size = np.abs(beta)
    zeros = [run.alpha == 0.0, *(size <= share * size.max(initial=0.0) for share in SMALL)]
    for zero in zeros:
        sparser = np.where(zero, 0.0, beta)
        problem.stand(sparser)
        if _enough(problem.at(np.append(sparser, b)).objective, run):
            return sparser
    problem.stand(beta)
    return beta


def _enough(objective: float, run: Run) -> bool:
    """Whether this P is no worse than the best, or is within the tolerance."""
    return objective <= run.objective or objective - run.dual <= run.limits.tol * objective


def _solve_l1(X: Matrix, y: np.ndarray, c: np.ndarray, settings: Settings, rows: KernelRows | None):
    """‖β‖₁ as penalty: the linear LP-SVM whose features are the columns of K."""
    if rows is not None:
        K = rows.store
    elif settings.kernel == "precomputed":
        K = precomputed_matrix(X)
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
    found = solve_linear(as_matrix(K), y, c, settings.derive(kernel="linear"), Start())
    beta = np.zeros(len(c))
    beta[used] = found.w
    return replace(found, w=None, beta=beta)
