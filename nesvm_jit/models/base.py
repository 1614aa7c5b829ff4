"""The form all three machines share (the paper's eq. 3): P(w, b) = R(w) + Σ c_i loss(r_i).

A model says what its penalty R and its loss are, smoothed and true, how curved they are, and
what a dual point is worth. It knows nothing of rows, matrices or iterations.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np

from ..kernels.loss import RowData


class Smoothing(NamedTuple):
    """The smoothing parameters: of the penalty (μ of the ℓ1 norm) and of the loss (ν, or the
    one μ of C-SVM)."""

    penalty: float
    loss: float


# Where only true values count, and α is not that of a smoothed problem.
UNSMOOTHED = Smoothing(0.0, 0.0)


class Model(Protocol):
    """What a solver may ask of a model."""

    name: str
    loss: int  # HINGE or SQUARE, of the fused pass
    smoothed: bool  # whether smoothing changes anything
    smoothed_penalty: bool  # whether it changes R
    strong_convexity: float  # of R

    def true_penalty(self, w: np.ndarray) -> float:
        """R(w)."""

    def penalty(
        self, w: np.ndarray, smoothing: Smoothing, centre: Any = 0.0
    ) -> tuple[float, float]:
        """R(w) and R_μ(w), smoothed about this centre of its dual variable."""

    def penalty_gradient(
        self, w: np.ndarray, smoothing: Smoothing, out: np.ndarray, centre: Any = 0.0
    ) -> None:
        """out = ∇R_μ(w); it is the dual variable, which may be the next centre."""

    def penalty_curvature(self, w: np.ndarray, smoothing: Smoothing, centre: Any = 0.0) -> Any:
        """The diagonal of ∇²R_μ(w), or the one number it consists of."""

    def penalty_slope(
        self, w: np.ndarray, d: np.ndarray, t: float, smoothing: Smoothing, centre: Any = 0.0
    ) -> tuple[float, float]:
        """The first two derivatives of R_μ(w + t d) by t."""

    def penalty_lipschitz(self, smoothing: Smoothing) -> float:
        """A Lipschitz constant of ∇R_μ."""

    def curvature(self, rows: RowData) -> np.ndarray:
        """d_i with ∇²(loss) ≼ scale · Σ d_i x_i x_iᵀ, the scale being `curvature_scale`."""

    def curvature_scale(self, smoothing: Smoothing) -> float:
        """1/ν for a smoothed hinge, 1 for a loss that needs no smoothing."""

    def suboptimality(self, w: np.ndarray, gradient: np.ndarray, objective: float) -> float:
        """About F_μ(w) − min F_μ as the gap feels it, from its gradient by w."""

    def dual_value(
        self, total: float, squares: float, dual_weights: np.ndarray, most: float
    ) -> tuple[float, float]:
        """The best dual value among the multiples t·α that are feasible, and that t, given Σ α_i,
        Σ α_i²/(4c_i), Σ α_i y_i x_i, and the largest t that keeps t·α ≤ c."""
