"""Nyström's features: a kernel machine on M landmarks, trained as a linear one.

With K_L the kernel between the landmarks and k(x) that between x and them, φ(x) = K_L^{−½} k(x) has
φ(x)·φ(z) near k(x, z). A linear machine over φ is f(x) = w·φ(x) + b = Σ β_j k(l_j, x) + b with
β = K_L^{−½} w: a kernel machine whose support vectors are the landmarks.
"""

from dataclasses import dataclass

import numpy as np

from .errors import InputError
from .jit import one_blas_thread
from .kernelised import budget_bytes, spec_of
from .kernels.gram import gram
from .matrix import Matrix, as_matrix, row_slice, shape, take_rows
from .narrow import narrowed
from .settings import Settings

SINGULAR = 1e-12  # of the largest eigenvalue of K_L: directions below are left out
BLOCK_CELLS = 1 << 22
USUAL = 1000  # landmarks


@dataclass(frozen=True)
class Nystroem:
    """The landmarks' row numbers, K_L^{−½} (M × rank), and φ of every training row."""

    landmarks: np.ndarray
    root: np.ndarray
    features: Matrix

    def coefficients(self, w: np.ndarray) -> np.ndarray:
        """β of the landmarks, from the weights of the features."""
        return self.root @ w


def nystroem(X: Matrix, settings: Settings) -> Nystroem:
    """Landmarks drawn by the seed, and the features of all rows in the precision of X."""
    n, _ = shape(X)
    M = min(settings.landmarks or USUAL, n)
    values = X if isinstance(X, np.ndarray) else X.data
    dtype = np.dtype(np.float32 if values.dtype == np.float32 else np.float64)
    budget = budget_bytes(settings.cache_mb)
    if float(n) * M * dtype.itemsize > budget:
        raise InputError(
            f"{M} landmarks need {n * M * dtype.itemsize / 2**20:.3g} MB for the features of {n} "
            f"rows, got a budget of {budget / 2**20:.3g} MB"
        )
    kernel = (settings.kernel, spec_of(X, settings).gamma, settings.coef0, settings.degree)
    landmarks = np.sort(np.random.default_rng(settings.seed).choice(n, M, replace=False))
    L = take_rows(X, landmarks)
    (rows, marks), _ = narrowed(X, L)
    with one_blas_thread():
        values, vectors = np.linalg.eigh(gram(marks, None, *kernel))
        kept = values > SINGULAR * max(float(values[-1]), 0.0)
        root = vectors[:, kept] / np.sqrt(values[kept])
        features = np.empty((n, root.shape[1]), dtype)
        block = max(1, BLOCK_CELLS // max(1, M))
        for lo in range(0, n, block):
            hi = min(n, lo + block)
            features[lo:hi] = gram(row_slice(rows, lo, hi), marks, *kernel) @ root
    return Nystroem(landmarks, root, as_matrix(features))
