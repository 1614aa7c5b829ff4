"""scikit-learn's RidgeClassifier: ‖y − Xw‖² + α‖w‖² is LS-SVM with α = 1/(2C)."""

import numpy as np
from scipy.sparse import issparse

from ..judge import Found
from .needs import lacking

NAME = "RidgeClassifier"
PACKAGE = "scikit-learn"
ITERATIVE = tuple(f"{s} {tol:g}" for tol in (1e-2, 1e-4, 1e-6, 1e-8) for s in ("lsqr", "sparse_cg"))
SETTINGS = ("auto", "cholesky", *ITERATIVE[:4], "sag 0.0001", "svd", *ITERATIVE[4:])
CERTIFIED = False


def missing(task) -> str | None:
    return lacking("sklearn", task, models=("lssvm",), bias=False)


def prepare(problem):
    from sklearn.linear_model import RidgeClassifier

    alpha = 1.0 / (2.0 * problem.task.C)

    def fit(setting):
        solver, _, tol = setting.partition(" ")
        if solver == "svd" and issparse(problem.X):
            return None
        options = {"tol": float(tol)} if tol else {}
        model = RidgeClassifier(alpha=alpha, solver=solver, fit_intercept=False, **options)
        return Found(np.ravel(model.fit(problem.X, problem.y).coef_))

    return fit
