"""Median projections: the maximisers of the two saddle-point forms (the paper's eq. 6 and 14)."""

import numpy as np

from ..errors import InputError
from ..jit import chunk_bounds, chunk_count, helper, kernel, prange
from ..matrix import as_vector, output


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


def require_positive(name: str, value) -> None:
    """One line for a scalar or an array with an entry that is not above zero."""
    if not np.all(np.asarray(value) > 0):
        raise InputError(f"{name} must be positive, got {np.min(value)}")


def project_hinge(r, s=1.0, mu=1.0, out=None):
    """The hinge loss's dual variable u = median{r/(μs), 0, 1} of residuals r = 1 − y(Xw + b)."""
    r = as_vector("r", r, np.size(r))
    s = as_vector("s", s, len(r))
    require_positive("s", s)
    require_positive("mu", mu)
    u = output("out", out, (len(r),))
    _project_hinge(r, s, float(mu), chunk_count(len(r), 1), u)
    return u


def project_l1(w, mu=1.0, out=None):
    """The ℓ1 norm's dual variable u = median{w/μ, −1, 1}."""
    w = as_vector("w", w, np.size(w))
    require_positive("mu", mu)
    u = output("out", out, (len(w),))
    _project_l1(w, float(mu), chunk_count(len(w), 1), u)
    return u
