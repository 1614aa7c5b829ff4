"""Interpreted first, compiled when hot: which of the two a run is.

A run is one call of the public library. It is interpreted as long as that takes less time than
having its loops compiled, or loaded, would take; once it takes more, it begins again with compiled
code, as all later runs of its kind do. So no run is partly the one and partly the other. What a run
takes is counted in numbers that its loops read, not measured, so that it does not depend on what
else the computer does.
"""

import contextlib
import functools
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

import numpy as np

from ..errors import InputError
from .cache import is_kept

TIERS = ("auto", "compiled")
# Arguments that name a file of what is kept of an unfinished run: to go on from it.
KEPT = ("checkpoint", "state")
# Seconds, on the computer of docs/bench-startup.md.
CELL = 2.5e-7  # of a number that is read by an interpreted loop
CALL = 1e-5  # of any call
IMPORT = 0.5  # of importing numba
LOAD = 0.02  # of loading a loop that is kept in the cache
COMPILE = 0.6  # of compiling a loop that is not, unless the loop says another number

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class TooMuchWork(BaseException):
    """An interpreted run takes longer than compiled code would; it is begun again."""


class Kind:
    """Runs of one kind in this process: seconds that were interpreted so far, the loops that took
    them, and whether the next run is compiled."""

    def __init__(self) -> None:
        self.seconds, self.hot = 0.0, False
        self.loops: dict[tuple[str, str], Any] = {}  # by name and types of arguments


class Trial:
    """A run that is interpreted, and what compiled code for it would cost."""

    def __init__(self, kind: Kind):
        self.seconds, self.price = kind.seconds, 0.0 if "numba" in sys.modules else IMPORT
        self.loops = dict(kind.loops)
        self.price += sum(_price(loop, described) for (_, described), loop in self.loops.items())
        self._lock = threading.Lock()  # sub-problems of a machine are solved side by side

    def note(self, loop: Any, args: tuple[Any, ...]) -> None:
        """A call that comes next; TooMuchWork where compiled code would be ready sooner."""
        key = loop.name, describe(args)
        seconds = CALL + CELL * loop.work(*args)
        with self._lock:
            if key not in self.loops:
                self.loops[key] = loop
                self.price += _price(loop, key[1])
            self.seconds += seconds
            if self.seconds > self.price:
                raise TooMuchWork


# The run that this thread interprets; None where code is compiled.
trial: ContextVar[Trial | None] = ContextVar("trial", default=None)
_decided: ContextVar[bool] = ContextVar("decided", default=False)
_kinds: dict[tuple[Any, ...], Kind] = {}


def interpreted_first(run: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """A run that is interpreted while that takes less time than to have it compiled. It may be
    begun twice, so that nothing may be consumed by it, or written before it is finished. A run that
    can be resumed is compiled: it goes on with the arithmetic that it began with."""

    @functools.wraps(run)
    def decided(*args: Arguments.args, **given: Arguments.kwargs) -> Result:
        if _decided.get() or _compiled_only():
            return run(*args, **given)
        kind = _kinds.setdefault(_kind_of(run, args, given), Kind())
        began = time.monotonic()
        if not (kind.hot or any(given.get(k) is not None for k in KEPT)):
            attempt = Trial(kind)
            with _mode(attempt), contextlib.suppress(TooMuchWork):
                found = run(*args, **given)
                kind.seconds, kind.loops = attempt.seconds, attempt.loops
                return found
            kind.hot = True
            limit = given.get("time_limit")
            if isinstance(limit, (int, float)) and limit > 0:  # of the whole call
                left = max(limit - (time.monotonic() - began), 1e-3)
                given["time_limit"] = left
        with _mode(None):
            return run(*args, **given)

    return decided


@contextlib.contextmanager
def _mode(attempt: Trial | None) -> Iterator[None]:
    """Run what is inside interpreted, or compiled."""
    before, inside = trial.set(attempt), _decided.set(True)
    try:
        yield
    finally:
        trial.reset(before)
        _decided.reset(inside)


def compiled() -> contextlib.AbstractContextManager[None]:
    """Compile all that is run inside."""
    return _mode(None)


def _compiled_only() -> bool:
    """Whether NESVM_JIT_TIER asks for compiled code from the start."""
    asked = os.environ.get("NESVM_JIT_TIER", "auto")
    if asked not in TIERS:
        raise InputError(f"NESVM_JIT_TIER must be {' or '.join(TIERS)}, got {asked!r:.40}")
    return asked == "compiled"


def _kind_of(run: Any, args: tuple[Any, ...], given: dict[str, Any]) -> tuple[Any, ...]:
    """Runs of one kind use the same loops, as far as their arguments tell."""
    kind = [run.__qualname__, *given]
    for value in (*args, *map(given.get, sorted(given))):
        sort = type(value), getattr(value, "dtype", None)
        kind.append(value if isinstance(value, str) else sort)
    return tuple(kind)


# ---------------------------------------------------------------- work, and its price


def cells(*args: Any) -> int:
    """The numbers in the arrays among these arguments, and in tuples of them."""
    total = 0
    for a in args:
        if isinstance(a, np.ndarray):
            total += a.size
        elif isinstance(a, tuple):
            total += cells(*a)
    return total


def describe(args: tuple[Any, ...]) -> str:
    """The types of arguments, as `describe_types` in `cache` writes them."""
    return ",".join(_describe(a) for a in args)


def _describe(a: Any) -> str:
    if isinstance(a, np.ndarray):
        layout = "C" if a.flags.c_contiguous else "F" if a.flags.f_contiguous else "A"
        return f"{a.dtype.name}{a.ndim}{layout}{'w' if a.flags.writeable else 'r'}"
    if isinstance(a, tuple):
        name = type(a).__name__ if hasattr(a, "_fields") else ""
        return f"{name}({describe(a)})"
    if isinstance(a, bool):
        return "bool"
    if isinstance(a, (int, float)) and not isinstance(a, np.generic):
        return f"{type(a).__name__}64"
    return str(getattr(a, "dtype", a))


def _price(loop: Any, described: str) -> float:
    """Seconds until a loop could be run compiled."""
    if loop.compiled_for(described):
        return 0.0
    return LOAD if is_kept(loop.name, described) else float(loop.price)
