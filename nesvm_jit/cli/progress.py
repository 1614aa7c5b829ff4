"""Progress on a terminal, one line that is written over and nothing in a pipe; and what a signal to
end means for what runs."""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from ..signals import watched

EVERY = 0.1  # seconds between two refreshes
LATER = 0.5  # seconds before the first: most fits are over by then
WAITING = 2.0  # seconds without a row, after which a fit says why
ENDING = "ending with the best model found; Ctrl-C again to give it up"

Row = dict[str, Any]
Line = Callable[[Row, Row, float], str]  # what to show of a row, the first row, and the seconds


class Progress:
    """A callback that shows a line; used as a context, it leaves a clean terminal behind.

    Inside the context Ctrl-C, SIGTERM and SIGHUP raise KeyboardInterrupt, and again at the next
    call, since an exception inside the compiler's own callbacks is lost. With `ending`, for fits,
    the first of them shows that text and asks the fit to end with the best it has. The second
    ends the program.
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
        self._watching = watched(self._interrupt, self._shown)
        self._timer = threading.Timer(WAITING, self._explain)
        self._timer.daemon = True

    def __enter__(self) -> "Progress":
        self._watching.__enter__()
        if self._shown and self._ending:
            self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._watching.__exit__(None, None, None)
        with self._lock:
            if self._width:
                self._print(" " * self._width + "\r")
            self._shown = False

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
            self._print(line + padding)

    def _print(self, line: str) -> None:
        try:
            print("\r" + line, end="", file=sys.stderr, flush=True)
        except OSError:  # the terminal is gone, what runs goes on
            self._shown = False

    def _explain(self) -> None:
        if not self._asked:
            self._show("preparing; the first run of its kind compiles, later ones start at once")

    def _interrupt(self) -> None:
        self._asked = True
        if not self._ending:
            raise KeyboardInterrupt
        with contextlib.suppress(RuntimeError):  # the signal came in the middle of a line
            self._show(self._ending)


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return 80
