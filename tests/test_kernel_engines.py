"""The smoothed kernel machine and the engines that minimise it, against NumPy and each other."""

from functools import partial

import numpy as np
import pytest
from nesvm_jit import InputError
from nesvm_jit.binary import kernel as kernel_form
from nesvm_jit.binary import kernel_matrix
from nesvm_jit.kernels.public import as_spec
from nesvm_jit.machine import jobs
from nesvm_jit.matrix.checks import as_matrix
from nesvm_jit.models import MODELS
from nesvm_jit.models.base import Smoothing
from nesvm_jit.problems.kernel import KernelProblem, KernelRows
from nesvm_jit.problems.smoothed_kernel import SmoothedKernel
from nesvm_jit.solvers import coarse as levels
from nesvm_jit.solvers.active_set import active_set_direction
from scipy.sparse import csr_matrix

from tests.endings import solve, train

from . import oracle
from .data import ball

MU = Smoothing(0.7, 0.7)
every_model = pytest.mark.parametrize("model", ["csvm", "lssvm"])
every_bias = pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
every_kernel = pytest.mark.parametrize("kernel", ["rbf", "poly"])


def smoothed(model="csvm", bias=True, kernel="rbf", C=2.0, **shape):
    X, y = ball(**shape)
    c = C * np.random.default_rng(1).random(len(y))
    c[3] = 0.0
    rows = KernelRows(as_matrix(X), as_spec(kernel, 0.3, 1.0, 2, X.shape[1]), 1e9)
    loss = MODELS[model]().loss
    problem = SmoothedKernel(KernelProblem(rows, y, c, bias, loss), MODELS[model]())
    return problem, oracle.gram(X, X, kernel, 0.3, 1.0, 2), y, c


@every_model
@every_bias
@every_kernel
def test_values_and_gradients_are_those_of_numpy(model, bias, kernel):
    problem, K, y, c = smoothed(model, bias, kernel)
    rng = np.random.default_rng(2)
    for _ in range(3):
        beta, b = rng.standard_normal(len(y)), float(rng.standard_normal()) * bias
        alpha = c * rng.random(len(y))
        centre = np.where(c > 0, alpha / np.where(c > 0, c, 1), 0) if model == "csvm" else 0.0
        found = problem.walk(problem.start(beta, b), MU, alpha).at
        value, h = oracle.smoothed_kernel(model, K, y, c, bias, beta, b, MU.loss, centre)
        assert found.value == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(found.gradient[: len(y)], beta - h, atol=1e-10)
        np.testing.assert_allclose(found.gradient[len(y) : -1], K @ (beta - h), atol=1e-8)
        assert found.gradient[-1] == pytest.approx(-h.sum() * bias, abs=1e-10)
        assert found.objective == pytest.approx(
            oracle.kernel_objective(model, K, y, c, beta, b), rel=1e-12
        )


@every_model
@every_bias
def test_slopes_are_differences_of_values(model, bias):
    problem, _, y, _ = smoothed(model, bias)
    rng = np.random.default_rng(3)
    walk = problem.walk(problem.start(rng.standard_normal(len(y))), MU)
    walk.aim(problem.start(rng.standard_normal(len(y)), float(bias)))
    at, h = 0.3, 1e-5
    first, second = walk.slope(at, MU)
    values = [problem.at(walk.point + t * walk._direction, MU).value for t in (at - h, at + h)]
    assert first == pytest.approx((values[1] - values[0]) / (2 * h), rel=1e-5)
    around = [walk.slope(t, MU)[0] for t in (at - h, at + h)]
    assert second == pytest.approx((around[1] - around[0]) / (2 * h), rel=1e-4)


@every_bias
@pytest.mark.parametrize("largest", [0, 10**6], ids=["iterated", "factorised"])
def test_newtons_direction_solves_its_equations(bias, largest):
    problem, K, y, _ = smoothed(bias=bias)
    walk = problem.walk(problem.start(np.full(len(y), 0.1) * y), MU)
    g = walk.at.gradient
    d = active_set_direction(walk, g, largest, forcing=1e-12)
    A, W = problem.active(walk.at)
    assert len(A) > 5
    n = len(y)
    bent = np.zeros(n)
    bent[A] = W * (d[n : 2 * n][A] + d[-1])
    np.testing.assert_allclose(d[:n] + bent, -g[:n], atol=1e-8)
    np.testing.assert_allclose(K @ d[:n], d[n : 2 * n], atol=1e-8)
    if bias:
        assert bent.sum() == pytest.approx(-g[-1], abs=1e-8)
    assert problem.inner(g, d) < 0


@every_bias
@every_kernel
def test_lipschitz_constants_bound_the_gradient(bias, kernel):
    problem, K, _, c = smoothed(bias=bias, kernel=kernel)
    d = c / problem.rows.s
    whole = np.sqrt(d)[:, None] * (K + bias) * np.sqrt(d)
    exact = 1 + np.linalg.eigvalsh(whole)[-1] / MU.loss
    assert 0.999 * exact <= problem.lipschitz("tight", MU) <= 1.02 * exact
    assert problem.lipschitz("paper", MU) >= exact


@every_model
@every_bias
@pytest.mark.parametrize("kernel", ["rbf", pytest.param("poly", marks=pytest.mark.slow)])
def test_engines_reach_one_optimum(model, bias, kernel):
    X, y = ball(n=80)
    options = {"model": model, "kernel": kernel, "gamma": 0.3, "coef0": 1.0, "bias": bias, "C": 3.0}
    best = solve(X, y, tol=1e-9, **options)
    tight = {"lipschitz": "tight", "restart": True}
    for solver, more in (
        ("homotopy", {"tol": 1e-4, "mu_end": 1e-7, "schedule": "gap", "epsilon": 1e-9, **tight}),
        ("newton", {"tol": 1e-6}),
    ):
        s = solve(X, y, solver=solver, **options, **more)
        assert s.solver == solver
        assert s.certified, (solver, s.gap)
        assert s.dual_objective <= best.objective * (1 + 1e-9)
        assert best.dual_objective <= s.objective <= best.objective * (1 + 2e-4)


@every_bias
def test_the_papers_literal_form_reaches_the_same_objective(bias):
    X, y = ball(n=40)
    C, mu, gamma = 2.0, 0.5, 0.3
    K = oracle.gram(X, X, "rbf", gamma, 0, 3)
    c = np.full(len(y), C)
    beta, b = oracle.nesvm_in_beta(K, y, c, bias, mu, rounds=20000)
    literal, _ = oracle.smoothed_kernel("csvm", K, y, c, bias, beta, b, mu, 0.0)
    s = solve(
        X,
        y,
        kernel="rbf",
        gamma=gamma,
        C=C,
        bias=bias,
        solver="nesvm",
        mu=mu,
        epsilon=1e-13,
        lipschitz="tight",
        tol=0.0,
    )
    assert s.history["smoothed"].min() == pytest.approx(literal, rel=1e-6)


def start_from_levels(monkeypatch, few=50):
    """Let kernel machines of few rows start from a part of them, too."""
    for name in ("newton_in_levels", "pairwise_in_levels"):
        monkeypatch.setattr(kernel_form, name, partial(getattr(levels, name), few=few))


def test_newton_starts_from_a_part_of_the_rows(monkeypatch):
    start_from_levels(monkeypatch)
    X, y = ball(n=800)
    sizes = []
    quarter = levels._quarter
    monkeypatch.setattr(levels, "_quarter", lambda *a: sizes.append(len(a[0])) or quarter(*a))
    s = solve(X, y, kernel="rbf", gamma=0.3, C=5.0, solver="newton", tol=1e-5)
    assert sizes == [800, 199]  # a quarter of each class
    assert s.certified
    again = solve(X, y, kernel="rbf", gamma=0.3, C=5.0, solver="newton", tol=1e-5)
    assert np.array_equal(s.beta, again.beta)


@pytest.mark.parametrize("solver", ["nesvm", "homotopy", "newton"])
@every_model
def test_limits_keep_the_best_point(solver, model):
    X, y = ball(n=100)
    for limit in ({"max_iter": 2}, {"time_limit": 0.0}, {"callback": lambda _: True}):
        s = solve(X, y, model, "rbf", solver=solver, tol=1e-12, **limit)
        K = oracle.gram(X, X, "rbf", 1 / 4, 0, 3)
        value = oracle.kernel_objective(model, K, y, np.ones(len(y)), s.beta, s.b)
        assert s.objective == pytest.approx(value, rel=1e-9)
        assert s.dual_objective <= s.objective
        if (solver, model) != ("newton", "lssvm"):  # which is done at once
            assert s.status in ("iteration_limit", "time_limit", "interrupted")


@pytest.mark.parametrize(("solver", "tol"), [("auto", 1e-6), ("coordinate", 1e-9)])
@pytest.mark.parametrize("kernel", ["poly", "precomputed"])
def test_bounds_of_pairwise_steps_only_improve(kernel, solver, tol):
    X, y = ball(n=150)
    given = oracle.gram(X, X, "rbf", 0.3, 0, 3) if kernel == "precomputed" else X
    shape = {"kernel": kernel, "gamma": 0.3, "coef0": 1.0}
    s = solve(given, y, **shape, C=300.0, tol=tol, solver=solver)
    assert ("one compiled call fits" in s.why) == (solver == "auto")
    h = s.history
    assert len(h["dual"]) > 3
    assert (np.diff(h["dual"]) >= 0).all()


def test_dual_points_become_sparse_machines():
    X, y = ball(n=200)
    s = solve(
        X,
        y,
        kernel="rbf",
        gamma=0.3,
        C=5.0,
        solver="homotopy",
        mu_end=1e-6,
        tol=1e-2,
        lipschitz="tight",
        schedule="gap",
        restart=True,
        epsilon=1e-9,
    )
    assert s.certified
    assert 0 < np.count_nonzero(s.beta) < len(y)


# ---------------------------------------------------------------- single precision and levels


def exact(X, y, C, s):
    K = oracle.gram(X, X, "rbf", 1 / X.shape[1], 0, 3)
    return oracle.kernel_objective("csvm", K, y, np.full(len(y), C), s.beta, s.b)


@every_bias
@pytest.mark.parametrize("C", [0.1, 1.0, 30.0, 1000.0])
@pytest.mark.parametrize("shift", [0.0, 100.0])
def test_single_precision_certifies_the_exact_problem(engines_only, bias, C, shift):
    X, y = ball(n=150, seed=int(C))
    best = solve(X, y, kernel="rbf", C=C, bias=bias, tol=1e-10)
    for tol in (1e-2, 1e-3, 1e-4, 1e-5):
        s = solve(X + shift, y, kernel="rbf", C=C, bias=bias, tol=tol)
        assert s.certified
        assert s.dual_objective <= best.objective * (1 + 1e-12)
        assert s.objective == pytest.approx(exact(X, y, C, s), rel=0.03 * tol)
        assert s.objective >= best.dual_objective * (1 - 0.03 * tol)


def test_what_single_precision_cannot_settle_goes_on_in_double(engines_only, monkeypatch):
    made = []
    finer = KernelProblem.coarse
    monkeypatch.setattr(KernelProblem, "coarse", lambda *a: made.append(finer(*a)) or made[-1])
    single = partial(kernel_matrix.precision, rounding=1e9)  # whatever comes
    monkeypatch.setattr(kernel_matrix, "precision", single)
    X, y = ball(n=300, seed=5)
    s = solve(X, y, kernel="rbf", gamma=1.0, C=1e4, tol=5e-6)
    assert any(made)
    assert s.certified
    assert s.gap <= 5e-6


@pytest.mark.parametrize("model", ["csvm", "lssvm"])
def test_pairs_of_classes_share_one_matrix_and_stay_the_same(engines_only, monkeypatch, model):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((90, 3)), np.repeat([3.0, 1.0, 2.0], 30)
    X[y == 1.0] += 1.0
    options = {"model": model, "kernel": "rbf", "C": 2.0, "tol": 1e-7, "multiclass": "ovo"}
    shared = train(X, y, **options)
    monkeypatch.setattr(jobs, "shared_matrix", lambda *_: None)
    alone = train(X, y, **options)
    np.testing.assert_allclose(shared.decision_function(X), alone.decision_function(X), atol=1e-3)
    for a, b in zip(shared.problems, alone.problems, strict=True):
        assert a["objective"] == pytest.approx(b["objective"], rel=1e-6)


def test_pairwise_steps_start_from_a_part_of_the_rows(engines_only, monkeypatch):
    X, y = ball(n=800)
    options = {"kernel": "rbf", "gamma": 0.3, "C": 5.0, "tol": 1e-6}
    cold = solve(X, y, **options)
    start_from_levels(monkeypatch)
    sizes = []
    quarter = levels._quarter
    monkeypatch.setattr(levels, "_quarter", lambda *a: sizes.append(len(a[0])) or quarter(*a))
    warm = solve(X, y, **options)
    assert sizes == [800, 199]
    assert warm.certified
    assert warm.objective == pytest.approx(cold.objective, rel=2e-6)
    short = solve(X, y, max_iter=1, **options)
    assert short.status == "iteration_limit"
    assert short.dual_objective <= cold.objective


# ---------------------------------------------------------------- LIBSVM


def scaled(load):
    X, y = load(return_X_y=True)
    X = (X - X.min(axis=0)) / np.maximum(np.ptp(X, axis=0), 1e-9)
    return X[:600], np.where(y[:600] % 2 == 1, 1.0, -1.0)


@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "digits", "drawn"])
def test_objectives_are_those_of_libsvm(name, C):
    svm = pytest.importorskip("libsvm.svmutil")
    datasets = pytest.importorskip("sklearn.datasets")
    X, y = ball(n=300) if name == "drawn" else scaled(getattr(datasets, f"load_{name}"))
    gamma = 1 / X.shape[1]
    model = svm.svm_train(y, csr_matrix(X), f"-t 2 -g {gamma:.17g} -c {C} -e 1e-9 -q")
    beta = np.zeros(len(y))
    beta[np.array(model.get_sv_indices()) - 1] = np.ravel(model.get_sv_coef())
    beta *= model.get_labels()[0]
    K = oracle.gram(X, X, "rbf", gamma, 0, 3)
    # of its dual point: LIBSVM keeps K in single precision, which its b and P suffer from
    theirs = y @ beta - 0.5 * beta @ K @ beta
    ours = solve(X, y, kernel="rbf", C=C, tol=1e-8)
    assert ours.certified
    assert ours.objective == pytest.approx(theirs, rel=1e-6)


# ---------------------------------------------------------------- hard data


@pytest.mark.parametrize("make", [np.asarray, csr_matrix, np.float32])
@pytest.mark.parametrize("scale", [1e5, 1e8, 1e12])
def test_distances_of_large_rows_are_not_lost(scale, make):
    """K is the identity: the optimum is known in closed form to `precomputed`."""
    X, _ = ball()
    y = np.sign(X[:, 0])
    best = solve(np.eye(len(y)), y, kernel="precomputed", tol=1e-9)
    s = solve(make(X * scale), y, kernel="rbf", gamma=0.5, tol=1e-9)
    assert s.certified
    assert s.objective == pytest.approx(best.objective, rel=1e-8)
    assert s.dual_objective <= best.objective * (1 + 1e-12)


@pytest.mark.parametrize("model", ["csvm", "lpsvm", "lssvm"])
def test_one_far_row_spoils_nothing(model):
    X, y = ball()
    X[7] *= 1e9
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    best = solve(K, y, model, "precomputed", tol=1e-6)
    s = solve(X, y, model, "rbf", gamma=0.5, tol=1e-6)
    assert s.certified
    assert s.objective == pytest.approx(best.objective, rel=2e-6)


def test_a_fit_that_is_stopped_is_no_worse_than_none(monkeypatch):
    start_from_levels(monkeypatch)
    X, y = ball(n=400)
    nothing = 2.0 * 1000.0 * min(np.sum(y > 0), np.sum(y < 0))
    for solver in ("auto", "coordinate", "newton"):
        for limit in (1, 2, 3, 5, 8):
            s = solve(X, y, kernel="rbf", C=1000.0, solver=solver, max_iter=limit, tol=1e-9)
            assert s.objective <= nothing * (1 + 1e-12)
            assert s.dual_objective >= 0.0
            assert s.gap <= 1.0


@pytest.mark.parametrize("scale", [1.0, 0.0, 1e-150])
def test_newton_on_rows_that_are_all_the_same(scale):
    y = np.r_[np.ones(40), -np.ones(20)]
    s = solve(np.full((60, 4), scale), y, kernel="rbf", solver="newton")
    assert s.certified
    assert s.objective == pytest.approx(40.0)


def test_what_does_not_apply_is_refused():
    X, y = ball()
    for wrong in ({"w0": np.ones(4)}, {"alpha0": np.ones(3)}, {"b0": 1.0}):
        with pytest.raises(InputError, match="are for linear machines"):
            solve(X, y, kernel="rbf", **wrong)
    linear, kernel = train(X, y), train(X, y, kernel="rbf")
    for warm, name in ((kernel, "linear"), (linear, "rbf"), (kernel, "rbf")):
        with pytest.raises(InputError, match="only a linear machine can start"):
            train(X, y, kernel=name, warm=warm)
    for model in ("csvm", "lpsvm", "lssvm"):
        with pytest.raises(InputError, match="polynomial kernel must be smaller"):
            solve(X * 1e120, y, model, "poly", gamma=1.0)
    with pytest.raises(InputError, match="polynomial kernel must be smaller"):
        train(X, y, kernel="poly", gamma=1e100, degree=10, approx="nystroem")
