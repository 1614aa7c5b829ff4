"""Algorithm 1 of the paper: Nesterov's method on the smoothed problem."""

from dataclasses import dataclass

import numpy as np

from ..models.base import Smoothing
from .run import CHECK_EVERY, Run, Smooth

ENOUGH = 0.4  # of what smoothing adds to the gap
STATE = ("L", "w", "w_star", "history", "before", "k")
STRONG_STATE = ("L", "w", "y_before", "before")


@dataclass
class Method:
    """How the inner loop runs. The defaults are the paper's; the rest goes beyond it."""

    epsilon: float = 1e-3  # stop at |F_μ(w^{k+1}) − F_μ(w^k)| < ε
    lipschitz: str = "paper"  # or "tight"
    restart: bool = False  # forget the history when the gradient points against the step
    strong: bool = False  # momentum from the strong convexity of ½‖w‖²
    balanced: bool = False  # stop when F_μ is minimised as well as it is near P


def nesvm(
    problem: Smooth,
    w0: np.ndarray,
    w_star: np.ndarray,
    smoothing: Smoothing,
    method: Method,
    run: Run,
) -> np.ndarray:
    """Minimise F_μ from w⁰ with prox-centre w⋆; returns w^{k+1}."""
    if method.strong:
        return nesvm_strong(problem, w0, smoothing, method, run)
    saved = run.resumed("nesvm")
    if saved is None:
        L = problem.lipschitz(method.lipschitz, smoothing)
        w, history, before = w0.copy(), np.zeros_like(w0), np.inf
        k = 0
    else:
        smoothing = Smoothing(*saved["smoothing"])
        L, w, w_star, history, before, k = (saved[name] for name in STATE)

    def state() -> dict:
        values = dict(zip(STATE, (L, w, w_star, history, before, k), strict=True))
        return {"smoothing": smoothing, **values}

    while True:
        if run.pausing("nesvm", state):
            return w
        found = problem.evaluate(w, smoothing)  # Steps 1 and 2: u, F_μ(w^k), ∇F_μ(w^k)
        F, g = found.value, found.gradient
        if run.record(w, found, smoothing) or _settled(problem, w, found, before, method, run):
            return w
        y = w - g / L  # eq. 24
        history += (k + 1) / 2 * g
        z = w_star - history / L  # eq. 25
        w_next = 2 / (k + 3) * z + (k + 1) / (k + 3) * y  # eq. 26
        if method.lipschitz == "tight" and k % CHECK_EVERY == 0:
            drop = problem.inner(g, g) / (2 * L)
            F_y = problem.evaluate(y, smoothing).value
            if F_y > F - drop + 1e-12 * abs(F):  # the descent test: L is too small
                L, k, before = 2 * L, 0, np.inf
                w_star, history = w.copy(), np.zeros_like(w)
                continue
        if method.restart and k > 0 and problem.inner(g, w_next - w) > 0.0:
            w, w_star, history, k, before = y, y.copy(), np.zeros_like(w), 0, np.inf
            continue
        w, before, k = w_next, F, k + 1


def nesvm_strong(
    problem: Smooth, w0: np.ndarray, smoothing: Smoothing, method: Method, run: Run
) -> np.ndarray:
    """Nesterov's method for a σ-strongly convex F_μ: momentum (√L − √σ)/(√L + √σ)."""
    saved = run.resumed("nesvm")
    if saved is None:
        L = problem.lipschitz(method.lipschitz, smoothing)
        w, y_before, before = w0.copy(), w0, np.inf
    else:
        smoothing = Smoothing(*saved["smoothing"])
        L, w, y_before, before = (saved[name] for name in STRONG_STATE)

    def state() -> dict:
        values = dict(zip(STRONG_STATE, (L, w, y_before, before), strict=True))
        return {"smoothing": smoothing, **values}

    while True:
        if run.pausing("nesvm", state):
            return w
        found = problem.evaluate(w, smoothing)
        F, g = found.value, found.gradient
        if run.record(w, found, smoothing) or _settled(problem, w, found, before, method, run):
            return w
        root, sigma = np.sqrt(L), np.sqrt(problem.model.strong_convexity)
        y = w - g / L
        w_next = y + (root - sigma) / (root + sigma) * (y - y_before)
        if method.restart and problem.inner(g, w_next - w) > 0.0:
            w_next = y
        w, y_before, before = w_next, y, F


def _settled(problem: Smooth, w, found, before: float, method: Method, run: Run) -> bool:
    """The paper's stopping rule |ΔF_μ| < ε, or that the gap now owes more to μ than to F_μ."""
    if not method.balanced:
        return abs(found.value - before) < method.epsilon
    fresh = run.rounds % CHECK_EVERY == 1
    return fresh and problem.excess(w, found) <= ENOUGH * (found.objective - found.value)
