"""Algorithm 2 of the paper (homotopy NESVM): Algorithm 1 for a falling μ, as printed."""

from dataclasses import dataclass

import numpy as np

from ..models.base import Smoothing
from .driver import Steps
from .nesvm import State as Stage
from .nesvm import nesvm
from .run import Smooth, scaled


@dataclass
class State(Stage):
    """Algorithm 1 within Algorithm 2."""

    t: int = 0


def homotopy(problem: Smooth, s: State, mu: Smoothing, mu_end: float, epsilon: float) -> Steps:
    """NESVM from μ⁰ to μ*, each from the solution before; w^t is in s.w. The μ* is that of the
    loss: the penalty's falls in proportion. Where μ⁰/(t+1) would pass μ*, the last μ is μ*."""
    last = min(1.0, mu_end / mu.loss)
    while True:
        yield from nesvm(problem, s, epsilon)  # Step 1
        if 1 / (s.t + 1) <= last or not problem.model.smoothed:  # until μ^t ≤ μ*
            return
        s.t += 1  # Step 2, eq. 33
        s.smoothing = scaled(mu, max(1 / (s.t + 1), last))  # μ^t = μ⁰/(t+1)
        s.L = problem.lipschitz("paper", s.smoothing)
        s.history, s.F, s.k, s.settled = np.zeros_like(s.w), np.inf, 0, False
