"""Algorithm 1 of the paper (NESVM): Nesterov's method on the smoothed problem, as printed."""

from dataclasses import dataclass

import numpy as np

from ..models.base import Smoothing
from .driver import Steps
from .run import Smooth


@dataclass
class State:
    """Where Algorithm 1 stands at the beginning of iteration k."""

    w: np.ndarray  # w^k
    w_star: np.ndarray  # the prox-centre w⋆
    smoothing: Smoothing  # μ
    L: float  # L_μ
    history: np.ndarray  # Σ_{i<k} (i+1)/2 · ∇F_μ(w^i)
    F: float = float("inf")  # F_μ(w^{k−1})
    k: int = 0
    settled: bool = False  # whether |F_μ(w^k) − F_μ(w^{k−1})| < ε


def nesvm(problem: Smooth, s: State, epsilon: float) -> Steps:
    """Minimise F_μ from w⁰; the solution w^{k+1} is in s.w at the end."""
    while not s.settled:
        at = problem.at(s.w, s.smoothing)  # Steps 1 and 2: u, F_μ(w^k), ∇F_μ(w^k)
        F, g = at.value, at.gradient
        s.settled = abs(F - s.F) < epsilon  # until |F_μ(w^{k+1}) − F_μ(w^k)| < ε
        if not s.settled:
            s.history += (s.k + 1) / 2 * g
            y = s.w - g / s.L  # Step 3, eq. 22
            z = s.w_star - s.history / s.L  # Step 3, eq. 23
            s.w = 2 / (s.k + 3) * z + (s.k + 1) / (s.k + 3) * y  # Step 4, eq. 24
            s.F, s.k = F, s.k + 1  # Step 5
        yield at
