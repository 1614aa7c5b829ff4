"""The linear problem that solvers work on: all that `evaluated` has, and steps along directions
that build on the margins known so far."""

from collections.abc import Iterator

import numpy as np

from ..jit import chunk_count
from ..kernels.hessian import (
    _hessian,
    _hessian_diagonal,
    _hessian_times,
    hessian_parts,
    hessian_rooms,
)
from ..kernels.line import Margins, _slope, _step, line_parts
from ..kernels.sums import _accumulate, _margins
from ..kernels.sweep import HINGE
from .base import Smoothing
from .evaluated import DualPoint, Evaluated, Evaluation

__all__ = ["DualPoint", "Evaluation", "LinearProblem"]

EXACT = Smoothing(1.0, 1.0)  # where only true values count
SINGLE = 1e8  # of the trace: on mnist directions are then right to a few per cent
SMALL = (1e-2, 1e-3, 1e-4, 1e-6)  # of the largest weight


class LinearProblem(Evaluated):
    """A point to step from, `point`, with the margins and dual weights of every row there."""

    def place(
        self, v: np.ndarray, smoothing: Smoothing, alpha: np.ndarray | None = None
    ) -> Evaluation:
        """Start steps at v: the same as `evaluate`, smoothed about α (or zero), in two passes that
        later steps build on."""
        self._make_room()
        assert self._margins is not None
        self.point = v.copy()
        w, b = self.split(v)
        if self._fresh is None or not np.array_equal(self._fresh[0], v):
            _margins(self.X, w, b, chunk_count(self.n_rows, 1), self._margins.f)
        self.passes += 1
        for a in (self._margins.m, self._margins.weight, self._margins.centre, self._ascent):
            a[:] = 0.0
        self._penalty_centre, self._fresh = 0.0, None
        if alpha is not None:
            self._centre_on(alpha)
        return self.step(0.0, smoothing)

    def _centre_on(self, alpha: np.ndarray) -> None:
        assert self._margins is not None
        np.divide(alpha, self.rows.c, out=self._margins.centre, where=self.rows.c > 0.0)

    def _make_room(self) -> None:
        if self._margins is None:
            n = self.n_rows
            self._margins = Margins(1.0 / self.rows.s, *(np.zeros(n) for _ in range(5)))
            self._line = line_parts(self._work.parts.shape[0])
            self._direction_at = np.zeros(self.n_variables)

    def aim(self, direction: np.ndarray) -> None:
        """Choose the direction of the next step: one pass for its margins."""
        assert self._margins is not None
        self._direction_at[:] = direction
        w, b = self.split(direction)
        _margins(self.X, w, b, chunk_count(self.n_rows, 1), self._margins.m)
        self.passes += 1

    def slope(self, t: float, smoothing: Smoothing) -> tuple[float, float]:
        """The first two derivatives of F_μ(point + t · direction) by t."""
        first, second = _slope(
            self.rows, self._margins, smoothing.loss, self.model.loss, t, self._line
        )
        w, d = self.split(self.point)[0], self.split(self._direction_at)[0]
        p1, p2 = self.model.penalty_slope(w, d, t, smoothing, self._penalty_centre)
        return first + p1, second + p2

    def step(self, t: float, smoothing: Smoothing) -> Evaluation:
        """Go t along the direction; only rows whose u changes are added up again."""
        margins = self._margins
        assert margins is not None
        if t != 0.0:
            self.point += t * self._direction_at
        smoothed, self._loss, self._total, self._ascent_b, self._share = _step(
            self.X,
            self.rows,
            margins,
            smoothing.loss,
            self.model.loss,
            t,
            self._work.parts,
            self._line,
            self._ascent,
        )
        self._stepped, self._judged, self._squared = True, None, self._loss
        w = self.split(self.point)[0]
        return self._evaluation(w, smoothing, smoothed, self._penalty_centre)

    def recentre(self, smoothing: Smoothing) -> None:
        """Smooth about the dual variables of the last step from now on: steps on the dual that
        are proximal, so that the optimum itself is reached at a μ that is not small."""
        self._centre_on(self._alpha())
        w = self.split(self.point)[0]
        if self.model.smoothed_penalty:
            centre = np.empty_like(w)
            self.model.penalty_gradient(w, smoothing, centre, self._penalty_centre)
            self._penalty_centre = centre

    def margins(self) -> np.ndarray:
        """x_i·w + b of every row, where the last step ended."""
        assert self._margins is not None
        return self._margins.f

    def hessian(self, smoothing: Smoothing) -> np.ndarray:
        """∇²F_μ at the point, valid until the next call; rows of its lower triangle at least."""
        p = self.n_features
        if self._H is None:
            self._H = np.zeros((self.n_variables, self.n_variables))
            self._H_w, self._H_parts = np.zeros((p, p)), hessian_parts(self.X)
            self._rooms: dict[type, np.ndarray] = {}
        assert self._margins is not None
        d = self._margins.curvature
        _hessian(self.X, d, self._H_parts, self._room(d), self._H_w)
        self._H[:p, :p] = self._H_w
        diagonal = np.einsum("ii->i", self._H)
        diagonal[:p] += self.model.penalty_curvature(
            self.split(self.point)[0], smoothing, self._penalty_centre
        )
        if self.bias:
            _accumulate(self.X, d, self._work.parts, self._H[p, :p])
            self._H[:p, p] = self._H[p, :p]
            self._H[p, p] = self._bias_curvature(d, smoothing)
        return self._H

    def _room(self, d: np.ndarray) -> np.ndarray:
        """Room for the products of the Hessian; in single precision, at half the time, where the
        data are and where the rounding is small beside the curvature of R."""
        dtype: type = np.float64
        if self._single and float(d @ self._norms2) < SINGLE * self.model.strong_convexity:
            dtype = np.float32
        if dtype not in self._rooms:
            self._rooms[dtype] = hessian_rooms(self.X, dtype)
        return self._rooms[dtype]

    @property
    def _single(self) -> bool:
        return (self.X if isinstance(self.X, np.ndarray) else self.X.data).dtype == np.float32

    def hessian_times(self, v: np.ndarray, smoothing: Smoothing) -> np.ndarray:
        """∇²F_μ v at the point."""
        assert self._margins is not None
        p, d = self.n_features, self._margins.curvature
        out = np.zeros(self.n_variables)
        w, b = self.split(v)
        _hessian_times(self.X, d, w, self._work.parts, out[:p])
        self.passes += 1
        at = self.split(self.point)[0]
        out[:p] += self.model.penalty_curvature(at, smoothing, self._penalty_centre) * w
        if self.bias:
            out[:p] += b * self._bias_column
            out[p] = float(self._bias_column @ w) + b * self._bias_curvature(d, smoothing)
        return out

    def hessian_diagonal(self, smoothing: Smoothing) -> np.ndarray:
        """The diagonal of ∇²F_μ at the point; it prepares for `hessian_times` there too."""
        assert self._margins is not None
        p, d = self.n_features, self._margins.curvature
        out = np.zeros(self.n_variables)
        _hessian_diagonal(self.X, d, self._work.parts, out[:p])
        at = self.split(self.point)[0]
        out[:p] += self.model.penalty_curvature(at, smoothing, self._penalty_centre)
        if self.bias:
            self._bias_column = np.zeros(p)
            _accumulate(self.X, d, self._work.parts, self._bias_column)
            out[p] = self._bias_curvature(d, smoothing)
        return out

    def _bias_curvature(self, d: np.ndarray, smoothing: Smoothing) -> float:
        """Σ d; where no row is active, a little of what b's curvature could be."""
        most = self.model.curvature_scale(smoothing) * self._curvature_sum
        return max(float(d.sum()), 1e-8 * most)

    def judge(self, v: np.ndarray, alpha: np.ndarray, direction: np.ndarray) -> Evaluation:
        """P at v in one pass; `dual` then speaks of this α, whose Σ α y x is `direction`."""
        self._make_room()
        assert self._margins is not None
        w, b = self.split(v)
        _margins(self.X, w, b, chunk_count(self.n_rows, 1), self._margins.f)
        self.passes += 1
        self._loss = self.loss_of(self.residuals())
        self._judged, self._ascent[:] = alpha, direction
        self._total, self._squared = float(alpha.sum()), self._squares(alpha)
        value = self.model.penalty(w, EXACT)[0] + self._loss
        self._fresh = v.copy(), value
        return Evaluation(value, self._gradient, value)

    def review(self, v: np.ndarray) -> float:
        """P at v by margins added up afresh, unless those of the last `judge` are just these."""
        if self._fresh is None or not np.array_equal(self._fresh[0], v):
            self._make_room()
            w, b = self.split(v)
            _margins(self.X, w, b, chunk_count(self.n_rows, 1), self.margins())
            self.passes += 1
            self._fresh = v, self.model.penalty(w, EXACT)[0] + self.loss_of(self.residuals())
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

    def loss_of(self, r: np.ndarray) -> float:
        """Σ c loss(r)."""
        return float(self.rows.c @ (np.maximum(r, 0.0) if self.model.loss == HINGE else r * r))

    def residuals(self) -> np.ndarray:
        """r = 1 − y f at the margins found last."""
        return 1.0 - self.rows.y * self.margins()

    def guess(self, w: np.ndarray, loss: float, total: float, squares: float) -> float:
        """The relative gap at w = Σ α y x if this were its loss, from Σα and Σ α²/(4c)."""
        objective = self.model.penalty(w, EXACT)[0] + loss
        value, _ = self.model.dual_value(total, squares, w, 1.0)
        return (objective - value) / objective if objective > 0.0 else 0.0
