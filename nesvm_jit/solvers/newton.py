"""Semismooth Newton on the smoothed problem, with exact line search.

F_μ is piecewise quadratic and only the rows with 0 < u_i < 1 bend it, so its Hessian is cheap and
one step is exact within a piece. As soon as the gap owes more to smoothing than to F_μ not being
minimal, the dual variables found become the centre that the next F_μ is smoothed about, and μ
falls by half. With the centre at zero, as in the paper, w8a at C = 1 takes 3 × the steps to 1e-3
and 6 × to 1e-6: there accuracy comes from a small μ alone, whose F_μ has kinks everywhere.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..models.base import Smoothing
from ..models.problem import Evaluation
from .direction import direction as linear_direction
from .run import Run, Smooth

FACTOR = 0.5
ENOUGH = 0.3  # of the gap
SMALLEST = 1e-12  # of μ⁰
NO_DESCENT = 1e-15  # of F_μ: a slope that rounding made
LINE_ROUNDS = 60
PATIENCE = 200  # rounds without a smaller gap: rounding has the last word
LINE_EXACT = 1e-4  # of the slope at the start

Direction = Callable[[Any, np.ndarray, Smoothing], np.ndarray]  # −H⁻¹g


def newton(
    problem: Smooth,
    v0: np.ndarray,
    start: Smoothing,
    run: Run,
    alpha0: np.ndarray | None = None,
    moving: bool = True,
    direction: Direction = linear_direction,
) -> None:
    """Minimise F_μ, smoothed about α⁰ (or zero) at first, by Newton steps for μ = μ⁰, μ⁰/2, …
    until the run is done; the centre stays where it was unless `moving`."""
    saved = run.resumed("newton")
    if saved is None:
        smoothing, least, idle = start, np.inf, 0
        found = problem.place(v0, smoothing, alpha0)
    else:
        start, smoothing = Smoothing(*saved["start"]), Smoothing(*saved["smoothing"])
        least, idle, found = saved["least"], saved["idle"], Evaluation(*saved["found"])

    def state() -> dict:
        loop = {"smoothing": smoothing, "least": least, "idle": idle}
        return {"start": start, **loop, "found": found}

    while idle < PATIENCE:
        if run.pausing("newton", state, steps=True):
            return
        worth = (found.objective - problem.bound_now()) <= run.limits.tol * found.objective
        # with a bias a dual point costs two passes; then only where it may end the run
        certify = True if worth or not problem.bias else None
        if run.record(problem.point, found, smoothing, certify):
            return
        least, idle = (run.gap, 0) if run.gap < least else (least, idle + 1)
        ahead = _next_step(problem, found, smoothing, SMALLEST * start.loss, moving, direction)
        if ahead is None:
            return
        step, descent, smoothing = ahead
        problem.aim(step)
        found = problem.step(_line_search(problem, descent, smoothing), smoothing)


def _next_step(
    problem: Smooth,
    found: Evaluation,
    smoothing: Smoothing,
    smallest: float,
    moving: bool,
    direction: Direction,
) -> tuple[np.ndarray, float, Smoothing] | None:
    """A direction, how steeply F_μ falls along it, and μ: this one or, where it has nothing left
    to give, a smaller one about the dual point found. None when there is nothing left at all."""
    while True:
        if not _minimal(problem, found):
            step = direction(problem, found.gradient, smoothing)
            descent = -problem.inner(found.gradient, step)
            if descent > NO_DESCENT * abs(found.value):
                return step, descent, smoothing
        if not problem.model.smoothed or smoothing.loss <= smallest:
            return None
        if moving:
            problem.recentre(smoothing)
        smoothing = Smoothing(*(FACTOR * mu for mu in smoothing))
        found = problem.step(0.0, smoothing)


def _minimal(problem: Smooth, found: Evaluation) -> bool:
    """Whether F_μ not being minimal is a small part of the gap."""
    gap = found.objective - problem.bound_now()
    return problem.excess(problem.point, found) <= ENOUGH * gap


def _line_search(problem: Smooth, descent: float, smoothing: Smoothing) -> float:
    """The root of φ'(t), which is piecewise linear and never falls, from φ'(0) = −descent: Newton
    inside a bracket."""
    enough = LINE_EXACT * descent
    low, high, t = 0.0, np.inf, 1.0
    for _ in range(LINE_ROUNDS):
        first, second = problem.slope(t, smoothing)
        if abs(first) <= enough:
            return t
        if first < 0.0:
            low = t
        else:
            high = t
        ahead = t - first / second if second > 0.0 else np.inf
        if low < ahead < high:
            t = min(ahead, 100.0 * t) if not np.isfinite(high) else ahead
        else:
            t = 0.5 * (low + high) if np.isfinite(high) else 4.0 * t
        if high - low <= 1e-14 * high:
            break
    return low if low > 0.0 else t
