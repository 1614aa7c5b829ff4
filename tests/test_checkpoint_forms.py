"""What a saved state must look like, form by form."""

import numpy as np
import pytest
from nesvm_jit.checkpoint import form
from nesvm_jit.checkpoint.form import MismatchError
from nesvm_jit.checkpoint.states import RUN_FIELDS
from nesvm_jit.solvers.run import COLUMNS


def refused(check, value, message):
    with pytest.raises(MismatchError, match=f"^{message}$"):
        check(value)


def test_numbers_of_rows_are_as_many_as_rows_and_from_0_on():
    check = form.row_numbers(3)
    for good in ([0, 1, 2], [2, 2, 2], [0, 0, 0]):
        assert check(np.array(good)) is None
    for wrong in (
        [0, 1, 2],
        np.array([0, 1]),
        np.array([0, 1, 2, 0]),
        np.array([0.0, 1.0, 2.0]),
        np.array([0, 1, 2], dtype=np.int32),
        np.array([0, 1, 3]),
        np.array([-1, 1, 2]),
        np.zeros((3, 1), dtype=np.int64),
    ):
        refused(check, wrong, "3 numbers of rows are required")


def test_fields_that_nobody_asked_for_are_refused():
    check = form.fields(a=form.number)
    assert check({"a": 1.0}) is None
    refused(check, {"a": 1.0, "b": 2}, "b is unknown")
    refused(check, {}, "a is missing")
    refused(check, {"a": "1"}, "a: a number is required, got '1'")
    refused(check, [], "named fields are required, got list")
    loose = form.fields(rest=form.flag, a=form.number)
    assert loose({"a": 1.0, "b": True}) is None
    refused(loose, {"a": 1.0, "b": 2}, "b: true or false is required, got 2")


def test_rounds_of_a_run_are_none_or_have_every_column():
    check = RUN_FIELDS["rows"]
    for good in (np.empty(0), np.zeros((1, len(COLUMNS))), np.zeros((7, len(COLUMNS)))):
        assert check(good) is None
    for wrong in (np.zeros(1), np.zeros(len(COLUMNS)), np.zeros((2, len(COLUMNS) - 1))):
        with pytest.raises(MismatchError):
            check(wrong)


def test_known_fields_may_be_absent_but_no_others_are_there():
    check = form.known_fields(a=form.number, b=form.text)
    for good in ({}, {"a": 1}, {"b": "x"}, {"a": 1, "b": "x"}):
        assert check(good) is None
    refused(check, {"c": 1}, "c is unknown")
    refused(check, {"b": 1}, "b: text is required, got 1")


@pytest.mark.parametrize(
    ("check", "good", "wrong"),
    [
        (form.number, [0, -1.5, float("inf")], [True, "1", None, [1]]),
        (form.whole, [0, 1, (1 << 62) - 1], [-1, 1 << 62, True, 1.0]),
        (form.duration, [0, 0.0, 1e300], [-1e-9, float("inf"), float("nan"), True, "1"]),
        (form.flag, [True, False], [0, 1, None]),
        (form.text, ["", "a"], [None, 1, b"a"]),
        (form.one_of("a", "b"), ["a", "b"], ["c", "", None, ["a"]]),
        (form.optional(form.flag), [None, True], [0, "a"]),
        (form.either(form.flag, form.text), [True, "a"], [0, None]),
        (
            form.column,
            [np.zeros(2), np.zeros(0, np.int8)],
            [[1.0], np.zeros((1, 1)), np.array(["a"])],
        ),
        (
            form.floats(2, None),
            [np.zeros((2, 0)), np.ones((2, 3))],
            [np.zeros((3, 2)), np.zeros(2)],
        ),
        (form.floats(2), [np.zeros(2)], [np.zeros(2, np.float32), [0.0, 0.0], np.zeros(3)]),
        (
            form.sequence(form.flag, form.text),
            [[True, "a"], (False, "")],
            [[True], "ab", ["a", "a"]],
        ),
        (form.table(form.flag), [{}, {"a": True}], [{"a": 1}, [True]]),
        (form.plain, [1, {"a": [1, "b"]}], [np.zeros(1), {"a": np.zeros(1)}, [1, (np.zeros(1),)]]),
        (
            form.one_random_state,
            [np.zeros(1, np.uint64)],
            [np.zeros(1, np.int64), np.zeros(2, np.uint64), 1],
        ),
    ],
)
def test_forms_take_what_they_say_and_nothing_else(check, good, wrong):
    assert [check(value) for value in good] == [None] * len(good)
    for value in wrong:
        with pytest.raises(MismatchError):
            check(value)
    assert len(wrong) > 0
