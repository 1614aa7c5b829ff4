"""The clock of a call, from which every time limit is measured, and looks at it during long work.

Long work is cut into pieces and calls `look` between them. `look` ends it when its time is over, or
when it was asked to end.
"""

import math
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import copy_context
from typing import TypeVar

from . import signals

# Seconds that work continues after it was asked to end, so that it can finish an iteration: only
# then is its state complete and can be saved.
GRACE = 0.3
LOOK = 0.05  # seconds between two looks at work that a library does
PIECE = 0.2  # seconds that a piece of work takes, approximately
FIRST_PIECE = 8  # number of parts in the first piece
GROWTH = 4  # a piece has at most so many times as many parts as the one before


Made = TypeVar("Made")


class Clock:
    """The time limit of a call, and the seconds since it began; the seconds of runs that it
    resumes are included."""

    def __init__(self, limit: float | None = None):
        self.limit = limit
        self._began = time.perf_counter()

    def now(self) -> float:
        """Return the seconds since the call began."""
        return time.perf_counter() - self._began

    def add(self, seconds: float) -> None:
        """Add the seconds of an earlier run, which this one resumes."""
        self._began -= seconds

    def share(self, fits: float, began: float | None = None) -> float | None:
        """Return the seconds that a fit may take that began at `began`, or begins now: those it has
        used, and its share if the time left is divided by `fits`. Without a limit, return None."""
        if self.limit is None:
            return None
        now = self.now()
        own = max(0.0, self.limit - now) / max(1.0, fits) + now - (now if began is None else began)
        return min(own, max(0.0, self.limit - (now if began is None else began)))

    def left(self) -> float | None:
        """Return the seconds that a fit may take that begins now; None without a limit."""
        return None if self.limit is None else max(0.0, self.limit - self.now())


class Halt(KeyboardInterrupt):
    """Raised to end work whose time is over (`time_limit`), or that was asked to end
    (`interrupted`)."""

    def __init__(self, status: str):
        super().__init__()
        self.status = status


class _Watch(threading.local):
    """The reasons for which the work of a thread is ended: its time, and requests to end."""

    def __init__(self) -> None:
        self.active = False
        self.left: Callable[[], float] = _endless
        self.asked: Callable[[], bool] = signals.asked_to_end
        self.since = math.inf  # the time at which a request to end was first seen


def _endless() -> float:
    return math.inf


_watch = _Watch()


@contextmanager
def watching(
    left: Callable[[], float] | None = None, asked: Callable[[], bool] | None = None
) -> Iterator[None]:
    """Let `look` end the work inside when `left` returns no seconds, when a signal arrives or when
    `asked` returns True. The reasons of an outer `watching` hold inside, too."""
    outer = dict(vars(_watch))
    earlier, others = _watch.left, _watch.asked
    _watch.active = True
    if left is not None:
        _watch.left = lambda: min(left(), earlier())
    if asked is not None:
        _watch.asked = lambda: asked() or others()
    try:
        yield
    finally:
        vars(_watch).update(outer)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Keep `look` from ending the work inside, which is short and must be done."""
    outer, _watch.active = _watch.active, False
    try:
        yield
    finally:
        _watch.active = outer


def must_end() -> str:
    """Return the status with which this thread's work must end now, or an empty text."""
    if not _watch.active:
        return ""
    if _watch.asked():
        return "interrupted"
    return "time_limit" if _watch.left() <= 0.0 else ""


def look() -> None:
    """Raise `Halt` if the time of this thread's work is over, or if it was asked to end more than
    GRACE seconds ago."""
    if not _watch.active:
        return
    if _watch.asked():
        _watch.since = min(_watch.since, time.perf_counter())
        if time.perf_counter() - _watch.since >= GRACE:
            raise Halt("interrupted")
    elif _watch.left() <= 0.0:
        raise Halt("time_limit")


def pieces(parts: int) -> Iterator[slice]:
    """Divide work of `parts` independent parts into slices of about PIECE seconds; yield them with
    a look at the clock between two."""
    done, size = 0, FIRST_PIECE
    while done < parts:
        began = time.perf_counter()
        yield slice(done, min(parts, done + size))
        done += size
        seconds = max(time.perf_counter() - began, 1e-9)
        size = max(1, min(GROWTH * size, round(size * PIECE / seconds)))
        if done < parts:
            look()


def apart(work: Callable[[], Made]) -> Made:
    """Return what `work` returns: a long call of a library that knows nothing of this clock, but
    lets other threads run. It has a thread of its own; where the work is ended, the thread is left
    behind, and its result is dropped."""
    made: Future[Made] = Future()

    def run() -> None:
        try:
            made.set_result(work())
        except BaseException as e:
            made.set_exception(e)

    thread = threading.Thread(target=copy_context().run, args=(run,), daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(LOOK)
        look()
    return made.result()
