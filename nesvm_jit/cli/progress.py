"""Progress on a terminal, one line that is written over and nothing in a pipe; and Ctrl-C."""

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

EVERY = 0.1  # seconds between two refreshes
LATER = 0.5  # seconds before the first: most fits are over by then
WAITING = 2.0  # seconds without a row, after which a fit says why
ENDING = "ending with the best model found; Ctrl-C again to give it up"

Row = dict[str, Any]
Line = Callable[[Row, Row, float], str]  # what to show of a row, the first row, and the seconds


class Progress:
    """A callback that shows a line; used as a context, it leaves a clean terminal behind.

    Inside the context Ctrl-C raises KeyboardInterrupt, and again at the next call, since an
    exception inside the compiler's own callbacks is lost. With `ending`, for fits, the first
    Ctrl-C shows that text and asks the fit to end with the best it has, the second ends the
    program.
    """

    def __init__(self, line: Line | None, wanted: bool, ending: str | None = None) -> None:
        self._line, self._ending = line, ending
        self._shown = wanted and sys.stderr.isatty()
        self._started = time.perf_counter()
        self._next = self._started + LATER
        self._first: Row | None = None
        self._width = 0
        self._lock = threading.RLock()
        self._asked = False
        self._before: Any = None
        self._timer = threading.Timer(WAITING, self._explain)
        self._timer.daemon = True

    def __enter__(self) -> "Progress":
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._interrupt)
        if self._shown and self._ending:
            self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
        with self._lock:
            self._shown = False
            if self._width:
                print("\r" + " " * self._width + "\r", end="", file=sys.stderr, flush=True)

    def __call__(self, row: Row) -> bool:
        """Show a row; true when Ctrl-C asks the fit to end."""
        if self._asked and not self._ending:
            raise KeyboardInterrupt
        self._timer.cancel()
        self._first = self._first or row
        now = time.perf_counter()
        if self._shown and self._line and now >= self._next and not self._asked:
            self._next = now + EVERY
            self._show(self._line(row, self._first, now - self._started))
        return self._asked

    def _show(self, line: str) -> None:
        with self._lock:
            if not self._shown:
                return
            line = line[: max(0, _columns() - 1)]
            padding = " " * max(0, self._width - len(line))
            self._width = len(line)
            print("\r" + line + padding, end="", file=sys.stderr, flush=True)

    def _explain(self) -> None:
        if not self._asked:
            self._show("preparing; the first run of its kind compiles, later ones start at once")

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if not self._ending:
            self._asked = True
            raise KeyboardInterrupt
        if self._asked:
            with contextlib.suppress(OSError):
                os.write(2, b"\n" * self._shown + b"nesvm-jit: interrupted\n")
            os._exit(130)
        self._asked = True
        with contextlib.suppress(RuntimeError):  # the signal came in the middle of a line
            self._show(self._ending)


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return 80
