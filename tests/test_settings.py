"""What may be asked of a fit, and what a row costs: defaults, boundaries, whole messages."""

import dataclasses
import re
import sys

import numpy as np
import pytest
from nesvm_jit import Settings
from nesvm_jit import settings as table
from nesvm_jit.binary.costs import costs
from nesvm_jit.models import MODELS as FORMULAS
from nesvm_jit.settings import CUT_SHORT, STATUSES, one_of, positive

from .compare import refusal

LARGEST = sys.float_info.max
ROWS = dataclasses.fields(Settings)


def test_a_fit_that_asks_for_nothing_has_the_documented_defaults():
    assert vars(Settings()) == {
        "model": "csvm",
        "kernel": "linear",
        "C": 1.0,
        "bias": True,
        "solver": "auto",
        "tol": 1e-3,
        "gamma": None,
        "degree": 3,
        "coef0": 0.0,
        "cache_mb": None,
        "approx": None,
        "landmarks": None,
        "mu": 5.0,
        "nu": None,
        "mu_start": 5.0,
        "mu_end": None,
        "epsilon": 1e-3,
        "lipschitz": None,
        "schedule": None,
        "restart": None,
        "strong": False,
        "returned": "best",
        "moving_centre": None,
        "max_iter": 100_000,
        "time_limit": None,
        "seed": 0,
        "callback": None,
        "checkpoint": None,
        "checkpoint_every": 60.0,
        "resume": False,
    }


@pytest.mark.parametrize(
    "asked",
    [
        {"C": 5e-324},
        {"C": LARGEST},
        {"C": np.float32(2)},
        {"C": np.float64(2)},
        {"C": np.int8(2)},
        {"tol": 0, "epsilon": 0.0, "time_limit": 0},
        {"tol": LARGEST, "epsilon": LARGEST, "time_limit": LARGEST},
        {"max_iter": 1, "seed": 0},
        {"max_iter": np.int64(1), "seed": np.uint8(0)},
        {"restart": None, "moving_centre": None},
        {"restart": True, "moving_centre": np.bool_(False)},
        {"bias": np.bool_(True), "strong": False, "resume": False},
        {"model": "lpsvm", "nu": 5e-324},
        {"lipschitz": "paper", "schedule": "geometric"},
        {"lipschitz": "tight", "schedule": "gap"},
        {"strong": True, "bias": False},
        {"strong": True, "bias": False, "model": "lssvm"},
        {"strong": False, "bias": False, "model": "lpsvm"},
        {"solver": "coordinate"},
        {"solver": "newton", "model": "lpsvm"},
        {"solver": "coordinate", "model": "lssvm"},
        {"solver": "coordinate", "kernel": "rbf"},
        {"solver": "newton", "kernel": "rbf", "model": "lpsvm"},
        {"kernel": "poly", "coef0": 0},
        {"kernel": "rbf", "coef0": -1.0},
        {"kernel": "linear", "coef0": -1.0, "gamma": "any"},
        {"kernel": "rbf", "gamma": "scale"},
        {"kernel": "rbf", "gamma": "auto"},
        {"kernel": "rbf", "gamma": 0.5},
        {"kernel": "rbf", "approx": "nystroem"},
        {"kernel": "poly", "approx": "nystroem", "landmarks": 1},
        {"kernel": "rbf", "approx": "nystroem", "model": "lssvm", "solver": "coordinate"},
        {"checkpoint": "a", "resume": True, "checkpoint_every": 1e-9},
        {"checkpoint": "a"},
        {"callback": print},
        {"cache_mb": 1e-9, "mu_end": 1e-9, "mu": 1e-9, "mu_start": 1e-9},
    ],
)
def test_what_is_at_a_boundary_may_be_asked_for(asked):
    got = Settings(**asked)
    assert {name: getattr(got, name) for name in asked} == asked


MODELS = ", ".join(table.MODELS)
SOLVERS = ", ".join(table.SOLVERS)
# where coordinate steps are not to be had
OTHERS = ", ".join(s for s in table.SOLVERS if s != "coordinate")
KERNEL_OTHERS = ", ".join(s for s in table.KERNEL_SOLVERS if s != "coordinate")
NO_POLYNOMIAL = "such a polynomial is no kernel and nothing could be certified"


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"model": "svm"}, f"model must be one of {MODELS}, got 'svm'"),
        ({"kernel": None}, "kernel must be one of linear, poly, rbf, precomputed, got None"),
        ({"solver": "x"}, f"solver must be one of {SOLVERS}, got 'x'"),
        ({"bias": None}, "bias must be True or False, got None"),
        ({"bias": 1}, "bias must be True or False, got 1"),
        ({"strong": None}, "strong must be True or False, got None"),
        ({"resume": None}, "resume must be True or False, got None"),
        ({"restart": 0}, "restart must be True or False, got 0"),
        ({"moving_centre": "no"}, "moving_centre must be True or False, got 'no'"),
        ({"lipschitz": "x"}, "lipschitz must be one of paper, tight, got 'x'"),
        ({"max_iter": 0}, "max_iter must be a whole number from 1, got 0"),
        ({"max_iter": True}, "max_iter must be a whole number from 1, got True"),
        ({"max_iter": 2.0}, "max_iter must be a whole number from 1, got 2.0"),
        ({"seed": -1}, "seed must be a whole number from 0, got -1"),
        ({"seed": None}, "seed must be a whole number from 0, got None"),
        ({"nu": 1.0}, "nu is the hinge's own smoothing in lpsvm, csvm has mu alone"),
        ({"callback": 3}, "callback must be a function, got 3"),
        (
            {"strong": True},
            "strong needs a strongly convex problem: csvm or lssvm without bias",
        ),
        (
            {"strong": True, "bias": False, "model": "lpsvm"},
            "strong needs a strongly convex problem: csvm or lssvm without bias",
        ),
        ({"resume": True}, "resume needs the checkpoint to go on from"),
        ({"landmarks": 3}, "landmarks are for approx, which must be given too"),
        (
            {"landmarks": 0, "approx": "nystroem", "kernel": "rbf"},
            "landmarks must be a whole number from 1, got 0",
        ),
        ({"approx": "x", "kernel": "rbf"}, "approx must be one of nystroem, got 'x'"),
        ({"approx": "nystroem"}, "approx is for poly and rbf kernels, got 'linear'"),
        (
            {"approx": "nystroem", "kernel": "precomputed"},
            "approx is for poly and rbf kernels, got 'precomputed'",
        ),
        (
            {"solver": "coordinate", "model": "lpsvm"},
            f"solver must be one of {OTHERS} for lpsvm, got 'coordinate'",
        ),
        ({"kernel": "rbf", "gamma": "x"}, "gamma must be one of scale, auto, got 'x'"),
        (
            {"kernel": "poly", "coef0": -1e-300},
            f"coef0 must not be negative: {NO_POLYNOMIAL}, got -1e-300",
        ),
        (
            {"kernel": "rbf", "model": "lpsvm", "solver": "coordinate"},
            f"solver must be one of {OTHERS} for lpsvm with a kernel, got 'coordinate'",
        ),
        (
            {"kernel": "precomputed", "model": "lssvm", "solver": "coordinate"},
            f"solver must be one of {KERNEL_OTHERS} for lssvm with a kernel, got 'coordinate'",
        ),
    ],
)
def test_what_cannot_be_asked_for_is_one_whole_line(asked, message):
    assert refusal(Settings, **asked) == message


@pytest.mark.parametrize("name", ["C", "mu", "mu_start", "checkpoint_every", "mu_end", "cache_mb"])
@pytest.mark.parametrize("value", [0, -1.0, float("inf"), float("nan"), "1", 10**400])
def test_what_must_be_positive_is_not_zero_negative_or_endless(name, value):
    message = f"{name} must be positive and finite, got {value!r:.60}"
    assert refusal(Settings, **{name: value}) == message


@pytest.mark.parametrize("name", ["tol", "epsilon", "time_limit"])
@pytest.mark.parametrize("value", [-5e-324, float("inf"), float("nan"), "1"])
def test_what_may_be_zero_is_not_negative_or_endless(name, value):
    message = f"{name} must be zero or positive and finite, got {value!r}"
    assert refusal(Settings, **{name: value}) == message


def test_nu_must_be_positive_where_it_is_allowed():
    message = "nu must be positive and finite, got 0.0"
    assert refusal(Settings, model="lpsvm", nu=0.0) == message


def test_a_checkpoint_is_a_file_that_has_a_name():
    assert "file" in refusal(Settings, checkpoint="-")


def test_a_derived_copy_is_not_checked_and_leaves_the_first_as_it_is():
    first = Settings(C=2.0)
    derived = first.derive(C=-1.0, solver="x")
    assert isinstance(derived, Settings)
    assert vars(derived) == {**vars(first), "C": -1.0, "solver": "x"}
    assert (first.C, first.solver) == (2.0, "auto")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_setting_has_a_sentence(row):
    assert re.fullmatch(r"[A-Z][ -~]{10,160}\.", row.metadata["help"])


@pytest.mark.parametrize("row", [row for row in ROWS if row.default is None], ids=lambda r: r.name)
def test_what_is_none_by_default_may_be_none(row):
    assert getattr(Settings(**{row.name: None}), row.name) is None


CHECKED_BY_KERNELS = ("degree", "coef0")


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.default is not None], ids=lambda r: r.name
)
def test_what_has_a_default_may_not_be_none(row):
    if row.name in CHECKED_BY_KERNELS:
        assert getattr(Settings(**{row.name: None}), row.name) is None
    else:
        assert refusal(Settings, **{row.name: None}).startswith(f"{row.name} must be ")


def test_every_model_has_its_formulas():
    assert tuple(FORMULAS) == table.MODELS


def test_statuses_stand_from_worst_to_best():
    assert (
        *("interrupted", "time_limit", "iteration_limit"),
        *("stalled", "epsilon", "converged"),
    ) == STATUSES
    assert CUT_SHORT == ("interrupted", "time_limit", "iteration_limit")


def test_names_are_texts_among_those_allowed():
    one_of("colour", "red", ("red", "blue"))
    assert refusal(one_of, "colour", "re", ("red", "blue")) == (
        "colour must be one of red, blue, got 're'"
    )
    assert refusal(one_of, "colour", None, ("red", "blue")) == (
        "colour must be one of red, blue, got None"
    )


def test_zero_is_positive_only_where_it_is_said():
    positive("x", 0, zero=True)
    assert refusal(positive, "x", 0) == "x must be positive and finite, got 0"
    assert refusal(positive, "x", None, zero=True) == (
        "x must be zero or positive and finite, got None"
    )


# ---------------------------------------------------------------- what a row costs

Y = np.array([3.0, 3.0, -1.0, 3.0, -1.0])
TWO = np.array([3.0, -1.0])


def test_without_weights_every_row_costs_c():
    got = costs(0.25, Y, TWO, None, None)
    assert got.tolist() == [0.25] * 5
    assert got.dtype == np.float64


def test_a_cost_is_c_times_the_weight_of_the_row_times_that_of_its_class():
    got = costs(2, Y, TWO, [1.0, 0.5, 0.0, 3.0, 2.0], {3.0: 0.5, -1: 4.0})
    assert got.tolist() == [1.0, 0.5, 0.0, 3.0, 16.0]


def test_a_class_that_is_not_named_has_weight_one_and_one_may_have_zero():
    assert costs(0.5, Y, TWO, None, {-1.0: 0.0}).tolist() == [0.5, 0.5, 0.0, 0.5, 0.0]
    assert costs(0.5, Y, TWO, None, {}).tolist() == [0.5] * 5


def test_balanced_classes_share_the_rows():
    y, three = np.array([1.0, 2, 2, 3, 3, 3]), np.array([1.0, 2.0, 3.0])
    got = costs(2.0, y, three, None, "balanced")
    assert got.tolist() == [4.0, 2.0, 2.0, 2 * 6 / 9, 2 * 6 / 9, 2 * 6 / 9]
    assert costs(1.0, y, three, np.arange(6.0), "balanced")[1:3].tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("sample_weight", "class_weight", "message"),
    [
        ([1, 1, -0.5, 1, 1], None, "sample_weight must not be negative, got -0.5"),
        (None, "even", "class_weight must be one of balanced, got 'even'"),
        (None, 3, "class_weight must map 3 and -1 to weights, got 3"),
        (None, [1, 2], "class_weight must map 3 and -1 to weights, got [1, 2]"),
        (None, {2: 1.0}, "class_weight must map 3 and -1 to weights, got label 2"),
        (None, {3: -1.0}, "class_weight of 3 must be zero or positive and finite, got -1.0"),
        (None, {3: None}, "class_weight of 3 must be zero or positive and finite, got None"),
    ],
)
def test_weights_that_cannot_be_are_one_whole_line(sample_weight, class_weight, message):
    assert refusal(costs, 1.0, Y, TWO, sample_weight, class_weight) == message


def test_of_several_classes_the_message_does_not_name_them_all():
    y = np.array([1.0, 2.0, 3.0])
    message = "class_weight must map the labels to weights, got label 4"
    assert refusal(costs, 1.0, y, y, None, {4: 1.0}) == message


def test_a_cost_beyond_all_numbers_is_refused():
    with np.errstate(over="ignore"):
        message = refusal(costs, 1e300, Y, TWO, [1, 1e300, 1, 1, 1], None)
    assert message == "each class must have a positive, finite weight"
