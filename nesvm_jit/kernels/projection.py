"""Median projections: the maximisers of the two saddle-point forms (the paper's eq. 6 and 14)."""

import numpy as np

from ..errors import InputError
from ..jit import chunk_bounds, chunk_count, helper, kernel, prange
from ..matrix.checks import as_number, as_vector, output


@helper
def hinge_u(r, mu_s):
    """The maximiser of u·r − (μs/2)u² on [0, 1] is the median of r/(μs), 0 and 1."""
    return min(max(r / mu_s, 0.0), 1.0)


@helper
def l1_u(w, mu):
    """The maximiser of w·u − (μ/2)u² on [−1, 1] is the median of w/μ, −1 and 1."""
    return min(max(w / mu, -1.0), 1.0)


@kernel
def _project_hinge(r, s, mu, n_chunks, u):
    """u_i = median{r_i/(μ s_i), 0, 1}."""
    for k in prange(n_chunks):
        lo, hi = chunk_bounds(len(r), n_chunks, k)
        for i in range(lo, hi):
            u[i] = hinge_u(r[i], mu * s[i])


@kernel
def _project_l1(w, mu, n_chunks, u):
    """u_j = median{w_j/μ, −1, 1}."""
    for k in prange(n_chunks):
        lo, hi = chunk_bounds(len(w), n_chunks, k)
        for j in range(lo, hi):
            u[j] = l1_u(w[j], mu)


SMALLEST, LARGEST = 1e-100, 1e100  # of a smoothing scale: a product of two is still a number


def require_scale(name: str, value) -> None:
    """One line for a smoothing parameter or scale that is not positive or beyond all use."""
    least, most = np.min(value, initial=1.0), np.max(value, initial=1.0)
    if least <= 0.0:
        raise InputError(f"{name} must be positive, got {least:g}")
    if least < SMALLEST or most > LARGEST:
        wrong = least if least < SMALLEST else most
        raise InputError(f"{name} must be from {SMALLEST:g} to {LARGEST:g}, got {wrong:g}")


def project_hinge(r, s=1.0, mu=1.0, out=None):
    """The hinge loss's dual variable u = median{r/(μs), 0, 1} of residuals r = 1 − y(Xw + b)."""
    r = as_vector("r", r)
    s = as_vector("s", s, len(r))
    mu = as_number("mu", mu)
    require_scale("s", s)
    require_scale("mu", mu)
    u = output("out", out, (len(r),))
    _project_hinge(r, s, mu, chunk_count(len(r), 1), u)
    return u


def project_l1(w, mu=1.0, out=None):
    """The ℓ1 norm's dual variable u = median{w/μ, −1, 1}."""
    w = as_vector("w", w)
    mu = as_number("mu", mu)
    require_scale("mu", mu)
    u = output("out", out, (len(w),))
    _project_l1(w, mu, chunk_count(len(w), 1), u)
    return u
