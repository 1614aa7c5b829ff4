"""rehline's ridge classifier with the hinge loss; it wants dense data. Its bias is penalised."""

import numpy as np
from scipy.sparse import issparse

from ..judge import Found
from .needs import lacking

NAME = "rehline"
PACKAGE = "rehline"
SETTINGS = (1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-6)  # of tol
CERTIFIED = False


def missing(task) -> str | None:
    if task.data.startswith("news20bydate"):
        return "dense data only"
    return lacking("rehline", task, slow=True)


def prepare(problem):
    from rehline import plq_Ridge_Classifier

    task = problem.task
    X = problem.X.toarray() if issparse(problem.X) else problem.X
    X = np.ascontiguousarray(X, dtype=np.float64)
    options = {"C": task.C, "fit_intercept": task.bias, "max_iter": 10**4}

    def fit(tol):
        model = plq_Ridge_Classifier(loss={"name": "svm"}, tol=tol, **options).fit(X, problem.y)
        b = float(np.ravel(model.intercept_)[0]) if task.bias else 0.0
        return Found(np.ravel(model.coef_), b)

    return fit
