"""One judge for all: the true objective of what a solver found, whatever it reports itself."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from .tasks import Task

BLOCK = 512  # rows of a kernel matrix at a time


class Problem(NamedTuple):
    """A task with its data in memory, and as LIBSVM text when the task starts from a file."""

    task: Task
    X: Any
    y: np.ndarray  # −1 and +1, or classes
    path: Path | None = None


class Found(NamedTuple):
    """A linear machine, and the lower bound of the optimum that its solver proves, if any."""

    w: np.ndarray
    b: float = 0.0
    bound: float | None = None


class Part(NamedTuple):
    """A kernel machine between two classes: f(x) = Σ β_i k(x_i, x) + b, positive for `plus`."""

    plus: float
    minus: float
    beta: np.ndarray  # of every row, zero beyond these classes
    b: float


class KernelFound(NamedTuple):
    """Machines of all pairs of classes, and the bound of the sum of their optima, if any."""

    parts: list[Part]
    bound: float | None = None


def objective(problem: Problem, found: Any) -> float:
    """The true objective, of several machines its sum."""
    kernel = problem.task.kernel != "linear"
    return kernel_objective(problem, found) if kernel else linear_objective(problem, found)


def kernel_objective(problem: Problem, found: KernelFound) -> float:
    """Σ over pairs of ½βᵀKβ + C Σ max(0, r), over the rows of both classes; rbf, γ = 1/p."""
    B = np.stack([part.beta for part in found.parts], axis=1)
    used = np.flatnonzero(B.any(axis=1))
    F = np.empty_like(B)
    for lo in range(0, len(B), BLOCK):
        F[lo : lo + BLOCK] = _rbf_rows(problem.X, lo, used) @ B[used]
    total = 0.0
    for k, part in enumerate(found.parts):
        rows = np.isin(problem.y, (part.plus, part.minus))
        sign = np.where(problem.y[rows] == part.plus, 1.0, -1.0)
        r = 1.0 - sign * (F[rows, k] + part.b)
        total += 0.5 * float(B[:, k] @ F[:, k]) + problem.task.C * np.maximum(r, 0.0).sum()
    return float(total)


def _rbf_rows(X, lo: int, used: np.ndarray) -> np.ndarray:
    """exp(−‖x_i − x_j‖²/p) of a block of rows with the rows used, in float64."""
    A, Z = X[lo : lo + BLOCK].astype(np.float64), X[used].astype(np.float64)
    products = A @ Z.T
    products = products.toarray() if issparse(products) else products
    squares = [np.asarray((M.multiply(M) if issparse(M) else M * M).sum(axis=1)) for M in (A, Z)]
    distances = squares[0].reshape(-1, 1) + squares[1].reshape(1, -1) - 2.0 * products
    return np.exp(np.maximum(distances, 0.0) / -X.shape[1])


def linear_objective(problem: Problem, found: Found) -> float:
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
