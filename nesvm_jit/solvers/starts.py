"""Where solvers of linear problems start: at which smoothing, and about which dual point."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from ..models.base import Smoothing
from ..problems.certificate import DualPoint
from ..problems.linear import LinearProblem
from ..settings import ONE_SMOOTHING, Settings
from .run import scaled

WARM_STEPS = 16  # smoothings that a warm start chooses from: the last is 4⁻¹⁵ ≈ 1e-9 of the first
# μ that Newton's steps go on with from a dual point whose relative gap is above FAR_OFF, or not.
FAR, NEAR = Smoothing(1.0, 1.0), Smoothing(0.25, 0.25)
FAR_OFF = 0.3


def first_smoothing(settings: Settings) -> Smoothing:
    """μ⁰: `mu` of a solver that has one smoothing throughout, `mu_start` of all others."""
    mu = settings.mu if settings.solver in ONE_SMOOTHING else settings.mu_start
    return Smoothing(mu, mu if settings.nu is None else settings.nu)


def smoothing_from(gap: float) -> Smoothing:
    """Where Newton's steps go on from a dual point of this gap."""
    return FAR if gap > FAR_OFF else NEAR


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
    smoothings = [scaled(first, 4.0**-k) for k in range(WARM_STEPS)]
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
