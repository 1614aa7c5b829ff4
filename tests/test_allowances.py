"""Every allowance for rounding is the one that docs/certificate.md derives: with a coarse unit of
rounding in place of 2⁻⁵³, none of them is lost in the roundings of the test itself."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from nesvm_jit.kernels import exact_sums
from nesvm_jit.kernels import rounding as shared
from nesvm_jit.kernels.exact_sums import Sums
from nesvm_jit.kernels.loss import HINGE, SQUARE, RowData
from nesvm_jit.kernels.spec import BLAS, DIFFERENCES, RBF, Spec
from nesvm_jit.machine import proven
from nesvm_jit.matrix.checks import as_matrix
from nesvm_jit.matrix.rows import as_scipy
from nesvm_jit.problems import (
    labels,
    lower_bound,
    rounding,
    settling,
    settling_kernel,
    sharpness,
    upper_bound,
)
from nesvm_jit.problems.lower_bound import Spread
from nesvm_jit.problems.rounding import Columns, EntryError
from scipy.sparse import csr_matrix

U, T = 2.0**-20, 2.0**-17  # in place of 2⁻⁵³ and 2⁻¹⁰⁷⁴
NEAR = 1e-13

Y = np.array([1.0, -1.0, 1.0, -1.0])
ROWS = RowData(Y, np.array([2.0, 0.5, 1.0, 0.0]), np.array([3.0, 1.5, 2.0, 1.0]))
X = np.array([[1.0, 2.0, 0.5], [-0.5, 1.0, 1.0], [2.0, -1.0, 0.25], [1.0, 1.0, -3.0]])


@pytest.fixture
def coarse(monkeypatch):
    for module in (shared, rounding, upper_bound, lower_bound, settling_kernel):
        monkeypatch.setattr(module, "UNIT", U, raising=False)
        monkeypatch.setattr(module, "TINY", T, raising=False)


def g(k):
    return 1.000001 * U * k


def a(x, k):
    return x * (1.0 + g(k + 4))


def norm(v):
    """What norm_above makes of a vector whose largest entry is in [½, 1)."""
    return a(np.sqrt(a(v @ v, len(v)) + len(v) * T), 1)


class Block:
    """Rows of one block, as a shard has them."""

    def __init__(self, loss=HINGE, smoothed=False, bias=False, cells=12):
        self.model = SimpleNamespace(loss=loss, smoothed_penalty=smoothed)
        self.bias, self.X = bias, X
        self.facts = SimpleNamespace(rows=4, depth=2)
        self.data = SimpleNamespace(size=SimpleNamespace(cells=cells))
        self.sharp = 0  # sums that were made nearly exactly

    def map(self, function, vectors, numbers=()):
        return function(ROWS, *vectors, *numbers)

    def reduce(self, function, vectors, numbers=()):
        return self.map(function, vectors, numbers)

    def collect(self, vector):
        return vector

    deal = collect

    def row_norms(self):
        return np.linalg.norm(X, axis=1)

    def row_cells(self):
        return np.array([3, 2, 3, 1])

    def margins_at(self, w, b):
        return X @ w + b

    def dual_weights(self, alpha):
        return X.T @ (alpha * Y)

    def column_products(self, signed):
        self.sharp += 1
        return exact_sums.column_products(X, signed)

    def reduce_products(self, function, w, vectors, numbers):
        self.sharp += 1
        return function(ROWS, exact_sums.row_products(X, w), *vectors, *numbers)


# ---------------------------------------------------------------- formulas of rounding


def test_gamma_of_k_is_k_units_and_a_millionth():
    assert rounding.growth(3) == pytest.approx(3.000003 * 2.0**-53, rel=1e-15)
    assert rounding.UNIT == 2.0**-53
    assert rounding.TINY == 2.0**-1074 == 5e-324
    assert (exact_sums.UNIT, exact_sums.TINY) == (rounding.UNIT, rounding.TINY)


def test_a_bound_is_raised_by_its_roundings_and_four_more(coarse):
    assert rounding.above(3.0, 5) == pytest.approx(3.0 + 27.0 * 1.000001 * U, rel=NEAR)


def test_a_norm_is_raised_by_its_roundings(coarse):
    assert rounding.norm_above(np.array([3.0, -4.0])) == pytest.approx(
        8.0 * norm(np.array([0.375, -0.5])), rel=NEAR
    )
    assert rounding.norm_above(np.array([0.0, np.inf])) == np.inf
    assert rounding.norm_above(np.array([])) == 0.0
    assert rounding.norm_above(np.array([0.0, 0.0])) == 0.0


def test_the_norm_of_one_entry_is_the_next_number_above_at_least():
    assert rounding.norm_above(np.array([1.0])) > 1.0
    assert rounding.norm_above(np.array([1.0])) == np.nextafter(
        np.ldexp(rounding.above(np.sqrt(rounding.above(0.25, 1)), 1), 1), np.inf
    )


def test_sums_and_norms_of_rows_are_raised(coarse):
    assert rounding.sum_above(np.array([1.0, 2.0, 4.0])) == pytest.approx(a(7.0, 3), rel=NEAR)
    found = rounding.row_norms_above(np.array([0.0, 3.0]), np.array([9, 4]))
    assert found[0] == 3.0 * 2.0**-537
    assert found[1] == pytest.approx(a(3.0, 4.0), rel=NEAR)


@pytest.mark.parametrize(
    ("beta", "expected"),
    [
        ([1.0, 1.0, 1.0], [0.0, 0.0, 0.0]),
        ([1.0, 1.0, 1.0, -0.5], [0.0, 0.0, 0.5, -0.5]),
        ([-1.0, 0.5, -1.0, -1.0], [0.0, 0.5, 0.0, -0.5]),
        ([1.0, -0.25], [0.25, -0.25]),
        ([0.5, -3.0, -2.0], [0.5, 0.0, -0.5]),
        ([5e-324, -5e-324], [5e-324, -5e-324]),
        ([0.5, -0.5], [0.5, -0.5]),
        ([0.5, 1.0, -0.5], [0.5, 0.0, -0.5]),
        ([0.25, 2.0, -2.0, 0.0], [0.25, 1.75, -2.0, 0.0]),
    ],
)
def test_the_heavier_sign_gives_what_is_left_over(beta, expected):
    np.testing.assert_array_equal(rounding.on_grid(np.array(beta)), expected)


def test_the_grid_has_fifty_bits_below_the_sum_of_sizes():
    q = 2.0**-49  # Σ|β| is in [1, 2)
    beta = np.array([0.5 + 2.75 * q, -0.5 - 3.5 * q, 0.25 + 0.5 * q, -0.25 - 1.25 * q])
    found = rounding.on_grid(beta)
    # towards zero: 0.5 + 2q, −0.5 − 3q, 0.25, −0.25 − q; the largest negative one gives 2q
    np.testing.assert_array_equal(found, [0.5 + 2 * q, -0.5 - q, 0.25, -0.25 - q])


def test_errors_of_entries_of_some_rows_are_theirs():
    entries = EntryError(0.5, np.array([1.0, 2.0, 3.0]), np.array([0.1, 0.2, 0.3]))
    part = entries.take(np.array([2, 0]))
    assert part.epsilon == 0.5
    np.testing.assert_array_equal(part.roots, [3.0, 1.0])
    np.testing.assert_array_equal(part.shift, [0.3, 0.1])


def test_entries_that_are_given_are_bounded_by_the_diagonal(coarse):
    found = rounding.given_entries(np.array([3.0, -2.0, 0.0]), np.array([1.0, 1.0, 0.25]))
    assert found.epsilon == 0.0
    np.testing.assert_allclose(found.roots, [a(2.0, 4), 0.0, a(0.5, 4)], rtol=NEAR)
    np.testing.assert_array_equal(found.shift, [1.0, 1.0, 0.25])


@pytest.mark.parametrize("unit", [1.0, 4.0])
def test_entries_of_polynomials_are_off_by_the_share_that_is_derived(coarse, unit):
    spec = Spec(RBF + 1, 0.5, 1.5, 3)
    norms = np.array([1.0, 2.0])
    found = rounding.kernel_entries(spec, BLAS, norms, 10, 7.0, unit * U)
    assert found.epsilon == pytest.approx(g(3 * 18 * unit), rel=NEAR)
    base = a(0.5 * norms**2 + 1.5, 4)
    np.testing.assert_allclose(found.roots, a(base**1.5, 14), rtol=NEAR)
    assert not found.shift.any()
    assert len(found.shift) == 2


@pytest.mark.parametrize(("unit", "least"), [(1.0, 4e-308), (4.0, 2e-38)])
@pytest.mark.parametrize("how", [DIFFERENCES, BLAS])
def test_entries_of_rbf_are_off_by_the_share_that_is_derived(coarse, how, unit, least):
    spec = Spec(RBF, 0.5, 0.0, 3)
    found = rounding.kernel_entries(spec, how, np.ones(3), 10, 7.0, unit * U)
    share = g(18 * unit) if how == DIFFERENCES else np.expm1(g(104 * unit) * 7.0)
    assert found.epsilon == pytest.approx(a(share + g(8 * unit), 8) + least, rel=NEAR)
    np.testing.assert_array_equal(found.roots, np.ones(3))
    np.testing.assert_array_equal(found.shift, np.zeros(3))


@pytest.mark.parametrize(("unit", "least"), [(1.0, 4e-308), (4.0, 2e-38)])
def test_an_exponential_that_is_taken_as_zero_is_allowed_for(monkeypatch, unit, least):
    monkeypatch.setattr(rounding, "UNIT", 0.0)
    monkeypatch.setattr(rounding, "growth", lambda k: 0.0)
    eps = 0.0 if unit == 1.0 else 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        found = rounding.kernel_entries(
            Spec(RBF, 0.5, 0.0, 3), DIFFERENCES, np.ones(1), 1, 0.0, np.float64(eps)
        )
    assert found.epsilon == least


# ---------------------------------------------------------------- P of a linear machine


def test_losses_of_residuals_are_raised_by_their_errors(coarse):
    r, off = np.array([0.5, -0.25, -0.125, 3.0]), np.array([0.01, 0.02, 0.5, 1.0])
    found = upper_bound.loss_of_residuals(ROWS, r, off, HINGE)
    assert found == pytest.approx(2.0 * (0.5 + a(0.01, 2)) + (a(0.5, 2) - 0.125), rel=NEAR)
    size = np.abs(r) + a(off, 2)
    found = upper_bound.loss_of_residuals(ROWS, r, off, SQUARE)
    assert found == pytest.approx(ROWS.c @ (a(size**2, 3) + T), rel=NEAR)


def residual_losses(f, error):
    r = 1.0 - Y * f
    return ROWS.c @ np.maximum(r + a(error + g(6) * (np.abs(f) + np.abs(r)), 2), 0.0)


def test_losses_of_margins_allow_for_the_roundings_of_margin_and_residual(coarse):
    f, off = np.array([0.5, -3.0, 0.75, 1.0]), np.array([0.01, 0.02, 0.5, 1.0])
    found = upper_bound.loss_above(ROWS, f, off, HINGE)
    assert found == pytest.approx(residual_losses(f, off), rel=NEAR)


@pytest.mark.parametrize("roots", [None, np.array([1.0, 2.0, 3.0, 4.0])])
def test_margins_are_off_by_gamma_of_their_cells(coarse, roots):
    f, norms, cells = np.array([0.5, 3.0, 0.7, 1.0]), np.arange(1.0, 5.0), np.array([3, 2, 3, 1])
    more = () if roots is None else (roots,)
    found = upper_bound._losses(ROWS, f, norms, cells, *more, HINGE, 2.5, 1e-3)
    error = g(cells + 5.0) * norms * 2.5 + (cells + 1) * T
    if roots is not None:
        error = error + a(roots * 1e-3, 3)
    np.testing.assert_allclose(
        found, [residual_losses(f, 0.0), residual_losses(f, error)], rtol=NEAR
    )


@pytest.mark.parametrize("smoothed", [False, True])
def test_the_penalty_is_raised_and_the_losses_of_all_rows(coarse, smoothed):
    w = np.array([0.5, -0.25])
    found = upper_bound._with_penalty(Block(smoothed=smoothed), w, 3.0)
    penalty = a(0.75, 2) if smoothed else a(0.5 * norm(w) ** 2, 2) + T
    assert found == pytest.approx(penalty + a(3.0, 4) + 4 * T, rel=NEAR)


def test_a_sum_that_is_exact_is_moved_to_the_next_number_above(monkeypatch):
    for module in (shared, upper_bound):
        monkeypatch.setattr(module, "above", lambda x, k: x)
        monkeypatch.setattr(module, "TINY", 0.0, raising=False)
    found = upper_bound._with_penalty(Block(smoothed=True), np.array([0.5, -0.25]), 3.0)
    assert found == np.nextafter(3.75, 4.0)


def test_kernel_values_are_off_by_epsilon_and_the_roots_of_both_rows(coarse):
    columns = Columns(EntryError(1e-3, np.array([1.0, 2.0, 3.0]), np.zeros(3)), np.array([2.0, 4]))
    beta = np.array([-1.0, 0.5])
    total = a(1e-3 * a(4.0, 2), 3)
    assert rounding.kernel_sum(columns.entries, beta, columns.roots) == pytest.approx(
        total, rel=NEAR
    )
    np.testing.assert_allclose(
        rounding.column_errors(columns, beta), a(np.array([1.0, 2.0, 3.0]) * total, 3), rtol=NEAR
    )


@pytest.mark.parametrize("columns", [None, Columns(EntryError(1e-3, Y + 2.0, Y), np.ones(3))])
def test_the_objective_is_bounded_by_margins_as_they_are_and_from_above(coarse, columns):
    w = np.array([0.5, -0.25, 0.125])
    f = X @ w
    cells, size = np.array([3, 2, 3, 1]), norm(w)
    error = g(cells + 5.0) * np.linalg.norm(X, axis=1) * size + (cells + 1) * T
    if columns is not None:
        error = error + a((Y + 2.0) * a(1e-3 * a(0.875, 3), 3), 3)
    found = upper_bound.objective_bounds(Block(), w, f, columns)
    penalty = a(0.5 * size**2, 2) + T
    expected = [penalty + a(residual_losses(f, off), 4) + 4 * T for off in (0.0, error)]
    np.testing.assert_allclose(found, expected, rtol=NEAR)


@pytest.mark.parametrize("roots", [None, np.array([1.0, 2.0, 3.0, 4.0])])
def test_residuals_of_sharp_sums_are_off_by_their_own_errors(coarse, roots):
    sums = Sums(np.array([0.5, 2.0, -1.0, 3.0]), 1e-3 * Y, np.array([1e-3, 2e-3, 3e-3, 0.0]))
    more = () if roots is None else (roots,)
    found = upper_bound._sharp_losses(ROWS, sums, *more, -0.25, 1e-4, HINGE)
    r = 1.0 - Y * (sums.high + sums.low - 0.25)
    error = 2.0 * sums.error + g(4) * np.abs(r) + g(8) * U * 1.25 + g(8) * np.abs(sums.low)
    if roots is not None:
        error += a(roots * 1e-4, 3)
    assert found == pytest.approx(ROWS.c @ np.maximum(r + a(error, 2), 0.0), rel=1e-12)


def test_what_is_lost_of_a_sharp_residual_is_added_again():
    high = np.array([1.0 + 2.0**-40, -1.0, 1.0, 1.0])
    sums = Sums(high, np.zeros(4), np.zeros(4))
    # 1 − (1 + 2⁻⁴⁰ + 2⁻⁶⁰) = −2⁻⁴⁰ − 2⁻⁶⁰ of the first row, and the like of the others
    square = upper_bound._sharp_losses(ROWS, sums, 2.0**-60, 0.0, SQUARE)
    true = 2.0 * (2.0**-40 + 2.0**-60) ** 2 + 1.5 * 2.0**-120
    assert true <= square <= true * (1 + 1e-6)


def test_the_low_parts_of_a_sharp_residual_are_added_before_it_is_rounded(monkeypatch):
    monkeypatch.setattr(upper_bound, "growth", lambda k: 0.0)
    monkeypatch.setattr(upper_bound, "above", lambda x, k: x)
    rows = RowData(-np.ones(1), np.ones(1), np.ones(1))
    # 1 + 1.5 · 2⁻⁵³ is 1 + 2⁻⁵² − 2⁻⁵⁴, which the low part makes whole
    sums = Sums(np.array([1.5 * 2.0**-53]), np.array([2.0**-54]), np.zeros(1))
    assert upper_bound._sharp_losses(rows, sums, 0.0, None, HINGE) == 1.0 + 2.0**-52


@pytest.mark.parametrize("columns", [None, Columns(EntryError(1e-3, Y + 2.0, Y), np.ones(3))])
def test_a_sharp_objective_has_the_same_penalty_and_columns(coarse, columns):
    w, b = np.array([0.5, -0.25, 0.125]), 0.25
    found = upper_bound._sharp_objective(Block(), w, b, columns)
    r = 1.0 - Y * (X @ w + b)
    error = g(4) * np.abs(r) + g(8) * U * 1.25
    if columns is not None:
        error = error + a((Y + 2.0) * a(1e-3 * a(0.875, 3), 3), 3)
    loss = ROWS.c @ np.maximum(r + a(error, 2), 0.0)
    penalty = a(0.5 * norm(w) ** 2, 2) + T
    assert found == pytest.approx(penalty + a(loss, 4) + 4 * T, rel=1e-12)


# ---------------------------------------------------------------- D of a linear machine


def test_the_spread_of_a_dual_point_counts_its_entries_alone():
    alpha, norms = np.array([1.0, -0.5, 0.0, 0.0]), np.array([2.0, 4.0, 8.0, 1.0])
    for loss, squares in ((SQUARE, 1.0 / 8.0 + 0.25 / 2.0), (HINGE, 0.0)):
        found = lower_bound.spread_of(ROWS, alpha, norms, loss)
        # ‖x‖_∞ is at most s, and at most ‖x‖
        expected = (2.0, 0.5, 1.5, squares, 2.0 + 2.0, 2.0 + 0.5 * 1.5)
        np.testing.assert_allclose(found, expected, rtol=NEAR)


SPREAD = Spread(3.0, 5.0, 7.0, 0.5, 11.0, 2.0)


def test_a_total_is_lowered_unless_it_is_on_the_grid(coarse):
    assert shared.total_below(SPREAD, True) == 5.0
    assert shared.total_below(SPREAD, False) == pytest.approx(5.0 - g(9) * 7.0, rel=NEAR)
    assert shared.total_below(SPREAD._replace(entries=0.0, total=0.0), False) == 0.0


def test_a_total_is_moved_to_the_next_number_below(monkeypatch):
    monkeypatch.setattr(shared, "growth", lambda k: 0.0)
    assert shared.total_below(SPREAD, False) == np.nextafter(5.0, 0.0)


@pytest.mark.parametrize("exact", [True, False])
def test_the_dual_value_is_lowered_by_all_its_sums(coarse, exact):
    total = 5.0 if exact else 5.0 - g(9) * 7.0
    found = shared.value_below(SPREAD, exact, HINGE, 1.5)
    assert found == pytest.approx(total - 1.5, rel=NEAR)
    found = shared.value_below(SPREAD, exact, SQUARE, 1.5)
    assert found == pytest.approx(total - a(0.5, 7) - 3.0 * T * 8.0 - 1.5, rel=NEAR)


def test_half_a_square_is_raised_before_it_is_subtracted(coarse):
    found = lower_bound._half_square_below(SPREAD, True, HINGE, 2.0)
    assert found == pytest.approx(5.0 - a(2.0, 2) - T, rel=NEAR)
    nothing = Spread(*[0.0] * 6)
    assert lower_bound._half_square_below(nothing, True, HINGE, 2.0) == 0.0
    assert shared.value_below(SPREAD, True, HINGE, 1.5) == np.nextafter(
        5.0 - np.nextafter(1.5, 2.0), 0.0
    )


@pytest.mark.parametrize("smoothed", [False, True])
def test_plain_sums_do_where_their_rounding_is_not_felt(coarse, smoothed):
    block, alpha = Block(smoothed=smoothed), np.array([1.0, 0.25, 0.5, 0.0])
    v = X.T @ (alpha * Y)
    reach = 2.0 if smoothed else 11.0
    off = [g(k + 6.0) * reach + 3.0 * T for k in (3.0, 2.0)]  # one after the other, by chunks
    felt = [e * 5.0 if smoothed else e * (rounding.norm_above(v) + e) for e in off]
    for k in (0, 1):
        found = lower_bound._weights_and_error(block, alpha, SPREAD, felt[k])
        np.testing.assert_array_equal(found[0], v)
        assert found[1] == pytest.approx(off[k], rel=NEAR)
        assert block.sharp == 0
    found = lower_bound._weights_and_error(block, alpha, SPREAD, felt[1] * (1 - 1e-9))
    np.testing.assert_allclose(found[0], v, rtol=1e-15)
    np.testing.assert_allclose(found[1], g(4.0) * np.abs(v), rtol=1e-9)
    assert block.sharp == 1


def test_sharp_sums_are_off_by_twice_their_error_and_four_roundings(coarse):
    block = Block()
    high, low, off = np.array([1.0, -2.0]), np.array([0.25, 0.5]), np.array([1e-3, 1e-2])
    block.column_products = lambda signed: Sums(high, low, off)
    weights, error = lower_bound._weights_and_error(block, np.zeros(4), SPREAD, 0.0)
    np.testing.assert_array_equal(weights, [1.25, -1.5])
    np.testing.assert_allclose(error, g(4.0) * np.array([1.25, 1.5]) + 2.0 * off, rtol=NEAR)
    block.column_products = lambda signed: Sums(np.array([1.0, np.inf]), low, off)
    weights, error = lower_bound._weights_and_error(block, np.zeros(4), SPREAD, 0.0)
    assert not weights.any()  # what overflows is left
    assert error == pytest.approx(g(8.0) * 11.0 + 3.0 * T, rel=NEAR)


@pytest.mark.parametrize(("cells", "sharp"), [(1 << 22, 1), ((1 << 22) + 1, 0)])
def test_large_data_have_no_sharp_sums(cells, sharp):
    block = Block(cells=cells)
    lower_bound._weights_and_error(block, np.ones(4), SPREAD, 0.0)
    assert block.sharp == sharp
    upper_bound.settle_objective(block, np.full(3, 0.3), 0.1, 0.0)
    assert block.sharp == 2 * sharp


@pytest.mark.parametrize(
    ("cells", "tol", "share"),
    [
        (1 << 16, 1.0, 2e-10),
        ((1 << 16) + 1, 1.0, 1e-8),
        ((1 << 16) + 1, 1e-7, 1e-9),
        (10, 1e-9, 1e-11),
    ],
)
def test_rounding_is_felt_by_the_size_of_data_and_the_tolerance(cells, tol, share):
    assert sharpness.rounding_felt(Block(cells=cells), 3.0, tol) == pytest.approx(
        3.0 * share, rel=NEAR
    )


def test_the_dual_value_allows_for_the_error_of_its_sum(coarse):
    block, weights = Block(), np.array([0.5, -0.25])
    alpha = np.array([1.0, 0.25, 0.5, 0.0])
    found = lower_bound.dual_below(block, alpha, SPREAD, weights, 0.125)
    half = a(0.5 * (norm(weights) + 0.125 + 2 * T + T) ** 2, 2) + T
    assert found.value == pytest.approx(5.0 - g(9) * 7.0 - half, rel=NEAR)
    assert found.alpha is alpha
    off = np.array([0.5, 0.125])
    found = lower_bound.dual_below(block, alpha, SPREAD, weights, off)
    half = a(0.5 * (norm(weights) + norm(off) + T) ** 2, 2) + T
    assert found.value == pytest.approx(5.0 - g(9) * 7.0 - half, rel=NEAR)
    assert lower_bound.dual_below(block, alpha, SPREAD, weights, np.nan).value == -np.inf


@pytest.mark.parametrize("bias", [False, True])
def test_a_point_of_an_lp_that_is_feasible_stays(coarse, bias):
    block, alpha = Block(smoothed=True, bias=bias), np.array([1.0, 0.25, 0.5, 0.0])
    just = 1.0 / (1.0 + g(8)) - 0.125  # h = 1 but for rounding
    found = lower_bound.dual_below(block, alpha, SPREAD, np.array([0.5, -just + 1e-12]), 0.125)
    assert found.alpha is alpha
    assert found.value == pytest.approx(5.0 - (0.0 if bias else g(9) * 7.0), rel=NEAR)
    found = lower_bound.dual_below(block, alpha, SPREAD, np.array([0.5, -just - 1e-12]), 0.125)
    assert found.alpha is not alpha


def test_columns_may_reach_one(monkeypatch):
    monkeypatch.setattr(lower_bound, "above", lambda x, k: x)
    alpha = np.array([1.0, 0.25, 0.5, 0.0])
    found = lower_bound.dual_below(Block(smoothed=True), alpha, SPREAD, np.array([1.0]), 0.0)
    assert found.alpha is alpha
    found = lower_bound.dual_below(Block(smoothed=True), alpha, SPREAD, np.empty(0), 0.0)
    assert found.alpha is alpha


def test_a_point_of_an_lp_is_shrunk_by_its_largest_column(coarse, monkeypatch):
    block, alpha = Block(smoothed=True), np.array([1.0, 0.25, 0.5, 0.0])
    shrunk = []
    monkeypatch.setattr(lower_bound, "_shrunk", lambda *given: shrunk.append(given) or given[1] / 4)
    entries = EntryError(1e-3, np.array([1.0, 2.0, 3.0, 4.0]), np.zeros(4))
    columns = Columns(entries, np.array([2.0, 1.0, 3.0]))
    weights, off = np.array([0.5, -3.0, 2.0]), np.array([0.1, 0.2, 0.3])
    found = lower_bound.dual_below(block, alpha, SPREAD, weights, off, columns)
    most = np.abs(weights) + off + columns.roots * a(1e-3 * a(3.0, 4), 3)
    assert shrunk[0][2] == pytest.approx(a(most.max(), 4), rel=NEAR)
    assert shrunk[0][3] is columns
    np.testing.assert_array_equal(found.alpha, alpha / 4)
    assert found.value == pytest.approx(1.75 / 4 - g(9) * 1.75 / 4, rel=NEAR)


def test_tops_are_the_smaller_of_two_bounds_and_the_error_of_kernel_values(coarse):
    norms = np.array([2.0, 4.0, 1.0, 0.5])
    np.testing.assert_array_equal(lower_bound._tops(ROWS, norms), [2.0, 1.5, 1.0, 0.5])
    found = lower_bound._tops(ROWS, norms, np.array([1.0, 2.0, 3.0, 4.0]), 0.01)
    expected = a(np.array([2.0, 1.5, 1.0, 0.5]) + 0.01 * np.arange(1.0, 5.0), 4)
    np.testing.assert_allclose(found, expected, rtol=NEAR)


def test_what_a_point_was_moved_by_is_raised(coarse):
    alpha, smaller, tops = np.array([1.0, 2, 0, 4]), np.array([0.5, 0.5, 0, 2.0]), np.arange(1.0, 5)
    found = lower_bound._moved_by(ROWS, smaller, alpha, tops, 0.5)
    moved = np.array([0.0, 0.5, 0.0, 0.0]) + g(4) * (0.5 * alpha + smaller) + 2 * T
    assert found == pytest.approx(moved @ tops, rel=NEAR)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("kernel", [False, True])
def test_a_point_is_shrunk_until_it_is_feasible(bias, kernel):
    block, alpha = Block(smoothed=True, bias=bias), np.array([1.0, 1.25, 0.25, 0.0])
    columns = Columns(EntryError(1e-3, np.ones(4), np.zeros(4)), np.ones(3)) if kernel else None
    found = lower_bound._shrunk(block, alpha, 3.0, columns)
    np.testing.assert_allclose(found, alpha / 3.0, rtol=1e-13)
    assert (found < alpha / 3.0)[:3].all()
    assert (found >= alpha / 3.0 * (1 - 2.0**-46)).all()


def test_a_point_is_balanced_again_where_there_is_a_bias():
    alpha = np.array([0.1, 0.7, 0.6, 0.0])
    found = [
        lower_bound._shrunk(Block(smoothed=True, bias=b), alpha, 3.0, None) for b in (False, True)
    ]
    np.testing.assert_allclose(found[0], alpha / 3.0, rtol=1e-13)
    assert sum(map(Fraction, (found[1] * Y).tolist())) == 0
    alpha = np.array([0.5, 0.25, 0.0, 0.0])
    found = lower_bound._shrunk(Block(smoothed=True), alpha, 3.0, None)
    np.testing.assert_allclose(found, alpha / 3.0, rtol=1e-13)


def test_a_point_that_cannot_be_made_feasible_is_zero(monkeypatch):
    tried = []
    monkeypatch.setattr(lower_bound, "_moved_by", lambda *given: tried.append(given[-1]) or 9.0)
    found = lower_bound._shrunk(Block(smoothed=True), np.ones(4), 2.0, None)
    np.testing.assert_array_equal(found, np.zeros(4))
    assert len(tried) == 8
    # t is divided by what is reached, th + 9, and made a little smaller
    assert tried[1] == pytest.approx(tried[0] / 10.0, rel=NEAR)
    assert tried[1] < tried[0] / 10.0


def test_errors_of_kernel_values_are_part_of_what_a_point_is_moved_by(coarse, monkeypatch):
    seen = []
    monkeypatch.setattr(lower_bound, "_moved_by", lambda *given: seen.append(given) or 0.0)
    entries = EntryError(1e-3, np.array([1.0, 2.0, 3.0, 4.0]), np.zeros(4))
    norms = np.linalg.norm(X, axis=1)
    for roots in ([5.0, 7.0], [0.5, 0.25], []):
        columns = Columns(entries, np.array(roots))
        lower_bound._shrunk(Block(smoothed=True), np.ones(4), 2.0, columns)
        most = a(1e-3 * max(roots, default=0.0), 2)
        expected = a(np.minimum(norms, ROWS.s) + entries.roots * most, 4)
        np.testing.assert_allclose(seen[-1][3], expected, rtol=NEAR)


def test_a_point_may_reach_one(monkeypatch):
    tried = []
    monkeypatch.setattr(lower_bound, "above", lambda x, k: x)
    monkeypatch.setattr(lower_bound, "_moved_by", lambda *how: tried.append(how[-1]) or 2.0**-48)
    lower_bound._shrunk(Block(smoothed=True), np.ones(4), 2.0, None)
    assert tried == [0.5 * (1.0 - 2.0**-48)]


def test_what_is_reached_is_raised(coarse, monkeypatch):
    tried = []
    monkeypatch.setattr(lower_bound, "_moved_by", lambda *given: tried.append(given[-1]) or 0.5)
    lower_bound._shrunk(Block(smoothed=True), np.ones(4), 2.0, None)
    reached = a(2.0 * tried[0], 4) + a(0.5, 12)
    assert tried[1] == pytest.approx(tried[0] / reached, rel=1e-12)


@pytest.mark.parametrize("bias", [False, True])
def test_a_point_is_shrunk_sharply_until_its_own_sums_are_feasible(bias):
    block, alpha = Block(smoothed=True, bias=bias), np.array([0.6, 0.7, 0.1, 0.0])
    largest = np.abs(X.T @ (alpha * Y)).max()
    found = lower_bound._shrunk_sharply(block, alpha, largest, None)
    np.testing.assert_allclose(found, alpha / largest, rtol=1e-13)
    weights = np.array([[Fraction(x) for x in row] for row in X.tolist()]).T @ [
        Fraction(v) for v in (found * Y).tolist()
    ]
    assert max(abs(weights)) <= 1
    assert not bias or sum(map(Fraction, (found * Y).tolist())) == 0


def test_a_point_that_is_too_large_is_divided_by_what_it_reaches(monkeypatch):
    tried, reached = [], iter([4.0, 1.0])
    monkeypatch.setattr(
        lower_bound, "_largest_column", lambda *given: tried.append(given[1]) or next(reached)
    )
    columns = Columns(EntryError(1e-3, np.ones(4), np.zeros(4)), np.ones(3))
    found = lower_bound._shrunk_sharply(Block(smoothed=True), np.ones(4), 2.0, columns)
    np.testing.assert_array_equal(tried[0], np.full(4, 0.5))
    np.testing.assert_array_equal(found, np.full(4, 0.5 * ((1.0 - 2.0**-48) / 4.0)))
    assert len(tried) == 2


def test_a_point_that_is_never_feasible_is_zero_sharply_too(monkeypatch):
    tried = []
    monkeypatch.setattr(
        lower_bound, "_largest_column", lambda *given: tried.append(given) or np.nan
    )
    found = lower_bound._shrunk_sharply(Block(smoothed=True), np.ones(4), 2.0, None)
    assert len(tried) == 8
    np.testing.assert_array_equal(found, np.zeros(4))


@pytest.mark.parametrize(
    ("felt", "cells", "sharper", "times", "taken"),
    [
        (0.01, 4, 0.45, 1, 0.45),
        (0.02, 4, 0.45, 0, 0.25),
        (1.03 / 2.0 - 0.5, 4, 0.45, 0, 0.25),  # just as much is not more
        (0.01, (1 << 22) + 1, 0.45, 0, 0.25),
        (0.01, 4, 0.125, 1, 0.25),
    ],
)
def test_a_point_is_shrunk_sharply_where_that_is_felt(
    monkeypatch, felt, cells, sharper, times, taken
):
    tried = []
    monkeypatch.setattr(lower_bound, "above", lambda x, k: x)
    monkeypatch.setattr(lower_bound, "_shrunk", lambda *given: given[1] / 4)
    monkeypatch.setattr(
        lower_bound, "_shrunk_sharply", lambda *given: tried.append(given) or sharper * given[1]
    )
    alpha, block = np.array([1.0, 0.5, 0.5, 0.0]), Block(smoothed=True, cells=cells)
    spread = SPREAD._replace(total=1.03)  # 1.03 / 2 is 0.015 more than Σα/4 = 0.5
    columns = Columns(EntryError(0.0, np.ones(4), np.zeros(4)), np.ones(1))
    found = lower_bound.dual_below(block, alpha, spread, np.array([2.0]), 0.0, columns, felt)
    assert [(given[1] is alpha, given[2], given[3] is columns) for given in tried] == [
        (True, 2.0, True)
    ] * times
    np.testing.assert_allclose(found.alpha, taken * alpha, rtol=1e-15)
    assert found.value == pytest.approx(2.0 * taken, rel=1e-12)


# ---------------------------------------------------------------- both together


@pytest.mark.parametrize("bias", [False, True])
def test_settled_points_are_in_their_box_and_balanced(bias):
    alpha = np.array([3.0, -1.0, 0.5, 1.0])
    found = lower_bound.settle_dual(Block(bias=bias), alpha, np.inf)
    expected = [0.0, 0.0, 0.0, 0.0] if bias else [2.0, 0.0, 0.5, 0.0]
    np.testing.assert_array_equal(found.alpha, expected)
    found = lower_bound.settle_dual(
        Block(SQUARE, bias=bias), np.array([3.0, 2.0, -1.0, 1.0]), np.inf
    )
    np.testing.assert_array_equal(found.alpha, [3.0, 2.0, -1.0, 0.0])


def test_what_is_not_a_number_proves_nothing():
    w = np.array([1e308, 1e308, -1e308])
    objective, _ = upper_bound.settle_objective(Block(SQUARE), w, np.inf, 1e-3)
    assert objective == np.inf
    found = lower_bound.settle_dual(Block(SQUARE), np.full(4, 1e308), 0.0)
    assert found.value == -np.inf


def test_what_is_exact_needs_no_sharp_sums(monkeypatch):
    block = Block()
    monkeypatch.setattr(upper_bound, "objective_bounds", lambda *given: (3.0, 3.0))
    assert upper_bound.settle_objective(block, np.ones(3), 0.0, 0.0)[0] == 3.0
    assert block.sharp == 0


@pytest.mark.parametrize(("tol", "sharp"), [(1e-3, 0), (1e-13, 1)])
def test_sums_are_sharp_where_rounding_is_felt_beside_the_tolerance(tol, sharp):
    block, w = Block(), np.array([0.5, -0.25, 0.125])
    upper_bound.settle_objective(block, w, 0.1, tol)
    assert block.sharp == sharp
    settled = settling.settle_linear(block, w, 0.1, np.array([1.0, 0.5, 0.25, 0.0]), tol)
    assert block.sharp == 3 * sharp  # P again, and the sum of D
    np.testing.assert_allclose(settled.margins, X @ w + 0.1, rtol=1e-15)
    plain, best = upper_bound.objective_bounds(block, w, X @ w + 0.1)[1], settled.objective
    assert best == (upper_bound._sharp_objective(block, w, 0.1, None) if sharp else plain)
    assert best < plain or not sharp
    P = 0.5 * w @ w + ROWS.c @ np.maximum(1.0 - Y * (X @ w + 0.1), 0.0)
    assert settled.objective == pytest.approx(P, rel=1e-13)
    v = X.T @ (np.array([1.0, 0.5, 0.25, 0.0]) * Y)
    assert settled.dual.value == pytest.approx(1.75 - 0.5 * v @ v, rel=1e-13)


# ---------------------------------------------------------------- kernels

K = np.array([[2.0, 0.5, 1.0, 0.0], [0.5, 1.0, 0.25, 1.0], [1.0, 0.25, 3.0, 0.5], [0, 1, 0.5, 4]])
ROOTS = np.array([1.5, 1.0, 2.0, 2.25])
ENTRIES = EntryError(1e-3, ROOTS, np.array([0.01, 0.02, 0.0, 0.03]))


class Kernel:
    """Rows of K; with `off` what is kept of them is off by so much."""

    def __init__(self, off=None):
        self.off, self.finer = off, None if off is None else Kernel
        self.entries = ENTRIES._replace(epsilon=1e-3 if off is None else 1e-2)
        self.asked = []

    def fine(self):
        self.finest = Kernel()
        return self.finest

    def times(self, *vectors):
        return np.stack([K @ v + (self.off or 0.0) for v in vectors])

    def times_between(self, V, others):
        self.asked.append(others.tolist())
        out = np.zeros(V.shape)
        rows = np.union1d(np.flatnonzero(V.any(axis=0)), others)
        out[:, rows] = (V @ K)[:, rows]
        return out


def quadratic(entries, beta, f):
    m, size = np.count_nonzero(beta), np.abs(beta)
    rate = a(entries.epsilon + g(m + 8) * (1.0 + entries.epsilon), 4)
    reach = a(size @ entries.roots, len(beta)) + m * T
    shifted = a(entries.shift * size, 2)
    total = beta @ f + g(m + 8) * (size @ np.abs(f)) + a(rate * reach**2, 6)
    total += a(size @ shifted, len(beta)) + (2 * len(beta) + m) * T
    error = a(rate * reach * entries.roots, 6) + shifted + m * T
    return total + g(8) * abs(total), error


@pytest.mark.parametrize("f", [K @ [1.0, -0.5, 0.0, 0.0], np.array([-9.0, 1.0, 2.0, 3.0])])
def test_a_quadratic_form_allows_for_entries_sums_and_the_diagonal(coarse, f):
    beta = np.array([1.0, -0.5, 0.0, 0.0])
    found, error = settling_kernel._quadratic_above(ENTRIES, beta, f)
    expected = quadratic(ENTRIES, beta, f)
    assert found == pytest.approx(expected[0], rel=NEAR)
    np.testing.assert_allclose(error, expected[1], rtol=NEAR)


def test_a_quadratic_form_is_moved_to_the_next_number_above(monkeypatch):
    monkeypatch.setattr(shared, "growth", lambda k: 0.0)
    exact = EntryError(0.0, ROOTS, np.zeros(4))
    found, _ = settling_kernel._quadratic_above(exact, np.array([1.0, 0.0, 0.0, 0.0]), 2.0 * Y)
    assert found == np.nextafter(2.0, 3.0)


@pytest.mark.parametrize("off", [None, 1e-3])
def test_margins_of_a_kernel_are_off_by_the_finest_entries(coarse, off):
    beta, f = np.array([1.0, -0.5, 0.0, 0.0]), np.array([-9.0, 1.0, 2.0, 3.0])
    found = settling_kernel.margin_errors(Kernel(off), beta, f)
    error = quadratic(ENTRIES, beta, f)[1]
    np.testing.assert_allclose(found, a(error + g(16) * np.abs(f), 4), rtol=NEAR)


def settled(coarse_rows, loss, bias, beta, alpha, known=None, b=0.25):
    rows = Kernel(coarse_rows)
    return rows, settling_kernel.settle_kernel(rows, ROWS, loss, bias, beta, b, alpha, known)


def values(loss, beta, b, alpha, bias, costs=None):
    """P and D as they are derived, of f = Kβ."""
    f, c = K @ beta, ROWS.c if costs is None else costs
    square, error = quadratic(ENTRIES, beta, f)
    r = 1.0 - Y * (f + b)
    error = error + g(6) * (np.abs(f + b) + np.abs(r))
    if loss == HINGE:
        losses = c @ np.maximum(r + a(error, 2), 0.0)
    else:
        losses = c @ (a((np.abs(r) + a(error, 2)) ** 2, 3) + T)
    P = 0.5 * square + a(losses, 4) + 4 * T
    signed = alpha * Y
    spread = Spread(*lower_bound.spread_of(ROWS, alpha, np.zeros(4), loss))
    half = 0.5 * quadratic(ENTRIES, signed, K @ signed)[0]
    return P, shared.value_below(spread, bias, loss, half)


@pytest.mark.parametrize("loss", [HINGE, SQUARE])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("same", [False, True])
def test_bounds_of_kernel_machines_are_those_derived(coarse, loss, bias, same):
    alpha = np.array([0.25, 0.5, 0.25, 0.0])
    beta = alpha * Y if same else np.array([0.5, 0.125, 0.0, -1.0])
    _, found = settled(None, loss, bias, beta, alpha)
    P, D = values(loss, beta, 0.25, alpha, bias)
    assert found.objective == pytest.approx(P, rel=NEAR)
    assert found.dual.value == pytest.approx(D, rel=NEAR)
    np.testing.assert_array_equal(found.beta, beta)
    np.testing.assert_array_equal(found.dual.alpha, alpha)
    np.testing.assert_array_equal(found.f, K @ beta)
    np.testing.assert_allclose(found.off, quadratic(ENTRIES, beta, K @ beta)[1], rtol=NEAR)


def test_beta_goes_with_alpha_where_they_are_one_point():
    alpha = np.array([0.5, 0.25, 0.5, 0.0])
    _, found = settled(None, HINGE, True, alpha * Y, alpha)
    np.testing.assert_array_equal(found.dual.alpha, [0.0, 0.25, 0.25, 0.0])
    np.testing.assert_array_equal(found.beta, [0.0, -0.25, 0.25, 0.0])
    _, found = settled(None, HINGE, False, alpha * Y, alpha)
    np.testing.assert_array_equal(found.dual.alpha, alpha)
    _, found = settled(None, HINGE, True, 2.0 * alpha * Y, alpha)
    np.testing.assert_array_equal(found.beta, 2.0 * alpha * Y)
    _, found = settled(None, HINGE, True, 0.0 * Y, 0.0 * Y)
    assert found.dual.value == 0.0


def test_a_kernel_point_that_is_not_a_number_proves_nothing():
    _, found = settled(None, SQUARE, False, np.full(4, 1e308), np.full(4, -1e308))
    assert (found.objective, found.dual.value) == (np.inf, -np.inf)
    _, found = settled(None, SQUARE, False, np.zeros(4), np.array([np.inf, -np.inf, 0.0, 0.0]))
    assert found.dual.value == -np.inf


BETA = np.array([0.5, 0.0, 0.0, 0.0])  # Kβ is 1, 0.25, 0.5 and 0


def known_error(rows, terms, reach, moved, f):
    e = rows.entries.epsilon
    rate = e + g(terms + 8) * (1.0 + e)
    off = a(rate * reach, 2 * terms + 16) * ROOTS + a(moved * 2.25, 4) * ROOTS
    return off + g(8) * (1.0 + np.abs(f))


@pytest.mark.parametrize("known", [None, settling_kernel.Sums(K @ BETA, np.inf, 3)])
def test_rows_that_surely_have_no_loss_are_left_as_they_are(coarse, known):
    rows = Kernel(1e-3)
    found, data, entries, off = settling_kernel._products(
        rows, ROWS, HINGE, BETA[None], 0.75, known
    )
    # margins are 1.75, 1, 1.25 and 0.75: the third is beyond doubt, the fourth costs nothing
    f = K @ BETA + 1e-3
    np.testing.assert_array_equal(data.c, [0.0, 0.5, 0.0, 0.0])
    assert rows.finest.asked == [[1]]
    np.testing.assert_array_equal(found[0], [1.0, 0.25, f[2], f[3]])
    error = known_error(rows, 4, a(0.5 * 1.5, 4), 0.0, f + 0.75)
    np.testing.assert_allclose(off, [0.0, 0.0, error[2], error[3]], rtol=NEAR)
    assert entries.epsilon == 1e-3


def test_sums_that_are_known_are_off_by_all_that_was_added_and_moved(coarse):
    rows = Kernel(1e-3)
    known = settling_kernel.Sums(np.array([9.0, 8.0, 7.0, 6.0]), 3.0, 5, 0.125)
    found, _, _, off = settling_kernel._products(rows, ROWS, HINGE, BETA[None], 0.75, known)
    np.testing.assert_array_equal(found[0], [1.0, 0.25, 7.0, 6.0])
    error = known_error(rows, 5, 3.0, 0.125, known.f + 0.75)
    np.testing.assert_allclose(off, [0.0, 0.0, error[2], error[3]], rtol=NEAR)


def test_rows_of_either_vector_are_computed_between_themselves(coarse):
    rows, vectors = Kernel(1e-3), np.array([[0.5, 0.0, 0.0, 0.0], [0.0, 0.0, 0.25, 0.0]])
    found, *_ = settling_kernel._products(rows, ROWS, HINGE, vectors, 0.75, None)
    assert rows.finest.asked == [[1]]
    np.testing.assert_array_equal(found[0], [1.0, 0.25, 0.5, 1e-3])


def test_small_roots_and_none_bound_what_the_grid_moves():
    rows = Kernel(1e-3)
    rows.entries = rows.entries._replace(roots=0.25 * ROOTS)
    known = settling_kernel.Sums(np.full(4, 1.5), 0.0, 0, 0.5)
    off = settling_kernel._products(rows, ROWS, HINGE, BETA[None], 0.0, known)[3]
    assert off[3] == pytest.approx(0.5 * (0.25 * 2.25) ** 2, rel=1e-12)


def test_a_row_whose_margin_is_in_doubt_is_computed_afresh(coarse):
    rows, b = Kernel(1e-3), 0.75
    error = known_error(rows, 5, 3.0, 0.0, np.full(4, 1.25))[2]
    for more, asked in ((1e-9, [1]), (-1e-9, [1, 2])):
        f = np.array([1.0, 0.25, 0.5, 0.0])
        f[2] = 1.0 + error + more - b
        f[2] += known_error(rows, 5, 3.0, 0.0, f + b)[2] - error
        known = settling_kernel.Sums(f, 3.0, 5)
        settling_kernel._products(rows, ROWS, HINGE, BETA[None], b, known)
        assert rows.finest.asked == [asked]


def test_every_row_of_a_square_loss_is_computed_afresh(coarse):
    rows = Kernel(1e-3)
    known = settling_kernel.Sums(np.array([9.0, 8.0, 7.0, 6.0]), 3.0, 5, 0.125)
    found, data, _, off = settling_kernel._products(rows, ROWS, SQUARE, BETA[None], 0.75, known)
    np.testing.assert_array_equal(found[0], [1.0, 0.25, 0.5, 6.0])
    assert data is ROWS
    np.testing.assert_array_equal(off, [0.0, 0.0, 0.0, np.inf])


def test_what_the_grid_moves_is_part_of_known_sums(coarse, monkeypatch):
    seen = []
    products = settling_kernel._products
    monkeypatch.setattr(
        settling_kernel, "_products", lambda *given: seen.append(given[-1]) or products(*given)
    )
    alpha = np.array([0.5, 0.25, 0.5, 0.0])
    known = settling_kernel.Sums(K @ (alpha * Y), 3.0, 5)
    settled(1e-3, HINGE, True, alpha * Y, alpha, known)
    assert seen[0].moved == pytest.approx(a(0.75, 6), rel=NEAR)
    settled(1e-3, HINGE, True, 2.0 * alpha * Y, alpha, known)
    assert seen[1].moved == 0.0


# ---------------------------------------------------------------- a run that ends at once

F = np.array([0.5, -0.75, 0.5, 0.25])  # what steps have left of Kβ


@pytest.mark.parametrize("loss", [HINGE, SQUARE])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("b", [0.25, 40.0])
def test_bounds_of_known_sums_are_those_derived(coarse, loss, bias, b):
    beta = np.array([0.5, -0.75, 0.5, -0.25])  # the costs are 2, 0.5, 1 and 0
    signed = np.array([0.5, -0.5 if loss == HINGE else -0.75, 0.5, 0.0])
    if bias:
        signed = rounding.on_grid(signed)
    rows, size = Kernel(), np.abs(signed)
    known = settling_kernel.Sums(F, 3.0, 5, 0.5)  # how far β moved before is not asked
    found = settling_kernel.settle_known(rows, ROWS, loss, bias, beta, b, known)
    moved = a(np.abs(signed - beta).sum(), 6)
    error = known_error(rows, 5, 3.0, moved, F + b) + a(ENTRIES.shift * size, 2)
    square = signed @ F + g(12) * (size @ np.abs(F)) + a(size @ error, 4) + 12 * T
    half = 0.5 * (square + g(8) * abs(square))
    r = 1.0 - Y * (F + b)
    off = a(error + g(6) * (np.abs(F + b) + np.abs(r)), 2)
    losses = np.maximum(r + off, 0.0) if loss == HINGE else a((np.abs(r) + off) ** 2, 3) + T
    assert found.objective == pytest.approx(half + a(ROWS.c @ losses, 4) + 4 * T, rel=NEAR)
    spread = Spread(*lower_bound.spread_of(ROWS, signed * Y, np.zeros(4), loss))
    value = shared.value_below(spread, bias, loss, half)
    assert found.dual.value == pytest.approx(value, rel=NEAR)
    np.testing.assert_array_equal(found.beta, signed)
    np.testing.assert_array_equal(found.dual.alpha, signed * Y)
    assert found.f is F
    np.testing.assert_allclose(found.off, error, rtol=NEAR)


def test_a_quadratic_form_of_known_sums_may_be_negative_by_rounding(coarse):
    known = settling_kernel.Sums(-F, 0.0, 0)
    beta = np.array([0.5, -0.5, 0.5, 0.0])
    found = settling_kernel.settle_known(Kernel(), ROWS, SQUARE, False, beta, 0.0, known)
    error = known_error(Kernel(), 0, 0.0, 0.0, F) + a(ENTRIES.shift * np.abs(beta), 2)
    square = g(12) * (np.abs(beta) @ np.abs(F)) + a(np.abs(beta) @ error, 4) + 12 * T - beta @ F
    assert square < 0.0
    spread = Spread(*lower_bound.spread_of(ROWS, beta * Y, np.zeros(4), SQUARE))
    half = 0.5 * (square + g(8) * -square)
    value = shared.value_below(spread, False, SQUARE, half)
    assert found.dual.value == pytest.approx(value, rel=NEAR)


def test_bounds_of_known_sums_that_are_exact_are_the_next_numbers(monkeypatch):
    for module in (shared, settling_kernel, upper_bound, lower_bound):
        monkeypatch.setattr(module, "growth", lambda k: 0.0)
        monkeypatch.setattr(module, "above", lambda x, k: x)
        monkeypatch.setattr(module, "TINY", 0.0, raising=False)
    rows = Kernel()
    rows.entries = EntryError(0.0, np.zeros(4), np.zeros(4))
    known = settling_kernel.Sums(np.array([1.0, 0.25, 0.5, 0.0]), 0.0, 0)
    found = settling_kernel.settle_known(rows, ROWS, HINGE, True, np.zeros(4), 0.0, known)
    assert found.objective == np.nextafter(0.5 * 1.25 + 0.5, np.inf)
    assert found.dual.value == 0.0
    beta = np.array([0.5, -0.5, 0.0, 0.0])
    found = settling_kernel.settle_known(rows, ROWS, HINGE, True, beta, 0.0, known)
    half = 0.5 * np.nextafter(0.375, 1.0)
    assert found.objective == np.nextafter(np.nextafter(half, 1.0) + 1.125, 2.0)
    assert found.dual.value == np.nextafter(1.0 - np.nextafter(half, 1.0), 0.0)


@pytest.mark.parametrize(("beta", "f"), [(np.full(4, 1e308), 1e308 * Y), (np.zeros(4), Y * np.nan)])
def test_known_sums_that_are_not_numbers_prove_nothing(beta, f):
    known = settling_kernel.Sums(f, 1e308, 5)
    rows = Kernel()
    found = settling_kernel.settle_known(rows, ROWS, SQUARE, False, beta * Y, 0.0, known)
    assert found.objective == np.inf
    assert found.dual.value == (-np.inf if beta.any() else 0.0)


# ---------------------------------------------------------------- what is proven of labels


def test_the_radius_is_raised_by_its_roundings(coarse):
    assert labels.radius_of(3.0, 1.0) == pytest.approx(a(2.0, 3), rel=NEAR)
    assert labels.radius_of(3.0, 3.0) == labels.radius_of(1.0, 3.0) == 0.0
    assert labels.radius_of(np.inf, 3.0) == np.inf


def test_a_gap_is_moved_to_the_next_number_above(monkeypatch):
    monkeypatch.setattr(shared, "above", lambda x, k: x)
    assert labels.radius_of(2.0, 1.0) == np.sqrt(2.0 * np.nextafter(1.0, 2.0))


PRODUCTS, OFF = np.array([0.5, -0.25, 2.0, 9.0]), np.array([0.01, 0.02, 0.03, 9.0])


def test_the_range_of_a_mean_allows_for_errors_and_sums(coarse):
    e, c = (Y - PRODUCTS)[:3], ROWS.c[:3]  # the fourth costs nothing
    off = a(OFF[:3] + g(4) * (1.0 + np.abs(e)), 4)
    half = a(c @ off / 3.5 + g(14) * (c @ (np.abs(e) + off)) / 3.5, 4)
    found = labels.bias_range(Y, ROWS.c, PRODUCTS, OFF, SQUARE)
    assert found == pytest.approx((c @ e / 3.5 - half, c @ e / 3.5 + half), rel=NEAR)


def test_the_range_of_a_quantile_allows_for_errors(coarse):
    e = (Y - PRODUCTS)[:3]  # ½, −¾ and −1: costs of 1, then 1.5, then 3.5
    off = a(OFF[:3] + g(4) * (1.0 + np.abs(e)), 4)
    found = labels.bias_range(Y, ROWS.c, PRODUCTS, OFF, HINGE)  # the positive rows cost 3
    assert found == pytest.approx((e[0] - off[0], e[0] + off[0]), rel=NEAR)


@pytest.mark.parametrize(
    ("costs", "share", "expected"),
    [
        ([2.0, 0.5, 0.5], 0.0, (1.5, 1.5)),
        ([2.0, 0.5, 1.5], 0.0, (-0.25, 1.5)),  # both 2 and no more: every b between is as good
        ([2.0, 0.5, 1.5], 0.9, (-0.25, 1.5)),
        ([2.0 + 1e-3, 0.5, 1.5], 0.9, (-0.25, 1.5)),  # the same, for all that rounding may do
        ([2.0 + 1e-3, 0.5, 1.5], -1.1, (1.5, 1.5)),
    ],
)
def test_costs_that_may_be_equal_but_for_rounding_leave_b_between(
    monkeypatch, costs, share, expected
):
    """1.5 is the e of a positive row, −¼ and −3 those of negative ones."""
    monkeypatch.setattr(shared, "above", lambda x, k: x)
    c, y = np.array(costs), np.array([1.0, -1.0, -1.0])
    doubt = 1.2e-3 if share > 0 else 0.0
    monkeypatch.setattr(shared, "growth", lambda k: doubt / c.sum() if k == 14.0 else 0.0)
    e = np.array([1.5, -3.0, -0.25])
    assert labels.bias_range(y, c, y - e, np.zeros(3), HINGE) == expected


def test_scores_of_the_optimum_are_within_the_radius_and_the_range_of_b(coarse):
    scores = proven.Scores(
        np.array([[0.5, -2.0], [1.0, 3.0]]), np.array([[0.1, 0.2], [0.3, 0.4]]), np.array([2.0, 3])
    )
    problems = [
        {"objective": 3.0, "dual_objective": 2.5, "bias_range": [-0.5, 0.25]},
        {"objective": 2.0, "dual_objective": 2.0, "bias_range": [1.0, 4.0]},
    ]
    radius = np.array([a(1.0, 3), 0.0])
    reach, f = a(radius * scores.norms[:, None] + scores.off, 4), scores.products
    for bias in (True, False):
        record = SimpleNamespace(extra={"bias": bias})
        found = proven._bounds(record, problems, scores)
        for end, side in ((0, -1), (1, 1)):
            b = np.array([p["bias_range"][end] if bias else 0.0 for p in problems])
            expected = f + b + side * (reach + g(4) * (np.abs(f) + reach + np.abs(b)))
            np.testing.assert_allclose(found[end], expected, rtol=NEAR)


def test_products_of_a_linear_machine_are_off_by_gamma_of_their_cells(coarse, monkeypatch):
    monkeypatch.setattr(proven, "TINY", T)
    weights = np.array([[0.5, 1.0], [-0.25, 0.0], [0.75, 2.0]])
    record = SimpleNamespace(weights=weights)
    for rows, cells in ((X, np.full(4, 3)), (csr_matrix(np.where(X > 0, X, 0.0)), [3, 2, 2, 2])):
        dense = rows if isinstance(rows, np.ndarray) else rows.toarray()
        found = proven._linear(record, as_matrix(rows))
        norms = a(np.linalg.norm(dense, axis=1), 0.5 * np.array(cells) + 2)
        norms = norms + np.sqrt(cells) * 2.0**-537
        np.testing.assert_allclose(found.norms, norms, rtol=NEAR)
        np.testing.assert_allclose(found.products, dense @ weights, rtol=1e-12)
        size = [rounding.norm_above(w) for w in weights.T]
        off = (
            np.outer(g(np.array(cells) + 8.0) * norms, size) + (np.array(cells) + 1.0)[:, None] * T
        )
        np.testing.assert_allclose(found.off, off, rtol=NEAR)


def test_products_of_a_kernel_machine_are_off_by_entries_and_sums(coarse, monkeypatch):
    monkeypatch.setattr(proven, "TINY", T)
    roots, asked = np.array([1.5, 1.0, 2.0, 0.5, 3.0, 1.0]), []

    class Rows:
        def __init__(self, whole, spec, memory):
            asked.append((as_scipy(whole).toarray(), spec, memory))
            self.entries = EntryError(1e-3, roots, np.zeros(6))

        def times_between(self, coefs, others):
            asked.append((coefs, others))
            return np.arange(12.0).reshape(2, 6)

    monkeypatch.setattr(proven, "KernelRows", Rows)
    coefs = np.array([[0.5, 0.0], [-1.0, 2.0]])
    record = SimpleNamespace(
        coefs=coefs, support=csr_matrix(X[:2]), n_features=3, kernel="rbf", gamma=0.5
    )
    record.coef0, record.degree = 0.0, 3
    found = proven._kernel(record, as_matrix(X))
    np.testing.assert_array_equal(asked[0][0], np.vstack([X[:2], X]))
    assert asked[0][1:] == (Spec(RBF, 0.5, 0.0, 3), 0.0)
    np.testing.assert_array_equal(asked[1][0], np.hstack([coefs.T, np.zeros((2, 4))]))
    np.testing.assert_array_equal(asked[1][1], np.arange(2, 6))
    np.testing.assert_array_equal(found.products, np.arange(12.0).reshape(2, 6)[:, 2:].T)
    np.testing.assert_array_equal(found.norms, roots[2:])
    rate = a(1e-3 + g(np.array([2, 1]) + 8.0 + 2) * 1.001, 4)
    reach = a(np.abs(coefs).T @ roots[:2], 6) + 2 * T
    np.testing.assert_allclose(
        found.off, a(np.outer(roots[2:], rate * reach), 8) + 2 * T, rtol=NEAR
    )
