"""How far entries of a kernel matrix may be off, as they are computed from the rows of a matrix."""

from typing import Any

import numpy as np

from ..jit import chunk_count
from ..kernels.spec import (
    BLAS,
    DIFFERENCES,
    RBF,
    SPARSE,
    Spec,
    centre_of,
    exact_products,
    reach_of,
    tiling,
)
from ..kernels.sums import _margins, norms_of
from ..matrix.matrix import Matrix
from .blocks import count_cells
from .rounding import (
    TINY,
    UNIT,
    EntryError,
    above,
    growth,
    kernel_entries,
    norm_above,
    row_norms_above,
)

PANEL = 1024  # rows that are moved by the centre at a time


def entry_error(X: Matrix, spec: Spec, dtype, reach: float) -> float:
    """About the error of an entry exp(−γ‖x − z‖²) in this precision, against √K_ii √K_jj.

    By products the exponent is off by a few roundings of γ‖x − centre‖², the largest of which is
    `reach`; by differences by roundings of itself, and te^{−t} < 1. Rows that are rounded to
    float32 before they are centred are off by roundings of ‖x‖.
    """
    eps = float(np.finfo(dtype).eps)
    if tiling(X, dtype, reach)[0] == DIFFERENCES:
        return eps * (1.0 + X.shape[1] ** 0.5)
    rounded = 0.0
    if spec.kind == RBF and np.dtype(dtype) == np.float32:
        rounded = spec.gamma**0.5 * float(norms_of(X)[0].max(initial=0.0))
    return eps * (1.0 + 2.0 * reach + rounded)


def entries_of(
    X: Matrix, spec: Spec, dtype: Any, centre: np.ndarray | None = None, how: int | None = None
) -> EntryError:
    """How far the entries of the kernel matrix of X may be off at most, computed in this way, or
    as `gram` does it."""
    n, p = X.shape
    if centre is None or how is None:
        centre = centre_of(X, spec)
        how = tiling(X, dtype, reach_of(X, spec, centre))[0]
    cells = np.broadcast_to(np.asarray(count_cells(X), dtype=float), n)
    norms = row_norms_above(norms_of(X)[0], cells)
    most, eps = (p if how != SPARSE else int(cells.max(initial=0.0))), np.finfo(dtype).eps / 2.0
    reach = 0.0
    exact = how == BLAS and not centre.any() and exact_products(X, norms, dtype)
    if spec.kind == RBF and how != DIFFERENCES and not exact:
        whole = above(spec.gamma * float(norms.max(initial=0.0)) ** 2, 4)
        reach = above(spec.gamma * _farthest(X, centre, norms), 4) if how == BLAS else whole
        if eps > UNIT:  # rows are rounded before they are moved
            reach += above(np.sqrt(reach * whole) + eps * whole, 4)
    return kernel_entries(spec, how, norms, most, reach, float(eps), exact)


def _farthest(X: Matrix, centre: np.ndarray, norms: np.ndarray) -> float:
    """The largest ‖x_i − centre‖² or a little more; of compressed rows as ‖x‖² − 2x·centre +
    ‖centre‖², whose roundings go with the sum of their sizes."""
    n, p = X.shape
    if isinstance(X, np.ndarray):
        blocks = (X[lo : lo + PANEL] - centre for lo in range(0, n, PANEL))
        far = max((float(np.einsum("ij,ij->i", a, a).max()) for a in blocks), default=0.0)
        return above(far, p + 4) + p * TINY
    size = norm_above(centre)
    products = np.empty(n)
    _margins(chunk_count(n, 1), X, centre, 0.0, products)
    parts = norms**2 + size**2 + 2.0 * norms * size
    far = norms**2 - 2.0 * products + size**2 + growth(2.0 * p + 16.0) * parts
    return float(np.minimum(far, above(parts, 8)).max(initial=0.0))
