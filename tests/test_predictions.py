"""Prediction files, byte for byte as C's printf writes them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from nesvm_jit import InputError
from nesvm_jit.files import predictions
from nesvm_jit.files.predictions import (
    label_header,
    label_lines,
    probability_lines,
    score_lines,
)

pytestmark = pytest.mark.pure


@given(st.lists(st.floats()))
def test_labels_are_printed_one_by_one(labels):
    assert label_lines(labels) == b"".join(b"%.17g\n" % v for v in labels)


def test_labels_as_users_know_them():
    assert label_lines([1, -1, 0.1, 1e20, -0.0]) == b"1\n-1\n0.10000000000000001\n1e+20\n-0\n"
    assert label_lines(np.arange(6)[::2]) == b"0\n2\n4\n"
    assert label_header(np.array([3.0, -1.0, 2.5])) == b"labels 3 -1 2.5\n"
    assert label_header([1, 2]) == b"labels 1 2\n"


@given(hnp.arrays(float, st.tuples(st.integers(0, 9), st.integers(1, 4))), st.integers(1, 4))
def test_rows_are_printed_one_by_one_whatever_the_batch(rows, batch):
    labels, numbers = rows[:, 0], rows[:, 1:]
    expected = b"".join(b" ".join(b"%.17g" % v for v in row) + b"\n" for row in rows.tolist())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(predictions, "ROWS", batch)
        assert probability_lines(labels, numbers) == expected
        assert score_lines(labels, numbers) == expected


def test_rows_as_users_know_them():
    assert probability_lines([1, -1], [[0.75, 0.25], [0.5, 0.5]]) == b"1 0.75 0.25\n-1 0.5 0.5\n"
    assert score_lines([1, -1], [0.5, -2]) == b"1 0.5\n-1 -2\n"
    with pytest.raises(InputError, match=r"scores must have 2 rows, got shape \(3, 1\)"):
        score_lines([1, 2], [1, 2, 3])


@pytest.mark.parametrize("shape", [(2, 1, 1), (3, 1), (), (1, 2)])
def test_numbers_must_have_a_row_for_each_label(shape):
    for act, name in ((score_lines, "scores"), (probability_lines, "probabilities")):
        with pytest.raises(InputError) as e:
            act([1, 2], np.zeros(shape))
        assert str(e.value) == f"{name} must have 2 rows, got shape {shape}"


def test_more_rows_than_are_formatted_at_once():
    labels = np.arange(10_000.0)
    expected = b"".join(b"%d 0.5 %d\n" % (v, -v) for v in range(10_000)).replace(b" 0\n", b" -0\n")
    assert score_lines(labels, np.column_stack([np.full(10_000, 0.5), -labels])) == expected
