"""The certificate: feasible dual points made of evaluations, and what they are worth.

For any feasible α the dual value D(α) is a lower bound of the optimum:

    C-SVM   Σα − ½‖Σ α_i y_i x_i‖²                          0 ≤ α ≤ c
    LP-SVM  Σα                                              0 ≤ α ≤ c and ‖Σ α_i y_i x_i‖_∞ ≤ 1
    LS-SVM  Σ(α − α²/(4c)) − ½‖Σ α_i y_i x_i‖²

and with a free bias Σ α_i y_i = 0 in all three. An evaluation holds an α that need not be feasible:
it is balanced, then scaled by the best multiple. Vectors with a number for each row are where a
shard keeps them; they are reached by functions of blocks of rows, so that they may be elsewhere.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..kernels.loss import HINGE, RowData, hinge_u
from ..models.base import Model

THIRDS = 40  # cuts of a segment between two dual points: what is left of it is 1e-7


class DualPoint(NamedTuple):
    """A feasible α and its value, a lower bound of the optimum."""

    value: float
    alpha: Any  # a vector where the shard keeps them


class DualSums(NamedTuple):
    """What the value of α is made of: Σ α_i, Σ α_i²/(4c_i) (which the hinge's dual does not have),
    and the dual weights Σ α_i y_i x_i."""

    total: float
    squares: float
    weights: np.ndarray


class Vectors(Protocol):
    """Where vectors with a number for each row are kept."""

    model: Model
    bias: bool
    facts: Any
    data: Any  # where rows come from

    def map(self, function: Callable, vectors: tuple, numbers: tuple = ()) -> Any:
        """function(rows, *vectors, *numbers) of every block, as one vector."""

    def reduce(
        self, function: Callable, vectors: tuple, numbers: tuple = (), by: Any = None
    ) -> Any:
        """Its sum over all blocks, or what `by` makes of two of them."""

    def dual_weights(self, alpha: Any) -> np.ndarray:
        """Σ α_i y_i x_i: one pass over the rows."""

    def column_products(self, a: Any) -> Any:
        """Σ a_i x_i, nearly exactly."""

    def reduce_products(
        self, function: Callable, w: np.ndarray, vectors: tuple, numbers: tuple
    ) -> Any:
        """The sum of function(rows, x_i·w nearly exactly, *vectors, *numbers) over all blocks."""

    def margins_at(self, w: np.ndarray, b: float) -> Any:
        """x_i·w + b of every row: one pass over the rows."""

    def row_norms(self) -> Any:
        """‖x_i‖₂ of every row, rounded up."""

    def row_cells(self) -> Any:
        """How many entries of every row are stored."""

    def collect(self, vector: Any) -> np.ndarray:
        """A vector as an array."""

    def deal(self, vector: np.ndarray) -> Any:
        """An array as a vector."""


def best_multiple(model: Model, sums: DualSums, share: float) -> tuple[float, float]:
    """The value of the best feasible multiple tα of an α whose largest α/c is `share`, and t."""
    most = 1.0 / share if share > 0.0 else 0.0
    value, t = model.dual_value(sums.total, sums.squares, sums.weights, most)
    return float(value), t


def scaled(shard: Vectors, alpha: Any, sums: DualSums) -> DualPoint:
    """The best feasible multiple of a balanced α."""
    share = shard.reduce(_largest_share, (alpha,), by=max)
    value, t = best_multiple(shard.model, sums, share)
    how = (t, shard.model.loss)
    return DualPoint(value, alpha if t == 1.0 else shard.map(multiple, (alpha,), how))


def sums_of(shard: Vectors, alpha: Any, weights: np.ndarray) -> DualSums:
    """The sums of an α whose dual weights are known."""
    if shard.model.loss == HINGE:
        return DualSums(shard.reduce(_total, (alpha,)), 0.0, weights)
    total, squares = shard.reduce(_total_and_squares, (alpha,)).tolist()
    return DualSums(total, squares, weights)


def balanced_and_scaled(shard: Vectors, alpha: Any) -> tuple[DualPoint, int]:
    """The best of a few feasible points near α for a problem with a bias, and how many passes over
    the rows that took."""
    points = balanced(shard, alpha)
    weights = [shard.dual_weights(a) for a in points]
    if len(points) == 1:
        return scaled(shard, points[0], sums_of(shard, points[0], weights[0])), 1
    # everything between two feasible points is feasible
    model, totals = shard.model, [shard.reduce(_total, (a,)) for a in points]
    tops = [shard.reduce(_largest_share, (a,), by=max) for a in points]
    found = []
    for t in sorted({0.0, 1.0, *best_shares(model, totals, weights)}):
        total, mean = (_mean(a, b, t) for a, b in (totals, weights))
        top = 1.0 if tops == [1.0, 1.0] else _largest_between(shard, points, t)
        found.append((*best_multiple(model, DualSums(total, 0.0, mean), top), t))
    value, times, t = max(found)
    return DualPoint(value, _multiple_between(shard, points, t, times)), 2


def best_shares(model: Model, totals: list[float], weights: list[np.ndarray]) -> list[float]:
    """The t in [0, 1] where (1 − t)α + tα′ of a hinge may be worth most, given Σα and the dual
    weights of both. Of ½‖·‖² the value is a parabola in t, that of the best multiple (Σα)²/(2‖·‖²);
    of the ℓ1 norm it is Σα over the largest weight, or Σα where that is below 1, which rises and
    then falls."""
    rise, turn = totals[1] - totals[0], weights[1] - weights[0]
    if not model.smoothed_penalty:
        square, slope, bend = (
            float(a @ b) for a, b in ((weights[0], weights[0]), (weights[0], turn), (turn, turn))
        )
        tops = (
            (rise - slope, bend),
            (totals[0] * slope - rise * square, rise * slope - totals[0] * bend),
        )
        return [min(1.0, max(0.0, a / b)) for a, b in tops if b != 0.0]

    def value(t: float) -> float:
        return model.dual_value(totals[0] + t * rise, 0.0, weights[0] + t * turn, 1.0)[0]

    low, high = 0.0, 1.0
    for _ in range(THIRDS):
        a, b = low + (high - low) / 3.0, high - (high - low) / 3.0
        low, high = (a, high) if value(a) < value(b) else (low, b)
    return [0.5 * (low + high)]


def balanced(shard: Vectors, alpha: Any) -> list[Any]:
    """Dual points near α with Σ α_i y_i = 0, as a free bias demands.

    In the box 0 ≤ α ≤ c two points: the heavier class scaled down, and the imbalance made up by
    entries inside their bounds, where the dual is flat, as far as they can. Without a box the
    nearest point in the metric of the dual, Σ(Δα)²/(4c).
    """
    imbalance = shard.reduce(imbalance_of, (alpha,))
    if shard.model.loss != HINGE:
        return [shard.map(_shifted, (alpha,), (imbalance / shard.facts.costs,))]
    if imbalance == 0.0:
        return [alpha]
    heavy = 1.0 if imbalance > 0 else -1.0
    slack = shard.map(_slack, (alpha,), (heavy,))
    total = shard.reduce(_total, (slack,))
    share = abs(imbalance) / total if total > abs(imbalance) else 1.0
    moved = shard.map(_moved, (alpha, slack), (heavy, share))
    return [_lower_class(shard, alpha, heavy), _lower_class(shard, moved, heavy)]


def dual_of_margins(rows: RowData, f: np.ndarray, centre: np.ndarray, mu: float, loss: int):
    """α = c∘u at margins f, the hinge smoothed by μ about the dual point `centre`."""
    r = 1.0 - rows.y * f
    if loss != HINGE:
        return 2.0 * rows.c * r
    return rows.c * hinge_u(shares(centre, rows.c) + r / (mu * rows.s))


def shares(alpha: np.ndarray, c: np.ndarray) -> np.ndarray:
    """α/c, and zero where a row costs nothing; division under a mask takes ten times as long."""
    used = c > 0.0
    return alpha / c if used.all() else alpha / (c + ~used) * used


def imbalance_of(rows: RowData, alpha: np.ndarray) -> float:
    """Σ α_i y_i."""
    return float(alpha @ rows.y)


def no_dual_point(rows: RowData) -> np.ndarray:
    """α = 0."""
    return np.zeros(len(rows.y))


def _mean(a: Any, b: Any, t: float) -> Any:
    """(1 − t)a + tb."""
    return (1.0 - t) * a + t * b


def _largest_between(shard: Vectors, points: list[Any], t: float) -> float:
    """The largest α/c of a point between two."""
    return float(shard.reduce(_largest_share_between, tuple(points), (t,), by=max))


def _largest_share_between(rows: RowData, a: np.ndarray, b: np.ndarray, t: float) -> float:
    return _largest_share(rows, _mean(a, b, t))


def _multiple_between(shard: Vectors, points: list[Any], t: float, times: float) -> Any:
    """A multiple of a point between two of a hinge."""
    if t in (0.0, 1.0):
        alpha = points[int(t)]
        return alpha if times == 1.0 else shard.map(multiple, (alpha,), (times, HINGE))
    return shard.map(_between, tuple(points), (t, times))


def _between(rows: RowData, a: np.ndarray, b: np.ndarray, t: float, times: float) -> np.ndarray:
    return np.minimum(times * _mean(a, b, t), rows.c)


def multiple(rows: RowData, alpha: np.ndarray, t: float, loss: int) -> np.ndarray:
    """tα, inside its box also where rounding would lead out of it, which it does where t > 1."""
    scaled = alpha if t == 1.0 else t * alpha
    return np.minimum(scaled, rows.c) if loss == HINGE and t > 1.0 else scaled


def _largest_share(rows: RowData, alpha: np.ndarray) -> float:
    return float(shares(alpha, rows.c).max(initial=0.0))


def _total(rows: RowData, alpha: np.ndarray) -> float:
    return float(alpha.sum())


def _total_and_squares(rows: RowData, alpha: np.ndarray) -> np.ndarray:
    used = rows.c > 0.0
    return np.array([alpha.sum(), (alpha[used] ** 2 / (4.0 * rows.c[used])).sum()])


def _slack(rows: RowData, alpha: np.ndarray, heavy: float) -> np.ndarray:
    """How far entries inside their bounds can move to help."""
    inside = (alpha > 0.0) & (alpha < rows.c)
    return np.where(inside, np.where(rows.y == heavy, alpha, rows.c - alpha), 0.0)


def _moved(
    rows: RowData, alpha: np.ndarray, slack: np.ndarray, heavy: float, share: float
) -> np.ndarray:
    return alpha - (heavy * share) * (rows.y * slack)


def _lower_class(shard: Vectors, alpha: Any, heavy: float) -> Any:
    """α with the heavier class scaled down to the weight of the other."""
    weight, other = shard.reduce(_class_totals, (alpha,), (heavy,))
    if weight <= other:
        return alpha
    return shard.map(_scale_class, (alpha,), (heavy, other / weight))


def _class_totals(rows: RowData, alpha: np.ndarray, heavy: float) -> np.ndarray:
    side = rows.y == heavy
    return np.array([alpha @ side, alpha @ ~side])


def _scale_class(rows: RowData, alpha: np.ndarray, heavy: float, t: float) -> np.ndarray:
    return np.where(rows.y == heavy, t * alpha, alpha)


def _shifted(rows: RowData, alpha: np.ndarray, share: float) -> np.ndarray:
    return alpha - rows.c * rows.y * share
