"""skglm's LinearSVC: coordinate descent with Anderson acceleration on working sets of the dual."""

import numpy as np

from ..judge import Found
from .needs import lacking

NAME = "skglm"
PACKAGE = "skglm"
DEFAULTS = (50, 10)  # rounds at most, first working set
# ijcnn1, C = 0.1: from a set of 10 off by 4 times the optimum after 200 rounds, from 1000 by 2e-8
LARGE = (1000, 1000)
SETTINGS = tuple((tol, *size) for tol in (1e-1, 1e-2, 1e-4, 1e-6) for size in (DEFAULTS, LARGE))
CERTIFIED = False


def missing(task) -> str | None:
    return lacking("skglm", task, bias=False, slow=True)


def prepare(problem):
    from skglm import LinearSVC

    X, y = problem.X.astype(np.float64), problem.y
    few = np.concatenate([np.flatnonzero(y == sign)[:100] for sign in (1, -1)])

    def fit(setting, X=X, y=y):
        tol, rounds, first = setting
        options = {"tol": tol, "max_iter": rounds, "p0": first, "fit_intercept": False}
        model = LinearSVC(C=problem.task.C, **options)
        return Found(model.fit(X, y).coef_[0])

    fit(SETTINGS[-1], X[few], y[few])  # a loose fit ends before it has compiled everything
    return fit
