"""Compute extreme eigenvalues of symmetric matrices."""

from collections.abc import Callable

import numpy as np

POWER_ROUNDS = 100
ENOUGH = 1e-4  # power iteration ends when the eigenvalue grows by less than this share of it
FEW = 500  # matrices of at most so many rows: all eigenvalues take no longer than the extreme ones
EXTREME_TOL = 1e-4  # relative tolerance of extreme eigenvalues


def power_iteration(apply: Callable[[np.ndarray], np.ndarray], n: int) -> float:
    """Approximate λ_max of a symmetric semidefinite matrix from below, by power iteration."""
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
    """Approximate the least and the largest eigenvalue of a symmetric matrix, from inside."""
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
