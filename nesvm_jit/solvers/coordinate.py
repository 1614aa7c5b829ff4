"""Randomised coordinate ascent on the dual: many cheap steps, best where X is wide and sparse.

A free bias would couple all α; instead b is held near b⁰ by ½ρ(b − b⁰)², which makes it a feature
like any other, and b⁰ is renewed after every epoch.
"""

import numpy as np

from ..kernels.coordinate import (
    ALPHA,
    CURVATURE,
    DIAGONAL,
    LABEL,
    LOWER,
    RESIDUAL,
    UPPER,
    Epoch,
    _dual_epoch,
    _shuffle,
    dual_rows,
)
from ..kernels.sweep import HINGE
from ..models.base import Smoothing
from ..models.problem import LinearProblem
from .run import Run

SPREAD = 0.1  # of gradients, at which rows set aside are looked at again; then less
TIGHTER = 0.1
EARLY = 0.5  # of the estimate that promised too much
FIRST_LOOK, LATER = 20, 1.5  # rounds after which P is taken whatever is promised
UNSMOOTHED = Smoothing(0.0, 0.0)


def coordinate(
    problem: LinearProblem,
    alpha0: np.ndarray | None,
    b0: float,
    seed: int,
    run: Run,
    patience: float = np.inf,
) -> tuple[np.ndarray, np.ndarray, float]:
    """Raise the dual from α⁰ and b⁰, epoch by epoch, until the run ends, or until more epochs than
    `patience` seem to be left. Returns the point [w; b], α and the gap as far as it is known.

    P costs a pass over all rows: it is taken when the residuals seen on the way promise that the
    tolerance is reached, now and then, and at the end.
    """
    n, X = problem.n_rows, problem.part.whole
    state = np.random.default_rng(seed).integers(1, 2**63, 1, dtype=np.uint64)
    share = problem.mean_square() if problem.bias else 0.0
    saved = run.resumed("coordinate")
    dual = _start(problem, alpha0 if saved is None else None, share)
    flat = X.reshape(-1) if isinstance(X, np.ndarray) else X.data
    v = np.zeros(problem.n_variables)
    w, _ = problem.split(v)
    order = active = np.arange(n)
    if saved is None:
        if alpha0 is not None:
            w[:] = problem.direction(dual[:, ALPHA])
        if not w.any():  # what is known without a pass
            run.best, run.objective = v.copy(), float(problem.part.rows.c.sum())
        epoch, spread = _sums(problem, dual, b0), SPREAD
        promise, next_look = run.limits.tol, FIRST_LOOK
        before = 1.0
    else:
        for name, array in (("dual", dual), ("v", v), ("order", order), ("random", state)):
            array[:] = saved[name]
        active, epoch = order[: saved["active"]], Epoch(*saved["epoch"])
        spread, promise, next_look, before = saved["numbers"]

    def now() -> dict:
        numbers = (spread, promise, next_look, before)
        arrays = {"dual": dual, "v": v, "order": order, "random": state}
        return {**arrays, "active": len(active), "epoch": epoch, "numbers": numbers}

    while True:
        if run.pausing("coordinate", now):
            return v, dual[:, ALPHA].copy(), run.gap
        _shuffle(active, state)
        epoch, kept = _dual_epoch(X, flat, dual, active, Epoch(*epoch), share, w)
        problem.passes += len(active) / n
        highest, lowest, b, total, excess, squares, loss = epoch
        if problem.bias:
            b += share * excess  # b⁰ ← b
            v[-1] = b
        gap = problem.guess(w, loss, total, 0.5 * squares)
        done = run.passed()
        if done or gap <= promise or run.rounds >= next_look:
            alpha = dual[:, ALPHA].copy()
            found = problem.judge(v, alpha, w)
            dual[:, RESIDUAL] = problem.residuals()
            if run.enter(v, found, UNSMOOTHED) or done:
                return v, alpha, run.gap
            promise, next_look = EARLY * min(promise, gap), int(LATER * run.rounds) + 1
            epoch, kept = _sums(problem, dual, b), n
        elif highest - lowest > spread:
            above = highest if highest > 0.0 else np.inf
            below = lowest if lowest < 0.0 else -np.inf
            epoch = Epoch(above, below, b, *epoch[3:])
        else:
            spread *= TIGHTER if len(active) == n else 1.0
            epoch, kept = Epoch(np.inf, -np.inf, b, *epoch[3:]), n
        if left(gap, before, run.limits.tol) > patience:
            alpha = dual[:, ALPHA].copy()
            run.enter(v, problem.judge(v, alpha, w), UNSMOOTHED)
            return v, alpha, gap
        before = gap
        if kept == n:
            order[:] = np.arange(n)
        active = order[:kept]


def left(gap: float, before: float, tol: float) -> float:
    """How many epochs are left if the gap goes on to fall as in the last one."""
    if gap <= tol:
        return 0.0
    return np.log(gap / tol) / np.log(before / gap) if gap < before else np.inf


def _sums(problem: LinearProblem, dual: np.ndarray, b: float) -> Epoch:
    """An epoch that leaves everyone in play, with the sums added up afresh."""
    alpha, d = dual[:, ALPHA], dual[:, DIAGONAL]
    sums = float(alpha.sum()), float(alpha @ problem.part.rows.y), float(d @ alpha**2)
    return Epoch(np.inf, -np.inf, b, *sums, problem.loss_of(dual[:, RESIDUAL]))


def _start(problem: LinearProblem, alpha0: np.ndarray | None, share: float) -> np.ndarray:
    """α⁰ inside its bounds, and what every row needs."""
    c = problem.part.rows.c
    hinge = problem.model.loss == HINGE
    dual = dual_rows(problem.n_rows)
    dual[:, LABEL], dual[:, RESIDUAL] = problem.part.rows.y, 1.0
    dual[:, LOWER] = 0.0 if hinge else np.where(c > 0.0, -np.inf, 0.0)
    dual[:, UPPER] = c if hinge else np.where(c > 0.0, np.inf, 0.0)
    if not hinge:
        dual[c > 0.0, DIAGONAL] = 0.5 / c[c > 0.0]
    if alpha0 is not None:
        dual[:, ALPHA] = np.clip(alpha0, dual[:, LOWER], dual[:, UPPER])
    curvature = problem.part.squares() + dual[:, DIAGONAL] + share
    dual[:, CURVATURE] = np.where(curvature == 0.0, 1.0, curvature)
    return dual
