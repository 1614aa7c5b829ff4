"""Coordinate ascent on the dual of a linear machine, one row at a time.

The dual is max Σα − ½Σ d_i α_i² − ½‖w‖² − ½s²/ρ, w = Σ α_i y_i x_i and s = Σ α_i y_i. Smoothing, or
a squared loss, puts d on the diagonal; a bias held near b⁰ by ½ρ(b − b⁰)² adds 1/ρ. Its gradient is
r_i − d_i α_i with r_i = 1 − y_i(x_i·w + b).
"""

from typing import NamedTuple

import numpy as np

from ..jit import loop
from ..matrix import row_axpy, row_dot


class Dual(NamedTuple):
    """Of every row: α and its bounds, d, the curvature ‖x‖² + d + 1/ρ, and r as last seen."""

    alpha: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    diagonal: np.ndarray
    curvature: np.ndarray
    residual: np.ndarray


class Epoch(NamedTuple):
    """What a pass leaves: the largest and the smallest gradient that could move a row, and b."""

    highest: float
    lowest: float
    b: float


@loop
def _dual_epoch(X, y, dual, active, starts, size, before, share, aside, w):
    """α_i ← median{α_i + (r_i − d_i α_i)/curvature_i, lower, upper}, w and b following, for the
    rows active[k], k from each of `starts` on, `size` of them; share is 1/ρ, or 0 without a bias.

    A row at a bound whose gradient points further out of the box than any could move in the epoch
    before is set aside. Rows come in short runs, not one by one: at random each waits for memory,
    three times as long as its arithmetic takes (news20).
    """
    b = before.b
    above, below = before.highest, before.lowest
    highest, lowest = -np.inf, np.inf
    for first in starts:
        for k in range(first, min(first + size, len(active))):
            i = active[k]
            r = 1.0 - y[i] * (row_dot(X, i, w) + b)
            dual.residual[i] = r
            a, low, high = dual.alpha[i], dual.lower[i], dual.upper[i]
            g = r - dual.diagonal[i] * a
            if (a <= low and g < 0.0) or (a >= high and g > 0.0):
                aside[i] = g < below or g > above
                continue
            highest = max(highest, g)
            lowest = min(lowest, g)
            new = min(max(a + g / dual.curvature[i], low), high)
            if new != a:
                dual.alpha[i] = new
                step = (new - a) * y[i]
                b += share * step
                row_axpy(X, i, step, w)
    return highest, lowest, b
