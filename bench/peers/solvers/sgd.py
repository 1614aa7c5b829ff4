"""scikit-learn's SGDClassifier, by number of epochs: αR(w) + Σ loss / n with α = 1/(Cn).

Not with its averaging, which is further off here, and not for LS-SVM, where its steps diverge.
"""

from ..judge import Found
from .needs import lacking

NAME = "SGDClassifier"
PACKAGE = "scikit-learn"
SETTINGS = (1, 5, 20, 100, 500)  # epochs
CERTIFIED = False
PENALTY = {"csvm": "l2", "lpsvm": "l1"}


def missing(task) -> str | None:
    return lacking("sklearn", task, models=tuple(PENALTY), slow=True)


def prepare(problem):
    from sklearn.linear_model import SGDClassifier

    task = problem.task
    options = {
        "penalty": PENALTY[task.model],
        "alpha": 1.0 / (task.C * len(problem.y)),
        "fit_intercept": task.bias,
    }

    def fit(epochs):
        model = SGDClassifier(max_iter=epochs, tol=None, random_state=0, **options)
        model.fit(problem.X, problem.y)
        return Found(model.coef_[0], float(model.intercept_[0]))

    return fit
