"""On-disk matrices at their edges: cuts, ranges, buffers, headers and the arrays below them."""

import inspect
import os
import sys
import zlib
from types import SimpleNamespace

import numpy as np
import pytest
from nesvm_jit import FormatError, open_matrix
from nesvm_jit.files import sealed, training
from nesvm_jit.files.ondisk import format as ondisk_format
from nesvm_jit.files.ondisk import matrix as ondisk
from nesvm_jit.files.ondisk.format import Array, Header, read_header
from nesvm_jit.files.ondisk.matrix import Buffers, OnDisk, is_matrix
from nesvm_jit.files.training import kernel_columns, read_training
from nesvm_jit.matrix.checks import as_matrix
from nesvm_jit.matrix.rows import as_scipy
from scipy.sparse import csr_matrix

from .compare import refusal

NAMES = ("values", "indices", "indptr", "labels")
COUNTS = [3, 0, 1, 5, 2, 0, 0, 4, 1, 1]  # cells of rows
COLUMNS = [j for n in COUNTS for j in range(n)]
LABELS = [1.0, -1.0] * 5


def make(folder, counts=COUNTS, n_cols=5, dtype="float64", first=0, **change):
    """A matrix on disk whose checksums are right; a change replaces an array."""
    n = sum(counts)
    given = {
        "values": np.arange(1.0, n + 1),
        "indices": [j for c in counts for j in range(c)],
        "indptr": np.cumsum([first, *counts]),
        "labels": LABELS[: len(counts)],
        **change,
    }
    kinds = {"values": np.dtype(dtype).str, "indices": "<u4", "indptr": "<u8", "labels": "<f8"}
    arrays = {name: np.array(given[name], dtype=kinds[name]) for name in NAMES}
    folder.mkdir()
    for name, a in arrays.items():
        (folder / f"{name}.bin").write_bytes(a.tobytes())
    crcs = [zlib.crc32(a[1:] if name == "indptr" else a) for name, a in arrays.items()]
    header = Header(len(counts), n_cols, n, dtype, 1, [[len(counts), n, *crcs]])
    (folder / "header.json").write_bytes(header.text())
    return open_matrix(folder)


def open_files():
    return len(os.listdir("/proc/self/fd"))


# ---------------------------------------------------------------- facts


def test_facts_of_a_matrix(tmp_path, monkeypatch):
    M = make(tmp_path / "m", dtype="float32")
    assert (M.n_rows, M.n_cols, M.n_cells, M.shape) == (10, 5, 17, (10, 5))
    assert (M.dtype, M.first_index) == (np.float32, 1)
    assert M.nbytes == 17 * 4 + 17 * 4 + 11 * 8 + 10 * 8
    assert repr(M) == f"<10 x 5 matrix of float32 in {tmp_path / 'm'}>"
    assert M.shape == (10, 5)
    assert as_matrix(np.zeros((3, 2))).shape == (3, 2)
    monkeypatch.chdir(tmp_path)
    relative = open_matrix("m")
    assert (relative.name, relative.path) == ("m", str(tmp_path / "m"))


def test_a_folder_with_a_header_is_a_matrix_but_not_standard_input(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make(tmp_path / "-")
    assert is_matrix(tmp_path / "-")
    for none in ("-", tmp_path, "a\0b", None, 3):
        assert not is_matrix(none)


def test_blocks_have_64_megabytes_unless_told():
    for act in (OnDisk.blocks, OnDisk.cuts):
        assert inspect.signature(act).parameters["block_bytes"].default == 64 * 2**20


# ---------------------------------------------------------------- cuts and blocks


def cuts_of(counts, size, per_cell, per_row=12):
    """Row after row into the block while it has room; a block has at least one row."""
    cuts, used = [0], 0
    for i, n in enumerate(counts):
        need = n * per_cell + per_row
        if used and used + need > size:
            cuts.append(i)
            used = 0
        used += need
    return [*cuts, len(counts)]


@pytest.mark.parametrize(
    ("n_cols", "dtype", "per_cell"),
    [
        (5, "float64", 12),
        (5, "float32", 8),
        (2**31 - 1, "float64", 12),
        (2**31, "float64", 20),
        (2**31, "float32", 16),
    ],
)
@pytest.mark.parametrize("piece", [8, 24, 8 << 20])
def test_cuts_are_as_few_as_the_size_allows(tmp_path, monkeypatch, n_cols, dtype, per_cell, piece):
    monkeypatch.setattr(ondisk, "PIECE_BYTES", piece)
    M = make(tmp_path / "m", n_cols=n_cols, dtype=dtype)
    for size in range(1, 420):
        assert M.cuts(size).tolist() == cuts_of(COUNTS, size, per_cell), size


def test_row_ends_are_read_a_piece_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(ondisk, "PIECE_BYTES", 24)
    M, reading, seen = make(tmp_path / "m"), OnDisk._row_ends, []

    def noting(self, lo, hi, out):
        seen.append((lo, hi))
        return reading(self, lo, hi, out)

    monkeypatch.setattr(OnDisk, "_row_ends", noting)
    M.cuts(100)
    assert seen == [(0, 3), (3, 6), (6, 9), (9, 10)]


def test_cuts_are_found_once(tmp_path, monkeypatch):
    M = make(tmp_path / "m")
    found = M.cuts(100)
    assert not found.flags.writeable
    monkeypatch.setattr(OnDisk, "_find_cuts", None)
    assert M.cuts(100) is found


def rows_of(M, lo, hi):
    ends = np.cumsum([0, *COUNTS])
    return [list(range(ends[i] + 1, ends[i + 1] + 1)) for i in range(lo, hi)]


def lists(X):
    return [X.data[a:b].tolist() for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)]


def test_blocks_that_are_kept_stay_as_they_were(tmp_path):
    M = make(tmp_path / "m")
    found = list(M.blocks(50))
    assert len(found) > 4
    for lo, hi, X in found:
        assert lists(X) == rows_of(M, lo, hi)
    found = list(M.ranges([(2, 5), (0, 3), (9, 10), (4, 4)]))
    assert [(lo, hi, lists(X)) for lo, hi, X in found] == [
        (lo, hi, rows_of(M, lo, hi)) for lo, hi in ((2, 5), (0, 3), (9, 10), (4, 4))
    ]


def test_two_buffers_take_turns(tmp_path):
    M = make(tmp_path / "m")
    parts = [X for _, _, X in M.ranges([(3, 4), (0, 1), (7, 8), (4, 5)], reuse=True)]
    shared = [[np.shares_memory(a.data, b.data) for b in parts] for a in parts]
    assert np.array_equal(shared, np.tile(np.eye(2), (2, 2)))
    parts = [X for _, _, X in M.ranges([(3, 4), (0, 1), (7, 8)])]
    assert not np.shares_memory(parts[0].data, parts[2].data)


def test_memory_is_taken_again_if_it_suffices():
    buffers = Buffers()
    first = buffers.take("a", 4, np.float64)
    assert (len(first), first.dtype) == (4, np.float64)
    for n in (4, 2):
        again = buffers.take("a", n, np.float64)
        assert len(again) == n
        assert np.shares_memory(first, again)
    for name, n, dtype in (("b", 4, np.float64), ("a", 5, np.float64), ("a", 4, np.uint64)):
        other = buffers.take(name, n, dtype)
        assert (len(other), other.dtype) == (n, dtype)
        assert not np.shares_memory(first, other)


# ---------------------------------------------------------------- reading


@pytest.mark.parametrize(
    ("n_cols", "kind"), [(5, np.uint32), (2**31 - 1, np.uint32), (2**31, np.uint64)]
)
def test_indices_are_as_wide_as_the_columns_need(tmp_path, n_cols, kind):
    X = make(tmp_path / "m", n_cols=n_cols).read(2, 5)
    assert X.indices.dtype == X.indptr.dtype == kind
    assert X.indices.tolist() == [0, 0, 1, 2, 3, 4, 0, 1]
    assert X.indptr.tolist() == [0, 1, 6, 8]
    assert X.data.tolist() == list(range(4, 12))
    assert X.n_cols == n_cols
    assert not any(a.flags.writeable for a in X[:3])


@pytest.mark.parametrize("span", [(2, 4), (2.0, 4), (np.int64(2), np.uint8(4))])
def test_ranges_are_whole_numbers_of_any_type(tmp_path, span):
    M = make(tmp_path / "m")
    assert lists(M.read(*span)) == [[4], [5, 6, 7, 8, 9]]
    assert M.read_labels(*span).tolist() == [1, -1]


@pytest.mark.parametrize(
    ("lo", "hi"), [(-1, 2), (3, 2), (0, 11), (0.5, 2), (0, "1"), (None, 1), (0, float("inf"))]
)
def test_what_is_no_range_is_told(tmp_path, lo, hi):
    M = make(tmp_path / "m")
    for act in (M.read, M.read_labels):
        message = refusal(act, lo, hi)
        assert message == f"rows must be a range within 0..10, got {lo!r:.40}..{hi!r:.40}"
    message = refusal(M.read, 0, "x" * 50)
    assert message == f"rows must be a range within 0..10, got 0..{'x' * 50!r:.40}"


def test_labels_are_read_once_and_must_be_finite(tmp_path):
    M = make(tmp_path / "m")
    assert M.labels is M.labels
    assert M.labels.tolist() == LABELS
    assert not M.labels.flags.writeable
    bad = make(tmp_path / "n", labels=[*LABELS[:9], np.nan])
    assert bad.read_labels(0, 9).tolist() == LABELS[:9]
    message = refusal(bad.read_labels, 9, 10, kind=FormatError)
    assert message == f"{tmp_path / 'n' / 'labels.bin'}: labels must be finite"


@pytest.mark.parametrize(
    ("change", "fine", "wrong", "file", "what"),
    [
        ({"values": [*range(16), np.inf]}, (0, 9), (9, 10), "values", "values must be finite"),
        ({"indices": [*COLUMNS[:16], 5]}, (0, 9), (9, 10), "indices",
         "an index is outside the 5 columns"),
        ({"indices": [1, 1, *COLUMNS[2:]]}, (1, 10), (0, 1), "indices", "indices must ascend"),
        ({"indptr": [0, 3, 3, 4, 9, 11, 11, 11, 15, 16, 16]}, (0, 9), (9, 10), "indptr",
         "row ends must ascend from 0 to 17"),
        ({"indptr": [1, 3, 3, 4, 9, 11, 11, 11, 15, 16, 17]}, (1, 10), (0, 1), "indptr",
         "row ends must ascend from 0 to 17"),
        ({"indptr": [0, 3, 3, 4, 9, 11, 10, 11, 15, 16, 17]}, (0, 5), (5, 6), "indptr",
         "row ends must ascend from 0 to 17"),
        ({"indptr": [0, 3, 3, 4, 9, 11, 11, 11, 15, 18, 17]}, (0, 8), (8, 9), "indptr",
         "row ends must ascend from 0 to 17"),
    ],
)  # fmt: skip
def test_damage_is_told_with_its_rows_and_does_not_hide_others(
    tmp_path, change, fine, wrong, file, what
):
    M = make(tmp_path / "m", **change)
    X = M.read(*fine)
    assert len(X.indptr) == fine[1] - fine[0] + 1
    message = refusal(M.read, *wrong, kind=FormatError)
    where = f"{tmp_path / 'm' / file}.bin"
    assert message == f"{where}: damaged in rows {wrong[0]}..{wrong[1]}: {what}"


def test_verifying_tells_the_block_that_is_damaged(tmp_path):
    M = make(tmp_path / "m")
    crcs = []
    for (row, cell), (rows, cells) in (((0, 0), (4, 9)), ((4, 9), (6, 8))):
        part = {"values": (cell, cells), "indices": (cell, cells), "indptr": (row + 1, rows)}
        part["labels"] = row, rows
        crcs.append([M._arrays[name].crc32(lo, lo + n) for name, (lo, n) in part.items()])
    table = [[4, 9, *crcs[0]], [6, 8, *crcs[1]]]
    header = Header(10, 5, 17, "float64", 1, table)
    (tmp_path / "m/header.json").write_bytes(header.text())
    open_matrix(tmp_path / "m").verify()
    spoilt = {"values": (8, 9), "indices": (8, 9), "indptr": (4, 5), "labels": (3, 4)}
    for name, places in spoilt.items():
        path = tmp_path / "m" / f"{name}.bin"
        whole = path.read_bytes()
        itemsize = M._arrays[name].dtype.itemsize
        for place, rows in zip(places, ("0..4", "4..10"), strict=True):
            data = bytearray(whole)
            data[place * itemsize] ^= 1
            path.write_bytes(data)
            message = refusal(open_matrix(tmp_path / "m").verify, kind=FormatError)
            assert message == f"{path}: damaged in rows {rows}: their checksum does not match"
        path.write_bytes(whole)
    data = bytearray((tmp_path / "m/indptr.bin").read_bytes())
    data[0] = 1
    (tmp_path / "m/indptr.bin").write_bytes(data)
    message = refusal(open_matrix(tmp_path / "m").verify, kind=FormatError)
    what = "damaged in rows 0..0: row ends must ascend from 0 to 17"
    assert message == f"{tmp_path / 'm/indptr.bin'}: {what}"


def test_other_contents_have_another_digest(tmp_path):
    M = make(tmp_path / "m")
    assert make(tmp_path / "a").digest() == M.digest()
    for name, change in (("b", {"n_cols": 6}), ("c", {"labels": [2.0] * 10})):
        assert make(tmp_path / name, **change).digest() != M.digest()


# ---------------------------------------------------------------- headers

FACTS = {
    "n_rows": 3,
    "n_cols": 4,
    "n_cells": 2,
    "dtype": "float32",
    "first_index": 0,
    "blocks": [[1, 2, 7, 8, 9, 10], [2, 0, 1, 2, 3, (1 << 60) - 1]],
    "byte_order": "little",
}
TABLE = "blocks must be lists of rows, cells and four checksums"


def test_a_header_is_what_it_says():
    header = ondisk_format._check_header(FACTS)
    assert header._asdict() == FACTS
    assert header.shapes == {
        "values": (np.float32, 2),
        "indices": (np.uint32, 2),
        "indptr": (np.uint64, 4),
        "labels": (np.float64, 3),
    }
    assert sealed.unseal("nesvm-jit matrix", 1, header.text())["blocks"] == FACTS["blocks"]
    for change in ({"n_cols": 0}, {"n_cols": 2**32 - 1}, {"first_index": 1}, {"dtype": "float64"}):
        assert ondisk_format._check_header({**FACTS, **change})._asdict() == {**FACTS, **change}
    empty = {"blocks": [[3, 0, 1, 2, 3, 4]], "n_cells": 0}
    assert ondisk_format._check_header({**FACTS, **empty}).n_cells == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"blocks": "x"}, TABLE),
        ({"blocks": ([3, 2, 1, 1, 1, 1],)}, TABLE),
        ({"blocks": [(3, 2, 1, 1, 1, 1)]}, TABLE),
        ({"blocks": [[3, 2, 1, 1, 1, 1], "x"]}, TABLE),
        ({"blocks": [[3, 2, 1, 1, 1]]}, TABLE),
        ({"blocks": [[3, 2, 1, 1, 1, 1, 1]]}, TABLE),
        ({"blocks": [[3, 2, 1, 1, 1, -1]]}, TABLE),
        ({"blocks": [[3, 2, 1, 1, 1, 1 << 60]]}, TABLE),
        ({"blocks": [[3, 2, 1, 1, 1, 1.0]]}, TABLE),
        ({"blocks": [[3, 2, 1, 1, 1, True]]}, TABLE),
        ({"n_rows": 4}, "n_rows must be the sum over all blocks, 3, got 4"),
        ({"n_rows": 3.0}, "n_rows must be the sum over all blocks, 3, got 3.0"),
        ({"n_rows": 0, "blocks": [], "n_cells": 0},
         "n_rows must be the sum over all blocks, 0, got 0"),
        ({"n_cells": 1}, "n_cells must be the sum over all blocks, 2, got 1"),
        ({"n_cells": "x" * 50},
         f"n_cells must be the sum over all blocks, 2, got {'x' * 50!r:.40}"),
        ({"n_cols": -1}, "n_cols must be from 0 to 4294967295, got -1"),
        ({"n_cols": 2**32}, "n_cols must be from 0 to 4294967295, got 4294967296"),
        ({"n_cols": True}, "n_cols must be from 0 to 4294967295, got True"),
        ({"dtype": "int8"}, "dtype must be float64 or float32, got 'int8'"),
        ({"first_index": 2}, "first_index must be 0 or 1, got 2"),
        ({"first_index": True}, "first_index must be 0 or 1, got True"),
        ({"byte_order": "big"}, "byte_order must be little, got 'big'"),
    ],
)  # fmt: skip
def test_a_header_that_cannot_be_is_told_word_for_word(change, message):
    assert refusal(ondisk_format._check_header, {**FACTS, **change}, kind=ValueError) == message


@pytest.mark.parametrize("name", FACTS)
def test_a_header_needs_all_its_facts(name):
    facts = {k: v for k, v in FACTS.items() if k != name}
    assert refusal(ondisk_format._check_header, facts, kind=ValueError) == f"{name} is missing"


def test_a_header_that_cannot_be_read_is_told(tmp_path):
    (tmp_path / "m/header.json").mkdir(parents=True)
    where = tmp_path / "m" / "header.json"
    assert (
        refusal(read_header, tmp_path / "m", kind=FormatError)
        == f"{where}: cannot be read: Is a directory"
    )
    message = refusal(read_header, "a\0b", kind=FormatError)
    assert message == "'a\\x00b/header.json': cannot be read: embedded null byte"
    message = refusal(read_header, tmp_path, kind=FormatError)
    assert message == f"{tmp_path}: an on-disk matrix is required, there is no header.json"


# ---------------------------------------------------------------- arrays


@pytest.fixture
def array(tmp_path):
    numbers = np.arange(20, dtype="<u4") * 1000003
    (tmp_path / "a.bin").write_bytes(numbers.tobytes())
    return Array(str(tmp_path / "a.bin"), np.dtype(np.uint32), 20), numbers


def test_an_array_is_read_from_any_place_in_drops(array, monkeypatch):
    found, numbers = array
    preadv = os.preadv
    monkeypatch.setattr(os, "preadv", lambda f, views, at: preadv(f, [views[0][:5]], at))
    for lo, hi in ((0, 20), (3, 4), (7, 19), (20, 20)):
        out = np.empty(hi - lo, dtype=np.uint32)
        assert found.fill(lo, out) is out
        assert out.tolist() == numbers[lo:hi].tolist()


def test_an_array_is_read_by_seeking_where_nothing_else_is_there(array, monkeypatch):
    found, numbers = array
    monkeypatch.delattr(os, "preadv")
    monkeypatch.setattr(ondisk_format, "PIECE_BYTES", 12)
    read, sizes = os.read, []
    monkeypatch.setattr(os, "read", lambda f, n: sizes.append(n) or read(f, n))
    assert found.fill(2, np.empty(7, dtype=np.uint32)).tolist() == numbers[2:9].tolist()
    assert sizes == [12, 12, 4]


@pytest.mark.parametrize("piece", [4, 8, 20, 1 << 20])
def test_checksums_are_of_the_bytes_however_they_are_read(array, monkeypatch, piece):
    found, numbers = array
    monkeypatch.setattr(ondisk_format, "PIECE_BYTES", piece)
    asked, preadv = [], os.preadv
    monkeypatch.setattr(
        os, "preadv", lambda f, views, at: asked.append(len(views[0])) or preadv(f, views, at)
    )
    for lo, hi in ((0, 20), (0, 1), (3, 18), (20, 20)):
        assert found.crc32(lo, hi) == zlib.crc32(numbers[lo:hi].tobytes())
    assert max(asked) == min(piece, 80)


def test_numbers_are_turned_round_where_the_machine_has_them_so(array, monkeypatch):
    found, numbers = array
    monkeypatch.setattr(ondisk_format, "sys", SimpleNamespace(byteorder="big"))
    out = found.fill(0, np.empty(20, dtype=np.uint32))
    assert out.tolist() == numbers.byteswap().tolist()


def test_arrays_are_opened_as_bytes_where_that_must_be_said(array, tmp_path, monkeypatch):
    opening, binary, seen = os.open, 1 << 30, []
    monkeypatch.setattr(os, "O_BINARY", binary, raising=False)
    monkeypatch.setattr(os, "open", lambda path, how: seen.append(how) or opening(path, 0))
    Array(str(tmp_path / "a.bin"), np.dtype(np.uint32), 20)
    assert seen == [os.O_RDONLY | binary]


def test_arrays_that_cannot_be_read_are_named(array, tmp_path, monkeypatch):
    found, _ = array
    path = str(tmp_path / "a.bin")
    for length, required in ((19, 76), (21, 84)):
        message = refusal(Array, path, np.dtype(np.uint32), length, kind=FormatError)
        assert message == f"{path}: {required} bytes are required, got 80"
    message = refusal(Array, path + "x", np.dtype(np.uint32), 20, kind=FormatError)
    assert message == f"{path}x: cannot be read: No such file or directory"
    os.truncate(path, 40)
    message = refusal(found.fill, 8, np.empty(4, dtype=np.uint32), kind=FormatError)
    assert message == f"{path}: the file is shorter than it was"

    def failing(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "preadv", failing)
    message = refusal(found.fill, 0, np.empty(4, dtype=np.uint32), kind=FormatError)
    assert message == f"{path}: cannot be read: Input/output error"


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_files_of_a_matrix_are_closed_with_it(tmp_path):
    M = make(tmp_path / "m")
    before = open_files()
    again = open_matrix(tmp_path / "m")
    assert open_files() == before + 4
    del again
    assert open_files() == before
    assert M.labels.tolist() == LABELS


# ---------------------------------------------------------------- training files


def text(path, lines):
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


def test_training_files_are_text_or_a_matrix(tmp_path):
    path = text(tmp_path / "t", [b"1 1:2", b"-1 2:0.1"])
    for float32, dtype in ((False, np.float64), (True, np.float32)):
        X, y = read_training(path, "linear", 4, float32)
        assert (X.shape, X.dtype, y.tolist()) == ((2, 4), dtype, [1, -1])
        assert as_scipy(X).toarray()[1, 1] == dtype(0.1)
    M = make(tmp_path / "m")
    for n_features in (None, 5):
        X, y = read_training(M.path, "rbf", n_features, False)
        assert X.shape == (10, 5)
        assert X.data.tolist() == list(range(1, 18))
        assert y.tolist() == LABELS
    single = make(tmp_path / "s", dtype="float32")
    for float32 in (True, False):
        assert read_training(single.path, "linear", None, float32)[0].dtype == np.float32


def test_what_cannot_be_trained_on_is_told(tmp_path):
    path, M = text(tmp_path / "t", [b"1 1:2"]), make(tmp_path / "m")
    cases = (
        ((path, "linear", None, False, True),
         f"{path}: only an on-disk matrix can be streamed; convert it"),
        ((path, "precomputed", 1, False),
         "a precomputed kernel has as many features as rows, it takes no number"),
        ((M.path, "precomputed", None, False),
         "a precomputed kernel must be text, got an on-disk matrix"),
        ((M.path, "linear", 4, False), f"{M.path} has 5 features, got 4"),
        ((M.path, "linear", None, True), f"{M.path} holds float64; convert it with --float32"),
    )  # fmt: skip
    for args, message in cases:
        assert refusal(read_training, *args) == message


@pytest.mark.parametrize(("times", "on_disk"), [(2.4, True), (2.6, False)])
def test_a_matrix_that_takes_two_fifths_of_the_memory_stays_on_disk(
    tmp_path, monkeypatch, times, on_disk
):
    M = make(tmp_path / "m")
    monkeypatch.setattr(training, "memory_bytes", lambda: times * M.nbytes)
    X, y = read_training(M.path, "linear", None, False)
    assert isinstance(X, OnDisk) is (y is None) is on_disk
    monkeypatch.setattr(training, "memory_bytes", lambda: 2 * M.nbytes)
    monkeypatch.setattr(training, "IN_MEMORY", 0.5)
    assert not isinstance(read_training(M.path, "linear", None, False)[0], OnDisk)
    assert isinstance(read_training(M.path, "linear", None, False, stream=True)[0], OnDisk)


def test_a_matrix_is_verified_before_it_is_trained_on(tmp_path):
    M = make(tmp_path / "m")
    (tmp_path / "m/values.bin").write_bytes(np.arange(2.0, 19).tobytes())
    message = refusal(read_training, M.path, "linear", None, False, kind=FormatError)
    assert message.endswith("values.bin: damaged in rows 0..10: their checksum does not match")


def test_a_precomputed_kernel_is_a_numbered_square(tmp_path):
    path = text(tmp_path / "t", [b"1 0:1 1:4 2:5", b"-1 0:2 1:5 2:6"])
    for float32, dtype in ((False, np.float64), (True, np.float32)):
        K, y = read_training(path, "precomputed", None, float32)
        assert (K.tolist(), K.dtype, y.tolist()) == ([[4, 5], [5, 6]], dtype, [1, -1])
    serial = "a precomputed kernel needs 0:serial in every row"
    numbered = "a precomputed kernel needs 0:1, 0:2, ... in its rows"
    for lines, message in (
        ([b"1 0:1 1:4 2:5", b"-1"], serial),
        ([b"1 0:1 1:4 2:5", b"-1 1:1 2:3"], serial),
        ([b"1 1:4 2:5", b"-1 0:2 1:1 2:3"], serial),
        ([b"1 0:2 1:4 2:5", b"-1 0:1 1:5 2:6"], numbered),
        ([b"1 0:0 1:4 2:5", b"-1 0:1 1:5 2:6"], numbered),
        ([b"1 0:1 1:4", b"-1 0:2 1:5"],
         "a precomputed kernel of 2 rows needs columns 1 to 2, got 1"),
        ([b"1 0:1 1:4 2:5 3:1", b"-1 0:2 1:5"],
         "a precomputed kernel of 2 rows needs columns 1 to 2, got 3"),
    ):  # fmt: skip
        text(path, lines)
        message = f"{path}: {message}"
        assert refusal(read_training, path, "precomputed", None, False, kind=FormatError) == message


def test_columns_of_a_kernel_start_after_the_serial_number():
    X = csr_matrix([[7.0, 1, 0, 2], [9, 0, 3, 0]])
    assert kernel_columns(X, "f").tolist() == [[1, 0, 2], [0, 3, 0]]
