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
        self.holding = 0  # deferrals that are under way
        self.held = False  # True if a signal has arrived in one that would have interrupted


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
    """Finish the work inside even if a signal interrupts it; then raise KeyboardInterrupt.

    A fit that hears signals hears them at once. Outside of `watched` this is for Ctrl-C alone, and
    in other threads than the main one it does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    plain = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if plain:
        signal.signal(signal.SIGINT, _hold)
    _heard.holding += 1
    try:
        yield
    finally:
        _heard.holding -= 1
        if plain:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if _heard.held and not _heard.holding:
            _heard.held = False
            raise KeyboardInterrupt


@contextlib.contextmanager
def remembered() -> Iterator[None]:
    """Let `asked_to_end` know of a Ctrl-C inside that Python itself handles: an exception that is
    raised where Python calls back (weak references, finalisers) is lost. Inside of `watched`, and
    in other threads than the main one, this does nothing."""
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, _remember)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _heard.first = None


def _remember(number: int, frame: FrameType | None) -> None:
    _heard.first = number
    if not _heard.holding:
        raise KeyboardInterrupt
    _heard.held = True


def _hold(number: int, frame: FrameType | None) -> None:
    _heard.held = True


def _handle(number: int, frame: FrameType | None) -> None:
    if _heard.first is not None:
        with contextlib.suppress(OSError):
            os.write(2, b"\n" * _heard.midline + b"nesvm-jit: interrupted\n")
        os._exit(128 + number)
    _heard.first = number
    try:
        if _heard.hear is None:
            raise KeyboardInterrupt
        _heard.hear()
    except KeyboardInterrupt:
        if not _heard.holding:
            raise
        _heard.held = True
