"""Every kernel against the NumPy oracle: dense/CSR × precisions × threads, and bit-identity."""

import re
from decimal import Context, Decimal
from pathlib import Path

import nesvm_jit
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from nesvm_jit import InputError, jit, kernels
from nesvm_jit.cli import compile_ahead as warm
from nesvm_jit.kernels import coordinate, exp, public
from nesvm_jit.kernels import line_search as line
from nesvm_jit.kernels.hessian import _hessian, hessian_memory
from nesvm_jit.kernels.loss import RowData
from nesvm_jit.kernels.sums import row_partials, scores_of
from nesvm_jit.matrix.checks import as_matrix
from nesvm_jit.matrix.matrix import Csr
from nesvm_jit.matrix.rows import row_slice, size_of
from scipy.sparse import csr_matrix

from . import oracle
from .conftest import PURE
from .data import KINDS, as_kind, random_signs, sparse_normal

pytestmark = pytest.mark.pure
N, P = (40, 7) if PURE else (1500, 37)
TIGHT = {"rtol": 1e-12, "atol": 1e-10}
numbers = st.floats(-1e6, 1e6)
positive = st.floats(1e-3, 1e3)


@given(arrays(float, 5, elements=numbers), arrays(float, 5, elements=positive), positive)
def test_hinge_projection_is_the_median(r, s, mu):
    np.testing.assert_allclose(
        kernels.project_hinge(r, s, mu), oracle.project_hinge(r, s, mu), rtol=1e-15
    )


@given(arrays(float, 5, elements=numbers), positive)
def test_l1_projection_is_the_median(w, mu):
    np.testing.assert_allclose(kernels.project_l1(w, mu), oracle.project_l1(w, mu), rtol=1e-15)


@given(numbers, positive, positive, st.floats(0, 1))
def test_hinge_projection_maximises(r, s, mu, other):
    def value(u):
        return u * r - mu * s / 2 * u**2

    u = kernels.project_hinge([r], s, mu)[0]
    assert value(u) >= value(other) - 1e-9 * max(1, abs(r), mu * s)


def test_margins(kind, threads):
    X, _, w, _ = random_signs(kind, N, P)
    np.testing.assert_allclose(kernels.margins(X, w, 0.5), oracle.margins(X, w, 0.5), **TIGHT)


def test_scores(kind, threads):
    X, *_ = random_signs(kind, N, P)
    rng = np.random.default_rng(4)
    W, b = rng.normal(size=(5, P)), rng.normal(size=5)
    M = as_matrix(X)
    found = scores_of(M, W, b)
    expect = np.stack([oracle.margins(X, w, bias) for w, bias in zip(W, b, strict=True)], axis=1)
    np.testing.assert_allclose(found, expect, **TIGHT)
    for lo, hi in ((0, 1), (N // 2, N // 2 + 3), (N - 1, N)):  # the same bits in any company
        assert np.array_equal(scores_of(row_slice(M, lo, hi), W, b), found[lo:hi])
    assert scores_of(M, W[:0], b[:0]).shape == (N, 0)


@pytest.mark.parametrize("loss", ["hinge", "square"])
def test_rows_that_were_checked_are_those_that_are_given(kind, loss):
    X, y, w, d = random_signs(kind, N, P)
    c, s = d + 0.1, d + 0.5
    known = [v.copy() for v in (y, c, s)]
    rows, f = kernels.row_data(y, c, s), kernels.margins(X, w)
    y[:], c[:], s[:] = 1.0, 7.0, 9.0  # of the caller's arrays nothing is kept
    expect = kernels.sweep(X, known[0], w, 0.3, *known[1:], 0.7, loss)
    for got, want in zip(kernels.sweep(X, rows, w, 0.3, mu=0.7, loss=loss), expect, strict=True):
        assert np.array_equal(got, want)
    expect = kernels.slope(f, f[::-1].copy(), known[0], 0.2, *known[1:], 0.7, loss)
    assert kernels.slope(f, f[::-1].copy(), rows, 0.2, mu=0.7, loss=loss) == expect
    assert len(rows) == N


def test_rows_that_were_checked_have_their_number_and_their_costs():
    rows = kernels.row_data([1, -1, 1])
    X, w = np.eye(3), np.ones(3)
    assert kernels.sweep(X, rows, w).loss == 2.0
    with pytest.raises(InputError, match=r"^y must have length 2, got 3 rows$"):
        kernels.sweep(X[:2], rows, w)
    for more in ({"c": 2.0}, {"s": 2.0}, {"c": np.ones(3)}, {"s": np.ones(3)}):
        with pytest.raises(InputError, match=r"^c and s are given to row_data, and not again"):
            kernels.sweep(X, rows, w, **more)
    for bad in ({"y": [1, 0]}, {"y": [1.0], "c": -1.0}, {"y": [1.0], "s": 0.0}):
        with pytest.raises(InputError):
            kernels.row_data(**bad)


@pytest.mark.parametrize("loss", ["hinge", "square"])
def test_sweep(kind, threads, loss):
    X, y, w, d = random_signs(kind, N, P)
    args = (y, w, 0.3, d + 0.1, d + 0.5, 0.7, loss)
    expect = oracle.sweep(X, *args)
    assert len(expect) == 6
    for got, want in zip(kernels.sweep(X, *args), expect, strict=True):
        np.testing.assert_allclose(got, want, **TIGHT)


@pytest.mark.parametrize("loss", ["hinge", "square"])
def test_slope_along_a_direction(threads, loss):
    rng = np.random.default_rng(3)
    n = 3000
    f, m, y = rng.normal(size=n), rng.normal(size=n), rng.choice([-1.0, 1.0], n)
    c, s = rng.uniform(0, 2, n), rng.uniform(0.5, 2, n)
    for t in (0.0, 0.7, -2.0):
        expect = oracle.slope(f, m, y, t, c, s, 0.3, loss)
        assert kernels.slope(f, m, y, t, c, s, 0.3, loss) == pytest.approx(expect, rel=1e-11)


@pytest.mark.parametrize("loss", ["hinge", "square"])
def test_step(kind, loss, threads):
    X, y, *_ = random_signs(kind, N, P)
    rng = np.random.default_rng(2)
    n, p = X.shape
    c, s, centre, f, m = (rng.random(n) + 0.1 for _ in range(5))
    M, code = as_matrix(X), {"hinge": 0, "square": 1}[loss]
    parts = row_partials(size_of(M))
    margins = line.Margins(1 / s, f.copy(), m, centre, np.zeros(n), np.zeros(n))
    sums, ascent = line.line_partials(len(parts)), np.zeros(p)
    for t in (0.0, 0.7, -0.2):
        f += t * m
        got = line._step(M, RowData(y, c, s), margins, 0.4, code, t, parts, sums, ascent)
        expect = oracle.centred_step(X, y, c, s, centre, f, 0.4, loss)
        found = (margins.weight, margins.curvature, got, ascent)
        for a, b in zip(found, expect, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-7)
        np.testing.assert_allclose(margins.f, f, **TIGHT)


def dual_of(y, alpha, lower, upper, d, curvature):
    """The packed rows of a dual, whose residuals are not known yet."""
    dual = coordinate.dual_rows(len(y))
    dual[:, :6] = np.stack(np.broadcast_arrays(y, alpha, lower, upper, d, curvature), axis=1)
    return dual


def flat(X):
    return X.reshape(-1) if isinstance(X, np.ndarray) else X.data


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_dual_epoch(kind, share):
    X, y, _, d = random_signs(kind, N, P)
    n, p = X.shape
    upper = np.where(np.arange(n) % 5, 0.3, 0.0)  # some rows cost nothing
    order = np.random.default_rng(1).permutation(n)
    squares = oracle.row_norms(X)[0] ** 2
    M = as_matrix(X)
    for free in (False, True):
        lower, high = np.zeros(n), upper
        if free:  # α of a squared loss, 1/(2c) on its diagonal
            lower, high = (np.where(upper > 0, s * np.inf, 0.0) for s in (-1, 1))
            d = d + 0.1
        curvature = np.where(squares + d + share > 0, squares + d + share, 1.0)
        expect = oracle.dual_epoch(X, y, 0.5 * upper, lower, high, d, order, share, np.ones(p), 0.2)
        dual, w = dual_of(y, 0.5 * upper, lower, high, d, curvature), np.ones(p)
        before = coordinate.Epoch(np.inf, -np.inf, 0.2, 1.0, 2.0, 3.0, 4.0)
        found, kept = coordinate._dual_epoch(M, flat(M), dual, order.copy(), before, share, w)
        alpha, r = dual[:, coordinate.ALPHA], dual[:, coordinate.RESIDUAL]
        assert kept == n
        for got, want in zip((alpha, w, found.b, r), expect, strict=True):
            np.testing.assert_allclose(got, want, **TIGHT)
        change = alpha - 0.5 * upper
        assert found.total == pytest.approx(1.0 + change.sum())
        assert found.excess == pytest.approx(2.0 + change @ y)
        assert found.squares == pytest.approx(3.0 + d @ (alpha**2 - 0.25 * upper**2))
        with np.errstate(all="ignore"):
            loss = np.where(high == np.inf, 0.5 * r**2 / d, upper * np.maximum(r, 0.0))
        assert found.loss == pytest.approx(4.0 + loss.sum())


def test_rows_whose_gradient_points_far_out_are_set_aside():
    X, y = as_matrix(np.array([[1.0], [3.0], [0.5]])), np.ones(3)
    dual, order = dual_of(y, 0.0, 0.0, 1.0, 0.0, 1.0), np.arange(3)
    before = coordinate.Epoch(0.5, -0.5, 0.0, 0.0, 0.0, 0.0, 0.0)
    _, kept = coordinate._dual_epoch(X, flat(X), dual, order, before, 0.0, np.array([1.0]))
    assert order[:kept].tolist() == [0, 2]  # r = 0, −2, 0.5


def test_shuffles_are_fair_and_those_of_their_seed():
    counts = np.zeros((5, 5))
    state, again = np.array([7], np.uint64), np.array([7], np.uint64)
    for _ in range(2000 if not PURE else 100):
        order, same = np.arange(5), np.arange(5)
        coordinate._shuffle(order, state)
        coordinate._shuffle(same, again)
        assert order.tolist() == same.tolist()
        assert sorted(order) == list(range(5))
        counts[np.arange(5), order] += 1
    share = counts / counts[0].sum()
    assert np.abs(share - 0.2).max() < (0.05 if not PURE else 0.2)


def test_sweep_where_no_row_or_every_row_is_active(kind):
    X, y, w, _ = random_signs(kind, N, P)
    none = kernels.sweep(X, y, 0 * w, b=0.0, mu=1e9)
    assert (none.u > 0).all()
    far = kernels.sweep(X[:3] * 0, [1, 1, 1], 0 * w, b=5.0)
    assert not far.u.any()
    assert not far.ascent.any()


def test_accumulate(kind, threads):
    X, y, _, d = random_signs(kind, N, P)
    np.testing.assert_allclose(kernels.accumulate(X, d), oracle.accumulate(X, d), **TIGHT)
    out = oracle.accumulate(X, d)
    new = np.where(y > 0, d, 0.25)
    kernels.accumulate_change(X, new, d, out)
    np.testing.assert_allclose(out, oracle.accumulate(X, new), **TIGHT)


def test_row_norms(kind, threads):
    X, *_ = random_signs(kind, N, P)
    (norms, largest), expect = kernels.row_norms(X), oracle.row_norms(X)
    np.testing.assert_allclose(norms, expect[0], **TIGHT)
    np.testing.assert_allclose(largest, expect[1], **TIGHT)


def test_hessian(kind, threads):
    X, _, w, d = random_signs(kind, N, P)
    np.testing.assert_allclose(kernels.hessian(X, d), oracle.hessian(X, d), **TIGHT)
    np.testing.assert_allclose(kernels.hessian_times(X, d, w), oracle.hessian(X, d) @ w, **TIGHT)
    M, H = as_matrix(X), np.zeros((X.shape[1], X.shape[1]))
    with jit.one_blas_thread():
        size = size_of(M)
        _hessian(M, d, hessian_memory(size, not isinstance(M, Csr), np.float32), False, H)
    expect = oracle.hessian(X, d)
    np.testing.assert_allclose(H, expect, rtol=1e-4, atol=1e-5 * np.abs(expect).max())
    diagonal = np.diagonal(oracle.hessian(X, d))
    np.testing.assert_allclose(kernels.hessian_diagonal(X, d), diagonal, **TIGHT)


@pytest.mark.parametrize("density", [0.05, 0.9])
def test_hessian_of_thin_and_thick_sparse_rows(density, threads):
    X = csr_matrix(sparse_normal(60, 20, density=density))
    d = np.arange(60.0) % 3
    np.testing.assert_allclose(kernels.hessian(X, d), oracle.hessian(X, d), **TIGHT)


@pytest.mark.skipif(PURE, reason="needs more than one tile and panel: minutes in plain Python")
def test_hessian_of_many_columns_and_rows():
    X, _, _, d = random_signs("dense float64", n=700, p=300)
    H = kernels.hessian(X, d + 1)
    np.testing.assert_allclose(H, oracle.hessian(X, d + 1), **TIGHT)
    assert (H == H.T).all()


@pytest.mark.parametrize("kind", KINDS[:4])  # a tile is spread out in its own precision anyway
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("kernel", "degree"), [("rbf", 3), ("poly", 0), ("poly", 3)])
def test_gram(kind, threads, kernel, degree, dtype):
    n = 12 if PURE else 300
    X, *_ = random_signs(kind, n, P)
    spec = (kernel, 0.01, 0.5, degree)
    tol = {"rtol": 1e-12, "atol": 1e-12} if dtype == np.float64 else {"rtol": 2e-4, "atol": 2e-5}
    K = kernels.gram(X, None, *spec, dtype=dtype)
    assert K.dtype == dtype
    assert (K == K.T).all()
    np.testing.assert_allclose(K, oracle.gram(X, X, *spec), **tol)
    Z = X[: n // 3]
    np.testing.assert_allclose(
        kernels.gram(X, Z, *spec, dtype=dtype), oracle.gram(X, Z, *spec), **tol
    )


def test_gram_of_thin_rows_does_not_spread_them_out(threads):
    X = as_kind(sparse_normal(30 if PURE else 90, 400, density=0.01), "CSR float64")
    spec = ("rbf", 0.05, 0.0, 3)
    np.testing.assert_allclose(
        kernels.gram(X, None, *spec), oracle.gram(X, X, *spec), rtol=1e-12, atol=1e-14
    )


def test_gram_of_rows_with_others_of_another_size():
    X, Z = sparse_normal(9, 4, seed=1), 5.0 * sparse_normal(7, 4, seed=2)
    expect = oracle.gram(X, Z, "rbf", 0.01, 0.0, 3)
    np.testing.assert_allclose(kernels.gram(X, Z, "rbf", 0.01), expect, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("shift", "dtype"), [(3000.0, np.float32), (1e8, np.float64)])
def test_rbf_does_not_depend_on_where_the_data_lie(shift, dtype):
    K = kernels.gram(np.array([[shift], [shift + 1]]), gamma=1.0, dtype=dtype)
    np.testing.assert_allclose(K[0, 1], np.exp(-1), rtol=1e-5)


def test_margins_may_be_written_over_w():
    w = np.array([1.0, 2.0, 3.0])
    assert kernels.margins(np.arange(9.0).reshape(3, 3), w, out=w).tolist() == [8, 26, 44]


def test_rbf_of_far_points_is_zero_and_of_equal_points_one():
    K = kernels.gram(np.array([[0.0], [1e4], [1e4]]), gamma=1.0)
    np.testing.assert_allclose(K, [[1, 0, 0], [0, 1, 1], [0, 1, 1]], atol=1e-12)


@given(st.floats(-700, 0))
def test_exponential_is_accurate(x):
    assert exp._exp64(x) == pytest.approx(np.exp(x), rel=1e-15)
    if x > -87:
        assert exp._exp32(np.float32(x)) == pytest.approx(np.exp(float(np.float32(x))), rel=2.5e-7)


@pytest.mark.parametrize(
    ("bits", "unit", "least"), [(64, 1.55 * 2.0**-53, -708.0), (32, 1.65 * 2.0**-24, -87.0)]
)
def test_an_exponential_is_right_to_its_last_digit(bits, unit, least):
    """Where the remainder of x/ln 2 is largest the polynomial is worst."""
    compute, kind = getattr(exp, f"_exp{bits}"), getattr(np, f"float{bits}")
    whole = np.arange(0.0, -least / np.log(2.0) - 1.0, 1.0)
    remainders = np.array([0.5, 0.501, 0.499, 0.48, 0.52, 0.3, 0.7, 0.0])
    x = kind(-np.log(2.0) * (whole[:, None] + remainders)).ravel()
    true = [Decimal(float(v)).exp(Context(prec=40)) for v in x]
    found = [Decimal(float(compute(v))) for v in x]
    off = [float(abs(f - t) / t) for f, t in zip(found, true, strict=True)]
    assert max(off) < unit
    assert compute(kind(0.0)) == 1.0
    assert compute(kind(least)) == pytest.approx(float(np.exp(least)), rel=1e-6)
    assert [compute(kind(v)) for v in (1.0001 * least, -np.inf, np.nan)] == [0.0, 0.0, 0.0]


@pytest.mark.skipif(PURE, reason="no threads in plain Python")
@pytest.mark.parametrize("kind", KINDS[:4])
def test_same_bits_for_one_and_two_threads(kind, small_chunks):
    X, *_ = random_signs(kind, N, P)
    before = nesvm_jit.get_threads()
    results = {}
    for threads in (1, before):
        nesvm_jit.set_threads(threads)
        results[threads] = {name: call() for name, call in warm.calls(X).items()}
    assert len(results[1]) > 5
    for name, one in results[1].items():
        many = results[before][name]
        parts = zip(one, many, strict=True) if isinstance(one, tuple) else [(one, many)]
        for a, b in parts:
            np.testing.assert_array_equal(a, b, err_msg=name)


@pytest.mark.parametrize("kind", KINDS[:4])
def test_empty_rows_columns_and_matrices(kind):
    for n, p in ((0, 3), (3, 0), (1, 1)):
        X = as_kind(np.zeros((n, p)), kind)
        assert (kernels.margins(X, np.ones(p), 2.0) == 2).all()
        assert not kernels.accumulate(X, np.ones(n)).any()
        assert kernels.hessian(X, np.ones(n)).shape == (p, p)
        assert kernels.sweep(X, np.ones(n), np.ones(p)).u.shape == (n,)
        assert (kernels.gram(X) == 1).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X: kernels.margins(X, [1.0]), r"w must have length 2, got shape \(1,\)"),
        (lambda X: kernels.margins(X, "ab"), "w must hold real numbers"),
        (lambda X: kernels.sweep(X, [1, 2], [0, 0]), "y must hold -1 and"),
        (lambda X: kernels.sweep(X, [1, 1], [0, np.nan]), "w must be finite"),
        (lambda X: kernels.sweep(X, [1, 1], [0, 0], mu=0), "mu must be positive, got 0"),
        (lambda X: kernels.sweep(X, [1, 1], [0, 0], c=-1), "c must not be negative, got -1"),
        (lambda X: kernels.sweep(X, [1, 1], [0, 0], loss="log"), "loss must be one of"),
        (lambda X: kernels.hessian(X, -1), "d must not be negative, got -1"),
        (lambda X: kernels.accumulate(X, [1, 1], out=np.zeros(3)), r"out must be a writable"),
        (lambda X: kernels.gram(X, kernel="tanh"), "kernel must be one of poly, rbf"),
        (lambda X: kernels.gram(X, gamma=-1), "gamma must be positive, got -1"),
        (lambda X: kernels.gram(X, gamma=np.inf), "gamma must be finite"),
        (lambda X: kernels.gram(X, gamma="scale"), "gamma must hold real numbers, got 'scale'"),
        (lambda X: kernels.gram(X * 1e200), "squares can be added up"),
        (lambda X: kernels.gram(X, X * np.nan), "Z must be finite"),
        (lambda X: kernels.gram(X, dtype="foo"), "dtype must be float64 or float32, got 'foo'"),
        (lambda X: kernels.margins(X, [1, 2], b=None), "b must hold real numbers, got None"),
        (lambda X: kernels.margins(X, [1, 2], b=np.nan), "b must be finite"),
        (lambda X: kernels.margins(X, [1j, 2]), "w must hold real numbers"),
        (lambda X: kernels.margins(X, ["1", "2"]), "w must hold real numbers"),
        (lambda X: kernels.margins(X, [10**400, 1]), "w must hold real numbers"),
        (lambda X: kernels.margins(np.ma.masked_array(X, X), [1, 2]), "masked"),
        (lambda X: kernels.sweep(X, [1, 1], [0, 0], mu=[1]), "mu must be one number"),
        (lambda X: kernels.project_l1([0.0], 5e-324), "mu must be from 1e-100 to 1e[+]100"),
        (lambda X: kernels.project_l1(X), "w must have one dimension"),
        (lambda X: kernels.gram(X, degree=1.5), "degree must be a whole number"),
        (lambda X: kernels.gram(X, dtype=int), "dtype must be float64 or float32"),
        (lambda X: kernels.gram(X, np.eye(3)), "same number of columns, got 2 and 3"),
    ],
)
def test_a_wrong_argument_is_one_clear_line(call, message):
    with pytest.raises(InputError, match=message):
        call(np.eye(2))


@pytest.mark.slow
@pytest.mark.skipif(PURE, reason="nothing is compiled")
def test_warmup_leaves_no_kernel_out():
    for _, run in warm.steps():
        run()
    sources = [path.read_text() for path in Path(nesvm_jit.__file__).parent.rglob("*.py")]
    made = [re.findall(r"^@(?:exact_)?kernel$", text, re.MULTILINE) for text in sources]
    assert len(nesvm_jit.jit.Kernel.registry) == sum(map(len, made)) > 0
    for name, k in nesvm_jit.jit.Kernel.registry.items():
        assert k.entry.signatures, name


ONE, EACH = np.ones(2), np.ones(3)  # of columns, of rows
CALLS = {
    "margins": lambda X: public.margins(X, ONE),
    "row_norms": lambda X: public.row_norms(X),
    "accumulate": lambda X: public.accumulate(X, EACH),
    "accumulate_change": lambda X: public.accumulate_change(X, EACH, 0.0 * EACH, np.zeros(2)),
    "sweep": lambda X: public.sweep(X, np.array([1.0, -1.0, 1.0]), ONE),
    "hessian": lambda X: public.hessian(X, EACH),
    "hessian_times": lambda X: public.hessian_times(X, EACH, ONE),
    "hessian_diagonal": lambda X: public.hessian_diagonal(X, EACH),
    "gram": lambda X: public.gram(X, csr_matrix(X)),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_matrix_is_not_copied_for_the_length_of_a_call(monkeypatch, name):
    asked = []

    def watched(*args, **how):
        asked.append(how.get("borrow"))
        return as_matrix(*args, **how)

    monkeypatch.setattr(public, "as_matrix", watched)
    CALLS[name](csr_matrix(np.array([[1.0, 2.0], [0.0, 3.0], [0.5, 0.0]])))
    assert asked == [True] * (2 if name == "gram" else 1)
