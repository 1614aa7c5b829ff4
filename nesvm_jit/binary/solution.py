"""What a solved problem is: the machine, and how far it can be from the best one."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import InputError
from ..kernels import margins
from ..matrix.checks import as_matrix


@dataclass(frozen=True, eq=False)  # arrays have no truth value: a solution equals itself alone
class Solution:
    """A solved problem and its certificate: dual_objective ≤ optimum ≤ objective."""

    w: np.ndarray | None  # of a linear machine
    beta: np.ndarray | None  # of a kernel machine: f(x) = Σ β_i k(x_i, x) + b
    b: float
    objective: float  # the true, non-smooth primal objective at (w, b) or (β, b)
    dual_objective: float  # the value of the feasible dual point `alpha`
    alpha: np.ndarray
    gap: float  # (objective − dual_objective) / objective
    certified: bool  # gap ≤ tol
    n_iter: int
    status: str  # converged, or how else it ended: one of the statuses of settings.py
    solver: str  # the engine that finished
    why: str  # it was chosen
    model: str
    margins: np.ndarray  # x_i·w + b of every training row
    history: Mapping[str, np.ndarray]  # round, mu, smoothed, objective, dual, gap, seconds, passes
    bias_range: tuple[float, float] | None = None  # where every optimal b is, if that is known

    def decision_function(self, X: Any) -> np.ndarray:
        """Xw + b, of a linear machine."""
        if self.w is None:
            raise InputError(
                "a kernel machine decides through `train`, which keeps the rows it needs"
            )
        X = as_matrix(X, borrow=True)
        if X.shape[1] != len(self.w):
            raise InputError(f"X must have {len(self.w)} columns, got {X.shape[1]}")
        return margins(X, self.w, self.b)


def with_history(solution: Solution) -> Solution:
    """The same; columns of the history that would be made when they are asked for are made."""
    return replace(solution, history=dict(solution.history))
