"""What the benchmarks share: data files, medians, facts of the machine, Markdown pages."""

import datetime
import functools
import importlib.metadata
import json
import lzma
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs"
UNPACKED = HERE.parent / "build" / "data"
RESULTS = HERE.parent / "build" / "bench"


def data_file(name: str) -> Path | None:
    """The plain text of `name` in the folder NESVM_DATA, unpacked once; None when absent."""
    folder = os.environ.get("NESVM_DATA")
    if not folder:
        return None
    plain, packed = Path(folder) / name, Path(folder) / f"{name}.xz"
    if plain.is_file():
        return plain
    if not packed.is_file():
        return None
    unpacked = UNPACKED / name
    if not unpacked.is_file():
        with lzma.open(packed) as source:
            write_whole(unpacked, lambda target: shutil.copyfileobj(source, target))
    return unpacked


def write_whole(path: Path, fill) -> None:
    """Let `fill(file)` write a binary file that appears under its name only when complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as f:
        try:
            fill(f)
        except BaseException:
            os.unlink(f.name)
            raise
    os.replace(f.name, path)


def timings(function, repeats: int, warmups: int = 1) -> list[float]:
    """Seconds of each of `repeats` calls, after `warmups` calls that are not timed."""
    for _ in range(warmups):
        function()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return seconds


def median_time(function, repeats: int, warmups: int = 1) -> float:
    """The median of `repeats` timed calls, in seconds."""
    return statistics.median(timings(function, repeats, warmups))


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _memory() -> str:
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return "unknown"
    return f"{size / 2**30:.0f} GB"


def _commit() -> str:
    """The commit that is measured, and whether the tree differs from it."""
    git = ["git", "-C", str(HERE), "describe", "--always", "--dirty", "--exclude=*"]
    try:
        return subprocess.run(git, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


@functools.cache
def machine_facts() -> dict[str, str]:
    """What a reader needs to know to judge the figures; the first call takes the load."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    versions = {name: importlib.metadata.version(name) for name in ("numpy", "numba", "scipy")}
    return {
        "CPU": _cpu(),
        "cores": str(cores),
        "memory": _memory(),
        "python": platform.python_version(),
        **versions,
        "load before the run": load,
        "commit": _commit(),
        "date": datetime.date.today().isoformat(),
    }


def note(text: str) -> None:
    """Tell the user, without disturbing standard output."""
    print(text, file=sys.stderr, flush=True)


def verdict(value: float, aim: float) -> str:
    """Whether `value` reaches `aim`."""
    return "met" if value >= aim else "missed"


def table(rows, headers) -> str:
    """A Markdown pipe table."""
    lines = [headers, ["---"] * len(headers), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def write_page(path: Path, title: str, command: str, sections) -> None:
    """Write and print a page: the command, the machine, then the (heading, text) of `sections`;
    the same as JSON in build/bench."""
    sections = list(sections)
    stored = {"command": command, "machine": machine_facts(), "sections": dict(sections)}
    text = json.dumps(stored, indent=1, ensure_ascii=False) + "\n"
    write_whole(RESULTS / f"{path.stem}.json", lambda f: f.write(text.encode()))
    facts = ", ".join(f"{name} {value}" for name, value in machine_facts().items())
    parts = [f"# {title}", f"Written by `{command}`.", f"Machine: {facts}."]
    for heading, text in sections:
        parts += [f"## {heading}", text]
    page = "\n\n".join(parts) + "\n"
    write_whole(path, lambda f: f.write(page.encode()))
    os.chmod(path, 0o644)
    print(page, end="")
