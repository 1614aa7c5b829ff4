"""Estimate memory and time of a machine with many classes before training begins."""

from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError
from ..jit import ALWAYS_THERE, get_threads, memory_bytes
from .multiclass import n_problems

# Bytes of a sub-problem beside its arrays: its solution, its history and list entries.
PROBLEM_BYTES = 4000.0
# Seconds of every sub-problem, and of each of its entries in all passes together. 100 to 300 easy
# classes of 600 to 20 000 dense rows and 10 or 100 features took 0.8 to 1.3 times the estimate, one
# against the rest to 1e-3 on one thread; harder data take longer.
PROBLEM_SECONDS, ENTRY_SECONDS = 4e-3, 8e-8
MANY = 1000  # number of sub-problems from which on the estimate is shown before a run


class Estimate(NamedTuple):
    """The number of sub-problems, the bytes of all together, and the least seconds to expect."""

    problems: int
    bytes: float
    seconds: float


def estimate(
    n_rows: int, n_features: int, n_cells: int, n_classes: int, multiclass: str, linear: bool
) -> Estimate:
    """Estimate what training takes. Every sub-problem keeps its margins and its dual point; if it
    is a pair, its row numbers; if it is linear, its weights."""
    k = n_classes
    pairs, problems = multiclass == "ovo" and k > 2, n_problems(k, multiclass)
    # a row is in k - 1 pairs
    row_uses = float(n_rows) * (k - 1) if pairs else float(n_rows) * problems
    per_row = 24.0 if pairs else 16.0
    weights = 8.0 * n_features * problems if linear else 0.0
    held = problems * PROBLEM_BYTES + row_uses * per_row + weights
    cells = float(n_cells) * (row_uses / n_rows)
    seconds = (problems * PROBLEM_SECONDS + cells * ENTRY_SECONDS) / get_threads()
    return Estimate(problems, held, seconds)


def require_memory_for(found: Estimate, n_classes: int) -> None:
    """Raise InputError if there are more classes than fit into memory."""
    if found.problems < 2 or found.bytes <= ALWAYS_THERE:
        return
    most = memory_bytes()
    if found.bytes > most:
        raise InputError(
            f"y must have fewer classes: {n_classes} of them are {found.problems} sub-problems, "
            f"which need {found.bytes / 2**30:.0f} GB of memory and at least "
            f"{found.seconds / 3600.0:.1f} hours; there are {most / 2**30:.0f} GB"
        )


def estimate_long_training(
    X: Any, y: np.ndarray, kernel: str, multiclass: str | None
) -> Estimate | None:
    """Estimate what training on these rows takes if it has MANY sub-problems, else return None; X
    may be sparse or dense."""
    k, way = len(np.unique(y)), multiclass or usual_multiclass(kernel)
    if n_problems(k, way) < MANY:
        return None
    n, p = X.shape
    cells = X.size if isinstance(X, np.ndarray) else len(X.data)
    return estimate(n, p, cells, k, way, kernel == "linear")


def usual_multiclass(kernel: str) -> str:
    """Return the default of `multiclass`: "ovr" for linear machines, "ovo" with a kernel."""
    return "ovr" if kernel == "linear" else "ovo"
