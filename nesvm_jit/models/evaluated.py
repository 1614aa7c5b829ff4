"""A model on data: values, gradients and bounds. One evaluation is one pass over the rows."""

from typing import Any, NamedTuple

import numpy as np

from ..jit import chunk_count
from ..kernels.line import Margins
from ..kernels.sums import _accumulate, _margins, _row_norms
from ..kernels.sweep import HINGE, Rows, _sweep, sweep_work
from ..matrix import Matrix, shape
from .base import Model, Smoothing
from .curved import Curved, power_iteration


class Evaluation(NamedTuple):
    """F_μ, its gradient (valid until the next evaluation) and the true objective at a point."""

    value: float
    gradient: np.ndarray
    objective: float


class DualPoint(NamedTuple):
    """A feasible α and its value, a lower bound of the optimum."""

    value: float
    alpha: np.ndarray


class Evaluated(Curved):
    """min R(w) + Σ c_i loss(1 − y_i(x_i·w + b)); a point is v = [w; b], or w without a bias."""

    def __init__(self, X: Matrix, y: np.ndarray, c: np.ndarray, model: Model, bias: bool):
        super().__init__()
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
        self._margins: Margins | None = None
        self._H: np.ndarray | None = None
        self.factor: np.ndarray | None = None  # of a Hessian that nothing changes, once it is known

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
            c, shares = self.rows.c, np.zeros(self.n_rows)
            share = float(np.divide(alpha, c, out=shares, where=c > 0.0).max(initial=0.0))
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
        """Σ α²/(4c), which the hinge's dual does not have."""
        if self.model.loss == HINGE:
            return 0.0
        used = self.rows.c > 0.0
        return float((alpha[used] ** 2 / (4.0 * self.rows.c[used])).sum())

    def _largest_eigenvalue(self, d: np.ndarray) -> float:
        margins, image = np.zeros(self.n_rows), np.zeros(self.n_variables)

        def apply(v: np.ndarray) -> np.ndarray:
            w, b = self.split(v)
            _margins(self.X, w, b, chunk_count(self.n_rows, 1), margins)
            margins[:] *= d
            _accumulate(self.X, margins, self._work.parts, image[: self.n_features])
            if self.bias:
                image[-1] = margins.sum()
            self.passes += 2
            return image

        return power_iteration(apply, self.n_variables)
