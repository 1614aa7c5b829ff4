"""LIBSVM through its own Python interface, data converted before the clock starts."""

import numpy as np

from .needs import lacking
from .pairs import of_pairs

NAME = "LIBSVM"
PACKAGE = "libsvm-official"
SETTINGS = (1.0, 0.1, 0.01, 1e-3)  # of -e
CERTIFIED = False
CACHE_MB = 1000  # unless the task says


def missing(task) -> str | None:
    return lacking("libsvm", task, kernels=("rbf",))


def prepare(problem):
    from libsvm.svm import svm_problem
    from libsvm.svmutil import svm_train
    from scipy.sparse import csr_matrix

    task, (n, p) = problem.task, problem.X.shape
    data = svm_problem(problem.y, csr_matrix(problem.X, dtype=np.float64))
    cache = task.cache_mb or CACHE_MB

    def fit(e):
        model = svm_train(data, f"-t 2 -g {1 / p:.17g} -c {task.C} -e {e} -m {cache} -q")
        return lambda: _found(model, problem.y, n)

    return fit


def _found(model, y: np.ndarray, n: int):
    labels = np.array(model.get_labels(), dtype=float)
    support = np.array(model.get_sv_indices()) - 1
    of_class = np.argmax(y[support][:, None] == labels, axis=1)
    coefs = np.array(model.get_sv_coef()).T
    pairs = len(labels) * (len(labels) - 1) // 2
    return of_pairs(labels, support, of_class, coefs, [-model.rho[k] for k in range(pairs)], n)
