"""Pictures of runs: documents, plots, pages and traces, and the options that ask for them."""

import csv
import json
import re
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from nesvm_jit.errors import InputError, NesvmError
from nesvm_jit.machine import facts as report
from nesvm_jit.pages import numbers
from nesvm_jit.pages.fitted import confusion_chart
from nesvm_jit.pages.html import page, write_html
from nesvm_jit.pages.palette import css_variables
from nesvm_jit.pages.paths import path_document
from nesvm_jit.pages.pictures import training_document
from nesvm_jit.pages.plots import format_of, plot
from nesvm_jit.pages.trace import write_trace
from nesvm_jit.solvers.run import COLUMNS

from tests.endings import train

from .commands import data_file, done, folder_with, kernel_text, refused
from .data import blobs
from .path_facts import path_facts

pytest.importorskip("matplotlib")

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


@pytest.fixture(scope="module")
def drawn(case):
    """The page of a case, drawn once."""
    return page(case[-1])


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
        chart = charts(document)[key]
        total = sum(sum(s["counts"]) for s in chart["series"])
        assert total == max(len(f.solution.alpha) for f in machine.solutions)
        assert {len(s["counts"]) for s in chart["series"]} == {len(chart["edges"]) - 1}


def test_confusion_counts_what_is_predicted(case):
    X, y, machine, document = case
    counts = np.array(charts(document)["confusion"]["counts"])
    assert counts.sum() == len(y)
    assert np.trace(counts) == pytest.approx((machine.predict(X) == y).sum(), abs=1)
    labels = [float(v) for v in charts(document)["confusion"]["labels"]]
    assert labels == sorted(labels)


def test_documents_are_json_and_pages_small(case, drawn):
    json.dumps(case[-1], allow_nan=False)
    assert len(drawn.encode()) < LIMIT


def test_two_features_have_a_plane(case):
    X, _, machine, document = case
    found = charts(document)
    assert ("plane" in found) == (X.shape[1] == 2)
    if "plane" in found:
        regions = np.array(found["plane"]["regions"])
        x, y = (np.linspace(*found["plane"][k]["range"], len(regions)) for k in "xy")
        mesh = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
        agree = machine.predict(mesh) == machine.classes[regions.ravel()]
        assert agree.mean() > 0.999


def test_u_is_zero_inside_or_one():
    X, y = blobs(n=60)
    machine, document = made(X, y)
    counts = charts(document)["u"]["series"][0]["counts"]
    u = machine.solutions[0].solution.alpha / machine.solutions[0].costs
    assert counts[0] == (u == 0).sum()
    assert counts[-1] == (u > 0.999).sum()
    assert len(u) - counts[0] == machine.n_support


def test_the_largest_weights_come_first():
    machine, document = made(*blobs(n=60, p=50))
    bars = charts(document)["weights"]
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
    kept = numbers.thin(n, 1000)
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


# ---------------------------------------------------------------- pages


HOSTILE = """</svg></style><script>alert(1)</script><b onload='x'>"&amp;{{facts}} $\\frac"""

BRIEF = "</svg><script>&$x"  # as long as there is space for beside an axis


def test_names_cannot_break_a_page():
    _, document = made(*blobs((3, 1, 2), n=30, p=2), title=HOSTILE)
    document |= {"subtitle": HOSTILE, "program": HOSTILE}
    document["certificate"] |= {"sentence": HOSTILE, "more": HOSTILE}
    document["tiles"].append([HOSTILE, HOSTILE])
    document["facts"].append([HOSTILE, HOSTILE])
    for section in document["sections"]:
        section["title"] = HOSTILE
        for chart in section["charts"]:
            spoil(chart)
    text = page(document)
    assert text.count("<script") == text.count("<b ") == 0
    assert text.count("</svg>") == text.count("<svg ") == 8
    assert text.count("</style>") == text.count("<style>") == 1
    assert text.count("&lt;script&gt;alert(1)&lt;/script&gt;") > 60
    assert text.count("&lt;/svg&gt;&lt;script&gt;&amp;$x") > 100
    elements = Elements()
    elements.feed(text)
    assert elements.left == []
    assert not [name for _, name in elements.attributes if name.startswith("on")]


def spoil(chart):
    """Put a hostile name wherever a chart has one."""
    chart |= {"title": HOSTILE, "note": HOSTILE}
    for key in ("x", "y"):
        if key in chart:
            chart[key]["label"] = BRIEF
    for axis in chart.get("axes", ()):
        axis["label"] = BRIEF
    for named in [*chart.get("series", ()), *chart.get("levels", ())]:
        named |= {key: BRIEF for key in ("name", "label") if key in named}
    for key in ("labels", "classes", "head"):
        if key in chart:
            chart[key] = [f"{BRIEF}{k}" for k in range(len(chart[key]))]
    if "rows" in chart:
        chart["rows"] = [[HOSTILE] * len(row) for row in chart["rows"]]
    if "names" in chart:
        chart["names"] = {str(k): HOSTILE for k in range(len(chart["edges"]) - 1)}


class Elements(HTMLParser):
    """Elements that are opened and not closed, and the attributes of all."""

    def __init__(self):
        super().__init__()
        self.left, self.attributes = [], []

    def handle_starttag(self, tag, attributes):
        self.attributes += [(tag, name) for name, _ in attributes]
        if tag not in ("meta", "link"):
            self.left.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.attributes += [(tag, name) for name, _ in attributes]

    def handle_endtag(self, tag):
        assert self.left.pop() == tag


def test_a_page_has_no_script_and_closes_what_it_opens(drawn):
    elements = Elements()
    elements.feed(drawn)
    assert elements.left == []
    assert "<script" not in drawn
    assert "default-src 'none'; style-src 'unsafe-inline'; img-src data:" in drawn
    assert not [name for _, name in elements.attributes if name.startswith("on")]


def test_ids_are_unique_and_references_lead_to_them(drawn):
    ids = re.findall(r'\bid="([^"]*)"', drawn)
    assert len(ids) == len(set(ids))
    references = set(re.findall(r'(?:url\(|href=")#([^")]*)', drawn))
    assert references
    assert references <= set(ids)


def test_charts_have_the_colours_of_the_page(drawn):
    _, body = drawn.split("</style>")
    assert not re.search(r"#[0-9a-fA-F]{3,6}\b[^-\w]", re.sub(r'(?:url\(|href=")#[^")]*', "", body))
    variables = set(re.findall(r"var\((--[\w-]+)\)", body))
    assert {"--ink", "--soft", "--grid", "--c0", "--font"} <= variables
    for theme in ("light", "dark"):
        assert variables - {"--font"} <= set(re.findall(r"(--[\w-]+):", css_variables(theme)))


def test_pages_load_nothing(drawn):
    assert "http:" not in drawn
    assert "https:" not in drawn
    assert not re.search(r"@import|url\((?!#)|src=|<image|<object|<iframe", drawn)
    assert {h for h in re.findall(r'href="([^"]*)"', drawn) if not h.startswith("#")} == {"data:,"}


def test_slots_are_all_filled(drawn):
    assert not re.search(r"\{\{\w+\}\}", drawn)


# ---------------------------------------------------------------- plots


@pytest.mark.parametrize(
    "case",
    ["csvm", "lpsvm", "lssvm", "three classes in pairs", "rbf", "plane of three"],
    indirect=True,
)
def test_plots_are_drawn(case, tmp_path):
    plot(case[-1], tmp_path / "run.png")
    assert (tmp_path / "run.png").read_bytes().startswith(SIGNATURES["png"])
    assert [p.name for p in tmp_path.iterdir()] == ["run.png"]


@pytest.mark.parametrize("kind", ["svg", "pdf"])
def test_the_ending_chooses_the_format(tmp_path, kind):
    _, document = made(*blobs(n=30), title="$a_$ 数")
    plot(document, tmp_path / f"a.{kind.upper()}")
    assert (tmp_path / f"a.{kind.upper()}").read_bytes().startswith(SIGNATURES[kind])


def test_other_endings_are_refused():
    with pytest.raises(InputError, match=r"run.gif: a plot must end in .png, .svg or .pdf"):
        format_of("run.gif")


def test_without_matplotlib_a_line_says_how_to_get_it(tmp_path, monkeypatch):
    _, document = made(*blobs(n=30))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    said = "plots and pages need matplotlib: pip install 'nesvm-jit[plot]'"
    for write, name in ((plot, "run.png"), (write_html, "run.html")):
        with pytest.raises(NesvmError) as e:
            write(document, tmp_path / name)
        assert str(e.value) == said
    monkeypatch.chdir(tmp_path)
    data_file(tmp_path / "two")
    for command in ("train", "path"):
        for option, name in (("--plot", "run.png"), ("--html", "run.html")):
            assert refused(command, option, name, "two") == f"nesvm-jit: {said}\n"
    assert [p.name for p in tmp_path.iterdir()] == ["two"]


# ---------------------------------------------------------------- paths


@pytest.mark.parametrize("gammas", [(None,), (0.01, 0.1, 1.0)])
def test_paths_are_drawn(tmp_path, gammas):
    facts = path_facts(gammas)
    document = path_document(facts, "a9a")
    plot(document, tmp_path / "path.svg")
    assert b"one standard error" in (tmp_path / "path.svg").read_bytes()
    found = charts(document)
    others = {"scores-balanced_accuracy", "scores-f1"}
    assert {*found} == {"scores-accuracy", "seconds", "sizes", "gaps", *others}
    scores = found["scores-accuracy"]
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
        "Other scores",
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
    assert "19 of 20 fits" in page(document)


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
    assert '<article class="card plane" id="chart-plane">' in (here / "plane.html").read_text()


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
