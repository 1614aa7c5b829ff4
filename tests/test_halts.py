"""Work that has to end in the middle: looks at the clock between pieces of it, what a fit then has
found, and machines of few rows where there is no time for more."""

import math
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from nesvm_jit import NotCertifiedWarning, cross_validate, train
from nesvm_jit import clock as clocks
from nesvm_jit.binary import finish_kernel
from nesvm_jit.binary.finish import untrained
from nesvm_jit.clock import Halt, apart, look, must_end, pieces, undisturbed, watching
from nesvm_jit.endings import Outcome, describe_uncertified, outcomes_of
from nesvm_jit.kernels.loss import HINGE
from nesvm_jit.kernels.public import as_spec
from nesvm_jit.numerics.cholesky import factorise
from nesvm_jit.problems.kernel import KernelProblem, KernelRows
from nesvm_jit.problems.labels import bias_range, radius_of
from nesvm_jit.settings import Settings
from nesvm_jit.solvers import linear_program, pairwise
from nesvm_jit.solvers import rescue as rescues
from nesvm_jit.solvers.coarse import run_in_pairs
from nesvm_jit.solvers.rescue import before_rescue, is_trained, rescue
from nesvm_jit.solvers.run import Run
from scipy.spatial.distance import cdist

from .endings import solve

approx = pytest.approx
SPEC = as_spec("rbf", 0.5, 0.0, 3, 4)


@pytest.fixture
def small_pieces(monkeypatch):
    """A look after every part, and no grace."""
    monkeypatch.setattr(clocks, "FIRST_PIECE", 1)
    monkeypatch.setattr(clocks, "GROWTH", 1)
    monkeypatch.setattr(clocks, "GRACE", 0.0)


def draw(n=120, seed=0, cost=10.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    y = np.where(X[:, 0] * X[:, 1] + 0.4 * rng.standard_normal(n) > 0.0, 1.0, -1.0)
    return X, y, np.full(n, cost)


# ---------------------------------------------------------------- looks


def test_a_look_ends_work_whose_time_is_over(time):
    look()
    with watching(lambda: 105.0 - time.now):
        look()
        assert must_end() == ""
        time.now = 105.0
        assert must_end() == "time_limit"
        with pytest.raises(Halt) as halt:
            look()
        with undisturbed():
            look()
            assert must_end() == ""
        with pytest.raises(Halt):
            look()
    look()
    assert halt.value.status == "time_limit"


def test_what_was_asked_to_end_has_a_moment_to_come_to_an_end(time):
    asked = [False]
    with watching(asked=lambda: asked[0]):
        look()
        asked[0] = True
        assert must_end() == "interrupted"
        look()
        time.now += 0.29
        look()
        time.now += 0.02
        with pytest.raises(Halt) as halt:
            look()
    assert halt.value.status == "interrupted"
    assert isinstance(halt.value, KeyboardInterrupt)
    look()


def test_what_is_watched_for_outside_is_watched_for_inside(time):
    asked = [False]
    with watching(lambda: 110.0 - time.now, lambda: asked[0]):
        with watching(lambda: 105.0 - time.now):
            time.now = 106.0
            assert must_end() == "time_limit"
        assert must_end() == ""
        with watching(lambda: 200.0 - time.now):
            time.now = 111.0
            assert must_end() == "time_limit"
            asked[0] = True
            assert must_end() == "interrupted"
    assert must_end() == ""


def test_pieces_take_a_fifth_of_a_second_and_are_all_of_the_work(time):
    seen = []
    for piece in pieces(200):
        seen.append((piece.start, piece.stop))
        time.now += 0.01 * (piece.stop - piece.start)
    assert seen == [
        (0, 8),
        (8, 28),
        (28, 48),
        *((k, k + 20) for k in range(48, 188, 20)),
        (188, 200),
    ]
    assert list(pieces(0)) == []
    quick = [piece.stop - piece.start for piece in pieces(100)]
    assert quick == [8, 32, 60]
    slow = []
    for piece in pieces(10):
        slow.append(piece.stop - piece.start)
        time.now += 5.0
    assert slow == [8, 1, 1]


def test_no_look_is_taken_after_the_last_piece(time):
    done = []
    with watching(lambda: 100.5 - time.now):
        for piece in pieces(8):
            done.append(piece.stop)
            time.now += 1.0
        with pytest.raises(Halt):
            done.extend(piece.stop for piece in pieces(9))
    assert done == [8, 8]


def test_work_apart_returns_or_raises_as_it_does_and_is_left_where_it_is_late():
    assert apart(lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        apart(lambda: 1 // 0)
    end, done = threading.Event(), []

    def work():
        assert end.wait(60.0)
        done.append(True)

    with watching(lambda: -1.0), pytest.raises(Halt):
        apart(work)
    assert not done
    end.set()


@pytest.mark.parametrize("kind", ["train", "cross_validate"])
@pytest.mark.parametrize("probability", [False, True])
def test_landmarks_that_there_is_no_time_for_leave_a_machine_that_is_zero(
    kind, probability, monkeypatch, small_pieces
):
    monkeypatch.setattr("nesvm_jit.binary.nystroem.FEW", 10)
    X, y, _ = draw(60)
    given = {"kernel": "rbf", "approx": "nystroem", "landmarks": 40, "time_limit": 1e-6}
    if kind == "cross_validate":
        with pytest.warns(NotCertifiedWarning):
            assert cross_validate(X, y, n_folds=3, **given).status == "time_limit"
        return
    with pytest.warns(NotCertifiedWarning):
        machine = train(X, y, probability=probability, **given)
    assert [p["trained"] for p in machine.problems] == [False]
    assert machine.problems[0]["status"] == "time_limit"
    assert machine.predict(X).shape == (60,)


def test_a_linear_program_is_left_where_it_is_late(monkeypatch):
    monkeypatch.setattr(linear_program, "QUICK", 0)
    Z = np.random.default_rng(0).standard_normal((20, 3))
    assert linear_program._solve(Z, None, np.ones(20), math.inf) is not None
    end = threading.Event()
    monkeypatch.setattr("scipy.optimize.linprog", lambda *_, **__: end.wait(60.0))
    with watching(lambda: -1.0), pytest.raises(Halt):
        linear_program._solve(Z, None, np.ones(20), math.inf)
    end.set()


# ---------------------------------------------------------------- fits that are ended anywhere

FITS = {
    "pairs": {"kernel": "rbf", "gamma": 0.5},
    "pairs of few rows in memory": {"kernel": "rbf", "gamma": 0.5, "cache_mb": 0.01},
    "pairs in double precision": {"kernel": "rbf", "gamma": 0.5, "tol": 1e-8},
    "newton": {"kernel": "rbf", "gamma": 0.5, "solver": "newton"},
    "nesvm": {"kernel": "rbf", "gamma": 0.5, "solver": "nesvm", "max_iter": 20},
    "least squares": {"kernel": "poly", "gamma": 0.5, "degree": 2, "model": "lssvm"},
    "columns": {"kernel": "rbf", "gamma": 0.5, "model": "lpsvm"},
    "linear": {"kernel": "linear"},
}


def ended(at, why, X, y, **given):
    """A fit that has to end at the look of this number, and how many looks there were."""
    looks = [0]

    def over():
        looks[0] += 1
        return looks[0] > at

    if why == "interrupted":
        watch = watching(asked=over)
    else:
        watch = watching(lambda: -1.0 if over() else math.inf)
    with watch:
        return solve(X, y, **given), looks[0]


@pytest.mark.parametrize("why", ["interrupted", "time_limit"])
@pytest.mark.parametrize("name", FITS)
def test_a_fit_that_is_ended_at_any_look_has_a_valid_certificate(
    name, why, small_pieces, engines_only
):
    X, y, _ = draw()
    given = {"C": 10.0, "tol": 1e-4, **FITS[name]}
    best, looks = ended(math.inf, why, X, y, **given)
    exact = solve(X, y, **{**given, "solver": "auto", "tol": 1e-8, "max_iter": 100_000})
    low, high = exact.dual_objective * (1 - 1e-9), exact.objective * (1 + 1e-9)
    ends = set()
    for at in np.unique(np.linspace(0, max(looks - 1, 0), 12).astype(int)):
        found, _ = ended(at, why, X, y, **given)
        ends.add(found.status)
        assert found.dual_objective <= high
        assert found.objective >= low
        assert found.dual_objective >= 0.0
        assert found.objective <= 10.0 * len(y) * (1 + 1e-9)
        assert found.alpha.shape == y.shape
        assert found.certified == (0.0 <= found.gap <= given["tol"])
    assert ends <= {why, best.status, "converged"}
    assert name == "linear" or why in ends


def test_known_sums_settle_a_point_without_a_row_of_the_matrix(monkeypatch):
    X, y, c = draw()
    problem = KernelProblem(KernelRows(X, SPEC, 1e9), y, c, True)
    run = Run(problem, Settings(tol=1e-6))
    rescue(problem, run, np.random.default_rng(0))
    at = problem.current()
    sharp = problem.settle(at.point, at.dual.alpha)
    monkeypatch.setattr(KernelRows, "_compute", None)
    monkeypatch.setattr(KernelRows, "times", None)
    settled = problem.settle_known(at)
    assert settled.objective == approx(sharp.objective, rel=1e-9)
    assert settled.dual.value == approx(sharp.dual.value, rel=1e-9)
    assert settled.objective > at.objective > sharp.dual.value
    assert settled.dual.value < problem.dual_value(problem.beta, problem.f)
    assert settled.dual.alpha @ y == 0.0
    np.testing.assert_array_equal(settled.beta, settled.dual.alpha * y)
    wrong = at._replace(known=at.known._replace(f=at.known.f + 1e-3, reach=1e11))
    loose = problem.settle_known(wrong)
    assert loose.objective > settled.objective
    assert loose.dual.value < settled.dual.value


def cut_short(status, rounds=3):
    """A run of so many rounds that ends like this, and how many kernel values its point takes."""
    problem, run = late_run(120, max_iter=rounds)
    run_in_pairs(problem, pairwise.begin(problem, None), run)
    run.enter(problem.current())
    run.status = status
    return problem, run, np.count_nonzero(problem.beta) * problem.n_rows


@pytest.mark.parametrize("status", ["time_limit", "interrupted", "iteration_limit"])
@pytest.mark.parametrize("more", [-1, 0])
def test_only_what_is_long_and_cut_short_is_settled_without_kernel_values(
    status, more, monkeypatch
):
    problem, run, cells = cut_short(status)
    monkeypatch.setattr(finish_kernel, "QUICK_CELLS", cells + more)
    known, settled = [], problem.settle_known
    monkeypatch.setattr(problem, "settle_known", lambda at: known.append(at) or settled(at))
    at_once = status != "iteration_limit" and more < 0
    if at_once:
        monkeypatch.setattr(KernelRows, "_compute", None)
        monkeypatch.setattr(KernelRows, "times", None)
    found = finish_kernel.settle_kernel(run)
    assert bool(known) == at_once
    assert 0.0 < run.dual < run.objective < problem.c.sum()
    np.testing.assert_allclose(found["beta"], problem.beta, atol=1e-9)
    np.testing.assert_allclose(found["margins"], problem.f + found["b"], atol=1e-9)


@pytest.mark.parametrize("change", [{"known": None}, "far"])
def test_a_latest_point_whose_sums_are_not_known_bounds_nothing(change, monkeypatch):
    monkeypatch.setattr(finish_kernel, "QUICK_CELLS", 0)
    problem, run, _ = cut_short("time_limit", 2)
    if change == "far":
        change = {"known": run.best.known._replace(reach=math.inf)}
    run.latest = run.latest._replace(**change)
    finish_kernel.settle_kernel(run)
    assert run.dual == problem.settle_known(run.best).dual.value
    run.best = run.latest  # it is settled with kernel values then
    monkeypatch.setattr(problem, "settle_known", None)
    finish_kernel.settle_kernel(run)
    assert 0.0 < run.dual < run.objective < problem.c.sum()


@pytest.mark.parametrize("latest_is_better", [False, True])
def test_the_better_of_two_bounds_is_kept_where_a_fit_is_cut_short(latest_is_better, monkeypatch):
    monkeypatch.setattr(finish_kernel, "QUICK_CELLS", 0)
    _, worse, _ = cut_short("time_limit", 2)
    problem, run, _ = cut_short("time_limit", 6)
    points = [worse.best, run.best] if latest_is_better else [run.best, worse.best]
    bounds = [problem.settle_known(at).dual for at in points]
    run.best, run.latest = points
    found = finish_kernel.settle_kernel(run)
    best = bounds[latest_is_better]
    assert best.value > bounds[not latest_is_better].value
    assert run.dual == best.value
    np.testing.assert_array_equal(run.alpha, best.alpha)
    np.testing.assert_array_equal(found["beta"], problem.settle_known(points[0]).beta)
    assert found["b"] == points[0].point[-1]


def test_a_point_worse_than_zero_is_not_returned_where_a_fit_is_cut_short(monkeypatch):
    monkeypatch.setattr(finish_kernel, "QUICK_CELLS", 0)
    problem, run, _ = cut_short("interrupted")
    at, n = run.best, problem.n_rows
    worse = at.known._replace(f=1e3 * at.known.f)
    run.best = at._replace(point=1e3 * at.point, known=worse)
    run.latest = at
    found = finish_kernel.settle_kernel(run)
    assert not found["beta"].any()
    assert (found["b"], found["margins"].tolist()) == (0.0, [0.0] * n)
    costs = float(problem.c.sum())
    assert costs <= run.objective <= costs * (1 + 1e-12)
    off = radius_of(run.objective, run.dual) * problem.rows.entries.roots
    b_range = bias_range(problem.y, problem.c, np.zeros(n), off, HINGE)
    assert found["bias_range"] == approx(b_range)
    assert run.dual == problem.settle_known(at).dual.value > 0.0


# ---------------------------------------------------------------- machines of few rows


def late_run(n=400, limit=1e6, late=0.0, **settings):
    X, y, c = draw(n)
    problem = KernelProblem(KernelRows(X, SPEC, 1e9), y, c, True)
    run = Run(problem, Settings(time_limit=limit, **settings))
    run.started -= late
    return problem, run


def test_half_of_the_time_is_kept_until_something_is_found():
    problem, run = late_run(limit=100.0, late=20.0)
    assert before_rescue(run) == approx(30.0, abs=1.0)
    run.enter(problem.current())
    assert not is_trained(run)
    assert before_rescue(run) == approx(30.0, abs=1.0)
    rescue(problem, run, np.random.default_rng(0))
    assert is_trained(run)
    assert before_rescue(run) == approx(80.0, abs=1.0)
    assert before_rescue(late_run(limit=None)[1]) == math.inf


def test_a_machine_made_late_is_within_three_hundredths_on_its_rows():
    problem, run = late_run(800)  # there is time for all of them
    rescue(problem, run, np.random.default_rng(0))
    assert 0.0 < run.gap <= 0.03


def test_a_machine_of_few_rows_is_better_than_none(monkeypatch):
    problem, run = late_run(limit=100.5)
    problem.beta[:], problem.f[:] = 1.0, np.nan  # steps were ended in the middle
    run.status = "time_limit"
    seconds = iter([0.0, 16.0])  # of sixteen rows
    monkeypatch.setattr(rescues, "time", SimpleNamespace(perf_counter=lambda: next(seconds)))
    rescue(problem, run, np.random.default_rng(1))
    assert run.status == "time_limit"
    used = np.flatnonzero(problem.beta)
    assert 20 <= len(used) <= 50  # half of a hundred seconds
    assert {len(np.unique(problem.y[used]))} == {2}
    zero = problem.c.sum()
    assert run.dual > 0.0
    assert run.objective < 0.95 * zero
    assert run.best.point[:-1].any()
    K = np.exp(-0.5 * cdist(*[problem.rows.X] * 2, "sqeuclidean"))
    np.testing.assert_allclose(problem.f, K @ problem.beta, atol=1e-9)
    assert problem.beta.sum() == approx(0.0, abs=1e-9)


def test_a_machine_of_the_first_rows_is_made_though_there_is_no_time_at_all(small_pieces):
    problem, run = late_run(limit=1.0, late=2.0)
    problem.rows.computed = 0.0
    with watching(lambda: -1.0):
        rescue(problem, run, np.random.default_rng(1))
    assert run.status == "time_limit"
    assert 2 <= len(np.flatnonzero(problem.beta)) <= 16
    assert problem.rows.computed <= 17.0
    assert run.dual > 0.0
    assert run.objective < problem.c.sum()
    assert problem.beta.sum() == approx(0.0, abs=1e-9)


def test_sub_problems_that_were_not_begun_are_named():
    X, _, _ = draw(60)
    y = np.arange(60) % 3
    with pytest.warns(
        NotCertifiedWarning, match=r"3 of 3 fits \(3 of 3 pairs not trained, the largest gap 1"
    ):
        machine = train(X, y, kernel="rbf", time_limit=1e-9)
    assert [p["trained"] for p in machine.problems] == [False] * 3
    assert [o.untrained for o in outcomes_of(machine.problems)] == ["pairs"] * 3
    assert all(p["gap"] == 1.0 and p["dual_objective"] == 0.0 for p in machine.problems)
    assert machine.predict(X).shape == (60,)
    whole = train(X, y, kernel="rbf")
    assert not any("trained" in p for p in whole.problems)
    assert [o.untrained for o in outcomes_of(whole.problems)] == [""] * 3
    missed = [Outcome("time_limit", 1.0, "classes"), Outcome("time_limit", 0.5)]
    said = (
        "the tolerance 0.1 is not certified for 2 of 2 fits (1 of 2 classes not trained, the large"
    )
    assert describe_uncertified(missed, 0.1).startswith(said)
    assert "trained" not in describe_uncertified(missed[:1], 0.1)
    assert outcomes_of(
        [{"status": "time_limit", "gap": 1.0, "trained": False, "classes": [3.0]}]
    ) == [Outcome("time_limit", 1.0, "classes")]


def test_a_machine_that_there_was_no_time_for_is_zero_and_certified_as_such():
    c = np.array([0.1, 0.2, 0.3])
    none = untrained(c, Settings(tol=1e-3), "interrupted")
    assert none.objective >= 0.6 > none.objective - 1e-12
    assert (none.dual_objective, none.gap, none.certified) == (0.0, 1.0, False)
    assert (none.status, none.n_iter) == ("interrupted", 0)
    assert not none.beta.any()
    assert untrained(c, Settings(tol=1.0), "time_limit").status == "converged"


def test_what_was_found_is_kept_where_a_finer_problem_finds_nothing():
    problem, run = late_run(60)
    rescue(problem, run, np.random.default_rng(0))
    finer = problem.on_finer_rows()
    best, dual, objective = run.best, run.dual, run.objective
    with run.going_on(finer):
        assert run.problem is finer
        assert run.best is None
    assert (run.problem, run.best, run.dual, run.objective) == (problem, best, dual, objective)
    with run.going_on(finer):
        run.status = ""
        run.record(finer.current(), certify=True)
    assert run.problem is finer
    assert run.best is not best


def test_a_matrix_of_columns_that_there_is_no_time_for_leaves_no_machine(small_pieces):
    X, y, _ = draw(300)
    found, _ = ended(1, "interrupted", X, y, model="lpsvm", kernel="rbf")
    assert (found.status, found.why) == ("interrupted", "there was no time to begin")


# ---------------------------------------------------------------- factors of large matrices


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 31, 64, 65])
def test_a_factor_by_panels_is_the_factor(n, order, monkeypatch):
    monkeypatch.setattr("nesvm_jit.numerics.cholesky.AT_ONCE", 8)
    monkeypatch.setattr("nesvm_jit.numerics.cholesky.PANEL", 8)
    monkeypatch.setattr("nesvm_jit.numerics.cholesky.STRIP", 16)
    B = np.random.default_rng(n).standard_normal((n, n))
    A = np.asarray(B @ B.T + n * np.eye(n), order=order)
    found = factorise(A.copy(order))
    np.testing.assert_allclose(np.tril(found), np.linalg.cholesky(A), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(np.triu(found, 1), np.triu(A, 1))
    if n > 8:
        A[n - 1, n - 1] = -1.0
        with pytest.raises(np.linalg.LinAlgError):
            factorise(A)


def test_a_factor_by_panels_looks_at_the_clock(monkeypatch):
    monkeypatch.setattr("nesvm_jit.numerics.cholesky.AT_ONCE", 8)
    monkeypatch.setattr("nesvm_jit.numerics.cholesky.PANEL", 8)
    with watching(lambda: -1.0), pytest.raises(Halt):
        factorise(np.eye(20))
