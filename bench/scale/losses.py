"""What it takes to build a lost shard again: by repeating the calls of its log, or from a state
that was saved before. Bytes and passes are counted, not timed."""

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
from nesvm_jit import distributed
from nesvm_jit.binary.linear import solve_problem
from nesvm_jit.binary.start import Start
from nesvm_jit.checkpoint.checkpoint import Checkpoint
from nesvm_jit.distributed.calls import Call
from nesvm_jit.distributed.holder import ClassProblem
from nesvm_jit.distributed.rows import RowsOnWorkers
from nesvm_jit.models import MODELS
from nesvm_jit.settings import Settings

from ..common import UNPACKED, note
from .made import text_file

ROWS, FEATURES = 200_000, 200
SETTINGS = Settings(tol=1e-5, C=1e-3, max_iter=200)
# Calls of a log that read all rows; a step reads only those whose u changes, and is not counted as
# a pass by problems either.
PASSES = {"sweep", "margins_at", "place", "aim"}


def _passes(log: list[Call]) -> int:
    known_margins = sum(call.method == "place" and call.args[2] is not None for call in log)
    return sum(call.method in PASSES for call in log) - known_margins


def what_losses_cost() -> list[tuple]:
    """For each engine, at the end of a run: passes so far, passes that a lost shard would repeat,
    kilobytes of the log, and megabytes of a saved state."""
    path = text_file(ROWS, FEATURES)
    table = []
    with distributed.connected("local", workers=2) as client:
        rows = RowsOnWorkers(client, str(path), None, FEATURES, np.float64)
        for engine in ("nesvm", "homotopy", "newton"):
            note(f"losses, {engine}")
            costs = dict.fromkeys(rows.labels, SETTINGS.C)
            problem = rows.pose(ClassProblem(1.0, costs, MODELS["csvm"](), True))
            table.append((engine, *_measure(problem, replace(SETTINGS, solver=engine))))
            problem.shard.close()
        rows.close()
    return table


def _measure(problem: Any, settings: Settings) -> tuple:
    seen = []

    def measure(row: dict) -> None:
        log = problem.shard.log.calls()
        seen.append((problem.passes, _passes(log), len(pickle.dumps(log))))

    file = UNPACKED / "losses.state"
    with Checkpoint(file, 1e-9, {}) as checkpoint:
        watched = replace(settings, callback=measure)
        found = solve_problem(problem, watched, Start(slot=checkpoint.slot(0)))
    saved = file.stat().st_size
    file.unlink()
    passes, repeated, held = seen[-1]
    return found.n_iter, f"{passes:.0f}", repeated, f"{held / 1e3:.0f}", f"{saved / 1e6:.1f}"
