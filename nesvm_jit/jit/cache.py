"""Machine code on disk, one file per compiled signature.

Numba's own cache keeps an index per function; two processes that fill it at once can leave
the index pointing at the other's code, and it does not notice an edited helper in another
file. Here the name of a file is the hash of everything the code depends on (all compiled
sources, versions, CPU, flags, signature), its content carries a checksum, and it appears by
rename: a reader finds the right code whole, or nothing, and nothing means "compile".
"""

import contextlib
import hashlib
import os
import pickle
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.runtime import rtsys
from numba.core.serialize import dumps

PACKAGE = Path(__file__).parents[1]
# The files that hold compiled code; tests/test_layers.py checks that no other imports jit.
COMPILED = ("jit/*.py", "matrix/*.py", "kernels/**/*.py")
KEEP_DAYS = 30
_CHECKSUM = hashlib.sha256().digest_size


def caching_enabled() -> bool:
    """False when NESVM_JIT_CACHE is 0, off, no or false."""
    return os.environ.get("NESVM_JIT_CACHE", "1").lower() not in {"0", "off", "no", "false"}


def _digest() -> str:
    """Hash of every source that can end up in machine code, and of the compilers' versions."""
    h = hashlib.sha256(repr((sys.version, numba.__version__)).encode())
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


def _is_ours(folder: Path) -> bool:
    """A cache is code: take it only from a folder that nobody but us (or root) can fill."""
    if not hasattr(os, "getuid"):
        return True
    st = folder.stat()
    return st.st_uid in (os.getuid(), 0) and not st.st_mode & 0o022


@lru_cache
def cache_folders() -> tuple[Path | None, list[Path]]:
    """Where this version's code is written, and where it is looked for.

    Written to the first folder that allows it (None: compile in every process, never fail);
    read from that one and from those before it that can only be read.
    """
    readable = []
    for base in _base_folders():
        folder = base / SOURCE_DIGEST
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
        try:
            if not _is_ours(folder):
                continue
            readable.append(folder)
            with tempfile.TemporaryFile(dir=folder):
                pass
            os.utime(folder)
        except OSError:
            continue
        _prune(base, folder)
        return folder, readable
    return None, readable


def _prune(base: Path, current: Path) -> None:
    """Drop code of versions not used for a month."""
    limit = time.time() - KEEP_DAYS * 86400
    try:
        for folder in base.iterdir():
            if folder == current or len(folder.name) != len(current.name):
                continue
            if folder.is_dir() and folder.stat().st_mtime < limit:
                for path in folder.glob("*.nsc"):
                    path.unlink(missing_ok=True)
                folder.rmdir()
    except OSError:
        pass


class CodeCache(_Cache):  # type: ignore[misc]
    """Numba's cache protocol for one dispatcher of this name; `variant` tells apart the ways it is
    compiled (flags, bounds checks)."""

    def __init__(self, name: str, variant: str):
        self._name, self._variant = name, variant

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
        return hashlib.sha256(key.encode()).hexdigest()[:40] + ".nsc"

    def has(self, sig: Any, target_context: Any) -> bool:
        """Whether code for this signature is kept."""
        name = self._file(sig, target_context.codegen())
        return any((folder / name).exists() for folder in cache_folders()[1])

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        # the runtime that finished code needs; target_context.refresh() would load the rest of the
        # compiler too, as long as importing numba takes, for nothing
        rtsys.initialize(target_context)
        name = self._file(sig, target_context.codegen())
        for folder in cache_folders()[1]:
            try:
                blob = (folder / name).read_bytes()
                if hashlib.sha256(blob[_CHECKSUM:]).digest() == blob[:_CHECKSUM]:
                    return CompileResult._rebuild(target_context, *pickle.loads(blob[_CHECKSUM:]))
            except Exception:  # a cache must never be the reason that a program fails
                continue
        return None

    def save_overload(self, sig: Any, cres: Any) -> None:
        folder = cache_folders()[0]
        if folder is None or cres.library.has_dynamic_globals:
            return
        temporary = folder / f"{os.getpid()}-{threading.get_ident()}.part"
        try:
            payload = dumps(cres._reduce())
            temporary.write_bytes(hashlib.sha256(payload).digest() + payload)
            os.replace(temporary, folder / self._file(sig, cres.codegen))
        except Exception:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)


def attach_cache(dispatcher: Any, variant: str, name: str | None = None) -> None:
    """Keep what a dispatcher compiles, under its own name or the one given, unless the cache or
    compiling is switched off."""
    if not caching_enabled() or numba.config.DISABLE_JIT:
        return
    function = dispatcher.py_func
    flags = f"{numba.config.BOUNDSCHECK=} {numba.config.OPT=}"
    name = name or f"{function.__module__}.{function.__qualname__}"
    dispatcher._cache = CodeCache(name, f"{variant} {flags}")
