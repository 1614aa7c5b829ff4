"""Pictures of runs: documents, plots, pages and traces, and the options that ask for them."""

import csv
import json
import re
import sys

import numpy as np
import pytest
from nesvm_jit import train
from nesvm_jit.errors import InputError, NesvmError
from nesvm_jit.machine import facts as report
from nesvm_jit.pages import numbers
from nesvm_jit.pages.html import page, script_json, write_html
from nesvm_jit.pages.paths import path_document
from nesvm_jit.pages.pictures import confusion_chart, training_document
from nesvm_jit.pages.plane import contour
from nesvm_jit.pages.plots import format_of, plot, plot_path
from nesvm_jit.pages.trace import write_trace
from nesvm_jit.solvers.run import COLUMNS

from .commands import data_file, done, folder_with, kernel_text, refused
from .data import blobs
from .path_facts import path_facts

SECONDS = {"read": 0.1, "solve": 0.2, "write": 0.3, "total": 0.6}
LIMIT = 500_000  # bytes of a page
here = folder_with(two=blobs(), three=blobs((0.5, 1e3, -2)))
SIGNATURES = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


def made(X, y, title="rows", **settings):
    """A machine and its document."""
    machine = train(X, y, keep_solutions=True, **settings)
    facts = report.training(machine, settings.get("solver", "auto"), SECONDS)
    return machine, training_document(machine, X, y, facts, title)


def charts(document):
    return {c["id"]: c for s in document["sections"] for c in s["charts"]}


def plane_rows(labels=(1, -1), n=80):
    return blobs(labels, n, p=2, seed=3)


CASES = {
    "csvm": ((1, -1), 4, {}),
    "lpsvm": ((1, -1), 4, {"model": "lpsvm"}),
    "lssvm": ((1, -1), 4, {"model": "lssvm"}),
    "three classes": ((3, 1, 2), 4, {}),
    "three classes in pairs": ((3, 1, 2), 4, {"multiclass": "ovo"}),
    "rbf": ((1, -1), 4, {"kernel": "rbf"}),
    "rbf in pairs": ((3, 1, 2), 4, {"kernel": "rbf", "gamma": 0.5}),
    "rbf lssvm": ((1, -1), 4, {"kernel": "rbf", "model": "lssvm"}),
    "rbf lpsvm": ((1, -1), 4, {"kernel": "rbf", "model": "lpsvm"}),
    "nystroem": ((1, -1), 4, {"kernel": "rbf", "approx": "nystroem", "landmarks": 10}),
    "plane": ((1, -1), 2, {}),
    "plane of an rbf": ((1, -1), 2, {"kernel": "rbf", "gamma": 2.0}),
    "plane of landmarks": (
        *((1, -1), 2),
        {"kernel": "poly", "coef0": 1.0, "approx": "nystroem", "landmarks": 9},
    ),
    "plane of three": ((3, 1, 2), 2, {"kernel": "rbf"}),
    "homotopy": ((1, -1), 4, {"solver": "homotopy", "max_iter": 300}),
    "one round": ((1, -1), 4, {"solver": "nesvm", "max_iter": 1}),
}


@pytest.fixture(scope="module", params=CASES)
def case(request):
    """(X, y, machine, document)"""
    labels, p, settings = CASES[request.param]
    X, y = blobs(labels, 60, p=p)
    return (X, y, *made(X, y, title=request.param, **settings))


# ---------------------------------------------------------------- documents


def test_curves_are_the_history(case):
    _, _, machine, document = case
    found = charts(document)
    largest = max(machine.solutions, key=lambda f: (len(f.solution.alpha), f.seconds))
    history, lines = largest.solution.history, found["objective"]
    assert lines["series"][0]["y"] == pytest.approx(history["objective"], rel=1e-6)
    assert lines["columns"]["round"] == history["round"].tolist()
    assert len(found["gap"]["series"]) == len(machine.solutions)
    last = [s["y"][-1] for s in found["gap"]["series"]]
    assert document["certificate"]["certified"] == (machine.gap <= 1e-3)
    assert max(last) <= max(1e-3, 1.001 * machine.gap) or machine.gap > 1e-3


def test_histograms_count_every_row(case):
    _, _, machine, document = case
    for key in ("u", "decision"):
        variants = charts(document)[key]["variants"]
        assert variants
        for variant in variants:
            total = sum(sum(s["counts"]) for s in variant["series"])
            assert total in {len(f.solution.alpha) for f in machine.solutions}
            assert all(len(s["counts"]) == len(variant["edges"]) - 1 for s in variant["series"])


def test_confusion_counts_what_is_predicted(case):
    X, y, machine, document = case
    counts = np.array(charts(document)["confusion"]["counts"])
    assert counts.sum() == len(y)
    assert np.trace(counts) == pytest.approx((machine.predict(X) == y).sum(), abs=1)
    labels = [float(v) for v in charts(document)["confusion"]["labels"]]
    assert labels == sorted(labels)


def test_documents_are_json_and_pages_small(case):
    *_, document = case
    json.dumps(document, allow_nan=False)
    assert len(page(document).encode()) < LIMIT


def test_two_features_have_a_plane(case):
    X, _, machine, document = case
    found = charts(document)
    assert ("plane" in found) == (X.shape[1] == 2)
    if "plane" in found:
        runs = np.array([np.repeat(r[::2], r[1::2]) for r in found["plane"]["regions"]])
        x, y = (np.linspace(*found["plane"][k]["range"], len(runs)) for k in "xy")
        mesh = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
        agree = machine.predict(mesh) == machine.classes[runs.ravel()]
        assert agree.mean() > 0.999


def test_u_is_zero_inside_or_one():
    X, y = blobs(n=60)
    machine, document = made(X, y)
    counts = charts(document)["u"]["variants"][0]["series"][0]["counts"]
    u = machine.solutions[0].solution.alpha / machine.solutions[0].costs
    assert counts[0] == (u == 0).sum()
    assert counts[-1] == (u > 0.999).sum()
    assert len(u) - counts[0] == machine.n_support


def test_the_largest_weights_come_first():
    machine, document = made(*blobs(n=60, p=50))
    bars = charts(document)["weights"]["variants"][0]
    w = machine.record.weights[:, 0]
    assert bars["labels"][0] == f"feature {np.abs(w).argmax() + 1}"
    assert len(bars["values"]) == 30
    assert bars["values"] == pytest.approx(sorted(w, key=abs)[:-31:-1], rel=1e-4)


def test_a_picture_needs_what_the_solver_went_through(tmp_path):
    X, y = blobs()
    machine = train(X, y)
    with pytest.raises(InputError, match="keep_solutions"):
        training_document(machine, X, y, {}, "rows")
    with pytest.raises(InputError, match="keep_solutions"):
        write_trace(machine, tmp_path / "trace.csv")


def test_labels_that_training_did_not_see_are_in_the_matrix():
    chart = confusion_chart(np.array([1.0, -1.0]), [1.0, 5.0, -1.0], [1.0, 1.0, 1.0], "rows")
    assert chart["labels"] == ["-1", "1", "5"]
    assert chart["counts"] == [[0, 1, 0], [0, 1, 0], [0, 1, 0]]


def test_of_very_many_classes_those_with_errors_are_shown():
    truth = np.arange(100.0)
    predicted = np.where(truth == 77, 3.0, truth)
    chart = confusion_chart(truth, truth, predicted, "rows")
    assert len(chart["labels"]) == 40
    assert {"77", "3"} <= set(chart["labels"])


@pytest.mark.parametrize(
    ("gap", "shown"),
    [(8.04e-4, "0.081"), (1e-3, "0.1"), (0.25, "25"), (1.234e-9, "0.000001"), (9.96e-4, "0.1")],
)
def test_a_bound_is_rounded_up(gap, shown):
    assert numbers.percent(gap, up=True) == f"{shown}\u00a0%"


def test_the_certificate_says_how_much_lower_an_objective_could_be():
    _, document = made(*blobs(n=60))
    said = document["certificate"]
    assert re.fullmatch(
        r"No machine of this kind can have an objective more than 0\.\d+\s% lower than this one\.",
        said["sentence"],
    )
    assert said["certified"]
    _, stopped = made(*blobs(n=60), solver="nesvm", max_iter=1)
    assert "was not reached" in stopped["certificate"]["more"]
    assert not stopped["certificate"]["certified"]


def test_long_histories_and_many_problems_stay_small():
    X, y = blobs(range(12), n=360, p=2, seed=1)
    machine, document = made(X, y, multiclass="ovo", title="x" * 200)
    f = machine.solutions[0]
    n = 200_000
    grown = {name: np.linspace(1, 1 / 3, n) for name in f.solution.history}
    for found in machine.solutions:
        found.solution.history.update(grown)
    facts = report.training(machine, "auto", SECONDS)
    document = training_document(machine, X, y, facts, "many")
    assert len(page(document).encode()) < LIMIT
    lines = charts(document)["objective"]
    assert len(lines["series"][0]["y"]) <= 1000
    assert lines["columns"]["seconds"][0] == 1
    assert lines["columns"]["seconds"][-1] == pytest.approx(1 / 3, rel=1e-4)


def test_a_run_without_rounds_can_be_drawn(tmp_path):
    X, y = blobs(n=30)
    machine, _ = made(X, y)
    history = machine.solutions[0].solution.history
    history.update({name: column[:0] for name, column in history.items()})
    facts = report.training(machine, "auto", SECONDS)
    document = training_document(machine, X, y, facts, "none")
    assert page(document)
    pytest.importorskip("matplotlib")
    plot(document, tmp_path / "none.png")
    assert (tmp_path / "none.png").read_bytes().startswith(SIGNATURES["png"])


# ---------------------------------------------------------------- numbers


def test_histogram_puts_zero_on_an_edge_and_outliers_at_the_ends():
    rng = np.random.default_rng(0)
    values = np.append(rng.standard_normal(5000), [1e6, -1e6])
    found = numbers.histogram([values])
    assert 0 in found["edges"]
    assert 1 in found["edges"]
    assert sum(found["counts"][0]) == len(values)
    assert len(found["edges"]) < 110
    assert set(found["names"]) == {"0", str(len(found["edges"]) - 2)}


@pytest.mark.parametrize("values", [[0.0], [3.0, 3.0], [np.nan, 1.0], [], [1e-300, 2e-300]])
def test_histogram_of_next_to_nothing(values):
    found = numbers.histogram([np.array(values)])
    assert sum(found["counts"][0]) == np.isfinite(np.array(values, float)).sum()


@pytest.mark.parametrize("n", [0, 1, 5, 999, 1000, 1001, 123_456])
def test_thinned_keeps_both_ends(n):
    kept = numbers.thinned(n, 1000)
    assert len(kept) <= 1000
    assert (np.diff(kept) > 0).all()
    assert n == 0 or (kept[0] == 0 and kept[-1] == n - 1)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.1234567, "0.1235"),
        (1234.5678, "1235"),
        (32561, "32\u202f561"),
        (12345.67, "12\u202f345.7"),
        (-2.0, "−2"),
        (float("inf"), "∞"),
        (None, "–"),
        (1e-7, "1e-07"),
    ],
)
def test_numbers_for_people(value, shown):
    assert numbers.text(value) == shown


def test_contours_follow_a_circle_and_cut_a_saddle():
    x = np.linspace(-2, 2, 81)
    values = x[None, :] ** 2 + x[:, None] ** 2
    (ring,) = contour(x, x, values, 1.0)
    assert np.hypot(*ring.T) == pytest.approx(1.0, abs=0.01)
    assert (ring[0] == ring[-1]).all()
    assert len(contour(x, x, x[None, :] * x[:, None], 0.01)) == 2
    assert contour(x, x, values, 99.0) == []


# ---------------------------------------------------------------- pages


def test_names_cannot_break_a_page():
    evil = "</script><script>alert(1)</script><b>&amp;{{data}}"
    X, y = blobs(n=30)
    _, document = made(X, y, title=evil)
    document["sections"][0]["title"] = evil
    text = page(document)
    assert text.count("</script>") == 2
    assert "<b>" not in text
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)[1]
    assert json.loads(data)["sections"][0]["title"] == evil
    assert json.loads(script_json({"a": "\u2028<!--"})) == {"a": "\u2028<!--"}


def test_pages_load_nothing(case):
    text = page(case[-1])
    assert "http:" not in text
    assert "https:" not in text
    assert not re.search(r"@import|url\(|src=|\bfetch\(|XMLHttpRequest|import\(", text)
    assert re.findall(r'href="([^"]*)"', text) == ["data:,"]
    assert "default-src 'none'" in text


def test_slots_are_all_filled(case):
    assert not re.search(r"\{\{\w+\}\}", page(case[-1]))


# ---------------------------------------------------------------- plots


@pytest.mark.parametrize(
    "case",
    ["csvm", "lpsvm", "lssvm", "three classes in pairs", "rbf", "plane of three"],
    indirect=True,
)
def test_plots_are_drawn(case, tmp_path):
    pytest.importorskip("matplotlib")
    plot(case[-1], tmp_path / "run.png")
    assert (tmp_path / "run.png").read_bytes().startswith(SIGNATURES["png"])
    assert [p.name for p in tmp_path.iterdir()] == ["run.png"]


@pytest.mark.parametrize("kind", ["svg", "pdf"])
def test_the_ending_chooses_the_format(tmp_path, kind):
    pytest.importorskip("matplotlib")
    _, document = made(*blobs(n=30), title="$a_$ 数")
    plot(document, tmp_path / f"a.{kind.upper()}")
    assert (tmp_path / f"a.{kind.upper()}").read_bytes().startswith(SIGNATURES[kind])


def test_other_endings_are_refused():
    with pytest.raises(InputError, match=r"run.gif: a plot must end in .png, .svg or .pdf"):
        format_of("run.gif")


def test_without_matplotlib_a_line_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(NesvmError, match=r"pip install 'nesvm-jit\[plot\]'"):
        plot({}, tmp_path / "run.png")
    monkeypatch.chdir(tmp_path)
    data_file(tmp_path / "two")
    assert "nesvm-jit[plot]" in refused("train", "--plot", "run.png", "two")
    assert [p.name for p in tmp_path.iterdir()] == ["two"]


# ---------------------------------------------------------------- paths


@pytest.mark.parametrize("gammas", [(None,), (0.01, 0.1, 1.0)])
def test_paths_are_drawn(tmp_path, gammas):
    pytest.importorskip("matplotlib")
    facts = path_facts(gammas)
    plot_path(facts, tmp_path / "path.svg", "a9a")
    assert b"one standard error" in (tmp_path / "path.svg").read_bytes()
    document = path_document(facts, "a9a")
    found = charts(document)
    assert {*found} == {"scores", "seconds", "sizes", "gaps"}
    scores = found["scores"]["variants"][0]
    assert len(scores["series"]) == len(gammas)
    means = [np.mean(c["scores"]["accuracy"]) for c in facts["cells"]]
    drawn = [y for s in scores["series"] for y in s["y"]]
    assert drawn == pytest.approx(means, rel=1e-4)
    best = scores["marks"][0]
    y = scores["series"][best["series"]]["y"][best["index"]]
    assert y == pytest.approx(facts["best"]["mean"], rel=1e-4)
    assert len(page(document).encode()) < LIMIT


def test_a_path_may_show_the_machine_and_the_test_file():
    X, y = blobs(n=30)
    _, training = made(X, y)
    confusion = confusion_chart(np.array([1.0, -1.0]), y, y, "rows of the test file")
    document = path_document(path_facts(), "a9a", training, confusion)
    assert [s["title"] for s in document["sections"]] == [
        "Every cost",
        "The test file",
        "All rows: How training went",
        "All rows: What was found",
    ]
    assert len(page(document).encode()) < LIMIT


def test_a_path_that_was_ended_says_so():
    facts = path_facts(status="time_limit")
    facts["cells"][0]["certified"][0] = False
    facts["cells"][1] |= {"gaps": [None] * 5, "certified": [None] * 5, "seconds": [None] * 5}
    facts["cells"][1]["scores"] = {key: [None] * 5 for key in facts["cells"][1]["scores"]}
    document = path_document(facts, "a9a")
    assert not document["certificate"]["certified"]
    assert "19 of 20 fits" in document["certificate"]["sentence"]
    page(document)


# ---------------------------------------------------------------- the command line


def test_train_writes_page_and_trace(here):
    facts = json.loads(done("train", "--json", "--html", "a.html", "--trace", "a.csv", "three").out)
    assert (here / "a.html").read_text().startswith("<!DOCTYPE html>")
    with open("a.csv") as f:
        rows = list(csv.DictReader(f))
    assert list(rows[0]) == ["problem", *COLUMNS]
    for number, problem in enumerate(facts["problems"]):
        mine = [r for r in rows if int(r["problem"]) == number]
        assert min(float(r["objective"]) for r in mine) == problem["objective"]
        assert int(mine[-1]["round"]) == problem["iterations"]


def test_precomputed_kernels_have_pages_too(here):
    X, y = blobs(n=20)
    (here / "K").write_text(kernel_text(X @ X.T, y))
    done("train", "-t", "precomputed", "--html", "K.html", "K")
    assert (here / "K.html").exists()


def test_two_features_of_a_file_have_a_plane(here):
    data_file(here / "plane", p=2)
    done("train", "--float32", "--html", "plane.html", "plane")
    assert '"kind":"plane"' in (here / "plane.html").read_text()


def test_a_trace_may_go_to_standard_output(here):
    outcome = done("train", "--trace", "-", "two")
    assert outcome.out.startswith("problem,round,")
    assert "Certified gap" in outcome.err
    assert "Certified" not in outcome.out


@pytest.mark.parametrize("name", ["plot", "html", "trace"])
def test_pages_are_for_models(here, name):
    said = refused("train", "-v", "2", f"--{name}", "a.png", "two")
    assert f"--{name} and --folds do not go together" in said


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (["--html", "no/a.html", "two"], "no/a.html: cannot be written: no such folder"),
        (["--html", ".", "two"], "it is a folder"),
        (["--html", "", "two"], "it is a folder"),
        (["--trace", "two", "two"], "--trace must be another file"),
        (["--html", "two.model", "two"], "MODEL_FILE and --html must be different files"),
        (["--html", "a", "--trace", "./a", "two"], "--html and --trace must be different files"),
        (["--trace", "-", "--json", "two"], "--json and --trace - both need standard output"),
        (["--trace", "-", "two", "-"], "both need standard output"),
        (["--plot", "a.gif", "two"], "a plot must end in"),
    ],
)
def test_files_that_cannot_be_written_are_refused_before_training(here, args, why):
    assert why in refused("train", *args)
    assert sorted(p.name for p in here.iterdir()) == ["three", "two"]


def test_write_html_is_whole_or_nothing(here):
    _, document = made(*blobs(n=30))
    write_html(document, "a.html")
    del document["facts"]
    with pytest.raises(KeyError):
        write_html(document, "a.html")
    assert (here / "a.html").read_text().endswith("</html>\n")
