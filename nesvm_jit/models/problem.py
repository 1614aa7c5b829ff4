"""The linear problem that solvers work on: all that `evaluated` has, and steps along directions
that build on the margins known so far."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..matrix import Matrix
from .base import Model, Smoothing
from .blocks import Resident
from .evaluated import DualPoint, Evaluated, Evaluation
from .part import Curvature, Part, loss_of

__all__ = ["DualPoint", "Evaluation", "LinearProblem", "problem_in_memory"]

EXACT = Smoothing(1.0, 1.0)  # where only true values count
SINGLE = 1e8  # of the trace: on mnist directions are then right to a few per cent
SMALL = (1e-2, 1e-3, 1e-4, 1e-6)  # of the largest weight
_STANDING = (
    *("point", "_ascent", "_loss", "_total", "_ascent_b", "_squared", "_share"),
    *("_penalty_centre", "factor"),
)


def problem_in_memory(
    X: Matrix, y: np.ndarray, c: np.ndarray, model: Model, bias: bool
) -> "LinearProblem":
    """The problem on a matrix in memory."""
    return LinearProblem(Part(Resident(X), y, c, model, bias))


class LinearProblem(Evaluated):
    """A point to step from, `point`; the part knows the margins and dual weights there."""

    def place(self, v: np.ndarray, smoothing: Smoothing, alpha: Any = None) -> Evaluation:
        """Start steps at v: the same as `evaluate`, smoothed about α (or zero), in two passes that
        later steps build on."""
        self.point, self._direction_at = v.copy(), np.zeros(self.n_variables)
        self.part.place(*self.split(v), self._known(v))
        self.passes += 1
        self._ascent = np.zeros(self.n_features)
        self._penalty_centre, self._fresh = 0.0, None
        if alpha is not None:
            self.part.centre_on(alpha)
        return self.step(0.0, smoothing)

    def _known(self, v: np.ndarray) -> bool:
        """Whether the margins are those of v."""
        return self._fresh is not None and np.array_equal(self._fresh[0], v)

    def aim(self, direction: np.ndarray) -> None:
        """Choose the direction of the next step: one pass for its margins."""
        self._direction_at = direction.copy()
        self.part.aim(*self.split(direction))
        self.passes += 1

    def slope(self, t: float, smoothing: Smoothing) -> tuple[float, float]:
        """The first two derivatives of F_μ(point + t · direction) by t."""
        first, second = self.part.slope(t, smoothing.loss)
        w, d = self.split(self.point)[0], self.split(self._direction_at)[0]
        p1, p2 = self.model.penalty_slope(w, d, t, smoothing, self._penalty_centre)
        return first + p1, second + p2

    def step(self, t: float, smoothing: Smoothing) -> Evaluation:
        """Go t along the direction; only rows whose u changes are added up again."""
        if t != 0.0:
            self.point += t * self._direction_at
        sums = self.part.step(t, smoothing.loss)
        self._ascent += sums.ascent
        self._stepped = True
        w = self.split(self.point)[0]
        return self._evaluation(w, smoothing, sums, self._penalty_centre)

    def recentre(self, smoothing: Smoothing) -> None:
        """Smooth about the dual variables of the last step from now on: steps on the dual that
        are proximal, so that the optimum itself is reached at a μ that is not small."""
        self.part.centre_on(self._alpha())
        w = self.split(self.point)[0]
        if self.model.smoothed_penalty:
            centre = np.empty_like(w)
            self.model.penalty_gradient(w, smoothing, centre, self._penalty_centre)
            self._penalty_centre = centre

    def margins(self) -> np.ndarray:
        """x_i·w + b of every row, where the last step ended."""
        return self.part.margins()

    # ------------------------------------------------------------ curvature

    def hessian(self, smoothing: Smoothing) -> np.ndarray:
        """∇²F_μ at the point, valid until the next call."""
        p, found = self.n_features, self.part.hessian(self._precision())
        if self._H is None:
            self._H = np.empty((self.n_variables, self.n_variables))
        H = self._H
        H[:p, :p] = found.H
        np.einsum("ii->i", H)[:p] += self._penalty_curvature(smoothing)
        if self.bias:
            H[p, :p] = H[:p, p] = found.column
            H[p, p] = self._bias_curvature(found, smoothing)
        return H

    def _penalty_curvature(self, smoothing: Smoothing) -> Any:
        w = self.split(self.point)[0]
        return self.model.penalty_curvature(w, smoothing, self._penalty_centre)

    def _precision(self) -> type:
        """Of the products of the Hessian: single, at half the time, where the data are and where
        the rounding is small beside the curvature of R."""
        if self.part.data.dtype != np.float32:
            return np.float64
        small = self.part.weight_of_curvature() < SINGLE * self.model.strong_convexity
        return np.float32 if small else np.float64

    def hessian_times(self, v: np.ndarray, smoothing: Smoothing) -> np.ndarray:
        """∇²F_μ v at the point."""
        p, out = self.n_features, np.zeros(self.n_variables)
        w, b = self.split(v)
        out[:p] = self.part.hessian_times(w)
        self.passes += 1
        out[:p] += self._penalty_curvature(smoothing) * w
        if self.bias:
            column, total = self._bias_bend
            out[:p] += b * column
            out[p] = float(column @ w) + b * total
        return out

    def hessian_diagonal(self, smoothing: Smoothing) -> np.ndarray:
        """The diagonal of ∇²F_μ at the point; it prepares for `hessian_times` there too."""
        found = self.part.hessian_diagonal()
        out = np.append(found.H, 0.0) if self.bias else found.H
        out[: self.n_features] += self._penalty_curvature(smoothing)
        if self.bias:
            out[-1] = self._bias_curvature(found, smoothing)
            self._bias_bend = found.column, out[-1]
        return out

    def _bias_curvature(self, found: Curvature, smoothing: Smoothing) -> float:
        """Σ d; where no row is active, a little of what b's curvature could be."""
        most = self.model.curvature_scale(smoothing) * self.part.facts.curvature
        return max(found.total, 1e-8 * most)

    # ------------------------------------------------------------ values afresh

    def judge(self, v: np.ndarray, alpha: np.ndarray, direction: np.ndarray) -> Evaluation:
        """P at v in one pass; `dual` then speaks of this α, whose Σ α y x is `direction`."""
        w, b = self.split(v)
        self._loss = self.part.loss_at(w, b)
        self.passes += 1
        self._judged, self._ascent = alpha, direction.copy()
        self._total, self._squared = self._sums(alpha)
        value = self.model.penalty(w, EXACT)[0] + self._loss
        self._fresh = v.copy(), value
        return Evaluation(value, self._gradient, value)

    def review(self, v: np.ndarray) -> float:
        """P at v by margins added up afresh, unless those of the last `judge` are just these."""
        if not self._known(v):
            w, b = self.split(v)
            self._fresh = v, self.model.penalty(w, EXACT)[0] + self.part.loss_at(w, b)
            self.passes += 1
        assert self._fresh is not None
        return self._fresh[1]

    def sparser(self, v: np.ndarray, smoothing: Smoothing) -> Iterator[np.ndarray]:
        """v with more or fewer exact zeros: where ℓ1's |u| < 1, as the optimum has them, or
        else where w is small."""
        w, _ = self.split(v)
        size = np.abs(w)
        undecided = self.model.penalty_curvature(w, smoothing, self._penalty_centre) > 0.0
        for zero in (undecided, *(size <= share * size.max(initial=0.0) for share in SMALL)):
            out = v.copy()
            self.split(out)[0][zero] = 0.0
            yield out

    # ------------------------------------------------------------ to go on elsewhere

    def state(self, steps: bool) -> dict[str, Any]:
        """What has been counted and found, and all that steps build on."""
        known: dict[str, Any] = {"passes": self.passes, "spectral": self._spectral}
        if steps:
            known["standing"] = {name: getattr(self, name) for name in _STANDING}
            known["rows"] = self.part.state()
        return known

    def restore(self, state: dict[str, Any]) -> None:
        """Go to where a problem on the same data was."""
        self.passes, self._spectral = state["passes"], state["spectral"]
        if "rows" in state:
            for name in _STANDING:
                setattr(self, name, state["standing"][name])
            self._direction_at = np.zeros(self.n_variables)
            self._stepped, self._judged, self._fresh = True, None, None
            self.part.restore(state["rows"])

    # ------------------------------------------------------------ row by row, in memory

    def loss_of(self, r: np.ndarray) -> float:
        """Σ c loss(r)."""
        return loss_of(self.part.rows, r, self.model.loss)

    def residuals(self) -> np.ndarray:
        """r = 1 − y f at the margins found last."""
        return 1.0 - self.part.rows.y * self.margins()

    def guess(self, w: np.ndarray, loss: float, total: float, squares: float) -> float:
        """The relative gap at w = Σ α y x if this were its loss, from Σα and Σ α²/(4c)."""
        objective = self.model.penalty(w, EXACT)[0] + loss
        value, _ = self.model.dual_value(total, squares, w, 1.0)
        return (objective - value) / objective if objective > 0.0 else 0.0
