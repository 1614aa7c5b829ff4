"""Machine code on disk, one file per compiled signature.

Numba's own cache keeps an index per function; two processes that fill it at once can leave
the index pointing at the other's code, and it does not notice an edited helper in another
file. Here the name of a file is the hash of everything the code depends on (all compiled
sources, versions, CPU, flags, signature), its content carries a checksum, and it appears by
rename: a reader finds the right code whole, or nothing, and nothing means "compile". Code is taken
only from folders that nobody else can fill (`trusted`).
"""

import contextlib
import hashlib
import os
import pickle
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .. import activity
from .trusted import Folder, Lock, hold

PACKAGE = Path(__file__).parents[1]
# The files that hold compiled code; tests/test_layers.py checks that no other imports jit.
COMPILED = ("jit/*.py", "matrix/*.py", "kernels/**/*.py")
KEEP_DAYS = 30
KERNEL_ARGUMENTS = 4  # address, threads, chunks and a tuple: see `launch.make_entry`
PATIENCE = 60.0  # seconds that a process waits for another to compile what it needs, at most
_CHECKSUM = hashlib.sha256().digest_size


def caching_enabled() -> bool:
    """False when NESVM_JIT_CACHE is 0, off, no or false."""
    return os.environ.get("NESVM_JIT_CACHE", "1").lower() not in {"0", "off", "no", "false"}


def _numba_version() -> str:
    """What numba says of its version, without importing it."""
    found = find_spec("numba")
    path = Path(found.origin or "").parent / "_version.py" if found else Path()
    if path.is_file():
        return path.read_text()
    from importlib import metadata

    return metadata.version("numba")


def _digest() -> str:
    """Hash of every source that can end up in machine code, and of the compilers' versions."""
    h = hashlib.sha256(repr((sys.version, _numba_version())).encode())
    for pattern in COMPILED:
        for path in sorted(PACKAGE.glob(pattern)):
            h.update(
                path.relative_to(PACKAGE).as_posix().encode() + b"\0" + path.read_bytes() + b"\0"
            )
    return h.hexdigest()[:20]


# Taken now, when the sources are imported: edited later, they are not what this process runs.
SOURCE_DIGEST = _digest()


def _base_folders() -> Iterator[Path]:
    """Where a cache may live, best first."""
    if folder := os.environ.get("NESVM_JIT_CACHE_DIR"):
        yield Path(folder)
    if folder := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(folder) / "nesvm-jit"
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        if local:
            yield Path(local) / "nesvm-jit" / "cache"
    elif sys.platform == "darwin":
        yield Path(os.path.expanduser("~/Library/Caches/nesvm-jit"))
    else:
        home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        yield Path(home) / "nesvm-jit"
    uid = os.getuid() if hasattr(os, "getuid") else "user"
    yield Path(tempfile.gettempdir()) / f"nesvm-jit-{uid}"


@lru_cache
def cache_folders() -> tuple[Path | None, list[Path]]:
    """Where this version's code is written, and where it is looked for.

    Written to the first folder that allows it (None: compile in every process, never fail);
    read from that one and from those before it that can only be read. Where there is neither,
    standard error says why.
    """
    readable, obstacles = [], []
    for base in _base_folders():
        folder = base / SOURCE_DIGEST
        try:
            hold(folder, make=True).close()
            readable.append(folder)
            with tempfile.TemporaryFile(dir=folder):
                pass
            os.utime(folder)
        except OSError as e:
            obstacles.append(f"{base}: {e.strerror}" if e.strerror else str(e))
            continue
        _drop_unfinished(folder)
        _prune(base, folder)
        return folder, readable
    if not readable:
        why = "; ".join(dict.fromkeys(obstacles))
        print(f"nesvm-jit: every run compiles anew, no folder for code: {why}", file=sys.stderr)
    return None, readable


@cache
def _held(folder: Path) -> Folder:
    """A folder of code, checked once more and kept open."""
    return hold(folder)


def _drop_unfinished(folder: Path) -> None:
    """Drop what processes were writing when they were killed."""
    with contextlib.suppress(OSError):
        for path in folder.glob("*.part"):
            writer = path.name.split("-")[0]
            if not (writer.isdecimal() and _is_alive(int(writer))):
                path.unlink(missing_ok=True)


def _is_alive(pid: int) -> bool:
    """Whether there is such a process; on systems that cannot tell there is."""
    if sys.platform == "win32":
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it is another user's
        return True
    return True


def _prune(base: Path, current: Path) -> None:
    """Drop code of versions not used for a month."""
    limit = time.time() - KEEP_DAYS * 86400
    try:
        for folder in base.iterdir():
            if folder == current or len(folder.name) != len(current.name):
                continue
            found = folder.lstat()  # a link could lead to files that are not code
            if stat.S_ISDIR(found.st_mode) and found.st_mtime < limit:
                for pattern in ("*.nsc", "*.part", "*.lock"):
                    for path in folder.glob(pattern):
                        path.unlink(missing_ok=True)
                folder.rmdir()
    except OSError:
        pass


def describe_types(kinds: Iterable[Any]) -> str:
    """The types of arguments in a few letters, for who looks for code without numba."""
    return ",".join(_describe(kind) for kind in kinds)


def _describe(kind: Any) -> str:
    if hasattr(kind, "ndim"):
        return f"{kind.dtype}{kind.ndim}{kind.layout}{'w' if kind.mutable else 'r'}"
    if hasattr(kind, "types"):
        name = kind.instance_class.__name__ if hasattr(kind, "instance_class") else ""
        return f"{name}({describe_types(kind.types)})"
    return str(kind)


def described(kinds: tuple[Any, ...]) -> str:
    """The same of a signature; of a kernel, of the arguments that its chunks are run with."""
    if len(kinds) == KERNEL_ARGUMENTS and hasattr(kinds[-1], "types"):
        return describe_types(kinds[-1].types)
    return describe_types(kinds)


def _prefix(name: str, described: str) -> str:
    """What the files of a loop begin with that is compiled for such arguments."""
    return hashlib.sha256(f"{name} {described}".encode()).hexdigest()[:16]


def is_kept(name: str, described: str) -> bool:
    """Whether there is code of a loop for such arguments; asked without importing numba."""
    if not caching_enabled():
        return False
    prefix = _prefix(name, described)
    with contextlib.suppress(OSError):
        return any(any(f.glob(f"{prefix}-*.nsc")) for f in cache_folders()[1])
    return False


class CodeCache:
    """Numba's cache protocol for one dispatcher of this name; `variant` tells apart the ways it is
    compiled (flags, bounds checks)."""

    def __init__(self, name: str, variant: str):
        self._name, self._variant = name, variant
        self._claims: dict[str, Lock] = {}  # files that this process is about to write

    @property
    def cache_path(self) -> str:
        return str(cache_folders()[0])

    def enable(self) -> None:
        pass

    def disable(self) -> None:
        pass

    def flush(self) -> None:
        pass

    def _file(self, sig: Any, codegen: Any) -> str:
        key = repr((self._name, self._variant, str(sig), codegen.magic_tuple()))
        prefix = _prefix(self._name, described(tuple(getattr(sig, "args", sig))))
        return f"{prefix}-{hashlib.sha256(key.encode()).hexdigest()[:40]}.nsc"

    def has(self, sig: Any, target_context: Any) -> bool:
        """Whether code for this signature is kept."""
        name = self._file(sig, target_context.codegen())
        with contextlib.suppress(OSError):
            return any(_held(folder).has(name) for folder in cache_folders()[1])
        return False

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        # the runtime that finished code needs; target_context.refresh() would load the rest of the
        # compiler too, as long as importing numba takes, for nothing
        _start_runtime(target_context)
        name = self._file(sig, target_context.codegen())
        found = self._load(name, target_context)
        if found is None and self._claim(name):
            found = self._load(name, target_context)
            if found is not None:
                self._release(name)
        if found is None:
            loop = str(self._name).rpartition(".")[2].strip("_")
            activity.begin(threading.get_ident(), f"compiling {loop}")
        return found

    def _claim(self, name: str) -> bool:
        """Claim the compiling of a file, so that other processes wait for it instead of compiling
        the same; True where this one has waited for another."""
        folder = cache_folders()[0]
        lock = None
        if name in self._claims:
            return False
        with contextlib.suppress(OSError):
            lock = None if folder is None else _held(folder).lock(f"{name}.lock", PATIENCE)
        if lock is None:
            return False
        self._claims[name] = lock
        return lock.waited

    def _release(self, name: str) -> None:
        lock = self._claims.pop(name, None)
        if lock is not None:
            lock.free()

    def _load(self, name: str, target_context: Any) -> Any:
        for folder in cache_folders()[1]:
            try:
                blob = _held(folder).read(name)
                if hashlib.sha256(blob[_CHECKSUM:]).digest() == blob[:_CHECKSUM]:
                    return _rebuild(target_context, *pickle.loads(blob[_CHECKSUM:]))
            except Exception:  # a cache must never be the reason that a program fails
                continue
        return None

    def save_overload(self, sig: Any, cres: Any) -> None:
        activity.end(threading.get_ident())
        folder = cache_folders()[0]
        if folder is None or cres.library.has_dynamic_globals:
            self._release(self._file(sig, cres.codegen))
            return
        try:
            payload = _dumps(cres._reduce())
            data, name = hashlib.sha256(payload).digest() + payload, self._file(sig, cres.codegen)
            temporary = f"{os.getpid()}-{threading.get_ident()}.part"
            _held(folder).write(name, data, temporary)
        except Exception:  # a cache must never be the reason that a program fails
            return
        finally:
            self._release(self._file(sig, cres.codegen))


def _start_runtime(target_context: Any) -> None:
    from numba.core.runtime import rtsys

    rtsys.initialize(target_context)


def _rebuild(target_context: Any, *content: Any) -> Any:
    from numba.core.compiler import CompileResult

    return CompileResult._rebuild(target_context, *content)


def _dumps(content: Any) -> bytes:
    from numba.core.serialize import dumps

    return bytes(dumps(content))


def attach_cache(dispatcher: Any, variant: str, name: str | None = None) -> None:
    """Keep what a dispatcher compiles, under its own name or the one given, unless the cache or
    compiling is switched off."""
    import numba

    if not caching_enabled() or numba.config.DISABLE_JIT:
        return
    function = dispatcher.py_func
    flags = f"{numba.config.BOUNDSCHECK=} {numba.config.OPT=}"
    name = name or f"{function.__module__}.{function.__qualname__}"
    dispatcher._cache = CodeCache(name, f"{variant} {flags}")
