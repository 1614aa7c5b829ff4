"""The public faces of the kernels, one by one in docs/kernels.md: they check their arguments and
allocate what they return."""

from typing import NamedTuple

import numpy as np

from ..clock import pieces
from ..errors import InputError
from ..jit import chunk_count, one_blas_thread
from ..matrix.checks import as_matrix, as_number, as_precision, as_vector, output
from ..matrix.matrix import Csr, shape
from ..matrix.rows import size_of
from ..settings import whole_number
from .gram import KERNELS, Spec, _gram, centre_of, reach_of, squares_of, tile_starts, tiling
from .hessian import (
    _hessian,
    _hessian_diagonal,
    _hessian_times,
    hessian_memory,
)
from .line_search import Margins, _slope, line_partials
from .loss import RowData, _project_hinge, _project_l1, loss_code
from .sums import (
    _accumulate,
    _accumulate_change,
    _margins,
    norms_of,
    row_chunks,
    row_partials,
)
from .sweep import _sweep, sweep_workspace

HIGHEST_DEGREE = 1000  # of a polynomial: a power is as many products
SMALLEST, LARGEST = 1e-100, 1e100  # of a scale, so that the product of two is still a number


def require_scale(name: str, value) -> None:
    """One line for a smoothing parameter or scale that is not positive or beyond all use."""
    least, most = np.min(value, initial=1.0), np.max(value, initial=1.0)
    if least <= 0.0:
        raise InputError(f"{name} must be positive, got {least:g}")
    if least < SMALLEST or most > LARGEST:
        wrong = least if least < SMALLEST else most
        raise InputError(f"{name} must be from {SMALLEST:g} to {LARGEST:g}, got {wrong:g}")


def as_row_data(y, c, s, n: int) -> RowData:
    """Labels, costs and scales of n rows, checked."""
    y, c, s = as_vector("y", y, n), as_vector("c", c, n), as_vector("s", s, n)
    if not (np.abs(y) == 1).all():
        raise InputError("y must hold -1 and +1 only")
    if (c < 0).any():
        raise InputError(f"c must not be negative, got {c.min()}")
    require_scale("s", s)
    return RowData(y, c, s)


def as_spec(kernel: str, gamma: float | None, coef0: float, degree: int, p: int) -> Spec:
    """The kernel named, checked; γ is 1/p by default."""
    if kernel not in KERNELS:
        raise InputError(f"kernel must be one of {', '.join(KERNELS)}, got {kernel!r}")
    gamma = 1.0 / max(p, 1) if gamma is None else as_number("gamma", gamma)
    require_scale("gamma", gamma)
    degree = whole_number("degree", degree, 0, HIGHEST_DEGREE)
    return Spec(KERNELS[kernel], gamma, as_number("coef0", coef0), degree)


def project_hinge(r, s=1.0, mu=1.0, out=None):
    """The hinge loss's dual variable u = median{r/(μs), 0, 1} of residuals r = 1 − y(Xw + b)."""
    r = as_vector("r", r)
    s = as_vector("s", s, len(r))
    mu = as_number("mu", mu)
    require_scale("s", s)
    require_scale("mu", mu)
    u = output("out", out, (len(r),))
    _project_hinge(chunk_count(len(r), 4 * len(r)), r, s, mu, u)
    return u


def project_l1(w, mu=1.0, out=None):
    """The ℓ1 norm's dual variable u = median{w/μ, −1, 1}."""
    w = as_vector("w", w)
    mu = as_number("mu", mu)
    require_scale("mu", mu)
    u = output("out", out, (len(w),))
    _project_l1(chunk_count(len(w), 4 * len(w)), w, mu, u)
    return u


def margins(X, w, b=0.0, out=None):
    """f = Xw + b."""
    X = as_matrix(X, borrow=True)
    n, p = shape(X)
    out = output("out", out, (n,))
    w = as_vector("w", w, p)
    w = w.copy() if np.may_share_memory(w, out) else w
    _margins(row_chunks(X), X, w, as_number("b", b), out)
    return out


def row_norms(X):
    """The norms ‖x_i‖₂ and ‖x_i‖_∞ of all rows, as two arrays, in one pass."""
    return norms_of(as_matrix(X, borrow=True))


def accumulate(X, a, out=None):
    """Xᵀa over the rows with a_i ≠ 0; with a = c∘y∘u this is (YX)ᵀu over support vectors."""
    X = as_matrix(X, borrow=True)
    n, p = shape(X)
    out = output("out", out, (p,))
    _accumulate(X, as_vector("a", a, n), row_partials(size_of(X)), out)
    return out


def accumulate_change(X, new, old, out):
    """Brings out = Xᵀold up to date: out += Xᵀ(new − old) over the rows where they differ."""
    X = as_matrix(X, borrow=True)
    n, p = shape(X)
    out = output("out", out, (p,))
    new, old = as_vector("new", new, n), as_vector("old", old, n)
    _accumulate_change(X, new, old, row_partials(size_of(X)), out)
    return out


class Sweep(NamedTuple):
    """What a pass finds: u, Σ c h_μ, Σ c h, Σ c u, and Σ c y u x, Σ c y u (the loss's gradient is
    minus these two; with α = c∘u they are also what a dual point needs)."""

    u: np.ndarray
    smoothed: float
    loss: float
    total: float
    ascent: np.ndarray
    ascent_b: float


def sweep(X, y, w, b=0.0, c=1.0, s=1.0, mu=1.0, loss="hinge", u=None):
    """The fused pass at (w, b): u, smoothed and true loss, and the loss's negative gradient."""
    code = loss_code(loss)
    mu, b = as_number("mu", mu), as_number("b", b)
    require_scale("mu", mu)
    X = as_matrix(X, borrow=True)
    n, p = shape(X)
    data = as_row_data(y, c, s, n)
    w = as_vector("w", w, p)
    u, ascent = output("u", u, (n,)), np.zeros(p)
    workspace = sweep_workspace(size_of(X))
    smoothed, true, total, ascent_b = _sweep(X, data, w, b, mu, code, u, workspace, ascent)
    return Sweep(u, smoothed, true, total, ascent, ascent_b)


def _as_curvature(d, n: int) -> np.ndarray:
    d = as_vector("d", d, n)
    if (d < 0).any():
        raise InputError(f"d must not be negative, got {d.min()}")
    return d


def hessian(X, d, out=None):
    """Xᵀ diag(d) X over the rows with d_i > 0, as a full symmetric p × p array."""
    X = as_matrix(X, borrow=True)
    n, p = shape(X)
    H = output("out", out, (p, p))
    with one_blas_thread():
        size = size_of(X)
        _hessian(X, _as_curvature(d, n), hessian_memory(size, not isinstance(X, Csr)), False, H)
    return H


def hessian_times(X, d, v, out=None):
    """Xᵀ diag(d) X v over the rows with d_i > 0, each row touched once."""
    X = as_matrix(X, borrow=True)
    n, p = shape(X)
    out = output("out", out, (p,))
    _hessian_times(X, _as_curvature(d, n), as_vector("v", v, p), row_partials(size_of(X)), out)
    return out


def hessian_diagonal(X, d, out=None):
    """The diagonal of Xᵀ diag(d) X, which is what its products are preconditioned with."""
    X = as_matrix(X, borrow=True)
    n, p = shape(X)
    out = output("out", out, (p,))
    _hessian_diagonal(X, _as_curvature(d, n), row_partials(size_of(X)), out)
    return out


def slope(f, m, y, t=0.0, c=1.0, s=1.0, mu=1.0, loss="hinge"):
    """φ'(t) and φ''(t) of φ(t) = Σ c h_μ(1 − y(f + t m)), from the margins f of a point and m of
    a direction.

    φ' is piecewise linear and never falls: its root is the exact line search.
    """
    f = as_vector("f", f)
    n = len(f)
    data = as_row_data(y, c, s, n)
    mu = as_number("mu", mu)
    require_scale("mu", mu)
    m = as_vector("m", m, n)
    margins = Margins(1.0 / data.s, f, m, np.zeros(n), np.zeros(0), np.zeros(0))
    first, second = _slope(
        data,
        margins,
        mu,
        loss_code(loss),
        as_number("t", t),
        line_partials(chunk_count(n, 8 * n, 2)),
    )
    return first, second


def gram(X, Z=None, kernel="rbf", gamma=None, coef0=0.0, degree=3, dtype=np.float64):
    """The kernel matrix k(X, Z), or k(X, X) at half the work when Z is None.

    rbf exp(−γ‖x−z‖²), poly (γ x·z + coef0)^degree; γ is 1/features by default. `dtype` is of the
    result and of the arithmetic, float64 or float32.
    """
    dtype = as_precision(dtype)
    symmetric = Z is None
    X = as_matrix(X, borrow=True)
    Z = X if symmetric else as_matrix(Z, "Z", borrow=True)
    (n, p), (m, q) = shape(X), shape(Z)
    if p != q:
        raise InputError(f"X and Z must have the same number of columns, got {p} and {q}")
    spec = as_spec(kernel, gamma, coef0, degree, p)
    xx = squares_of("X", X)
    squares = (xx, xx if symmetric else squares_of("Z", Z))
    K = np.empty((n, m), dtype)
    centre = centre_of(X, spec)
    reach = reach_of(X, spec, centre)
    how, size = tiling(Z, dtype, reach if symmetric else max(reach, reach_of(Z, spec, centre)))
    tiles = tile_starts(n, m, size, symmetric)
    with one_blas_thread():
        for some in pieces(len(tiles)):
            _gram(X, Z, centre, squares, spec, tiles[some], size, how, symmetric, K)
    return K
