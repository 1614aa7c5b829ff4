"""Newton's direction −H⁻¹g: by factorising H, or by conjugate gradients where it has too many
columns."""

import numpy as np
from scipy.linalg import cho_solve

from ..models.base import Smoothing
from ..models.problem import LinearProblem

WIDEST = 2000  # columns of H: beyond, factorising costs more than it saves
RIDGES = (0.0, 1e-12, 1e-9, 1e-6, 1e-3, 1.0)
RIDGE = 1e-6  # of the largest entry on the diagonal
FORCING = 0.05  # of ‖g‖ in the preconditioner's norm is left of the residual
MOST_ROUNDS = 500


def direction(problem: LinearProblem, gradient: np.ndarray, smoothing: Smoothing) -> np.ndarray:
    """−H⁻¹g, or near it."""
    solve = factorised if problem.n_variables <= WIDEST else iterated
    return solve(problem, gradient, smoothing)


def factorised(problem: LinearProblem, gradient: np.ndarray, smoothing: Smoothing) -> np.ndarray:
    """−H⁻¹g; H is ridged until it can be factorised (LP-SVM's may be singular)."""
    if problem.factor is not None:
        return -cho_solve((problem.factor, True), gradient, check_finite=False)
    H = problem.hessian(smoothing)
    diagonal = np.einsum("ii->i", H)
    scale = float(diagonal.max(initial=0.0))
    added = 0.0
    for ridge in RIDGES:
        diagonal += (ridge - added) * scale
        added = ridge
        try:
            factor = np.linalg.cholesky(H)  # scipy's would hold up the other threads of Python
        except np.linalg.LinAlgError:
            continue
        found = -cho_solve((factor, True), gradient, check_finite=False)
        if np.isfinite(found).all() and float(found @ gradient) < 0.0:
            if not problem.model.smoothed:  # nothing will change H
                problem.factor = factor
            return found
    return -gradient


def iterated(problem: LinearProblem, gradient: np.ndarray, smoothing: Smoothing) -> np.ndarray:
    """d with Hd near −g by conjugate gradients, preconditioned with the diagonal of H.

    Every d on the way is a direction of descent; near the end of the line few rounds suffice.
    """
    diagonal = problem.hessian_diagonal(smoothing)
    ridge = 0.0
    if problem.model.strong_convexity == 0.0:  # H may be singular
        ridge = RIDGE * float(diagonal.max(initial=0.0)) or 1.0
    scale = 1.0 / (diagonal + ridge)
    d, residual = np.zeros_like(gradient), -gradient
    z = scale * residual
    p, rz = z.copy(), float(residual @ z)
    enough = FORCING**2 * rz
    for _ in range(MOST_ROUNDS):
        Hp = problem.hessian_times(p, smoothing) + ridge * p
        bend = float(p @ Hp)
        if bend <= 0.0:
            break
        t = rz / bend
        d += t * p
        residual -= t * Hp
        z = scale * residual
        before, rz = rz, float(residual @ z)
        if rz <= enough:
            break
        p *= rz / before
        p += z
    return d if d.any() else -gradient
