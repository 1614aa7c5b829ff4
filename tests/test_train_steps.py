"""What `train` asks its solvers for: rows, signs, costs, starts, limits, memory; its refusals."""

import inspect
import threading
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from nesvm_jit import clock as clocks
from nesvm_jit import get_threads, set_threads
from nesvm_jit.binary.solve import solve_checked
from nesvm_jit.binary.start import Start
from nesvm_jit.checkpoint.fingerprint import data_fingerprint
from nesvm_jit.checkpoint.snapshot import read_snapshot
from nesvm_jit.files.model.record import ModelRecord
from nesvm_jit.machine import folds, jobs, parallel, warm
from nesvm_jit.machine.calibration import fit_sigmoid
from nesvm_jit.machine.folds import stratified_folds
from nesvm_jit.machine.jobs import Job, Posed, Problem, make_problems
from nesvm_jit.machine.machine import Machine
from nesvm_jit.machine.session import Session
from nesvm_jit.matrix.checks import as_matrix
from nesvm_jit.settings import Settings
from scipy.sparse import csr_matrix

from tests.endings import cross_validate, train

from . import oracle
from .compare import refusal

trainings = inspect.getmodule(train)
LABELS = np.array([4.0, 2.0, 9.0])


def blobs(n=30, k=3, p=3, seed=0):
    rng = np.random.default_rng(seed)
    code = np.arange(n) % k
    return rng.standard_normal((n, p)) + 1.5 * np.eye(k, p)[code], LABELS[code]


@pytest.fixture
def asked(monkeypatch, engines_only):
    """What linear solvers are asked for, in order."""
    calls, real = [], trainings.solve_checked

    def noted(X, y, c, settings, start, rows, before=None):
        found = real(X, y, c, settings, start, rows, before)
        call = SimpleNamespace(X=X, y=y, c=c, settings=settings, start=start, found=found)
        if rows is None:
            calls.append(call)
        return found

    for module in (trainings, folds):
        monkeypatch.setattr(module, "solve_checked", noted)
    return calls


# ---------------------------------------------------------------- sub-problems


def test_what_train_asks_for_by_default():
    by_name = inspect.signature(train).parameters
    assert {k: v.default for k, v in by_name.items() if v.default is not v.empty} == {
        "y": None,
        "model": "csvm",
        "kernel": "linear",
        "C": 1.0,
        "bias": True,
        "solver": "auto",
        "tol": 1e-3,
        "multiclass": None,
        "probability": False,
        "sample_weight": None,
        "class_weight": None,
        "classes": None,
        "seed": 0,
        "warm": None,
        "keep_duals": False,
        "keep_solutions": False,
    }


def test_problems_of_two_three_and_four_classes():
    y = np.array([5.0, 3.0, 5.0, 4.0])
    order = np.array([5.0, 3.0, 4.0])
    assert make_problems(y, order[:2], "ovo") == [Problem(0, 1, None)]
    assert make_problems(y, order[:2], "ovr") == [Problem(0, 1, None)]
    assert make_problems(y, order, "ovr") == [Problem(k, None, None) for k in range(3)]
    pairs = [(p.i, p.j, p.rows.tolist()) for p in make_problems(y, order, "ovo")]
    assert pairs == [(0, 1, [0, 2, 1]), (0, 2, [0, 2, 3]), (1, 2, [1, 3])]


def a_job(X, problems):
    return Job(X, np.empty(0), LABELS, "ovr", Settings(), problems)


@pytest.mark.parametrize(
    ("n", "p", "rows", "small"),
    [
        (1000, 200, None, False),
        (1000, 199, None, True),
        (200, 1000, None, True),
        (500, 1000, None, False),
        (4000, 100, 2000, False),
        (4000, 100, 1999, True),
    ],
)
def test_small_problems_have_fewer_than_so_many_cells(n, p, rows, small):
    X = np.broadcast_to(np.float64(0.0), (n, p))
    part = None if rows is None else np.arange(rows)
    assert a_job(X, [Problem(0, 1, part)] * 3).small == small


def test_the_size_of_problems_is_their_mean():
    X = np.broadcast_to(np.float64(0.0), (1000, 200))
    few, many = np.arange(500), np.arange(1500) % 1000
    assert a_job(X, [Problem(0, 1, few), Problem(0, 2, many)]).small is False
    assert a_job(X, [Problem(0, 1, few), Problem(0, 2, many[:-1])]).small is True


@pytest.mark.parametrize(
    ("sign", "c", "missing"),
    [
        ([1, -1], [1, 1], None),
        ([1, -1], [0, 1e-300], 1.0),
        ([1, -1], [1e-300, 0], -1.0),
        ([1, 1], [1, 1], -1.0),
        ([-1, -1], [1, 1], 1.0),
        ([1, -1], [0, 0], 1.0),
        ([1, 1, -1], [0, 1, 1], None),
    ],
)
def test_a_sign_without_a_row_of_positive_cost_is_missing(sign, c, missing):
    assert Posed(None, np.array(sign, float)).missing(np.array(c, float)) == missing


@pytest.mark.parametrize(("how", "count"), [("ovr", 3), ("ovo", 3)])
@pytest.mark.parametrize("make", [np.asarray, csr_matrix], ids=["dense", "CSR"])
def test_every_sub_problem_gets_its_rows_signs_and_costs(asked, one_thread, how, count, make):
    X, y = blobs()
    weight = np.arange(30) % 4 * 0.5
    given = {"sample_weight": weight, "class_weight": {2.0: 3.0}, "multiclass": how}
    m = train(make(X), y, C=0.5, tol=1e-2, seed=3, **given)
    c = 0.5 * weight * np.where(y == 2.0, 3.0, 1.0)
    assert len(asked) == count
    for k, call in enumerate(asked):
        i, j = [(0, 1), (0, 2), (1, 2)][k] if how == "ovo" else (k, None)
        rows = np.arange(30)
        if how == "ovo":
            rows = np.r_[np.flatnonzero(y == LABELS[i]), np.flatnonzero(y == LABELS[j])]
        dense = call.X if isinstance(call.X, np.ndarray) else None
        if dense is not None:
            assert np.array_equal(dense, X[rows])
        assert call.y.tolist() == np.where(y[rows] == LABELS[i], 1.0, -1.0).tolist()
        np.testing.assert_allclose(call.c, c[rows], rtol=1e-15)
        assert (call.settings.C, call.settings.tol, call.settings.seed) == (0.5, 1e-2, 3)
        assert vars(call.start) == vars(Start())
        assert np.array_equal(call.found.w, m.record.weights[:, k])
    assert m.duals is None
    assert m.solutions is None


@pytest.mark.parametrize("how", ["ovr", "ovo"])
@pytest.mark.parametrize("given", [np.asarray, csr_matrix], ids=["dense", "CSR"])
def test_a_precomputed_kernel_is_cut_on_both_sides(asked, one_thread, how, given):
    X, y = blobs()
    K = oracle.gram(X, X, "rbf", 0.5, 0, 0)
    m = train(given(K), y, kernel="precomputed", multiclass=how, tol=1e-7)
    plain = train(X, y, kernel="rbf", gamma=0.5, multiclass=how, tol=1e-7)
    for k, call in enumerate(asked):
        rows = np.arange(30)
        if how == "ovo":
            i, j = [(0, 1), (0, 2), (1, 2)][k]
            rows = np.r_[np.flatnonzero(y == LABELS[i]), np.flatnonzero(y == LABELS[j])]
        part = call.X if isinstance(call.X, np.ndarray) else None
        if part is not None:
            np.testing.assert_array_equal(part, K[np.ix_(rows, rows)])
    for ours, theirs in zip(m.problems, plain.problems, strict=True):
        assert ours["objective"] == pytest.approx(theirs["objective"], rel=1e-6)
    np.testing.assert_allclose(m.decision_function(K), plain.decision_function(X), atol=1e-3)


@pytest.mark.parametrize(
    ("how", "weightless", "name"),
    [
        ("ovr", [4.0], "4"),
        ("ovr", [2.0, 9.0], "(all others)"),
        ("ovo", [9.0], "9"),
        ("ovo", [4.0], "4"),
    ],
)
def test_a_class_without_a_row_of_positive_weight_is_named(one_thread, how, weightless, name):
    X, y = blobs()
    weight = np.where(np.isin(y, weightless), 0.0, 1.0)
    message = refusal(train, X, y, sample_weight=weight, multiclass=how)
    assert message == f"class {name} must have a row of positive weight"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.full(30, 2.5)}, "y must hold at least 2 classes, got only 2.5"),
        ({"X": np.zeros((0, 3)), "y": []}, "y must hold at least 2 classes, got no rows"),
        (
            {"kernel": "precomputed"},
            "a precomputed kernel must be square, got 30 rows and 3 columns",
        ),
        ({"classes": [4, 2]}, "classes must be the labels in y, each once, got [4, 2]"),
        ({"classes": [4, 2, 2, 9]}, "classes must be the labels in y, each once, got [4, 2, 2, 9]"),
        ({"warm": 3}, "warm must be a Machine, got 3"),
        ({"multiclass": "x"}, "multiclass must be one of ovo, ovr, got 'x'"),
    ],
)
def test_what_cannot_be_trained_is_one_whole_line(asked, change, message):
    X, y = blobs()
    assert refusal(train, **{"X": X, "y": y, **change}) == message
    assert asked == []


def test_a_checkpoint_is_of_the_data_the_problems_and_the_start(tmp_path):
    X, y = blobs()
    file = tmp_path / "kept"

    def fingerprint(**given):
        machine = train(X, y, C=0.5, checkpoint=file, keep_duals=True, **given)
        return machine, read_snapshot(file)["fingerprint"]

    first, found = fingerprint(seed=3)
    assert (found["C"], found["seed"]) == (0.5, 3)
    assert (found["multiclass"], found["probability"]) == ("ovr", False)
    data = data_fingerprint(as_matrix(X), y, np.full(30, 0.5), LABELS)
    assert found["data"] == data
    _, found = fingerprint(multiclass="ovo", probability=True)
    assert (found["multiclass"], found["probability"]) == ("ovo", True)
    assert found["data"] == data
    record = first.record
    _, found = fingerprint(warm=first)
    assert found["data"] == [
        *data,
        *data_fingerprint(record.weights, record.bias, *first.duals),
    ]


def test_classes_may_be_given_in_any_order():
    X, y = blobs()
    m = train(X, y, classes=[9, 4, 2], multiclass="ovo")
    assert m.classes.tolist() == [9.0, 4.0, 2.0]
    assert [p["classes"] for p in m.problems] == [[9.0, 4.0], [9.0, 2.0], [4.0, 2.0]]


# ---------------------------------------------------------------- where a machine starts


def test_a_machine_starts_where_another_one_ended(asked, one_thread):
    X, y = blobs()
    first = train(X, y, C=0.5, keep_duals=True)
    assert [d.tolist() for d in first.duals] == [(a.found.alpha / 0.5).tolist() for a in asked]
    asked.clear()
    train(X, y, C=2.0, warm=first)
    for k, call in enumerate(asked):
        assert np.array_equal(call.start.w0, first.record.weights[:, k])
        assert call.start.b0 == first.record.bias[k]
        assert call.start.alpha0.tolist() == (2.0 * first.duals[k]).tolist()
    asked.clear()
    train(X[:-1], y[:-1], C=2.0, warm=first)
    assert [call.start.alpha0 for call in asked] == [None] * 3
    assert [call.start.b0 for call in asked] == first.record.bias.tolist()
    first.duals = None
    asked.clear()
    train(X, y, C=2.0, warm=first)
    assert [call.start.alpha0 for call in asked] == [None] * 3


def test_pairs_start_where_they_ended(asked, one_thread):
    X, y = blobs()
    first = train(X, y, multiclass="ovo", keep_duals=True)
    asked.clear()
    train(X, y, multiclass="ovo", C=4.0, warm=first)
    assert len(asked) == len(first.duals) > 1
    for k, call in enumerate(asked):
        assert call.start.alpha0.tolist() == (4.0 * first.duals[k]).tolist()
        assert len(call.start.alpha0) == 20


LINEAR_ONLY = "only a linear machine can start from another one, which must be linear too"


def test_a_machine_to_start_from_must_be_of_the_same_kind():
    X, y = blobs()
    warm = train(X, y)
    curved = train(X, y, kernel="rbf", gamma=0.5)
    assert refusal(train, X, y, kernel="rbf", warm=warm) == LINEAR_ONLY
    assert refusal(train, X, y, warm=curved) == LINEAR_ONLY
    assert refusal(train, X[:, :2], y, warm=warm) == (
        "the machine to start from must have 2 features and 3 problems, got 3 and 3"
    )
    two = np.where(y == 9.0, 4.0, y)
    assert refusal(train, X, two, warm=warm) == (
        "the machine to start from must have 3 features and 1 problems, got 3 and 3"
    )
    assert refusal(train, X, y, classes=[2, 4, 9], warm=warm) == (
        "the machine to start from must have the classes [2.0, 4.0, 9.0] in this order, "
        "got [4.0, 2.0, 9.0]"
    )


def test_what_of_a_machine_to_start_from_matters():
    weights, bias = np.ones((2, 1)), np.array([0.5])
    m = Machine(ModelRecord(np.array([1.0, 2.0]), 2, bias, weights=weights))
    assert warm.warm_arrays(None) == []
    assert [a.tolist() for a in warm.warm_arrays(m)] == [[[1.0], [1.0]], [0.5]]
    m.duals = [np.array([3.0])]
    assert [a.tolist() for a in warm.warm_arrays(m)][2:] == [[3.0]]


# ---------------------------------------------------------------- limits, memory, callbacks


needs_two = pytest.mark.skipif(get_threads() < 2, reason="one core")


@pytest.mark.parametrize(("threads", "share"), [(1, 12.0), pytest.param(2, 6.0, marks=needs_two)])
def test_problems_that_run_at_a_time_share_the_memory(asked, threads, share):
    before = get_threads()
    set_threads(threads)
    X, y = blobs()
    try:
        train(X, y, cache_mb=12.0)
        train(X, np.where(y == 9.0, 4.0, y), cache_mb=12.0)
    finally:
        set_threads(before)
    assert [call.settings.cache_mb for call in asked] == [share] * 3 + [12.0]


def test_callbacks_are_told_which_problem_it_is_and_one_answer_ends_all(one_thread):
    X, y = blobs()
    rows = []

    def callback(row):
        rows.append((row["problem"], row["problems"]))
        return len(rows) == 2

    m = train(X, y, solver="homotopy", tol=0.0, callback=callback)
    assert rows[0] == rows[1] == (0, 3)
    assert rows[2:] == [(1, 3), (2, 3)]
    assert [p["status"] for p in m.problems] == ["interrupted"] * 3
    assert [p["iterations"] for p in m.problems] == [2, 1, 1]


def test_an_interrupted_problem_ends_those_after_it(monkeypatch, one_thread):
    X, y = blobs()
    real, count = trainings.solve_checked, []

    def interrupted(*given):
        found = real(*given)
        count.append(found.status)
        return replace(found, status="interrupted") if len(count) == 1 else found

    monkeypatch.setattr(trainings, "solve_checked", interrupted)
    train(X, y, solver="homotopy", tol=0.0, max_iter=20)
    assert count[1:] == ["interrupted"] * 2


class Clock:
    """Seconds that pass only when they are spent."""

    def __init__(self, monkeypatch, spent):
        self.now = 100.0
        self.spent = spent
        fake = SimpleNamespace(perf_counter=lambda: self.now)
        monkeypatch.setattr(clocks, "time", fake)
        real = trainings.solve_checked

        def slowly(X, y, c, settings, start, rows, before=None):
            self.limits.append(settings.time_limit)
            self.now += self.spent
            return real(X, y, c, replace(settings, time_limit=None), start, rows, before)

        self.limits: list = []
        for module in (trainings, folds):
            monkeypatch.setattr(module, "solve_checked", slowly)


def test_problems_share_what_is_left_of_the_time_limit(monkeypatch, one_thread, engines_only):
    X, y = blobs()
    clock = Clock(monkeypatch, 3.0)
    m = train(X, y, time_limit=8.0, keep_solutions=True)
    assert clock.limits == pytest.approx([8.0 / 3, 5.0 / 2, 2.0], rel=1e-12)
    assert [f.seconds for f in m.solutions] == [3.0] * 3
    clock.limits.clear()
    train(X, y, time_limit=4.0)
    assert clock.limits == pytest.approx([4.0 / 3, 1.0 / 2, 0.0], rel=1e-12)
    clock.limits.clear()
    train(X, y)
    assert clock.limits == [None] * 3


def test_the_folds_of_calibration_share_what_is_left_of_the_time_limit(
    monkeypatch, one_thread, engines_only
):
    X, y = blobs(n=40, k=2)
    clock = Clock(monkeypatch, 3.0)
    train(X, y, time_limit=14.0, probability=True)
    shares = [14.0 / 6, 11.0 / 5, 8.0 / 4, 5.0 / 3, 2.0 / 2, 0.0]
    assert clock.limits == pytest.approx(shares, rel=1e-12)


# ---------------------------------------------------------------- calibration


def test_calibration_is_the_sigmoid_of_scores_of_machines_without_the_fold(asked, one_thread):
    X, y = blobs(n=41, k=2)
    weight = np.where(np.arange(41) % 5 == 0, 0.0, 1.0 + np.arange(41) % 3)
    m = train(X, y, C=0.7, probability=True, sample_weight=weight, seed=4, tol=1e-9)
    sign, used = np.where(y == m.classes[0], 1.0, -1.0), weight > 0
    fold_of = np.full(41, -1)
    fold_of[used] = stratified_folds(sign[used], 5, 4)
    whole, scores = asked[0].found, np.zeros(41)
    assert len(asked) == 6
    for k, call in enumerate(asked[1:]):
        assert np.array_equal(call.c, np.where(fold_of == k, 0.0, 0.7 * weight))
        assert np.array_equal(call.y, sign)
        assert np.array_equal(call.start.w0, whole.w)
        assert call.start.b0 == whole.b
        assert np.array_equal(call.start.alpha0, whole.alpha)
        scores[fold_of == k] = (X @ call.found.w + call.found.b)[fold_of == k]
    expected = fit_sigmoid(scores[used], sign[used] > 0)
    np.testing.assert_allclose(np.ravel(m.record.probability), expected, rtol=1e-9)


def test_a_fold_that_holds_a_whole_class_scores_for_the_other_one(asked, one_thread):
    X, y = blobs(n=12, k=2)
    weight = np.where(np.isin(np.arange(12), [1, 3, 5, 7, 9]), 0.0, 1.0)
    m = train(X, y, probability=True, sample_weight=weight, seed=1)  # one row of the class 2
    assert len(asked) == 5
    sign, used = np.where(y == 4.0, 1.0, -1.0), weight > 0
    fold_of = np.full(12, -1)
    fold_of[used] = stratified_folds(sign[used], 5, 1)
    scores, calls = np.zeros(12), iter(asked[1:])
    for k in range(5):
        alone = fold_of[11] == k
        out = fold_of == k
        scores[out] = 1.0 if alone else next(calls).found.margins[out]
    expected = fit_sigmoid(scores[used], sign[used] > 0)
    np.testing.assert_allclose(np.ravel(m.record.probability), expected, rtol=1e-9)


def test_fewer_rows_than_folds_are_calibrated_one_by_one(asked, one_thread):
    X, y = blobs(n=4, k=2)
    m = train(X, y, probability=True)
    assert len(asked) == 5
    assert m.record.probability is not None
    held_out = [np.flatnonzero(call.c == 0.0).tolist() for call in asked[1:]]
    assert sorted(held_out) == [[0], [1], [2], [3]]


def test_without_probability_nothing_is_calibrated(asked):
    X, y = blobs()
    assert train(X, y).record.probability is None
    assert len(asked) == 3


# ---------------------------------------------------------------- the kernel matrix that is shared


@pytest.mark.parametrize(
    ("options", "shared"),
    [
        ({"kernel": "rbf"}, ["by class"]),
        ({"kernel": "poly", "coef0": 1.0}, ["by class"]),
        ({"kernel": "rbf", "multiclass": "ovr"}, ["as they come"]),
        ({"kernel": "rbf", "model": "lpsvm"}, []),
        ({"kernel": "rbf", "two": True}, []),
        ({"kernel": "rbf", "two": True, "probability": True}, ["as they come"]),
        ({"kernel": "linear"}, []),
    ],
)
def test_several_problems_share_one_kernel_matrix(monkeypatch, engines_only, options, shared):
    X, y = blobs()
    orders, real = [], jobs.shared_matrix

    def noted(X, settings, order):
        expected = (
            None
            if order is None
            else np.argsort([LABELS.tolist().index(v) for v in y], kind="stable")
        )
        assert order is None or order.tolist() == expected.tolist()
        orders.append("as they come" if order is None else "by class")
        return real(X, settings, order)

    monkeypatch.setattr(jobs, "shared_matrix", noted)
    if "two" in options:
        y = np.where(y == 9.0, 4.0, y)
    train(X, y, gamma=0.5, **{k: v for k, v in options.items() if k != "two"})
    assert orders == shared


def test_a_shared_kernel_matrix_may_take_a_quarter_of_the_time(monkeypatch, engines_only):
    X, y = blobs()
    shares, within = [], Session.within
    monkeypatch.setattr(
        Session, "within", lambda self, *given: shares.append(given[0]) or within(self, *given)
    )
    train(X, y, kernel="rbf", gamma=0.5)
    cross_validate(X, y, 2, kernel="rbf", gamma=0.5)
    assert shares == [0.25, 0.25]


def test_the_width_of_a_kernel_is_one_for_all_problems():
    X, y = blobs()
    m = train(X, y, kernel="rbf", gamma="scale")
    assert m.record.gamma == pytest.approx(1 / (3 * X.var()), rel=1e-12)
    assert train(X, y, kernel="poly").record.gamma == pytest.approx(1 / 3)


def test_a_start_of_pairwise_steps_reaches_the_solver(monkeypatch):
    solves, seen = inspect.getmodule(solve_checked), []
    monkeypatch.setattr(solves, "solve_kernel", lambda *args: seen.append(args) or "found")
    settings, start = Settings(kernel="rbf"), Start(alpha0="alpha")
    assert solve_checked("X", "y", "c", settings, start, "rows") == "found"
    assert solve_checked("X", "y", "c", settings, start) == "found"
    assert seen == [
        ("X", "y", "c", settings, "rows", "alpha", None, None),
        ("X", "y", "c", settings, None, None, None, None),
    ]


# ---------------------------------------------------------------- stopping


def test_ctrl_c_stops_the_tasks_and_keeps_what_they_have(monkeypatch):
    stop, waits, real = threading.Event(), [], parallel.wait

    def interrupted_once(*args, **how):
        waits.append(how)
        if len(waits) == 1:
            raise KeyboardInterrupt
        return real(*args, **how)

    monkeypatch.setattr(parallel, "wait", interrupted_once)
    monkeypatch.setattr(parallel, "get_threads", lambda: 2)
    assert parallel.run_all([lambda: stop.wait(20)] * 2, stop, False) == [True, True]


@pytest.mark.parametrize("multiclass", ["ovr", "ovo"])
def test_what_a_checkpoint_recalls_has_the_costs_of_its_rows(tmp_path, multiclass):
    X, y = blobs()
    weight = np.arange(30.0) + 1
    asked = {"multiclass": multiclass, "sample_weight": weight, "keep_solutions": True}
    kept = {"checkpoint": tmp_path / "kept", "tol": 1e-2}
    whole = train(X, y, **asked, **kept)
    again = train(X, y, **asked, **kept, resume=True)
    for ours, theirs in zip(again.solutions, whole.solutions, strict=True):
        assert ours.costs.tolist() == theirs.costs.tolist()
        assert ours.seconds == theirs.seconds
        assert np.array_equal(ours.solution.alpha, theirs.solution.alpha)
        assert (ours.problem.i, ours.problem.j) == (theirs.problem.i, theirs.problem.j)
    assert len(again.solutions) == 3


# ---------------------------------------------------------------- cross-validation


def test_cross_validation_has_every_fact_of_its_folds():
    X, y = blobs(n=33)
    weight = 0.5 + np.arange(33) % 3
    options = {"C": 0.3, "class_weight": {2.0: 2.0}, "multiclass": "ovo"}
    got = cross_validate(X, y, 4, seed=5, sample_weight=weight, **options)
    fold_of = stratified_folds(y, 4, 5)
    predicted, gaps = np.zeros(33), []
    for k in range(4):
        inside = fold_of != k
        m = train(X, y, sample_weight=weight * inside, seed=5, **options)
        predicted[~inside] = m.predict(X[~inside])
        gaps.append(m.gap)
    assert got.predicted.tolist() == predicted.tolist()
    assert got.folds.tolist() == fold_of.tolist()
    assert got.accuracy == np.mean(predicted == y)
    assert got.accuracies == [np.mean((predicted == y)[fold_of == k]) for k in range(4)]
    assert got.gaps == pytest.approx(gaps, rel=1e-9)
    assert got.status == "converged"
    assert got.accuracy < 1.0


def test_the_fits_of_cross_validation_have_its_seed_and_settings(asked, one_thread):
    X, y = blobs()
    cross_validate(X, y, 2, seed=6, C=0.25, tol=1e-2)
    assert [(a.settings.seed, a.settings.C, a.settings.tol) for a in asked] == [(6, 0.25, 1e-2)] * 6


def test_the_fits_of_cross_validation_start_from_a_machine_that_is_given(asked, one_thread):
    X, y = blobs()
    warm = train(X, y)
    asked.clear()
    cross_validate(X, y, 2, warm=warm)
    assert len(asked) == 6
    for k, call in enumerate(asked):
        assert np.array_equal(call.start.w0, warm.record.weights[:, k % 3])


def test_cross_validation_calibrates_nothing(asked):
    X, y = blobs()
    cross_validate(X, y, 2, probability=True)
    assert len(asked) == 6


def test_cross_validation_has_five_folds_of_seed_zero_by_default():
    X, y = blobs()
    assert cross_validate(X, y).folds.tolist() == stratified_folds(y, 5, 0).tolist()


@pytest.mark.parametrize("make", [np.asarray, csr_matrix], ids=["dense", "CSR"])
def test_cross_validation_of_a_precomputed_kernel_is_that_of_the_kernel(make):
    X, y = blobs()
    K = oracle.gram(X, X, "rbf", 0.5, 0, 0)
    got = cross_validate(make(K), y, 3, kernel="precomputed", tol=1e-6)
    expected = cross_validate(X, y, 3, kernel="rbf", gamma=0.5, tol=1e-6)
    assert got.predicted.tolist() == expected.predicted.tolist()


def test_the_status_of_cross_validation_is_the_worst_of_its_fits():
    X, y = blobs()
    got = cross_validate(X, y, 3, max_iter=1, solver="homotopy", tol=1e-12)
    assert got.status == "iteration_limit"
    assert len(got.gaps) == 3


def test_cross_validation_that_is_interrupted_ends():
    X, y = blobs()
    rows = []

    def callback(row):
        rows.append(row)
        return True

    with pytest.raises(KeyboardInterrupt):
        cross_validate(X, y, 3, callback=callback, multiclass="ovo")
    assert len(rows) <= 3


@pytest.mark.parametrize(
    ("y", "options", "message"),
    [
        ([1, 1, 1, 2], {}, "fold {} leaves fewer than 2 classes to train on; use fewer folds"),
        ([1, 2, 1, 2], {"checkpoint": "a"}, "checkpoint is for `train`, not for cross-validation"),
    ],
)
def test_folds_that_cannot_be_trained_are_one_whole_line(y, options, message):
    alone = stratified_folds(np.array(y, float), 2, 0)[3] + 1
    message = message.format(alone)
    assert refusal(cross_validate, np.eye(4), np.array(y, float), 2, **options) == message
