"""Along a direction: an exact line search once the margins of the direction are known, and a step
that reads only the rows whose dual weight it changes.
"""

from typing import NamedTuple

import numpy as np

from ..jit import chunk_bounds, exact_kernel, partial_sums
from ..matrix.matrix import row_axpy, shape
from .loss import loss_about, loss_slope
from .sums import _collect, clear


class Margins(NamedTuple):
    """Of every row: 1/s_i, its margin f_i, that of the direction m_i, the centre ū_i of its
    smoothing, and what follows from f_i: c_i y_i u_i and the curvature d_i = c_i h_μ″(r_i)."""

    inverse: np.ndarray
    f: np.ndarray
    m: np.ndarray
    centre: np.ndarray
    weight: np.ndarray
    curvature: np.ndarray


@exact_kernel
def _slope_partials(k, n_chunks, data, margins, mu, loss, t, partials):
    lo, hi = chunk_bounds(len(data.y), n_chunks, k)
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
    partials[k, 0] = first
    partials[k, 1] = second


@exact_kernel
def _step_partials(k, n_chunks, X, data, margins, mu, loss, t, partials, sums):
    lo, hi = chunk_bounds(shape(X)[0], n_chunks, k)
    g = partials[k]
    clear(g)
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
    sums[k, 0] = smoothed
    sums[k, 1] = true
    sums[k, 2] = total
    sums[k, 3] = g_b
    sums[k, 4] = largest


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
