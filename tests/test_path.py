"""Paths along C: folds, scores, choices, equality with fits of their own, resuming."""

import inspect
import json
from dataclasses import fields

import numpy as np
import pytest
from nesvm_jit import InputError, get_threads, set_threads
from nesvm_jit.machine.folds import stratified_folds
from nesvm_jit.selection.grid import cost_grid, gamma_grid
from nesvm_jit.selection.result import PathResult
from nesvm_jit.selection.scores import all_scores
from nesvm_jit.settings import MODELS, SCORES
from scipy.sparse import csr_matrix

from tests.endings import path, train

from .data import blobs

TWO, THREE = (1, -1), (0.5, 1e3, -2)


# ---------------------------------------------------------------- grids


def test_grids():
    assert cost_grid("1e-3:1e3:7") == [1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1000.0]
    assert cost_grid("10, 1,1") == [1.0, 10.0]
    assert cost_grid([3, 1]) == [1.0, 3.0]
    assert cost_grid(2) == [2.0]
    assert cost_grid("2:2:1") == [2.0]
    assert gamma_grid("0.1,scale") == [0.1, "scale"]
    assert gamma_grid("1:4:3") == [1.0, 2.0, 4.0]


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ("", "costs must be LOW:HIGH:COUNT or numbers with commas between, got ''"),
        ("1:2", "costs must be LOW:HIGH:COUNT"),
        ("1:2:x", "costs must be LOW:HIGH:COUNT"),
        ("1,x", "costs must be LOW:HIGH:COUNT"),
        ("scale", "costs must be LOW:HIGH:COUNT"),
        ("0:1:3", "the low end of costs must be positive and finite, got 0.0"),
        ("1:inf:3", "the high end of costs must be positive and finite, got inf"),
        ("1:2:0", "costs must have 1 to 1000 values, got 0"),
        ("1:2:1", "costs of one value must begin and end with it, got 1 and 2"),
        ("1,-1", "each of costs must be positive and finite, got -1.0"),
        ([], "costs must have 1 to 1000 values, got 0"),
        ([1, None], "each of costs must be positive and finite, got None"),
        (None, "each of costs must be positive and finite, got None"),
    ],
)
def test_what_is_no_grid(grid, message):
    with pytest.raises(InputError) as e:
        cost_grid(grid)
    assert str(e.value).startswith(message)
    assert "\n" not in str(e.value)


# ---------------------------------------------------------------- scores


@pytest.mark.parametrize("seed", range(5))
def test_scores_of_two_classes_are_those_of_scikit_learn(seed):
    from sklearn import metrics

    rng = np.random.default_rng(seed)
    truth = rng.choice([-3.0, 7.0], 60)
    scores = np.round(rng.standard_normal((60, 1)) + (truth[:, None] < 0), 1)
    classes = np.array([-3.0, 7.0])
    chosen = np.where(scores[:, 0] > 0, -3.0, 7.0)
    got = all_scores(truth, scores, classes, "ovr")
    assert got == pytest.approx(
        {
            "accuracy": metrics.accuracy_score(truth, chosen),
            "balanced_accuracy": metrics.balanced_accuracy_score(truth, chosen),
            "f1": metrics.f1_score(truth, chosen, pos_label=7.0),
            "auc": metrics.roc_auc_score(truth == 7.0, -scores[:, 0]),
        }
    )
    assert all_scores(truth, -scores, classes[::-1], "ovo")["auc"] == pytest.approx(got["auc"])


@pytest.mark.parametrize("how", ["ovr", "ovo"])
def test_scores_of_several_classes_are_those_of_scikit_learn(how):
    from nesvm_jit.machine.multiclass import ovo_decision
    from sklearn import metrics

    rng = np.random.default_rng(0)
    classes, truth = np.array([5.0, -1.0, 2.0]), rng.choice([5.0, -1.0, 2.0], 80)
    scores = np.round(rng.standard_normal((80, 3)), 1)
    by_class = ovo_decision(scores, 3) if how == "ovo" else scores
    areas = [metrics.roc_auc_score(truth == k, by_class[:, i]) for i, k in enumerate(classes)]
    got = all_scores(truth, scores, classes, how)
    if how == "ovr":
        chosen = classes[scores.argmax(axis=1)]
        assert got["f1"] == pytest.approx(metrics.f1_score(truth, chosen, average="macro"))
        expected = metrics.balanced_accuracy_score(truth, chosen)
        assert got["balanced_accuracy"] == pytest.approx(expected)
    assert got["auc"] == pytest.approx(np.mean(areas))


def test_scores_without_a_class():
    got = all_scores(np.ones(3), np.array([[1.0], [2.0], [-1.0]]), np.array([1.0, -1.0]), "ovr")
    assert got["accuracy"] == pytest.approx(2 / 3)
    assert np.isnan(got["auc"])
    nobody = all_scores(-np.ones(2), np.full((2, 1), -1.0), np.array([1.0, -1.0]), "ovr")
    assert nobody["f1"] == 0.0


# ---------------------------------------------------------------- the fits


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("model", MODELS)
def test_scores_are_those_of_machines_trained_without_the_fold(model, bias):
    X, y = blobs(TWO, n=150, seed=1)
    asked = {"model": model, "bias": bias, "tol": 1e-8, "seed": 3}
    found = path(X, y, [0.01, 1, 30], folds=3, **asked)
    assert found.certified
    splits = stratified_folds(y, 3, 3)
    np.testing.assert_array_equal(found.splits[0], splits)
    for i, C in enumerate(found.costs):
        for k in range(3):
            inside, out = splits != k, splits == k
            m = train(X[inside], y[inside], C=C, **asked)
            expected = all_scores(y[out], m.scores(X[out]), m.classes, "ovr")
            got = {name: found.table[name][0, i, k] for name in SCORES}
            anything = not m.record.weights.any()  # with w = 0 every b from −1 to 1 is optimal
            assert got == pytest.approx(expected, abs=1e-3) or (anything and model == "lpsvm")
            assert found.table["gap"][0, i, k] <= 1e-8
            value = m.problems[0]["objective"]
            assert found.table["objective"][0, i, k] == pytest.approx(value, rel=2e-8)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "precomputed"])
@pytest.mark.parametrize("labels", [TWO, THREE])
def test_kernel_scores_too(kernel, labels):
    X, y = blobs(labels, n=120, seed=2)
    K = np.exp(-0.3 * np.square(X[:, None] - X[None]).sum(axis=2))
    data = K if kernel == "precomputed" else csr_matrix(X)
    gammas = None if kernel == "precomputed" else [0.1, 0.4]
    found = path(data, y, "0.1:10:3", gammas, folds=3, kernel=kernel, tol=1e-7)
    assert found.certified
    for g, gamma in enumerate(found.gammas):
        for i, C in enumerate(found.costs):
            for k in range(3):
                inside, out = found.splits[0] != k, found.splits[0] == k
                if kernel == "precomputed":
                    a, b = K[np.ix_(inside, inside)], K[np.ix_(out, inside)]
                else:
                    a, b = X[inside], X[out]
                asked = {"classes": found.classes, "tol": 1e-7}  # votes may be equal
                m = train(a, y[inside], kernel=kernel, gamma=gamma, C=C, **asked)
                expected = sum(p["objective"] for p in m.problems)
                assert found.table["objective"][g, i, k] == pytest.approx(expected, rel=2e-7)
                right, one = np.mean(m.predict(b) == y[out]), 1.01 / out.sum()
                assert found.table["accuracy"][g, i, k] == pytest.approx(right, abs=one)
                assert found.table["n_support"][g, i, k] == pytest.approx(m.n_support, abs=3)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("how", ["ovr", "ovo"])
def test_several_classes(kernel, how):
    X, y = blobs(THREE, n=120, seed=4)
    asked = {"kernel": kernel, "multiclass": how, "tol": 1e-7}
    found = path(X, y, [0.1, 10], folds=4, **asked)
    for i, C in enumerate(found.costs):
        for k in range(4):
            inside, out = found.splits[0] != k, found.splits[0] == k
            m = train(X[inside], y[inside], C=C, classes=found.classes, **asked)
            expected = all_scores(y[out], m.scores(X[out]), m.classes, how)
            got = {name: found.table[name][0, i, k] for name in SCORES}
            assert got == pytest.approx(expected, abs=2e-3)
    np.testing.assert_array_equal(
        found.machine.predict(X), train(X, y, C=found.best.C, **asked).predict(X)
    )


def test_a_budget_without_room_for_the_kernel_matrix():
    X, y = blobs(THREE, n=120, seed=4)
    asked = {"costs": [1.0, 10.0], "gammas": [0.5], "folds": 3, "kernel": "rbf", "tol": 1e-6}
    roomy, tight = path(X, y, **asked), path(X, y, cache_mb=0.05, **asked)
    np.testing.assert_array_equal(roomy.table["accuracy"], tight.table["accuracy"])
    both = path(X, y, cache_mb=0.05, multiclass="ovr", **asked)
    assert both.certified


def test_kernel_lpsvm_and_nystroem():
    X, y = blobs(TWO, n=90, seed=5)
    assert path(X, y, [1.0], [0.3], 3, kernel="rbf", model="lpsvm").certified
    found = path(X, y, [0.1, 1.0], [0.3], 3, kernel="rbf", approx="nystroem", landmarks=30)
    assert found.certified
    assert found.refit["approx"]["landmarks"] == 30


def test_weights_are_honoured():
    X, y = blobs(TWO, n=90, seed=6)
    weight = np.random.default_rng(0).integers(0, 3, 90).astype(float)
    for class_weight in ({1.0: 3.0}, "balanced"):
        found = path(
            X, y, [0.5], folds=3, sample_weight=weight, class_weight=class_weight, tol=1e-8
        )
        for k in range(3):
            inside, out = found.splits[0] != k, found.splits[0] == k
            m = train(
                X[inside],
                y[inside],
                C=0.5,
                sample_weight=weight[inside],
                class_weight=class_weight,
                tol=1e-8,
            )
            assert found.table["accuracy"][0, 0, k] == np.mean(m.predict(X[out]) == y[out])
            assert found.table["n_support"][0, 0, k] == pytest.approx(m.n_support, abs=1)


def test_a_class_with_fewer_rows_than_folds():
    X, y = blobs((1, 2), n=60, seed=7)
    X, y = np.vstack([X, X[:2] + 9]), np.append(y, [3.0, 3.0])
    for kernel in ("linear", "rbf"):
        found = path(X, y, [1.0], folds=4, kernel=kernel)
        assert found.certified
        assert found.means()[0, 0] > 0.8
    y[-1] = 1.0
    found = path(X, y, [1.0], folds=4)  # the fold of the only row of 3 trains without it
    assert found.table["accuracy"].min() > 0.5
    with pytest.raises(InputError, match="leaves fewer than 2 classes to train on; use fewer"):
        path(X[:8], np.array([1.0] * 7 + [2.0]), [1.0], folds=2)


def test_repeats_draw_other_folds():
    X, y = blobs(TWO, n=80, seed=8)
    found = path(X, y, [0.1, 1], folds=4, repeats=2, seed=5)
    assert found.table["accuracy"].shape == (1, 2, 8)
    for r in range(2):
        np.testing.assert_array_equal(found.splits[r], stratified_folds(y, 4, 5 + r))
    again = path(X, y, [0.1, 1], folds=4, repeats=2, seed=5)
    np.testing.assert_array_equal(found.table["auc"], again.table["auc"])


@pytest.mark.parametrize(
    "how", [{}, {"kernel": "rbf"}, {"kernel": "rbf", "cache_mb": 0.2}, {"model": "lpsvm"}]
)
@pytest.mark.parametrize("labels", [TWO, THREE])
@pytest.mark.skipif(get_threads() < 2, reason="one core")
def test_threads_change_no_bit(how, labels, monkeypatch):
    monkeypatch.setattr("nesvm_jit.machine.jobs.SMALL_CELLS", 0)
    X, y = blobs(labels, n=400, p=6, seed=9)
    before, found = get_threads(), []
    for threads in (1, 2):
        set_threads(threads)
        try:
            found.append(path(X, y, "0.01:10:4", folds=5, refit=False, **how))
        finally:
            set_threads(before)
    for name in (*SCORES, "gap", "iterations", "n_support"):
        np.testing.assert_array_equal(found[0].table[name], found[1].table[name])


# ---------------------------------------------------------------- the choice


def test_one_standard_error_is_the_smallest_cost_that_is_good_enough():
    X, y = blobs(TWO, n=200, seed=10)
    found = path(X, y, "1e-3:1e3:7", folds=5, rule="one_se", scoring="auc")
    means = found.table["auc"].mean(axis=2)[0]
    errors = found.table["auc"].std(axis=2, ddof=1)[0] / np.sqrt(5)
    best = means.argmax()
    assert found.costs[best] == found.best.C
    assert (found.best.mean, found.best.std_error) == pytest.approx((means[best], errors[best]))
    good = np.flatnonzero(means >= means[best] - errors[best])
    assert found.costs[good[0]] == found.one_se.C
    assert found.machine.record.extra["C"] == found.chosen.C == found.one_se.C


def test_the_machine_is_that_of_train_and_is_judged():
    X, y = blobs(TWO, n=150, seed=11)
    found = path(X[:100], y[:100], [0.1, 1.0], folds=3, test=(X[100:], y[100:]))
    same = train(X[:100], y[:100], C=found.best.C)
    np.testing.assert_array_equal(found.machine.record.weights, same.record.weights)
    assert found.test["accuracy"] == np.mean(same.predict(X[100:]) == y[100:])
    facts = json.loads(json.dumps(found.facts()))
    assert facts["refit"]["C"] == found.best.C
    assert facts["gammas"] == [None]
    assert [cell["C"] for cell in facts["cells"]] == [0.1, 1.0]
    assert len(facts["cells"][0]["scores"]["f1"]) == 3
    assert facts["cells"][0]["n_nonzero"] == [4, 4, 4]
    assert path(X, y, [1.0], folds=3, refit=False).machine is None


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"scoring": "r2"}, "scoring must be one of accuracy"),
        ({"rule": "worst"}, "rule must be one of best, one_se"),
        ({"C": 1.0}, "path takes no C; use costs"),
        ({"gamma": 1.0}, "path takes no gamma; use gammas"),
        ({"gammas": [1.0]}, "gammas are for poly and rbf kernels, got kernel 'linear'"),
        ({"folds": 1}, "n_folds must be a whole number from 2 to 60"),
        ({"repeats": 0}, "repeats must be a whole number from 1 to 1000, got 0"),
        ({"test": (np.ones((2, 3)), [1, -1])}, "X of test must have 4 columns, got 3"),
        ({"test": (np.ones((2, 4)), [1])}, "y of test must have"),
        ({"test": (1, 2), "refit": False}, "test is for the machine"),
        ({"tol": -1.0}, "tol must be zero or positive"),
        ({"class_weight": {5: 1.0}}, "class_weight must map"),
    ],
)
def test_mistakes_are_one_line(how, message):
    X, y = blobs(TWO)
    with pytest.raises(InputError) as e:
        path(X, y, **{"costs": [1.0], **how})
    assert str(e.value).startswith(message)


# ---------------------------------------------------------------- interruption


def stopping(after):
    """A callback that asks to stop once so many fits are done."""
    return lambda row: row.get("done", 0) >= after


@pytest.mark.parametrize(("kernel", "labels"), [("linear", TWO), ("linear", THREE), ("rbf", THREE)])
def test_resumed_equals_uninterrupted(kernel, labels, tmp_path, monkeypatch):
    monkeypatch.setattr("nesvm_jit.selection.path.STATE_EVERY", 0.0)
    X, y = blobs(labels, n=120, seed=12)
    file = tmp_path / "state"
    asked = {"costs": [0.1, 1, 10], "folds": 4, "repeats": 2, "kernel": kernel, "refit": False}
    if kernel == "rbf":
        asked["gammas"] = [0.1, 1.0]
    whole = path(X, y, **asked)
    total = whole.table["gap"].size * (1 if len(labels) == 2 else 3)
    with pytest.raises(KeyboardInterrupt):
        path(X, y, state=file, callback=stopping(2 * total // 3), **asked)
    assert file.exists()
    rows = []
    found = path(X, y, state=file, callback=lambda row: rows.append(row["done"]), **asked)
    assert found.resumed > 0
    assert min(rows) > 0
    for name in (*SCORES, "gap", "iterations", "n_support"):
        np.testing.assert_array_equal(found.table[name], whole.table[name])
    assert not file.exists()


def test_a_state_of_another_run_is_left_as_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr("nesvm_jit.selection.path.STATE_EVERY", 0.0)
    X, y = blobs(TWO)
    file = tmp_path / "state"
    with pytest.raises(KeyboardInterrupt):
        path(X, y, [0.1, 1], folds=3, state=file, callback=stopping(3))
    before = file.read_bytes()
    with pytest.raises(KeyboardInterrupt):
        path(X, y, [0.1, 2], folds=3, state=file, callback=stopping(3))
    found = path(X, y, [0.1, 2], folds=3, state=file)
    assert found.ignored
    assert found.resumed > 0
    assert file.read_bytes() == before
    assert [f.name for f in tmp_path.iterdir()] == ["state"]
    assert path(X, y, [0.1, 1], folds=3, state=file).resumed > 0
    assert not file.exists()


def test_another_file_is_not_written_over(tmp_path):
    X, y = blobs(TWO)
    file = tmp_path / "state"
    for text in ("precious", "[1]", '{"key": 1, "columns": {"a": [[0, 0, {}]]}}'):
        file.write_text(text)
        with pytest.raises(Exception, match="must be absent or an earlier checkpoint"):
            path(X, y, [0.1, 1], folds=3, state=file)
        assert file.read_text() == text


def test_an_error_in_a_fit_is_raised():
    X, y = blobs(TWO)
    with pytest.raises(InputError, match="overflows"):
        path(X * 1e75, y, [1e75], folds=3)


def test_what_a_path_does_unless_told():
    defaults = inspect.signature(path).parameters
    assert {name: defaults[name].default for name in ("folds", "repeats", "seed")} == {
        "folds": 5,
        "repeats": 1,
        "seed": 0,
    }


def test_a_path_has_ignored_no_state_unless_there_was_one():
    assert {f.name: f.default for f in fields(PathResult)}["ignored"] is False
