"""LIBSVM text: what is accepted, what is refused and how, and round trips."""

import bz2
import gzip
import io
import lzma
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nesvm_jit import FormatError, InputError, NesvmError, read_libsvm, write_libsvm
from nesvm_jit.files.libsvm import parse as module
from nesvm_jit.files.libsvm.stream import checked_blocks
from nesvm_jit.matrix.checks import as_matrix
from scipy.sparse import csr_matrix, random_array

from . import oracle
from .conftest import PURE
from .fuzz_reader import agree

pytestmark = pytest.mark.pure


def read(text, **options):
    return read_libsvm(io.BytesIO(text), **options)


@pytest.mark.parametrize(
    "text",
    [
        b"1 1:2 3:4\n-1 2:0.5\n",
        b"1 1:2 3:4\n-1 2:0.5",
        b"+1 1:2\r\n-1.0 2:1e-3\r\n",
        b"1e0 1:+2\n-.5e1\t3:-4.5E+2 \n",
        b"# head\n1 qid:3 1:2 # tail 7:8\n\n2 qid:4\n   \n3 4:1#x\n",
        b"0\n1\n2\n",
        b"  1   1:2\t\t3:4  \n",
        b"1 4294967294:1\n",
        b"1 001:1 2:00\n",
        b"9007199254740993 1:0.1000000000000000055511151231257827021181583404541015625\n",
        b"1 1:1.00000000000000011102230246251565404236316680908203125 2:1e-400\n",
    ],
)
def test_accepted_text_reads_as_python_reads_it(text):
    agree(text)
    assert len(read(text)[1]) > 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", r"<file object>: no rows"),
        (b"# only\n\n", "no rows"),
        (b"1 1:2\nx 1:2\n", r"<file object>:2: label must be a decimal number, got 'x'"),
        (b"1,2 1:2\n", "label must be a decimal number, got '1,2'"),
        (b"1:2 2:3\n", "label must be a decimal number, got '1:2'"),
        (b"nan 1:2\n", "label must be a decimal number, got 'nan'"),
        (b"1e999 1:2\n", ":1: number too large for float64, got 1e999"),
        (b"1 1:2 1:3\n", ":1: index 1 after 1, indices must ascend"),
        (b"1 1:2\n1 5:2 3:3\n", ":2: index 3 after 5, indices must ascend"),
        (b"1 0:2\n", r"index must be at least 1, got 0 \(indices count from 1"),
        (b"1 -1:2\n", "index:value required with a whole number as index, got '-1:2'"),
        (b"1 x:2\n", "whole number as index, got 'x:2'"),
        (b"1 1.5:2\n", "whole number as index, got '1.5:2'"),
        (b"1 7\n", "index:value required, got '7' without a colon"),
        (b"1 1:\n", "value must be a decimal number, got '1:'"),
        (b"1 1: 2\n", "value must be a decimal number, got '1:'"),
        (b"1 1:nan\n", "value must be a decimal number, got '1:nan'"),
        (b"1 1:-inf\n", "value must be a decimal number, got '1:-inf'"),
        (b"1 1:0x1\n", "value must be a decimal number, got '1:0x1'"),
        (b"1 1:1_0\n", "value must be a decimal number"),
        (b"1 1:1e999\n", "number too large for float64, got 1e999"),
        (b"1 4294967295:1\n", "index must be at most 4294967294, got 4294967295"),
        (b"1 99999999999999999999999:1\n", "index must be at most 4294967294"),
        (b"1 qid:x 1:2\n", "qid:N with a whole number required, got 'qid:x'"),
        (b"1 1:2 qid:3\n", "whole number as index, got 'qid:3'"),
        (b"\x00\x01\x02\n", r"label must be a decimal number, got '\\x00\\x01\\x02'"),
        (b"\xff\xfe1\n", r"got '\\xff\\xfe1'"),
        (b"1 1:" + b"x" * 100, "got '1:x{38}…'"),
        (b"\x1f\x8b\x08\x00junk", "damaged gzip data"),
        (b"\xfd7zXZ\x00junk", "damaged lzma data"),
        (b"BZh9junk", "damaged bz2 data"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(text, message):
    with pytest.raises(FormatError, match=message) as e:
        read(text)
    assert "\n" not in str(e.value)


def test_the_first_error_of_a_file_is_reported_whatever_block_it_is_in(monkeypatch):
    monkeypatch.setattr(module, "BLOCK_BYTES", 64)
    lines = [b"1 1:2 2:3"] * 1000
    lines[333] = b"1 2:2 1:3"
    lines[777] = b"junk"
    with pytest.raises(FormatError, match=r":334: index 1 after 2"):
        read(b"\n".join(lines))


@pytest.mark.parametrize("block", [1, 7, 64, 1000])
def test_blocks_do_not_change_the_result(monkeypatch, block):
    rng = np.random.default_rng(0)
    lines = [b"# note 1:2", b"", b"3 qid:7 1:5"] + [
        b"%d " % i + b" ".join(b"%d:%.17g" % (j, rng.normal()) for j in range(1, rng.integers(9)))
        for i in range(60)
    ]
    text = b"\n".join(lines)
    X, y = read(text)
    monkeypatch.setattr(module, "BLOCK_BYTES", block)
    monkeypatch.setattr(module, "LINE_BYTES", max(1, block // 2))
    Xb, yb = read(text)
    assert (Xb != X).nnz == 0
    np.testing.assert_array_equal(y, yb)


def test_more_hard_numbers_than_expected(monkeypatch):
    monkeypatch.setattr(module, "HARD_PER_BLOCK", 1)
    half = b"1.00000000000000011102230246251565404236316680908203125"
    X, y = read(b"\n".join(half + b" 1:" + half for _ in range(20)))
    assert (X.data == 1).all()
    assert (y == 1).all()


def test_width_and_precision():
    X, _ = read(b"1 2:0.1\n", n_features=5, dtype=np.float32)
    assert X.shape == (1, 5)
    assert X.dtype == np.float32
    assert X.data[0] == np.float32(0.1)
    with pytest.raises(FormatError, match=":1: index must be at most 1, got 2"):
        read(b"1 2:0.1\n", n_features=1)
    with pytest.raises(FormatError, match="number too large for float32, got 1e300"):
        read(b"1 2:1e300\n", dtype=np.float32)
    for bad in (-1, 1.5, True, 2**40):
        with pytest.raises(InputError, match="n_features must be a whole number"):
            read(b"1\n", n_features=bad)
    with pytest.raises(InputError, match="zero_based must be True or False, got 'auto'"):
        read(b"1\n", zero_based="auto")
    with pytest.raises(InputError, match="dtype must be float64 or float32, got int32"):
        read(b"1\n", dtype=np.int32)


def test_zero_based_files():
    X, _ = read(b"1 0:5 3:1\n", zero_based=True)
    assert X.toarray().tolist() == [[5, 0, 0, 1]]
    with pytest.raises(FormatError, match="index must be at most 4294967294"):
        read(b"1 4294967295:5\n", zero_based=True)


def test_very_wide_files_get_wide_indices():
    X, _ = read(b"1 1:5 4294967294:1\n")
    assert X.shape == (1, 4294967294)
    assert X.indices.dtype == np.int64


@pytest.mark.parametrize("name", ["a", "a.gz", "a.bz2", "a.xz"])
def test_files_plain_and_compressed(tmp_path, name):
    opener = {".gz": gzip, ".bz2": bz2, ".xz": lzma}.get(os.path.splitext(name)[1])
    path = tmp_path / name
    text = b"1 1:2\n-1 2:3\n"
    path.write_bytes(opener.compress(text) if opener else text)
    X, y = read_libsvm(str(path))
    assert X.toarray().tolist() == [[2, 0], [0, 3]]
    np.testing.assert_array_equal(read_libsvm(path)[1], y)
    path.write_bytes(path.read_bytes()[:-2])
    if opener:
        with pytest.raises(FormatError, match=f"{name}: damaged"):
            read_libsvm(path)


def test_files_that_are_none(tmp_path):
    with pytest.raises(FormatError, match="none: cannot be read: No such file or directory"):
        read_libsvm(tmp_path / "none")
    with pytest.raises(FormatError, match="Is a directory"):
        read_libsvm(tmp_path)
    (tmp_path / "empty").touch()
    with pytest.raises(FormatError, match="empty: no rows"):
        read_libsvm(tmp_path / "empty")
    with pytest.raises(FormatError, match="binary mode"):
        read_libsvm(io.StringIO("1 1:2"))
    for path in (3.5, None, "a\0b"):
        with pytest.raises(InputError):
            read_libsvm(path)


@pytest.mark.skipif(sys.platform == "win32", reason="no named pipes")
def test_a_pipe_and_standard_input(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    program = (
        "import sys, nesvm_jit; X, y = nesvm_jit.read_libsvm(sys.argv[1]); print(X.shape, y.sum())"
    )
    for path, stdin in (("-", b"1 1:2\n-1 3:4\n2\n"), ("-", gzip.compress(b"1 1:2\n-1 3:4\n2\n"))):
        out = subprocess.run(
            [sys.executable, "-c", program, path], input=stdin, capture_output=True, check=True
        )
        assert out.stdout.split() == [b"(3,", b"3)", b"2.0"]
    reader = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "pipe")], stdout=subprocess.PIPE
    )
    (tmp_path / "pipe").write_bytes(b"1 1:2\n")
    assert reader.communicate(timeout=120)[0].split() == [b"(1,", b"1)", b"1.0"]


def test_a_file_that_shrinks_while_it_is_read_is_no_crash():
    text = np.frombuffer(b"1 1:2\n" * 10, dtype=np.uint8).copy()
    blocks = module._cut_blocks(text)
    from nesvm_jit.kernels.text import libsvm as lt

    lt._count(text, blocks)
    blocks[0, lt.CELLS] = 3  # as if seven colons had come since the count
    cells = lt.Cells(
        np.zeros(10), np.zeros(10, int), np.zeros(3, np.uint32), np.zeros(3), np.zeros((0, 3), int)
    )
    lt._parse(len(blocks), text, blocks, 1, 10, 0, cells)
    assert blocks[0, lt.CODE] == lt.NO_ROOM


# ---------------------------------------------------------------- round trips

values = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(st.tuples(values, st.dictionaries(st.integers(0, 2**31 - 3), values)), min_size=1))
def test_what_is_written_is_read_back_bit_for_bit(rows):
    indptr = np.cumsum([0] + [len(r) for _, r in rows])
    indices = np.array([j for _, r in rows for j in sorted(r)], dtype=np.int64)
    data = np.array([r[j] for _, r in rows for j in sorted(r)], dtype=float)
    y = np.array([label for label, _ in rows])
    X = csr_matrix((data, indices, indptr), shape=(len(rows), 2**31 - 2))
    for base in (False, True):
        file = io.BytesIO()
        write_libsvm(file, X, y, zero_based=base)
        X2, y2 = read(file.getvalue(), n_features=X.shape[1], zero_based=base)
        assert y2.tobytes() == y.tobytes()
        assert X2.data.tobytes() == X.data.tobytes()
        np.testing.assert_array_equal(X2.indices, X.indices)


@pytest.mark.parametrize("name", ["a", "a.gz", "a.bz2", "a.xz"])
def test_written_files(tmp_path, name):
    X = np.array([[1.5, 0.0], [0.0, 1e-300]], dtype=float)
    write_libsvm(tmp_path / name, X, [1, -1])
    X2, y2 = read_libsvm(tmp_path / name)
    assert (X2.toarray() == X).all()
    assert y2.tolist() == [1, -1]
    assert os.listdir(tmp_path) == [name]
    if name == "a":
        assert (tmp_path / name).read_bytes() == b"1 1:1.5\n-1 2:1e-300\n"


def test_permissions_pipes_and_devices_are_left_as_they_are(tmp_path):
    path = tmp_path / "private"
    path.touch(mode=0o600)
    write_libsvm(path, np.eye(2), [1, 2])
    assert path.stat().st_mode & 0o777 == 0o600
    os.mkfifo(tmp_path / "pipe")
    with ThreadPoolExecutor(1) as pool:
        got = pool.submit((tmp_path / "pipe").read_bytes)
        write_libsvm(tmp_path / "pipe", np.eye(2), [1, 2])
        assert got.result(timeout=60) == b"1 1:1\n2 2:1\n"
    assert (tmp_path / "pipe").is_fifo()


def test_failed_writing_leaves_the_old_file(tmp_path):
    path = tmp_path / "a"
    write_libsvm(path, np.eye(2), [1, 2])
    before = path.read_bytes()
    for X, y in ((np.eye(2), [1]), (np.eye(2) * np.nan, [1, 2])):
        with pytest.raises(InputError):
            write_libsvm(path, X, y)
    with pytest.raises(InputError, match="real numbers"):
        write_libsvm(path, np.eye(2), ["a", "b"])
    assert path.read_bytes() == before
    with pytest.raises(NesvmError, match="cannot be written: No such file or directory"):
        write_libsvm(tmp_path / "no" / "a", np.eye(2), [1, 2])
    if os.path.exists("/dev/full"):
        with pytest.raises(NesvmError, match="cannot be written: No space left on device"):
            write_libsvm("/dev/full", np.eye(2), [1, 2])
    for path, message in ((None, "a file name is required"), ("a\0", "embedded null")):
        with pytest.raises(NesvmError, match=message):
            write_libsvm(path, np.eye(2), [1, 2])
    with pytest.raises(InputError, match="at least one row"):
        write_libsvm(tmp_path / "b", np.zeros((0, 2)), [])
    assert os.listdir(tmp_path) == ["a"]


def test_same_arrays_as_scikit_learn(tmp_path):
    datasets = pytest.importorskip("sklearn.datasets")
    n = 20 if PURE else 3000
    X = random_array((n, 50), density=0.2, format="csr", rng=np.random.default_rng(0))
    y = np.arange(n) % 3
    datasets.dump_svmlight_file(X, y, str(tmp_path / "a"), zero_based=False, comment="made here")
    theirs, labels = datasets.load_svmlight_file(str(tmp_path / "a"), zero_based=False)
    ours, y2 = read_libsvm(tmp_path / "a")
    np.testing.assert_array_equal(labels, y2)
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(theirs, name), getattr(ours, name))


def test_oracle_and_reader_agree_on_mutated_files():
    from .fuzz_reader import run

    assert run(cases=100 if PURE else 4000, seed=1) > 0


def test_every_truncation_of_a_file(monkeypatch):
    from .fuzz_reader import truncations

    monkeypatch.delenv("NESVM_DATA", raising=False)
    assert truncations(step=37 if PURE else 1) > 50


def test_oracle_is_strict():
    with pytest.raises(ValueError, match="no rows"):
        oracle.read_libsvm(b"")


def test_what_is_parsed_needs_no_check(tmp_path):
    lines = [b"# note", b"1 1:2 7:0.5", b"", b"-1 qid:3 2:1e-3", b"1", b"-1 7:1 9:1"]
    (tmp_path / "text").write_bytes(b"\n".join(lines))
    for zero_based in (False, True):
        rows = [X for X, _ in checked_blocks(tmp_path / "text", zero_based)]
        expected, _ = read_libsvm(tmp_path / "text", zero_based=zero_based)
        assert len(rows) == 1
        checked = as_matrix(expected)
        assert rows[0].n_cols == checked.n_cols
        for mine, theirs in zip(rows[0][:3], checked[:3], strict=True):
            assert mine.dtype == theirs.dtype
            assert not mine.flags.writeable
            np.testing.assert_array_equal(mine, theirs)
