"""Newton's direction for a kernel machine, by the rows A that bend F_μ.

In the kernel's metric (I + Φᵀ_A W Φ_A) d = −g, W = diag(c/(μs)). With z = W(Φ_A d + d_b) that is
(K_AA + W⁻¹) z = −(g_f)_A + d_b and Σz = −g_b, and d = −g − Φᵀ_A z: one factorisation of K_AA, or
conjugate gradients where A is large, and the columns A of K.
"""

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ..models.base import Smoothing
from ..models.smoothed_kernel import SmoothedKernel

LARGEST = 3000  # rows of a factorisation
RIDGES = (0.0, 1e-12, 1e-9, 1e-6, 1e-3, 1.0)
FORCING = 1e-3  # of the residual is left by conjugate gradients
MOST_ROUNDS = 200


def active_set_direction(
    problem: SmoothedKernel, gradient: np.ndarray, smoothing: Smoothing
) -> np.ndarray:
    """−H⁻¹g, or near it."""
    n = problem.n_rows
    A, W = problem.active(smoothing)
    step = -gradient
    if not len(A):
        if problem.bias:
            step[-1] = -gradient[-1] / problem.bias_curvature(smoothing)
        return step
    right = -gradient[n : 2 * n][A]
    solve = _factorised if len(A) <= LARGEST else _iterated
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


def _factorised(problem: SmoothedKernel, A: np.ndarray, ridge: np.ndarray, R: np.ndarray):
    """(K_AA + ridge)⁻¹ of each right side; the diagonal is raised until it can be factorised."""
    M = problem.kernel.rows.block(A)
    diagonal = np.einsum("ii->i", M)
    base, scale = diagonal + ridge, float((diagonal + ridge).max())
    for more in RIDGES:
        diagonal[:] = base + more * scale
        try:
            factor = cho_factor(M.T, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            continue
        return cho_solve(factor, R.T, check_finite=False).T
    return R / base


def _iterated(problem: SmoothedKernel, A: np.ndarray, ridge: np.ndarray, R: np.ndarray):
    """The same by conjugate gradients, preconditioned with the diagonal."""
    rows, n = problem.kernel.rows, problem.n_rows
    scale = 1.0 / (rows.diagonal()[A] + ridge)
    S, R = np.zeros_like(R), R.copy()
    Z = scale * R
    D, rz = Z.copy(), (R * Z).sum(axis=1)
    enough = FORCING**2 * rz
    for _ in range(MOST_ROUNDS):
        wide = np.zeros((len(D), n))
        wide[:, A] = D
        MD = rows.times(*wide)[:, A] + ridge * D
        bend = (D * MD).sum(axis=1)
        t = np.divide(rz, bend, out=np.zeros_like(rz), where=bend > 0.0)[:, None]
        S, R = S + t * D, R - t * MD
        Z = scale * R
        before, rz = rz, (R * Z).sum(axis=1)
        if (rz <= enough).all():
            break
        D = Z + np.divide(rz, before, out=np.zeros_like(rz), where=before > 0.0)[:, None] * D
    return S
