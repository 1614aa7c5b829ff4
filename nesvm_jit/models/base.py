"""The form of all three machines (the paper's eq. 3): P(w, b) = R(w) + Σ c_i loss(r_i).

A model has the formulas of its penalty R and its loss, smoothed and true, of their curvature, and
of the value of a dual point. It has no rows, no matrices and no iterations.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np

from ..kernels.loss import RowData


class Smoothing(NamedTuple):
    """The smoothing parameters of the penalty (μ of the ℓ1 norm) and of the loss (ν, or the only
    μ of C-SVM)."""

    penalty: float
    loss: float


# No smoothing: only true values count, and α is not that of a smoothed problem.
UNSMOOTHED = Smoothing(0.0, 0.0)


class Model(Protocol):
    """The methods of a model that solvers call."""

    name: str
    loss: int  # HINGE or SQUARE
    smoothed: bool  # True if the penalty or the loss is smoothed
    smoothed_penalty: bool  # True if the penalty R is smoothed
    strong_convexity: float  # the modulus of strong convexity of R

    def true_penalty(self, w: np.ndarray) -> float:
        """Return R(w)."""

    def penalty(
        self, w: np.ndarray, smoothing: Smoothing, centre: Any = 0.0
    ) -> tuple[float, float]:
        """Return R(w) and R_μ(w), which is smoothed about `centre`, a value of its dual
        variable."""

    def penalty_gradient(
        self, w: np.ndarray, smoothing: Smoothing, out: np.ndarray, centre: Any = 0.0
    ) -> None:
        """Set out = ∇R_μ(w). It equals the dual variable of R_μ, and may be the next centre."""

    def penalty_curvature(self, w: np.ndarray, smoothing: Smoothing, centre: Any = 0.0) -> Any:
        """Return the diagonal of ∇²R_μ(w), or a number if all its entries are the same."""

    def penalty_slope(
        self, w: np.ndarray, d: np.ndarray, t: float, smoothing: Smoothing, centre: Any = 0.0
    ) -> tuple[float, float]:
        """Return the first two derivatives of R_μ(w + t d) with respect to t."""

    def penalty_lipschitz(self, smoothing: Smoothing) -> float:
        """Return a Lipschitz constant of ∇R_μ."""

    def curvature(self, rows: RowData) -> np.ndarray:
        """Return d with ∇²(loss) ≼ `curvature_scale` · Σ d_i x_i x_iᵀ."""

    def curvature_scale(self, smoothing: Smoothing) -> float:
        """Return 1/ν for a smoothed hinge, 1 for a loss that needs no smoothing."""

    def suboptimality(self, w: np.ndarray, gradient: np.ndarray, objective: float) -> float:
        """Estimate from the gradient by w how much of the gap comes from F_μ(w) − min F_μ."""

    def dual_value(
        self, total: float, squares: float, dual_weights: np.ndarray, most: float
    ) -> tuple[float, float]:
        """Return the best dual value of a feasible multiple t·α, and its t.

        `total` is Σ α_i, `squares` is Σ α_i²/(4c_i), `dual_weights` is Σ α_i y_i x_i, and `most`
        is the largest t with t·α ≤ c.
        """
