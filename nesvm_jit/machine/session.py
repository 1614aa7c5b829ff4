"""One call of the library that makes several fits: its clock, its checkpoint, and its end."""

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from ..binary.solution import Solution
from ..checkpoint.checkpoint import Checkpoint, Slot, open_checkpoint
from ..checkpoint.form import (
    MismatchError,
    column,
    duration,
    fields,
    flag,
    floats,
    number,
    one_of,
    optional,
    sequence,
    table,
    text,
    whole,
)
from ..clock import Clock, Halt, watching
from ..settings import CUT_SHORT, STATUSES, Settings

Made = TypeVar("Made")
MATRIX_SHARE = 0.25  # share of the time that a kernel matrix for all fits may take


class Solved(NamedTuple):
    """A solved sub-problem, with its sigmoid where probabilities were asked for."""

    solution: Solution
    sigmoid: tuple[float, float] | None
    seconds: float


class Session:
    """What all fits of a call share: one clock, one wish to stop, one checkpoint.

    The time limit is that of the whole call. Once the callback of one fit has asked to stop, all
    others end after an iteration, too, with what they have.
    """

    def __init__(self, settings: Settings, clock: Clock | None = None):
        self.clock = Clock(settings.time_limit) if clock is None else clock
        self.stop = threading.Event()
        self.checkpoint: Checkpoint | None = None
        self.resumed: dict[str, Any] | None = None  # what this call goes on from
        self._callback = settings.callback

    def limit(
        self,
        settings: Settings,
        began: float | None = None,
        fits: float = 1.0,
        **where: Any,
    ) -> Settings:
        """Settings of a fit that begins now, or that began then: it has its share of the time that
        is left for so many fits, and the callback is told which fit it is, the seconds of the whole
        call (`elapsed`), and what it has gone on from, if it has (`resumed`)."""

        def callback(row: dict[str, Any]) -> bool:
            told = {**row, **where, "elapsed": self.clock.now()}
            if self.resumed is not None:
                told["resumed"] = self.resumed
            if self._callback is not None and self._callback(told):
                self.stop.set()
            return self.stop.is_set()

        return settings.derive(time_limit=self.clock.share(fits, began), callback=callback)

    def within(self, share: float, make: Callable[[], Made]) -> Made | None:
        """What `make` makes for all fits in a share of the time that is left;
        None where that is not enough, or where the call is asked to end."""
        left = self.clock.left()
        end = math.inf if left is None else self.clock.now() + share * left
        try:
            with watching(lambda: end - self.clock.now(), self.stop.is_set):
                return make()
        except Halt as halt:
            if halt.status == "interrupted":
                self.stop.set()
            return None

    def ending(self, number: int) -> str:
        """The status of a fit that need not be begun: there is no time left, or the call is to end,
        and the checkpoint does not have it either; nothing if it is to be made."""
        if self.checkpoint is not None and self.checkpoint.done(number) is not None:
            return ""
        if self.stop.is_set():
            return "interrupted"
        return "time_limit" if self.clock.left() == 0.0 else ""

    @contextmanager
    def saved(
        self, settings: Settings, data: Callable[[], list[Any]], **facts: Any
    ) -> Iterator[None]:
        """Save fits where the settings ask for a checkpoint; `data` gives their fingerprint."""
        with open_checkpoint(settings, data, self.clock, **facts) as self.checkpoint:
            if self.checkpoint is not None and settings.resume:
                self.resumed = {"seconds": self.clock.now(), **self.checkpoint.counts()}
            yield

    def recall(
        self, number: int, shape: tuple[int | None, int | None] = (None, None)
    ) -> Solved | None:
        """A sub-problem of this shape that the checkpoint has; None if it is to be solved."""
        known = None if self.checkpoint is None else self.checkpoint.done(number)
        if self.checkpoint is None or known is None:
            return None
        try:
            return _recalled(known, shape)
        except MismatchError as e:
            raise self.checkpoint.changed(e) from None

    def begin(self, number: int) -> tuple[float, Slot | None]:
        """When a sub-problem began, which is now or in an earlier run, and where it is saved."""
        slot = None if self.checkpoint is None else self.checkpoint.slot(number)
        return self.clock.now() if slot is None else slot.began, slot

    def end(
        self,
        number: int,
        began: float,
        solution: Solution,
        calibrate: Callable[[Solution], tuple[float, float]] | None = None,
    ) -> Solved:
        """A sub-problem that has been solved, calibrated, and kept in the checkpoint once nothing
        would change if it went on; at a limit, a later run may go further."""
        if solution.status == "interrupted":
            self.stop.set()
        sigmoid = None if calibrate is None else calibrate(solution)
        seconds = self.clock.now() - began
        whole = solution.status not in CUT_SHORT and not self.stop.is_set()
        if self.checkpoint is not None and whole:  # a stop may have cut calibration short
            facts = {"solution": vars(solution), "sigmoid": sigmoid, "seconds": seconds}
            self.checkpoint.finish(number, facts)
        return Solved(solution, sigmoid, seconds)

    def solve_in_sequence(
        self,
        settings: Settings,
        count: int,
        solve: Callable[[int, Settings, Slot | None], Solution],
    ) -> list[Solution]:
        """Sub-problems one after the other, each from the checkpoint or solved."""
        found: list[Solution] = []
        for k in range(count):
            known = self.recall(k)
            if known is None:
                began, slot = self.begin(k)
                where = {"problem": k, "problems": count}
                limited = self.limit(settings, began, count - k, **where)
                known = self.end(k, began, solve(k, limited, slot))
            found.append(known.solution)
        return found


def _recalled(known: Any, shape: tuple[int | None, int | None]) -> Solved:
    """A sub-problem of this many rows and features from what a checkpoint keeps of it."""
    n, p = shape
    solution = fields(
        w=optional(floats(p)),
        beta=optional(floats(n)),
        **dict.fromkeys(("b", "objective", "dual_objective", "gap"), number),
        **dict.fromkeys(("alpha", "margins"), floats(n)),
        certified=flag,
        n_iter=whole,
        status=one_of(*STATUSES),
        **dict.fromkeys(("solver", "why", "model"), text),
        history=table(column),
        bias_range=optional(sequence(number, number)),
    )
    fields(solution=solution, sigmoid=optional(sequence(number, number)), seconds=duration)(known)
    if (known["solution"]["w"] is None) == (known["solution"]["beta"] is None):
        raise MismatchError("either w or beta is required")
    sigmoid = known["sigmoid"] and tuple(known["sigmoid"])
    found = Solution(**known["solution"])
    if found.bias_range is not None:
        lower, upper = found.bias_range
        found = replace(found, bias_range=(lower, upper))
    return Solved(found, sigmoid, known["seconds"])
