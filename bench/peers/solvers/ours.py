"""nesvm-jit, as `solve` with its defaults."""

from ..judge import Found
from .needs import lacking

NAME = "nesvm-jit"
PACKAGE = "nesvm-jit"
SETTINGS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)  # of tol, which is certified
CERTIFIED = True
LONGEST = 20.0  # seconds; what is not certified by then is shown as such


def missing(task) -> str | None:
    return lacking("nesvm_jit", task, models=("csvm", "lpsvm", "lssvm"))


def prepare(problem, **more):
    from nesvm_jit import solve

    task = problem.task
    options = {"model": task.model, "C": task.C, "bias": task.bias, "time_limit": LONGEST, **more}

    def fit(tol):
        s = solve(problem.X, problem.y, tol=tol, **options)
        return Found(s.w, s.b, s.dual_objective)

    return fit
