"""Reading by blocks: the same rows, the same errors, in bounded memory."""

import bz2
import gzip
import io
import lzma
import os
import subprocess
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nesvm_jit import FormatError, InputError, read_libsvm
from nesvm_jit.files.libsvm.stream import libsvm_blocks
from scipy.sparse import vstack

from .compare import same_matrix_and_labels
from .conftest import PURE

pytestmark = pytest.mark.pure

ROWS = 60 if PURE else 200
PACK = {"plain": bytes, "gzip": gzip.compress, "bz2": bz2.compress, "lzma": lzma.compress}
TEXT = b"# head\n\n" + b"".join(b"%d 1:%d %d:.5 # x\n" % (i % 3, i, i + 2) for i in range(ROWS))


def joined(source, **options):
    """All blocks as one: matrix and labels."""
    blocks = list(libsvm_blocks(source, **options))
    width = max(X.shape[1] for X, _ in blocks)
    for X, _ in blocks:
        X.resize(X.shape[0], width)
    return vstack([X for X, _ in blocks], format="csr"), np.concatenate([y for _, y in blocks])


class Trickle:
    """A file that gives 1, 2, 3, 1, 2, 3, … bytes, whatever it is asked for."""

    name = "trickle"

    def __init__(self, data):
        self.data, self.reads = io.BytesIO(data), 0

    def read(self, size):
        self.reads += 1
        return self.data.read(min(size, 1 + self.reads % 3))


line = st.one_of(
    st.sampled_from([b"", b"# note 1:2", b"  ", b"3 qid:7 1:5", b"-1", b"1 1:2 3:1e-3\r"]),
    st.tuples(st.floats(-9, 9), st.dictionaries(st.integers(1, 50), st.floats(-1, 1))).map(
        lambda r: b"%r %s" % (r[0], b" ".join(b"%d:%r" % c for c in sorted(r[1].items())))
    ),
)
broken = st.sampled_from([b"x", b"1 2:1 1:2", b"1 0:1", b"1 1:nan", b"\xef\xbb\xbf1", b"1 7"])


@given(
    st.lists(line),
    st.booleans(),
    st.integers(1, 200),
    st.sampled_from(sorted(PACK)),
    st.sampled_from([np.float64, np.float32]),
)
def test_blocks_together_are_the_file(lines, ended, size, kind, dtype):
    text = b"\n".join([*lines, b"1 1:1"]) + b"\n" * ended
    expected = read_libsvm(io.BytesIO(text), dtype=dtype)
    same_matrix_and_labels(
        joined(io.BytesIO(PACK[kind](text)), block_bytes=size, dtype=dtype), expected
    )


@given(st.lists(line), broken, st.lists(st.one_of(line, broken)), st.integers(1, 100))
def test_errors_are_those_of_the_whole_file(before, wrong, after, size):
    text = b"\n".join([*before, wrong, *after])
    with pytest.raises(FormatError) as expected:
        read_libsvm(io.BytesIO(text), n_features=60)
    with pytest.raises(FormatError) as got:
        list(libsvm_blocks(io.BytesIO(text), n_features=60, block_bytes=size))
    assert str(got.value) == str(expected.value)
    assert f":{len(before) + 1}: " in str(got.value)


def test_the_line_of_a_number_that_only_python_can_refuse():
    text = b"1\n" * 9 + b"1 1:%d" % (2**1024 - 2**970)  # half way from the largest to infinity
    for read in (read_libsvm, lambda f: list(libsvm_blocks(f, block_bytes=4))):
        with pytest.raises(FormatError, match=r":10: .* too large"):
            read(io.BytesIO(text))


def test_blocks_are_about_as_long_as_asked_and_have_their_own_width():
    blocks = list(libsvm_blocks(io.BytesIO(TEXT), block_bytes=300))
    assert len(blocks) == pytest.approx(len(TEXT) / 300, abs=2)
    widths = [X.shape[1] for X, _ in blocks]
    assert widths == sorted(set(widths))
    blocks = libsvm_blocks(io.BytesIO(TEXT), block_bytes=300, n_features=500)
    assert {X.shape[1] for X, _ in blocks} == {500}


def test_a_line_longer_than_a_block():
    long = b"1 " + b" ".join(b"%d:1" % j for j in range(1, ROWS))
    text = b"2\n" + long + b"\n3\n" + long
    X, y = joined(io.BytesIO(text), block_bytes=50)
    assert y.tolist() == [2, 1, 3, 1]
    assert X.sum() == 2 * (ROWS - 1)


def test_blocks_without_rows_are_left_out():
    text = b"# nothing\n" * 100 + b"1 1:2\n" + b"\n" * 500
    blocks = list(libsvm_blocks(io.BytesIO(text), block_bytes=20))
    assert [y.tolist() for _, y in blocks] == [[1.0]]


@pytest.mark.parametrize("text", [b"", b"\n", b"# only\n" * 20, gzip.compress(b"", mtime=0)])
def test_a_file_without_rows_is_an_error(text):
    with pytest.raises(FormatError, match="<file object>: no rows; at least one line"):
        list(libsvm_blocks(io.BytesIO(text), block_bytes=10))


@pytest.mark.parametrize("kind", PACK)
def test_files_of_several_members_that_arrive_in_drops(tmp_path, kind):
    pack = PACK[kind]
    packed = pack(TEXT[:500]) + pack(TEXT[500:501]) + pack(TEXT[501:])
    expected = read_libsvm(io.BytesIO(TEXT))
    (tmp_path / "a").write_bytes(packed)
    same_matrix_and_labels(joined(Trickle(packed), block_bytes=100), expected)
    same_matrix_and_labels(joined(tmp_path / "a", block_bytes=100), expected)
    with open(tmp_path / "a", "rb", buffering=0) as f:
        same_matrix_and_labels(joined(f, block_bytes=1), expected)
        assert not f.closed


@pytest.mark.parametrize("kind", sorted(set(PACK) - {"plain"}))
def test_damaged_data_are_told_in_one_line(kind):
    packed = PACK[kind](TEXT)
    junk = packed[:40] + bytes(20) + packed[60:]
    for data in (*(packed[:end] for end in range(6, len(packed), 7)), junk):
        with pytest.raises(FormatError, match=f"trickle: damaged {kind} data: ") as e:
            list(libsvm_blocks(Trickle(data), block_bytes=50))
        assert "\n" not in str(e.value)


def test_an_intact_beginning_is_given_before_the_damage():
    rng = np.random.default_rng(0)
    text = b"".join(b"1 1:%.17g\n" % v for v in rng.normal(size=30000))
    blocks = libsvm_blocks(io.BytesIO(gzip.compress(text)[:-100]), block_bytes=1000)
    assert next(blocks)[0].shape[1] == 1
    with pytest.raises(FormatError, match="damaged gzip data: Compressed file ended"):
        list(blocks)


class Failing(Trickle):
    def read(self, size):
        if self.reads > 30:
            raise OSError(5, "Input/output error")
        return super().read(size)


@pytest.mark.parametrize("kind", PACK)
def test_a_failing_disk_is_not_damaged_data(kind):
    with pytest.raises(FormatError, match="trickle: cannot be read: Input/output error"):
        list(libsvm_blocks(Failing(PACK[kind](TEXT)), block_bytes=50))


def test_what_is_no_file_or_no_option(tmp_path):
    cases = (
        (tmp_path / "none", "none: cannot be read: No such file or directory"),
        (tmp_path, "Is a directory"),
        (io.StringIO("1 1:2"), "binary mode"),
    )
    for path, message in cases:
        blocks = libsvm_blocks(path)
        with pytest.raises(FormatError, match=message):
            next(blocks)
    for bad in (0, -1, 1.5, True, None):
        with pytest.raises(InputError, match="block_bytes must be a whole number from 1"):
            libsvm_blocks("a", block_bytes=bad)
    with pytest.raises(InputError, match="n_features must be a whole number"):
        libsvm_blocks("a", n_features=-1)
    with pytest.raises(InputError, match="a file name is required"):
        libsvm_blocks(None)


def test_a_file_that_has_nothing_to_say_yet_is_not_at_its_end():
    read, write = os.pipe()
    os.set_blocking(read, False)
    os.write(write, b"1 1:2\n-1 2:3\n")
    with os.fdopen(read, "rb") as f, os.fdopen(write, "wb"):
        blocks = libsvm_blocks(f, block_bytes=6)
        with pytest.raises(FormatError, match="a blocking file is required"):
            list(blocks)


@pytest.mark.skipif(sys.platform == "win32", reason="no named pipes")
def test_a_pipe_and_standard_input(tmp_path):
    program = (
        "import sys; from nesvm_jit.files.libsvm.stream import libsvm_blocks\n"
        "for X, y in libsvm_blocks(sys.argv[1], block_bytes=8): print(*y, *X.data)"
    )
    for pack in (bytes, gzip.compress):
        out = subprocess.run(
            [sys.executable, "-c", program, "-"],
            input=pack(b"1 1:2     \n-1 3:4    \n2     "),
            capture_output=True,
            check=True,
        )
        assert out.stdout.split() == b"1.0 2.0 -1.0 4.0 2.0".split()
    os.mkfifo(tmp_path / "pipe")
    with ThreadPoolExecutor(1) as pool:
        pool.submit((tmp_path / "pipe").write_bytes, TEXT)
        same_matrix_and_labels(
            joined(tmp_path / "pipe", block_bytes=64), read_libsvm(io.BytesIO(TEXT))
        )


def test_standard_input_as_python_has_it(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"1 1:2\nx\n")))
    blocks = libsvm_blocks("-", block_bytes=1)
    assert next(blocks)[1].tolist() == [1]
    with pytest.raises(FormatError, match="<standard input>:2: label must be"):
        next(blocks)


def test_a_reader_that_stops_early_closes_its_file(tmp_path):
    (tmp_path / "a.xz").write_bytes(lzma.compress(TEXT))
    blocks = libsvm_blocks(tmp_path / "a.xz", block_bytes=100)
    next(blocks)
    blocks.close()  # an open file would be a ResourceWarning, an error here
    with pytest.raises(StopIteration):
        next(blocks)


class Endless:
    """About `total` bytes of rows made as they are read."""

    def __init__(self, total):
        cells = b" ".join(b"%d:0.%03d" % (j, j) for j in range(1, 100))
        self.lines = b"".join(b"%d %s\n" % (i % 2, cells) for i in range(100))
        self.given, self.total = 0, total // len(self.lines) * len(self.lines)

    def read(self, size):
        at = self.given % len(self.lines)
        piece = self.lines[at : at + min(size, self.total - self.given)]
        self.given += len(piece)
        return piece


@pytest.mark.skipif(PURE, reason="hours without the compiler")
@pytest.mark.parametrize("packed", [False, True])
def test_memory_is_bounded_by_the_block(packed):
    size, total = 1 << 20, 100 << 20
    source = Endless(total)
    if packed:  # 3000 times smaller than its text: its size says nothing
        source = io.BytesIO(lzma.compress(source.lines * (total // len(source.lines)), preset=0))
    list(libsvm_blocks(Endless(4 * size)))  # compiles what large data need
    tracemalloc.start()
    try:
        n = sum(len(y) for _, y in libsvm_blocks(source, block_bytes=size))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert n > 100_000
    assert peak < 10 * size
