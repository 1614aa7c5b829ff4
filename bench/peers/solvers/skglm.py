"""skglm's LinearSVC: coordinate descent with Anderson acceleration on working sets of the dual."""

import numpy as np

from ..judge import Found
from .needs import lacking

NAME = "skglm"
PACKAGE = "skglm"
SETTINGS = (1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-6)  # of tol
CERTIFIED = False
ROUNDS = 1000  # its 50 by default end before the working set has grown to all support vectors


def missing(task) -> str | None:
    return lacking("skglm", task, bias=False)


def prepare(problem):
    from skglm import LinearSVC

    X, y = problem.X.astype(np.float64), problem.y

    def fit(tol, rows=slice(None)):
        model = LinearSVC(C=problem.task.C, tol=tol, max_iter=ROUNDS, fit_intercept=False)
        return Found(model.fit(X[rows], y[rows]).coef_[0])

    # a loose fit ends before it has compiled everything: a tight one on some rows of both classes
    fit(SETTINGS[-1], np.concatenate([np.flatnonzero(y == sign)[:100] for sign in (1, -1)]))
    return fit
