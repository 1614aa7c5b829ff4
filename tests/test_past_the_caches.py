"""Numbers written past the caches, and kernel matrices that are large enough for it."""

import numpy as np
import pytest
from nesvm_jit import jit, kernels
from nesvm_jit.jit import exact_loop, stream

from . import oracle


@exact_loop
def _stream(source, target):
    stream(source, target)


@pytest.mark.pure
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_stretch_of_cells_is_written_and_nothing_beside_it(dtype):
    source = np.arange(1.0, 101.0).astype(dtype)
    for first in (*range(20), 63):
        for n in (0, 1, 7, 8, 15, 16, 17, 31, 33):
            target = np.zeros(100, dtype)
            _stream(source[3 : 3 + n], target[first : first + n])
            expect = np.zeros(100, dtype)
            expect[first : first + n] = source[3 : 3 + n]
            np.testing.assert_array_equal(target, expect)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_kernel_matrices_have_the_same_bits_on_any_number_of_threads(dtype):
    X = np.random.default_rng(3).normal(size=(1101, 5))
    assert 1101 * 1101 * np.dtype(dtype).itemsize > 1 << 22
    one, before = [], jit.get_threads()
    try:
        for n in (1, min(2, jit.most_threads())):
            jit.set_threads(n)
            one.append(
                (kernels.gram(X, dtype=dtype), kernels.gram(X, X[:1007].copy(), dtype=dtype))
            )
    finally:
        jit.set_threads(before)
    expect = oracle.gram(X, X, "rbf", 1 / 5, 0.0, 3)
    np.testing.assert_allclose(one[0][0], expect, rtol=1e-3 if dtype == np.float32 else 1e-11)
    np.testing.assert_allclose(
        one[0][1], expect[:, :1007], rtol=1e-3 if dtype == np.float32 else 1e-11
    )
    for got, want in zip(one[1], one[0], strict=True):
        np.testing.assert_array_equal(got, want)
