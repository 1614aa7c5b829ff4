"""scikit-learn from file to model: a Python process with load_svmlight_file and LinearSVC."""

import numpy as np

from ..judge import Found
from .needs import lacking
from .process import run_python

NAME = "load_svmlight_file + LinearSVC"
PACKAGE = "scikit-learn"
SETTINGS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-6)  # of tol
CERTIFIED = False
SCRIPT = """
import sys, warnings
import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.svm import LinearSVC
warnings.simplefilter("ignore")
C, tol, data, model = sys.argv[1:]
X, y = load_svmlight_file(data)
X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)  # all that it takes
machine = LinearSVC(loss="hinge", C=float(C), tol=float(tol), fit_intercept=False, random_state=0)
np.save(model, machine.fit(X, y).coef_[0])
"""


def missing(task) -> str | None:
    return lacking("sklearn", task, bias=False, from_file=True)


def prepare(problem):
    model = problem.path.with_suffix(".npy")

    def fit(tol):
        run_python(SCRIPT, problem.task.C, tol, problem.path, model)
        return lambda: Found(np.load(model))

    return fit
