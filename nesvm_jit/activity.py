"""The present activity of a call, for the progress line: long work that has no rounds to count."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.RLock()  # a signal may ask while it is held
_doing: dict[object, str] = {}  # texts of all activities, in the order in which they began


def begin(key: object, text: str) -> None:
    """Begin an activity; `text` describes it."""
    with _lock:
        _doing[key] = text


def end(key: object) -> None:
    """End an activity; without effect if it has not begun."""
    with _lock:
        _doing.pop(key, None)


def current() -> str:
    """Return the text of the activity that began last and has not ended, or an empty text."""
    with _lock:
        return next(reversed(_doing.values()), "")


@contextmanager
def doing(text: str) -> Iterator[None]:
    """Make the work inside an activity with this text."""
    key = object()
    begin(key, text)
    try:
        yield
    finally:
        end(key)
