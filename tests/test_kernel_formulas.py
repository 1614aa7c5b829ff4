"""Every formula of the kernel problem, its rows and its smoothed form against plain NumPy, with
costs of zero, kernels of other sizes and a rounding large enough to be seen."""

import numpy as np
import pytest
from nesvm_jit.kernels.loss import HINGE, SQUARE
from nesvm_jit.kernels.public import as_spec
from nesvm_jit.matrix.checks import as_matrix
from nesvm_jit.models import MODELS, Smoothing
from nesvm_jit.problems import kernel as kernel_problem
from nesvm_jit.problems import kernel_rows
from nesvm_jit.problems.kernel import KernelProblem, KernelRows
from nesvm_jit.problems.kernel_errors import entry_error
from nesvm_jit.problems.smoothed_kernel import SmoothedKernel
from scipy.sparse import csr_matrix

from . import oracle

MU = Smoothing(9.0, 0.7)
EPS = 2.0**-10
every_loss = pytest.mark.parametrize("loss", [HINGE, SQUARE], ids=["hinge", "square"])
every_bias = pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
approx = pytest.approx


def draw(n=24, p=3, scale=1.0, cost=1.0, seed=0):
    """K of size `scale`, y, c, and a generator."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p + 4))
    y = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    y[:2] = [1.0, -1.0]
    c = cost * (0.1 + rng.random(n))
    c[[3, 8 % n]] = 0.0
    return scale * X @ X.T, y, c, rng


def given(K, epsilon=EPS, finer=None):
    return KernelRows(None, None, 0.0, K=K, epsilon=epsilon, finer=finer)


def made(loss=HINGE, bias=True, finer=None, epsilon=EPS, **kind):
    K, y, c, rng = draw(**kind)
    return KernelProblem(given(K, epsilon, finer), y, c, bias, loss), K, y, c, rng


def felt(K, c, y, f, b, loss, drift):
    """‖c ∘ √K_ii ∘ slope of the loss‖: what P feels of rounding in f."""
    root, r = np.sqrt(np.diag(K)), 1 - y * (f + b)
    slope = r > -10 * drift * root if loss == HINGE else 2 * r
    return np.linalg.norm(c * root * slope)


def weight(K, beta):
    return np.linalg.norm(beta * np.sqrt(np.diag(K)))


def dual_value(K, y, c, beta, loss):
    used = c > 0
    less = np.sum(beta[used] ** 2 / (4 * c[used])) if loss == SQUARE else 0.0
    return oracle.dual_gain(K, y, beta) - less


# ---------------------------------------------------------------- feasible points


def test_a_point_is_brought_into_its_box():
    y, c = np.array([1.0, 1.0, -1.0, -1.0]), np.array([2.0, 0.0, 3.0, 1.0])
    problem = KernelProblem(given(np.eye(4)), y, c, False)
    assert problem.feasible(np.array([5.0, 5.0, -5.0, 0.5])).tolist() == [2.0, 0.0, -3.0, 0.0]
    assert problem.feasible(np.array([-1.0, 1.0, -0.5, -9.0])).tolist() == [0.0, 0.0, -0.5, -1.0]
    assert problem.lower.tolist() == [0.0, 0.0, -3.0, -1.0]
    assert problem.upper.tolist() == [2.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_entries_inside_give_first_what_is_too_much(sign):
    y = sign * np.array([1.0, 1.0, 1.0, 1.0, -1.0])
    problem = KernelProblem(given(np.eye(5)), y, np.array([2.0, 4.0, 1.0, 4.0, 9.0]), True)

    def feasible(*beta):
        return (sign * problem.feasible(sign * np.array(beta))).tolist()

    assert feasible(2.0, 1.0, 1.0, 3.0, -6.0) == [2.0, 0.0, 1.0, 3.0, -6.0]
    assert feasible(2.0, 1.0, 1.0, 3.0, -4.0) == [2.0, 0.0, 1.0, 1.0, -4.0]
    assert feasible(2.0, 1.0, 1.0, 3.0, -2.5) == [1.5, 0.0, 1.0, 0.0, -2.5]
    assert feasible(2.0, 1.0, 1.0, 3.0, 0.0) == [0.0, 0.0, 0.0, 0.0, 0.0]
    assert feasible(2.0, 1.0, 1.0, 3.0, -7.0) == [2.0, 1.0, 1.0, 3.0, -7.0]
    assert feasible(1.0, 0.0, 0.0, 0.0, -5.0) == [1.0, 0.0, 0.0, 0.0, -1.0]


def test_of_many_entries_inside_the_first_give():
    rng = np.random.default_rng(0)
    n = 200
    y, c = np.ones(n), 1.0 + rng.random(n)
    y[:10] = -1.0
    beta = np.where(rng.random(n) < 0.5, c, 0.5 * c) * y
    problem = KernelProblem(given(np.eye(n)), y, c, True)
    left, expect = beta.sum(), beta.copy()
    for bound in (False, True):
        for i in np.flatnonzero((y > 0) & ((beta == c) == bound)):
            take = min(left, expect[i])
            expect[i], left = expect[i] - take, left - take
    np.testing.assert_allclose(problem.feasible(beta), expect, atol=1e-12)


def test_what_rounding_leaves_of_a_sum_is_taken_off_too():
    rng = np.random.default_rng(0)
    y = np.where(np.arange(300) % 3, 1.0, -1.0)
    problem = KernelProblem(given(np.eye(300)), y, np.full(300, 1e3), True)
    beta = problem.feasible(y * 1e3 * rng.random(300))
    assert abs(beta.sum()) <= 1e-11


def test_least_squares_need_only_a_sum_of_zero():
    y, c = np.array([1.0, -1.0, 1.0]), np.array([1.0, 2.0, 0.0])
    beta = np.array([-3.0, 9.0, 4.0])
    assert KernelProblem(given(np.eye(3)), y, c, True, SQUARE).feasible(beta).tolist() == [-6, 6, 0]
    assert KernelProblem(given(np.eye(3)), y, c, False, SQUARE).feasible(beta).tolist() == [
        -3,
        9,
        0,
    ]
    assert beta.tolist() == [-3.0, 9.0, 4.0]


# ---------------------------------------------------------------- values and bounds


@every_loss
@every_bias
@pytest.mark.parametrize(("scale", "cost"), [(1.0, 1.0), (1e6, 1e-7), (1e-6, 1e3)])
def test_values_and_bounds_less_what_rounding_may_feign(loss, bias, scale, cost):
    problem, K, y, c, rng = made(loss, bias, scale=scale, cost=cost)
    problem.place(0.3 * cost * y * rng.random(24))
    beta = problem.beta.copy()
    np.testing.assert_allclose(problem.f, K @ beta, rtol=1e-10, atol=1e-12 * scale * cost)
    np.testing.assert_allclose(problem.gradient(), y - problem.f, rtol=1e-14)
    found = problem.current()
    model = "csvm" if loss == HINGE else "lssvm"
    b = found.point[-1]
    np.testing.assert_array_equal(found.point[:-1], beta)
    assert found.value == found.objective
    assert found.objective == approx(oracle.kernel_objective(model, K, y, c, beta, b), rel=1e-10)
    assert len(found.gradient) == 0  # of P there is none
    if not bias:
        assert b == 0.0
    else:
        around = b + (1 + abs(b)) * np.linspace(-2, 2, 4001)
        others = [oracle.kernel_objective(model, K, y, c, beta, t) for t in around]
        assert found.objective <= min(others) * (1 + 1e-12)
    drift = EPS * weight(K, beta)
    uncertain = felt(K, c, y, problem.f, b, loss, drift) + 0.5 * weight(K, beta)
    value = dual_value(K, y, c, beta, loss)
    assert problem.dual_value(beta, problem.f) == approx(value, rel=1e-9)
    point = problem.bound(found)
    assert point.value == approx(value - drift * uncertain, rel=1e-9)
    np.testing.assert_array_equal(point.alpha, beta * y)
    other = problem.feasible(0.5 * cost * y * rng.random(24))
    afresh = problem.value_of(other * y, found)
    expect = dual_value(K, y, c, other, loss) - EPS * weight(K, other) * uncertain
    assert afresh.value == approx(expect, rel=1e-9)
    assert problem.at(np.append(other, 0.3)).objective == approx(
        oracle.kernel_objective(model, K, y, c, other, 0.3), rel=1e-10
    )


@every_loss
def test_rounding_adds_up_over_moves(loss):
    problem, K, y, c, _ = made(loss)
    beta = 0.1 * y * c
    problem.stand(beta)
    drift = EPS * weight(K, beta)
    for at in (np.array([1, 5, 7]), np.array([0, 2])):
        new = problem.beta[at] * np.array([3.0, 1.0, 2.0])[: len(at)]
        change = np.zeros(24)
        change[at] = new - problem.beta[at]
        assert problem.move(at, new) == len(at) - 1
        drift = np.hypot(drift, EPS * weight(K, change))
        beta = beta + change
    np.testing.assert_allclose(problem.beta, beta, rtol=1e-15)
    np.testing.assert_allclose(problem.f, K @ beta, rtol=1e-10, atol=1e-12)
    at = problem.current()
    b = at.point[-1]
    uncertain = felt(K, c, y, problem.f, b, loss, drift) + 0.5 * weight(K, beta)
    expect = dual_value(K, y, c, beta, loss) - drift * uncertain
    assert problem.bound(at).value == approx(expect, rel=1e-9)


def test_a_known_f_is_taken_as_it_is():
    problem, _, y, c, _ = made(bias=False)
    f = np.linspace(-1.0, 1.0, 24)
    problem.place(0.5 * c * y, f)
    assert problem.f.tolist() == f.tolist()
    assert problem.at(np.append(problem.beta, 0.0)).objective == approx(
        0.5 * problem.beta @ f + c @ np.maximum(0, 1 - y * f)
    )
    problem.stand(9 * c * y)
    np.testing.assert_array_equal(problem.beta, 9 * c * y)  # any β


@pytest.mark.parametrize(
    ("grow", "gap", "drifted"),
    [(100.0, 1e-3, True), (100.0, 1e9, False), (10.05, 1e-9, True), (9.9, 1e-9, False)],
)
def test_f_has_drifted_where_its_rounding_grew_and_is_felt(grow, gap, drifted):
    problem, _, y, c, _ = made()
    problem.stand(1e-3 * y * c)
    one = np.array([0])
    size = 1e-3 * np.linalg.norm(c * problem._root) / problem._root[0]
    problem.move(one, problem.beta[one] + grow * size)
    assert problem.drifted(problem.current(), gap) is drifted


def test_rounding_that_is_just_the_share_of_the_gap_is_not_felt(monkeypatch):
    monkeypatch.setattr(kernel_problem, "DRIFT", 0.25)
    problem, _, y, c, _ = made()
    problem.stand(1e-3 * y * c)
    problem.move(np.array([0]), np.array([100.0]))
    at = problem.current()
    felt_now = problem._drift * problem._uncertain(at.felt)
    assert not problem.drifted(at, 4.0 * felt_now)
    assert problem.drifted(at, 4.0 * np.nextafter(felt_now, 0.0))
    problem._fresh = problem._drift / 16.0
    monkeypatch.setattr(kernel_problem, "GROWN", 16.0)  # nor has it grown, if just as much
    assert not problem.drifted(at, 0.0)


def test_f_drifts_beyond_a_thousandth_of_the_gap():
    problem, K, y, c, _ = made()
    problem.stand(1e-3 * y * c)
    problem.move(np.array([0]), np.array([100.0]))
    first = EPS * weight(K, 1e-3 * y * c)
    drift = np.hypot(first, EPS * (100.0 - 1e-3 * y[0] * c[0]) * np.sqrt(K[0, 0]))
    at = problem.current()
    felt_now = felt(K, c, y, problem.f, at.point[-1], HINGE, drift) + 0.5 * weight(K, problem.beta)
    assert problem.drifted(at, 999 * drift * felt_now)
    assert not problem.drifted(at, 1001 * drift * felt_now)


def test_a_gap_is_coarse_where_rounding_takes_half_of_the_tolerance():
    problem, K, y, c, _ = made(finer=lambda: None)
    problem.stand(problem.feasible(0.1 * c * y))
    D = dual_value(K, y, c, problem.beta, HINGE)
    rounding = EPS * weight(K, problem.beta)
    at = problem.current()
    felt_now = felt(K, c, y, problem.f, at.point[-1], HINGE, rounding)
    rounding *= felt_now + 0.5 * weight(K, problem.beta)
    P = D + rounding  # near enough at any tolerance above ½ rounding/P
    at = at._replace(objective=P)
    assert problem.coarse(at, 1.99 * rounding / P)
    assert not problem.coarse(at, 2.01 * rounding / P)
    assert problem.coarse(at, 0.51 * rounding / P)
    assert not problem.coarse(at, 0.49 * rounding / P)
    alone = made()[0]
    alone.stand(problem.beta)
    assert not alone.coarse(at, rounding / P)


def test_a_gap_of_twice_the_tolerance_is_near():
    y = np.array([1.0, -1.0])
    problem = KernelProblem(given(np.eye(2), finer=lambda: None), y, np.ones(2), False)
    problem.stand(1e3 * y, 2 * y)  # where D is zero
    at = problem.current()._replace(objective=0.5)
    assert problem.coarse(at, 0.5)
    assert not problem.coarse(at, 0.49)


@pytest.mark.parametrize(("times", "is_felt"), [(-9.0, True), (-11.0, False), (0.5, True)])
def test_rows_within_ten_roundings_of_a_loss_are_felt(times, is_felt):
    y, root = np.array([1.0, -1.0, 1.0]), np.array([1.0, 2.0, 3.0])
    c, beta = np.array([0.5, 2.0, 4.0]), np.array([0.25, -0.5, 0.125])
    problem = KernelProblem(given(np.diag(root**2)), y, c, False)
    drift = EPS * np.linalg.norm(beta * root)
    r = np.array([times * drift * root[0], times * drift * root[1], -9.0])
    problem.stand(beta, y * (1 - r))
    uncertain = is_felt * np.hypot(0.5 * 1.0, 2.0 * 2.0) + 0.5 * drift / EPS
    D = beta @ y - 0.5 * beta @ (y * (1 - r))
    assert problem.bound(problem.current()).value == approx(D - drift * uncertain, rel=1e-12)


@every_loss
@pytest.mark.parametrize("size", [0.0, 1e-3, 1.0, 50.0])
def test_the_best_multiple_of_a_point(loss, size):
    problem, K, y, c, rng = made(loss, False, epsilon=1e-6)
    beta = size * y * c * rng.random(24)
    problem.stand(0.2 * y * c)
    value, alpha = problem.scaled(beta, K @ beta)
    if size == 0.0:
        assert value == 0.0
        assert not alpha.any()
        return
    used = c > 0
    most = 1 / np.max(np.abs(beta[used]) / c[used]) if loss == HINGE else 1e3 / size
    t = np.linspace(0, min(most, 1e3 / size), 41)
    for _ in range(14):  # nearer and nearer
        k = int(np.argmax([dual_value(K, y, c, s * beta, loss) for s in t]))
        best, t = t[k], np.linspace(t[max(k - 1, 0)], t[min(k + 1, 40)], 41)
    np.testing.assert_allclose(alpha, best * beta * y, rtol=1e-5)
    drift = max(1e-6 * weight(K, 0.2 * y * c), 1e-6 * weight(K, beta))
    uncertain = np.linalg.norm(c * np.sqrt(np.diag(K))) + 0.5 * weight(K, 0.2 * y * c)
    t = alpha.sum() / (beta @ y)
    expect = dual_value(K, y, c, t * beta, loss) - t * drift * uncertain
    assert value == approx(expect, rel=1e-9)
    if loss == HINGE:
        assert (alpha <= c).all()


@pytest.mark.parametrize("loss", [HINGE, SQUARE])
def test_a_point_that_only_loses_is_worth_nothing(loss):
    problem, K, y, c, _ = made(loss, False)
    beta = -0.1 * c * y
    assert problem.scaled(beta, K @ beta).value == 0.0


def test_the_least_squares_bias_is_the_weighted_mean():
    problem, K, y, c, rng = made(SQUARE)
    problem.stand(y * c * rng.random(24))
    assert problem.best_bias() == approx(np.average(y - K @ problem.beta, weights=c))


@pytest.mark.parametrize("cost", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("seed", range(12))
def test_the_bias_is_in_the_middle_of_the_best_ones(seed, cost):
    """Few different costs, so that whole intervals are best, and f on a grid, so that many rows
    bend at the same place."""
    rng = np.random.default_rng(seed)
    n = 9
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:2] = [1.0, -1.0]
    c = cost * rng.integers(0, 3, n)
    c[:2] = cost
    problem = KernelProblem(given(np.eye(n)), y, c, True)
    problem.place(y * c * rng.integers(0, 3, n) / 2)
    problem.f[:] = rng.integers(-4, 5, n) / 2.0
    e = y - problem.f
    losses = np.array([c @ np.maximum(0, 1 - y * (problem.f + b)) for b in e])
    best = e[losses <= losses.min() + 1e-9 * cost]
    b = problem.best_bias()
    loss = c @ np.maximum(0, 1 - y * (problem.f + b))
    fall = e[problem.beta > problem.lower].min(initial=np.inf)
    rise = e[problem.beta < problem.upper].max(initial=-np.inf)
    assert fall <= rise or loss <= losses.min() + 1e-9 * cost
    if abs(problem.beta.sum()) == 0.0:
        assert loss <= losses.min() + 1e-9 * cost
        assert b == approx(0.5 * (best.min() + best.max()))


@pytest.mark.parametrize(("more", "b"), [(0.0, 0.0), (1e-12, 0.0), (3e-12, -1.0), (-3e-12, 1.0)])
@pytest.mark.parametrize("cost", [1e-6, 1.0, 1e6])
def test_a_loss_is_flat_up_to_rounding(more, b, cost):
    c = cost * np.array([1.0, 1.0 + more])
    problem = KernelProblem(given(np.eye(2)), np.array([1.0, -1.0]), c, True)
    assert problem.best_bias() == b


def test_without_costs_any_bias_will_do():
    problem = KernelProblem(given(np.eye(2)), np.array([1.0, -1.0]), np.zeros(2), True)
    assert problem.best_bias() == 0.0


# ---------------------------------------------------------------- rows


SPECS = {"rbf": ("rbf", 0.3, 0.0, 3), "poly": ("poly", 0.3, 1.0, 2)}


def computed(n=40, kernel="rbf", budget=1e9, dtype=np.float64, p=5):
    X = np.random.default_rng(0).standard_normal((n, p))
    rows = KernelRows(as_matrix(X), as_spec(*SPECS[kernel], p), budget, dtype)
    return rows, oracle.gram(X, X, *SPECS[kernel]), X


@pytest.mark.parametrize(
    ("budget", "dtype", "capacity"),
    [
        (20 * 40 * 8, np.float64, 20),
        (20 * 40 * 8 - 1, np.float64, 19),
        (20 * 40 * 8, np.float32, 40),
        (19 * 40 * 4, np.float32, 19),
        (-5.0, np.float64, 16),
        (1e18, np.float64, 40),
    ],
)
def test_as_many_rows_are_kept_as_the_budget_has_room_for(budget, dtype, capacity):
    rows = computed(budget=budget, dtype=dtype)[0]
    assert rows.capacity == capacity
    assert rows.store.shape == (capacity, 40)
    assert rows.store.dtype == dtype


def test_fewer_rows_than_the_fewest_are_all_kept():
    assert computed(n=5, budget=0)[0].capacity == 5


def test_rows_that_are_kept_are_not_computed_again():
    rows, K, _ = computed(budget=20 * 40 * 8)
    rows.fetch(np.arange(20))
    assert rows.computed == 20
    rows.fetch(np.array([3, 5, 19]))
    assert rows.computed == 20
    slots = rows.fetch(np.array([30, 3]))
    assert rows.computed == 21
    np.testing.assert_allclose(rows.store[slots], K[[30, 3]], rtol=1e-12)
    rows.fetch(np.array([3, 5, 19, 30]))  # the last used were not the ones to go
    assert rows.computed == 21


def test_the_longest_unused_rows_go():
    rows = computed(budget=20 * 40 * 8)[0]
    rows.fetch(np.arange(20))
    rows.fetch(np.arange(10))
    rows.fetch(np.arange(20, 30))
    rows.fetch(np.arange(10))
    assert rows.computed == 30
    others = np.delete(np.r_[0:10, 20:30], 13)
    for i in others:
        rows.fetch(np.array([i]))
    rows.fetch(np.array([35]))  # in place of 23
    for i in others:
        rows.fetch(np.array([i]))
    assert rows.computed == 31


def test_rows_of_several_tiles():
    rows, K, _ = computed(n=300)
    np.testing.assert_allclose(rows.rows([0, 299]), K[[0, 299]], rtol=1e-11)
    some = np.arange(300)[::-1].copy()
    np.testing.assert_allclose(rows.block(some), K[np.ix_(some, some)], rtol=1e-11)


def test_rows_asked_for_with_new_ones_stay():
    rows, K, _ = computed(budget=0)  # sixteen
    rows.fetch(np.arange(16))
    slots = rows.fetch(np.r_[np.arange(8), np.arange(20, 28)])
    np.testing.assert_allclose(rows.store[slots], K[np.r_[0:8, 20:28]], rtol=1e-12)
    assert rows.computed == 24


def test_what_only_the_products_ask_for_is_computed_once():
    rows, K, _ = computed(budget=20 * 40 * 8)
    v = np.zeros((2, 40))
    v[0, [1, 7]], v[1, [7, 9]] = [1.0, 2.0], [3.0, -1.0]
    np.testing.assert_allclose(rows.times(*v), v @ K, rtol=1e-12)
    assert rows.computed == 3
    rows.fetch(np.arange(20, 37))  # with 1, 7 and 9 that is all the room
    wide = np.zeros(40)
    wide[np.r_[0:10, 20:37]] = 1.0
    np.testing.assert_allclose(rows.times(wide)[0], K @ wide, rtol=1e-12)
    assert rows.computed == 20 + 7  # those in the store came first
    out = np.ones(40)
    rows.add(np.arange(40), np.linspace(-1, 1, 40), out)
    np.testing.assert_allclose(out, 1 + np.linspace(-1, 1, 40) @ K, rtol=1e-11)


def test_rows_may_be_asked_for_twice_and_more_than_fit():
    rows, K, _ = computed(budget=0)
    some = np.r_[np.arange(40), 3, 3, 0]
    np.testing.assert_allclose(rows.rows(some), K[some], rtol=1e-12)
    assert rows.rows([5, 5]).shape == (2, 40)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_blocks_are_computed_by_cells_and_take_no_room(dtype):
    rows, K, _ = computed(dtype=dtype)
    rows.fetch(np.array([4, 9]))
    some = np.array([9, 1, 4, 30])
    block = rows.block(some)
    assert block.dtype == np.float64
    np.testing.assert_allclose(block, K[np.ix_(some, some)], rtol=1e-5)
    np.testing.assert_array_equal(block, block.astype(dtype))
    assert rows.computed == 2 + 2 * 4 / 40
    assert rows.block(some, dtype).dtype == dtype
    np.testing.assert_allclose(rows.block(np.array([4, 9])), K[np.ix_([4, 9], [4, 9])], rtol=1e-5)
    assert rows.computed == approx(2 + 4 * 4 / 40)


def test_the_largest_entry_of_every_row():
    for kernel in SPECS:
        for budget in (0, 1e9):
            rows, K, _ = computed(kernel=kernel, budget=budget)
            np.testing.assert_allclose(rows.largest(), np.abs(K).max(axis=1), rtol=1e-12)
            assert rows.computed == (0 if kernel == "rbf" else 40)
            np.testing.assert_allclose(rows.diagonal(), np.diag(K), rtol=1e-12)
    K = np.array([[1.0, -3.0], [-3.0, 10.0]])
    assert given(K).largest().tolist() == [3.0, 10.0]
    assert given(0.5 * np.eye(2)).largest().tolist() == [0.5, 0.5]


@pytest.mark.parametrize("make", [np.ascontiguousarray, np.asfortranarray, lambda K: K[::1, ::1]])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_matrix_that_is_there(make, dtype):
    big = np.zeros((8, 8), dtype)
    K, y, *_ = draw(n=4)
    big[::2, ::2] = K
    K = make(big[::2, ::2])
    rows = given(K)
    np.testing.assert_array_equal(rows.store, K)
    assert rows.store.flags.c_contiguous
    assert not rows.store.flags.writeable
    assert (rows.n, rows.capacity, rows.computed) == (4, 4, 0.0)
    np.testing.assert_array_equal(rows.fetch(np.array([3, 1])), [3, 1])
    np.testing.assert_allclose(rows.times(y)[0], K.astype(float) @ y, rtol=1e-6)
    assert rows.diagonal().dtype == np.float64
    assert rows.computed == 0.0


def test_a_part_of_the_rows_is_the_kernel_between_them():
    some = np.array([7, 2, 9, 4])
    for dtype in (np.float64, np.float32):
        rows, K, _ = computed(budget=20 * 40 * 8, dtype=dtype)
        part = rows.subset(some)
        np.testing.assert_allclose(part.rows(np.arange(4)), K[np.ix_(some, some)], rtol=1e-5)
        assert part.dtype == dtype
        assert part.epsilon == approx(rows.epsilon, rel=0.9)
    K = draw()[0]
    part = given(K).subset(some)
    np.testing.assert_array_equal(part.store, K[np.ix_(some, some)])
    assert part.epsilon == EPS
    assert KernelRows(None, None, 0.0, K=K).epsilon == np.finfo(float).eps


def test_a_part_has_room_for_as_many_bytes():
    rows = computed(n=60, budget=20 * 60 * 8)[0]
    assert rows.subset(np.arange(30)).capacity == 30
    assert computed(n=200, budget=20 * 200 * 8)[0].subset(np.arange(100)).capacity == 40


def test_single_precision_knows_its_finer_rows():
    rows, K, X = computed(dtype=np.float32, budget=20 * 40 * 4)
    finer = rows.finer()
    assert finer.dtype == np.float64
    assert finer.finer is None
    assert finer.capacity == 16
    np.testing.assert_allclose(finer.rows(np.arange(40)), K, rtol=1e-12)
    assert computed()[0].finer is None
    far = 0.3 * ((X - X.mean(axis=0)) ** 2).sum(axis=1).max()
    for one, dtype in ((rows, np.float32), (finer, np.float64)):
        assert one.epsilon == approx(entry_error(X, rows.spec, dtype, far), rel=1e-12)


def test_the_error_of_an_entry():
    X = np.array([[3.0, 4.0], [0.0, 1.0]])
    rbf, poly = as_spec("rbf", 0.25, 0.0, 3, 2), as_spec("poly", 0.25, 0.0, 3, 2)
    eps, eps32 = float(np.finfo(np.float64).eps), float(np.finfo(np.float32).eps)
    for kind in (X, as_matrix(csr_matrix(X))):
        assert entry_error(kind, rbf, np.float64, 7.0) == eps * 15.0
        assert entry_error(kind, rbf, np.float32, 7.0) == eps32 * (15.0 + 0.5 * 5.0)
        assert entry_error(kind, poly, np.float32, 0.0) == eps32
        assert entry_error(kind, rbf, np.float64, 1e9) == eps * (1.0 + 2.0**0.5)
        assert entry_error(kind, rbf, np.float32, 1e9) == eps32 * (1.0 + 2.0**0.5)


def test_passes_are_whole_matrices_of_kernel_values():
    rows, _, _ = computed(n=20)
    problem = KernelProblem(rows, np.ones(20), np.ones(20), False)
    assert (problem.passes, problem.n_rows, problem.n_variables) == (0.0, 20, 21)
    rows.fetch(np.arange(5))
    assert problem.passes == 0.25
    assert KernelProblem(given(np.eye(3)), np.ones(3), np.ones(3), False).passes == 0.0


# ---------------------------------------------------------------- the smoothed form


def smooth(model="csvm", bias=True, scale=1.0, cost=1.0):
    K, y, c, rng = draw(scale=scale, cost=cost)
    loss = MODELS[model]().loss
    kernel = KernelProblem(given(K, epsilon=0.0), y, c, bias, loss)
    s = np.abs(K).max(axis=1)
    s = np.maximum(s, 1.0) if bias else s
    return SmoothedKernel(kernel, MODELS[model]()), K, y, c, s, rng


every_model = pytest.mark.parametrize("model", ["csvm", "lssvm"])
every_size = pytest.mark.parametrize(
    ("scale", "cost"), [(1.0, 1.0), (1e-3, 10.0), (1e3, 1e-3)], ids=["", "small K", "large K"]
)


@every_model
@every_bias
@every_size
def test_steps_and_slopes_of_the_smoothed_form(model, bias, scale, cost):
    problem, K, y, c, s, rng = smooth(model, bias, scale, cost)
    n = len(y)

    def F(beta, b, mu, u0):
        r = 1 - y * (K @ beta + b)
        if model == "lssvm":
            return 0.5 * beta @ K @ beta + c @ r**2, 2 * c * y * r, None
        u = np.clip(u0 + r / (mu.loss * s), 0, 1)
        value = c @ (u * r - 0.5 * mu.loss * s * (u - u0) ** 2)
        return 0.5 * beta @ K @ beta + value, c * y * u, u

    beta, b = 0.2 * cost * rng.standard_normal(n), 0.3 * bias
    u0 = np.where(c > 0, rng.random(n), 0.0) if model == "csvm" else np.zeros(n)
    walk, mu = problem.walk(problem.start(beta, b), MU, c * u0), MU
    found = walk.at
    assert problem.kernel is not None
    for _ in range(3):
        value, h, u = F(beta, b, mu, u0)
        assert found.value == approx(value, rel=1e-11)
        g, f, g_b = problem.parts(found.gradient)
        np.testing.assert_allclose(g, beta - h, rtol=1e-9, atol=1e-12 * cost)
        np.testing.assert_allclose(f, K @ (beta - h), rtol=1e-8, atol=1e-9 * scale * cost)
        assert g_b == approx(-h.sum() * bias, rel=1e-9, abs=1e-11 * cost)
        d, d_b = 0.1 * cost * rng.standard_normal(n), 0.2 * bias
        walk.aim(problem.start(d, d_b))
        for t in (0.0, 0.7):
            first, second = walk.slope(t, mu)
            at, step = F(beta + t * d, b + t * d_b, mu, u0), K @ d + d_b
            assert first == approx(
                (beta + t * d) @ K @ d - at[1] @ step, rel=1e-9, abs=1e-12 * cost * scale
            )
            if model == "lssvm":
                bend = 2 * c
            else:
                bend = np.where((at[2] > 0) & (at[2] < 1), c / (mu.loss * s), 0.0)
            assert second == approx(d @ K @ d + step @ (bend * step), rel=1e-9)
        found = walk.step(0.7, mu)
        beta, b = beta + 0.7 * d, b + 0.7 * d_b
        beta_found, b_found = problem.split(walk.point)
        np.testing.assert_allclose(beta_found, beta, rtol=1e-13)
        assert b_found == approx(b)
        if model == "csvm":
            A, W = problem.active(found)
            u = F(beta, b, mu, u0)[2]
            inside = np.flatnonzero((u > 0) & (u < 1) & (c > 0))
            assert A.tolist() == inside.tolist()
            np.testing.assert_allclose(W, (c / (mu.loss * s))[inside], rtol=1e-13)
            u0 = u
        walk.recentre()
        mu = Smoothing(1.0, 0.5 * mu.loss)
        found = walk.step(0.0, mu)
    little = 1e-8 * np.sum(c / (mu.loss * s))
    assert problem.bias_curvature(mu) == approx(little, rel=1e-12)


@every_bias
def test_the_metric_is_that_of_functions(bias):
    problem, K, _, _, _, rng = smooth(bias=bias)
    a, d = rng.standard_normal((2, 24))
    assert problem.inner(problem.start(a, 2.0), problem.start(d, 3.0)) == approx(a @ K @ d + 6.0)
    assert problem.start(a).tolist()[-1] == 0.0
    np.testing.assert_allclose(problem.start(a, 2.0)[24:-1], K @ a, rtol=1e-11)
    assert (problem.n_variables, problem.n_rows, problem.passes) == (49, 24, 0.0)


@every_model
@every_bias
@every_size
def test_bounds_of_the_smoothed_form(model, bias, scale, cost):
    problem, K, y, c, _, rng = smooth(model, bias, scale, cost)
    loss = problem.model.loss
    v = problem.start(0.3 * cost * rng.standard_normal(24), -2.5)
    found = problem.at(v, MU)
    g, _, g_b = problem.parts(found.gradient)
    assert problem.suboptimality(found) == approx(0.5 * g @ K @ g + 2.5 * abs(g_b), rel=1e-9)
    near = problem.start(0.3 * cost * rng.standard_normal(24), -0.5)
    found = problem.at(near, MU)
    g, _, g_b = problem.parts(found.gradient)
    assert problem.suboptimality(found) == approx(0.5 * g @ K @ g + abs(g_b), rel=1e-9)
    h = problem.kernel.beta.copy()
    assert problem.estimate_bound(found) == approx(dual_value(K, y, c, h, loss), rel=1e-8)
    value, alpha = problem.bound(found)
    beta = problem.kernel.feasible(h)
    assert bias is False or abs(beta.sum()) <= 1e-12 * np.abs(beta).sum()
    t = alpha.sum() / (beta * y).sum() if beta.any() else 0.0
    np.testing.assert_allclose(alpha, t * beta * y, rtol=1e-9, atol=1e-14 * cost)
    assert value == approx(dual_value(K, y, c, alpha * y, loss), rel=1e-8)
    for other in (0.99 * t, 1.01 * t):
        if loss == SQUARE or (other * np.abs(beta) <= c).all():
            assert value >= dual_value(K, y, c, other * beta, loss) * (1 - 1e-12)
    assert value >= max(0.0, 0.0)
    assert problem.kernel.value_of(alpha, found).value == approx(value, rel=1e-8)


@every_model
@every_bias
@every_size
def test_constants_of_the_smoothed_form(model, bias, scale, cost):
    problem, K, _, c, s, _ = smooth(model, bias, scale, cost)
    d = 2 * c if model == "lssvm" else c / s / MU.loss
    paper = 1 + 24 * (d * (np.diag(K) + bias)).max()
    assert problem.lipschitz("paper", MU) == approx(paper, rel=1e-12)
    top = np.linalg.eigvalsh(np.sqrt(d)[:, None] * (K + bias) * np.sqrt(d))[-1]
    tight = problem.lipschitz("tight", MU) - 1
    assert 1.01 * 0.998 * top <= tight <= 1.01 * top * (1 + 1e-12)


def test_an_empty_row_of_the_kernel_matrix_has_a_scale_of_one():
    K = np.diag([4.0, 0.0, 0.25])
    y, c = np.array([1.0, -1.0, 1.0]), np.ones(3)
    for bias, s in ((False, [4.0, 1.0, 0.25]), (True, [4.0, 1.0, 1.0])):
        kernel = KernelProblem(given(K), y, c, bias)
        assert SmoothedKernel(kernel, MODELS["csvm"]()).rows.s.tolist() == s


def test_steps_start_about_zero_unless_told_otherwise():
    problem, _, _, c, _, rng = smooth()
    v = problem.start(0.2 * rng.standard_normal(24), 0.1)
    walk = problem.walk(v, MU)
    plain = walk.at.value
    assert problem.walk(v, MU, c).at.value != plain
    assert problem.walk(v, MU).at.value == plain
    walk.recentre()
    assert problem.walk(v, MU).at.value == plain


def test_a_small_change_of_the_dual_weights_costs_the_rows_that_changed():
    X = np.random.default_rng(0).standard_normal((40, 3))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    rows = KernelRows(as_matrix(X), as_spec("rbf", 0.3, 0.0, 3, 3), 0.0)  # sixteen are kept
    problem = SmoothedKernel(KernelProblem(rows, y, np.ones(40), False), MODELS["csvm"]())
    v = np.zeros(81)
    problem.at(v, Smoothing(0.1, 0.1))  # all u are one
    before = rows.computed
    v[40:52] = 2 * y[:12]  # r = −1 of twelve rows: u is zero now, of 28 it is not
    found = problem.at(v, Smoothing(0.1, 0.1))
    assert rows.computed - before <= 12
    h = np.where(np.arange(40) < 12, 0.0, y)
    K = oracle.gram(X, X, "rbf", 0.3, 0, 3)
    np.testing.assert_allclose(found.gradient[40:80], v[40:80] - K @ h, atol=1e-11)
    before = rows.computed
    v[52:80] = 2 * y[12:]
    problem.at(v, Smoothing(0.1, 0.1))  # nothing is left: nothing to add up
    assert rows.computed == before
    assert not problem.kernel.f.any()


@pytest.mark.parametrize("panel", [2, 3, 256])
@pytest.mark.parametrize("kind", [np.asarray, csr_matrix])
def test_products_between_rows_are_made_of_half_the_kernel(monkeypatch, kind, panel):
    monkeypatch.setattr(kernel_rows, "PANEL", panel)
    rng = np.random.default_rng(3)
    X = rng.standard_normal((10, 3))
    V = rng.standard_normal((2, 10))
    V[:, [1, 4, 8, 9]] = 0.0
    V[0, 2] = 0.0  # of one vector only
    others = np.array([8, 1, 9])
    rows = KernelRows(as_matrix(kind(X)), as_spec("rbf", 0.3, 0.0, 3, 3), 0.0)
    K = np.exp(-0.3 * np.square(X[:, None] - X[None]).sum(axis=2))
    expected = V @ K
    expected[:, 4] = 0.0  # not asked for
    np.testing.assert_allclose(rows.times_between(V, others), expected, rtol=1e-12)
    # six rows up to the diagonal, and three by six
    assert rows.computed == pytest.approx((21 + 18) / 10)
