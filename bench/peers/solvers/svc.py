"""scikit-learn's SVC, which is LIBSVM with dense data kept dense."""

from .needs import lacking
from .pairs import of_estimator

NAME = "SVC"
PACKAGE = "scikit-learn"
SETTINGS = (1.0, 0.1, 0.01, 1e-3)  # of tol
CERTIFIED = False
CACHE_MB = 1000  # unless the task says


def missing(task) -> str | None:
    return lacking("sklearn", task, kernels=("rbf",))


def prepare(problem):
    from sklearn.svm import SVC

    return prepare_estimator(problem, SVC)


def prepare_estimator(problem, estimator):
    """A fit of an estimator with SVC's parameters."""
    task, (n, p) = problem.task, problem.X.shape
    cache = task.cache_mb or CACHE_MB

    def fit(tol):
        model = estimator(C=task.C, kernel="rbf", gamma=1.0 / p, tol=tol, cache_size=cache)
        model.fit(problem.X, problem.y)
        return lambda: of_estimator(model, n)

    return fit
