"""Conversion to on-disk matrices: exact, resumed after any end, whole or not there."""

import bz2
import errno
import gzip
import io
import json
import lzma
import os
import resource
import signal
import subprocess
import sys
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from nesvm_jit import FormatError, InputError, NesvmError, convert, open_matrix, read_libsvm
from nesvm_jit.files.ondisk import workfolder
from nesvm_jit.matrix.checks import as_matrix

from .commands import contents, files_in

PACK = {"plain": bytes, "gzip": gzip.compress, "bz2": bz2.compress, "lzma": lzma.compress}
PARTS = [
    b"# head\n\n" + b"".join(b"%d 1:%d %d:.1 # x\n" % (i % 3, i, i % 9 + 2) for i in range(100)),
    b"-1\n+1 qid:3 2:1e-3\r\n" * 50 + b"0.5 7:3",  # no newline at the end
    b"2 12:1e30\n" + b"\n# nothing\n" * 60 + b"-3 1:0 3:-0.0\n",
]


def write_parts(folder, parts=PARTS, packs=("plain", "gzip", "lzma")):
    for k, (part, pack) in enumerate(zip(parts, packs, strict=True)):
        (folder / f"part{k}").write_bytes(PACK[pack](part))
    return [folder / f"part{k}" for k in range(len(parts))]


def same_as_read(folder, text, **options):
    X, y = read_libsvm(io.BytesIO(text), **options)
    expected, M = as_matrix(X), open_matrix(folder)
    got = M.read(0, M.n_rows)
    for name in ("data", "indices", "indptr"):
        a, b = getattr(got, name), getattr(expected, name)
        assert (a.dtype, a.tobytes()) == (b.dtype, b.tobytes())
    assert M.shape == X.shape
    assert M.labels.tobytes() == y.tobytes()
    M.verify()


class StopError(Exception):
    """A reason of the caller's to end a conversion."""


def stop_at(block, error=StopError):
    """A progress function that fails after so many blocks."""
    calls = []

    def progress(facts):
        calls.append(facts)
        if len(calls) == block + 1:
            raise error

    return progress


# ---------------------------------------------------------------- what is written


@pytest.mark.parametrize("kind", PACK)
@pytest.mark.parametrize("size", [90, 1 << 20])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_file_is_what_read_libsvm_reads(tmp_path, kind, size, dtype):
    text = PARTS[0] + PARTS[1]
    (tmp_path / "text").write_bytes(PACK[kind](text))
    found = convert(tmp_path / "text", tmp_path / "m", dtype=dtype, block_bytes=size)
    same_as_read(tmp_path / "m", text, dtype=dtype)
    M = open_matrix(tmp_path / "m")
    assert found == (M.n_rows, M.n_cols, M.n_cells, M.nbytes, False)
    assert files_in(tmp_path) == ["m", "text"]


def test_rows_without_features_have_no_columns(tmp_path):
    (tmp_path / "text").write_bytes(b"1\n-1\n")
    assert convert(tmp_path / "text", tmp_path / "m").n_cols == 0
    same_as_read(tmp_path / "m", b"1\n-1\n")


def test_several_files_are_one_after_the_other(tmp_path):
    paths = write_parts(tmp_path)
    convert(paths, tmp_path / "m", block_bytes=200)
    same_as_read(tmp_path / "m", b"\n".join(PARTS))


@pytest.mark.parametrize("options", [{"n_features": 40}, {"zero_based": True}])
def test_options_are_those_of_the_reader(tmp_path, options):
    (tmp_path / "text").write_bytes(PARTS[0])
    convert(tmp_path / "text", tmp_path / "m", **options)
    same_as_read(tmp_path / "m", PARTS[0], **options)
    assert open_matrix(tmp_path / "m").first_index == (0 if "zero_based" in options else 1)


def test_standard_input_open_files_and_pipes(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(PARTS[0])))
    convert("-", tmp_path / "a", block_bytes=100)
    convert(io.BytesIO(gzip.compress(PARTS[0])), tmp_path / "b", block_bytes=100)
    read, write = os.pipe()
    os.write(write, PARTS[0])
    os.close(write)
    convert(f"/dev/fd/{read}", tmp_path / "c", block_bytes=100)
    os.close(read)
    for name in "abc":
        same_as_read(tmp_path / name, PARTS[0])
    with pytest.raises(InputError, match="must be the only one to convert"):
        convert(["-", tmp_path / "x"], tmp_path / "d")
    assert files_in(tmp_path) == ["a", "b", "c"]


def test_progress_tells_rows_and_bytes(tmp_path):
    paths, seen = write_parts(tmp_path), []
    found = convert(paths, tmp_path / "m", block_bytes=500, progress=seen.append)
    assert seen[0] == {"rows": 0, "cells": 0, "text_bytes": 0, "file": str(paths[0])}
    last = {"rows": found.n_rows, "cells": found.n_cells, "file": str(paths[2])}
    assert seen[-1] == {**last, "text_bytes": sum(map(len, PARTS))}
    assert all(a["text_bytes"] < b["text_bytes"] for a, b in pairwise(seen))


def test_memory_is_bounded_by_the_block(tmp_path):
    size = 1 << 19
    line = b"1 " + b" ".join(b"%d:0.5" % j for j in range(1, 100)) + b"\n"
    (tmp_path / "text.xz").write_bytes(lzma.compress(line * 20_000, preset=0))  # 14 MB of text
    convert(io.BytesIO(line * 4000), tmp_path / "m")  # compiles what large data need
    tracemalloc.start()
    try:
        convert(tmp_path / "text.xz", tmp_path / "m", block_bytes=size)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert open_matrix(tmp_path / "m").n_rows == 20_000
    assert peak < 12 * size


# ---------------------------------------------------------------- going on


KILLED = (
    "import os, signal, sys; from nesvm_jit import convert; calls = []\n"
    "def progress(facts):\n"
    "    calls.append(facts)\n"
    "    if len(calls) == 9: os.kill(os.getpid(), signal.SIGKILL)\n"
    "convert(sys.argv[2:], sys.argv[1], block_bytes=200, progress=progress)"
)


def test_a_killed_conversion_goes_on_to_the_same_bytes(tmp_path):
    paths = write_parts(tmp_path)
    convert(paths, tmp_path / "whole", block_bytes=200)
    out = subprocess.run([sys.executable, "-c", KILLED, tmp_path / "m", *paths], timeout=60)
    assert out.returncode == -signal.SIGKILL
    assert not (tmp_path / "m").exists()
    assert workfolder.unfinished(tmp_path / "m")
    found = convert(paths, tmp_path / "m", block_bytes=200)
    assert found.resumed
    assert contents(tmp_path / "m") == contents(tmp_path / "whole")
    assert files_in(tmp_path) == ["m", "part0", "part1", "part2", "whole"]


@pytest.mark.parametrize("packs", [("plain",) * 3, ("lzma", "bz2", "gzip")])
def test_after_any_block_it_goes_on_to_the_same_bytes(tmp_path, packs):
    paths, seen = write_parts(tmp_path, packs=packs), []
    convert(paths, tmp_path / "whole", block_bytes=700, progress=seen.append)
    expected = contents(tmp_path / "whole")
    assert len(seen) > 3
    for block in range(1, len(seen)):
        with pytest.raises(StopError):
            convert(paths, tmp_path / "m", block_bytes=700, progress=stop_at(block))
        assert not (tmp_path / "m").exists()
        again = []
        assert convert(paths, tmp_path / "m", block_bytes=700, progress=again.append).resumed
        assert again == seen[block:]
        assert contents(tmp_path / "m") == expected
        for p in (tmp_path / "m").iterdir():
            p.unlink()
        (tmp_path / "m").rmdir()


def test_every_block_may_be_the_last_of_its_run(tmp_path):
    paths = write_parts(tmp_path)
    convert(paths, tmp_path / "whole", block_bytes=700)
    runs = 0
    while not (tmp_path / "m").exists():
        runs += 1
        try:
            convert(paths, tmp_path / "m", block_bytes=700, progress=stop_at(1))
        except StopError:
            continue
    assert runs > 5
    assert contents(tmp_path / "m") == contents(tmp_path / "whole")


def test_what_was_written_after_the_journal_is_cut_off(tmp_path):
    paths = write_parts(tmp_path)
    convert(paths, tmp_path / "whole", block_bytes=300)
    with pytest.raises(StopError):
        convert(paths, tmp_path / "m", block_bytes=300, progress=stop_at(4))
    for p in (tmp_path / ".m.part/matrix").iterdir():
        with open(p, "ab") as f:
            f.write(b"half a block")
    (tmp_path / ".m.part/journal.json.new").write_bytes(b"half a journal")
    assert convert(paths, tmp_path / "m", block_bytes=300).resumed
    assert contents(tmp_path / "m") == contents(tmp_path / "whole")


def shorten(folder):
    os.truncate(folder / ".m.part/matrix/values.bin", 8)


def spoil(folder):
    path = folder / ".m.part/journal.json"
    path.write_bytes(path.read_bytes().replace(b"rows", b"Rows"))


def touch(folder):
    os.utime(folder / "part0", ns=(1, 1))


@pytest.mark.parametrize(
    ("change", "options"),
    [
        (touch, {}),
        (shorten, {}),
        (spoil, {}),
        (lambda folder: (folder / ".m.part/journal.json").unlink(), {}),
        (lambda folder: (folder / "part0").write_bytes(PARTS[0] + b"1 1:1\n"), {}),
        (None, {"resume": False}),
        (None, {"dtype": np.float32}),
        (None, {"n_features": 30}),
        (None, {"zero_based": True}),
    ],
)
def test_another_job_starts_anew(tmp_path, change, options):
    paths = write_parts(tmp_path)
    with pytest.raises(StopError):
        convert(paths, tmp_path / "m", block_bytes=300, progress=stop_at(4))
    if change:
        change(tmp_path)
    assert not convert(paths, tmp_path / "m", block_bytes=300, **options).resumed
    options.pop("resume", None)
    text = PARTS[0] + b"1 1:1\n" * (len(PARTS[0]) < paths[0].stat().st_size)
    same_as_read(tmp_path / "m", b"\n".join([text, *PARTS[1:]]), **options)
    assert files_in(tmp_path) == ["m", "part0", "part1", "part2"]


def test_line_numbers_are_right_after_going_on(tmp_path):
    (tmp_path / "text").write_bytes(PARTS[0] + b"1 5:x\n")
    with pytest.raises(StopError):
        convert(tmp_path / "text", tmp_path / "m", block_bytes=300, progress=stop_at(3))
    with pytest.raises(FormatError, match=r"text:103: value must be a decimal number, got '5:x'"):
        convert(tmp_path / "text", tmp_path / "m", block_bytes=300)
    assert files_in(tmp_path) == ["text"]  # the text has to change: nothing to go on from


# ---------------------------------------------------------------- whole or not there


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"1 1:1\n" * 500 + b"1 x\n", r"part1:501: index:value required"),
        (b"", "part1: no rows"),
        (gzip.compress(PARTS[0], mtime=0)[:-9], "part1: damaged gzip data"),
    ],
)
def test_wrong_text_leaves_nothing(tmp_path, text, message):
    paths = write_parts(tmp_path)
    paths[1].write_bytes(text)
    before = files_in(tmp_path)
    with pytest.raises(FormatError, match=message):
        convert(paths, tmp_path / "m", block_bytes=300)
    assert files_in(tmp_path) == before


def test_arguments_are_checked_before_anything_is_written(tmp_path):
    (tmp_path / "text").write_bytes(PARTS[0])
    cases = (
        ({"dtype": "int8"}, "dtype must be"),
        ({"n_features": -1}, "n_features must be"),
        ({"block_bytes": 0}, "block_bytes must be"),
        ({"zero_based": 3}, "zero_based must be"),
        ({"paths": []}, "at least one text file is required"),
        ({"paths": [None]}, "a file name is required"),
        ({"paths": tmp_path / "none"}, "none: cannot be read: No such file"),
        ({"paths": tmp_path}, "Is a directory"),
        ({"folder": None}, "a file name is required"),
        ({"folder": tmp_path / "no/m"}, "no/m: cannot be written: No such file"),
        ({"n_features": 3}, "index must be at most 3, got 4"),
    )
    for options, message in cases:
        with pytest.raises(NesvmError, match=message):
            convert(**{"paths": tmp_path / "text", "folder": tmp_path / "m", **options})
    assert files_in(tmp_path) == ["text"]


def test_only_a_matrix_or_an_empty_folder_is_replaced(tmp_path):
    (tmp_path / "text").write_bytes(PARTS[0])
    (tmp_path / "empty").mkdir()
    convert(tmp_path / "text", tmp_path / "empty")
    convert(tmp_path / "text", f"{tmp_path}/empty/", dtype=np.float32)
    same_as_read(tmp_path / "empty", PARTS[0], dtype=np.float32)
    (tmp_path / "empty/note").write_bytes(b"mine")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/header.json").write_bytes(b'{"format": "other"}')
    for name in ("empty", "other", "text", "."):
        with pytest.raises(NesvmError, match=r"cannot be written: .* exists and"):
            convert(tmp_path / "text", tmp_path / name)
    assert (tmp_path / "empty/note").read_bytes() == b"mine"
    assert files_in(tmp_path) == ["empty", "other", "text"]


def test_a_link_to_a_matrix_stays_a_link(tmp_path):
    (tmp_path / "text").write_bytes(PARTS[0])
    (tmp_path / "link").symlink_to("real")
    convert(tmp_path / "text", tmp_path / "link")
    convert(tmp_path / "text", tmp_path / "link", dtype=np.float32)
    assert (tmp_path / "link").is_symlink()
    same_as_read(tmp_path / "real", PARTS[0], dtype=np.float32)


def test_the_old_matrix_stays_until_the_new_one_is_whole(tmp_path):
    (tmp_path / "text").write_bytes(PARTS[0])
    convert(tmp_path / "text", tmp_path / "m")
    with pytest.raises(StopError):
        convert(tmp_path / "text", tmp_path / "m", n_features=50, progress=stop_at(1))
    same_as_read(tmp_path / "m", PARTS[0])
    convert(tmp_path / "text", tmp_path / "m", n_features=50)
    same_as_read(tmp_path / "m", PARTS[0], n_features=50)


@pytest.mark.parametrize("killed", [False, True])
def test_between_two_renames_the_old_matrix_is_not_lost(tmp_path, monkeypatch, killed):
    (tmp_path / "text").write_bytes(PARTS[0])
    convert(tmp_path / "text", tmp_path / "m")
    rename = os.rename

    def failing(a, b):
        if os.path.basename(a) == "matrix":
            raise OSError(errno.EIO, "Input/output error")
        rename(a, b)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", failing)
        if killed:
            patch.setattr(workfolder.WorkFolder, "_put_back", lambda self: None)
        with pytest.raises(NesvmError, match="m: cannot be written: Input/output error; run it"):
            convert(tmp_path / "text", tmp_path / "m", n_features=50)
    if not killed:
        same_as_read(tmp_path / "m", PARTS[0])
    assert convert(tmp_path / "text", tmp_path / "m", n_features=50).resumed
    same_as_read(tmp_path / "m", PARTS[0], n_features=50)
    assert files_in(tmp_path) == ["m", "text"]


def test_a_full_disk_is_one_line_and_no_loss(tmp_path):
    paths = write_parts(tmp_path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1700, limits[1]))
    try:
        with pytest.raises(NesvmError) as e:
            convert(paths, tmp_path / "m", block_bytes=300)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    again = "cannot be written: File too large; run it again to go on where it stopped"
    assert str(e.value) == f"{tmp_path / 'm'}: {again}"
    assert convert(paths, tmp_path / "m", block_bytes=300).resumed
    same_as_read(tmp_path / "m", b"\n".join(PARTS))


def test_a_failing_disk_under_the_text_is_no_loss(tmp_path, monkeypatch):
    from nesvm_jit.files.libsvm import stream

    (tmp_path / "text").write_bytes(PARTS[0])
    take, calls = stream._Joined.take, []

    def failing(self, size):
        calls.append(size)
        if len(calls) == 5:
            raise OSError(errno.EIO, "Input/output error")
        return take(self, size)

    with monkeypatch.context() as patch:
        patch.setattr(stream._Joined, "take", failing)
        with pytest.raises(FormatError, match="text: cannot be read: Input/output error"):
            convert(tmp_path / "text", tmp_path / "m", block_bytes=300)
    assert convert(tmp_path / "text", tmp_path / "m", block_bytes=300).resumed
    same_as_read(tmp_path / "m", PARTS[0])


def test_a_file_that_changes_meanwhile(tmp_path):
    paths = write_parts(tmp_path)

    def append(facts):
        with open(paths[0], "ab") as f:
            f.write(b"1 1:1\n")

    with pytest.raises(FormatError, match="part0: the file changed while it was read"):
        convert(paths, tmp_path / "m", progress=append)
    assert files_in(tmp_path) == ["part0", "part1", "part2"]


def test_two_conversions_at_once(tmp_path):
    paths = write_parts(tmp_path)
    refused = []

    def meanwhile(facts):
        with pytest.raises(NesvmError, match="m: another conversion into this folder is running"):
            convert(paths, tmp_path / "m", block_bytes=300)
        refused.append(facts)

    convert(paths, tmp_path / "m", block_bytes=300, progress=meanwhile)
    assert len(refused) > 5
    same_as_read(tmp_path / "m", b"\n".join(PARTS))


def test_the_lock_of_a_folder_that_was_just_removed_is_none(tmp_path, monkeypatch):
    """Whoever waits at the open lock file of a conversion that ends makes a new one."""
    (tmp_path / "text").write_bytes(PARTS[0])
    lock, seen = workfolder._lock, []

    def late(file):
        if not seen:
            for p in (tmp_path / ".m.part").iterdir():
                p.unlink()
            (tmp_path / ".m.part").rmdir()
        seen.append(file)
        return lock(file)

    monkeypatch.setattr(workfolder, "_lock", late)
    convert(tmp_path / "text", tmp_path / "m")
    assert len(seen) == 2
    same_as_read(tmp_path / "m", PARTS[0])


def test_the_journal_is_small_and_names_the_files(tmp_path):
    paths = write_parts(tmp_path)
    with pytest.raises(StopError):
        convert(paths, tmp_path / "m", block_bytes=300, progress=stop_at(2))
    facts = json.loads((tmp_path / ".m.part/journal.json").read_bytes())
    assert [name for name, _, _ in facts["job"]["inputs"]] == list(map(str, paths))
    assert sum(row[0] for row in facts["blocks"]) == facts["done"]["n_rows"] > 0
