"""What gradient methods ask of a smoothed problem: a Lipschitz constant and an inner product."""

import numpy as np

from ..models.base import Model, Smoothing

POWER_MARGIN = 1.01  # power iteration comes from below; the descent test guards what is left


class Curved:
    """A model on rows x_i, whatever they are: columns of X, or functions k(x_i, ·)."""

    model: Model
    n_rows: int

    def __init__(self) -> None:
        self._spectral: dict[str, float] = {}

    def inner(self, v: np.ndarray, other: np.ndarray) -> float:
        """The inner product that gradients are taken in."""
        return float(v @ other)

    def lipschitz(self, kind: str, smoothing: Smoothing) -> float:
        """A constant of ∇F_μ: the paper's (its sum over rows by n times the largest), or the
        spectral one."""
        if kind not in self._spectral:
            if kind == "paper":
                with np.errstate(over="ignore"):
                    bound = self.n_rows * self._steepest()
            else:
                bound = POWER_MARGIN * self._largest_eigenvalue()
            self._spectral[kind] = bound
        loss = self.model.curvature_scale(smoothing) * self._spectral[kind]
        return self.model.penalty_lipschitz(smoothing) + loss

    def _steepest(self) -> float:
        """The largest d_i‖x_i‖², d being the curvature of the model."""
        raise NotImplementedError

    def _largest_eigenvalue(self) -> float:
        """λ_max of Σ d_i x_i x_iᵀ, rows with their 1 for the bias."""
        raise NotImplementedError
