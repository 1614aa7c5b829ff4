"""Kernel matrices tile by tile: every way a tile is made, where tiles begin, and how the way is
chosen."""

import sys

import numpy as np
import pytest
from nesvm_jit import InputError, jit, kernels
from nesvm_jit.kernels.gram import Part, _gram, _gram_part, _products_of_part
from nesvm_jit.kernels.public import as_spec
from nesvm_jit.kernels.spec import (
    BLAS,
    COLUMNS,
    DIFFERENCES,
    SPARSE,
    Spec,
    centre_of,
    density,
    exact_products,
    products_of_entries,
    reach_of,
    squares_of,
    tile_starts,
    tiling,
)
from nesvm_jit.matrix.checks import as_matrix
from scipy.sparse import csr_matrix

from . import oracle
from .conftest import PURE

pytestmark = [pytest.mark.pure, *([] if PURE else [pytest.mark.slow])]  # compiled for each type
RNG = np.random.default_rng(5)
X = RNG.normal(size=(7, 4)) * (RNG.random((7, 4)) < 0.6)
X[2] = 0.0
Z = RNG.normal(size=(5, 4))
Z[3] = X[4]
both_layouts = pytest.mark.parametrize("layout", [np.asarray, csr_matrix], ids=["dense", "CSR"])
SPECS = [
    ("rbf", 0.3, 0.0, 3),
    ("poly", 0.5, 0.25, 3),
    ("poly", 2.0, -1.0, 1),
]
WAYS = [(s, how) for s in SPECS for how in (BLAS, SPARSE, COLUMNS)] + [(SPECS[0], DIFFERENCES)]
TILES = [(2, 3), (3, 2), (7, 5), (1, 1), (4, 100)]


def parts(A, B, spec):
    A, B = as_matrix(A), as_matrix(B)
    return A, B, centre_of(A, spec), (squares_of("X", A), squares_of("Z", B))


# ---------------------------------------------------------------- tiles


@both_layouts
@pytest.mark.parametrize(("names", "how"), WAYS)
@pytest.mark.parametrize("size", TILES)
def test_every_tile_of_two_sets_of_rows(layout, names, how, size):
    spec, K = as_spec(*names, 4), np.full((7, 5), np.nan)
    A, B, centre, squares = parts(layout(X), layout(Z), spec)
    _gram(A, B, centre, squares, spec, tile_starts(7, 5, size, False), size, how, False, K)
    np.testing.assert_allclose(K, oracle.gram(X, Z, *names), rtol=1e-12, atol=1e-14)


@both_layouts
@pytest.mark.parametrize(("names", "how"), WAYS)
@pytest.mark.parametrize("size", TILES)
def test_every_tile_of_one_set_of_rows(layout, names, how, size):
    spec, K = as_spec(*names, 4), np.full((7, 7), np.nan)
    A, _, centre, squares = parts(layout(X), layout(X), spec)
    _gram(A, A, centre, squares, spec, tile_starts(7, 7, size, True), size, how, True, K)
    np.testing.assert_allclose(K, oracle.gram(X, X, *names), rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(K, K.T)
    if names[0] == "rbf":
        assert (np.diag(K) == 1).all()


@both_layouts
@pytest.mark.parametrize(("names", "how"), WAYS)
def test_tiles_in_single_precision(layout, names, how):
    spec, K = as_spec(*names, 4), np.full((7, 5), np.nan, np.float32)
    A, B, centre, squares = parts(layout(X), layout(Z), spec)
    _gram(A, B, centre, squares, spec, tile_starts(7, 5, (3, 2), False), (3, 2), how, False, K)
    np.testing.assert_allclose(K, oracle.gram(X, Z, *names), rtol=2e-5, atol=2e-6)


@both_layouts
@pytest.mark.parametrize(("names", "how"), WAYS)
@pytest.mark.parametrize("size", TILES)
def test_some_rows_and_columns_go_to_their_slots(layout, names, how, size):
    spec, K = as_spec(*names, 4), np.full((6, 5), -9.0)
    A, _, centre, squares = parts(layout(X), layout(X), spec)
    rows, columns, slots = np.array([4, 0, 6]), np.array([1, 6, 2, 4]), np.array([5, 0, 3])
    tiles = tile_starts(3, 4, size, False)
    _gram_part(A, rows, columns, slots, centre, squares, spec, tiles, size, how, K)
    expect = np.full((6, 5), -9.0)
    expect[slots, :4] = oracle.gram(X[rows], X[columns], *names)
    np.testing.assert_allclose(K, expect, rtol=1e-12, atol=1e-14)


def test_distances_never_round_below_zero():
    A = np.array([[0.1, 0.7, 1e3], [0.1, 0.7, 1e3], [0.3, 0.2, -1e3]])
    for how in (BLAS, SPARSE, DIFFERENCES, COLUMNS):
        spec, K = as_spec("rbf", 1e3, 0.0, 3, 3), np.full((3, 3), np.nan)
        M, _, centre, squares = parts(A, A.copy(), spec)
        _gram(M, M, centre, squares, spec, tile_starts(3, 3, (2, 2), False), (2, 2), how, False, K)
        assert (K >= 0).all()
        assert (K <= 1).all()
        assert (K[:2, 2] == 0).all()


def test_tiles_begin_at_multiples_of_their_size():
    every = [[0, 0], [0, 3], [0, 6], [2, 0], [2, 3], [2, 6], [4, 0], [4, 3], [4, 6]]
    assert tile_starts(5, 7, (2, 3), False).tolist() == every
    assert tile_starts(5, 5, (2, 2), True).tolist() == [
        [0, 0],
        [2, 0],
        [2, 2],
        [4, 0],
        [4, 2],
        [4, 4],
    ]
    assert tile_starts(4, 4, (3, 1), True).tolist() == [
        *([0, j] for j in range(3)),
        *([3, j] for j in range(4)),
    ]
    none = tile_starts(0, 7, (2, 3), False)
    assert none.shape == (0, 2)
    assert none.dtype == np.int64


# ---------------------------------------------------------------- products with vectors


@both_layouts
@pytest.mark.parametrize(("names", "how"), WAYS)
@pytest.mark.parametrize("size", TILES)
@pytest.mark.parametrize("panel", [2, 3, 100])
def test_products_with_vectors_by_half_of_the_matrix(layout, names, how, size, panel):
    spec, index, m = as_spec(*names, 4), np.array([5, 0, 6, 3, 1, 4]), 4
    A, _, centre, squares = parts(layout(X), layout(X), spec)
    W, out = RNG.normal(size=(2, m)), np.zeros((2, 6))
    for lo in range(0, 6, panel):
        part = Part(index, lo, min(6, lo + panel), m)
        blocks = -(-min(part.hi, m) // size[1])
        sums = np.zeros((blocks, 2, part.hi - lo))
        _products_of_part(blocks, A, part, W, centre, squares, spec, size, how, sums, out)
        out[:, lo : part.hi] += sums.sum(axis=0)
    expect = W @ oracle.gram(X[index[:m]], X[index], *names)
    np.testing.assert_allclose(out, expect, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_are_exact_of_whole_numbers_that_are_not_too_large(dtype):
    largest = {np.float32: 2.0**20, np.float64: 2.0**49}[dtype]
    whole = np.array([[1.0, 2.0], [-3.0, 0.0]])
    norms = np.array([0.0, np.sqrt(largest) * (1 - 1e-9)])
    assert exact_products(whole, norms, dtype)
    assert not exact_products(whole, np.array([np.sqrt(largest)]), dtype)
    assert not exact_products(whole + 0.5, norms, dtype)
    assert exact_products(as_matrix(csr_matrix(whole)), norms, dtype)
    assert not exact_products(as_matrix(csr_matrix(whole / 2)), norms, dtype)
    assert exact_products(whole.astype(np.int8), norms, dtype)


# ---------------------------------------------------------------- which way


def sparse(n, p, cells):
    """A CSR view of n rows with so many entries in all."""
    return as_matrix(
        csr_matrix((np.ones(cells), (np.arange(cells) % n, np.arange(cells) // n)), (n, p))
    )


def test_density_is_the_share_of_entries_stored():
    assert density(as_matrix(X)) == 1.0
    assert density(sparse(10, 20, 30)) == 0.15
    assert density(sparse(1, 1, 1)) == 1.0
    assert density(as_matrix(csr_matrix((0, 5)))) == 0.0
    assert density(as_matrix(csr_matrix((3, 0)))) == 0.0


@pytest.mark.parametrize(
    ("p", "side"),
    [
        (0, 256),
        (1, 256),
        (2048, 256),
        (2049, 255),
        (4096, 128),
        (2**15, 16),
        (2**16, 16),
        (10**6, 16),
    ],
)
def test_tiles_are_square_and_fit_the_cache(p, side):
    assert tiling(np.zeros((1, p)), np.float64, 0.0) == (BLAS, (side, side))


@pytest.mark.parametrize(("cells", "how"), [(29, SPARSE), (30, BLAS), (31, BLAS)])
def test_thin_rows_are_not_spread_out(cells, how):
    size = (32, 8192) if how == SPARSE else (256, 256)
    assert tiling(sparse(10, 100, cells), np.float64, 0.0) == (how, size)


@pytest.mark.parametrize(
    ("entries", "cells", "taken"),
    [(199, 1 << 18, True), (200, 1 << 18, False), (199, 262143, False)],
)
def test_many_products_of_rows_with_few_entries_are_made_by_columns(entries, cells, taken):
    rows, none = sparse(10, 100, entries), np.zeros(100)
    assert products_of_entries(rows, none, cells) == taken
    assert not products_of_entries(rows, none + 1e-300, cells)
    assert not products_of_entries(np.zeros((10, 100)), none, cells)


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int8])
def test_products_by_columns_of_whole_numbers_are_exact(kind):
    spec, rng = Spec(1, 1.0, 0.0, 1), np.random.default_rng(3)
    whole = ((rng.random((513, 40)) < 0.15) * rng.integers(-3, 4, (513, 40))).astype(kind)
    A, _, centre, squares = parts(csr_matrix(whole), csr_matrix(whole), spec)
    tiles = tile_starts(513, 513, (256, 256), False)
    for dtype in (np.float32, np.float64):
        K = np.full((513, 513), np.nan, dtype)
        _gram(A, A, centre, squares, spec, tiles, (256, 256), BLAS, False, K)
        np.testing.assert_array_equal(K, whole.astype(float) @ whole.astype(float).T)


@pytest.mark.parametrize(
    ("dtype", "reach", "how"),
    [
        (np.float64, 450_000.0, BLAS),
        (np.float64, 1e-10 * 2**52, BLAS),
        (np.float64, 451_000.0, DIFFERENCES),
        (np.float32, 838.0, BLAS),
        (np.float32, 839.0, DIFFERENCES),
    ],
)
def test_far_rows_are_subtracted_before_they_are_multiplied(dtype, reach, how):
    assert tiling(np.zeros((3, 2)), dtype, reach) == (how, (256, 256))
    assert tiling(sparse(10, 100, 5), dtype, reach)[0] == (SPARSE if how == BLAS else how)


@pytest.mark.parametrize("n", [1, 1023, 1024, 1025, 2050])
def test_the_reach_is_that_of_the_farthest_row(n):
    spec = as_spec("rbf", 0.5, 0.0, 3, 1)
    for far in {0, n // 2, n - 1}:
        A = np.ones((n, 1))
        A[far] = -3.0
        assert reach_of(as_matrix(A), spec, np.array([2.0])) == 12.5


@pytest.mark.parametrize("form", [np.array, csr_matrix])
def test_the_reach_of_rows_whose_squares_overflow_is_infinite(form):
    A = form(np.array([[1e200, 0.0, 0.0], [1.0, 0.0, 2.0]]))
    assert reach_of(as_matrix(A), as_spec("rbf", 0.5, 0.0, 3, 3), np.zeros(3)) == np.inf


def test_the_reach_of_sparse_rows_is_no_less():
    spec, centre = as_spec("rbf", 0.5, 0.0, 3, 4), np.array([0.5, 0.25, 1.0, 0.0])
    A = np.array([[2.0, 0.0, -1.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, 3.0, 0.0, 1.0]])
    exact = 0.5 * ((A - centre) ** 2).sum(axis=1).max()
    assert reach_of(as_matrix(csr_matrix(A)), spec, centre) == pytest.approx(exact, rel=1e-13)
    assert reach_of(as_matrix(csr_matrix(A)), spec, centre) > exact
    wide = np.zeros((3, 400))
    wide[:, :4] = A
    far = np.append(centre, np.zeros(396))
    bound = 0.5 * ((A**2).sum(axis=1) + 2 * np.abs(A @ centre)).max() + 0.5 * centre @ centre
    assert bound > 1.05 * exact
    assert reach_of(as_matrix(csr_matrix(wide)), spec, far) == pytest.approx(bound, rel=1e-13)


def test_sparse_rows_with_much_in_common_have_a_short_reach():
    A = 1e3 + X
    spec = as_spec("rbf", 1.0, 0.0, 3, 4)
    M = as_matrix(csr_matrix(A))
    centre = centre_of(M, spec)
    assert reach_of(M, spec, centre) == pytest.approx(
        ((A - A.mean(axis=0)) ** 2).sum(1).max(), rel=1e-6
    )


def test_only_distances_have_a_reach_and_a_centre():
    spec = as_spec("poly", 1.0, 0.0, 3, 4)
    assert reach_of(as_matrix(X), spec, np.ones(4)) == 0.0
    assert centre_of(as_matrix(X), spec).tolist() == [0.0] * 4
    spec = as_spec("rbf", 1.0, 0.0, 3, 4)
    for empty in (np.zeros((0, 4)), csr_matrix((0, 4))):
        assert reach_of(as_matrix(empty), spec, np.ones(4)) == 0.0
    assert centre_of(as_matrix(np.zeros((0, 4))), spec).tolist() == [0.0] * 4
    np.testing.assert_allclose(centre_of(as_matrix(X), spec), X.mean(axis=0), rtol=1e-13)


def test_a_reach_beyond_all_numbers_is_infinite():
    spec = as_spec("rbf", 1.0, 0.0, 3, 1)
    assert reach_of(as_matrix(np.array([[1e200]])), spec, np.zeros(1)) == np.inf
    thin = as_matrix(csr_matrix(([1e200], ([0], [0])), (1, 100)))
    assert reach_of(thin, spec, np.full(100, 1e108)) == np.inf


def test_reaches_far_below_one():
    spec = as_spec("rbf", 1.0, 0.0, 3, 1)
    assert reach_of(as_matrix(np.array([[2e-3]])), spec, np.array([1e-3])) == pytest.approx(1e-6)
    at_centre = reach_of(as_matrix(csr_matrix([[2.0]])), spec, np.array([2.0]))
    assert at_centre == pytest.approx(1e-15 * 16.0, rel=1e-9, abs=0.0)


def test_rows_that_are_just_not_thin_have_an_exact_reach():
    spec, centre = as_spec("rbf", 1.0, 0.0, 3, 100), np.full(100, 0.5)
    centre[3:] = 0.0
    assert reach_of(sparse(10, 100, 30), spec, centre) == pytest.approx(0.75)
    assert reach_of(sparse(10, 101, 30), spec, np.append(centre, 0.0)) == pytest.approx(6.75)


def test_rows_far_from_the_others_are_compared_without_loss():
    A, B = np.array([[-670.1], [670.3]]), np.array([[680.7]])
    expect = np.exp(-((680.7 - 670.3) ** 2))
    for given in (A, csr_matrix(A)):
        np.testing.assert_allclose(kernels.gram(given, B, gamma=1.0)[1, 0], expect, rtol=1e-13)
        np.testing.assert_allclose(kernels.gram(B, given, gamma=1.0)[0, 1], expect, rtol=1e-13)


@both_layouts
def test_what_all_rows_have_in_common_is_taken_off_first(layout):
    far = layout(1e4 + X)
    K = kernels.gram(far, gamma=0.3)
    np.testing.assert_allclose(K, oracle.gram(X, X, "rbf", 0.3, 0, 3), rtol=1e-10)
    K = kernels.gram(far, layout(1e4 + Z), gamma=0.3)
    np.testing.assert_allclose(K, oracle.gram(X, Z, "rbf", 0.3, 0, 3), rtol=1e-10)


def test_every_way_reads_only_what_it_needs():
    spec, tiles = as_spec("rbf", 0.3, 0.0, 3, 4), tile_starts(7, 5, (7, 5), False)
    A, B, centre, squares = parts(X, Z, spec)
    nothing = (np.full(7, np.nan), np.full(5, np.nan))
    for how, c, s in (
        (BLAS, centre, nothing),
        (SPARSE, np.full(4, np.nan), squares),
        (DIFFERENCES, np.full(4, np.nan), nothing),
    ):
        K = np.zeros((7, 5))
        _gram(A, B, c, s, spec, tiles, (7, 5), how, False, K)
        np.testing.assert_allclose(K, oracle.gram(X, Z, "rbf", 0.3, 0, 3), rtol=1e-12)


def test_squares_that_overflow_are_refused():
    np.testing.assert_allclose(squares_of("X", as_matrix(X)), (X**2).sum(axis=1), rtol=1e-13)
    message = r"^Z must have rows whose squares can be added up, got larger entries$"
    with pytest.raises(InputError, match=message):
        kernels.gram([[1.0]], [[1e200], [1.0]])
    with pytest.raises(InputError, match=message.replace("Z", "X")):
        kernels.gram([[1e200]], [[1.0]])


# ---------------------------------------------------------------- which kernel


def test_kernels_and_their_defaults():
    assert as_spec("rbf", None, 0.0, 3, 8) == Spec(2, 0.125, 0.0, 3)
    assert as_spec("poly", 2, 1, np.int64(0), 8) == Spec(1, 2.0, 1.0, 0)
    assert as_spec("rbf", None, 0.0, 1000, 0) == Spec(2, 1.0, 0.0, 1000)
    assert type(as_spec("poly", 2, 1, np.int64(5), 8).degree) is int
    K = kernels.gram([[1.0, 0.0], [0.0, 1.0]])
    np.testing.assert_allclose(K, [[1, np.exp(-1)], [np.exp(-1), 1]], rtol=1e-14)
    assert K.dtype == np.float64
    assert kernels.gram([[1.0, 3.0]], [[2.0, 0.5]], "poly")[0, 0] == 1.75**3
    assert kernels.gram([[1.0, 3.0]], kernel="poly", degree=2, coef0=-1.0)[0, 0] == 16.0


@pytest.mark.parametrize("degree", [-1, 1001, 1.5, "3", None, 10**50])
def test_degrees_are_whole_and_not_endless(degree):
    shown = repr(degree)[:60]
    with pytest.raises(
        InputError, match=rf"^degree must be a whole number from 0 to 1000, got {shown}$"
    ):
        as_spec("poly", 1.0, 0.0, degree, 3)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kernel": "tanh"}, "kernel must be one of poly, rbf, got 'tanh'"),
        ({"gamma": 0.0}, "gamma must be positive, got 0"),
        ({"gamma": 1e101}, r"gamma must be from 1e-100 to 1e\+100, got 1e\+101"),
        ({"gamma": [1.0]}, r"gamma must be one number, got shape \(1,\)"),
        ({"coef0": np.nan}, "coef0 must be finite, got NaN or infinity"),
        ({"dtype": np.float16}, "dtype must be float64 or float32, got float16"),
        ({"Z": [[1.0, 2.0]]}, "X and Z must have the same number of columns, got 1 and 2"),
        ({"Z": [1.0]}, "Z must have 2 dimensions, got 1"),
    ],
)
def test_kernels_that_cannot_be_are_refused(given, message):
    with pytest.raises(InputError, match=f"^{message}$"):
        kernels.gram([[1.0]], **given)


def test_blas_is_held_at_one_thread_for_a_kernel_matrix(monkeypatch):
    seen, held = [], jit.one_blas_thread
    module = sys.modules["nesvm_jit.kernels.public"]
    monkeypatch.setattr(module, "one_blas_thread", lambda: seen.append(1) or held())
    kernels.gram(X)
    assert seen == [1]


# ---------------------------------------------------------------- the exponential


def exponential(x, dtype=np.float64):
    """e^x as the kernel matrix of 0 and 1 has it, whose distance is exact."""
    return kernels.gram([[0.0], [1.0]], gamma=-x, dtype=dtype)[0, 1]


def worst(exponents, dtype):
    errors = []
    for x in exponents:
        true = np.exp(np.longdouble(dtype(x)))
        errors.append(
            abs(float((np.longdouble(exponential(float(dtype(x)), dtype)) - true) / true))
        )
    return max(errors)


def test_the_exponential_is_as_accurate_as_its_last_term():
    ends = [-(k + s) * np.log(2) for k in range(24) for s in (0.02, 0.49, 0.495, 0.505)]
    assert worst(ends, np.float64) < 1.7e-16
    assert worst(ends, np.float32) < 1e-7


def test_the_exponential_of_large_numbers():
    assert worst([-700.0, -707.9, -708.0, -600.3, -500.5, -123.4], np.float64) < 1.7e-16
    assert worst([-87.0, -86.9, -70.3, -50.7], np.float32) < 1e-7


def test_the_exponential_below_the_least_number_is_zero():
    assert exponential(-708.0) > 0
    assert exponential(np.nextafter(-708.0, -709)) == 0
    assert exponential(-1e10) == 0
    assert exponential(-87.0, np.float32) > 0
    assert exponential(-87.1, np.float32) == 0
    assert exponential(-1e10, np.float32) == 0
    assert exponential(-1e-90) == 1
    assert exponential(-1e-90, np.float32) == 1
