"""HiGHS through scipy, simplex and interior point.

LP-SVM is min Σ(w⁺ + w⁻) + C Σ ξ with y(X(w⁺ − w⁻) + b) + ξ ≥ 1, all but b ≥ 0.
"""

import numpy as np
from scipy.sparse import csr_matrix, diags, eye, hstack

from ..judge import Found
from .needs import lacking

NAME = "HiGHS"
PACKAGE = "scipy"
SETTINGS = ("highs-ds", "highs-ipm")
CERTIFIED = False


def missing(task) -> str | None:
    return lacking("scipy", task, models=("lpsvm",))


def prepare(problem):
    from scipy.optimize import linprog

    task = problem.task
    n, p = problem.X.shape
    biases = int(task.bias)
    ones = [csr_matrix(problem.y[:, None])] * biases
    rows = diags(problem.y) @ csr_matrix(problem.X, dtype=np.float64)
    A = -hstack([rows, -rows, eye(n), *ones], format="csc")
    c = np.concatenate([np.ones(2 * p), np.full(n, task.C), np.zeros(biases)])
    bounds = [(0, None)] * (2 * p + n) + [(None, None)] * biases

    def fit(method):
        x = linprog(c, A_ub=A, b_ub=-np.ones(n), bounds=bounds, method=method).x
        return Found(x[:p] - x[p : 2 * p], float(x[-1]) if task.bias else 0.0)

    return fit
