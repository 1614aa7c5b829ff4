"""oneDAL through scikit-learn-intelex: SVC on working sets."""

from .needs import lacking
from .svc import prepare_estimator

NAME = "oneDAL"
PACKAGE = "scikit-learn-intelex"
SETTINGS = (0.1, 0.01, 1e-3)  # of tol; it refuses 1 on some data
CERTIFIED = False


def missing(task) -> str | None:
    return lacking("sklearnex", task, kernels=("rbf",))


def prepare(problem):
    from sklearnex.svm import SVC

    return prepare_estimator(problem, SVC)
