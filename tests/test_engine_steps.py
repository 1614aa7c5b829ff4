"""Every step of Newton's method, coordinate ascent, pairwise steps and kernel least squares: which
points, which μ, how many rounds and passes, on problems small enough to be followed."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from nesvm_jit.kernels.coordinate import _shuffle
from nesvm_jit.kernels.loss import HINGE, SQUARE
from nesvm_jit.kernels.public import as_spec
from nesvm_jit.matrix.checks import as_matrix
from nesvm_jit.models import MODELS, Smoothing
from nesvm_jit.problems.certificate import DualPoint
from nesvm_jit.problems.evaluation import NO_SUMS, Evaluation
from nesvm_jit.problems.kernel import KernelProblem, KernelRows
from nesvm_jit.problems.linear import problem_in_memory
from nesvm_jit.problems.smoothed_kernel import SmoothedKernel
from nesvm_jit.settings import Settings
from nesvm_jit.solvers import coordinate, newton
from nesvm_jit.solvers import pairwise as pairs
from nesvm_jit.solvers.active_set import active_set_direction
from nesvm_jit.solvers.auto import hand_over
from nesvm_jit.solvers.coarse import run_in_pairs
from nesvm_jit.solvers.coordinate import count_epochs_left
from nesvm_jit.solvers.directions import direction
from nesvm_jit.solvers.driver import always, drive, where_it_may_end
from nesvm_jit.solvers.engines import ENGINES
from nesvm_jit.solvers.least_squares import begin as begin_equations
from nesvm_jit.solvers.least_squares import least_squares
from nesvm_jit.solvers.pairwise import begin, choose, improve
from nesvm_jit.solvers.run import Run

from . import oracle

MU = Smoothing(1.0, 1.0)
every_bias = pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
approx = pytest.approx


def draw(n=40, p=3, seed=0, cost=1.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    y = np.where(X @ np.ones(p) + rng.standard_normal(n) > 0.3, 1.0, -1.0)
    c = cost * (0.2 + rng.random(n))
    c[3] = 0.0
    return X, y, c


# ---------------------------------------------------------------- Newton: one line search


def descend(problem, state, run, direction, moving=True):
    engine = newton.newton(problem, state, direction, moving)
    drive(engine, run, where_it_may_end, newton.PATIENCE)


def backwards(walk, gradient):
    return np.array([-1.0])


class Line:
    """A problem of one step, and its walk: φ' is given, and after the step nothing is left to
    gain."""

    bias, passes = False, 0.0

    def __init__(self, first, second, gradient=1.0, value=1.0):
        self.first, self.second, self.gradient, self.value = first, second, gradient, value
        self.model = SimpleNamespace(smoothed=False)
        self.tried, self.steps, self.aimed = [], [], []

    def found(self, smoothing):
        g = np.array([self.gradient])
        self.at = Evaluation(np.zeros(1), smoothing, self.value, g, 2.0, NO_SUMS)
        return self.at

    def walk(self, v, smoothing, alpha):
        self.found(smoothing)
        return self

    def estimate_bound(self, at):
        return 0.0

    def bound(self, at):
        return DualPoint(0.0, None)

    def inner(self, v, other):
        return float(v @ other)

    def suboptimality(self, at):
        return 0.0 if self.steps else 9.0

    def aim(self, d):
        self.aimed.append(d.copy())

    def slope(self, t, smoothing):
        self.tried.append(t)
        return self.first(t), self.second(t)

    def step(self, t, smoothing):
        self.steps.append(t)
        return self.found(smoothing)


def search(first, second):
    problem = Line(first, second)
    descend(problem, newton.begin(problem, np.zeros(1), MU), Run(problem, Settings()), backwards)
    (t,) = problem.steps
    assert [d.tolist() for d in problem.aimed] == [[-1.0]]
    return problem.tried, t


def test_a_whole_step_is_tried_first():
    assert search(lambda t: t - 1.0, lambda t: 1.0) == ([1.0], 1.0)
    assert search(lambda t: 2 * t - 1.0, lambda t: 2.0) == ([1.0, 0.5], 0.5)
    assert search(lambda t: 1e-4 if t == 1.0 else t - 1.0, lambda t: 1.0) == ([1.0], 1.0)


@pytest.mark.parametrize(("share", "tries"), [(0.9e-4, 1), (1.1e-4, 2)])
def test_a_ten_thousandth_of_the_slope_is_enough(share, tries):
    tried, t = search(lambda t: t - 1.0 + share, lambda t: 1.0)
    assert len(tried) == tries
    assert t == approx(1.0 - share * (tries == 2), rel=1e-12)


def test_steps_go_beyond_the_whole_one():
    tried, t = search(lambda t: (t - 1.26) / 1.26, lambda t: 1 / 1.26)
    assert tried == approx([1.0, 1.26])
    assert t == approx(1.26)


def test_a_whole_step_may_leave_a_tenth_of_the_slope():
    assert search(lambda t: (t - 1.1) / 1.1, lambda t: 1 / 1.1) == ([1.0], 1.0)


def test_steps_grow_by_a_hundred_at_most_while_no_end_is_in_sight():
    tried, t = search(lambda t: t / 2e8 - 1.0, lambda t: 1 / 2e8)
    assert tried == approx([1.0, 1e2, 1e4, 1e6, 1e8, 2e8])
    assert t == approx(2e8)


def test_steps_grow_fourfold_where_the_slope_is_flat():
    tried, t = search(lambda t: -1.0 if t < 50 else 0.0, lambda t: 0.0)
    assert tried == [1.0, 4.0, 16.0, 64.0]
    assert t == 64.0


def test_a_bracket_is_halved_where_newton_would_leave_it():
    # steep to the left of 0.3, flat to the right: from the right Newton would go below zero
    first = lambda t: (t - 0.3) * (10.0 if t < 0.3 else 1.0) + (0.0 if t < 0.3 else 0.5)  # noqa: E731
    tried, _ = search(first, lambda t: 10.0 if t < 0.3 else 1.0)
    assert tried[:3] == [1.0, 0.5, 0.25]
    assert tried[3:6] == approx([0.3, 0.275, 0.2875])  # 0.3 is no longer inside
    assert 12 < len(tried) < 60


def test_inside_a_bracket_a_step_may_be_as_long_as_newton_has_it():
    slopes = {1.0: (1.0, 1.0 / 0.999), 0.001: (-0.499, 1.0), 0.5: (0.0, 1.0)}
    near = lambda t: slopes[min(slopes, key=lambda x: abs(x - t))]  # noqa: E731
    tried, t = search(lambda t: near(t)[0], lambda t: near(t)[1])
    assert tried == approx([1.0, 0.001, 0.5])
    assert t == approx(0.5)


def test_a_slope_that_jumps_over_zero_is_bracketed():
    tried, t = search(lambda t: -1.0 if t < 0.3 else 1.0, lambda t: 0.0)
    expect, low, high = [], 0.0, 1.0
    x = 1.0
    while True:
        expect.append(x)
        low, high = (x, high) if x < 0.3 else (low, x)
        if high - low <= 1e-14 * high:
            break
        x = 0.5 * (low + high)
    assert tried == expect
    assert t == low == approx(0.3)
    assert 40 < len(tried) < 60


def test_a_line_search_ends_after_sixty_slopes():
    tried, t = search(lambda t: -1.0 if t < 1e-7 else 1.0, lambda t: 0.0)
    assert len(tried) == 60
    assert t == approx(1e-7)
    assert t < 1e-7
    tried, t = search(lambda t: 1.0, lambda t: 0.0)
    assert len(tried) == 60
    assert t == approx(2.0**-10 * 1e-150)  # nothing falls


# ---------------------------------------------------------------- Newton: μ and when it ends


class Still(Line):
    """Nothing moves: what a step finds is what there was."""

    def __init__(self, owed=9.0, smoothed=True, bias=False, duals=(0.0,), gradient=1.0, value=1.0):
        super().__init__(lambda t: 0.0, lambda t: 1.0, gradient, value)
        self.owed, self.bias, self.duals = owed, bias, list(duals)
        self.model = SimpleNamespace(smoothed=smoothed)
        self.asked, self.mus, self.centred, self.estimate = 0, [], [], 0.0

    def estimate_bound(self, at):
        return self.estimate

    def bound(self, at):
        self.asked += 1
        return DualPoint(self.duals[min(self.asked, len(self.duals)) - 1], None)

    def suboptimality(self, at):
        return self.owed

    def step(self, t, smoothing):
        self.mus.append((t, *smoothing))
        return self.found(smoothing)

    def recentre(self):
        self.centred.append(self.at.smoothing)


def stood(problem, moving=True, **limits):
    run = Run(problem, Settings(**limits))
    state = newton.begin(problem, np.zeros(1), Smoothing(8.0, 4.0))
    descend(problem, state, run, backwards, moving)
    return run


@pytest.mark.parametrize("moving", [True, False])
@pytest.mark.parametrize(("owed", "minimal"), [(0.6, True), (0.61, False)])
def test_mu_halves_where_the_gap_owes_little_to_the_gradient(owed, minimal, moving):
    """P − D is 2, and 0.3 of it is little."""
    problem = Still(owed)
    run = stood(problem, moving)
    if minimal:
        assert run.iterations == 2  # what the last μ leads to is told, too
        assert run.latest.smoothing == (8.0 / 2**40, 4.0 / 2**40)
        assert problem.mus == [(0.0, 8.0 / 2**k, 4.0 / 2**k) for k in range(1, 41)]  # 1e-12 of μ⁰
        expect = [(8.0 / 2**k, 4.0 / 2**k) for k in range(40)] if moving else []
        assert problem.centred == expect
    else:
        assert set(problem.mus) == {(1.0, 8.0, 4.0)}
        assert problem.centred == []


def test_a_problem_without_smoothing_is_done_where_its_gradient_is():
    problem = Still(0.0, smoothed=False)
    assert stood(problem).iterations == 1
    assert problem.mus == []


@pytest.mark.parametrize(("gradient", "steps"), [(1.001e-12, 200), (1e-12, 0)])
def test_a_slope_that_rounding_made_is_none(gradient, steps):
    problem = Still(gradient=gradient, value=-1e3, smoothed=False)
    stood(problem)
    assert len(problem.mus) == steps


def test_newton_gives_up_after_two_hundred_rounds_without_a_smaller_gap():
    assert stood(Still()).iterations == 201
    assert stood(Still(duals=[0.0] * 100 + [0.5] * 900)).iterations == 301


def test_with_a_bias_dual_points_are_made_where_they_may_end_the_run():
    assert (lambda p: (stood(p), p.asked)[1])(Still()) == 201
    assert (lambda p: (stood(p), p.asked)[1])(Still(bias=True)) == 21
    problem = Still(bias=True)
    problem.estimate = 2.0 * (1 - 2.0**-10)
    stood(problem, tol=2.0**-10)
    assert problem.asked == 201
    problem = Still(bias=True)
    problem.estimate = 2.0 * (1 - 2.0**-10)
    stood(problem, tol=0.999 * 2.0**-10)
    assert problem.asked == 21


class Followed:
    """A walk that writes down its steps."""

    def __init__(self, walk):
        self._walk, self.slopes, self.lines, self.t = walk, 0, [], []
        self.factor = walk.factor

    def __getattr__(self, name):
        return getattr(self._walk, name)

    def slope(self, t, smoothing):
        self.slopes += 1
        return self._walk.slope(t, smoothing)

    def step(self, t, smoothing):
        if t != 0.0:
            first, there = (self._walk.slope(x, smoothing)[0] for x in (0.0, t))
            self.lines.append(abs(there / first))
            self.t.append(t)
        return self._walk.step(t, smoothing)


def stepped(model, bias, cost):
    X, y, c = draw(200, 5, cost=cost)
    problem = problem_in_memory(as_matrix(X), y, c, MODELS[model](), bias)
    run = Run(problem, Settings(tol=1e-6))
    state = newton.begin(problem, np.zeros(problem.n_variables), Smoothing(4.0, 4.0))
    state.walk = Followed(state.walk)
    descend(problem, state, run, direction)
    return state.walk, run


@every_bias
@pytest.mark.parametrize(
    ("model", "cost", "most"),
    [
        *(("csvm", 1e-3, 15), ("csvm", 1.0, 20), ("csvm", 1e3, 28)),
        *(("lpsvm", 1e-3, 22), ("lpsvm", 1.0, 26), ("lpsvm", 1e3, 31)),
        *(("lssvm", 1e-3, 2), ("lssvm", 1.0, 2), ("lssvm", 1e3, 2)),
    ],
)
def test_newton_takes_few_rounds_and_slopes(model, cost, most, bias):
    walk, run = stepped(model, bias, cost)
    assert run.status == "converged"
    assert run.iterations <= most
    short = [line for line, t in zip(walk.lines, walk.t, strict=True) if t != 1.0]
    assert max(short, default=0.0) <= 1e-4
    assert walk.slopes <= 7 * run.iterations
    mu = run.history()["mu"]
    assert mu[0] == 4.0
    assert np.log2(mu / 4).tolist() == np.round(np.log2(mu / 4)).tolist()


def test_every_line_search_is_exact_but_for_whole_steps_that_leave_little():
    walk, _ = stepped("csvm", True, 1.0)
    lines, whole = np.array(walk.lines), np.array(walk.t) == 1.0
    assert (lines <= np.where(whole, 0.2, 1e-4)).all()


# ---------------------------------------------------------------- coordinate ascent


def ascent(model, X, y, c, bias, rounds, tol, seed=0, alpha0=None, b0=0.0):
    """Coordinate ascent row by row; returns [w; b], α and of every look at P (round, P, passes)."""
    n, hinge = len(y), model == "csvm"
    share = (X**2).sum() / n if bias else 0.0
    top = c if hinge else np.where(c > 0, np.inf, 0.0)
    low = 0 * c if hinge else np.where(c > 0, -np.inf, 0.0)
    d = np.zeros(n) if hinge else np.divide(0.5, c, out=np.zeros(n), where=c > 0)
    bend = (X**2).sum(axis=1) + d + share
    bend[bend == 0] = 1.0
    a = np.zeros(n) if alpha0 is None else np.clip(alpha0, low, top)
    w, b, r, passes, looks = X.T @ (a * y), b0, np.ones(n), 0.0, []
    state = np.random.default_rng(seed).integers(1, 2**63, 1, dtype=np.uint64)
    order = active = np.arange(n)
    above, below, spread, promise, look = np.inf, -np.inf, 0.1, tol, 20

    def loss(r):
        return c @ (np.maximum(r, 0) if hinge else r**2)

    for k in range(1, rounds + 1):
        _shuffle(active, state)
        highest, lowest, kept = -np.inf, np.inf, 0
        for i in active.copy():
            r[i] = 1 - y[i] * (X[i] @ w + b)
            g = r[i] - d[i] * a[i]
            active[kept] = i
            if (a[i] <= low[i] and g < 0) or (a[i] >= top[i] and g > 0):
                kept += not (g < below or g > above)
                continue
            kept += 1
            highest, lowest = max(highest, g), min(lowest, g)
            new = min(max(a[i] + g / bend[i], low[i]), top[i])
            w, b, a[i] = w + (new - a[i]) * y[i] * X[i], b + share * (new - a[i]) * y[i], new
        passes += len(active) / n
        b += share * (a @ y)
        P, bends = 0.5 * w @ w + loss(r), w @ w + d @ a**2
        t = a.sum() / bends if bends > 0 else 1.0
        t = min(t, 1.0) if hinge else t
        gap = (P - (t * a.sum() - 0.5 * t * t * bends)) / P
        if k == rounds or gap <= promise or k >= look:
            r = 1 - y * (X @ w + b)
            passes += 1
            looks.append((k, 0.5 * w @ w + loss(r), passes))
            promise, look = 0.5 * min(promise, gap), int(1.5 * k) + 1
            above, below, kept = np.inf, -np.inf, n
        elif highest - lowest > spread:
            above = highest if highest > 0 else np.inf
            below = lowest if lowest < 0 else -np.inf
        else:
            spread *= 0.1 if len(active) == n else 1.0
            above, below, kept = np.inf, -np.inf, n
        if kept == n:
            order[:] = np.arange(n)
        active = order[:kept]
    return np.append(w, b) if bias else w, a, looks


def climb(problem, alpha0, b0, run, patience=np.inf):
    v0 = np.zeros(problem.n_variables)
    if problem.bias:
        v0[-1] = b0
    state = coordinate.begin(problem, run, v0, alpha0=alpha0)
    state.patience = patience
    drive(coordinate.coordinate(problem, state, run.settings.tol), run, always)
    return state


def run_engine(engine, problem, run, alpha0=None):
    """As `solve` begins it."""
    zero = np.zeros(problem.n_variables)
    run.engine = engine
    state = ENGINES[engine].begin(problem, run, zero, zero, alpha0)
    while state is not None:
        chosen = ENGINES[run.engine]
        steps = chosen.steps(problem, run, state)
        drive(steps, run, chosen.certify, chosen.patience)
        state = hand_over(problem, run, state)


@every_bias
@pytest.mark.parametrize("model", ["csvm", "lssvm"])
@pytest.mark.parametrize(
    ("rounds", "cost", "tol"),
    [
        *((1, 1.0, 1e-12), (2, 1.0, 1e-12), (7, 0.01, 1e-12), (33, 1.0, 1e-12)),
        *((60, 1e2, 1e-3), (90, 0.1, 1e-12), (70, 3.0, 1e-2)),
    ],
)
@pytest.mark.parametrize("start", [False, True], ids=["cold", "warm"])
def test_every_epoch_of_coordinate_ascent(model, bias, rounds, cost, tol, start):
    X, y, c = draw(cost=cost)
    X[5] = 0.0
    more = {"seed": 3}
    if start:
        more |= {"alpha0": 2 * c * np.random.default_rng(1).random(40) - 0.2, "b0": -0.4 * bias}
    problem = problem_in_memory(as_matrix(X), y, c, MODELS[model](), bias)
    run = Run(problem, Settings(tol=tol, max_iter=rounds, seed=3))
    state = climb(problem, more.get("alpha0"), more.get("b0", 0.0), run)
    expect, a, looks = ascent(model, X, y, c, bias, run.iterations, tol, **more)
    np.testing.assert_allclose(state.v, expect, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(state.alpha, a, rtol=1e-6, atol=1e-8 * cost)
    table = run.history()
    assert run.latest.smoothing == (0.0, 0.0)
    assert np.unique(table["round"]).tolist() == list(range(1, run.iterations + 1))
    seen = [np.flatnonzero(table["round"] == k)[-1] for k, _, _ in looks]
    np.testing.assert_allclose(table["objective"][seen], [P for _, P, _ in looks], rtol=1e-7)
    points = 0 if not bias else 1 if model == "lssvm" else 2
    first = bool(start)
    passes = [p + first + points * (k + 1) for k, (_, _, p) in enumerate(looks)]
    np.testing.assert_allclose(table["passes"][seen], passes, atol=1e-9)
    assert table["gap"][-1] == run.estimated_gap
    assert run.iterations == rounds or run.status == "converged"
    assert (table["gap"][:-1] > tol).all()


@every_bias
@pytest.mark.parametrize(("model", "most"), [("csvm", 230), ("lssvm", 160)])
def test_coordinate_ascent_looks_at_the_objective_where_the_end_is_near(model, most, bias):
    X, y, c = draw(120, 4)
    problem = problem_in_memory(as_matrix(X), y, c, MODELS[model](), bias)
    run = Run(problem, Settings(tol=1e-4))
    climb(problem, None, 0.0, run)
    assert run.status == "converged"
    assert run.history()["gap"][-1] == run.gap <= 1e-4
    assert run.iterations <= most
    objectives = run.history()["objective"]
    looks = len(np.unique(objectives)) - 1  # the first is that of zero
    assert objectives[0] == approx(c.sum(), rel=1e-12)
    assert looks <= 12
    assert run.problem.passes <= run.iterations + 3 * looks


def test_what_is_known_without_a_pass():
    X, y, c = draw()
    problem = problem_in_memory(as_matrix(X), y, c, MODELS["csvm"](), True)
    run = Run(problem, Settings(callback=lambda _: True))
    run_engine("coordinate", problem, run)
    assert run.status == "interrupted"
    assert run.objective <= c.sum()
    seen = []
    run = Run(problem, Settings(tol=1e-9, max_iter=2, callback=seen.append))
    run_engine("coordinate", problem, run)
    assert seen[0]["objective"] == approx(c.sum(), rel=1e-12)
    X[:, 1] = 0.0
    problem = problem_in_memory(as_matrix(X), y, c, MODELS["csvm"](), True)
    warm = Run(problem, Settings(tol=1e-9, max_iter=2, callback=seen.append))
    run_engine("coordinate", problem, warm, 0.5 * c)
    assert seen[2]["objective"] == np.inf


def test_how_many_epochs_seem_to_be_left():
    assert count_epochs_left(1e-3, 1e-1, 1e-3) == 0.0
    assert count_epochs_left(0.9e-3, 1.0, 1e-3) == 0.0
    assert count_epochs_left(1e-2, 1e-1, 1e-4) == approx(2.0)
    assert count_epochs_left(1e-2, 4e-2, 1e-4) == approx(np.log(100) / np.log(4))
    assert count_epochs_left(0.5, 0.5, 1e-4) == np.inf
    assert count_epochs_left(0.6, 0.5, 1e-4) == np.inf
    assert count_epochs_left(0.4, 0.5, 0.0) == np.inf


@every_bias
def test_coordinate_ascent_ends_where_its_patience_does(bias):
    X, y, c = draw(cost=10.0)
    problem = problem_in_memory(as_matrix(X), y, c, MODELS["csvm"](), bias)
    run = Run(problem, Settings(tol=1e-9))
    state = climb(problem, None, 0.0, run, patience=4.0)
    assert not run.done
    assert 1 <= run.iterations <= 19
    assert run.rows[-1][0] == run.iterations
    expect, a, looks = ascent("csvm", X, y, c, bias, run.iterations, 1e-9)
    np.testing.assert_allclose(state.v, expect, rtol=1e-7)
    np.testing.assert_allclose(state.alpha, a, rtol=1e-6, atol=1e-9)
    assert run.objective == approx(min(looks[-1][1], c.sum()))
    assert 0 < state.gap < 1


def test_the_first_epoch_is_measured_against_a_gap_of_one():
    X, y, c = draw(cost=10.0)

    def rounds(patience):
        problem = problem_in_memory(as_matrix(X), y, c, MODELS["csvm"](), False)
        run = Run(problem, Settings(tol=1e-9, max_iter=3))
        gap = climb(problem, None, 0.0, run, patience).gap
        return run.iterations, gap

    one, gap = rounds(0.0)
    assert one == 1
    epochs = np.log(gap / 1e-9) / np.log(1.0 / gap)
    assert rounds(0.99 * epochs)[0] == 1
    assert rounds(1.01 * epochs)[0] > 1


def test_a_chain_hands_over_to_newton_and_says_why():
    X, y, c = draw(300, 4, cost=50.0)
    problem = problem_in_memory(as_matrix(X), y, c, MODELS["csvm"](), True)
    run = Run(problem, Settings(tol=1e-8))
    run_engine("chain", problem, run)
    after = r"after (1 epoch|[2-9] epochs) of coordinate steps"
    said = re.fullmatch(after + r" the gap, (\de[-+]\d\d) then, fell too slowly", run.why)
    epochs, gap = int(said[1].split()[0]), float(said[2])
    assert run.engine == "newton"
    table = run.history()
    assert (table["mu"][table["round"] <= epochs] == 0.0).all()
    first = table["mu"][table["round"] > epochs][0]
    assert first == (1.0 if gap > 0.3 else 0.25)
    assert run.status == "converged"
    easy = problem_in_memory(as_matrix(X), y, 1e-6 * c, MODELS["csvm"](), True)
    run = Run(easy, Settings(tol=1e-1))
    run_engine("chain", easy, run)
    assert (run.engine, run.why) == ("coordinate", "epochs of coordinate steps sufficed")


# ---------------------------------------------------------------- pairwise steps


def given(K, **more):
    return KernelRows(None, None, 0.0, K=K, **more)


def kernel_problem(bias=True, n=40, cost=1.0, loss=HINGE, epsilon=1e-15, gamma=0.5):
    X, y, c = draw(n, cost=cost)
    K = oracle.gram(X, X, "rbf", gamma, 0, 3)
    return KernelProblem(given(K, epsilon=epsilon), y, c, bias, loss), K, y, c


def test_a_working_set_keeps_half_and_takes_the_worst_of_both_sides():
    rise = np.array([5.0, 1.0, -np.inf, 9.0, 3.0, 7.0, 2.0, 4.0])
    fall = np.array([-5.0, -1.0, 8.0, -np.inf, 6.0, -7.0, 0.0, -np.inf])
    none = np.empty(0, dtype=np.int64)
    assert sorted(choose(rise, fall, none, 4)) == [2, 3, 4, 5]
    assert sorted(choose(rise, fall, none, 5)) == [0, 2, 3, 4, 5]  # the odd one rises
    previous = np.array([6, 7, 1, 0])
    work = choose(rise, fall, previous, 4)
    assert work[:2].tolist() == [1, 0]  # the last half of them
    assert sorted(work[2:]) == [2, 3]
    assert choose(rise, fall, previous, 8).tolist() == list(range(8))
    nobody = np.full(8, -np.inf)
    assert choose(nobody, nobody, previous, 4).tolist() == [1, 0]
    assert sorted(choose(rise, nobody, none, 6)) == [0, 3, 5]
    assert sorted(choose(nobody, fall, none, 6)) == [2, 4, 6]


@every_bias
def test_one_working_set_is_solved_and_told(bias):
    problem, K, y, _ = kernel_problem(bias)
    e = y.copy()
    rise, fall = e[problem.beta < problem.upper].max(), -e[problem.beta > problem.lower].min()
    none = np.empty(0, dtype=np.int64)
    work, moved, violation = improve(problem, none, 10)
    assert violation == (rise + fall if bias else max(rise, fall)) == (2.0 if bias else 1.0)
    assert len(work) == len(set(work.tolist())) == 10
    assert moved == np.count_nonzero(problem.beta) > 0
    inside = (problem.beta > problem.lower) & (problem.beta < problem.upper)
    order = inside[work].tolist()
    assert order == sorted(order)  # those inside come last
    np.testing.assert_allclose(problem.f, K @ problem.beta, atol=1e-12)
    assert not bias or abs(problem.beta.sum()) <= 1e-12
    e = y - problem.f
    rise = np.where(problem.beta < problem.upper, e, -np.inf)[work].max()
    fall = np.where(problem.beta > problem.lower, -e, -np.inf)[work].max()
    assert (rise + fall if bias else max(rise, fall)) <= 0.2 * violation
    whole, _, before = improve(problem, work, 40)
    e = y - problem.f
    rise, fall = e[problem.beta < problem.upper].max(), -e[problem.beta > problem.lower].min()
    assert (rise + fall if bias else max(rise, fall)) <= 0.01 * before
    assert len(whole) == 40


def test_at_the_optimum_nothing_moves():
    problem = KernelProblem(given(np.eye(2)), np.array([1.0, -1.0]), np.full(2, 5.0), True)
    problem.place(np.array([1.0, -1.0]))
    previous = np.array([1])
    found, moved, violation = improve(problem, previous, 2)
    assert found is previous
    assert (moved, violation) == (0, 0.0)


@pytest.mark.parametrize("epsilon", [1e-15, 1e-3])
def test_rounding_leaves_nothing_to_gain_after_two_more_rounds(epsilon):
    rows = given(np.eye(2), epsilon=epsilon)
    problem = KernelProblem(rows, np.array([1.0, -1.0]), np.full(2, 5.0), True)
    run = Run(problem, Settings(tol=0.0))
    run_in_pairs(problem, begin(problem, None), run)
    assert problem.beta.tolist() == [1.0, -1.0]
    assert run.iterations == 3  # one that moved, f anew, and one more that did not
    assert (run.objective, run.status) == (1.0, "")


@every_bias
@pytest.mark.parametrize(("cost", "most"), [(1e-3, 4), (1.0, 5), (1e3, 8)])
def test_pairwise_steps_take_few_rounds(bias, cost, most):
    problem, K, y, _ = kernel_problem(bias, 120, cost)
    run = Run(problem, Settings(tol=1e-6))
    run_in_pairs(problem, begin(problem, None), run)
    assert run.status == "converged"
    assert run.iterations <= most
    table = run.history()
    assert (table["mu"] == 0.0).all()
    assert run.latest.smoothing == (0.0, 0.0)
    assert (np.isfinite(table["dual"])).all()
    assert run.dual == approx(oracle.dual_gain(K, y, run.alpha * y), rel=1e-9)
    again = Run(problem, Settings(tol=1e-5))
    run_in_pairs(problem, begin(problem, run.alpha), again)
    assert again.iterations == 1


@pytest.mark.parametrize(("n", "q"), [(500, 500), (513, 512)])
def test_working_sets_have_at_most_512_of_few_rows(n, q):
    X, y, c = draw(n)
    c[3], y = 1.0, np.where(np.arange(n) % 2, 1.0, -1.0)
    sizes = []

    class Rows(KernelRows):
        def block(self, indices, *dtype):
            sizes.append(len(indices))
            return super().block(indices, *dtype)

    problem = KernelProblem(Rows(None, None, 0.0, K=X @ X.T), y, 1e-3 * c, True)
    run_in_pairs(problem, begin(problem, None), Run(problem, Settings(tol=1e-9, max_iter=2)))
    assert set(sizes) == {q}


def test_rounding_in_a_sum_is_taken_back_where_there_is_most_room():
    problem = KernelProblem(given(np.eye(4)), np.array([1.0, 1, -1, -1]), np.full(4, 8.0), True)
    problem.stand(np.array([1.0, 4.0, -2.0, -2.5]))  # half too much
    improve(problem, np.empty(0, dtype=np.int64), 4)
    assert problem.beta.sum() == approx(0.0, abs=1e-15)


def test_pairwise_steps_on_float32_end_where_it_is_too_coarse():
    X, y, c = draw(60, cost=100.0)
    K = oracle.gram(X, X, "rbf", 0.5, 0, 3)
    finer = lambda: None  # noqa: E731
    problem = KernelProblem(given(K, epsilon=1e-5, finer=finer), y, c, True)
    run = Run(problem, Settings(tol=1e-5))
    run_in_pairs(problem, begin(problem, None), run)
    assert run.status == ""
    assert run.iterations <= 12
    exact = KernelProblem(given(K), y, c, True)
    best = Run(exact, Settings(tol=1e-9))
    run_in_pairs(exact, begin(exact, None), best)
    assert run.objective <= best.objective * (1 + 1e-3)
    assert 0.0 <= run.dual <= best.objective


@pytest.fixture
def inner(monkeypatch):
    """What the loops of a working set are asked for; steps of pairs find no end if `endless`."""
    asked = SimpleNamespace(pairs=[], newton=[], endless=False)
    steps, newton_steps = pairs._dual_steps, pairs._newton_steps

    def pair_steps(*args):
        asked.pairs.append(args[4:7])
        taken = steps(*args)
        return args[6] if asked.endless else taken

    def all_inside(*args):
        asked.newton.append(args[4])
        return newton_steps(*args)

    monkeypatch.setattr(pairs, "_dual_steps", pair_steps)
    monkeypatch.setattr(pairs, "_newton_steps", all_inside)
    return asked


@every_bias
def test_a_working_set_is_solved_to_a_fifth_and_the_whole_to_a_hundredth(inner, bias):
    problem = kernel_problem(bias)[0]
    none = np.empty(0, dtype=np.int64)
    _, _, violation = improve(problem, none, 10)
    assert inner.pairs[-1] == (bias, 0.2 * violation, 200)
    work, _, violation = improve(problem, none, 39)
    assert inner.pairs[-1] == (bias, 0.2 * violation, 20 * len(work))
    _, _, violation = improve(problem, none, 40)
    assert inner.pairs[-1] == (bias, 0.01 * violation, 800)
    assert inner.newton == []


@every_bias
def test_where_pairs_do_not_end_newton_steps_follow(inner, bias):
    inner.endless = True
    problem, K, y, _ = kernel_problem(bias, cost=100.0)
    problem.rows.diagonal()[:] = 4.0  # of which the ridge is a share
    improve(problem, np.empty(0, dtype=np.int64), 40)
    assert inner.newton == [4e-12]
    np.testing.assert_allclose(problem.f, K @ problem.beta, atol=1e-9)
    inside = (problem.beta > problem.lower) & (problem.beta < problem.upper)
    e = (y - problem.f)[inside]
    np.testing.assert_allclose(e, e.mean() if bias else 0.0, atol=1e-6)


@pytest.mark.parametrize(("n", "q"), [(100, 100), (4096, 512), (4097, 1024)])
def test_working_sets_grow_with_the_rows(monkeypatch, n, q):
    asked = []
    monkeypatch.setattr(pairs, "improve", lambda _, work, q: asked.append(q) or (work, 0, 0.0))
    rows = KernelRows(as_matrix(np.zeros((n, 1))), as_spec("rbf", 1.0, 0.0, 3, 1), 0.0)
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    problem = KernelProblem(rows, y, np.ones(n), True)
    run = Run(problem, Settings(tol=1e-3))
    run_in_pairs(problem, begin(problem, None), run)
    assert asked == [q, q]
    assert (run.iterations, run.status) == (2, "")


def test_pairwise_steps_without_progress_end_after_a_hundred_rounds(monkeypatch):
    calls = []
    monkeypatch.setattr(pairs, "improve", lambda _, work, q: (work, 1, 5.0))
    problem = kernel_problem()[0]
    place = problem.place
    problem.place = lambda *a: calls.append(run.iterations) or place(*a)
    run = Run(problem, Settings(tol=1e-3))
    run_in_pairs(problem, begin(problem, None), run)
    assert run.iterations == 102
    assert calls == [51]  # f was computed anew half-way


def test_a_smaller_violation_is_progress(monkeypatch):
    left = iter(np.linspace(5.0, 1.0, 1000))
    monkeypatch.setattr(pairs, "improve", lambda _, work, q: (work, 1, next(left)))
    problem = kernel_problem()[0]
    run = Run(problem, Settings(tol=1e-3, max_iter=300))
    run_in_pairs(problem, begin(problem, None), run)
    assert run.iterations == 300


# ---------------------------------------------------------------- kernel least squares


@every_bias
@pytest.mark.parametrize("cost", [1e-3, 1.0, 1e3])
def test_a_factorisation_is_refined_four_times(bias, cost):
    problem, K, y, c = kernel_problem(bias, cost=cost, loss=SQUARE, epsilon=1e-9)
    run = Run(problem, Settings(tol=0.0))
    drive(
        least_squares(problem, begin_equations(problem, 8.0 * 39**2)), run, always
    )  # one of forty has no cost
    assert run.iterations == 5
    beta, b = oracle.kernel_least_squares(K, y, c, bias)
    np.testing.assert_allclose(run.best.point, np.append(beta, b * bias), rtol=1e-9, atol=1e-12)
    assert (run.history()["mu"] == 0.0).all()
    assert run.latest.smoothing == (0.0, 0.0)
    np.testing.assert_allclose(run.history()["objective"], run.objective, rtol=1e-10)  # of all five
    early = Run(problem, Settings(tol=1e-4))
    drive(least_squares(problem, begin_equations(problem, 1e9)), early, always)
    assert early.iterations == 1


def test_without_room_for_a_factor_gradients_are_conjugate():
    problem, K, y, c = kernel_problem(True, loss=SQUARE, epsilon=1e-9)
    run = Run(problem, Settings(tol=0.0, max_iter=300))
    drive(least_squares(problem, begin_equations(problem, 8.0 * 39**2 - 1)), run, always)
    assert run.iterations > 5
    beta, b = oracle.kernel_least_squares(K, y, c, True)
    np.testing.assert_allclose(run.best.point, np.append(beta, b), atol=1e-7)


@every_bias
@pytest.mark.parametrize(("rank", "least", "most"), [(3, 1, 1), (2, 2, 2), (0, 4, 80)])
def test_a_kernel_of_low_rank_is_its_own_preconditioner(bias, rank, least, most):
    X, y, c = draw(40, 3, cost=100.0)
    c[3] = 0.0
    problem = KernelProblem(given(X @ X.T), y, c, bias, SQUARE)
    run = Run(problem, Settings(tol=1e-9, max_iter=400))
    drive(least_squares(problem, begin_equations(problem, 16.0 * 40 * rank + 15)), run, always)
    assert run.status == "converged"
    assert least <= run.iterations <= most
    beta, b = oracle.kernel_least_squares(X @ X.T, y, c, bias)
    P = oracle.kernel_objective("lssvm", X @ X.T, y, c, beta, b * bias)
    assert run.objective == approx(P, rel=1e-8)


def test_a_preconditioner_has_at_most_256_rows_of_the_kernel():
    asked = []

    class Counted(KernelRows):
        def rows(self, indices):
            asked.extend(indices)
            return super().rows(indices)

    n = 530
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    problem = KernelProblem(Counted(None, None, 0.0, K=np.eye(n)), y, np.ones(n), True, SQUARE)
    drive(
        least_squares(problem, begin_equations(problem, 16.0 * n * 260)),
        Run(problem, Settings(tol=1e-3)),
        always,
    )
    assert len(set(asked)) == len(asked) == 256


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_a_preconditioner_ends_with_the_rank_of_the_kernel(size):
    asked = []

    class Counted(KernelRows):
        def rows(self, indices):
            asked.extend(indices)
            return super().rows(indices)

    X, y, c = draw(40, 3)
    problem = KernelProblem(Counted(None, None, 0.0, K=size * X @ X.T), y, c / size, True, SQUARE)
    run = Run(problem, Settings(tol=1e-9))
    drive(least_squares(problem, begin_equations(problem, 16.0 * 40 * 6)), run, always)
    assert len(asked) == 3
    assert run.iterations == 1


def test_conjugate_gradients_of_small_costs_stay_conjugate():
    X, y, _ = draw(40, 3)
    problem = KernelProblem(given(1e5 * X @ X.T), y, np.full(40, 1e-3), True, SQUARE)
    run = Run(problem, Settings(tol=1e-9))
    drive(least_squares(problem, begin_equations(problem, 0.0)), run, always)
    assert run.status == "converged"
    assert run.iterations <= 6


def test_a_system_that_is_solved_exactly_ends_the_run():
    y = np.array([1.0, -1.0, -1.0, 1.0])
    rows = given(0.5 * np.eye(4), epsilon=1e-3)
    problem = KernelProblem(rows, y, np.ones(4), False, SQUARE)
    run = Run(problem, Settings(tol=0.0))
    drive(least_squares(problem, begin_equations(problem, 0.0)), run, always)
    assert (run.iterations, run.status) == (1, "")
    np.testing.assert_allclose(problem.beta, y)


def test_where_a_kernel_is_not_definite_gradients_are_conjugate_too():
    K = np.diag([1.0, 2.0, -1.0])
    problem = KernelProblem(given(K), np.array([1.0, -1.0, 1.0]), np.full(3, 5.0), False, SQUARE)
    run = Run(problem, Settings(tol=0.0, max_iter=50))
    drive(least_squares(problem, begin_equations(problem, 1e9)), run, always)
    assert 1 <= run.iterations <= 30
    np.testing.assert_allclose(problem.f, K @ problem.beta, atol=1e-9)


# ---------------------------------------------------------------- directions with a kernel


def smooth(bias=True, n=40, cost=1.0):
    problem, K, y, c = kernel_problem(bias, n, cost)
    return SmoothedKernel(problem, MODELS["csvm"]()), K, y, c


@every_bias
def test_without_active_rows_the_gradient_leads(bias):
    problem, _, _, c = smooth(bias)
    v = problem.start(np.zeros(40))
    walk = problem.walk(v, Smoothing(1e-9, 1e-9))
    g = walk.at.gradient
    d = active_set_direction(walk, g)
    np.testing.assert_array_equal(d[:-1], -g[:-1])
    little = 1e-8 * np.sum(c) / 1e-9
    assert d[-1] == (approx(-g[-1] / little, rel=1e-9) if bias else 0.0)


class AskedError(Exception):
    pass


@pytest.mark.parametrize(("active", "asked"), [(3000, "block"), (3001, "times")])
def test_beyond_3000_active_rows_nothing_is_factorised(active, asked):
    def ask(name):
        def refuse(*_):
            raise AskedError(name)

        return refuse

    rows = SimpleNamespace(block=ask("block"), times=ask("times"), diagonal=lambda: np.ones(active))
    problem = SimpleNamespace(
        n_rows=active,
        bias=False,
        kernel=SimpleNamespace(rows=rows),
        active=lambda at: (np.arange(active), np.ones(active)),
    )
    with pytest.raises(AskedError, match=asked):
        active_set_direction(SimpleNamespace(problem=problem, at=None), np.ones(2 * active + 1))


def stub(K, W, bias=False):
    """A walk of a kernel problem whose rows are all active with curvatures W; `K` need be no
    kernel."""
    K, n = np.array(K, dtype=float), len(K)
    problem = SimpleNamespace(
        n_rows=n,
        bias=bias,
        kernel=SimpleNamespace(rows=given(K)),
        active=lambda at: (np.arange(n), np.array(W)),
    )
    return SimpleNamespace(problem=problem, at=None)


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize(
    ("least", "more"),
    [(0.5, 0.0), (-1e-13, 1e-12), (-1e-10, 1e-9), (-1e-7, 1e-6), (-1e-4, 1e-3), (-0.5, 1.0)],
)
def test_an_indefinite_block_gets_the_least_ridge_that_helps(least, more, size):
    K = size * np.diag([0.5, 0.25, least - 0.5])
    W = np.full(3, 2.0 / size)
    g = np.array([1.0, 2.0, 3.0, 0.4, 0.5, 0.6, 0.0])
    d = active_set_direction(stub(K, W), g)
    z = -g[3:6] / (np.diag(K) + 0.5 * size + more * size)
    np.testing.assert_allclose(d[:3], -g[:3] - z, rtol=1e-3)
    np.testing.assert_allclose(d[3:6], -g[3:6] - K @ z, rtol=1e-3)


def conjugate_gradients(A, ridge, R):
    """Solutions of (A + ridge) s = r for several r side by side, and the products it took."""
    M = A + np.diag(ridge)
    scale, S, D = 1 / np.diag(M), np.zeros_like(R), R / np.diag(M)
    rz = first = (R * R * scale).sum(axis=1)
    products = 0
    while products < 200:
        products += 1
        t = (rz / np.einsum("ki,ij,kj->k", D, M, D))[:, None]
        S, R = S + t * D, R - t * D @ M
        before, rz = rz, (R * R * scale).sum(axis=1)
        if (rz <= 1e-6 * first).all():
            break
        D = scale * R + (rz / before)[:, None] * D
    return S, products


@every_bias
@pytest.mark.parametrize("size", [1e-4, 1.0, 1e4])
def test_conjugate_gradients_with_a_kernel_are_those_of_numpy(bias, size):
    rng = np.random.default_rng(0)
    B = rng.standard_normal((30, 40)) * np.linspace(0.3, 1, 30)[:, None]
    K, W = size * B @ B.T, (1 + rng.random(30)) / size
    walk, g = stub(K, W, bias), rng.standard_normal(61)
    calls, times = [], walk.problem.kernel.rows.times
    walk.problem.kernel.rows.times = lambda *v: calls.append(len(v)) or times(*v)
    d = active_set_direction(walk, g, largest=0)
    R = np.stack([-g[30:60], np.ones(30)])[: 1 + bias]
    S, products = conjugate_gradients(K, 1 / W, R)
    z = S[0]
    if bias:
        assert d[-1] == approx((-g[-1] - z.sum()) / S[1].sum(), rel=1e-6)
        z = z + d[-1] * S[1]
    else:
        assert d[-1] == -g[-1]
    np.testing.assert_allclose(d[:30], -g[:30] - z, rtol=1e-5, atol=1e-7 / size)
    np.testing.assert_allclose(d[30:60], -g[30:60] - K @ z, rtol=1e-5, atol=1e-6)
    assert calls == [1 + bias] * products
    exact = active_set_direction(walk, g, largest=30)
    np.testing.assert_allclose(d, exact, rtol=0.05, atol=0.02 * np.abs(exact).max())
    assert len(calls) == products


def test_conjugate_gradients_with_a_kernel_end_after_200_products():
    walk = stub(np.eye(2), [1e9, 1e9])
    calls = []
    turn = np.array([[0.1, -1.0], [1.0, 0.1]])  # symmetric it is not: nothing converges
    walk.problem.kernel.rows.times = lambda v: calls.append(1) or (turn @ v)[None]
    active_set_direction(walk, np.arange(5.0), largest=0)
    assert len(calls) == 200


def test_a_system_that_is_solved_waits_for_the_other():
    walk = stub(np.diag([1.0, 2.0, 4.0]), [1.0, 1.0, 1.0], True)
    g = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])  # a right side of zero
    d = active_set_direction(walk, g, largest=0)
    assert d[-1] == approx(-1.0 / (1 / 2 + 1 / 3 + 1 / 5))
    np.testing.assert_allclose(d[:3], -d[-1] / np.array([2.0, 3.0, 5.0]))


def test_where_no_ridge_helps_the_diagonal_does():
    K, g = np.diag([-5.0, -7.0]), np.array([1.0, 2.0, 0.4, 0.5, 0.0])
    d = active_set_direction(stub(K, [1.0, 1.0]), g)
    z = -g[2:4] / np.array([-4.0, -6.0])
    np.testing.assert_allclose(d[:2], -g[:2] - z, rtol=1e-12)
