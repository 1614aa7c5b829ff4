"""The fused pass: everything a round of the method needs from the data, each row touched once."""

from typing import NamedTuple

import numpy as np

from ..jit import chunk_bounds, kernel, partial_sums
from ..matrix.matrix import row_axpy, row_dot, shape
from ..matrix.rows import Size
from .loss import loss_at
from .sums import _collect, clear, row_partials

CACHE_BYTES = 1 << 14  # rows that fit into half a first-level cache of 32 kB are read twice at once
MOST_AT_ONCE = 64  # rows, however short they are


class Workspace(NamedTuple):
    """Memory for a pass: partial sums of Σ c y u x, and of Σ c h_μ, Σ c h, Σ c u, Σ c y u; and how
    many rows fit a fast cache together."""

    partials: np.ndarray
    scalars: np.ndarray
    at_once: int


@kernel
def _sweep_partials(k, n_chunks, X, data, w, b, mu, loss, u, workspace):
    lo, hi = chunk_bounds(shape(X)[0], n_chunks, k)
    g, scalars, at_once = workspace.partials[k], workspace.scalars[k], workspace.at_once
    clear(g)
    smoothed, true, total, g_b = 0.0, 0.0, 0.0, 0.0
    active = np.empty(at_once, np.int64)
    weight = np.empty(at_once)
    for first in range(lo, hi, at_once):
        # u of a few rows, then their gradient while they are in the cache: a branch on u right
        # after x·w is a coin toss that waits for the whole product, 1.7 × the time on a9a
        n_active = 0
        for i in range(first, min(first + at_once, hi)):
            y, c = data.y[i], data.c[i]
            r = 1.0 - y * (row_dot(X, i, w) + b)
            u_i, h_mu, h = loss_at(r, mu * data.s[i], loss)
            u[i] = u_i
            smoothed += c * h_mu
            true += c * h
            total += c * u_i
            a = c * y * u_i
            g_b += a
            active[n_active] = i
            weight[n_active] = a
            n_active += a != 0.0
        for j in range(n_active):
            row_axpy(X, active[j], weight[j], g)
    scalars[0] = smoothed
    scalars[1] = true
    scalars[2] = total
    scalars[3] = g_b


def _sweep(X, data, w, b, mu, loss, u, workspace, dual_weights, keep=False):
    """One pass: r_i = 1 − y_i(x_i·w + b) → u_i, losses → Σ c_i y_i u_i x_i where u_i ≠ 0.

    Returns Σ c h_μ, Σ c h, Σ c u, Σ c y u; `dual_weights` is Σ c y u x, plus what it held, if
    `keep`.
    """
    n_chunks = len(workspace.partials)
    _sweep_partials(n_chunks, X, data, w, b, mu, loss, u, workspace)
    _collect(workspace.partials, keep, dual_weights)
    return workspace.scalars[:, :4].sum(axis=0).tolist()


def sweep_workspace(size: Size) -> Workspace:
    """Memory for passes over a matrix, to be made once."""
    partials = row_partials(size)
    at_once = int(max(1, min(MOST_AT_ONCE, CACHE_BYTES // max(1, size.row_bytes))))
    return Workspace(partials, partial_sums(partials.shape[0], 4), at_once)
