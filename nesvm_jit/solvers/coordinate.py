"""Randomised coordinate ascent on the dual: many cheap steps, best where X is wide and sparse.

The steps and the shrinking are those of Hsieh, Chang, Lin, Keerthi and Sundararajan (2008), as in
LIBLINEAR: a row whose α is at a bound and whose gradient points outwards by more than any row's
did in the last epoch is set aside. A free bias would couple all α; instead b is held near b⁰ by
½ρ(b − b⁰)², which makes it a feature like any other, and b⁰ is renewed after every epoch.
"""

from dataclasses import dataclass
from typing import Any

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
from ..kernels.loss import HINGE
from ..problems.evaluation import Evaluation
from ..problems.linear import LinearProblem
from .driver import Engine, Steps, always
from .run import Run
from .starts import first_smoothing, warm_start

# When the largest and the least gradient of an epoch are this near to each other, the rows set
# aside are looked at again; 0.1 is LIBLINEAR's usual stopping tolerance.
SPREAD = 0.1
TIGHTER = 0.1  # what that distance is multiplied by when it is reached with no row set aside
# P is taken where the estimated gap is below a promise, first the tolerance. Where P then shows
# that the estimate was too good, the next promise is this share of it.
NEXT_PROMISE = 0.5
FIRST_LOOK = 20  # epochs after which P is taken whatever the estimated gap
LOOK_GROWTH = 1.5  # from one such epoch to the next
IDLE_LOOKS = 3  # looks at P without a better P or D, after which rounding leaves nothing to gain


@dataclass
class State:
    """α with what belongs to each row, v = [w; b], and what the epochs so far have told."""

    dual: np.ndarray
    v: np.ndarray
    order: np.ndarray  # of the rows: the first `active` are in play
    random: np.ndarray
    active: int
    epoch: Epoch
    promise: float  # the estimated gap at which P is taken
    patience: float = np.inf  # epochs that may seem to be left
    spread: float = SPREAD
    next_look: int = FIRST_LOOK
    gap: float = 1.0  # as estimated
    epochs: int = 0
    best: tuple[float, float] = (np.inf, -np.inf)  # P and D seen
    idle: int = 0  # looks since one of them became better
    settled: bool = False  # whether more epochs would gain too little

    @property
    def alpha(self) -> np.ndarray:
        """A copy of α."""
        return self.dual[:, ALPHA].copy()


def begin(
    problem: LinearProblem,
    run: Run,
    v0: np.ndarray,
    w_star: np.ndarray | None = None,
    alpha0: np.ndarray | None = None,
) -> State:
    """Where coordinate steps start: at α⁰, put inside its bounds, or at the best dual point that
    v⁰ leads to."""
    settings = run.settings
    if alpha0 is None and problem.model.smoothed and v0.any():
        alpha0 = warm_start(problem, v0, first_smoothing(settings)).bound.alpha
    n = problem.n_rows
    random = np.random.default_rng(settings.seed).integers(1, 2**63, 1, dtype=np.uint64)
    dual = _start(problem, alpha0, _weight_of_bias(problem))
    v = np.zeros(problem.n_variables)
    if alpha0 is not None:
        problem.split(v)[0][:] = problem.dual_weights(dual[:, ALPHA])
    if not v.any():
        run.note(problem.zero())
    sums = _sums(problem, dual, problem.split(v0)[1])
    return State(dual, v, np.arange(n), random, n, sums, settings.tol)


def resume(problem: LinearProblem, run: Run, saved: dict[str, Any]) -> State:
    """Where saved epochs had led."""
    dual = dual_rows(problem.n_rows)
    dual[:] = saved["dual"]
    fresh = {"dual": dual, "epoch": Epoch(*saved["epoch"]), "best": tuple(saved["best"])}
    return State(**{**saved, **fresh})


def coordinate(problem: LinearProblem, s: State, tol: float) -> Steps:
    """Raise the dual, epoch by epoch, until rounding leaves nothing to gain, or until more epochs
    than s.patience seem to be left.

    P costs a pass over all rows: it is taken when the residuals seen on the way promise that the
    tolerance is reached, now and then, and at the end.
    """
    n, X = problem.n_rows, problem.shard.whole
    flat = X.reshape(-1) if isinstance(X, np.ndarray) else X.data
    share = _weight_of_bias(problem)
    w, _ = problem.split(s.v)
    while not s.settled:
        active = s.order[: s.active]
        _shuffle(active, s.random)
        epoch, kept = _dual_epoch(X, flat, s.dual, active, Epoch(*s.epoch), share, w)
        problem.passes += len(active) / n
        s.epochs += 1
        if problem.bias:
            s.v[-1] = epoch.b + share * epoch.excess
            epoch = epoch._replace(b=float(s.v[-1]))  # b⁰ ← b
        gap = problem.guess_gap(w, epoch.loss, epoch.total, 0.5 * epoch.squares)
        slow = count_epochs_left(gap, s.gap, tol) > s.patience
        s.gap, at = gap, None
        if slow or gap <= s.promise or s.epochs >= s.next_look:
            at = _look(problem, s, epoch.b)
        else:
            _choose_rows(s, epoch, kept)
        if s.active == n:
            s.order[:] = np.arange(n)
        s.settled = slow or s.idle >= IDLE_LOOKS
        done = yield at
        if done and at is None:
            yield problem.judge(s.v, s.alpha, w)


def _look(problem: LinearProblem, s: State, b: float) -> Evaluation:
    """P, beside the dual point; all rows are in play again, with sums added up afresh."""
    at = problem.judge(s.v, s.alpha, problem.split(s.v)[0])
    s.dual[:, RESIDUAL] = 1.0 - problem.shard.rows.y * at.margins
    at = problem.separate(at)
    s.promise = NEXT_PROMISE * min(s.promise, s.gap)
    s.next_look = int(LOOK_GROWTH * s.epochs) + 1
    s.epoch, s.active = _sums(problem, s.dual, b), problem.n_rows
    (P, D), dual = s.best, problem.estimate_bound(at)
    s.idle = 0 if at.objective < P or dual > D else s.idle + 1
    s.best = min(P, at.objective), max(D, dual)
    return at


def _choose_rows(s: State, epoch: Epoch, kept: int) -> None:
    """Go on with the rows that the epoch kept; with all where their gradients are nearly equal."""
    if epoch.highest - epoch.lowest > s.spread:
        above = epoch.highest if epoch.highest > 0.0 else np.inf
        below = epoch.lowest if epoch.lowest < 0.0 else -np.inf
        s.epoch, s.active = Epoch(above, below, *epoch[2:]), kept
        return
    s.spread *= TIGHTER if s.active == len(s.order) else 1.0
    s.epoch, s.active = Epoch(np.inf, -np.inf, *epoch[2:]), len(s.order)


def _weight_of_bias(problem: LinearProblem) -> float:
    """1/ρ, or 0 without a bias."""
    return problem.mean_square() if problem.bias else 0.0


def count_epochs_left(gap: float, before: float, tol: float) -> float:
    """How many epochs are left if the gap goes on to fall as in the last one."""
    if gap <= tol:
        return 0.0
    return np.log(gap / tol) / np.log(before / gap) if gap < before and tol > 0.0 else np.inf


def _sums(problem: LinearProblem, dual: np.ndarray, b: float) -> Epoch:
    """An epoch that leaves everyone in play, with the sums added up afresh."""
    alpha, d = dual[:, ALPHA], dual[:, DIAGONAL]
    sums = float(alpha.sum()), float(alpha @ problem.shard.rows.y), float(d @ alpha**2)
    return Epoch(np.inf, -np.inf, b, *sums, problem.loss_of(dual[:, RESIDUAL]))


def _start(problem: LinearProblem, alpha0: np.ndarray | None, share: float) -> np.ndarray:
    """α⁰ inside its bounds, and what every row needs."""
    c = problem.shard.rows.c
    hinge = problem.model.loss == HINGE
    dual = dual_rows(problem.n_rows)
    dual[:, LABEL], dual[:, RESIDUAL] = problem.shard.rows.y, 1.0
    dual[:, LOWER] = 0.0 if hinge else np.where(c > 0.0, -np.inf, 0.0)
    dual[:, UPPER] = c if hinge else np.where(c > 0.0, np.inf, 0.0)
    if not hinge:
        with np.errstate(over="ignore"):  # of a cost below 1e-308
            dual[c > 0.0, DIAGONAL] = np.minimum(0.5 / c[c > 0.0], np.finfo(float).max)
    if alpha0 is not None:
        dual[:, ALPHA] = np.clip(alpha0, dual[:, LOWER], dual[:, UPPER])
    curvature = problem.shard.squares() + dual[:, DIAGONAL] + share
    dual[:, CURVATURE] = np.where(curvature == 0.0, 1.0, curvature)
    return dual


def _steps(problem: LinearProblem, run: Run, state: State) -> Steps:
    return coordinate(problem, state, run.settings.tol)


COORDINATE = Engine(begin, resume, _steps, always)
