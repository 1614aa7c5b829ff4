"""Open files for reading and writing: compression, standard streams, and replacement of a file
only when the new one is complete."""

import bz2
import contextlib
import gzip
import lzma
import mmap
import os
import re
import sys
import tempfile
import zlib
from collections.abc import Iterator
from typing import IO, Any

from ..errors import FormatError, InputError, NesvmError
from .locks import try_lock

# The first bytes of packed files, and the module that unpacks them.
PACKERS = {b"\x1f\x8b": gzip, b"BZh": bz2, b"\xfd7zXZ\x00": lzma}
# Letters of a file's name that the name of its temporary file takes over; both names may have at
# most 255 bytes.
MOST_OF_NAME = 60
_ENDING = {".gz": gzip, ".bz2": bz2, ".xz": lzma}


def display_name(path: Any) -> str:
    """Return the name of `path` for messages, in one line."""
    if hasattr(path, "read") or hasattr(path, "write"):
        name = str(getattr(path, "name", "<file object>"))
    else:
        try:
            name = "<standard input>" if path == "-" else os.fsdecode(path)
        except TypeError:
            raise InputError(f"a file name is required, got {path!r:.60}") from None
    return name if name and name.isprintable() else repr(name)


def is_packed(path: Any) -> bool:
    """Return True if a file starts like a gzip, bzip2 or xz file."""
    with open(path, "rb") as f:
        start = f.read(max(map(len, PACKERS)))
    return any(start.startswith(magic) for magic in PACKERS)


def decompress(data: Any) -> Any:
    """Unpack `data` if it starts like a gzip, bzip2 or xz file, else return it as it is."""
    if isinstance(data, str):
        raise TypeError("a file object must be opened in binary mode")
    start = bytes(data[:6])
    for magic, module in PACKERS.items():
        if start.startswith(magic):
            kind = module.__name__
            try:
                return module.decompress(data)
            except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as e:
                raise ValueError(f"damaged {kind} data: {e}") from None
    return data


@contextlib.contextmanager
def readable(name: str) -> Iterator[None]:
    """Turn every error that reading a file raises into a FormatError with the file's name."""
    try:
        yield
    except OSError as e:
        raise FormatError(f"{name}: cannot be read: {e.strerror or e}") from None
    except (EOFError, ValueError, TypeError) as e:
        raise FormatError(f"{name}: {e}") from None


def read_bytes(path: Any, name: str) -> Any:
    """Return all bytes of a named file, of standard input (`-`) or of an open file, unpacked. A
    regular file is mapped, not copied."""
    with readable(name):
        if hasattr(path, "read"):
            return decompress(path.read())
        if path == "-":
            return decompress(sys.stdin.buffer.read())
        with open(path, "rb") as f:
            try:
                data: Any = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
            except (OSError, ValueError):  # a pipe, a device, an empty file
                data = f.read()
        return decompress(data)


@contextlib.contextmanager
def writing(path: Any) -> Iterator[IO[bytes]]:
    """Open a binary file to write to. A named file gets its name only when it is complete.

    A pipe or a device that exists is written into, not replaced.
    """
    if hasattr(path, "write"):
        yield path
        return
    if path in ("-", "/dev/stdout"):
        if sys.stdout is None:
            raise NesvmError("<standard output>: cannot be written: it is closed")
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    name = display_name(path)
    try:
        target = os.path.realpath(path)
        if os.path.exists(path) and not os.path.isfile(path):
            with open(path, "wb") as special:
                yield special
        else:
            with _replacing_named(target) as regular:
                yield regular
    except (OSError, ValueError) as e:
        if isinstance(e, NesvmError):
            raise
        raise NesvmError(f"{name}: cannot be written: {getattr(e, 'strerror', e) or e}") from None


@contextlib.contextmanager
def replacing(target: str, temporary: str) -> Iterator[IO[bytes]]:
    """Open `temporary` to write to, and rename it to `target` at the end: after a crash, `target`
    is the complete old file or the complete new one."""
    try:
        with open(temporary, "wb") as f:
            yield f
            f.flush()
            os.fsync(f.fileno())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


@contextlib.contextmanager
def _replacing_named(target: str) -> Iterator[IO[bytes]]:
    """Do as `replacing`; pack the file as its name's ending says, and keep the permissions of the
    old file."""
    opener = next((m for ending, m in _ENDING.items() if target.endswith(ending)), None)
    mode = os.stat(target).st_mode & 0o777 if os.path.exists(target) else 0o666 & ~_umask()
    with _temporary_beside(target) as temporary, replacing(target, temporary) as raw:
        if opener is None:
            yield raw
        else:
            with opener.open(raw, "wb") as packed:
                yield packed
        os.chmod(temporary, mode)


@contextlib.contextmanager
def _temporary_beside(target: str) -> Iterator[str]:
    """Make a new file beside `target` and yield its name; the file is locked while it is written.

    Temporary files without a lock are those of killed processes, and are removed.
    """
    folder, name = os.path.split(target)
    prefix = f".{name[:MOST_OF_NAME]}."
    _remove_abandoned(folder, prefix)
    while True:
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=prefix, suffix=".part")
        if sys.platform == "win32":  # a file that is open cannot be renamed there
            os.close(handle)
            yield temporary
            return
        try:
            if try_lock(handle) is not False and os.fstat(handle).st_nlink:
                yield temporary
                return
            with contextlib.suppress(OSError):  # another process is about to remove it
                os.unlink(temporary)
        finally:
            os.close(handle)


def _remove_abandoned(folder: str, prefix: str) -> None:
    """Remove the temporary files of processes that were killed while they wrote."""
    if sys.platform == "win32":
        return
    names = re.compile(re.escape(prefix) + r"[a-z0-9_]{8}\.part")  # as mkstemp makes them
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder or "."):
            if names.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with contextlib.suppress(OSError):
                    handle = os.open(entry.path, os.O_RDWR | os.O_NOFOLLOW)
                    try:
                        if try_lock(handle):
                            os.unlink(entry.path)
                    finally:
                        os.close(handle)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
