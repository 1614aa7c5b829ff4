"""scikit-learn's SGD, block by block from the same on-disk matrix, for as long as we took."""

import time

import numpy as np
from nesvm_jit import open_matrix
from nesvm_jit.matrix.rows import as_scipy

BLOCK = 8 << 20


def objective(matrix, w: np.ndarray, b: float, C: float) -> float:
    """½‖w‖² + C Σ hinge."""
    loss = 0.0
    for lo, hi, X in matrix.blocks(reuse=True):
        y = np.where(matrix.labels[lo:hi] > 0, 1.0, -1.0)
        loss += float(np.maximum(0.0, 1.0 - y * (as_scipy(X) @ w + b)).sum())
    return 0.5 * float(w @ w) + C * loss


def reached(folder: str, C: float, seconds: float) -> list[tuple[float, int, float]]:
    """(seconds, epochs, objective) after every epoch, until the time is over."""
    from sklearn.linear_model import SGDClassifier

    matrix = open_matrix(folder)
    model = SGDClassifier(
        loss="hinge", alpha=1.0 / (C * matrix.n_rows), fit_intercept=False, random_state=0
    )
    found, spent = [], 0.0
    while not found or spent < seconds:
        began = time.perf_counter()
        for lo, hi, X in matrix.blocks(BLOCK, reuse=True):
            model.partial_fit(as_scipy(X), matrix.labels[lo:hi], classes=(-1.0, 1.0))
        spent += time.perf_counter() - began
        value = objective(matrix, model.coef_[0], float(model.intercept_[0]), C)
        found.append((spent, len(found) + 1, value))
    return found
