"""Algorithm 2 of the paper: NESVM for a falling μ, each from the solution before, as printed."""

import numpy as np

from ..models.base import Smoothing
from .driver import Engine
from .nesvm import State, nesvm
from .run import Smooth


def homotopy(problem: Smooth, s: State, mu_end: float, epsilon: float, kind: str) -> Engine:
    """NESVM at μ⁰, μ⁰/2, μ⁰/3, … down to μ*; L_μ is of this kind. The solution is in s.w."""
    last = min(1.0, mu_end / s.start.loss)
    while True:
        yield from nesvm(problem, s, epsilon)  # Step 1
        if s.share <= last or not problem.model.smoothed:
            return
        s.t += 1
        lower(problem, s, max(1.0 / (s.t + 1), last), kind)  # Step 2: μ^t = μ⁰/(t + 1)


def lower(problem: Smooth, s: State, share: float, kind: str) -> None:
    """Begin Algorithm 1 again at w with a smaller μ and its L_μ; the prox-centre stays."""
    s.share, s.smoothing = share, Smoothing(*(share * mu for mu in s.start))
    s.L = problem.lipschitz(kind, s.smoothing)
    s.history, s.F, s.k, s.settled = np.zeros_like(s.w), np.inf, 0, False
