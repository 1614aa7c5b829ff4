"""Kernel matrices of binary problems: how they are kept, in which precision, and whether they are
positive semidefinite."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..errors import InputError
from ..jit import get_threads, memory_bytes
from ..kernels import row_norms
from ..kernels.gram import _gram
from ..kernels.public import as_spec, gram
from ..kernels.spec import (
    POLY,
    RBF,
    Spec,
    centre_of,
    reach_of,
    squares_of,
    tile_starts,
    tiling,
)
from ..matrix.checks import as_number, square_kernel
from ..matrix.matrix import Csr, Matrix
from ..matrix.rows import as_scipy, narrowed, take_rows
from ..numerics.eigenvalues import extreme_eigenvalues
from ..numerics.semidefinite import proven_diagonal
from ..problems.kernel_errors import entries_of, entry_error
from ..problems.kernel_rows import KernelRows
from ..problems.rounding import EntryError, given_entries
from ..settings import Settings

SYMMETRIC = 1e-10  # share of its largest entry by which a precomputed kernel may be asymmetric
INDEFINITE = 1e-6  # share of the largest eigenvalue: one that far below zero is no rounding
LARGEST = 1e100  # that a kernel's value may be: sums of products are still numbers
MANY_RUNS = 64  # runs of neighbouring rows, beyond which a copy entry by entry is faster
ROUNDING = 0.1  # share of the tolerance that float32 rounding may use
NOT_SEMIDEFINITE = (
    "a kernel matrix must be positive semidefinite, or nothing could be certified; "
    "this one has a negative eigenvalue"
)


def gamma_of(gamma: Any, X: Matrix) -> float:
    """γ as a number: 1/features by default, 1/(features · variance of X) for "scale"."""
    n, p = X.shape
    if gamma is None or gamma == "auto":
        return 1.0 / max(p, 1)
    if gamma == "scale":
        cells = max(1, n * p)
        values = X if isinstance(X, np.ndarray) else X.data
        mean = float(values.sum(dtype=np.float64)) / cells
        square = float(np.square(values, dtype=np.float64).sum()) / cells
        variance = square - mean * mean
        return 1.0 / (p * variance) if variance > 0.0 else 1.0
    return as_number("gamma", gamma)


def budget_bytes(cache_mb: float | None) -> float:
    """The memory for kernel rows: what is asked for, or a quarter of the machine's."""
    return 0.25 * memory_bytes() if cache_mb is None else cache_mb * 2.0**20


def worker_mb(settings: Settings) -> float:
    """MB for each of the problems that run at a time, the same for any number of threads: what is
    in memory decides the order of sums."""
    workers = max(os.cpu_count() or 1, get_threads())
    return budget_bytes(settings.cache_mb) / 2.0**20 / workers


def kernel_rows(X: Matrix, settings: Settings) -> KernelRows:
    """The rows of the kernel matrix, kept as the budget allows."""
    budget = budget_bytes(settings.cache_mb)
    if settings.kernel == "precomputed":
        K, entries = precomputed_matrix(X)
        return KernelRows(None, None, budget, K=K, entries=entries)
    spec, narrow = spec_of(X, settings), narrowed(X)[0][0]
    dtype, _ = precision(narrow, settings, spec)
    return KernelRows(narrow, spec, budget, dtype)


def small_matrix(X: Matrix, settings: Settings) -> tuple[np.ndarray, EntryError]:
    """The kernel matrix of a few rows in float64, and the error of its entries."""
    spec, narrow = spec_of(X, settings), narrowed(X)[0][0]
    n, _ = narrow.shape
    squares, centre = squares_of("X", narrow), centre_of(narrow, spec)
    how, size = tiling(narrow, np.float64, reach_of(narrow, spec, centre))
    K, tiles = np.empty((n, n)), tile_starts(n, n, size, True)
    _gram(narrow, narrow, centre, (squares, squares), spec, tiles, size, how, True, K)
    return K, entries_of(narrow, spec, np.float64, centre, how)


def spec_of(X: Matrix, settings: Settings) -> Spec:
    """The kernel, whose values on these rows must be numbers: none is beyond those of a row with
    itself."""
    gamma = gamma_of(settings.gamma, X)
    spec = as_spec(settings.kernel, gamma, settings.coef0, settings.degree, X.shape[1])
    if spec.kind == POLY:
        with np.errstate(over="ignore"):
            largest = spec.gamma * float(row_norms(X)[0].max(initial=0.0)) ** 2 + spec.coef0
            if not np.float64(largest) ** spec.degree <= LARGEST:
                raise InputError(
                    "the values of the polynomial kernel must be smaller: gamma, coef0, the degree "
                    "or X are too large"
                )
    return spec


def finer_rows(X: Matrix, settings: Settings, part: np.ndarray | None) -> KernelRows:
    """The kernel between a part of the rows (or all) in float64, for what float32 cannot settle."""
    spec = spec_of(X, settings)
    X = X if part is None else take_rows(X, part)
    return KernelRows(narrowed(X)[0][0], spec, budget_bytes(settings.cache_mb))


def precision(
    X: Matrix, settings: Settings, spec: Spec, rounding: float = ROUNDING
) -> tuple[Any, float]:
    """float32 for kernel values whose rounding is far below the tolerance, else float64, and the
    error of an entry. P feels it C times as much as it feels the losses."""
    reach = reach_of(X, spec, centre_of(X, spec))
    slower = tiling(X, np.float32, reach)[0] != tiling(X, np.float64, reach)[0]  # sums of squares
    errors = {dtype: entry_error(X, spec, dtype, reach) for dtype in (np.float32, np.float64)}
    in_pairs = settings.model == "csvm" and settings.solver in ("auto", "coordinate")
    small = errors[np.float32] * max(1.0, settings.C) <= rounding * settings.tol
    dtype = np.float32 if spec.kind == RBF and in_pairs and small and not slower else np.float64
    return dtype, errors[dtype]


@dataclass(frozen=True)
class SharedMatrix:
    """One kernel matrix for several problems, and the error of its entries."""

    K: np.ndarray
    epsilon: float
    place: np.ndarray  # of every row in K
    finer: Callable[[np.ndarray | None], KernelRows] | None
    entries: EntryError  # in the order of K

    def rows(self, part: np.ndarray | None) -> KernelRows:
        """The kernel between a part of the rows, or all."""
        K, entries = self.K, self.entries
        if part is not None:
            K, entries = _between(K, self.place[part]), entries.take(self.place[part])
        finer = partial(self.finer, part) if self.finer else None
        return KernelRows(None, None, 0.0, K=K, epsilon=self.epsilon, finer=finer, entries=entries)

    def between(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """A copy of the kernel between two sets of rows."""
        return self.K[self.place[rows][:, None], self.place[columns]]


def _between(K: np.ndarray, places: np.ndarray) -> np.ndarray:
    """A copy of K between these places, in runs of neighbours: as fast as memory."""
    ends = np.flatnonzero(np.diff(places) != 1) + 1
    if len(ends) > MANY_RUNS:
        return K[places[:, None], places]
    starts, stops = np.append(0, ends), np.append(ends, len(places))
    out = np.empty((len(places), len(places)), K.dtype)
    here = [
        slice(int(places[a]), int(places[b - 1]) + 1) for a, b in zip(starts, stops, strict=True)
    ]
    there = [slice(int(a), int(b)) for a, b in zip(starts, stops, strict=True)]
    for row, to in zip(here, there, strict=True):
        for column, at in zip(here, there, strict=True):
            out[to, at] = K[row, column]
    return out


def shared_matrix(X: Matrix, settings: Settings, order: np.ndarray | None) -> SharedMatrix | None:
    """The kernel matrix of all rows, in this order or as they come; None where it takes more than
    half the budget. A precomputed one is there."""
    if settings.kernel == "precomputed":
        K, entries = precomputed_matrix(X)
        return SharedMatrix(K, float(np.finfo(float).eps), np.arange(len(K)), None, entries)
    spec, narrow = spec_of(X, settings), narrowed(X)[0][0]
    dtype, epsilon = precision(narrow, settings, spec)
    n = X.shape[0]
    if float(n) * n * np.dtype(dtype).itemsize > 0.5 * budget_bytes(settings.cache_mb):
        return None
    kernel = (settings.kernel, spec.gamma, settings.coef0, settings.degree)
    place = np.arange(n)
    rows = narrow if order is None else take_rows(narrow, order)
    if order is not None:
        place[order] = np.arange(n)
    K = gram(rows, None, *kernel, dtype=dtype)
    share = settings.derive(cache_mb=0.5 * worker_mb(settings))
    finer = partial(finer_rows, X, share) if dtype == np.float32 else None
    return SharedMatrix(K, epsilon, place, finer, entries_of(rows, spec, dtype))


def precomputed_matrix(X: Matrix) -> tuple[np.ndarray, EntryError]:
    """A kernel matrix that was given, proven to be positive semidefinite but for rounding; where it
    is not exactly symmetric, the mean of it and its transpose."""
    K = symmetric_matrix(X)
    if not _is_symmetric(K):
        K = 0.5 * (K + K.T)
    shift = proven_diagonal(K, INDEFINITE)
    if shift is None:
        raise InputError(f"{NOT_SEMIDEFINITE}, or one so near zero that nothing can be proven")
    return K, given_entries(np.diagonal(K), shift)


def symmetric_matrix(X: Matrix) -> np.ndarray:
    """A kernel matrix that was given, symmetric but for rounding, whose extreme eigenvalues do not
    look negative."""
    K = as_scipy(X).toarray() if isinstance(X, Csr) else X
    n, p = K.shape
    square_kernel(n, p)
    for lo in range(0, n, 256):
        part = K[lo : lo + 256]
        apart = np.abs(part - K[:, lo : lo + 256].T).max(initial=0.0)
        if apart > SYMMETRIC * np.abs(part).max(initial=0.0):
            raise InputError(
                "a precomputed kernel must be symmetric, got K[i, j] and K[j, i] apart"
            )
    lowest, highest = extreme_eigenvalues(K)
    if lowest < -INDEFINITE * max(highest, -lowest):
        raise InputError(f"{NOT_SEMIDEFINITE} near {lowest:.3g}, the largest being {highest:.3g}")
    return K


def _is_symmetric(K: np.ndarray) -> bool:
    return all(
        np.array_equal(K[lo : lo + 256], K[:, lo : lo + 256].T) for lo in range(0, len(K), 256)
    )
