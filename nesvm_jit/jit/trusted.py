"""Folders that nobody but this user and root can fill, held open.

Machine code is run as it is found. So every folder on the way to it is looked at, from the root of
the file system on: whoever can rename one of them can put another in its place. Each is opened
relative to the one before it and checked by its descriptor, and files are opened relative to the
last one, which stays open: a path that is swapped later leads nobody astray.
"""

import contextlib
import errno
import os
import stat
import time
from pathlib import Path

MOST_LINKS = 40  # symbolic links on one way, as on Linux; more of them are taken for a circle
POLL = 0.02  # seconds between two looks at a lock
PRIVATE_FOLDER, PRIVATE_FILE = 0o700, 0o600
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
# Flags of `os.open`, where the system has them.
_NOFOLLOW, _NONBLOCK, _CLOEXEC, _PATH, _BINARY = (
    getattr(os, f"O_{name}", 0) for name in ("NOFOLLOW", "NONBLOCK", "CLOEXEC", "PATH", "BINARY")
)


class UntrustedError(OSError):
    """Others could have put there what is found."""


class Folder:
    """A folder that is held open; on systems without owners of files, its path."""

    def __init__(self, path: Path, descriptor: int | None):
        self.path = path
        self._descriptor = descriptor
        self._found = None if descriptor is None else os.fstat(descriptor)

    def close(self) -> None:
        """Let go of it."""
        if self._descriptor is not None:
            os.close(self._descriptor)

    def has(self, name: str) -> bool:
        """Whether there is a regular file of this name."""
        with contextlib.suppress(OSError):
            where, at = self._place(name)
            return stat.S_ISREG(os.stat(where, dir_fd=at, follow_symlinks=False).st_mode)
        return False

    def read(self, name: str) -> bytes:
        """What a file holds that only this user and root could have written."""
        flags = os.O_RDONLY | _NOFOLLOW | _NONBLOCK | _BINARY
        where, at = self._place(name)
        with open(os.open(where, flags, dir_fd=at), "rb") as f:
            if at is not None:
                _require_own_file(os.fstat(f.fileno()), self.path / name)
            return f.read()

    def write(self, name: str, data: bytes, temporary: str) -> None:
        """Write a file as `temporary` and give it its name when it is whole."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW | _BINARY
        where, at = self._place(temporary)
        try:
            with open(os.open(where, flags, PRIVATE_FILE, dir_fd=at), "wb") as f:
                f.write(data)
            os.replace(where, self._place(name)[0], src_dir_fd=at, dst_dir_fd=at)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(where, dir_fd=at)
            raise

    def lock(self, name: str, patience: float) -> "Lock | None":
        """A lock that other processes respect, after `patience` seconds at most, in a file of this
        name; None where it cannot be had."""
        try:
            import fcntl
        except ImportError:
            return None
        flags = os.O_RDWR | os.O_CREAT | _NOFOLLOW | _CLOEXEC
        try:
            where, at = self._place(name)
            descriptor = os.open(where, flags, PRIVATE_FILE, dir_fd=at)
        except OSError:
            return None
        start = time.monotonic()
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return Lock(self, name, descriptor, waited=time.monotonic() - start > POLL)
            except OSError:
                if time.monotonic() - start > patience:
                    os.close(descriptor)
                    return None
                time.sleep(POLL)

    def _place(self, name: str) -> tuple[str, int | None]:
        """A name and the descriptor that it is relative to, or a path and none."""
        if self._descriptor is None or self._found is None:
            return str(self.path / name), None
        # a program that closes all descriptors may have opened another folder as this one
        if not os.path.samestat(os.fstat(self._descriptor), self._found):
            raise UntrustedError(f"{self.path}: another folder has taken its descriptor")
        return name, self._descriptor


class Lock:
    """A lock that is held, and whether it was waited for; the end of the process frees it too."""

    def __init__(self, folder: Folder, name: str, descriptor: int, waited: bool):
        self.waited = waited
        self._folder, self._name, self._descriptor = folder, name, descriptor

    def free(self) -> None:
        """Let others have it."""
        with contextlib.suppress(OSError):
            where, at = self._folder._place(self._name)
            os.unlink(where, dir_fd=at)
        with contextlib.suppress(OSError):
            os.close(self._descriptor)


def hold(path: Path, make: bool = False) -> Folder:
    """The folder at `path`; with `make` folders that are missing are made, for this user alone. An
    UntrustedError says who else could fill it."""
    if not hasattr(os, "getuid"):
        if make:
            path.mkdir(parents=True, exist_ok=True)
        return Folder(path, None)
    return Folder(path, _open(os.path.abspath(path), make))


def _open(path: str, make: bool) -> int:
    """A descriptor of the folder at an absolute path, every folder on the way checked."""
    # whoever owns the root owns the interpreter, too: it is taken as it is
    held, here, links = _open_folder("/", None), "/", 0
    ahead = _names(path)
    try:
        while ahead:
            name = ahead.pop()
            place = os.path.normpath(os.path.join(here, name))
            if make:
                _make_folder(name, held)
            found = os.stat(name, dir_fd=held, follow_symlinks=False)
            if stat.S_ISLNK(found.st_mode):
                _require_owner(found, place)
                links += 1
                if links > MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
                target = os.readlink(name, dir_fd=held)
                ahead += _names(target)
                if not target.startswith("/"):
                    continue
                inner, here = _open_folder("/", None), "/"
            else:
                inner, here = _open_folder(name, held), place
            os.close(held)
            held = inner
            if here != "/":
                _require_own_folder(os.fstat(held), here, last=not ahead)
        return held
    except BaseException:
        os.close(held)
        raise


def _names(path: str) -> list[str]:
    """The names of a path, the last one first."""
    return [name for name in path.split("/") if name not in ("", ".")][::-1]


def _open_folder(name: str, at: int | None) -> int:
    return os.open(name, _PATH | os.O_DIRECTORY | _NOFOLLOW, dir_fd=at)


def _make_folder(name: str, at: int) -> None:
    """Make a folder that is this user's alone, unless there is something of this name; whether it
    is a folder is seen when it is opened."""
    try:
        os.mkdir(name, PRIVATE_FOLDER, dir_fd=at)
    except OSError as e:
        try:  # in a folder that cannot be written, what exists already is as good
            os.stat(name, dir_fd=at, follow_symlinks=False)
        except OSError:
            raise e from None


def _require_own_folder(found: os.stat_result, place: str, last: bool) -> None:
    _require_owner(found, place)
    mode = found.st_mode
    if mode & stat.S_ISVTX and not last:
        return  # in such a folder others cannot rename what is ours
    if mode & OTHERS_WRITE and (mode & stat.S_IWOTH or not _is_private(found.st_gid)):
        raise UntrustedError(f"{place} can be written by others (mode {mode & 0o7777:04o})")


def _require_own_file(found: os.stat_result, place: Path) -> None:
    _require_owner(found, str(place))
    if not stat.S_ISREG(found.st_mode) or found.st_mode & OTHERS_WRITE:
        raise UntrustedError(f"{place} is no regular file of this user's alone")


def _require_owner(found: os.stat_result, place: str) -> None:
    if found.st_uid not in (os.getuid(), 0):
        raise UntrustedError(f"{place} belongs to another user ({found.st_uid})")


def _is_private(gid: int) -> bool:
    """Whether a group is this user's own, as where every user has one: folders that the group can
    write are then written by nobody else."""
    try:
        import grp
        import pwd

        me, group = pwd.getpwuid(os.getuid()), grp.getgrgid(gid)
        mates = {user.pw_name for user in pwd.getpwall() if user.pw_gid == gid}
    except (ImportError, KeyError):
        return False
    own = gid != 0 and gid == me.pw_gid and group.gr_name == me.pw_name
    return own and {*group.gr_mem, *mates} <= {me.pw_name}
