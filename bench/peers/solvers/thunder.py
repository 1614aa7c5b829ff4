"""ThunderSVM on the CPU: SVC on working sets."""

import numpy as np

from .needs import lacking
from .pairs import of_pairs

NAME = "ThunderSVM"
PACKAGE = "thundersvm-cpu"
SETTINGS = (0.01, 1e-3)  # of tol
CERTIFIED = False
WAIT = 20.0  # seconds: it mostly does not end


def missing(task) -> str | None:
    if task.C != 1.0:
        return "spared"  # it mostly does not end in time
    return lacking("thundersvm", task, kernels=("rbf",))


def prepare(problem):
    from thundersvm import SVC

    task, (n, p) = problem.task, problem.X.shape
    labels = np.unique(problem.y)

    def fit(tol):
        model = SVC(C=task.C, kernel="rbf", gamma=1.0 / p, tol=tol)
        model.fit(problem.X, problem.y)
        return lambda: _found(model, labels, n)

    return fit


def _found(model, labels: np.ndarray, n: int):
    of_class = np.repeat(np.arange(len(labels)), model.n_support_)
    support = np.asarray(model.support_).astype(int)
    intercepts = -np.ravel(model.intercept_)
    return of_pairs(labels, support, of_class, model.dual_coef_, intercepts, n)
