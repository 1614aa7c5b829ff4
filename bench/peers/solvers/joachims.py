"""The original `svm_learn` (SVM-light) and `svm_perf_learn`, where they are on the PATH."""

import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from ..judge import Found
from .needs import paper_solver

PAPER = 1e-3


def _solver(name: str, program: str, scale):
    """`scale(problem)` is what the program wants as -c."""

    def missing(task) -> str | None:
        if not (task.paper and task.kernel == "linear" and task.model == "csvm"):
            return "another problem"
        return None if shutil.which(program) else f"{program} is not installed"

    def prepare(problem):
        from nesvm_jit import write_libsvm

        folder = tempfile.TemporaryDirectory()
        data, model = Path(folder.name) / "data", Path(folder.name) / "model"
        write_libsvm(data, problem.X, problem.y)

        def fit(epsilon, folder=folder):  # which lives as long as this
            options = ["-c", f"{scale(problem):.17g}", "-e", f"{epsilon:g}", "-b", "0", "-v", "0"]
            command = [program, *options, str(data), str(model)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            return lambda: Found(_weights(model, problem.X.shape[1]))

        return fit

    return paper_solver(name, program, PAPER, missing, prepare)


def _weights(path: Path, p: int) -> np.ndarray:
    """w = Σ α_i y_i x_i of a model file: support vectors follow the line of the threshold."""
    lines = path.read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if "threshold b" in line) + 1
    w = np.zeros(p)
    for line in lines[start:]:
        weight, *cells = line.split("#")[0].split()
        for cell in cells:
            index, value = cell.split(":")
            w[int(index) - 1] += float(weight) * float(value)
    return w


SVM_LIGHT = _solver("SVM-light", "svm_learn", lambda problem: problem.task.C)
SVM_PERF = _solver(
    "SVM-Perf", "svm_perf_learn", lambda problem: 0.01 * len(problem.y) * problem.task.C
)
