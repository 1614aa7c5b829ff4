"""`solve` at its edges: what is refused and in which words, where starts lead, what settings mean,
and every field of a solution; the kernel form with its matrices, precisions and budgets."""

import copy
import re
from dataclasses import fields, replace
from itertools import product

import numpy as np
import pytest
from nesvm_jit import InputError, Settings, cross_validate, path
from nesvm_jit.binary import finish_kernel, finish_linear, kernel_matrix, linear
from nesvm_jit.binary import kernel as kernel_form
from nesvm_jit.binary.finish import Ending
from nesvm_jit.binary.kernel import solve_kernel
from nesvm_jit.binary.kernel_matrix import (
    budget_bytes,
    finer_rows,
    gamma_of,
    kernel_rows,
    precision,
    shared_matrix,
    spec_of,
    worker_mb,
)
from nesvm_jit.binary.linear import require_memory
from nesvm_jit.binary.solution import Solution
from nesvm_jit.binary.solve import solve_checked
from nesvm_jit.binary.start import Start
from nesvm_jit.kernels.public import as_spec
from nesvm_jit.matrix.checks import as_matrix
from nesvm_jit.models import MODELS, Smoothing
from nesvm_jit.problems.evaluation import NO_GRADIENT, NO_SUMS, Evaluation
from nesvm_jit.problems.kernel import KernelProblem
from nesvm_jit.problems.kernel_errors import entry_error
from nesvm_jit.problems.kernel_rows import KernelRows
from nesvm_jit.problems.linear import problem_in_memory
from nesvm_jit.solvers import accelerated
from nesvm_jit.solvers.run import Run
from scipy.sparse import csr_matrix

from tests.endings import solve

from . import oracle
from .optima import objective

every_model = pytest.mark.parametrize("model", ["csvm", "lpsvm", "lssvm"])
every_bias = pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
approx = pytest.approx
FIVE = Smoothing(5.0, 5.0)


def draw(n=40, p=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    y = np.where(X[:, 0] - X[:, 1] + rng.standard_normal(n) > 0.2, 1.0, -1.0)
    y[:2] = [1.0, -1.0]
    return X, y


def dual_value(model, X, y, c, alpha):
    direction, used = X.T @ (alpha * y), c > 0
    if model == "lpsvm":
        return alpha.sum()
    less = np.sum(alpha[used] ** 2 / (4 * c[used])) if model == "lssvm" else 0.0
    return alpha.sum() - less - 0.5 * direction @ direction


# ---------------------------------------------------------------- solutions


@every_bias
@pytest.mark.parametrize(
    ("model", "solver"),
    [
        *product(("csvm", "lpsvm", "lssvm"), ("auto", "engines", "nesvm", "homotopy", "newton")),
        *product(("csvm", "lssvm"), ("coordinate",)),
    ],
)
@pytest.mark.parametrize("limit", [{}, {"max_iter": 3, "tol": 1e-9}], ids=["whole", "stopped"])
def test_every_field_of_a_solution(model, bias, solver, limit, request):
    X, y = draw()
    compiled = solver == "auto"
    solver = auto_of(solver, request)
    weight = np.linspace(0, 1, 40)
    c = 0.3 * weight
    s = solve(
        X,
        y,
        model,
        C=0.3,
        bias=bias,
        solver=solver,
        sample_weight=weight,
        mu=0.1,
        mu_end=2.0,
        **limit,
    )
    assert (s.model, s.beta) == (model, None)
    assert isinstance(s.b, float)
    assert bias or s.b == 0.0
    assert s.w.shape == (4,)
    np.testing.assert_allclose(s.margins, X @ s.w + s.b, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(s.decision_function(X), s.margins, rtol=1e-9, atol=1e-10)
    assert s.objective == approx(objective(model, X, y, c, s.w, s.b), rel=1e-12)
    assert s.dual_objective == approx(dual_value(model, X, y, c, s.alpha), rel=1e-9, abs=1e-12)
    assert not bias or abs(s.alpha @ y) <= 1e-12 * np.abs(s.alpha).sum()
    assert s.gap == approx((s.objective - s.dual_objective) / s.objective)
    assert s.certified is (s.gap <= limit.get("tol", 1e-3))
    assert s.solver == (solver if solver != "auto" else "newton")
    auto = why_of_small(s) if compiled else binary_why(4)
    assert s.why == (auto if solver == "auto" else "asked for")
    h = s.history
    assert h["round"][-1] <= s.n_iter
    assert h["objective"].min() >= s.objective - 1e-9
    if model != "lpsvm":
        assert h["objective"].min() == approx(s.objective, rel=1e-12)
    if limit and model != "lssvm":
        assert (s.status, s.n_iter) == ("iteration_limit", 3)
    elif not limit:
        assert s.status == ("epsilon" if solver in ("nesvm", "homotopy") else "converged")
        assert s.certified or solver in ("nesvm", "homotopy")


def auto_of(solver, request):
    """The solver to ask for, where `engines` is auto without the compiled call of small fits."""
    if solver != "engines":
        return solver
    request.getfixturevalue("engines_only")
    return "auto"


def why_of_small(s):
    if s.certified:
        return "the data are so few that one compiled call fits them"
    return f"after what one compiled call found (rounds: {s.n_iter})"


def binary_why(p):
    return f"{p} features are few enough to factorise the Hessian"


@every_model
@every_bias
@pytest.mark.parametrize("seed", range(4))
def test_the_objective_is_that_of_the_point_added_up_afresh(model, bias, seed):
    X, y = draw(seed=seed)
    s = solve(X, y, model, C=3.0, bias=bias, tol=1e-6)
    fresh = problem_in_memory(as_matrix(X), y, np.full(40, 3.0), MODELS[model](), bias)
    P = fresh.objective_at(np.append(s.w, s.b)[: 4 + bias])[0]
    assert P <= s.objective <= P * (1 + 1e-13)
    near = 1e-10 if model == "lpsvm" else 1e-12  # α is made smaller until it is surely feasible
    assert s.dual_objective == approx(fresh.value_of(s.alpha).value, rel=near)
    assert model == "lpsvm" or s.objective in s.history["objective"]


@every_model
def test_a_cold_start_costs_one_pass(model):
    X, y = draw()
    more = {"bias": False, "max_iter": 1, "tol": 1e-9}
    for solver in ("newton", "nesvm", "homotopy"):
        assert solve(X, y, model, solver=solver, **more).history["passes"].tolist() == [1.0]
    warm = solve(X, y, model, solver="newton", w0=np.ones(4), **more).history["passes"][0]
    assert warm <= (1.0 if model == "lssvm" else 10.0)  # P, D of up to eight μ, and a step
    wide_X, wide_y = wide()
    if model == "lpsvm":
        s = solve(wide_X, wide_y, model, lipschitz="paper", **more)
        assert (s.solver, s.history["passes"].tolist()) == ("homotopy", [1.0])


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_an_interrupt_keeps_what_was_found(kernel):
    X, y = draw()

    def interrupt(row):
        if row["round"] == 2:
            raise KeyboardInterrupt

    s = solve(X, y, C=100.0, kernel=kernel, tol=1e-12, callback=interrupt)
    assert (s.status, s.n_iter) == ("interrupted", 2)
    assert s.objective <= 100.0 * 40
    assert s.dual_objective <= s.objective


class Sparser:
    """Points with more and more entries, and what each is worth."""

    def __init__(self, *objectives):
        self.objectives, self.asked = list(objectives), 0

    def sparser(self, point, last):
        for k in range(len(self.objectives)):
            yield np.array([float(k)])

    def objective_at(self, point):
        self.asked += 1
        return self.objectives[int(point[0])], None


@pytest.mark.parametrize(
    ("objectives", "chosen", "asked"),
    [
        ((9.0, 2.0, 1.0), 1, 2),  # no worse than before
        ((9.0, 2.5, 1.0), 1, 2),  # within the tolerance
        ((9.0, 2.6, 1.0), 2, 3),
        ((9.0, 2.6, 2.7), None, 3),
    ],
)
def test_the_sparsest_point_that_is_good_enough(objectives, chosen, asked):
    problem, point = Sparser(*objectives), np.array([7.0])
    run = Run(problem, Settings(tol=0.25), objective=2.0, dual=1.875)
    best = Evaluation(point, FIVE, 2.0, NO_GRADIENT, 2.0, NO_SUMS)
    found = finish_linear.sparsest_linear(problem, best, best, run)
    assert found.tolist() == ([7.0] if chosen is None else [float(chosen)])
    assert problem.asked == asked


def test_results_that_hold_arrays_are_compared_without_an_error():
    X, y = draw()
    for found in solve(X, y), cross_validate(X, y), path(X, y, [1.0]):
        other = copy.deepcopy(found)
        assert found in [other, found]
        assert found not in [other]
        assert hash(found) != hash(other)


def test_a_solution_says_what_it_cannot_decide():
    X, y = draw()
    s = solve(X, y)
    with pytest.raises(InputError, match=r"^X must have 4 columns, got 3$"):
        s.decision_function(X[:, :3])
    np.testing.assert_allclose(s.decision_function(csr_matrix(X)), X @ s.w + s.b, atol=1e-12)
    k = solve(X, y, kernel="rbf")
    message = "^a kernel machine decides through `train`, which keeps the rows it needs$"
    with pytest.raises(InputError, match=message):
        k.decision_function(X)


def test_a_solution_of_an_engine_that_ended_by_its_own_rule_is_not_converged():
    X, y = draw()
    s = solve(X, y, solver="nesvm", epsilon=1e9)
    assert (s.status, s.certified, s.n_iter) == ("epsilon", False, 2)


@every_model
def test_rows_without_weight_and_empty_features_count_nothing(model):
    X, y = draw()
    weight = np.where(np.arange(40) % 4 == 3, 0.0, 1.0)
    part = weight > 0
    best = solve(X[part], y[part], model, tol=1e-8)
    s = solve(X, y, model, sample_weight=weight, tol=1e-8)
    assert s.objective == approx(best.objective, rel=1e-7)
    assert not s.alpha[~part].any()
    wide = np.zeros((40, 400))
    wide[:, [3, 100, 200, 399]] = X
    sparse = solve(csr_matrix(wide), y, model, sample_weight=weight, tol=1e-8)
    assert sparse.w.shape == (400,)
    assert set(np.flatnonzero(sparse.w)) <= {3, 100, 200, 399}
    assert sparse.objective == approx(best.objective, rel=1e-7)
    np.testing.assert_allclose(sparse.margins, wide @ sparse.w + sparse.b, atol=1e-10)


@every_model
@every_bias
def test_rows_without_any_feature_leave_the_bias_alone(model, bias):
    y = np.where(np.arange(40) < 10, 1.0, -1.0)
    s = solve(csr_matrix((40, 5)), y, model, bias=bias)
    assert s.w.tolist() == [0.0] * 5
    best = {"csvm": 20.0, "lpsvm": 20.0, "lssvm": 30.0}[model] if bias else 40.0
    assert s.objective == approx(best, rel=1e-3)
    assert s.certified


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    "start",
    [{"w0": np.ones(4)}, {"w_star": np.ones(4)}, {"b0": 1.0}, {"b_star": -1.0}, {"alpha0": 1}],
)
def test_starts_are_for_linear_machines(start):
    X, y = draw()
    message = "^w0, b0, w_star, b_star and alpha0 are for linear machines$"
    with pytest.raises(InputError, match=message):
        solve(X, y, kernel="rbf", **start)


def test_refusals_in_whole_sentences():
    X, y = draw()
    refused = [
        ({"X": X[:0], "y": []}, "X must have at least one row of each class"),
        ({"y": np.ones(40)}, r"y must hold both classes, -1 and \+1"),
        ({"y": -np.ones(40)}, r"y must hold both classes, -1 and \+1"),
        (
            {"y": np.r_[y[:-1], 2.0]},
            r"^y must hold -1 and \+1 only; `train` takes labels of any value$",
        ),
        ({"class_weight": {-1: 0.0}}, "each class must have a positive, finite weight"),
        ({"class_weight": {1: 0.0}}, "each class must have a positive, finite weight"),
        ({"kernel": "rbf", "approx": "nystroem"},
         "approx is for `train`, which keeps the landmarks"),
        ({"w0": [0, 0, 0, 1.1e50]}, r"w0 and its bias must be within 1e\+50 of zero"),
        ({"b0": -1.1e50}, r"w0 and its bias must be within 1e\+50 of zero"),
        ({"w_star": [0, 0, -1.1e50, 0]}, r"w_star and its bias must be within 1e\+50 of zero"),
        ({"b_star": 1.1e50}, r"w_star and its bias must be within 1e\+50 of zero"),
        ({"b_star": np.inf}, "b_star must be finite, got NaN or infinity"),
        ({"alpha0": np.ones(3)}, r"alpha0 must have length 40, got shape \(3,\)"),
    ]  # fmt: skip
    for change, message in refused:
        with pytest.raises(InputError, match=f"^{message}$"):
            solve(**{"X": X, "y": y, **change})


def test_far_starts_that_are_allowed():
    X, y = draw()
    far = {"w0": [1e50, 0, 0, 0], "b0": -1e50}
    assert solve(X, y, **far, solver="nesvm", max_iter=1).n_iter == 1
    far = {"w_star": [1e50, 0, 0, 0], "b_star": 1e50}
    assert solve(X, y, **far, solver="nesvm", max_iter=1).n_iter == 1


TOO_LARGE = "^X and C must be smaller: n · C · the largest row's square overflows$"


@pytest.mark.parametrize("solver", ["nesvm", "newton"])
def test_costs_and_rows_that_overflow_are_refused(solver):
    X, y = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0])
    mu = {"mu": 1e10, "mu_start": 1e10, "solver": solver, "max_iter": 1, "bias": False}
    for huge in (1e160, 1e200):
        with pytest.raises(InputError, match=TOO_LARGE):
            solve(huge * X, y, **mu)
    with np.errstate(all="ignore"):
        solve(X, y, C=0.5e140, **mu)  # n · C is the most there is
        with pytest.raises(InputError, match=TOO_LARGE):
            solve(X, y, C=0.51e140, **mu)
        large = 1e70 * X
        solve(large, y, C=0.49e80, **mu)  # 1 + n · C‖x‖²/(μs)
        with pytest.raises(InputError, match=TOO_LARGE):
            solve(large, y, C=0.51e80, **mu)


def test_more_features_than_memory_are_refused(monkeypatch, engines_only):
    monkeypatch.setattr(linear, "memory_bytes", lambda: 64.0 * 2**30)
    require_memory(2**30)
    with pytest.raises(
        InputError, match=r"^X must be narrower: 1073741825 features need 64 GB of memory$"
    ):
        require_memory(2**30 + 1)
    X, y = draw()
    monkeypatch.setattr(linear, "memory_bytes", lambda: 255.0)
    monkeypatch.setattr(linear, "ALWAYS_THERE", 0.0)
    with pytest.raises(InputError, match=r"^X must be narrower: 4 features need 0 GB of memory$"):
        solve(X, y)


# ---------------------------------------------------------------- starts and settings


def test_starts_default_to_zero_and_are_checked():
    v, centre = Start().points(3, True)
    assert v.tolist() == centre.tolist() == [0.0] * 4
    v, centre = Start([1, 2], 3, [4, 5], 6).points(2, True)
    assert (v.tolist(), centre.tolist()) == ([1, 2, 3], [4, 5, 6])
    v, centre = Start([1, 2], 3, [4, 5], 6).points(2, False)
    assert (v.tolist(), centre.tolist()) == ([1, 2], [4, 5])
    some = Start([1, 2, 3], 7, [4, 5, 6], 8, "alpha").of_features(np.array([0, 2]), 3)
    assert (some.w0.tolist(), some.w_star.tolist()) == ([1, 3], [4, 6])
    assert (some.b0, some.b_star, some.alpha0) == (7, 8, "alpha")
    assert Start().of_features(np.array([0]), 3) == Start()


@pytest.mark.parametrize("sparse", [False, True])
def test_algorithm_1_starts_where_it_is_told(sparse):
    X, y = draw()
    if sparse:
        wide = np.zeros((40, 400))
        wide[:, [3, 100, 200, 399]] = X
        X = csr_matrix(wide)
    w0, centre = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    w0[3], centre[3] = 0.7, -0.4
    more = {"solver": "nesvm", "C": 0.2, "epsilon": 0.0}
    one = solve(X, y, w0=w0, b0=0.3, max_iter=1, **more)
    at = objective("csvm", oracle.dense(X), y, np.full(40, 0.2), w0, 0.3)
    assert one.history["objective"][0] == approx(at, rel=1e-12)
    two = solve(X, y, w0=w0, b0=0.3, w_star=centre, b_star=-0.2, max_iter=2, **more)
    A = np.hstack([oracle.dense(X), np.ones((40, 1))])
    s = np.maximum(np.abs(A).max(axis=1), 1.0)
    L = 1 + 40 * 0.2 * ((A**2).sum(axis=1) / s).max() / 5.0
    v = np.append(w0, 0.3)
    u = np.clip((1 - y * (A @ v)) / (5.0 * s), 0, 1)
    g = np.append(w0, 0.0) - A.T @ (0.2 * y * u)
    ahead = 2 / 3 * (np.append(centre, -0.2) - 0.5 * g / L) + 1 / 3 * (v - g / L)
    P = objective("csvm", oracle.dense(X), y, np.full(40, 0.2), ahead[:-1], ahead[-1])
    assert two.history["objective"][1] == approx(P, rel=1e-10)


@pytest.mark.parametrize("model", ["csvm", "lpsvm"])
def test_newton_begins_at_four_or_where_a_start_leads(model):
    X, y = draw(n=200)
    cold = solve(X, y, model, solver="newton", tol=1e-6)
    assert cold.history["mu"][0] == 4.0
    near = solve(X, y, model, solver="newton", tol=1e-6, w0=cold.w, b0=cold.b, alpha0=cold.alpha)
    assert near.history["mu"][0] == 0.25
    assert near.n_iter == 1
    far = solve(X, y, model, solver="newton", tol=1e-6, alpha0=np.full(200, 1e-6))
    assert far.history["mu"][0] == 1.0
    assert far.certified
    warm = solve(X, y, model, solver="newton", tol=1e-6, w0=cold.w, b0=cold.b)
    assert warm.history["mu"][0] == 0.25
    assert warm.n_iter < cold.n_iter
    only_w = solve(X, y, model, solver="newton", tol=1e-6, w0=1e-9 * np.ones(4))
    assert only_w.history["mu"][0] == 1.0


def test_dual_starts_outside_their_bounds_are_clipped():
    X, y = draw()
    more = {"C": 0.5, "max_iter": 1, "tol": 1e-9}
    alpha = np.linspace(-1, 2, 40)
    for solver in ("newton", "coordinate"):
        one = solve(X, y, alpha0=alpha, solver=solver, **more)
        two = solve(X, y, alpha0=np.clip(alpha, 0, 0.5), solver=solver, **more)
        assert one.objective == two.objective
        assert one.history["dual"].tolist() == two.history["dual"].tolist()


def test_coordinate_steps_start_from_the_dual_point_of_a_warm_start():
    X, y = draw(n=100)
    for bias in (False, True):
        more = {"solver": "coordinate", "C": 10.0, "bias": bias, "tol": 1e-4}
        cold = solve(X, y, **more)
        warm = solve(X, y, w0=cold.w, b0=cold.b, **more)
        assert warm.n_iter < 0.5 * cold.n_iter
        again = solve(X, y, w0=cold.w, b0=cold.b, alpha0=cold.alpha, **more)
        assert again.n_iter <= 2


def test_a_warm_start_of_many_cells_goes_to_newton_at_once(engines_only):
    X, y = draw(1000, 51)
    cold = solve(X, y, C=1e-3, tol=1e-2)
    assert (cold.solver, cold.why) == ("coordinate", "epochs of coordinate steps sufficed")
    for start in ({"w0": cold.w}, {"b0": 0.1}, {"alpha0": np.zeros(1000)}):
        warm = solve(X, y, C=1e-3, tol=1e-2, **start)
        assert (warm.solver, warm.why) == ("newton", binary_why(51))
    assert solve(X, y, C=1e-3, tol=1e-2, w_star=cold.w).solver == "coordinate"


@pytest.mark.parametrize("moving", [None, True, False])
def test_newton_moves_its_centre_unless_told_not_to(moving):
    X, y = draw(n=200)
    s = solve(X, y, solver="newton", tol=1e-7, C=5.0, moving_centre=moving)
    assert s.certified
    assert (s.history["mu"][-1] < 1e-4) == (moving is False)
    assert moving is False or s.n_iter <= 24


def stages(**options):
    X, y = draw()
    s = solve(X, y, solver="homotopy", epsilon=1e9, tol=0.0, **options)
    return list(dict.fromkeys(s.history["mu"].tolist()))


def test_homotopy_falls_from_mu_start_to_a_hundredth_by_the_papers_schedule():
    assert stages() == approx([5 / (t + 1) for t in range(100)])
    assert stages(mu_start=2.0) == approx([2 / (t + 1) for t in range(100)])
    assert stages(mu_start=2.0, mu_end=0.9) == approx([2.0, 1.0, 0.9])
    assert stages(mu_end=0.5, schedule="geometric") == [5.0, 2.5, 1.25, 0.625, 0.5]
    assert stages(mu=3.0, mu_end=4.0) == [5.0, 4.0]


def test_smoothings_of_the_papers_algorithms():
    X, y = draw()
    one = {"max_iter": 1, "mu": 3.0, "mu_start": 2.0}
    assert solve(X, y, solver="nesvm", **one).history["mu"].tolist() == [3.0]
    assert solve(X, y, solver="homotopy", **one).history["mu"].tolist() == [2.0]
    assert solve(X, y, "lpsvm", solver="nesvm", nu=0.5, **one).history["mu"].tolist() == [0.5]
    assert solve(X, y, "lpsvm", solver="homotopy", nu=0.5, **one).history["mu"].tolist() == [0.5]
    w0 = np.array([1.0, -2.0, 0.1, 0.0])
    s = solve(X, y, "lpsvm", solver="nesvm", w0=w0, nu=0.5, C=1e-9, **one)
    u = np.clip(w0 / 3.0, -1, 1)
    assert s.history["smoothed"][0] == approx(u @ w0 - 1.5 * u @ u, rel=1e-6)
    s = solve(X, y, "lpsvm", solver="homotopy", w0=w0, C=1e-9, **one)
    u = np.clip(w0 / 2.0, -1, 1)
    assert s.history["smoothed"][0] == approx(u @ w0 - u @ u, rel=1e-6)


def wide(n=60, p=2500):
    rng = np.random.default_rng(0)
    X = csr_matrix(
        (rng.random(n * 50), (np.repeat(np.arange(n), 50), rng.integers(0, p, n * 50))), (n, p)
    )
    return X, np.where(np.arange(n) % 2, 1.0, -1.0)


def asked(monkeypatch, engine, X, y, model="csvm", **settings):
    """The state that `solve` begins an engine with, and the engine that is then driven."""
    seen = []
    monkeypatch.setattr(linear, "drive", lambda steps, run, *_: seen.append((steps, run.engine)))
    solve(X, y, model, **settings)
    driven, begun = seen[0]  # others may go on from there
    assert begun == engine
    return arguments(driven)["s"], driven


def arguments(driven):
    """Of a generator that has not begun."""
    return driven.gi_frame.f_locals


@pytest.mark.parametrize(
    ("settings", "end", "stages", "method"),
    [
        ({}, 5e-9, ("gap", True), ("tight", True)),
        (
            {
                "restart": False,
                "lipschitz": "paper",
                "schedule": "geometric",
                "moving_centre": False,
            },
            5e-9,
            ("geometric", False),
            ("paper", False),
        ),
        (
            {
                **{"solver": "homotopy", "restart": True, "lipschitz": "tight"},
                **{"schedule": "gap", "moving_centre": True, "mu_end": 0.7},
            },
            0.7,
            ("gap", True),
            ("tight", True),
        ),
    ],
)
def test_how_homotopy_runs_by_choice(monkeypatch, settings, end, stages, method):
    X, y = wide()
    state, driven = asked(monkeypatch, "homotopy", X, y, "lpsvm", **settings)
    assert isinstance(state, accelerated.State)
    assert (state.w.any(), state.w_star.any(), state.start) == (False, False, FIVE)
    found = arguments(driven)["settings"]
    assert accelerated.last_smoothing(found, FIVE) == end
    assert (found.schedule, found.moving_centre) == stages
    assert (found.lipschitz, found.restart) == method
    assert (found.epsilon, found.strong) == (1e-3, False)


@pytest.mark.parametrize(
    ("settings", "first", "end", "epsilon"),
    [
        ({}, FIVE, 0.05, 1e-3),
        ({"mu_start": 2.0, "nu": 3.0, "epsilon": 1e-5}, (2.0, 3.0), 0.03, 1e-5),
    ],
)
def test_how_homotopy_runs_as_the_paper_has_it(monkeypatch, settings, first, end, epsilon):
    X, y = wide()
    settings |= {"solver": "homotopy"}
    state, driven = asked(monkeypatch, "homotopy", X, y, "lpsvm", **settings)
    assert not isinstance(state, accelerated.State)
    assert (state.w.any(), state.w_star.any(), state.smoothing) == (False, False, first)
    found = arguments(driven)
    assert driven.__name__ == "homotopy"
    assert (found["mu"], found["mu_end"], found["epsilon"]) == (first, end, epsilon)


def test_how_the_other_engines_are_asked(monkeypatch):
    X, y = draw()
    w0, centre = np.arange(4.0), np.ones(4)
    nowhere = {"w0": w0, "b0": 0.5, "w_star": centre, "b_star": -2.0}
    more = {"mu": 0.7, "strong": False, "epsilon": 1e-7, "restart": True}
    s, driven = asked(monkeypatch, "nesvm", X, y, solver="nesvm", **nowhere, **more)
    assert s.w.tolist() == [0.0, 1.0, 2.0, 3.0, 0.5]
    assert s.w_star.tolist() == [1.0, 1.0, 1.0, 1.0, -2.0]
    found = arguments(driven)["settings"]
    assert (s.smoothing, found.epsilon) == ((0.7, 0.7), 1e-7)
    assert (found.lipschitz, found.restart, found.strong) == ("paper", True, False)
    _, driven = asked(monkeypatch, "nesvm", X, y, solver="nesvm", bias=False, strong=True)
    found = arguments(driven)["settings"]
    assert (found.lipschitz, found.restart, found.strong) == ("paper", False, True)
    assert (found.epsilon, found.solver) == (1e-3, "nesvm")
    _, driven = asked(monkeypatch, "nesvm", X, y, solver="nesvm", epsilon=1e-7)
    assert (driven.__name__, arguments(driven)["epsilon"]) == ("nesvm", 1e-7)
    s, driven = asked(monkeypatch, "newton", X, y, solver="newton")
    assert (s.walk.point.any(), s.smoothing, s.walk.centre) == (False, (4.0, 4.0), None)
    assert arguments(driven)["moving"] is True
    _, driven = asked(monkeypatch, "newton", X, y, solver="newton", moving_centre=False)
    assert arguments(driven)["moving"] is False
    for model in ("csvm", "lpsvm"):
        s, _ = asked(monkeypatch, "newton", X, y, model, solver="newton", **nowhere)
        assert s.smoothing in ((1.0, 1.0), (0.25, 0.25))
        assert s.walk.centre.any()
    s, _ = asked(monkeypatch, "newton", X, y, "lssvm", solver="newton", **nowhere)
    assert (s.smoothing, s.walk.centre) == ((4.0, 4.0), None)
    s, _ = asked(monkeypatch, "coordinate", X, y, solver="coordinate", b0=0.25, seed=7)
    assert s.alpha.any()
    drawn = np.random.default_rng(7).integers(1, 2**63, 1, dtype=np.uint64)
    assert (s.epoch.b, s.random.tolist(), s.patience) == (0.25, drawn.tolist(), np.inf)
    s, _ = asked(monkeypatch, "coordinate", X, y, solver="coordinate")
    assert (s.alpha.any(), s.epoch.b) == (False, 0.0)
    s, _ = asked(monkeypatch, "coordinate", X, y, solver="coordinate", alpha0=np.full(40, 3.0))
    assert s.alpha.tolist() == [1.0] * 40


def test_a_warm_homotopy_by_choice_begins_where_its_start_stays_one(monkeypatch):
    X, y = wide()
    best = solve(X, y, C=1e3)
    start = {"w0": best.w, "b0": best.b}
    s, driven = asked(monkeypatch, "homotopy", X, y, "lpsvm", C=1e3, **start)
    assert s.start.loss in [5.0 * 4.0**-k for k in range(1, 16)]
    found = arguments(driven)["settings"]
    assert accelerated.last_smoothing(found, s.start) == 1e-9 * s.start.loss
    start["solver"] = "homotopy"
    s, _ = asked(monkeypatch, "homotopy", X, y, "lpsvm", C=1e3, **start)
    assert s.smoothing == FIVE


def test_the_papers_methods_are_the_papers_unless_told_otherwise():
    X, y = draw()
    more = {"solver": "nesvm", "epsilon": 0.0, "max_iter": 30, "tol": 0.0}
    plain = solve(X, y, **more).history["smoothed"].tolist()
    explicit = solve(X, y, lipschitz="paper", restart=False, strong=False, **more)
    assert explicit.history["smoothed"].tolist() == plain
    for other in ({"lipschitz": "tight"}, {"restart": True, "max_iter": 300}):
        found = solve(X, y, **{**more, **other}).history["smoothed"]
        assert found[: len(plain)].tolist() != plain or len(found) > 30
    strong = solve(X, y, bias=False, strong=True, **more).history["smoothed"].tolist()
    assert strong != solve(X, y, bias=False, **more).history["smoothed"].tolist()


def test_exact_zeros_are_taken_where_they_cost_nothing_that_matters():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 8))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    s = solve(X, y, "lpsvm", C=0.05, solver="homotopy", tol=1e-2, lipschitz="tight", schedule="gap",
              restart=True, mu_end=1e-6, epsilon=1e-7)  # fmt: skip
    assert s.certified
    assert np.count_nonzero(s.w) <= 3
    c = np.full(100, 0.05)
    assert s.objective == approx(objective("lpsvm", X, y, c, s.w, s.b), rel=1e-12)


def test_time_limits_of_none_and_of_seconds():
    assert Run(None, Settings()).remaining() == np.inf
    assert 2.0 < Run(None, Settings(time_limit=2.5)).remaining() <= 2.5


def test_problems_that_were_checked_start_at_zero():
    X, y = draw()
    c = np.full(40, 0.5)
    one, two = solve_checked(X, y, c, Settings()), solve(X, y, C=0.5)
    assert len(fields(Solution)) > 10
    for field in fields(Solution):
        a, b = getattr(one, field.name), getattr(two, field.name)
        if field.name == "history":
            a, b = ({k: v for k, v in h.items() if k != "seconds"} for h in (a, b))
        np.testing.assert_equal(a, b)


# ---------------------------------------------------------------- kernels: γ, budgets, precision


def test_gamma_by_name():
    X = as_matrix([[1.0, 2.0], [3.0, 6.0]])
    for M in (X, as_matrix(csr_matrix(X)), np.float32(X)):
        assert gamma_of(None, M) == gamma_of("auto", M) == 0.5
        assert gamma_of("scale", M) == approx(1 / (2 * X.var()))
        assert gamma_of(0.7, M) == 0.7
    sparse = np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 4.0]])
    assert gamma_of("scale", as_matrix(csr_matrix(sparse))) == approx(1 / (3 * sparse.var()))
    assert gamma_of("scale", np.full((3, 2), 7.0)) == 1.0
    assert gamma_of("scale", 1e-3 * X) == approx(1e6 / (2 * X.var()))
    assert gamma_of(None, np.zeros((3, 0))) == 1.0
    assert gamma_of("scale", np.zeros((3, 0))) == 1.0
    with pytest.raises(InputError, match=r"^gamma must be finite, got NaN or infinity$"):
        gamma_of(np.inf, X)


def test_budgets_are_megabytes_or_a_quarter_of_the_memory(monkeypatch):
    monkeypatch.setattr(kernel_matrix, "memory_bytes", lambda: 4e9)
    assert budget_bytes(None) == 1e9
    assert budget_bytes(3) == 3 * 2**20
    assert budget_bytes(0.5) == 2**19
    monkeypatch.setattr(kernel_matrix.os, "cpu_count", lambda: 8)
    assert worker_mb(Settings(cache_mb=64)) == 8.0
    monkeypatch.setattr(kernel_matrix.os, "cpu_count", lambda: None)
    monkeypatch.setattr(kernel_matrix, "get_threads", lambda: 4)
    assert worker_mb(Settings(cache_mb=64)) == 16.0
    monkeypatch.setattr(kernel_matrix, "get_threads", lambda: 1)
    assert worker_mb(Settings(cache_mb=64)) == 64.0


def test_single_precision_where_a_tenth_of_the_tolerance_covers_it():
    X = as_matrix(draw()[0])
    spec = as_spec("rbf", 0.3, 0.0, 3, 4)
    far = 0.3 * ((X - X.mean(axis=0)) ** 2).sum(axis=1).max()
    single, double = (entry_error(X, spec, dtype, far) for dtype in (np.float32, np.float64))

    def chosen(C=1.0, share=1.001, of=spec, **settings):
        tol = 10 * single * max(1.0, C) * share
        dtype, error = precision(X, Settings(kernel="rbf", C=C, tol=tol, **settings), of)
        assert error == approx(single if dtype == np.float32 else double, rel=1e-9)
        return dtype

    for C in (1e-3, 1.0, 7.0, 1e3):
        assert chosen(C) == chosen(C, solver="coordinate") == np.float32
        assert chosen(C, 0.999) == np.float64
        assert chosen(C, solver="newton") == chosen(C, model="lssvm") == np.float64
    poly = as_spec("poly", 0.3, 1.0, 2, 4)
    assert precision(X, Settings(kernel="poly"), poly)[0] == np.float64


@pytest.mark.parametrize("model", ["csvm", "lssvm"])
def test_sums_of_a_kernel_have_a_limit(model):
    """LS-SVM ended in a traceback of scipy's."""
    X = np.outer([1.0, -2.0, -0.2, -0.1], [1.0, -2.0, -0.2, -0.1])
    with pytest.raises(InputError, match="n · C · the largest"):
        solve(1e224 * X, [1.0, -1, 1, 1], model=model, kernel="precomputed", C=1e90)
    assert np.isfinite(solve(X, [1.0, -1, 1, 1], kernel="precomputed", C=1e130).objective)


def test_a_preconditioner_that_rounding_makes_indefinite_is_no_error(monkeypatch):
    """K of rows of very different sizes had ended in a traceback of scipy's."""

    def indefinite(matrix):
        raise np.linalg.LinAlgError("not positive definite")

    monkeypatch.setattr("scipy.linalg.cho_factor", indefinite)
    solution = solve(np.eye(3) * 2, [1.0, -1, 1], "lssvm", kernel="precomputed", solver="newton")
    assert 0.0 <= solution.dual_objective <= solution.objective


def test_the_values_of_a_polynomial_kernel_have_a_limit():
    X = as_matrix([[1.0, 0.0], [0.0, -1.0]])
    assert spec_of(X, Settings(kernel="poly", gamma=1e100, degree=1)).gamma == 1e100
    message = (
        "^the values of the polynomial kernel must be smaller: gamma, coef0, the degree or X are "
        "too large$"
    )
    for wrong in (
        {"gamma": 1e100, "coef0": 1e98, "degree": 1},
        {"coef0": 1.01e50, "degree": 2},
        {"gamma": 10.0, "degree": 101},
        {"gamma": 1e100, "degree": 5},
    ):
        with pytest.raises(InputError, match=message):
            spec_of(X, Settings(kernel="poly", **wrong))
    assert spec_of(X, Settings(kernel="poly", gamma=10.0, degree=99)).degree == 99
    with pytest.raises(InputError, match=message):
        spec_of(1e60 * X, Settings(kernel="poly", gamma=1.0, degree=2))
    assert spec_of(1e60 * X, Settings(kernel="rbf")) == as_spec("rbf", 0.5, 0.0, 3, 2)
    assert spec_of(X, Settings(kernel="poly", coef0=2.0)) == as_spec("poly", 0.5, 2.0, 3, 2)


def test_kernel_rows_by_settings():
    X = as_matrix(draw()[0])
    K = oracle.gram(X, X, "rbf", 0.3, 0, 3)
    s = Settings(kernel="rbf", gamma=0.3)
    rows = kernel_rows(X, s)
    assert rows.dtype == np.float32
    assert rows.finer().dtype == np.float64
    assert kernel_rows(X, replace(s, model="lssvm")).dtype == np.float64
    assert kernel_rows(X, replace(s, model="lssvm", cache_mb=40 * 8 * 20 / 2**20)).capacity == 20
    np.testing.assert_allclose(rows.rows(np.arange(40)), K, atol=1e-5)
    given = kernel_rows(K, Settings(kernel="precomputed"))
    assert np.shares_memory(given.store, K)
    assert given.finer is None
    np.testing.assert_array_equal(
        kernel_rows(as_matrix(csr_matrix(K)), Settings(kernel="precomputed")).store, K
    )


def test_finer_rows_are_in_double_and_of_a_part():
    X = as_matrix(draw()[0])
    K = oracle.gram(X, X, "rbf", 0.25, 0, 3)
    some = np.array([5, 1, 30])
    s = Settings(kernel="rbf", cache_mb=40 * 8 * 20 / 2**20)
    np.testing.assert_allclose(
        finer_rows(X, s, some).rows(np.arange(3)), K[np.ix_(some, some)], rtol=1e-12
    )
    rows = finer_rows(X, s, None)
    assert (rows.dtype, rows.capacity) == (np.float64, 20)
    np.testing.assert_allclose(rows.rows(np.arange(40)), K, rtol=1e-12)


@pytest.mark.parametrize("model", ["csvm", "lssvm"])
def test_one_matrix_is_shared_in_any_order(model):
    X = as_matrix(draw()[0])
    K = oracle.gram(X, X, "rbf", 0.25, 0, 3)
    order = np.random.default_rng(1).permutation(40)
    s = Settings(model=model, kernel="rbf")
    dtype = np.float32 if model == "csvm" else np.float64
    for shared in (shared_matrix(X, s, None), shared_matrix(X, s, order)):
        assert shared.K.dtype == dtype
        assert shared.epsilon == precision(X, s, spec_of(X, s))[1]
        some, others = np.array([3, 4, 5, 20, 8, 9, 0]), np.array([7, 2])
        np.testing.assert_allclose(shared.between(some, others), K[np.ix_(some, others)], atol=1e-5)
        rows = shared.rows(some)
        np.testing.assert_allclose(rows.store, K[np.ix_(some, some)], atol=1e-5)
        assert rows.epsilon == shared.epsilon
        assert np.shares_memory(shared.rows(None).store, shared.K)
        if model == "csvm":
            np.testing.assert_allclose(
                rows.finer().rows(np.arange(7)), K[np.ix_(some, some)], rtol=1e-12
            )
            np.testing.assert_allclose(shared.rows(None).finer().rows(np.arange(40)), K, rtol=1e-12)
        else:
            assert rows.finer is None
    np.testing.assert_allclose(shared.K, K[np.ix_(order, order)], atol=1e-5)
    assert shared.place[order].tolist() == list(range(40))


def test_runs_of_neighbours_are_copied_together():
    X = as_matrix(draw(200)[0])
    shared = shared_matrix(X, Settings(model="lssvm", kernel="rbf"), None)
    for some in (np.arange(200), np.arange(0, 200, 2), np.r_[0:3, 7:9, 190:200, 4], np.array([5])):
        np.testing.assert_array_equal(shared.rows(some).store, shared.K[np.ix_(some, some)])


@pytest.mark.parametrize(("model", "bytes_each"), [("csvm", 4), ("lssvm", 8)])
def test_a_matrix_is_shared_where_it_takes_half_of_the_budget(model, bytes_each):
    X = as_matrix(draw()[0])
    fits = 2 * 1600 * bytes_each / 2**20
    s = Settings(model=model, kernel="rbf", cache_mb=fits)
    assert shared_matrix(X, s, None) is not None
    assert shared_matrix(X, replace(s, cache_mb=0.999 * fits), None) is None


def test_finer_rows_of_a_shared_matrix_have_half_the_memory_of_a_worker(monkeypatch):
    monkeypatch.setattr(kernel_matrix.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(kernel_matrix, "get_threads", lambda: 1)
    X = as_matrix(draw(200)[0])
    fits = 4 * 25 * 200 * 8 / 2**20
    s = Settings(kernel="rbf", cache_mb=max(fits, 2 * 200 * 200 * 4 / 2**20))
    shared = shared_matrix(X, s, None)
    assert shared.rows(None).finer().capacity == int(s.cache_mb * 2**20 / 4 // 1600)


def test_a_precomputed_matrix_is_shared_as_it_is():
    X = as_matrix(draw()[0])
    K = oracle.gram(X, X, "rbf", 0.3, 0, 3)
    shared = shared_matrix(K, Settings(kernel="precomputed", cache_mb=1e-9), np.arange(40)[::-1])
    assert shared.K is K
    assert shared.epsilon == np.finfo(float).eps
    assert shared.place.tolist() == list(range(40))
    assert shared.finer is None


# ---------------------------------------------------------------- precomputed kernels


def test_precomputed_kernels_must_be_square_and_symmetric():
    with pytest.raises(
        InputError, match=r"^a precomputed kernel must be square, got 3 rows and 2 columns$"
    ):
        solve(np.ones((3, 2)), [1, -1, 1], kernel="precomputed")
    n = 300
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    message = r"^a precomputed kernel must be symmetric, got K\[i, j\] and K\[j, i\] apart$"
    for size in (1e-6, 1.0, 1e6):
        for i, j in ((3, 7), (290, 299), (10, 270)):
            K = size * (np.eye(n) + 1.0)
            K[i, j] += 2 * size * 0.9e-10
            solve(K, y, kernel="precomputed", C=0.1 / size, max_iter=1)
            K[i, j] += 2 * size * 0.2e-10
            with pytest.raises(InputError, match=message):
                solve(K, y, kernel="precomputed", C=0.1 / size)


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_negative_eigenvalues_are_told_with_the_largest(size):
    y = np.array([1.0, -1.0, 1.0])
    solve(size * np.diag([1.0, 0.5, -0.99e-6]), y, kernel="precomputed", C=1e-3)
    message = (
        "a kernel matrix must be positive semidefinite, or nothing could be certified; this one "
        f"has a negative eigenvalue near {-1.01e-6 * size:.3g}, the largest being {size:.3g}"
    )
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        solve(size * np.diag([1.0, 0.5, -1.01e-6]), y, kernel="precomputed", C=1e-3)
    with pytest.raises(InputError, match=r"near -2, the largest being -1$"):
        solve(-np.diag([1.0, 2.0, 1.0]), y, kernel="precomputed")


def test_eigenvalues_of_large_and_of_degenerate_matrices():
    n = 70
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    for K in (np.eye(n), np.zeros((n, n)), np.ones((n, n)), 1e-9 * np.eye(n)):
        assert np.isfinite(solve(K, y, kernel="precomputed", max_iter=2).objective)
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((n, n)))[0]
    values = np.r_[-0.5, np.linspace(0, 2, n - 2), 3.0]
    K = (Q * values) @ Q.T
    with pytest.raises(InputError, match=r"near -0\.5, the largest being 3$"):
        solve(0.5 * (K + K.T), y, kernel="precomputed")


# ---------------------------------------------------------------- kernel machines


KERNEL_SOLVERS = {
    "csvm": ("auto", "engines", "nesvm", "homotopy", "newton", "coordinate"),
    "lpsvm": ("auto", "nesvm", "newton"),
    "lssvm": ("auto", "engines", "nesvm", "homotopy", "newton"),
}


@every_bias
@pytest.mark.parametrize(
    ("model", "solver"), [(m, s) for m, all_ in KERNEL_SOLVERS.items() for s in all_]
)
@pytest.mark.parametrize("limit", [{}, {"max_iter": 3, "tol": 1e-9}], ids=["whole", "stopped"])
def test_every_field_of_a_kernel_solution(model, solver, bias, limit, request):
    X, y = draw()
    compiled = solver == "auto" and model != "lpsvm"
    solver = auto_of(solver, request)
    weight = np.where(np.arange(40) % 8 == 5, 0.0, 1.0)
    c = 0.7 * weight
    s = solve(X, y, model, "rbf", gamma=0.3, C=0.7, bias=bias, solver=solver, sample_weight=weight,
              mu=0.1, mu_end=2.0, **limit)  # fmt: skip
    K = oracle.gram(X, X, "rbf", 0.3, 0, 3)
    assert (s.model, s.w) == (model, None)
    assert bias or s.b == 0.0
    np.testing.assert_allclose(s.margins, K @ s.beta + s.b, rtol=1e-4, atol=1e-5)
    f = K @ s.beta + s.b
    r = 1 - y * f
    R = np.abs(s.beta).sum() if model == "lpsvm" else 0.5 * s.beta @ K @ s.beta
    P = R + c @ (r**2 if model == "lssvm" else np.maximum(r, 0))
    assert s.objective == approx(P, rel=1e-5)
    if model == "lpsvm":
        assert s.dual_objective == approx(s.alpha.sum(), rel=1e-9)
    else:
        used = c > 0
        less = np.sum(s.alpha[used] ** 2 / (4 * c[used])) if model == "lssvm" else 0.0
        D = oracle.dual_gain(K, y, s.alpha * y) - less
        assert s.dual_objective == approx(D, rel=1e-4)
        assert s.dual_objective <= D * (1 + 1e-7)
    assert not s.beta[c == 0].any()
    assert not s.alpha[c == 0].any()
    assert not bias or abs(s.alpha @ y) <= 1e-10
    assert s.certified is (s.gap <= limit.get("tol", 1e-3))
    engines = {"csvm": "coordinate", "lpsvm": "newton", "lssvm": "newton"}
    assert s.solver == (engines[model] if solver == "auto" else solver)
    auto = binary_why(35) if model == "lpsvm" else f"the engine of {model} with a kernel"
    auto = why_of_small(s) if compiled else auto
    assert s.why == (auto if solver == "auto" else "asked for")
    if not limit:
        ended = "epsilon" if solver in ("nesvm", "homotopy") else "stalled"
        assert s.status == ("converged" if s.certified else ended)
    assert s.history["round"][0] in (0, 1)
    if model != "lpsvm":
        first = {"nesvm": 0.1, "homotopy": 5.0, "newton": 4.0, "coordinate": 0.0}[s.solver]
        assert s.history["mu"][0] == (0.0 if (model, s.solver) == ("lssvm", "newton") else first)


def test_newton_with_a_kernel_ends_with_exact_zeros():
    X, y = draw(100)
    s = solve(X, y, kernel="rbf", gamma=0.3, C=5.0, solver="newton", tol=1e-2)
    assert s.certified
    assert 10 < np.count_nonzero(s.beta) < 100
    np.testing.assert_array_equal(s.beta == 0.0, s.alpha == 0.0)


@pytest.mark.parametrize(
    ("tol", "kept"),
    [(1e-1, [0, 1]), (1e-7, [0, 1, 2, 4]), (2e-9, [0, 1, 2, 3, 4]), (1e-12, [0, 1, 2, 3, 4, 5])],
)
def test_as_many_coefficients_are_left_out_as_the_tolerance_allows(tol, kept):
    """Those of no dual weight, then those below 1e-4 and below 1e-8 of the largest."""
    y, c = np.array([1.0, -1.0, 1.0, -1.0, 1.0, 1.0]), np.ones(6)
    beta = np.array([0.5, -0.4, 0.8e-4, -0.8e-8, 1e-3, 0.4e-8])
    problem = KernelProblem(KernelRows(None, None, 0.0, K=np.eye(6)), y, c, False)
    objective = problem.at(np.append(beta, 0.0)).objective
    run = Run(problem, Settings(tol=tol), objective=objective, dual=objective)
    run.alpha = np.array([1.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    part = finish_kernel.sparsest_kernel(problem, beta, 0.0, run)
    assert np.flatnonzero(part).tolist() == kept
    np.testing.assert_array_equal(problem.beta, part)


def test_a_dual_start_of_pairwise_steps_is_taken():
    X, y = draw(100)
    settings = Settings(kernel="rbf", tol=1e-6)
    c = np.ones(100)
    cold = solve_kernel(X, y, c, settings)
    warm = solve_kernel(X, y, c, settings, alpha0=cold.alpha)
    assert warm.n_iter == 1
    rows = kernel_rows(X, settings)
    given = solve_kernel(X, y, c, settings, rows=rows)
    assert rows.computed > 0
    assert given.objective == approx(cold.objective, rel=1e-6)


def test_an_l1_machine_with_a_kernel_needs_its_whole_matrix():
    X, y = draw()
    mb = 8 * 1600 / 2**20
    s = solve(X, y, "lpsvm", "rbf", cache_mb=mb)
    assert s.certified
    message = r"^lpsvm with a kernel needs 0.0122 MB for its 40 rows, got a budget of 0.0121 MB$"
    with pytest.raises(InputError, match=message):
        solve(X, y, "lpsvm", "rbf", cache_mb=0.995 * mb)
    K = oracle.gram(X, X, "rbf", 0.25, 0, 3)
    given = solve(K, y, "lpsvm", "precomputed", cache_mb=1e-9)
    assert given.objective == approx(s.objective, rel=2e-3)
    rows = kernel_rows(X, Settings(model="lssvm", kernel="rbf"))
    rows.fetch(np.arange(40))
    from_rows = solve_kernel(X, y, np.ones(40), Settings(model="lpsvm", kernel="rbf"), rows=rows)
    assert from_rows.objective == approx(s.objective, rel=2e-3)
    poly = solve(X, y, "lpsvm", "poly", gamma=0.1, coef0=1.0, degree=2, tol=1e-6)
    K = oracle.gram(X, X, "poly", 0.1, 1.0, 2)
    assert solve(K, y, "lpsvm", "precomputed", tol=1e-6).objective == approx(
        poly.objective, rel=1e-5
    )


def coarse_rows(X, gamma=0.5):
    """A kernel matrix that is a thousandth off, and says so, with the true one behind it."""
    K = oracle.gram(X, X, "rbf", gamma, 0, 3)
    made = []

    def finer():
        made.append(KernelRows(None, None, 0.0, K=K))
        return made[-1]

    rows = KernelRows(None, None, 0.0, K=1.001 * K, epsilon=1e-3, finer=finer)
    return rows, made, K


@every_bias
@pytest.mark.parametrize("alpha0", [None, 0.5])
def test_a_coarse_kernel_gives_way_to_a_finer_one_where_it_must(bias, alpha0):
    X, y = draw(60)
    c = np.full(60, 10.0)
    alpha = None if alpha0 is None else alpha0 * c
    rows, made, K = coarse_rows(X)
    s = solve_kernel(X, y, c, Settings(kernel="rbf", bias=bias, tol=1e-6), rows, alpha)
    assert len(made) == 1
    assert s.certified
    P = oracle.kernel_objective("csvm", K, y, c, s.beta, s.b)
    assert s.objective == approx(P, rel=1e-10)
    np.testing.assert_allclose(s.margins, K @ s.beta + s.b, atol=1e-9)
    rows, made, _ = coarse_rows(X)
    rough = solve_kernel(X, y, 1e-3 * c, Settings(kernel="rbf", bias=bias, tol=0.5), rows, alpha)
    assert rough.certified
    assert len(made) == 1  # to settle it


def test_a_kernel_that_is_not_settled_afresh_goes_on_with_a_finer_one(monkeypatch):
    X, y = draw(60)
    rows, made, _ = coarse_rows(X)
    monkeypatch.setattr(Ending, "holds", lambda *_: False)
    s = solve_kernel(X, y, np.full(60, 0.01), Settings(kernel="rbf", tol=0.5), rows)
    assert len(made) == 1
    assert s.certified


def test_a_run_that_rounding_ends_needs_no_finer_kernel():
    y = np.array([1.0, -1.0])
    rows = KernelRows(None, None, 0.0, K=np.eye(2), epsilon=1e-3)
    s = solve_kernel(np.eye(2), y, np.ones(2), Settings(kernel="rbf", tol=0.0), rows)
    assert (s.status, s.certified) == ("stalled", False)


def test_a_kernel_machine_interrupted_before_its_first_round(monkeypatch, engines_only):
    X, y = draw()

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Run, "record", interrupt)
    for model in ("csvm", "lssvm"):
        s = solve(X, y, model, "rbf", C=2.0)
        assert (s.status, s.n_iter) == ("interrupted", 0)
        assert s.dual_objective <= s.objective <= 80.0 * (1 + 1e-12)


def newton_asked(monkeypatch, **settings):
    seen = []

    def begin(smooth, run, rng, saving):
        assert saving is None
        seen.append((rng.integers(1 << 60), run.settings.moving_centre))
        v = np.zeros(smooth.n_variables)
        run.problem = smooth
        run.enter(smooth.at(v, FIVE))

    monkeypatch.setattr(kernel_form, "newton_in_levels", begin)
    X, y = draw()
    s = solve(X, y, kernel="rbf", solver="newton", **settings)
    return s, *seen[0]


def test_where_newton_ends_early_pairs_of_coordinates_go_on(monkeypatch):
    s, _, moving = newton_asked(monkeypatch)
    assert moving is None  # which is as much as True
    assert s.certified
    assert s.history["mu"].tolist() == [5.0] + [0.0] * s.n_iter
    assert s.n_iter >= 2
    for seed in (0, 7):
        _, drawn, still = newton_asked(monkeypatch, seed=seed, moving_centre=False)
        assert still is False
        assert drawn == np.random.default_rng(seed).integers(1 << 60)


def test_newton_with_a_kernel_that_is_done_is_done():
    X, y = draw(100)
    for C in (0.1, 10.0):
        s = solve(X, y, kernel="rbf", gamma=0.3, C=C, solver="newton", tol=1e-4)
        assert s.certified
        assert (s.history["mu"] > 0.0).all()
    still = solve(X, y, kernel="rbf", gamma=0.3, solver="newton", tol=1e-4, moving_centre=False)
    assert still.history["mu"][-1] < s.history["mu"][-1]


def test_a_kernel_that_is_found_to_be_indefinite_is_refused():
    X, y = draw()
    rows = KernelRows(None, None, 0.0, K=-np.eye(40))
    message = (
        "^a kernel matrix must be positive semidefinite, or nothing could be certified; this one "
        "has a negative eigenvalue$"
    )
    with pytest.raises(InputError, match=message):
        solve_kernel(X, y, np.ones(40), Settings(kernel="rbf", max_iter=5), rows)


@every_bias
def test_what_float32_cannot_settle_is_settled_in_float64(bias):
    X, y = draw(100)
    s = solve(X, y, kernel="rbf", gamma=1.0, C=50.0, bias=bias, tol=1.3e-3)
    K = oracle.gram(X, X, "rbf", 1.0, 0, 3)
    P = oracle.kernel_objective("csvm", K, y, np.full(100, 50.0), s.beta, s.b)
    assert s.certified
    assert s.gap <= 1.3e-3
    assert s.objective == approx(P, rel=1e-5)
    assert s.dual_objective <= oracle.dual_gain(K, y, s.alpha * y) * (1 + 1e-9)
