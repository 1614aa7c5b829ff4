"""The form all three machines share (the paper's eq. 3): P(w, b) = R(w) + Σ c_i loss(r_i).

A model says what its penalty R and its loss are, smoothed and true, how curved they are, and
what a dual point is worth. It knows nothing of rows, matrices or iterations.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np

from ..kernels.sweep import Rows


class Smoothing(NamedTuple):
    """The smoothing parameters: of the penalty (μ of the ℓ1 norm) and of the loss (ν, or the
    one μ of C-SVM)."""

    penalty: float
    loss: float


class Model(Protocol):
    """What a solver may ask of a model."""

    name: str
    loss: int  # HINGE or SQUARE, of the fused pass
    smoothed: bool  # whether smoothing changes anything
    smoothed_penalty: bool  # whether it changes R
    strong_convexity: float  # of R

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

    def curvature(self, rows: Rows) -> np.ndarray:
        """d_i with ∇²(loss) ≼ scale · Σ d_i x_i x_iᵀ, the scale being `curvature_scale`."""

    def curvature_scale(self, smoothing: Smoothing) -> float:
        """1/ν for a smoothed hinge, 1 for a loss that needs no smoothing."""

    def excess(self, w: np.ndarray, gradient: np.ndarray, objective: float) -> float:
        """About what the gap owes to F_μ(w) not being minimal, from its gradient by w."""

    def dual_value(
        self, total: float, squares: float, direction: np.ndarray, most: float
    ) -> tuple[float, float]:
        """The best dual value among the multiples t·α that are feasible, and that t, given Σ α_i,
        Σ α_i²/(4c_i), Σ α_i y_i x_i, and the largest t that keeps t·α ≤ c."""

    def balanced(self, alpha: np.ndarray, rows: Rows) -> list[np.ndarray]:
        """Dual points near α with Σ α_i y_i = 0, as a free bias demands."""


def balanced_in_box(alpha: np.ndarray, rows: Rows) -> list[np.ndarray]:
    """Two points of the box 0 ≤ α ≤ c with Σ α_i y_i = 0: the heavier class scaled down, and the
    excess made up by entries inside their bounds, where the dual is flat, as far as they can."""
    excess = float(alpha @ rows.y)
    if excess == 0.0:
        return [alpha]
    heavy = rows.y == (1.0 if excess > 0 else -1.0)
    inside = (alpha > 0.0) & (alpha < rows.c)
    room = np.where(inside, np.where(heavy, alpha, rows.c - alpha), 0.0)
    total = float(room.sum())
    share = abs(excess) / total if total > abs(excess) else 1.0
    moved = alpha + share * np.where(heavy, -room, room)
    return [_lowered(alpha, heavy), _lowered(moved, heavy)]


def _lowered(alpha: np.ndarray, heavy: np.ndarray) -> np.ndarray:
    """α with the heavier class scaled down to the weight of the other."""
    weight = float(alpha[heavy].sum())
    other = float(alpha[~heavy].sum())
    out = alpha.copy()
    if weight > other:
        out[heavy] *= other / weight
    return out
