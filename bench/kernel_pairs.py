"""Each kernel beside its rival, on one matrix, both ready to be called.

Ours are the compiled twins on arguments and outputs prepared once, as a solver calls them
(except `gram`: its public function chooses the tiles). Ours sum in float64 always; rivals
work in the precision of X.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from nesvm_jit.jit import chunk_count
from nesvm_jit.kernels import gram
from nesvm_jit.kernels.hessian import _hessian, _hessian_times, hessian_memory
from nesvm_jit.kernels.loss import HINGE, _project_hinge, _project_l1
from nesvm_jit.kernels.public import as_row_data
from nesvm_jit.kernels.sums import (
    _accumulate,
    _accumulate_change,
    _margins,
    _row_norms,
    row_chunks,
    row_partials,
)
from nesvm_jit.kernels.sweep import _sweep, sweep_workspace
from nesvm_jit.matrix.checks import as_matrix
from nesvm_jit.matrix.matrix import Csr
from nesvm_jit.matrix.rows import size_of
from scipy.sparse import issparse

from . import rivals

MU, BIAS = 1.0, 0.1
CHANGED = 0.1  # share of the rows that `accumulate_change` finds different


class Pair(NamedTuple):
    """A kernel and its rival, each returning the same array first, and the bytes of X touched."""

    name: str
    n_bytes: float
    ours: Callable
    rival: Callable


def into(out, kernel, *args):
    """A call of `kernel` that returns the output it fills."""

    def call():
        kernel(*args)
        return out

    return call


def bytes_of(X) -> int:
    """What X occupies."""
    return sum(a.nbytes for a in (X.data, X.indices, X.indptr)) if issparse(X) else X.nbytes


def problem(X):
    """w, y, u of a problem half learnt: Xw has deviation 1.5, one label in ten is wrong."""
    rng = np.random.default_rng(1)
    n, p = X.shape
    w = rng.standard_normal(p)
    w *= 1.5 / (X @ w.astype(X.dtype)).std()
    f = X @ w.astype(X.dtype) + BIAS
    y = np.where((f > 0) != (rng.random(n) < 0.1), 1.0, -1.0)
    return w, y, np.clip((1.0 - y * f) / MU, 0.0, 1.0)


def pass_pairs(X, w, y, u):
    """The kernels that pass over the rows of X once."""
    (n, p), size, kind = X.shape, bytes_of(X), X.dtype.type
    changed = np.random.default_rng(2).random(n) < CHANGED
    old, d = np.where(changed, u + 0.5, u), (u > 0).astype(float)
    M = as_matrix(X)
    chunks = row_chunks(M)
    parts, work = row_partials(size_of(M)), sweep_workspace(size_of(M))
    rows = as_row_data(y, 1.0, 1.0, n)
    f, f2, g, h = np.zeros(n), np.zeros(n), np.zeros(p), np.zeros(p)
    w1, y1, u1, old1, d1 = (v.astype(kind) for v in (w, y, u, old, d))
    ones, h1 = np.ones(n, kind), np.zeros(p, kind)
    used = size * d.mean()
    return [
        Pair(
            "sweep",
            size,
            into(g, _sweep, M, rows, w, BIAS, MU, HINGE, f, work, g),
            lambda: rivals.sweep(X, y1, w1, kind(BIAS), ones, ones, kind(MU))[0],
        ),
        Pair(
            "margins",
            size,
            into(f, _margins, chunks, M, w, BIAS, f),
            lambda: X @ w1 + kind(BIAS),
        ),
        Pair(
            "row_norms",
            size,
            into(f, _row_norms, chunks, M, f, f2),
            lambda: rivals.row_norms(X)[0],
        ),
        Pair("accumulate", used, into(g, _accumulate, M, u, parts, g), lambda: X.T @ u1),
        Pair(
            "accumulate_change",
            size * changed.mean(),
            into(h, _accumulate_change, M, u, old, parts, h),
            lambda: rivals.accumulate_change(X, u1, old1, h1),
        ),
        Pair(
            "hessian_times",
            used,
            into(g, _hessian_times, M, d, w, parts, g),
            lambda: X.T @ (d1 * (X @ w1)),
        ),
    ]


def projection_pairs(n):
    """The projections of vectors of length n."""
    r, s, u = np.random.default_rng(3).standard_normal(n), np.ones(n), np.zeros(n)
    chunks = chunk_count(n, 4 * n)
    return [
        Pair(
            "project_hinge",
            r.nbytes + s.nbytes,
            into(u, _project_hinge, chunks, r, s, MU, u),
            lambda: np.clip(r / (MU * s), 0, 1),
        ),
        Pair(
            "project_l1",
            r.nbytes,
            into(u, _project_l1, chunks, r, MU, u),
            lambda: np.clip(r / MU, -1, 1),
        ),
    ]


def hessian_pair(X, u):
    """H over the rows with u > 0."""
    M, p = as_matrix(X), X.shape[1]
    d = np.random.default_rng(4).uniform(0.5, 1.5, len(u)) * (u > 0)
    d1, H = d.astype(X.dtype), np.zeros((p, p))
    ours = into(H, _hessian, M, d, hessian_memory(size_of(M), not isinstance(M, Csr)), False, H)
    size = bytes_of(X) * (d > 0).mean()
    return Pair("hessian", size, ours, lambda: rivals.hessian(X, d1))


def gram_pair(X):
    """The symmetric RBF kernel matrix in the precision of X."""
    gamma = 1.0 / X.shape[1]
    return Pair(
        "gram",
        bytes_of(X),
        lambda: gram(X, gamma=gamma, dtype=X.dtype),
        lambda: rivals.rbf(X, gamma),
    )
