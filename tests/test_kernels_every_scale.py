"""The low-level kernels on data of every kind, scale and type, to the last bits of their sums."""

import numpy as np
import pytest
from nesvm_jit import kernels

from . import oracle
from .data import cases_of_every_scale

pytestmark = pytest.mark.pure
CASES = {case.name: case for case in cases_of_every_scale()}
BITS = 1e-14  # of the sum of the terms' sizes: some 26 terms


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


@pytest.fixture
def point(case):
    """w, b and d for rows of this size: margins near 1, row weights with zeros among them."""
    rng = np.random.default_rng(len(case.name))
    size = np.median(np.abs(case.dense).max(axis=1)) or 1.0
    d = case.c * rng.random(len(case.y))
    return rng.standard_normal(case.dense.shape[1]) / size, 0.3, d


def near(got, expect, size):
    """Within a few bits of `size`, the sum of what the terms are without their signs."""
    return (np.abs(np.asarray(got) - expect) <= BITS * np.asarray(size)).all()


def test_margins(case, point):
    w, b, _ = point
    size = np.abs(case.dense) @ np.abs(w) + b
    assert near(kernels.margins(case.X, w, b), oracle.margins(case.X, w, b), size)


@pytest.mark.parametrize("loss", ["hinge", "square"])
def test_sweep(case, point, loss):
    w, b, _ = point
    X, y, c = case.dense, case.y, case.c
    s = np.maximum(np.abs(X).max(axis=1), 1.0)
    mu = 0.5
    got = kernels.sweep(case.X, y, w, b, c, s, mu, loss)
    expect = oracle.sweep(case.X, y, w, b, c, s, mu, loss)
    r = 1 + np.abs(X) @ np.abs(w) + b  # the size of a residual
    u = r / (mu * s) if loss == "hinge" else 2 * r
    terms = c * (r + mu * s if loss == "hinge" else r**2)
    sizes = (u, terms.sum(), terms.sum(), c @ u, np.abs(X).T @ (c * u), c @ u)
    assert len(sizes) == 6
    for ours, theirs, size in zip(got, expect, sizes, strict=True):
        assert near(ours, theirs, 4 * size)


def test_accumulate(case, point):
    *_, d = point
    size = np.abs(case.dense).T @ d
    assert near(kernels.accumulate(case.X, d), oracle.accumulate(case.X, d), size)
    out = oracle.accumulate(case.X, d)
    kernels.accumulate_change(case.X, 2 * d, d, out)
    assert near(out, oracle.accumulate(case.X, 2 * d), 4 * size)


def test_row_norms(case):
    (norms, largest), expect = kernels.row_norms(case.X), oracle.row_norms(case.X)
    assert near(norms, expect[0], expect[0])
    assert near(largest, expect[1], expect[1])


def test_hessian(case, point):
    w, _, d = point
    H, size = oracle.hessian(case.X, d), oracle.hessian(np.abs(case.dense), d)
    assert near(kernels.hessian(case.X, d), H, size)
    assert near(kernels.hessian_times(case.X, d, w), H @ w, 4 * size @ np.abs(w))
    assert near(kernels.hessian_diagonal(case.X, d), np.diagonal(H), np.diagonal(size))


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_gram(case, kernel):
    X = case.X.astype(float) if case.X.dtype.kind in "iu" else case.X
    squares = (case.dense**2).sum(axis=1)
    gamma = 1 / np.median(squares)
    spec = (kernel, gamma, 0.5, 2)
    K, expect = kernels.gram(X, None, *spec), oracle.gram(X, X, *spec)
    norms = np.sqrt(gamma * squares)
    if kernel == "rbf":  # what rounding does to the exponent, it does to K
        size = 1 + expect * np.add.outer(norms, norms) ** 2
    else:
        size = (np.outer(norms, norms) + 0.5) ** (2 if kernel == "poly" else 1)
    assert (K == K.T).all()
    assert near(K, expect, size)
    if kernel == "rbf":
        np.testing.assert_allclose(np.diagonal(K), 1.0, rtol=BITS)
