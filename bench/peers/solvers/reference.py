"""A long run of ours: the optimum that all are measured against, and its proven lower bound."""

from . import ours
from .needs import lacking

NAME = "reference"
PACKAGE = "nesvm-jit"
SETTINGS = (1e-8,)
CERTIFIED = True
PAPER = 1e-8
ONCE = True  # it is not timed: no warm-up, no repeats


def missing(task) -> str | None:
    return lacking(
        "nesvm_jit",
        task,
        models=("csvm", "lpsvm", "lssvm"),
        kernels=ours.KERNELS,
        from_file=task.from_file,
    )


def prepare(problem):
    return ours.prepare(problem, time_limit=60.0, max_iter=10**6)
