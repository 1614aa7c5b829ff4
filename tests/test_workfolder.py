"""The hidden folder of a conversion: what is on the disk when, what is left, what is refused."""

import errno
import fcntl
import io
import json
import os
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from nesvm_jit import FormatError, NesvmError, convert, open_matrix
from nesvm_jit.files import locks, sealed
from nesvm_jit.files.libsvm.stream import Place
from nesvm_jit.files.ondisk import convert as converting
from nesvm_jit.files.ondisk import workfolder
from nesvm_jit.files.ondisk.workfolder import Done, WorkFolder, require_replaceable, work_folder

from .compare import refusal

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")

TEXT = b"".join(b"%d 1:%d 3:.5\n" % (i % 3, i) for i in range(30))
ARRAYS = ("values", "indices", "indptr", "labels")


class StopError(Exception):
    """A reason of the caller's to end a conversion."""


@pytest.fixture
def source(tmp_path):
    (tmp_path / "text").write_bytes(TEXT)
    return tmp_path / "text"


@pytest.fixture
def synced(monkeypatch):
    """Paths handed to fsync, and `journal` or `header.json` where one takes its name."""
    seen, fsync, replace = [], os.fsync, os.replace

    def noting(file):
        seen.append(os.path.basename(os.readlink(f"/proc/self/fd/{file}")))
        fsync(file)

    def renaming(a, b):
        if not str(b).endswith(".nsc"):  # compiled code that goes to its cache
            seen.append(f"> {os.path.basename(b)}")
        replace(a, b)

    monkeypatch.setattr(os, "fsync", noting)
    monkeypatch.setattr(os, "replace", renaming)
    return seen


def names(folder):
    return sorted(p.name for p in folder.iterdir())


def open_files():
    return len(os.listdir("/proc/self/fd"))


def stop_after(blocks):
    calls = []

    def progress(facts):
        calls.append(facts)
        if len(calls) > blocks:
            raise StopError

    return progress


def stopped(source, target, blocks, **options):
    with pytest.raises(StopError):
        convert(source, target, progress=stop_after(blocks), **{"block_bytes": 150, **options})


# ---------------------------------------------------------------- what is on the disk when


@pytest.mark.parametrize("resumed", [False, True])
def test_the_journal_never_says_more_than_is_on_the_disk(
    tmp_path, source, synced, monkeypatch, resumed
):
    if resumed:
        stopped(source, tmp_path / "m", 1)
        synced.clear()
    write, rows = sealed.write_sealed, []

    def checking(path, data):
        facts = sealed.parse(data)
        if "done" in facts:
            done = facts["done"]
            sizes = {"values": 8 * done["n_cells"], "indices": 4 * done["n_cells"]}
            sizes |= {"indptr": 8 * done["n_rows"] + 8, "labels": 8 * done["n_rows"]}
            matrix = os.path.join(os.path.dirname(path), "matrix")
            for name, size in sizes.items():
                assert os.path.getsize(os.path.join(matrix, f"{name}.bin")) == size
            rows.append(done["n_rows"])
        write(path, data)

    monkeypatch.setattr(sealed, "write_sealed", checking)
    assert convert(source, tmp_path / "m", block_bytes=150).resumed is resumed
    assert rows == [14, 27, 30][resumed:]
    arrays = [f"{name}.bin" for name in ARRAYS]
    journal = [*arrays, "journal.json.new", "> journal.json"]
    header = [*arrays, "header.json.new", "> header.json", "matrix", tmp_path.name]
    assert synced == [*journal * len(rows), *header]


def test_what_cannot_be_read_again_has_no_journal(tmp_path, synced):
    seen = []
    convert(
        io.BytesIO(TEXT),
        tmp_path / "m",
        block_bytes=150,
        progress=lambda facts: seen.append(names(tmp_path / ".m.part")),
    )
    assert seen == [["lock", "matrix"]] * 4
    header = ["header.json.new", "> header.json", "matrix", tmp_path.name]
    assert synced == [*(f"{name}.bin" for name in ARRAYS), *header]
    stop = stop_after(2)
    with pytest.raises(StopError):
        convert(io.BytesIO(TEXT), tmp_path / "n", block_bytes=60, progress=stop)
    assert names(tmp_path) == ["m"]


def test_a_header_lists_the_blocks_as_they_were_written(tmp_path, source):
    seen = []
    found = convert(source, tmp_path / "m", 7, block_bytes=150, progress=seen.append)
    facts = json.loads((tmp_path / "m/header.json").read_bytes())
    assert [row[:2] for row in facts["blocks"]] == [[14, 28], [13, 26], [3, 6]]
    assert {k: facts[k] for k in ("n_rows", "n_cols", "n_cells", "dtype", "first_index")} == {
        "n_rows": 30,
        "n_cols": 7,
        "n_cells": 60,
        "dtype": "float64",
        "first_index": 1,
    }
    assert found == (30, 7, 60, 60 * 12 + 31 * 8 + 30 * 8, False)
    sizes = [len(b"".join(TEXT.splitlines(True)[:n])) for n in (0, 14, 27, 30)]
    assert seen == [
        {"rows": n, "cells": 2 * n, "text_bytes": size, "file": str(source)}
        for n, size in zip((0, 14, 27, 30), sizes, strict=True)
    ]


def test_the_journal_holds_the_job_the_place_and_the_blocks(tmp_path, source):
    stopped(source, tmp_path / "m", 2, block_bytes=150, n_features=9, dtype="float32")
    journal = sealed.unseal(
        "nesvm-jit conversion", 1, (tmp_path / ".m.part/journal.json").read_bytes()
    )
    stat = source.stat()
    assert journal["job"] == {
        "inputs": [[str(source), stat.st_size, stat.st_mtime_ns]],
        "n_features": 9,
        "dtype": "float32",
        "first_index": 1,
    }
    size = len(b"".join(TEXT.splitlines(True)[:27]))
    done = Done(0, Place(size, 28, 27), 27, 9, 54, size)
    assert journal["done"] == {**done._asdict(), "place": [size, 28, 27]}
    assert [row[:2] for row in journal["blocks"]] == [[14, 28], [13, 26]]


# ---------------------------------------------------------------- what is left


def test_a_conversion_that_has_no_row_yet_leaves_nothing(tmp_path, source):
    stopped(source, tmp_path / "m", 0)
    assert names(tmp_path) == ["text"]


def test_a_single_row_is_enough_to_go_on_from(tmp_path, source):
    source.write_bytes(b"".join(TEXT.splitlines(True)[:4]))
    stopped(source, tmp_path / "m", 1, block_bytes=1)
    assert workfolder.unfinished(tmp_path / "m")
    assert names(tmp_path / ".m.part") == ["journal.json", "lock", "matrix"]
    seen = []
    assert convert(source, tmp_path / "m", block_bytes=1, progress=seen.append).resumed
    assert [facts["rows"] for facts in seen] == [1, 2, 3, 4]
    assert not workfolder.unfinished(tmp_path / "m")


def test_all_files_are_closed_whatever_the_end(tmp_path, source):
    before = open_files()
    convert(source, tmp_path / "m")
    assert open_files() == before
    stopped(source, tmp_path / "m", 1)
    assert open_files() == before
    assert convert(source, tmp_path / "m", block_bytes=150).resumed
    assert open_files() == before

    def meanwhile(facts):
        held = open_files()
        message = refusal(convert, source, tmp_path / "m", kind=NesvmError)
        assert message == f"{tmp_path / 'm'}: another conversion into this folder is running"
        assert open_files() == held

    convert(source, tmp_path / "m", progress=meanwhile)
    assert open_files() == before


def test_a_lock_that_came_too_late_is_closed(tmp_path, source, monkeypatch):
    lock, seen = workfolder._lock, []

    def late(file):
        if not seen:
            os.unlink(tmp_path / ".m.part/lock")
        seen.append(file)
        return lock(file)

    before = open_files()
    monkeypatch.setattr(workfolder, "_lock", late)
    convert(source, tmp_path / "m")
    assert len(seen) == 2
    assert open_files() == before


def test_a_folder_that_is_removed_under_the_lock_is_made_again(tmp_path, source, monkeypatch):
    opening, seen = os.open, []

    def late(path, *how):
        if str(path).endswith("lock") and not seen:
            seen.append(path)
            os.rmdir(os.path.dirname(path))
        return opening(path, *how)

    monkeypatch.setattr(os, "open", late)
    assert convert(source, tmp_path / "m").n_rows == 30
    assert seen == [str(tmp_path / ".m.part/lock")]


def test_arrays_are_closed_before_the_matrix_takes_its_place(tmp_path, source, monkeypatch):
    renaming, seen = os.rename, []

    def noting(a, b):
        held = [os.path.realpath(f"/proc/self/fd/{f}") for f in os.listdir("/proc/self/fd")]
        seen.append([name for name in held if name.startswith(a)])
        renaming(a, b)

    monkeypatch.setattr(os, "rename", noting)
    convert(source, tmp_path / "m")
    assert seen == [[]]


def test_a_lock_has_the_permissions_that_the_umask_leaves(tmp_path, source):
    seen = []
    before = os.umask(0o012)
    try:
        convert(
            source,
            tmp_path / "m",
            progress=lambda _: seen.append((tmp_path / ".m.part/lock").stat().st_mode & 0o777),
        )
    finally:
        os.umask(before)
    assert set(seen) == {0o664}


@pytest.mark.parametrize(
    ("error", "free"),
    [
        (None, True),
        (BlockingIOError(errno.EAGAIN, "busy"), False),
        (PermissionError(errno.EACCES, "no"), False),
        (OSError(errno.ENOLCK, "no locks"), True),
    ],
)
def test_a_lock_is_free_unless_somebody_has_it(monkeypatch, error, free):
    def flock(file, how):
        assert (file, how) == (5, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if error:
            raise error

    monkeypatch.setattr(fcntl, "flock", flock)
    assert workfolder._lock(5) is free


@pytest.mark.parametrize("error", [None, PermissionError(errno.EACCES, "busy")])
def test_a_lock_where_there_is_no_flock(monkeypatch, error):
    calls = []

    def locking(*args):
        calls.append(args)
        if error:
            raise error

    windows = SimpleNamespace(locking=locking, LK_NBLCK=2)
    monkeypatch.setitem(sys.modules, "msvcrt", windows)
    monkeypatch.setattr(locks, "sys", SimpleNamespace(platform="win32"))
    assert workfolder._lock(5) is (error is None)
    assert calls == [(5, 2, 1)]


def test_what_an_earlier_job_left_is_removed(tmp_path, source):
    stopped(source, tmp_path / "m", 2)
    (tmp_path / ".m.part/matrix/strange").write_bytes(b"x")
    assert not convert(source, tmp_path / "m", dtype=np.float32).resumed
    assert names(tmp_path / "m") == ["header.json", *sorted(f"{a}.bin" for a in ARRAYS)]
    assert names(tmp_path) == ["m", "text"]


@pytest.mark.parametrize(
    "change",
    [
        lambda facts: {**facts, "done": None},
        lambda facts: {k: v for k, v in facts.items() if k != "blocks"},
        lambda facts: {**facts, "done": {**facts["done"], "more": 1}},
        lambda facts: {**facts, "done": {**facts["done"], "place": 3}},
        lambda facts: {**facts, "job": {**facts["job"], "first_index": 0}},
    ],
)
def test_a_journal_that_makes_no_sense_is_not_gone_on_from(tmp_path, source, change):
    stopped(source, tmp_path / "m", 2)
    path = tmp_path / ".m.part/journal.json"
    facts = sealed.unseal("nesvm-jit conversion", 1, path.read_bytes())
    for name in ("format", "version"):
        facts.pop(name)
    path.write_bytes(sealed.seal("nesvm-jit conversion", 1, change(facts)))
    assert not convert(source, tmp_path / "m").resumed
    open_matrix(tmp_path / "m").verify()


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_that_are_too_short_or_gone_are_not_gone_on_from(tmp_path, source, name):
    for spoil in (os.unlink, lambda path: os.truncate(path, os.path.getsize(path) - 1)):
        stopped(source, tmp_path / "m", 1)
        spoil(tmp_path / f".m.part/matrix/{name}.bin")
        assert not convert(source, tmp_path / "m", block_bytes=150).resumed
        open_matrix(tmp_path / "m").verify()


def test_an_old_matrix_that_was_put_aside_comes_back_only_if_its_place_is_free(tmp_path):
    work = WorkFolder(tmp_path / "m", {}, True)
    old = tmp_path / ".m.part/old"
    for taken in (False, True):
        old.mkdir(parents=True)
        (old / "note").write_bytes(b"old")
        if taken:
            (tmp_path / "m/note").write_bytes(b"new")
        work._put_back()
        assert (tmp_path / "m/note").read_bytes() == (b"new" if taken else b"old")
        assert not old.exists()


# ---------------------------------------------------------------- what is refused


def matrix(folder, version=1, **more):
    folder.mkdir()
    header = sealed.seal("nesvm-jit matrix", version, {})
    for name, data in {"header.json": header, **more}.items():
        (folder / name).write_bytes(data)


def test_only_nothing_an_empty_folder_or_a_matrix_is_replaced(tmp_path):
    (tmp_path / "empty").mkdir()
    matrix(tmp_path / "ours", **{"values.bin": b""})
    matrix(tmp_path / "newer", version=2)
    for name in ("none", "empty", "ours", "newer"):
        assert require_replaceable(str(tmp_path / name), name) is None
    (tmp_path / "file").touch()
    (tmp_path / "broken").symlink_to("nowhere")
    for name in ("file", "broken"):
        message = refusal(require_replaceable, str(tmp_path / name), name, kind=NesvmError)
        assert message == f"{name}: cannot be written: it exists and is no on-disk matrix"
    matrix(tmp_path / "more", note=b"mine")
    (tmp_path / "headless").mkdir()
    (tmp_path / "headless/values.bin").touch()
    matrix(tmp_path / "junk", **{"header.json": b"junk"})
    matrix(tmp_path / "other", **{"header.json": sealed.seal("other", 1, {})})
    for name in ("more", "headless", "junk", "other"):
        message = refusal(require_replaceable, str(tmp_path / name), name, kind=NesvmError)
        holds = "the folder exists and holds something else than a matrix"
        assert message == f"{name}: cannot be written: {holds}"


def test_what_cannot_be_replaced_is_told_before_anything_is_read(tmp_path, source):
    (tmp_path / "file").touch()
    seen = []
    message = refusal(convert, source, tmp_path / "file", progress=seen.append, kind=NesvmError)
    assert message.endswith("file: cannot be written: it exists and is no on-disk matrix")
    assert seen == []
    assert names(tmp_path) == ["file", "text"]


def test_what_came_into_the_folder_meanwhile_is_not_lost(tmp_path, source):
    convert(source, tmp_path / "m")
    before = (tmp_path / "m/header.json").read_bytes()

    def note(facts):
        (tmp_path / "m/note").write_bytes(b"mine")

    message = refusal(convert, source, tmp_path / "m", 9, progress=note, kind=NesvmError)
    holds = "the folder exists and holds something else than a matrix"
    assert message == f"{tmp_path / 'm'}: cannot be written: {holds}"
    assert (tmp_path / "m/note").read_bytes() == b"mine"
    assert (tmp_path / "m/header.json").read_bytes() == before


@pytest.mark.parametrize(
    ("error", "why"), [(OSError(errno.EIO, "bad disk"), "bad disk"), (OSError("odd"), "odd")]
)
def test_errors_of_the_disk_name_the_folder_and_say_whether_to_go_on(
    tmp_path, source, monkeypatch, error, why
):
    left, again = [], "; run it again to go on where it stopped"

    def failing(f, part):
        if not left:
            raise error
        left.pop()
        write(f, part)

    write = workfolder._write
    monkeypatch.setattr(workfolder, "_write", failing)
    for written, hint in ((0, ""), (2, ""), (6, again)):
        left[:] = range(written)
        message = refusal(convert, source, tmp_path / "m", block_bytes=60, kind=NesvmError)
        assert message == f"{tmp_path / 'm'}: cannot be written: {why}{hint}"
        assert workfolder.unfinished(tmp_path / "m") is bool(hint)
    left[:] = range(6)
    message = refusal(convert, io.BytesIO(TEXT), tmp_path / "n", block_bytes=60, kind=NesvmError)
    assert message == f"{tmp_path / 'n'}: cannot be written: {why}"
    assert not (tmp_path / ".n.part").exists()


def test_the_work_folder_is_hidden_beside_its_target(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to("there/m")
    assert work_folder("m") == str(tmp_path / ".m.part")
    assert work_folder(f"{tmp_path}/m/") == str(tmp_path / ".m.part")
    assert work_folder("link") == str(tmp_path / "there/.m.part")
    assert not workfolder.unfinished("m")


# ---------------------------------------------------------------- small things


class Drops:
    """A file that takes three bytes at a time."""

    def __init__(self):
        self.data = b""

    def write(self, view):
        self.data += bytes(view[:3])
        return len(view[:3])


def test_everything_is_written_however_little_is_taken_at_a_time():
    f, numbers = Drops(), np.arange(5, dtype="<u4")
    workfolder._write(f, numbers)
    workfolder._write(f, numbers[:0])
    assert f.data == numbers.tobytes()


def test_folders_files_and_nothing_are_removed(tmp_path):
    (tmp_path / "folder/deep").mkdir(parents=True)
    (tmp_path / "file").touch()
    for name in ("folder", "file", "none"):
        workfolder._remove(str(tmp_path / name))
    assert names(tmp_path) == []


def test_a_folder_that_cannot_be_synced_is_no_error(tmp_path, synced):
    before = open_files()
    workfolder._sync_folder(str(tmp_path))
    workfolder._sync_folder(str(tmp_path / "none"))
    assert synced == [tmp_path.name]
    assert open_files() == before


def test_sources_are_one_or_a_list_of_names():
    file = io.BytesIO()
    for one in ("a", b"a", file, "-"):
        assert converting._sources(one) == converting._sources([one]) == [one]
    assert converting._sources(("a", "b")) == ["a", "b"]
    assert refusal(converting._sources, []) == "at least one text file is required"
    only = "standard input or an open file must be the only one to convert"
    for several in (["a", "-"], ["-", "a"], ["a", file], [file, file]):
        assert refusal(converting._sources, several) == only


def test_a_file_is_known_by_name_size_and_time(source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.utime(source, ns=(5, 7))
    for name in (source, "text", b"text"):
        assert converting._identity(name) == [str(source), len(TEXT), 7]
    os.mkfifo(tmp_path / "pipe")
    for unknown in ("-", io.BytesIO(), tmp_path / "pipe", tmp_path):
        assert converting._identity(unknown) is None
    for name, why in (("none", "No such file or directory"), ("a\0b", "embedded null byte")):
        message = refusal(converting._identity, name, kind=FormatError)
        shown = name if name.isprintable() else repr(name)
        assert message == f"{shown}: cannot be read: {why}"


def test_the_widest_block_decides_unless_a_width_is_given(tmp_path):
    paths = [tmp_path / "a", tmp_path / "b"]
    paths[0].write_bytes(b"1 9:1\n")
    paths[1].write_bytes(b"1 2:1\n")
    assert convert(paths, tmp_path / "m").n_cols == 9
    assert convert(paths[::-1], tmp_path / "m").n_cols == 9
    assert convert(paths, tmp_path / "m", 12).n_cols == 12
    assert convert(io.BytesIO(b"1\n-1\n"), tmp_path / "m")[:4] == (2, 0, 0, 24 + 16)
    zero = convert(paths, tmp_path / "m", zero_based=True)
    assert (zero.n_cols, open_matrix(tmp_path / "m").first_index) == (10, 0)


def test_the_folder_must_have_a_name_before_any_text_is_looked_at(tmp_path):
    message = refusal(convert, tmp_path / "none", None)
    assert message == "a file name is required, got None"


def test_a_file_that_changed_is_told_with_its_name(tmp_path, source):
    def touch(facts):
        os.utime(source, ns=(1, 1))

    message = refusal(convert, source, tmp_path / "m", progress=touch, kind=FormatError)
    assert message == f"{source}: the file changed while it was read"
    assert names(tmp_path) == ["text"]
