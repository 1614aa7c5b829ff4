"""Signals that ask a program to end: Ctrl-C, SIGTERM as batch systems send it, SIGHUP of a terminal
that is closed. One handler hears them all.

The first one raises KeyboardInterrupt, or does what a fit wants instead: it ends with the best
model that it has. The second one ends the program at once.
"""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

NUMBERS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
Hear = Callable[[], Any]


class _Heard:
    """The first signal, if one has come, and what is done about it."""

    def __init__(self) -> None:
        self.first: int | None = None
        self.hear: Hear | None = None
        self.midline = False  # whether the cursor of a terminal may be within a line
        self.depth = 0


_heard = _Heard()


def exit_status() -> int:
    """The exit status after the signal that has come, as shells count; after Ctrl-C if none has."""
    return 128 + (signal.SIGINT if _heard.first is None else _heard.first)


def asked_to_end() -> bool:
    """Whether a signal has come."""
    return _heard.first is not None


@contextlib.contextmanager
def watched(hear: Hear | None = None, midline: bool = False) -> Iterator[None]:
    """Hear signals inside: the first one calls `hear`, or raises KeyboardInterrupt. Signals that
    the program was started to ignore (`nohup`) stay ignored. Only the main thread hears any."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    outer = (_heard.hear, _heard.midline)
    before = {number: signal.getsignal(number) for number in NUMBERS}
    heard = [number for number, old in before.items() if old not in (signal.SIG_IGN, None)]
    _heard.hear, _heard.midline = hear, midline
    _heard.depth += 1
    for number in heard:
        signal.signal(number, _handle)
    try:
        yield
    finally:
        for number in heard:
            signal.signal(number, before[number])
        _heard.depth -= 1
        _heard.hear, _heard.midline = outer
        if not _heard.depth:
            _heard.first = None


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """Finish what is inside although a signal comes; it is raised afterwards."""
    came: list[bool] = []
    with watched(lambda: came.append(True)):
        yield
    if came:
        raise KeyboardInterrupt


def _handle(number: int, frame: FrameType | None) -> None:
    if _heard.first is not None:
        with contextlib.suppress(OSError):
            os.write(2, b"\n" * _heard.midline + b"nesvm-jit: interrupted\n")
        os._exit(128 + number)
    _heard.first = number
    if _heard.hear is None:
        raise KeyboardInterrupt
    _heard.hear()
