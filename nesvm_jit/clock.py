"""The clock of a call: every time limit is read from it."""

import time


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

    def left(self, began: float | None = None) -> float | None:
        """Seconds that a fit may take that begins now, or that began then; None without a limit."""
        if self.limit is None:
            return None
        return max(0.0, self.limit - (self.now() if began is None else began))
