"""Newton's direction for a kernel machine, by the rows A that bend F_μ.

In the kernel's metric (I + Φᵀ_A W Φ_A) d = −g, W = diag(c/(μs)). With z = W(Φ_A d + d_b) that is
(K_AA + W⁻¹) z = −(g_f)_A + d_b and Σz = −g_b, and d = −g − Φᵀ_A z: one factorisation of K_AA, or
conjugate gradients where A is large, and the columns A of K.
"""

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..numerics.cholesky import factor_of, solve_ridged
from ..numerics.conjugate_gradients import begin, conjugate_gradients
from ..problems.smoothed_kernel import KernelWalk, SmoothedKernel

LARGEST = 3000  # rows of A up to which K_AA is factorised
FORCING = 1e-3  # share of the residual that conjugate gradients may leave
MOST_PRODUCTS = 200  # with K, after which conjugate gradients end with what they have

Solve = Callable[[SmoothedKernel, np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def active_set_direction(
    walk: KernelWalk, gradient: np.ndarray, largest: int = LARGEST, forcing: float = FORCING
) -> np.ndarray:
    """−H⁻¹g, or near it."""
    problem = walk.problem
    n = problem.n_rows
    A, W = problem.active(walk.at)
    step = -gradient
    if not len(A):
        if problem.bias:
            step[-1] = -gradient[-1] / problem.bias_curvature(walk.at.smoothing)
        return step
    right = -gradient[n : 2 * n][A]
    solve: Solve = _factorised if len(A) <= largest else partial(_iterated, forcing=forcing)
    if problem.bias:
        z, level = solve(problem, A, 1.0 / W, np.stack([right, np.ones(len(A))]))
        step[-1] = (-gradient[-1] - z.sum()) / level.sum()
        z = z + step[-1] * level
    else:
        (z,) = solve(problem, A, 1.0 / W, right[None])
    step[A] -= z
    change = np.zeros(n)
    problem.kernel.rows.add(A, z, change)
    step[n : 2 * n] -= change
    return step


def _factorised(
    problem: SmoothedKernel, A: np.ndarray, ridge: np.ndarray, R: np.ndarray
) -> np.ndarray:
    """(K_AA + ridge)⁻¹ of each right side; the diagonal is raised until it can be factorised."""
    from scipy.linalg import cho_solve

    M = problem.kernel.rows.block(A)
    diagonal = np.einsum("ii->i", M)
    diagonal += ridge
    base = diagonal.copy()

    def solve(factor: Any) -> np.ndarray:
        return cho_solve((factor, True), R.T, check_finite=False).T

    found = solve_ridged(M, factor_of, solve)
    return R / base if found is None else found


def _iterated(
    problem: SmoothedKernel, A: np.ndarray, ridge: np.ndarray, R: np.ndarray, forcing: float
) -> np.ndarray:
    """The same by conjugate gradients, preconditioned with the diagonal."""
    rows, n = problem.kernel.rows, problem.n_rows
    scale = 1.0 / (rows.diagonal()[A] + ridge)

    def apply(D: np.ndarray) -> np.ndarray:
        wide = np.zeros((len(D), n))
        wide[:, A] = D
        return rows.times(*wide)[:, A] + ridge * D

    def precondition(R: np.ndarray) -> np.ndarray:
        return scale * R

    S, enough = np.zeros_like(R), forcing**2 * (scale * R * R).sum(axis=1)
    products = conjugate_gradients(apply, precondition, begin(R, precondition))
    for found in itertools.islice(products, MOST_PRODUCTS):
        S = found.S
        if (found.rest <= enough).all():
            break
    return S
