"""Kernel LS-SVM: (K + diag(1/(2c)))β + b·1 = y with Σβ = 0, by one factorisation where the matrix
fits into memory, else by conjugate gradients over its rows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..numerics import conjugate_gradients as iterations
from ..numerics.cholesky import factorise
from ..problems.kernel import KernelProblem
from .driver import Steps

REFINEMENTS = 4  # of a solution by a factorisation: more change nothing but rounding
RANK = 256  # of the preconditioner of conjugate gradients, at most
NO_PIVOT = 1e-10  # share of a diagonal entry of K: what is smaller after elimination is rounding
MOST_PRODUCTS = 10  # with K for each of its rows, after which conjugate gradients end


class Factor(NamedTuple):
    """A = K + diag(1/(2c)) = LLᵀ. L takes the place of one triangle of K, the other stays for Kβ;
    `v` is A⁻¹1."""

    L: np.ndarray
    pivots: np.ndarray
    diagonal: np.ndarray  # of K
    v: np.ndarray


@dataclass
class Refined:
    """A solution by a factorisation: β and Kβ of the rows that cost something, b, and how often it
    was refined. The factor is made again where it is taken up."""

    factor: Factor
    beta: np.ndarray
    f: np.ndarray
    b: float = 0.0
    k: int = 0
    settled = False


@dataclass
class Iterated:
    """A solution by conjugate gradients: where they stand, K times their solutions, and how many
    products there were. The preconditioner, of this rank, is made again where it is taken up."""

    precondition: Callable[[np.ndarray], np.ndarray]
    rank: int
    at: iterations.State
    F: np.ndarray
    k: int = 0
    settled = False


def begin(problem: KernelProblem, budget_bytes: float) -> Refined | Iterated:
    """Where the equations are begun: with a factor where the matrix fits, and has one."""
    used = _used(problem)
    factor = None
    if 8.0 * len(used) ** 2 <= budget_bytes:
        factor = _factor(problem)
    if factor is not None:
        return Refined(factor, np.zeros(len(used)), np.zeros(len(used)))
    rank = int(min(RANK, budget_bytes // (16 * problem.n_rows)))
    precondition = _preconditioner(problem, rank)
    R = _right_sides(problem)
    return Iterated(precondition, rank, iterations.begin(R, precondition), np.zeros_like(R))


def resume(problem: KernelProblem, saved: dict[str, Any]) -> Refined | Iterated:
    """The state that was saved, from a problem that has not moved yet."""
    if "rank" not in saved:
        factor = _factor(problem)
        if factor is None:
            raise ValueError("the kernel matrix is not positive definite")
        return Refined(factor, **saved)
    precondition = _preconditioner(problem, saved["rank"])
    return Iterated(precondition, **{**saved, "at": iterations.State(**saved["at"])})


def facts_of(s: Refined | Iterated) -> dict[str, Any]:
    """What of a state is saved: all but what is made again."""
    facts = dict(vars(s))
    if isinstance(s, Refined):
        del facts["factor"]
        return facts
    del facts["precondition"]
    return {**facts, "at": dict(vars(s.at))}


def least_squares(problem: KernelProblem, s: Refined | Iterated) -> Steps:
    """Solve the equations; every refinement or iteration is evaluated."""
    return _refine(problem, s) if isinstance(s, Refined) else _iterate(problem, s)


def _used(problem: KernelProblem) -> np.ndarray:
    return np.flatnonzero(problem.c > 0.0)


def _factor(problem: KernelProblem) -> Factor | None:
    """The factor of the rows that cost something; None if A is not positive definite."""
    from scipy.linalg import cho_solve

    used = _used(problem)
    A = problem.rows.block(used).T  # symmetric; LAPACK works in Fortran order
    diagonal = A.diagonal().copy()
    np.fill_diagonal(A, diagonal + 0.5 / problem.c[used])
    try:
        L = factorise(A)
    except np.linalg.LinAlgError:
        return None
    v = cho_solve((L, True), np.ones(len(used)), check_finite=False)
    return Factor(L, L.diagonal().copy(), diagonal, v)


def _refine(problem: KernelProblem, s: Refined) -> Steps:
    """With Av = 1 the bias is what makes Σβ zero."""
    from scipy.linalg import cho_solve
    from scipy.linalg.blas import dsymv

    used = _used(problem)
    L, pivots, diagonal, v = s.factor
    ridge, y = 0.5 / problem.c[used], problem.y[used]
    while s.k <= REFINEMENTS:
        np.fill_diagonal(L, pivots)
        step = cho_solve((L, True), y - s.b - s.f - ridge * s.beta, check_finite=False)
        if problem.bias:
            db = (step.sum() + s.beta.sum()) / v.sum()
            step, s.b = step - db * v, float(s.b + db)
        whole = np.zeros(problem.n_rows)
        whole[used] = s.beta + step
        whole = problem.feasible(whole)
        s.beta = whole[used]
        np.fill_diagonal(L, diagonal)
        s.f = dsymv(1.0, L, s.beta, lower=0)
        whole_f = np.zeros(problem.n_rows)
        whole_f[used] = s.f  # a row without a cost counts nowhere
        problem.place(whole, whole_f)
        s.k += 1
        yield problem.current()


def _right_sides(problem: KernelProblem) -> np.ndarray:
    """y and, with a bias, 1; zero where a row costs nothing."""
    on = (problem.c > 0.0).astype(np.float64)
    return np.stack([problem.y * on, on] if problem.bias else [problem.y * on])


def _ridge(problem: KernelProblem) -> np.ndarray:
    """1/(2c), and zero where a row costs nothing."""
    ridge, used = np.zeros(problem.n_rows), _used(problem)
    ridge[used] = 0.5 / problem.c[used]
    return ridge


def _iterate(problem: KernelProblem, s: Iterated) -> Steps:
    """Au = y and, with a bias, Av = 1, side by side: they share every pass over K; β = u − bv."""
    ridge, on = _ridge(problem), (problem.c > 0.0).astype(np.float64)
    KD = np.zeros_like(s.F)  # K times the directions

    def apply(D: np.ndarray) -> np.ndarray:
        KD[:] = problem.rows.times(*D)
        return KD * on + ridge * D

    for S, t, _, _ in iterations.conjugate_gradients(apply, s.precondition, s.at):
        s.F = s.F + t * KD
        s.k += 1
        b = S[0].sum() / S[1].sum() if problem.bias else 0.0
        weights = np.array([1.0, -b])[: len(S)]
        problem.place(weights @ S, weights @ s.F)
        yield problem.current()
        if s.k >= MOST_PRODUCTS * problem.n_rows:
            return


def _preconditioner(problem: KernelProblem, rank: int) -> Callable[[np.ndarray], np.ndarray]:
    """x ↦ (LLᵀ + diag(1/(2c)))⁻¹x, L a partial Cholesky factor of K by the largest pivots."""
    n, used, ridge = problem.n_rows, _used(problem), _ridge(problem)
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
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    try:
        small = cho_factor(np.eye(k) + (L * inverse) @ L.T) if k else None
    except LinAlgError:  # rounding has left nothing of the 1s
        small = None

    def solve(R: np.ndarray) -> np.ndarray:
        scaled = R * inverse
        return scaled - cho_solve(small, L @ scaled.T).T @ L * inverse if small else scaled

    return solve
