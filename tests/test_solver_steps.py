"""What runs count and keep, and every step of the paper's algorithms, of Newton's direction and of
the choice of an engine, on problems small enough to be followed by hand."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from nesvm_jit.matrix.checks import as_matrix
from nesvm_jit.matrix.rows import Size
from nesvm_jit.models import MODELS, Smoothing
from nesvm_jit.problems.certificate import DualPoint
from nesvm_jit.problems.evaluation import NO_GRADIENT, NO_SUMS, Evaluation
from nesvm_jit.problems.linear import problem_in_memory
from nesvm_jit.settings import Settings
from nesvm_jit.solvers import accelerated, gradient, homotopy
from nesvm_jit.solvers.accelerated import continue_down, minimise
from nesvm_jit.solvers.auto import choose, patience
from nesvm_jit.solvers.directions import direction, factorised, iterated
from nesvm_jit.solvers.driver import always, drive, now_and_then
from nesvm_jit.solvers.nesvm import State, nesvm
from nesvm_jit.solvers.run import COLUMNS, Run, proves, relative_gap
from nesvm_jit.solvers.starts import smoothing_from, warm_start

from . import oracle

MU = Smoothing(1.0, 1.0)
approx = pytest.approx


class Watched:
    """A problem whose dual points are given one after the other."""

    def __init__(self, *duals):
        self.passes, self.duals, self.asked = 0.0, list(duals), 0

    def bound(self, at):
        self.asked += 1
        value = self.duals[min(self.asked, len(self.duals)) - 1]
        return DualPoint(value, np.array([value]))

    def split(self, v):
        return v[:-1], float(v[-1])


V = np.array([3.0, 4.0])


def at(value, objective, smoothing=MU, point=V):
    return Evaluation(point, smoothing, value, NO_GRADIENT, objective, NO_SUMS)


# ---------------------------------------------------------------- runs


def test_a_run_keeps_the_best_point_and_the_best_bound():
    problem = Watched(1.0, 3.0, 2.0, 5.0)
    run = Run(problem, Settings(tol=1e-9))
    for k, P in enumerate((10.0, 8.0, 8.0, 9.0)):
        problem.passes = 2.0 * k
        assert not run.record(at(P - 1, P, Smoothing(7.0, 0.5 + k), V + k), certify=True)
    assert (run.objective, run.dual, run.best_row, run.iterations) == (8.0, 5.0, 1, 4)
    assert run.best.point.tolist() == [4.0, 5.0]
    assert run.alpha.tolist() == [5.0]
    assert run.latest.smoothing == (7.0, 3.5)
    assert run.gap == 0.375
    table = run.history()
    assert tuple(table) == COLUMNS
    assert table["round"].tolist() == [1, 2, 3, 4]
    assert table["round"].dtype == np.int64
    assert table["mu"].tolist() == [0.5, 1.5, 2.5, 3.5]
    assert table["smoothed"].tolist() == [9.0, 7.0, 7.0, 8.0]
    assert table["objective"].tolist() == [10.0, 8.0, 8.0, 9.0]
    assert table["dual"].tolist() == [1.0, 3.0, 3.0, 5.0]
    assert table["gap"].tolist() == [0.9, 0.625, 0.625, 0.375]
    assert table["passes"].tolist() == [0.0, 2.0, 4.0, 6.0]
    assert (np.diff(table["seconds"]) >= 0).all()
    assert 0 <= table["seconds"][0] < 60


@pytest.mark.parametrize("way", ["at", "walk", "judge"])
def test_the_best_point_is_a_copy(way):
    y = np.array([1.0, -1.0])
    problem = problem_in_memory(as_matrix(np.eye(2)), y, y * y, MODELS["csvm"](), False)
    run, v, d = Run(problem, Settings()), V.copy(), np.ones(2)
    if way == "walk":
        walk = problem.walk(v, MU)
        run.record(walk.at, certify=False)
        walk.aim(d)
        walk.step(1.0, MU)
    else:
        run.record(problem.at(v, MU) if way == "at" else problem.judge(v, y, d), certify=False)
    v[:] = d[:] = 0.0
    assert run.best.point.tolist() == [3.0, 4.0]
    assert run.best.sums.weights.tolist() != [0.0, 0.0]


def test_dual_points_are_made_in_the_first_of_ten_iterations_now_and_then():
    problem, asked = Watched(0.0), []

    def engine():
        for _ in range(23):
            before = problem.asked
            yield at(1.0, 1.0)
            asked.append(problem.asked - before)

    run = Run(problem, Settings())
    drive(engine(), run, now_and_then)
    assert np.flatnonzero(asked).tolist() == [0, 10, 20]
    run.record(at(1.0, 1.0), certify=True)
    assert problem.asked == 4
    for _ in range(10):
        run.record(at(1.0, 1.0), certify=False)
    assert problem.asked == 4
    run.enter(at(1.0, 1.0))
    assert (problem.asked, run.iterations) == (5, 34)


def test_the_gap_is_relative_and_negative_only_where_bounds_cross():
    run = Run(None, Settings())
    assert run.gap == np.inf
    run.objective, run.dual = 4.0, 1.0
    assert run.gap == 0.75
    run.dual = 5.0
    assert run.gap == -0.25
    assert run.estimated_gap == -0.25
    run.dual = 4.0 * (1 + 1e-10)  # by rounding, while they are estimates
    assert run.estimated_gap == 0.0
    assert run.gap == approx(-1e-10)
    run.dual = 4.0 * (1 + 0.9e-9)
    assert run.estimated_gap == 0.0
    run.dual = 4.0 * (1 + 1.1e-9)  # more than rounding
    assert run.estimated_gap == run.gap < 0.0
    run.dual = 4.0 * (1 + 1e-8)
    assert run.estimated_gap == run.gap < 0.0
    run.dual = -4.0
    assert run.gap == 2.0
    run.dual = np.nan
    assert run.gap == np.inf


@pytest.mark.parametrize(
    ("objective", "dual", "gap"),
    [(0.0, 0.0, 0.0), (0.0, -1.0, np.inf), (0.0, 1.0, -np.inf), (-1.0, -2.0, np.inf)],
)
def test_the_gap_of_an_objective_that_is_not_positive(objective, dual, gap):
    assert relative_gap(objective, dual) == gap
    assert proves(gap, 1e-3) == (gap == 0.0)


@pytest.mark.parametrize(("dual", "status"), [(0.5, "converged"), (0.499, "")])
def test_a_run_is_converged_at_its_tolerance(dual, status):
    run = Run(Watched(dual), Settings(tol=0.5))
    assert run.record(at(1.0, 1.0), certify=True) is bool(status)
    assert run.status == status
    assert run.done is bool(status)


def test_a_run_ends_at_its_limits():
    run = Run(Watched(0.0), Settings(max_iter=3))
    assert [run.record(at(1.0, 1.0), certify=True) for _ in range(3)] == [False, False, True]
    assert run.status == "iteration_limit"
    run = Run(Watched(0.0), Settings(max_iter=2))
    assert [run.passed(), run.passed()] == [False, True]
    assert (run.iterations, run.status) == (2, "iteration_limit")
    run = Run(Watched(0.0), Settings(time_limit=50.0))
    assert 40.0 < run.remaining() <= 50.0
    assert not run.passed()
    run.started -= 50.0
    assert -10.0 < run.remaining() <= 0.0
    assert run.passed()
    assert run.status == "time_limit"
    assert Run(None, Settings()).remaining() == np.inf


def test_a_callback_sees_the_last_evaluation_with_the_facts_of_now():
    seen, problem = [], Watched(0.25)
    run = Run(problem, Settings(callback=lambda facts: seen.append(facts) or len(seen) == 3))
    assert not run.passed()
    assert set(seen[0]) == set(COLUMNS)
    assert (seen[0]["round"], seen[0]["mu"], seen[0]["objective"]) == (1, 0.0, np.inf)
    assert np.isnan(seen[0]["smoothed"])
    assert (seen[0]["dual"], seen[0]["gap"]) == (-np.inf, np.inf)
    assert not run.record(at(2.0, 4.0, Smoothing(9.0, 3.0)), certify=True)
    assert (seen[1]["round"], seen[1]["mu"], seen[1]["smoothed"]) == (2, 3.0, 2.0)
    assert (seen[1]["objective"], seen[1]["dual"], seen[1]["gap"]) == (4.0, 0.25, 0.9375)
    problem.passes = 7.0
    assert run.passed()
    assert (seen[2]["round"], seen[2]["passes"], seen[2]["smoothed"]) == (3, 7.0, 2.0)
    assert seen[2]["seconds"] > seen[1]["seconds"] > seen[0]["seconds"]
    history = run.history()  # also of rounds that nothing was evaluated in
    assert history["round"].tolist() == [1, 2, 3]
    assert history["dual"].tolist() == [-np.inf, 0.25, 0.25]
    assert run.status == "interrupted"


def test_a_callback_asks_a_run_that_can_be_saved_to_end_later():
    saved = []
    saving = SimpleNamespace(
        asked=False, due=lambda: False, save=lambda run: saved.append(run.iterations)
    )

    def engine():
        for k in range(1, 10):
            saving.ready = k == 4
            yield at(1.0, 1.0)
            assert run.status == ""

    run = Run(Watched(0.0), Settings(callback=lambda facts: facts["round"] == 2))
    drive(engine(), run, always, saving=saving)
    assert (run.status, run.iterations, saved) == ("interrupted", 4, [4])


@pytest.mark.parametrize(
    ("status", "taken"),
    [
        ("interrupted", "interrupted"),
        ("time_limit", "time_limit"),
        ("iteration_limit", "iteration_limit"),
        ("converged", ""),
        ("", ""),
    ],
)
def test_a_run_that_prepared_another_is_counted(status, taken):
    seen, problem = [], Watched()
    problem.n_rows = 40
    run = Run(problem, Settings(callback=seen.append), iterations=5)
    run.take_over(Run(None, Settings(), status, iterations=7), told=3, part=10)
    assert (run.iterations, run.status) == (9, taken)
    assert run.history()["round"].tolist() == [6, 7, 8, 9]
    assert [(row["round"], row["warm_up"], row["rows"]) for row in seen] == [
        (k, 10, 40) for k in (6, 7, 8, 9)
    ]


def test_a_run_begins_again_on_a_finer_problem():
    run = Run(Watched(1.0), Settings(tol=0.0))
    run.record(at(2.0, 2.0), certify=True)
    finer = Watched(0.0)
    run.begin_again(finer)
    assert run.problem is finer
    assert (run.best, run.best_row, run.latest, run.alpha) == (None,) * 4
    assert (run.objective, run.dual, run.iterations) == (np.inf, -np.inf, 1)
    assert len(run.rows) == 1


def test_a_bound_is_forgotten_for_that_of_zero():
    run = Run(None, Settings(), dual=3.0, alpha=np.ones(2))
    run.forget_bound(np.zeros(2))
    assert (run.dual, run.alpha.tolist()) == (0.0, [0.0, 0.0])
    run.forget_bound()
    assert (run.dual, run.alpha) == (-np.inf, None)


def test_points_are_handed_over_as_weights_and_bias():
    class Wide(Watched):
        def split(self, v):
            return v[:2], float(v[-1])

    wide = at(1.0, 1.0, point=np.array([1.0, 2.0, 9.0, 9.0, 5.0]))
    run, other = Run(Wide(), Settings(), best=wide), Watched()
    run.hand_over(other)
    assert run.best.point.tolist() == [1.0, 2.0, 5.0]
    assert run.problem is other
    run = Run(Wide(), Settings())
    run.hand_over(other)
    assert run.best is None
    assert run.problem is other


def test_a_settled_run_has_the_objective_of_now_in_its_history():
    run = Run(Watched(1.0), Settings(tol=0.0))
    for P in (5.0, 3.0, 4.0):
        run.record(at(0.0, P), certify=True)
    run.settle(3.25, DualPoint(0.5, V))
    assert (run.objective, run.dual, run.alpha.tolist()) == (3.25, 0.5, [3.0, 4.0])
    table = run.history()
    assert table["objective"].tolist() == [5.0, 3.25, 4.0]
    assert table["dual"].tolist() == [1.0, 1.0, 1.0]
    assert table["smoothed"].tolist() == [0.0, 0.0, 0.0]
    early = Run(Watched(), Settings(), best_row=0)
    early.settle(2.0, DualPoint(0.5, V))  # stopped before the row was written
    assert (early.objective, early.dual, early.rows) == (2.0, 0.5, [])
    none = Run(Watched(), Settings(), rows=[(1,) * 8])
    none.settle(2.0, DualPoint(0.5, V))
    assert none.rows == [(1,) * 8]


def test_an_empty_history_has_its_columns():
    table = Run(None, Settings()).history()
    assert tuple(table) == COLUMNS
    assert all(len(column) == 0 for column in table.values())


# ---------------------------------------------------------------- Algorithm 1


class Quadratic:
    """½(v − v*)ᵀA(v − v*) + 1 smoothed: P is `above` more, D is `below` less than 1."""

    bias, model = False, SimpleNamespace(smoothed=True, strong_convexity=0.25)

    def __init__(self, diagonal, best, L=1.0, above=2.0, duals=(-9.0,), owed=0.0):
        self.A, self.best, self.L = np.array(diagonal), np.array(best, dtype=float), L
        self.above, self.owed, self.duals = above, owed, list(duals)
        self.passes, self.seen, self.kinds, self.asked = 0.0, [], [], 0

    def value(self, v):
        return 0.5 * (v - self.best) @ (self.A * (v - self.best)) + 1.0

    def gradient(self, v):
        return self.A * (v - self.best)

    def at(self, v, smoothing):
        self.passes += 1
        self.seen.append(v.copy())
        F = self.value(v)
        return Evaluation(v.copy(), smoothing, F, self.gradient(v), F + self.above, NO_SUMS)

    def lipschitz(self, kind, smoothing):
        self.kinds.append((kind, smoothing))
        return self.L

    def inner(self, v, other):
        return float(v @ other)

    def suboptimality(self, at):
        return self.owed

    def bound(self, at):
        self.asked += 1
        return DualPoint(self.duals[min(self.asked, len(self.duals)) - 1], V)


def algorithm_1(problem, w, w_star, L, rounds, **beyond):
    return oracle.algorithm_1(problem.value, problem.gradient, w, w_star, L, rounds, **beyond)


def traced(problem, rounds, w0, w_star, **method):
    """A run of Algorithm 1, and its state at the end."""
    settings = {"solver": "nesvm", "mu": 1.0, "epsilon": 1e-3, "bias": False, "tol": 0.0} | method
    run = Run(problem, Settings(max_iter=rounds, **settings), engine="nesvm")
    s = gradient.begin(problem, run, w0, w_star)
    drive(gradient.steps(problem, run, s), run, now_and_then)
    return run, s


START, CENTRE = np.array([3.0, -1.0, 0.5]), np.array([0.5, 2.0, -1.0])


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize(("kind", "L"), [("paper", 5.0), ("tight", 5.0), ("tight", 0.3)])
def test_every_point_of_algorithm_1(kind, L, restart):
    make = lambda: Quadratic([5.0, 1.0, 0.1], [1.0, -2.0, 4.0], L)  # noqa: E731
    problem = make()
    method = {"epsilon": 0.0, "lipschitz": kind, "restart": restart}
    run, s = traced(problem, 60, START, CENTRE, **method)
    assert isinstance(s, accelerated.State) is (kind == "tight" or restart)
    beyond = {"tight": kind == "tight", "restart": restart}
    expect, last, ahead = algorithm_1(make(), START, CENTRE, L, 60, **beyond)
    np.testing.assert_allclose(problem.seen, expect, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(run.latest.point, last, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(s.w, ahead, rtol=1e-9, atol=1e-12)  # to go on from
    assert problem.kinds == [(kind, MU)]
    assert (run.iterations, run.status) == (60, "iteration_limit")
    assert START.tolist() == [3.0, -1.0, 0.5]
    if restart:
        plain = algorithm_1(make(), START, CENTRE, L, 60, tight=kind == "tight")[1]
        assert not np.allclose(plain, last)


@pytest.mark.parametrize("epsilon", [0.0, 1e-3])
def test_what_goes_beyond_the_paper_is_the_paper_where_nothing_is_asked_for(epsilon):
    one, two = (Quadratic([5.0, 1.0, 0.1], [1.0, -2.0, 4.0], 5.0) for _ in range(2))
    settings = Settings(solver="nesvm", epsilon=epsilon, tol=0.0, max_iter=60)
    a, b = Run(one, settings), Run(two, settings)
    begun = (START.copy(), CENTRE, MU, 5.0, np.zeros(3))
    s, t = State(*begun), accelerated.State(*begun, start=MU)
    drive(nesvm(one, s, epsilon), a, now_and_then)
    begun[-1][:] = 0.0
    drive(minimise(two, t, settings), b, now_and_then)
    np.testing.assert_array_equal(one.seen, two.seen)
    np.testing.assert_array_equal(s.w, t.w)
    assert (a.status, a.iterations) == (b.status, b.iterations)


def test_a_gradient_at_a_right_angle_to_the_step_is_no_reason_to_restart():
    problem = Quadratic([0.0, 0.0, 0.0], [0.0, 0.0, 0.0])
    traced(problem, 5, START, CENTRE, epsilon=0.0, restart=True)
    expect = algorithm_1(problem, START, CENTRE, 1.0, 5)[0]
    np.testing.assert_allclose(problem.seen, expect, rtol=1e-12)


@pytest.mark.parametrize("restart", [False, True])
def test_every_point_of_strongly_convex_steps(restart):
    problem = Quadratic([5.0, 1.0, 0.3], [1.0, -2.0, 4.0], L=5.0)
    method = {"epsilon": 0.0, "lipschitz": "tight", "restart": restart, "strong": True}
    run, s = traced(problem, 40, START, CENTRE, **method)
    momentum = (5.0**0.5 - 0.5) / (5.0**0.5 + 0.5)
    w, before, expect = START, START, [START]
    for _ in range(40):
        g = problem.gradient(w)
        y = w - g / 5.0
        ahead = y + momentum * (y - before)
        w, before = (y if restart and g @ (ahead - w) > 0 else ahead), y
        expect.append(w)
    np.testing.assert_allclose([*problem.seen, s.w], expect, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(run.latest.point, problem.seen[-1])
    assert run.iterations == 40


@pytest.mark.parametrize("strong", [False, True])
def test_the_paper_stops_where_the_value_changes_by_less_than_epsilon(strong):
    for epsilon, rounds in ((0.0, 9), (1e-300, 2)):
        problem = Quadratic([1.0, 1.0, 1.0], START, L=1.0)  # the start is the optimum
        run, s = traced(problem, 9, START, START, epsilon=epsilon, strong=strong)
        assert run.iterations == rounds
        np.testing.assert_allclose(s.w, START, rtol=1e-15)
    problem = Quadratic([5.0, 1.0, 0.1], [1.0, -2.0, 4.0], 5.0)
    run, s = traced(problem, 500, START, CENTRE, strong=strong)
    np.testing.assert_array_equal(s.w, problem.seen[-1])
    F = run.history()["smoothed"]
    assert abs(F[-1] - F[-2]) < 1e-3
    assert (np.abs(np.diff(F[:-1])) >= 1e-3).all()


def balanced(problem, rounds, **method):
    """A run whose stopping rule is that of `auto`."""
    settings = Settings(bias=False, tol=0.0, max_iter=rounds, **method)
    run = Run(problem, settings)
    s = accelerated.State(START, CENTRE, MU, problem.L, np.zeros(3), start=MU)
    drive(minimise(problem, s, settings), run, now_and_then)
    return run


@pytest.mark.parametrize("strong", [False, True])
@pytest.mark.parametrize(("owed", "rounds"), [(0.8, 1), (0.81, 25)])
def test_balanced_stops_where_smoothing_owes_more_of_the_gap(owed, rounds, strong):
    problem = Quadratic([1.0, 1.0, 1.0], [0.0, 0.0, 0.0], 10.0, above=2.0, owed=owed)
    method = {"solver": "auto", "epsilon": 1e9, "strong": strong, "lipschitz": "paper"}
    run = balanced(problem, 25, restart=False, **method)
    assert run.iterations == rounds


def test_balanced_looks_only_where_a_dual_point_was_made():
    problem = Quadratic([1.0, 1.0, 1.0], [0.0, 0.0, 0.0], 10.0, above=2.0, owed=9.0)
    problem.suboptimality = lambda at: 9.0 if problem.passes < 5 else 0.0
    method = {"solver": "auto", "epsilon": 1e9, "lipschitz": "paper"}
    assert balanced(problem, 25, restart=False, **method).iterations == 11


def test_a_restart_forgets_the_value_before_it():
    """After a restart the next value is compared with none: |ΔF| < ε cannot stop there."""
    problem = Quadratic([5.0, 1.0, 0.01], [1.0, -2.0, 4.0], 5.0)
    epsilon = 0.02
    run, _ = traced(problem, 500, START, CENTRE, epsilon=epsilon, restart=True)
    F = run.history()["smoothed"]
    small = np.flatnonzero(np.abs(np.diff(F)) < epsilon)
    assert small[-1] == len(F) - 2
    points = algorithm_1(problem, START, CENTRE, 5.0, len(F), restart=True)[0]
    np.testing.assert_allclose(problem.seen, points, rtol=1e-9, atol=1e-12)


# ---------------------------------------------------------------- Algorithm 2


def stages(schedule="paper", end=0.1, start=MU, duals=(-9.0,), tol=0.0, **more):
    """The μ of every stage of a problem whose start is optimal: two rounds each."""
    problem = Quadratic([1.0, 1.0, 1.0], START, above=0.0, duals=duals)
    smoothed, printed = more.pop("smoothed", True), more.pop("printed", False)
    problem.model = SimpleNamespace(smoothed=smoothed, strong_convexity=0.0)
    method = {"mu_end": end, "epsilon": 1e-9, "lipschitz": "paper", "schedule": schedule}
    run = Run(problem, Settings(solver="homotopy", tol=tol, **method, **more))
    begun = (START, START, start, problem.lipschitz("paper", start), np.zeros(3))
    if printed:
        steps = homotopy.homotopy(problem, homotopy.State(*begun), start, end, 1e-9)
    else:
        s = accelerated.State(*begun, start=start)
        steps = continue_down(problem, s, run.settings, run.measure_gap)
    drive(steps, run, now_and_then)
    mu = run.history()["mu"]
    if not run.done and smoothed:
        assert (mu[::2] == mu[1::2]).all()
    return mu[::2].tolist(), problem, run


@pytest.mark.parametrize("printed", [True, False])
def test_the_paper_divides_by_one_two_three(printed):
    assert stages(end=0.3, printed=printed)[0] == approx([1.0, 1 / 2, 1 / 3, 0.3])
    assert stages(end=0.25, printed=printed)[0] == approx([1.0, 1 / 2, 1 / 3, 1 / 4])
    assert stages(end=1.0, printed=printed)[0] == [1.0]
    assert stages(end=7.0, printed=printed)[0] == [1.0]


def test_the_geometric_schedule_halves():
    assert stages("geometric", end=0.2)[0] == [1.0, 0.5, 0.25, 0.2]


def test_both_smoothings_fall_together():
    _, problem, run = stages("geometric", end=1.0, start=Smoothing(8.0, 4.0))
    assert [s for _, s in problem.kinds] == [(8.0, 4.0), (4.0, 2.0), (2.0, 1.0)]
    assert run.latest.smoothing == (2.0, 1.0)


def test_the_gap_says_how_far_mu_falls():
    """By ¼ at a gap of ½, by 0.45 at tol/0.9; by no less than ½."""
    duals = [0.5] * 2 + [1 - 0.02 / 0.9] * 20
    mu, _, run = stages("gap", end=1e-2, duals=duals, tol=0.02)
    assert mu[:2] == [1.0, 0.25]
    assert run.gap == approx(0.02 / 0.9)
    assert mu[2] == approx(0.25 * 0.45)
    assert mu[-1] == 1e-2
    assert all(b == approx(max(0.45 * a, 1e-2)) for a, b in pairwise(mu[1:]))
    near = [1 - 0.0201] * 50
    assert stages("gap", end=0.1, duals=near, tol=0.02)[0][1] == approx(0.5 * 0.02 / 0.0201)
    assert stages("gap", end=0.1, duals=[1 - 0.03] * 9, tol=0.02)[0][1] == approx(1 / 3)


@pytest.mark.parametrize("printed", [True, False])
def test_a_stage_that_ends_the_run_is_the_last(printed):
    mu, _, run = stages(end=0.1, max_iter=3, printed=printed)
    assert run.iterations == 3
    assert mu == [1.0, 0.5]
    mu, _, run = stages(end=0.1, smoothed=False, printed=printed)
    assert mu == [1.0]
    assert run.iterations == 2


@pytest.mark.parametrize("schedule", ["geometric", "paper"])
@pytest.mark.parametrize("moving", [False, True])
def test_the_centre_moves_with_the_start_or_stays(moving, schedule):
    problem = Quadratic([5.0, 1.0, 0.1], [1.0, -2.0, 4.0], L=5.0)
    method = {"solver": "homotopy", "mu_start": 1.0, "mu_end": 0.5, "epsilon": 0.05, "tol": 0.0}
    settings = Settings(schedule=schedule, moving_centre=moving, **method)
    run = Run(problem, settings, engine="homotopy")
    s = gradient.begin(problem, run, START, CENTRE)
    assert isinstance(s, accelerated.State) is (moving or schedule != "paper")
    drive(gradient.steps(problem, run, s), run, now_and_then)
    first, second = (int(np.sum(run.history()["mu"] == mu)) for mu in (1.0, 0.5))
    one, last, _ = algorithm_1(problem, START, START if moving else CENTRE, 5.0, first)
    two = algorithm_1(problem, last, last if moving else CENTRE, 5.0, second)[0]
    np.testing.assert_allclose(problem.seen, one + two, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(s.w, problem.seen[-1])


def test_gradient_methods_are_the_papers_unless_auto_chose_them():
    given = ("lipschitz", "schedule", "restart", "moving_centre")
    for solver, expect in (
        ("homotopy", ("paper", "paper", False, False)),
        ("nesvm", ("paper", "paper", False, False)),
        ("auto", ("tight", "gap", True, True)),
    ):
        found = accelerated.resolve(Settings(solver=solver))
        assert tuple(getattr(found, name) for name in given) == expect
    limits = Settings()
    assert (limits.tol, limits.max_iter, limits.time_limit, limits.callback) == (
        *(1e-3, 100_000),
        *(None, None),
    )


@pytest.mark.parametrize("best", range(16))
def test_a_warm_start_finds_the_smoothing_of_the_smallest_gap(best):
    tried = []

    def bound_of_margins(margins, mu):
        assert margins == "margins"
        tried.append(mu)
        k = np.log2(8.0 / mu.penalty) / 2
        assert mu == (8.0 * 4.0**-k, 2.0 * 4.0**-k)
        return DualPoint(-abs(k - best), k)

    problem = SimpleNamespace(
        objective_at=lambda v: (float(v.sum()), "margins"), bound_of_margins=bound_of_margins
    )
    found = warm_start(problem, START, Smoothing(8.0, 2.0))
    assert found == ((8.0 * 4.0**-best, 2.0 * 4.0**-best), (0.0, best), 2.5, "margins")
    assert len(tried) == len(set(tried)) <= 8
    problem.bound_of_margins = lambda margins, mu: DualPoint(1.0, None)
    assert warm_start(problem, START, MU).smoothing == MU  # the largest of equals


# ---------------------------------------------------------------- Newton's direction


def hessian_walk(H, n_variables=None, smoothed=True, strong=1.0):
    """What a direction asks of a walk, H known; `times` counts."""
    H = np.array(H, dtype=float)
    model = SimpleNamespace(smoothed=smoothed, strong_convexity=strong)
    walk = SimpleNamespace(
        problem=SimpleNamespace(n_variables=n_variables or len(H), model=model),
        factor=None,
        times=0,
        hessian=lambda: H.copy(),
        hessian_diagonal=lambda: np.diag(H).copy(),
    )

    def hessian_times(v):
        walk.times += 1
        return H @ v

    walk.hessian_times = hessian_times
    return walk


G = np.array([1.0, -2.0, 0.5])
H = np.array([[4.0, 1.0, 0.0], [1.0, 3.0, 0.5], [0.0, 0.5, 2.0]])


@pytest.mark.parametrize(("n_variables", "times"), [(2000, False), (2001, True)])
def test_beyond_2000_columns_the_hessian_is_only_multiplied(n_variables, times):
    walk = hessian_walk(H, n_variables)
    d = direction(walk, G)
    assert (walk.times > 0) is times
    np.testing.assert_allclose(d, -np.linalg.solve(H, G), rtol=0.1 if times else 1e-12, atol=0.02)


@pytest.mark.parametrize("smoothed", [True, False])
def test_a_hessian_that_nothing_changes_is_factorised_once(smoothed):
    walk = hessian_walk(H, smoothed=smoothed)
    np.testing.assert_allclose(factorised(walk, G), -np.linalg.solve(H, G), rtol=1e-12)
    assert (walk.factor is None) is smoothed
    walk.hessian = None if not smoothed else walk.hessian
    for g in (G, 2 * G[::-1]):
        np.testing.assert_allclose(factorised(walk, g), -np.linalg.solve(H, g), rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize(("least", "ridge"), [(-1e-13, 1e-12), (-1e-10, 1e-9), (-1e-7, 1e-6),
                                              (-1e-4, 1e-3), (-0.5, 1.0)])  # fmt: skip
def test_a_singular_hessian_gets_the_least_ridge_that_helps(least, ridge, scale):
    singular = scale * np.diag([1.0, 0.5, least])
    d = factorised(hessian_walk(singular), G)
    np.testing.assert_allclose(d, -G / (np.diag(singular) + ridge * scale), rtol=1e-3)


def test_where_no_ridge_helps_the_gradient_leads():
    np.testing.assert_array_equal(factorised(hessian_walk(-5 * np.eye(3)), G), -G)
    np.testing.assert_array_equal(factorised(hessian_walk(0 * np.eye(3)), G), -G)


def test_a_direction_that_does_not_descend_is_not_taken():
    d = factorised(hessian_walk(np.diag([1.0, 1e-300, 1.0])), np.array([0.0, 1e10, 2.0]))
    assert np.isfinite(d).all()
    assert d[1] < 0
    assert d[2] == approx(-2.0)


def conjugate_gradients(H, g, ridge=0.0):
    """d with Hd near −g, preconditioned by the diagonal, and the products it took."""
    A = H + ridge * np.eye(len(g))
    M = np.diag(A)
    d, r = 0 * g, -g
    p = r / M
    first = r @ (r / M)
    for k in range(1, 501):
        t = (r @ (r / M)) / (p @ A @ p)
        d, new = d + t * p, r - t * A @ p
        if new @ (new / M) <= 0.05**2 * first:
            return d, k
        p = new / M + (new @ (new / M)) / (r @ (r / M)) * p
        r = new
    return d, 500


@pytest.mark.parametrize("strong", [1.0, 0.0])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_conjugate_gradients_are_those_of_numpy(strong, scale):
    rng = np.random.default_rng(0)
    B = rng.standard_normal((30, 40)) * np.linspace(0.2, 1, 30)[:, None]
    H, g = scale * (B @ B.T + np.eye(30)), rng.standard_normal(30)
    walk = hessian_walk(H, strong=strong)
    expect, times = conjugate_gradients(H, g, 1e-6 * np.diag(H).max() if strong == 0 else 0.0)
    np.testing.assert_allclose(iterated(walk, g), expect, rtol=1e-6, atol=1e-9 / scale)
    assert walk.times == times > 5


def test_conjugate_gradients_of_a_flat_problem_go_down_the_gradient():
    d = iterated(hessian_walk(0 * H, strong=0.0), G)
    np.testing.assert_allclose(d, -G)  # with a ridge of one
    d = iterated(hessian_walk(np.diag([1.0, -1.0, 1.0]), strong=1.0), np.array([0, 1.0, 0]))
    np.testing.assert_allclose(d, [0, -1.0, 0])  # no curvature: the gradient itself


def test_a_direction_may_have_zeros():
    d = iterated(hessian_walk(np.diag([1.0, 2.0, 4.0])), np.array([0.0, 1.0, 3.0]))
    np.testing.assert_allclose(d, [0.0, -0.5, -0.75])
    none = iterated(hessian_walk(np.eye(3)), np.zeros(3))
    assert not none.any()


def test_conjugate_gradients_end_after_500_products():
    turned = hessian_walk([[0.1, -1.0], [1.0, 0.1]])  # symmetric it is not: nothing converges
    d = iterated(turned, np.array([1.0, 2.0]))
    assert turned.times == 500
    assert d.any()


# ---------------------------------------------------------------- auto


def data(rows=100, cols=10, cells=None, resident=True):
    cells = rows * cols if cells is None else cells
    return SimpleNamespace(size=Size(rows, cols, cells, 8 * cols), resident=resident)


FACTORISED = "features are few enough to factorise the Hessian"
BY_ROWS = "2001 features are too many for a Hessian, so row by row"
NO_HESSIAN = "2001 features are too many for the Hessian that lpsvm needs"
STREAMED = "the rows are not in memory, and newton takes the fewest passes"
WIDE, MANY, STREAM = {"cols": 2001}, {"cells": 50_001}, {"resident": False}


@pytest.mark.parametrize(
    ("kind", "model", "warm", "engine", "why"),
    [
        ({"cols": 2000}, "csvm", True, "newton", f"2000 {FACTORISED}"),
        ({"cols": 2000}, "lpsvm", True, "newton", f"2000 {FACTORISED}"),
        (WIDE, "csvm", True, "coordinate", BY_ROWS),
        (WIDE, "lssvm", False, "coordinate", BY_ROWS),
        (WIDE, "lpsvm", True, "homotopy", NO_HESSIAN),
        (WIDE | STREAM, "lpsvm", True, "homotopy", NO_HESSIAN),
        (WIDE | STREAM, "csvm", True, "newton", STREAMED),
        (MANY | STREAM, "csvm", False, "newton", STREAMED),
        (MANY, "csvm", False, "chain", ""),
        ({"cells": 50_000}, "csvm", False, "newton", f"10 {FACTORISED}"),
        (MANY, "csvm", True, "newton", f"10 {FACTORISED}"),
        (MANY, "lssvm", False, "newton", f"10 {FACTORISED}"),
        (MANY, "lpsvm", False, "newton", f"10 {FACTORISED}"),
    ],
)
def test_the_engine_for_a_problem(kind, model, warm, engine, why):
    assert choose(data(**kind), model, warm) == (engine, why)


def test_how_many_epochs_newtons_steps_are_worth():
    # dense: 8 steps of 2 · 1e5 + ½ · min(½ · 1e5 · 100, ½ · 1e3 · 1e4/16) + 1e6/24 cells,
    # beside epochs of 4e5
    assert patience(Size(1000, 100, 100_000, 800)) == approx(
        8 * (2e5 + 0.5 * 312_500 + 1e6 / 24) / 4e5
    )
    # sparse: half of ten cells a row, squared
    assert patience(Size(1000, 1000, 10_000, 120)) == approx(
        8 * (2e4 + 0.5 * 50_000 + 1e9 / 24) / 4e4
    )
    assert patience(Size(0, 0, 0, 0)) == 0.0
    assert patience(Size(10, 2, 0, 0)) == approx(8 * (8 / 24) / 4)


def test_newton_goes_on_nearer_from_a_smaller_gap():
    assert smoothing_from(0.31) == (1.0, 1.0)
    assert smoothing_from(0.3) == (0.25, 0.25)
    assert smoothing_from(1e-6) == (0.25, 0.25)


def test_directions_of_a_real_problem_solve_its_equations():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 5)), np.where(rng.random(40) < 0.5, 1.0, -1.0)
    for model in MODELS:
        for bias in (False, True):
            problem = problem_in_memory(as_matrix(X), y, np.full(40, 0.3), MODELS[model](), bias)
            walk = problem.walk(0.1 * np.ones(problem.n_variables), MU)
            g, H = walk.at.gradient, walk.hessian().copy()
            exact = -np.linalg.solve(H, g)
            np.testing.assert_allclose(direction(walk, g), exact, rtol=1e-9)
            near = iterated(walk, g)
            r, M = H @ near + g, np.diag(H)
            assert r @ (r / M) <= 1.1 * 0.05**2 * (g @ (g / M))


@pytest.mark.parametrize(
    ("F", "more", "doubled"),
    [
        (0.0, 0.0, False),  # of a problem without curvature left, or of none: it would never end
        (0.0, 1e-300, True),
        (-4.0, 3e-12, False),  # a share of 1e-12 of F is rounding
        (4.0, 3e-12, False),
        (4.0, 5e-12, True),
    ],
)
def test_l_is_doubled_where_a_step_falls_by_less_than_it_promises(F, more, doubled):
    g = np.array([0.0, 0.0]) if F == 0.0 else np.array([2.0, 0.0])
    drop = g @ g / (2 * 2.0)
    seen = []

    def at(y, smoothing):
        seen.append((y.tolist(), smoothing))
        return SimpleNamespace(value=F - drop + more)

    problem = SimpleNamespace(at=at, inner=np.dot)
    s = accelerated.State(np.array([1.0, 1.0]), np.zeros(2), MU, 2.0, np.zeros(2), start=MU)
    here = SimpleNamespace(value=F, gradient=g)
    settings = accelerated.resolve(Settings(lipschitz="tight"))
    accelerated._with_history(problem, s, here, settings)
    assert seen == [((np.ones(2) - g / 2.0).tolist(), MU)]
    assert (4.0 if doubled else 2.0) == s.L
    assert s.k == (0 if doubled else 1)
    if doubled:
        np.testing.assert_array_equal(s.w, [1.0, 1.0])
        np.testing.assert_array_equal(s.history, [0.0, 0.0])
