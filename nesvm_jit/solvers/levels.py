"""Newton's method for a kernel C-SVM from the solution on a part of the rows, in levels.

With costs raised in proportion, a quarter of the rows has nearly the same solution. Its margins on
all rows tell which of them bend F_μ at a small μ: few, where at a large μ it would be all.
"""

from dataclasses import replace

import numpy as np

from ..models.base import Smoothing
from ..models.kernel_problem import KernelProblem
from ..models.smoothed_kernel import SmoothedKernel
from .active_set import active_set_direction
from .newton import newton
from .run import Run

FEW = 1000  # rows that need no level below
SHARE = 4
ROUGH = 0.03  # gap of a level that is only a start
FIRST, NEXT = Smoothing(4.0, 4.0), Smoothing(0.25, 0.25)


def newton_in_levels(
    smooth: SmoothedKernel, run: Run, rng: np.random.Generator, moving: bool
) -> None:
    """Newton steps on the problem, from those on a quarter of its rows where it has many."""
    n = smooth.n_rows
    v0, start = np.zeros(smooth.n_variables), FIRST
    if n > FEW:
        part = _part(smooth.rows.y, rng)
        v0, start = _from(smooth, part, run, rng, moving), NEXT
    run.problem = smooth
    newton(smooth, v0, start, run, None, moving, active_set_direction)


def _part(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A quarter of the rows of each class, at least one."""
    chosen = []
    for side in (1.0, -1.0):
        rows = np.flatnonzero(y == side)
        chosen.append(rng.choice(rows, max(1, len(rows) // SHARE), replace=False))
    return np.sort(np.concatenate(chosen))


def _from(
    smooth: SmoothedKernel, part: np.ndarray, run: Run, rng: np.random.Generator, moving: bool
) -> np.ndarray:
    """The point that the solution on a part of the rows is on all of them."""
    kernel = smooth.kernel
    c = kernel.c[part] * (kernel.c.sum() / max(kernel.c[part].sum(), np.finfo(float).tiny))
    small = KernelProblem(kernel.rows.subset(part), kernel.y[part], c, kernel.bias, kernel.loss)
    given = run.limits
    rough = replace(given, tol=max(ROUGH, given.tol), time_limit=run.remaining())
    below = Run(small, rough)
    newton_in_levels(SmoothedKernel(small, smooth.model), below, rng, moving)
    run.take_over(below)
    beta, b = np.zeros(kernel.n_rows), 0.0
    if below.best is not None:
        beta[part], b = below.problem.split(below.best)
    return smooth.start(beta, b)
