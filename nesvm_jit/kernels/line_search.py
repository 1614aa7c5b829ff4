"""Along a direction: an exact line search once the margins of the direction are known, and a step
that reads only the rows whose dual weight it changes.

The hinge is smoothed about a centre ū: h_μ(r) = max_{0≤u≤1} u r − (μs/2)(u − ū)², so that
u = median{ū + r/(μs), 0, 1}: what ū = 0 gives at r + μsū.

Sums are in strict order: reordered, they were not the same on one thread and on two, since the
compiler took another order in each.
"""

from typing import NamedTuple

import numpy as np

from ..jit import chunk_bounds, chunk_count, exact_helper, kernel, partial_sums, prange
from ..matrix.checks import as_number, as_vector
from ..matrix.matrix import row_axpy, shape
from .projection import require_scale
from .sums import _collect, clear
from .sweep import HINGE, as_rows, loss_code


class Margins(NamedTuple):
    """Of every row: 1/s_i, its margin f_i, that of the direction m_i, the centre ū_i, and what
    follows from f_i: its dual weight c_i y_i u_i and its curvature d_i (hinge: c_i/(μ s_i) where
    0 < u_i < 1; square: 2c_i)."""

    inverse: np.ndarray
    f: np.ndarray
    m: np.ndarray
    centre: np.ndarray
    weight: np.ndarray
    curvature: np.ndarray


@exact_helper
def _slope_rows(rows, margins, mu, loss, t, lo, hi, sums):
    first, second = 0.0, 0.0
    per = 1.0 / mu
    for i in range(lo, hi):
        y, c = rows.y[i], rows.c[i]
        ym = y * margins.m[i]
        r = 1.0 - y * margins.f[i] - t * ym
        if loss == HINGE:
            steep = per * margins.inverse[i]
            z = margins.centre[i] + r * steep
            first -= c * ym * min(max(z, 0.0), 1.0)
            # a product, not a branch: who is inside is a coin toss
            second += c * ym * ym * steep * ((z > 0.0) & (z < 1.0))
        else:
            first -= 2.0 * c * ym * r
            second += 2.0 * c * ym * ym
    sums[0] = first
    sums[1] = second


@kernel
def _slope_parts(rows, margins, mu, loss, t, parts):
    n, n_chunks = len(rows.y), parts.shape[0]
    for k in prange(n_chunks):
        lo, hi = chunk_bounds(n, n_chunks, k)
        _slope_rows(rows, margins, mu, loss, t, lo, hi, parts[k])


@exact_helper
def _at(r, mu_s, steep, centre, loss):
    """u, h_μ(r), h(r) and h_μ''(r) of one row; `steep` is 1/(μs)."""
    if loss == HINGE:
        z = centre + r * steep
        u = min(max(z, 0.0), 1.0)
        away = u - centre
        bend = steep * ((z > 0.0) & (z < 1.0))
        return u, u * r - 0.5 * mu_s * away * away, max(r, 0.0), bend
    return 2.0 * r, r * r, r * r, 2.0


@exact_helper
def _step_rows(X, rows, margins, mu, loss, t, lo, hi, g, sums):
    clear(g)
    smoothed, true, total, g_b, largest = 0.0, 0.0, 0.0, 0.0, 0.0
    per = 1.0 / mu
    for i in range(lo, hi):
        y, c = rows.y[i], rows.c[i]
        f = margins.f[i] + t * margins.m[i]
        margins.f[i] = f
        steep = per * margins.inverse[i]
        u, h_mu, h, bend = _at(1.0 - y * f, mu * rows.s[i], steep, margins.centre[i], loss)
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


@kernel
def _step_parts(X, rows, margins, mu, loss, t, parts, sums):
    # the loop is a function of its own: numba drops what a prange body writes to a field of a
    # tuple as if nobody could see it
    n, _ = shape(X)
    n_chunks = parts.shape[0]
    for k in prange(n_chunks):
        lo, hi = chunk_bounds(n, n_chunks, k)
        _step_rows(X, rows, margins, mu, loss, t, lo, hi, parts[k], sums[k])


def line_parts(n_chunks: int) -> np.ndarray:
    """Room for the partial sums of so many chunks of rows."""
    return partial_sums(n_chunks, 5)


def _slope(rows, margins, mu, loss, t, parts):
    """The first two derivatives by t of Σ c h_μ(1 − y(f + t m))."""
    _slope_parts(rows, margins, mu, loss, t, parts)
    return parts[:, :2].sum(axis=0).tolist()


def _step(X, rows, margins, mu, loss, t, parts, sums, ascent):
    """f += t m, and what follows; Σ c y u x is brought up to date in `ascent`, by the rows whose u
    changed. Returns Σ c h_μ, Σ c h, Σ c u, Σ c y u and the largest u."""
    _step_parts(X, rows, margins, mu, loss, t, parts, sums)
    _collect(parts, True, ascent)
    smoothed, true, total, g_b = sums[:, :4].sum(axis=0).tolist()
    return smoothed, true, total, g_b, float(sums[:, 4].max())


def slope(f, m, y, t=0.0, c=1.0, s=1.0, mu=1.0, loss="hinge"):
    """φ'(t) and φ''(t) of φ(t) = Σ c h_μ(1 − y(f + t m)), from the margins f of a point and m of
    a direction.

    φ' is piecewise linear and never falls: its root is the exact line search.
    """
    f = as_vector("f", f)
    n = len(f)
    rows = as_rows(y, c, s, n)
    mu = as_number("mu", mu)
    require_scale("mu", mu)
    m = as_vector("m", m, n)
    margins = Margins(1.0 / rows.s, f, m, np.zeros(n), np.zeros(0), np.zeros(0))
    first, second = _slope(
        rows, margins, mu, loss_code(loss), as_number("t", t), line_parts(chunk_count(n, 2))
    )
    return first, second
