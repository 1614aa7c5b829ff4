"""A model on data: values, gradients and bounds. One evaluation is one pass over the rows."""

from typing import Any, NamedTuple

import numpy as np

from ..kernels.sweep import HINGE, Rows
from .base import Smoothing
from .curved import Curved, power_iteration
from .part import Part, Sums


class Evaluation(NamedTuple):
    """F_μ, its gradient (valid until the next evaluation) and the true objective at a point."""

    value: float
    gradient: np.ndarray
    objective: float


class DualPoint(NamedTuple):
    """A feasible α and its value, a lower bound of the optimum."""

    value: float
    alpha: Any  # a vector where the part keeps them


class Evaluated(Curved):
    """min R(w) + Σ c_i loss(1 − y_i(x_i·w + b)); a point is v = [w; b], or w without a bias.

    Everything that belongs to a row is in `part`.
    """

    def __init__(self, part: Part):
        super().__init__()
        self.part, self.model, self.bias = part, part.model, part.bias
        self.n_rows, self.n_features = part.facts.rows, part.n_features
        self.n_variables = self.n_features + self.bias
        self.passes = 0.0
        self._ascent = np.zeros(self.n_features)
        self._stepped = False  # whether the dual weights are those of the last step
        self._gradient = np.zeros(self.n_variables)
        self._loss = self._total = self._ascent_b = 0.0
        self._squared = 0.0  # Σ α²/(4c), which is the loss where α = 2cr
        self._share = 1.0  # the largest α/c
        self._penalty_centre: np.ndarray | float = 0.0
        self._judged: Any = None
        self._fresh: tuple[np.ndarray, float] | None = None  # a point and P there
        self._H: np.ndarray | None = None
        self.factor: np.ndarray | None = None  # of a Hessian that nothing changes, once it is known

    def split(self, v: np.ndarray) -> tuple[np.ndarray, float]:
        """w and b of a point."""
        return v[: self.n_features], float(v[-1]) if self.bias else 0.0

    def evaluate(self, v: np.ndarray, smoothing: Smoothing) -> Evaluation:
        """One pass over the data at v: u, F_μ(v), ∇F_μ(v), P(v)."""
        w, b = self.split(v)
        sums = self.part.sweep(w, b, smoothing.loss)
        self._ascent = sums.ascent
        self.passes += 1
        self._stepped = False
        return self._evaluation(w, smoothing, sums)

    def _evaluation(
        self, w: np.ndarray, smoothing: Smoothing, sums: Sums, centre: Any = 0.0
    ) -> Evaluation:
        """F_μ, ∇F_μ and P from the sums over rows just made."""
        self._loss, self._total, self._ascent_b = sums.loss, sums.total, sums.ascent_b
        self._squared, self._share, self._judged = sums.loss, sums.largest, None
        g = self._gradient
        self.model.penalty_gradient(w, smoothing, g[: self.n_features], centre)
        g[: self.n_features] -= self._ascent
        if self.bias:
            g[-1] = -self._ascent_b
        penalty, penalty_smoothed = self.model.penalty(w, smoothing, centre)
        return Evaluation(penalty_smoothed + sums.smoothed, g, penalty + self._loss)

    def mean_square(self) -> float:
        """The mean ‖x_i‖², or 1 where all rows are empty."""
        return self.part.facts.squares / self.n_rows or 1.0

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
        if not self.bias and self._stepped and self._judged is None:
            value, t = self._best_multiple(self._total, self._squared, self._ascent, self._share)
            return DualPoint(value, self.part.stepped(t))
        alpha = self._alpha()
        if not self.bias:
            return self._scaled(alpha, self._total, self._squared, self._ascent)
        points = self.model.balanced(self.part, alpha)
        directions = [self.direction(a) for a in points]
        mixed = []
        for t in (0.0, 0.5, 1.0) if len(points) == 2 else (0.0,):
            # everything between two feasible points is feasible
            a = points[0] if t == 0.0 else self._between(points, t)
            direction = (1.0 - t) * directions[0] + t * directions[-1]
            mixed.append(self._scaled(a, *self._sums(a), direction))
        return max(mixed, key=lambda point: point.value)

    def _between(self, points: list[Any], t: float) -> Any:
        if t == 1.0:
            return points[-1]
        return self.part.mapped(_between, (points[0], points[-1]), (t,))

    def _alpha(self) -> Any:
        if self._judged is not None:
            return self._judged
        return self.part.stepped() if self._stepped else self.part.swept()

    def bound_now(self) -> float:
        """The dual value before α is repaired for the bias: what `dual` will come near to."""
        return self.model.dual_value(self._total, self._squared, self._ascent, 1.0)[0]

    def value_of(self, alpha: Any) -> DualPoint:
        """A feasible α and its value, added up afresh."""
        return self._scaled(alpha, *self._sums(alpha), self.direction(alpha))

    def _scaled(self, alpha: Any, total: float, squares: float, direction: np.ndarray) -> DualPoint:
        """The best feasible multiple of α."""
        share = self.part.reduced(_largest_share, (alpha,), by=max)
        value, t = self._best_multiple(total, squares, direction, share)
        if t != 1.0:
            alpha = self.part.mapped(_multiple, (alpha,), (t,))
        return DualPoint(value, alpha)

    def _best_multiple(
        self, total: float, squares: float, direction: np.ndarray, share: float
    ) -> tuple[float, float]:
        """The value of the best feasible multiple of an α whose largest α/c is `share`, and t."""
        most = 1.0 / share if share > 0.0 else 0.0
        value, t = self.model.dual_value(total, squares, direction, most)
        return float(value), t

    def direction(self, alpha: Any) -> np.ndarray:
        """Σ α_i y_i x_i."""
        self.passes += 1
        return self.part.direction(alpha)

    def _sums(self, alpha: Any) -> tuple[float, float]:
        """Σ α_i, and Σ α_i²/(4c_i), which the hinge's dual does not have."""
        if self.model.loss == HINGE:
            return self.part.reduced(_total, (alpha,)), 0.0
        total, squares = self.part.reduced(_total_and_squares, (alpha,)).tolist()
        return total, squares

    def _steepest(self) -> float:
        return self.part.facts.steepest

    def _largest_eigenvalue(self) -> float:
        image = np.zeros(self.n_variables)

        def apply(v: np.ndarray) -> np.ndarray:
            w, b = self.split(v)
            image[: self.n_features], total = self.part.spread(w, b)
            if self.bias:
                image[-1] = total
            self.passes += 2
            return image

        return power_iteration(apply, self.n_variables)


def _between(rows: Rows, a: np.ndarray, b: np.ndarray, t: float) -> np.ndarray:
    return (1.0 - t) * a + t * b


def _multiple(rows: Rows, alpha: np.ndarray, t: float) -> np.ndarray:
    return t * alpha


def _largest_share(rows: Rows, alpha: np.ndarray) -> float:
    shares = np.zeros(len(alpha))
    return float(np.divide(alpha, rows.c, out=shares, where=rows.c > 0.0).max(initial=0.0))


def _total(rows: Rows, alpha: np.ndarray) -> float:
    return float(alpha.sum())


def _total_and_squares(rows: Rows, alpha: np.ndarray) -> np.ndarray:
    used = rows.c > 0.0
    return np.array([alpha.sum(), (alpha[used] ** 2 / (4.0 * rows.c[used])).sum()])
