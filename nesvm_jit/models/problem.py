"""A model on data: what solvers evaluate. One evaluation is one pass over the rows."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..jit import chunk_count
from ..kernels.hessian import _hessian, _hessian_diagonal, _hessian_times, hessian_parts
from ..kernels.line import Margins, _slope, _step, line_parts
from ..kernels.sums import _accumulate, _margins, _row_norms
from ..kernels.sweep import HINGE, Rows, _sweep, sweep_work
from ..matrix import Matrix, shape
from .base import Model, Smoothing

EXACT = Smoothing(1.0, 1.0)  # where only true values count
POWER_ROUNDS = 100
SMALL = (1e-2, 1e-3, 1e-4, 1e-6)  # of the largest weight
POWER_MARGIN = 1.01  # power iteration comes from below; the descent test guards what is left


class Evaluation(NamedTuple):
    """F_μ, its gradient (valid until the next evaluation) and the true objective at a point."""

    value: float
    gradient: np.ndarray
    objective: float


class DualPoint(NamedTuple):
    """A feasible α and its value, a lower bound of the optimum."""

    value: float
    alpha: np.ndarray


class LinearProblem:
    """min R(w) + Σ c_i loss(1 − y_i(x_i·w + b)); a point is v = [w; b], or w without a bias."""

    def __init__(self, X: Matrix, y: np.ndarray, c: np.ndarray, model: Model, bias: bool):
        n, p = shape(X)
        two, largest = np.zeros(n), np.zeros(n)
        _row_norms(X, chunk_count(n, 1), two, largest)
        s = np.maximum(largest, 1.0) if bias else np.where(largest > 0.0, largest, 1.0)
        self.X, self.model, self.bias = X, model, bias
        self.rows = Rows(y, c, s)
        self.n_rows, self.n_features, self.n_variables = n, p, p + bias
        self.passes = 0.0
        with np.errstate(over="ignore"):  # the public edge refuses what is not finite
            self._norms2 = two**2 + bias
            self._curvature_sum = float(model.curvature(self.rows).sum())
        self._work = sweep_work(X)
        self._u, self._ascent = np.zeros(n), np.zeros(p)
        self._stepped = False  # whether the dual weights are those of the last step
        self._gradient = np.zeros(p + bias)
        self._loss = self._total = self._ascent_b = 0.0
        self._squared = 0.0  # Σ α²/(4c), which is the loss where α = 2cr
        self._share = 1.0  # the largest α/c
        self._penalty_centre: np.ndarray | float = 0.0
        self._judged: np.ndarray | None = None
        self._fresh: tuple[np.ndarray, float] | None = None  # a point and P there
        self._spectral: dict[str, float] = {}
        self._margins: Margins | None = None
        self._H: np.ndarray | None = None

    def split(self, v: np.ndarray) -> tuple[np.ndarray, float]:
        """w and b of a point."""
        return v[: self.n_features], float(v[-1]) if self.bias else 0.0

    def evaluate(self, v: np.ndarray, smoothing: Smoothing) -> Evaluation:
        """One pass over the data at v: u, F_μ(v), ∇F_μ(v), P(v)."""
        w, b = self.split(v)
        smoothed, self._loss, self._total, self._ascent_b = _sweep(
            self.X,
            self.rows,
            w,
            b,
            smoothing.loss,
            self.model.loss,
            self._u,
            self._work,
            self._ascent,
        )
        self.passes += 1
        self._stepped, self._judged, self._squared = False, None, self._loss
        return self._evaluation(w, smoothing, smoothed)

    def _evaluation(
        self, w: np.ndarray, smoothing: Smoothing, smoothed: float, centre: Any = 0.0
    ) -> Evaluation:
        """F_μ, ∇F_μ and P from the sums over rows just made."""
        g = self._gradient
        self.model.penalty_gradient(w, smoothing, g[: self.n_features], centre)
        g[: self.n_features] -= self._ascent
        if self.bias:
            g[-1] = -self._ascent_b
        penalty, penalty_smoothed = self.model.penalty(w, smoothing, centre)
        return Evaluation(penalty_smoothed + smoothed, g, penalty + self._loss)

    # ------------------------------------------------------------ along a direction

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
            self._margins = Margins(*(np.zeros(n) for _ in Margins._fields))
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
        assert self._margins is not None
        d = self._margins.curvature
        _hessian(self.X, d, self._H_parts, self._H_w)
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

    def squares(self) -> np.ndarray:
        """‖x_i‖²."""
        return self._norms2 - self.bias

    def mean_square(self) -> float:
        """The mean ‖x_i‖², or 1 where all rows are empty."""
        return float(self.squares().mean()) or 1.0

    # ------------------------------------------------------------ bounds

    def excess(self, v: np.ndarray, found: Evaluation) -> float:
        """About what the gap owes to F_μ not being minimal at the point just evaluated."""
        w, b = self.split(v)
        g = found.gradient
        excess = self.model.excess(w, g[: self.n_features], found.objective)
        return excess + abs(float(g[-1])) * max(1.0, abs(b)) if self.bias else excess

    def dual(self) -> DualPoint:
        """The best dual point that the u of the last evaluation leads to.

        Without a bias it costs nothing; with one, a pass for each repaired point.
        """
        alpha = self._alpha()
        if not self.bias:
            share = self._share if self._stepped and self._judged is None else None
            return self._scaled(alpha, self._total, self._squared, self._ascent, share)
        points = self.model.balanced(alpha, self.rows)
        directions = [self.direction(a) for a in points]
        mixed = []
        for t in (0.0, 0.5, 1.0) if len(points) == 2 else (0.0,):
            # everything between two feasible points is feasible
            a = (1.0 - t) * points[0] + t * points[-1]
            direction = (1.0 - t) * directions[0] + t * directions[-1]
            mixed.append(self._scaled(a, float(a.sum()), self._squares(a), direction))
        return max(mixed, key=lambda point: point.value)

    def _alpha(self) -> np.ndarray:
        if self._judged is not None:
            return self._judged
        if self._stepped:
            assert self._margins is not None
            return self.rows.y * self._margins.weight
        return self.rows.c * self._u

    def bound_now(self) -> float:
        """The dual value before α is repaired for the bias: what `dual` will come near to."""
        return self.model.dual_value(self._total, self._squared, self._ascent, 1.0)[0]

    def value_of(self, alpha: np.ndarray) -> DualPoint:
        """A feasible α and its value, added up afresh."""
        return self._scaled(alpha, float(alpha.sum()), self._squares(alpha), self.direction(alpha))

    def _scaled(
        self,
        alpha: np.ndarray,
        total: float,
        squares: float,
        direction: np.ndarray,
        share: float | None = None,
    ) -> DualPoint:
        """The best feasible multiple of α, whose largest α/c is `share`."""
        if share is None:
            used = self.rows.c > 0.0
            share = float((alpha[used] / self.rows.c[used]).max(initial=0.0))
        most = 1.0 / share if share > 0.0 else 0.0
        value, t = self.model.dual_value(total, squares, direction, most)
        return DualPoint(float(value), alpha if t == 1.0 else t * alpha)

    def direction(self, alpha: np.ndarray) -> np.ndarray:
        """Σ α_i y_i x_i."""
        out = np.zeros(self.n_features)
        _accumulate(self.X, alpha * self.rows.y, self._work.parts, out)
        self.passes += 1
        return out

    def _squares(self, alpha: np.ndarray) -> float:
        used = self.rows.c > 0.0
        return float((alpha[used] ** 2 / (4.0 * self.rows.c[used])).sum())

    def lipschitz(self, kind: str, smoothing: Smoothing) -> float:
        """A constant of ∇F_μ: the paper's (its sum over rows by n times the largest), or the
        spectral one."""
        if kind not in self._spectral:
            d = self.model.curvature(self.rows)
            if kind == "paper":
                with np.errstate(over="ignore"):
                    bound = self.n_rows * float((d * self._norms2).max(initial=0.0))
            else:
                bound = POWER_MARGIN * self._largest_eigenvalue(d)
            self._spectral[kind] = bound
        loss = self.model.curvature_scale(smoothing) * self._spectral[kind]
        return self.model.penalty_lipschitz(smoothing) + loss

    def _largest_eigenvalue(self, d: np.ndarray) -> float:
        """λ_max of Σ d_i x_i x_iᵀ (rows with their 1 for the bias) by power iteration."""
        v = np.random.default_rng(0).random(self.n_variables) + 0.5
        margins, image = np.zeros(self.n_rows), np.zeros(self.n_variables)
        eigenvalue = 0.0
        for _ in range(POWER_ROUNDS):
            v /= max(np.linalg.norm(v), np.finfo(float).tiny)
            w, b = self.split(v)
            _margins(self.X, w, b, chunk_count(self.n_rows, 1), margins)
            margins *= d
            _accumulate(self.X, margins, self._work.parts, image[: self.n_features])
            if self.bias:
                image[-1] = margins.sum()
            self.passes += 2
            before, eigenvalue = eigenvalue, float(v @ image)
            if eigenvalue - before <= 1e-4 * eigenvalue:
                break
            v[:] = image
        return eigenvalue
