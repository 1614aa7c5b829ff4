"""What every engine and command gains from more threads, on a quiet computer and beside a program
that keeps one core busy: `python -m bench.threads`."""

import argparse
import io
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
from nesvm_jit import jit, kernels, path, read_libsvm, set_threads, solve, train, write_libsvm
from nesvm_jit.matrix.checks import as_matrix
from scipy.sparse import vstack
from sklearn.datasets import load_digits

from .common import DOCS, machine_facts, median_time, note, table, write_page
from .peers.datasets import label, load
from .peers.datasets.source import Shape, read_classes
from .peers.datasets.synthetic import text

BUSY = "while True: pass"
DATA = ("a9a", "a6a", "a1a", "mnist", "news20bydate halves")
PASS, FIT, MACHINE, TEXT = "pass", "fit", "machine", "one text problem"
GOALS = {PASS: 0.9, FIT: 0.8, MACHINE: 0.8}  # share of what plain loops gain
LONG = 0.05  # seconds on one thread: goals are for fits that take longer
LONG_BUSY = 0.1  # the same beside another program
BUSY_GOAL = 0.9  # times the speed of one thread that has the other core for itself


class Task(NamedTuple):
    """Something to time, and what kind of work it is."""

    name: str
    kind: str
    work: Callable[[], Any]
    repeats: int = 5
    memory: bool = False  # bound by memory: its yardstick is reading, not computing


@numba.njit(parallel=True, fastmath=True)
def compute(x, out):
    """A plain loop that needs no memory."""
    for k in numba.prange(len(out)):
        total = 0.0
        for r in range(40):
            for i in range(2000):
                total += np.sqrt(x[i] + r + k)
        out[k] = total


@numba.njit(parallel=True, fastmath=True)
def read(x, out):
    """A plain loop that does nothing but read."""
    n = len(x) // len(out)
    for k in numba.prange(len(out)):
        total = 0.0
        for i in range(k * n, (k + 1) * n):
            total += x[i]
        out[k] = total


def yardsticks() -> Iterator[Task]:
    x, out, large = np.ones(2000), np.zeros(64), np.ones(1 << 25)
    yield Task("a plain loop", "yardstick", lambda: compute(x, out), 15)
    yield Task("plain reading", "yardstick", lambda: read(large, out), 15)


def passes() -> Iterator[Task]:
    X, y = load("a9a")
    X8 = as_matrix(vstack([X] * 8).tocsr())
    y8, w = np.tile(y, 8), np.linspace(-1, 1, X.shape[1])
    d = (np.arange(len(y8)) % 4 == 0) * 1.0
    yield Task("margins, a9a eight times", PASS, lambda: kernels.margins(X8, w), 15, True)
    yield Task("sweep, a9a eight times", PASS, lambda: kernels.sweep(X8, y8, w), 15, True)
    yield Task("Hessian, a9a eight times", PASS, lambda: kernels.hessian(X8, d), 9)
    dense = as_matrix(X[:4000].toarray())
    yield Task("RBF matrix, 4000 rows", PASS, lambda: kernels.gram(dense), 5)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "a9a"
        write_libsvm(file, X, y)
        content = file.read_bytes()
        yield Task("reading a9a", PASS, lambda: read_libsvm(io.BytesIO(content)), 9)


def linear_fits() -> Iterator[Task]:
    X, y = load("a9a")
    X8, y8 = vstack([X] * 8).tocsr(), np.tile(y, 8)
    rounds = {"tol": 0.0, "epsilon": 0.0, "max_iter": 100}
    yield Task("newton, a9a", FIT, lambda: solve(X, y, solver="newton", bias=False), 15)
    yield Task("auto, a9a, C = 100", FIT, lambda: solve(X, y, C=100.0), 9)
    yield Task("newton, a9a eight times", FIT, lambda: solve(X8, y8, solver="newton", bias=False))
    yield Task(
        "nesvm, a9a eight times, 100 rounds", FIT, lambda: solve(X8, y8, solver="nesvm", **rounds)
    )
    yield Task("homotopy, a9a", FIT, lambda: solve(X, y, solver="homotopy", max_iter=300), 3)
    yield Task("LS-SVM, a9a eight times", FIT, lambda: solve(X8, y8, model="lssvm"))
    yield Task("LP-SVM, a9a", FIT, lambda: solve(X, y, model="lpsvm"), 3)
    M, digits = (a[:20_000] for a in load("mnist"))
    yield Task(
        "newton, mnist, 20 000 rows, float32",
        FIT,
        lambda: solve(M, digits, solver="newton", bias=False),
        3,
    )


def other_fits() -> Iterator[Task]:
    X, y = load("a6a")
    for C in (1.0, 100.0):
        yield Task(f"RBF, a6a, C = {C:g}", FIT, lambda C=C: solve(X, y, kernel="rbf", C=C))
    N, halves = load("news20bydate halves")
    yield Task("coordinate, news20bydate halves", TEXT, lambda: solve(N, halves), 3)
    N, groups = read_classes("news20bydate", Shape(text, 11314, 130107, 200, 0.05))
    yield Task("news20bydate, 20 classes", MACHINE, lambda: train(N, groups), 3)
    D, digits = load_digits(return_X_y=True)
    yield Task("digits, one against the rest", MACHINE, lambda: train(D, digits), 3)
    yield Task("digits, RBF", MACHINE, lambda: train(D, digits, kernel="rbf"), 3)
    machine = train(D, digits, kernel="rbf")
    yield Task("digits, RBF, prediction", MACHINE, lambda: machine.predict(D), 15)
    A, a = load("a9a")
    yield Task(
        "path, a9a, 5 C, 3 folds", MACHINE, lambda: path(A, a, costs="0.01:10:5", folds=3), 3
    )
    S, s = load("a1a")
    yield Task(
        "path, a1a, RBF, 5 C, 3 folds",
        MACHINE,
        lambda: path(S, s, kernel="rbf", costs="0.1:100:5", folds=3),
        3,
    )


@contextmanager
def busy_core(busy: bool) -> Iterator[None]:
    """Another program keeps one core busy meanwhile."""
    if not busy:
        yield
        return
    with subprocess.Popen([sys.executable, "-c", BUSY]) as program:
        try:
            yield
        finally:
            program.kill()


def measure(task: Task, threads: list[int], busy: bool) -> list[float]:
    """Seconds on each number of threads; the first is measured without the other program."""
    seconds = []
    for n in threads:
        set_threads(n)
        numba.set_num_threads(n)
        with busy_core(busy and n > 1):
            seconds.append(median_time(task.work, task.repeats))
    return seconds


def verdict(task: Task, seconds: list[float], best: float) -> str:
    """Whether the gain of all threads is what was aimed at, as a share of the yardstick's."""
    gain = seconds[0] / seconds[-1]
    if gain < 1.0:
        return f"slower: {gain:.2f} ×"
    if task.kind not in GOALS or (task.kind == FIT and seconds[0] < LONG):
        return ""
    share = gain / best
    return f"{'met' if share >= GOALS[task.kind] else 'missed'}: {share:.2f} of the plain gain"


def busy_verdict(task: Task, seconds: list[float]) -> str:
    gain = seconds[0] / seconds[-1]
    if seconds[0] < LONG_BUSY or task.kind == "yardstick":
        return ""
    return "met" if gain >= BUSY_GOAL else "missed"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="Measure the tasks whose names contain this.")
    only = parser.parse_args().only
    machine_facts()
    jit.compile_threads()
    threads = sorted({1, 2, jit.most_threads()} & set(range(1, jit.most_threads() + 1)))
    plain: dict[bool, float] = {}
    quiet_rows, busy_rows = [], []
    for make in (yardsticks, passes, linear_fits, other_fits):
        for task in make():
            if only not in task.name and task.kind != "yardstick":
                continue
            note(task.name)
            seconds = measure(task, threads, busy=False)
            beside = measure(task, threads, busy=True)
            if task.kind == "yardstick":
                plain[task.name == "plain reading"] = seconds[0] / seconds[-1]
            times = [f"{1e3 * s:.1f}" for s in seconds]
            gain = f"{seconds[0] / seconds[-1]:.2f}"
            quiet_rows.append((task.name, *times, gain, verdict(task, seconds, plain[task.memory])))
            gain = f"{beside[0] / beside[-1]:.2f}"
            times = [f"{1e3 * s:.1f}" for s in beside]
            busy_rows.append((task.name, *times, gain, busy_verdict(task, beside)))
            print(*quiet_rows[-1], "| beside another:", *busy_rows[-1][1:], flush=True)
    columns = ("", *(f"{n} thread{'s' * (n > 1)}, ms" for n in threads), "gain", "")
    data = ", ".join(label(name) for name in DATA)
    about = (
        f"Medians. Data: {data}, digits. Threads of {numba.threading_layer()}. The gain of all "
        "threads over one; goals are shares of what a plain loop, or plain reading where a pass is "
        f"bound by memory, gains in the same run: {GOALS[PASS]} for passes, {GOALS[FIT]} for fits "
        f"above {1e3 * LONG:g} ms and for machines of several fits."
    )
    beside = (
        "The same while another program keeps one core busy; one thread has the other core for "
        f"itself. The goal is {BUSY_GOAL} for what takes more than {1e3 * LONG_BUSY:g} ms."
    )
    sections = [
        ("A quiet computer", f"{about}\n\n{table(quiet_rows, columns)}"),
        ("One core taken", f"{beside}\n\n{table(busy_rows, columns)}"),
    ]
    if not only:
        write_page(DOCS / "bench-threads.md", "Threads", "make bench-threads", sections)


if __name__ == "__main__":
    main()
