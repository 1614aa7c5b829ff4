"""Handle the signals that ask a program to end: Ctrl-C, SIGTERM (from batch systems) and SIGHUP
(from a terminal that is closed).

The first signal raises KeyboardInterrupt, or calls a function instead: fits use this to end with
the best model that they have. The second signal ends the program at once.
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
    """The first signal, if one has arrived, and the function to call for it."""

    def __init__(self) -> None:
        self.first: int | None = None
        self.hear: Hear | None = None
        self.midline = False  # True if the cursor of a terminal may be within a line
        self.depth = 0


_heard = _Heard()


def exit_status() -> int:
    """Return the exit status that shells give a program ended by the signal that has arrived, or by
    Ctrl-C if none has."""
    return 128 + (signal.SIGINT if _heard.first is None else _heard.first)


def asked_to_end() -> bool:
    """Return True if a signal has arrived."""
    return _heard.first is not None


@contextlib.contextmanager
def watched(hear: Hear | None = None, midline: bool = False) -> Iterator[None]:
    """Handle signals inside: the first one calls `hear`, or raises KeyboardInterrupt without it.

    Signals that the program ignored when it was started (`nohup`) stay ignored. In other threads
    than the main one this does nothing.
    """
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
    """Finish the work inside even if a signal arrives; then raise KeyboardInterrupt."""
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
