"""This tree beside another commit, task by task, in alternating runs: `make bench-compare`.

python -m bench.compare --base HEAD --limit 1.5

The other commit is checked out below build/. A process of each tree holds the data of a task; they
are asked in turn, so that what else the computer does falls on both. A task whose median is more
than `--limit` times the other tree's is measured again, and counts as slower if it stays so.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix, random, save_npz

from .common import RESULTS, machine_facts, note, table
from .peers.datasets import label, load

TREE = Path(__file__).parents[1]
TURNS = 9  # runs of a task by each tree
TRIES = 3  # times that a task must look slower before it counts as slower
SHORTEST = 0.02  # seconds of one run: a shorter call is repeated until then

WORKER = """
import json, sys, time, warnings
import numpy as np
from scipy.sparse import load_npz
import nesvm_jit
warnings.simplefilter("ignore")
X, y = load_npz(sys.argv[1]), np.load(sys.argv[2])
X = X.toarray() if sys.argv[3] == "dense" else X
names = {"X": X, "y": y, "nesvm_jit": nesvm_jit, "np": np}
exec(sys.argv[4], names)
work = compile(sys.argv[5], "task", "exec")
for _ in range(3):
    start = time.perf_counter()
    exec(work, names)
    once = time.perf_counter() - start
calls = max(1, int(float(sys.argv[6]) / once))
for _ in sys.stdin:
    start = time.perf_counter()
    for _ in range(calls):
        exec(work, names)
    print(json.dumps((time.perf_counter() - start) / calls), flush=True)
"""


@dataclass(frozen=True)
class Task:
    """Something to do with a data set in a running process."""

    name: str
    data: str
    work: str  # statements in which X and y are the data
    before: str = ""  # statements that are not timed


PATH = "nesvm_jit.path(X, y, costs='0.01:10:5', folds=3)"
NESVM = "nesvm_jit.solve(X, y, solver='nesvm', max_iter=100, tol=0, epsilon=0)"
RBF = "m = nesvm_jit.train(X, y, kernel='rbf')"
FITS = (
    Task("C-SVM, C = 1", "a9a", "nesvm_jit.solve(X, y, bias=False)"),
    Task("C-SVM, C = 100", "a9a", "nesvm_jit.solve(X, y, C=100.0, bias=False)"),
    Task("C-SVM with bias", "a9a", "nesvm_jit.solve(X, y)"),
    Task("100 rounds of nesvm", "a9a", NESVM),
    Task("LS-SVM", "a9a", "nesvm_jit.solve(X, y, model='lssvm')"),
    Task("LP-SVM", "a4a", "nesvm_jit.solve(X, y, model='lpsvm')"),
    Task("RBF, C = 1", "a4a", "nesvm_jit.solve(X, y, kernel='rbf')"),
    Task("RBF, C = 100", "a4a", "nesvm_jit.solve(X, y, kernel='rbf', C=100.0)"),
    Task("text, C = 1", "news20bydate halves", "nesvm_jit.solve(X, y, bias=False)"),
    Task("wide, C = 1", "wide", "nesvm_jit.solve(X, y)"),
    Task("10 classes, RBF", "digits", RBF),
    Task("10 classes, linear", "digits", "nesvm_jit.train(X, y)"),
    Task("path of 5 C and 3 folds", "digits", PATH),
    Task("3 classes, linear", "small", "nesvm_jit.train(X, y)"),
    Task("3 classes, RBF", "small", RBF),
    Task("one row predicted", "small", "m.predict(X[:1])", "m = nesvm_jit.train(X, y)"),
    Task("1000 rows predicted, RBF", "digits", "m.predict(X[:1000])", RBF),
)
PROCESSES = {
    "import of the package": ["-c", "import nesvm_jit"],
    "--help": ["-m", "nesvm_jit", "--help"],
    "train, code on disk": ["-m", "nesvm_jit", "train", "-q", "{text}", "{model}"],
}
MADE = ("small", "wide", "digits")  # data that need no file
COLD = "train, nothing compiled"
COLD_TURNS = 2


def made(name: str) -> tuple[object, np.ndarray]:
    """Data that no file is needed for, or those of the benchmarks."""
    rng = np.random.default_rng(0)
    if name == "small":
        y = np.arange(150) % 3
        return rng.standard_normal((150, 4)) + 1.5 * rng.standard_normal((3, 4))[y], y * 1.0
    if name == "wide":
        X = csr_matrix(random(400, 20_000, 0.01, random_state=0))
        return X, np.where(X @ rng.standard_normal(20_000) > 0.0, 1.0, -1.0)
    if name == "digits":
        from sklearn.datasets import load_digits

        X, y = load_digits(return_X_y=True)
        return X / 16.0, y.astype(float)
    return load(name)


@contextmanager
def process(tree: Path, cache: Path, task: Task, arrays: list[str]) -> Iterator[Callable]:
    """A warm process of a tree; calling it runs the task once and gives its seconds."""
    command = [sys.executable, "-c", WORKER, *arrays, task.before, task.work, str(SHORTEST)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=tree, env=environment(tree, cache), **pipes) as child:

        def run() -> float:
            child.stdin.write("\n")
            child.stdin.flush()
            line = child.stdout.readline()
            if not line:
                raise SystemExit(f"{task.name}: the process of {tree} has ended")
            return json.loads(line)

        yield run


def environment(tree: Path, cache: Path) -> dict[str, str]:
    """That of a process which imports the package from a tree."""
    return {**os.environ, "PYTHONPATH": str(tree), "NESVM_JIT_CACHE_DIR": str(cache)}


def in_turn(runs: list[Callable[[], float]], turns: int) -> list[float]:
    """The median seconds of each, the first to run being another one in every turn."""
    seconds: list[list[float]] = [[] for _ in runs]
    for turn in range(turns):
        for k in range(len(runs)):
            k = (k + turn) % len(runs)
            seconds[k].append(runs[k]())
    return [statistics.median(s) for s in seconds]


class Trees:
    """The other commit and this tree, with a folder of compiled code each."""

    def __init__(self, base: Path, folder: Path):
        self.trees, self.folder = [base, TREE], folder
        self.caches = [RESULTS / "compare" / "base-code", RESULTS / "compare" / "code"]

    def fit(self, task: Task) -> list[float]:
        """Median seconds of a task in a running process, base first."""
        X, y = made(task.data)
        rows, labels = self.folder / "X.npz", self.folder / "y.npy"
        save_npz(rows, csr_matrix(X), compressed=False)
        np.save(labels, y)
        layout = "dense" if isinstance(X, np.ndarray) else "sparse"
        arrays = [str(rows), str(labels), layout]
        with ExitStack() as stack:
            both = zip(self.trees, self.caches, strict=True)
            runs = [stack.enter_context(process(t, c, task, arrays)) for t, c in both]
            return in_turn(runs, TURNS)

    def start(self, arguments: list[str], cold: bool = False) -> list[float]:
        """Median seconds of a fresh process, base first."""
        text, model = self.folder / "text", self.folder / "model"
        if not text.exists():
            X, y = made("small")
            rows = [" ".join(f"{j + 1}:{v:.6f}" for j, v in enumerate(x)) for x in X]
            text.write_text("".join(f"{k:g} {row}\n" for k, row in zip(y, rows, strict=True)))
        command = [sys.executable, *(a.format(text=text, model=model) for a in arguments)]

        def run(tree: Path, cache: Path) -> float:
            with tempfile.TemporaryDirectory() as empty:
                settings = environment(tree, Path(empty) if cold else cache)
                start = time.perf_counter()
                quiet = subprocess.DEVNULL
                subprocess.run(command, cwd=tree, env=settings, check=True, stdout=quiet)
                return time.perf_counter() - start

        runs = [partial(run, *both) for both in zip(self.trees, self.caches, strict=True)]
        if not cold:
            in_turn(runs, 1)
        return in_turn(runs, COLD_TURNS if cold else TURNS)

    def works(self) -> dict[str, Callable[[], list[float]]]:
        """Everything that is compared, by name."""
        found: dict[str, Callable[[], list[float]]] = {}
        for task in FITS:
            data = task.data if task.data in MADE else label(task.data)
            found[f"{data}: {task.name}"] = partial(self.fit, task)
        found |= {name: partial(self.start, a) for name, a in PROCESSES.items()}
        return found | {COLD: partial(self.start, PROCESSES["train, code on disk"], cold=True)}


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """The tree of a commit, below build/."""
    with tempfile.TemporaryDirectory(dir=RESULTS) as folder:
        tree = Path(folder) / "base"
        git = ["git", "-C", str(TREE), "worktree"]
        try:
            subprocess.run([*git, "add", "-q", "--detach", str(tree), commit], check=True)
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=False)


def compare(
    works: dict[str, Callable[[], list[float]]], limit: float
) -> tuple[list[tuple], list[str]]:
    """(name, base, this, ratio) of every task, and the names of those that are slower."""
    rows, slower = [], []
    for name, work in works.items():
        for _ in range(TRIES):
            base, here = work()
            if here <= limit * base:
                break
        else:
            slower.append(name)
        rows.append((name, f"{1e3 * base:.3g}", f"{1e3 * here:.3g}", f"{here / base:.2f}"))
        note(f"{name}: {here / base:.2f} ×")
    return rows, slower


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.compare", description=__doc__)
    parser.add_argument("--base", default="HEAD", help="the commit to compare with")
    parser.add_argument("--limit", type=float, default=1.5, help="times slower that are a fault")
    parser.add_argument("--only", default="", help="the tasks whose names contain this")
    options = parser.parse_args()
    if options.limit <= 0.0:
        parser.error(f"--limit must be positive, got {options.limit:g}")
    facts = machine_facts()  # before the load that we make
    RESULTS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, checked_out(options.base) as base:
        works = Trees(base, Path(folder)).works()
        chosen = {name: work for name, work in works.items() if options.only in name}
        rows, slower = compare(chosen, options.limit)
    print(table(rows, ("task", f"{options.base}, ms", "this tree, ms", "times")))
    print(", ".join(f"{k} {v}" for k, v in facts.items()))
    if slower:
        print("slower:", "; ".join(slower))
        return 1
    print(f"no task is slower than {options.limit:g} × {options.base}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
