"""The loops over dual variables, step by step: coordinate ascent of a linear machine, steps of one
or two coordinates and Newton's steps of a kernel machine."""

import numpy as np
import pytest
from nesvm_jit.kernels import coordinate
from nesvm_jit.kernels.coordinate import Epoch, _dual_epoch, _shuffle, dual_rows
from nesvm_jit.kernels.dual_newton import _newton_steps
from nesvm_jit.kernels.pairwise import _add_rows, _block, _dual_steps
from nesvm_jit.matrix.checks import as_matrix
from scipy.sparse import csr_matrix

from . import oracle
from .conftest import PURE

pytestmark = pytest.mark.pure
both_ways = pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])

# ---------------------------------------------------------------- coordinate ascent


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 100])
def test_rows_of_the_dual_lie_in_lines_of_the_cache(n):
    for _ in range(10):
        dual = dual_rows(n)
        assert dual.shape == (n, 8)
        assert dual.ctypes.data % 64 == 0 or n == 0
        assert dual.flags.c_contiguous
        assert not dual.any()


def shuffled(order, x):
    """Fisher and Yates with xorshift64*, in Python's whole numbers."""
    order, n, all_bits = list(order), len(order), 2**64 - 1
    for k in range(n - 1):
        x ^= x >> 12
        x ^= (x << 25) & all_bits
        x ^= x >> 27
        drawn = ((x * 2685821657736338717) & all_bits) >> 32
        j = k + ((drawn * (n - k)) >> 32)
        order[k], order[j] = order[j], order[k]
    return order, x


@pytest.mark.parametrize(("n", "seed"), [(0, 1), (1, 1), (2, 7), (10, 7), (50, 2**64 - 59)])
def test_shuffles_are_those_of_xorshift(n, seed):
    order, state = np.arange(n) * 3, np.array([seed], np.uint64)
    for _ in range(3):
        expect, x = shuffled(order.tolist(), int(state[0]))
        _shuffle(order, state)
        assert order.tolist() == expect
        assert int(state[0]) == x


def still(r, alpha, upper, before, share=0.0):
    """An epoch over rows whose residuals are r and whose steps are nothing; d = 0."""
    n = len(r)
    X = as_matrix(1.0 - np.asarray(r)[:, None])
    dual, order = dual_rows(n), np.arange(n)
    for column, value in enumerate((1.0, alpha, 0.0, upper, 0.0, np.inf)):
        dual[:, column] = value
    w = np.array([1.0])
    found, kept = _dual_epoch(X, X.reshape(-1), dual, order, before, share, w)
    assert w.tolist() == [1.0]
    return found, order[:kept].tolist()


@pytest.mark.parametrize(
    ("r", "alpha", "kept", "highest", "lowest"),
    [
        ([-0.25], 0.0, [0], -np.inf, np.inf),  # at its bound, but not far out
        ([-0.5], 0.0, [0], -np.inf, np.inf),  # as far as one that moved
        ([-0.625], 0.0, [], -np.inf, np.inf),
        ([0.25], 2.0, [0], -np.inf, np.inf),
        ([0.75], 2.0, [0], -np.inf, np.inf),
        ([0.875], 2.0, [], -np.inf, np.inf),
        ([0.0], 0.0, [0], 0.0, 0.0),
        ([0.0], 2.0, [0], 0.0, 0.0),
        ([5.0], 0.0, [0], 5.0, 5.0),  # into the box
        ([-5.0], 2.0, [0], -5.0, -5.0),
        ([-5.0], 1.0, [0], -5.0, -5.0),
        ([5.0], 1.0, [0], 5.0, 5.0),
        ([3.0, -9.0, 1.0, -2.0], [1.0, 0.0, 1.0, 1.0], [0, 2, 3], 3.0, -2.0),
    ],
)
def test_rows_at_their_bounds_are_set_aside(r, alpha, kept, highest, lowest):
    found, left = still(r, alpha, 2.0, Epoch(0.75, -0.5, 0.0, 0.0, 0.0, 0.0, 0.0))
    assert left == kept
    assert (found.highest, found.lowest) == (highest, lowest)


def test_an_epoch_without_steps_updates_the_loss_alone():
    before = Epoch(np.inf, -np.inf, 0.0, 1.0, 2.0, 3.0, 4.0)
    found, _ = still([0.5, -1.0, 2.0], 1.0, 2.0, before, share=0.5)
    assert found == Epoch(2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0 + 1.0 + 4.0)


@pytest.mark.parametrize("layout", [np.asarray, csr_matrix], ids=["dense", "CSR"])
def test_one_step_by_hand(layout):
    X = as_matrix(layout(np.array([[2.0, 0.0], [0.0, 1.0]])))
    dual, order, w = dual_rows(2), np.array([1, 0]), np.array([0.25, -1.0])
    # y, α, lower, upper, d, curvature, r as last seen
    dual[0, :7] = [-1.0, 0.5, 0.0, np.inf, 0.5, 5.0, 3.0]
    dual[1, :7] = [1.0, 0.25, 0.0, 1.0, 0.25, 1.5, -1.0]
    flat = X.reshape(-1) if layout is np.asarray else X.data
    found, kept = _dual_epoch(
        X, flat, dual, order, Epoch(9.0, -9.0, 0.5, 10.0, 20.0, 30.0, 40.0), 0.5, w
    )
    # row 1: r = 1.5, g = 1.4375, α → min(0.25 + 0.958…, 1) = 1, b → 0.875, w₁ → −0.25
    # row 0: r = 1 + (0.5 + 0.875) = 2.375, g = 2.125, α → 0.5 + 0.425, w₀ → 0.25 − 0.85
    assert kept == 2
    assert order.tolist() == [1, 0]
    np.testing.assert_allclose(dual[:, coordinate.ALPHA], [0.925, 1.0])
    np.testing.assert_allclose(dual[:, coordinate.RESIDUAL], [2.375, 1.5])
    np.testing.assert_allclose(w, [-0.6, -0.25])
    squares = 30 + 0.25 * (1 - 0.0625) + 0.5 * (0.925**2 - 0.25)
    loss = 40 + 1.5 + (2.375**2 - 9.0)
    expect = (
        2.125,
        1.4375,
        0.5 + 0.375 - 0.2125,
        10.0 + 0.75 + 0.425,
        20.75 - 0.425,
        squares,
        loss,
    )
    np.testing.assert_allclose(found, expect)


@pytest.mark.skipif(not PURE, reason="compiled code asks the processor itself")
@pytest.mark.parametrize("layout", [np.asarray, csr_matrix], ids=["dense", "CSR"])
def test_rows_are_asked_for_eight_and_sixteen_ahead(monkeypatch, layout):
    asked = []
    monkeypatch.setattr(
        coordinate, "prefetch", lambda array, at: asked.append((id(array), int(at)))
    )
    X = as_matrix(layout(np.eye(20, 3) + 1.0))
    dual, order = dual_rows(20), np.arange(20)[::-1].copy()
    dual[:, :6] = [1.0, 0.0, 0.0, 1.0, 0.0, 1.0]
    flat = X.reshape(-1) if layout is np.asarray else X.data
    _dual_epoch(
        X, flat, dual, order.copy(), Epoch(9.0, -9.0, 0.0, 0.0, 0.0, 0.0, 0.0), 0.0, np.zeros(3)
    )
    expect = []
    for k in range(4):
        near, far = int(order[k + 8]), int(order[k + 16])
        if layout is np.asarray:
            expect += [far * 8, near * 3]
        else:
            expect += [far * 8, far, near * 3, near * 3, near * 3 + 8]
    assert [at for _, at in asked] == expect
    others = {id(flat)} if layout is np.asarray else {id(X.indptr), id(X.indices), id(X.data)}
    assert others <= {array for array, _ in asked}


# ---------------------------------------------------------------- steps of one or two coordinates


def dual_steps(Q, lower, upper, bias, threshold, most, beta, e):
    """The same by NumPy, one step after the other: β, e and the steps."""
    beta, e, d = beta.copy(), e.copy(), np.diag(Q)
    for step in range(most):
        rise = np.where(beta < upper, e, -np.inf)
        fall = np.where(beta > lower, -e, -np.inf)
        i = int(np.argmax(rise))
        if (rise[i] + fall.max() if bias else max(rise[i], fall.max())) <= threshold:
            return beta, e, step
        eta = np.maximum(d[i] + d - 2 * Q[i], 1e-12)
        j = int(np.argmax(np.maximum(rise[i] + fall, 0) ** 2 / eta))
        t = min((e[i] - e[j]) / eta[j], upper[i] - beta[i], beta[j] - lower[j])
        change = np.zeros(len(beta))
        change[i], change[j] = t, -t
        won = t * (e[i] - e[j] - 0.5 * eta[j] * t) if rise[i] + fall.max() > 0 else 0.0
        curved = np.maximum(d, 1e-12)
        alone = np.clip(e / curved, lower - beta, upper - beta)
        gain = alone * (e - 0.5 * curved * alone)
        if not bias and gain.max() >= won:
            change[:] = 0.0
            change[np.argmax(gain)] = alone[np.argmax(gain)]
        beta = np.clip(beta + change, lower, upper)
        e -= Q @ change
    return beta, e, most


def box(y, c):
    return np.where(y > 0, 0.0, -c), np.where(y > 0, c, 0.0)


def kernel_of(n, seed, scale=1.0):
    X = np.random.default_rng(seed).normal(size=(n, 3))
    return scale * oracle.gram(X, X, "rbf", 0.4, 0.0, 3)


@both_ways
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize(("n", "seed"), [(2, 0), (7, 1), (8, 2), (19, 3), (33, 4)])
def test_steps_of_one_or_two_coordinates_one_by_one(bias, scale, n, seed):
    Q, rng = kernel_of(n, seed, scale), np.random.default_rng(seed)
    y, c = np.where(np.arange(n) % 2, 1.0, -1.0), rng.uniform(0.1, 2, n) / scale
    lower, upper = box(y, c)
    beta, e = np.zeros(n), y.copy()
    for most in (1, 1, 3, 8):
        want = dual_steps(Q, lower, upper, bias, 1e-3, most, beta, e)
        found = _dual_steps(Q, np.diag(Q).copy(), lower, upper, bias, 1e-3, most, beta, e)
        assert found == want[2]
        np.testing.assert_allclose(beta * scale, want[0] * scale, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(e, want[1], rtol=1e-9, atol=1e-11)
    assert ((beta >= lower) & (beta <= upper)).all()


@pytest.mark.parametrize("n", [1, 7, 8, 15, 16, 17, 33])
def test_the_steepest_coordinate_is_found_wherever_it_is(n):
    assert n > 0
    free = np.full(n, 100.0)
    for k in range(n):
        for sign in (1.0, -1.0):
            e, beta = np.full(n, 0.25 * sign), np.zeros(n)
            e[k] = 3.0 * sign
            assert _dual_steps(np.eye(n), np.ones(n), -free, free, False, 1.0, 9, beta, e) == 1
            assert beta[k] == 3.0 * sign
            assert np.count_nonzero(beta) == 1
            assert e[k] == 0.0
            assert (np.delete(e, k) == 0.25 * sign).all()


@pytest.mark.parametrize("n", [2, 9, 17, 24, 33])
def test_the_best_pair_is_found_wherever_it_is(n):
    assert n > 1
    free = np.full(n, 100.0)
    for i in range(n):
        j = (i * 7 + 3) % n
        if i == j:
            continue
        e, beta = np.zeros(n), np.zeros(n)
        e[i], e[j] = 3.0, -2.0
        assert _dual_steps(np.eye(n), np.ones(n), -free, free, True, 0.5, 1, beta, e) == 1
        assert (beta[i], beta[j]) == (2.5, -2.5)
        assert (e[i], e[j]) == (0.5, 0.5)
        assert np.count_nonzero(beta) == 2


def test_equal_coordinates_take_the_first():
    e, beta, free = np.full(20, 1.0), np.zeros(20), np.full(20, 100.0)
    _dual_steps(np.eye(20), np.ones(20), -free, free, False, 0.5, 1, beta, e)
    assert np.flatnonzero(beta).tolist() == [0]
    e, beta = np.where(np.arange(20) < 17, 1.0, -1.0), np.zeros(20)
    _dual_steps(np.eye(20), np.ones(20), -free, free, True, 0.5, 1, beta, e)
    assert (np.flatnonzero(beta).tolist(), beta[0], beta[17]) == ([0, 17], 1.0, -1.0)


def test_equal_coordinates_far_on_take_the_first_too():
    e, beta, free = np.full(33, 0.25), np.zeros(33), np.full(33, 100.0)
    e[[17, 20, 32]] = 1.0
    _dual_steps(np.eye(33), np.ones(33), -free, free, False, 0.5, 1, beta, e)
    assert np.flatnonzero(beta).tolist() == [17]


def test_bounds_are_met_exactly_where_sums_would_round():
    for start, bound in ((0.67, 1.7), (0.4, 1.8), (0.13, 1.2)):
        assert start + (bound - start) < bound
        beta, e = np.array([start, -start]), np.array([9.0, -9.0])
        upper = np.array([bound, bound])
        _dual_steps(np.eye(2), np.ones(2), -upper, upper, True, 0.5, 1, beta, e)
        assert beta.tolist() == [bound, -bound]


def test_one_coordinate_goes_before_a_pair_that_gains_as_much():
    Q, e, beta, free = np.diag([1.0, 3.0]), np.array([1.0, -1.0]), np.zeros(2), np.full(2, 9.0)
    _dual_steps(Q, np.diag(Q).copy(), -free, free, False, 0.5, 1, beta, e)
    assert beta.tolist() == [1.0, 0.0]
    assert e.tolist() == [0.0, -1.0]


@both_ways
def test_steps_end_at_the_threshold(bias):
    free = np.full(2, 9.0)
    for threshold, steps in ((1.0, 0), (0.99, 1)):
        e, beta = (np.array([0.5, -0.5]) if bias else np.array([1.0, 0.0])), np.zeros(2)
        found = _dual_steps(np.eye(2), np.ones(2), -free, free, bias, threshold, 5, beta, e)
        assert found == steps
        assert beta.any() == bool(steps)


def test_steps_end_when_there_have_been_enough():
    Q, y = kernel_of(9, 0), np.where(np.arange(9) % 2, 1.0, -1.0)
    for most in (0, 1, 4):
        found = _dual_steps(
            Q, np.diag(Q).copy(), *box(y, 9.0), True, 0.0, most, np.zeros(9), y.copy()
        )
        assert found == most


@both_ways
def test_directions_without_curvature_have_a_least_one(bias):
    free, e, beta = np.full(2, 1e20), np.array([1.0, -1.0]), np.zeros(2)
    _dual_steps(np.zeros((2, 2)), np.zeros(2), -free, free, bias, 0.5, 1, beta, e)
    assert beta.tolist() == [2e12, -2e12]
    beta = np.zeros(1)
    if not bias:
        _dual_steps(np.zeros((1, 1)), np.zeros(1), -free, free, bias, 0.5, 1, beta, np.ones(1))
        assert beta.tolist() == [1e12]


@both_ways
def test_equal_rows_of_both_classes_go_to_their_bounds_exactly(bias):
    c = np.array([0.1 + 0.2, 0.7])
    y, beta, e = np.array([1.0, -1.0]), np.zeros(2), np.array([1.0, -1.0])
    found = _dual_steps(np.ones((2, 2)), np.ones(2), *box(y, c), bias, 1e-3, 50, beta, e)
    want = dual_steps(np.ones((2, 2)), *box(y, c), bias, 1e-3, 50, np.zeros(2), y)
    assert found == want[2]
    assert beta[0] == c[0]
    np.testing.assert_allclose(beta, want[0], rtol=1e-12)
    np.testing.assert_allclose(e, want[1], atol=1e-12)


@both_ways
def test_steps_from_the_bounds_lead_inside(bias):
    Q, y, c = kernel_of(8, 5), np.where(np.arange(8) % 2, 1.0, -1.0), np.full(8, 0.6)
    lower, upper = box(y, c)
    beta = np.where(y > 0, upper, lower)
    e = y - Q @ beta
    for most in (1, 2, 30):
        want = dual_steps(Q, lower, upper, bias, 1e-3, most, beta, e)
        found = _dual_steps(Q, np.diag(Q).copy(), lower, upper, bias, 1e-3, most, beta, e)
        assert found == want[2]
        np.testing.assert_allclose(beta, want[0], rtol=1e-9, atol=1e-12)


# ---------------------------------------------------------------- rows of a kernel matrix


@pytest.mark.parametrize("m", [0, 1, 3, 4, 5, 8, 11])
@pytest.mark.parametrize("n", [1, 512, 513])
def test_rows_are_added_four_at_a_time(m, n):
    rng = np.random.default_rng(m)
    K, slots, a, out = (
        rng.normal(size=(12, n)),
        rng.permutation(12)[:m],
        rng.normal(size=m),
        rng.random(n),
    )
    K.flags.writeable = False  # as stores are
    expect = oracle.add_rows(K, slots, a, out)
    _add_rows(K, slots, a, out)
    np.testing.assert_allclose(out, expect, rtol=1e-11, atol=1e-13)


def test_blocks_of_a_kernel_matrix():
    K, out = np.arange(30.0).reshape(5, 6), np.full((4, 4), -1.0)
    K.flags.writeable = False
    _block(K, np.array([4, 0]), np.array([1, 3]), np.array([5, 2, 2]), out)
    assert out.tolist() == [[-1] * 4, [29, 26, 26, -1], [-1] * 4, [5, 2, 2, -1]]


# ---------------------------------------------------------------- Newton's steps


def newton_steps(Q, lower, upper, bias, ridge, beta, e):
    """The same by NumPy: β, e and the steps."""
    beta, e, steps = beta.copy(), e.copy(), 0
    F = np.flatnonzero((lower < beta) & (beta < upper))
    while len(F) > bias:
        H = Q[np.ix_(F, F)] + ridge * np.eye(len(F))
        step, level = np.linalg.solve(H, e[F]), np.linalg.solve(H, np.ones(len(F)))
        if bias:
            step -= step.sum() / level.sum() * level
        room = np.where(step > 0, upper[F], lower[F]) - beta[F]
        shares = np.where(np.abs(step) > np.abs(room), room / np.where(step == 0, 1, step), 1.0)
        t, steps = min(1.0, shares.min()), steps + 1
        out = (shares == t) & (np.abs(step) > np.abs(room)) | (t * np.abs(step) >= np.abs(room))
        e -= Q[:, F] @ (t * step)
        beta[F] = np.where(out, beta[F] + room, np.clip(beta[F] + t * step, lower[F], upper[F]))
        if not out.any():
            break
        F = F[~out]
    return beta, e, steps


@both_ways
@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize(("n", "seed"), [(1, 0), (2, 1), (6, 2), (12, 3), (12, 4), (15, 5)])
def test_newtons_steps_one_by_one(bias, ridge, scale, n, seed):
    rng = np.random.default_rng(seed)
    Q = kernel_of(n, seed, scale) + 0.05 * scale * np.eye(n)
    y, c = rng.choice([-1.0, 1.0], n), rng.uniform(0.05, 3, n) / scale
    lower, upper = box(y, c)
    beta = lower + (upper - lower) * rng.uniform(0.1, 0.9, n)
    beta[3:4], beta[4:5] = lower[3:4], upper[4:5]
    e = y - Q @ beta
    want = newton_steps(Q, lower, upper, bias, ridge * scale, beta, e)
    found = _newton_steps(Q, lower, upper, bias, ridge * scale, beta, e)
    assert found == want[2]
    np.testing.assert_allclose(beta * scale, want[0] * scale, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(e, want[1], rtol=1e-8, atol=1e-9)
    assert ((beta >= lower) & (beta <= upper)).all()


def test_newtons_step_by_hand():
    side, beta, e = np.full(2, 5.0), np.zeros(2), np.array([2.0, -8.0])
    assert _newton_steps(np.diag([1.0, 4.0]), -side, side, False, 0.0, beta, e) == 1
    assert beta.tolist() == [2.0, -2.0]
    assert e.tolist() == [0.0, 0.0]
    beta, e = np.zeros(2), np.array([2.0, -4.0])
    assert _newton_steps(np.eye(2), -side, side, True, 3.0, beta, e) == 1
    assert beta.tolist() == [0.75, -0.75]
    assert e.tolist() == [1.25, -3.25]


def test_samples_that_reach_their_bounds_together_are_left_there_together():
    for sign in (1.0, -1.0):
        upper, beta = np.array([1.0, 1.0, 9.0]), sign * np.full(3, 0.5)
        e = sign * np.array([1.0, 1.0, 3.0])
        assert _newton_steps(np.eye(3), -upper, upper, False, 0.0, beta, e) == 2
        assert beta.tolist() == [sign, sign, 3.5 * sign]
        assert e.tolist() == [0.5 * sign, 0.5 * sign, 0.0]
    upper, beta, e = np.array([2.0, 9.0]), np.zeros(2), np.array([2.0, 3.0])  # exactly to a bound
    assert _newton_steps(np.eye(2), -upper, upper, False, 0.0, beta, e) == 2
    assert beta.tolist() == [2.0, 3.0]


@pytest.mark.parametrize(("bias", "inside", "steps"), [(False, 0, 0), (True, 1, 0), (False, 1, 1)])
def test_too_few_samples_inside_are_no_step(bias, inside, steps):
    upper, beta = np.full(3, 2.0), np.full(3, 2.0)
    beta[:inside] = 0.0
    e = np.ones(3)
    assert _newton_steps(np.eye(3), -upper, upper, bias, 0.0, beta, e) == steps
    assert beta.tolist() == ([1.0, 2.0, 2.0] if steps else [0.0] * inside + [2.0] * (3 - inside))
