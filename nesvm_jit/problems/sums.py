"""What a pass over rows adds up; the sums of two shards can be joined."""

from typing import Any, NamedTuple

import numpy as np


class Sums(NamedTuple):
    """With α = c∘u: Σ c h_μ, Σ c h, Σ α, Σ α y, the largest u, and Σ α y x or its change."""

    smoothed: float
    loss: float
    total: float
    imbalance: float
    largest: float
    dual_weights: np.ndarray

    def joined(self, other: "Sums") -> "Sums":
        """Those of both shards together."""
        return Sums(
            self.smoothed + other.smoothed,
            self.loss + other.loss,
            self.total + other.total,
            self.imbalance + other.imbalance,
            max(self.largest, other.largest),
            self.dual_weights + other.dual_weights,
        )


class Curvature(NamedTuple):
    """Σ d_i x_i x_iᵀ or its diagonal, and of a bias Σ d_i x_i and Σ d_i."""

    H: np.ndarray
    column: Any
    total: float

    def joined(self, other: "Curvature") -> "Curvature":
        """That of both shards together."""
        column = None if self.column is None else self.column + other.column
        return Curvature(self.H + other.H, column, self.total + other.total)


class Facts(NamedTuple):
    """What is known of the rows after one pass: Σ d and the largest d‖x‖² of the model's curvature
    d, Σ ‖x‖², Σ c and the largest c; ‖x‖² with 1 more for a bias in the second; and through how
    many additions a row may go in a sum over all rows."""

    rows: int
    curvature: float
    steepest: float
    squares: float
    costs: float
    largest_cost: float
    depth: int

    def joined(self, other: "Facts") -> "Facts":
        """Those of both shards together."""
        return Facts(
            self.rows + other.rows,
            self.curvature + other.curvature,
            max(self.steepest, other.steepest),
            self.squares + other.squares,
            self.costs + other.costs,
            max(self.largest_cost, other.largest_cost),
            max(self.depth, other.depth) + 1,
        )
