"""Pegasos (Shalev-Shwartz, Singer and Srebro 2007) for ½‖w‖² + C Σ max(0, 1 − y x·w).

With λ = 1/(nC) a step on one row drawn at random is w ← (1 − 1/t)w + (y x)/(λt) where the row has a
loss, then w is scaled back into the ball of radius 1/√λ. w is kept as scale · v, so that a step
costs the nonzeros of its row.
"""

import numpy as np
from numba import njit


@njit(cache=True)
def _epoch(data, indices, indptr, y, lam, t, order, v, scale, square):
    """One step for every row of `order`; returns t, the scale and ‖v‖²."""
    for i in order:
        t += 1
        lo, hi = indptr[i], indptr[i + 1]
        dot = 0.0
        for k in range(lo, hi):
            dot += v[indices[k]] * data[k]
        loss = y[i] * scale * dot < 1.0
        scale *= 1.0 - 1.0 / t
        if scale < 1e-9:
            for j in range(len(v)):
                v[j] *= scale
            square *= scale * scale
            scale = 1.0
        if loss:
            step = y[i] / (lam * t * scale)
            for k in range(lo, hi):
                old = v[indices[k]]
                new = old + step * data[k]
                square += new * new - old * old
                v[indices[k]] = new
        length = scale * np.sqrt(max(square, 0.0))
        if length * np.sqrt(lam) > 1.0:
            scale /= length * np.sqrt(lam)
    return t, scale, square


def pegasos(X, y, C: float, epsilon: float = 1e-3, most: int = 1000, seed: int = 0) -> np.ndarray:
    """Epochs until the objective, looked at after each, changes by less than ε of itself; the best
    w seen."""
    n, p = X.shape
    rng = np.random.default_rng(seed)
    v, scale, square, t = np.zeros(p), 1.0, 0.0, 0
    best, least, before = np.zeros(p), C * n, np.inf
    for _ in range(most):
        order = rng.integers(n, size=n)
        t, scale, square = _epoch(
            X.data, X.indices, X.indptr, y, 1.0 / (n * C), t, order, v, scale, square
        )
        w = scale * v
        value = 0.5 * w @ w + C * np.maximum(0.0, 1.0 - y * (X @ w)).sum()
        if value < least:
            best, least = w, value
        if abs(value - before) < epsilon * value:
            break
        before = value
    return best
