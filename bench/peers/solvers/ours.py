"""nesvm-jit with its defaults: `solve` for linear machines, `train` for those with a kernel."""

import itertools

import numpy as np

from ..judge import Found, KernelFound, Part
from .needs import lacking

NAME = "nesvm-jit"
PACKAGE = "nesvm-jit"
SETTINGS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)  # of tol, which is certified
PAPER = 1e-3
CERTIFIED = True
KERNELS = ("linear", "rbf")
LONGEST = 20.0  # seconds; what is not certified by then is shown as such


def missing(task) -> str | None:
    return lacking("nesvm_jit", task, models=("csvm", "lpsvm", "lssvm"), kernels=KERNELS)


def prepare(problem, **more):
    from nesvm_jit import solve, train

    task = problem.task
    options = {"model": task.model, "C": task.C, "bias": task.bias, "time_limit": LONGEST, **more}
    if task.kernel != "linear":
        options |= {"kernel": task.kernel, "cache_mb": task.cache_mb}

        def fit_kernel(tol):
            machine = train(problem.X, problem.y, tol=tol, **options)
            return lambda: _parts(machine, len(problem.y))

        return fit_kernel

    def fit(tol):
        s = solve(problem.X, problem.y, tol=tol, **options)
        return Found(s.w, s.b, s.dual_objective)

    return fit


def _parts(machine, n: int) -> KernelFound:
    """The machines of all pairs of classes."""
    record, parts = machine.record, []
    for k, (i, j) in enumerate(itertools.combinations(record.classes, 2)):
        beta = np.zeros(n)
        beta[machine.support_rows] = record.coefs[:, k]
        parts.append(Part(float(i), float(j), beta, float(record.bias[k])))
    return KernelFound(parts, sum(p["dual_objective"] for p in machine.problems))
