"""What a checkpoint keeps of sub-problems that are solved."""

from collections.abc import Callable

from ..binary.solution import Solution
from ..checkpoint.checkpoint import Checkpoint, Slot


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
        return Solution(**known)
    found = work(checkpoint.slot(number))
    if finished(found):
        checkpoint.finish(number, vars(found))
    return found
