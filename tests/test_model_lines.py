"""The lines of model files: headers, rows, cells and the last line, with every refusal."""

import io
import json
import re
import sys
from functools import partial

import numpy as np
import pytest
from nesvm_jit import FormatError, InputError
from nesvm_jit.files.model import reader as model_reader
from nesvm_jit.files.model import rows as model_rows
from nesvm_jit.files.model import text as model_text
from nesvm_jit.files.model.lines import Header, Lines, is_number, quote_word, read_closing
from nesvm_jit.files.model.record import ModelRecord
from nesvm_jit.files.model.rows import number_rows, vector_rows
from nesvm_jit.files.model.text import format_of, read_model, write_model
from nesvm_jit.settings import MODELS
from scipy.sparse import csr_matrix

from . import compare

pytestmark = pytest.mark.pure

INT = 2147483647
NO_MODEL = f"model must be one of {', '.join(MODELS)}, got"
refusal = partial(compare.refusal, kind=FormatError)


def read(text):
    return read_model(io.BytesIO(text))


def told(text):
    message = refusal(read, text)
    assert message.startswith("<file object>:")
    return message.removeprefix("<file object>:")


def test_every_model_has_a_relative_in_liblinear():
    assert {*model_text._SOLVER_OF} == {*MODELS}
    assert {*model_text._SOLVER_OF.values()} <= {*model_reader.SOLVER_TYPES}


def text_of(record):
    file = io.BytesIO()
    write_model(file, record)
    return file.getvalue()


# ---------------------------------------------------------------- words and lines


def test_words_are_shown_printable_and_cut():
    assert quote_word(b"ab cd") == "'ab'"
    assert quote_word(b" \n") == quote_word(b"") == "''"
    assert quote_word(b"x" * 40) == f"'{'x' * 40}'"
    assert quote_word(b"x" * 41) == f"'{'x' * 40}…'"
    assert quote_word(b"a\x01\xff") == "'a\\x01\\xff'"
    assert quote_word(b" " * 199 + b"xy") == "'x'"


@pytest.mark.parametrize(
    ("word", "fine"),
    [
        *((w, True) for w in (b"1", b"-1.5e-3", b"+.5", b"5.", b"1e308", b"00")),
        *((w, False) for w in (b"", b"1e309", b"-1e999", b"nan", b"inf", b"1_0", b"0x1", b"1 ")),
        *((w, False) for w in (b"e", b"--1", b"1\xff")),
    ],
)
def test_numbers_are_decimal_and_finite(word, fine):
    assert is_number(word) is fine


def test_lines_are_counted_and_named():
    lines = Lines(b"a\nb\nc", "f")
    assert (lines.number, lines.position) == (0, 0)
    assert (lines.next(), lines.number, lines.position) == (b"a\n", 1, 2)
    assert (lines.next(), lines.next(), lines.number) == (b"b\n", b"c", 3)
    assert (lines.next(), lines.number) == (b"", 3)
    assert str(lines.error("what")) == "f:3: what"
    assert str(lines.error("what", 0)) == "f:0: what"
    lines.skip_to(2, 5)
    assert (lines.next(), lines.number) == (b"b\n", 9)


def header(text, keys=("a", "b"), sections=("w", "SV")):
    lines = Lines(text, "f")
    return Header(lines, lines.next(), keys, sections)


def test_a_header_ends_at_its_section():
    found = header(b"a 1 2\n\n  b\nw\nrest\n")
    assert (found.section, found.end, found.lines.number) == ("w", 4, 4)
    assert "a" in found
    assert "b" in found
    assert "w" not in found
    assert found.words("a", 2) == [b"1", b"2"]
    assert header(b"SV\n").section == "SV"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"c 1\nw\n", "f:1: one of a, b required, got 'c'"),
        (b"a 1\nb\na 2\nw\n", "f:3: 'a' is required once, got it again"),
        (b"a 1\nw x y\n", "f:2: nothing is required after 'w', got 'x'"),
        (b"a 1\nw", "f:2: lines are required after 'w', the file ends"),
        (b"a 1\n", "f:1: a line 'SV' is required, the file ends before it"),
        (b"x" * 60 + b"\nw\n", f"f:1: one of a, b required, got '{'x' * 40}…'"),
        (b"\xe9 1\nw\n", "f:1: one of a, b required, got '\\xe9'"),
    ],
)
def test_what_a_header_must_not_say(text, message):
    assert refusal(header, text) == message


def test_values_of_a_header_are_counted_and_checked():
    found = header(b"a 1 2 \nb\n\nw\n")
    cases = (
        (found.words, ("c", 1), "f:4: 'c' is required before 'w'"),
        (found.words, ("a", 1), "f:1: a must be 1 value, got more"),
        (found.words, ("a", 3), "f:1: a must be 3 values, got 2"),
        (found.words, ("b", 1), "f:2: b must be 1 value, got 0"),
        (found.numbers, ("b", 2), "f:2: b must be 2 values, got 0"),
        (found.wholes, ("a", 2, 0, 1), "f:1: a must be a whole number from 0 to 1, got '2'"),
        (found.wholes, ("a", 2, 2, 9), "f:1: a must be a whole number from 2 to 9, got '1'"),
    )
    for act, args, message in cases:
        assert refusal(act, *args) == message
    assert found.words("a", 2) == [b"1", b"2"]
    assert found.wholes("a", 2, 1, 2) == [1, 2]
    assert found.numbers("a", 2).tolist() == [1.0, 2.0]
    assert found.numbers("a", 2).dtype == np.float64


@pytest.mark.parametrize("word", [b"1.0", b"x", b"1e1", b"1_0", b"", b"9" * 19, b"0x1", b"--1"])
def test_whole_numbers_of_a_header(word):
    found = header(b"a 1 " + (word or b"-") + b"\nw\n")
    message = refusal(found.wholes, "a", 2, -(10**18), 10**18)
    assert message.startswith("f:1: a must be a whole number from -1000000000000000000 to ")
    assert header(b"a -7\nw\n").whole("a", -7, -7) == -7
    assert header(b"a +" + b"9" * 18 + b"\nw\n").whole("a", 0, 10**18) == 10**18 - 1


def test_choices_and_numbers_of_a_header():
    found = header(b"a one\nb 1e400\nw\n")
    assert found.choice("a", ("one", "two")) == "one"
    assert (
        refusal(found.choice, "a", ("two", "three"))
        == "f:1: a must be one of two, three, got 'one'"
    )
    assert refusal(found.number, "b") == "f:2: b must be a finite number, got '1e400'"
    number = header(b"a -2.5\nw\n").number("a")
    assert (number, type(number)) == (-2.5, float)


def labels(text, whole):
    return header(text + b"\nw\n", ("nr_class", "label")).labels(whole)


def test_labels_are_distinct_and_whole_where_they_must_be():
    ends = b"nr_class 2\nlabel -2147483648 2147483647"
    assert labels(ends, True).tolist() == [-2147483648.0, 2147483647.0]
    assert labels(ends, True).dtype == np.float64
    assert labels(b"nr_class 3\nlabel 0.5 -1 2", False).tolist() == [0.5, -1, 2]
    limits = "f:2: label must be a whole number from -2147483648 to 2147483647, got"
    for word in ("-2147483649", "2147483648", "0.5"):
        assert refusal(labels, f"nr_class 2\nlabel 1 {word}".encode(), True) == f"{limits} '{word}'"
    for whole in (True, False):
        got = "f:2: label must be 3 distinct labels, got one twice"
        assert refusal(labels, b"nr_class 3\nlabel 1 2 1", whole) == got
        few = f"f:1: nr_class must be a whole number from 2 to {INT}, got '1'"
        assert refusal(labels, b"nr_class 1\nlabel 1", whole) == few


def test_probabilities_come_in_two_lines_or_none():
    keys = ("probA", "probB")
    assert header(b"w\n", keys).probability(1) is None
    A, B = header(b"probA 1 2\nprobB 3 4\nw\n", keys).probability(2)
    assert (A.tolist(), B.tolist()) == ([1, 2], [3, 4])
    assert (
        refusal(header(b"probA 1\nw\n", keys).probability, 1)
        == "f:2: 'probB' is required before 'w'"
    )
    assert (
        refusal(header(b"probB 1\nw\n", keys).probability, 1)
        == "f:2: 'probA' is required before 'w'"
    )


# ---------------------------------------------------------------- the last line


def closed(text, **options):
    return read_closing(Lines(text, "f"), **options)


def test_the_last_line_is_an_object_or_nothing():
    facts = {"version": 1, "extra": {"a": [1, None]}, "more": 0.5}
    assert closed(b"nesvm_jit " + json.dumps(facts).encode()) == facts
    assert closed(b"\n \nnesvm_jit " + json.dumps(facts).encode() + b"\n\n") == facts
    assert closed(b"\n") is None
    assert closed(b"", required=False) is None


LAST = b'nesvm_jit {"version":1,"extra":{}}\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"\nmore\n", "f:2: the end or 'nesvm_jit' required, got 'more'"),
        (LAST + LAST, "f:2: the end of the file is required, got 'nesvm_jit'"),
        (b"nesvm_jit [1]\n", "f:1: a JSON object is required, got '[1]'"),
        (b"nesvm_jit {\n", "f:1: a JSON object is required, got '{'"),
        (b'nesvm_jit {"version":1,"extra":{"a":1,"a":1}}', None),
        (b'nesvm_jit {"extra":{}}\n', "f:1: version 1 is required, got None"),
        (b'nesvm_jit {"version":1.0,"extra":{}}\n', "f:1: version 1 is required, got 1.0"),
        (b'nesvm_jit {"version":true,"extra":{}}\n', "f:1: version 1 is required, got True"),
        (b'nesvm_jit {"version":0,"extra":{}}\n', "f:1: version 1 is required, got 0"),
        (b'nesvm_jit {"version":1}\n', "f:1: 'extra' must be a JSON object"),
        (b'nesvm_jit {"version":1,"extra":[]}\n', "f:1: 'extra' must be a JSON object"),
    ],
)
def test_what_a_last_line_must_not_be(text, message):
    message = (
        message or 'f:1: a JSON object is required, got \'{"version":1,"extra":{"a":1,"a":1}}\''
    )
    assert refusal(closed, text) == message


def test_a_last_line_that_is_required_is_missed():
    end = "a last line 'nesvm_jit {...}' is required, the file ends before it"
    assert refusal(closed, b"\n\n", required=True) == f"f:2: {end}"


# ---------------------------------------------------------------- rows


@pytest.fixture(params=["compiled", "plain"])
def either(request, monkeypatch):
    """Rows read by compiled code as far as it goes, and by Python alone."""
    monkeypatch.setattr(model_rows, "COMPILED_BYTES", 0 if request.param == "compiled" else 1 << 60)


def numbers(text, count, width):
    lines = Lines(b"w\n" + text, "f")
    lines.next()
    found = number_rows(lines, count, width)
    return found, lines


def vectors(text, count, width, serial=False):
    lines = Lines(b"SV\n" + text, "f")
    lines.next()
    return vector_rows(lines, count, width, serial)


def test_rows_of_numbers(either):
    found, lines = numbers(b"1 2 \n 3\t-4e0\r\nrest\n", 2, 2)
    assert found.tolist() == [[1, 2], [3, -4]]
    assert (lines.number, lines.next()) == (3, b"rest\n")
    assert numbers(b"rest", 0, 2)[0].shape == (0, 2)


@pytest.mark.parametrize(
    ("text", "count", "width", "message"),
    [
        (b"1 2\n", 2, 2, "f:2: 2 lines required after 'w', the file ends at 1"),
        (b"1 2\n3 4", 2, 2, "f:3: a newline is required, the file ends within the line"),
        (b"1 2\n3\n", 2, 2, "f:3: 2 numbers required, got 1"),
        (b"1 2\n3 4 5\n", 2, 2, "f:3: 2 numbers required, got more"),
        (b"1\n\n", 2, 1, "f:3: 1 number required, got 0"),
        (b"1 2\n3 x\n", 2, 2, "f:3: a finite number required, got 'x'"),
        (b"1 1e999\n3 4\n", 2, 2, "f:2: a finite number required, got '1e999'"),
    ],
)
def test_what_is_no_row_of_numbers(either, text, count, width, message):
    assert refusal(numbers, text, count, width) == message


def test_no_size_is_believed_that_the_bytes_do_not_allow():
    ends = "lines required after 'w', the file ends at 1"
    assert refusal(numbers, b"1\n", 32768, 1) == f"f:2: 32768 {ends}"
    assert refusal(numbers, b"1 1\n", 16384, 2) == f"f:2: 16384 {ends}"
    left = "required after 'w', only 2 bytes are left"
    assert refusal(numbers, b"1\n", 32769, 1) == f"f:1: 32769 lines of 1 number {left}"
    assert refusal(numbers, b"1\n", 16385, 2) == f"f:1: 16385 lines of 2 numbers {left}"
    n = 35_000
    assert numbers(b"1\n" * n, n, 1)[0].sum() == n
    left = f"required after 'w', only {2 * n} bytes are left"
    assert refusal(numbers, b"1\n" * n, n + 1, 1) == f"f:1: {n + 1} lines of 1 number {left}"


@pytest.mark.parametrize(("size", "compiled"), [(1 << 21, 1), ((1 << 21) - 1, 0)])
def test_compiled_code_is_loaded_for_two_megabytes(monkeypatch, size, compiled):
    calls = []
    monkeypatch.setattr(model_rows, "_read_plain", lambda lines, row, *_: calls.append(row) or row)
    found, _ = numbers(b"7" + b" " * (size - 2) + b"\n", 1, 1)
    assert found.tolist() == [[7]]
    assert len(calls) == compiled


def test_rows_of_cells(either):
    coefs, cells = vectors(b"1 2 1:5 3:6\n3 4\n-1 -2 2:7 \n", 3, 2)
    assert coefs.tolist() == [[1, 2], [3, 4], [-1, -2]]
    assert [a.tolist() for a in cells] == [[0, 2, 2, 3], [1, 3, 2], [5, 6, 7]]
    assert [a.dtype for a in cells] == [np.int64, np.int64, np.float64]
    coefs, cells = vectors(b"1 1:5 4294967294:6\n2 1:7\n", 2, 1)
    assert cells.indices.tolist() == [1, 4294967294, 1]
    coefs, cells = vectors(b"1 0:5\n2 0:2147483647\n-1 0:1\n", 3, 1, serial=True)
    assert [a.tolist() for a in cells] == [[0, 1, 2, 3], [0, 0, 0], [5, INT, 1]]
    assert vectors(b"", 0, 1)[0].shape == (0, 1)


INDEX = "index must be from 1 to 4294967294, got"
SERIAL = "value must be a whole number from 1 to 2147483647, got"


@pytest.mark.parametrize(
    ("text", "serial", "message"),
    [
        (b"1 1:2\n1 0:3\n", False, f"f:3: {INDEX} 0"),
        (b"1 1:2\n1 -7:3\n", False, f"f:3: {INDEX} -7"),
        (b"1 1:2\n1 1:1 4294967295:3\n", False, f"f:3: {INDEX} 4294967295"),
        (b"1 5:2 5:3\n1 1:3\n", False, "f:2: index 5 after 5, indices must ascend"),
        (b"1\n1 1:1 7:1 6:1\n", False, "f:3: index 6 after 7, indices must ascend"),
        (b"1 1:1e999\n1 0:1\n", False, "f:2: value must be finite, got inf"),
        (b"1 1:1\n1 2:-1e999\n", False, "f:3: value must be finite, got -inf"),
        (b"1 1:1\n1 2:1 x\n", False, "f:3: index:value required, got 'x'"),
        (b"1 1:1\n1 2:1 3:\n", False, "f:3: index:value required, got '3:'"),
        (b"1 1:1\n1 2:1 :3\n", False, "f:3: index:value required, got ':3'"),
        (b"1 1:1\n1 2:1:3\n", False, "f:3: index:value required, got '2:1:3'"),
        (b"1 1:1\n1 2:1 3:4 5:y\n", False, "f:3: index:value required, got '5:y'"),
        (b"1 1:1\n1 2.5:1\n", False, "f:3: index:value required, got '2.5:1'"),
        (b"1 1:1\n1 1000000000000000000:1\n", False, f"f:3: {INDEX} {10**18}"),
        (b"1 1:1\n1 1000000000000000001:1\n", False,
         "f:3: index:value required, got '1000000000000000001:1'"),
        (b"1 1:1\n1 -1000000000000000001:1\n", False,
         "f:3: index:value required, got '-1000000000000000001:1'"),
        (b"1 1:1\n1 999999999999999999:1\n", False, f"f:3: {INDEX} {'9' * 18}"),
        (b"1 0:1\n1 0:2 0:3\n", True, "f:3: one cell 0:serial is required, got 2"),
        (b"1 0:1\n1\n", True, "f:3: one cell 0:serial is required, got 0"),
        (b"1 0:1\n1 1:1\n", True, "f:3: index must be from 0 to 0, got 1"),
        (b"1 0:1\n1 0:0\n", True, f"f:3: {SERIAL} 0"),
        (b"1 0:1\n1 0:-1\n", True, f"f:3: {SERIAL} -1"),
        (b"1 0:1\n1 0:1.5\n", True, f"f:3: {SERIAL} 1.5"),
        (b"1 0:1\n1 0:2147483648\n", True, f"f:3: {SERIAL} 2.14748e+09"),
        (b"1 0:1\n1 0:1e999\n", True, f"f:3: {SERIAL} inf"),
        (b"1 0:1\n", True, "f:2: 2 lines required after 'SV', the file ends at 1"),
        (b"1 0:1\n1 0:1", True, "f:3: a newline is required, the file ends within the line"),
    ],
)  # fmt: skip
def test_what_is_no_row_of_cells(either, text, serial, message):
    assert refusal(vectors, text, 2, 1, serial) == message


def test_lines_are_counted_where_compiled_code_and_python_take_turns(either):
    hard = b"1.00000000000000011102230246251565404236316680908203125"
    text = b"1\n2\n%s\n4\n%s\n6\n" % (hard, hard)
    found, lines = numbers(text + b"rest", 6, 1)
    assert found.ravel().tolist() == [1, 2, 1, 4, 1, 6]
    assert (lines.number, lines.next()) == (7, b"rest")
    assert refusal(numbers, text + b"x\n", 7, 1) == "f:8: a finite number required, got 'x'"


def test_indices_start_anew_in_every_row(either):
    _, cells = vectors(b"1 3:1 4:1\n1\n1 1:1 9:1\n1\n1 9:1\n", 5, 1)
    assert cells.indptr.tolist() == [0, 2, 2, 4, 4, 5]
    assert refusal(vectors, b"1\n1\n1 2:1 1:1\n1\n1 3:1\n", 5, 1).startswith("f:4: index 1 after 2")


# ---------------------------------------------------------------- the three formats

LINEAR = "solver_type {}\nnr_class {}\nlabel {}\nnr_feature 2\nbias {}\nw\n{}"


@pytest.mark.parametrize(
    ("solver", "model", "logistic"),
    [
        ("L2R_LR", "csvm", True),
        ("L2R_L2LOSS_SVC_DUAL", "lssvm", False),
        ("L2R_L2LOSS_SVC", "lssvm", False),
        ("L2R_L1LOSS_SVC_DUAL", "csvm", False),
        ("MCSVM_CS", "csvm", False),
        ("L1R_L2LOSS_SVC", "lpsvm", False),
        ("L1R_LR", "csvm", True),
        ("L2R_LR_DUAL", "csvm", True),
    ],
)
def test_models_of_liblinear_are_the_nearest_of_ours(solver, model, logistic):
    record = read(LINEAR.format(solver, 3, "7 8 9", -1, "1 2 3\n4 5 6\n").encode())
    assert (record.model, record.multiclass, record.kernel) == (model, "ovr", "linear")
    assert record.extra == {"solver_type": solver}
    assert record.classes.tolist() == [7, 8, 9]
    assert record.weights.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert record.bias.tolist() == [0, 0, 0]
    if logistic:
        assert [a.tolist() for a in record.probability] == [[-1, -1, -1], [0, 0, 0]]
    else:
        assert record.probability is None


@pytest.mark.parametrize(
    ("solver", "k", "bias", "rows", "weights", "intercepts"),
    [
        ("L2R_LR", 2, "-1", "1\n2\n", [[1], [2]], [0]),
        ("L2R_LR", 2, "0", "1\n2\n3\n", [[1], [2]], [0]),
        ("L2R_LR", 2, "2.5", "1\n2\n4\n", [[1], [2]], [10]),
        ("L2R_LR", 3, "1", "1 2 3\n4 5 6\n7 8 9\n", [[1, 2, 3], [4, 5, 6]], [7, 8, 9]),
        ("MCSVM_CS", 2, "2", "1 5\n2 7\n4 1\n", [[-4], [-5]], [6]),
        ("MCSVM_CS", 2, "-1", "1 5\n2 7\n", [[-4], [-5]], [0]),
    ],
)
def test_weights_of_liblinear_with_and_without_a_bias(solver, k, bias, rows, weights, intercepts):
    record = read(LINEAR.format(solver, k, "1 2 3"[: 2 * k - 1], bias, rows).encode())
    assert record.weights.tolist() == weights
    assert record.bias.tolist() == intercepts
    assert record.n_features == 2


KERNEL = (
    b"svm_type nu_svc\nkernel_type %s\ndegree 2\ngamma 0.5\ncoef0 -1\nnr_class 3\ntotal_sv 4\n"
    b"rho 1 2 3\nlabel 5 6 7\nnr_sv 1 2 1\nSV\n"
)
CELLS = b"1 2 1:1\n3 4 3:1\n5 6\n7 8 2:2\n"


@pytest.mark.parametrize("kind", ["linear", "polynomial", "rbf", "sigmoid"])
def test_a_model_of_libsvm_is_read_field_by_field(kind):
    record = read(KERNEL % kind.encode() + CELLS)
    gamma, coef0, degree = {
        "linear": (0.0, 0.0, 3),
        "polynomial": (0.5, -1.0, 2),
        "rbf": (0.5, 0.0, 3),
        "sigmoid": (0.5, -1.0, 3),
    }[kind]
    assert record.kernel == {"polynomial": "poly"}.get(kind, kind)
    assert (record.gamma, record.coef0, record.degree) == (gamma, coef0, degree)
    assert (record.multiclass, record.model, record.n_features) == ("ovo", "csvm", 3)
    assert record.extra == {"svm_type": "nu_svc"}
    assert record.bias.tolist() == [-1, -2, -3]
    assert record.sv_class.tolist() == [0, 1, 1, 2]
    assert record.coefs.tolist() == [[1, 2, 0], [3, 0, 4], [5, 0, 6], [0, 7, 8]]
    assert record.support.toarray().tolist() == [[1, 0, 0], [0, 0, 1], [0, 0, 0], [0, 2, 0]]
    assert record.probability is None
    assert record.weights is None


def test_a_precomputed_model_of_libsvm_names_its_rows():
    text = KERNEL % b"precomputed" + b"1 2 0:4\n3 4 0:1\n5 6 0:2\n7 8 0:9\n"
    record = read(text)
    assert record.support_index.tolist() == [3, 0, 1, 8]
    assert record.n_features == 9
    assert record.support is None
    last = b'nesvm_jit {"version":1,"model":"lssvm","multiclass":"ovo","n_features":%d,"extra":{}}'
    assert read(text + last % 12).n_features == 12
    assert read(text + last % 9).model == "lssvm"
    assert told(text + last % 8) == "16: n_features must be at least 9, the highest, got 8"


def own(section="w\n1\n2\n", **change):
    lines = {
        "nesvm_jit": "1",
        "model": "lssvm",
        "kernel": "linear",
        "degree": "2",
        "gamma": "0.5",
        "coef0": "-1",
        "multiclass": "ovo",
        "nr_class": "2",
        "label": "0.5 1",
        "nr_feature": "2",
        "bias": "3",
        **change,
    }
    text = "".join(f"{k} {v}\n" for k, v in lines.items() if v is not None) + section
    return text.encode() + b'nesvm_jit {"version":1,"extra":{"a":1}}\n'


def test_a_model_of_ours_is_read_field_by_field():
    record = read(own())
    assert (record.model, record.kernel, record.degree) == ("lssvm", "linear", 2)
    assert (record.gamma, record.coef0, record.multiclass) == (0.5, -1.0, "ovo")
    assert (record.classes.tolist(), record.n_features) == ([0.5, 1], 2)
    assert (record.bias.tolist(), record.weights.tolist()) == ([3], [[1], [2]])
    assert (record.extra, record.probability) == ({"a": 1}, None)
    record = read(
        own("SV\n5 1:7\n6\n", kernel="rbf", total_sv="2", sv_class="1 0", probA="8", probB="9")
    )
    assert (record.coefs.tolist(), record.sv_class.tolist()) == ([[5], [6]], [1, 0])
    assert record.sv_class.dtype == np.int64
    assert record.support.toarray().tolist() == [[7, 0], [0, 0]]
    assert [a.tolist() for a in record.probability] == [[8], [9]]
    assert read(own("SV\n5 1:7\n", kernel="rbf", total_sv="1")).sv_class is None
    record = read(own("SV\n5 0:2\n", kernel="precomputed", total_sv="1"))
    assert (record.support_index.tolist(), record.n_features) == ([1], 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nesvm_jit": "2"}, "1: nesvm_jit must be 1, got '2'"),
        ({"nesvm_jit": "01"}, "1: nesvm_jit must be 1, got '01'"),
        ({"model": "svm"}, f"2: {NO_MODEL} 'svm'"),
        ({"kernel": "x"},
         "3: kernel must be one of linear, poly, rbf, sigmoid, precomputed, got 'x'"),
        ({"degree": "-1"}, f"4: degree must be a whole number from 0 to {INT}, got '-1'"),
        ({"degree": "2147483648"},
         f"4: degree must be a whole number from 0 to {INT}, got '2147483648'"),
        ({"gamma": "x"}, "5: gamma must be a finite number, got 'x'"),
        ({"coef0": None}, "11: 'coef0' is required before 'w'"),
        ({"multiclass": "all"}, "7: multiclass must be one of ovo, ovr, got 'all'"),
        ({"nr_feature": "4294967295"},
         "10: nr_feature must be a whole number from 0 to 4294967294, got '4294967295'"),
        ({"bias": "1 2"}, "11: bias must be 1 value, got more"),
        ({"gamma": "-1"}, " gamma must be at least 0, got -1.0"),
        ({"section": "SV\n", "kernel": "rbf", "total_sv": "-1"},
         f"12: total_sv must be a whole number from 0 to {INT}, got '-1'"),
        ({"section": "SV\n5 1:7\n", "kernel": "rbf", "total_sv": "1", "sv_class": "2"},
         "13: sv_class must be a whole number from 0 to 1, got '2'"),
        ({"section": "SV\n5 1:7\n", "kernel": "rbf", "total_sv": "1", "sv_class": "-1"},
         "13: sv_class must be a whole number from 0 to 1, got '-1'"),
        ({"section": "SV\n5 3:7\n", "kernel": "rbf", "total_sv": "1"},
         "14: n_features must be at least 3, the highest, got 2"),
    ],
)  # fmt: skip
def test_what_a_model_of_ours_must_not_say(change, message):
    assert told(own(**change)) == message


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"degree 2", b"degree -1", f"3: degree must be a whole number from 0 to {INT}, got '-1'"),
        (b"total_sv 4", b"total_sv -1",
         f"7: total_sv must be a whole number from 0 to {INT}, got '-1'"),
        (b"nr_sv 1 2 1", b"nr_sv 1 -2 5",
         f"10: nr_sv must be a whole number from 0 to {INT}, got '-2'"),
        (b"nr_sv 1 2 1", b"nr_sv 1 2 2", "10: nr_sv must be 4 in all, as total_sv, got 5"),
        (b"nr_sv 1 2 1", b"nr_sv 0 2 1", "10: nr_sv must be 4 in all, as total_sv, got 3"),
        (b"nu_svc", b"nu_svr", "1: svm_type must be one of c_svc, nu_svc, got 'nu_svr'"),
        (b"rho 1 2 3", b"rho 1 2", "8: rho must be 3 values, got 2"),
    ],
)  # fmt: skip
def test_what_a_model_of_libsvm_must_not_say(old, new, message):
    assert told((KERNEL % b"polynomial" + CELLS).replace(old, new)) == message


def test_a_table_of_coefficients_may_be_as_large_as_it_may(monkeypatch):
    assert model_reader.LARGEST_TABLE * 8 == 2 << 30
    monkeypatch.setattr(model_reader, "LARGEST_TABLE", 12)
    assert read(KERNEL % b"rbf" + CELLS).coefs.shape == (4, 3)
    monkeypatch.setattr(model_reader, "LARGEST_TABLE", 11)
    got = "15: at most 11 coefficients are held, got 4 vectors in 3 pairs"
    assert told(KERNEL % b"rbf" + CELLS) == got


def last(**facts):
    whole = {"version": 1, "model": "lpsvm", "multiclass": "ovr", "extra": {"b": 2}, **facts}
    return b"nesvm_jit " + json.dumps(whole).encode() + b"\n"


THREE = LINEAR.format("L2R_LR", 3, "7 8 9", -1, "1 2 3\n4 5 6\n").encode()
TWO = LINEAR.format("L2R_LR", 2, "7 8", -1, "1\n2\n").encode()


def test_the_last_line_says_what_the_format_does_not():
    record = read(THREE + last(degree=5, gamma=2, coef0=-0.5, probability=[[1, 2, 3], [4, 5, 6.5]]))
    assert (record.model, record.extra) == ("lpsvm", {"b": 2})
    assert (record.degree, record.gamma, record.coef0) == (5, 2.0, -0.5)
    assert [a.tolist() for a in record.probability] == [[1, 2, 3], [4, 5, 6.5]]
    record = read(THREE + last())
    assert (record.degree, record.gamma, record.coef0, record.probability) == (3, 0.0, 0.0, None)
    assert read(TWO + last(multiclass="ovo")).multiclass == "ovo"
    assert read(THREE + last(degree=INT)).degree == INT
    assert read(THREE + last(degree=0)).degree == 0
    assert read(THREE + last(probability=None)).probability is None


def test_header_lines_of_libsvm_hold_against_the_last_line():
    text = KERNEL % b"polynomial" + CELLS
    record = read(text + last(multiclass="ovo", degree=7, gamma=9, coef0=9, n_features=8))
    assert (record.degree, record.gamma, record.coef0) == (2, 0.5, -1.0)
    assert (record.n_features, record.support.shape) == (8, (4, 8))
    assert (record.model, record.extra) == ("lpsvm", {"b": 2})


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"model": "svm"}, f"{NO_MODEL} 'svm'"),
        ({"model": None}, f"{NO_MODEL} None"),
        ({"multiclass": "x" * 50}, f"multiclass must be one of ovo, ovr, got {'x' * 50!r:.40}"),
        ({"multiclass": "ovo"}, "multiclass must be ovr here, got ovo"),
        ({"n_features": -1}, "n_features must be a whole number from 0 to 4294967294, got -1"),
        ({"n_features": 2**32 - 1},
         "n_features must be a whole number from 0 to 4294967294, got 4294967295"),
        ({"n_features": True}, "n_features must be a whole number from 0 to 4294967294, got True"),
        ({"degree": 2**31}, f"degree must be a whole number from 0 to {INT}, got 2147483648"),
        ({"degree": 2.0}, f"degree must be a whole number from 0 to {INT}, got 2.0"),
        ({"gamma": "1"}, "gamma must be finite numbers"),
        ({"gamma": True}, "gamma must be finite numbers"),
        ({"coef0": None}, "coef0 must be finite numbers"),
        ({"coef0": float("nan")}, "coef0 must be finite numbers"),
        ({"coef0": 10**400}, "coef0 must be finite numbers"),
        ({"probability": [1]}, "probability must be two lists"),
        ({"probability": {"a": 1, "b": 2}}, "probability must be two lists"),
        ({"probability": [[1], [1], [1]]}, "probability must be two lists"),
        ({"probability": [[1, 2], [1, 2, 3]]}, "probability must have 3 entries"),
        ({"probability": [[1, 2, 3], [1, 2, 3, 4]]}, "probability must have 3 entries"),
        ({"probability": [[1, 2, 3], 3]}, "probability must have 3 entries"),
        ({"probability": [[1, 2, 3], [1, 2, "3"]]}, "probability must be finite numbers"),
    ],
)  # fmt: skip
def test_what_a_last_line_of_liblinear_must_not_say(facts, message):
    assert told(THREE + last(**facts)) == f"9: {message}"


def test_two_classes_may_be_called_pairs_or_rest_and_more_may_not():
    text = KERNEL % b"rbf" + CELLS + last(multiclass="ovr")
    assert told(text) == "16: multiclass must be ovo here, got ovr"


def test_what_is_no_model_is_told(tmp_path, monkeypatch):
    start = "a model that starts with solver_type (LIBLINEAR), svm_type (LIBSVM) or nesvm_jit"
    assert told(b"\nsolver_type\n") == f"1: {start} is required, got ''"
    assert told(b"") == f"1: {start} is required, got ''"
    assert refusal(read_model, tmp_path) == f"{tmp_path}: cannot be read: Is a directory"

    class Failing:
        error = OSError("odd")

        def read(self):
            raise self.error

    assert refusal(read_model, Failing()) == "<file object>: cannot be read: odd"
    Failing.error = EOFError("short")
    assert refusal(read_model, Failing()) == "<file object>: short"
    for error in (MemoryError, RecursionError):
        Failing.error = error
        what = f"too large to be read ({error.__name__})"
        assert refusal(read_model, Failing()) == f"<file object>: {what}"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(THREE)))
    assert read_model("-").n_features == 2


# ---------------------------------------------------------------- writing


def linear(k=2, multiclass="ovr", **more):
    m = 1 if k == 2 else k
    given = {"classes": range(1, k + 1), "bias": np.zeros(m), "weights": np.ones((2, m))}
    return ModelRecord(n_features=2, multiclass=multiclass, **{**given, **more})


def expansion(**more):
    given = {
        "classes": [3, 1, 2],
        "n_features": 2,
        "bias": [0.5, -1.5, 2],
        "multiclass": "ovo",
        "kernel": "rbf",
        "gamma": 0.1,
        "coef0": 2.0,
        "degree": 4,
        "coefs": [[0, 1, 2], [3, 4, 0], [5, 0, 6], [-7, 8, 0]],
        "sv_class": [2, 0, 1, 0],
        "support": [[1, 2], [0, 3], [0, 0], [4, 0]],
    }
    given["support"] = csr_matrix(given["support"], dtype=float)
    return ModelRecord(**{**given, **more})


def said(record):
    """The text above the last line, and the facts of that."""
    head, _, facts = text_of(record).rpartition(b"nesvm_jit {")
    return head.decode(), json.loads("{" + facts.decode())


@pytest.mark.parametrize(
    ("kernel", "lines", "left"),
    [
        ("linear", "", {"gamma": 0.1, "coef0": 2.0, "degree": 4}),
        ("poly", "degree 4\ngamma 0.10000000000000001\ncoef0 2\n", {}),
        ("rbf", "gamma 0.10000000000000001\n", {"coef0": 2.0, "degree": 4}),
        ("sigmoid", "gamma 0.10000000000000001\ncoef0 2\n", {"degree": 4}),
    ],
)
def test_a_kernel_machine_is_written_as_libsvm_does(kernel, lines, left):
    head, facts = said(expansion(kernel=kernel, model="lssvm", extra={"C": 1}))
    name = {"poly": "polynomial"}.get(kernel, kernel)
    assert head == (
        f"svm_type c_svc\nkernel_type {name}\n{lines}nr_class 3\ntotal_sv 4\n"
        "rho -0.5 1.5 -2\nlabel 3 1 2\nnr_sv 2 1 1\nSV\n"
        "3 4 2:3 \n-7 8 1:4 \n5 6 \n1 2 1:1 2:2 \n"
    )
    common = {"version": 1, "model": "lssvm", "multiclass": "ovo", "extra": {"C": 1}}
    assert facts == {**common, "n_features": 2, **left}


def test_classes_without_support_vectors_are_counted_as_none():
    record = expansion(coefs=[[0, 1, 0], [3, 4, 0], [5, 0, 6], [-7, 8, 0]], sv_class=[0, 0, 1, 0])
    assert "\nnr_sv 3 1 0\nSV\n" in said(record)[0]
    assert read(text_of(record)).sv_class.tolist() == [0, 0, 0, 1]


def test_a_precomputed_machine_is_written_with_serial_numbers():
    record = expansion(kernel="precomputed", support=None, support_index=[1, 0, 1, 0],
                       probability=(np.ones(3), np.arange(3.0)))  # fmt: skip
    head, facts = said(record)
    assert "kernel_type precomputed\nnr_class" in head
    assert "label 3 1 2\nprobA 1 1 1\nprobB 0 1 2\nnr_sv" in head
    assert head.endswith("SV\n3 4 0:1 \n-7 8 0:1 \n5 6 0:2 \n1 2 0:2 \n")
    assert "probability" not in facts
    assert (facts["gamma"], facts["coef0"], facts["degree"]) == (0.1, 2.0, 4)


@pytest.mark.parametrize(
    ("record", "lines", "rows"),
    [
        (linear(), "bias -1", "1 \n1 \n"),
        (linear(bias=[-0.0]), "bias 1", "1 \n1 \n-0 \n"),
        (linear(extra={"bias": True}), "bias 1", "1 \n1 \n0 \n"),
        (linear(extra={"bias": False}), "bias -1", "1 \n1 \n"),
        (linear(3, bias=[0, 0, 2.5]), "bias 1", "1 1 1 \n1 1 1 \n0 0 2.5 \n"),
    ],
)
def test_a_linear_machine_is_written_with_a_bias_if_it_has_one(record, lines, rows):
    head, facts = said(record)
    k = len(record.classes)
    label = " ".join(map(str, range(1, k + 1)))
    assert head == (
        f"solver_type L2R_L1LOSS_SVC_DUAL\nnr_class {k}\nlabel {label}\nnr_feature 2\n"
        f"{lines}\nw\n{rows}"
    )
    common = {"version": 1, "model": "csvm", "multiclass": "ovr", "extra": record.extra}
    assert facts == {**common, "gamma": 0.0, "coef0": 0.0, "degree": 3}


def test_probabilities_of_a_linear_machine_go_into_the_last_line():
    facts = said(linear(3, probability=([1, 2, 3], [0.5, 0, 0])))[1]
    assert facts["probability"] == [[1, 2, 3], [0.5, 0, 0]]
    assert "n_features" not in facts


@pytest.mark.parametrize(
    ("record", "solver"),
    [
        (linear(), "L2R_L1LOSS_SVC_DUAL"),
        (linear(model="lssvm"), "L2R_L2LOSS_SVC_DUAL"),
        (linear(model="lpsvm"), "L1R_L2LOSS_SVC"),
        (linear(extra={"solver_type": "L2R_LR"}), "L2R_LR"),
        (linear(extra={"solver_type": "MCSVM_CS"}), "L2R_L1LOSS_SVC_DUAL"),
        (linear(3, extra={"solver_type": "MCSVM_CS"}), "MCSVM_CS"),
        (linear(extra={"solver_type": "L2R_L2LOSS_SVR"}), "L2R_L1LOSS_SVC_DUAL"),
        (linear(extra={"solver_type": ["L2R_LR"]}), "L2R_L1LOSS_SVC_DUAL"),
    ],
)
def test_the_solver_that_liblinear_named_is_named_again(record, solver):
    assert said(record)[0].startswith(f"solver_type {solver}\n")


def test_a_machine_in_our_own_format_is_written_line_by_line():
    record = expansion(multiclass="ovr", kernel="poly", probability=(np.ones(3), np.arange(3.0)))
    own_lines = (
        "nesvm_jit 1\nmodel csvm\nkernel poly\ndegree 4\ngamma 0.10000000000000001\ncoef0 2\n"
        "multiclass ovr\nnr_class 3\nlabel 3 1 2\nnr_feature 2\nbias 0.5 -1.5 2\n"
        "probA 1 1 1\nprobB 0 1 2\ntotal_sv 4\n"
    )
    rows = "SV\n0 1 2 1:1 2:2 \n3 4 0 2:3 \n5 0 6 \n-7 8 0 1:4 \n"
    head, facts = said(record)
    assert head == own_lines + "sv_class 2 0 1 0\n" + rows
    assert facts == {"version": 1, "extra": {}}
    bare = expansion(multiclass="ovr", kernel="poly", sv_class=None)
    assert said(bare)[0] == re.sub("prob[AB].*\n", "", own_lines) + rows
    head, facts = said(linear(classes=[0.5, 1]))
    assert head.endswith("label 0.5 1\nnr_feature 2\nbias 0\nw\n1 \n1 \n")


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (linear(classes=[-(2.0**31 - 1), 2.0**31 - 1]), "LIBLINEAR"),
        (linear(classes=[-(2.0**31), 1]), "nesvm_jit"),
        (linear(classes=[2.0**31, 1]), "nesvm_jit"),
        (linear(classes=[-0.0, 1]), "nesvm_jit"),
        (linear(classes=[1.5, 1]), "nesvm_jit"),
        (linear(2, "ovo"), "LIBLINEAR"),
        (linear(3, "ovo"), "nesvm_jit"),
        (linear(3), "LIBLINEAR"),
        (expansion(), "LIBSVM"),
        (expansion(multiclass="ovr"), "nesvm_jit"),
        (expansion(sv_class=None), "nesvm_jit"),
        (expansion(sv_class=[0, 0, 1, 0]), "nesvm_jit"),
        (expansion(n_features=INT - 1, support=csr_matrix((4, INT - 1))), "LIBSVM"),
        (expansion(n_features=INT, support=csr_matrix((4, INT))), "nesvm_jit"),
    ],
)
def test_a_record_is_written_in_the_first_format_that_holds_it(record, expected):
    assert format_of(record) == expected


@pytest.mark.parametrize(
    ("n_features", "k", "expected"),
    [
        (INT - 1, 2, "LIBLINEAR"),
        (INT, 2, "nesvm_jit"),
        (INT // 7 - 1, 7, "LIBLINEAR"),
        (INT // 7, 7, "nesvm_jit"),
    ],
)
def test_liblinear_counts_its_weights_with_an_int(n_features, k, expected):
    record = linear(k)
    object.__setattr__(record, "n_features", n_features)
    assert format_of(record) == expected


@pytest.mark.parametrize(
    ("size", "pieces"), [(1, 7), (3, 7), (4, 7), (6, 4), (8, 4), (9, 3), (99, 1)]
)
def test_rows_are_formatted_some_at_a_time(monkeypatch, size, pieces):
    monkeypatch.setattr(model_text, "BLOCK_NUMBERS", size)
    table = np.arange(21.0).reshape(7, 3)
    found = list(model_text._rows(table))
    assert "".join(found) == "".join(f"{a:g} {b:g} {c:g} \n" for a, b, c in table.tolist())
    assert len(found) == pieces


def test_what_json_cannot_hold_is_told():
    message = refusal(write_model, io.BytesIO(), linear(extra={"f": {1}}), kind=InputError)
    assert message == "extra must be writable as JSON: JSON has no set"
    facts = said(linear(extra={"a": np.float64(0.5), "b": np.arange(2)}))[1]
    assert facts["extra"] == {"a": 0.5, "b": [0, 1]}
    message = refusal(write_model, io.BytesIO(), [linear()], kind=InputError)
    assert message == "a ModelRecord is required, got list"
    assert b'"extra":{}}\n' in text_of(linear())
