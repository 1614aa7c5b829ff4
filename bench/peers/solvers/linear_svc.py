"""scikit-learn's LinearSVC: LIBLINEAR inside, its limit of epochs free. Its bias is penalised."""

import numpy as np

from ..judge import Found
from .needs import lacking

NAME = "LinearSVC"
PACKAGE = "scikit-learn"
# tol and epochs at most: scikit-learn's default is 1000
SETTINGS = ((1e-1, 1000), (1e-2, 1000), (1e-3, 1000), (1e-4, 1000), (1e-4, 10**4), (1e-6, 10**4))
CERTIFIED = False


def missing(task) -> str | None:
    return lacking("sklearn", task, slow=True)


def prepare(problem):
    from sklearn.svm import LinearSVC

    task = problem.task
    X = problem.X.astype(np.float64)

    def fit(setting):
        tol, epochs = setting
        options = {"C": task.C, "fit_intercept": task.bias, "random_state": 0}
        model = LinearSVC(loss="hinge", tol=tol, max_iter=epochs, **options).fit(X, problem.y)
        return Found(model.coef_[0], float(np.ravel(model.intercept_)[0]))

    return fit
