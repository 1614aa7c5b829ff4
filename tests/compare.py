"""What two results must share, one meaning each."""

import json
from dataclasses import fields

import numpy as np
import pytest
from nesvm_jit import InputError


def same_array(a, b, name=""):
    """Both None, or the same numbers."""
    assert (a is None) == (b is None), name
    assert a is None or np.array_equal(a, b), name


def same_solution(a, b):
    """Two solutions of one problem: the same numbers and the same course, bar the seconds."""
    for name in ("w", "alpha", "margins"):
        assert np.array_equal(getattr(a, name), getattr(b, name)), name
    for name in ("b", "objective", "dual_objective", "gap", "n_iter", "status", "solver", "why"):
        assert getattr(a, name) == getattr(b, name), name
    assert set(a.history) == set(b.history)
    for name in set(a.history) - {"seconds"}:
        assert np.array_equal(a.history[name], b.history[name], equal_nan=True), name


def same_machine(a, b, leaving_out=("seconds",)):
    """Two trained machines: the same numbers, and facts of their problems bar those left out."""
    for name in ("weights", "bias", "coefs", "probability"):
        same_array(getattr(a.record, name), getattr(b.record, name), name)
    ignored = dict.fromkeys(leaving_out)
    for mine, other in zip(a.problems, b.problems, strict=True):
        assert {**mine, **ignored} == {**other, **ignored}


def same_record(a, b):
    """Two records of model files: the same bits, `extra` as JSON holds it."""
    assert type(a) is type(b)
    for name in (f.name for f in fields(a)):
        x, y = getattr(a, name), getattr(b, name)
        if name == "extra":
            assert json.loads(json.dumps(x)) == y
        elif name == "support" and x is not None:
            assert x.shape == y.shape
            assert x.data.tobytes() == y.data.tobytes()
            np.testing.assert_array_equal(x.indptr, y.indptr)
            np.testing.assert_array_equal(x.indices, y.indices)
        elif x is None or y is None or isinstance(x, str):
            assert x == y, name
        else:
            x, y = np.asarray(x), np.asarray(y)
            assert (x.dtype, x.shape) == (y.dtype, y.shape), name
            assert x.tobytes() == y.tobytes(), name


def same_rows(got, expected):
    """Rows read from disk and rows in memory: the same types and values, wherever arrays start."""
    first, last = int(expected.indptr[0]), int(expected.indptr[-1])
    for name in ("data", "indices", "indptr"):
        a, b = getattr(got, name), getattr(expected, name)
        assert a.dtype == b.dtype
        assert not a.flags.writeable
        np.testing.assert_array_equal(a, b - b[0] if name == "indptr" else b[first:last])
    assert got.n_cols == expected.n_cols


def same_matrix_and_labels(got, expected):
    """Two pairs of a CSR matrix and its labels: the same entries in the same order and type."""
    for name in ("shape", "data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(got[0], name), getattr(expected[0], name))
    assert got[0].dtype == expected[0].dtype
    assert got[1].tobytes() == expected[1].tobytes()


def refusal(call, *args, kind=InputError, **options):
    """The whole message of the error that a call is refused with."""
    with pytest.raises(kind) as e:
        call(*args, **options)
    return str(e.value)
