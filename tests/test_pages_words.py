"""What pages say of a run and of a path, word by word; pages and traces as files."""

import json
import math
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from nesvm_jit.errors import InputError
from nesvm_jit.files.model.record import ModelRecord
from nesvm_jit.machine import facts as report
from nesvm_jit.machine.machine import Machine
from nesvm_jit.pages import palette, words
from nesvm_jit.pages.html import page, write_html
from nesvm_jit.pages.paths import path_document
from nesvm_jit.pages.trace import write_trace
from nesvm_jit.settings import MODELS

from .made_up import SECONDS, found, machine, problem

pytest.importorskip("matplotlib")

HARD, THIN = "\u00a0", "\u202f"


def run(**changes):
    """Facts of a training run."""
    return {
        **{"model": "csvm", "kernel": "linear", "solver": "newton", "why": "few features"},
        **{"n_samples": 12345, "n_features": 3, "n_classes": 2, "C": 2.0},
        **{"objective": 4.123456789, "dual_objective": 4.12, "gap": 8.4e-4, "certified": True},
        **{"iterations": 7, "status": "converged", "n_support": 3, "seconds": SECONDS},
        **changes,
    }


# ---------------------------------------------------------------- a run


def test_every_model_has_a_name_and_parts():
    assert {*words.MODELS} == {*MODELS}
    assert {*words.PARTS} == {*MODELS}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, f"C-SVM, linear · 12{THIN}345 rows · 3 features · 2 classes"),
        (
            {"model": "lpsvm", "kernel": "rbf", "n_classes": 10},
            f"LP-SVM, RBF kernel · 12{THIN}345 rows · 3 features · 10 classes",
        ),
        (
            {"model": "lssvm", "kernel": "poly"},
            f"LS-SVM, polynomial kernel · 12{THIN}345 rows · 3 features · 2 classes",
        ),
        (
            {"model": "other", "kernel": "precomputed", "n_classes": None, "classes": [1, 2, 3]},
            f"other, precomputed kernel · 12{THIN}345 rows · 3 features · 3 classes",
        ),
    ],
)
def test_the_subtitle_names_machine_and_data(changes, said):
    assert words.subtitle(run(**changes)) == said


@pytest.mark.parametrize(
    ("gap", "problems", "approx", "said"),
    [
        (
            8.4e-4,
            1,
            False,
            "No machine of this kind can have an objective more than 0.084 % lower than this one.",
        ),
        (
            8.41e-4,
            1,
            False,
            "No machine of this kind can have an objective more than 0.085 % lower than this one.",
        ),
        (
            8.4e-4,
            2,
            False,
            "In each of the 2 sub-problems, no machine of this kind can have an objective more "
            "than 0.084 % lower than the one found.",
        ),
        (
            0.5,
            1,
            True,
            "No machine of this kind over these landmarks can have an objective more than 50 % "
            "lower than this one.",
        ),
        (0.0, 1, False, "No machine of this kind can have a lower objective, but for rounding."),
        (
            0.999,
            1,
            False,
            "No machine of this kind can have an objective more than 100 % lower than this one.",
        ),
        *(
            (
                gap,
                1,
                False,
                "Nothing is proved yet: training ended before a useful lower bound was found.",
            )
            for gap in (1.0, 1.5, math.inf, math.nan)
        ),
    ],
)
def test_the_certificate_is_a_sentence(gap, problems, approx, said):
    facts = run(gap=gap, **({"approx": {"landmarks": 9}} if approx else {}))
    found_ = words.certificate(facts, 1e-3, problems)
    assert found_["sentence"].replace(HARD, " ") == said
    assert found_["certified"] is True


@pytest.mark.parametrize(
    ("model", "parts"),
    [
        ("csvm", "half the squared length of the weights and C times the hinge loss of every row"),
        ("lpsvm", "the sum of the weights' sizes and C times the hinge loss of every row"),
        (
            "lssvm",
            "half the squared length of the weights and C times the squared loss of every row",
        ),
    ],
)
def test_more_is_said_of_tolerance_and_objective(model, parts):
    more = words.certificate(run(model=model), 1e-3, 1)["more"].replace(HARD, " ")
    what = f"The objective is what training minimises: {parts}."
    assert more == f"The tolerance was 0.1 %. {what}"
    for status, end in {
        "epsilon": "ended by the paper's rule, a change below ε",
        "stalled": "ended where rounding leaves nothing more to gain",
        "iteration_limit": "ended at the limit of rounds",
        "time_limit": "ended at the time limit",
        "interrupted": "interrupted; the best found was kept",
    }.items():
        stopped = words.certificate(run(model=model, certified=False, status=status), 0.02, 1)
        assert stopped["more"].replace(HARD, " ") == (
            f"The tolerance was 2 %, which was not reached: {end}. {what}"
        )
        assert stopped["certified"] is False


def test_tiles_of_a_run():
    assert words.training_tiles(run(n_support=12345, gap=8.41e-4), "97.5 %") == [
        [f"0.085{HARD}%", "certified gap"],  # no more than this
        ["97.5 %", "training rows right"],
        [f"12{THIN}345", "support vectors"],
        [f"2{HARD}s", "to train"],
    ]


def test_facts_of_a_run():
    made = machine([[2.0], [0.0], [-3.0]], [found([0, 1])])
    assert words.training_facts(made, run()) == [
        ["model", "C-SVM"],
        ["kernel", "linear"],
        ["C", "2"],
        ["bias", "free"],
        ["rows", f"12{THIN}345"],
        ["features", "3"],
        ["classes", "2"],
        ["solver", "newton"],
        ["why this one", "few features"],
        ["rounds", "7"],
        ["end", "ended at the tolerance"],
        ["objective", "4.1234568"],
        ["lower bound", "4.12"],
        ["gap", "0.00084"],
        ["tolerance", "0.001"],
        ["support vectors", "3"],
        ["weights not zero", "2 of 3"],
        ["time to read", f"0.5{HARD}s"],
        ["time to train", f"2{HARD}s"],
        ["time to write", f"0.25{HARD}s"],
        ["time in all", f"2.75{HARD}s"],
    ]


@pytest.mark.parametrize(
    ("how", "said"), [("ovr", "3, one against the rest"), ("ovo", "3, one against one")]
)
def test_facts_of_several_sub_problems_are_sums(how, said):
    certificates = [problem([k]) for k in (5, 7, 9)]
    made = machine(
        np.ones((2, 3)),
        None,
        certificates,
        classes=(5, 7, 9),
        multiclass=how,
        extra={"bias": False},
    )
    facts = dict(words.training_facts(made, run(why="", gap=0.012345)))
    assert facts["sub-problems"] == said
    assert facts["bias"] == "none"
    assert facts["why this one"] == "–"
    assert facts["objective, sum"] == "4.1234568"
    assert facts["lower bound, sum"] == "4.12"
    assert facts["gap, the largest"] == "0.0123"
    assert list(facts)[7:9] == ["sub-problems", "solver"]


def test_two_sub_problems_are_several():
    certificates = [problem([k]) for k in (5, 7)]
    made = machine(np.ones((2, 3)), None, certificates, classes=(5, 7, 9))
    assert ["sub-problems", "2, one against the rest"] in words.training_facts(made, run())


def kernel_machine(**record):
    """A machine with one support vector."""
    from scipy.sparse import csr_matrix

    extra = {"tol": 1e-3, "bias": True, "problems": [problem()]}
    return Machine(
        ModelRecord(
            *(np.array([1.0, -1.0]), 2, np.zeros(1)),
            support=csr_matrix([[1.0, 2.0]]),
            coefs=np.ones((1, 1)),
            extra=extra,
            **record,
        )
    )


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"kernel": "rbf", "gamma": 0.5}, "RBF, γ = 0.5"),
        (
            {"kernel": "poly", "gamma": 0.25, "coef0": 1.5, "degree": 2},
            "polynomial, degree 2, γ = 0.25, coef0 = 1.5",
        ),
    ],
)
def test_facts_name_the_kernel_and_the_landmarks(record, said):
    facts = words.training_facts(
        kernel_machine(**record), run(approx={"landmarks": 20000}, seconds={"total": None})
    )
    assert facts[1] == ["kernel", said]
    assert facts[7] == ["approximation", f"Nyström, 20{THIN}000 landmarks"]
    assert facts[-1] == ["support vectors", "3"]


# ---------------------------------------------------------------- a path


def cell(C, gamma=None, accuracy=(0.5, 0.75), **changes):
    return {
        **{"C": C, "gamma": gamma, "scores": {"f1": [0.25, 0.5], "accuracy": list(accuracy)}},
        **{"seconds": [1.0, 3.0], "gaps": [1e-4, 2e-4], "certified": [True, True]},
        **{"n_support": [3, 4], "n_nonzero": [2, 2]},
        **changes,
    }


def path(cells=None, **changes):
    cells = [cell(1.0), cell(0.1, accuracy=(0.25, 0.5))] if cells is None else cells
    best = {"C": 1.0, "gamma": None, "mean": 0.625, "std_error": 0.125}
    return {
        **{"model": "csvm", "kernel": "linear", "solver": "auto", "bias": True},
        **{"n_samples": 12345, "n_features": 3, "classes": [1.0, -1.0], "tol": 1e-3},
        **{"folds": 2, "repeats": 1, "seed": 5, "scoring": "accuracy", "costs": [1.0, 0.1]},
        **{"gammas": [None], "cells": cells, "best": best, "chosen": "best"},
        **{"one_se": best | {"C": 0.1, "mean": 0.375, "std_error": None}, "status": "converged"},
        **{"refit": None, "test": None, "seconds": {"read": None, "fits": 8.0, "total": 75.0}},
        **changes,
    }


def charts(document):
    return {c["id"]: c for s in document["sections"] for c in s["charts"]}


def test_a_path_whose_fits_are_all_proved_says_how_well():
    assert words.path_certificate(path()) == {
        "sentence": f"Every one of the 4 fits is proved to be within 0.02{HARD}% of the best "
        "objective it could have.",
        "more": "No score below is the work of a fit that was ended too early.",
        "certified": True,
    }


def test_the_largest_gap_of_a_path_is_rounded_up():
    said = words.path_certificate(path([cell(1.0, gaps=[1e-4, 8.41e-4])]))["sentence"]
    assert f" within 0.085{HARD}% of " in said


def test_a_path_with_fits_that_were_ended_counts_those_that_were_not():
    cells = [cell(1.0, certified=[True, False]), cell(2.0, certified=[None, True])]
    cells[1]["gaps"] = [None, 1e-4]
    assert words.path_certificate(path(cells)) == {
        "sentence": f"2 of 3 fits are proved to be within 0.1{HARD}% of the best objective they "
        "could have; the others were ended before.",
        "more": "Scores of fits that were ended early may be lower than they need be.",
        "certified": False,
    }
    none = words.path_certificate(path([cell(1.0, certified=[None], gaps=[None])]))
    assert none["sentence"].startswith("0 of 0 fits")
    assert none["certified"] is False


def test_tiles_of_a_path():
    assert words.path_tiles(path()) == [
        ["1", "C chosen"],
        [f"62.50{HARD}%", "accuracy in cross-validation"],
        [f"62.50{HARD}%", "best of all"],
        [f"1{HARD}min 15{HARD}s", "in all"],
    ]
    chosen = {"C": 0.1, "gamma": 0.5, "mean": 0.375}
    other = path(
        chosen="one_se", one_se=chosen, test={"accuracy": 0.5, "n_samples": 8}, seconds=None
    )
    assert words.path_tiles({**other, "scoring": "balanced_accuracy"}) == [
        ["0.1, γ = 0.5", "C and γ chosen"],
        [f"37.50{HARD}%", "balanced accuracy in cross-validation"],
        [f"50.00{HARD}%", "of the test file right"],
        ["–", "in all"],
    ]
    assert words.path_tiles(path(chosen=None))[0] == ["1", "C chosen"]


def test_facts_of_a_path():
    assert words.path_facts(path()) == [
        ["model", "C-SVM"],
        ["kernel", "linear"],
        ["solver", "auto"],
        ["bias", "free"],
        ["rows", f"12{THIN}345"],
        ["features", "3"],
        ["classes", "2"],
        ["costs", "2, 0.1 to 1"],
        ["folds", "2, seed 5"],
        ["fits", "4"],
        ["tolerance", "0.001"],
        ["scored by", "accuracy"],
        ["best", f"C = 1: 62.50{HARD}% ± 12.50{HARD}%"],
        ["simplest within one standard error", f"C = 0.1: 37.50{HARD}%"],
        ["chosen", "the best"],
        ["end", "ended at the tolerance"],
        ["time of all fits", f"8{HARD}s"],
        ["time in all", f"1{HARD}min 15{HARD}s"],
    ]


def test_more_facts_of_a_path():
    facts = path(
        model="other",
        bias=False,
        repeats=2,
        gammas=[0.5],
        chosen="one_se",
        one_se=None,
        status="odd",
        scoring="auc",
        best={"C": 1.0, "gamma": 0.5, "mean": math.nan, "std_error": math.inf},
        refit={"gap": 0.00123456, "n_support": 12345},
        test={"accuracy": 2 / 3, "n_samples": 30000},
        seconds=None,
    )
    rows = words.path_facts(facts)
    assert rows[8] == ["γ", "0.5"]
    assert [r for r in rows if r[0] in ("model", "bias", "folds", "scored by", "best")] == [
        ["model", "other"],
        ["bias", "none"],
        ["folds", "2, 2 times over, seed 5"],
        ["scored by", "area under the ROC curve"],
        ["best", "C = 1, γ = 0.5: –"],
    ]
    assert rows[-5:] == [
        ["simplest within one standard error", "–"],
        ["chosen", "the simplest within one error"],
        ["end", "odd"],
        ["trained on all rows", f"gap 0.00123, 12{THIN}345 support vectors"],
        ["test file", f"30{THIN}000 rows, 66.67{HARD}% right"],
    ]
    assert words.path_facts(path(gammas=[0.5, 0.125, 2.0]))[8] == ["γ", "3, 0.125 to 2"]


def test_names_of_scores():
    shown = [words.score_name(k) for k in ("accuracy", "balanced_accuracy", "f1", "auc")]
    assert shown == ["accuracy", "balanced accuracy", "F1", "area under the ROC curve"]
    assert [words.percent_of(v) for v in (None, math.nan, 0.12345)] == ["–", "–", f"12.35{HARD}%"]


# ---------------------------------------------------------------- charts of a path

COST = [{"key": "C", "label": "C", "log": True}]


def test_a_document_of_a_path():
    document = path_document(path(), "a9a")
    assert {k: v for k, v in document.items() if k not in ("sections", "facts", "tiles")} == {
        "kind": "path",
        "title": "a9a",
        "subtitle": f"C-SVM, linear · 12{THIN}345 rows · 3 features · 2 classes",
        "program": "nesvm-jit",
        "certificate": words.path_certificate(path()),
    }
    assert document["tiles"] == words.path_tiles(path())
    assert document["facts"] == words.path_facts(path())
    costs, others = document["sections"]
    assert (costs["title"], others["title"]) == ("Every cost", "Other scores")
    assert [c["id"] for c in costs["charts"]] == ["scores-accuracy", "seconds", "sizes", "gaps"]
    assert [c["id"] for c in others["charts"]] == ["scores-f1"]


def test_scores_of_a_path_are_means_with_their_errors():
    found_ = charts(path_document(path(), "a9a"))
    line = {"columns": {"C": [0.1, 1]}, "errors": [0.125, 0.125], "dots": True}
    assert found_["scores-accuracy"] == {
        "kind": "lines",
        "id": "scores-accuracy",
        "title": "Accuracy against C",
        "note": "Mean over the folds; bars are its standard error.",
        "axes": COST,
        "y": {"label": "accuracy", "log": False},
        "series": [{"name": "accuracy", "y": [0.375, 0.625], **line}],
        "marks": [
            {"series": 0, "index": 1, "label": "best"},
            {"series": 0, "index": 0, "label": "one standard error"},
        ],
    }
    assert found_["scores-f1"] == {
        "kind": "lines",
        "id": "scores-f1",
        "title": "F1 against C",
        "note": "Mean over the folds; bars are its standard error.",
        "axes": COST,
        "y": {"label": "F1", "log": False},
        "series": [{"name": "F1", "y": [0.375, 0.375], **line}],
        "marks": [],
    }


def test_folds_without_a_score_are_left_out_of_the_mean():
    cells = [
        cell(1.0, accuracy=[0.1, None, 0.2, math.nan, 0.6]),
        cell(2.0, accuracy=[None, None]),
        cell(4.0, accuracy=[0.7, None]),
    ]
    best = {"C": 2.0, "gamma": None, "mean": 0.3, "std_error": None}
    accuracy = charts(path_document(path(cells, best=best, one_se=None), "a9a"))["scores-accuracy"]
    (line,) = accuracy["series"]
    assert line["y"] == [0.3, None, 0.7]
    assert line["errors"] == [
        float(f"{np.std([0.1, 0.2, 0.6], ddof=1) / math.sqrt(3):.3g}"),
        None,
        None,
    ]
    assert accuracy["marks"] == []


def test_a_score_that_no_fold_has_is_not_offered():
    cells = [cell(1.0), cell(0.1)]
    for c in cells:
        c["scores"] |= {"auc": None, "f1": [None, None]}
    document = path_document(path(cells), "a9a")
    assert score_charts(document) == ["scores-accuracy"]
    assert [s["title"] for s in document["sections"]] == ["Every cost"]


def score_charts(document):
    return [name for name in charts(document) if name.startswith("scores-")]


def test_the_score_chosen_by_comes_first():
    document = path_document(path(scoring="f1"), "a9a")
    assert score_charts(document) == ["scores-f1", "scores-accuracy"]
    assert [len(charts(document)[name]["marks"]) for name in score_charts(document)] == [2, 0]
    cells = [cell(1.0) | {"scores": {"zeta": [1.0], "accuracy": [1.0], "alpha": [1.0]}}]
    document = path_document(path(cells), "a9a")
    assert score_charts(document) == ["scores-accuracy", "scores-zeta", "scores-alpha"]


def test_the_score_chosen_by_is_drawn_even_if_no_fold_has_it():
    cells = [cell(1.0, accuracy=[None, None])]
    chart = charts(path_document(path(cells), "a9a"))["scores-accuracy"]
    assert chart["series"][0]["y"] == [None]
    assert chart["marks"] == []


def test_every_gamma_has_a_line_and_marks_name_theirs():
    cells = [cell(C, g, accuracy=[C + g]) for g in (0.5, 2.0) for C in (0.1, 0.01)]
    same = {"C": 0.01, "gamma": 2.0, "mean": 2.01, "std_error": None}
    facts = path(cells, gammas=[0.5, 2.0, 9.0], best=same, one_se=same)
    found_ = charts(path_document(facts, "a9a"))
    accuracy = found_["scores-accuracy"]
    assert [(s["name"], s["y"]) for s in accuracy["series"]] == [
        ("γ = 0.5", [0.51, 0.6]),
        ("γ = 2", [2.01, 2.1]),
    ]
    assert "errors" not in accuracy["series"][0]
    assert accuracy["marks"] == [
        {"series": 1, "index": 0, "label": "best and one standard error"},
    ]
    for name in ("seconds", "gaps"):
        assert [s["name"] for s in found_[name]["series"]] == ["γ = 0.5", "γ = 2"]
    assert [s["name"] for s in found_["sizes"]["series"]] == [
        *("support vectors, γ = 0.5", "support vectors, γ = 2"),
        *("weights not zero, γ = 0.5", "weights not zero, γ = 2"),
    ]


def test_seconds_of_a_path_are_medians():
    cells = [cell(1.0, seconds=[1.0, 9.0, 2.0]), cell(2.0, seconds=[None, None, math.inf])]
    assert charts(path_document(path(cells), "a9a"))["seconds"] == {
        "kind": "lines",
        "id": "seconds",
        "title": "Time against C",
        "note": "Seconds of a fit, the median over the folds.",
        "axes": COST,
        "y": {"label": "seconds", "log": True},
        "series": [
            {"name": "seconds", "columns": {"C": [1, 2]}, "y": [2, None], "dots": True},
        ],
    }


def test_sizes_of_a_path_are_those_that_are_known():
    cells = [cell(1.0, n_support=[3, 5], n_nonzero=None)]
    assert charts(path_document(path(cells), "a9a"))["sizes"] == {
        "kind": "lines",
        "id": "sizes",
        "title": "Size of the machine against C",
        "note": "Mean over the folds.",
        "axes": COST,
        "y": {"label": "number", "log": False},
        "series": [
            {
                **{"name": "support vectors", "columns": {"C": [1]}, "y": [4]},
                **{"dots": True, "errors": [1]},
            }
        ],
    }
    cells = [cell(1.0, n_support=[3, 5], n_nonzero=None), cell(2.0, n_support=None, n_nonzero=None)]
    (line,) = charts(path_document(path(cells), "a9a"))["sizes"]["series"]
    assert line["y"] == [4, None]
    cells = [cell(1.0, n_support=None, n_nonzero=[None])]
    assert "sizes" not in charts(path_document(path(cells), "a9a"))


def test_every_gap_of_a_path_is_a_dot():
    cells = [cell(2.0, gaps=[0.123456, 0.0, None]), cell(1.0, gaps=[1e-18])]
    chart = charts(path_document(path(cells), "a9a"))["gaps"]
    assert chart == {
        "kind": "lines",
        "id": "gaps",
        "title": "Certified gap of every fit",
        "note": "A dot for every fold. Below the tolerance nothing is left to gain by training on.",
        "axes": COST,
        "y": {"label": "relative gap", "log": True},
        "series": [
            {
                "name": "fits",
                "columns": {"C": [1, 2, 2]},
                "y": [1e-17, 0.1235, 1e-17],
                "dots": "only",
            }
        ],
        "levels": [{"value": 0.001, "label": "tolerance 0.001"}],
    }
    assert charts(path_document(path(cells, tol=0.0), "a9a"))["gaps"]["levels"] == []


@pytest.mark.parametrize("n", [2000, 2001])
def test_of_very_many_gaps_some_are_drawn(n):
    cells = [cell(1.0, gaps=[1e-4] + [1e-5] * (n - 2) + [1e-6])]
    (fits,) = charts(path_document(path(cells), "a9a"))["gaps"]["series"]
    assert len(fits["y"]) == len(fits["columns"]["C"]) == 2000
    assert (fits["y"][0], fits["y"][-1]) == (1e-4, 1e-6)


# ---------------------------------------------------------------- files


def test_a_page_has_the_words_of_its_document_in_their_places():
    document = path_document(path(), "a <b> & c")
    text = page(document)
    assert "<title>a &lt;b&gt; &amp; c" in text
    assert "Path over costs" in text
    assert "Training run" not in text
    assert "Every one of the 4 fits" in text
    for value, name in document["tiles"]:
        assert f'<div class="tile"><dt>{name}</dt><dd>{value}</dd></div>' in text
    for name, value in document["facts"]:
        assert f'<div class="fact"><dt>{name}</dt><dd>{value}</dd></div>' in text
    assert re.findall("<h2>(.*?)</h2>", text) == ["Every cost", "Other scores"]
    assert re.findall('<article class="card (.*?)" id="(.*?)"><h3>(.*?)</h3>', text) == [
        ("lines", "chart-scores-accuracy", "Accuracy against C"),
        ("lines", "chart-seconds", "Time against C"),
        ("lines", "chart-sizes", "Size of the machine against C"),
        ("lines", "chart-gaps", "Certified gap of every fit"),
        ("lines", "chart-scores-f1", "F1 against C"),
    ]
    assert re.findall('<p class="note">(.*?)</p>', text)[1] == (
        "Seconds of a fit, the median over the folds."
    )
    assert len(re.findall("<svg ", text)) == len(re.findall("<summary>Table</summary>", text)) == 5
    assert re.findall('<svg .*?aria-label="(.*?)"', text)[4] == "F1 against C"


def test_a_card_has_a_note_and_a_table_where_there_is_one():
    document = path_document(path(), "a9a")
    costs, _ = document["sections"]
    del costs["charts"][2:]
    costs["charts"][0] |= {"note": "", "table": False}
    table = {"kind": "table", "id": "t", "title": "<T>", "note": "how", "head": ["a", "<b>"]}
    costs["charts"][1] = table | {"rows": [["1", "<2>"], ["3", "4"]]}
    text = page(document | {"sections": [costs]})
    assert 'id="chart-scores-accuracy"><h3>Accuracy against C</h3>\n<div class="plot"><svg' in text
    assert "<details>" not in text
    assert text.count("<svg ") == 1
    assert (
        '<article class="card table" id="chart-t"><h3>&lt;T&gt;</h3>\n<p class="note">how</p>\n'
        '<div class="data" tabindex="0" role="region" aria-label="&lt;T&gt;: table"><table>'
        '<thead><tr><th scope="col">a</th><th scope="col">&lt;b&gt;</th></tr></thead>\n'
        '<tbody><tr><th scope="row">1</th><td>&lt;2&gt;</td></tr>\n'
        '<tr><th scope="row">3</th><td>4</td></tr></tbody></table></div></article>'
    ) in text


def test_a_page_has_the_colours_of_both_themes():
    text = page(path_document(path(), "a9a"))
    light, dark = (palette.css_variables(theme) for theme in ("light", "dark"))
    assert f":root {{ {light} }}" in text
    assert f"@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}" in text
    assert light.startswith("--page: #f6f6f3; --card: #ffffff; ")
    assert dark.startswith("--page: #121518; --card: #1b1f24; ")
    assert len(palette.NAMES) == len(palette.PALETTE)


def test_the_seal_says_whether_all_is_proved():
    document = path_document(path(), "a9a") | {"kind": "train", "program": "nesvm-jit <9>"}
    proved = page(document)
    opened = page(document | {"certificate": {**document["certificate"], "certified": False}})
    assert '<p class="kind">Training run</p>' in proved
    assert "Made by nesvm-jit &lt;9&gt;." in proved
    for text, state, seal in ((proved, "proved", "✓"), (opened, "open", "!")):
        assert f'<section class="certificate {state}"' in text
        assert f'<span class="seal" aria-hidden="true">{seal}</span>' in text


def test_the_file_is_the_page(tmp_path):
    document = path_document(path(), "a9a")
    write_html(document, tmp_path / "a.html")
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == page(document)


def test_pages_do_not_depend_on_the_encoding_of_the_locale():
    document = path_document(path(), "a9a")
    program = (
        "import json, sys; from nesvm_jit.pages.html import page; "
        "sys.stdout.buffer.write(page(json.load(sys.stdin.buffer)).encode())"
    )
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    run_ = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **ascii_only},
        input=json.dumps(document).encode(),
        capture_output=True,
        check=True,
    )
    assert run_.stdout.decode() == page(document)


def test_a_trace_has_a_line_for_every_round_of_every_problem(tmp_path):
    parts = [
        found([1.0], objective=[3.0, 0.1], mu=[np.nan, 2.0], gap=[np.inf, 1e-300]),
        found([1.0], objective=[5.0], dual=[1 / 3]),
    ]
    write_trace(machine([[1.0]], parts), tmp_path / "trace.csv")
    assert (tmp_path / "trace.csv").read_text() == (
        "problem,round,mu,smoothed,objective,dual,gap,seconds,passes\n"
        "0,1.0,nan,nan,3.0,1.0,inf,1.0,1.0\n"
        "0,2.0,2.0,nan,0.1,2.0,1e-300,2.0,2.0\n"
        "1,1.0,nan,nan,5.0,0.3333333333333333,1.0,1.0,1.0\n"
    )
    with pytest.raises(InputError) as e:
        write_trace(machine([[1.0]], None), tmp_path / "none.csv")
    assert str(e.value) == "a trace needs a machine trained with keep_solutions=True"


def test_facts_of_a_run_are_those_of_the_report():
    made = machine([[2.0], [0.0], [-3.0]], [found([0, 1])])
    facts = dict(words.training_facts(made, report.training(made, "auto", SECONDS)))
    assert (facts["solver"], facts["C"], facts["gap"]) == ("newton", "2", "0.25")
