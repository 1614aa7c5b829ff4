"""The extreme eigenvalues of symmetric matrices."""

from collections.abc import Callable

import numpy as np

POWER_ROUNDS = 100
ENOUGH = 1e-4  # share of the eigenvalue, by which it may still grow in an iteration
FEW = 500  # rows, of which all eigenvalues take no longer than the extreme ones
EXTREME_TOL = 1e-4  # share of an eigenvalue, of extreme ones


def power_iteration(apply: Callable[[np.ndarray], np.ndarray], n: int) -> float:
    """λ_max of a symmetric semidefinite matrix by power iteration, from below."""
    v = np.random.default_rng(0).random(n) + 0.5
    eigenvalue = 0.0
    for _ in range(POWER_ROUNDS):
        v /= max(np.linalg.norm(v), np.finfo(float).tiny)
        image = apply(v)
        before, eigenvalue = eigenvalue, float(v @ image)
        if eigenvalue - before <= ENOUGH * eigenvalue:
            break
        v[:] = image
    return eigenvalue


def extreme_eigenvalues(K: np.ndarray) -> tuple[float, float]:
    """About the least and the largest eigenvalue of a symmetric matrix, never outside of them."""
    n = len(K)
    if n <= FEW:
        values = np.linalg.eigvalsh(np.asarray(K, dtype=np.float64))
    else:
        from scipy.sparse.linalg import ArpackNoConvergence, eigsh

        K = K if K.dtype.kind == "f" else K.astype(np.float64)
        v0 = np.random.default_rng(0).standard_normal(n).astype(K.dtype)
        try:
            values = eigsh(K, k=2, which="BE", v0=v0, tol=EXTREME_TOL, return_eigenvectors=False)
        except ArpackNoConvergence as e:
            values = np.append(e.eigenvalues, v0 @ (K @ v0) / (v0 @ v0))
    return float(values.min(initial=np.inf)), float(values.max(initial=-np.inf))
