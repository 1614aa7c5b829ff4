"""Kernel LS-SVM: (K + diag(1/(2c)))β + b·1 = y with Σβ = 0, by one factorisation where the matrix
fits into memory, else by conjugate gradients over its rows."""

import itertools
from collections.abc import Callable, Generator

import numpy as np

from ..numerics.cholesky import factorise
from ..numerics.conjugate_gradients import conjugate_gradients
from ..problems.evaluation import Evaluation
from ..problems.kernel import KernelProblem
from .driver import Steps

REFINEMENTS = 4  # of a solution by a factorisation: more change nothing but rounding
RANK = 256  # of the preconditioner of conjugate gradients, at most
NO_PIVOT = 1e-10  # share of a diagonal entry of K: what is smaller after elimination is rounding
MOST_PRODUCTS = 10  # with K for each of its rows, after which conjugate gradients end


def least_squares(problem: KernelProblem, budget_bytes: float) -> Steps:
    """Solve the equations; every refinement or iteration is evaluated."""
    used = np.flatnonzero(problem.c > 0.0)
    factorised = False
    if 8.0 * len(used) ** 2 <= budget_bytes:
        factorised = yield from _direct(problem, used)
    if not factorised:
        yield from _conjugate_gradients(problem, used, budget_bytes)


def _direct(problem: KernelProblem, used: np.ndarray) -> Generator[Evaluation, bool | None, bool]:
    """A = K + diag(1/(2c)) = LLᵀ; with Av = 1 the bias is what makes Σβ zero. Returns whether A is
    positive definite.

    L takes the place of one triangle of K, the other stays for Kβ.
    """
    from scipy.linalg import cho_solve
    from scipy.linalg.blas import dsymv

    A = problem.rows.block(used).T  # symmetric; LAPACK works in Fortran order
    ridge, y = 0.5 / problem.c[used], problem.y[used]
    diagonal = A.diagonal().copy()
    np.fill_diagonal(A, diagonal + ridge)
    try:
        factor = factorise(A), True
    except np.linalg.LinAlgError:
        return False
    pivots = factor[0].diagonal().copy()
    v = cho_solve(factor, np.ones(len(used)), check_finite=False)
    beta, f, b = np.zeros(len(used)), np.zeros(len(used)), 0.0
    for _ in range(1 + REFINEMENTS):
        np.fill_diagonal(factor[0], pivots)
        step = cho_solve(factor, y - b - f - ridge * beta, check_finite=False)
        if problem.bias:
            db = (step.sum() + beta.sum()) / v.sum()
            step, b = step - db * v, b + db
        whole = np.zeros(problem.n_rows)
        whole[used] = beta + step
        whole = problem.feasible(whole)
        beta = whole[used]
        np.fill_diagonal(factor[0], diagonal)
        f = dsymv(1.0, factor[0], beta, lower=0)
        whole_f = np.zeros(problem.n_rows)
        whole_f[used] = f  # a row without a cost counts nowhere
        problem.place(whole, whole_f)
        yield problem.current()
    return True


def _conjugate_gradients(problem: KernelProblem, used: np.ndarray, budget_bytes: float) -> Steps:
    """Au = y and, with a bias, Av = 1, side by side: they share every pass over K; β = u − bv."""
    n = problem.n_rows
    ridge, on = np.zeros(n), np.zeros(n)
    ridge[used], on[used] = 0.5 / problem.c[used], 1.0
    solve = _preconditioner(problem, used, ridge, int(min(RANK, budget_bytes // (16 * n))))
    R = np.stack([problem.y * on, on] if problem.bias else [problem.y * on])
    F, KD = np.zeros_like(R), np.zeros_like(R)  # K times the solutions, and times the directions

    def apply(D: np.ndarray) -> np.ndarray:
        KD[:] = problem.rows.times(*D)
        return KD * on + ridge * D

    for S, t, _, _ in itertools.islice(conjugate_gradients(apply, R, solve), MOST_PRODUCTS * n):
        F += t * KD
        b = S[0].sum() / S[1].sum() if problem.bias else 0.0
        weights = np.array([1.0, -b])[: len(S)]
        problem.place(weights @ S, weights @ F)
        yield problem.current()


def _preconditioner(
    problem: KernelProblem, used: np.ndarray, ridge: np.ndarray, rank: int
) -> Callable[[np.ndarray], np.ndarray]:
    """x ↦ (LLᵀ + diag(1/(2c)))⁻¹x, L a partial Cholesky factor of K by the largest pivots."""
    n = problem.n_rows
    left = np.zeros(n)
    left[used] = problem.rows.diagonal()[used]
    L = np.zeros((rank, n))
    k = 0
    while k < rank:
        i = int(left.argmax())
        if not left[i] > NO_PIVOT * problem.rows.diagonal()[i]:
            break
        row = problem.rows.rows(np.array([i]))[0] - L[:k, i] @ L[:k]
        row[ridge == 0.0] = 0.0
        L[k] = row / np.sqrt(left[i])
        left -= L[k] ** 2
        left[i] = 0.0
        k += 1
    L = L[:k]
    inverse = np.divide(1.0, ridge, out=np.zeros(n), where=ridge > 0.0)
    from scipy.linalg import cho_factor, cho_solve

    small = cho_factor(np.eye(k) + (L * inverse) @ L.T) if k else None

    def solve(R: np.ndarray) -> np.ndarray:
        scaled = R * inverse
        return scaled - cho_solve(small, L @ scaled.T).T @ L * inverse if small else scaled

    return solve
