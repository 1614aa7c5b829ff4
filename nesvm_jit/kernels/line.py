"""Along a direction: what an exact line search and a step need once the margins of the
direction are known. The data matrix is not touched."""

from typing import NamedTuple

import numpy as np

from ..jit import chunk_bounds, chunk_count, helper, kernel, partial_sums, prange
from ..matrix import as_number, as_vector
from .projection import hinge_u, require_scale
from .sweep import HINGE, as_rows, loss_at, loss_code


class Margins(NamedTuple):
    """Of every row: its margin f_i, that of the direction m_i, and what follows from f_i: its
    dual weight c_i y_i u_i and its curvature d_i (hinge: c_i/(μ s_i) where 0 < u_i < 1; square:
    2c_i)."""

    f: np.ndarray
    m: np.ndarray
    weight: np.ndarray
    curvature: np.ndarray


@helper
def _slope_at(r, ym, c, mu_s, loss):
    """The first two derivatives by t of c h_μ(r), where r' = −ym."""
    if loss == HINGE:
        first = -c * ym * hinge_u(r, mu_s)
        second = c * ym * ym / mu_s
        return first, second if r > 0.0 and r < mu_s else 0.0
    return -2.0 * c * ym * r, 2.0 * c * ym * ym


@kernel
def _slope_parts(rows, margins, mu, loss, t, parts):
    n, n_chunks = len(rows.y), parts.shape[0]
    for k in prange(n_chunks):
        lo, hi = chunk_bounds(n, n_chunks, k)
        first, second = 0.0, 0.0
        for i in range(lo, hi):
            ym = rows.y[i] * margins.m[i]
            r = 1.0 - rows.y[i] * margins.f[i] - t * ym
            d1, d2 = _slope_at(r, ym, rows.c[i], mu * rows.s[i], loss)
            first += d1
            second += d2
        parts[k, 0] = first
        parts[k, 1] = second


@helper
def _step_rows(rows, margins, mu, loss, t, lo, hi, sums):
    smoothed, true, total, g_b = 0.0, 0.0, 0.0, 0.0
    for i in range(lo, hi):
        y, c, mu_s = rows.y[i], rows.c[i], mu * rows.s[i]
        f = margins.f[i] + t * margins.m[i]
        margins.f[i] = f
        r = 1.0 - y * f
        u, h_mu, h = loss_at(r, mu_s, loss)
        smoothed += c * h_mu
        true += c * h
        total += c * u
        a = c * y * u
        g_b += a
        margins.weight[i] = a
        inside = c / mu_s if r > 0.0 and r < mu_s else 0.0
        margins.curvature[i] = inside if loss == HINGE else 2.0 * c
    sums[0] = smoothed
    sums[1] = true
    sums[2] = total
    sums[3] = g_b


@kernel
def _step_parts(rows, margins, mu, loss, t, parts):
    # the loop is a function of its own: numba drops what a prange body writes to a field of a
    # tuple as if nobody could see it
    n, n_chunks = len(rows.y), parts.shape[0]
    for k in prange(n_chunks):
        lo, hi = chunk_bounds(n, n_chunks, k)
        _step_rows(rows, margins, mu, loss, t, lo, hi, parts[k])


def line_parts(n: int) -> np.ndarray:
    """Room for the partial sums of n rows."""
    return partial_sums(chunk_count(n, 4), 4)


def _slope(rows, margins, mu, loss, t, parts):
    """The first two derivatives by t of Σ c h_μ(1 − y(f + t m))."""
    _slope_parts(rows, margins, mu, loss, t, parts)
    return parts[:, :2].sum(axis=0).tolist()


def _step(rows, margins, mu, loss, t, parts):
    """f += t m, and what follows; returns Σ c h_μ, Σ c h, Σ c u, Σ c y u."""
    _step_parts(rows, margins, mu, loss, t, parts)
    return parts[:, :4].sum(axis=0).tolist()


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
    margins = Margins(f, m, np.zeros(0), np.zeros(0))
    first, second = _slope(rows, margins, mu, loss_code(loss), as_number("t", t), line_parts(n))
    return first, second
