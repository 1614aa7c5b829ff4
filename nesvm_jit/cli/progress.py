"""Progress on a terminal: one line that is written over; nothing in a pipe."""

import math
import sys
import threading
import time

EVERY = 0.1  # seconds between two refreshes
LATER = 0.5  # seconds before the first: most fits are over by then


class Progress:
    """A callback for solvers; used as a context, it leaves a clean line behind."""

    def __init__(self, tol: float, wanted: bool):
        self._shown = wanted and sys.stderr.isatty()
        self._tol = tol
        self._started = time.perf_counter()
        self._next = self._started + LATER
        self._width = 0
        self._lock = threading.Lock()

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_) -> None:
        if self._width:
            print("\r" + " " * self._width + "\r", end="", file=sys.stderr, flush=True)

    def __call__(self, row: dict) -> None:
        now = time.perf_counter()
        if not self._shown or now < self._next:
            return
        with self._lock:
            self._next = now + EVERY
            line = _line(row, self._tol, now - self._started)
            padding = " " * max(0, self._width - len(line))
            self._width = len(line)
            print("\r" + line + padding, end="", file=sys.stderr, flush=True)


def _line(row: dict, tol: float, seconds: float) -> str:
    part = f"problem {row['problem'] + 1}/{row['problems']}  " if row.get("problems", 1) > 1 else ""
    away = f" ({row['gap'] / tol:.3g} x tolerance)" if tol > 0 and math.isfinite(row["gap"]) else ""
    return (
        f"{part}round {row['round']}  objective {row['objective']:.6g}  "
        f"gap {row['gap']:.2e}{away}  {seconds:.1f} s"
    )
