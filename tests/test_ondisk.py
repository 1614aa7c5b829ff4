"""On-disk matrices: what is read is what was written, or an error of one line."""

import contextlib
import json
import os
import pickle
import threading
import tracemalloc
import zlib

import numpy as np
import pytest
from nesvm_jit import FormatError, InputError, convert, open_matrix, read_libsvm
from nesvm_jit.files import sealed
from nesvm_jit.files.ondisk import format as ondisk_format
from nesvm_jit.files.ondisk import matrix as ondisk
from nesvm_jit.files.ondisk.matrix import Buffers, is_matrix
from nesvm_jit.matrix.checks import as_matrix
from nesvm_jit.matrix.rows import row_slice

from .compare import same_rows

ROWS = 300
TEXT = b"# head\n" + b"".join(
    b"%d %s # x\n" % (i % 3 - 1, b" ".join(b"%d:%d.5" % (j, i) for j in range(1, i % 7 + 1)))
    for i in range(ROWS)
)
ARRAYS = ("values", "indices", "indptr", "labels")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "text").write_bytes(TEXT)
    convert(tmp_path / "text", tmp_path / "m", block_bytes=1000)
    return tmp_path / "m"


@pytest.fixture
def rows(tmp_path, folder):
    X, y = read_libsvm(tmp_path / "text")
    return as_matrix(X), y


def rewrite(folder, **changes):
    """Another header for the same arrays, with a checksum that matches."""
    facts = json.loads((folder / "header.json").read_bytes())
    for name in ("format", "version", "crc32"):
        facts.pop(name)
    kind, version = changes.pop("format", ondisk_format.FORMAT), changes.pop("version", 1)
    data = sealed.seal(kind, version, {**facts, **changes})
    (folder / "header.json").write_bytes(data)


def handmade(folder, values, indices, ends, labels, n_cols=3):
    """A folder whose checksums are right, whatever the arrays say."""
    arrays = (
        np.array(values, dtype="<f8"),
        np.array(indices, dtype="<u4"),
        np.array(ends, dtype="<u8"),
        np.array(labels, dtype="<f8"),
    )
    folder.mkdir()
    for name, a in zip(ARRAYS, arrays, strict=True):
        (folder / f"{name}.bin").write_bytes(a.tobytes())
    crcs = [zlib.crc32(a[int(name == "indptr") :]) for name, a in zip(ARRAYS, arrays, strict=True)]
    table = [[len(labels), len(values), *crcs]]
    header = ondisk_format.Header(len(labels), n_cols, len(values), "float64", 1, table)
    (folder / "header.json").write_bytes(header.text())
    return open_matrix(folder)


def refused(action, *args):
    with pytest.raises(FormatError) as e:
        action(*args)
    assert "\n" not in str(e.value)
    return str(e.value)


# ---------------------------------------------------------------- reading


def test_facts(folder, rows):
    X, y = rows
    M = open_matrix(folder)
    assert (M.n_rows, M.n_cols, M.n_cells) == (ROWS, X.n_cols, len(X.data))
    assert M.shape == (ROWS, X.n_cols)
    assert M.dtype == np.float64
    assert M.nbytes == sum((folder / f"{a}.bin").stat().st_size for a in ARRAYS)
    assert M.labels.tobytes() == y.tobytes()
    assert M.read_labels(5, 9).tolist() == y[5:9].tolist()
    assert (M.name, M.path) == (str(folder), str(folder))
    assert is_matrix(folder)
    assert not is_matrix(folder.parent)
    assert not is_matrix(folder / "header.json")
    assert not is_matrix(None)
    M.verify()


@pytest.mark.parametrize("span", [(0, ROWS), (0, 0), (ROWS, ROWS), (17, 18), (10, 250), (7, 8)])
def test_any_range_is_that_range(folder, rows, span):
    same_rows(open_matrix(folder).read(*span), row_slice(rows[0], *span))


@pytest.mark.parametrize("span", [(-1, 2), (3, 2), (0, ROWS + 1), (0.5, 2), ("0", 1), (None, 1)])
def test_what_is_no_range(folder, span):
    with pytest.raises(InputError, match=rf"rows must be a range within 0..{ROWS}, got"):
        open_matrix(folder).read(*span)


def test_buffers_are_used_again(folder, rows):
    M, buffers = open_matrix(folder), Buffers()
    first = M.read(0, 200, buffers)
    again = M.read(200, 300, buffers)
    assert np.shares_memory(first.data, again.data)
    same_rows(again, row_slice(rows[0], 200, 300))
    same_rows(M.read(0, 300, buffers), rows[0])


@pytest.mark.parametrize("reuse", [False, True])
@pytest.mark.parametrize("size", [1, 100, 777, 5000, 1 << 20])
def test_blocks_are_the_matrix(folder, rows, size, reuse):
    M = open_matrix(folder)
    at = 0
    for lo, hi, X in M.blocks(size, reuse):
        assert lo == at < hi
        same_rows(X, row_slice(rows[0], lo, hi))
        assert hi == lo + 1 or len(X.data) * 12 + (hi - lo) * 12 <= size
        at = hi
    assert at == ROWS


@pytest.mark.parametrize("size", [1, 100, 777, 5000])
def test_cuts_do_not_depend_on_how_row_ends_are_read(folder, monkeypatch, size):
    expected = open_matrix(folder).cuts(size).tolist()
    for piece in (8, 16, 120, 1000):
        monkeypatch.setattr(ondisk, "PIECE_BYTES", piece)
        assert open_matrix(folder).cuts(size).tolist() == expected


def test_a_reader_that_stops_early_or_fails_leaves_no_thread(folder):
    before = threading.active_count()
    blocks = open_matrix(folder).blocks(100)
    next(blocks)
    assert threading.active_count() == before + 1
    blocks.close()
    assert threading.active_count() == before
    blocks = open_matrix(folder).blocks(100)
    next(blocks)
    with open(folder / "values.bin", "r+b") as f:
        f.truncate(100)
    assert "values.bin: the file is shorter than it was" in refused(list, blocks)
    assert threading.active_count() == before


def test_memory_is_bounded_by_two_blocks(tmp_path):
    n, width, size = 40_000, 50, 1 << 20
    ends = np.arange(0, n * width + 1, width)
    M = handmade(
        tmp_path / "m", np.ones(n * width), np.tile(np.arange(width), n), ends, np.ones(n), width
    )
    M.cuts(size)
    tracemalloc.start()
    try:
        cells = sum(len(X.data) for _, _, X in M.blocks(size))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert cells == n * width
    assert M.nbytes > 20 * size
    assert peak < 4 * size


def test_without_positioned_reads(folder, rows, monkeypatch):
    monkeypatch.delattr(os, "preadv")
    monkeypatch.setattr(ondisk_format, "PIECE_BYTES", 64)
    M = open_matrix(folder)
    same_rows(M.read(3, ROWS), row_slice(rows[0], 3, ROWS))
    M.verify()


def test_a_matrix_travels_to_another_process_by_name(folder, rows):
    same_rows(pickle.loads(pickle.dumps(open_matrix(folder))).read(0, ROWS), rows[0])


def test_an_open_matrix_outlives_its_folder(tmp_path, folder, rows):
    M = open_matrix(folder)
    (tmp_path / "text").write_bytes(b"1 1:1\n")
    convert(tmp_path / "text", folder)
    same_rows(M.read(0, ROWS), rows[0])
    assert open_matrix(folder).n_rows == 1


def test_many_columns_have_wide_indices_as_in_memory(tmp_path):
    M = handmade(tmp_path / "m", [1.0], [2**32 - 2], [0, 1], [1.0], n_cols=2**32 - 1)
    X = M.read(0, 1)
    assert X.indices.dtype == X.indptr.dtype == np.uint64
    assert X.indices.tolist() == [2**32 - 2]


# ---------------------------------------------------------------- damage


@pytest.mark.parametrize("name", ARRAYS)
def test_every_truncation_is_refused(folder, name):
    path = folder / f"{name}.bin"
    size = path.stat().st_size
    for length in (0, 1, size - 1, size + 1):
        os.truncate(path, length)
        assert f"{name}.bin: {size} bytes are required, got {length}" in refused(
            open_matrix, folder
        )
    path.unlink()
    assert f"{name}.bin: cannot be read: No such file" in refused(open_matrix, folder)


@pytest.mark.parametrize("name", ARRAYS)
def test_every_flipped_byte_is_found(folder, name):
    path = folder / f"{name}.bin"
    data = bytearray(path.read_bytes())
    assert len(data) > 40
    for at in range(0, len(data), len(data) // 40):
        data[at] ^= 4
        path.write_bytes(data)
        assert f"{name}.bin: damaged in rows " in refused(open_matrix(folder).verify)
        data[at] ^= 4


def test_whatever_a_damaged_array_says_reading_is_safe(folder):
    rng = np.random.default_rng(0)
    for name in ARRAYS:
        path = folder / f"{name}.bin"
        whole = path.read_bytes()
        for _ in range(60):
            data = bytearray(whole)
            for at in rng.integers(len(data), size=3):
                data[at] = rng.integers(256)
            path.write_bytes(data)
            with contextlib.suppress(FormatError):
                M = open_matrix(folder)
                X = M.read(0, ROWS)
                assert X.indices.max() < M.n_cols
                assert np.isfinite(X.data).all()
                assert sum(len(block.data) for _, _, block in M.blocks(500)) == M.n_cells
        path.write_bytes(whole)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (([1, 2], [0, 3], [0, 1, 2], [1, 1]), "indices.bin: .* an index is outside the 3 columns"),
        (([1, 2], [0, 2**32 - 1], [0, 1, 2], [1, 1]), "an index is outside"),
        (([1, 2], [1, 1], [0, 2, 2], [1, 1]), "indices.bin: .* indices must ascend"),
        (([1, np.nan], [0, 1], [0, 1, 2], [1, 1]), "values.bin: .* values must be finite"),
        (([1, 2], [0, 1], [0, 2, 1], [1, 1]), "indptr.bin: .* row ends must ascend from 0 to 2"),
        (([1, 2], [0, 1], [1, 1, 2], [1, 1]), "indptr.bin"),
        (([1, 2], [0, 1], [0, 1, 1], [1, 1]), "indptr.bin"),
        (([1, 2], [0, 1], [0, 2**63, 2], [1, 1]), "indptr.bin"),
        (([1, 2], [0, 1], [0, 2**32, 2**32 + 2], [1, 1]), "indptr.bin"),
    ],
)
def test_what_is_no_matrix_is_refused_before_a_kernel_sees_it(tmp_path, arrays, message):
    M = handmade(tmp_path / "m", *arrays)
    with pytest.raises(FormatError, match=message):
        M.read(0, 2)
    with pytest.raises(FormatError, match=message):
        list(M.blocks(1))


def test_labels_must_be_finite(tmp_path):
    M = handmade(tmp_path / "m", [1.0], [0], [0, 1], [np.inf])
    with pytest.raises(FormatError, match=r"labels.bin: labels must be finite"):
        M.labels  # noqa: B018


def test_every_truncated_or_changed_header_is_refused(folder):
    path = folder / "header.json"
    whole = path.read_bytes()
    for end in range(0, len(whole) - 2, 7):
        path.write_bytes(whole[:end])
        assert "header.json: damaged: it is no JSON text" in refused(open_matrix, folder)
    for a, b in ((b"1", b"2"), (b"float64", b"float32"), (b"little", b"Little")):
        path.write_bytes(
            whole.replace(b'"version": 1', b"!").replace(a, b).replace(b"!", b'"version": 1')
        )
        assert "header.json: damaged: its checksum does not match" in refused(open_matrix, folder)
    for junk in (b"[]", b"1", b"\xff\xfe", b"[" * 100_000):
        path.write_bytes(junk)
        assert "header.json: damaged" in refused(open_matrix, folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 2}, "version 1 is required, got 2"),
        ({"format": "other"}, "format must be 'nesvm-jit matrix', got 'other'"),
        ({"n_rows": ROWS + 1}, "n_rows must be the sum over all blocks"),
        ({"n_rows": "1"}, "n_rows must be"),
        ({"n_cells": -1}, "n_cells must be"),
        ({"n_cols": 2**32}, "n_cols must be from 0 to 4294967295, got 4294967296"),
        ({"n_cols": 1.0}, "n_cols must be"),
        ({"dtype": "int8"}, "dtype must be float64 or float32, got 'int8'"),
        ({"dtype": "float32"}, "values.bin: .* bytes are required"),
        ({"byte_order": "big"}, "byte_order must be little, got 'big'"),
        ({"first_index": 2}, "first_index must be 0 or 1, got 2"),
        ({"blocks": [[1, 2]]}, "blocks must be lists of rows, cells and four checksums"),
        ({"blocks": None}, "blocks must be"),
        ({"blocks": [], "n_rows": 0, "n_cells": 0}, "n_rows must be"),
    ],
)
def test_headers_that_cannot_be(folder, changes, message):
    rewrite(folder, **changes)
    with pytest.raises(FormatError, match=message):
        open_matrix(folder)


def test_what_is_no_folder_of_ours(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    for name in ("none", "file", "."):
        message = "an on-disk matrix is required, there is no header.json"
        assert message in refused(open_matrix, tmp_path / name)
    with pytest.raises(InputError, match="a file name is required"):
        open_matrix(None)
