"""Progress on a terminal, one line that is written over, nothing in a pipe; and Ctrl-C in a fit."""

import contextlib
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

EVERY = 0.1  # seconds between two refreshes
LATER = 0.5  # seconds before the first: most fits are over by then
WAITING = 2.0  # seconds without a round, before saying why


class Progress:
    """A callback for solvers; used as a context, it leaves a clean line behind.

    Inside the context the first Ctrl-C asks the solver to end with the best it has, the second
    ends the program. An exception in their stead could be lost, or do harm, inside the compiler.
    """

    def __init__(
        self,
        tol: float,
        wanted: bool,
        line: "Callable[[dict, float, float], str] | None" = None,
        ending: str = "ending with the best model found; Ctrl-C again to give it up",
    ):
        self._shown = wanted and sys.stderr.isatty()
        self._tol, self._line, self._ending = tol, line or _line, ending
        self._started = time.perf_counter()
        self._next = self._started + LATER
        self._width = 0
        self._lock = threading.RLock()
        self._asked = False
        self._before: Any = None
        self._timer = threading.Timer(WAITING, self._explain)
        self._timer.daemon = True

    def __enter__(self) -> "Progress":
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._interrupt)
        if self._shown:
            self._timer.start()
        return self

    def __exit__(self, *_) -> None:
        self._timer.cancel()
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
        with self._lock:
            self._shown = False
            if self._width:
                print("\r" + " " * self._width + "\r", end="", file=sys.stderr, flush=True)

    def __call__(self, row: dict) -> bool:
        """Show a round; true when Ctrl-C was pressed."""
        self._timer.cancel()
        now = time.perf_counter()
        if self._shown and now >= self._next and not self._asked:
            self._next = now + EVERY
            self._show(self._line(row, self._tol, now - self._started))
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

    def _interrupt(self, number, _) -> None:
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


def _line(row: dict, tol: float, seconds: float) -> str:
    part = f"problem {row['problem'] + 1}/{row['problems']}  " if row.get("problems", 1) > 1 else ""
    away = f" ({row['gap'] / tol:.3g} x tolerance)" if tol > 0 and math.isfinite(row["gap"]) else ""
    return (
        f"{part}round {row['round']}  objective {row['objective']:.6g}  "
        f"gap {row['gap']:.2e}{away}  {seconds:.1f} s"
    )
