"""Algorithms 1 and 2 with what goes beyond the paper.

Tight Lipschitz constants guarded by a descent test; restarts where the gradient points against the
step (O'Donoghue and Candès 2015); momentum from strong convexity; stopping where F_μ is minimised
as well as it is near P; other schedules of μ, and a prox-centre that moves along.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..models.base import Smoothing
from ..problems.evaluation import Evaluation
from ..settings import Settings
from . import nesvm
from .driver import CHECK_EVERY, Steps
from .run import Smooth, scaled

FACTOR = 0.5  # what μ is multiplied by in the schedule "geometric", and at most in "gap"
STEEPEST = 0.25  # what μ is multiplied by at least in the schedule "gap"
# Share of P − F_μ, which is what smoothing adds to the gap, that F_μ may be above its minimum: with
# less, the stage is over.
ENOUGH = 0.4
ROUNDING = 1e-12  # share of F_μ by which rounding may fail the descent test
PAPERS_END, AUTOS_END = 0.01, 1e-9  # shares of μ⁰ that μ* is where none is given


@dataclass(kw_only=True)
class State(nesvm.State):
    """What the methods beyond the paper remember besides."""

    start: Smoothing  # μ⁰
    share: float = 1.0  # of μ in μ⁰
    t: int = 0  # the stage
    y: np.ndarray | None = None  # y^{k−1}, of the method for strong convexity
    iterations: int = 0


def resolve(settings: Settings) -> Settings:
    """The settings with what is not given: as printed, or as `auto` has it."""
    auto = settings.solver == "auto"
    return settings.derive(
        lipschitz=settings.lipschitz or ("tight" if auto else "paper"),
        schedule=settings.schedule or ("gap" if auto else "paper"),
        restart=auto if settings.restart is None else settings.restart,
        moving_centre=auto if settings.moving_centre is None else settings.moving_centre,
    )


def last_smoothing(settings: Settings, first: Smoothing) -> float:
    """μ* of the loss."""
    share = AUTOS_END if settings.solver == "auto" else PAPERS_END
    return settings.mu_end or share * first.loss


def minimise(problem: Smooth, s: State, settings: Settings) -> Steps:
    """F_μ from s.w, until the stopping rule holds."""
    advance = _with_strong_convexity if settings.strong else _with_history
    while not s.settled:
        at = problem.at(s.w, s.smoothing)
        s.settled = _settled(problem, at, s, settings)
        if not s.settled:
            advance(problem, s, at, settings)
        s.iterations += 1
        yield at


def _settled(problem: Smooth, at: Evaluation, s: State, settings: Settings) -> bool:
    """The paper's stopping rule |ΔF_μ| < ε, or that the gap now owes more to μ than to F_μ."""
    if settings.solver != "auto":
        return abs(at.value - s.F) < settings.epsilon
    certified = s.iterations % CHECK_EVERY == 0
    return certified and problem.suboptimality(at) <= ENOUGH * (at.objective - at.value)


def _with_history(problem: Smooth, s: State, at: Evaluation, settings: Settings) -> None:
    """A step of Algorithm 1, guarded and restarted."""
    w, F, g = s.w, at.value, at.gradient
    y = w - g / s.L
    s.history += (s.k + 1) / 2 * g
    z = s.w_star - s.history / s.L
    w_next = 2 / (s.k + 3) * z + (s.k + 1) / (s.k + 3) * y
    if settings.lipschitz == "tight" and s.k % CHECK_EVERY == 0:
        drop = problem.inner(g, g) / (2 * s.L)
        if problem.at(y, s.smoothing).value > F - drop + ROUNDING * abs(F):  # L is too small
            s.L *= 2
            _restart(s, w)
            return
    if settings.restart and s.k > 0 and problem.inner(g, w_next - w) > 0.0:
        _restart(s, y)
        return
    s.w, s.F, s.k = w_next, F, s.k + 1


def _restart(s: State, w: np.ndarray) -> None:
    """Begin at w, without a history."""
    s.w, s.w_star, s.history = w, w.copy(), np.zeros_like(w)
    s.k, s.F = 0, np.inf


def _with_strong_convexity(problem: Smooth, s: State, at: Evaluation, settings: Settings) -> None:
    """Nesterov's step for a σ-strongly convex F_μ: momentum (√L − √σ)/(√L + √σ)."""
    root, sigma = np.sqrt(s.L), np.sqrt(problem.model.strong_convexity)
    y = s.w - at.gradient / s.L
    y_before = s.w if s.y is None else s.y
    w_next = y + (root - sigma) / (root + sigma) * (y - y_before)
    if settings.restart and problem.inner(at.gradient, w_next - s.w) > 0.0:
        w_next = y
    s.w, s.y, s.F = w_next, y, at.value


def continue_down(
    problem: Smooth, s: State, settings: Settings, measure_gap: Callable[[Evaluation], float]
) -> Steps:
    """`minimise` at μ⁰, …, μ*; the schedule "gap" asks for the gap that an evaluation proves."""
    last = min(1.0, last_smoothing(settings, s.start) / s.start.loss)
    while True:
        at = None
        for at in minimise(problem, s, settings):
            yield at
        if s.share <= last or not problem.model.smoothed:
            return
        s.t += 1
        if settings.schedule == "paper":
            share = 1.0 / (s.t + 1)
        elif settings.schedule == "geometric":
            share = s.share * FACTOR
        else:  # the gap at a minimiser is about proportional to μ: aim at half the tolerance
            gap = measure_gap(at or problem.at(s.w, s.smoothing))
            share = s.share * min(FACTOR, max(STEEPEST, 0.5 * settings.tol / max(gap, 1e-300)))
        s.share = max(share, last)
        s.smoothing = scaled(s.start, s.share)
        s.L = problem.lipschitz(settings.lipschitz or "paper", s.smoothing)
        s.history, s.F, s.k, s.settled, s.y = np.zeros_like(s.w), np.inf, 0, False, None
        if settings.moving_centre:
            s.w_star = s.w.copy()
