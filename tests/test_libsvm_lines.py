"""LIBSVM text at its edges: where blocks are cut, which line is wrong, the widths of indices."""

import gzip
import inspect
import io
import mmap
import os
import sys
import threading
from itertools import pairwise

import numpy as np
import pytest
from nesvm_jit import FormatError, convert, read_libsvm, write_libsvm
from nesvm_jit.files.libsvm import explain, parse, stream
from nesvm_jit.files.libsvm import reader as libsvm
from nesvm_jit.files.libsvm.parse import form_of
from nesvm_jit.files.libsvm.stream import Place, libsvm_blocks, placed_blocks
from nesvm_jit.files.text import read_bytes, readable
from nesvm_jit.kernels.text import libsvm as lt
from scipy.sparse import csr_matrix

from .compare import refusal

pytestmark = pytest.mark.pure

HIGHEST = 4294967294
HALF = b"1.00000000000000011102230246251565404236316680908203125"  # between 1 and the next


def read(text, **options):
    return read_libsvm(io.BytesIO(text), **options)


def bytes_of(text):
    return np.frombuffer(text, dtype=np.uint8)


# ---------------------------------------------------------------- messages

FILE = "<file object>:"


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (b"", {}, "<file object>: no rows; at least one line `label index:value ...` is required"),
        (b"x 1:2\n", {}, FILE + "1: label must be a decimal number, got 'x'"),
        (b"\n\nx", {}, FILE + "3: label must be a decimal number, got 'x'"),
        (
            b"\xef\xbb\xbf1 1:2\n",
            {},
            FILE + "1: label must be a decimal number, got '\\xef\\xbb\\xbf1'"
            " (a byte order mark: save as plain ASCII)",
        ),
        (b"\xee1 1:2\n", {}, FILE + "1: label must be a decimal number, got '\\xee1'"),
        (b"\xef", {}, FILE + "1: label must be a decimal number, got '\\xef'"),
        (b"\xef\xbb1", {}, FILE + "1: label must be a decimal number, got '\\xef\\xbb1'"),
        (b"\xf4\x91 1:2", {}, FILE + "1: label must be a decimal number, got '\\xf4\\x91'"),
        *(
            (mark + b"1", {}, FILE + f"1: label must be a decimal number, got '{shown}1'"
             " (a byte order mark: save as plain ASCII)")
            for mark, shown in ((b"\xff\xfe", "\\xff\\xfe"), (b"\xfe\xff", "\\xfe\\xff"))
        ),
        (b"\n\xef", {}, FILE + "2: label must be a decimal number, got '\\xef'"),
        (b"\xef 1\nx", {}, FILE + "1: label must be a decimal number, got '\\xef'"),
        (b"1 0:2", {}, FILE + "1: index must be at least 1, got 0"
         " (indices count from 1 in files of this format)"),
        (b"1 3:2 2:1", {}, FILE + "1: index 2 after 3, indices must ascend"),
        (b"1 3:2", {"n_features": 2}, FILE + "1: index must be at most 2, got 3"),
        (b"1 2:2", {"n_features": 2, "zero_based": True},
         FILE + "1: index must be at most 1, got 2"),
        (b"1 4294967295:2", {}, FILE + "1: index must be at most 4294967294, got 4294967295"),
        (b"1 1:2\n1 1:1e999", {}, FILE + "2: number too large for float64, got 1e999"),
        (b"1 1:2\n-1e999", {}, FILE + "2: number too large for float64, got -1e999"),
        (b"1 qid:x", {}, FILE + "1: qid:N with a whole number required, got 'qid:x'"),
        (b"1 " + b"y" * 40, {}, FILE +
         f"1: index:value required with a whole number as index, got '{'y' * 40}'"),
        (b"1 " + b"y" * 41, {}, FILE +
         f"1: index:value required with a whole number as index, got '{'y' * 40}…'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_word_for_word(text, options, message):
    assert refusal(read, text, **options, kind=FormatError) == message


def test_words_are_shown_printable_and_cut():
    assert explain.token(bytes_of(b"ab cd\n"), 0) == "'ab'"
    assert explain.token(bytes_of(b"ab cd\n"), 3) == "'cd'"
    assert explain.token(bytes_of(b"  \nx"), 0) == "''"
    assert explain.token(bytes_of(b"a\x01\x7f\xff"), 0) == "'a\\x01\\x7f\\xff'"
    assert explain.token(bytes_of(b" " * 199 + b"xy"), 0) == "'x'"
    assert explain.token(bytes_of(b" " * 200 + b"x"), 0) == "''"


def test_lines_are_counted_in_steps():
    lines = np.full((1 << 24) + 9, 10, dtype=np.uint8)
    assert explain.line_of(lines, len(lines) - 4, 7) == 7 + len(lines) - 4
    assert explain.line_of(bytes_of(b"\nab\nc\n"), 5, 1) == 3


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(5, "Input/output error"), "f: cannot be read: Input/output error"),
        (OSError("odd"), "f: cannot be read: odd"),
        (EOFError("short"), "f: short"),
        (ValueError("wrong"), "f: wrong"),
        (TypeError("no"), "f: no"),
    ],
)
def test_what_keeps_a_file_from_being_read_is_named(error, message):
    with pytest.raises(FormatError) as e, readable("f"):
        raise error
    assert str(e.value) == message


def test_a_regular_file_is_mapped_and_anything_else_read(tmp_path):
    (tmp_path / "text").write_bytes(b"1 1:2\n")
    (tmp_path / "empty").touch()
    found = read_bytes(tmp_path / "text", "text")
    assert isinstance(found, mmap.mmap)
    assert bytes(found) == b"1 1:2\n"
    assert read_bytes(tmp_path / "empty", "empty") == b""


def test_standard_input_is_read(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"1 1:2\n")))
    assert read_libsvm("-")[0].toarray().tolist() == [[2]]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"x\n")))
    assert refusal(read_libsvm, "-", kind=FormatError).startswith(
        "<standard input>:1: label must be"
    )


# ---------------------------------------------------------------- widths


@pytest.mark.parametrize("base", [0, 1])
def test_the_number_of_features_goes_up_to_what_the_indices_can_say(base):
    widest = HIGHEST + 1 - base
    zero_based = base == 0
    assert form_of("f", None, float, zero_based).most_columns == widest
    for fine in (0, 1, widest, np.int64(7)):
        form = form_of("f", fine, float, zero_based)
        assert form.n_features == form.most_columns == fine
        assert type(form.n_features) is int
    for bad in (-1, widest + 1, 1.0, True, "3"):
        what = f"n_features must be a whole number from 0 to {widest}, got {bad!r}"
        assert refusal(form_of, "f", bad, float, zero_based) == what


def test_the_first_index_is_zero_or_one():
    given = (True, np.True_, False, np.False_)
    assert [form_of("f", None, float, b).base for b in given] == [0, 0, 1, 1]
    message = "zero_based must be True or False, got 1"
    assert refusal(form_of, "f", None, float, 1) == message
    assert refusal(write_libsvm, "f", [[1]], [1], 1) == message


@pytest.mark.parametrize(
    ("width", "kind"), [(5, np.int32), (63, np.int32), (2**31 - 1, np.int32), (2**31, np.int64)]
)
def test_indices_are_as_wide_as_the_columns_need(width, kind):
    X, _ = read(b"1 2:5\n", n_features=width)
    assert X.shape == (1, width)
    assert X.indices.dtype == X.indptr.dtype == kind
    assert X.indices.tolist() == [1]
    assert X.has_sorted_indices
    assert X.has_canonical_format


@pytest.mark.parametrize(
    ("text", "shape"), [(b"1\n2\n", (2, 0)), (b"1 1:5\n", (1, 1)), (b"1 1:5\n2 3:1\n3\n", (3, 3))]
)
def test_without_a_number_of_features_the_highest_index_decides(text, shape):
    assert read(text)[0].shape == shape


@pytest.mark.parametrize("base", [0, 1])
def test_the_widest_matrix_is_written_and_a_wider_one_refused(tmp_path, base):
    widest = HIGHEST + 1 - base
    X = csr_matrix(([2.5], [widest - 1], [0, 1]), shape=(1, widest))
    file = io.BytesIO()
    write_libsvm(file, X, [3], zero_based=not base)
    assert file.getvalue() == b"3 4294967294:2.5\n"
    X.resize(1, widest + 1)
    message = f"X must have at most {widest} columns, got {widest + 1}"
    assert refusal(write_libsvm, file, X, [3], zero_based=not base) == message


def test_rows_are_written_in_the_shortest_way(tmp_path):
    file = io.BytesIO()
    X = csr_matrix(([0.0, 1e-300, -2.0], [1, 2, 0], [0, 2, 3, 3]), shape=(3, 3))
    write_libsvm(file, X, [0.5, -1, 10])
    assert file.getvalue() == b"0.5 2:0 3:1e-300\n-1 1:-2\n10\n"
    file = io.BytesIO()
    write_libsvm(file, X.toarray(), [0.5, -1, 10], zero_based=True)
    assert file.getvalue() == b"0.5 2:1e-300\n-1 0:-2\n10\n"
    message = refusal(write_libsvm, file, np.zeros((0, 2)), [])
    assert message == "X must have at least one row to be written"


# ---------------------------------------------------------------- blocks

LINES = b"1 1:2\n\n# no row\n2 qid:7 1:3 2:4\n3 # 9:9\n-4 2:5\n" * 3 + b"7 3:8"


def cuts_of(text, size):
    """After the first line end at or after `size` bytes, again and again."""
    cuts = [0]
    while cuts[-1] < len(text):
        end = text.find(b"\n", cuts[-1] + size)
        cuts.append(len(text) if end < 0 else end + 1)
    return cuts


@pytest.mark.parametrize("line", [1, 3, 1000])
@pytest.mark.parametrize("size", [1, 5, 6, 7, 50, len(LINES) - 1, len(LINES), 1000])
def test_blocks_end_at_the_first_line_end_after_their_size(monkeypatch, size, line):
    monkeypatch.setattr(parse, "BLOCK_BYTES", size)
    monkeypatch.setattr(parse, "LINE_BYTES", line)
    for text in (LINES, LINES + b"\n", b"\n" * 20):
        table = parse._cut_blocks(bytes_of(text))
        assert table.dtype == np.int64
        expected = list(pairwise(cuts_of(text, size)))
        assert table[:, [lt.START, lt.STOP]].tolist() == [list(cut) for cut in expected]
        assert not np.delete(table, [lt.START, lt.STOP], axis=1).any()


@pytest.mark.parametrize("size", [1, 5, 20, 1000])
def test_rows_close_up_over_comments_and_queries(monkeypatch, size):
    monkeypatch.setattr(parse, "BLOCK_BYTES", size)
    cases = (
        (b"1 1:2\n# none\n2 1:3\n", [1, 2], [2, 3], [0, 0], [0, 1, 2]),
        (b"1 qid:4 1:2\n2 qid:4 1:3\n", [1, 2], [2, 3], [0, 0], [0, 1, 2]),
        (
            LINES,
            [1, 2, 3, -4] * 3 + [7],
            [2, 3, 4, 5] * 3 + [8],
            [0, 0, 1, 1] * 3 + [2],
            [0, 1, 3, 3, 4, 5, 7, 7, 8, 9, 11, 11, 12, 13],
        ),
    )
    for text, labels, data, indices, indptr in cases:
        X, y = read(text)
        assert y.tolist() == labels
        assert X.data.tolist() == data
        assert X.indices.tolist() == indices
        assert X.indptr.tolist() == indptr


@pytest.mark.parametrize("per_block", [1, 2, 64])
@pytest.mark.parametrize("size", [1, 150, 1000])
def test_numbers_that_python_must_read_come_to_their_places(monkeypatch, size, per_block):
    monkeypatch.setattr(parse, "BLOCK_BYTES", size)
    monkeypatch.setattr(parse, "HARD_PER_BLOCK", per_block)
    hard = [HALF.replace(b"1.", b"%d." % k) for k in range(1, 6)]
    text = b"".join(b"%s 1:%d 2:%s\n" % (h, k, h) for k, h in enumerate(hard))
    X, y = read(b"8 1:9\n" + text + b"-%s" % hard[4])
    assert y.tolist() == [8, *map(float, hard), -float(hard[4])]
    cells = [[k, float(h)] for k, h in enumerate(hard)]
    assert X.toarray().tolist() == [[9, 0], *cells, [0, 0]]


def test_the_very_first_number_may_be_one_that_python_must_read():
    X, y = read(b"7 1:%s\n8 1:3\n" % HALF)
    assert (X.data.tolist(), y.tolist()) == ([1, 3], [7, 8])
    X, y = read(b"%s 1:2\n8 1:3\n" % HALF)
    assert (X.data.tolist(), y.tolist()) == ([2, 3], [1, 8])


def test_a_number_that_rounds_to_infinity_is_named_with_its_line():
    huge = b"%d" % (2**1024 - 2**970)  # half way from the largest to infinity
    shown = f"'{huge[:40].decode()}…' is too large for a number"
    for text, line in ((b"\n" + huge, 2), (b"1 1:2\n1 1:" + huge, 2), (huge + b"\n1", 1)):
        message = refusal(read, text, kind=FormatError)
        assert message == f"<file object>:{line}: {shown}"


# ---------------------------------------------------------------- parts of a file


def starts_of(text):
    return [0, *(i + 1 for i, ch in enumerate(text) if ch == 10)]


@pytest.mark.parametrize("text", [b"ab\ncd\n\nef", b"\n\nab\n", b""])
def test_the_next_line_starts_here_or_later(text):
    starts = sorted({*starts_of(text), len(text)})
    assert starts
    for at in range(len(text) + 1):
        expected = min(s for s in starts if s >= at)
        assert libsvm._line_start(io.BytesIO(text), at) == expected


@pytest.fixture
def part(tmp_path):
    text = b"\n1 1:1 2:5\n# 2\n-1 2:4\n3 3:1\n"
    (tmp_path / "text").write_bytes(text)
    return tmp_path / "text", text


def test_parts_of_a_file_are_the_lines_that_begin_in_them(part):
    path, text = part
    for start in range(len(text) + 1):
        for stop in range(start, len(text) + 1):
            begins = [s for s in starts_of(text) if start <= s < stop]
            rows = [text[s:].split(b"\n")[0] for s in begins]
            expected = [float(row.split()[0]) for row in rows if row and row[:1] != b"#"]
            X, y = libsvm.parse_range(path, start, stop)
            assert y.tolist() == expected
            assert X.shape[0] == len(y)
    X, y = libsvm.parse_range(path, 0, len(text), dtype=np.float32)
    assert X.toarray().tolist() == [[1, 5, 0], [0, 4, 0], [0, 0, 1]]
    assert X.dtype == np.float32
    assert libsvm.parse_range(path, 0, 0)[0].shape == (0, 0)
    assert libsvm.parse_range(path, 0, 20, n_features=9)[0].shape[1] == 9


@pytest.mark.parametrize("block", [1, 4, parse.BLOCK_BYTES])
def test_the_line_that_is_wrong_is_counted_from_the_start_of_the_file(tmp_path, monkeypatch, block):
    monkeypatch.setattr(parse, "BLOCK_BYTES", block)
    monkeypatch.setattr(libsvm, "PIECE_BYTES", block)
    path = tmp_path / "text"
    for wrong, what in (
        (
            b"1 0:3",
            "index must be at least 1, got 0 (indices count from 1 in files of this format)",
        ),
        (b"\xef", "label must be a decimal number, got '\\xef'"),
        (b"1 3:1", "index must be at most 2, got 3"),
    ):
        text = b"\n1 1:1\n# 2\n-1 2:4\n" + wrong + b"\n\n1 1:1\n"
        path.write_bytes(text)
        at = text.index(wrong)
        for start in (0, 3, at - 1, at):
            message = refusal(libsvm.parse_range, path, start, len(text), 2, kind=FormatError)
            assert message.endswith(f"{path}:5: {what}")


@pytest.mark.xfail(
    strict=True,
    reason="FormatError is a ValueError: what reads the file catches it and names the file again",
)
def test_a_part_of_a_file_names_it_once(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"1 1:1\nx\n")
    message = refusal(libsvm.parse_range, path, 6, 8, kind=FormatError)
    assert message == f"{path}:2: label must be a decimal number, got 'x'"


def test_parts_take_the_highest_index_and_no_higher(tmp_path):
    (tmp_path / "text").write_bytes(b"1 4294967294:1\n")
    assert libsvm.parse_range(tmp_path / "text", 0, 9)[0].shape == (1, HIGHEST)
    (tmp_path / "text").write_bytes(b"1 4294967295:1\n")
    message = refusal(libsvm.parse_range, tmp_path / "text", 0, 9, kind=FormatError)
    assert message.endswith(":1: index must be at most 4294967294, got 4294967295")
    message = refusal(libsvm.parse_range, tmp_path / "none", 0, 9, kind=FormatError)
    assert message == f"{tmp_path / 'none'}: cannot be read: No such file or directory"


# ---------------------------------------------------------------- streams


class Asked(io.BytesIO):
    """A file that notes how many bytes it was asked for, and how."""

    terminal = False

    def __init__(self, data):
        super().__init__(data)
        self.sizes = []

    def isatty(self):
        return self.terminal

    def read(self, size):
        self.sizes.append(size)
        return super().read(size)

    def read1(self, size):
        self.sizes.append(-size)
        return super().read1(size)


def test_a_file_is_asked_for_blocks_but_never_for_more_than_a_piece(monkeypatch):
    text = b"1 1:2\n" * 10
    for size, piece, expected in ((20, 50, 20), (50, 20, 20), (7, 7, 7)):
        monkeypatch.setattr(stream, "READ_BYTES", piece)
        file = Asked(text)
        rows = sum(len(y) for _, y in libsvm_blocks(file, block_bytes=size))
        assert rows == 10
        assert file.sizes[0] == 6  # to tell whether it is packed
        assert set(file.sizes[1:]) == {expected}


class Slow(Asked):
    """A file that gives one byte at a time."""

    def read(self, size):
        self.sizes.append(size)
        return io.BytesIO.read(self, 1)


def test_the_first_bytes_are_asked_for_until_they_tell_what_a_file_is():
    file = Slow(b"1 1:2\n2 1:3\n")
    assert [y.tolist() for _, y in libsvm_blocks(file, block_bytes=100)] == [[1, 2]]
    assert file.sizes[:7] == [6, 5, 4, 3, 2, 1, 100]


def test_a_terminal_is_asked_once():
    file = Asked(b"1 1:2\n")
    file.terminal = True
    list(libsvm_blocks(file, block_bytes=100))
    assert file.sizes == [-6, -100]


@pytest.mark.parametrize("size", [1, 2, 5, 10, 100])
@pytest.mark.parametrize("piece", [1, 3, 8, 100])
def test_lines_are_cut_where_a_block_is_full_however_they_come(size, piece):
    for text in (b"a\nbb\n\nccc\ndddddd\ne", b"\n\n\nab\n", b"abcdef", b""):
        pieces = (text[at : at + piece] for at in range(0, len(text), piece))
        expected, rest = [], text
        while rest:
            end = rest.find(b"\n", size - 1)
            end = len(rest) if end < 0 else end + 1
            expected.append(rest[:end])
            rest = rest[end:]
        assert [bytes(b) for b in stream._whole_lines(pieces, size)] == expected


def test_places_are_bytes_lines_and_rows_and_reading_goes_on_from_each(tmp_path):
    text = b"1 1:2\n# x\n2 1:3\n\n3 1:4\n4 1:5"
    for pack in (bytes, gzip.compress):
        (tmp_path / "text").write_bytes(pack(text))
        options = (None, np.float64, False, 7)
        found = [(y.tolist(), place) for _, y, place in placed_blocks(tmp_path / "text", *options)]
        assert found == [
            ([1], Place(10, 3, 1)),
            ([2], Place(17, 5, 2)),
            ([3, 4], Place(28, 6, 4)),
        ]
        for k, (_, place) in enumerate(found):
            again = placed_blocks(tmp_path / "text", *options, start=place)
            assert [(y.tolist(), p) for _, y, p in again] == found[k + 1 :]


def test_a_pipe_gives_its_blocks_before_it_ends():
    read_end, write_end = os.pipe()
    os.write(write_end, b"1 1:2 2:3\n" * 20)
    seen = threading.Event()

    def close():
        seen.wait(2.0)
        in_time.append(seen.is_set())
        os.close(write_end)

    in_time, closing = [], threading.Thread(target=close)
    closing.start()
    blocks = libsvm_blocks(f"/dev/fd/{read_end}", block_bytes=100)
    assert [len(next(blocks)[1]) for _ in range(2)] == [10, 10]
    seen.set()
    assert list(blocks) == []
    closing.join()
    os.close(read_end)
    assert in_time == [True]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_packed_file_that_became_shorter_is_told(tmp_path, monkeypatch, pack):
    monkeypatch.setattr(stream, "READ_BYTES", 4)
    (tmp_path / "text").write_bytes(pack(b"1 1:2\n2 1:2\n"))
    options = (tmp_path / "text", None, np.float64, False, 3)
    blocks = placed_blocks(*options, start=Place(6, 2, 1))
    assert [(y.tolist(), place) for _, y, place in blocks] == [([2], Place(12, 3, 2))]
    assert list(placed_blocks(*options, start=Place(12, 3, 2))) == []
    if pack is gzip.compress:
        beyond = placed_blocks(*options, start=Place(13, 3, 2))
        message = refusal(list, beyond, kind=FormatError)
        assert message == f"{tmp_path / 'text'}: the file is shorter than it was"


def test_blocks_have_32_megabytes_of_text_unless_told():
    for act in (libsvm_blocks, convert):
        assert inspect.signature(act).parameters["block_bytes"].default == 32 * 2**20


@pytest.mark.parametrize("bad", [0, -1, 1.0, True, None])
def test_a_block_has_at_least_a_byte(bad):
    message = f"block_bytes must be a whole number from 1, got {bad!r}"
    assert refusal(libsvm_blocks, "f", block_bytes=bad) == message
    assert refusal(convert, "f", "m", block_bytes=bad) == message


@pytest.mark.parametrize("size", [1, np.int64(3)])
def test_blocks_may_be_as_small_as_a_line(tmp_path, size):
    (tmp_path / "text").write_bytes(b"1 1:2\n2 1:2\n")
    assert [len(y) for _, y in libsvm_blocks(tmp_path / "text", block_bytes=size)] == [1, 1]
