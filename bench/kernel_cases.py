"""The matrices that kernels are measured on: dense ones beyond the cache, and Adult (a9a)."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse

from .kernel_pairs import Pair, gram_pair, hessian_pair, pass_pairs, problem, projection_pairs
from .peers.datasets import label, load

SHAPES = ((1_000_000, 100), (128_000, 784))  # 800 MB in float64
COPIES = 30  # of a9a, to leave the cache


class Case(NamedTuple):
    """A matrix by name, the share of its rows with u ≠ 0, and what to measure on it."""

    name: str
    active: float | None
    pairs: list[Pair]


def dense(n, p, dtype):
    """Uniform numbers from −1/2 to 1/2."""
    X = np.random.default_rng(0).random((n, p), dtype=dtype)
    X -= dtype(0.5)
    return X


def dense_name(n, p, dtype) -> str:
    """How tables call it."""
    return f"dense {n} × {p} {np.dtype(dtype)}"


def _passes(name, X, with_hessian=False) -> Case:
    w, y, u = problem(X)
    pairs = pass_pairs(X, w, y, u)
    if with_hessian:
        pairs.append(hessian_pair(X, u))
    return Case(name, (u > 0).mean(), pairs)


def _hessian(name, X) -> Case:
    u = problem(X)[2]
    return Case(name, (u > 0).mean(), [hessian_pair(X, u)])


def cases() -> Iterator[Case]:
    """All cases, each made when it is asked for."""
    yield Case("vectors of 10⁷", None, projection_pairs(10**7))
    for n, p in SHAPES:
        for dtype in (np.float64, np.float32):
            yield _passes(dense_name(n, p, dtype), dense(n, p, dtype))
    name, X = label("a9a"), load("a9a")[0]
    yield _passes(f"CSR {name}", X, with_hessian=True)
    yield _passes(f"CSR {COPIES} × {name}", scipy.sparse.vstack([X] * COPIES, format="csr"))
    yield _hessian(dense_name(20_000, 784, np.float64), dense(20_000, 784, np.float64))
    yield Case(f"CSR 5000 rows of {name}", None, [gram_pair(X[:5000])])
    for dtype in (np.float64, np.float32):
        yield Case(dense_name(5000, 784, dtype), None, [gram_pair(dense(5000, 784, dtype))])
