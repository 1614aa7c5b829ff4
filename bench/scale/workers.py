"""One and two worker processes on copies of a9a: seconds, bits, and what a call costs."""

import contextlib
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
from nesvm_jit import distributed, set_threads, solve, write_libsvm
from nesvm_jit.binary.linear import solve_problem
from nesvm_jit.binary.start import Start
from nesvm_jit.distributed.holder import ClassProblem
from nesvm_jit.distributed.rows import RowsOnWorkers
from nesvm_jit.models import MODELS
from nesvm_jit.settings import Settings
from scipy.sparse import random_array, vstack

from ..common import UNPACKED, median_time, note
from ..peers.datasets import load

COPIES = 62
WIDE = 10_000
REPEATS = 7
SETTINGS = Settings(solver="newton", bias=False)


def _text(name: str, X, y) -> Path:
    path = UNPACKED / f"{name}.txt"
    if not path.is_file():
        write_libsvm(path, X, y)
    return path


def _problem(rows: RowsOnWorkers) -> Any:
    return rows.pose(ClassProblem(1.0, {1.0: 1.0, -1.0: 1.0}, MODELS["csvm"](), False))


def copies(quick: bool) -> tuple[list[tuple], dict[str, float]]:
    """Seconds of one process and of 1 and 2 workers of one thread each; and ratios."""
    X, y = load("a9a")
    times = 5 if quick else COPIES
    X, y = vstack([X] * times, format="csr"), np.tile(y, times)
    path = _text(f"a9a-times-{times}", X, y)
    set_threads(1)
    found, taken = {}, {0: [], 1: [], 2: []}
    with contextlib.ExitStack() as stack:
        rows = {}
        for workers in (1, 2):
            client = stack.enter_context(distributed.connected("local", workers=workers))
            rows[workers] = RowsOnWorkers(client, str(path), None, X.shape[1], np.float64)
        for k in range(1 + REPEATS):  # in turns: a machine is slower now and then
            note(f"workers, run {k}")
            began = time.perf_counter()
            here = solve(X, y, solver="newton", bias=False)
            taken[0].append(time.perf_counter() - began)
            for workers in (1, 2):
                problem = _problem(rows[workers])
                began = time.perf_counter()
                found[workers] = solve_problem(problem, SETTINGS, Start())
                taken[workers].append(time.perf_counter() - began)
                problem.shard.close()
    seconds = {k: statistics.median(times[1:]) for k, times in taken.items()}
    names = {0: "one process, one thread", 1: "1 worker", 2: "2 workers"}
    apart = max(abs(f.objective / here.objective - 1.0) for f in found.values())
    off = max(np.abs(f.w - here.w).max() / np.abs(here.w).max() for f in found.values())
    table = [
        (names[k], f"{s:.2f}", f"{len(y) * here.n_iter / s / 1e6:.0f}") for k, s in seconds.items()
    ]
    ratios = {"speed-up": seconds[1] / seconds[2], "objective": apart, "weights": off}
    return table, {**ratios, "rows": len(y), "rounds": here.n_iter}


def call_times() -> list[tuple]:
    """Milliseconds of a pass over next to no rows with as many features: what a call costs."""
    X = random_array((4000, WIDE), density=0.002, format="csr", rng=np.random.default_rng(0))
    y = np.where(np.random.default_rng(1).random(4000) < 0.5, 1.0, -1.0)
    path, w = _text(f"wide-{WIDE}", X, y), np.zeros(WIDE)
    table = []
    for workers in (1, 2):
        with distributed.connected("local", workers=workers) as client:
            shard = _problem(RowsOnWorkers(client, str(path), None, WIDE, np.float64)).shard
            gradient = median_time(lambda: shard.sweep(w, 0.0, 1.0), 100, 5)  # noqa: B023
            shard.place(w, 0.0)
            shard.aim(w, 0.0)
            slope = median_time(lambda: shard.slope(1.0, 1.0), 100, 5)  # noqa: B023
            shard.close()
        table.append((workers, f"{1e3 * gradient:.1f}", f"{1e3 * slope:.1f}"))
    return table
