"""The one-slack cutting plane method of SVM-Perf (Joachims 2006) for ½‖w‖² + C Σ max(0, 1 − y x·w).

min ½‖w‖² + nC ξ over all planes w·a ≥ b − ξ with a = (1/n) Σ_S y x, b = |S|/n, S any set of rows. A
round adds the plane that is violated most, S = {y x·w < 1}, and solves the dual on all planes.
"""

import numpy as np
from numba import njit


@njit(cache=True)
def _solve_dual(G, b, total, alpha, tolerance, most):
    """max b·α − ½αᵀGα over α ≥ 0, Σα = total, by pairs of steepest ascent; plane 0 is empty."""
    m = len(b)
    g = np.empty(m)
    for i in range(m):
        g[i] = b[i]
        for j in range(m):
            g[i] -= G[i, j] * alpha[j]
    for _ in range(most):
        up, down = 0, -1
        for i in range(m):
            if g[i] > g[up]:
                up = i
            if alpha[i] > 0.0 and (down < 0 or g[i] < g[down]):
                down = i
        if g[up] - g[down] <= tolerance:
            return
        bend = max(G[up, up] + G[down, down] - 2.0 * G[up, down], 1e-300)
        step = min((g[up] - g[down]) / bend, alpha[down])
        alpha[up] += step
        alpha[down] -= step
        for i in range(m):
            g[i] -= step * (G[i, up] - G[i, down])


def cutting_plane(X, y, C: float, epsilon: float = 1e-3, most: int = 2000) -> np.ndarray:
    """w at which no plane is violated by more than ε beyond the slack (SVM-Perf's −e)."""
    n, p = X.shape
    total = n * C
    planes, b = np.zeros((1, p)), np.zeros(1)
    alpha, w = np.array([total]), np.zeros(p)
    for _ in range(most):
        violated = y * (X @ w) < 1.0
        a = X.T @ (y * violated) / n
        slack = float(np.max(b - planes @ w))
        if violated.mean() - a @ w <= slack + epsilon:
            break
        planes, b = np.vstack([planes, a]), np.append(b, violated.mean())
        alpha = np.append(alpha, 0.0)
        _solve_dual(planes @ planes.T, b, total, alpha, 0.1 * epsilon, 100_000)
        w = alpha @ planes
    return w
