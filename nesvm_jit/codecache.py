"""Machine code on disk, one file per compiled signature.

Numba's own cache keeps an index per function; two processes that fill it at once can leave
the index pointing at the other's code, and it does not notice an edited helper in another
file. Here the name of a file is the hash of everything the code depends on (all compiled
sources, versions, CPU, flags, signature), its content carries a checksum, and it appears by
rename: a reader finds the right code whole, or nothing, and nothing means "compile".
"""

import hashlib
import os
import pickle
import sys
import tempfile
import time
from functools import lru_cache
from pathlib import Path

import numba
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

PACKAGE = Path(__file__).parent
# The files that hold compiled code; tests/test_layers.py checks that no other imports jit.
COMPILED = ("bits.py", "codecache.py", "jit.py", "matrix.py", "kernels/*.py")
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
            h.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return h.hexdigest()[:20]


# Taken now, when the sources are imported: edited later, they are not what this process runs.
SOURCE_DIGEST = _digest()


def _base_folders():
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
def cache_folder() -> Path | None:
    """The folder for this version's code: the first that can be written, else one that can be
    read, else None (compile in every process, never fail)."""
    readable = None
    for base in _base_folders():
        folder = base / SOURCE_DIGEST
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not _is_ours(folder):
                continue
            with tempfile.TemporaryFile(dir=folder):
                pass
            os.utime(folder)
        except OSError:
            try:
                if readable is None and folder.is_dir() and _is_ours(folder):
                    readable = folder
            except OSError:
                pass
            continue
        _prune(base, folder)
        return folder
    return readable


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


class CodeCache(_Cache):
    """Numba's cache protocol for one dispatcher; `variant` tells apart the ways one function
    is compiled (parallel or serial, flags, bounds checks)."""

    def __init__(self, py_func, variant: str):
        self._name = f"{py_func.__module__}.{py_func.__qualname__}"
        self._variant = variant

    @property
    def cache_path(self):
        return str(cache_folder())

    def enable(self):
        pass

    def disable(self):
        pass

    def flush(self):
        pass

    def _path(self, sig, codegen) -> Path | None:
        folder = cache_folder()
        if folder is None:
            return None
        key = repr((self._name, self._variant, str(sig), codegen.magic_tuple()))
        return folder / (hashlib.sha256(key.encode()).hexdigest()[:40] + ".nsc")

    def load_overload(self, sig, target_context):
        target_context.refresh()
        path = self._path(sig, target_context.codegen())
        if path is None:
            return None
        try:
            blob = path.read_bytes()
            if hashlib.sha256(blob[_CHECKSUM:]).digest() != blob[:_CHECKSUM]:
                return None
            return CompileResult._rebuild(target_context, *pickle.loads(blob[_CHECKSUM:]))
        except Exception:  # a cache must never be the reason that a program fails
            return None

    def save_overload(self, sig, cres):
        if cres.library.has_dynamic_globals or any(not x.can_cache for x in cres.lifted):
            return
        path = self._path(sig, cres.codegen)
        if path is None:
            return
        temporary = None
        try:
            payload = dumps(cres._reduce())
            with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as f:
                temporary = f.name
                f.write(hashlib.sha256(payload).digest() + payload)
            os.replace(temporary, path)
        except Exception:
            if temporary is not None and os.path.exists(temporary):
                os.unlink(temporary)
