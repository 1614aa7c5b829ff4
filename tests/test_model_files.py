"""Model files: round trips, what is refused and how, and the programs that share the formats."""

import gzip
import io
import json
import os
import random
import shutil
import subprocess
import sys
import time
import tracemalloc
from contextlib import redirect_stdout
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nesvm_jit import FormatError, InputError, NesvmError
from nesvm_jit.files.model import reader as model_reader
from nesvm_jit.files.model import rows as model_rows
from nesvm_jit.files.model.record import ModelRecord, n_problems, pairs_of_classes
from nesvm_jit.files.model.text import format_of, read_model, write_model
from nesvm_jit.settings import MODELS
from scipy.sparse import csr_matrix

from .compare import same_record


def text_of(record):
    file = io.BytesIO()
    write_model(file, record)
    return file.getvalue()


def read(text):
    """The record of a text, from which compiled and plain reading must not differ."""
    results = []
    for enough in (0, 1 << 60):
        with mock.patch.object(model_rows, "COMPILED_BYTES", enough):
            try:
                results.append(read_model(io.BytesIO(text)))
            except FormatError as e:
                results.append(e)
    compiled, plain = results
    if isinstance(plain, FormatError):
        assert str(compiled) == str(plain)
        raise plain
    same_record(compiled, plain)
    return plain


def grouped(record):
    """The record with its support vectors grouped by class, as LIBSVM's files have them."""
    order = np.argsort(record.sv_class, kind="stable")
    taken = {
        name: getattr(record, name)[order]
        for name in ("support", "support_index", "coefs", "sv_class")
        if getattr(record, name) is not None
    }
    return replace(record, **taken)


def decisions(record, X):
    """Decision values with plain NumPy; for precomputed kernels X holds k(x, sample)."""
    X = np.asarray(X, dtype=float)
    if record.weights is not None:
        return X @ record.weights + record.bias
    if record.kernel == "precomputed":
        return X[:, record.support_index] @ record.coefs + record.bias
    S = record.support.toarray()
    K = X[:, : S.shape[1]] @ S.T
    if record.kernel == "rbf":
        S = np.pad(S, ((0, 0), (0, X.shape[1] - S.shape[1])))
        K = np.exp(-record.gamma * ((X[:, None, :] - S) ** 2).sum(2))
    elif record.kernel != "linear":
        K = record.gamma * K + record.coef0
        K = K**record.degree if record.kernel == "poly" else np.tanh(K)
    return K @ record.coefs + record.bias


def labels_of(record, X):
    """Labels as LIBLINEAR and LIBSVM choose them."""
    f, k = decisions(record, X), len(record.classes)
    if k == 2:
        return record.classes[np.where(f[:, 0] > 0, 0, 1)]
    if record.multiclass == "ovr":
        return record.classes[f.argmax(axis=1)]
    votes = np.zeros((len(f), k))
    for p, (i, j) in enumerate(zip(*np.triu_indices(k, 1), strict=True)):
        votes[:, i] += f[:, p] > 0
        votes[:, j] += f[:, p] <= 0
    return record.classes[votes.argmax(axis=1)]


# ---------------------------------------------------------------- round trips

numbers = st.floats(allow_nan=False, allow_infinity=False)
facts = st.recursive(
    st.none() | st.booleans() | st.integers() | numbers | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


def arrays(draw, *shape):
    size = int(np.prod(shape))
    return np.array(draw(st.lists(numbers, min_size=size, max_size=size))).reshape(shape)


@st.composite
def records(draw):
    whole = draw(st.booleans())
    label = st.integers(-(2**31), 2**31 - 1).map(float) if whole else numbers
    classes = draw(st.lists(label, min_size=2, max_size=4, unique=True))
    k, multiclass = len(classes), draw(st.sampled_from(("ovo", "ovr")))
    m, p = n_problems(k, multiclass), draw(st.integers(0, 4))
    common = {
        "classes": np.array(classes),
        "multiclass": multiclass,
        "model": draw(st.sampled_from(MODELS)),
        "gamma": abs(draw(numbers)),
        "coef0": draw(numbers),
        "degree": draw(st.integers(0, 9)),
        "bias": arrays(draw, m),
        "extra": draw(st.dictionaries(st.text(max_size=8), facts, max_size=3)),
    }
    if draw(st.booleans()):
        common["probability"] = arrays(draw, m), arrays(draw, m)
    if draw(st.booleans()):
        return ModelRecord(n_features=p, weights=arrays(draw, p, m), **common)
    n = draw(st.integers(0, 4))
    kernel = draw(st.sampled_from(("linear", "poly", "rbf", "sigmoid", "precomputed")))
    coefs = arrays(draw, n, m)
    sv_class = None
    if draw(st.booleans()):
        sv_class = np.array(draw(st.lists(st.integers(0, k - 1), min_size=n, max_size=n)), int)
        if k > 2 and multiclass == "ovo":
            own = np.zeros((n, m), dtype=bool)
            np.put_along_axis(own, pairs_of_classes(k)[sv_class], True, axis=1)
            coefs = np.where(own, coefs, 0.0)
    if kernel == "precomputed":
        serial = draw(st.lists(st.integers(0, 2**31 - 3), min_size=n, max_size=n))
        where = {"n_features": 2**31 - 2, "support_index": np.array(serial, dtype=int)}
    else:
        cells = st.dictionaries(st.integers(0, 2**31 - 3), numbers, max_size=4)
        rows = draw(st.lists(cells, min_size=n, max_size=n))
        data = np.array([row[j] for row in rows for j in sorted(row)], dtype=float)
        indices = np.array([j for row in rows for j in sorted(row)], dtype=int)
        indptr = np.cumsum([0] + [len(row) for row in rows])
        where = {
            "n_features": 2**31 - 2,
            "support": csr_matrix((data, indices, indptr), shape=(n, 2**31 - 2)),
        }
    return ModelRecord(kernel=kernel, coefs=coefs, sv_class=sv_class, **where, **common)


@pytest.mark.pure
@given(records())
def test_what_is_written_is_read_back_bit_for_bit(record):
    text = text_of(record)
    expected = grouped(record) if format_of(record) == "LIBSVM" else record
    same_record(expected, read(text))
    assert text_of(read(text)) == text
    assert text.decode("ascii").endswith("}\n")


@given(records())
def test_carriage_returns_and_trailing_blank_lines_change_nothing(record):
    text = text_of(record)
    same_record(read(text), read(text.replace(b"\n", b"\r\n") + b"\r\n \n"))


def linear(k=2, multiclass="ovr", p=3, **more):
    rng = np.random.default_rng(k)
    m = n_problems(k, multiclass)
    given = {
        "classes": np.arange(1.0, k + 1),
        "bias": rng.normal(size=m),
        "weights": rng.normal(size=(p, m)),
        "extra": {"C": 1.0, "note": "ünïcode\n"},
    }
    return ModelRecord(n_features=p, multiclass=multiclass, **(given | more))


def expansion(k=2, multiclass="ovo", kernel="rbf", n=6, p=4, **more):
    """A kernel machine; one-versus-one coefficients stay within the pairs of their class."""
    rng = np.random.default_rng(k)
    m = n_problems(k, multiclass)
    sv_class = np.arange(n) % k
    coefs = rng.normal(size=(n, m))
    if multiclass == "ovo" and k > 2:
        own = np.zeros((n, m), dtype=bool)
        np.put_along_axis(own, pairs_of_classes(k)[sv_class], True, axis=1)
        coefs = np.where(own, coefs, 0.0)
    given = {
        "classes": np.arange(float(k))[::-1].copy(),
        "bias": rng.normal(size=m),
        "coefs": coefs,
        "sv_class": sv_class,
        "gamma": 0.5,
        "coef0": 1.0,
        "degree": 2,
        "probability": (-np.ones(m), np.full(m, 0.1)),
        "extra": {"C": 2.0},
    }
    if kernel == "precomputed":
        given["support_index"] = rng.permutation(p)[:n] if p >= n else np.arange(n) % p
    else:
        dense = rng.normal(size=(n, p)) * (rng.random((n, p)) < 0.7)
        given["support"] = csr_matrix(dense)
    return ModelRecord(n_features=p, multiclass=multiclass, kernel=kernel, **(given | more))


SAMPLES = {
    "LIBLINEAR, two classes": linear(),
    "LIBLINEAR, no bias": linear(3, bias=np.zeros(3)),
    "LIBSVM, two classes": expansion(),
    "LIBSVM, polynomial, three classes": expansion(3, kernel="poly"),
    "LIBSVM, precomputed": expansion(kernel="precomputed", p=9),
    "nesvm_jit, linear pairs": linear(3, "ovo", probability=(np.ones(3), np.zeros(3))),
    "nesvm_jit, kernel and rest": expansion(3, "ovr"),
    "nesvm_jit, precomputed": expansion(3, "ovr", "precomputed", p=9, sv_class=None),
}
samples = pytest.mark.parametrize("record", SAMPLES.values(), ids=SAMPLES.keys())


@pytest.mark.parametrize("name", SAMPLES)
def test_each_record_is_written_in_the_format_that_can_hold_it(name):
    assert format_of(SAMPLES[name]) == name.partition(",")[0]


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (linear(2, "ovo"), "LIBLINEAR"),
        (linear(classes=np.array([0.5, 1])), "nesvm_jit"),
        (linear(classes=np.array([-0.0, 1])), "nesvm_jit"),
        (linear(classes=np.array([2.0**31, 1])), "nesvm_jit"),
        (linear(classes=np.array([-(2.0**31 - 1), 1])), "LIBLINEAR"),
        (expansion(2, "ovr"), "LIBSVM"),
        (expansion(kernel="linear"), "LIBSVM"),
        (expansion(kernel="sigmoid"), "LIBSVM"),
        (expansion(sv_class=None), "nesvm_jit"),
        (expansion(3, coefs=np.ones((6, 3))), "nesvm_jit"),
        (expansion(n=0), "LIBSVM"),
    ],
)
def test_format_at_the_edges(record, expected):
    assert format_of(record) == expected
    again = read(text_of(record))
    same_record(grouped(record) if expected == "LIBSVM" else record, again)


def test_the_text_is_that_of_liblinear_and_libsvm():
    record = linear(classes=np.array([1.0, -1.0]), weights=[[0.5], [-2], [0.1]], bias=[0.25])
    head, last = text_of(record).split(b"nesvm_jit ")
    assert head == (
        b"solver_type L2R_L1LOSS_SVC_DUAL\nnr_class 2\nlabel 1 -1\nnr_feature 3\nbias 1\nw\n"
        b"0.5 \n-2 \n0.10000000000000001 \n0.25 \n"
    )
    assert json.loads(last)["model"] == "csvm"
    bare = replace(record, bias=np.zeros(1), model="lpsvm")
    assert b"L1R_L2LOSS_SVC\n" in text_of(bare)
    assert b"\nbias -1\nw\n0.5 \n-2 \n0.10000000000000001 \nnesvm_jit" in text_of(bare)
    kept = replace(bare, extra={"bias": True}, model="lssvm")
    assert b"L2R_L2LOSS_SVC_DUAL\n" in text_of(kept)
    assert b"\nbias 1\nw\n0.5 \n-2 \n0.10000000000000001 \n0 \nnesvm_jit" in text_of(kept)
    support = csr_matrix([[0, 1.5], [1, 0]])
    record = expansion(
        n=2, p=2, kernel="poly", support=support, coefs=[[1], [-1]], bias=[0.5], sv_class=[1, 0]
    )
    assert text_of(record).split(b"nesvm_jit ")[0] == (
        b"svm_type c_svc\nkernel_type polynomial\ndegree 2\ngamma 0.5\ncoef0 1\nnr_class 2\n"
        b"total_sv 2\nrho -0.5\nlabel 1 0\nprobA -1\nprobB 0.10000000000000001\nnr_sv 1 1\nSV\n"
        b"-1 1:1 \n1 2:1.5 \n"
    )


def test_extra_takes_numpy_values_and_refuses_what_json_cannot_hold():
    extra = {"gap": np.float32(0.5), "n": np.int64(3), "a": np.arange(2), "t": float("inf")}
    assert read(text_of(linear(extra=extra))).extra == {
        "gap": 0.5,
        "n": 3,
        "a": [0, 1],
        "t": float("inf"),
    }
    loop = {}
    loop["self"] = loop
    deep = []
    for _ in range(10**5):
        deep = [deep]
    for extra in ({"f": print}, loop, {"deep": deep}, {(1, 2): 3}):
        with pytest.raises(InputError, match="extra must be writable as JSON"):
            text_of(linear(extra=extra))


@pytest.mark.parametrize("name", ["a.model", "a.gz", "a.bz2", "a.xz"])
def test_files_plain_and_compressed(tmp_path, name):
    write_model(tmp_path / name, SAMPLES["LIBLINEAR, two classes"])
    same_record(SAMPLES["LIBLINEAR, two classes"], read_model(str(tmp_path / name)))
    assert os.listdir(tmp_path) == [name]


def test_failed_writing_leaves_the_old_file(tmp_path):
    path = tmp_path / "a"
    write_model(path, linear())
    before = path.read_bytes()
    with pytest.raises(InputError, match="extra must be writable"):
        write_model(path, linear(extra={"a": {1j}}))
    with pytest.raises(InputError, match="a ModelRecord is required, got dict"):
        write_model(path, {})
    assert path.read_bytes() == before
    with pytest.raises(NesvmError, match="cannot be written"):
        write_model(tmp_path / "no" / "a", linear())
    assert os.listdir(tmp_path) == ["a"]


def test_standard_streams_and_no_compiler():
    program = (
        "import sys; from nesvm_jit.files.model.text import read_model, write_model;"
        "write_model('-', read_model('-')); assert 'numba' not in sys.modules"
    )
    text = text_of(SAMPLES["LIBSVM, polynomial, three classes"])
    out = subprocess.run([sys.executable, "-c", program], input=text, capture_output=True)
    assert out.stdout == text, out.stderr


# ---------------------------------------------------------------- records


@pytest.mark.parametrize(
    ("make", "change", "message"),
    [
        (linear, {"model": "svm"}, f"model must be one of {', '.join(MODELS)}, got 'svm'"),
        (linear, {"degree": -1}, "degree must be a whole number from 0"),
        (linear, {"gamma": -1.0}, "gamma must be at least 0, got -1.0"),
        (linear, {"coef0": float("nan")}, "coef0 must be finite"),
        (linear, {"classes": [1]}, "at least 2 classes are required, got 1"),
        (linear, {"classes": [1, 1]}, "classes must be distinct"),
        (linear, {"bias": [1, 2]}, r"bias must have shape \(1,\), got \(2,\)"),
        (linear, {"bias": ["x"]}, "bias must be real numbers"),
        (linear, {"extra": 3}, "extra must be a dict, got int"),
        (linear, {"weights": None}, "either weights or coefs are required"),
        (linear, {"kernel": "rbf"}, "weights belong to a linear kernel, got rbf"),
        (linear, {"sv_class": [1]}, "support vectors need coefs, got weights"),
        (linear, {"weights": np.full((3, 1), np.inf)}, "weights must be finite"),
        (expansion, {"support": None}, "rbf kernels need support and no support_index"),
        (expansion, {"kernel": "precomputed"}, "precomputed kernels need support_index"),
        (expansion, {"support": np.eye(6)}, "support must have 4 columns, got 6"),
        (expansion, {"support": np.full((6, 4), np.nan)}, "support must be finite"),
        (expansion, {"sv_class": [0]}, "sv_class must have 6 entries, got 1"),
        (expansion, {"sv_class": [2] * 6}, "sv_class must be from 0 to 1"),
        (expansion, {"sv_class": [0.5] * 6}, "sv_class must be a vector of whole numbers"),
    ],
)
def test_records_that_do_not_fit_together_are_refused(make, change, message):
    with pytest.raises(InputError, match=message):
        replace(make(), **change)


def test_support_is_put_in_order():
    unsorted = csr_matrix((np.ones(3), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 4))
    record = expansion(n=1, support=unsorted)
    assert record.support.indices.tolist() == [0, 2]
    assert record.support.data.tolist() == [1, 2]
    assert unsorted.indices.tolist() == [2, 0, 2]


# ---------------------------------------------------------------- what is refused

LINEAR = b"solver_type L2R_LR\nnr_class 3\nlabel 1 2 3\nnr_feature 2\nbias -1\nw\n1 2 3 \n4 5 6 \n"
KERNEL = (
    b"svm_type c_svc\nkernel_type rbf\ngamma 0.5\nnr_class 2\ntotal_sv 2\nrho 0.5\nlabel 1 -1\n"
    b"nr_sv 1 1\nSV\n1 1:1 3:2 \n-1 2:1 \n"
)
SERIAL = KERNEL.replace(b"rbf\ngamma 0.5", b"precomputed").split(b"1 1:1")[0] + b"1 0:1 \n-1 0:2 \n"
OWN = text_of(linear(3, "ovo", p=2, bias=np.zeros(3), weights=np.ones((2, 3)), extra={}))
LAST = b'nesvm_jit {"version":1,"model":"csvm","multiclass":"ovr","extra":{}}\n'
PROB = b'"probability":[[1,1,1],[2,2,2]],"extra"'


def test_the_texts_below_are_fine():
    assert read(LINEAR).weights.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert read(LINEAR + LAST).extra == {}
    assert read(LINEAR + LAST.replace(b'"extra"', PROB)).probability[1].tolist() == [2, 2, 2]
    assert read(KERNEL).support.toarray().tolist() == [[1, 0, 2], [0, 1, 0]]
    assert read(SERIAL).support_index.tolist() == [0, 1]
    assert read(OWN).n_problems == 3


def changed(text, old, new):
    assert old in text
    return text.replace(old, new, 1)


WRONG = [
    (LINEAR, b"solver_type", b"x", r"<file object>:1: a model that starts with .* got 'x'$"),
    (LINEAR, LINEAR, b"", ":1: a model that starts with solver_type"),
    (LINEAR, LINEAR, b"\x00\xff\xfe\n", r":1: a model .* got '\\x00\\xff\\xfe'"),
    (LINEAR, LINEAR, b"\x80\x04\x95pickle", "a model that starts with"),
    (LINEAR, LINEAR, gzip.compress(LINEAR, mtime=0)[:-9], "damaged gzip data"),
    (LINEAR, b"L2R_LR", b"L2R_L2LOSS_SVR", ":1: solver_type must be one of .* got 'L2R_L2L"),
    (LINEAR, b"L2R_LR", b"ONECLASS_SVM", "got 'ONECLASS_SVM'"),
    (LINEAR, b"L2R_LR", b"L2R_LR L2R_LR", ":1: solver_type must be 1 value, got more"),
    (LINEAR, b"nr_class 3", b"nr_class 1", ":2: nr_class must be a whole number from 2 to"),
    (LINEAR, b"nr_class 3", b"nr_class -3", "got '-3'"),
    (LINEAR, b"nr_class 3", b"nr_class 1_0", "got '1_0'"),
    (LINEAR, b"nr_class 3", b"nr_class 3.0", "got '3.0'"),
    (LINEAR, b"nr_class 3", b"nr_class", "nr_class must be 1 value, got 0"),
    (LINEAR, b"nr_class 3", b"nr_class 1000000000", ":3: label must be 1000000000 values"),
    (LINEAR, b"nr_class 3", b"nr_class " + b"9" * 5000, "got '9{40}…'"),
    (LINEAR, b"nr_class 3", b"classes 3", ":2: one of .* required, got 'classes'"),
    (LINEAR, b"nr_class 3", b"\xe9" * 50, r"got '\\xe9"),
    (LINEAR, b"nr_class 3\n", b"", ":5: 'nr_class' is required before 'w'"),
    (LINEAR, b"label 1 2 3", b"label 1 2", ":3: label must be 3 values, got 2"),
    (LINEAR, b"label 1 2 3", b"label 1 2 3 4", "label must be 3 values, got more"),
    (LINEAR, b"label 1 2 3", b"label 1 2 1", ":3: label must be 3 distinct labels"),
    (LINEAR, b"label 1 2 3", b"label 1 2 2.5", "label must be a whole number .* got '2.5'"),
    (LINEAR, b"label 1 2 3", b"label 1 2 2147483648", "got '2147483648'"),
    (LINEAR, b"bias -1", b"bias -1\nbias -1", ":6: 'bias' is required once, got it again"),
    (LINEAR, b"bias -1", b"bias nan", ":5: bias must be a finite number, got 'nan'"),
    (LINEAR, b"bias -1", b"bias 1", ":8: 3 lines required after 'w', the file ends at 2"),
    (LINEAR, b"bias -1", b"bias 1e999", "bias must be a finite number"),
    (LINEAR, b"nr_feature 2", b"nr_feature 1", ":8: the end or 'nesvm_jit' required, got '4'"),
    (LINEAR, b"nr_feature 2", b"nr_feature 1000000000000000", ":4: nr_feature must be a whole"),
    (LINEAR, b"nr_feature 2", b"nr_feature 2000000000", ":6: 2000000000 lines of 3 numbers"),
    (LINEAR, b"w\n1", b"w 1\n1", ":6: nothing is required after 'w', got '1'"),
    (LINEAR, b"w\n1", b"W\n1", ":6: one of"),
    (LINEAR, b"w\n1 2 3 \n4 5 6 \n", b"", ":5: a line 'w' is required, the file ends"),
    (LINEAR, b"4 5 6 ", b"4 5", ":8: 3 numbers required, got 2"),
    (LINEAR, b"4 5 6 ", b"4 5 6 7", ":8: 3 numbers required, got more"),
    (LINEAR, b"4 5 6 ", b"", ":8: 3 numbers required, got 0"),
    (LINEAR, b"4 5 6 ", b"4 x 6", ":8: a finite number required, got 'x'"),
    (LINEAR, b"4 5 6 ", b"4 1_0 6", "got '1_0'"),
    (LINEAR, b"4 5 6 ", b"4 0x1 6", "got '0x1'"),
    (LINEAR, b"4 5 6 ", b"4 \xd9\xa1 6", r"got '\\xd9\\xa1'"),
    (LINEAR, b"4 5 6 ", b"4 nan 6", ":8: a finite number required, got 'nan'"),
    (LINEAR, b"1 2 3 ", b"1 -inf 6", ":7: a finite number required, got '-inf'"),
    (LINEAR, b"1 2 3 ", b"1 1e999 6", ":7: a finite number required, got '1e999'"),
    (LINEAR, b"5 6 \n", b"5 6", ":8: a newline is required, the file ends within"),
    (KERNEL, b"c_svc", b"one_class", ":1: svm_type must be one of c_svc, nu_svc, got 'one_"),
    (KERNEL, b"c_svc", b"epsilon_svr", "got 'epsilon_svr'"),
    (KERNEL, b"c_svc", b"nu_svr", "got 'nu_svr'"),
    (KERNEL, b"rbf", b"string", ":2: kernel_type must be one of .* got 'string'"),
    (KERNEL, b"gamma 0.5\n", b"", ":8: 'gamma' is required before 'SV'"),
    (KERNEL, b"gamma 0.5", b"gamma inf", ":3: gamma must be a finite number, got 'inf'"),
    (KERNEL, b"gamma 0.5", b"gamma -1", "gamma must be at least 0, got -1.0"),
    (KERNEL, b"gamma 0.5", b"gamma " + b"1" * 5000, "gamma must be a finite number, got '1+…'"),
    (KERNEL, b"rho 0.5", b"rho 0.5 1", ":6: rho must be 1 value, got more"),
    (KERNEL, b"nr_sv 1 1", b"nr_sv 2 1", ":8: nr_sv must be 2 in all, as total_sv, got 3"),
    (KERNEL, b"nr_sv 1 1", b"nr_sv 3 -1", ":8: nr_sv must be a whole number from 0"),
    (KERNEL, b"nr_sv 1 1", b"nr_sv 1 1\nprobA 1", ":10: 'probB' is required before 'SV'"),
    (KERNEL, b"total_sv 2", b"total_sv 2000000000", "nr_sv must be 2000000000 in all"),
    (KERNEL.replace(b"total_sv 2", b"total_sv 9"), b"nr_sv 1 1", b"nr_sv 4 5",
     ":11: 9 lines required after 'SV', the file ends at 2"),
    (KERNEL, b"1:1 3:2", b"0:1 3:2", ":10: index must be from 1 to 4294967294, got 0"),
    (KERNEL, b"1:1 3:2", b"-1:1 3:2", "index must be from 1 to 4294967294, got -1"),
    (KERNEL, b"1:1 3:2", b"3:1 1:2", ":10: index 1 after 3, indices must ascend"),
    (KERNEL, b"1:1 3:2", b"3:1 3:2", "index 3 after 3"),
    (KERNEL, b"1:1 3:2", b"1:1 4294967295:2", "got 4294967295"),
    (KERNEL, b"1:1 3:2", b"1:1 99999999999999999999:2", "index:value required, got '9+:2'"),
    (KERNEL, b"1:1 3:2", b"1:1 3", "index:value required, got '3'"),
    (KERNEL, b"1:1 3:2", b"1:1 3: 2", "index:value required, got '3:'"),
    (KERNEL, b"1:1 3:2", b"1:1 3:2:4", "index:value required, got '3:2:4'"),
    (KERNEL, b"1:1 3:2", b"1:1 :2 4:", "index:value required, got ':2'"),
    (KERNEL, b"1:1 3:2", b"1:1 1e1:2", "index:value required, got '1e1:2'"),
    (KERNEL, b"1:1 3:2", b"1:1 3:nan", "index:value required, got '3:nan'"),
    (KERNEL, b"1:1 3:2", b"1:1 3:1_0", "a finite number required|got '3:1_0'"),
    (KERNEL, b"-1 2:1", b"-1 2:1e999", ":11: value must be finite, got inf"),
    (KERNEL, b"-1 2:1", b"2:1", ":11: a finite number required, got '2:1'"),
    (KERNEL, b"-1 2:1", b"inf 2:1", ":11: a finite number required, got 'inf'"),
    (KERNEL, b"-1 2:1 \n", b"", ":10: 2 lines required after 'SV', the file ends at 1"),
    (SERIAL, b"0:1", b"0:0", ":9: value must be a whole number from 1 to"),
    (SERIAL, b"0:1", b"0:1.5", "value must be a whole number .* got 1.5"),
    (SERIAL, b"0:1", b"1:1", "index must be from 0 to 0, got 1"),
    (SERIAL, b"0:1", b"0:1 1:5", ":9: one cell 0:serial is required, got 2"),
    (OWN, b"nesvm_jit 1", b"nesvm_jit 2", ":1: nesvm_jit must be 1, got '2'"),
    (OWN, b"model csvm", b"model svm", f":2: model must be one of {', '.join(MODELS)}"),
    (OWN, b"multiclass ovo", b"multiclass all", "multiclass must be one of ovo, ovr"),
    (OWN, b"kernel linear", b"kernel rbf", "weights belong to a linear kernel, got rbf"),
    (OWN, b"label 1 2 3", b"label 1 2 nan", "label must be a finite number, got 'nan'"),
    (OWN, b"bias 0 0 0", b"bias 0 0", "bias must be 3 values, got 2"),
    (OWN, b'nesvm_jit {"version":1,"extra":{}}\n', b"", "a last line 'nesvm_jit {...}' is"),
    (OWN, b"\nw\n", b"\nSV\n", "'total_sv' is required before 'SV'"),
    (LINEAR + LAST, LAST, LAST[:-4], ":9: a JSON object is required, got '{"),
    (LINEAR + LAST, LAST, b"nesvm_jit [1]", ":9: a JSON object is required, got '.1.'"),
    (LINEAR + LAST, LAST, LAST + b"more", ":10: the end of the file is required, got 'more'"),
    (LINEAR + LAST, b'{"version', b"[" * 10**6 + b'{"version', "a JSON object is required"),
    (LINEAR + LAST, b'{"version', b'{"a":' * 10**6 + b'{"version', "a JSON object"),
    (LINEAR + LAST, b'"version":1', b'"version":1,"version":1', "a JSON object is required"),
    (LINEAR + LAST, b'"version":1', b'"a":"\xff"', "a JSON object is required"),
    (LINEAR + LAST, b'"version":1', b'"version":' + b"9" * 5000, "a JSON object is required"),
    (LINEAR + LAST, b'"version":1', b'"version":2', ":9: version 1 is required, got 2"),
    (LINEAR + LAST, b'"version":1', b'"version":true', "version 1 is required, got True"),
    (LINEAR + LAST, b"{}}", b"[]}", "'extra' must be a JSON object"),
    (LINEAR + LAST, b'"csvm"', b"[1]", r"model must be one of .* got \[1\]"),
    (LINEAR + LAST, b'"ovr"', b'"ovo"', "multiclass must be ovr here, got ovo"),
    (LINEAR + LAST, b'"extra"', b'"degree":1.5,"extra"', "degree must be a whole number"),
    (LINEAR + LAST, b'"extra"', b'"gamma":"1","extra"', "gamma must be finite numbers"),
    (LINEAR + LAST, b'"extra"', b'"gamma":NaN,"extra"', "gamma must be finite numbers"),
    (LINEAR + LAST, b'"extra"', b'"gamma":1' + b"0" * 400 + b',"extra"', "gamma must"),
    (LINEAR + LAST, b'"extra"', b'"probability":[1],"extra"', "probability must be two lists"),
    (LINEAR + LAST, b'"extra"', b'"probability":[1,2],"extra"', "probability must have 3"),
    (KERNEL + LAST, b'"extra"', b'"n_features":2,"extra"', "n_features must be at least 3"),
    (KERNEL + LAST, b'"extra"', b'"n_features":1e3,"extra"', "n_features must be a whole"),
]  # fmt: skip


@pytest.mark.pure
@pytest.mark.parametrize(("text", "old", "new", "message"), WRONG, ids=[w[3] for w in WRONG])
def test_what_is_wrong_is_told_in_one_line(text, old, new, message):
    with pytest.raises(FormatError, match=message) as e:
        read(changed(text, old, new))
    assert str(e.value).isprintable()
    assert len(str(e.value)) < 300


def test_files_that_are_none(tmp_path):
    with pytest.raises(FormatError, match="none: cannot be read: No such file or directory"):
        read_model(tmp_path / "none")
    with pytest.raises(FormatError, match="Is a directory"):
        read_model(tmp_path)
    with pytest.raises(FormatError, match="binary mode"):
        read_model(io.StringIO("solver_type"))
    for path in (3.5, None, "a\0b"):
        with pytest.raises(InputError):
            read_model(path)


def test_sums_that_overflow_are_refused():
    text = changed(LINEAR, b"L2R_LR\nnr_class 3\nlabel 1 2 3", b"MCSVM_CS\nnr_class 2\nlabel 1 2")
    text = text.split(b"w\n")[0] + b"w\n1e308 -1e308 \n1 2 \n"
    with pytest.raises(FormatError, match="weights must be finite"):
        read(text)


def test_tables_that_would_not_fit_are_refused(monkeypatch):
    monkeypatch.setattr(model_reader, "LARGEST_TABLE", 10)
    with pytest.raises(FormatError, match="at most 10 coefficients are held, got 6 vectors in 3"):
        read(text_of(expansion(3)))
    monkeypatch.setattr(model_reader, "_record", lambda lines: [0] * 10**15)
    with pytest.raises(FormatError, match=r"too large to be read \(MemoryError\)"):
        read(LINEAR)


HOSTILE = {
    "features": changed(LINEAR, b"nr_feature 2", b"nr_feature 2147483647"),
    "classes": changed(LINEAR, b"nr_class 3", b"nr_class 2147483647"),
    "pairs": changed(KERNEL, b"nr_class 2", b"nr_class 2147483647"),
    "vectors": changed(KERNEL, b"total_sv 2", b"total_sv 2147483647").replace(
        b"nr_sv 1 1", b"nr_sv 2147483646 1"
    ),
    "a long row": LINEAR.replace(b"6 ", b"7 " * 10**6),
    "one word": b"x" * 10**6,
    "one key": b"solver_type" * 10**5,
    "blank lines": b"solver_type L2R_LR\n" + b"\n" * 10**4,
    "a long number": changed(LINEAR, b"4 5 6", b"4" * 10**6 + b" 5 6"),
    "a long cell": changed(KERNEL, b"1:1", b"1:" + b"1" * 10**6),
    "a long index": changed(KERNEL, b"1:1", b"1" * 10**6 + b":1"),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_sizes_cost_neither_time_nor_memory(text):
    tracemalloc.start()
    start = time.perf_counter()
    with pytest.raises(FormatError):
        read(text)
    assert time.perf_counter() - start < 2
    assert tracemalloc.get_traced_memory()[1] < 10**6 + 20 * len(text)
    tracemalloc.stop()


@samples
def test_every_truncation_is_noticed(record):
    """Except before the last line, where LIBLINEAR and LIBSVM end, and before its newline."""
    text = text_of(record)
    fine = {len(text) - 1}
    if format_of(record) != "nesvm_jit":
        fine.add(text.rindex(b"nesvm_jit "))
    assert len(text) > 50
    for stop in range(len(text)):
        if stop in fine:
            assert read(text[:stop]).n_problems == record.n_problems
        else:
            with pytest.raises(FormatError):
                read(text[:stop])


WORDS = [
    b" ", b"\n", b"\r\n", b":", b"-", b".", b"e", b"0", b"1", b"9", b"1e400", b"nan", b"inf", b"_",
    b"\x00", b"\xff", b"0:1", b" 2:2 ", b"99999999999999999999", b"2147483648", b"w\n", b"SV\n",
    b"nesvm_jit ", b"{", b"}", b"[", b'"', b",", b"label ", b"bias 1\n", b"total_sv 7\n",
]  # fmt: skip


@samples
def test_mutated_files_are_read_or_refused(record):
    rng = random.Random(1)
    original = text_of(record)
    for _ in range(600):
        text = bytearray(original)
        for _ in range(rng.choice((1, 1, 2, 4))):
            at = rng.randrange(len(text) + 1)
            match rng.randrange(4):
                case 0:
                    text[at:at] = rng.choice(WORDS)
                case 1:
                    text[at : at + rng.randrange(1, 5)] = rng.choice(WORDS)
                case 2:
                    del text[at : at + rng.randrange(1, 40)]
                case 3:
                    text[at : at + 1] = bytes([rng.randrange(256)])
        try:
            again, message = read(bytes(text)), ""
        except FormatError as e:
            again, message = None, str(e)
        assert message.isprintable(), text
        if again is not None:
            same_record(again, read(text_of(again)))


# ---------------------------------------------------------------- the peers


def points(k, n=60, p=5, seed=0):
    """Overlapping classes 1…k (two: +1 and −1), the last column seldom used."""
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=n)
    X = rng.normal(size=(n, p)) + 1.5 * np.eye(k, p)[y]
    X[rng.random((n, p)) < 0.2] = 0
    return X, (1.0 - 2 * y if k == 2 else y + 1.0)


def cells(X):
    return [{j + 1: v for j, v in enumerate(row) if v} for row in X.tolist()]


def quietly(call, *arguments):
    with redirect_stdout(io.StringIO()):
        return call(*arguments)


@pytest.fixture
def liblinear():
    return pytest.importorskip("liblinear.liblinearutil")


@pytest.fixture
def svm():
    return pytest.importorskip("libsvm.svmutil")


@pytest.mark.parametrize("bias", ["-1", "1", "2.5"])
@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("solver", range(8))
def test_models_of_liblinear_score_here_as_there(liblinear, tmp_path, solver, k, bias):
    X, y = points(k)
    theirs = liblinear.train(y, cells(X), f"-s {solver} -B {bias} -q")
    path = str(tmp_path / "m")
    liblinear.save_model(path, theirs)
    record = read_model(path)
    f = decisions(record, X)
    np.testing.assert_array_equal(record.classes, theirs.get_labels())
    if solver == 4 and k == 2:  # their predict would write two scores into room for one
        (w0, b0), (w1, b1) = theirs.get_decfun(0), theirs.get_decfun(1)
        expected = X @ (np.array(w0) - w1) + (b0 - b1)
        np.testing.assert_allclose(f[:, 0], expected, rtol=1e-10, atol=1e-12)
        return
    logistic = solver in (0, 6, 7)
    labels, _, values = quietly(liblinear.predict, y, cells(X), theirs, f"-q -b {int(logistic)}")
    np.testing.assert_array_equal(labels_of(record, X), labels)
    if logistic:
        A, B = record.probability
        f = 1 / (1 + np.exp(A * f + B))
        f = np.hstack([f, 1 - f]) if k == 2 else f / f.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(f, values, rtol=1e-10, atol=1e-12)
    same_record(record, read(text_of(record)))


@pytest.mark.parametrize("solver", [11, 12, 13, 21])
def test_regression_and_one_class_models_of_liblinear_are_refused(liblinear, tmp_path, solver):
    X, y = points(2)
    path = str(tmp_path / "m")
    quietly(lambda: liblinear.save_model(path, liblinear.train(y, cells(X), f"-s {solver} -q")))
    with pytest.raises(FormatError, match=":1: solver_type must be one of"):
        read_model(path)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("k", [2, 4])
def test_liblinear_predicts_with_our_models(liblinear, tmp_path, k, with_bias, model):
    X, y = points(k)
    record = linear(k, p=5, model=model)
    record = record if with_bias else replace(record, bias=np.zeros_like(record.bias))
    path = str(tmp_path / "m")
    write_model(path, record)
    theirs = liblinear.load_model(path)
    labels, _, values = quietly(liblinear.predict, y, cells(X), theirs, "-q")
    np.testing.assert_array_equal(labels, labels_of(record, X))
    np.testing.assert_allclose(values, decisions(record, X), rtol=1e-10, atol=1e-12)


KERNEL_OPTIONS = {
    "linear": "-t 0",
    "poly": "-t 1 -g 0.3 -r 1 -d 2",
    "rbf": "-t 2 -g 0.3",
    "sigmoid": "-t 3 -g 0.1 -r 0.1",
    "precomputed": "-t 4",
}


def for_libsvm(X, kernel):
    """Rows as LIBSVM wants them, and the matrix that `decisions` wants."""
    if kernel != "precomputed":
        return cells(X), X
    K = X @ X.T
    return [{0: i + 1, **{j + 1: v for j, v in enumerate(row)}} for i, row in enumerate(K)], K


@pytest.mark.parametrize("kernel", KERNEL_OPTIONS)
@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("kind", ["-s 0 -b 1", "-s 1 -n 0.2"])
def test_models_of_libsvm_score_here_as_there(svm, tmp_path, kind, k, kernel):
    X, y = points(k)
    rows, Z = for_libsvm(X, kernel)
    path = str(tmp_path / "m")
    svm.svm_save_model(path, svm.svm_train(y, rows, f"{kind} {KERNEL_OPTIONS[kernel]} -q"))
    theirs = svm.svm_load_model(path)  # the file has eight digits of each value
    theirs.param.svm_type = 0  # scored alike; for nu_svc their predict has room for one score
    labels, _, values = quietly(svm.svm_predict, y, rows, theirs, "-q")
    record = read_model(path)
    np.testing.assert_allclose(decisions(record, Z), values, rtol=1e-9, atol=1e-11)
    np.testing.assert_array_equal(labels_of(record, Z), labels)
    assert (record.probability is not None) == ("-b 1" in kind)
    assert format_of(record) == "LIBSVM"
    same_record(record, read(text_of(record)))


@pytest.mark.parametrize("kind", ["-s 2", "-s 3", "-s 4"])
def test_regression_and_one_class_models_of_libsvm_are_refused(svm, tmp_path, kind):
    X, y = points(2)
    path = str(tmp_path / "m")
    svm.svm_save_model(path, svm.svm_train(y, cells(X), f"{kind} -b 1 -q"))
    with pytest.raises(FormatError, match=":1: svm_type must be one of c_svc, nu_svc"):
        read_model(path)


@pytest.mark.parametrize("kernel", KERNEL_OPTIONS)
@pytest.mark.parametrize("k", [2, 4])
def test_libsvm_predicts_with_our_models(svm, tmp_path, k, kernel):
    X, y = points(k, n=30)
    rows, Z = for_libsvm(X, kernel)
    record = expansion(k, kernel=kernel, n=9, p=30 if kernel == "precomputed" else 5)
    path = str(tmp_path / "m")
    write_model(path, record)
    theirs = svm.svm_load_model(path)
    labels, _, values = quietly(svm.svm_predict, y, rows, theirs, "-q")
    np.testing.assert_allclose(values, decisions(record, Z), rtol=1e-9, atol=1e-11)
    np.testing.assert_array_equal(labels, labels_of(record, Z))
    if k == 2:
        A, B = record.probability
        P = 1 / (1 + np.exp(A * decisions(record, Z) + B))
        _, _, theirs_p = quietly(svm.svm_predict, y, rows, theirs, "-q -b 1")
        np.testing.assert_allclose(np.array(theirs_p)[:, :1], P, atol=1e-6)


def test_support_vectors_of_a_class_keep_their_order_in_the_file(tmp_path):
    record = expansion(2, n=60, p=3)
    write_model(tmp_path / "m", record)
    coefs = read_model(tmp_path / "m").coefs[:, 0]
    mine = [record.coefs[record.sv_class == k, 0] for k in range(2)]
    np.testing.assert_array_equal(coefs, np.concatenate(mine))


@pytest.mark.parametrize(
    ("program", "record"),
    [
        pytest.param(
            *(program, record),
            marks=pytest.mark.skipif(not shutil.which(program), reason=f"no {program}"),
        )
        for program, record in (
            ("liblinear-predict", linear(4, p=5)),
            ("svm-predict", expansion(4, p=5, n=9)),
        )
    ],
)
def test_the_programs_read_our_models(tmp_path, program, record):
    X, y = points(4)
    write_model(tmp_path / "m", record)
    rows = [" ".join([str(c), *(f"{j}:{v!r}" for j, v in row.items())])
            for c, row in zip(y, cells(X), strict=True)]  # fmt: skip
    (tmp_path / "x").write_text("\n".join(rows) + "\n")
    command = [program, *(str(tmp_path / name) for name in ("x", "m", "out"))]
    subprocess.run(command, check=True, capture_output=True)
    np.testing.assert_array_equal(np.loadtxt(tmp_path / "out"), labels_of(record, X))
