"""Kernel C-SVM and LS-SVM: rows under a budget, the inner loop, optima and certificates."""

import clarabel
import nesvm_jit
import numpy as np
import pytest
from nesvm_jit.kernels.dual_newton import _newton_steps
from nesvm_jit.kernels.loss import SQUARE
from nesvm_jit.kernels.pairwise import _add_rows, _dual_steps
from nesvm_jit.kernels.public import as_spec
from nesvm_jit.matrix.checks import as_matrix
from nesvm_jit.problems.kernel import KernelProblem, KernelRows
from nesvm_jit.settings import Settings
from nesvm_jit.solvers.coarse import run_in_pairs
from nesvm_jit.solvers.driver import always, drive
from nesvm_jit.solvers.least_squares import begin as begin_equations
from nesvm_jit.solvers.least_squares import least_squares
from nesvm_jit.solvers.pairwise import begin, choose
from nesvm_jit.solvers.run import Run
from scipy.sparse import csc_matrix, csr_matrix

from . import oracle
from .conftest import PURE
from .data import KINDS, as_kind, half_space_and_costs, sparse_normal

N = 24 if PURE else 120
KERNELS = {"rbf": ("rbf", 0.05, 0.0, 3), "poly": ("poly", 0.05, 0.5, 2)}
AMPLE = 1e9
both = pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
compiled = pytest.mark.skipif(PURE, reason="minutes in plain Python, or nothing to test")


def rows_of(X, kernel="rbf", budget=AMPLE, dtype=np.float64):
    if kernel == "precomputed":
        return KernelRows(None, None, 0, K=oracle.gram(X, X, *KERNELS["rbf"]))
    return KernelRows(as_matrix(X), as_spec(*KERNELS[kernel], X.shape[1]), budget, dtype)


def solved(rows, y, c, bias, tol=1e-8, alpha0=None, **limits):
    problem = KernelProblem(rows, y, c, bias)
    run = Run(problem, Settings(tol=tol, **limits))
    run_in_pairs(problem, begin(problem, alpha0), run)
    return problem, run


def least_squares_of(rows, y, c, bias, budget=AMPLE, tol=1e-10):
    problem = KernelProblem(rows, y, c, bias, SQUARE)
    run = Run(problem, Settings(tol=tol, max_iter=500))
    drive(least_squares(problem, begin_equations(problem, budget)), run, always)
    return run


def primal(K, y, c, v, power=1):
    f = K @ v[:-1]
    r = 1 - y * (f + v[-1])
    return 0.5 * v[:-1] @ f + np.sum(c * (np.maximum(0, r) if power == 1 else r**2))


def optimum(K, y, c, bias):
    """max yᵀβ − ½βᵀKβ over the box, Σβ = 0, by an interior point method."""
    n = len(y)
    A = np.vstack([np.ones((int(bias), n)), np.eye(n), -np.eye(n)])
    h = np.r_[np.zeros(int(bias)), np.where(y > 0, c, 0), np.where(y > 0, 0, c)]
    cones = [clarabel.ZeroConeT(1)] * bias + [clarabel.NonnegativeConeT(2 * n)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    P = csc_matrix(np.triu(K))
    return -clarabel.DefaultSolver(P, -y, csc_matrix(A), h, cones, settings).solve().obj_val


# ---------------------------------------------------------------- rows


@pytest.mark.pure
@pytest.mark.parametrize("kind", KINDS[:4])
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_rows_and_blocks_are_those_of_the_kernel_matrix(kind, kernel):
    X = as_kind(half_space_and_costs(n=12 if PURE else 90)[0], kind)
    K = oracle.gram(X, X, *KERNELS[kernel])
    rows = rows_of(X, kernel)
    some = np.array([7, 3, 11, 3])
    np.testing.assert_allclose(rows.rows(some), K[some], rtol=1e-11)
    np.testing.assert_allclose(rows.diagonal(), np.diag(K), rtol=1e-12)
    mixed = np.array([1, 7, 2, 3])  # two of them in the store
    np.testing.assert_allclose(rows.block(mixed), K[np.ix_(mixed, mixed)], rtol=1e-11)
    v = np.linspace(-1, 1, len(K))
    np.testing.assert_allclose(rows.times(v, 0 * v), [K @ v, 0 * v], rtol=1e-9, atol=1e-9)


def test_wide_sparse_rows_stay_sparse():
    X = as_kind(sparse_normal(60, 500, density=0.01), "CSR float64")
    rows = rows_of(X)
    expect = oracle.gram(X, X, *KERNELS["rbf"])
    np.testing.assert_allclose(rows.rows(np.arange(60)), expect, rtol=1e-12)


@compiled
def test_a_budget_is_kept_and_the_longest_unused_rows_go():
    X, *_ = half_space_and_costs(n=100)
    rows = rows_of(X, budget=20 * 100 * 8)
    assert rows.capacity == 20
    assert rows.store.nbytes <= 20 * 100 * 8
    rows.fetch(np.arange(10))
    rows.fetch(np.arange(10, 20))
    rows.fetch(np.arange(5))
    before = rows.computed
    rows.fetch(np.arange(90, 95))  # in place of 5 to 9
    rows.fetch(np.r_[0:5, 10:20])
    assert rows.computed == before + 5
    K = oracle.gram(X, X, *KERNELS["rbf"])
    np.testing.assert_allclose(rows.rows(np.arange(100)), K, rtol=1e-11)


def test_no_budget_keeps_more_than_all_rows_or_fewer_than_a_few():
    X, *_ = half_space_and_costs(n=30)
    assert rows_of(X, budget=1e30).capacity == 30
    assert rows_of(X, budget=0).capacity == 16


def test_a_matrix_that_is_there_is_not_copied():
    K = np.asfortranarray(
        oracle.gram(half_space_and_costs(N)[0], half_space_and_costs(N)[0], *KERNELS["rbf"])
    )
    assert np.shares_memory(KernelRows(None, None, 0, K=K).store, K)


# ---------------------------------------------------------------- compiled loops


@pytest.mark.pure
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_add_rows(threads, dtype):
    rng = np.random.default_rng(0)
    K = rng.random((9, 40 if PURE else 1300)).astype(dtype)
    slots, a, out = np.array([8, 0, 3, 5, 1, 2]), rng.random(6), rng.random(K.shape[1])
    K.flags.writeable = False  # as stores are
    expect = oracle.add_rows(K.astype(float), slots, a, out)
    _add_rows(K, slots, a, out)
    np.testing.assert_allclose(out, expect, rtol=1e-13)


@pytest.mark.pure
@both
def test_the_inner_loop_climbs_inside_the_box(bias):
    X, y, c = half_space_and_costs(n=12 if PURE else 60)
    K = oracle.gram(X, X, *KERNELS["rbf"])
    lower, upper = np.where(y > 0, 0, -c), np.where(y > 0, c, 0)
    beta, e = np.zeros(len(y)), y.copy()
    values = [0.0]
    for most in (1, 5, 100_000):
        _dual_steps(K, np.diag(K).copy(), lower, upper, bias, 1e-4, most, beta, e)
        values.append(oracle.dual_gain(K, y, beta))
        assert (beta >= lower).all()
        assert (beta <= upper).all()
        assert not bias or abs(beta.sum()) < 1e-12
        np.testing.assert_allclose(e, y - K @ beta, atol=1e-10)
    assert values == sorted(values)
    rise, fall = e[beta < upper].max(), -e[beta > lower].min()
    assert (rise + fall if bias else max(rise, fall)) <= 1e-4


@pytest.mark.pure
@both
def test_newton_steps_end_where_the_dual_is_largest_among_those_inside(bias):
    X, y, c = half_space_and_costs(n=12 if PURE else 60)
    K = oracle.gram(X, X, *KERNELS["rbf"])
    lower, upper = np.where(y > 0, 0, -c), np.where(y > 0, c, 0)
    middle = np.where(y > 0, c / c[y > 0].sum(), -c / c[y < 0].sum())  # adds up to nothing
    beta = middle * 0.5 / (np.abs(middle) / np.maximum(c, 1e-9)).max()
    e = y - K @ beta
    before = oracle.dual_gain(K, y, beta)
    assert _newton_steps(K, lower, upper, bias, 1e-12, beta, e) > 1
    assert oracle.dual_gain(K, y, beta) > before
    assert (beta >= lower).all()
    assert (beta <= upper).all()
    assert not bias or abs(beta.sum()) < 1e-11
    np.testing.assert_allclose(e, y - K @ beta, atol=1e-9)
    inside = (beta > lower) & (beta < upper)
    level = e[inside].mean() if bias else 0.0
    np.testing.assert_allclose(e[inside], level, atol=1e-7)


@pytest.mark.pure
def test_the_bias_is_the_best_there_is():
    X, y, c = half_space_and_costs(n=20)
    rng = np.random.default_rng(1)
    problem = KernelProblem(rows_of(X, "precomputed"), y, c, True)
    for scale in (0.0, 0.1, 1.0):
        problem.place(scale * y * c * rng.random(len(y)))
        b = oracle.best_bias(y, c, problem.f)
        at = problem.current()
        best = problem.at(np.append(problem.beta, b)).objective
        assert at.objective == pytest.approx(best, rel=1e-12)
        assert problem.at(at.point).objective == pytest.approx(best, rel=1e-12)


def test_a_working_set_has_no_sample_twice():
    rng = np.random.default_rng(0)
    rise = np.where(rng.random(50) < 0.5, rng.random(50), -np.inf)
    for q in (2, 9, 30):
        work = choose(rise, rng.random(50), np.arange(q), q)
        assert len(set(work)) == len(work) == q


# ---------------------------------------------------------------- C-SVM


@both
@pytest.mark.pure
@pytest.mark.parametrize("kernel", ["rbf", "poly", "precomputed"])
def test_the_optimum_of_an_interior_point_method_is_reached(kernel, bias):
    X, y, c = half_space_and_costs(N)
    K = oracle.gram(X, X, *KERNELS["poly" if kernel == "poly" else "rbf"])
    best = optimum(K, y, c, bias)
    problem, run = solved(rows_of(X, kernel), y, c, bias)
    assert run.status == "converged"
    assert run.objective == pytest.approx(best, rel=1e-6)
    assert run.dual <= best * (1 + 1e-8) <= run.objective * (1 + 2e-8)
    assert run.objective == pytest.approx(primal(K, y, c, run.best.point), rel=1e-11)
    assert run.dual == pytest.approx(oracle.dual_gain(K, y, run.alpha * y), rel=1e-11)
    assert (run.alpha >= 0).all()
    assert (run.alpha <= c).all()
    assert not bias or abs(run.alpha @ y) < 1e-12 * c.sum()
    again = Run(problem, Settings(tol=1e-7))
    run_in_pairs(problem, begin(problem, run.alpha), again)
    assert again.iterations == 1


@compiled
@pytest.mark.parametrize(
    ("kind", "dtype"), [(k, np.float64) for k in KINDS[:4]] + [("dense float32", np.float32)]
)
def test_every_kind_of_data_and_of_storage(kind, dtype):
    X, y, c = half_space_and_costs(N)
    best = optimum(oracle.gram(X, X, *KERNELS["rbf"]), y, c, True)
    _, run = solved(rows_of(as_kind(X, kind), dtype=dtype), y, c, True, tol=1e-6, max_iter=500)
    assert run.objective == pytest.approx(best, rel=2e-5 if dtype == np.float32 else 2e-6)


@compiled
@both
def test_a_small_budget_gives_the_same_optimum(bias):
    X, y, c = half_space_and_costs(n=200)
    ample = solved(rows_of(X), y, c, bias, tol=1e-5)[1]
    rows = rows_of(X, budget=0)
    scarce = solved(rows, y, c, bias, tol=1e-5)[1]
    assert rows.store.shape == (16, 200)
    assert scarce.objective == pytest.approx(ample.objective, rel=2e-5)


@compiled
@both
def test_same_bits_for_one_and_two_threads(bias, small_chunks):
    X, y, c = half_space_and_costs(n=1300, p=9)
    before = nesvm_jit.get_threads()
    found = []
    for threads in (1, before):
        nesvm_jit.set_threads(threads)
        problem, run = solved(rows_of(X), y, c, bias, tol=1e-3)
        found.append(np.r_[run.best.point, problem.f, run.objective, run.dual])
    np.testing.assert_array_equal(found[0], found[1])


@compiled
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3, 1e6])
@both
def test_costs_of_every_size(C, bias):
    X, y, _ = half_space_and_costs(N)
    assert solved(rows_of(X), y, np.full(N, C), bias, tol=1e-6)[1].status == "converged"


@compiled
@both
@pytest.mark.parametrize("C", [0.1, 1e4])
def test_equal_rows_of_different_classes(bias, C):
    X, y, _ = half_space_and_costs(n=80)
    X[40:], y[40:] = X[:40], -y[:40]
    assert solved(rows_of(X), y, np.full(80, C), bias)[1].status == "converged"


@pytest.mark.pure
@both
def test_two_rows_one_row_of_a_class_and_rows_all_equal(bias):
    for X, y in (
        (np.array([[0.0], [1.0]]), [1, -1]),
        (np.array([[0.0], [1.0], [1.5], [3.0], [4.0]]), [1, -1, -1, -1, -1]),
        (np.zeros((6, 2)), [1, -1, -1, 1, 1, 1]),
    ):
        y = np.array(y, dtype=float)
        for kernel in KERNELS:
            _, run = solved(rows_of(X, kernel), y, np.full(len(y), 7.0), bias)
            K = oracle.gram(X, X, *KERNELS[kernel])
            assert run.status == "converged"
            assert run.objective == pytest.approx(optimum(K, y, np.full(len(y), 7.0), bias), 1e-6)


@compiled
@both
def test_a_kernel_of_low_rank_at_a_high_cost(bias):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((150, 1)), np.where(rng.random(150) < 0.5, 1.0, -1.0)
    _, run = solved(rows_of(X), y, np.full(150, 1e4), bias, tol=1e-7, max_iter=200)
    assert run.status == "converged"


@compiled
def test_a_run_that_cannot_reach_its_tolerance_ends():
    X, y, c = half_space_and_costs(N)
    _, run = solved(rows_of(X), y, c, True, tol=0.0)
    assert run.gap < 1e-12


@compiled
def test_libsvm_is_matched_on_breast_cancer():
    from sklearn.datasets import load_breast_cancer
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    X, labels = load_breast_cancer(return_X_y=True)
    X, y = StandardScaler().fit_transform(X), np.where(labels == 1, 1.0, -1.0)
    K = oracle.gram(X, X, "rbf", 1 / 30, 0.0, 3)
    for C in (1.0, 100.0):
        c = np.full(len(y), C)
        theirs = SVC(C=C, gamma=1 / 30, tol=1e-9).fit(X, y)
        beta = np.zeros(len(y))
        beta[theirs.support_] = theirs.dual_coef_[0]
        rows = KernelRows(as_matrix(X), as_spec("rbf", None, 0.0, 3, 30), AMPLE)
        _, run = solved(rows, y, c, True, tol=1e-7)
        # LIBSVM rounds K to single precision: its primal point is 1e-5 off, its dual one is good
        assert run.dual == pytest.approx(oracle.dual_gain(K, y, beta), rel=1e-6)
        assert run.objective <= primal(K, y, c, np.append(beta, theirs.intercept_)) * (1 + 1e-7)


# ---------------------------------------------------------------- LS-SVM


@pytest.mark.pure
@both
@pytest.mark.parametrize("kernel", ["rbf", "poly", "precomputed"])
@pytest.mark.parametrize("budget", [AMPLE, 0], ids=["factorised", "iterated"])
def test_least_squares(kernel, bias, budget):
    X, y, c = half_space_and_costs(N)
    K = oracle.gram(X, X, *KERNELS["poly" if kernel == "poly" else "rbf"])
    beta, b = oracle.kernel_least_squares(K, y, c, bias)
    best = primal(K, y, c, np.append(beta, b * bias), 2)
    run = least_squares_of(rows_of(X, kernel), y, c, bias, budget)
    assert run.status == "converged"
    np.testing.assert_allclose(run.best.point[:-1], beta, atol=1e-4 * np.abs(beta).max())
    assert run.objective == pytest.approx(best, rel=1e-9)
    assert run.objective == pytest.approx(primal(K, y, c, run.best.point, 2), rel=1e-10)
    assert run.dual <= best * (1 + 1e-11)
    assert not bias or abs(run.alpha @ y) < 1e-10 * np.abs(run.alpha).sum()
    assert not run.best.point[:-1][c == 0].any()


@compiled
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("budget", [AMPLE, 1e5], ids=["factorised", "iterated"])
def test_least_squares_of_every_cost(C, budget):
    X, y, _ = half_space_and_costs(n=300)
    X[150:], y[150:] = X[:150], -y[:150]
    run = least_squares_of(
        rows_of(csr_matrix(X), budget=budget), y, np.full(300, C), True, budget, tol=1e-7
    )
    assert run.status == "converged"


@compiled
@pytest.mark.parametrize("model", ["csvm", "lpsvm", "lssvm"])
@pytest.mark.parametrize("n", [40, 300])
def test_indefinite_kernels_are_refused(model, n):
    X, y, _ = half_space_and_costs(n=n)
    for K in (-X @ X.T, X @ X.T - 3.0 * np.outer(X[:, 0], X[:, 0])):
        with pytest.raises(nesvm_jit.InputError, match="positive semidefinite"):
            nesvm_jit.solve(K, y, model, kernel="precomputed")
    with pytest.raises(nesvm_jit.InputError, match="coef0 must not be negative"):
        nesvm_jit.solve(X, y, model, kernel="poly", coef0=-1.0)
