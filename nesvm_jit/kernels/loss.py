"""The losses and the ℓ1 norm, smoothed and true: u, h_μ, h and h_μ″.

Each formula has one body, of numbers in compiled loops and of arrays from NumPy. The smoothed hinge
about a centre ū is h_μ(r) = max_{0≤u≤1} u r − (μs/2)(u − ū)²; its maximiser is u = median{z, 0, 1}
with z = ū + r/(μs) (the paper's eq. 6, where ū = 0). The ℓ1 norm has the bounds −1 and 1 and
z = ū + w/μ (eq. 14). The square loss needs no smoothing.
"""

from typing import NamedTuple

import numpy as np

from ..errors import InputError
from ..jit import chunk_bounds, inline, kernel, overload

HINGE, SQUARE = 0, 1
LOSSES = {"hinge": HINGE, "square": SQUARE}


class RowData(NamedTuple):
    """What belongs to each row: its label ±1, its cost c_i and its smoothing scale s_i."""

    y: np.ndarray
    c: np.ndarray
    s: np.ndarray


def median(z, low, high):
    """The median of z and two bounds, low ≤ high."""
    return np.clip(z, low, high) if isinstance(z, np.ndarray) else min(max(z, low), high)


def positive(r):
    """max(r, 0)."""
    return np.maximum(r, 0.0) if isinstance(r, np.ndarray) else max(r, 0.0)


@overload(median)
def _median(z, low, high):
    return lambda z, low, high: min(max(z, low), high)


@overload(positive)
def _positive(r):
    return lambda r: max(r, 0.0)


@inline
def hinge_u(z):
    """u = median{z, 0, 1}."""
    return median(z, 0.0, 1.0)


@inline
def hinge_bends(z):
    """Whether h_μ is curved there, by μs h_μ″ = 1 or 0: where 0 < z < 1."""
    return (z > 0.0) & (z < 1.0)


@inline
def l1_u(z):
    """u = median{z, −1, 1}."""
    return median(z, -1.0, 1.0)


@inline
def l1_bends(z):
    """Whether the smoothed ℓ1 norm is curved there, by 1/μ: where |z| < 1."""
    return abs(z) < 1.0


@inline
def true_loss(r, loss):
    """h(r): max(r, 0), or r²."""
    if loss == HINGE:
        return positive(r)
    return r * r


@inline
def loss_at(r, mu_s, loss):
    """u, h_μ(r) and h(r) about ū = 0, where h_μ = u (r − (μs/2) u); of the square 2r, r² and r²."""
    if loss == HINGE:
        u = hinge_u(r / mu_s)
        return u, u * (r - 0.5 * mu_s * u), positive(r)
    return 2.0 * r, r * r, r * r


@inline
def loss_about(z, r, mu_s, centre, loss):
    """u, h_μ(r) and h(r) about the centre ū, given z = ū + r/(μs)."""
    if loss == HINGE:
        u = hinge_u(z)
        away = u - centre
        return u, u * r - 0.5 * mu_s * away * away, positive(r)
    return 2.0 * r, r * r, r * r


@inline
def loss_slope(z, r, steep, loss):
    """u = h_μ′(r) and h_μ″(r), given z = ū + r/(μs) and steep = 1/(μs)."""
    if loss == HINGE:
        return hinge_u(z), steep * hinge_bends(z)
    return 2.0 * r, 2.0


@kernel
def _project_hinge(k, n_chunks, r, s, mu, u):
    """u_i = median{r_i/(μ s_i), 0, 1}."""
    lo, hi = chunk_bounds(len(r), n_chunks, k)
    for i in range(lo, hi):
        u[i] = hinge_u(r[i] / (mu * s[i]))


@kernel
def _project_l1(k, n_chunks, w, mu, u):
    """u_j = median{w_j/μ, −1, 1}."""
    lo, hi = chunk_bounds(len(w), n_chunks, k)
    for j in range(lo, hi):
        u[j] = l1_u(w[j] / mu)


def loss_code(loss: str) -> int:
    """The number kernels know a loss by."""
    if loss not in LOSSES:
        raise InputError(f"loss must be one of {', '.join(LOSSES)}, got {loss!r}")
    return LOSSES[loss]
