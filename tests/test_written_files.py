"""Files that are written whole or not at all: their names, permissions, seals and checksums."""

import bz2
import gzip
import io
import json
import lzma
import os
import re
import subprocess
import sys
import zlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from nesvm_jit import FormatError, InputError, NesvmError, settings
from nesvm_jit.checkpoint import snapshot
from nesvm_jit.files import sealed, text

pytestmark = pytest.mark.pure

PACKS = {".gz": gzip, ".bz2": bz2, ".xz": lzma}


@pytest.fixture
def synced(monkeypatch):
    """The bytes that each file handed to fsync has on the disk at that moment."""
    sizes, fsync = [], os.fsync

    def noting(file):
        sizes.append(os.fstat(file).st_size)
        fsync(file)

    monkeypatch.setattr(os, "fsync", noting)
    return sizes


# ---------------------------------------------------------------- names


class Named:
    name = "its name"

    def __init__(self, method):
        setattr(self, method, lambda *a: b"")


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("a b", "a b"),
        (b"bytes", "bytes"),
        ("-", "<standard input>"),
        ("", "''"),
        ("a\nb", "'a\\nb'"),
        (io.BytesIO(), "<file object>"),
        (Named("read"), "its name"),
        (Named("write"), "its name"),
    ],
)
def test_names_are_shown_in_one_line(path, shown):
    assert text.display_name(path) == shown


def test_what_is_no_name_is_shown_in_part():
    with pytest.raises(InputError) as e:
        text.display_name(["x" * 100])
    assert str(e.value) == f"a file name is required, got {['x' * 100]!r:.60}"


# ---------------------------------------------------------------- packed files


@pytest.mark.parametrize("ending", PACKS)
def test_packed_files_are_told_by_their_first_bytes(tmp_path, ending):
    packed = PACKS[ending].compress(b"abc")
    (tmp_path / "file").write_bytes(packed)
    assert text.is_packed(tmp_path / "file")
    assert bytes(text.decompress(packed)) == b"abc"
    (tmp_path / "file").write_bytes(b"x" + packed)
    assert not text.is_packed(tmp_path / "file")
    assert text.decompress(b"x" + packed) == b"x" + packed


def test_text_is_not_taken_for_bytes():
    with pytest.raises(TypeError, match=r"^a file object must be opened in binary mode$"):
        text.decompress("1 1:2")


@pytest.mark.parametrize("ending", PACKS)
def test_endings_say_how_a_file_is_packed(tmp_path, ending):
    for name, packed in ((f"a{ending}", True), (f"a{ending}.txt", False)):
        with text.writing(tmp_path / name) as f:
            f.write(b"abc")
        assert text.is_packed(tmp_path / name) == packed
    assert PACKS[ending].decompress((tmp_path / f"a{ending}").read_bytes()) == b"abc"


# ---------------------------------------------------------------- whole or not at all


def test_a_file_grows_hidden_beside_its_place(tmp_path):
    with text.writing(tmp_path / "file") as f:
        f.write(b"abc")
        (name,) = os.listdir(tmp_path)
        assert name.startswith(".")
        assert name.endswith(".part")
    assert os.listdir(tmp_path) == ["file"]


def test_a_file_is_on_the_disk_before_it_takes_its_name(tmp_path, synced, monkeypatch):
    replace = os.replace

    def checking(a, b):
        assert synced == [3]
        replace(a, b)

    monkeypatch.setattr(os, "replace", checking)
    with text.writing(tmp_path / "file") as f:
        f.write(b"abc")
    assert (tmp_path / "file").read_bytes() == b"abc"


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o000, 0o666)])
def test_a_new_file_has_the_permissions_that_the_umask_leaves(tmp_path, mask, mode):
    before = os.umask(mask)
    try:
        with text.writing(tmp_path / "file"):
            pass
        assert os.umask(mask) == mask
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o7777 == mode


@pytest.mark.parametrize("mode", [0o755, 0o640, 0o600])
def test_a_replaced_file_keeps_its_permissions(tmp_path, mode):
    (tmp_path / "file").touch()
    (tmp_path / "file").chmod(mode | 0o2000)
    with text.writing(tmp_path / "file") as f:
        f.write(b"new")
    assert (tmp_path / "file").stat().st_mode & 0o7777 == mode
    assert (tmp_path / "file").read_bytes() == b"new"


def test_a_link_stays_and_its_target_is_replaced(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there/file")
    with text.writing(tmp_path / "link") as f:
        f.write(b"abc")
        assert len(os.listdir(tmp_path / "there")) == 1
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there/file").read_bytes() == b"abc"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), InputError("mine"), SystemExit(3)])
def test_errors_of_the_writer_pass_and_leave_the_old_file(tmp_path, error):
    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(type(error)) as e, text.writing(tmp_path / "file"):
        raise error
    assert e.value is error
    assert (tmp_path / "file").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (OSError(28, "No space left"), "No space left"),
        (OSError("odd"), "odd"),
        (ValueError("v"), "v"),
    ],
)
def test_errors_of_the_disk_name_the_file(tmp_path, error, why):
    with pytest.raises(NesvmError) as e, text.writing(tmp_path / "file"):
        raise error
    assert str(e.value) == f"{tmp_path / 'file'}: cannot be written: {why}"
    assert os.listdir(tmp_path) == []


def test_an_open_file_is_written_into_and_stays_open():
    file = io.BytesIO()
    with text.writing(file) as f:
        assert f is file
        f.write(b"abc")
    assert file.getvalue() == b"abc"


class Flushed(io.BytesIO):
    flushes = 0

    def flush(self):
        self.flushes += 1


@pytest.mark.parametrize("path", ["-", "/dev/stdout"])
def test_standard_output_is_flushed(monkeypatch, path):
    out = Flushed()
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(buffer=out))
    with text.writing(path) as f:
        f.write(b"abc")
    assert (out.getvalue(), out.flushes) == (b"abc", 1)
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(NesvmError) as e, text.writing(path):
        pass
    assert str(e.value) == "<standard output>: cannot be written: it is closed"


# ---------------------------------------------------------------- sealed files


def test_a_seal_is_the_checksum_of_the_sorted_facts():
    data = sealed.seal("kind", 3, {"b": [1, None], "a": 0.1})
    facts = {"format": "kind", "version": 3, "b": [1, None], "a": 0.1}
    crc = zlib.crc32(json.dumps(facts, sort_keys=True).encode())
    assert data == json.dumps({**facts, "crc32": crc}).encode() + b"\n"
    assert sealed.unseal("kind", 3, data) == facts
    other_order = json.dumps({"crc32": crc, **dict(reversed(facts.items()))}).encode()
    assert sealed.unseal("kind", 3, other_order) == facts


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "damaged: it is no JSON text"),
        (b"[" * 100_000, "damaged: it is no JSON text"),
        (b"[1]", "damaged: it is no JSON object"),
        (b"{}", "format must be 'kind', got None"),
        (sealed.seal("x" * 50, 3, {}), f"format must be 'kind', got {'x' * 50!r:.40}"),
        (sealed.seal("kind", 4, {}), "version 3 is required, got 4"),
        (b'{"format": "kind"}', "version 3 is required, got None"),
        (b'{"format": "kind", "version": 3}', "damaged: its checksum does not match"),
        (
            sealed.seal("kind", 3, {"a": 1}).replace(b'"a": 1', b'"a": 2'),
            "damaged: its checksum does not match",
        ),
    ],
)
def test_what_is_not_sealed_is_refused(data, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        sealed.unseal("kind", 3, data)


def test_a_sealed_file_is_on_the_disk_before_it_takes_its_name(tmp_path, synced, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    replace = os.replace

    def checking(a, b):
        assert synced == [3]
        assert path.read_bytes() == b"old"
        replace(a, b)

    monkeypatch.setattr(os, "replace", checking)
    sealed.write_sealed(str(path), b"new")
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["file"]


# ---------------------------------------------------------------- snapshots


def test_a_snapshot_is_a_sealed_line_and_the_bytes_of_its_arrays(tmp_path):
    a, b = np.arange(6.0).reshape(2, 3)[:, ::2], np.array([7, 8], dtype=np.uint16)
    facts = {"x": a, "y": [np.float64(0.5), (b, None)], 3: "three"}
    snapshot.write_snapshot(tmp_path / "file", facts)
    line, _, body = (tmp_path / "file").read_bytes().partition(b"\n")
    found = sealed.unseal("nesvm-jit checkpoint", 2, line)
    assert found["facts"] == {"x": {"array": 0}, "y": [0.5, [{"array": 1}, None]], "3": "three"}
    assert body == a.tobytes() + b.tobytes()
    assert found["arrays"] == [
        ["<f8", [2, 2], zlib.crc32(a.tobytes())],
        ["<u2", [2], zlib.crc32(b.tobytes())],
    ]
    again = snapshot.read_snapshot(tmp_path / "file")
    assert again["y"][0] == 0.5
    assert again["y"][1][1] is None
    assert again["3"] == "three"
    for got, expected in ((again["x"], a), (again["y"][1][0], b)):
        assert got.dtype == expected.dtype
        assert got.flags.writeable
        np.testing.assert_array_equal(got, expected)


def test_facts_that_look_like_an_array_beside_others_are_facts(tmp_path):
    facts = {"a": {"array": 0, "more": 1}, "b": np.zeros(2)}
    snapshot.write_snapshot(tmp_path / "file", facts)
    assert snapshot.read_snapshot(tmp_path / "file")["a"] == {"array": 0, "more": 1}


def test_a_packed_snapshot_is_read(tmp_path):
    snapshot.write_snapshot(tmp_path / "file.xz", {"a": np.arange(3)})
    assert snapshot.read_snapshot(tmp_path / "file.xz")["a"].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda d: d[:-1], "damaged: its arrays are not those of its first line"),
        (lambda d: d[:-1] + b"\xff", "damaged: its arrays are not those of its first line"),
        (lambda d: d.partition(b"\n")[0], "damaged: its arrays are not those of its first line"),
        (lambda d: b"", "damaged: it is no JSON text"),
        (lambda d: b"{}", "format must be 'nesvm-jit checkpoint', got None"),
        (lambda d: sealed.seal("nesvm-jit checkpoint", 1, {}), "version 2 is required, got 1"),
        (lambda d: sealed.seal("nesvm-jit checkpoint", 2, {}), "'arrays'"),
    ],
)
def test_a_damaged_snapshot_is_refused(tmp_path, spoil, why):
    path = tmp_path / "file"
    snapshot.write_snapshot(path, {"a": np.arange(3.0)})
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(FormatError) as e:
        snapshot.read_snapshot(path)
    assert str(e.value) == f"{path}: a checkpoint is required: {why}"


def test_bytes_after_the_last_array_of_a_snapshot_do_no_harm(tmp_path):
    snapshot.write_snapshot(tmp_path / "file", {"a": np.arange(3.0)})
    with open(tmp_path / "file", "ab") as f:
        f.write(b"more")
    assert snapshot.read_snapshot(tmp_path / "file")["a"].tolist() == [0, 1, 2]


def test_files_that_cannot_be_read_are_no_snapshots(tmp_path):
    for act in (snapshot.read_snapshot, snapshot.require_snapshot):
        with pytest.raises(FormatError) as e:
            act(tmp_path / "none")
        assert str(e.value) == f"{tmp_path / 'none'}: there is no checkpoint to resume from"
        with pytest.raises(FormatError) as e:
            act(tmp_path)
        assert str(e.value) == f"{tmp_path}: cannot be read: Is a directory"
        with pytest.raises(FormatError) as e:
            act("a\0b")
        assert str(e.value) == "'a\\x00b': cannot be read: embedded null byte"
    (tmp_path / "file").write_bytes(b"whatever")
    snapshot.require_snapshot(tmp_path / "file")


@pytest.mark.skipif(sys.platform != "linux", reason="a file that opens and cannot be read")
def test_a_file_that_opens_and_cannot_be_read_is_no_snapshot():
    with pytest.raises(FormatError, match=r"^/proc/self/mem: cannot be read: Input/output error$"):
        snapshot.require_snapshot("/proc/self/mem")


def test_only_a_checkpoint_or_an_empty_file_is_replaced(tmp_path):
    path, kind = tmp_path / "file", b"nesvm-jit checkpoint"
    snapshot.require_replaceable(path)
    snapshot.require_replaceable(tmp_path)
    for start in (b"", kind, b"x" * 180 + kind):
        path.write_bytes(start)
        snapshot.require_replaceable(path)
    for start in (b"x", b"x" * 181 + kind):
        path.write_bytes(start)
        with pytest.raises(FormatError) as e:
            snapshot.require_replaceable(path)
        must = "must be absent or an earlier checkpoint, it is another file"
        assert str(e.value) == f"{path}: {must}"


def test_copies_have_arrays_of_their_own():
    a = np.arange(3.0)
    tree = {"a": a, "b": [a, (a, "text")], "c": 1.5}
    found = snapshot.copy_facts(tree)
    a[:] = 9.0
    assert found["a"].tolist() == found["b"][0].tolist() == found["b"][1][0].tolist() == [0, 1, 2]
    assert (found["b"][1][1], found["c"], type(found["b"][1])) == ("text", 1.5, list)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("-", "-"),
        ("", "''"),
        ("/dev/stdout", "/dev/stdout"),
        (io.BytesIO(), "<file object>"),
        (b"bytes", "bytes"),
    ],
)
def test_a_checkpoint_must_be_a_named_file(path, name):
    with pytest.raises(FormatError) as e:
        settings.File().check("checkpoint", path)
    assert str(e.value) == f"checkpoint must be the name of a file, got {name}"


@pytest.mark.parametrize("path", ["a", Path("a")])
def test_a_named_file_may_be_a_checkpoint(path):
    assert settings.File().check("checkpoint", path) is None


# ---------------------------------------------------------------- what killed processes leave

WRITES = """
import sys, time
from nesvm_jit.files.text import writing
with writing(sys.argv[1]) as f:
    f.write(b"half")
    f.flush()
    print("writing", flush=True)
    time.sleep(600)
"""


def writer_of(path):
    """A process in the middle of writing a file."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITES, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "writing\n"
    return process


@pytest.mark.skipif(os.name == "nt", reason="locks of open files")
@pytest.mark.parametrize("name", ["file", "x" * 250, "a [b].gz", "ü" * 100])
def test_what_a_killed_process_was_writing_is_removed_by_the_next_one(tmp_path, name):
    killed, lives = writer_of(tmp_path / name), writer_of(tmp_path / name)
    try:
        killed.kill()
        killed.wait()
        others = [".part", f".{name[:60]}.part", f".{name[:60]}.ABCDEFGH.part", f".{name[:60]}.x"]
        for other in others:
            (tmp_path / other).touch()
        (tmp_path / f".{name[:60]}.directry.part").mkdir()
        before = {path.name for path in tmp_path.iterdir()}
        with text.writing(tmp_path / name) as f:
            f.write(b"whole")
        after = {path.name for path in tmp_path.iterdir()}
        assert len(before - after) == 1
        assert after - before == {name}
    finally:
        lives.kill()
        lives.wait()
        lives.stdout.close()
        killed.stdout.close()
    with text.writing(tmp_path / name) as f:
        f.write(b"whole again")
    assert len(after - {path.name for path in tmp_path.iterdir()}) == 1


@pytest.mark.skipif(os.name == "nt", reason="locks of open files")
def test_without_locks_nothing_is_taken_for_abandoned(tmp_path, monkeypatch):
    (tmp_path / ".file.abcdefgh.part").touch()
    monkeypatch.setattr(text, "try_lock", lambda file: None)
    with text.writing(tmp_path / "file") as f:
        f.write(b"whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".file.abcdefgh.part", "file"]


@pytest.mark.skipif(os.name == "nt", reason="locks of open files")
def test_a_file_that_another_process_took_for_abandoned_is_made_anew(tmp_path, monkeypatch):
    answers = iter([False, True])
    monkeypatch.setattr(text, "try_lock", lambda file: next(answers))
    with text.writing(tmp_path / "file") as f:
        f.write(b"whole")
    assert (tmp_path / "file").read_bytes() == b"whole"
    assert next(answers, "all asked") == "all asked"
    assert os.listdir(tmp_path) == ["file"]
