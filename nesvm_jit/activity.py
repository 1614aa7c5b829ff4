"""What a call is doing that takes long and counts no rounds, for a progress line to say."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_doing: dict[object, str] = {}  # in the order in which it was begun


def begin(key: object, text: str) -> None:
    """Something begins that is said in these words."""
    with _lock:
        _doing[key] = text


def end(key: object) -> None:
    """It is over, or has never begun."""
    with _lock:
        _doing.pop(key, None)


def current() -> str:
    """What was begun last and is not over; nothing if there is nothing."""
    with _lock:
        return next(reversed(_doing.values()), "")


@contextmanager
def doing(text: str) -> Iterator[None]:
    """What is inside is said in these words."""
    key = object()
    begin(key, text)
    try:
        yield
    finally:
        end(key)
