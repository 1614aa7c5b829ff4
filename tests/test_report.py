"""What the command line tells about runs, models and matrices: every fact and every line."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from nesvm_jit.cli import words
from nesvm_jit.endings import Outcome
from nesvm_jit.files.model.record import ModelRecord
from nesvm_jit.machine import facts as report
from nesvm_jit.machine.machine import Machine
from scipy.sparse import csr_matrix

from .made_up import SECONDS, machine, problem

# ---------------------------------------------------------------- scaling


def hints(X):
    uneven = report.uneven_features(X)
    return [] if uneven is None else [words.scaling_hint(*uneven)]


def hint(low, high):
    return [
        f"hint: features reach from {low} to {high}; scaled to [0, 1] or [-1, 1] they usually "
        "train faster and predict better"
    ]


@pytest.mark.parametrize("form", [np.asarray, csr_matrix])
@pytest.mark.parametrize(
    ("X", "expected"),
    [
        ([[1.0, -50.0], [0.5, 3.0]], []),
        ([[1.0, -50.5], [0.5, 3.0]], hint("1", "50.5")),
        ([[0.01, 10.0]], []),
        ([[0.01, 10.25]], hint("0.01", "10.2")),
        ([[0.0, 10.0], [0.0, 0.0]], []),
        ([[0.0, 75.0], [0.0, 0.0]], hint("75", "75")),
        ([[0.0, 0.0]], []),
        ([[1e-6, 2e-3]], hint("1e-06", "0.002")),
    ],
)
def test_features_that_are_large_or_uneven_are_hinted_at(form, X, expected):
    assert hints(form(np.array(X))) == expected


@pytest.mark.parametrize("form", [np.asarray, csr_matrix])
def test_data_without_cells_have_no_hint(form):
    assert hints(form(np.zeros((0, 3)))) == []
    assert hints(form(np.zeros((2, 0)))) == []


def test_only_the_first_million_cells_are_looked_at():
    cells = 1 << 20
    row = np.ones((1, cells + 1))
    row[0, cells] = 99.0
    assert hints(csr_matrix(row)) == []
    row[0, cells - 1] = 99.0
    assert hints(csr_matrix(row)) == hint("1", "99")
    wide = np.ones((3, cells // 2))
    wide[2, 0] = 99.0
    assert hints(wide) == []
    wide[1, 0] = 99.0
    assert hints(wide) == hint("1", "99")
    row = np.ones((2, cells + 1))
    row[1] = 99.0
    assert hints(row) == []


# ---------------------------------------------------------------- matrices


@pytest.mark.parametrize(
    ("labels", "classes", "rarest"), [([3.0, 1.0, 3.0, 1.0, 3.0], 2, 2), ([], 0, 7)]
)
def test_facts_of_a_matrix(labels, classes, rarest):
    found = SimpleNamespace(
        labels=np.array(labels),
        n_rows=7,
        n_cols=4,
        n_cells=11,
        nbytes=123,
        dtype=np.dtype("float32"),
    )
    assert report.matrix(found) == {
        **{"n_samples": 7, "n_features": 4, "n_cells": 11, "dtype": "float32", "bytes": 123},
        **{"n_classes": classes, "rarest": rarest, "verified": True},
    }


# ---------------------------------------------------------------- training


def test_facts_of_a_run_with_one_problem():
    made = machine([[1.0], [2.0]], None, [problem(certified=True)])
    times = {"solve": 1.23456789, "total": 2.0}
    assert report.training(made, "auto", times) == {
        "model": "csvm",
        "kernel": "linear",
        "solver": "newton",
        "why": "few features",
        "n_samples": 4,
        "n_features": 2,
        "n_classes": 2,
        "C": 2.0,
        "objective": 4.0,
        "dual_objective": 3.0,
        "gap": 0.25,
        "certified": True,
        "iterations": 7,
        "status": "converged",
        "n_support": 3,
        "seconds": {"solve": 1.234568, "total": 2.0},
    }
    assert report.training(made, "coordinate", times)["solver"] == "coordinate"


def three(**changes):
    certificates = [
        problem([5], objective=1.0, gap=0.5, certified=True, status="iteration_limit"),
        problem([7], dual_objective=2.0, iterations=10, status="time_limit", certified=False),
        problem([9], gap=1e-4, certified=True, n_support=8, **changes),
    ]
    return machine(np.ones((2, 3)), None, certificates, classes=(5, 7, 9))


def test_facts_of_several_problems_are_sums_and_the_worst():
    facts = report.training(three(), "auto", SECONDS)
    assert (facts["objective"], facts["dual_objective"]) == (9.0, 8.0)
    assert (facts["iterations"], facts["gap"]) == (24, 0.5)
    assert facts["certified"] is False
    assert facts["status"] == "time_limit"
    assert facts["multiclass"] == "ovr"
    assert facts["problems"] == three().problems
    assert facts["n_classes"] == 3


def test_two_problems_are_several():
    made = machine(np.ones((2, 3)), None, [problem([5]), problem([7])], classes=(5, 7, 9))
    facts = report.training(made, "auto", {})
    assert len(facts["problems"]) == 2
    assert len(list(words.training_lines(facts))) == 6


def test_facts_of_landmarks_are_handed_on():
    made = machine([[1.0]], None, extra={"approx": {"landmarks": 9}})
    assert report.training(made, "auto", {})["approx"] == {"landmarks": 9}


def test_lines_of_a_run():
    made = machine([[1.0]], None)
    facts = report.training(made, "auto", {})
    assert list(words.training_lines(facts)) == [
        "optimization finished, #iter = 7",
        "Objective value = 4.000000",
        "nSV = 3",
        "Certified gap = 2.500e-01",
    ]
    made = machine([[1.0]], None, extra={"approx": {"landmarks": 9}})
    lines = list(words.training_lines(report.training(made, "auto", {})))
    assert lines[3] == "Approximation = nystroem, 9 landmarks; the gap is of that problem"
    assert len(lines) == 5


def test_lines_of_several_problems():
    made = three()
    made.problems[2]["classes"] = [5, 9]
    lines = list(words.training_lines(report.training(made, "auto", {})))
    assert lines[:3] == [
        "class 5 against the rest: #iter = 7, objective = 1.000000, nSV = 3, gap = 5.00e-01",
        "class 7 against the rest: #iter = 10, objective = 4.000000, nSV = 3, gap = 2.50e-01",
        "class 5 against 9: #iter = 7, objective = 4.000000, nSV = 8, gap = 1.00e-04",
    ]
    assert lines[3] == "optimization finished, #iter = 24"


@pytest.mark.parametrize(
    ("status", "why"),
    [
        ("interrupted", "it was interrupted, and what it found was kept; let it run on"),
        ("time_limit", "the time limit was reached; raise --time-limit or --tol"),
        ("iteration_limit", "the limit of iterations was reached; raise --max-iter or --tol"),
        (
            "stalled",
            "rounding leaves nothing more to gain; scale the features, lower --cost or raise --tol",
        ),
        (
            "epsilon",
            "the paper's rule, a change below --epsilon, ended it; lower --epsilon and --mu or "
            "--mu-end, or choose the --solver auto",
        ),
    ],
)
def test_a_run_that_is_not_certified_warns(status, why):
    assert list(words.uncertified_lines([Outcome(status, 0.0123)], 1e-3)) == [
        f"warning: the tolerance 0.001 is not certified (gap 1.23e-02): {why}"
    ]
    assert list(words.uncertified_lines([Outcome("converged", 0.0)], 1e-3)) == []


def test_facts_of_a_cross_validation():
    found = SimpleNamespace(
        accuracies=[0.5, 0.75], accuracy=0.625, gaps=[1e-4, 1e-3], status="converged"
    )
    settings = {"model": "csvm", "kernel": "rbf", "C": 3.0, "seed": 5, "other": 1}
    times = {"read": 0.12345678}
    assert report.cross_validation(found, np.zeros((6, 4)), settings, times) == {
        **{"model": "csvm", "kernel": "rbf", "n_samples": 6, "n_features": 4, "C": 3.0},
        **{"folds": 2, "seed": 5, "accuracy": 0.625, "accuracies": [0.5, 0.75], "gap": 1e-3},
        **{"status": "converged", "seconds": {"read": 0.123457}},
    }


# ---------------------------------------------------------------- models


def kernel_machine(kernel, **record):
    return Machine(
        ModelRecord(
            *(np.array([1.0, -1.0]), 2, np.array([0.5])),
            kernel=kernel,
            gamma=0.25,
            coef0=1.5,
            degree=2,
            support=csr_matrix([[1.0, 2.0], [3.0, 4.0]]),
            coefs=np.ones((2, 1)),
            sv_class=np.array([0, 1]),
            **record,
        )
    )


def test_facts_of_a_linear_model():
    made = machine([[1.0], [0.0], [2.0]], None, bias=[0.5])
    assert report.model(made) == {
        "format": "LIBLINEAR",
        "model": "csvm",
        "kernel": "linear",
        "n_features": 3,
        "n_classes": 2,
        "classes": [1.0, -1.0],
        "multiclass": None,
        "probability": False,
        "n_support": 3,
        "bias": [0.5],
        "nonzero_weights": 2,
        "program": "nesvm-jit 9",
        "tol": 1e-3,
        "C": 2.0,
        "n_samples": 4,
        "problems": [problem()],
        "gap": 0.25,
    }
    assert report.model(three())["multiclass"] == "ovr"


@pytest.mark.parametrize(
    ("kernel", "more"),
    [
        ("rbf", {"gamma": 0.25}),
        ("poly", {"gamma": 0.25, "coef0": 1.5, "degree": 2}),
        ("sigmoid", {"gamma": 0.25, "coef0": 1.5}),
        ("linear", {}),
    ],
)
def test_facts_of_a_kernel_model(kernel, more):
    made = kernel_machine(kernel, probability=(np.ones(1), np.zeros(1)))
    assert report.model(made) == {
        **{"format": "LIBSVM", "model": "csvm", "kernel": kernel, "n_features": 2},
        **{"n_classes": 2, "classes": [1.0, -1.0], "multiclass": None, "probability": True},
        **{"n_support": 2, "bias": [0.5], **more},
    }


def test_lines_of_a_model_of_another_program():
    assert list(words.model_lines(report.model(kernel_machine("rbf")))) == [
        "format           LIBSVM",
        "model            csvm",
        "kernel           rbf",
        "n features       2",
        "n classes        2",
        "classes          1 -1",
        "probability      no",
        "n support        2",
        "bias             0.5",
        "gamma            0.25",
        "certificate      none: the model was not trained by this program",
    ]


def test_lines_of_a_model_end_with_its_certificate():
    made = machine(
        [[1.0]], None, [problem(objective=4.123456789012)], extra={"n_support": 0, "tol": True}
    )
    lines = list(words.model_lines(report.model(made)))
    assert "n support" not in " ".join(lines)
    assert "tol              yes" in lines
    assert lines[-2:] == [
        "certified gap    2.500e-01",
        "  class 1 against -1: objective 4.12345679, at least 3, gap 2.50e-01, "
        "7 iterations of newton, converged",
    ]
    ends = [line.partition(":")[0] for line in words.model_lines(report.model(three()))][-3:]
    assert ends == [f"  class {k} against the rest" for k in (5, 7, 9)]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (True, "yes"),
        (False, "no"),
        (3, "3"),
        (10**20, "100000000000000000000"),
        (3.0, "3"),
        (-2.0, "-2"),
        (0.1234567891, "0.123456789"),
        (123456789012.0, "123456789012"),
        (999999999999999.0, "999999999999999"),
        (1e15, "1e+15"),
        (-1e15, "-1e+15"),
        (1.5e15, "1.5e+15"),
        (math.inf, "inf"),
        (math.nan, "nan"),
        ([1, 2.5, -3.0], "1 2.5 -3"),
        (list(range(20)), " ".join(map(str, range(20)))),
        (list(range(21)), " ".join(map(str, range(20))) + " ... (21)"),
        ([], ""),
        ([True], "[true]"),
        ([1, "x"], '[1, "x"]'),
        ("plain text", "plain text"),
        ("é", '"\\u00e9"'),
        ("a\n", '"a\\n"'),
        ({"a": 1}, '{"a": 1}'),
        (None, None),
        (["y" * 196], '["' + "y" * 196 + '"]'),
        (["y" * 197], '["' + "y" * 195 + "..."),
    ],
)
def test_every_fact_of_a_model_fits_into_a_line(value, shown):
    lines = list(words.model_lines(report.model(machine([[1.0]], None, extra={"fact": value}))))
    expected = [] if shown is None else [f"fact             {shown}"]
    assert [line for line in lines if line.startswith("fact ")] == expected


def test_names_of_facts_that_are_not_plain_are_shown_as_json():
    lines = list(words.model_lines(report.model(machine([[1.0]], None, extra={"a_b\n": 1}))))
    assert r'"a b\n"'.ljust(16) + " 1" in lines
