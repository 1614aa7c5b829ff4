"""Commands in processes of their own, with their peak memory; and the speed of the disk."""

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

PIECE = 1 << 24


class Done(NamedTuple):
    seconds: float
    peak: float  # bytes of resident memory
    facts: dict[str, Any]


def run(*words: object, most: float | None = None) -> Done:
    """`nesvm-jit words --json`, with at most so many bytes of address space."""

    def limit() -> None:
        if most is not None:
            resource.setrlimit(resource.RLIMIT_AS, (int(most), int(most)))

    command = [sys.executable, "-m", "nesvm_jit", *map(str, words), "--json"]
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, preexec_fn=limit) as child:
        assert child.stdout is not None
        text = child.stdout.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(command)} failed: {child.returncode}")
    return Done(time.perf_counter() - began, usage.ru_maxrss * 1024.0, json.loads(text))


def forget_pages(path: Path) -> None:
    """Ask the system to drop a file from memory, so that it has to be read from disk."""
    if hasattr(os, "posix_fadvise"):
        with open(path, "rb") as f:
            os.fsync(f.fileno())
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read_speed(path: Path, cold: bool) -> float:
    """Bytes a second of reading a file from its beginning to its end, at most 2 GB of it."""
    if cold:
        forget_pages(path)
    size = min(path.stat().st_size, 2 << 30)
    buffer = bytearray(PIECE)
    began, done = time.perf_counter(), 0
    with open(path, "rb", buffering=0) as f:
        while done < size and (got := f.readinto(buffer)):
            done += got
    return done / (time.perf_counter() - began)
