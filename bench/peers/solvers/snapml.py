"""snapml's SupportVectorMachine on two threads. Its bias is penalised."""

import numpy as np

from ..judge import Found
from .needs import lacking

NAME = "snapml"
PACKAGE = "snapml"
SETTINGS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)  # of tol
CERTIFIED = False


def missing(task) -> str | None:
    return lacking("snapml", task, slow=True)


def prepare(problem):
    from snapml import SupportVectorMachine

    task = problem.task
    X = problem.X.astype(np.float32)  # what it computes in
    options = {"regularizer": 1.0 / task.C, "fit_intercept": task.bias, "n_jobs": 2}

    def fit(tol):
        model = SupportVectorMachine(tol=tol, max_iter=10**4, random_state=0, **options)
        model.fit(X, problem.y)
        return Found(np.ravel(model.coef_), float(np.ravel(model.intercept_)[0]))

    return fit
