"""The fused pass: everything a round of the method needs from the data, each row touched once."""

from typing import NamedTuple

import numpy as np

from ..errors import InputError
from ..jit import chunk_bounds, helper, kernel, partial_sums, prange
from ..matrix.checks import as_matrix, as_number, as_vector, output
from ..matrix.matrix import row_axpy, row_dot, shape
from ..matrix.rows import Size, size_of
from .projection import hinge_u, require_scale
from .sums import _collect, clear, row_sums

HINGE, SQUARE = 0, 1
CACHE_BYTES = 1 << 14
LOSSES = {"hinge": HINGE, "square": SQUARE}


class Rows(NamedTuple):
    """What belongs to each row: its label ±1, its cost c_i and its smoothing scale s_i."""

    y: np.ndarray
    c: np.ndarray
    s: np.ndarray


class Work(NamedTuple):
    """Room for a pass: partial gradients, and partial (smoothed loss, loss, Σ c u, Σ c y u);
    and how many rows fit a fast cache together."""

    parts: np.ndarray
    scalars: np.ndarray
    at_once: int


class Sweep(NamedTuple):
    """What a pass finds: u, Σ c h_μ, Σ c h, Σ c u, and Σ c y u x, Σ c y u (the loss's gradient is
    minus these two; with α = c∘u they are also what a dual point needs)."""

    u: np.ndarray
    smoothed: float
    loss: float
    total: float
    ascent: np.ndarray
    ascent_b: float


@helper
def loss_at(r, mu_s, loss):
    """u, h_μ(r) and h(r) of one row: hinge u = median{r/(μs),0,1}, h_μ = ur − (μs/2)u²;
    square u = 2r, h_μ = h = r²."""
    if loss == HINGE:
        u = hinge_u(r, mu_s)
        return u, u * (r - 0.5 * mu_s * u), max(r, 0.0)
    return 2.0 * r, r * r, r * r


@helper
def _sweep_rows(X, rows, w, b, mu, loss, lo, hi, at_once, u, g, scalars):
    clear(g)
    smoothed, true, total, g_b = 0.0, 0.0, 0.0, 0.0
    active = np.empty(at_once, np.int64)
    weight = np.empty(at_once)
    for first in range(lo, hi, at_once):
        # u of a few rows, then their gradient while they are in the cache: a branch on u right
        # after x·w is a coin toss that waits for the whole product, 1.7 × the time on a9a
        n_active = 0
        for i in range(first, min(first + at_once, hi)):
            y, c = rows.y[i], rows.c[i]
            r = 1.0 - y * (row_dot(X, i, w) + b)
            u_i, h_mu, h = loss_at(r, mu * rows.s[i], loss)
            u[i] = u_i
            smoothed += c * h_mu
            true += c * h
            total += c * u_i
            a = c * y * u_i
            g_b += a
            active[n_active] = i
            weight[n_active] = a
            n_active += a != 0.0
        for k in range(n_active):
            row_axpy(X, active[k], weight[k], g)
    scalars[0] = smoothed
    scalars[1] = true
    scalars[2] = total
    scalars[3] = g_b


@kernel
def _sweep_parts(X, rows, w, b, mu, loss, u, work):
    n, _ = shape(X)
    n_chunks = work.parts.shape[0]
    for k in prange(n_chunks):
        lo, hi = chunk_bounds(n, n_chunks, k)
        _sweep_rows(
            X, rows, w, b, mu, loss, lo, hi, work.at_once, u, work.parts[k], work.scalars[k]
        )


def _sweep(X, rows, w, b, mu, loss, u, work, ascent, keep=False):
    """One pass: r_i = 1 − y_i(x_i·w + b) → u_i, losses → Σ c_i y_i u_i x_i where u_i ≠ 0.

    Returns Σ c h_μ, Σ c h, Σ c u, Σ c y u; `ascent` is the last sum, plus what it held if `keep`.
    """
    _sweep_parts(X, rows, w, b, mu, loss, u, work)
    _collect(work.parts, keep, ascent)
    smoothed, true, total, g_b = work.scalars[:, :4].sum(axis=0).tolist()
    return smoothed, true, total, g_b


def sweep_work(size: Size) -> Work:
    """Room for passes over a matrix, to be made once."""
    parts = row_sums(size)
    at_once = int(max(1, min(64, CACHE_BYTES // max(1, size.row_bytes))))
    return Work(parts, partial_sums(parts.shape[0], 4), at_once)


def loss_code(loss: str) -> int:
    """The number kernels know a loss by."""
    if loss not in LOSSES:
        raise InputError(f"loss must be one of {', '.join(LOSSES)}, got {loss!r}")
    return LOSSES[loss]


def as_rows(y, c, s, n: int) -> Rows:
    """Labels, costs and scales of n rows, checked."""
    y, c, s = as_vector("y", y, n), as_vector("c", c, n), as_vector("s", s, n)
    if not (np.abs(y) == 1).all():
        raise InputError("y must hold -1 and +1 only")
    if (c < 0).any():
        raise InputError(f"c must not be negative, got {c.min()}")
    require_scale("s", s)
    return Rows(y, c, s)


def sweep(X, y, w, b=0.0, c=1.0, s=1.0, mu=1.0, loss="hinge", u=None):
    """The fused pass at (w, b): u, smoothed and true loss, and the loss's negative gradient."""
    code = loss_code(loss)
    mu, b = as_number("mu", mu), as_number("b", b)
    require_scale("mu", mu)
    X = as_matrix(X, borrow=True)
    n, p = shape(X)
    rows = as_rows(y, c, s, n)
    w = as_vector("w", w, p)
    u, ascent = output("u", u, (n,)), np.zeros(p)
    found = _sweep(X, rows, w, b, mu, code, u, sweep_work(size_of(X)), ascent)
    return Sweep(u, found[0], found[1], found[2], ascent, found[3])
