"""Which kernel, and how its values on given rows are made: where distances are measured from, how
large they are, and whether products, stored entries or differences serve best."""

from typing import NamedTuple

import numpy as np

from ..errors import InputError
from ..matrix.matrix import Csr, shape
from ..matrix.rows import size_of
from .sums import _accumulate, _margins, norms_of, row_chunks, row_partials

POLY, RBF = 1, 2
KERNELS = {"poly": POLY, "rbf": RBF}
TILE = 256  # rows and columns of K in a tile, at most
TILE_CELLS = 1 << 19  # of the rows of a tile spread out dense, at most: each thread has such memory
THIN = 0.03  # share of entries stored, below which products run over them instead of by BLAS
THIN_TILE = (32, 8192)  # rows and columns of such a tile
# Share of entries stored, below which products of rows that are not moved run over the entries of
# one row and columns of the others, 3 times as fast as BLAS at 0.11 (a6a, two cores); and of how
# many cells at least: fewer are not worth compiling another kernel.
SPREAD, SPREAD_CELLS = 0.2, 1 << 18
BLAS, SPARSE, DIFFERENCES, COLUMNS = 0, 1, 2, 3  # how products or distances of a tile are made
# The error of γ‖x − z‖² by products that is allowed; beyond it distances are sums of squares.
WORST_ERROR = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 1e-4}
CENTRED_ROWS = 1024  # rows whose distance to the centre is computed at a time


class Spec(NamedTuple):
    """Which kernel: rbf exp(−γ‖x−z‖²) or poly (γ x·z + coef0)^degree."""

    kind: int
    gamma: float
    coef0: float
    degree: int


def density(X) -> float:
    """The share of entries that are stored."""
    n, p = shape(X)
    return len(X.data) / max(1, n * p) if isinstance(X, Csr) else 1.0


def tile_starts(n: int, m: int, size: tuple[int, int], symmetric: bool) -> np.ndarray:
    """The first row and column of every tile, of the lower triangle if symmetric."""
    starts = [
        (i, j)
        for i in range(0, n, size[0])
        for j in range(0, m, size[1])
        if not symmetric or j < i + size[0]
    ]
    return np.array(starts, dtype=np.int64).reshape(-1, 2)


def tiling(X, dtype, reach: float) -> tuple[int, tuple[int, int]]:
    """How a tile is made, given the largest γ‖x − centre‖², and its rows and columns."""
    side = int(max(16, min(TILE, TILE_CELLS // max(shape(X)[1], 1))))
    if reach * np.finfo(dtype).eps > WORST_ERROR[np.dtype(dtype)]:
        return DIFFERENCES, (side, side)
    if density(X) < THIN:
        return SPARSE, THIN_TILE
    return BLAS, (side, side)


def products_of_entries(X, centre: np.ndarray, cells: int) -> bool:
    """Whether so many products of rows of X that are not moved are made by entries and columns."""
    few = isinstance(X, Csr) and cells >= SPREAD_CELLS and density(X) < SPREAD
    return few and not centre.any()


def reach_of(X, spec: Spec, centre: np.ndarray) -> float:
    """At least the largest γ‖x_i − centre‖² (rbf; else 0): what rounding of distances goes with."""
    n, _ = shape(X)
    if spec.kind != RBF or n == 0:
        return 0.0
    far = 0.0
    with np.errstate(over="ignore"):
        if isinstance(X, Csr):  # up to the rounding of these sums themselves
            squares, products, square = norms_of(X)[0] ** 2, np.empty(n), float(centre @ centre)
            _margins(row_chunks(X), X, centre, 0.0, products)
            far = float((squares + 2.0 * np.abs(products)).max()) + square
            if density(X) >= THIN:
                exact = squares - 2.0 * products + square
                far = float(exact.max()) + 1e-15 * far
        else:
            for lo in range(0, len(X), CENTRED_ROWS):
                part = X[lo : lo + CENTRED_ROWS] - centre
                far = max(far, float(np.einsum("ij,ij->i", part, part).max()))
        return spec.gamma * far


def centre_of(X, spec: Spec) -> np.ndarray:
    """The mean row for distances, zero for products."""
    n, p = shape(X)
    centre = np.zeros(p)
    if spec.kind == RBF and n:
        _accumulate(X, np.full(n, 1.0 / n), row_partials(size_of(X)), centre)
    return centre


def exact_products(X, norms, dtype) -> bool:
    """Whether products and squared distances of rows are exact in this precision, in any order: of
    whole numbers, no sum of products being beyond those that it holds."""
    values = X.data if isinstance(X, Csr) else X
    largest = 0.125 / float(
        np.finfo(dtype).eps
    )  # of ‖x‖²: ‖x − z‖² and its parts are below 8 of it
    if not float(norms.max(initial=0.0)) ** 2 < largest:
        return False
    return values.dtype.kind in "iub" or bool((values == np.rint(values)).all())


def squares_of(name: str, X) -> np.ndarray:
    """‖x_i‖² of every row."""
    squares = norms_of(X)[0] ** 2
    if not np.isfinite(squares).all():
        raise InputError(f"{name} must have rows whose squares can be added up, got larger entries")
    return squares
