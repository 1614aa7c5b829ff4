"""Sub-problems solved one after another, where each needs all the memory or all the workers."""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from ..binary.solution import Solution
from ..checkpoint.checkpoint import Checkpoint, Slot
from ..settings import Settings
from .finished import solve_or_recall

SolveOne = Callable[[int, Settings, Slot | None], Solution]


def solve_in_sequence(
    count: int, solve_one: SolveOne, settings: Settings, checkpoint: Checkpoint | None
) -> list[Solution]:
    """The solutions of all sub-problems, from the checkpoint where they are there.

    They share the time limit. The callback is told which sub-problem it is; once it has asked to
    stop, those that follow end after an iteration with what they have.
    """
    began, stopped = time.perf_counter(), False

    def tell(k: int, row: dict[str, Any]) -> bool:
        nonlocal stopped
        assert settings.callback is not None
        asked = settings.callback({**row, "problem": k, "problems": count})
        stopped = stopped or bool(asked)
        return stopped

    def work(k: int, slot: Slot | None) -> Solution:
        own = settings
        if settings.callback is not None:
            own = replace(own, callback=partial(tell, k))
        if settings.time_limit is not None:
            spent = time.perf_counter() - began if slot is None else slot.began
            own = replace(own, time_limit=max(0.0, settings.time_limit - spent))
        return solve_one(k, own, slot)

    return [solve_or_recall(checkpoint, k, partial(work, k)) for k in range(count)]
