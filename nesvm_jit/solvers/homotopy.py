"""Algorithm 2 of the paper: a series of smoothed problems with decreasing μ, warm started."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..models.base import Smoothing
from .nesvm import Method, nesvm
from .run import Run, Smooth

FACTOR = 0.5  # of the geometric schedule
WARM_STEPS = 16
SCHEDULES = ("paper", "geometric", "gap")


@dataclass
class Continuation:
    """How μ falls. `moving` takes the warm start as prox-centre too; the paper keeps w⋆."""

    start: Smoothing
    end: float  # μ* of the loss; the penalty's falls in the same proportion
    schedule: str = "paper"
    moving: bool = False


def homotopy(
    problem: Smooth,
    w0: np.ndarray,
    w_star: np.ndarray,
    continuation: Continuation,
    method: Method,
    run: Run,
) -> np.ndarray:
    """NESVM at μ⁰, μ¹, …, μ*, each from the solution of the one before."""
    w, share, t = w0, 1.0, 0
    saved = run.resumed("homotopy")
    if saved is not None:
        start, share, t = Smoothing(*saved["start"]), saved["share"], saved["t"]
        continuation = replace(continuation, start=start, end=saved["end"])
    for smoothing in _stages(continuation, run, share, t):
        centre = w if continuation.moving else w_star
        w = nesvm(problem, w, centre, smoothing, method, run)
        if run.done or not problem.model.smoothed:
            break
    return w


def warm_smoothing(problem: Smooth, w0: np.ndarray, start: Smoothing) -> Smoothing:
    """The smoothing among start · 4^{−k} at which w⁰ proves the smallest gap: where a good start
    stays one. A larger μ would lead away from it."""
    best, bound = start, -np.inf
    for k in range(WARM_STEPS):
        smoothing = Smoothing(*(mu * 4.0**-k for mu in start))
        problem.evaluate(w0, smoothing)
        value = problem.dual().value
        if value > bound:
            best, bound = smoothing, value
    return best


def _stages(continuation: Continuation, run: Run, share: float, t: int) -> Iterator[Smoothing]:
    """μ^t = μ⁰/(t+1), μ⁰ 2^{−t}, or as the measured gap asks, down to μ*."""
    last = min(1.0, continuation.end / continuation.start.loss)
    while True:
        if run.saving is not None:
            facts = {"start": continuation.start, "end": continuation.end, "share": share, "t": t}
            run.saving.outer["homotopy"] = facts
        yield Smoothing(*(share * mu for mu in continuation.start))
        if share <= last:
            return
        t += 1
        if continuation.schedule == "paper":
            share = 1.0 / (t + 1)
        elif continuation.schedule == "geometric":
            share *= FACTOR
        else:  # the gap at a minimiser is about proportional to μ: aim at the tolerance
            run.certify()
            share *= min(FACTOR, max(0.25, 0.5 * run.limits.tol / max(run.gap, 1e-300)))
        share = max(share, last)
