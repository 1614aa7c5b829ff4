"""Records of models: what they hold by default, and every reason for which one is refused."""

from dataclasses import fields

import numpy as np
import pytest
from nesvm_jit import InputError
from nesvm_jit.files.model.record import (
    HIGHEST_INDEX,
    LARGEST_INT,
    ModelRecord,
    n_problems,
    pairs_of_classes,
)
from nesvm_jit.settings import MODELS
from scipy.sparse import csr_matrix

pytestmark = pytest.mark.pure


def linear(**change):
    given = {"classes": [1, -1], "n_features": 2, "bias": [0.5], "weights": [[1], [2]]}
    return ModelRecord(**{**given, **change})


def kernel(**change):
    given = {
        "classes": [1, -1],
        "n_features": 3,
        "bias": [0.5],
        "kernel": "rbf",
        "coefs": [[1], [-1]],
        "support": np.eye(2, 3),
        "sv_class": [0, 1],
    }
    return ModelRecord(**{**given, **change})


def precomputed(**change):
    more = {"kernel": "precomputed", "support": None, "support_index": [2, 0]}
    return kernel(**{**more, **change})


def test_problems_are_one_or_pairs_or_classes():
    assert [n_problems(k, "ovo") for k in (2, 3, 4, 7)] == [1, 3, 6, 21]
    assert [n_problems(k, "ovr") for k in (2, 3, 4, 7)] == [1, 3, 4, 7]
    assert linear(classes=[1, 2, 3, 4], multiclass="ovo", bias=np.ones(6),
                  weights=np.ones((2, 6))).n_problems == 6  # fmt: skip


def test_pairs_are_numbered_row_by_row():
    assert pairs_of_classes(2).tolist() == [[0], [0]]
    assert pairs_of_classes(3).tolist() == [[0, 1], [0, 2], [1, 2]]
    assert pairs_of_classes(4).tolist() == [[0, 1, 2], [0, 3, 4], [1, 3, 5], [2, 4, 5]]
    assert pairs_of_classes(3).dtype == np.int64


def test_a_record_of_a_linear_machine_by_default():
    r = linear()
    expected = {
        "n_features": 2,
        "multiclass": "ovr",
        "model": "csvm",
        "kernel": "linear",
        "gamma": 0.0,
        "coef0": 0.0,
        "degree": 3,
        "support": None,
        "support_index": None,
        "coefs": None,
        "sv_class": None,
        "probability": None,
        "extra": {},
    }
    for name, value in expected.items():
        assert getattr(r, name) == value
        assert type(getattr(r, name)) is type(value)
    arrays = {"classes": [1, -1], "bias": [0.5], "weights": [[1], [2]]}
    for name, value in arrays.items():
        assert getattr(r, name).dtype == np.float64
        assert getattr(r, name).tolist() == value
    assert {f.name for f in fields(r)} == {*expected, *arrays}
    assert linear().extra is not linear().extra


def test_what_a_record_takes_is_put_into_plain_types():
    r = kernel(
        n_features=np.int64(3),
        degree=np.int32(0),
        gamma=np.float32(0.5),
        coef0=-1,
        probability=([2], [3]),
        sv_class=np.array([0, 1], dtype=np.uint8),
        extra={"a": 1},
    )
    assert (type(r.n_features), type(r.degree), type(r.gamma), type(r.coef0)) == (
        *(int, int, float, float),
    )
    assert (r.n_features, r.degree, r.gamma, r.coef0) == (3, 0, 0.5, -1.0)
    assert [a.tolist() for a in r.probability] == [[2.0], [3.0]]
    assert [a.dtype for a in r.probability] == [np.float64, np.float64]
    assert (r.sv_class.dtype, r.sv_class.tolist()) == (np.int64, [0, 1])
    assert r.support.format == "csr"
    assert r.support.toarray().tolist() == [[1, 0, 0], [0, 1, 0]]
    assert precomputed().support_index.tolist() == [2, 0]
    assert precomputed().support_index.dtype == np.int64
    assert kernel(sv_class=None).sv_class is None


@pytest.mark.parametrize(
    ("make", "change"),
    [
        (linear, {"degree": LARGEST_INT}),
        (linear, {"gamma": 0.0}),
        (linear, {"n_features": 0, "weights": np.zeros((0, 1))}),
        (kernel, {"n_features": HIGHEST_INDEX, "support": csr_matrix((2, HIGHEST_INDEX))}),
        (kernel, {"support": np.zeros((0, 3)), "coefs": np.zeros((0, 1)), "sv_class": []}),
        (precomputed, {"support_index": [], "coefs": np.zeros((0, 1)), "sv_class": []}),
        (precomputed, {"support_index": [2, 2]}),
    ],
)
def test_records_at_the_edges(make, change):
    assert change
    for name, value in change.items():
        assert np.shape(getattr(make(**change), name)) == np.shape(value)


NUMBERS = "must be a whole number from 0 to"
EITHER = "either weights or coefs are required"
SERIALS = "precomputed kernels need support_index and no support"
MINE = "support vectors need coefs, got weights"


@pytest.mark.parametrize(
    ("make", "change", "message"),
    [
        (linear, {"model": "x" * 70},
         f"model must be one of {', '.join(MODELS)}, got {'x' * 70!r:.60}"),
        (linear, {"kernel": None},
         "kernel must be one of linear, poly, rbf, sigmoid, precomputed, got None"),
        (linear, {"multiclass": "all"}, "multiclass must be one of ovo, ovr, got 'all'"),
        (linear, {"n_features": -1}, f"n_features {NUMBERS} 4294967294, got -1"),
        (linear, {"n_features": 2.0}, f"n_features {NUMBERS} 4294967294, got 2.0"),
        (linear, {"n_features": True}, f"n_features {NUMBERS} 4294967294, got True"),
        (linear, {"n_features": 2**32 - 1}, f"n_features {NUMBERS} 4294967294, got 4294967295"),
        (linear, {"degree": 2**31}, f"degree {NUMBERS} 2147483647, got 2147483648"),
        (linear, {"degree": -1}, f"degree {NUMBERS} 2147483647, got -1"),
        (linear, {"gamma": -1e-300}, "gamma must be at least 0, got -1e-300"),
        (linear, {"gamma": [1]}, "gamma must have shape (), got (1,)"),
        (linear, {"coef0": np.inf}, "coef0 must be finite"),
        (linear, {"coef0": "x"}, "coef0 must be real numbers, got 'x'"),
        (linear, {"coef0": 10**400}, f"coef0 must be real numbers, got {10**400!r:.40}"),
        (linear, {"classes": 1.0}, "at least 2 classes are required, got 1"),
        (linear, {"classes": []}, "at least 2 classes are required, got 0"),
        (linear, {"classes": [[1, 2]]}, "classes must have shape (2,), got (1, 2)"),
        (linear, {"classes": [1, np.nan]}, "classes must be finite"),
        (linear, {"classes": [2, 2.0]}, "classes must be distinct"),
        (linear, {"bias": 1.0}, "bias must have shape (1,), got ()"),
        (linear, {"bias": [np.nan]}, "bias must be finite"),
        (linear, {"probability": ([1, 2], [1])}, "A must have shape (1,), got (2,)"),
        (linear, {"probability": ([1], [1, 2])}, "B must have shape (1,), got (2,)"),
        (linear, {"extra": [1]}, "extra must be a dict, got list"),
        (linear, {"weights": None}, EITHER),
        (linear, {"coefs": [[1]]}, EITHER),
        (linear, {"kernel": "poly"}, "weights belong to a linear kernel, got poly"),
        (linear, {"support": np.eye(2)}, MINE),
        (linear, {"support_index": [0]}, MINE),
        (linear, {"sv_class": [0]}, MINE),
        (linear, {"weights": [[1, 2]]}, "weights must have shape (2, 1), got (1, 2)"),
        (kernel, {"support": None}, "rbf kernels need support and no support_index"),
        (kernel, {"support_index": [0, 1]}, "rbf kernels need support and no support_index"),
        (kernel, {"support": np.eye(2)}, "support must have 3 columns, got 2"),
        (kernel, {"support": np.full((2, 3), np.inf)}, "support must be finite"),
        (kernel, {"coefs": [[1]]}, "coefs must have shape (2, 1), got (1, 1)"),
        (kernel, {"sv_class": [0, 1, 0]}, "sv_class must have 2 entries, got 3"),
        (kernel, {"sv_class": [0, 2]}, "sv_class must be from 0 to 1"),
        (kernel, {"sv_class": [0, -1]}, "sv_class must be from 0 to 1"),
        (kernel, {"sv_class": [0, 1.0]}, "sv_class must be a vector of whole numbers"),
        (kernel, {"sv_class": [[0, 1]]}, "sv_class must be a vector of whole numbers"),
        (kernel, {"sv_class": [True, False]}, "sv_class must be a vector of whole numbers"),
        (precomputed, {"support_index": None}, SERIALS),
        (precomputed, {"support": np.eye(2, 3)}, SERIALS),
        (precomputed, {"support_index": [0, 3]}, "support_index must be from 0 to 2"),
        (precomputed, {"support_index": [0, -1]}, "support_index must be from 0 to 2"),
        (precomputed, {"support_index": [1]}, "coefs must have shape (1, 1), got (2, 1)"),
    ],
)  # fmt: skip
def test_what_does_not_fit_together_is_told_word_for_word(make, change, message):
    with pytest.raises(InputError) as e:
        make(**change)
    assert str(e.value) == message


def test_cells_of_support_vectors_are_sorted_and_added_up_in_a_copy():
    given = csr_matrix(([1.0, 2.0, 4.0], [2, 0, 2], [0, 3, 3]), shape=(2, 3))
    record = kernel(support=given)
    assert (record.support.indices.tolist(), record.support.data.tolist()) == ([0, 2], [2, 5])
    assert (given.indices.tolist(), given.data.tolist()) == ([2, 0, 2], [1, 2, 4])
    single = csr_matrix(np.eye(2, 3, dtype=np.float32))
    assert kernel(support=single).support.dtype == np.float64
