"""`nesvm-jit train` in a fresh process, compiled code on disk."""

import sys

from ..judge import Found
from .needs import lacking
from .process import run

NAME = "nesvm-jit train"
PACKAGE = "nesvm-jit"
SETTINGS = (1e-2, 1e-3, 1e-4, 1e-6)  # of -e, which is certified
CERTIFIED = True


def missing(task) -> str | None:
    return lacking("nesvm_jit", task, bias=False, from_file=True)


def prepare(problem):
    task, model = problem.task, problem.path.with_suffix(".ours")
    command = [sys.executable, "-m", "nesvm_jit", "train", "--no-bias", "-c", task.C, "-q"]

    def found():
        from nesvm_jit import load_model

        machine = load_model(model)
        w = machine.classes[0] * machine.record.weights.ravel()
        return Found(w, bound=machine.problems[0]["dual_objective"])

    def fit(tol):
        run(*command, "-e", tol, problem.path, model)
        return found

    return fit
