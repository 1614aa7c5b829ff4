"""What the columns of one γ share: the data, the problems, the costs, and who watches."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..binary.costs import costs
from ..binary.kernel_matrix import kernel_rows, worker_mb
from ..kernels import gram
from ..machine.assembled import Problem
from ..machine.train import Job, Posed
from ..matrix.rows import narrowed, take_rows

BLOCK_CELLS = 1 << 22  # of kernel values between rows held out and support vectors


@dataclass(frozen=True)
class Fit:
    """What is kept of a fit: its scores on the rows held out, and its certificate."""

    scores: dict[str, float]
    seconds: float
    objective: float
    gap: float
    certified: bool
    n_support: int
    n_nonzero: int | None
    iterations: int
    status: str


@dataclass
class Stage:
    """What the columns of one γ share: the problems, the costs, and who watches."""

    job: Job
    how: str
    problems: list[Problem]
    costs: list[float]
    weights: tuple[Any, Any]  # of samples and of classes
    gamma: float | None
    stop: threading.Event
    watch: Callable[[dict], object]
    stepped: Callable[[], None]  # after every sub-problem
    fitted: Callable[[Fit, dict], None]  # after every fit

    @property
    def linear(self) -> bool:
        return self.job.settings.kernel == "linear"

    @cached_property
    def share(self) -> float:
        """MB for the kernel rows of one chain."""
        return worker_mb(self.job.settings)

    def part(self, problem: Problem) -> Posed:
        """The rows of a sub-problem; their kernel rows stay from one fit to the next."""
        part, job = self.job.part(problem), self.job
        if self.linear or part.kernel_rows is not None or job.settings.model == "lpsvm":
            return part
        settings = job.settings.derive(cache_mb=self.share, C=self.costs[-1])
        return replace(part, kernel_rows=kernel_rows(part.X, settings))

    def unit_costs(self, inside: np.ndarray) -> np.ndarray:
        """The cost of every row at C = 1, none for those held out."""
        y, (sample_weight, class_weight) = self.job.y, self.weights
        classes = [label for label in self.job.order if (y[inside] == label).any()]
        if isinstance(class_weight, dict):
            class_weight = {
                k: v for k, v in class_weight.items() if k in classes or k not in self.job.order
            }
        own = None if sample_weight is None else sample_weight[inside]
        c = np.zeros(len(y))
        c[inside] = costs(1.0, y[inside], np.array(classes), own, class_weight)
        return c

    def kernel_scores(self, out: np.ndarray, support: np.ndarray, coefs: np.ndarray) -> np.ndarray:
        """Σ β_i k(x_i, x) of the rows held out, a column per sub-problem."""
        job, scores = self.job, np.empty((len(out), coefs.shape[1]))
        settings, size = job.settings, max(1, BLOCK_CELLS // max(1, len(support)))
        vectors = job.X if job.shared else take_rows(job.X, support)
        for lo in range(0, len(out), size):
            rows = out[lo : lo + size]
            if job.shared is not None:
                K = job.shared.between(rows, support)
            else:
                (block, V), _ = narrowed(take_rows(job.X, rows), vectors)
                K = gram(block, V, settings.kernel, self.gamma, settings.coef0, settings.degree)
            scores[lo : lo + size] = K.astype(np.float64) @ coefs
        return scores
