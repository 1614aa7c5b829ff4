"""Sigmoids step by step: Newton's step, how it is shortened, when it ends; votes and folds at their
boundaries."""

import numpy as np
import pytest
from nesvm_jit import InputError
from nesvm_jit.machine import calibration
from nesvm_jit.machine.calibration import couple, fit_sigmoid, normalise, sigmoid
from nesvm_jit.machine.folds import stratified_folds
from nesvm_jit.machine.multiclass import ovo_decision, ovr_choice, vote
from scipy.optimize import brentq
from scipy.special import expit

pytestmark = pytest.mark.pure


def targets(positive, c):
    """Platt's, and where his iteration starts."""
    n, m = c[positive].sum(), c[~positive].sum()
    return np.where(positive, (n + 1) / (n + 2), 1 / (m + 2)), np.log((m + 1) / (n + 1))


def loss(a, b, f, t, c):
    z = a * f + b
    return c @ (t * np.logaddexp(0, z) + (1 - t) * np.logaddexp(0, -z))


def full_step(f, t, c, a, b):
    """Newton's from (a, b), and the slope along it."""
    p = expit(-(a * f + b))
    gradient = np.array([c * (t - p) @ f, np.sum(c * (t - p))])
    weight = c * p * (1 - p)
    hessian = np.array([[weight @ (f * f), weight @ f], [weight @ f, weight.sum()]])
    step = -np.linalg.solve(hessian, gradient)
    return step, gradient @ step


def step_by_halves(f, t, c, a, b, share=1e-4):
    """The first of the full step, its half, … that lowers the loss by a share of what the slope
    promises."""
    (da, db), slope = full_step(f, t, c, a, b)
    size = 1.0
    while loss(a + size * da, b + size * db, f, t, c) > loss(a, b, f, t, c) + share * size * slope:
        size /= 2
    return np.array([a + size * da, b + size * db]), size


def odds(seed, n=30):
    """Scores from −1 to 1 of median 0, and labels that follow them a little."""
    rng = np.random.default_rng(seed)
    f = rng.standard_normal(n)
    f -= np.median(f)
    f /= np.abs(f).max()
    return f, f + 0.7 * rng.standard_normal(n) > 0.3, rng.integers(1, 4, n).astype(float)


@pytest.mark.parametrize("rounds", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_a_round_is_newtons_step(monkeypatch, seed, rounds):
    monkeypatch.setattr(calibration, "MAX_ROUNDS", rounds)
    f, positive, c = odds(seed)
    t, b = targets(positive, c)
    point = np.array([0.0, b])
    for _ in range(rounds):
        point, size = step_by_halves(f, t, c, *point)
        assert size == 1.0
    np.testing.assert_allclose(fit_sigmoid(f, positive, c), point, rtol=1e-9)


@pytest.mark.parametrize("shift", [-3.0, 0.25])
@pytest.mark.parametrize("scale", [1e-6, 4.0])
def test_steps_follow_a_change_of_units(monkeypatch, shift, scale):
    monkeypatch.setattr(calibration, "MAX_ROUNDS", 2)
    f, positive, c = odds(5)
    A, B = fit_sigmoid(f, positive, c)
    A2, B2 = fit_sigmoid(scale * (f + shift), positive, c)
    np.testing.assert_allclose([scale * A2, B2 + scale * A2 * shift], [A, B], rtol=1e-9)


def shortened(seed):
    """Data whose first steps are too long."""
    rng = np.random.default_rng(seed)
    n = 12
    f = np.sort(rng.standard_normal(n)) ** 3
    f -= np.median(f)
    f /= np.abs(f).max()
    positive = np.arange(n) >= n // 2
    return f, positive, 10.0 ** rng.uniform(0, 5, n)


def rounds_of(monkeypatch, f, positive, c=None):
    """Of a fit: the sigmoid is taken twice in each."""
    calls = []
    real = calibration.sigmoid
    with monkeypatch.context() as patch:
        patch.setattr(calibration, "sigmoid", lambda *args: calls.append(1) or real(*args))
        fit_sigmoid(f, positive, c)
    return len(calls) / 2


@pytest.mark.parametrize(
    ("seed", "sizes"),
    [(140, [0.5]), (181, [0.25]), (251, [0.5, 1 / 32]), (1, [1.0, 0.25]), (223, [0.5, 1.0])],
)
def test_steps_that_are_too_long_are_halved(monkeypatch, seed, sizes):
    monkeypatch.setattr(calibration, "MAX_ROUNDS", len(sizes))
    f, positive, c = shortened(seed)
    t, b = targets(positive, c)
    point = np.array([0.0, b])
    for expected in sizes:
        point, size = step_by_halves(f, t, c, *point)
        assert size == expected
    np.testing.assert_allclose(fit_sigmoid(f, positive, c), point, rtol=1e-7)


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9, 0.99])
@pytest.mark.parametrize("seed", range(3))
def test_a_step_must_lower_the_loss_by_its_share_of_the_slope(monkeypatch, seed, share):
    monkeypatch.setattr(calibration, "SUFFICIENT", share)
    monkeypatch.setattr(calibration, "MAX_ROUNDS", 2)
    f, positive, c = odds(seed)
    t, b = targets(positive, c)
    point, first = step_by_halves(f, t, c, 0.0, b, share)
    point, _ = step_by_halves(f, t, c, *point, share)
    assert (first == 1.0) == (share < 0.5)
    np.testing.assert_allclose(fit_sigmoid(f, positive, c), point, rtol=1e-9)


def test_what_newtons_method_is_given(monkeypatch):
    given = []
    monkeypatch.setattr(calibration, "_newton", lambda *args: given.append(args) or (3.0, 0.5))
    c = np.array([1.0, 2.0, 0.0, 1.0, 2.0])
    positive = np.array([True, False, True, True, False])
    A, B = fit_sigmoid([-6.0, 0.0, 99.0, 4.0, 2.0], positive, c)
    g, t, not_t, weights, b = given[0]
    np.testing.assert_allclose(g, [-1.0, -1 / 7, 3 / 7, 1 / 7], rtol=1e-14)  # 1 is their median
    np.testing.assert_allclose(t, [3 / 4, 1 / 6, 3 / 4, 1 / 6], rtol=1e-15)
    np.testing.assert_allclose(not_t, [1 / 4, 5 / 6, 1 / 4, 5 / 6], rtol=1e-15)
    assert weights.tolist() == [1.0, 2.0, 1.0, 2.0]
    assert b == pytest.approx(np.log(5 / 3), rel=1e-15)
    np.testing.assert_allclose([A, B], [3.0 / 7.0, 0.5 - 3.0 / 7.0], rtol=1e-14)
    fit_sigmoid([7.0, 7.0], [True, False])
    assert given[1][0].tolist() == [0.0, 0.0]
    fit_sigmoid([1.0, 2.0], [1, 0])
    np.testing.assert_allclose(given[2][1], [2 / 3, 1 / 3])


def test_where_scores_and_bias_are_the_same_the_shortest_step_is_taken(monkeypatch):
    monkeypatch.setattr(calibration, "MAX_ROUNDS", 1)
    t, c, ones = np.array([0.75, 0.75, 0.25]), np.ones(3), np.ones(3)
    p = expit(-0.5)
    whole = -np.sum(t - p) / (3 * p * (1 - p))
    a, b = calibration._newton(ones, t, 1 - t, c, 0.5)
    np.testing.assert_allclose([a, b - 0.5], [whole / 2, whole / 2], rtol=2e-2)
    monkeypatch.setattr(calibration, "RIDGE", 0.0)  # no direction is preferred: b alone moves
    a, b = calibration._newton(ones, t, 1 - t, c, 0.5)
    assert a == 0.0
    assert b - 0.5 == pytest.approx(whole, rel=1e-12)


@pytest.mark.parametrize(("shortest", "moves"), [(0.25, True), (0.26, False)])
def test_a_step_below_the_shortest_is_not_taken(monkeypatch, shortest, moves):
    monkeypatch.setattr(calibration, "SHORTEST", shortest)
    monkeypatch.setattr(calibration, "MAX_ROUNDS", 1)
    f, positive, c = shortened(181)  # a quarter of the step is taken
    A, B = fit_sigmoid(f, positive, c)
    assert (A != 0.0) == moves
    assert (pytest.approx(targets(positive, c)[1]) == B) != moves


def test_well_behaved_scores_take_few_rounds(monkeypatch):
    rounds = [rounds_of(monkeypatch, *odds(seed)) for seed in range(12)]
    assert max(rounds) <= 8
    assert min(rounds) >= 4
    assert rounds_of(monkeypatch, [0.0, 0.0], [True, False]) == 1  # the start is the end
    assert rounds_of(monkeypatch, [-1.0, 1.0, -1.0, 1.0], [True, False, False, True]) == 1


def test_a_fit_ends_after_two_hundred_rounds(monkeypatch):
    monkeypatch.setattr(calibration, "NOISE", -1.0)
    assert rounds_of(monkeypatch, *odds(0)) == 200


@pytest.mark.parametrize(("noise", "rounds"), [(2.0, 1), (1e-3, 5), (1e-6, 6), (2e-15, 7)])
def test_a_fit_ends_where_the_gradient_is_noise(monkeypatch, noise, rounds):
    monkeypatch.setattr(calibration, "NOISE", noise)
    assert rounds_of(monkeypatch, *odds(2)) <= rounds


def test_both_parts_of_the_gradient_must_vanish(monkeypatch):
    f, positive = np.array([-1.0, -0.5, 0.5, 1.0]), np.array([False, True, False, True])
    A, B = fit_sigmoid(f, positive)  # at the start the slope by b is zero, that by a is not
    assert pytest.approx(0.0, abs=1e-12) == B
    assert A < -0.1
    positive = np.array([True, False, False, False, True])
    f, c = np.array([-1.0, -1.0, 0.0, 1.0, 1.0]), np.array([1.0, 1.0, 3.0, 1.0, 1.0])
    A, B = fit_sigmoid(f, positive, c)  # ... the one by a is zero, that by b is not
    assert pytest.approx(0.0, abs=1e-12) == A
    t, _ = targets(positive, c)
    assert np.sum(c * (t - expit(-B))) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(("size", "known"), [(3e-307, True), (1.5e-307, True), (0.9e-307, False)])
def test_scores_may_be_as_small_as_numbers_are(size, known):
    f, positive = np.array([-1.0, -1.0, 0.0, 1.0, 1.0]), np.array([0, 1, 0, 1, 1], dtype=bool)
    A, B = fit_sigmoid(f, positive)
    A2, B2 = fit_sigmoid(size * f, positive)
    if known:
        np.testing.assert_allclose([A2 * size, B2], [A, B], rtol=1e-9)
    else:
        assert A2 == 0.0
        assert pytest.approx(np.log(0.42 / 0.58)) == B2  # the mean target is 0.58


def test_scores_may_be_as_large_as_numbers_are():
    f, positive = np.array([-1.0, -1.0, 0.0, 1.0, 1.0]), np.array([0, 1, 0, 1, 1], dtype=bool)
    A, B = fit_sigmoid(f, positive)
    A2, B2 = fit_sigmoid(1e300 * f, positive)
    np.testing.assert_allclose([A2 * 1e300, B2], [A, B], rtol=1e-9)


def test_weights_of_zero_are_no_rows():
    f, positive, _ = odds(3)
    c = np.arange(len(f)) % 3 * 1.0
    kept = c > 0
    assert fit_sigmoid(f, positive, c) == fit_sigmoid(f[kept], positive[kept], c[kept])


@pytest.mark.parametrize(
    ("weight", "positive", "message"),
    [
        (None, [True], "positive must have shape (2,), got (1,)"),
        ([0.0, 0.0], [True, False], "weight must have some positive and no negative entries"),
        ([1.0, -1.0], [True, False], "weight must have some positive and no negative entries"),
    ],
)
def test_what_cannot_be_fitted_is_one_whole_line(weight, positive, message):
    with pytest.raises(InputError) as e:
        fit_sigmoid([1.0, 2.0], positive, weight)
    assert str(e.value) == message


def test_the_sigmoid_is_one_over_one_plus_e_to_the_z():
    f = np.array([-800.0, -3.0, 0.0, 0.25, 3.0, 800.0])
    np.testing.assert_allclose(sigmoid(f, 2.0, -0.5), expit(-(2.0 * f - 0.5)), rtol=1e-13)
    many = sigmoid(f[:, None], np.array([1.0, -2.0]), np.array([0.0, 3.0]))
    np.testing.assert_allclose(many[:, 1], expit(2.0 * f - 3.0), rtol=1e-13)
    assert sigmoid([1e308], 1e308, 0.0).tolist() == [0.0]


# ---------------------------------------------------------------- coupling


def test_certain_pairs_are_clipped():
    p = couple([[[0.0, 1.0], [0.0, 0.0]]])
    np.testing.assert_allclose(p, [[1 - 1e-7, 1e-7]], rtol=1e-8)
    p = couple([[[0.5, 2e-7], [1 - 2e-7, 0.5]]])
    np.testing.assert_allclose(p, [[2e-7, 1 - 2e-7]], rtol=1e-8)


def test_coupling_of_three_classes_solves_its_own_equations():
    r = np.array([[0.9, 0.7, 0.2], [0.3, 0.1, 0.6], [0.8, 0.4, 0.5]])  # the diagonal says nothing
    Q = np.array(
        [
            [0.3**2 + 0.8**2, -0.7 * 0.3, -0.2 * 0.8],
            [-0.7 * 0.3, 0.7**2 + 0.4**2, -0.6 * 0.4],
            [-0.2 * 0.8, -0.6 * 0.4, 0.2**2 + 0.6**2],
        ]
    )
    bordered = np.block([[Q, np.ones((3, 1))], [np.ones((1, 3)), np.zeros((1, 1))]])
    expected = np.linalg.solve(bordered, [0, 0, 0, 1])[:3]
    np.testing.assert_allclose(couple([r, r.T])[0], expected, rtol=1e-12)
    assert couple(np.zeros((2, 1, 1))).tolist() == [[1.0], [1.0]]
    assert couple(np.zeros((0, 2, 2))).shape == (0, 2)


def test_rows_of_almost_nothing_are_shared_equally():
    scores = [[1e-290, 0.0], [1.5e-290, 0.0], [0.0, 0.0], [3.0, 1.0], [-1e-17, 0.5], [-2.0, -1.0]]
    got = normalise(scores).tolist()
    assert got == [[0.5, 0.5], [1.0, 0.0], [0.5, 0.5], [0.75, 0.25], [0.0, 1.0], [0.5, 0.5]]


# ---------------------------------------------------------------- votes


def test_votes_and_sums_of_four_classes_by_hand():
    row = [1.0, -2.0, 0.0, 4.0, -1.0, 2.0]  # of the pairs 01 02 03 12 13 23
    totals = np.array([-1.0, -1.0 + 4.0 - 1.0, 2.0 - 4.0 + 2.0, 0.0 + 1.0 - 2.0])
    expected = np.array([1, 1, 2, 2]) + totals / (3 * (np.abs(totals) + 1))
    assert vote([row], 4).tolist() == [2]
    np.testing.assert_allclose(ovo_decision([row], 4), [expected], rtol=1e-15)


def test_a_score_of_zero_speaks_for_the_second_class():
    assert vote([[0.0], [1e-300], [-1e-300]], 2).tolist() == [1, 0, 1]
    assert ovr_choice([0.0, 1e-300, -1e-300]).tolist() == [1, 0, 1]
    assert ovr_choice([[0.0, 0.0], [1.0, 1.0], [1.0, 2.0]]).tolist() == [0, 0, 1]


@pytest.mark.parametrize(("k", "columns"), [(3, 3), (4, 6), (2, 1)])
def test_scores_of_pairs_are_counted(k, columns):
    with pytest.raises(InputError) as e:
        vote(np.zeros((2, columns + 1)), k)
    expected = f"scores of {k} classes must have {columns} columns, got {columns + 1}"
    assert str(e.value) == expected


# ---------------------------------------------------------------- folds


def test_rows_are_dealt_out_class_by_class():
    y = np.array([2.0, 1.0, 2.0, 1.0, 3.0, 2.0, 1.0])
    shuffled = np.random.default_rng(5).permutation(7)
    expected, turn = np.empty(7), 0
    for label in (1.0, 2.0, 3.0):
        for row in shuffled:
            if y[row] == label:
                expected[row], turn = turn % 3, turn + 1
    assert stratified_folds(y, 3, 5).tolist() == expected.tolist()


@pytest.mark.parametrize("seed", [0, 1, 2**63 - 1])
def test_the_first_and_the_last_seed_and_number_of_folds(seed):
    assert sorted(stratified_folds([1, 2, 3], 3, seed).tolist()) == [0, 1, 2]
    assert sorted(stratified_folds([1, 2, 3], 2, seed).tolist()) == [0, 0, 1]


def test_the_seed_of_folds_is_zero_by_default():
    y = np.arange(50) % 2
    assert (stratified_folds(y, 4) == stratified_folds(y, 4, 0)).all()


@pytest.mark.parametrize(
    ("n_folds", "seed", "message"),
    [
        (4, 0, "n_folds must be a whole number from 2 to 3 (the number of rows), got 4"),
        (1, 0, "n_folds must be a whole number from 2 to 3 (the number of rows), got 1"),
        (True, 0, "n_folds must be a whole number from 2 to 3 (the number of rows), got True"),
        (2, -1, f"seed must be a whole number from 0 to {2**63 - 1}, got -1"),
        (2, 2**63, f"seed must be a whole number from 0 to {2**63 - 1}, got {2**63}"),
        (2, False, f"seed must be a whole number from 0 to {2**63 - 1}, got False"),
    ],
)
def test_what_cannot_be_folded_is_one_whole_line(n_folds, seed, message):
    with pytest.raises(InputError) as e:
        stratified_folds([1, 2, 3], n_folds, seed)
    assert str(e.value) == message


# ---------------------------------------------------------------- the thresholds of Newton's method


def one_row(t, b, c=1.0):
    """What Newton's method makes of a row whose score is 0: b alone moves."""
    a, b = calibration._newton(np.zeros(1), np.array([t]), np.array([1 - t]), np.array([c]), b)
    assert a == 0.0
    return b


@pytest.mark.parametrize(("off", "moves"), [(1e-15, False), (3e-15, True)])
def test_a_gradient_below_two_parts_in_a_million_billion_is_noise(off, moves):
    assert (one_row(0.5 + off, 0.0) != 0.0) == moves


@pytest.mark.parametrize(("noise", "moves"), [(0.25, False), (0.24, True)])
def test_a_gradient_that_equals_the_noise_is_noise(monkeypatch, noise, moves):
    monkeypatch.setattr(calibration, "NOISE", noise)
    assert (one_row(0.75, 0.0) != 0.0) == moves
    assert (one_row(0.75, 0.0, c=8.0) != 0.0) == moves


def gained(b):
    """By Newton's whole step from b, as a share of what the slope promises."""
    f, half, c = np.zeros(1), np.array([0.5]), np.ones(1)
    p = expit(-b)
    slope, step = 0.5 - p, -(0.5 - p) / (p * (1 - p))
    return (loss(0, b, f, half, c) - loss(0, b + step, f, half, c)) / -(slope * step)


@pytest.mark.parametrize(("share", "whole"), [(0.9e-4, False), (1.5e-4, True), (0.1, True)])
def test_a_ten_thousandth_of_the_promised_decrease_is_enough(monkeypatch, share, whole):
    monkeypatch.setattr(calibration, "MAX_ROUNDS", 1)
    b = brentq(lambda b: gained(b) - share, 1.0, 3.0, xtol=1e-14)
    p = expit(-b)
    step = -(0.5 - p) / (p * (1 - p))
    taken = (one_row(0.5, b) - b) / step
    assert taken == pytest.approx(1.0 if whole else 0.5, rel=1e-9)


def test_a_step_is_halved_until_a_ten_thousand_millionth(monkeypatch):
    class Counting:
        """NumPy that counts the values of the loss."""

        count = 0

        def __getattr__(self, name):
            Counting.count += name == "log1p"
            return getattr(np, name)

    monkeypatch.setattr(calibration, "np", Counting())
    monkeypatch.setattr(calibration, "SUFFICIENT", 1e9)  # no step is good enough
    assert one_row(0.75, 0.0) == 0.0
    assert Counting.count == 1 + 34  # 2⁻³⁴ is the first below 1e-10


# ---------------------------------------------------------------- precision


def test_single_precision_is_raised_before_anything_is_rounded():
    f = np.array([0.1, -2.3, 7.7], dtype=np.float32)
    assert np.array_equal(sigmoid(f, 1.1, 0.3), sigmoid(f.astype(float), 1.1, 0.3))
    p = np.array([[0.1, 0.3], [0.7, 0.2]], dtype=np.float32)
    assert np.array_equal(normalise(p), normalise(p.astype(float)))
    r = np.array([[[0, 0.1], [0.9, 0]]], dtype=np.float32)
    assert np.array_equal(couple(r), couple(r.astype(float)))


def test_the_diagonal_of_pairs_changes_no_bit():
    rng = np.random.default_rng(0)
    r = rng.random((5, 4, 4))
    other = r.copy()
    other[:, range(4), range(4)] = rng.random((5, 4))
    assert np.array_equal(couple(r), couple(other))
