"""LIBLINEAR through its own Python interface, at every −e.

C-SVM: −s 3, dual coordinate descent. LS-SVM: −s 11 −p 0, regression with squared loss on the signs,
by a trust-region Newton method. Its bias, −B 1, is penalised.
"""

import numpy as np

from ..judge import Found
from .needs import lacking

NAME = "LIBLINEAR"
PACKAGE = "liblinear-official"
SETTINGS = (1.0, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-5, 1e-6)  # of -e
PAPER = 1e-3
CERTIFIED = False
SOLVER = {"csvm": "-s 3", "lssvm": "-s 11 -p 0"}


def missing(task) -> str | None:
    return lacking("liblinear", task, models=tuple(SOLVER))


def prepare(problem):
    from liblinear.liblinear import parameter
    from liblinear.liblinear import problem as libproblem
    from liblinear.liblinearutil import train
    from scipy.sparse import csr_matrix

    task, p = problem.task, problem.X.shape[1]
    bias = 1.0 if task.bias else -1.0
    rows = csr_matrix(problem.X, dtype=np.float64)
    data = libproblem(problem.y, rows, bias=bias)

    def fit(e):
        options = parameter(f"{SOLVER[task.model]} -c {task.C} -e {e} -B {bias} -q")
        model = train(data, options)
        sign = 1.0 if task.model == "lssvm" else float(model.label[0])
        w = sign * np.ctypeslib.as_array(model.w, (p + task.bias,))
        return Found(w[:p], float(w[p]) if task.bias else 0.0)

    return fit
