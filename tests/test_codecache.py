"""Where compiled code is kept, whom it is taken from, and that no program fails by its cache."""

import hashlib
import os
import pickle
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from nesvm_jit.jit import cache as codecache
from nesvm_jit.jit import trusted
from nesvm_jit.jit.cache import CodeCache, caching_enabled

DAY = 86400.0


@pytest.mark.parametrize(
    ("value", "on"),
    [
        (None, True),
        ("1", True),
        ("", True),
        ("0", False),
        ("off", False),
        ("NO", False),
        ("False", False),
    ],
)
def test_the_cache_can_be_turned_off(monkeypatch, value, on):
    monkeypatch.delenv("NESVM_JIT_CACHE", raising=False)
    if value is not None:
        monkeypatch.setenv("NESVM_JIT_CACHE", value)
    assert caching_enabled() is on


def test_the_digest_is_of_all_compiled_sources_and_of_the_versions(monkeypatch, tmp_path):
    monkeypatch.setattr(codecache, "PACKAGE", tmp_path)
    for folder in ("jit", "matrix", "kernels/text"):
        (tmp_path / folder).mkdir(parents=True)
    sources = [
        "jit/intrinsics.py",
        "jit/cache.py",
        "matrix/matrix.py",
        "kernels/text/a.py",
        "kernels/a.py",
        "kernels/b.py",
    ]
    for name in sources:
        (tmp_path / name).write_text("x")
    seen = {codecache._digest()}
    (tmp_path / "solve.py").write_text("not compiled")
    assert codecache._digest() in seen
    for name in sources:
        (tmp_path / name).write_text("y")
        seen.add(codecache._digest())
    (tmp_path / "kernels" / "a.py").rename(tmp_path / "kernels" / "c.py")
    seen.add(codecache._digest())
    monkeypatch.setattr(codecache, "_numba_version", lambda: "0")
    seen.add(codecache._digest())
    assert len(seen) == 1 + len(sources) + 2
    assert {len(digest) for digest in seen} == {20}


@pytest.mark.parametrize(
    ("platform", "env", "folders"),
    [
        ("linux", {}, ["~/.cache/nesvm-jit"]),
        ("linux", {"XDG_CACHE_HOME": "/x"}, ["/x/nesvm-jit"]),
        ("linux", {"NESVM_JIT_CACHE_DIR": "/a"}, ["/a", "~/.cache/nesvm-jit"]),
        ("linux", {"NUMBA_CACHE_DIR": "/n"}, ["/n/nesvm-jit", "~/.cache/nesvm-jit"]),
        (
            "linux",
            {"NUMBA_CACHE_DIR": "/n", "NESVM_JIT_CACHE_DIR": "/a"},
            ["/a", "/n/nesvm-jit", "~/.cache/nesvm-jit"],
        ),
        ("darwin", {"XDG_CACHE_HOME": "/x"}, ["~/Library/Caches/nesvm-jit"]),
        ("win32", {}, []),
        ("win32", {"LOCALAPPDATA": "/l"}, ["/l/nesvm-jit/cache"]),
    ],
)
def test_folders_best_first(monkeypatch, platform, env, folders):
    for name in ("NESVM_JIT_CACHE_DIR", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {**env, "HOME": "/home/me"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(os, "getuid", lambda: 77)
    monkeypatch.setattr(sys, "platform", platform)
    found = [str(folder) for folder in codecache._base_folders()]
    monkeypatch.undo()
    last = str(Path(tempfile.gettempdir()) / "nesvm-jit-77")
    assert found == [*(f.replace("~", "/home/me") for f in folders), last]


def test_folders_where_there_are_no_owners(monkeypatch, tmp_path):
    monkeypatch.delattr(os, "getuid")
    assert str(list(codecache._base_folders())[-1]).endswith("nesvm-jit-user")
    tmp_path.chmod(0o777)
    folder = trusted.hold(tmp_path / "a" / "b", make=True)
    folder.write("x", b"code", "x.part")
    assert folder.read("x") == b"code"
    assert [path.name for path in folder.path.iterdir()] == ["x"]
    folder.close()


# ---------------------------------------------------------------- the folder in use


def folders(monkeypatch, *bases):
    monkeypatch.setattr(codecache, "_base_folders", lambda: bases)
    return codecache.cache_folders.__wrapped__()


def test_the_first_folder_that_can_be_written_is_used(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    a, b = tmp_path / "a", tmp_path / "b"
    used = a / codecache.SOURCE_DIGEST
    assert folders(monkeypatch, tmp_path / "file", a, b) == (used, [used])
    assert used.is_dir()
    assert not b.exists()
    assert folders(monkeypatch, tmp_path / "file") == (None, [])


def test_folders_that_can_only_be_read_are_read(monkeypatch, tmp_path):
    a, b = tmp_path / "a" / codecache.SOURCE_DIGEST, tmp_path / "b" / codecache.SOURCE_DIGEST
    real = tempfile.TemporaryFile

    def refuse(dir):
        if dir == a:
            raise PermissionError
        return real(dir=dir)

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    assert folders(monkeypatch, a.parent, b.parent) == (b, [a, b])
    assert folders(monkeypatch, a.parent) == (None, [a])
    b.chmod(0o777)
    assert folders(monkeypatch, a.parent, b.parent) == (None, [a])


def test_use_keeps_a_folder_young_and_drops_old_ones(monkeypatch, tmp_path):
    used, old = tmp_path / codecache.SOURCE_DIGEST, tmp_path / ("0" * len(codecache.SOURCE_DIGEST))
    for folder in (used, old):
        folder.mkdir()
        os.utime(folder, (0, 0))
    assert folders(monkeypatch, tmp_path)[0] == used
    assert time.time() - used.stat().st_mtime < 60
    assert not old.exists()


def test_only_folders_of_versions_unused_for_a_month_are_dropped(tmp_path):
    ages = {"a" * 20: 29.9, "b" * 20: 30.1, "c" * 19: 99.0, "d" * 21: 99.0, "e" * 20: 99.0}
    for name, days in ages.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.nsc").touch()
        os.utime(tmp_path / name, (time.time() - days * DAY,) * 2)
    (tmp_path / ("f" * 20)).touch()
    os.utime(tmp_path / ("f" * 20), (0, 0))
    codecache._prune(tmp_path, tmp_path / ("e" * 20))
    left = ["a" * 20, "c" * 19, "d" * 21, "e" * 20, "f" * 20]
    assert sorted(path.name for path in tmp_path.iterdir()) == left


def test_a_month_is_thirty_days_to_the_second(tmp_path, monkeypatch):
    monkeypatch.setattr(codecache.time, "time", lambda: 100 * DAY)
    for name, age in (("a" * 20, 30 * DAY), ("b" * 20, 30 * DAY + 1)):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (100 * DAY - age,) * 2)
    codecache._prune(tmp_path, tmp_path / ("c" * 20))
    assert [path.name for path in tmp_path.iterdir()] == ["a" * 20]


def test_a_file_that_another_process_has_just_dropped_is_no_obstacle(tmp_path, monkeypatch):
    old = tmp_path / ("a" * 20)
    old.mkdir()
    os.utime(old, (0, 0))
    monkeypatch.setattr(Path, "glob", lambda folder, pattern: [folder / "gone.nsc"])
    codecache._prune(tmp_path, tmp_path / ("b" * 20))
    assert not old.exists()


def test_folders_with_other_files_are_left_and_nothing_fails(tmp_path):
    folder = tmp_path / ("a" * 20)
    folder.mkdir()
    (folder / "theirs.txt").touch()
    (folder / "x.nsc").touch()
    os.utime(folder, (0, 0))
    codecache._prune(tmp_path, tmp_path / ("b" * 20))
    assert [path.name for path in folder.iterdir()] == ["theirs.txt"]
    codecache._prune(tmp_path / "none", folder)


# ---------------------------------------------------------------- files

CODEGEN = SimpleNamespace(magic_tuple=lambda: ("cpu",))
CONTEXT = SimpleNamespace(codegen=lambda: CODEGEN)


def compiled(content=(1, 2), dynamic=False):
    library = SimpleNamespace(has_dynamic_globals=dynamic)
    return SimpleNamespace(library=library, _reduce=lambda: content, codegen=CODEGEN)


@pytest.fixture
def store(monkeypatch, tmp_path):
    """A cache of two folders, the second written to; the context of what is loaded is noted."""
    read, written = tmp_path / "read", tmp_path / "written"
    read.mkdir()
    written.mkdir()
    monkeypatch.setattr(codecache, "cache_folders", lambda: (written, [read, written]))
    started = []
    monkeypatch.setattr(codecache, "_start_runtime", started.append)
    monkeypatch.setattr(codecache, "_rebuild", lambda context, *content: (context, content))
    return SimpleNamespace(read=read, written=written, started=started)


def test_code_that_is_saved_is_found_again(store):
    cache = CodeCache(test_the_cache_can_be_turned_off, "v")
    assert not cache.has("sig", CONTEXT)
    assert cache.load_overload("sig", CONTEXT) is None
    cache.save_overload("sig", compiled())
    assert cache.has("sig", CONTEXT)
    assert cache.load_overload("sig", CONTEXT) == (CONTEXT, (1, 2))
    assert store.started == [CONTEXT, CONTEXT]
    (file,) = store.written.iterdir()
    assert file.suffix == ".nsc"
    assert len(file.name) == 16 + 1 + 40 + len(".nsc")
    assert cache.cache_path == str(store.written)
    file.rename(store.read / file.name)
    assert cache.has("sig", CONTEXT)
    assert cache.load_overload("sig", CONTEXT) == (CONTEXT, (1, 2))


def test_damaged_code_is_looked_for_elsewhere(store):
    cache = CodeCache(test_the_cache_can_be_turned_off, "v")
    cache.save_overload("sig", compiled())
    (file,) = store.written.iterdir()
    good = file.read_bytes()
    assert good[:32] == hashlib.sha256(good[32:]).digest()
    assert pickle.loads(good[32:]) == (1, 2)
    junk = b"no pickle"
    for bad in (b"", good[:-1], good[:40] + b"x" + good[41:], hashlib.sha256(junk).digest() + junk):
        (store.read / file.name).write_bytes(bad)
        assert cache.load_overload("sig", CONTEXT) == (CONTEXT, (1, 2))
        file.write_bytes(bad)
        assert cache.load_overload("sig", CONTEXT) is None
        file.write_bytes(good)


def test_every_function_variant_signature_and_processor_has_its_file():
    def other():
        pass

    first = CodeCache(test_the_cache_can_be_turned_off, "v")
    magic = SimpleNamespace(magic_tuple=lambda: ("another cpu",))
    names = {
        first._file("sig", CODEGEN),
        first._file("other", CODEGEN),
        first._file("sig", magic),
        CodeCache(other, "v")._file("sig", CODEGEN),
        CodeCache(test_the_cache_can_be_turned_off, "w")._file("sig", CODEGEN),
    }
    assert len(names) == 5
    again = CodeCache(test_the_cache_can_be_turned_off, "v")
    assert again._file("sig", CODEGEN) == first._file("sig", CODEGEN)


def test_what_cannot_be_kept_is_not(store, monkeypatch):
    cache = CodeCache(test_the_cache_can_be_turned_off, "v")
    cache.save_overload("sig", compiled(dynamic=True))
    cache.save_overload("sig", compiled(content=(lambda: 1, threading_lock())))
    assert list(store.written.iterdir()) == []

    def refuse(*_):
        raise OSError

    monkeypatch.setattr(os, "replace", refuse)
    cache.save_overload("sig", compiled())
    assert list(store.written.iterdir()) == []
    monkeypatch.setattr(codecache, "cache_folders", lambda: (None, []))
    cache.save_overload("sig", compiled())
    assert cache.cache_path == "None"


def threading_lock():
    import threading

    return threading.Lock()


def test_numba_may_turn_the_cache_on_and_off():
    cache = CodeCache(test_the_cache_can_be_turned_off, "v")
    for call in (cache.enable, cache.disable, cache.flush):
        assert call() is None
