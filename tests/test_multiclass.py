"""Votes and choices against their definitions and LIBSVM."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from nesvm_jit import InputError
from nesvm_jit.machine.multiclass import (
    class_order,
    n_problems,
    ovo_decision,
    ovr_choice,
    pairs,
    vote,
)

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        ([3, 1, 2, 1, 3], [3, 1, 2]),
        ([-1, 1, -1], [1, -1]),
        ([1, -1], [1, -1]),
        ([0, 1], [0, 1]),
        ([-1, 1, 2], [-1, 1, 2]),
        ([2.5, -1e9, 2.5], [2.5, -1e9]),
        ([-0.0, 0.0], [0]),
        ([7], [7]),
        ([], []),
    ],
)
def test_classes_come_as_they_appear_but_plus_one_leads(y, classes):
    got = class_order(y)
    assert got.tolist() == classes
    assert not np.signbit(got[got == 0]).any()


def test_pairs_and_problems():
    assert pairs(4) == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    assert [len(pairs(k)) for k in range(6)] == [0, 0, 1, 3, 6, 10]
    assert [n_problems(k, "ovo") for k in (2, 3, 4, 10)] == [1, 3, 6, 45]
    assert [n_problems(k, "ovr") for k in (2, 3, 4, 10)] == [1, 3, 4, 10]


def libsvm_votes(row, k):
    """The loop of svm_predict_values."""
    votes = [0] * k
    for score, (i, j) in zip(row, pairs(k), strict=True):
        votes[i if score > 0 else j] += 1
    return votes


scores_and_k = st.integers(2, 8).flatmap(
    lambda k: st.tuples(
        hnp.arrays(
            float,
            (4, k * (k - 1) // 2),
            elements=st.one_of(st.floats(-1e3, 1e3), st.sampled_from([0.0, -0.0, 1.0])),
        ),
        st.just(k),
    )
)


@given(scores_and_k)
def test_votes_are_libsvm_s_and_the_first_of_equals_wins(case):
    scores, k = case
    votes = [libsvm_votes(row, k) for row in scores]
    assert vote(scores, k).tolist() == [v.index(max(v)) for v in votes]


@given(scores_and_k)
def test_continuous_scores_round_to_votes_and_grow_with_the_sums(case):
    scores, k = case
    votes = np.array([libsvm_votes(row, k) for row in scores])
    got = ovo_decision(scores, k)
    assert got.shape == (len(scores), k)
    assert (np.abs(got - votes) < 1 / 3).all()
    sums = np.zeros((len(scores), k))
    for c, (i, j) in enumerate(pairs(k)):
        sums[:, i] += scores[:, c]
        sums[:, j] -= scores[:, c]
    np.testing.assert_allclose(got, votes + sums / (3 * (np.abs(sums) + 1)), atol=1e-12)


def test_two_classes_have_one_column():
    scores = np.array([2.0, 0.0, -0.0, -1.0, np.inf])
    for s in (scores, scores[:, None]):
        assert vote(s, 2).tolist() == ovr_choice(s).tolist() == [0, 1, 1, 1, 0]
    assert ovo_decision(scores[:2], 2).tolist() == [[1 + 2 / 9, -2 / 9], [0, 1]]


def test_the_highest_of_the_rest_and_the_first_of_equals():
    assert ovr_choice([[1, 2, 2], [-3, -1, -2], [0, 0, 0]]).tolist() == [1, 1, 0]


def test_columns_are_counted():
    with pytest.raises(InputError, match="scores of 4 classes must have 6 columns, got 5"):
        vote(np.zeros((2, 5)), 4)


@pytest.mark.parametrize("name", ["iris", "digits"])
def test_choices_are_libsvm_s(name):
    datasets = pytest.importorskip("sklearn.datasets")
    from sklearn.svm import SVC

    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    k = len(np.unique(y))
    svc = SVC(C=0.1, gamma=0.01, decision_function_shape="ovo").fit(X[::2], y[::2])
    scores = svc.decision_function(X)
    np.testing.assert_array_equal(svc.classes_[vote(scores, k)], svc.predict(X))
    svc.decision_function_shape = "ovr"
    np.testing.assert_allclose(ovo_decision(scores, k), svc.decision_function(X), atol=1e-12)
