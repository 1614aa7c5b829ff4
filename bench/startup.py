"""How long a fresh process takes, with and without compiled code on disk:
`python -m bench.startup`."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from .common import DOCS, machine_facts, median_time, note, table, write_page

MOST_COMPILING = 15.0  # seconds, for what a linear fit on CSR data needs
SHORT = {
    "bare python": ["-c", "pass"],
    "import numpy": ["-c", "import numpy"],
    "import numba": ["-c", "import numba"],
    "import nesvm_jit": ["-c", "import nesvm_jit"],
    "python -m nesvm_jit --help": ["-m", "nesvm_jit", "--help"],
}
FIT = """
import sys
from nesvm_jit import read_libsvm, solve
X, y = read_libsvm(sys.argv[1])
solve(X.toarray() if sys.argv[2] == "dense" else X, y, max_iter=20)
"""


def write_small(path: Path) -> None:
    """A LIBSVM file large enough for threads, whose passes still take next to no time."""
    lines = [f"{1 if i % 3 else -1} {1 + i % 7}:0.5 {9 + i % 5}:{i % 7}\n" for i in range(60_000)]
    path.write_text("".join(lines))


def run(arguments, cache: Path) -> None:
    """One fresh interpreter that keeps its compiled code in `cache`."""
    environment = {**os.environ, "NESVM_JIT_CACHE_DIR": str(cache)}
    environment.pop("NESVM_JIT_CACHE", None)
    command = [sys.executable, *arguments]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)


def short_rows(folder: Path):
    """Medians of commands that compile nothing."""
    rows = []
    for name, arguments in SHORT.items():
        note(name)
        seconds = median_time(lambda arguments=arguments: run(arguments, folder / "short"), 7)
        rows.append((f"`{name}`", f"{seconds:.3f}"))
    return rows


def fit_times(folder: Path, layout: str) -> tuple[float, float]:
    """Seconds of the process that fills the cache, and the median of those that find it."""
    note(f"reading and kernels, {layout}")
    data, cache = folder / "small.txt", folder / layout
    write_small(data)
    arguments = ["-c", FIT, str(data), layout]
    cold = median_time(lambda: run(arguments, cache), 1, warmups=0)
    return cold, median_time(lambda: run(arguments, cache), 5, warmups=0)


def main() -> None:
    machine_facts()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        short = short_rows(folder)
        fits = {layout: fit_times(folder, layout) for layout in ("csr", "dense")}
    rows = [
        (f"{layout} float64", f"{cold:.2f}", f"{warm:.2f}", f"{cold - warm:.2f}")
        for layout, (cold, warm) in fits.items()
    ]
    compiling = fits["csr"][0] - fits["csr"][1]
    aim = (
        "compiling for a linear fit on CSR float64",
        f"≤ {MOST_COMPILING:g} s",
        f"{compiling:.1f} s",
        "met" if compiling <= MOST_COMPILING else "missed",
    )
    what = (
        "One process that reads a small file and solves a C-SVM with a bias: "
        "cold with an empty cache of compiled code, warm with the cache that it left."
    )
    headers = ("data", "cold s", "warm s", "compiling s")
    sections = [
        ("Aims", table([aim], ("aim", "target", "measured", ""))),
        ("Short commands", table(short, ("whole process", "seconds, median of 7"))),
        ("What a linear fit needs", f"{what}\n\n{table(rows, headers)}"),
    ]
    write_page(DOCS / "bench-startup.md", "Start-up", "python -m bench.startup", sections)


if __name__ == "__main__":
    main()
