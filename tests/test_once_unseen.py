"""Faults that shipped unseen once, at scales and shapes that no test drew: one test each, named by
what it protects."""

from types import SimpleNamespace

import numpy as np
import pytest
from nesvm_jit import InputError, load_model
from nesvm_jit.checkpoint import checkpoint as checkpoints
from nesvm_jit.checkpoint.checkpoint import resume_if_same
from nesvm_jit.checkpoint.fingerprint import data_fingerprint
from nesvm_jit.clock import Clock
from nesvm_jit.kernels.loss import SQUARE
from nesvm_jit.machine.calibration import couple
from nesvm_jit.matrix.checks import as_matrix
from nesvm_jit.models import MODELS, Smoothing
from nesvm_jit.problems.certificate import DualSums
from nesvm_jit.problems.evaluation import Evaluation
from nesvm_jit.problems.kernel import KernelProblem, KernelRows
from nesvm_jit.selection.path import STATE_EVERY
from nesvm_jit.selection.result import Fit
from nesvm_jit.selection.search import Column, save
from nesvm_jit.settings import Settings
from nesvm_jit.solvers.driver import always, drive
from nesvm_jit.solvers.least_squares import begin as begin_equations
from nesvm_jit.solvers.least_squares import least_squares
from nesvm_jit.solvers.run import Run
from scipy.special import expit

from tests.endings import solve, train

from . import oracle
from .data import ball


def test_kernel_least_squares_knows_the_margins_of_rows_without_weight():
    X, y = ball()
    weight = np.arange(len(y)) % 3 != 0
    s = solve(X, y, "lssvm", "rbf", gamma=0.3, sample_weight=weight, tol=1e-8)
    K = oracle.gram(X, X, "rbf", 0.3, 0, 3)
    np.testing.assert_allclose(s.margins, K @ s.beta + s.b, rtol=1e-9, atol=1e-9)
    assert np.std(s.margins[~weight]) > 0.1


def test_probabilities_of_kernel_least_squares_with_weightless_rows_rise_with_the_margin():
    X, y = ball(n=120)
    weight = np.arange(len(y)) % 2
    m = train(X, y, model="lssvm", kernel="rbf", gamma=0.3, sample_weight=weight, probability=True)
    f = m.decision_function(X)
    p = m.predict_proba(X)[:, list(m.classes).index(1.0)]
    order = np.argsort(f * (1 if m.predict(X[[f.argmax()]])[0] == 1.0 else -1))
    assert (np.diff(p[order]) >= 0).all()
    assert p[order][-1] > 0.5 > p[order][0]


def test_support_vectors_of_zeros_and_ones_keep_their_ones():
    rng = np.random.default_rng(0)
    X = (rng.random((80, 6)) < 0.4).astype(float)
    y = np.where(X[:, 0] + X[:, 1] + 0.5 * rng.standard_normal(80) > 0.8, 1.0, -1.0)
    m = train(X, y, kernel="rbf", gamma=0.5)
    np.testing.assert_array_equal(m.record.support.toarray(), X[m.support_rows])
    K = oracle.gram(X, X[m.support_rows], "rbf", 0.5, 0, 3)
    f = K @ m.record.coefs[:, 0] + m.record.bias[0]
    np.testing.assert_allclose(m.decision_function(X).ravel(), f, rtol=1e-9)


@pytest.mark.parametrize("C", [1e-3, 0.5, 1.0])
@pytest.mark.parametrize("solver", ["nesvm", "homotopy"])
def test_gradient_methods_with_a_kernel_have_a_bound_at_small_costs(solver, C):
    X, y = ball()
    s = solve(X, y, kernel="rbf", gamma=0.3, C=C, solver=solver, mu=0.5, mu_end=0.1, max_iter=300)
    assert 0.5 * s.objective < s.dual_objective <= s.objective


@pytest.mark.parametrize("objective", [1e-9, 0.5, 1.0, 7.0])
def test_a_small_objective_is_not_certified_unseen(objective):
    run = Run(None, Settings(), objective=objective, dual=0.25 * objective)
    assert run.gap == pytest.approx(0.75)


@pytest.mark.parametrize("C", [1e-6, 1e-3])
def test_one_round_at_a_small_cost_is_not_certified(C):
    X, y = ball()
    s = solve(X, y, C=C, solver="nesvm", mu=1e-3, max_iter=1, tol=1e-9)
    assert s.objective < 1.0
    assert not s.certified
    assert s.gap == pytest.approx(1 - s.dual_objective / s.objective)


def finished_fit():
    return {(0, 0): Fit({"accuracy": 0.5}, 0.1, 1.0, 0.0, True, 3, None, 7, "converged")}


def test_a_path_that_is_killed_has_kept_its_finished_columns(tmp_path, monkeypatch):
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(checkpoints.time, "perf_counter", lambda: clock.now)
    given = tmp_path / "state", STATE_EVERY, {"data": []}
    kept, _ = resume_if_same(*given, Clock())
    save(kept, Column(0, 0, (0,)), finished_fit())
    assert resume_if_same(*given, Clock())[0].resumed == 0  # not at every column
    clock.now += 2 * STATE_EVERY
    save(kept, Column(0, 1, (0,)), finished_fit())
    again, _ = resume_if_same(*given, Clock())
    assert again.resumed == 2
    assert again.done("0 1 0")[0][2]["iterations"] == 7


def test_the_fingerprint_of_data_is_theirs_and_of_nothing_else():
    X, y = ball()
    key = data_fingerprint(as_matrix(X), y, None)
    assert key == data_fingerprint(as_matrix(X.copy()), y.copy(), None)
    assert key != data_fingerprint(as_matrix(X), y, np.empty(0))
    assert key != data_fingerprint(as_matrix(X), -y, None)


@pytest.mark.parametrize("scale", [1e-9, 1e-4, 1.0, 1e6, 1e9])
def test_indefinite_kernels_are_told_from_rounding_at_every_scale(scale):
    X, y = ball()
    valid = scale * X @ X.T  # of rank 4: rounding makes eigenvalues below zero
    assert solve(valid, y, kernel="precomputed", C=1e-3 / scale).gap <= 1.0
    for share in (1e-3, 1.0):
        indefinite = valid - share * scale * np.eye(len(y))
        with pytest.raises(InputError, match="positive semidefinite"):
            solve(indefinite, y, kernel="precomputed", C=1e-3 / scale)


LOGISTIC = {"L2R_LR": 0, "L1R_LR": 6, "L2R_LR_DUAL": 7}
HINGES = (
    *("L2R_L2LOSS_SVC_DUAL", "L2R_L2LOSS_SVC", "L2R_L1LOSS_SVC_DUAL"),
    *("MCSVM_CS", "L1R_L2LOSS_SVC"),
)


@pytest.mark.parametrize("solver_type", [*LOGISTIC, *HINGES])
def test_only_logistic_models_of_liblinear_have_probabilities(tmp_path, solver_type):
    head = f"solver_type {solver_type}\nnr_class 2\nlabel 1 -1\nnr_feature 2\nbias -1\nw\n"
    rows = "0.5 0 \n-2 0 \n" if solver_type == "MCSVM_CS" else "0.5 \n-2 \n"
    (tmp_path / "model").write_text(head + rows)
    m, X = load_model(tmp_path / "model"), np.array([[1.0, 1.0], [4.0, -1.0]])
    if solver_type in LOGISTIC:
        np.testing.assert_allclose(m.predict_proba(X)[:, 0], expit([-1.5, 4.0]), rtol=1e-12)
    else:
        with pytest.raises(InputError, match="probabilit"):
            m.predict_proba(X)


def test_the_zero_dual_point_of_least_squares_is_worth_nothing():
    assert MODELS["lssvm"]().dual_value(0.0, 0.0, np.zeros(3), 0.0) == (0.0, 0.0)
    X, y = ball()
    s = solve(X, y, "lssvm", solver="newton", alpha0=np.zeros(len(y)), tol=1e-9)
    assert s.certified


def test_conjugate_gradients_go_on_where_one_of_two_systems_is_solved():
    """K·1 = 15.5·1: with the ridge of 0.5 the system of the bias is solved by one step, to the
    last bit."""
    n = 8
    K = np.diag(np.full(n, 11.0))
    for k in range(n):
        K[k, (k + 1) % n] = K[(k + 1) % n, k] = 1.5
        K[k, (k + 4) % n] = 1.5
    assert (K.sum(axis=1) == 15.5).all()
    y = np.array([1.0, 1, 1, -1, 1, -1, -1, 1])
    problem = KernelProblem(KernelRows(None, None, 0, K=K), y, np.ones(n), True, SQUARE)
    run = Run(problem, Settings(tol=0.0, max_iter=50))
    drive(least_squares(problem, begin_equations(problem, 0.0)), run, always)
    table = run.history()
    assert len(table["round"]) >= 3
    assert np.isfinite(table["objective"]).all()
    beta, b = oracle.kernel_least_squares(K, y, np.ones(n), True)
    np.testing.assert_allclose(run.best.point, np.append(beta, b), atol=1e-9)


def test_a_gap_that_equals_the_tolerance_is_converged():
    problem = SimpleNamespace(passes=0.0)
    run = Run(problem, Settings(tol=0.5), dual=2.0)
    nothing = np.zeros(1)
    found = Evaluation(nothing, Smoothing(0.0, 0.0), 4.0, nothing, 4.0, DualSums(0.0, 0.0, nothing))
    assert run.record(found, certify=False)
    assert (run.status, run.gap) == ("converged", 0.5)


def test_coordinate_steps_are_not_smoothed_and_say_so():
    X, y = ball()
    assert (solve(X, y, solver="coordinate").history["mu"] == 0.0).all()


@pytest.mark.parametrize("cost", [1e-6, 1.0, 1e6])
def test_a_bias_that_is_free_within_an_interval_is_its_middle(cost):
    y, c = np.array([1.0, 1.0, -1.0, -1.0]), np.full(4, cost)
    problem = KernelProblem(KernelRows(None, None, 0, K=np.eye(4)), y, c, True)
    problem.place(np.zeros(4))
    assert problem.best_bias() == 0.0  # any b from -1 to 1 has the same loss
    problem.place(cost * y)  # every row at its bound
    assert problem.best_bias() == 0.0
    problem.stand(np.array([0.25, 0.0, 0.0, 0.0]))
    assert problem.best_bias() == pytest.approx(-0.125)  # from -1 to 0.75


@pytest.mark.parametrize("shape", [(2, 0, 0), (2, 3), (2, 3, 4)])
def test_tables_that_are_no_pairs_are_refused_in_one_line(shape):
    with pytest.raises(InputError, match=r"pairwise must have shape \(n, k, k\), got"):
        couple(np.zeros(shape))
