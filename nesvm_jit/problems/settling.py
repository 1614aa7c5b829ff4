"""The last word on a run of a linear machine: P at its point from above and D at its dual point
from below, true in exact arithmetic for the problem as it is stored.

Bounds inside the loops are estimates that steer. Here every rounding is allowed for by the formulas
of rounding.py; docs/certificate.md derives them.
"""

from typing import Any, NamedTuple

import numpy as np

from .certificate import DualPoint, Vectors
from .lower_bound import settle_dual
from .rounding import Columns
from .sharpness import rounding_felt
from .upper_bound import settle_objective


class Settled(NamedTuple):
    """P from above, D from below with its α, and the margins of every row."""

    objective: float
    dual: DualPoint
    margins: Any


def settle_linear(
    shard: Vectors,
    w: np.ndarray,
    b: float,
    alpha: Any,
    tol: float,
    columns: Columns | None = None,
) -> Settled:
    """P at (w, b) and D at α, in a pass for the margins and one for Σ α_i y_i x_i. Where their
    roundings come to a noticeable share of the tolerance, sums are made nearly exactly instead."""
    objective, margins = settle_objective(shard, w, b, tol, columns)
    felt = rounding_felt(shard, objective, tol)
    return Settled(objective, settle_dual(shard, alpha, felt, columns), margins)
