"""What a checkpoint keeps of sub-problems that are solved."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..binary import Solution
from ..checkpoint import Checkpoint, Slot


def solution_facts(s: Solution) -> dict[str, Any]:
    """All but the margins, which no machine needs."""
    return {**vars(s), "margins": None}


def solution_again(facts: dict[str, Any]) -> Solution:
    """A solution from these facts."""
    return Solution(**{**facts, "margins": np.zeros(0)})


def finished(s: Solution) -> bool:
    """Whether nothing would change if the run went on; at a limit, a later one may go further."""
    return s.status == "converged"


def solve_or_recall(
    checkpoint: Checkpoint | None, number: int, work: Callable[[Slot | None], Solution]
) -> Solution:
    """The solution of a sub-problem, from the checkpoint if it is there."""
    if checkpoint is None:
        return work(None)
    known = checkpoint.done(number)
    if known is not None:
        return solution_again(known)
    found = work(checkpoint.slot(number))
    if finished(found):
        checkpoint.finish(number, solution_facts(found))
    return found
