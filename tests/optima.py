"""Optima of the three machines by solvers that are not ours. Imports nothing of ours."""

import clarabel
import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csc_matrix


def objective(model, X, y, c, w, b):
    """The true objective, in plain NumPy."""
    r = 1 - y * (X @ w + b)
    penalty = np.abs(w).sum() if model == "lpsvm" else 0.5 * w @ w
    return penalty + np.sum(c * (r**2 if model == "lssvm" else np.maximum(0, r)))


def optimum(model, X, y, c, bias):
    """The least objective value."""
    return {"csvm": _quadratic, "lpsvm": _linear, "lssvm": _least_squares}[model](X, y, c, bias)


def _columns(X, bias):
    return np.hstack([X, np.ones((len(X), 1))]) if bias else X


def _quadratic(X, y, c, bias):
    """min ½‖w‖² + cᵀξ, y(Xw + b) + ξ ≥ 1, ξ ≥ 0, by an interior point method."""
    (n, p), A = X.shape, _columns(X, bias)
    q = A.shape[1]
    P = csc_matrix(np.diag(np.r_[np.ones(p), np.zeros(q - p + n)]))
    G = np.block([[-y[:, None] * A, -np.eye(n)], [np.zeros((n, q)), -np.eye(n)]])
    h = np.r_[-np.ones(n), np.zeros(n)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    solver = clarabel.DefaultSolver(
        P, np.r_[np.zeros(q), c], csc_matrix(G), h, [clarabel.NonnegativeConeT(2 * n)], settings
    )
    return solver.solve().obj_val


def _linear(X, y, c, bias):
    """min Σ(w⁺ + w⁻) + cᵀξ by HiGHS."""
    n, p = X.shape
    A = np.hstack([-y[:, None] * X, y[:, None] * X, -np.eye(n)] + [-y[:, None]] * int(bias))
    cost = np.r_[np.ones(2 * p), c, np.zeros(int(bias))]
    bounds = [(0, None)] * (2 * p + n) + [(None, None)] * int(bias)
    return linprog(cost, A_ub=A, b_ub=-np.ones(n), bounds=bounds, method="highs").fun


def _least_squares(X, y, c, bias):
    """The normal equations."""
    A, p = _columns(X, bias), X.shape[1]
    H = 2 * A.T @ (c[:, None] * A) + np.diag(np.r_[np.ones(p), np.zeros(A.shape[1] - p)])
    v = np.linalg.lstsq(H, 2 * A.T @ (c * y), rcond=None)[0]
    return objective("lssvm", X, y, c, v[:p], v[p] if bias else 0.0)
