"""The public faces of the kernels, one by one in docs/kernels.md: they check their arguments and
allocate what they return."""

from typing import NamedTuple

import numpy as np

from ..errors import InputError
from ..jit import chunk_count, one_blas_thread
from ..matrix.checks import as_matrix, as_number, as_precision, as_vector, output
from ..matrix.matrix import Csr, shape
from ..matrix.rows import size_of
from ..settings import whole_number
from .gram import columns_of, kernel_between
from .hessian import (
    _hessian,
    _hessian_diagonal,
    _hessian_times,
    hessian_memory,
)
from .line_search import Margins, _slope, line_partials
from .loss import RowData, _project_hinge, _project_l1, loss_code
from .spec import KERNELS, Spec
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
    if type(value) is float and SMALLEST <= value <= LARGEST:
        return
    least, most = np.min(value, initial=1.0), np.max(value, initial=1.0)
    if least <= 0.0:
        raise InputError(f"{name} must be positive, got {least:g}")
    if least < SMALLEST or most > LARGEST:
        wrong = least if least < SMALLEST else most
        raise InputError(f"{name} must be from {SMALLEST:g} to {LARGEST:g}, got {wrong:g}")


def as_row_data(y, c, s, n: int) -> RowData:
    """Labels, costs and scales of n rows, checked."""
    y, c, s = as_vector("y", y, n), _not_negative("c", c, n), _scales(s, n)
    if not (np.abs(y) == 1).all():
        raise InputError("y must hold -1 and +1 only")
    return RowData(y, c, s)


def _not_negative(name: str, v, n: int) -> np.ndarray:
    v = as_vector(name, v, n)
    least = v.min(initial=0.0)
    if least < 0:
        raise InputError(f"{name} must not be negative, got {least}")
    return v


def _scales(s, n: int) -> np.ndarray:
    """Scales of n rows; one for all is looked at once."""
    if np.ndim(s) == 0:
        s = as_number("s", s)
        require_scale("s", s)
        return np.full(n, s)
    s = as_vector("s", s, n)
    require_scale("s", s)
    return s


class Rows:
    """Labels, costs and scales of rows that were checked: copies that nobody else holds, so that
    the kernels need not look at them again."""

    __slots__ = ("_centre", "_data", "_inverse")

    def __init__(self, y, c=1.0, s=1.0):
        y = as_vector("y", y)
        self._data = RowData(*(v.copy() for v in as_row_data(y, c, s, len(y))))
        self._inverse, self._centre = 1.0 / self._data.s, np.zeros(len(y))

    def __len__(self) -> int:
        return len(self._data.y)


def row_data(y, c=1.0, s=1.0):
    """Labels, costs and scales, checked once for all kernels that are given them as y."""
    return Rows(y, c, s)


def _data_of(y, c, s, n: int) -> RowData:
    """What `row_data` made for n rows, or labels, costs and scales that are checked now."""
    if not isinstance(y, Rows):
        return as_row_data(y, c, s, n)
    if len(y) != n:
        raise InputError(f"y must have length {n}, got {len(y)} rows")
    if not (type(c) is type(s) is float and c == s == 1.0):
        raise InputError("c and s are given to row_data, and not again with what it made")
    return y._data


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
    s = _scales(s, len(r))
    mu = as_number("mu", mu)
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
    w = as_vector("w", w, p)
    w = w if out is None or not np.may_share_memory(w, out) else w.copy()
    out = output("out", out, (n,))
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
    data = _data_of(y, c, s, n)
    w = as_vector("w", w, p)
    u, ascent = output("u", u, (n,)), np.zeros(p)
    workspace = sweep_workspace(size_of(X))
    smoothed, true, total, ascent_b = _sweep(X, data, w, b, mu, code, u, workspace, ascent)
    return Sweep(u, smoothed, true, total, ascent, ascent_b)


def hessian(X, d, out=None):
    """Xᵀ diag(d) X over the rows with d_i > 0, as a full symmetric p × p array."""
    X = as_matrix(X, borrow=True)
    n, p = shape(X)
    H = output("out", out, (p, p))
    d, size = _not_negative("d", d, n), size_of(X)
    with one_blas_thread():
        _hessian(X, d, hessian_memory(size, not isinstance(X, Csr)), False, H)
    return H


def hessian_times(X, d, v, out=None):
    """Xᵀ diag(d) X v over the rows with d_i > 0, each row touched once."""
    X = as_matrix(X, borrow=True)
    n, p = shape(X)
    out = output("out", out, (p,))
    _hessian_times(X, _not_negative("d", d, n), as_vector("v", v, p), row_partials(size_of(X)), out)
    return out


def hessian_diagonal(X, d, out=None):
    """The diagonal of Xᵀ diag(d) X, which is what its products are preconditioned with."""
    X = as_matrix(X, borrow=True)
    n, p = shape(X)
    out = output("out", out, (p,))
    _hessian_diagonal(X, _not_negative("d", d, n), row_partials(size_of(X)), out)
    return out


def slope(f, m, y, t=0.0, c=1.0, s=1.0, mu=1.0, loss="hinge"):
    """φ'(t) and φ''(t) of φ(t) = Σ c h_μ(1 − y(f + t m)), from the margins f of a point and m of
    a direction.

    φ' is piecewise linear and never falls: its root is the exact line search.
    """
    f = as_vector("f", f)
    n = len(f)
    data = _data_of(y, c, s, n)
    mu = as_number("mu", mu)
    require_scale("mu", mu)
    m = as_vector("m", m, n)
    known = isinstance(y, Rows)
    inverse, centre = (y._inverse, y._centre) if known else (1.0 / data.s, np.zeros(n))
    margins = Margins(inverse, f, m, centre, np.zeros(0), np.zeros(0))
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
    p, q = shape(X)[1], shape(Z)[1]
    if p != q:
        raise InputError(f"X and Z must have the same number of columns, got {p} and {q}")
    spec = as_spec(kernel, gamma, coef0, degree, p)
    columns = columns_of("X" if symmetric else "Z", Z, spec)
    with one_blas_thread():
        return kernel_between("X", X, columns, dtype)
