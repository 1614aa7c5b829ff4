"""The form all three machines share (the paper's eq. 3): P(w, b) = R(w) + Σ c_i loss(r_i).

A model says what its penalty R and its loss are, smoothed and true, how curved they are, and
what a dual point is worth. It knows nothing of rows, matrices or iterations.
"""

from collections.abc import Callable
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

    def balanced(self, part: "Duals", alpha: Any) -> list[Any]:
        """Dual points near α with Σ α_i y_i = 0, as a free bias demands."""


class Duals(Protocol):
    """Where dual points are kept: they are reached by functions of blocks of rows."""

    facts: Any

    def mapped(self, function: Callable, vectors: tuple, numbers: tuple = ()) -> Any:
        """function(rows, *vectors, *numbers) of every block, as one vector."""

    def reduced(
        self, function: Callable, vectors: tuple, numbers: tuple = (), by: Any = None
    ) -> Any:
        """Its sum over all blocks, or what `by` makes of two of them."""


def balanced_in_box(part: Duals, alpha: Any) -> list[Any]:
    """Two points of the box 0 ≤ α ≤ c with Σ α_i y_i = 0: the heavier class scaled down, and the
    excess made up by entries inside their bounds, where the dual is flat, as far as they can."""
    excess = part.reduced(tilt, (alpha,))
    if excess == 0.0:
        return [alpha]
    heavy = 1.0 if excess > 0 else -1.0
    total = part.reduced(_room_of, (alpha,), (heavy,))
    share = abs(excess) / total if total > abs(excess) else 1.0
    moved = part.mapped(_moved, (alpha,), (heavy, share))
    return [_lowered(part, alpha, heavy), _lowered(part, moved, heavy)]


def tilt(rows: Rows, alpha: np.ndarray) -> float:
    """Σ α_i y_i."""
    return float(alpha @ rows.y)


def _room(rows: Rows, alpha: np.ndarray, heavy: float) -> np.ndarray:
    """How far entries inside their bounds can move to help."""
    inside = (alpha > 0.0) & (alpha < rows.c)
    return np.where(inside, np.where(rows.y == heavy, alpha, rows.c - alpha), 0.0)


def _room_of(rows: Rows, alpha: np.ndarray, heavy: float) -> float:
    return float(_room(rows, alpha, heavy).sum())


def _moved(rows: Rows, alpha: np.ndarray, heavy: float, share: float) -> np.ndarray:
    room = _room(rows, alpha, heavy)
    return alpha + share * np.where(rows.y == heavy, -room, room)


def _lowered(part: Duals, alpha: Any, heavy: float) -> Any:
    """α with the heavier class scaled down to the weight of the other."""
    weight, other = part.reduced(_weights, (alpha,), (heavy,))
    if weight <= other:
        return alpha
    return part.mapped(_with_class_scaled, (alpha,), (heavy, other / weight))


def _weights(rows: Rows, alpha: np.ndarray, heavy: float) -> np.ndarray:
    return np.array([alpha[rows.y == heavy].sum(), alpha[rows.y != heavy].sum()])


def _with_class_scaled(rows: Rows, alpha: np.ndarray, heavy: float, t: float) -> np.ndarray:
    return np.where(rows.y == heavy, t * alpha, alpha)
