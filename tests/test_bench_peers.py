"""The peers' benchmark without its clock: judge, times to a level, targets, page."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from bench import selection
from bench.peers import page, plots, store, targets
from bench.peers.curves import Curve, Outcome, fastest, median, off, short, time_to
from bench.peers.datasets.source import Shape, imitate
from bench.peers.datasets.synthetic import one_hot, text, vision
from bench.peers.judge import Found, Problem, objective
from bench.peers.solvers import BY_NAME, REFERENCE, SOLVERS
from bench.peers.solvers.process import read_model
from bench.peers.tasks import Task, all_tasks
from scipy.sparse import csr_matrix

TASK = Task("a9a", "csvm", 1.0)


def point(setting, seconds, value, bound=None):
    return {"setting": setting, "seconds": [seconds] * 3, "objective": value, "bound": bound}


OURS = Curve("nesvm-jit", [point(1e-2, 0.01, 100.5, 99.9), point(1e-3, 0.02, 100.05, 99.99)], True)
PEER = Curve("LIBLINEAR", [point(1.0, 0.005, 103.0), point(0.1, 0.1, 100.005)])
BEST = Curve("reference", [point(1e-8, 1.0, 100.0, 100.0)], True)


def outcome(*curves, task=TASK):
    return Outcome(task, task.data, {curve.solver: curve for curve in curves})


@pytest.mark.parametrize("layout", [np.asarray, csr_matrix])
@pytest.mark.parametrize("model", ["csvm", "lpsvm", "lssvm"])
def test_judge_is_the_plain_objective(model, layout):
    rng = np.random.default_rng(0)
    X, w, y = rng.standard_normal((30, 4)), rng.standard_normal(4), rng.choice([-1.0, 1.0], 30)
    expected = np.sum(np.abs(w)) if model == "lpsvm" else np.sum(w**2) / 2
    for x_i, y_i in zip(X, y, strict=True):
        r = 1 - y_i * (x_i @ w + 0.3)
        expected += 2.5 * (r**2 if model == "lssvm" else max(r, 0))
    problem = Problem(Task("a9a", model, 2.5, bias=True), layout(X), y)
    assert objective(problem, Found(w, 0.3)) == pytest.approx(expected, rel=1e-13)


def test_features_that_a_file_does_not_reach_weigh_nothing():
    X, y = np.eye(3), np.array([1.0, -1.0, 1.0])
    problem = Problem(TASK, X, y)
    assert objective(problem, Found(np.ones(2))) == objective(problem, Found(np.array([1, 1, 0])))


def test_time_to_a_level_is_the_least_median_that_reaches_it():
    curve = Curve("peer", [point(1, 3.0, 100.05), point(2, 1.0, 100.05), point(3, 0.1, 101.0)])
    assert time_to(curve, 100.0, 1e-3) == 1.0
    assert time_to(curve, 100.0, 1e-2) == 0.1
    assert time_to(curve, 100.0, 1e-4) == math.inf
    assert time_to(None, 100.0, 1e-2) == math.inf


def test_ours_counts_only_what_it_was_asked_for_and_proved():
    lucky = Curve("ours", [point(1e-2, 0.1, 100.0, 99.9999)], certified=True)
    unproved = Curve("ours", [point(1e-3, 0.1, 100.0, 90.0)], certified=True)
    assert fastest(lucky, 100.0, 1e-2)
    assert not fastest(lucky, 100.0, 1e-3)
    assert not fastest(unproved, 100.0, 1e-2)
    assert page.cell(outcome(unproved), unproved, 1e-3) == "— (certified only 1e-1 in 100)"


def test_best_is_the_least_objective_and_bound_the_highest():
    o = outcome(OURS, PEER, BEST)
    assert (o.best, o.bound, o.gap) == (100.0, 100.0, 0.0)
    assert off(PEER.points[0], o.best) == pytest.approx(0.03)
    assert median({"seconds": [3.0, 1.0, 2.0]}) == 2.0
    assert [short(x) for x in (1e-3, 2.2, 1.4e-12)] == ["1e-3", "2e+0", "1e-12"]


def test_targets_are_met_missed_or_open():
    def verdicts(*curves, task=TASK):
        return [row[-1] for row in targets.rows({task: outcome(*curves, BEST, task=task)})]

    slow = Curve("LIBLINEAR", [point(1.0, 0.03, 100.01)])
    never = Curve("LIBLINEAR", [point(1.0, 0.03, 103.0)])
    assert verdicts(OURS, PEER) == ["met"]
    assert verdicts(OURS, slow) == ["missed"]  # 1.5 times as fast, not 5
    assert verdicts(OURS) == ["open"]
    assert verdicts(OURS, never, task=replace(TASK, C=10.0)) == ["met", "missed"]


def test_spread_is_the_slowest_over_the_fastest_cost():
    outcomes = {
        task: outcome(Curve("nesvm-jit", [point(1e-3, 1.0 + k, 100.0, 100.0)], True), task=task)
        for k, task in enumerate(
            t for t in all_tasks() if t.group == TASK.group and t.data == "a9a"
        )
    }
    assert targets.spread(outcomes, targets.over_costs("a9a"), "nesvm-jit") == 7.0
    assert targets.spread(outcomes, targets.over_costs("a9a"), "LIBLINEAR") == math.inf
    assert math.isnan(targets.spread({}, targets.over_costs("a9a"), "nesvm-jit"))


def test_lines_go_through_what_nothing_quicker_beats():
    points = [(1.0, 0.5), (2.0, 0.7), (3.0, 0.1), (4.0, 0.1)]
    assert plots.frontier(points) == [(1.0, 0.5), (3.0, 0.1)]


def test_every_task_has_ours_and_a_peer_and_a_name_of_its_own():
    tasks = all_tasks()
    assert len({task.name for task in tasks}) == len(tasks)
    for task in tasks:
        able = [s for s in SOLVERS if "problem" not in (s.missing(task) or "")]
        assert any(s.CERTIFIED for s in able)
        assert any(not s.CERTIFIED for s in able)


@pytest.mark.parametrize("kind", [one_hot, text, vision])
def test_synthetic_data_have_the_shape_and_the_share_of_positives(kind):
    X, y = imitate(Shape(kind, 400, 100, 12, 0.25), np.float32)
    assert (X.shape, X.dtype) == ((400, 100), np.float32)
    assert 8 <= X.nnz / 400 <= 16
    assert np.mean(y > 0) == 0.25
    assert X.has_canonical_format
    if kind is one_hot:
        assert (X.data == 1.0).all()
    if kind is text:
        np.testing.assert_allclose(X.multiply(X).sum(axis=1), 1.0, rtol=1e-5)
    if kind is vision:
        assert X.data.min() >= 0.0
        assert X.data.max() == 1.0


def test_a_liblinear_model_speaks_for_its_first_label(tmp_path):
    head = "solver_type L2R_L1LOSS_SVC_DUAL\nnr_class 2\nlabel -1 1\nnr_feature 2\nbias -1\n"
    (tmp_path / "m").write_text(f"{head}w\n0.5 \n-2 \n")
    np.testing.assert_array_equal(read_model(tmp_path / "m").w, [-0.5, 2.0])


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """Made-up results of one task."""
    monkeypatch.delenv("NESVM_DATA", raising=False)
    monkeypatch.setattr(store, "FOLDER", tmp_path / "results")
    for curve in (BEST, OURS, PEER):
        store.save(TASK, BY_NAME[curve.solver], curve.points, None)
    store.save(TASK, BY_NAME["snapml"], [], "no answer in 90 s")
    return tmp_path


def test_stored_results_come_back_until_they_are_old(stored):
    assert store.load(TASK, REFERENCE, hours=1)["points"] == BEST.points
    assert store.load(TASK, REFERENCE, hours=0) is None
    assert store.load(replace(TASK, C=2.0), REFERENCE) is None
    files = sorted((stored / "results").iterdir())
    assert all(json.loads(file.read_text())["machine"]["cores"] for file in files)
    assert len(files) == 4


def test_page_from_stored_results(stored, monkeypatch, capsys):
    monkeypatch.setattr(plots, "draw", lambda o, names, path: drawn.append(path.name))
    drawn = []
    page.write([TASK, replace(TASK, C=2.0)], stored)
    text = (stored / "benchmarks.md").read_text()
    assert capsys.readouterr().out == text
    assert "| synthetic a9a | 1 | 20 | 100 | failed (no answer in 90 s) |" in text
    assert "| synthetic a9a | 1 | — (certified only 6e-4 in 20) | 100 |" in text
    assert "5.00 × (20 against 100 ms) | met |" in text
    assert "| LIBLINEAR | 100 | not certified |" in text
    assert drawn == ["synthetic-a9a-csvm-C1.svg"]
    assert f"plots/{drawn[0]}" in text


def test_grids_for_choosing_c_are_shown(tmp_path, monkeypatch):
    monkeypatch.setattr(selection, "STORED", tmp_path / "selection.json")
    assert selection.section() is None
    ours = {"seconds": 0.5, "accuracy": 0.85, "note": "largest certified gap 9e-04"}
    peer = {"seconds": 4.5, "accuracy": 0.84, "note": ""}
    stored = {
        "linear": {
            "data": "a9a",
            "runs": {"nesvm-jit path": ours, "peer": peer, "none": {"missing": "no module"}},
        },
        "rbf": {"data": "usps", "runs": {"nesvm-jit path": peer, "peer": ours}},
    }
    (tmp_path / "selection.json").write_text(json.dumps(stored))
    text = selection.section()
    assert "| peer | 4.50 | 0.8400 | 9.0 × | met |  |" in text
    assert "| none | no module |" in text
    assert "| peer | 0.50 | 0.8500 | 0.1 × | missed |" in text
