"""Compiled code is taken from nobody else: folders, their parents and files, and the attack on
them by another user."""

import hashlib
import os
import pickle
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import nesvm_jit
import pytest
from nesvm_jit.jit import cache as codecache
from nesvm_jit.jit import trusted
from nesvm_jit.jit.trusted import UntrustedError, hold

pytestmark = pytest.mark.skipif(not hasattr(os, "getuid"), reason="no owners")
ATTACKER = 54322  # a user that needs no account; the victim is who runs the tests
as_root = pytest.mark.skipif(
    not hasattr(os, "getuid") or os.getuid() != 0, reason="two users need root"
)


def found(owner, mode, group=77):
    return SimpleNamespace(st_uid=owner, st_gid=group, st_mode=mode)


# ---------------------------------------------------------------- who may own and write what


@pytest.mark.parametrize(
    ("owner", "mode", "last", "parent"),
    [
        (77, 0o40755, True, True),
        (0, 0o40755, True, True),
        (77, 0o40700, True, True),
        (78, 0o40755, False, False),
        (78, 0o40700, False, False),
        (77, 0o40775, False, False),
        (77, 0o40757, False, False),
        (0, 0o40777, False, False),
        (0, 0o41777, False, True),
        (77, 0o41777, False, True),
        (78, 0o41777, False, False),
    ],
)
def test_folders_are_trusted_by_owner_and_mode(monkeypatch, owner, mode, last, parent):
    monkeypatch.setattr(os, "getuid", lambda: 77)
    assert is_ours(owner, mode, is_last=True) is last
    assert is_ours(owner, mode, is_last=False) is parent


def is_ours(owner, mode, is_last):
    try:
        trusted._require_own_folder(found(owner, mode), "/here", is_last)
    except UntrustedError:
        return False
    return True


@pytest.mark.parametrize(
    ("owner", "mode", "ours"),
    [
        (77, 0o100600, True),
        (0, 0o100644, True),
        (78, 0o100644, False),
        (77, 0o100664, False),
        (77, 0o100646, False),
        (77, 0o40700, False),
        (77, 0o10600, False),
    ],
)
def test_files_are_trusted_by_owner_mode_and_kind(monkeypatch, owner, mode, ours):
    monkeypatch.setattr(os, "getuid", lambda: 77)
    try:
        trusted._require_own_file(found(owner, mode), Path("/x"))
        got = True
    except UntrustedError:
        got = False
    assert got is ours


@pytest.mark.parametrize(
    ("users", "name", "members", "private"),
    [
        ([("me", 1000)], "me", [], True),
        ([("me", 1000)], "me", ["me"], True),
        ([("me", 1000)], "me", ["me", "you"], False),
        ([("me", 1000), ("you", 1000)], "me", [], False),
        ([("me", 1000)], "users", [], False),
        ([("me", 1001)], "me", [], False),
    ],
)
def test_a_group_of_one_user_is_no_other_user(monkeypatch, users, name, members, private):
    import grp
    import pwd

    known = [SimpleNamespace(pw_name=user, pw_gid=gid) for user, gid in users]
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: known[0])
    monkeypatch.setattr(pwd, "getpwall", lambda: known)
    group = SimpleNamespace(gr_name=name, gr_mem=members)
    monkeypatch.setattr(grp, "getgrgid", lambda gid: group)
    assert trusted._is_private(1000) is private
    monkeypatch.setattr(os, "getuid", lambda: 77)
    place = (found(77, 0o40775, 1000), "/here", True)
    if private:
        assert trusted._require_own_folder(*place) is None
    else:
        with pytest.raises(UntrustedError, match=r"can be written by others \(mode 0775\)"):
            trusted._require_own_folder(*place)


# ---------------------------------------------------------------- the way to a folder


@pytest.mark.parametrize("umask", [0o000, 0o002, 0o022, 0o077])
def test_folders_and_files_are_made_for_one_user_whatever_the_umask(tmp_path, umask):
    before = os.umask(umask)
    try:
        folder = hold(tmp_path / "a" / "b" / "c", make=True)
        folder.write("x.nsc", b"code", "x.part")
    finally:
        os.umask(before)
    made = [tmp_path / "a", tmp_path / "a/b", tmp_path / "a/b/c"]
    assert [stat.S_IMODE(path.stat().st_mode) for path in made] == [0o700] * 3
    assert stat.S_IMODE((made[-1] / "x.nsc").stat().st_mode) == 0o600
    assert folder.read("x.nsc") == b"code"
    folder.close()


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o757])
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_one_parent_that_others_can_write_is_enough(tmp_path, mode, depth):
    way = [tmp_path / "a", tmp_path / "a/b", tmp_path / "a/b/c"]
    hold(way[-1], make=True).close()
    way[depth].chmod(mode)
    for make in (True, False):
        with pytest.raises(UntrustedError, match=f"^{way[depth]} can be written by others"):
            hold(way[-1], make)


def test_nothing_is_made_below_a_folder_of_others(tmp_path):
    tmp_path.chmod(0o777)
    with pytest.raises(UntrustedError):
        hold(tmp_path / "a" / "b", make=True)
    assert list(tmp_path.iterdir()) == []


def test_a_sticky_folder_may_be_on_the_way_and_not_at_its_end(tmp_path):
    tmp_path.chmod(0o1777)
    hold(tmp_path / "a", make=True).close()
    with pytest.raises(UntrustedError, match="1777"):
        hold(tmp_path)


def owned_by(other, monkeypatch, *paths):
    """Let the system say that these are another user's."""
    theirs = {(path.lstat().st_dev, path.lstat().st_ino) for path in paths}

    def disown(real):
        def look(*args, **kwargs):
            st = real(*args, **kwargs)
            fields = list(st)
            if (st.st_dev, st.st_ino) in theirs:
                fields[stat.ST_UID] = other
            return os.stat_result(fields)

        return look

    monkeypatch.setattr(os, "stat", disown(os.stat))
    monkeypatch.setattr(os, "fstat", disown(os.fstat))


def test_a_parent_or_a_file_of_another_user_is_refused(tmp_path, monkeypatch):
    folder = hold(tmp_path / "a" / "b", make=True)
    folder.write("x", b"code", "x.part")
    with monkeypatch.context() as m:
        owned_by(ATTACKER, m, tmp_path / "a")
        with pytest.raises(UntrustedError, match=f"a belongs to another user .{ATTACKER}.$"):
            hold(tmp_path / "a" / "b")
    with monkeypatch.context() as m:
        owned_by(ATTACKER, m, tmp_path / "a" / "b" / "x")
        with pytest.raises(UntrustedError, match="x belongs to another user"):
            folder.read("x")
    assert folder.read("x") == b"code"
    folder.close()


def test_links_lead_on_only_where_they_are_ours(tmp_path, monkeypatch):
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "far").symlink_to(tmp_path / "link" / ".." / "real")
    for name in ("link", "far"):
        folder = hold(tmp_path / name / name, make=True)
        folder.write(name, b"", "x.part")
        folder.close()
        assert (tmp_path / "real" / name / name).exists()
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(OSError, match="Too many levels"):
        hold(tmp_path / "circle")
    (tmp_path / "real").chmod(0o777)
    with pytest.raises(UntrustedError, match="real can be written by others"):
        hold(tmp_path / "far" / "far")
    (tmp_path / "real").chmod(0o700)
    owned_by(ATTACKER, monkeypatch, tmp_path / "link")
    with pytest.raises(UntrustedError, match="link belongs to another user"):
        hold(tmp_path / "link")


def test_a_lock_that_is_free_holds_no_file(tmp_path):
    folder = hold(tmp_path)
    lock = folder.lock("a.lock", 1.0)
    os.fstat(lock._descriptor)
    lock.free()
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(lock._descriptor)
    assert not (tmp_path / "a.lock").exists()
    folder.close()
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(folder._descriptor)


def test_as_many_links_are_followed_as_the_system_follows(tmp_path):
    (tmp_path / "0").mkdir(mode=0o700)
    for k in range(1, 42):
        (tmp_path / f"{k}").symlink_to(f"{k - 1}")
    hold(tmp_path / "40").close()
    assert (tmp_path / "40").stat().st_ino == (tmp_path / "0").stat().st_ino
    with pytest.raises(OSError, match="Too many levels"):
        hold(tmp_path / "41")
    with pytest.raises(OSError, match="Too many levels"):
        (tmp_path / "41").stat()


def test_a_file_that_is_a_link_a_pipe_or_open_to_others_is_not_read(tmp_path):
    folder = hold(tmp_path)
    (tmp_path / "real").write_bytes(b"code")
    (tmp_path / "link").symlink_to("real")
    os.mkfifo(tmp_path / "pipe", 0o600)
    (tmp_path / "open").write_bytes(b"code")
    (tmp_path / "real").chmod(0o644)
    (tmp_path / "open").chmod(0o666)
    assert folder.read("real") == b"code"
    assert [name for name in ("real", "link", "pipe", "open") if folder.has(name)] == [
        "real",
        "open",
    ]
    for name in ("link", "pipe", "open", "none"):
        with pytest.raises(OSError, match=r"symbolic|no regular file|No such file"):
            folder.read(name)
    folder.close()


def test_a_held_folder_is_not_found_by_its_path_again(tmp_path):
    folder = hold(tmp_path / "a", make=True)
    folder.write("x", b"code", "x.part")
    (tmp_path / "a").rename(tmp_path / "b")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x").write_bytes(b"theirs")
    assert folder.read("x") == b"code"
    folder.close()


def test_a_descriptor_that_has_become_another_folder_is_noticed(tmp_path):
    folder = hold(tmp_path / "a", make=True)
    folder.write("x", b"code", "x.part")
    number = folder._descriptor
    other = os.open(tmp_path, os.O_RDONLY)
    os.dup2(other, number)
    os.close(other)
    with pytest.raises(UntrustedError, match="another folder"):
        folder.read("x")
    assert not folder.has("x")
    folder.close()


# ---------------------------------------------------------------- no folder, and what is left over


def test_standard_error_says_once_why_there_is_no_folder(tmp_path, monkeypatch, capsys):
    open_to_all = tmp_path / "shared"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    (tmp_path / "file").touch()
    monkeypatch.setattr(codecache, "_base_folders", lambda: [open_to_all, tmp_path / "file"])
    codecache.cache_folders.cache_clear()
    try:
        assert codecache.cache_folders() == (None, [])
        assert codecache.cache_folders() == (None, [])
    finally:
        codecache.cache_folders.cache_clear()
    assert capsys.readouterr().err == (
        f"nesvm-jit: every run compiles anew, no folder for code: {open_to_all} can be written by "
        f"others (mode 0777); {tmp_path / 'file'}: Not a directory\n"
    )


def test_what_killed_processes_were_writing_is_dropped(tmp_path, monkeypatch):
    monkeypatch.setattr(codecache, "_base_folders", lambda: [tmp_path])
    folder = tmp_path / codecache.SOURCE_DIGEST
    folder.mkdir(mode=0o700)
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    for writer in (os.getpid(), ended.pid, 10**30, "x"):
        (folder / f"{writer}-1.part").touch()
    (folder / "a.nsc").touch()
    assert codecache.cache_folders.__wrapped__() == (folder, [folder])
    left = sorted(path.name for path in folder.iterdir())
    assert left == sorted([f"{os.getpid()}-1.part", "a.nsc"])


def test_pruning_follows_no_link(tmp_path):
    (tmp_path / "base").mkdir()
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "x.nsc").touch()
    os.utime(tmp_path / "theirs", (0, 0))
    (tmp_path / "base" / ("a" * 20)).symlink_to(tmp_path / "theirs")
    codecache._prune(tmp_path / "base", tmp_path / "base" / ("b" * 20))
    assert (tmp_path / "theirs" / "x.nsc").exists()


# ---------------------------------------------------------------- the attack

# The victim chooses its folder, says which file it will load, waits, and loads it.
LOADS = """
import sys
from types import SimpleNamespace
from nesvm_jit.jit import cache as codecache
codecache._start_runtime = lambda context: None
codecache._rebuild = lambda context, *content: content
codegen = SimpleNamespace(magic_tuple=lambda: ("cpu",))
context = SimpleNamespace(codegen=lambda: codegen)
cache = codecache.CodeCache(codecache.caching_enabled, "v")
print(codecache.cache_folders()[0], codecache.SOURCE_DIGEST, cache._file("sig", codegen))
sys.stdout.flush()
sys.stdin.readline()
print("loaded", cache.load_overload("sig", context), flush=True)
"""


class Payload:
    """Unpickled, it leaves a file behind."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (self.mark,)


def act(uid, work):
    """Do something as another user, in a child process."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            work()
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@pytest.fixture
def meeting_place():
    """A folder in the temporary directory that every user can enter."""
    folder = Path(tempfile.mkdtemp(prefix="nesvm-attack-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@as_root
@pytest.mark.parametrize("how", ["named", "temporary"])
def test_another_user_cannot_have_his_code_run(meeting_place, how):
    """The parent is prepared by the attacker, who swaps the folder for his own once it was looked
    at; what is unpickled from there would make the folder `mark` as the victim."""
    mark, evil = meeting_place / "mark", meeting_place / "evil"
    shared = meeting_place / "shared"
    meeting_place.chmod(0o1777)
    base = shared / "cache" if how == "named" else shared / f"nesvm-jit-{os.getuid()}"

    def prepare():
        os.umask(0)
        os.mkdir(shared, 0o777)
        if how == "temporary":
            os.mkdir(base, 0o777)

    act(ATTACKER, prepare)
    env = {key: value for key, value in os.environ.items() if "CACHE" not in key}  # XDG's, too
    env |= {"HOME": "/dev/null", "PYTHONPATH": str(Path(nesvm_jit.__file__).parents[1])}
    env |= {"TMPDIR": str(shared)} | ({"NESVM_JIT_CACHE_DIR": str(base)} if how == "named" else {})
    victim = subprocess.Popen(
        [sys.executable, "-c", LOADS],
        **dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE),
        text=True,
        env=env,
        cwd="/",
    )
    first = victim.stdout.readline()
    assert first, victim.stderr.read()
    _, digest, name = first.split()
    payload = pickle.dumps(Payload(str(mark)))

    def swap():
        os.umask(0)
        os.makedirs(evil / digest)
        (evil / digest / name).write_bytes(hashlib.sha256(payload).digest() + payload)
        if base.exists():
            base.rename(shared / "aside")
        base.symlink_to(evil)

    act(ATTACKER, swap)
    out, err = victim.communicate("go\n", timeout=60)
    assert victim.returncode == 0, err
    assert out == "loaded None\n"
    assert not mark.exists()


# ---------------------------------------------------------------- locks


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no locks of files")
def test_a_lock_is_waited_for_and_freed_by_its_owner_or_its_end(tmp_path):
    program = (
        "import sys, time\nfrom pathlib import Path\nfrom nesvm_jit.jit.trusted import hold\n"
        "lock = hold(Path(sys.argv[1])).lock('x', 5.0)\nprint(lock.waited, flush=True)\n"
        "time.sleep(60)\n"
    )
    tmp_path.chmod(0o700)
    folder = hold(tmp_path)
    command = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "False\n"
        assert folder.lock("x", 0.1) is None
        assert folder.lock("y", 0.0).waited is False
        other.kill()
    lock = folder.lock("x", 5.0)
    lock.free()
    assert not (tmp_path / "x").exists()
    again = folder.lock("x", 0.0)
    assert again.waited is False
    again.free()
