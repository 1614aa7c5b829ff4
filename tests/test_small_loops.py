"""The pieces of whole fits in one call, one by one and as plain Python: what data of a usual size
leaves to chance, as which ridge is taken, or which rows are read."""

import numpy as np
import pytest
from nesvm_jit.kernels import small_newton, small_pairs
from nesvm_jit.kernels.loss import l1_bends
from nesvm_jit.kernels.small import Parts

from . import oracle

pytestmark = pytest.mark.pure

# [[1, 1 + δ], [1 + δ, 1]] has a factor once more than δ is added to its diagonal
TOO_MUCH = (-0.5, 5e-13, 5e-10, 5e-7, 5e-4, 0.5)


@pytest.mark.parametrize("scale", [2.0**-60, 1.0, 2.0**60])
@pytest.mark.parametrize("ridge", range(6))
def test_a_direction_is_newtons_with_the_first_ridge_that_gives_a_factor(ridge, scale):
    whole = np.array([[1.0, 1.0 + TOO_MUCH[ridge]], [1.0 + TOO_MUCH[ridge], 1.0]])
    g, d = scale * np.array([1.0, -0.75]), np.empty(2)
    H = scale * np.where(np.tri(2, k=-1), np.nan, whole)  # the upper triangle is enough
    descent = small_newton._descend(H, np.empty(2), g, d)
    raised = whole + np.diag([(0.0, 1e-12, 1e-9, 1e-6, 1e-3, 1.0)[ridge]] * 2)
    np.testing.assert_allclose(d, -np.linalg.solve(raised, g / scale), rtol=0.01)
    assert descent == pytest.approx(-g @ d, rel=1e-12)


@pytest.mark.parametrize(
    ("beyond", "g"), [(2.0, [1.0, -1.0]), (-0.5, [0.0, 0.0]), (-0.5, [1e200, 0.0])]
)
def test_there_may_be_no_direction(beyond, g):
    H = np.array([[1.0, 1.0 + beyond], [1.0 + beyond, 1.0]])
    with np.errstate(over="ignore"):
        assert small_newton._descend(H, np.empty(2), np.array(g), np.empty(2)) == 0.0


@pytest.mark.parametrize("curved", [(), (1,), (0, 3), (0, 1, 4), (0, 1, 2, 3, 4)])
def test_rows_bend_as_much_as_they_are_curved(curved):
    Z = np.random.default_rng(0).standard_normal((5, 3))
    curvature = np.where(np.isin(np.arange(5), curved), [0.5, 2.0, 1.0, 3.0, 0.25], 0.0)
    H, expected = np.full((3, 3), np.nan), Z.T @ (curvature[:, None] * Z)
    Z[curvature == 0.0] = np.nan  # rows without curvature are not read
    small_newton._add_curvature(Z, curvature, H)
    np.testing.assert_allclose(H, expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("l1", [False, True])
def test_the_penalty_bends_weights_and_b_is_bent_at_least_a_little(l1):
    w, mu, centre = np.array([0.5, -0.25, 3.0]), 0.5, np.array([0.0, 0.25, -1.0])
    bent = [l1_bends(c + x / mu) / mu for c, x in zip(centre, w, strict=True)] if l1 else np.ones(3)
    for b, least in ((2.0, 3.0), (4.0, 3.0)):
        H = np.diag([1.0, 1.0, 1.0, b])
        small_newton._bend(H, w, mu, centre, l1, least)
        np.testing.assert_array_equal(H, np.diag([*(1.0 + np.array(bent)), max(b, least)]))
    H = np.eye(3)
    small_newton._bend(H, w, mu, centre, l1, 9.0)  # without a bias
    np.testing.assert_array_equal(H, np.diag(1.0 + np.array(bent)))


def test_the_kernel_between_rows_is_a_copy_unless_they_are_all_rows_in_their_order():
    K = np.arange(16.0).reshape(4, 4)
    c = np.ones(4)

    def between(index, used):
        parts = Parts(np.array([0, len(index)]), np.array(index), c, c)
        return small_pairs._between(K, parts, np.array(used))

    assert between([0, 1, 2, 3], [0, 1, 2, 3]) is K
    for index, used in (([0, 1, 3, 2], [0, 1, 2, 3]), ([0, 1, 2, 3], [0, 1, 2]), ([2, 0], [0, 1])):
        rows = np.array(index)[used]
        np.testing.assert_array_equal(between(index, used), K[np.ix_(rows, rows)])


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_the_level_is_between_rows_that_may_rise_and_rows_that_may_fall(bias, seed):
    rng = np.random.default_rng(seed)
    beta = rng.integers(0, 3, 3 if seed < 4 else 12) / 2.0  # 0, ½ or 1
    e = rng.standard_normal(len(beta))
    lower, upper = np.zeros(len(beta)), np.ones(len(beta))
    top = e[beta < 1.0].max(initial=-np.inf)
    bottom = e[beta > 0.0].min(initial=np.inf)
    b, violation = small_pairs._level(beta, e, lower, upper, bias)
    if not bias:
        assert (b, violation) == (0.0, max(top, -bottom))
    elif np.isfinite(top) and np.isfinite(bottom):
        assert (b, violation) == (0.5 * (top + bottom), top - bottom)
    else:
        assert (b, violation) == (top if np.isfinite(top) else bottom, 0.0)


def test_the_level_of_rows_that_are_all_at_one_bound():
    e, nothing, one = np.array([0.5, -2.0, 1.0]), np.zeros(3), np.ones(3)
    assert small_pairs._level(nothing, e, nothing, one, True) == (1.0, 0.0)
    assert small_pairs._level(one, e, nothing, one, True) == (-2.0, 0.0)
    assert small_pairs._level(nothing, e, nothing, one, False) == (0.0, 1.0)
    assert small_pairs._level(one, e, nothing, one, False) == (0.0, 2.0)


def test_values_of_a_kernel_machine_are_those_of_the_formulas():
    rng = np.random.default_rng(0)
    A, y = rng.standard_normal((6, 3)), np.array([1.0, -1.0, 1.0, 1.0, -1.0, -1.0])
    K, c, b = A @ A.T, np.array([2.0, 0.5, 1.0, 0.0, 3.0, 1.0]), 0.375
    beta = rng.uniform(0, 1, 6) * c * y
    found = small_pairs._hinge_values(y, c, beta, y - K @ beta, b)
    expected = oracle.kernel_objective("csvm", K, y, c, beta, b), oracle.dual_gain(K, y, beta)
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("bias", "m"), [(False, 5), (True, 6)])
def test_the_work_of_small_fits_goes_with_rows_and_features(bias, m):
    X, K, starts = np.zeros((9, 5)), np.zeros((9, 9)), np.array([0, 4, 11])
    parts = Parts(starts, np.zeros(11), np.zeros(11), np.zeros(11))
    expected = 20 * (11 * (30 + 2 * m + m * m // 10) + 2 * m**3 // 3)
    assert small_newton._work_of_newton(X, parts, bias) == expected
    assert small_pairs._work_of_pairs(K, parts, bias) == 20 * (4**2 + 7**2)
    assert small_pairs._work_of_factors(K, parts, bias) == (4**3 + 7**3) // 6
