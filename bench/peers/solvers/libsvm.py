"""LIBSVM through its own Python interface, data converted before the clock starts."""

import numpy as np

from ..judge import Found
from .needs import lacking
from .pairs import of_pairs

NAME = "LIBSVM"
PACKAGE = "libsvm-official"
SETTINGS = (1.0, 0.1, 0.01, 1e-3)  # of -e
PAPER = 1e-3
CERTIFIED = False
CACHE_MB = 1000  # unless the task says


KERNEL = {"linear": "-t 0", "rbf": "-t 2"}


def missing(task) -> str | None:
    return lacking("libsvm", task, kernels=tuple(KERNEL) if task.paper else ("rbf",))


def prepare(problem):
    from libsvm.svm import svm_problem
    from libsvm.svmutil import svm_train
    from scipy.sparse import csr_matrix

    task, p = problem.task, problem.X.shape[1]
    data = svm_problem(problem.y, csr_matrix(problem.X, dtype=np.float64))
    cache = task.cache_mb or CACHE_MB

    def fit(e):
        options = f"{KERNEL[task.kernel]} -g {1 / p:.17g} -c {task.C} -e {e} -m {cache} -q"
        model = svm_train(data, options)
        return lambda: _found(model, problem)

    return fit


def _found(model, problem):
    y, n = problem.y, len(problem.y)
    labels = np.array(model.get_labels(), dtype=float)
    support = np.array(model.get_sv_indices()) - 1
    of_class = np.argmax(y[support][:, None] == labels, axis=1)
    coefs = np.array(model.get_sv_coef()).T
    pairs = len(labels) * (len(labels) - 1) // 2
    found = of_pairs(labels, support, of_class, coefs, [-model.rho[k] for k in range(pairs)], n)
    if problem.task.kernel != "linear":
        return found
    (part,) = found.parts
    return Found(part.plus * (problem.X.T @ part.beta), part.plus * part.b)
