"""One judge for all: the true objective of what a solver found, whatever it reports itself."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .tasks import Task


class Problem(NamedTuple):
    """A task with its data in memory, and as LIBSVM text when the task starts from a file."""

    task: Task
    X: Any
    y: np.ndarray  # −1 and +1
    path: Path | None = None


class Found(NamedTuple):
    """A linear machine, and the lower bound of the optimum that its solver proves, if any."""

    w: np.ndarray
    b: float = 0.0
    bound: float | None = None


def objective(problem: Problem, found: Found) -> float:
    """R(w) + C Σ loss(r) in float64, with r = 1 − y(Xw + b) and a bias that costs nothing.

    csvm ½‖w‖² and max(r, 0); lpsvm ‖w‖₁ and max(r, 0); lssvm ½‖w‖² and r².
    """
    task = problem.task
    w = np.zeros(problem.X.shape[1])
    w[: len(found.w)] = found.w  # a file may end before the last feature
    r = 1.0 - problem.y * (problem.X @ w + found.b)
    penalty = np.abs(w).sum() if task.model == "lpsvm" else 0.5 * (w @ w)
    loss = r @ r if task.model == "lssvm" else np.maximum(r, 0.0).sum()
    return float(penalty + task.C * loss)
