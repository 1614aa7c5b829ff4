"""Show progress as one line of a terminal that is overwritten (nothing in a pipe), and handle
signals that ask the work to end."""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from .. import activity
from ..signals import watched
from .words import going_on

EVERY = 0.1  # seconds between two lines, at least
LATER = 0.5  # seconds before the first line; most fits take less
TICK = 0.5  # seconds after which a line is shown again with the present time
WAITING = 2.0  # seconds without a row after which a fit shows PREPARING
PREPARING = "preparing; the first run of its kind compiles, later ones do not"
ENDING = "ending with the best model found; Ctrl-C again to give it up"
ENDING_AFTER = "it ends after that; Ctrl-C again to give it up"

Row = dict[str, Any]
Line = Callable[[Row, Row, float], str]  # makes a line of a row, the first row and the seconds


class Progress:
    """A callback that shows a line. Used as a context, it clears the line at the end.

    Inside the context, Ctrl-C, SIGTERM and SIGHUP raise KeyboardInterrupt at once, and again at
    the next call, since an exception inside the compiler's callbacks is lost. Fits give an
    `ending` text: the first signal then shows this text and asks the fit to end with its best
    result. The second signal ends the program.
    """

    def __init__(self, line: Line | None, wanted: bool, ending: str | None = None) -> None:
        self._line, self._ending = line, ending
        self._wanted = wanted
        self._shown = wanted and sys.stderr.isatty()
        self._started = time.perf_counter()
        self._next = self._started + LATER
        self._first: Row | None = None
        self._row: Row | None = None  # the latest row, whose clock began at `_since`
        self._since = self._started
        self._width = 0
        self._lock = threading.RLock()
        self._signalled = False
        self._watching = watched(self._interrupt, self._shown)
        self._over = threading.Event()
        self._ticker = threading.Thread(target=self._tick_on, daemon=True)

    def __enter__(self) -> "Progress":
        self._watching.__enter__()
        if self._shown:
            self._ticker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._watching.__exit__(None, None, None)
        with self._lock:
            if self._width:
                self._print(" " * self._width + "\r")
            self._shown = False

    def __call__(self, row: Row) -> bool:
        """Show a row; return True if a signal asks the fit to end."""
        if self._signalled and not self._ending:
            raise KeyboardInterrupt
        if self._first is None:
            self._first = row
            if self._wanted and "resumed" in row:
                self._say(going_on(row["resumed"]))
        now = time.perf_counter()
        self._row, self._since = row, now - row["elapsed"] if "elapsed" in row else self._started
        if now >= self._next:
            self._refresh(now)
        return self._signalled

    def _refresh(self, now: float) -> None:
        text = "" if not self._shown or self._signalled else self._text(now)
        if text:
            self._next = now + EVERY
            self._show(text)

    def _text(self, now: float) -> str:
        """Return the line for the present activity, or for the latest row if there is none."""
        doing = activity.current()
        if doing:
            return f"{doing}  {now - self._since:.1f} s"
        if self._row is not None and self._first is not None:
            return self._line(self._row, self._first, now - self._since) if self._line else ""
        if self._ending and now - self._started >= WAITING:
            return f"{PREPARING}  {now - self._started:.1f} s"
        return ""

    def _tick_on(self) -> None:
        while not self._over.wait(TICK):
            self._tick()

    def _tick(self) -> None:
        """Show the line again if it is older than TICK."""
        now = time.perf_counter()
        if now >= self._next + TICK - EVERY:
            self._refresh(now)

    def _say(self, line: str) -> None:
        """Print a line that is not overwritten."""
        with self._lock, contextlib.suppress(OSError):
            wiped = "\r" + " " * self._width + "\r" if self._width else ""
            print(f"{wiped}nesvm-jit: {line}", file=sys.stderr, flush=True)
            self._width = 0

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
        except OSError:  # the terminal is closed; the work continues
            self._shown = False

    def _interrupt(self) -> None:
        self._signalled = True
        if not self._ending:
            raise KeyboardInterrupt
        with contextlib.suppress(RuntimeError):  # a line was being printed when the signal arrived
            doing = activity.current()
            self._show(f"{doing}; {ENDING_AFTER}" if doing else self._ending)


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return 80
