"""How far the exact optimum can be from a point with a certificate, and what follows for scores.

P is strongly convex in w: ½‖w − w*‖² ≤ P(w, b) − P*, so that w* is in a ball about w of radius
R = √(2(P − D)), and x·w* within R‖x‖ of x·w. An optimal b is best for w*: a weighted quantile (or
mean) of e_i = y_i − x_i·w*, which grows with every e_i, so that bounds of these bound b. Kernels
alike, with √k(x, x) for ‖x‖. docs/certificate.md has the proof.
"""

from typing import Literal

import numpy as np

from ..kernels.loss import HINGE
from ..kernels.rounding import cost_doubt, mean_off, radius_of, target_off

__all__ = ["bias_range", "radius_of"]

SAMPLE = 4096  # rows, or more, that are sorted to tell where a quantile of all rows is, about
MANY = 3 * SAMPLE  # rows from which on that takes less time than to sort them all
SPARE = 200  # rows of the sample on either side: three times the spread of a quantile of so many
EVERYWHERE = (-np.inf, np.inf)


def bias_range(
    y: np.ndarray, c: np.ndarray, products: np.ndarray, off: np.ndarray, loss: int
) -> tuple[float, float]:
    """Bounds of every b that is optimal for some products x_i·w within `off` of these."""
    e = y - products
    if not (c.any() and np.isfinite(e).all() and np.isfinite(off).all()):
        return -np.inf, np.inf
    off = target_off(off, e)
    total, m = float(c.sum()), np.count_nonzero(c)
    if loss != HINGE:
        mean, sizes = float(c @ e) / total, float(c @ (np.abs(e) + off))
        half = mean_off(float(c @ off), sizes, total, m)
        return mean - half, mean + half
    # b is least where Σ{c_i : e_i ≤ b} first reaches the cost of all positive rows, and largest
    # where it first exceeds it
    positive, doubt = float(c @ (y > 0)), cost_doubt(m, total)
    least = -np.inf if positive <= doubt else _cost_quantile(e - off, c, positive - doubt, "left")
    largest = _cost_quantile(e + off, c, positive + doubt, "right")
    return (-np.inf if least == np.inf else least), largest


def _cost_quantile(
    e: np.ndarray, c: np.ndarray, level: float, side: Literal["left", "right"]
) -> float:
    """The least of e where the costs of all that are no larger reach this level, or exceed it on
    the right side; infinite if they never do. What is far from it need not be sorted."""
    near = _bracket(e, c, level) if len(e) >= MANY else EVERYWHERE
    for low, high in (near, EVERYWHERE):
        between = ((e >= low) & (e <= high)).nonzero()[0]
        order = between[e[between].argsort()]  # equal numbers in any order
        costs = float(c @ (e < low)) + c[order].cumsum()
        place = int(costs.searchsorted(level, side=side))
        if 0 < place < len(order) or near is EVERYWHERE:
            break
    return float(e[order[place]]) if place < len(order) else np.inf


def _bracket(e: np.ndarray, c: np.ndarray, level: float) -> tuple[float, float]:
    """Two numbers that this level of cost is likely to be between, by a few of the rows."""
    step = len(e) // SAMPLE
    order = e[::step].argsort()
    some, costs = e[::step][order], c[::step][order].cumsum()
    place = int(costs.searchsorted(level / float(c.sum()) * costs[-1]))
    low, high = place - SPARE, place + SPARE
    return some[low] if low >= 0 else -np.inf, some[high] if high < len(some) else np.inf
