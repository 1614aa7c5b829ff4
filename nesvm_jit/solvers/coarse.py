"""Kernel C-SVM from the solution on a part of the rows, in levels.

With costs raised in proportion, a quarter of the rows has nearly the same solution. Its margins on
all rows tell newton which of them bend F_μ at a small μ (few, where at a large μ it would be all),
and pairwise which of them end at their bound: a6a at C = 1 then takes 5 rounds instead of 15,
100 000 rows half the time.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from ..models.base import Smoothing
from ..problems.kernel import KernelProblem
from ..problems.smoothed_kernel import SmoothedKernel
from . import newton
from . import pairwise as pairs
from .active_set import active_set_direction
from .driver import Saving, drive, where_it_may_end
from .run import Run

FEW = 1000  # rows up to which newton needs no level below
FEW_IN_PAIRS = 2048  # rows up to which pairwise needs no level below
SHARE = 4  # a level below has one row of each class where this one has so many
ROUGH = 0.03  # the relative gap that a level is solved to at least, being only a start
NEXT = Smoothing(0.25, 0.25)  # where newton goes on from the level below


def newton_in_levels(
    smooth: SmoothedKernel,
    run: Run,
    rng: np.random.Generator,
    few: int = FEW,
    saving: Saving | None = None,
) -> None:
    """Newton steps on the problem, from those on a quarter of its rows where it has many."""

    def below(small: KernelProblem, small_run: Run) -> None:
        newton_in_levels(SmoothedKernel(small, smooth.model), small_run, rng, few)

    v0, start = np.zeros(smooth.n_variables), newton.FIRST
    run.problem = smooth
    if smooth.n_rows > few and not run.enter(smooth.at(v0, start)):
        v0, start = smooth.start(*_below(smooth.kernel, run, rng, below)), NEXT
    # also where the run is over: what the level below has found is evaluated on all rows, and not
    # saved, since a level that was not cut short leads elsewhere
    state = newton.begin(smooth, v0, start)
    run_by_newton(smooth, state, run, None if run.done else saving)


def run_by_newton(
    smooth: SmoothedKernel, state: newton.State, run: Run, saving: Saving | None = None
) -> None:
    """Newton steps from a state, to their end."""
    if saving is not None:
        saving.state = state
    moving = run.settings.moving_centre is not False
    steps = newton.newton(smooth, state, active_set_direction, moving)
    drive(steps, run, where_it_may_end, newton.PATIENCE, saving)


def pairwise_in_levels(
    problem: KernelProblem,
    run: Run,
    rng: np.random.Generator,
    few: int = FEW_IN_PAIRS,
    saving: Saving | None = None,
) -> None:
    """Pairwise steps, from where a quarter of the rows says that bounds are reached."""

    def below(small: KernelProblem, small_run: Run) -> None:
        pairwise_in_levels(small, small_run, rng, few)

    alpha0 = None
    if problem.n_rows > few and not run.enter(problem.current()):
        beta, b = _below(problem, run, rng, below)
        f, used = np.zeros(problem.n_rows), np.flatnonzero(beta)
        problem.rows.add(used, beta[used], f)
        alpha0 = np.where(problem.y * (f + b) < 1.0, problem.c, 0.0)
    run_in_pairs(problem, pairs.begin(problem, alpha0), run, None if run.done else saving)


def run_in_pairs(
    problem: KernelProblem, state: pairs.State, run: Run, saving: Saving | None = None
) -> None:
    """Pairwise steps, every one of them certified."""
    if saving is not None:
        saving.state = state
    steps = pairs.pairwise(problem, state, run.settings.tol)
    drive(steps, run, pairs.certify_in_pairs, saving=saving)


def _below(
    problem: KernelProblem,
    run: Run,
    rng: np.random.Generator,
    solve: Callable[[KernelProblem, Run], None],
) -> tuple[np.ndarray, float]:
    """β and b of a rough solution on a part of the rows."""
    some = _quarter(problem.y, rng)
    weight = max(float(problem.c[some].sum()), np.finfo(float).tiny)
    c = problem.c[some] * (float(problem.c.sum()) / weight)
    small = KernelProblem(problem.rows.subset(some), problem.y[some], c, problem.bias, problem.loss)
    settings = run.settings
    left = None if settings.time_limit is None else max(0.0, run.remaining())
    tell = partial(run.warm_up, part=len(some))
    told = settings.derive(tol=max(ROUGH, settings.tol), time_limit=left, callback=tell)
    small_run = Run(small, told)
    before = run.iterations
    solve(small, small_run)
    run.take_over(small_run, run.iterations - before, len(some))
    beta, b = np.zeros(problem.n_rows), 0.0
    if small_run.best is not None:
        beta[some], b = small_run.problem.split(small_run.best.point)
    return beta, b


def _quarter(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A quarter of the rows of each class, at least one."""
    chosen = []
    for side in (1.0, -1.0):
        rows = np.flatnonzero(y == side)
        chosen.append(rng.choice(rows, max(1, len(rows) // SHARE), replace=False))
    return np.sort(np.concatenate(chosen))
