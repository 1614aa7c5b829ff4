"""The clock of a call, which every time limit is read from; and looks at it from inside long work.

Work of more than a moment is cut into pieces, between which it calls `look`: that ends it where its
time is over, or where somebody has asked it to end.
"""

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from . import signals

# Seconds that work goes on after it was asked to end, for an iteration to come to its end, where
# states are whole and can be saved.
GRACE = 0.3
PIECE = 0.2  # seconds that a piece of work takes, about
FIRST_PIECE = 8  # parts of the first one
GROWTH = 4  # times as many parts as the last piece had, at most


class Clock:
    """Seconds since a call began, those of the runs that it resumes included, and its limit."""

    def __init__(self, limit: float | None = None):
        self.limit = limit
        self._began = time.perf_counter()

    def now(self) -> float:
        """Seconds since the call began."""
        return time.perf_counter() - self._began

    def add(self, seconds: float) -> None:
        """Count seconds of an earlier run, which this one resumes."""
        self._began -= seconds

    def share(self, fits: float, began: float | None = None) -> float | None:
        """Seconds that a fit may take which began then, where what is left now is shared by so many
        fits; None without a limit."""
        if self.limit is None:
            return None
        now = self.now()
        own = max(0.0, self.limit - now) / max(1.0, fits) + now - (now if began is None else began)
        return min(own, max(0.0, self.limit - (now if began is None else began)))

    def left(self, began: float | None = None) -> float | None:
        """Seconds that a fit may take that begins now, or that began then; None without a limit."""
        if self.limit is None:
            return None
        return max(0.0, self.limit - (self.now() if began is None else began))


class Halt(KeyboardInterrupt):
    """Ends work whose time is over (`time_limit`), or that was asked to end (`interrupted`)."""

    def __init__(self, status: str):
        super().__init__()
        self.status = status


class _Watch(threading.local):
    """What the work of a thread is watched for."""

    def __init__(self) -> None:
        self.active = False
        self.left: Callable[[], float] = _endless
        self.asked: Callable[[], bool] = signals.asked_to_end
        self.since = math.inf  # when it was first seen that somebody asked


def _endless() -> float:
    return math.inf


_watch = _Watch()


@contextmanager
def watching(
    left: Callable[[], float] | None = None, asked: Callable[[], bool] | None = None
) -> Iterator[None]:
    """Let `look` end what is inside: where no seconds are left, or where a signal or `asked` wants
    it to end; what was watched for outside is watched for inside, too."""
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
    """What is inside is not ended by `look`: it is short, and has to be done."""
    outer, _watch.active = _watch.active, False
    try:
        yield
    finally:
        _watch.active = outer


def must_end() -> str:
    """Why work of this thread must end, a status, or nothing."""
    if not _watch.active:
        return ""
    if _watch.asked():
        return "interrupted"
    return "time_limit" if _watch.left() <= 0.0 else ""


def look() -> None:
    """Raise `Halt` where the time of this thread's work is over, or where it was asked to end
    longer ago than `GRACE`."""
    if not _watch.active:
        return
    if _watch.asked():
        _watch.since = min(_watch.since, time.perf_counter())
        if time.perf_counter() - _watch.since >= GRACE:
            raise Halt("interrupted")
    elif _watch.left() <= 0.0:
        raise Halt("time_limit")


def pieces(parts: int) -> Iterator[slice]:
    """Work of so many independent parts in pieces of about a fifth of a second, with a look
    between two of them."""
    done, size = 0, FIRST_PIECE
    while done < parts:
        began = time.perf_counter()
        yield slice(done, min(parts, done + size))
        done += size
        seconds = max(time.perf_counter() - began, 1e-9)
        size = max(1, min(GROWTH * size, round(size * PIECE / seconds)))
        if done < parts:
            look()
