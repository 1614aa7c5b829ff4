"""Optima of the three machines by solvers that are not ours. Imports nothing of ours."""

from fractions import Fraction

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
    """min ½‖w‖² + cᵀξ, y(Xw + b) + ξ ≥ 1, ξ ≥ 0. Where lower costs leave no loss, higher ones
    change nothing, and rows of size 1 can be taken instead."""
    size = np.abs(X).max() or 1.0
    value, loss = _interior_point(X / size, y, np.minimum(c * size**2, 1e4), bias)
    return value / size**2 if loss < 1e-9 else _interior_point(X, y, c, bias)[0]


def _interior_point(X, y, c, bias):
    """The optimum and the largest ξ."""
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
    found = solver.solve()
    return found.obj_val, max(found.x[q:])


def _linear(X, y, c, bias):
    """min Σ(w⁺ + w⁻) + cᵀξ by HiGHS."""
    n, p = X.shape
    A = np.hstack([-y[:, None] * X, y[:, None] * X, -np.eye(n)] + [-y[:, None]] * int(bias))
    cost = np.r_[np.ones(2 * p), c, np.zeros(int(bias))]
    bounds = [(0, None)] * (2 * p + n) + [(None, None)] * int(bias)
    return linprog(cost, A_ub=A, b_ub=-np.ones(n), bounds=bounds, method="highs").fun


def _least_squares(X, y, c, bias):
    """½‖w‖² + Σ c r² as the squares of one system, whose columns are brought to one size."""
    A, p = _columns(X, bias), X.shape[1]
    M = np.vstack([np.sqrt(c)[:, None] * A, np.sqrt(0.5) * np.eye(p, A.shape[1])])
    size = np.linalg.norm(M, axis=0)
    v = np.linalg.lstsq(M / size, np.r_[np.sqrt(c) * y, np.zeros(p)], rcond=None)[0] / size
    return objective("lssvm", X, y, c, v[:p], v[p] if bias else 0.0)


def exact_objective(model, X, y, c, w, b):
    """The objective in rational arithmetic: no rounding."""
    X, y, c, w, b = (_fractions(v) for v in (X, y, c, w, b))
    r = 1 - y * (X @ w + b)
    penalty = np.abs(w).sum() if model == "lpsvm" else (w @ w) / 2
    return penalty + c @ (r * r if model == "lssvm" else np.maximum(r, 0))


def exact_dual(model, X, y, c, alpha):
    """Σαyx, Σαy and the dual value of α in rational arithmetic."""
    X, y, c, alpha = (_fractions(v) for v in (X, y, c, alpha))
    v, value = (alpha * y) @ X, alpha.sum()
    if model != "lpsvm":
        value -= (v @ v) / 2
    if model == "lssvm":
        used = c != 0
        value -= (alpha[used] ** 2 / (4 * c[used])).sum()
    return v, alpha @ y, value


def _fractions(values):
    return np.vectorize(Fraction, otypes=[object])(np.asarray(values, float))


def features_of(K):
    """Φ with K = ΦΦᵀ: the rows of a linear machine that is the kernel's."""
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.maximum(values, 0.0))
