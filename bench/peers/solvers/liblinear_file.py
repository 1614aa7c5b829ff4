"""LIBLINEAR from file to model: its `train` program, or a Python process with its own reader."""

import shutil

from .needs import lacking
from .process import read_model, run, run_python

NAME = "LIBLINEAR train"
SETTINGS = (1.0, 0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-6)  # of -e
CERTIFIED = False
SCRIPT = """
import sys
from liblinear.liblinearutil import save_model, svm_read_problem, train
options, data, model = sys.argv[1:]
save_model(model, train(*svm_read_problem(data, return_scipy=True), options))
"""


def program() -> str | None:
    """LIBLINEAR's own program, under the name it has in packages or the one it is built with."""
    return shutil.which("liblinear-train") or shutil.which("train")


PACKAGE = "LIBLINEAR's own program" if program() else "liblinear-official"


def missing(task) -> str | None:
    package = "scipy" if program() else "liblinear"  # the program needs nothing of Python
    return lacking(package, task, bias=False, from_file=True)


def prepare(problem):
    model = problem.path.with_suffix(".liblinear")
    train = program()

    def fit(e):
        options = f"-s 3 -c {problem.task.C} -e {e} -q"
        if train:
            run(train, *options.split(), problem.path, model)
        else:
            run_python(SCRIPT, options, problem.path, model)
        return lambda: read_model(model)

    return fit
