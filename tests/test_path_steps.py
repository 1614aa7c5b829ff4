"""A path step by step: what columns ask of solvers and make of the answers, progress, the refit."""

import inspect
import itertools
import json
import threading
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from nesvm_jit import Settings
from nesvm_jit import clock as clocks
from nesvm_jit.binary.kernel_matrix import worker_mb
from nesvm_jit.checkpoint.checkpoint import Checkpoint
from nesvm_jit.clock import Clock
from nesvm_jit.machine import folds as machine_folds
from nesvm_jit.machine import jobs, validation
from nesvm_jit.machine.folds import start_after, stratified_folds
from nesvm_jit.machine.jobs import Job, Problem, make_job, make_problems
from nesvm_jit.machine.validation import (
    Fold,
    Piece,
    Validation,
    group_folds,
    make_piece,
    make_split,
    score_by_kernel,
    score_rows,
)
from nesvm_jit.matrix.checks import as_matrix
from nesvm_jit.selection.path import _gammas, _test_rows, _weights
from nesvm_jit.selection.result import Fit
from nesvm_jit.selection.scores import all_scores
from nesvm_jit.selection.search import Grid, Search, make_fit
from nesvm_jit.settings import SCORES, whole_number
from scipy.sparse import csr_matrix

from tests.endings import path, train

from . import oracle
from .compare import refusal

paths = inspect.getmodule(_gammas)
LABELS = np.array([4.0, 2.0, 9.0])


def blobs(n=36, k=3, seed=0, p=3):
    rng = np.random.default_rng(seed)
    code = np.arange(n) % k
    return rng.standard_normal((n, p)) + 1.5 * np.eye(k, p)[code], LABELS[code]


@pytest.fixture
def asked(monkeypatch):
    """What fits are asked for, in order."""
    calls, real = [], machine_folds.solve_checked

    def noted(X, y, c, settings, start, rows):
        found = real(X, y, c, settings, start, rows)
        given = {"X": X, "sign": y, "c": c, "settings": settings, "start": start, "rows": rows}
        calls.append(SimpleNamespace(**given, found=found))
        return found

    monkeypatch.setattr(machine_folds, "solve_checked", noted)
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
    start = start_after(ended([1.0, 2.0], dual, model), 0.5, 2.0)
    assert start.alpha0 == pytest.approx(ratio * np.array([1.0, 2.0]))
    assert (start.w0.tolist(), start.b0) == ([1.0, 1.0], 0.5)


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
        problem = make_problems(y, LABELS, how)[number]
        rows = np.arange(36) if problem.rows is None else problem.rows
        assert [f.settings.C for f in fits] == [0.25, 1.0, 4.0]
        for f in fits:
            c = np.where(split == fold, 0.0, f.settings.C * unit)[rows]
            np.testing.assert_allclose(f.c, c, rtol=1e-15)
            assert (f.settings.cache_mb, f.settings.tol, f.settings.seed) == (share, 1e-2, 7)
            assert f.X is fits[0].X
            sign = np.where(y[rows] == LABELS[problem.i], 1.0, -1.0)
            assert f.sign.tolist() == sign.tolist()
        assert fits[0].start is None
        for before, f in itertools.pairwise(fits):
            expected = start_after(before.found, before.settings.C, f.settings.C)
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
    calls, real = [], jobs.kernel_rows
    monkeypatch.setattr(jobs, "kernel_rows", lambda *args: calls.append(1) or real(*args))
    path(X, y, [1.0, 2.0], folds=2, refit=False, multiclass="ovo", **options)
    rows, made = [call.rows for call in asked], len(calls)
    if fits in ("all different", "none"):
        assert set(rows) == {None}
    else:
        assert None not in rows
        assert all(rows[k] is rows[k + 1] for k in range(0, len(rows), 2))
    assert made == (3 if fits == "own" else 0)


# ---------------------------------------------------------------- folds

SIX = np.array([4.0, 2.0, 4.0, 2.0, 9.0, 9.0])
FOLD_OF = np.array([0, 0, 1, 1, 0, 1])


def a_job(X=None, y=SIX, how="ovr", **settings):
    X = np.arange(3.0 * len(y)).reshape(len(y), 3) if X is None else X
    return make_job(as_matrix(X), y, Settings(**settings), how)


def a_piece(margins, support, beta=None, b=0.0, **changes):
    margins = None if margins is None else np.array(margins, float)
    facts = {"seconds": 0.1, "objective": 1.0, "gap": 0.0, "certified": True, "iterations": 1}
    facts |= {"status": "converged", "n_nonzero": 1}
    return Piece(margins, np.array(support), beta, b, **(facts | changes))


def test_what_is_kept_of_a_fit_is_of_all_its_sub_problems():
    scores = np.array([[1.0, 0, 0], [0, 1, 0], [0, 1, 0]])
    job, rows = a_job(), np.array([0, 1, 4])
    pieces = [
        a_piece(
            scores[:, n],
            [n, 4],
            objective=10.0 * n,
            gap=0.01 * (n + 1),
            certified=n < 2,
            iterations=n + 1,
            status="time_limit" if n == 1 else "converged",
            n_nonzero=n + 2,
        )
        for n in range(3)
    ]
    fold = Fold(0, rows, [[None] * 3, pieces], np.stack([-scores, scores], axis=1))
    expected = all_scores(SIX[rows], scores, LABELS, "ovr")
    assert make_fit(job, fold, 1) == Fit(expected, 0.3, 30.0, 0.03, False, 4, 9, 6, "time_limit")
    fold = Fold(0, rows, [[*pieces[:1], None, *pieces[:1]]], scores[:, None])
    fit = make_fit(job, fold, 0)
    assert (fit.certified, fit.status, fit.gap, fit.n_support) == (True, "converged", 0.01, 2)


def test_machines_with_a_kernel_have_no_weights_to_count():
    pieces = [a_piece(np.zeros(3), [n], seconds=1e-7 / 3) for n in range(3)]
    fold = Fold(0, np.array([0, 1, 4]), [pieces], np.zeros((3, 1, 3)))
    fit = make_fit(a_job(kernel="rbf"), fold, 0)
    assert fit.n_nonzero is None
    assert fit.seconds == 0.0


def test_a_sub_problem_of_one_class_speaks_for_it():
    unit = np.array([0.0, 0, 1, 1, 0, 0])  # all rows of 9 are held out
    rows = np.array([0, 1, 4, 5])
    known = a_piece([1.0, 2.0, 3.0, 4.0], [0])
    job, pairs = a_job(), a_job(how="ovo")
    assert score_rows(job, [[known, known, None]], rows, unit)[0].tolist() == [[1.0, 1.0, -np.inf]]
    assert score_rows(job, [[None, known, known]], rows, unit)[0].tolist() == [[np.inf, 1.0, 1.0]]
    got = score_rows(pairs, [[None, None, None]], rows, unit)
    assert got[0].tolist() == [[1.0, 1.0, 1.0]]
    unit[SIX == 4.0] = 0.0
    got = score_rows(pairs, [[None, None, None]], rows, unit)
    assert got[3].tolist() == [[-1.0, -1.0, 1.0]]


def test_pairs_with_a_kernel_are_scored_together_at_the_end(monkeypatch):
    K = np.arange(36.0).reshape(6, 6) / 7.0
    asked = []

    def by_kernel(job, rows, support, coefs):
        asked.append((rows.tolist(), support.tolist()))
        return K[np.ix_(rows, support)] @ coefs

    monkeypatch.setattr(validation, "score_by_kernel", by_kernel)
    first = a_piece(None, [2, 3], beta=np.array([1.0, -2.0]), b=0.5)
    second = a_piece(None, [5, 2], beta=np.array([3.0, 0.5]), b=-1.0)
    known = a_piece([7.0, 8.0, 9.0], [3])
    out = [0, 1, 4]
    pieces = [[first, known, second], [second, first, known]]
    got = score_rows(a_job(how="ovo", kernel="rbf"), pieces, np.array(out), np.ones(6))
    f = K[out][:, [2, 3]] @ [1.0, -2.0] + 0.5
    g = K[out][:, [5, 2]] @ [3.0, 0.5] - 1.0
    h = np.array([7.0, 8.0, 9.0])
    expected = np.stack([np.stack([f, h, g], axis=1), np.stack([g, f, h], axis=1)], axis=1)
    np.testing.assert_allclose(got, expected, rtol=1e-14)
    assert asked == [(out, [2, 3, 5])]


@pytest.mark.parametrize("fold", [0, 1])
def test_a_fold_that_leaves_one_class_is_named(fold):
    fold_of = np.where(np.isin(np.arange(6), [0, 2]), 1 - fold, fold)
    message = f"fold {fold + 1} leaves fewer than 2 classes to train on; use fewer folds"
    assert refusal(make_split, a_job(), fold_of, [0, 1], None, None) == message


def a_solution(alpha, w=None, beta=None, **changes):
    facts = {"b": 0.25, "objective": 2.0, "gap": 0.5, "certified": False, "n_iter": 9}
    facts |= {"status": "converged", "margins": np.arange(6.0), "dual_objective": 1.0}
    facts |= {"model": "csvm"}
    alpha, w = np.array(alpha, float), None if w is None else np.array(w, float)
    return SimpleNamespace(alpha=alpha, w=w, beta=beta, **(facts | changes))


HELD_OUT = np.array([0, 1, 4])


def test_what_is_kept_of_a_solution():
    job, every = a_job(), Problem(0, None, None)
    solution = a_solution([0, 1, 0, 2, 0, 0], w=[1.0, 0.0, 2.0])
    piece = make_piece(job, every, solution, HELD_OUT, 1.5)
    assert piece.margins.tolist() == [0.0, 1.0, 4.0]
    assert piece.support.tolist() == [1, 3]
    assert (piece.beta, piece.b, piece.n_nonzero) == (None, 0.25, 2)
    facts = (piece.seconds, piece.objective, piece.gap, piece.certified, piece.iterations)
    assert (*facts, piece.status) == (1.5, 2.0, 0.5, False, 9, "converged")
    beta = np.array([0.0, 0.0, 0.5, 0.0, 0.0, 1.0])
    piece = make_piece(job, every, a_solution([0, 1, 0, 2, 0, 0], beta=beta), HELD_OUT, 1.5)
    assert piece.support.tolist() == [2, 5]
    assert (piece.beta, piece.n_nonzero) == (None, 0)
    assert piece.margins.tolist() == [0.0, 1.0, 4.0]


def test_what_is_kept_of_the_solution_of_a_pair():
    job = a_job(how="ovo")
    pair = job.problems[1]  # rows 0, 2, 4, 5
    piece = make_piece(job, pair, a_solution([0, 1, 0, 2], w=[1.0, 0.0, 2.0]), HELD_OUT, 0.0)
    assert piece.support.tolist() == [2, 5]
    assert piece.margins.tolist() == [4.25, 13.25, 40.25]
    curved = a_solution([0] * 4, beta=np.array([3.0, 0, 0, 4.0]))
    piece = make_piece(job, pair, curved, HELD_OUT, 0.0)
    assert piece.support.tolist() == [0, 5]
    assert piece.beta.tolist() == [3.0, 4.0]
    assert piece.margins is None


@pytest.fixture
def solving(monkeypatch):
    """Fits that take three seconds and end as they are told to."""
    fake = SimpleNamespace(now=100.0, asked=[], status="converged")
    fake.perf_counter = lambda: fake.now

    def solve(X, y, c, settings, start, rows):
        fake.asked.append(SimpleNamespace(y=y, c=c, settings=settings, start=start))
        fake.now += 3.0
        return a_solution(np.ones(6), w=[1.0, 0.0, 0.0], status=fake.status)

    monkeypatch.setattr(machine_folds, "time", fake)
    monkeypatch.setattr(machine_folds, "solve_checked", solve)
    return fake


def a_validation(job, found, limits=None, stop=None, grid=(0.5, 2.0)):
    split = make_split(job, FOLD_OF, [0, 1], None, None)

    def limit(number, fold, i):
        if limits is not None:
            limits.append((number, fold, i))
        return Settings(C=7.0, tol=1e-2)

    stop = threading.Event() if stop is None else stop
    return Validation(job, split, grid, limit, found.append, stop)


def test_a_chain_is_a_sub_problem_fold_by_fold_and_cost_by_cost(solving):
    job, found, limits = a_job(y=np.where(SIX == 9.0, 4.0, SIX), cache_mb=64.0), [], []
    (chain,) = a_validation(job, found, limits).chains()
    folds_known = []
    for _ in chain:
        folds_known.append([fold.number for fold in found])
    assert folds_known == [[], [0], [0], [0, 1]]
    assert limits == [(0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1)]
    assert [a.settings.C for a in solving.asked] == [0.5, 2.0] * 2
    share = worker_mb(Settings(cache_mb=64.0))
    assert {(a.settings.cache_mb, a.settings.tol) for a in solving.asked} == {(share, 1e-2)}
    assert [a.start is None for a in solving.asked] == [True, False] * 2
    for k, fit in enumerate(solving.asked):
        expected = [0.5, 2.0][k % 2] * np.not_equal(FOLD_OF, k // 2)
        assert fit.c.tolist() == expected.tolist()
    assert [fold.rows.tolist() for fold in found] == [[0, 1, 4], [2, 3, 5]]
    assert [p.seconds for fold in found for row in fold.pieces for p in row] == [3.0] * 4
    assert found[1].scores.tolist() == [[[2.0], [2.0]], [[3.0], [3.0]], [[5.0], [5.0]]]


def test_a_fold_is_scored_once_all_its_sub_problems_are_solved(solving):
    found = []
    first, *others = a_validation(a_job(), found, grid=[1.0]).chains()
    assert [*first] == [None] * 2
    assert found == []
    assert [*others[0]] == [None] * 2
    assert found == []
    next(others[1])
    assert [(fold.number, len(fold.pieces[0])) for fold in found] == [(0, 3)]
    next(others[1])
    assert [fold.number for fold in found] == [0, 1]


def test_a_sub_problem_without_two_classes_is_not_fitted(solving):
    job, found = a_job(y=np.array([4.0, 2.0, 4.0, 2.0, 9.0, 4.0])), []
    split = make_split(job, FOLD_OF, [0], None, None)  # which holds the only row of 9
    stop = threading.Event()
    chains = Validation(job, split, [1.0], lambda *_: Settings(), found.append, stop).chains()
    assert [len([*chain]) for chain in chains] == [1, 1, 1]
    assert [piece is None for piece in found[0].pieces[0]] == [False, False, True]
    assert len(solving.asked) == 2


def test_a_fit_that_is_interrupted_ends_the_chain(solving):
    stop, found, solving.status = threading.Event(), [], "interrupted"
    chain = a_validation(a_job(), found, stop=stop).chains()[0]
    assert [*chain] == []
    assert stop.is_set()
    assert len(solving.asked) == 1
    assert found == []


def test_folds_are_together_where_classes_are_in_pairs():
    assert group_folds(a_job(how="ovo"), 3) == [(0, 1, 2)]
    assert group_folds(a_job(how="ovr"), 3) == [(0,), (1,), (2,)]


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ((None, None), [1, 1, 0, 1, 0, 0]),
        ((np.arange(6.0), None), [0, 1, 0, 3, 0, 0]),
        ((None, {4.0: 3.0, 9.0: 5.0}), [3, 1, 0, 1, 0, 0]),
        ((1 + np.arange(6.0), {2.0: 3.0}), [1, 6, 0, 12, 0, 0]),
        ((None, "balanced"), [1.5, 0.75, 0, 0.75, 0, 0]),
    ],
)
def test_rows_held_out_cost_nothing(weights, expected):
    inside = np.array([True, True, False, True, False, False])
    assert validation._unit_costs(a_job(), inside, *weights).tolist() == expected


def test_a_weight_of_no_class_at_all_is_refused():
    message = "class_weight must map 4 and 2 to weights, got label 7.0"
    inside = np.arange(6) < 4
    assert refusal(validation._unit_costs, a_job(), inside, None, {7.0: 1.0}) == message


# ---------------------------------------------------------------- scores by a kernel


def job_of(X, y, shared=None, **settings):
    checked = Settings(**settings)
    order = LABELS[: len(np.unique(y))]
    return Job(as_matrix(X), y, order, "ovo", checked, make_problems(y, order, "ovo"), shared)


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

    real = validation.gram
    monkeypatch.setattr(validation, "gram", lambda A, *rest: sizes.append(len(A)) or real(A, *rest))
    monkeypatch.setattr(validation, "BLOCK_CELLS", cells)
    job = job_of(X, y, Shared() if shared else None, **settings)
    out, support = np.array([1, 5, 30, 7, 9]), np.array([0, 2, 8, 33])
    coefs = np.random.default_rng(0).standard_normal((4, 3))
    got = score_by_kernel(job, out, support, coefs)
    rtol = 1e-5 if shared else 1e-11
    np.testing.assert_allclose(got, K[np.ix_(out, support)] @ coefs, rtol=rtol, atol=rtol)
    assert got.dtype == np.float64
    block = max(1, cells // 4)
    assert sizes == [min(block, 5 - k) for k in range(0, 5, block)]


@pytest.mark.parametrize(("support", "blocks"), [([2], [4, 1]), ([], [4, 1])])
def test_one_support_vector_and_none_fill_their_blocks(monkeypatch, support, blocks):
    X, y = blobs()
    sizes, real = [], validation.gram
    monkeypatch.setattr(validation, "gram", lambda A, *rest: sizes.append(len(A)) or real(A, *rest))
    monkeypatch.setattr(validation, "BLOCK_CELLS", 4)
    support, out = np.array(support, dtype=int), np.array([1, 5, 30, 7, 9])
    job = job_of(X, y, kernel="rbf", gamma=0.5)
    got = score_by_kernel(job, out, support, np.full((len(support), 1), 2.0))
    K = oracle.gram(X[out], X[support], "rbf", 0.5, 0, 0) if len(support) else np.zeros((5, 0))
    np.testing.assert_allclose(got, 2.0 * K.sum(axis=1, keepdims=True), rtol=1e-12)
    assert sizes == blocks


def test_kernel_rows_that_stay_are_for_the_largest_cost(monkeypatch):
    X, y = blobs()
    given = []
    monkeypatch.setattr(jobs, "kernel_rows", lambda X, s: given.append((X, s)) or "rows")
    job = job_of(X, y, kernel="rbf", gamma=0.5, cache_mb=64.0, C=4.0)
    assert job.pose_for_many(job.problems[1], 7.0).kernel_rows == "rows"
    ((rows, settings),) = given
    assert np.array_equal(rows, X[job.problems[1].rows])
    assert (settings.C, settings.cache_mb) == (4.0, 7.0)
    for other in (job_of(X, y, kernel="rbf", model="lpsvm"), job_of(X, y)):
        assert other.pose_for_many(job.problems[1], 7.0).kernel_rows is None


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
        ({"scoring": "x"}, f"scoring must be one of {', '.join(SCORES)}, got 'x'"),
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
def test_labels_are_checked_once(kernel, multiclass, how):
    X, y = blobs()
    job = make_job(as_matrix(X), y.tolist(), Settings(kernel=kernel), multiclass)
    assert job.y.tolist() == y.tolist()
    assert job.classes.tolist() == LABELS.tolist()
    assert job.multiclass == how
    assert len(job.problems) == 3
    assert (job.problems[0].rows is None) == (how == "ovr")


def test_weights_are_checked_once():
    given = {4: 2.0}
    own, by_class = _weights([1] * 36, given, 36)
    assert own.tolist() == [1.0] * 36
    assert by_class == given
    assert by_class is not given
    assert _weights(None, "balanced", 36) == (None, "balanced")


def test_labels_are_of_two_classes_and_a_kernel_is_square():
    X, y = blobs(n=4, k=2)
    assert make_job(as_matrix(X), y, Settings()).classes.tolist() == [4.0, 2.0]
    precomputed = Settings(kernel="precomputed")
    assert make_job(as_matrix(np.eye(4)), y, precomputed).multiclass == "ovo"
    message = "a precomputed kernel must be square, got 4 rows and 2 columns"
    assert refusal(make_job, as_matrix(np.ones((4, 2))), y, precomputed) == message
    message = "multiclass must be one of ovo, ovr, got 'x'"
    assert refusal(make_job, as_matrix(X), y, Settings(), "x") == message
    message = "y must hold at least 2 classes, got only 4"
    assert refusal(make_job, as_matrix(X), y * 0 + 4, Settings()) == message


SETTINGS = ("callback", "tol", "max_iter", "time_limit", "kernel", "approx", "landmarks")


def a_search(costs=(0.5, 2.0), gammas=(None,), folds=2, repeats=1, **given):
    X, y = blobs()
    settings = {k: given.pop(k) for k in SETTINGS if k in given}
    job = make_job(
        as_matrix(X), y, Settings(C=costs[-1], **settings), given.pop("multiclass", None)
    )
    splits = np.stack([stratified_folds(y, folds, r) for r in range(repeats)])
    weights = given.pop("sample_weight", None), given.pop("class_weight", None)
    scoring = given.pop("scoring", "accuracy")
    return Search(job, Grid(list(costs), list(gammas), splits, *weights, scoring), Clock())


def test_the_fingerprint_of_a_search_sees_all_that_changes_a_fit():
    def told(**given):
        return json.dumps(a_search(**given).fingerprint(), sort_keys=True)

    found = [
        told(),
        told(costs=(0.5, 3.0)),
        told(kernel="rbf", gammas=(0.5,)),
        told(kernel="rbf", gammas=(0.25,)),
        told(folds=3),
        told(repeats=2),
        told(tol=1e-4),
        told(max_iter=7),
        told(multiclass="ovo"),
        told(sample_weight=np.arange(36.0)),
        told(class_weight={4.0: 2.0}),
        told(class_weight={4.0: 2.0, 2.0: 1.5}),
        told(class_weight="balanced"),
    ]
    assert len(set(found)) == 13
    assert told(callback=print) == found[0]
    assert told(scoring="f1") == found[0]
    assert told(time_limit=7.0) == found[0]
    assert told(class_weight={2.0: 1.5, 4.0: 2.0}) == found[11]
    assert told() == found[0]


@pytest.mark.parametrize("how", ["ovr", "ovo"])
def test_columns_are_of_a_fold(how, tmp_path):
    checkpoint = Checkpoint(tmp_path / "state", 1.0, {})
    search = a_search(multiclass=how, repeats=2)
    fits = search.run(checkpoint)
    assert set(fits) == {(0, i, r, k) for i in range(2) for r in range(2) for k in range(2)}
    assert set(checkpoint._done) == {f"0 {r} {k}" for r in range(2) for k in range(2)}
    again = a_search(multiclass=how, repeats=2)
    again._prepare = None  # nothing is left to be prepared
    assert again.run(checkpoint) == fits
    assert (again._done, again._total) == (24, 24)
    assert (search._done, search._total) == (24, 24)
    del checkpoint._done["0 1 0"]  # a fold that was not finished is all that is left
    last = a_search(multiclass=how, repeats=2)
    found = last.run(checkpoint)
    assert found.keys() == fits.keys()
    for place, fit in found.items():
        assert replace(fit, seconds=0.0) == replace(fits[place], seconds=0.0)


def test_a_search_that_is_stopped_ends_with_what_it_has():
    search = a_search(callback=lambda row: True)
    with pytest.raises(KeyboardInterrupt):
        search.run(None)
    assert search.fits == {}


def test_the_best_so_far_is_of_the_cells_with_most_folds():
    search = a_search(scoring="f1")

    def fitted(C, score):
        search._note_score(SimpleNamespace(scores={"f1": score, "accuracy": 0.0}), C, 7.0)
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
    assert search._tell({"round": 1}) is False
    assert rows == [{"round": 1, "done": 0, "total": 12}]
    assert [*search._count_steps(iter([None]))] == [None]
    search._best = {"best_C": 3.0}
    assert search.session.limit(Settings(), fold=1).callback({"round": 2}) is True
    assert 0.0 <= rows[1].pop("elapsed") <= search.session.clock.now()
    assert rows[1] == {"round": 2, "fold": 1, "done": 1, "total": 12, "best_C": 3.0}
    assert search.session.stop.is_set()
    assert a_search()._tell({}) is False


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


def test_a_job_of_landmarks_is_linear(monkeypatch):
    given, features = [], as_matrix(np.ones((36, 2)))
    monkeypatch.setattr(jobs, "nystroem", lambda X, s: given.append(s) or (None, features))
    asked = {"kernel": "rbf", "gammas": (0.5,), "approx": "nystroem", "landmarks": 5}
    job = a_search(callback=print, **asked)._prepare(0.5)
    assert (given[0].gamma, given[0].approx, given[0].landmarks) == (0.5, "nystroem", 5)
    s = job.settings
    assert (s.kernel, s.approx, s.landmarks, s.gamma) == ("linear", None, None, None)
    assert job.X is features


@pytest.mark.parametrize(
    ("kernel", "how", "shared"),
    [
        ("linear", "ovr", None),
        ("rbf", "ovr", "as they come"),
        ("rbf", "ovo", "by class"),
        ("poly", "ovo", "by class"),
    ],
)
def test_the_fits_of_a_gamma_share_a_kernel_matrix(monkeypatch, kernel, how, shared):
    given = []
    monkeypatch.setattr(
        jobs, "shared_matrix", lambda X, s, order: given.append((s.gamma, order)) or "shared"
    )
    gammas = (None,) if kernel == "linear" else (0.5, 0.25)
    job = a_search(kernel=kernel, gammas=gammas, multiclass=how)._prepare(gammas[-1])
    assert job.shared == ("shared" if shared else None)
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
    calls, real = [], paths.train_silently

    def noted(*args, **options):
        bound = inspect.signature(real).bind(*args, **options).arguments
        more = bound.pop("settings", {})
        calls.append({**bound, **more})
        return real(*args, **options)

    monkeypatch.setattr(paths, "train_silently", noted)
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
        "time_limit": None,
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
    monkeypatch.setattr(clocks, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    monkeypatch.setattr(paths, "train_silently", lambda *args, **how: train(X, y))
    X, y = blobs()
    found = path(X, y, [1.0], folds=2).seconds
    assert {name: seconds % 1.0 for name, seconds in found.items()} == dict.fromkeys(found, 0.0)
    assert 0.0 < found["fits"] < found["fits"] + found["refit"] < found["total"]


def test_a_state_of_another_run_is_ignored_and_said_to_be(tmp_path):
    X, y = blobs()
    with Checkpoint(tmp_path / "state", 1.0, {"data": "others"}) as other:
        other.finish("0 0 0", [])
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
