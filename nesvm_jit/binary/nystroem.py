"""Nyström's features: a kernel machine on M landmarks, trained as a linear one.

With K_L the kernel between the landmarks and k(x) that between x and them, φ(x) = K_L^{−½} k(x) has
φ(x)·φ(z) near k(x, z). A linear machine over φ is f(x) = w·φ(x) + b = Σ β_j k(l_j, x) + b with
β = K_L^{−½} w: a kernel machine whose support vectors are the landmarks.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from ..clock import apart
from ..errors import InputError
from ..files.ondisk.matrix import OnDisk
from ..jit import one_blas_thread
from ..kernels import gram
from ..kernels.public import as_spec
from ..kernels.spec import RBF
from ..matrix.checks import as_matrix
from ..matrix.matrix import Matrix
from ..matrix.rows import as_scipy, narrowed, row_slice, take_rows
from ..models import MODELS
from ..problems.kernel import KernelProblem
from ..problems.kernel_rows import KernelRows
from ..settings import HALF_SQUARE, Settings
from .kernel_matrix import budget_bytes, spec_of
from .solution import Solution

SINGULAR = 1e-12  # share of K_L's largest eigenvalue: directions of smaller ones are left out
BLOCK_CELLS = 1 << 22  # kernel values that are held at a time, 32 MB
FEW = 500  # landmarks whose eigenvalues take less than a fifth of a second
USUAL = 1000  # landmarks where none are asked for
# Support vectors times rows beyond which the kernel itself is not certified by `train`: more than
# this takes longer than about ten seconds.
MOST_CELLS = 1 << 30


@dataclass(frozen=True)
class Landmarks:
    """Some rows L, by number, and K_L^{−½} (M × rank)."""

    numbers: np.ndarray
    L: Matrix
    kernel: tuple
    root: np.ndarray
    dtype: np.dtype  # of the features

    @property
    def rank(self) -> int:
        return self.root.shape[1]

    def coefficients(self, w: np.ndarray) -> np.ndarray:
        """β of the landmarks, from the weights of the features."""
        return self.root @ w

    def features(self, X: Matrix) -> np.ndarray:
        """φ of every row."""
        n, M = X.shape[0], len(self.numbers)
        (rows, marks), _ = narrowed(X, self.L)
        out = np.empty((n, self.rank), self.dtype)
        block = max(1, BLOCK_CELLS // max(1, M))
        for lo in range(0, n, block):
            hi = min(n, lo + block)
            out[lo:hi] = gram(row_slice(rows, lo, hi), marks, *self.kernel) @ self.root
        return out


def nystroem(X: Matrix, settings: Settings) -> tuple[Landmarks, Matrix]:
    """Landmarks drawn by the seed, and the features of all rows in the precision of X."""
    n, _ = X.shape
    numbers = _drawn(n, settings)
    marks = _landmarks(take_rows(X, numbers), numbers, spec_of(X, settings).gamma, settings)
    budget, needed = budget_bytes(settings.cache_mb), float(n) * len(numbers) * marks.dtype.itemsize
    if needed > budget:
        raise InputError(
            f"{len(numbers)} landmarks need {needed / 2**20:.3g} MB for the features of {n} "
            f"rows, got a budget of {budget / 2**20:.3g} MB"
        )
    with one_blas_thread():
        return marks, as_matrix(marks.features(X))


def bounds_of_kernel(
    marks: Landmarks,
    X: Matrix,
    rows: np.ndarray | None,
    sign: np.ndarray,
    c: np.ndarray,
    found: Solution,
    settings: Settings,
) -> tuple[float, float] | None:
    """P from above and D from below of the kernel that is approximated, at the machine's
    coefficients and its α, for a problem of these rows of X: one pass over support vectors. None
    where that takes too many kernel values, or the penalty is none of a kernel."""
    if settings.model not in HALF_SQUARE or found.w is None:
        return None
    n = X.shape[0]
    rows = np.arange(n) if rows is None else rows
    part = np.union1d(rows, marks.numbers)
    place, where = np.searchsorted(part, rows), np.searchsorted(part, marks.numbers)
    y, cost, beta, alpha = np.ones(len(part)), *np.zeros((3, len(part)))
    y[place], cost[place], alpha[place] = sign, c, found.alpha
    beta[where] = marks.coefficients(found.w)
    used = float(np.count_nonzero((alpha != 0.0) | (beta != 0.0)))
    if used * len(part) > MOST_CELLS:
        return None
    narrow, budget = narrowed(take_rows(X, part))[0][0], budget_bytes(settings.cache_mb)
    kernel, gamma, coef0, degree = marks.kernel
    spec = as_spec(kernel, gamma, coef0, degree, X.shape[1])
    dtype = np.float32 if spec.kind == RBF else np.float64
    fine = partial(KernelRows, narrow, spec, budget)
    K = KernelRows(narrow, spec, budget, dtype, finer=fine)
    problem = KernelProblem(K, y, cost, settings.bias, MODELS[settings.model]().loss)
    settled = problem.settle(np.append(beta, found.b), alpha)
    return settled.objective, max(settled.dual.value, 0.0)  # α = 0 is worth 0


def landmarks_on_disk(matrix: OnDisk, settings: Settings) -> Landmarks:
    """Landmarks among the rows of an on-disk matrix."""
    from scipy.sparse import vstack

    numbers = _drawn(matrix.n_rows, settings)
    L = as_matrix(vstack([as_scipy(matrix.read(i, i + 1)) for i in numbers.tolist()], format="csr"))
    if settings.gamma == "scale":
        raise InputError("gamma must be a number for rows on disk, got 'scale'")
    return _landmarks(L, numbers, spec_of(L, settings).gamma, settings)


def _drawn(n: int, settings: Settings) -> np.ndarray:
    M = min(settings.landmarks or USUAL, n)
    return np.sort(np.random.default_rng(settings.seed).choice(n, M, replace=False))


def _landmarks(L: Matrix, numbers: np.ndarray, gamma: float, settings: Settings) -> Landmarks:
    kernel = (settings.kernel, gamma, settings.coef0, settings.degree)
    (marks,), _ = narrowed(L)
    with one_blas_thread():
        K = gram(marks, None, *kernel)
        values, vectors = np.linalg.eigh(K) if len(K) <= FEW else apart(partial(np.linalg.eigh, K))
    kept = values > SINGULAR * max(float(values[-1]), 0.0)
    root = vectors[:, kept] / np.sqrt(values[kept])
    single = (L if isinstance(L, np.ndarray) else L.data).dtype == np.float32
    return Landmarks(numbers, L, kernel, root, np.dtype(np.float32 if single else np.float64))
