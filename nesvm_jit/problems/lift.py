"""The best multiple of a point: t(w, b) with the least P.

Where rows can be separated and C is large beside ‖w‖, P is the penalty of the widest margin, and
residuals of 1e-16, which are rounding, may cost more than that. With t a little above 1 every
margin is beyond 1 + δ, δ being what rounding may take from it: no loss is left, at a price of t².
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..kernels.loss import HINGE, RowData

HALVINGS = 70  # of a bracket of t, after which only rounding is left of it
FARTHEST = 2.0**40  # that t is looked for
UNIT = float(np.finfo(float).eps)  # twice the unit roundoff


def margin_rounding(terms: int, size: Any) -> Any:
    """What rounding may take from a margin that is a sum of so many products, whose sizes add up
    to this much."""
    return (terms + 8) * UNIT * (size + 1.0)


def loss_slope(
    rows: RowData, margins: np.ndarray, t: float, slack: np.ndarray | float, loss: int
) -> float:
    """The derivative by t of Σ c loss(1 + δ − t y f); of LS-SVM without δ."""
    m = rows.y * margins
    if loss != HINGE:
        return -2.0 * float((rows.c * m) @ (1.0 - t * m))
    return -float((rows.c * m) @ (t * m < 1.0 + slack))


def least_margin(rows: RowData, margins: np.ndarray) -> float:
    """The least y f of the rows that cost something."""
    return float((rows.y * margins).min(initial=np.inf, where=rows.c > 0.0))


def multiple_of_margins(rows: RowData, margins: np.ndarray, t: float) -> np.ndarray:
    """The margins of t(w, b)."""
    return t * margins


def least_multiple(slope: Callable[[float], float]) -> float:
    """The t from which on a slope that never falls is not negative, found by halving."""
    low, high = 0.0, 1.0
    while slope(high) < 0.0:
        low, high = high, 2.0 * high
        if high > FARTHEST:
            return 1.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        if slope(middle) < 0.0:
            low = middle
        else:
            high = middle
    return high
