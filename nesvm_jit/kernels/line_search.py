"""Along a direction: an exact line search once the margins of the direction are known, and a step
that reads only the rows whose dual weight it changes.
"""

from typing import NamedTuple

import numpy as np

from ..jit import chunk_bounds, exact_helper, exact_kernel, partial_sums
from ..matrix.matrix import row_axpy, shape
from .loss import loss_about, loss_slope
from .sums import _collect, clear

LINE_ROUNDS = 60  # slopes that a line search takes at most: a bracket is halved to rounding by then
LINE_EXACT = 1e-4  # share of the slope at the start that a line search may leave
LINE_WHOLE = 0.1  # share that a whole step may leave, beyond which F falls on: more costs rounds
# Slopes after which a step that is still too long shrinks by more than a half: where H is singular
# but for its ridge, a direction may be 1e19 times as long as the step.
LINE_HALVINGS, LINE_SHRINK = 10, 1e-3
LINE_GROWTH = 100.0  # a step grows at most so many times while no end of the descent is in sight


def line_ends(tried, first, descent):
    """Whether a step that leaves the slope `first` of −descent is the one to take, after so many
    others: the whole step is taken as it is where it leaves little."""
    enough = abs(first) <= LINE_EXACT * descent
    return enough or (tried == 0 and -LINE_WHOLE * descent <= first and first < 0.0)


def next_on_line(tried, low, high, t, first, second):
    """Where to look next for the root of φ'(t), which is piecewise linear and never falls: Newton
    inside a bracket. Given φ' and φ'' at t, an end of the bracket by now."""
    newton_step = t - first / second if second > 0.0 else np.inf
    if low < newton_step and newton_step < high:
        return newton_step if high < np.inf else min(newton_step, LINE_GROWTH * t)
    if high == np.inf:
        return 4.0 * t
    far = low == 0.0 and tried >= LINE_HALVINGS
    return LINE_SHRINK * t if far else 0.5 * (low + high)


def line_is_short(low, high):
    """Whether only rounding is left of a bracket."""
    return high < np.inf and high - low <= 1e-14 * high


class Margins(NamedTuple):
    """Of every row: 1/s_i, its margin f_i, that of the direction m_i, the centre ū_i of its
    smoothing, and what follows from f_i: c_i y_i u_i and the curvature d_i = c_i h_μ″(r_i)."""

    inverse: np.ndarray
    f: np.ndarray
    m: np.ndarray
    centre: np.ndarray
    weight: np.ndarray
    curvature: np.ndarray


@exact_helper
def slope_of_rows(lo, hi, data, margins, mu, loss, t):
    """The first two derivatives by t of Σ c h_μ(1 − y(f + t m)) over these rows."""
    first, second = 0.0, 0.0
    per = 1.0 / mu
    for i in range(lo, hi):
        y, c = data.y[i], data.c[i]
        ym = y * margins.m[i]
        r = 1.0 - y * margins.f[i] - t * ym
        steep = per * margins.inverse[i]
        u, bend = loss_slope(margins.centre[i] + r * steep, r, steep, loss)
        first -= c * ym * u
        second += c * ym * ym * bend
    return first, second


@exact_helper
def step_of_rows(lo, hi, X, data, margins, mu, loss, t, g, sums):
    """f += t m for these rows, and what follows: g += Σ c y u x by the rows whose u changed; sums
    become Σ c h_μ, Σ c h, Σ c u, Σ c y u and the largest u."""
    smoothed, true, total, g_b, largest = 0.0, 0.0, 0.0, 0.0, 0.0
    per = 1.0 / mu
    for i in range(lo, hi):
        y, c = data.y[i], data.c[i]
        f = margins.f[i] + t * margins.m[i]
        margins.f[i] = f
        r, steep, centre = 1.0 - y * f, per * margins.inverse[i], margins.centre[i]
        z = centre + r * steep
        u, h_mu, h = loss_about(z, r, mu * data.s[i], centre, loss)
        _, bend = loss_slope(z, r, steep, loss)
        smoothed += c * h_mu
        true += c * h
        total += c * u
        largest = max(largest, u)
        a = c * y * u
        g_b += a
        margins.curvature[i] = c * bend
        change = a - margins.weight[i]
        if change != 0.0:
            margins.weight[i] = a
            row_axpy(X, i, change, g)
    sums[0] = smoothed
    sums[1] = true
    sums[2] = total
    sums[3] = g_b
    sums[4] = largest


@exact_kernel
def _slope_partials(k, n_chunks, data, margins, mu, loss, t, partials):
    lo, hi = chunk_bounds(len(data.y), n_chunks, k)
    first, second = slope_of_rows(lo, hi, data, margins, mu, loss, t)
    partials[k, 0] = first
    partials[k, 1] = second


@exact_kernel
def _step_partials(k, n_chunks, X, data, margins, mu, loss, t, partials, sums):
    lo, hi = chunk_bounds(shape(X)[0], n_chunks, k)
    g = partials[k]
    clear(g)
    step_of_rows(lo, hi, X, data, margins, mu, loss, t, g, sums[k])


def line_partials(n_chunks: int) -> np.ndarray:
    """Memory for the partial sums of so many chunks of rows."""
    return partial_sums(n_chunks, 5)


def _slope(data, margins, mu, loss, t, partials):
    """The first two derivatives by t of Σ c h_μ(1 − y(f + t m))."""
    _slope_partials(len(partials), data, margins, mu, loss, t, partials)
    return partials[:, :2].sum(axis=0).tolist()


def _step(X, data, margins, mu, loss, t, partials, sums, dual_weights):
    """f += t m, and what follows; Σ c y u x is brought up to date in `dual_weights`, by the rows
    whose u changed. Returns Σ c h_μ, Σ c h, Σ c u, Σ c y u and the largest u."""
    _step_partials(len(partials), X, data, margins, mu, loss, t, partials, sums)
    _collect(partials, True, dual_weights)
    smoothed, true, total, g_b = sums[:, :4].sum(axis=0).tolist()
    return smoothed, true, total, g_b, float(sums[:, 4].max())
