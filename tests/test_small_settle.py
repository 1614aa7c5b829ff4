"""The certificates of small fits in one call are those of problems/settling.py, but for the order
of sums, and true in exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from nesvm_jit import solve
from nesvm_jit.binary import small, small_data
from nesvm_jit.binary.small_data import OnGram, OnRows, Part
from nesvm_jit.kernels import rounding, small_settle
from nesvm_jit.kernels.loss import HINGE, SQUARE
from nesvm_jit.matrix.checks import as_matrix
from nesvm_jit.problems.labels import bias_range
from nesvm_jit.problems.rounding import norm_above, on_grid
from nesvm_jit.settings import Settings

from . import data

pytestmark = pytest.mark.pure
U = Fraction(1, 2**53)


def parts_of(n=40):
    """All rows, and some of them in another order, one of which costs nothing."""
    X, y, c = data.half_space_and_costs(n=n, p=4)
    some = np.random.default_rng(1).permutation(n)[: n // 2]
    costs = 10.0 * c[some]
    costs[0] = 0.0
    return X, [Part(None, y, c), Part(some, y[some], costs)]


def fitted(form, X, parts, settings):
    fits = small._Fits(form.of(as_matrix(X), parts, settings), settings)
    fits.run()
    return fits


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("model", ["csvm", "lssvm"])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "precomputed"])
def test_what_is_settled_in_the_call_is_what_settling_says(kernel, model, bias):
    X, parts = parts_of()
    settings = Settings(model=model, kernel=kernel, bias=bias, gamma=0.5, degree=2, coef0=0.5)
    A = X @ X.T if kernel == "precomputed" else X
    fits = fitted(OnRows if kernel == "linear" else OnGram, A, parts, settings)
    assert fits.verdict.said[:, small_settle.SETTLED].all()
    for k, part in enumerate(parts):
        lo, hi = fits.starts[k], fits.starts[k + 1]
        expected = fits.data.settle(fits.ends.points[k], fits.ends.duals[lo:hi], part)
        found = fits._settled(k)
        assert set(found) == set(expected)
        gap = expected["objective"] - expected["dual_objective"]
        for name in ("objective", "dual_objective"):
            assert found[name] == pytest.approx(expected[name], rel=1e-12, abs=1e-9 * gap)
        for name in ("alpha", "w", "beta", "margins"):
            if expected[name] is None:
                assert found[name] is None
            else:
                np.testing.assert_allclose(found[name], expected[name], rtol=1e-9, atol=1e-12)
        assert (found["bias_range"] is None) == (not bias)
        if bias:
            assert found["bias_range"] == pytest.approx(
                expected["bias_range"], abs=1e-6 * found["objective"] ** 0.5
            )
        assert fits.said[k][small_settle.SUPPORT] == np.count_nonzero(found["alpha"])


@pytest.mark.parametrize(("model", "kernel"), [("csvm", "linear"), ("csvm", "rbf")])
def test_what_is_not_settled_in_the_call_is_left_to_settling(model, kernel, monkeypatch):
    X, y = data.half_space(n=30)
    whole, calls = solve(X, y, model, kernel, gamma=0.5), []
    name = "settle_linear" if kernel == "linear" else "settle_kernel"
    settle = getattr(small_data, name)
    monkeypatch.setattr(small_data, name, lambda *args: calls.append(name) or settle(*args))
    assert solve(X, y, model, kernel, gamma=0.5).objective == whole.objective
    assert calls == []
    undecided = "_settle_rows" if kernel == "linear" else "_settle_gram"
    monkeypatch.setattr(small_settle, undecided, lambda *args: args[-1].said.fill(0.0))
    assert solve(X, y, model, kernel, gamma=0.5).objective == pytest.approx(whole.objective)
    assert calls == [name]


def test_where_rounding_is_felt_sums_are_made_nearly_exactly():
    X, y = data.half_space(n=30)
    rows = np.hstack([1e7 + X[:, :1], X])  # without a bias columns are not moved
    settings = Settings(bias=False, tol=1e-6)
    fits = fitted(OnRows, rows, [Part(None, y, np.ones(30))], settings)
    assert fits.said[0][small_settle.SETTLED] == 0.0
    s = solve(rows, y, bias=False, tol=1e-6)
    assert 0.0 <= s.gap <= 1e-6


def test_a_norm_is_never_below_and_hardly_above():
    for v in (np.zeros(3), np.array([3.0, -4.0]), np.full(5, 1e-300), np.array([1e150, 1e-150])):
        assert small_settle._norm_above(v) == norm_above(v)
    assert small_settle._norm_above(np.array([np.inf, 1.0])) == np.inf


@pytest.mark.parametrize("loss", [HINGE, SQUARE])
def test_a_dual_point_is_put_on_the_grid(loss):
    rng = np.random.default_rng(0)
    for _ in range(50):
        n = int(rng.integers(2, 30))
        y, c = np.where(rng.random(n) < 0.5, 1.0, -1.0), rng.random(n)
        c[rng.random(n) < 0.1] = 0.0
        given = rng.standard_normal(n) * 10.0 ** rng.integers(-20, 20)
        alpha = np.clip(y * given, 0.0, c) if loss == HINGE else np.where(c > 0, y * given, 0.0)
        out = np.empty(n)
        enough = small_settle._inside(y, c, given, False, loss, out)
        np.testing.assert_array_equal(out, alpha * y)
        assert enough
        if small_settle._inside(y, c, given, True, loss, out):
            np.testing.assert_array_equal(out, on_grid(alpha * y))
        else:
            excess = (alpha * y).sum()
            assert abs(excess) > 0.99 * (np.sign(excess) * alpha * y).max()


def test_one_entry_gives_what_is_left_over_or_nothing_is_said():
    y, c, out = np.array([1.0, 1.0, 1.0, -1.0]), np.ones(4), np.empty(4)
    assert small_settle._inside(y, c, np.array([0.2, 0.3, 0.6, -1.0]), True, HINGE, out)
    assert out.tolist() == pytest.approx([0.2, 0.3, 0.5, -1.0])
    assert out.sum() == 0.0
    assert not small_settle._inside(y, c, np.array([0.9, 0.9, 0.9, 0.0]), True, HINGE, out)
    assert not small_settle._inside(y, c, np.full(4, np.inf), True, SQUARE, out)
    assert small_settle._inside(y, c, np.zeros(4), True, HINGE, out)


@pytest.mark.parametrize("loss", [HINGE, SQUARE])
def test_the_range_of_b_is_that_of_sorted_targets(loss):
    rng = np.random.default_rng(0)
    for _ in range(100):
        n = int(rng.integers(1, 30))
        y, c = np.where(rng.random(n) < 0.5, 1.0, -1.0), rng.random(n)
        c[rng.random(n) < 0.2] = 0.0
        f = np.round(rng.standard_normal(n), 1)  # several are the same
        off = 0.1 * rng.random(n)
        expected = bias_range(y, c, f, off, loss)
        found = small_settle._bias_range(y, c, y - f, off, loss, np.empty((4, n)))
        assert found == pytest.approx(expected, rel=1e-12)
    broken = small_settle._bias_range(y, c, np.full(n, np.nan), off, loss, np.empty((4, n)))
    assert broken == (-np.inf, np.inf)


@pytest.mark.parametrize("beyond", [False, True])
def test_a_weighted_quantile_is_found_without_sorting(beyond):
    rng = np.random.default_rng(0)
    for _ in range(300):
        n = int(rng.integers(1, 12))
        v, c = rng.integers(0, 5, n).astype(float), rng.integers(1, 4, n).astype(float)
        target = float(rng.integers(1, int(c.sum()) + 2))
        sums = [c[v <= x].sum() for x in np.unique(v)]
        reached = [s > target if beyond else s >= target for s in sums]
        expected = np.unique(v)[np.argmax(reached)] if any(reached) else np.inf
        assert small_settle._quantile(v.copy(), c.copy(), target, beyond) == expected


def test_formulas_are_of_numbers_and_of_arrays():
    r, error = np.array([-1.0, 0.5, 2.0]), np.array([0.1, 0.2, 0.3])
    for loss in (HINGE, SQUARE):
        each = [rounding.raised_loss(*pair, loss) for pair in zip(r, error, strict=True)]
        np.testing.assert_array_equal(rounding.raised_loss(r, error, loss), each)


def test_the_optimum_may_be_off_by_its_radius_and_by_rounding():
    radius, cells, size, norm, f, b = 0.25, 3, 2.0, 8.0, -4.0, 1.5
    exact = (Fraction(radius) + 11 * U * Fraction(size)) * Fraction(norm) + 8 * U * Fraction(5.5)
    found = Fraction(float(rounding.product_off(radius, cells, size, norm, f, b))) - 2
    assert found == pytest.approx(float(exact - 2), rel=2e-6, abs=2**-51)
    small = rounding.product_off(0.0, cells, size, norm, 0.0, 0.0)
    assert small == pytest.approx(11 * 2.0**-53 * 16.0, rel=2e-6)
    assert rounding.product_off(0.0, cells, 0.0, norm, f, b) == pytest.approx(44 * 2.0**-53)


def test_the_work_of_settling_goes_with_rows_and_products():
    X, parts = parts_of()
    lists = small_data.lists_of(parts, len(X))
    assert small_settle._work_of_rows(X, lists, True) == 60 * (60 + 4 * 4)
    assert small_settle._work_of_products(X @ X.T, lists, True) == 40**2 + 20**2 + 60 * 60
