"""An evaluation stays true: whatever is evaluated, stepped or begun after it, it has the same
gradient and leads to the same bound. What the solvers make of that, to the last pass."""

from copy import deepcopy
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from nesvm_jit.matrix.checks import as_matrix
from nesvm_jit.models import MODELS, Smoothing
from nesvm_jit.problems import shard
from nesvm_jit.problems.evaluation import Evaluation
from nesvm_jit.problems.linear import LinearProblem, problem_in_memory
from nesvm_jit.settings import SOLVERS
from scipy.sparse import csr_matrix

from tests.endings import solve

from .data import ball, half_space, half_space_and_costs
from .optima import exact_dual, objective, optimum

MU, SOFTER = Smoothing(0.3, 0.7), Smoothing(2.0, 3.0)
CASES = list(product(MODELS, (False, True), (np.asarray, csr_matrix)))
NAMES = [f"{m} {'bias' if b else 'no bias'} {'CSR' if k is csr_matrix else 'dense'}"
         for m, b, k in CASES]  # fmt: skip


@pytest.fixture(params=CASES, ids=NAMES)
def case(request):
    """A problem, what it is of, its optimum, and a few points v, d and a dual point."""
    model, bias, kind = request.param
    X, y, c = half_space_and_costs()
    rng = np.random.default_rng(0)

    def make():
        return problem_in_memory(as_matrix(kind(X)), y, c, MODELS[model](), bias)

    v, d, e = 0.2 * rng.standard_normal((3, 5 + bias))
    facts = {"model": model, "bias": bias, "X": X, "y": y, "c": c, "make": make}
    least = optimum(model, X, y, c, bias)
    points = {"v": v, "d": d, "e": e, "alpha": c * rng.random(len(y))}
    return SimpleNamespace(**facts, **points, problem=make(), least=least)


def look_elsewhere(case, problem):
    """All that does not belong to a walk."""
    other = problem.at(case.e, SOFTER)
    problem.bound(other)
    problem.objective_at(case.d)
    problem.value_of(case.alpha)
    return problem.bound(problem.judge(case.d, case.alpha, problem.dual_weights(case.alpha)))


def walk_on(case, walk):
    """A step, and one about the dual point it leads to."""
    walk.aim(case.d)
    walk.step(0.7, MU)
    walk.recentre()
    walk.step(0.0, SOFTER)
    walk.aim(case.e)
    return walk.step(-1.3, SOFTER)


def everything_after(case, walk):
    look_elsewhere(case, case.problem)
    walk_on(case, walk)
    walk.hessian(), walk.hessian_times(case.d)
    walk_on(case, case.problem.walk(case.e, SOFTER, case.alpha))


def assert_same(found, expect):
    """Two evaluations are the same to the last bit."""
    assert type(found) is Evaluation
    np.testing.assert_equal(found._asdict(), expect._asdict())


def assert_holds(case, bound):
    """A dual point is feasible, worth what it says, and below the optimum."""
    v, imbalance, value = exact_dual(case.model, case.X, case.y, case.c, bound.alpha)
    assert bound.value == pytest.approx(float(value), rel=1e-9)
    assert bound.value <= case.least * (1 + 1e-9)
    assert not case.bias or abs(imbalance) <= 1e-12 * case.c.sum()
    if case.model != "lssvm":
        assert (bound.alpha >= 0).all()
        assert (bound.alpha <= case.c).all()
    if case.model == "lpsvm":
        assert max(abs(v)) <= 1 + 1e-12


def assert_still_proves(case, at, at_once):
    """The bound of an evaluation is what it was when that was new."""
    bound = case.problem.bound(at)
    assert at_once.value > 0.0
    assert bound.value == pytest.approx(at_once.value, rel=1e-9)
    np.testing.assert_allclose(bound.alpha, at_once.alpha, rtol=1e-9, atol=1e-12 * case.c.max())
    assert_holds(case, bound)


# ---------------------------------------------------------------- evaluations


def test_a_gradient_stays_what_it_was(case):
    walk = case.problem.walk(case.d, MU)
    at = case.problem.at(case.v, MU)
    before = deepcopy(at)
    everything_after(case, walk)
    assert_same(at, before)
    assert_same(case.make().at(case.v, MU), before)


def test_what_a_walk_found_stays_when_it_steps_on(case):
    walk = case.problem.walk(case.v, MU, case.alpha)
    found = [walk.at, walk_on(case, walk)]
    before = deepcopy(found)
    everything_after(case, walk)
    for k in range(2):
        assert_same(found[k], before[k])


def test_a_judged_point_stays_what_it_was(case):
    weights = case.problem.dual_weights(case.alpha)
    at = case.problem.judge(case.v, case.alpha, weights)
    before = deepcopy(at)
    weights[:] = 0.0
    everything_after(case, case.problem.walk(case.d, MU))
    assert_same(at, before)


def test_a_point_evaluated_is_not_the_array_given(case):
    v = case.v.copy()
    weights = case.problem.dual_weights(case.alpha)
    found = [case.problem.at(v, MU), case.problem.judge(v, case.alpha, weights)]
    found.append(case.problem.walk(v, MU).at)
    v[:] = 0.0
    for k in range(3):
        np.testing.assert_array_equal(found[k].point, case.v)


# ---------------------------------------------------------------- bounds


def test_a_bound_is_the_same_after_another_evaluation(case):
    at = case.problem.at(case.v, MU)
    at_once = case.problem.bound(at)
    assert_holds(case, at_once)
    look_elsewhere(case, case.problem)
    assert_still_proves(case, at, at_once)


@pytest.mark.parametrize("centred", [False, True])
def test_a_bound_is_the_same_after_the_walk_has_stepped_on(case, centred):
    walk = case.problem.walk(case.v, MU, case.alpha if centred else None)
    at = walk.at
    at_once = case.problem.bound(at)
    assert_holds(case, at_once)
    walk.aim(case.d)
    assert_still_proves(case, at, at_once)
    walk.step(0.7, SOFTER)
    assert_still_proves(case, at, at_once)


def test_a_bound_is_the_same_after_the_walk_was_recentred(case):
    walk = case.problem.walk(case.v, MU, case.alpha)
    for t in (0.0, 0.4):  # about the dual point given, and about the one found there
        walk.aim(case.d)
        at = walk.step(t, MU)
        at_once = case.problem.bound(at)
        assert_holds(case, at_once)
        walk.recentre()
        assert_still_proves(case, at, at_once)
        walk.step(0.0, SOFTER)
        assert_still_proves(case, at, at_once)


def test_a_bound_is_the_same_after_another_walk_has_begun(case):
    at = case.problem.walk(case.v, MU, case.alpha).at
    at_once = case.problem.bound(at)
    case.problem.walk(case.e, SOFTER)
    assert_still_proves(case, at, at_once)


@pytest.mark.parametrize("loop", ["_sweep", "_step"])
def test_a_bound_is_the_same_after_an_interrupt(case, loop, monkeypatch):
    walk = case.problem.walk(case.v, MU)
    at = walk.at if loop == "_step" else case.problem.at(case.v, MU)
    at_once, real = case.problem.bound(at), getattr(shard, loop)
    walk.aim(case.d)

    def interrupted(*args):
        real(*args)
        raise KeyboardInterrupt

    monkeypatch.setattr(shard, loop, interrupted)
    with pytest.raises(KeyboardInterrupt):
        walk.step(1.0, MU) if loop == "_step" else case.problem.at(case.e, MU)
    assert_still_proves(case, at, at_once)


def test_a_bound_that_was_forgotten_costs_what_it_takes_to_make_it_again(case):
    one, two = (case.problem.at(v, MU) for v in (case.v, case.d))
    costs = []
    for at in (two, one):
        before = case.problem.passes
        case.problem.bound(at)
        costs.append(case.problem.passes - before)
    assert costs[1] - costs[0] == (1 if case.bias else 2)  # its margins, and its dual weights


def test_estimates_do_not_depend_on_what_is_remembered(case):
    at = case.problem.at(case.v, MU)
    expect = case.problem.estimate_bound(at), case.problem.suboptimality(at)
    everything_after(case, case.problem.walk(case.d, MU))
    assert (case.problem.estimate_bound(at), case.problem.suboptimality(at)) == expect


# ---------------------------------------------------------------- walks


def test_looking_elsewhere_does_not_disturb_a_step(case):
    found = []
    for disturb in (False, True):
        problem = case.make()
        walk = problem.walk(case.v, MU, case.alpha)
        for t in (0.6, -1.1):
            walk.aim(case.d)
            if disturb:
                look_elsewhere(case, problem)
            slope = walk.slope(t, MU)
            found.append((slope, walk.step(t, MU), walk.hessian().copy()))
            if disturb:
                look_elsewhere(case, problem)
            walk.recentre()
    for k in range(2):
        (a, at, H), (b, other, other_H) = found[k], found[k + 2]
        assert a == b
        assert_same(other, at)
        np.testing.assert_array_equal(H, other_H)


@pytest.mark.parametrize(
    "what",
    [
        lambda walk, d: walk.aim(d),
        lambda walk, d: walk.slope(1.0, MU),
        lambda walk, d: walk.step(1.0, MU),
        lambda walk, d: walk.recentre(),
        lambda walk, d: walk.hessian(),
        lambda walk, d: walk.hessian_times(d),
        lambda walk, d: walk.hessian_diagonal(),
        lambda walk, d: walk.state(),
    ],
    ids=["aim", "slope", "step", "recentre", "hessian", "times", "diagonal", "state"],
)
def test_an_older_walk_goes_nowhere(case, what):
    walk = case.problem.walk(case.v, MU)
    walk.aim(case.d)
    newer = case.problem.walk(case.e, MU)
    with pytest.raises(RuntimeError, match="another walk"):
        what(walk, case.d)
    newer.aim(case.d)
    expect = case.make().at(case.e + case.d, MU)
    np.testing.assert_allclose(newer.step(1.0, MU).gradient, expect.gradient, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("before", ["times", "diagonal", "nothing"])
def test_products_with_the_hessian_are_of_the_point_after_a_step(case, before):
    walk = case.problem.walk(case.v, MU)
    for t in (0.5, 3.0):
        if before == "times":
            walk.hessian_times(case.e)
        elif before == "diagonal":
            walk.hessian_diagonal()
        walk.aim(case.d)
        walk.step(t, MU)
        H = walk.hessian().copy()
        for e in (case.e, np.eye(len(case.v))[-1]):
            np.testing.assert_allclose(walk.hessian_times(e), H @ e, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(walk.hessian_diagonal(), np.diag(H), rtol=1e-10)


def test_the_hessian_is_of_the_last_evaluation_also_after_recentring(case):
    walk = case.problem.walk(np.resize([0.2, 0.4, -0.2, 0.1], len(case.v)), MU)
    H = walk.hessian().copy()
    walk.recentre()
    np.testing.assert_array_equal(walk.hessian(), H)


# ---------------------------------------------------------------- what solvers make of it

every_dual = pytest.mark.parametrize("model", ["csvm", "lssvm"])
every_bias = pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])


def test_the_same_rows_in_both_classes_are_certified():
    s = solve([[1.0], [2.0], [1.0], [2.0]], [1, 1, -1, -1])
    assert s.certified
    assert s.gap <= 1e-3


@every_dual
@every_bias
def test_coordinate_steps_without_a_tolerance_end(model, bias):
    X, y = ball()
    s = solve(X, y, model, C=0.3, bias=bias, solver="coordinate", tol=0.0)
    least = optimum(model, X, y, np.full(len(y), 0.3), bias)
    assert s.status == ("stalled" if s.gap > 0.0 else "converged")
    assert s.objective == pytest.approx(least, rel=1e-6)
    assert s.dual_objective == pytest.approx(least, rel=1e-6)


@every_bias
def test_coordinate_steps_of_least_squares_start_where_they_ended(bias):
    X, y = half_space(noise=0.1)
    first = solve(X, y, "lssvm", bias=bias, solver="coordinate", tol=1e-6)
    assert (first.alpha < 0).any()
    again = solve(X, y, "lssvm", bias=bias, solver="coordinate", alpha0=first.alpha)
    assert again.certified
    assert again.n_iter <= 3 < first.n_iter


@every_dual
@every_bias
def test_a_callback_is_told_of_every_epoch_when_and_after_how_many_passes(model, bias):
    X, y = ball()
    told = []
    solve(X, y, model, bias=bias, solver="coordinate", tol=1e-9, callback=told.append)
    assert [row["round"] for row in told] == list(range(1, len(told) + 1))
    assert len(told) > 5
    for name in ("seconds", "passes"):
        assert (np.diff([row[name] for row in told]) > 0).all()


@every_dual
@every_bias
def test_coordinate_steps_ended_by_a_limit_have_margins_and_a_bound(model, bias):
    X, y = ball()
    s = solve(X, y, model, bias=bias, solver="coordinate", tol=1e-12, max_iter=3)
    c = np.ones(len(y))
    assert (s.status, s.n_iter) == ("iteration_limit", 3)
    assert 0.0 <= s.dual_objective <= optimum(model, X, y, c, bias) <= s.objective
    assert s.dual_objective == pytest.approx(float(exact_dual(model, X, y, c, s.alpha)[2]))
    np.testing.assert_allclose(s.margins, X @ s.w + s.b, rtol=1e-9, atol=1e-9)
    assert s.objective == pytest.approx(objective(model, X, y, c, s.w, s.b))


@pytest.mark.parametrize("solver", SOLVERS)
@every_bias
def test_an_interrupt_in_the_closing_passes_keeps_what_was_found(
    solver, bias, monkeypatch, engines_only
):
    X, y = ball()
    monkeypatch.setattr(
        "nesvm_jit.binary.small.MOST_CELLS", 0
    )  # tests of small fits have their own
    expect = solve(X, y, bias=bias, solver=solver)
    real, calls = LinearProblem.settle, []

    def settle(problem, v, alpha, tol):
        calls.append(alpha)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return real(problem, v, alpha, tol)

    monkeypatch.setattr(LinearProblem, "settle", settle)
    s = solve(X, y, bias=bias, solver=solver)
    assert s.status == "interrupted"
    assert len(calls) >= 2
    assert (s.objective, s.dual_objective) == (expect.objective, expect.dual_objective)
    np.testing.assert_array_equal(s.w, expect.w)
    np.testing.assert_array_equal(s.margins, expect.margins)
