"""A path step by step: what columns ask of solvers and make of the answers, progress, the refit."""

import inspect
import itertools
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from nesvm_jit import InputError, Settings, get_threads, path, set_threads, train
from nesvm_jit.binary.kernel_matrix import worker_mb
from nesvm_jit.binary.start import Start
from nesvm_jit.machine.assembled import Problem
from nesvm_jit.machine.folds import stratified_folds
from nesvm_jit.machine.train import Job, Posed, problems_of
from nesvm_jit.matrix.checks import as_matrix
from nesvm_jit.selection import columns
from nesvm_jit.selection import search as searches
from nesvm_jit.selection import stage as stages
from nesvm_jit.selection.columns import (
    Column,
    Piece,
    Scoring,
    Walk,
    folds_together,
    start_of,
)
from nesvm_jit.selection.path import _gammas, _test_rows
from nesvm_jit.selection.scores import all_scores
from nesvm_jit.selection.search import Data, Search
from nesvm_jit.selection.stage import Fit, Stage
from nesvm_jit.selection.state import State
from nesvm_jit.settings import whole_number
from scipy.sparse import csr_matrix

from . import oracle

paths = inspect.getmodule(_gammas)
LABELS = np.array([4.0, 2.0, 9.0])


def blobs(n=36, k=3, seed=0, p=3):
    rng = np.random.default_rng(seed)
    code = np.arange(n) % k
    return rng.standard_normal((n, p)) + 1.5 * np.eye(k, p)[code], LABELS[code]


def refusal(call, *args, kind=InputError, **options):
    with pytest.raises(kind) as e:
        call(*args, **options)
    return str(e.value)


@pytest.fixture
def one_thread():
    before = get_threads()
    set_threads(1)
    yield
    set_threads(before)


@pytest.fixture
def asked(monkeypatch):
    """What fits are asked for, in order."""
    calls, real = [], Posed.fit

    def noted(self, c, settings, start):
        found = real(self, c, settings, start)
        calls.append(SimpleNamespace(part=self, c=c, settings=settings, start=start, found=found))
        return found

    monkeypatch.setattr(Posed, "fit", noted)
    return calls


# ---------------------------------------------------------------- where a fit starts


def ended(alpha, dual, model="csvm"):
    return SimpleNamespace(
        alpha=np.array(alpha), dual_objective=dual, model=model, w=np.ones(2), b=0.5
    )


@pytest.mark.parametrize(
    ("dual", "model", "ratio"),
    [
        (2.5, "csvm", 3.0),  # ‖w‖² = 1 and Σα = 3
        (2.0, "csvm", 1.5),
        (1.75, "csvm", 1.2),
        (1.0, "csvm", 1.0),
        (3.0, "csvm", 4.0),
        (2.0, "lssvm", 4.0),
        (2.0, "lpsvm", 4.0),
    ],
)
def test_a_dual_point_is_raised_by_the_costs_or_by_less_where_that_is_better(dual, model, ratio):
    start = start_of((ended([1.0, 2.0], dual, model), 0.5), 2.0)
    assert start.alpha0 == pytest.approx(ratio * np.array([1.0, 2.0]))
    assert (start.w0.tolist(), start.b0) == ([1.0, 1.0], 0.5)


def test_the_first_fit_starts_from_nothing():
    assert vars(start_of(None, 2.0)) == vars(Start())


@pytest.mark.parametrize(("how", "count"), [("ovr", 3), ("ovo", 3)])
def test_fits_go_from_the_least_cost_up_each_from_the_one_before(asked, one_thread, how, count):
    X, y = blobs()
    weight = 0.5 + np.arange(36) % 3
    given = {"sample_weight": weight, "class_weight": {2.0: 3.0}, "multiclass": how}
    path(X, y, [4.0, 0.25, 1.0], folds=2, refit=False, seed=7, tol=1e-2, cache_mb=64.0, **given)
    split = stratified_folds(y, 2, 7)
    assert len(asked) == 2 * count * 3
    share = worker_mb(Settings(cache_mb=64.0))
    turns = [(k, n) for n in range(count) for k in range(2)]
    if how == "ovr":
        turns = [(k, n) for k in range(2) for n in range(count)]
    unit = weight * np.where(y == 2.0, 3.0, 1.0)
    for turn, (fold, number) in enumerate(turns):
        fits = asked[3 * turn : 3 * turn + 3]
        problem = problems_of(y, LABELS, how)[number]
        rows = np.arange(36) if problem.rows is None else problem.rows
        assert [f.settings.C for f in fits] == [0.25, 1.0, 4.0]
        for f in fits:
            c = np.where(split == fold, 0.0, f.settings.C * unit)[rows]
            np.testing.assert_allclose(f.c, c, rtol=1e-15)
            assert (f.settings.cache_mb, f.settings.tol, f.settings.seed) == (share, 1e-2, 7)
            assert f.part is fits[0].part
            sign = np.where(y[rows] == LABELS[problem.i], 1.0, -1.0)
            assert f.part.sign.tolist() == sign.tolist()
        assert fits[0].start.alpha0 is None
        for before, f in itertools.pairwise(fits):
            expected = start_of((before.found, before.settings.C), f.settings.C)
            assert np.array_equal(f.start.alpha0, expected.alpha0)
            assert np.array_equal(f.start.w0, before.found.w)


@pytest.mark.parametrize(
    ("options", "fits"),
    [
        ({"kernel": "linear"}, "all different"),
        ({"kernel": "rbf", "gammas": [0.5]}, "shared"),
        ({"kernel": "rbf", "gammas": [0.5], "cache_mb": 0.004}, "own"),
        ({"kernel": "rbf", "gammas": [0.5], "cache_mb": 0.01, "model": "lpsvm"}, "none"),
    ],
)
def test_kernel_rows_stay_from_one_fit_to_the_next(monkeypatch, asked, one_thread, options, fits):
    X, y = blobs()
    calls, real = [], stages.kernel_rows
    monkeypatch.setattr(stages, "kernel_rows", lambda *args: calls.append(1) or real(*args))
    path(X, y, [1.0, 2.0], folds=2, refit=False, multiclass="ovo", **options)
    rows, made = [call.part.kernel_rows for call in asked], len(calls)
    if fits in ("all different", "none"):
        assert set(rows) == {None}
    else:
        assert None not in rows
        assert all(rows[k] is rows[k + 1] for k in range(0, len(rows), 2))
    assert made == (3 if fits == "own" else 0)


# ---------------------------------------------------------------- columns


def a_stage(n_costs=2, problems=None, linear=True, **changes):
    y = np.array([4.0, 2.0, 4.0, 2.0, 9.0, 9.0])
    seen = SimpleNamespace(fitted=[], stepped=[])
    facts = {
        "job": SimpleNamespace(y=y, order=LABELS, X=None),
        "problems": problems or [Problem(k, None, None) for k in range(3)],
        "costs": [0.5, 2.0, 8.0][:n_costs],
        "unit_costs": lambda inside: inside.astype(float),
        "linear": linear,
        "how": "ovr",
        "gamma": None,
        "fitted": lambda fit, where: seen.fitted.append((fit, where)),
        "stepped": lambda: seen.stepped.append(1),
    }
    return SimpleNamespace(**(facts | changes), seen=seen)


FOLD_OF = np.array([0, 0, 1, 1, 0, 1])


def a_piece(margins, support, *facts, nonzero=1, beta=None, b=0.0):
    margins = None if margins is None else np.array(margins, float)
    return Piece(margins, np.array(support), beta, b, facts, nonzero)


def test_a_fold_is_scored_once_all_its_sub_problems_are_solved():
    stage, done = a_stage(), []
    column = Column(stage, (0, 5), FOLD_OF, [0, 1], done.append)
    scores = {0: np.array([[1.0, 0, 0], [0, 1, 0], [0, 1, 0]]), 1: np.eye(3)}
    for fold in (0, 1):
        assert column.out[fold].tolist() == np.flatnonzero(np.equal(FOLD_OF, fold)).tolist()
        assert column.c[fold].tolist() == np.not_equal(FOLD_OF, fold).astype(float).tolist()
        following = []
        for i in range(2):
            for n in range(3):
                assert following == []
                facts = (0.1, 10.0 * n, 0.01 * (n + i), n < 2 or i < 1, n + 1, "converged")
                if (i, n) == (1, 1):
                    facts = (*facts[:5], "time_limit")
                piece = a_piece(scores[fold][:, n], [n, 4], *facts, nonzero=n + 2)
                following = list(column.place(fold, i, n, piece))
        assert following == [Scoring(column, fold)]
        assert done == []
        assert following[0].step() == []
    assert done == [column]
    fit = column.fits[0, 1]
    truth = stage.job.y[[0, 1, 4]]
    assert fit == Fit(
        all_scores(truth, scores[0], LABELS, "ovr"),
        0.3,
        30.0,
        0.03,
        False,
        4,
        2 + 3 + 4,
        6,
        "time_limit",
    )
    assert column.fits[0, 0].certified is True
    assert column.fits[0, 0].status == "converged"
    assert column.fits[0, 0].gap == 0.02
    assert set(column.fits) == {(0, 0), (0, 1), (1, 0), (1, 1)}
    assert column.pieces == {}
    where = [w for _, w in stage.seen.fitted]
    assert where == [
        {"C": C, "gamma": None, "repeat": 5, "fold": fold} for fold in (0, 1) for C in (0.5, 2.0)
    ]
    assert [f for f, _ in stage.seen.fitted] == [column.fits[p] for p in sorted(column.fits)]


def test_machines_with_a_kernel_have_no_weights_to_count():
    column = Column(a_stage(n_costs=1, linear=False), (0, 0), FOLD_OF, [0], lambda c: None)
    for n in range(3):
        facts = (1e-7 / 3, 1.0, 0.0, True, 1, "converged")
        following = column.place(0, 0, n, a_piece(np.zeros(3), [n], *facts))
    following[0].step()
    assert column.fits[0, 0].n_nonzero is None
    assert column.fits[0, 0].seconds == 0.0


def test_a_sub_problem_of_one_class_speaks_for_it():
    stage = a_stage(n_costs=1)
    split = np.array([0, 0, 1, 1, 0, 0])  # fold 0 holds all rows of 9
    column = Column(stage, (0, 0), split, [0], lambda c: None)
    known = a_piece([1.0, 2.0, 3.0, 4.0], [0], 0.0, 0.0, 0.0, True, 0, "converged")
    assert column._scores(0, [[known, known, None]])[0].tolist() == [[1.0, 1.0, -np.inf]]
    assert column._scores(0, [[None, known, known]])[0].tolist() == [[np.inf, 1.0, 1.0]]
    pairs = problems_of(stage.job.y, LABELS, "ovo")
    column = Column(a_stage(n_costs=1, problems=pairs), (0, 0), split, [0], lambda c: None)
    got = column._scores(0, [[None, None, None]])
    assert got[0].tolist() == [[1.0, 1.0, 1.0]]
    column.c[0][stage.job.y == 4.0] = 0.0
    assert column._scores(0, [[None, None, None]])[3].tolist() == [[-1.0, -1.0, 1.0]]


def test_pairs_with_a_kernel_are_scored_together_at_the_end():
    K = np.arange(36.0).reshape(6, 6) / 7.0
    pairs = problems_of(np.array([4.0, 2.0, 4.0, 2.0, 9.0, 9.0]), LABELS, "ovo")
    asked = []

    def kernel_scores(out, support, coefs):
        asked.append((out.tolist(), support.tolist()))
        return K[np.ix_(out, support)] @ coefs

    stage = a_stage(n_costs=2, problems=pairs, linear=False, kernel_scores=kernel_scores)
    column = Column(stage, (0, 0), FOLD_OF, [0], lambda c: None)
    facts = (0.0, 0.0, 0.0, True, 0, "converged")
    first = a_piece(None, [2, 3], *facts, beta=np.array([1.0, -2.0]), b=0.5)
    second = a_piece(None, [5, 2], *facts, beta=np.array([3.0, 0.5]), b=-1.0)
    known = a_piece([7.0, 8.0, 9.0], [3], *facts)
    got = column._scores(0, [[first, known, second], [second, first, known]])
    out = [0, 1, 4]
    f = K[out][:, [2, 3]] @ [1.0, -2.0] + 0.5
    g = K[out][:, [5, 2]] @ [3.0, 0.5] - 1.0
    h = np.array([7.0, 8.0, 9.0])
    expected = np.stack([np.stack([f, h, g], axis=1), np.stack([g, f, h], axis=1)], axis=1)
    np.testing.assert_allclose(got, expected, rtol=1e-14)
    assert asked == [(out, [2, 3, 5])]


@pytest.mark.parametrize("fold", [0, 1])
def test_a_fold_that_leaves_one_class_is_named(fold):
    split = np.where(np.isin(np.arange(6), [0, 2]), 1 - fold, fold)
    message = f"fold {fold + 1} leaves fewer than 2 classes to train on; use fewer folds"
    assert refusal(Column, a_stage(), (0, 0), split, [0, 1], None) == message


def a_solution(alpha, w=None, beta=None, **changes):
    facts = {"b": 0.25, "objective": 2.0, "gap": 0.5, "certified": False, "n_iter": 9}
    facts |= {"status": "converged", "margins": np.arange(6.0), "dual_objective": 1.0}
    facts |= {"model": "csvm"}
    alpha, w = np.array(alpha, float), None if w is None else np.array(w, float)
    return SimpleNamespace(alpha=alpha, w=w, beta=beta, **(facts | changes))


def test_what_is_kept_of_a_solution():
    stage = a_stage()
    column = Column(stage, (0, 0), FOLD_OF, [0], None)
    out = column.out[0]
    alone = Walk(column, 0)
    piece = alone._piece(a_solution([0, 1, 0, 2, 0, 0], w=[1.0, 0.0, 2.0]), out, 1.5)
    assert piece.margins.tolist() == [0.0, 1.0, 4.0]
    assert piece.support.tolist() == [1, 3]
    assert (piece.beta, piece.b, piece.n_nonzero) == (None, 0.25, 2)
    assert piece.facts == (1.5, 2.0, 0.5, False, 9, "converged")
    beta = np.array([0.0, 0.0, 0.5, 0.0, 0.0, 1.0])
    piece = alone._piece(a_solution([0, 1, 0, 2, 0, 0], beta=beta), out, 1.5)
    assert piece.support.tolist() == [2, 5]
    assert (piece.beta, piece.n_nonzero) == (None, 0)
    assert piece.margins.tolist() == [0.0, 1.0, 4.0]


def test_what_is_kept_of_the_solution_of_a_pair():
    X = as_matrix(np.arange(18.0).reshape(6, 3))
    y = np.array([4.0, 2.0, 4.0, 2.0, 9.0, 9.0])
    pairs = problems_of(y, LABELS, "ovo")
    job = SimpleNamespace(y=y, order=LABELS, X=X)
    column = Column(a_stage(problems=pairs, job=job), (0, 0), FOLD_OF, [0], None)
    walk = Walk(column, 1)  # rows 0, 2, 4, 5
    piece = walk._piece(a_solution([0, 1, 0, 2], w=[1.0, 0.0, 2.0]), column.out[0], 0.0)
    assert piece.support.tolist() == [2, 5]
    assert piece.margins.tolist() == [4.25, 13.25, 40.25]
    piece = walk._piece(a_solution([0] * 4, beta=np.array([3.0, 0, 0, 4.0])), column.out[0], 0.0)
    assert piece.support.tolist() == [0, 5]
    assert piece.beta.tolist() == [3.0, 4.0]
    assert piece.margins is None


class Solving:
    """A part whose fits take three seconds and are asked about in every round."""

    def __init__(self, clock, status="converged"):
        self.clock, self.status, self.asked = clock, status, []

    def missing(self, c):
        return None

    def fit(self, c, settings, start):
        self.asked.append((c, settings, start))
        self.stopped = settings.callback({"round": 1})
        self.clock[0] += 3.0
        return a_solution(np.ones(6), w=[1.0], status=self.status)


@pytest.mark.parametrize(
    ("answer", "stopped", "ends"),
    [(False, False, False), (True, False, True), (None, True, True), ("yes", True, True)],
)
def test_a_fit_is_watched_and_timed(monkeypatch, answer, stopped, ends):
    clock, rows, stop = [100.0], [], threading.Event()
    monkeypatch.setattr(columns, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    settings, shown = Settings(C=8.0), {"watch": lambda row: rows.append(row) or answer}
    job = SimpleNamespace(y=a_stage().job.y, order=LABELS, X=None, settings=settings)
    stage = a_stage(job=job, stop=stop, share=7.0, **shown)
    if stopped:
        stop.set()
    walk = Walk(Column(stage, (0, 5), FOLD_OF, [0], None), 2)
    walk.part = Solving(clock)
    found, seconds = walk._fit(np.arange(6.0), 0, 1)
    assert seconds == 3.0
    assert walk.before == (found, 2.0)
    ((c, given, start),) = walk.part.asked
    assert c.tolist() == (2.0 * np.arange(6.0)).tolist()
    assert (given.C, given.cache_mb) == (2.0, 7.0)
    assert vars(start) == vars(Start())
    assert walk.part.stopped is ends
    where = {"C": 2.0, "gamma": None, "repeat": 5, "fold": 0}
    assert rows == [{"round": 1, **where, "problem": 2}]


def test_a_walk_goes_cost_by_cost_and_fold_by_fold(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(columns, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    job = SimpleNamespace(y=a_stage().job.y, order=LABELS, X=None, settings=Settings())
    part, shown = Solving(clock), {"watch": lambda row: False, "share": 7.0}
    one = [Problem(0, None, None)]
    stage = a_stage(job=job, stop=threading.Event(), problems=one, part=lambda p: part, **shown)
    (walk,) = Column(stage, (0, 0), FOLD_OF, [0, 1], None).chains()
    following = [list(walk.step()) for _ in range(4)]
    column = walk.column
    assert following == [[walk], [walk, Scoring(column, 0)], [walk], [Scoring(column, 1)]]
    assert [settings.C for _, settings, _ in part.asked] == [0.5, 2.0] * 2
    assert [start.alpha0 is None for _, _, start in part.asked] == [True, False] * 2
    assert len(stage.seen.stepped) == 4
    assert (walk.part, walk.before) == (None, None)
    assert column.pieces[1, 1][0].facts[0] == 3.0


def test_a_fit_that_is_interrupted_ends_the_path(monkeypatch):
    clock, stop = [0.0], threading.Event()
    job = SimpleNamespace(y=a_stage().job.y, order=LABELS, X=None, settings=Settings())
    part, shown = Solving(clock, "interrupted"), {"watch": lambda row: False, "share": 7.0}
    stage = a_stage(job=job, stop=stop, part=lambda p: part, **shown)
    walk = Column(stage, (0, 0), FOLD_OF, [0, 1], None).chains()[0]
    assert list(walk.step()) == []
    assert stop.is_set()
    assert stage.seen.stepped == []


def test_folds_are_together_where_classes_are_in_pairs():
    assert folds_together([Problem(0, 1, np.arange(2))])
    assert not folds_together([Problem(0, 1, None)])


# ---------------------------------------------------------------- stages


def stage_of(X, y, weights=(None, None), problems=None, shared=None, **settings):
    how = settings.pop("how", "ovo")
    checked = Settings(**settings)
    order = LABELS[: len(np.unique(y))]
    job = Job(as_matrix(X), y, np.empty(0), order, checked, False, 0, shared)
    problems = problems or problems_of(y, order, how)
    watchers = (threading.Event(), lambda row: False, lambda: None, lambda fit, where: None)
    return Stage(job, how, problems, [1.0, 2.0, 4.0], weights, checked.gamma, *watchers)


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ((None, None), [1, 1, 0, 1, 0, 0]),
        ((np.arange(6.0), None), [0, 1, 0, 3, 0, 0]),
        ((None, {4.0: 3.0, 9.0: 5.0}), [3, 1, 0, 1, 0, 0]),
        ((np.arange(6.0), {2.0: 3.0}), [0, 3, 0, 9, 0, 0]),
        ((None, "balanced"), [1.5, 0.75, 0, 0.75, 0, 0]),
    ],
)
def test_rows_held_out_cost_nothing(weights, expected):
    y = np.array([4.0, 2.0, 4.0, 2.0, 9.0, 9.0])
    stage = stage_of(np.ones((6, 2)), y, weights)
    inside = np.array([True, True, False, True, False, False])
    assert stage.unit_costs(inside).tolist() == expected


def test_a_weight_of_no_class_at_all_is_refused():
    y = np.array([4.0, 2.0, 4.0, 2.0, 9.0, 9.0])
    stage = stage_of(np.ones((6, 2)), y, (None, {7.0: 1.0}))
    message = "class_weight must map 4 and 2 to weights, got label 7.0"
    assert refusal(stage.unit_costs, np.arange(6) < 4) == message


@pytest.mark.parametrize("cells", [1, 7, 8, 1 << 22])
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
@pytest.mark.parametrize("shared", [False, True])
def test_scores_of_support_vectors_come_in_blocks_of_any_size(monkeypatch, cells, kernel, shared):
    X, y = blobs()
    settings = {"kernel": kernel, "gamma": 0.5, "coef0": 1.0, "degree": 2}
    K = oracle.gram(X, X, kernel, 0.5, 1.0, 2)
    sizes = []

    class Shared:
        def between(self, rows, columns):
            sizes.append(len(rows))
            return K[np.ix_(rows, columns)].astype(np.float32)

    real = stages.gram
    monkeypatch.setattr(stages, "gram", lambda A, *rest: sizes.append(len(A)) or real(A, *rest))
    monkeypatch.setattr(stages, "BLOCK_CELLS", cells)
    stage = stage_of(X, y, shared=Shared() if shared else None, **settings)
    out, support = np.array([1, 5, 30, 7, 9]), np.array([0, 2, 8, 33])
    coefs = np.random.default_rng(0).standard_normal((4, 3))
    got = stage.kernel_scores(out, support, coefs)
    rtol = 1e-5 if shared else 1e-11
    np.testing.assert_allclose(got, K[np.ix_(out, support)] @ coefs, rtol=rtol, atol=rtol)
    assert got.dtype == np.float64
    block = max(1, cells // 4)
    assert sizes == [min(block, 5 - k) for k in range(0, 5, block)]


@pytest.mark.parametrize(("support", "blocks"), [([2], [4, 1]), ([], [4, 1])])
def test_one_support_vector_and_none_fill_their_blocks(monkeypatch, support, blocks):
    X, y = blobs()
    sizes, real = [], stages.gram
    monkeypatch.setattr(stages, "gram", lambda A, *rest: sizes.append(len(A)) or real(A, *rest))
    monkeypatch.setattr(stages, "BLOCK_CELLS", 4)
    support, out = np.array(support, dtype=int), np.array([1, 5, 30, 7, 9])
    stage = stage_of(X, y, kernel="rbf", gamma=0.5)
    got = stage.kernel_scores(out, support, np.full((len(support), 1), 2.0))
    K = oracle.gram(X[out], X[support], "rbf", 0.5, 0, 0) if len(support) else np.zeros((5, 0))
    np.testing.assert_allclose(got, 2.0 * K.sum(axis=1, keepdims=True), rtol=1e-12)
    assert sizes == blocks


def test_the_kernel_rows_of_a_part_are_for_the_largest_cost(monkeypatch):
    X, y = blobs()
    given = []
    monkeypatch.setattr(stages, "kernel_rows", lambda X, s: given.append((X, s)) or "rows")
    stage = stage_of(X, y, kernel="rbf", gamma=0.5, cache_mb=64.0)
    part = stage.part(stage.problems[1])
    assert part.kernel_rows == "rows"
    ((rows, settings),) = given
    assert np.array_equal(rows, X[stage.problems[1].rows])
    assert (settings.C, settings.cache_mb) == (4.0, stage.share)
    assert stage.share == worker_mb(Settings(cache_mb=64.0))
    assert stage_of(X, y, kernel="rbf", model="lpsvm").part(stage.problems[1]).kernel_rows is None
    linear = stage_of(X, y)
    assert linear.linear
    assert linear.part(stage.problems[1]).kernel_rows is None
    assert not stage.linear


# ---------------------------------------------------------------- the data of a path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.full(36, 2.5)}, "y must hold at least 2 classes, got only 2.5"),
        ({"X": np.zeros((0, 3)), "y": []}, "y must hold at least 2 classes, got no rows"),
        (
            {"kernel": "precomputed"},
            "a precomputed kernel must be square, got 36 rows and 3 columns",
        ),
        ({"multiclass": "x"}, "multiclass must be one of ovo, ovr, got 'x'"),
        ({"gammas": "1"}, "gammas are for poly and rbf kernels, got kernel 'linear'"),
        ({"C": 1.0}, "path takes no C; use costs"),
        ({"gamma": 1.0}, "path takes no gamma; use gammas"),
        ({"probability": True}, "path takes no probability; use train with the C chosen"),
        ({"checkpoint": "a"}, "path takes no checkpoint; use state"),
        ({"repeats": 0}, "repeats must be a whole number from 1 to 1000, got 0"),
        ({"scoring": "x"}, "scoring must be one of accuracy, balanced_accuracy, f1, auc, got 'x'"),
        ({"rule": "x"}, "rule must be one of best, one_se, got 'x'"),
        ({"test": (0, 0), "refit": False}, "test is for the machine that refit=True trains"),
        ({"test": (np.ones((2, 4)), [4, 2])}, "X of test must have 3 columns, got 4"),
        ({"test": (np.ones((2, 3)), [4])}, "y of test must have length 2, got shape (1,)"),
    ],
)
def test_mistakes_are_one_whole_line(change, message):
    X, y = blobs()
    assert refusal(path, **{"X": X, "y": y, "costs": [1.0], **change}) == message


@pytest.mark.parametrize("value", [1, 1000, np.int64(7)])
def test_repeats_are_from_one_to_a_thousand(value):
    assert whole_number("repeats", value, 1, 1000) == value
    assert type(whole_number("repeats", value, 1, 1000)) is int


@pytest.mark.parametrize("value", [0, 1001, 2.0, True, None])
def test_other_repeats_are_refused(value):
    assert refusal(whole_number, "repeats", value, 1, 1000) == (
        f"repeats must be a whole number from 1 to 1000, got {value!r}"
    )


def test_gammas_are_numbers_each_once():
    X = as_matrix(blobs()[0])
    assert _gammas(None, "linear", X) == [None]
    assert _gammas(None, "precomputed", X) == [None]
    assert _gammas(None, "rbf", X) == [1 / 3]
    assert _gammas(["auto", 1 / 3, 2.0, "scale"], "poly", X) == [
        1 / 3,
        2.0,
        pytest.approx(1 / (3 * np.asarray(X).var()), rel=1e-12),
    ]


def test_rows_to_be_judged_by_may_be_sparse_of_any_width():
    assert _test_rows(None, False, 3) is None
    X, y = _test_rows((csr_matrix(np.ones((2, 5))), [1, 2]), True, 3)
    assert (X.n_cols, y.tolist()) == (5, [1.0, 2.0])


@pytest.mark.parametrize(
    ("kernel", "multiclass", "how"),
    [
        ("linear", None, "ovr"),
        ("rbf", None, "ovo"),
        ("linear", "ovo", "ovo"),
        ("rbf", "ovr", "ovr"),
    ],
)
def test_the_data_of_a_path_are_checked_once(kernel, multiclass, how):
    X, y = blobs()
    weights = {4: 2.0}
    data = Data.of(as_matrix(X), y.tolist(), kernel, multiclass, [1] * 36, weights)
    assert data.y.tolist() == y.tolist()
    assert data.order.tolist() == LABELS.tolist()
    assert data.how == how
    assert data.sample_weight.tolist() == [1.0] * 36
    assert data.class_weight == weights
    assert data.class_weight is not weights
    plain = Data.of(as_matrix(X), y, kernel, multiclass, None, "balanced")
    assert (plain.sample_weight, plain.class_weight) == (None, "balanced")


def test_the_data_of_a_path_are_of_two_classes_and_a_kernel_is_square():
    X, y = blobs(n=4, k=2)
    assert Data.of(as_matrix(X), y, "linear", None, None, None).order.tolist() == [4.0, 2.0]
    assert Data.of(as_matrix(np.eye(4)), y, "precomputed", None, None, None).how == "ovo"
    message = "a precomputed kernel must be square, got 4 rows and 2 columns"
    wide = as_matrix(np.ones((4, 2)))
    assert refusal(Data.of, wide, y, "precomputed", None, None, None) == message
    message = "multiclass must be one of ovo, ovr, got 'x'"
    assert refusal(Data.of, as_matrix(X), y, "linear", "x", None, None) == message
    message = "y must hold at least 2 classes, got only 4"
    assert refusal(Data.of, as_matrix(X), y * 0 + 4, "linear", None, None, None) == message


SETTINGS = ("callback", "tol", "kernel", "approx", "landmarks")


def a_search(costs=(0.5, 2.0), gammas=(None,), folds=2, repeats=1, **given):
    X, y = blobs()
    settings = {k: given.pop(k) for k in SETTINGS if k in given}
    how = given.pop("multiclass", None)
    kernel = settings.get("kernel", "linear")
    weights = given.pop("sample_weight", None), given.pop("class_weight", None)
    data = Data.of(as_matrix(X), y, kernel, how, *weights)
    splits = np.stack([stratified_folds(y, folds, r) for r in range(repeats)])
    checked = Settings(C=costs[-1], **settings)
    return Search(
        data, list(costs), list(gammas), splits, checked, given.pop("scoring", "accuracy")
    )


def test_the_key_of_a_search_sees_all_that_changes_a_fit():
    rbf = {"kernel": "rbf", "gammas": (0.5,)}
    keys = [
        a_search().key(),
        a_search(costs=(0.5, 3.0)).key(),
        a_search(**rbf).key(),
        a_search(kernel="rbf", gammas=(0.25,)).key(),
        a_search(folds=3).key(),
        a_search(repeats=2).key(),
        a_search(tol=1e-4).key(),
        a_search(multiclass="ovo").key(),
        a_search(sample_weight=np.arange(36.0)).key(),
        a_search(class_weight={4.0: 2.0}).key(),
        a_search(class_weight={4.0: 2.0, 2.0: 1.5}).key(),
        a_search(class_weight="balanced").key(),
    ]
    assert len(set(keys)) == 12
    assert a_search(callback=print).key() == keys[0]
    assert a_search(scoring="f1").key() == keys[0]
    assert a_search(class_weight={2.0: 1.5, 4.0: 2.0}).key() == keys[10]
    assert a_search().key() == keys[0]


@pytest.mark.parametrize(("how", "groups"), [("ovr", 2), ("ovo", 1)])
def test_columns_are_of_a_fold_or_of_all_folds(how, groups):
    state = State()
    search = a_search(multiclass=how, repeats=2)
    fits = search.run(state)
    assert set(fits) == {(0, i, r, k) for i in range(2) for r in range(2) for k in range(2)}
    assert len(state._columns) == 2 * groups
    again = a_search(multiclass=how, repeats=2)
    again._stage = None  # nothing is left to be prepared
    assert again.run(state) == fits
    assert (again._done, again._total) == (24, 24)
    assert (search._done, search._total) == (24, 24)


def test_a_search_that_is_stopped_ends_and_keeps_what_it_has():
    written = []
    state = State()
    state.write = lambda: written.append(1)
    search = a_search(callback=lambda row: True)
    with pytest.raises(KeyboardInterrupt):
        search.run(state)
    assert written == [1]
    assert search.fits == {}


def test_the_best_so_far_is_of_the_cells_with_most_folds():
    search = a_search(scoring="f1")

    def fitted(C, score):
        search._fitted(
            SimpleNamespace(scores={"f1": score, "accuracy": 0.0}), {"C": C, "gamma": 7.0}
        )
        return search._best

    assert fitted(1.0, 0.5) == {"best_C": 1.0, "best_gamma": 7.0, "best_score": 0.5}
    assert fitted(2.0, 0.75) == {"best_C": 2.0, "best_gamma": 7.0, "best_score": 0.75}
    assert fitted(1.0, 0.25) == {"best_C": 1.0, "best_gamma": 7.0, "best_score": 0.375}
    assert fitted(2.0, 0.125) == {"best_C": 2.0, "best_gamma": 7.0, "best_score": 0.4375}
    fitted(1.0, 0.75)
    assert fitted(2.0, 0.125) == {"best_C": 1.0, "best_gamma": 7.0, "best_score": 0.5}
    assert type(search._best["best_score"]) is float


def test_a_callback_is_told_what_is_done_and_what_is_best():
    rows = []
    search = a_search(callback=lambda row: rows.append(row) or len(rows) == 2)
    assert search._watch({"round": 1}) is False
    assert rows == [{"round": 1, "done": 0, "total": 12}]
    search._stepped()
    search._best = {"best_C": 3.0}
    assert search._watch({"round": 2}) is True
    assert rows[1] == {"round": 2, "done": 1, "total": 12, "best_C": 3.0}
    assert search.stop.is_set()
    assert a_search()._watch({}) is False


def test_progress_reaches_the_users_callback(one_thread):
    X, y = blobs()
    rows = []
    path(X, y, [0.5, 2.0], folds=2, refit=False, callback=lambda row: rows.append(row) and False)
    first, last = rows[0], rows[-1]
    assert {k: first[k] for k in ("C", "gamma", "repeat", "fold", "problem", "done", "total")} == {
        "C": 0.5,
        "gamma": None,
        "repeat": 0,
        "fold": 0,
        "problem": 0,
        "done": 0,
        "total": 12,
    }
    assert (last["C"], last["fold"], last["problem"], last["done"]) == (2.0, 1, 2, 11)
    assert last["best_C"] in (0.5, 2.0)
    assert "best_C" not in first
    assert sorted({row["done"] for row in rows}) == list(range(12))


def test_a_stage_of_landmarks_is_linear(monkeypatch):
    given, features = [], as_matrix(np.ones((36, 2)))
    monkeypatch.setattr(searches, "nystroem", lambda X, s: given.append(s) or (None, features))
    asked = {"kernel": "rbf", "gammas": (0.5,), "approx": "nystroem", "landmarks": 5}
    stage = a_search(callback=print, **asked)._stage(0)
    assert (given[0].gamma, given[0].approx, given[0].landmarks) == (0.5, "nystroem", 5)
    settings = stage.job.settings
    assert (settings.kernel, settings.approx, settings.landmarks, settings.gamma) == (
        "linear",
        None,
        None,
        None,
    )
    assert stage.job.X is features
    assert (stage.gamma, stage.linear, settings.callback) == (0.5, True, None)


@pytest.mark.parametrize(
    ("kernel", "how", "shared"),
    [
        ("linear", "ovr", None),
        ("rbf", "ovr", "as they come"),
        ("rbf", "ovo", "by class"),
        ("poly", "ovo", "by class"),
    ],
)
def test_the_columns_of_a_gamma_share_a_kernel_matrix(monkeypatch, kernel, how, shared):
    given = []
    monkeypatch.setattr(
        searches, "shared_matrix", lambda X, s, order: given.append((s.gamma, order)) or "shared"
    )
    gammas = (None,) if kernel == "linear" else (0.5, 0.25)
    stage = a_search(kernel=kernel, gammas=gammas, multiclass=how)._stage(len(gammas) - 1)
    assert stage.job.shared == ("shared" if shared else None)
    assert stage.job.probability is False
    if shared:
        ((gamma, order),) = given
        y = blobs()[1]
        expected = [r for label in LABELS for r in np.flatnonzero(y == label)]
        assert gamma == 0.25
        assert (order is None) == (shared == "as they come")
        assert order is None or order.tolist() == expected


# ---------------------------------------------------------------- the whole


def test_what_a_path_is_by_default():
    by_name = inspect.signature(path).parameters
    assert {k: v.default for k, v in by_name.items() if v.default is not v.empty} == {
        "y": None,
        "costs": "1e-3:1e3:7",
        "gammas": None,
        "folds": 5,
        "repeats": 1,
        "scoring": "accuracy",
        "rule": "best",
        "refit": True,
        "test": None,
        "seed": 0,
        "model": "csvm",
        "kernel": "linear",
        "multiclass": None,
        "sample_weight": None,
        "class_weight": None,
        "state": None,
        "callback": None,
        "keep_solutions": False,
    }


@pytest.fixture
def refitted(monkeypatch):
    calls, real = [], paths.train

    def noted(*args, **options):
        bound = inspect.signature(real).bind(*args, **options).arguments
        more = bound.pop("settings", {})
        calls.append({**bound, **more})
        return real(*args, **options)

    monkeypatch.setattr(paths, "train", noted)
    return calls


def test_the_refit_is_asked_for_all_that_the_path_was(refitted):
    X, y = blobs()
    weight = 0.5 + np.arange(36) % 3
    given = {"sample_weight": weight, "class_weight": {2.0: 3.0}, "multiclass": "ovr"}
    found = path(
        X,
        y,
        [0.5, 2.0],
        [0.25, 0.5],
        folds=2,
        kernel="rbf",
        seed=7,
        tol=1e-2,
        callback=lambda row: False,
        test=(X[:10], y[:10]),
        keep_solutions=True,
        **given,
    )
    (call,) = refitted
    assert np.array_equal(call.pop("X"), X)
    assert call.pop("y").tolist() == y.tolist()
    assert call.pop("sample_weight").tolist() == weight.tolist()
    assert callable(call.pop("callback"))
    assert call == {
        "model": "csvm",
        "kernel": "rbf",
        "C": found.best.C,
        "gamma": found.best.gamma,
        "multiclass": "ovr",
        "seed": 7,
        "class_weight": {2.0: 3.0},
        "keep_solutions": True,
        "tol": 1e-2,
    }
    assert found.machine.solutions is not None
    assert (found.seed, found.rule, found.scoring) == (7, "best", "accuracy")
    assert found.shape == (36, 3)
    assert found.settings.C == 2.0  # the largest: kernel values must be fine enough for it
    assert found.gammas == [0.25, 0.5]
    assert found.refit["status"] == "converged"
    assert list(found.seconds) == ["fits", "refit", "total"]
    assert 0 < found.seconds["fits"] + found.seconds["refit"] <= found.seconds["total"]
    assert found.refit["seconds"]["solve"] == pytest.approx(found.seconds["refit"], abs=1e-5)
    judged = all_scores(y[:10], found.machine.scores(as_matrix(X[:10])), LABELS, "ovr")
    assert found.test == {"n_samples": 10, **judged}


def test_the_rule_of_one_standard_error_is_refitted(refitted):
    X, y = blobs()
    found = path(X, y, [1e-3, 0.5, 2.0], folds=3, rule="one_se")
    assert refitted[0]["C"] == found.one_se.C
    assert found.machine.solutions is None


def test_without_a_refit_there_is_no_machine(refitted):
    X, y = blobs()
    found = path(X, y, [1.0], folds=2, refit=False)
    assert refitted == []
    assert (found.machine, found.refit, found.test) == (None, None, None)
    assert list(found.seconds) == ["fits", "total"]
    assert (found.resumed, found.ignored) == (0, False)


def test_the_seconds_of_fits_and_refit_are_those_of_the_clock(monkeypatch):
    clock = itertools.count(100.0)
    monkeypatch.setattr(paths, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    X, y = blobs()
    assert path(X, y, [1.0], folds=2).seconds == {"fits": 1.0, "refit": 1.0, "total": 4.0}


def test_a_state_of_another_run_is_ignored_and_said_to_be(tmp_path):
    X, y = blobs()
    other = State(str(tmp_path / "state"), "another")
    fit = Fit({}, 0.0, 0.0, 0.0, True, 0, None, 0, "converged")
    other.add(SimpleNamespace(key=(0, 0), folds=(0,), fits={(0, 0): fit}))
    other.write()
    found = path(X, y, [1.0], folds=2, refit=False, state=tmp_path / "state")
    assert (found.resumed, found.ignored) == (0, True)
    assert (tmp_path / "state").exists()


def test_a_refit_that_is_interrupted_ends_the_path():
    X, y = blobs()

    def callback(row):
        return "fold" not in row  # a round of the refit

    with pytest.raises(KeyboardInterrupt):
        path(X, y, [1.0], folds=2, callback=callback)


def test_a_state_is_taken_up_and_gone_at_the_end(tmp_path, one_thread, asked):
    X, y = blobs()
    file, rows = tmp_path / "state", []

    def callback(row):
        rows.append(row)
        return row["fold"] == 1

    options = {"costs": [0.5, 2.0], "folds": 2, "refit": False, "state": file}
    with pytest.raises(KeyboardInterrupt):
        path(X, y, callback=callback, **options)
    assert file.exists()
    asked.clear()
    seen = []
    found = path(X, y, callback=lambda row: seen.append(row) and False, **options)
    assert (found.resumed, found.ignored) == (1, False)
    assert len(asked) == 6
    assert (seen[0]["done"], seen[0]["total"]) == (6, 12)
    assert not file.exists()
    whole = path(X, y, costs=[0.5, 2.0], folds=2, refit=False)
    assert found.table["accuracy"].tolist() == whole.table["accuracy"].tolist()


def test_rows_of_a_class_that_a_fold_lacks_are_nobodys(one_thread):
    X, y = blobs(n=20, k=2)
    X, y = np.vstack([X, X[:1] + 9.0]), np.append(y, 9.0)
    for how in ("ovr", "ovo"):
        found = path(X, y, [1.0], folds=3, multiclass=how, refit=False)
        split = found.splits[0]
        fold = split[-1]
        m = train(X[split != fold], y[split != fold])
        right = np.mean(m.predict(X[split == fold]) == y[split == fold])
        assert found.table["accuracy"][0, 0, fold] == pytest.approx(right)
