"""skglm's LinearSVC: coordinate descent with Anderson acceleration on working sets of the dual."""

import numpy as np

from ..judge import Found
from .needs import lacking

NAME = "skglm"
PACKAGE = "skglm"
SETTINGS = (1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-6)  # of tol
CERTIFIED = False
# Its defaults, 50 rounds from a working set of 10, end far off: ijcnn1, C = 0.1, 4 times the optimum
# after 200 rounds, against 2e-8 off from a set of 1000.
EFFORT = {"max_iter": 1000, "p0": 1000}


def missing(task) -> str | None:
    return lacking("skglm", task, bias=False)


def prepare(problem):
    from skglm import LinearSVC

    X, y = problem.X.astype(np.float64), problem.y

    def fit(tol, rows=slice(None)):
        model = LinearSVC(C=problem.task.C, tol=tol, fit_intercept=False, **EFFORT)
        return Found(model.fit(X[rows], y[rows]).coef_[0])

    # a loose fit ends before it has compiled everything: a tight one on some rows of both classes
    fit(SETTINGS[-1], np.concatenate([np.flatnonzero(y == sign)[:100] for sign in (1, -1)]))
    return fit
