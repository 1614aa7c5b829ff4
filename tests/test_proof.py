"""Certificates hold in exact arithmetic: the faults that sceptics found, and hostile problems drawn
at random, judged without rounding."""

from dataclasses import replace
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from nesvm_jit import InputError, set_threads
from nesvm_jit.jit import chunk_count, most_threads
from nesvm_jit.kernels import exact_sums
from nesvm_jit.kernels.exact_sums import (
    column_products,
    layers_of,
    row_products,
    split,
    two_product,
    two_sum,
)
from nesvm_jit.matrix.checks import as_matrix
from nesvm_jit.matrix.rows import size_of
from nesvm_jit.numerics.semidefinite import proven_diagonal
from nesvm_jit.problems.rounding import norm_above, on_grid
from scipy.sparse import csr_matrix

from . import exact
from .endings import solve
from .fuzz_certificates import draw, judged

THREE = np.array([(-0.653, -0.732), (-0.65, -0.727), (-0.87, 0.02)])


def test_w1_the_bounds_of_a_float32_kernel_enclose_the_optimum():
    y = np.array([-1.0, 1.0, -1.0])
    s = solve(np.repeat(THREE, 1000, 0), np.repeat(y, 1000), kernel="rbf", C=100.0)
    # rows that are the same share one margin, and their α can be added up
    K, off = exact.kernel_matrix(THREE, "rbf", 0.5, 0.0, 3)
    together = exact.with_kernel("csvm", K, off, y, np.full(3, 1e5), True)
    alpha, beta = s.alpha.reshape(3, 1000), s.beta.reshape(3, 1000)
    sums = [sum(map(Fraction, row)) for row in alpha.tolist()]
    assert sum(a * int(k) for a, k in zip(sums, y, strict=True)) == 0
    assert ((alpha >= 0) & (alpha <= 100)).all()
    signed = [a * int(k) for a, k in zip(sums, y, strict=True)]
    square = sum(a * exact.dot(signed, row) for a, row in zip(signed, K, strict=True))
    D = sum(sums) - square / 2
    assert Fraction(s.dual_objective) <= D + off * sum(sums) ** 2
    P = exact.objective(together, beta.sum(axis=1), s.b)
    assert float(P) * (1 - 1e-12) <= s.objective <= float(P) * (1 + 1e-6)
    assert s.dual_objective <= 83324.2 <= s.objective  # the optimum is 83324.1…
    assert s.certified


@pytest.mark.parametrize("solver", ["auto", "newton", "coordinate"])
@pytest.mark.parametrize("C", [1.0, 1000.0])
def test_w2_the_rounding_of_margins_is_in_the_bound(solver, C):
    X, y = np.array([[7e6], [-21e6], [14e6]]), np.array([1.0, -1.0, 1.0])
    s = solve(X, y, solver=solver, C=C)
    assert exact.judge(exact.linear("csvm", X, y, np.full(3, C), True), s) == []
    assert s.certified == (s.gap <= 1e-3)


def test_w3_the_square_of_an_error_counts_where_the_residual_is_zero():
    X, y = np.array([[10.0, 7.0, 13.0], [13.0, 7.0, 7.0]]), np.array([1.0, -1.0])
    how = {"gamma": 10.0, "coef0": 10.0, "degree": 10}
    s = solve(X, y, "lssvm", "poly", bias=False, **how)
    K, off = exact.kernel_matrix(X, "poly", *how.values())
    assert exact.judge(exact.with_kernel("lssvm", K, off, y, np.ones(2), False), s) == []


def spectrum(values):
    n = len(values)
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((n, n)))[0]
    K = (Q * values) @ Q.T
    return (K + K.T) / 2


def test_w4_a_negative_eigenvalue_inside_the_spectrum_is_found():
    values = np.linspace(1e-4, 1.0, 600)
    assert proven_diagonal(spectrum(values), 1e-6).max() < 1e-9
    values[300] = -2e-3
    K = spectrum(values)
    assert proven_diagonal(K, 1e-6) is None
    with pytest.raises(InputError, match="must be positive semidefinite"):
        solve(K, np.where(np.arange(600) % 2, 1.0, -1.0), kernel="precomputed")


def test_a_diagonal_that_is_proven_makes_a_singular_matrix_semidefinite():
    A = np.random.default_rng(1).integers(-9, 9, (12, 3)).astype(float)
    K = A @ A.T
    d = proven_diagonal(K, 1e-6)
    assert (d > 0).all()
    assert np.linalg.eigvalsh(K + np.diag(d)).min() > -1e-13 * np.trace(K)
    assert proven_diagonal(K - np.eye(12), 1e-6) is None
    assert proven_diagonal(-K, 1e-6) is None


@pytest.mark.parametrize("n", [1, 7])
def test_no_more_is_added_to_a_diagonal_than_the_theorem_asks_for(n):
    diagonal = np.resize([1.0, 4.0, 0.25], n)
    shares = proven_diagonal(np.diag(diagonal), 1e-6) / diagonal
    np.testing.assert_allclose(shares, 8.08 * (n + 8) * n * 2.0**-53, rtol=1e-9)


@pytest.mark.parametrize("bias", [False, True])
def test_w5_the_dual_point_of_an_lp_is_feasible_whatever_its_size(bias):
    rng = np.random.default_rng(5)
    X, y = 1e8 * rng.standard_normal((30, 3)), np.where(np.arange(30) % 3, 1.0, -1.0)
    s = solve(X, y, "lpsvm", C=1e8, bias=bias)
    assert exact.judge(exact.linear("lpsvm", X, y, np.full(30, 1e8), bias), s) == []
    assert s.dual_objective > 0.0


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_no_bound_of_a_hostile_problem_is_false(first):
    found = {k: judged(draw(1, k)) for k in range(first, first + 50)}
    assert {k: v.faults for k, v in found.items() if v is not None and v.faults} == {}
    assert sum(v is not None and v.certified for v in found.values()) > 20


def test_a_false_certificate_is_noticed_by_the_judge():
    case = draw(1, 0)._replace(options={"model": "csvm", "bias": True})
    c = case.weight
    s = solve(case.X, case.y, sample_weight=case.weight)
    problem = exact.linear("csvm", case.X, case.y, c, True)
    less = replace(s, objective=np.nextafter(s.objective, 0.0) * (1 - 1e-9))
    more = replace(s, dual_objective=s.dual_objective + 1e-9 * s.objective)
    tilted = replace(s, alpha=np.append(s.alpha[0] + c[0] / 2, s.alpha[1:]))
    assert exact.judge(problem, s) == []
    assert "P is" in exact.judge(problem, less)[0]
    assert "D is" in exact.judge(problem, more)[0]
    assert "Σαy" in exact.judge(problem, tilted)[0]


def test_entries_on_a_grid_are_balanced_exactly_and_never_larger():
    rng = np.random.default_rng(2)
    for _ in range(200):
        n = int(rng.integers(2, 30))
        beta = rng.standard_normal(n) * 10.0 ** rng.uniform(-12, 12, n)
        found = on_grid(beta)
        assert sum(map(Fraction, found.tolist())) == 0
        assert (np.abs(found) <= np.abs(beta)).all()
        assert (found * beta >= 0).all()
    assert not on_grid(np.zeros(3)).any()


def test_a_norm_is_bounded_from_above_at_every_scale():
    rng = np.random.default_rng(3)
    for scale in (5e-324, 1e-300, 1e-160, 1.0, 1e160, 1e300):
        v = rng.standard_normal(9) * scale
        square = sum(Fraction(x) ** 2 for x in v.tolist())
        found = Fraction(norm_above(v)) ** 2
        assert square <= found <= square * (1 + Fraction(1, 10**13)) + Fraction(2) ** -2140
    assert norm_above(np.zeros(3)) == 0.0


def furthest(rows, v, sums):
    """By how much the worst of some sums is beyond what is said of its error."""
    found = []
    for k, row in enumerate(rows):
        true = exact.dot(exact.fractions(row), exact.fractions(v))
        high, low, error = (Fraction(float(part[k])) for part in sums)
        found.append(abs(high + low - true) - error - abs(low) * Fraction(2) ** -52)
    return max(found)


@pytest.mark.pure
@pytest.mark.parametrize("kind", [np.asarray, csr_matrix])
@pytest.mark.parametrize("seed", range(20))
def test_sums_of_products_are_nearly_exact_where_they_cancel(kind, seed):
    rng = np.random.default_rng(seed)
    n, p = (int(k) for k in rng.integers(2, 12, 2))
    X = rng.standard_normal((n, p)) * 10.0 ** rng.uniform(-10, 10, (n, p))
    X *= rng.random((n, p)) < 0.7
    X[:, 1] = X[:, 0]
    w, a = rng.standard_normal(p), rng.standard_normal(n)
    w[1] = -w[0]
    matrix = as_matrix(kind(X))
    by_row, by_column = row_products(matrix, w), column_products(matrix, a)
    assert furthest(X, w, by_row) <= 0
    assert furthest(X.T, a, by_column) <= 0
    assert (by_row.error <= 1e-24 * np.abs(X * w).max(axis=1) + 1e-300).all()


@pytest.mark.parametrize("kind", [np.asarray, csr_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_of_products_by_chunks_are_those_of_all_rows_for_any_number_of_threads(kind, dtype):
    rng = np.random.default_rng(3)
    X = (rng.standard_normal((900, 31)) * 10.0 ** rng.uniform(-9, 9, (900, 31))).astype(dtype)
    X *= rng.random(X.shape) < 0.8
    X[:, 4] = 0.0
    X[7] = 0.0
    w, a = rng.standard_normal(31), rng.standard_normal(900)
    matrix, found = as_matrix(kind(X)), []
    assert chunk_count(900, 8 * size_of(matrix).work, 4 * 31) >= 3
    for n in range(1, min(4, most_threads()) + 1):
        set_threads(n)
        found.append((row_products(matrix, w), column_products(matrix, a)))
    set_threads(most_threads())
    for sums in found[1:]:
        for ours, first in zip(sums, found[0], strict=True):
            assert all(np.array_equal(x, y) for x, y in zip(ours, first, strict=True))
    by_row, by_column = found[0]
    few = [0, 7, 450, 899]
    assert furthest(X[few], w, [part[few] for part in by_row]) <= 0
    assert furthest(X.T[:6], a, [part[:6] for part in by_column]) <= 0
    assert (by_row.high[7], by_row.low[7], by_column.high[4], by_column.low[4]) == (0, 0, 0, 0)
    assert (by_column.error <= 1e-20 * np.abs(X * a[:, None]).max(axis=0) + 1e-300).all()


@pytest.mark.pure
@pytest.mark.parametrize("scale", [1e-120, 1.0, 1e140])
def test_sums_and_products_of_two_numbers_are_exact(scale):
    rng = np.random.default_rng(8)
    a = scale * rng.standard_normal(200) * 10.0 ** rng.integers(-9, 9, 200)
    b = scale * rng.standard_normal(200) * 10.0 ** rng.integers(-9, 9, 200)
    for k in range(200):
        x, z = Fraction(float(a[k])), Fraction(float(b[k]))
        p, e = map(float, two_product(a[k], b[k]))
        assert p == a[k] * b[k]
        assert Fraction(p) + Fraction(e) == x * z
        s, e = map(float, two_sum(a[k], b[k]))
        assert s == a[k] + b[k]
        assert Fraction(s) + Fraction(e) == x + z


@pytest.mark.pure
@pytest.mark.parametrize("kind", [np.asarray, csr_matrix])
@pytest.mark.parametrize("digit", [30, 60, 80, 120, 140, 160, 300])
def test_what_large_terms_leave_is_found_however_small_it_is(kind, digit):
    left = 2.0**-digit
    row = np.array([[1.0, left, -1.0]])
    ones = np.ones(3)
    for sums in (
        row_products(as_matrix(kind(row)), ones),
        row_products(as_matrix(kind(ones[None])), row[0]),
        column_products(as_matrix(kind(row.T)), ones),
    ):
        assert sums.high[0] + sums.low[0] == left


@pytest.mark.pure
@pytest.mark.parametrize("kind", [np.asarray, csr_matrix])
@pytest.mark.parametrize("size", [1.0, 2.0**-50, 2.0**-100])
def test_sums_of_cancelling_terms_are_rounded_once(monkeypatch, kind, size):
    dirty = np.full((9, 999), 1e9)  # memory comes as it was left
    monkeypatch.setattr(exact_sums, "partial_sums", lambda chunks, n: dirty[:chunks, :n].copy())
    rng = np.random.default_rng(6)
    tails = size * rng.uniform(0.5, 1.0, 15)
    terms = np.concatenate([[1.0], tails, -rng.permutation(tails * (1.0 + 2.0**-20)), [-1.0]])
    true = sum(map(Fraction, terms.tolist()))
    ones = np.ones(32)
    for sums in (
        row_products(as_matrix(kind(terms[None])), ones),
        column_products(as_matrix(kind(terms[:, None])), ones),
    ):
        assert sums.high.shape == sums.low.shape == sums.error.shape == (1,)
        found = Fraction(float(sums.high[0])) + Fraction(float(sums.low[0]))
        assert abs(found - true) <= Fraction(0.51 * 2.0**-52) * abs(true)
        assert sums.error[0] == layers_of(1.0, 64.0)[3]


@pytest.mark.pure
@pytest.mark.parametrize(("count", "room"), [(1.0, 2), (5.0, 3), (6.0, 4), (13.0, 4), (14.0, 5)])
def test_layers_have_room_for_all_terms(count, room):
    first, further = 2.0 ** (2 + room), 2.0 ** (room - 53)
    error = 8.0 * count * 2.0**-1074 + 8.0 * 2.0**-106 * 2.0 ** (2 + 3 * room)
    expected = (first, first * further, first * further**2, error)
    assert tuple(map(float, layers_of(3.0, count))) == expected
    assert float(layers_of(0.0, count)[3]) == 8.0 * count * 2.0**-1074


@pytest.mark.pure
@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_layers_of_terms_are_added_without_rounding(scale):
    rng = np.random.default_rng(4)
    terms = scale * rng.uniform(-1.0, 1.0, 30) * 2.0 ** -rng.integers(0, 99, 30)
    one, two, three, error = layers_of(np.abs(terms).max(), 30)
    parts = np.array([split(t, one, two, three) for t in terms])
    for t, row in zip(terms, parts, strict=True):
        assert sum(map(Fraction, row.tolist())) == Fraction(t)
    for layer, sigma in zip(parts.T[:3], (one, two, three), strict=True):
        sums = np.cumsum(layer)
        assert [Fraction(s) for s in sums] == list(accumulate(map(Fraction, layer.tolist())))
        assert np.abs(layer).max() < sigma
        assert np.abs(layer).max() > 0.0
    assert (np.abs(parts[:, 3]) <= 2.0**-53 * three).all()
    assert 30.0 * 2.0**-53 * three * 2.0**-52 * 30.0 < error < 2.0**-80 * scale


@pytest.mark.parametrize("w", [np.inf, np.nan, 1e308])
def test_sums_of_products_beyond_all_numbers_are_none(w):
    X = as_matrix(np.array([[1.0, 2.0], [1e10, 1.0]]))
    with np.errstate(all="ignore"):
        sums = row_products(X, np.array([w, 1.0])), column_products(X, np.array([1.0, w]))
    assert not np.isfinite(sums[0].high[1])
    assert not np.isfinite(sums[1].high[0])


def test_the_largest_entry_of_the_heavier_sign_balances_the_others():
    beta = np.array([0.1, 0.2, 3.0, -0.3, -2.9, 1e-9])
    out = on_grid(beta)
    assert sum(map(Fraction, out.tolist())) == 0
    others = np.arange(6) != 2
    np.testing.assert_allclose(out[others], beta[others], rtol=1e-12, atol=1e-14)
    assert out[2] == pytest.approx(2.9, abs=1e-8)
