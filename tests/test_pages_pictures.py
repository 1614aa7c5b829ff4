"""The document of a training run: every number of every chart, from runs made up by hand."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from nesvm_jit.errors import InputError
from nesvm_jit.machine import facts as report
from nesvm_jit.pages import fitted, words
from nesvm_jit.pages.fitted import confusion_chart
from nesvm_jit.pages.pictures import training_document

from .made_up import SECONDS, found, machine, problem

X4 = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]])
Y4 = np.array([1.0, 1, -1, -1])


def document(made, X=X4, y=Y4):
    return training_document(made, X, y, report.training(made, "auto", SECONDS), "rows")


def charts(document):
    return {c["id"]: c for s in document["sections"] for c in s["charts"]}


def two(alpha=(0.0, 0.5, 1.0, 1.0), margins=(2.0, 0.5, -0.5, 0.25), costs=None, extra=(), **more):
    """Charts of a machine of two classes on four rows; `more` are columns of its history."""
    record = {k: more.pop(k) for k in ("model",) if k in more}
    made = machine(
        [[2.0], [0.0], [-3.0]], [found(alpha, margins, costs, **more)], extra=extra, **record
    )
    return charts(document(made))


# ---------------------------------------------------------------- the whole


def test_a_document_has_its_words_and_two_sections_of_charts():
    made = machine([[2.0], [0.0], [-3.0]], [found([0, 0.5, 1, 1], [2, 0.5, -0.5, 0.25])])
    page = document(made)
    assert list(page) == [
        *("kind", "title", "subtitle", "program", "certificate", "tiles", "facts", "sections"),
    ]
    assert (page["kind"], page["title"], page["program"]) == ("train", "rows", "nesvm-jit 9")
    assert page["tiles"][1] == ["75.00\u00a0%", "training rows right"]
    assert [[c["id"] for c in s["charts"]] for s in page["sections"]] == [
        *(["objective", "gap", "gap-again"], ["u", "decision", "weights", "confusion"]),
    ]
    assert [s["title"] for s in page["sections"]] == ["How training went", "What was found"]


def test_two_features_have_a_plane_and_the_matrix_beside_it():
    made = machine([[2.0], [-1.0]], [found([0, 0.5, 1, 1], [2, 0.5, -0.5, 0.25])])
    page = document(made, X4[:, :2])
    assert [c["id"] for c in page["sections"][1]["charts"]] == [
        *("plane", "confusion", "u", "decision", "weights"),
    ]


def test_a_machine_without_solutions_has_no_picture():
    made = machine([[1.0]], None)
    with pytest.raises(InputError) as e:
        training_document(made, X4, Y4, {}, "rows")
    assert str(e.value) == "a picture needs a machine trained with keep_solutions=True"


def several(n, sizes=None, seconds=None, rows=True, **columns):
    """n sub-problems, class k against the rest, of the given numbers of rows."""
    sizes = sizes or [4] * n
    seconds = seconds or [1.0] * n
    parts = [
        found(
            np.ones(size),
            rows=np.arange(size) if rows else None,
            i=k,
            j=None,
            took=s,
            **columns,
        )
        for k, (size, s) in enumerate(zip(sizes, seconds, strict=True))
    ]
    certificates = [problem([k]) for k in range(n)]
    columns = max(n, 3)
    return machine(np.ones((3, columns)), parts, certificates, classes=np.arange(columns))


def test_two_sub_problems_are_named():
    shown = charts(document(several(2), y=np.array([0.0, 1, 1, 0])))
    assert [s["name"] for s in shown["gap"]["series"]] == [
        *("0 against the rest", "1 against the rest"),
    ]
    assert shown["objective"]["title"] == "Objective and bound, class 0 against the rest"
    assert shown["gap"]["title"] == "Certified gap of every sub-problem"


def test_sub_problems_come_by_rows_then_by_seconds():
    made = several(4, sizes=[3, 4, 4, 2], seconds=[9.0, 1.0, 2.0, 3.0])
    shown = charts(document(made, y=np.array([0.0, 1, 2, 3])))
    expected = ["2 against the rest", "1 against the rest", "0 against the rest"]
    expected.append("3 against the rest")
    assert [s["name"] for s in shown["gap"]["series"]] == expected
    assert [row[0] for row in shown["problems"]["rows"]] == expected
    for chart, title in {
        "objective": "Objective and bound",
        "u": "Dual weights u = α/c",
        "decision": "Decision values by class",
        "weights": "Largest weights",
    }.items():
        assert shown[chart]["title"] == f"{title}, class 2 against the rest"
    assert shown["gap"]["title"] == "Certified gap of every sub-problem"


def test_the_gaps_of_sixty_sub_problems_are_drawn():
    shown = charts(document(several(60), y=np.arange(4.0)))
    assert len(shown["gap"]["series"]) == 60
    assert "largest" not in shown["gap"]["note"]
    shown = charts(document(several(61), y=np.arange(4.0)))
    assert len(shown["gap"]["series"]) == 60
    assert shown["gap"]["note"] == (f"{words.GAP} The 60 largest of 61 sub-problems are shown.")


def test_all_sub_problems_are_in_a_table():
    certificates = [
        problem([1, 2], objective=12345.678, dual_objective=0.5, gap=0.0123456, n_support=7),
        problem([1, 3], iterations=12345),
        problem([2, 3]),
    ]
    parts = [
        found([1, 1, 1], rows=[0, 1, 2], i=0, j=1),
        found([1, 1], rows=[0, 3], i=0, j=2),
        found([1], rows=[2], i=1, j=2),
    ]
    made = machine(np.ones((3, 3)), parts, certificates, classes=(1, 2, 3), multiclass="ovo")
    shown = charts(document(made, y=np.array([1.0, 2, 1, 3])))["problems"]
    assert shown == {
        "kind": "table",
        "id": "problems",
        "title": "Sub-problems",
        "note": "",
        "head": [
            *("class", "rows", "rounds", "support vectors", "objective", "lower bound", "gap"),
        ],
        "rows": [
            ["1 against 2", "3", "7", "7", "12\u202f345.7", "0.5", "0.0123"],
            ["1 against 3", "2", "12\u202f345", "3", "4", "3", "0.25"],
            ["2 against 3", "1", "7", "3", "4", "3", "0.25"],
        ],
    }


@pytest.mark.parametrize(("n", "note"), [(200, ""), (201, "The 200 largest of 201 are listed.")])
def test_two_hundred_sub_problems_are_listed(n, note):
    shown = charts(document(several(n), y=np.arange(4.0)))["problems"]
    assert len(shown["rows"]) == 200
    assert shown["note"] == note


def test_a_single_problem_has_no_table():
    assert "problems" not in two()


def test_the_gap_is_a_share_up_to_rounding():
    assert words.GAP == (
        "(objective − lower bound) / objective: no machine of this kind has an objective lower by "
        "a larger share, up to rounding errors of the computed values."
    )


@pytest.mark.parametrize(
    ("passes", "title", "keys"),
    [
        ([1.0, 2.0, 3.0], "Certified gap, by passes", ["passes", "round", "seconds"]),
        ([1.0, 1.0, 1.0], "Certified gap, by rounds", ["round", "seconds"]),
    ],
)
def test_the_gap_is_drawn_again_by_work(passes, title, keys):
    shown = two(passes=passes)
    changed = {"id": "gap-again", "title": title, "note": "", "table": False}
    again = shown["gap-again"]
    assert [a["key"] for a in again["axes"]] == keys
    assert again == {**shown["gap"], **changed, "axes": again["axes"]}


def test_one_round_has_one_gap():
    assert "gap-again" not in two(round=[1.0], passes=[2.0], seconds=[0.1])


# ---------------------------------------------------------------- convergence


def test_curves_are_the_rounds_with_their_digits():
    shown = two(
        objective=[9.876543214, 5.0, 4.0],
        dual=[-np.inf, 1.0, 3.123456784],
        gap=[np.inf, 0.123456, 0.0],
        seconds=[0.1234567, 0.2, 0.3],
        passes=[1.5, 2.5, 123456],
        round=[1, 2, 3],
    )
    both, gap = shown["objective"], shown["gap"]
    columns = {
        "seconds": [0.12346, 0.2, 0.3],
        "passes": [1.5, 2.5, 123460],
        "round": [1, 2, 3],
    }
    assert both == {
        "kind": "lines",
        "id": "objective",
        "title": "Objective and bound",
        "note": "The optimum lies between the two: in the shaded band.",
        "axes": [
            {"key": "seconds", "label": "seconds", "log": False},
            {"key": "passes", "label": "passes over the data", "log": False},
            {"key": "round", "label": "rounds", "log": False},
        ],
        "y": {"label": "objective", "log": False},
        "columns": columns,
        "series": [
            {"name": "objective", "y": [9.8765432, 5, 4]},
            {"name": "lower bound", "y": [None, 1, 3.1234568]},
        ],
        "band": [0, 1],
    }
    assert gap == {
        "kind": "lines",
        "id": "gap",
        "title": "Certified gap",
        "note": words.GAP,
        "axes": both["axes"],
        "y": {"label": "relative gap", "log": True},
        "series": [{"name": "gap", "y": [None, 0.1235, 1e-17], "columns": columns}],
        "levels": [{"value": 0.001, "label": "tolerance 0.001"}],
    }


def test_without_a_tolerance_there_is_no_level():
    assert two(extra={"tol": 0.0})["gap"]["levels"] == []


@pytest.mark.parametrize(
    ("smoothed", "shown"),
    [
        ([np.nan, np.nan, np.nan], False),
        ([2.0, np.nan, 1.0], False),
        ([2.0, np.nan, 1.0 + 5e-7], False),
        ([2.0, np.nan, 1.0 + 1.5e-6], True),
        ([np.nan, np.nan, 0.5], True),
        ([1.0, 1.0, 0.123456784], True),
    ],
)
def test_the_smoothed_objective_is_drawn_where_it_differs(smoothed, shown):
    series = two(objective=[2.0, np.nan, 1.0], smoothed=smoothed)["objective"]["series"]
    if shown:
        values = [None if np.isnan(v) else float(f"{v:.8g}") for v in smoothed]
        assert series[2:] == [{"name": "smoothed objective", "y": values, "thin": True}]
    else:
        assert series[2:] == []


@pytest.mark.parametrize(
    ("objective", "log"),
    [
        ([10.0, 1.0], False),
        ([10.5, 1.0], True),
        ([1.0, 0.5], False),
        ([5.0, 0.0], False),
        ([5.0, -1.0], False),
        ([1e-3, 1e-6], True),
        ([np.nan, np.inf], False),
        ([np.nan, 11.0, 1.0], True),
    ],
)
def test_objectives_that_fall_tenfold_are_drawn_by_their_logarithm(objective, log):
    assert two(objective=objective)["objective"]["y"]["log"] is log


@pytest.mark.parametrize("n", [1000, 1001])
def test_a_curve_has_a_thousand_points_at_most(n):
    shown = two(objective=np.arange(1.0, n + 1))
    lengths = {
        len(shown["objective"]["series"][0]["y"]),
        len(shown["objective"]["columns"]["round"]),
        len(shown["gap"]["series"][0]["y"]),
        len(shown["gap"]["series"][0]["columns"]["round"]),
    }
    if n == 1000:
        assert lengths == {1000}
    else:
        assert len(lengths) == 1
        assert 600 < lengths.pop() < 1000


@pytest.mark.parametrize("count", [2, 12])
def test_many_gap_curves_share_three_thousand_points(count):
    shown = charts(document(several(count, objective=np.arange(1.0, 2001)), y=np.arange(4.0)))
    (length,) = {len(s["y"]) for s in shown["gap"]["series"]}
    most = {2: 1000, 12: 250}[count]
    early, even = np.geomspace(1, 2000, most // 2).astype(int) - 1, np.linspace(0, 1999, most // 2)
    assert length == len(np.union1d(early, even.round().astype(int)))


@pytest.mark.parametrize(
    ("mu", "model", "shown"),
    [
        ([np.nan, np.nan, np.nan], "csvm", None),
        ([0.0, 0.0, 0.0], "csvm", None),
        ([np.nan, 0.123456, 0.0], "csvm", [None, 0.1235, 0]),
        ([0.5, 0.5, 0.5], "lssvm", None),
        ([0.5, 0.5, 0.5], "lpsvm", [0.5, 0.5, 0.5]),
    ],
)
def test_smoothing_is_a_column_where_there_is_any(mu, model, shown):
    found_ = two(mu=mu, model=model)
    assert found_["objective"]["columns"].get("mu") == shown
    assert found_["gap"]["series"][0]["columns"].get("mu") == shown


@pytest.mark.parametrize(
    ("columns", "keys"),
    [
        ({"round": [1.0], "passes": [2.0], "seconds": [0.1]}, ["seconds"]),
        ({"round": [1, 2], "passes": [2, np.nan], "seconds": [0.1, 0.1]}, ["seconds", "round"]),
        ({"round": [1, 1], "passes": [2, 3], "seconds": [0.1, 0.2]}, ["seconds", "passes"]),
    ],
)
def test_axes_are_those_along_which_something_moves(columns, keys):
    shown = two(**columns)
    assert [a["key"] for a in shown["objective"]["axes"]] == keys
    assert [a["key"] for a in shown["gap"]["axes"]] == keys


# ---------------------------------------------------------------- dual weights


def test_dual_weights_are_counted_at_both_ends_and_between():
    alpha = [0.0, 0.0, 0.06, 1.0, 2.0, 1.998, 5.0]
    costs = [1.0, 2.0, 2.0, 2.0, 2.0, 2.0, 0.0]
    made = machine([[1.0]], [found(alpha, costs=costs)])
    chart = charts(document(made, np.ones((7, 1)), np.resize([1.0, -1.0], 7)))["u"]
    counts = [0] * 22
    counts[0], counts[1], counts[11], counts[21] = 2, 1, 1, 2
    assert chart == {
        "kind": "histogram",
        "id": "u",
        "title": "Dual weights u = α/c",
        "x": {"label": "u = α/c"},
        "y": {"label": "rows", "log": False},
        "edges": [round(-0.05 + 0.05 * k, 2) for k in range(23)],
        "names": {"0": "0", "21": "1"},
        "tints": {"0": 7, "21": 1},
        "note": "2 rows at 0, beyond the margin, change nothing; 2 inside, on the margin; "
        "2 at 1, within it or on the wrong side.",
        "series": [{"name": "rows", "counts": counts}],
    }


@pytest.mark.parametrize(
    ("u", "full"),
    [
        ([0.999, 1.0, 0.9989], 2),
        ([0.95, 0.9491, 0.9489], 2),
        ([0.9, 0.9], 0),
        ([0.91, 0.9], 1),
        ([0.0, 0.0], 0),
        ([0.5, 1.0], 1),
    ],
)
def test_the_upper_end_is_the_largest_if_that_is_near_one(u, full):
    made = machine([[1.0]], [found(u)])
    chart = charts(document(made, np.ones((len(u), 1)), np.resize([1.0, -1.0], len(u))))["u"]
    assert chart["series"][0]["counts"][-1] == full
    assert f"; {full} at 1, " in chart["note"]


@pytest.mark.parametrize(
    ("most", "least", "log"), [(50, 1, False), (51, 1, True), (60, 2, False), (101, 2, True)]
)
def test_a_count_fifty_times_another_asks_for_logarithms(most, least, log):
    u = [*([0.0] * most), *([0.5] * least)]
    made = machine([[1.0]], [found(u)])
    chart = charts(document(made, np.ones((len(u), 1)), np.resize([1.0, -1.0], len(u))))["u"]
    assert chart["y"]["log"] is log


def test_rows_without_cost_have_no_dual_weight():
    chart = two(costs=[0.0, 0.0, 0.0, 0.0])["u"]
    assert chart["series"][0]["counts"] == [0] * 22
    assert chart["y"]["log"] is False


def test_dual_weights_of_the_square_loss_have_no_ends():
    chart = two(alpha=[-1.0, 2.0, 6.0, 0.0], costs=[1.0, 1.0, 2.0, 1.0], model="lssvm")["u"]
    assert "tints" not in chart
    assert chart["note"] == "Twice what a row lacks to its aim, ±1; negative where it is beyond."
    edges, counts = chart["edges"], chart["series"][0]["counts"]
    assert (edges[0], sum(counts)) == (-1, 4)
    assert counts == np.histogram([-1, 2, 3, 0], edges)[0].tolist()


# ---------------------------------------------------------------- decisions and weights


@pytest.mark.parametrize(
    ("model", "aim"), [("csvm", "between −1 and 1 is the margin"), ("lssvm", "±1 is the aim")]
)
def test_decision_values_are_counted_by_class(model, aim):
    chart = two(margins=[2.0, 0.5, -0.5, 0.25], model=model)["decision"]
    series, edges = chart.pop("series"), chart.pop("edges")
    assert chart == {
        "kind": "histogram",
        "id": "decision",
        "title": "Decision values by class",
        "note": f"A value above 0 is decided for the first class; {aim}.",
        "x": {"label": "decision value"},
        "y": {"label": "rows", "log": False},
        "rules": [-1, 0, 1],
        "names": {},
    }
    assert [s["name"] for s in series] == ["class 1", "class -1"]
    first, second = ([2.0, 0.5], [-0.5, 0.25])
    assert [s["counts"] for s in series] == [
        np.histogram(v, edges)[0].tolist() for v in (first, second)
    ]


@pytest.mark.parametrize("slowest", range(3))
def test_decision_values_of_a_pair_are_those_of_its_rows(slowest):
    parts = [
        found([1, 1], [3.0, -1.0], rows=[0, 1], i=0, j=1),
        found([1, 1], [2.0, -2.0], rows=[0, 2], i=0, j=2),
        found([1, 1], [5.0, 5.5], rows=[1, 2], i=1, j=2),
    ]
    parts[slowest].seconds = 2.0
    certificates = [problem(c) for c in ([5, 7], [5, 9], [7, 9])]
    made = machine(np.ones((3, 3)), parts, certificates, classes=(5, 7, 9), multiclass="ovo")
    shown = charts(document(made, X4[:3], np.array([5.0, 7, 9])))["decision"]
    sides = [(5, 7), (5, 9), (7, 9)][slowest]
    assert shown["title"] == "Decision values by class, class {} against {}".format(*sides)
    assert [s["name"] for s in shown["series"]] == [f"class {c}" for c in sides]
    assert [s["counts"] for s in shown["series"]] == [
        np.histogram([v], shown["edges"])[0].tolist() for v in parts[slowest].solution.margins
    ]


def test_one_class_is_told_from_the_rest():
    series = charts(document(several(3), y=np.array([0.0, 1, 2, 2])))["decision"]["series"]
    assert [s["name"] for s in series] == ["class 0", "the rest"]
    assert [sum(s["counts"]) for s in series] == [1, 3]


def test_the_largest_weights_are_named_from_one():
    w = np.array([[0.5], [0.0], [-2.0], [0.5], [1.0], [1.2345678]])
    made = machine(w, [found([0, 0.5, 1, 1])])
    chart = charts(document(made, np.ones((4, 6))))["weights"]
    assert chart == {
        "kind": "bars",
        "id": "weights",
        "title": "Largest weights",
        "x": {"label": "weight"},
        "labels": [f"feature {j}" for j in (3, 6, 5, 1, 4)],
        "values": [-2, 1.2346, 1, 0.5, 0.5],
        "note": "The 5 largest of 5 weights that are not zero, of 6 features. "
        "Positive speaks for the first class.",
    }


def test_weights_are_those_of_the_largest_sub_problem():
    made = several(3, seconds=[1.0, 3.0, 2.0])
    made.record.weights[:] = [[1, 5, 9], [2, 6, 7], [3, 4, 8]]
    chart = charts(document(made, y=np.array([0.0, 1, 2, 2])))["weights"]
    assert (chart["labels"], chart["values"]) == (
        ["feature 2", "feature 1", "feature 3"],
        [6, 5, 4],
    )


def test_thirty_weights_are_shown():
    made = machine(np.arange(1.0, 32.0)[:, None], [found([0, 0.5, 1, 1])])
    chart = charts(document(made, np.ones((4, 31))))["weights"]
    assert chart["values"] == list(range(31, 1, -1))


# ---------------------------------------------------------------- confusion


def test_the_matrix_of_two_classes_is_made_of_decision_values():
    chart = two(margins=[2.0, 0.5, -0.5, 0.25])["confusion"]
    assert chart == {
        "kind": "matrix",
        "id": "confusion",
        "title": "Classes true and decided, training rows",
        "note": "3 of 4 training rows are right: 75.00\u00a0%.",
        "labels": ["-1", "1"],
        "counts": [[1, 1], [0, 2]],
    }
    assert json.dumps(chart["counts"]) == "[[1, 1], [0, 2]]"


def stub(vectors):
    """A machine of pairs with so many support vectors, whose scores cost nothing."""
    coefs = None if vectors is None else np.zeros((vectors, 1))
    parts = [found([1.0], rows=[0]), found([1.0], rows=[0])]
    return SimpleNamespace(
        solutions=parts,
        classes=np.array([1.0, -1.0]),
        record=SimpleNamespace(coefs=coefs),
        scores=lambda X: np.ones((len(X), 2)),
        chosen=lambda scores: np.zeros(len(scores), dtype=int),
    )


@pytest.mark.parametrize(
    ("vectors", "n", "decided"),
    [
        (None, 5000, 5000),
        (1, 5000, 5000),
        (1 << 16, 1024, 1024),
        (1 << 16, 1025, 1024),
        (1 << 20, 1000, 1000),
        (1 << 20, 1001, 1000),
    ],
)
def test_of_very_many_rows_some_are_decided(vectors, n, decided):
    chart, right = fitted.confusion(stub(vectors), np.zeros((n, 1)), np.ones(n))
    assert chart["counts"] == [[0, 0], [0, decided]]
    shown = f"{decided:,}".replace(",", "\u202f") if decided >= 10_000 else str(decided)
    of = "training rows" if decided == n else f"{shown} training rows"
    assert chart["title"] == f"Classes true and decided, {of}"
    assert right == "100.00\u00a0%"


def test_forty_classes_are_shown_of_more_those_with_the_most_errors():
    truth = np.arange(40.0)
    chart = confusion_chart(truth, truth, truth, "rows")
    assert chart["labels"] == [f"{k}" for k in range(40)]
    assert chart["note"] == "40 of 40 rows are right: 100.00\u00a0%."
    classes = np.arange(42.0)[::-1]
    truth = np.concatenate([np.arange(42.0), [41.0, 40.0, 0.0]])
    said = np.concatenate([np.arange(42.0), [0.0, 0.0, 40.0]])
    chart = confusion_chart(classes, truth, said, "rows")
    assert chart["labels"] == [f"{k}" for k in [*range(38), 40, 41]]
    assert chart["note"] == (
        "42 of 45 rows are right: 93.33\u00a0%. The 40 classes with the most errors are shown."
    )
    counts = np.array(chart["counts"])
    assert counts[39, 0] == counts[38, 0] == counts[0, 38] == 1
    assert counts.sum() == 43


def test_errors_of_both_kinds_count_and_right_rows_do_not():
    classes = np.arange(41.0)
    truth = np.concatenate([np.repeat(np.arange(41.0), 3), np.arange(40.0)])
    said = np.concatenate([np.repeat(np.arange(41.0), 3), np.roll(np.arange(40.0), 1)])
    assert confusion_chart(classes, truth, said, "rows")["labels"] == [f"{k}" for k in range(40)]
    truth = np.concatenate([np.repeat(40.0, 9), np.arange(40.0)])
    said = np.concatenate([np.repeat(40.0, 9), np.roll(np.arange(40.0), 1)])
    assert "40" not in confusion_chart(classes, truth, said, "rows")["labels"]
    one_sided = confusion_chart(classes, [40.0, *range(38)], [39.0, *range(1, 38), 0.0], "rows")
    assert {"39", "40"} <= set(one_sided["labels"])
