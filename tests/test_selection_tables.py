"""What a path is made of, piece by piece: grids, scores, the table of fits, what is chosen from it,
its lines for people and its file."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from nesvm_jit import Settings
from nesvm_jit.checkpoint import checkpoint as checkpoints
from nesvm_jit.checkpoint import fingerprint as fingerprints
from nesvm_jit.checkpoint.checkpoint import resume_if_same
from nesvm_jit.checkpoint.fingerprint import data_fingerprint, settings_fingerprint, short_name
from nesvm_jit.cli.words import choice_lines, judged_line, table_lines, uncertified_lines
from nesvm_jit.clock import Clock
from nesvm_jit.errors import NesvmError
from nesvm_jit.matrix.checks import as_matrix
from nesvm_jit.selection.grid import cost_grid, gamma_grid
from nesvm_jit.selection.result import Choice, Fit, PathResult
from nesvm_jit.selection.scores import (
    all_scores,
    auc,
    balanced_accuracy,
    f1_of,
    macro_auc,
    macro_f1,
)
from nesvm_jit.selection.search import Column, save
from scipy.sparse import csr_matrix

from .compare import refusal

# ---------------------------------------------------------------- grids


def test_a_grid_has_up_to_a_thousand_values():
    many = [float(k) for k in range(1, 1001)]
    assert cost_grid(many) == many
    assert gamma_grid(many) == many
    assert len(cost_grid("1:2:1000")) == 1000
    message = "costs must have 1 to 1000 values, got 1001"
    assert refusal(cost_grid, [*many, 2000.0]) == message
    assert refusal(cost_grid, "1:2:1001") == message
    assert refusal(gamma_grid, "1:2:-1") == "gammas must have 1 to 1000 values, got -1"


def test_grids_are_in_equal_ratios_of_twelve_digits():
    assert cost_grid("0.01:100:5") == [0.01, 0.1, 1.0, 10.0, 100.0]
    assert cost_grid(" 8 : 2 : 3 ") == [2.0, 4.0, 8.0]
    assert gamma_grid("8:2:3") == [8.0, 4.0, 2.0]
    assert cost_grid("1:3:3")[1] == 1.73205080757


def test_values_of_gamma_keep_their_order_and_come_once():
    assert gamma_grid("3, auto,1,3,auto ,scale") == [3.0, "auto", 1.0, "scale"]
    assert gamma_grid(["scale", np.float64(2), 2]) == ["scale", 2.0]
    assert gamma_grid("scale") == ["scale"]
    assert gamma_grid(k for k in (2, 1)) == [2.0, 1.0]
    assert [type(v) for v in gamma_grid([2, 1])] == [float, float]


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        (
            "a,1",
            "gammas must be LOW:HIGH:COUNT or numbers or scale or auto with commas between, "
            "got 'a,1'",
        ),
        (
            "1:2:3:4",
            "gammas must be LOW:HIGH:COUNT or numbers or scale or auto with commas between, "
            "got '1:2:3:4'",
        ),
        (["x"], "each of gammas must be positive and finite, got 'x'"),
        ("1:0:2", "the high end of gammas must be positive and finite, got 0.0"),
        ("2:1:1", "gammas of one value must begin and end with it, got 2 and 1"),
        ("0.5,nan", "each of gammas must be positive and finite, got nan"),
    ],
)
def test_what_is_no_grid_of_gamma(grid, message):
    assert refusal(gamma_grid, grid) == message


def test_a_name_is_no_cost():
    message = "each of costs must be positive and finite, got 'scale'"
    assert refusal(cost_grid, ["scale"]) == message


# ---------------------------------------------------------------- scores

TRUTH = np.array([1.0, 1.0, 1.0, 2.0, 2.0, 3.0])
CHOSEN = np.array([1.0, 2.0, 1.0, 2.0, 3.0, 1.0])


def test_scores_counted_by_hand():
    assert balanced_accuracy(TRUTH, CHOSEN) == pytest.approx((2 / 3 + 1 / 2 + 0) / 3)
    assert f1_of(TRUTH, CHOSEN, 1.0) == 2 * 2 / 6
    assert f1_of(TRUTH, CHOSEN, 2.0) == 2 * 1 / 4
    assert f1_of(TRUTH, CHOSEN, 3.0) == 0.0
    assert f1_of(TRUTH, CHOSEN, 4.0) == 0.0
    assert macro_f1(TRUTH, CHOSEN) == pytest.approx((4 / 6 + 2 / 4 + 0) / 3)
    assert macro_f1(TRUTH[:2], np.array([1.0, 5.0])) == pytest.approx((2 / 3 + 0) / 2)


@pytest.mark.parametrize(
    ("positive", "values", "area"),
    [
        ([1, 0], [2, 1], 1.0),
        ([1, 0], [1, 2], 0.0),
        ([1, 0], [1, 1], 0.5),
        ([1, 1, 0, 0, 0], [5, 2, 2, 1, 7], (2 + 1.5) / 6),
        ([0, 1, 1, 0, 1, 0], [3, 3, 3, 1, 0, 0], (1.5 + 1.5 + 1 + 1 + 1 - 0.5) / 9),
        ([1, 0, 0], [1e-300, 0, -1e300], 1.0),
        ([1, 1, 0], [np.inf, -np.inf, 0], 0.5),
    ],
)
def test_areas_are_the_share_of_pairs_in_order(positive, values, area):
    got = auc(np.array(positive, dtype=bool), np.array(values, dtype=float))
    assert got == pytest.approx(area, abs=1e-15)


@pytest.mark.parametrize("positive", [[True, True], [False, False], []])
def test_one_kind_of_rows_alone_has_no_area(positive):
    assert np.isnan(auc(np.array(positive, dtype=bool), np.zeros(len(positive))))


def test_the_area_of_classes_that_do_not_occur_is_left_out():
    classes = np.array([7.0, 8.0, 9.0])
    by_class = np.array([[3.0, 0, 1], [2.0, 1, 5], [1.0, 3, 2], [2.5, 2, 0]])
    truth = np.array([7.0, 7.0, 8.0, 8.0])
    assert macro_auc(truth, by_class, classes) == pytest.approx((3 / 4 + 1) / 2)
    assert np.isnan(macro_auc(np.full(4, 7.0), by_class, classes))


@pytest.mark.parametrize("how", ["ovr", "ovo"])
def test_all_scores_of_two_classes_by_hand(how):
    truth = np.array([1.0, 1.0, 0.0, 0.0, 0.0])
    scores = np.array([[2.0], [-1.0], [-3.0], [0.5], [0.0]])
    expected = {
        "accuracy": 3 / 5,
        "balanced_accuracy": (1 / 2 + 2 / 3) / 2,
        "f1": 2 / 4,
        "auc": (3 + 1) / 6,
    }
    assert all_scores(truth, scores, np.array([1.0, 0.0]), how) == pytest.approx(expected)
    turned = all_scores(truth, np.where(scores == 0, 1e-9, -scores), np.array([0.0, 1.0]), how)
    assert turned == pytest.approx(expected)


def test_all_scores_of_three_classes_by_hand():
    classes, truth = np.array([5.0, 3.0, 4.0]), np.array([5.0, 3.0, 4.0, 4.0])
    scores = np.array([[1.0, 0, -1], [0, 2, 0.5], [3, -1, 2], [-1, -2, 0]])
    got = all_scores(truth, scores, classes, "ovr")
    assert got == pytest.approx(
        {
            "accuracy": 3 / 4,
            "balanced_accuracy": (1 + 1 + 1 / 2) / 3,
            "f1": (2 / 3 + 1 + 2 / 3) / 3,
            "auc": (2 / 3 + 1 + 3 / 4) / 3,
        }
    )
    got = all_scores(truth, scores, classes, "ovo")  # of the pairs (5, 3), (5, 4), (3, 4)
    assert got == pytest.approx(
        {
            "accuracy": 2 / 4,
            "balanced_accuracy": (0 + 1 + 1 / 2) / 3,
            "f1": (0 + 1 + 1 / 2) / 3,
            "auc": (1 / 3 + 1 + 3 / 4) / 3,
        }
    )


# ---------------------------------------------------------------- the table and the choice


def a_fit(accuracy, auc=0.5, **changes):
    scores = {"accuracy": accuracy, "balanced_accuracy": 0.25, "f1": 0.125, "auc": auc}
    facts = {
        "seconds": 0.5,
        "objective": 7.0,
        "gap": 1e-4,
        "certified": True,
        "n_support": 10,
        "n_nonzero": 4,
        "iterations": 3,
        "status": "converged",
    }
    return Fit(scores, **(facts | changes))


def a_result(table, gammas=(None,), splits=((0, 1, 1, 0),), **changes):
    """A path whose fits have these accuracies, by γ, cost and fold, or are these."""
    fits = {}
    n_folds = int(np.max(splits)) + 1
    for g, by_cost in enumerate(table):
        for i, row in enumerate(by_cost):
            for place, value in enumerate(row):
                fit = value if isinstance(value, Fit) else a_fit(value)
                fits[g, i, place // n_folds, place % n_folds] = fit
    costs = 10.0 ** np.arange(len(table[0]))
    kernel = changes.pop("kernel", "linear" if gammas[0] is None else "rbf")
    given = {"scoring": "accuracy", "rule": "best", "seed": 3} | changes
    classes, settings = np.array([1.0, -1.0]), Settings(kernel=kernel, tol=1e-2)
    return PathResult(
        costs, list(gammas), fits, settings, classes, (4, 9), np.array(splits), **given
    )


def test_means_and_spreads_of_a_table_are_numpys():
    values = np.array([[[0.5, 0.75], [1.0, 0.5], [0.25, 0.25]]])
    result = a_result(values)
    assert result.means().tolist() == values.mean(axis=2).tolist()
    np.testing.assert_allclose(result.stds(), values.std(axis=2, ddof=1), rtol=1e-15)
    errors = values.std(axis=2, ddof=1) / np.sqrt(2)
    np.testing.assert_allclose(result.std_errors(), errors, rtol=1e-15)
    assert result.means("f1").tolist() == [[0.125] * 3]
    assert result.stds("f1").tolist() == result.std_errors("f1").tolist() == [[0.0] * 3]


def test_three_folds_spread_as_numpy_says():
    values = np.array([[[0.5, 0.75, 0.25], [1.0, 0.5, 0.625]]])
    result = a_result(values, splits=((0, 1, 2),))
    np.testing.assert_allclose(result.stds(), values.std(axis=2, ddof=1), rtol=1e-15)
    errors = values.std(axis=2, ddof=1) / np.sqrt(3)
    np.testing.assert_allclose(result.std_errors(), errors, rtol=1e-15)


def test_one_fold_has_no_spread():
    result = a_result([[[0.5], [0.75]]], splits=((0, 0),))
    assert (result.n_folds, result.n_repeats) == (1, 1)
    assert result.stds().tolist() == result.std_errors().tolist() == [[0.0, 0.0]]


def test_scores_that_are_not_defined_do_not_count():
    nan = float("nan")
    rows = [[0.5, nan, 1.0], [nan, nan, nan], [0.25, nan, nan]]
    fits = [[[a_fit(0.0, auc=v) for v in row] for row in rows]]
    result = a_result(fits, splits=((0, 1, 2),), scoring="auc")
    assert result.means().tolist() == [[0.75, -np.inf, 0.25]]
    np.testing.assert_allclose(result.stds(), [[np.sqrt(0.125), 0.0, 0.0]])
    np.testing.assert_allclose(result.std_errors(), [[0.25, 0.0, 0.0]])
    assert result.best == Choice(1.0, None, 0.75, pytest.approx(0.25))


def test_of_equals_the_smallest_cost_is_best_then_the_first_gamma():
    table = [[[0.5], [0.75], [0.75]], [[0.5], [0.75], [0.75]], [[0.25], [0.25], [0.25]]]
    result = a_result(table, gammas=(4.0, 2.0, 1.0), splits=((0, 0),))
    assert result.best == Choice(10.0, 4.0, 0.75, 0.0)
    table = [[[0.5], [0.5], [0.75]], [[0.5], [0.75], [0.5]]]
    result = a_result(table, gammas=(4.0, 2.0), splits=((0, 0),))
    assert result.best == Choice(10.0, 2.0, 0.75, 0.0)
    assert result.one_se == Choice(10.0, 2.0, 0.75, 0.0)


def test_one_standard_error_reaches_down_to_equality_and_no_further():
    result = a_result([[[0.4375, 0.4375], [0.5, 0.5], [0.5, 0.75]]])  # the error is 0.125
    assert result.best == Choice(100.0, None, 0.625, pytest.approx(0.125))
    assert result.one_se == Choice(10.0, None, 0.5, 0.0)
    assert (result.rule, result.chosen) == ("best", result.best)
    result = a_result([[[0.5, 0.5], [0.5, 0.75]]], rule="one_se")
    assert result.chosen == result.one_se == Choice(1.0, None, 0.5, 0.0)


def test_at_the_smallest_cost_that_is_good_enough_the_better_gamma_is_taken():
    table = [
        [[0.25, 0.25], [0.75, 0.75], [0.5, 1.0]],
        [[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]],
        [[0.5625, 0.5625], [0.5, 0.5], [0.5, 0.5]],
    ]
    result = a_result(table, gammas=(4.0, 2.0, 1.0))
    assert result.best == Choice(10.0, 4.0, 0.75, 0.0)
    assert result.one_se == result.best
    table[0][1] = [0.5, 1.0]  # its error is 0.25
    result = a_result(table, gammas=(4.0, 2.0, 1.0))
    assert result.one_se == Choice(1.0, 1.0, 0.5625, 0.0)


def a_small_table():
    hard = a_fit(0.5, gap=0.5, certified=False, seconds=1.25, n_support=11, n_nonzero=7)
    late = a_fit(0.75, status="time_limit", objective=8.0, iterations=9)
    return a_result([[[hard, 0.75], [1.0, late]]], splits=((0, 1, 0), (1, 0, 0))[:1])


def test_every_fact_of_every_fit_is_in_the_table():
    table = a_small_table().table
    assert {name: values.tolist() for name, values in table.items()} == {
        "accuracy": [[[0.5, 0.75], [1.0, 0.75]]],
        "balanced_accuracy": [[[0.25, 0.25], [0.25, 0.25]]],
        "f1": [[[0.125, 0.125], [0.125, 0.125]]],
        "auc": [[[0.5, 0.5], [0.5, 0.5]]],
        "seconds": [[[1.25, 0.5], [0.5, 0.5]]],
        "objective": [[[7.0, 7.0], [7.0, 8.0]]],
        "gap": [[[0.5, 1e-4], [1e-4, 1e-4]]],
        "certified": [[[False, True], [True, True]]],
        "n_support": [[[11, 10], [10, 10]]],
        "n_nonzero": [[[7, 4], [4, 4]]],
        "iterations": [[[3, 3], [3, 9]]],
        "status": [[["converged", "converged"], ["converged", "time_limit"]]],
    }


def test_a_path_is_certified_if_all_its_fits_are_and_its_status_is_the_worst():
    result = a_small_table()
    assert not result.certified
    assert result.status == "time_limit"
    good = a_result([[[0.5, 0.75]]])
    assert good.certified is True
    assert good.status == "converged"


def test_the_facts_of_a_path_are_all_there():
    result = a_small_table()
    result.seconds |= {"total": 2.12345678, "fits": 1.0, "else": 3.0}
    result.refit, result.test = {"a": 1}, {"b": 2}
    cell = {
        "C": 1.0,
        "gamma": None,
        "scores": {
            "accuracy": [0.5, 0.75],
            "balanced_accuracy": [0.25, 0.25],
            "f1": [0.125, 0.125],
            "auc": [0.5, 0.5],
        },
        "seconds": [1.25, 0.5],
        "objectives": [7.0, 7.0],
        "gaps": [0.5, 1e-4],
        "certified": [False, True],
        "n_support": [11, 10],
        "n_nonzero": [7, 4],
        "iterations": [3, 3],
        "status": ["converged", "converged"],
    }
    facts = json.loads(json.dumps(result.facts()))
    assert facts["cells"][0] == cell
    assert [c["C"] for c in facts.pop("cells")] == [1.0, 10.0]
    best = {"C": 10.0, "gamma": None, "mean": 0.875, "std_error": pytest.approx(0.125)}
    assert facts == {
        "model": "csvm",
        "kernel": "linear",
        "solver": "auto",
        "n_samples": 4,
        "n_features": 9,
        "classes": [1.0, -1.0],
        "bias": True,
        "tol": 1e-2,
        "folds": 2,
        "repeats": 1,
        "seed": 3,
        "scoring": "accuracy",
        "costs": [1.0, 10.0],
        "gammas": [None],
        "best": best,
        "one_se": best,
        "chosen": "best",
        "refit": {"a": 1},
        "test": {"b": 2},
        "seconds": {"fits": 1.0, "total": 2.123457},
        "status": "time_limit",
    }


def test_repeats_follow_each_other_and_a_kernel_has_no_weights_to_count():
    fits = [[[a_fit(v, n_nonzero=None) for v in (0.1, 0.2, 0.3, 0.4)]]]
    result = a_result(fits, gammas=(0.5,), splits=((0, 1, 1), (1, 0, 1)))
    assert (result.n_folds, result.n_repeats) == (2, 2)
    assert result.table["accuracy"].tolist() == [[[0.1, 0.2, 0.3, 0.4]]]
    assert result.table["n_nonzero"].tolist() == [[[0, 0, 0, 0]]]
    facts = result.facts()
    assert (facts["folds"], facts["repeats"]) == (2, 2)
    assert facts["cells"][0]["n_nonzero"] is None
    assert facts["cells"][0]["gamma"] == 0.5
    result = a_result(fits, splits=((0, 1, 1), (1, 0, 1)), kernel="precomputed")
    assert result.facts()["cells"][0]["n_nonzero"] is None


def test_a_new_result_has_no_machine_and_is_not_resumed():
    result = a_result([[[0.5, 0.75]]])
    assert (result.machine, result.refit, result.test) == (None, None, None)
    assert (result.seconds, result.resumed, result.ignored) == ({}, 0, False)


# ---------------------------------------------------------------- lines for people


def test_the_table_of_a_linear_path():
    assert list(table_lines(a_small_table())) == [
        " C           accuracy    time  SV  weights      gap",
        " 1  0.6250 +/- 0.1768  1.75 s  10        6  5.0e-01",
        "10  0.8750 +/- 0.1768  1.00 s  10        4  1.0e-04  best one-se",
    ]


def test_the_table_of_a_path_with_a_kernel():
    table = [[[0.5, 0.5], [0.5, 0.75]], [[0.25, 0.75], [0.25, 0.25]]]
    result = a_result(table, gammas=(0.125, 2.0), scoring="balanced_accuracy")
    assert list(table_lines(result)) == [
        " C  gamma  balanced accuracy    time  SV      gap",
        " 1  0.125  0.2500 +/- 0.0000  1.00 s  10  1.0e-04  best one-se",
        "10  0.125  0.2500 +/- 0.0000  1.00 s  10  1.0e-04",
        " 1      2  0.2500 +/- 0.0000  1.00 s  10  1.0e-04",
        "10      2  0.2500 +/- 0.0000  1.00 s  10  1.0e-04",
    ]


def test_what_the_two_rules_choose():
    table = [[[0.5, 0.5], [0.5, 0.75]]]
    assert list(choice_lines(a_result(table, gammas=(0.125,)))) == [
        "Best: C = 10, gamma = 0.125, accuracy = 0.6250 +/- 0.1250",
        "Within one standard error: C = 1, gamma = 0.125, accuracy = 0.5000 +/- 0.0000",
    ]
    assert list(choice_lines(a_result(table, scoring="balanced_accuracy"))) == [
        "Best: C = 1, balanced accuracy = 0.2500 +/- 0.0000",
        "Within one standard error: C = 1, balanced accuracy = 0.2500 +/- 0.0000",
    ]


def test_the_scores_on_a_test_file():
    facts = {"n_samples": 7, "accuracy": 1, "balanced_accuracy": 0.5, "f1": 0.25, "auc": 0.125}
    assert judged_line(facts) == (
        "Test: accuracy = 1.0000, balanced accuracy = 0.5000, f1 = 0.2500, auc = 0.1250 (7 rows)"
    )


def test_fits_above_the_tolerance_are_counted():
    assert list(uncertified_lines(a_result([[[0.5, 0.75]]]).outcomes(), 0.01)) == []
    assert list(uncertified_lines(a_small_table().outcomes(), 0.01)) == [
        "warning: the tolerance 0.01 is not certified for 1 of 4 fits (the largest gap 1.00e-04): "
        "the time limit was reached; raise --time-limit or --tol"
    ]


# ---------------------------------------------------------------- the file


def some_fits(folds=(0,), n_costs=1, **changes):
    return {(k, i): a_fit(0.5 + i, iterations=k, **changes) for k in folds for i in range(n_costs)}


def opened(file, **fingerprint):
    return resume_if_same(file, 1.0, {"data": [], **fingerprint}, Clock())


def test_columns_come_back_as_they_were(tmp_path):
    file = tmp_path / "state"
    checkpoint, ignored = opened(file)
    assert (checkpoint.resumed, checkpoint.empty, ignored) == (0, True, False)
    fits = some_fits((0, 3), 2)
    with checkpoint:
        save(checkpoint, Column(1, 2, (0, 3)), fits)
    again, ignored = opened(file)
    assert (again.resumed, again.empty, ignored, again.path) == (1, False, False, str(file))
    assert {(k, i): Fit(**fit) for k, i, fit in again.done("1 2 0 3")} == fits
    for other in ("0 2 0 3", "1 1 0 3", "1 2 0 1", "1 2 0"):
        assert again.done(other) is None
    again.remove()
    assert not file.exists()
    again.remove()


def test_a_column_that_a_time_limit_ended_is_not_saved(tmp_path):
    checkpoint, _ = opened(tmp_path / "state")
    late = some_fits((0,), 1) | {(0, 1): a_fit(0.5, status="time_limit")}
    save(checkpoint, Column(0, 0, (0,)), late)
    assert checkpoint.empty
    save(checkpoint, Column(0, 0, (0,)), some_fits(status="iteration_limit"))
    assert not checkpoint.empty
    save(None, Column(0, 0, (0,)), some_fits())


def test_the_file_is_written_after_a_second_and_only_if_there_is_news(tmp_path, monkeypatch):
    clock, written = SimpleNamespace(now=100.0), []
    monkeypatch.setattr(checkpoints.time, "perf_counter", lambda: clock.now)
    real = checkpoints.write_snapshot
    monkeypatch.setattr(
        checkpoints, "write_snapshot", lambda *given: written.append(clock.now) or real(*given)
    )
    checkpoint, _ = opened(tmp_path / "state")
    assert written == [100.0]
    clock.now = 101.0 - 2**-20
    save(checkpoint, Column(0, 0, (0,)), some_fits())
    assert written == [100.0]
    clock.now = 101.0
    save(checkpoint, Column(0, 1, (0,)), some_fits())
    assert written == [100.0, 101.0]
    clock.now = 101.5
    with checkpoint:
        save(checkpoint, Column(0, 2, (0,)), some_fits())
        assert written == [100.0, 101.0]
    with checkpoint:
        pass
    assert written == [100.0, 101.0, 101.5]
    assert opened(tmp_path / "state")[0].resumed == 3


def test_a_state_of_another_run_is_left_and_one_of_this_run_beside_it_found(tmp_path):
    file = tmp_path / "state"
    with opened(file, C=1)[0] as other:
        save(other, Column(0, 0, (0,)), some_fits())
    before = file.read_bytes()
    beside = f"{file}.{short_name({'data': [], 'C': 2})}"
    mine, ignored = opened(file, C=2)
    assert (mine.resumed, ignored, mine.path) == (0, True, beside)
    assert mine.done("0 0 0") is None
    with mine:
        save(mine, Column(0, 1, (0,)), some_fits())
    again, ignored = opened(file, C=2)
    assert (again.resumed, ignored, again.path) == (1, True, beside)
    assert {(k, i): Fit(**fit) for k, i, fit in again.done("0 1 0")} == some_fits()
    again.remove()
    assert [f.name for f in tmp_path.iterdir()] == ["state"]
    assert file.read_bytes() == before


def test_a_third_run_of_the_same_first_letters_resumes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "short_name", lambda fingerprint: "01234567")
    for C in (1, 2):
        with opened(tmp_path / "state", C=C)[0] as checkpoint:
            save(checkpoint, Column(0, 0, (0,)), some_fits())
    mine, ignored = opened(tmp_path / "state", C=3)
    assert (mine.resumed, ignored) == (0, True)


def test_short_names_are_eight_letters_that_every_fact_changes():
    names = {short_name(facts) for facts in ({}, {"a": 1}, {"a": 2}, {"b": 1}, {"a": 1, "b": 2})}
    assert len(names) == 5
    assert {len(name) for name in names} == {8}
    assert short_name({"a": 1, "b": 2}) == short_name({"b": 2, "a": 1})


@pytest.mark.parametrize("text", ["mine", "[]", '{"key": "key", "columns": {}}'])
def test_a_file_that_is_no_state_is_refused_and_left(tmp_path, text):
    file = tmp_path / "state"
    file.write_text(text)
    message = f"{file}: must be absent or an earlier checkpoint, it is another file"
    assert refusal(opened, file, kind=NesvmError) == message
    assert file.read_text() == text


@pytest.mark.parametrize("damage", [lambda whole: whole[:-9], lambda whole: b""])
def test_a_damaged_state_is_refused_in_one_line_and_left(tmp_path, damage):
    file = tmp_path / "state"
    with opened(file)[0] as checkpoint:
        save(checkpoint, Column(0, 0, (0,)), some_fits())
    damaged = damage(file.read_bytes())
    file.write_bytes(damaged)
    message = refusal(opened, file, kind=NesvmError)
    assert message.startswith(f"{file}: a checkpoint is required: damaged")
    assert "\n" not in message
    assert file.read_bytes() == damaged


def test_a_state_that_cannot_be_read_says_why(tmp_path):
    message = f"{tmp_path}: cannot be read: Is a directory"
    assert refusal(opened, tmp_path, kind=NesvmError) == message


def test_the_fingerprint_of_data_sees_every_array_and_its_type():
    X = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]])
    y = np.array([1.0, -1.0, 1.0])
    dense = as_matrix(X)

    def sparse(data=(1.0, 2.0, 3.0), indices=(0, 1, 0), indptr=(0, 1, 2, 3), n_cols=2):
        return as_matrix(csr_matrix((data, indices, indptr), shape=(3, n_cols)))

    matrices = [
        dense,
        as_matrix(X[:, ::-1].copy()),
        as_matrix(X.astype(np.float32)),
        as_matrix(X.reshape(2, 3)),
        sparse(),
        sparse(indices=(1, 1, 0)),
        sparse(indptr=(0, 2, 2, 3)),
        sparse(data=(2.0, 4.0, 6.0)),
        sparse(n_cols=3),
    ]
    digests = [data_fingerprint(matrix)[0] for matrix in matrices]
    assert len(set(digests)) == 9
    assert {len(digest) for digest in digests} == {32}
    assert data_fingerprint(dense, y, None) == [digests[0], *data_fingerprint(y), None]
    assert data_fingerprint(y) != data_fingerprint(-y)


def test_the_fingerprint_of_rows_that_are_not_contiguous_is_that_of_their_values():
    y = np.arange(6.0)
    assert data_fingerprint(y[::2]) == data_fingerprint(y[::2].copy())


def test_the_fingerprint_of_another_version_is_another(monkeypatch):
    before = settings_fingerprint(Settings(), [])
    monkeypatch.setattr(fingerprints, "__version__", "0.0")
    assert settings_fingerprint(Settings(), []) != before
