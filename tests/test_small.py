"""Small fits in one compiled call: the optimum of solvers that are not ours, bounds true in exact
arithmetic, and limits, callbacks and threads as of every fit."""

import sys
from dataclasses import astuple, replace
from functools import partial

import numpy as np
import pytest
from nesvm_jit import jit, solve, train
from nesvm_jit.binary.small import solve_small_problems, suits
from nesvm_jit.binary.small_data import Part
from nesvm_jit.binary.solution import Solution
from nesvm_jit.binary.start import Unfinished
from nesvm_jit.clock import watching
from nesvm_jit.errors import NotCertifiedWarning
from nesvm_jit.kernels import small_newton, small_pairs, small_settle
from nesvm_jit.kernels.loss import HINGE, SQUARE
from nesvm_jit.matrix.checks import as_matrix
from nesvm_jit.problems import labels
from nesvm_jit.problems.walk import FAINT
from nesvm_jit.settings import Settings
from nesvm_jit.solvers import newton
from nesvm_jit.solvers.run import COLUMNS

from . import data, exact, optima, oracle
from .compare import same_machine, same_solution
from .conftest import PURE

MODELS = ("csvm", "lpsvm", "lssvm")
CALL = "the data are so few that one compiled call fits them"

pytestmark = pytest.mark.pure


def undecided(*args):
    """Settles nothing in the call."""
    args[-1].said.fill(0.0)


def features(kernel, X):
    """Rows of a linear machine that is the kernel's."""
    K = X @ X.T if kernel == "precomputed" else oracle.gram(X, X, kernel, 1.0 / X.shape[1], 0.5, 2)
    return optima.features_of(K)


@pytest.mark.parametrize("kind", data.KINDS)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("model", MODELS)
def test_a_linear_fit_is_near_the_optimum(model, bias, kind):
    X, y, c = data.half_space_and_costs(n=50, p=4)
    A = data.as_kind(X, kind)
    best = optima.optimum(model, oracle.dense(A), y, c, bias)
    s = solve(A, y, model, sample_weight=c, bias=bias, tol=1e-6)
    assert (s.status, s.certified, s.why) == ("converged", True, CALL)
    assert s.objective == pytest.approx(optima.objective(model, oracle.dense(A), y, c, s.w, s.b))
    assert s.dual_objective <= best * (1 + 1e-9)
    assert best <= s.objective * (1 + 1e-9)
    assert s.gap <= 1e-6
    assert s.objective in s.history["objective"]
    assert (s.history["dual"] <= best * (1 + 1e-9)).all()
    assert (s.history["objective"] >= best * (1 - 1e-9)).all()
    np.testing.assert_allclose(s.margins, oracle.margins(A, s.w, s.b), atol=1e-12)


@pytest.mark.parametrize(
    ("C", "weighted"), [(1e-10, True), (1e-3, True), (1.0, False), (100.0, True)]
)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("model", MODELS)
def test_a_linear_fit_is_newtons_engine_round_by_round(model, bias, C, weighted):
    """The compiled form of its loop loses no round to a slip that changes no result."""
    X, y, c = data.half_space_and_costs(n=40, p=4)
    how = {"C": C, "bias": bias, "tol": 1e-6, "sample_weight": c if weighted else None}
    s, engine = (solve(X, y, model, solver=solver, **how) for solver in ("auto", "newton"))
    assert (s.why == CALL, engine.why == CALL) == (True, False)
    assert s.n_iter == engine.n_iter
    np.testing.assert_array_equal(s.history["mu"], engine.history["mu"])
    for name in ("smoothed", "objective"):
        np.testing.assert_allclose(
            s.history[name][:-1], engine.history[name][:-1], rtol=1e-9, err_msg=name
        )


@pytest.mark.parametrize("kernel", ["rbf", "poly", "precomputed"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("model", ["csvm", "lssvm"])
def test_a_fit_with_a_kernel_is_near_the_optimum(model, bias, kernel):
    X, y, c = data.half_space_and_costs(n=40, p=3)
    Phi = features(kernel, X)
    best = optima.optimum(model, Phi, y, c, bias)
    A = X @ X.T if kernel == "precomputed" else X
    how = {"coef0": 0.5, "degree": 2, "sample_weight": c, "bias": bias, "tol": 1e-5}
    s = solve(A, y, model, kernel, **how)
    assert (s.status, s.certified, s.why) == ("converged", True, CALL)
    assert s.objective == pytest.approx(
        optima.objective(model, Phi, y, c, Phi.T @ s.beta, s.b), rel=1e-8
    )
    assert s.dual_objective <= best * (1 + 1e-7)
    assert best <= s.objective * (1 + 1e-7)
    assert s.gap <= 1e-5
    assert s.objective in s.history["objective"]
    assert (s.history["dual"] <= best * (1 + 1e-7)).all()
    assert (s.history["objective"] >= best * (1 - 1e-7)).all()
    assert (s.beta[c == 0.0] == 0.0).all()
    np.testing.assert_allclose(s.margins, Phi @ (Phi.T @ s.beta) + s.b, atol=1e-7)


@pytest.mark.parametrize(("C", "solver"), [(1.0, "coordinate"), (1000.0, "newton")])
def test_newtons_steps_are_taken_where_steps_of_pairs_are_too_many(C, solver):
    X, y, _ = data.half_space_and_costs(n=24, p=3)
    s = solve(X @ X.T, y, kernel="precomputed", C=C, tol=1e-6)
    assert (s.status, s.solver, s.why) == ("converged", solver, CALL)
    assert s.n_iter <= 12


@pytest.mark.parametrize("bias", [True, False])
def test_least_squares_with_a_kernel_take_one_round(bias):
    X, y, c = data.half_space_and_costs(n=24, p=3)
    s = solve(X, y, "lssvm", "rbf", bias=bias, sample_weight=c, tol=1e-8)
    assert (s.n_iter, s.solver, s.why) == (1, "newton", CALL)


@pytest.mark.parametrize("model", ["csvm", "lssvm"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_bounds_of_b_allow_for_the_gap_and_for_rounding(model, kernel, monkeypatch):
    """As docs/certificate.md has them; rounding is made coarse, so that it is seen."""
    unit = 1e-4
    for name in ("_settle_rows", "_settle_gram"):
        monkeypatch.setattr(small_settle, name, undecided)

    def coarse(radius, cells, size, norm, f, b):
        return (radius + unit * (cells + 8.0) * size) * norm + unit * 8.0 * (np.abs(f) + abs(b))

    monkeypatch.setattr("nesvm_jit.binary.small_data.product_off", coarse)
    X, y, c = data.half_space_and_costs(n=30, p=3)
    s = solve(X, y, model, kernel, sample_weight=c, gamma=0.5)
    assert s.why == CALL
    products, radius = s.margins - s.b, np.sqrt(2.0 * (s.objective - s.dual_objective))
    off = radius * np.ones(30)  # √k(x, x)
    if kernel == "linear":
        off = (radius + unit * (3 + 8.0) * np.linalg.norm(s.w)) * np.linalg.norm(X, axis=1)
        off += unit * 8.0 * (np.abs(s.margins) + abs(s.b))
    expected = labels.bias_range(y, c, products, off, HINGE if model == "csvm" else SQUARE)
    assert np.isfinite(expected).all()
    assert s.bias_range == pytest.approx(expected, rel=1e-6)
    assert solve(X, y, model, kernel, bias=False).bias_range is None
    assert solve(X, y, "lpsvm").bias_range is None


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("model", MODELS)
def test_bounds_of_small_fits_hold_in_exact_arithmetic(model, bias):
    for seed in range(4):
        X, y, c = data.half_space_and_costs(n=12, p=3, seed=seed)
        s = solve(X, y, model, sample_weight=c, bias=bias, C=10.0**seed)
        assert CALL in s.why
        assert exact.judge(exact.linear(model, X, y, 10.0**seed * c, bias), s) == []


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("model", ["csvm", "lssvm"])
def test_bounds_with_a_kernel_hold_in_exact_arithmetic(model, bias):
    for seed in range(3):
        X, y, c = data.half_space_and_costs(n=12, p=3, seed=seed)
        s = solve(X, y, model, "rbf", C=10.0**seed, sample_weight=c, bias=bias, gamma=0.25)
        assert CALL in s.why
        K, off = exact.kernel_matrix(X, "rbf", 0.25, 0.0, 3)
        assert exact.judge(exact.with_kernel(model, K, off, y, 10.0**seed * c, bias), s) == []


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_machines_of_several_classes_are_their_sub_problems(kernel, multiclass):
    X, y = data.corners(k=3, n=45)
    m = train(X, y, kernel=kernel, multiclass=multiclass, gamma=0.5)
    assert len(m.problems) == 3
    for number, facts in enumerate(m.problems):
        a, b = (*facts["classes"], None)[:2]
        rows = np.isin(y, facts["classes"]) if b is not None else np.full(len(y), True)
        sign = np.where(y[rows] == a, 1.0, -1.0)
        s = solve(X[rows], sign, kernel=kernel, gamma=0.5)
        assert CALL in facts["why"]
        assert facts["objective"] == pytest.approx(s.objective, rel=1e-10)
        assert facts["dual_objective"] == pytest.approx(s.dual_objective, rel=1e-10)
        assert m.record.bias[number] == pytest.approx(s.b, abs=1e-9)


def test_a_machine_has_the_same_bits_for_any_number_of_threads():
    X, y = data.corners(k=4, n=60)
    machines = []
    for threads in (1, min(2, jit.most_threads())):
        jit.set_threads(threads)
        machines.append([train(X, y, kernel=kernel) for kernel in ("linear", "rbf")])
    assert len(machines[0]) == 2
    for one, two in zip(*machines, strict=True):
        same_machine(one, two)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_callback_sees_every_round_and_ends_the_fit_at_one(kernel):
    X, y = data.half_space(n=60)
    whole = solve(X, y, kernel=kernel, C=10.0)
    rows = []
    solve(X, y, kernel=kernel, C=10.0, callback=rows.append)
    assert [row["round"] for row in rows] == list(range(1, whole.n_iter))  # the last is certified
    with pytest.warns(NotCertifiedWarning):
        s = solve(X, y, kernel=kernel, C=10.0, callback=lambda row: row["round"] == 3)
    assert (s.status, s.n_iter) == ("interrupted", 3)
    assert whole.n_iter > 3
    np.testing.assert_array_equal(s.history["dual"], whole.history["dual"][:3])
    assert whole.dual_objective <= s.objective
    assert s.objective <= np.min(s.history["objective"]) * (1 + 1e-9)
    assert s.objective in s.history["objective"]
    assert s.dual_objective >= s.history["dual"][-1] - 1e-9 * abs(s.objective)


@pytest.mark.parametrize("limit", [{"max_iter": 2}, {"time_limit": 0.0}])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_limits_hold(kernel, limit):
    X, y = data.half_space(n=60)
    with pytest.warns(NotCertifiedWarning):
        s = solve(X, y, kernel=kernel, C=10.0, **limit)
    assert s.status == ("iteration_limit" if "max_iter" in limit else "time_limit")
    assert s.n_iter == limit.get("max_iter", 1)
    assert 0.0 <= s.dual_objective <= s.objective <= 600.0 * (1 + 1e-9)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_what_is_certified_is_kept_where_the_time_was_over(kernel, monkeypatch):
    X, y = data.half_space(n=60)
    whole = solve(X, y, kernel=kernel, C=10.0)
    late = solve(X, y, kernel=kernel, C=10.0, time_limit=1e-9)
    same_solution(late, whole)
    monkeypatch.setattr("nesvm_jit.binary.small.ROUNDS", 2)
    with pytest.warns(NotCertifiedWarning):
        s = solve(X, y, kernel=kernel, C=10.0, time_limit=1e-9)
    assert (s.status, s.n_iter) == ("time_limit", 2)
    assert s.gap < 1.0


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_ctrl_c_in_the_call_keeps_what_was_found(kernel, monkeypatch):
    X, y = data.half_space(n=60)
    linear = kernel == "linear"
    module, name = (small_newton, "_newton_fit") if linear else (small_pairs, "_pairs_fit")
    fit = getattr(module, name)

    def interrupted(*args):
        fit(*args)
        raise KeyboardInterrupt

    whole = solve(X, y, kernel=kernel)
    monkeypatch.setattr(module, name, interrupted)
    with pytest.warns(NotCertifiedWarning):
        s = solve(X, y, kernel=kernel)
    assert (s.status, s.n_iter) == ("interrupted", whole.n_iter)
    assert s.gap <= 1e-3


@pytest.mark.parametrize("where", ["in the call", "after it"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_ctrl_c_while_bounds_are_settled_keeps_what_was_found(kernel, where, monkeypatch):
    X, y = data.half_space(n=60)
    name = "settle_linear" if kernel == "linear" else "settle_kernel"
    settle = "_settle_rows" if kernel == "linear" else "_settle_gram"

    def interrupted(*args):
        raise KeyboardInterrupt

    whole = solve(X, y, kernel=kernel)
    called = interrupted if where == "in the call" else undecided
    monkeypatch.setattr(small_settle, settle, called)
    monkeypatch.setattr(f"nesvm_jit.binary.small_data.{name}", interrupted)
    with pytest.warns(NotCertifiedWarning):
        s = solve(X, y, kernel=kernel)
    assert (s.status, s.n_iter) == ("interrupted", whole.n_iter)
    assert s.gap <= 1e-3


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_callback_ends_a_sub_problem_as_if_it_were_alone(kernel):
    X, y = data.half_space(n=60)
    rows = [np.arange(0, 25), np.arange(10, 45), np.arange(30, 60)]
    parts = [Part(r, y[r], np.ones(len(r))) for r in rows]
    settings = Settings(kernel=kernel, gamma=0.5, tol=1e-6)
    early = replace(settings, callback=lambda row: row["round"] == 3)
    ask = partial(solve_small_problems, as_matrix(X), settings=settings)
    for ended in range(3):
        found = ask(parts, limits=lambda k, ended=ended: early if k == ended else settings)
        (alone,) = ask([parts[ended]], limits=lambda k: early)
        assert [isinstance(fit, Unfinished) for fit in found] == [k == ended for k in range(3)]
        assert (found[ended].status, found[ended].rounds) == ("interrupted", 3)
        for got, expected in zip(*map(astuple, (found[ended].start, alone.start)), strict=True):
            np.testing.assert_array_equal(got, expected)


def test_the_engines_go_on_where_the_call_could_not(monkeypatch):
    X, y = data.half_space(n=60)
    monkeypatch.setattr("nesvm_jit.binary.small.ROUNDS", 2)
    for kernel in ("linear", "rbf"):
        s = solve(X, y, kernel=kernel, C=10.0)
        assert s.status == "converged"
        assert s.n_iter > 2
        np.testing.assert_array_equal(s.history["round"][:2], [1, 2])
        assert "after" in s.why


@pytest.mark.parametrize(
    ("model", "kernel"),
    [
        ("csvm", "linear"),
        ("lpsvm", "linear"),
        ("lssvm", "linear"),
        ("csvm", "rbf"),
        ("lssvm", "rbf"),
    ],
)
def test_the_call_ends_where_nothing_is_left_to_gain(model, kernel, monkeypatch):
    monkeypatch.setattr("nesvm_jit.binary.small.FINEST", 0.0)
    X, y = data.half_space(n=30)
    settings = Settings(model=model, kernel=kernel, gamma=0.5, tol=0.0)
    (found,) = solve_small_problems(as_matrix(X), [Part(None, y, np.ones(30))], settings)
    assert isinstance(found, Unfinished)
    assert (found.status, found.rounds) == ("", len(found.history))
    assert found.rounds <= 40
    last = dict(zip(COLUMNS, found.history[-1], strict=True))
    assert abs(last["gap"]) < 1e-12


def test_what_is_small():
    X, _ = data.half_space(n=60)
    part = Part(None, np.ones(60), np.ones(60))

    def small_as(X=X, part=part, **settings):
        return suits(as_matrix(X), [part], Settings(**settings))

    assert small_as()
    assert small_as(kernel="rbf")
    assert not small_as(solver="newton")
    assert not small_as(moving_centre=False)
    assert not small_as(tol=1e-10)
    assert small_as(tol=1e-9)
    assert not small_as(model="lpsvm", kernel="rbf")
    assert not small_as(kernel="rbf", cache_mb=0.05)
    assert small_as(kernel="rbf", cache_mb=0.06)
    assert not small_as(kernel="rbf", approx="nystroem")
    assert not small_as(np.ones((60, 129)))
    assert small_as(np.ones((60, 128)))
    assert small_as(np.ones((1, 3)), Part(None, np.ones(1), np.ones(1)))
    assert not small_as(np.ones((0, 3)), Part(None, np.ones(0), np.ones(0)))
    assert not small_as(np.ones((60, 0)))
    assert not small_as(part=Part(None, np.ones((1 << 19) // 5 + 1), np.ones(1)))
    assert small_as(part=Part(None, np.ones((1 << 19) // 5), np.ones(1)))
    assert not small_as(np.ones((2001, 1)), kernel="rbf")
    assert not small_as(part=Part(None, np.ones(501), np.ones(501)), kernel="rbf", model="lssvm")


def test_columns_far_from_zero_and_huge_rows_are_for_the_engines():
    X, y = data.half_space(n=60)
    part = Part(None, y, np.ones(60))
    ask = partial(solve_small_problems, parts=[part], settings=Settings())
    assert ask(as_matrix(X)) is not None
    assert ask(as_matrix(np.hstack([X, 1e6 + X[:, :1]]))) is None
    assert ask(as_matrix(1e60 * X)) is None


def test_lp_machines_have_exact_zeros():
    X, y = data.half_space(n=60, p=5)
    X = np.hstack([X, 1e-3 * np.random.default_rng(0).standard_normal((60, 3))])
    s = solve(X, y, "lpsvm", C=0.1)
    assert CALL in s.why
    assert (s.w[5:] == 0.0).all()
    assert s.w.any()


def test_every_sub_problem_is_solved_in_the_one_call(monkeypatch):
    X, y = data.corners(k=4, n=60)
    calls = []
    fit = small_newton._newton_fit
    monkeypatch.setattr(
        small_newton, "_newton_fit", lambda n, *args: (calls.append(n), fit(n, *args))
    )
    m = train(X, y, multiclass="ovo")
    assert calls == [6]
    assert len(m.problems) == 6


@pytest.mark.parametrize(
    ("model", "kernel"), [("csvm", "linear"), ("csvm", "rbf"), ("lssvm", "rbf")]
)
def test_what_takes_long_is_fitted_in_several_calls_with_the_same_bits(model, kernel, monkeypatch):
    X, y = data.corners(k=4, n=60)
    how = {"model": model, "kernel": kernel, "multiclass": "ovo", "C": 10.0}
    whole, calls = train(X, y, **how), []
    for module, name in (
        (small_newton, "_newton_fit"),
        (small_pairs, "_pairs_fit"),
        (small_pairs, "_least_squares_fit"),
    ):
        fit = getattr(module, name)

        def counted(n, *args, fit=fit):
            calls.append(n)
            fit(n, *args)

        monkeypatch.setattr(module, name, counted)
    monkeypatch.setattr("nesvm_jit.binary.small.AT_ONCE", 0)
    monkeypatch.setattr("nesvm_jit.binary.small.get_threads", lambda: 4)
    cut = train(X, y, **how)
    assert calls == [4, 2]
    np.testing.assert_array_equal(cut.decision_function(X), whole.decision_function(X))
    assert [p["objective"] for p in cut.problems] == [p["objective"] for p in whole.problems]


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_ctrl_c_is_heard_between_two_calls(kernel, monkeypatch):
    X, y = data.corners(k=4, n=60)
    module, name = (
        (small_newton, "_newton_fit") if kernel == "linear" else (small_pairs, "_pairs_fit")
    )
    fit, asked = getattr(module, name), []

    def asking(n, *args):
        fit(n, *args)
        asked.append(n)

    monkeypatch.setattr(module, name, asking)
    monkeypatch.setattr("nesvm_jit.binary.small.AT_ONCE", 0)
    monkeypatch.setattr("nesvm_jit.binary.small.get_threads", lambda: 2)
    parts = [Part(None, np.where(y == k, 1.0, -1.0), np.ones(60)) for k in range(4)]
    with watching(asked=lambda: bool(asked)):
        found = solve_small_problems(as_matrix(X), parts, Settings(kernel=kernel, gamma=0.5))
    assert asked == [2]
    assert [fit.status for fit in found] == ["interrupted"] * 4
    assert [fit.rounds > 0 for fit in found] == [True, True, False, False]
    assert not found[3].start.alpha0.any()
    with watching(lambda: -1.0):
        late = solve_small_problems(as_matrix(X), parts, Settings(kernel=kernel, gamma=0.5))
    assert asked == [2, 2]
    assert [(fit.status, fit.rounds) for fit in late[2:]] == [("time_limit", 0)] * 2


@pytest.mark.skipif(PURE, reason="interpreted loops are calls of Python themselves")
def test_a_machine_of_three_classes_takes_few_calls_of_python():
    rng = np.random.default_rng(0)
    y = np.repeat([0.0, 1.0, 2.0], 40)
    X = rng.standard_normal((120, 13)) + y[:, None]
    train(X, y)
    calls = []
    sys.setprofile(lambda frame, event, arg: calls.append(event) if event == "call" else None)
    try:
        train(X, y)
    finally:
        sys.setprofile(None)
    assert len(calls) < 850


@pytest.mark.parametrize("bias", [True, False])
def test_the_call_goes_by_the_rules_of_newtons_engine(bias, monkeypatch):
    X, y = data.half_space(n=30)
    seen = []
    fit = small_newton._newton_fit
    monkeypatch.setattr(
        small_newton, "_newton_fit", lambda *given: seen.append(given) or fit(*given)
    )
    solve(X, y, bias=bias, tol=1e-5, max_iter=150)
    (_, _, _, has_bias, loss, l1, tol, rules, most, _) = seen[0]
    assert (has_bias, loss, l1, tol, most) == (bias, HINGE, False, 1e-5, 150)
    solve(X, y, bias=bias, tol=1e-5, max_iter=1000)
    assert seen[1][8] == 200
    first = newton.FIRST.loss
    assert rules == small_newton.Rules(
        first, newton.SMALLEST * first, newton.FACTOR, newton.ENOUGH, newton.NO_DESCENT, FAINT
    )


def test_a_part_is_solved_as_if_it_were_alone():
    X, y = data.half_space(n=60)
    some = np.flatnonzero(np.arange(60) % 3)
    both = [Part(None, y, np.ones(60)), Part(some, y[some], np.full(len(some), 2.0))]
    for kernel in ("linear", "rbf"):
        whole, part = solve_small_problems(as_matrix(X), both, Settings(kernel=kernel, gamma=0.5))
        assert isinstance(whole, Solution)
        alone = solve(X[some], y[some], kernel=kernel, gamma=0.5, C=2.0)
        assert part.objective == pytest.approx(alone.objective, rel=1e-9)
        assert part.dual_objective == pytest.approx(alone.dual_objective, rel=1e-9)
        assert len(part.alpha) == len(some)


@pytest.mark.parametrize(("kernel", "n", "p"), [("linear", 4096, 128), ("rbf", 2000, 1)])
def test_where_time_is_limited_all_sub_problems_together_are_small(kernel, n, p):
    X, part = np.zeros((n, p)), Part(None, np.ones(n), np.ones(n))
    half = Part(np.arange(n // 2), np.ones(n // 2), np.ones(n // 2))
    for parts, limited in (([part], True), ([half, half], True), ([part, half], False)):
        assert suits(X, parts, Settings(kernel=kernel))
        assert suits(X, parts, Settings(kernel=kernel, time_limit=1.0)) is limited


@pytest.mark.parametrize(
    ("model", "kernel", "most"), [("csvm", "linear", 2**17), ("lssvm", "rbf", 500)]
)
def test_the_largest_of_all_sub_problems_must_be_small(model, kernel, most):
    X = np.zeros((2000, 4))
    for sizes, small in (([2, most], True), ([2, most + 1, 3], False)):
        parts = [Part(None, np.ones(n), np.ones(n)) for n in sizes]
        assert suits(X, parts, Settings(model=model, kernel=kernel)) is small
