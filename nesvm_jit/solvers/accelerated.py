"""Algorithms 1 and 2 with what goes beyond the paper.

Tight Lipschitz constants guarded by a descent test; restarts where the gradient points against the
step (O'Donoghue and Candès 2015); momentum from strong convexity; stopping where F_μ is minimised
as well as it is near P; other schedules of μ, and a prox-centre that moves along.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..models.base import Smoothing
from ..problems.certificate import DualPoint
from ..problems.evaluation import Evaluation
from ..problems.linear import LinearProblem
from .driver import CHECK_EVERY, Engine
from .homotopy import lower
from .nesvm import State
from .run import Smooth

FACTOR = 0.5  # of the geometric schedule
ENOUGH = 0.4  # share of what smoothing adds to the gap, that F_μ may be above its minimum
STEEPEST = 0.25  # the least factor of the schedule "gap"
WARM_STEPS = 16


@dataclass(frozen=True)
class Method:
    """How the inner loop runs. The defaults are the paper's."""

    epsilon: float = 1e-3  # stop at |F_μ(w^{k+1}) − F_μ(w^k)| < ε
    lipschitz: str = "paper"  # or "tight"
    restart: bool = False  # forget the history when the gradient points against the step
    strong: bool = False  # momentum from the strong convexity of ½‖w‖²
    balanced: bool = False  # stop when F_μ is minimised as well as it is near P

    @property
    def printed(self) -> bool:
        """Whether it is Algorithm 1 as printed."""
        return self.lipschitz == "paper" and not (self.restart or self.strong or self.balanced)


@dataclass(frozen=True)
class Continuation:
    """How μ falls. `moving` takes the warm start as prox-centre too; the paper keeps w⋆."""

    end: float  # μ* of the loss; the penalty's falls in the same proportion
    schedule: str = "paper"
    moving: bool = False

    @property
    def printed(self) -> bool:
        """Whether it is Algorithm 2 as printed."""
        return self.schedule == "paper" and not self.moving


@dataclass
class FastState(State):
    """What the methods beyond the paper remember besides."""

    y: np.ndarray | None = None  # y^{k−1}, of the method for strong convexity
    iterations: int = 0


def minimise(problem: Smooth, s: FastState, method: Method) -> Engine:
    """F_μ from s.w, to where the method is settled."""
    advance = _with_strong_convexity if method.strong else _with_history
    while not s.settled:
        at = problem.at(s.w, s.smoothing)
        s.settled = _settled(problem, at, s, method)
        if not s.settled:
            advance(problem, s, at, method)
        s.iterations += 1
        yield at


def _settled(problem: Smooth, at: Evaluation, s: FastState, method: Method) -> bool:
    """The paper's stopping rule |ΔF_μ| < ε, or that the gap now owes more to μ than to F_μ."""
    if not method.balanced:
        return abs(at.value - s.F) < method.epsilon
    certified = s.iterations % CHECK_EVERY == 0
    return certified and problem.suboptimality(at) <= ENOUGH * (at.objective - at.value)


def _with_history(problem: Smooth, s: FastState, at: Evaluation, method: Method) -> None:
    """A step of Algorithm 1, guarded and restarted."""
    w, F, g = s.w, at.value, at.gradient
    y = w - g / s.L
    s.history += (s.k + 1) / 2 * g
    z = s.w_star - s.history / s.L
    w_next = 2 / (s.k + 3) * z + (s.k + 1) / (s.k + 3) * y
    if method.lipschitz == "tight" and s.k % CHECK_EVERY == 0:
        drop = problem.inner(g, g) / (2 * s.L)
        if problem.at(y, s.smoothing).value > F - drop + 1e-12 * abs(F):  # L is too small
            s.L *= 2
            _restart(s, w)
            return
    if method.restart and s.k > 0 and problem.inner(g, w_next - w) > 0.0:
        _restart(s, y)
        return
    s.w, s.F, s.k = w_next, F, s.k + 1


def _restart(s: State, w: np.ndarray) -> None:
    """Begin at w, without a history."""
    s.w, s.w_star, s.history = w, w.copy(), np.zeros_like(w)
    s.k, s.F = 0, np.inf


def _with_strong_convexity(problem: Smooth, s: FastState, at: Evaluation, method: Method) -> None:
    """Nesterov's step for a σ-strongly convex F_μ: momentum (√L − √σ)/(√L + √σ)."""
    root, sigma = np.sqrt(s.L), np.sqrt(problem.model.strong_convexity)
    y = s.w - at.gradient / s.L
    y_before = s.w if s.y is None else s.y
    w_next = y + (root - sigma) / (root + sigma) * (y - y_before)
    if method.restart and problem.inner(at.gradient, w_next - s.w) > 0.0:
        w_next = y
    s.w, s.y, s.F = w_next, y, at.value


def continue_down(
    problem: Smooth,
    s: FastState,
    stages: Continuation,
    method: Method,
    measure_gap: Callable[[Evaluation], float],
    tol: float,
) -> Engine:
    """`minimise` at μ⁰, …, μ*; the schedule "gap" asks for the gap that an evaluation proves."""
    last = min(1.0, stages.end / s.start.loss)
    while True:
        at = None
        for at in minimise(problem, s, method):
            yield at
        if s.share <= last or not problem.model.smoothed:
            return
        s.t += 1
        if stages.schedule == "paper":
            share = 1.0 / (s.t + 1)
        elif stages.schedule == "geometric":
            share = s.share * FACTOR
        else:  # the gap at a minimiser is about proportional to μ: aim at the tolerance
            gap = measure_gap(at or problem.at(s.w, s.smoothing))
            share = s.share * min(FACTOR, max(STEEPEST, 0.5 * tol / max(gap, 1e-300)))
        lower(problem, s, max(share, last), method.lipschitz)
        s.y = None
        if stages.moving:
            s.w_star = s.w.copy()


class WarmStart(NamedTuple):
    """A point with its margins and P, the smoothing at which it proves the smallest gap, and the
    dual point that proves it."""

    smoothing: Smoothing
    bound: DualPoint
    objective: float
    margins: Any


def warm_start(problem: LinearProblem, w0: np.ndarray, first: Smoothing) -> WarmStart:
    """Where a good start w⁰ stays one: the best smoothing among μ⁰ · 4^{−k}. A larger μ would lead
    away from w⁰. The margins take one pass; a dual point takes one more for each smoothing, two
    with a bias, so that few are tried: every fourth, then those beside the best."""
    P, margins = problem.objective_at(w0)
    smoothings = [Smoothing(*(mu * 4.0**-k for mu in first)) for k in range(WARM_STEPS)]
    found: dict[int, DualPoint] = {}

    def best_of(numbers: Iterable[int]) -> int:
        for k in numbers:
            if k not in found and 0 <= k < WARM_STEPS:
                found[k] = problem.bound_of_margins(margins, smoothings[k])
        return max(found, key=lambda k: found[k].value)

    best = best_of(range(0, WARM_STEPS, 4))
    for step in (2, 1):
        best = best_of((best - step, best + step))
    return WarmStart(smoothings[best], found[best], P, margins)
