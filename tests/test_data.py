"""The data of tests are what their names and docstrings say."""

from collections import Counter
from itertools import combinations, product

import numpy as np
import pytest
from scipy.sparse import issparse

from . import data
from .data import CLOUDS, COSTS, KINDS, LATER, SCALES, WEIGHTS, as_kind, cases_of_every_scale

CASES = cases_of_every_scale()
WORDS = [case.name.split(", ") for case in CASES]
AXES = (
    [cloud.__name__.replace("_", " ") for cloud in CLOUDS + LATER],
    [f"x{scale:g}" for scale in SCALES],
    [f"C{C:g}" for C in COSTS],
    [weight.__name__.replace("_", " ") for weight in WEIGHTS],
    ["no bias", "bias"],
    KINDS,
)


def test_cases_of_every_scale_cover_every_pair():
    for i, j in combinations(range(len(AXES)), 2):
        if (i, j) == (0, 5):  # see the next test
            continue
        pairs = set(product(AXES[i], AXES[j]))
        if (i, j) == (1, 5):
            pairs = {(scale, kind) for scale, kind in pairs if "float" in kind or scale == "x1"}
        assert pairs <= {(words[i], words[j]) for words in WORDS}
    assert len({case.name for case in CASES}) == len(CASES)


def test_every_cloud_is_a_dense_and_a_csr_matrix_of_floats():
    floats = [words for words in WORDS if "float" in words[5]]
    layouts = {(words[0], words[5].split()[0]) for words in floats}
    assert layouts == set(product(AXES[0], ("dense", "CSR")))
    assert all(issparse(c.X) == (w[5][:3] == "CSR") for c, w in zip(CASES, WORDS, strict=True))


def test_rows_without_entries_are_tried_in_every_layout():
    empty = [case.X for case in CASES if case.name.startswith("empty rows")]
    assert all((abs(X).sum(axis=1) == 0).sum() == 4 for X in empty)
    assert {issparse(X) for X in empty} == {False, True}


def test_whole_numbers_of_either_sign_are_tried():
    signed = [case.X for case in CASES if case.X.dtype == np.int8]
    assert any(X.min() < 0 < X.max() for X in signed)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_of_matrix_holds_what_it_can(kind):
    A = as_kind(np.array([[-300.0, -1.4, 0.0, 2.6, 300.0]]), kind)
    A = A.toarray() if issparse(A) else A
    assert A.dtype == kind.split()[1]
    expected = {
        "int8": [-128, -1, 0, 3, 127],
        "uint8": [0, 0, 0, 3, 255],
    }
    if A.dtype.kind == "f":
        expected[A.dtype.name] = np.array([-300.0, -1.4, 0.0, 2.6, 300.0], A.dtype)
    np.testing.assert_array_equal(A[0], expected[A.dtype.name])


def test_some_costs_are_zero_and_both_classes_have_one_that_is_not():
    for seed in range(60):
        _, y, c = data.half_space_and_costs(n=12, seed=seed)
        assert (c == 0).any()
        assert set(y[c > 0]) == {-1.0, 1.0}


def test_duplicated_rows_occur_as_often_as_is_said():
    X, y = data.duplicated_rows(np.random.default_rng(0))
    rows = Counter(map(tuple, X))
    assert Counter(rows.values()) == {1: 4, 2: 8, 6: 1}
    ((often, _),) = rows.most_common(1)
    assert set(y[(often == X).all(axis=1)]) == {-1.0, 1.0}
