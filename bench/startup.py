"""How long a fresh process takes, with and without compiled code on disk:
`python -m bench.startup`."""

import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from .common import DOCS, data_file, machine_facts, median_time, note, table, write_page

# seconds at most
SMALL_COLD = (1.5, 0.5, 3.0, 0.5)  # train and predict, linear and then RBF
SMALL_WARM = (0.6, 0.5, 0.6, 0.5)
COMPILING = 5.0  # what a linear fit on CSR data needs
HELP = 0.25
TRAIN = 0.6  # a9a, from the text file to the model file, with the code on disk
SHORT = {
    "bare python": ["-c", "pass"],
    "import numpy": ["-c", "import numpy"],
    "import numba": ["-c", "import numba"],
    "import nesvm_jit": ["-c", "import nesvm_jit"],
    "nesvm-jit --help": ["-m", "nesvm_jit", "--help"],
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


def a9a(folder: Path) -> tuple[str, Path]:
    """The text of a9a, or of data of its shape."""
    path = data_file("a9a")
    if path is not None:
        return "a9a", path
    note("NESVM_DATA has no a9a: synthetic data instead")
    from nesvm_jit import write_libsvm

    from .peers.datasets import label, load

    write_libsvm(folder / "a9a", *load("a9a"))
    return label("a9a"), folder / "a9a"


def run(arguments, cache: Path, compiled: bool = False) -> None:
    """One fresh interpreter that keeps its compiled code in `cache`."""
    environment = {**os.environ, "NESVM_JIT_CACHE_DIR": str(cache)}
    environment |= {"NESVM_JIT_TIER": "compiled"} if compiled else {}
    environment.pop("NESVM_JIT_CACHE", None)
    command = [sys.executable, *arguments]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)


def short_times(folder: Path) -> dict[str, float]:
    """Medians of commands that compile nothing."""
    seconds = {}
    for name, arguments in SHORT.items():
        note(name)
        work = partial(run, arguments, folder / "short")
        seconds[name] = median_time(work, 7)
    return seconds


def fit_times(folder: Path, layout: str) -> tuple[float, float]:
    """Seconds of the process that fills the cache, and the median of those that find it."""
    note(f"reading and kernels, {layout}")
    data, cache = folder / "small.txt", folder / layout
    write_small(data)
    arguments = ["-c", FIT, str(data), layout]
    work = partial(run, arguments, cache, compiled=True)
    return median_time(work, 1, warmups=0), median_time(work, 5, warmups=0)


def train_times(folder: Path, data: Path) -> tuple[float, float]:
    """Seconds of `nesvm-jit train` that fills the cache, and the median of those that find it."""
    note("nesvm-jit train")
    model, cache = folder / "a9a.model", folder / "train"
    work = partial(run, ["-m", "nesvm_jit", "train", str(data), str(model)], cache)
    return median_time(work, 1, warmups=0), median_time(work, 7, warmups=0)


def small_times(folder: Path) -> list[tuple[str, float, float, float]]:
    """Commands on a file of 270 rows: seconds with an empty cache, medians of later ones, and MB of
    memory, of runs that choose for themselves what they compile."""
    data = data_file("heart_scale")
    if data is None:
        note("NESVM_DATA has no heart_scale: synthetic data instead")
        data = folder / "heart_scale"
        rows = ([f"{j}:{i * j % 17 / 8 - 1:g}" for j in range(1, 14)] for i in range(270))
        lines = [f"{1 if i % 3 else -1} {' '.join(row)}\n" for i, row in enumerate(rows)]
        data.write_text("".join(lines))
    found = []
    for kernel in ("linear", "rbf"):
        model = folder / f"{kernel}.model"
        for name, arguments in (
            (f"train -t {kernel}", ["train", "-t", kernel, str(data), str(model)]),
            (f"predict, {kernel}", ["predict", str(data), str(model), str(folder / "out")]),
        ):
            note(name)
            cache = folder / f"small-{len(found)}"
            work = partial(run, ["-m", "nesvm_jit", *arguments], cache)
            cold = median_time(work, 1, warmups=0)
            found.append((name, cold, median_time(work, 7, warmups=0), megabytes(arguments)))
    return found


def megabytes(arguments: list[str]) -> float:
    """The most memory that a command has held."""
    program = (
        "import resource, sys\nfrom nesvm_jit.cli import command\n"
        "command(sys.argv[1:], standalone_mode=False)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    )
    command = [sys.executable, "-c", program, arguments[0], "-q", *arguments[1:]]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout.splitlines()[-1])


def aim(what: str, most: float, seconds: float) -> tuple[str, ...]:
    """A row that says whether a time is short enough."""
    verdict = "met" if seconds <= most else "missed"
    return what, f"≤ {most:g} s", f"{seconds:.3g} s", verdict


def main() -> None:
    machine_facts()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        short = short_times(folder)
        small = small_times(folder)
        fits = {layout: fit_times(folder, layout) for layout in ("csr", "dense")}
        data_name, data = a9a(folder)
        cold, warm = train_times(folder, data)
    what = (
        "One process that reads 60 000 short rows and solves a C-SVM with a bias, all compiled: "
        "cold with an empty cache of compiled code, warm with the cache that it left."
    )
    command = f"`nesvm-jit train` on {data_name}, text file to model file"
    aims = [
        aim(
            "compiling for a linear fit on CSR float64", COMPILING, fits["csr"][0] - fits["csr"][1]
        ),
        aim("`nesvm-jit --help`", HELP, short["nesvm-jit --help"]),
        aim(f"{command}, code on disk", TRAIN, warm),
        *(
            aim(f"`nesvm-jit {name}`, 270 rows, empty cache", most, seconds)
            for (name, seconds, _, _), most in zip(small, SMALL_COLD, strict=True)
        ),
        *(
            aim(f"`nesvm-jit {name}`, 270 rows, later", most, seconds)
            for (name, _, seconds, _), most in zip(small, SMALL_WARM, strict=True)
        ),
    ]
    small_rows = [(f"`{n}`", f"{c:.2f}", f"{w:.2f}", f"{m:.0f}") for n, c, w, m in small]
    small_headers = ("command", "empty cache, s", "later, s, median of 7", "memory, MB")
    short_rows = [(f"`{name}`", f"{seconds:.3f}") for name, seconds in short.items()]
    fit_rows = [
        (f"{layout} float64", *(f"{s:.2f}" for s in (cold, warm, cold - warm)))
        for layout, (cold, warm) in fits.items()
    ]
    train_row = [f"{s:.2f}" for s in (cold, warm, cold - warm)]
    headers = ("cold s", "warm s", "compiling s")
    sections = [
        ("Aims", table(aims, ("aim", "target", "measured", ""))),
        ("Short commands", table(short_rows, ("whole process", "seconds, median of 7"))),
        ("Small data, 270 rows", table(small_rows, small_headers)),
        ("What a linear fit needs", f"{what}\n\n{table(fit_rows, ('data', *headers))}"),
        ("A whole training", f"{command}.\n\n{table([train_row], headers)}"),
    ]
    write_page(DOCS / "bench-startup.md", "Start-up", "make bench-startup", sections)


if __name__ == "__main__":
    main()
