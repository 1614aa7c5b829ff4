"""What a machine of many classes will take, told before the work begins."""

from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError
from ..jit import get_threads, memory_bytes

# Bytes of a sub-problem beside its arrays: its solution, history and place in lists.
PROBLEM_BYTES = 4000.0
# Seconds of a sub-problem however small it is, and of an entry in all passes over it: 100 to 300
# easy classes of 600 to 20 000 dense rows and 10 or 100 features took 0.8 to 1.3 times as long as
# these say, one against the rest to 1e-3 on one thread; harder data take longer.
PROBLEM_SECONDS, ENTRY_SECONDS = 4e-3, 8e-8
# Bytes that a process has, or it would not have come so far: the compiler alone takes more.
ALWAYS_THERE = 2.0**26
MANY = 1000  # sub-problems from which on a run is told what it will take


class Estimate(NamedTuple):
    """Of all sub-problems together; `seconds` is the least that is to be expected."""

    problems: int
    bytes: float
    seconds: float


def estimate(
    n_rows: int, n_features: int, n_cells: int, n_classes: int, multiclass: str, linear: bool
) -> Estimate:
    """What training takes: every sub-problem keeps its margins and dual point, its row numbers in
    pairs, and its weights where it is linear."""
    k = n_classes
    pairs = multiclass == "ovo" and k > 2
    problems = 1 if k == 2 else k * (k - 1) // 2 if pairs else k
    # a row is in k - 1 pairs
    row_uses = float(n_rows) * (k - 1) if pairs else float(n_rows) * problems
    per_row = 24.0 if pairs else 16.0
    weights = 8.0 * n_features * problems if linear else 0.0
    held = problems * PROBLEM_BYTES + row_uses * per_row + weights
    cells = float(n_cells) * (row_uses / n_rows)
    seconds = (problems * PROBLEM_SECONDS + cells * ENTRY_SECONDS) / get_threads()
    return Estimate(problems, held, seconds)


def require_memory_for(found: Estimate, n_classes: int) -> None:
    """Refuse more classes than there is memory for."""
    if found.problems < 2 or found.bytes <= ALWAYS_THERE:
        return
    most = memory_bytes()
    if found.bytes > most:
        raise InputError(
            f"y must have fewer classes: {n_classes} of them are {found.problems} sub-problems, "
            f"which need {found.bytes / 2**30:.0f} GB of memory and at least "
            f"{found.seconds / 3600.0:.1f} hours; there are {most / 2**30:.0f} GB"
        )


def estimate_training(X: Any, y: np.ndarray, kernel: str, multiclass: str | None) -> Estimate:
    """What training on these rows takes, packed ones or an array."""
    n, p = X.shape
    cells = X.size if isinstance(X, np.ndarray) else len(X.data)
    linear = kernel == "linear"
    way = multiclass or usual_multiclass(kernel)
    return estimate(n, p, cells, len(np.unique(y)), way, linear)


def usual_multiclass(kernel: str) -> str:
    """One class against the rest when linear, pairs with a kernel."""
    return "ovr" if kernel == "linear" else "ovo"
