"""Rows with labels of any value, and the binary problems that are solved for them."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..activity import doing
from ..binary.kernel_matrix import SharedMatrix, gamma_of, kernel_rows, shared_matrix
from ..binary.nystroem import Landmarks, nystroem
from ..errors import InputError
from ..files.ondisk.matrix import OnDisk
from ..matrix.checks import as_matrix, as_vector, square_kernel
from ..matrix.matrix import Csr, Matrix
from ..matrix.rows import as_scipy, size_of, take_rows
from ..problems.kernel_rows import KernelRows
from ..settings import HALF_SQUARE, MULTICLASS, Settings, one_of
from .estimate import estimate, require_memory_for, usual_multiclass
from .multiclass import class_order, pairs

# Rows times features of an average sub-problem below which sub-problems are solved one by one:
# threads would mostly wait for each other in Python. The pairs of scene15 take 0.15 s one by one,
# and 0.2 s in threads.
SMALL_CELLS = 200_000


@dataclass(frozen=True)
class Problem:
    """A binary sub-problem: class i against class j, or against the rest where j is None."""

    i: int
    j: int | None
    rows: np.ndarray | None  # the numbers of its rows; None means all


@dataclass(frozen=True)
class Posed:
    """The rows of a sub-problem with their signs, and their kernel matrix if there is one."""

    X: Any
    sign: np.ndarray
    kernel_rows: KernelRows | None = None

    def missing(self, c: np.ndarray) -> float | None:
        """Return the sign that no row of positive cost has, or None if both signs occur."""
        positive = self.sign > 0.0
        if not c[positive].any():
            return 1.0
        return None if c[~positive].any() else -1.0


@dataclass(frozen=True)
class Job:
    """Checked rows and labels, and the sub-problems of a machine for them."""

    X: Any  # a matrix; for linear machines it may be on disk
    y: np.ndarray
    classes: np.ndarray  # in LIBSVM's order, or in that of the argument `classes`
    multiclass: str
    settings: Settings
    problems: list[Problem]
    shared: SharedMatrix | None = None

    @cached_property
    def small(self) -> bool:
        """True if the sub-problems are too small to be solved by several threads at once."""
        n, p = self.X.shape
        return self._mean_rows * min(n, p) < SMALL_CELLS

    @property
    def tiny(self) -> bool:
        """True if the sub-problems are so small that none of their loops has work for two
        threads."""
        return self.small and self._mean_rows**2 < SMALL_CELLS

    @cached_property
    def _mean_rows(self) -> float:
        n = self.X.shape[0]
        rows = [n if problem.rows is None else len(problem.rows) for problem in self.problems]
        return sum(rows) / len(rows)

    def pose(self, problem: Problem) -> Posed:
        """Return the rows of a sub-problem with their signs; it can be fitted at any cost."""
        y, X, rows = self.y, self.X, problem.rows
        if rows is not None:
            y = y[rows]
            X = X if self.shared else _subset(X, rows, self.settings.kernel)
        sign = np.where(y == self.classes[problem.i], 1.0, -1.0)
        return Posed(X, sign, self.shared.rows(rows) if self.shared else None)

    def pose_for_many(self, problem: Problem, cache_mb: float) -> Posed:
        """Do as `pose`, for several fits that share the cache of kernel rows."""
        posed, settings = self.pose(problem), self.settings
        if settings.kernel == "linear" or posed.kernel_rows or settings.model not in HALF_SQUARE:
            return posed
        rows = kernel_rows(posed.X, settings.derive(cache_mb=cache_mb))
        return replace(posed, kernel_rows=rows)

    def costs_of(self, problem: Problem, c: np.ndarray) -> np.ndarray:
        """Select the costs of the rows of a sub-problem from those of all rows."""
        return c if problem.rows is None else c[problem.rows]

    def share_matrix(self) -> "Job":
        """Return the job with one kernel matrix for all sub-problems, if it fits into memory."""
        in_pairs = self.problems[0].rows is not None and self.settings.kernel != "precomputed"
        by_class = [np.flatnonzero(self.y == label) for label in self.classes]
        order = np.concatenate(by_class) if in_pairs else None
        with doing(f"kernel matrix of {len(self.y)} rows"):
            return replace(self, shared=shared_matrix(self.X, self.settings, order))

    def approximate(self) -> tuple[Landmarks, "Job"]:
        """Return landmarks, and the linear job on their features."""
        with doing("features of landmarks"):
            marks, features = nystroem(self.X, self.settings)
        plain = self.settings.derive(kernel="linear", approx=None, landmarks=None, gamma=None)
        return marks, replace(self, X=features, settings=plain)

    def unapproximated(self) -> "Job":
        """Return the job with the kernel itself."""
        return replace(self, settings=self.settings.derive(approx=None, landmarks=None))

    def name_side(self, problem: Problem, sign: float) -> str:
        """Return the name of the class on one side of a sub-problem, for messages."""
        if sign < 0 and problem.j is None:
            return "(all others)"
        return f"{self.classes[problem.i if sign > 0 else problem.j]:g}"


def make_job(
    X: Any,
    y: Any,
    settings: Settings,
    multiclass: str | None = None,
    classes: Any = None,
) -> Job:
    """Check labels, classes and the shape of a kernel matrix; make a problem per class or pair.

    All sub-problems have the same γ, that of all rows.
    """
    n, p = X.shape
    y = as_vector("y", y, n)
    if settings.kernel == "precomputed":
        square_kernel(n, p)
    if settings.kernel in ("poly", "rbf"):
        settings = settings.derive(gamma=gamma_of(settings.gamma, X))
    order = class_order(y) if classes is None else as_vector("classes", classes)
    if classes is not None and not np.array_equal(np.sort(order), np.unique(y)):
        raise InputError(f"classes must be the labels in y, each once, got {classes!r:.60}")
    if len(order) < 2:
        got = f"only {order[0]:g}" if len(order) else "no rows"
        raise InputError(f"y must hold at least 2 classes, got {got}")
    multiclass = multiclass or usual_multiclass(settings.kernel)
    one_of("multiclass", multiclass, MULTICLASS)
    if len(order) > 2:
        linear = settings.kernel == "linear"
        found = estimate(n, p, cells_of(X), len(order), multiclass, linear)
        require_memory_for(found, len(order))
    return Job(X, y, order, multiclass, settings, make_problems(y, order, multiclass))


def cells_of(X: Any) -> int:
    """Return the number of entries of a matrix in memory or on disk."""
    return X.n_cells if isinstance(X, OnDisk) else size_of(X).cells


def make_problems(y: np.ndarray, classes: np.ndarray, multiclass: str) -> list[Problem]:
    """Return one problem for two classes; for more, one per pair or one per class."""
    k = len(classes)
    if k == 2:
        return [Problem(0, 1, None)]
    if multiclass == "ovr":
        return [Problem(i, None, None) for i in range(k)]
    members = [np.flatnonzero(y == label) for label in classes]
    return [Problem(i, j, np.concatenate([members[i], members[j]])) for i, j in pairs(k)]


def _subset(X: Matrix, rows: np.ndarray, kernel: str) -> Matrix:
    if kernel != "precomputed":
        return take_rows(X, rows)
    dense = as_scipy(X).toarray() if isinstance(X, Csr) else X
    return as_matrix(dense[np.ix_(rows, rows)])
