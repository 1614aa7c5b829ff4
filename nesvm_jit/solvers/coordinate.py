"""Randomised coordinate ascent on the dual: many cheap steps, best where X is wide and sparse.

A free bias would couple all α; instead b is held near b⁰ by ½ρ(b − b⁰)², which makes it a feature
like any other, and b⁰ is renewed after every epoch.
"""

import numpy as np

from ..kernels.coordinate import Dual, Epoch, _dual_epoch
from ..kernels.sweep import HINGE
from ..matrix import row_bytes
from ..models.base import Smoothing
from ..models.problem import LinearProblem
from .run import Run

RUN_BYTES = 1 << 14  # of rows visited one after the other
SPREAD = 0.1  # of gradients, at which rows set aside are looked at again; then less
TIGHTER = 0.1
EARLY = 0.5  # of the estimate that promised too much
FIRST_LOOK, LATER = 20, 1.5  # rounds after which P is taken whatever is promised
UNSMOOTHED = Smoothing(0.0, 0.0)


def coordinate(
    problem: LinearProblem, alpha0: np.ndarray | None, b0: float, seed: int, run: Run
) -> None:
    """Raise the dual from α⁰ and b⁰, epoch by epoch, until the run ends.

    P costs a pass over all rows: it is taken when the residuals seen on the way promise that the
    tolerance is reached, now and then, and at the end.
    """
    rng = np.random.default_rng(seed)
    n, y = problem.n_rows, problem.rows.y
    share = problem.mean_square() if problem.bias else 0.0
    dual = _start(problem, alpha0, share)
    v = np.zeros(problem.n_variables)
    w, _ = problem.split(v)
    w[:] = problem.direction(dual.alpha)
    if not w.any():  # what is known without a pass
        run.best, run.objective = v.copy(), float(problem.rows.c.sum())
    at_once = int(max(1, min(64, RUN_BYTES // max(1, row_bytes(problem.X)))))
    everyone = np.arange(n)
    active, aside = everyone, np.zeros(n, dtype=bool)
    epoch, spread = Epoch(np.inf, -np.inf, b0), SPREAD
    promise, next_look = run.limits.tol, FIRST_LOOK
    while True:
        starts = np.arange(0, len(active), at_once)
        rng.shuffle(starts)
        highest, lowest, b = _dual_epoch(
            problem.X, y, dual, active, starts, at_once, epoch, share, aside, w
        )
        problem.passes += len(active) / n
        if problem.bias:
            b += share * float(dual.alpha @ y)  # b⁰ ← b
            v[-1] = b
        gap = problem.guess(w, dual.alpha, dual.residual)
        done = run.passed()
        if done or gap <= promise or run.rounds >= next_look:
            found = problem.judge(v, dual.alpha, w)
            dual.residual[:] = problem.residuals()
            if run.enter(v, found, UNSMOOTHED) or done:
                return
            promise, next_look = EARLY * min(promise, gap), int(LATER * run.rounds) + 1
            active, epoch = everyone, Epoch(np.inf, -np.inf, b)
            continue
        if highest - lowest > spread:
            active = active[~aside[active]]
        elif len(active) < n:
            active, highest, lowest = everyone, np.inf, -np.inf
        else:
            spread *= TIGHTER
        epoch = Epoch(highest if highest > 0.0 else np.inf, lowest if lowest < 0.0 else -np.inf, b)


def _start(problem: LinearProblem, alpha0: np.ndarray | None, share: float) -> Dual:
    """α⁰ inside its bounds, and what every row needs."""
    c = problem.rows.c
    hinge = problem.model.loss == HINGE
    lower = np.zeros_like(c) if hinge else np.where(c > 0.0, -np.inf, 0.0)
    upper = c if hinge else np.where(c > 0.0, np.inf, 0.0)
    diagonal = np.zeros_like(c)
    if not hinge:
        diagonal[c > 0.0] = 0.5 / c[c > 0.0]
    alpha = np.zeros_like(c) if alpha0 is None else np.clip(alpha0, lower, upper)
    curvature = problem.squares() + diagonal + share
    curvature[curvature == 0.0] = 1.0
    return Dual(alpha, lower, upper, diagonal, curvature, np.ones_like(c))
