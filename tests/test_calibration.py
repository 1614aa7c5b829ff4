"""Sigmoids and coupling against optimisers, LIBSVM and their own definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from nesvm_jit import InputError
from nesvm_jit.machine.calibration import couple, fit_sigmoid, normalise, sigmoid
from nesvm_jit.machine.multiclass import pairs
from scipy.optimize import minimize
from scipy.special import expit

from .data import scores_and_counts

pytestmark = pytest.mark.pure


def loss(A, B, f, positive, c):
    """Platt's negative log-likelihood, and its gradient."""
    n, m = c[positive].sum(), c[~positive].sum()
    t = np.where(positive, (n + 1) / (n + 2), 1 / (m + 2))
    z = A * f + B
    value = c @ (t * np.logaddexp(0, z) + (1 - t) * np.logaddexp(0, -z))
    slope = c * (t - expit(-z))
    return value, np.array([slope @ f, slope.sum()])


@pytest.mark.parametrize("seed", range(6))
def test_the_sigmoid_minimises_the_log_likelihood(seed):
    f, positive, c = scores_and_counts(seed)
    c = c if seed % 2 else np.ones(len(f))
    best = minimize(
        lambda v: loss(*v, f, positive, c), [0, 0], jac=True, method="BFGS", options={"gtol": 1e-7}
    )
    got = fit_sigmoid(f, positive, c)
    np.testing.assert_allclose(got, best.x, rtol=1e-6, atol=1e-7)
    assert np.abs(loss(*got, f, positive, c)[1]).max() < 1e-9
    assert all(type(v) is float for v in got)


def test_a_weight_is_so_many_rows():
    f, positive, c = scores_and_counts(7)
    n = c.astype(int)
    expected = fit_sigmoid(np.repeat(f, n), np.repeat(positive, n))
    np.testing.assert_allclose(fit_sigmoid(f, positive, c), expected, rtol=1e-9)


@pytest.mark.parametrize(("shift", "scale"), [(0, 1e-9), (1e3, 1), (0, 1e100), (-7, 1e-3)])
def test_the_sigmoid_follows_a_change_of_units(shift, scale):
    f, positive, _ = scores_and_counts(8)
    A, B = fit_sigmoid(f, positive)
    A2, B2 = fit_sigmoid(scale * (f + shift), positive)
    np.testing.assert_allclose([A2 * scale, B2 + A2 * scale * shift], [A, B], rtol=1e-8)


@pytest.mark.parametrize("at", [30.0, 1e3, -1e6, 1e15])
def test_the_gradient_vanishes_with_an_outlier(at):
    f, positive, _ = scores_and_counts(9)
    f, positive, ones = np.append(f, at), np.append(positive, True), np.ones(len(f) + 1)
    gradient = loss(*fit_sigmoid(f, positive), f, positive, ones)[1]
    np.testing.assert_allclose(gradient / [np.abs(f).sum(), len(f)], 0, atol=1e-12)


@pytest.mark.parametrize("seed", range(40))
def test_the_gradient_vanishes_with_weights_of_any_size(seed):
    rng = np.random.default_rng(seed)
    f, positive, _ = scores_and_counts(seed, n=rng.integers(2, 30), flip=seed % 3 / 3)
    c = 10 ** rng.uniform(-3, 5, len(f))
    gradient = loss(*fit_sigmoid(f, positive, c), f, positive, c)[1]
    np.testing.assert_allclose(gradient / [c @ np.abs(f), c.sum()], 0, atol=1e-14)


@pytest.mark.parametrize(
    ("f", "positive"),
    [
        ([2.0] * 9, [True] * 3 + [False] * 6),
        ([0.0] * 4, [True] * 2 + [False] * 2),
        ([-1e300] * 5 + [1e300] * 5, [False] * 5 + [True] * 5),
        ([-1.7e308, 1.7e308, 1.0], [True, False, True]),
        ([-5e-324, 5e-324, 0.0], [True, False, True]),
        ([1.0, np.nextafter(1, 2)] * 5, [True, False] * 5),
        (np.arange(1000.0), np.arange(1000) == 999),
        (np.arange(1000.0), np.arange(1000) == 0),
        ([1.0, 2.0], [True, True]),
        ([1.0, 2.0], [False, False]),
        ([3.0], [True]),
        ([-1.0] * 10**5 + [1e-9] * 10**5, [False] * 10**5 + [True] * 10**5),
    ],
)
def test_odd_data_give_finite_sigmoids(f, positive):
    f, positive = np.asarray(f), np.asarray(positive)
    A, B = fit_sigmoid(f, positive)
    p = sigmoid(f, A, B)
    assert np.isfinite([A, B]).all()
    assert ((p >= 0) & (p <= 1)).all()
    n, m = positive.sum(), (~positive).sum()
    mean_target = (n * (n + 1) / (n + 2) + m / (m + 2)) / (n + m)
    assert p.mean() == pytest.approx(mean_target, abs=1e-6)  # as dF/dB = 0 demands


def test_arguments_that_cannot_be_fitted():
    for f, positive, weight, message in (
        ([1.0, 2.0], [True], None, r"positive must have shape \(2,\), got \(1,\)"),
        ([], [], None, "weight must have some positive"),
        ([1.0, 2.0], [True, False], [0, 0], "weight must have some positive"),
        ([1.0, 2.0], [True, False], [2, -1], "no negative"),
        ([1.0, np.nan], [True, False], None, "decisions must be finite"),
    ):
        with pytest.raises(InputError, match=message):
            fit_sigmoid(f, positive, weight)


finite = st.floats(allow_nan=False, allow_infinity=False)


@given(hnp.arrays(float, st.integers(1, 20), elements=finite), st.data(), st.floats(0.01, 100))
def test_fits_of_anything_are_finite_and_monotone(f, data, weight):
    positive = data.draw(hnp.arrays(bool, len(f)))
    A, B = fit_sigmoid(f, positive, weight)
    assert np.isfinite([A, B]).all()
    p = sigmoid(np.sort(f), A, B)
    assert (np.diff(p) * -np.sign(A) >= 0).all()
    assert ((p >= 0) & (p <= 1)).all()


@given(hnp.arrays(float, 5, elements=finite), st.floats(-1e3, 1e3), st.floats(-1e3, 1e3))
def test_the_sigmoid_is_monotone_and_symmetric(f, A, B):
    p = sigmoid(np.sort(f), A, B)
    assert (np.diff(p) * -np.sign(A) >= 0).all()
    np.testing.assert_allclose(sigmoid(f, A, B) + sigmoid(f, -A, -B), 1, rtol=1e-15)


def test_the_sigmoid_keeps_its_far_ends():
    np.testing.assert_allclose(sigmoid([700.0, -40.0, 0], 1, 0), [np.exp(-700.0), 1, 0.5])
    assert sigmoid([1e300, -1e300], -1e300, 1).tolist() == [1, 0]
    columns = sigmoid(np.ones((3, 2)), np.array([1.0, -1.0]), np.array([0.0, 2.0]))
    np.testing.assert_allclose(columns, np.tile(expit([-1.0, -1.0]), (3, 1)))


# ---------------------------------------------------------------- coupling


def square(upper, k):
    """r (n, k, k) from the values of its pairs, (n, k(k−1)/2)."""
    r = np.zeros((len(upper), k, k))
    for c, (i, j) in enumerate(pairs(k)):
        r[:, i, j], r[:, j, i] = upper[:, c], 1 - upper[:, c]
    return r


@st.composite
def pairwise(draw_):
    k = draw_(st.integers(2, 7))
    unit = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0, 1e-9, 0.5]))
    return square(draw_(hnp.arrays(float, (3, k * (k - 1) // 2), elements=unit)), k)


def test_coupling_solves_the_bordered_system():
    rng = np.random.default_rng(0)
    r = square(rng.random((20, 10)), 5)
    assert len(r) == 20
    for row, p in zip(r, couple(r), strict=True):
        Q = -row.T * row
        np.fill_diagonal(Q, (row.T**2).sum(axis=1))
        K = np.block([[Q, np.ones((5, 1))], [np.ones((1, 5)), np.zeros((1, 1))]])
        np.testing.assert_allclose(p, np.linalg.solve(K, [0, 0, 0, 0, 0, 1])[:5], rtol=1e-12)


@given(pairwise())
def test_coupled_probabilities_are_no_worse_than_any_others(r):
    p = couple(r)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-14)
    assert (p >= 0).all()
    r = np.clip(r, 1e-7, 1 - 1e-7)

    def distance(p):
        return np.square(r.transpose(0, 2, 1) * p[:, :, None] - r * p[:, None, :]).sum((1, 2))

    others = np.random.default_rng(0).dirichlet(np.ones(r.shape[1]), size=50)
    for q in (*others, *np.eye(r.shape[1])):
        for near in (q, 0.999 * p + 0.001 * q):
            # the terms i = j are 0 for every p
            assert (distance(p) <= distance(np.broadcast_to(near, p.shape)) + 1e-14).all()


@given(hnp.arrays(float, st.integers(0, 9), elements=st.floats(0, 1)))
def test_two_classes_are_their_pair(r):
    p = couple(square(r[:, None], 2))
    np.testing.assert_allclose(p[:, 0], np.clip(r, 1e-7, 1 - 1e-7), rtol=1e-8, atol=1e-15)


def test_consistent_pairs_give_back_their_probabilities():
    p = np.random.default_rng(1).dirichlet(np.ones(6), size=50)
    r = p[:, :, None] / (p[:, :, None] + p[:, None, :])
    np.testing.assert_allclose(couple(r), p, rtol=1e-4, atol=1e-6)


def test_one_class_is_certain_and_shapes_are_checked():
    assert couple(np.full((2, 1, 1), 0.5)).tolist() == [[1.0], [1.0]]
    with pytest.raises(InputError, match=r"pairwise must have shape \(n, k, k\), got \(2, 3\)"):
        couple(np.ones((2, 3)))


def libsvm_iteration(r):
    """Wu, Lin and Weng's Algorithm 2 with LIBSVM's stopping rule, for one row."""
    k = len(r)
    Q = -r.T * r
    np.fill_diagonal(Q, (r.T**2).sum(axis=1) - np.diag(r) ** 2)
    p = np.full(k, 1 / k)
    for _ in range(max(100, k)):
        if np.abs(Q @ p - p @ Q @ p).max() < 0.005 / k:
            break
        for t in range(k):
            p[t] += (p @ Q @ p - Q[t] @ p) / Q[t, t]
            p /= p.sum()
    return p


def test_coupling_is_libsvm_s_within_its_tolerance():
    """LIBSVM itself, through scikit-learn's binding, with sigmoids that are given to it."""
    libsvm = pytest.importorskip("sklearn.svm._libsvm")
    datasets = pytest.importorskip("sklearn.datasets")
    X, y = datasets.load_wine(return_X_y=True)
    X = np.ascontiguousarray((X - X.mean(0)) / X.std(0))[:, :4].copy()
    y = y.astype(float)
    options = {"svm_type": 0, "kernel": "rbf", "gamma": 0.2}
    fitted = libsvm.fit(X, y, probability=0, **options)
    support, vectors, n_support, coef, intercept = fitted[:5]
    A, B = np.array([-1.5, -2.0, -0.7]), np.array([0.1, -0.2, 0.3])
    model = (support, vectors, n_support, coef, intercept, A, B)
    theirs = libsvm.predict_proba(X, *model, **options)
    scores = libsvm.decision_function(X, *model, **options)
    r = np.clip(square(sigmoid(scores, A, B), 3), 1e-7, 1 - 1e-7)
    np.testing.assert_allclose(theirs, [libsvm_iteration(row) for row in r], atol=1e-9)
    np.testing.assert_allclose(couple(r), theirs, atol=0.01)


def test_the_sigmoid_is_libsvm_s():
    """Of separable rows repeated often every fold has the same machine, hence LIBSVM's own
    cross-validation meets the decision values of the whole."""
    libsvm = pytest.importorskip("sklearn.svm._libsvm")
    points, repeats = np.array([[-3.0], [-1.5], [-1.0], [1.0], [2.0]]), 40
    X, y = np.repeat(points, repeats, axis=0), np.repeat([0.0, 0, 0, 1, 1], repeats)
    options = {"svm_type": 0, "kernel": "linear", "C": 100.0, "tol": 1e-9, "random_seed": 1}
    *_, A, B, _, _ = libsvm.fit(X, y, probability=1, **options)
    # the binding's class 0 is LIBSVM's first label; f = −x is positive for it
    ours = fit_sigmoid(-X[:, 0], y == 0)
    np.testing.assert_allclose([A[0], B[0]], ours, rtol=1e-3, atol=1e-3)


def test_the_sigmoid_is_scikit_learn_s():
    calibration = pytest.importorskip("sklearn.calibration")
    f, positive, c = scores_and_counts(3)
    theirs = calibration._sigmoid_calibration(f, positive.astype(int), c)
    np.testing.assert_allclose(fit_sigmoid(f, positive, c), theirs, rtol=1e-3, atol=1e-3)


# ---------------------------------------------------------------- the rest


@given(hnp.arrays(float, (4, 3), elements=st.floats(0, 1)))
def test_normalised_rows_sum_to_one_and_keep_their_order(p):
    q = normalise(p)
    np.testing.assert_allclose(q.sum(axis=1), 1)
    assert (np.diff(q) * np.sign(np.diff(p)) >= 0).all()


def test_nothing_at_all_is_shared_equally():
    assert normalise([[0.0, 0.0], [1.0, 3.0]]).tolist() == [[0.5, 0.5], [0.25, 0.75]]
