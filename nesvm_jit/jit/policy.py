"""The decorators that every compiled function of the package is made by.

`kernel` and `exact_kernel` make a `Kernel` of a body that says what chunk k of n does; `flags` has
what the compiler may do to it.

All functions stay what they are in Python: a run that is interpreted (`tier`) calls them as they
stand, and numba is imported when the first of them is compiled.
"""

import functools
import os
import threading
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from . import threads, tier
from .cache import described
from .flags import ALLOCATING, INLINE, options_of

# With numba's compiler switched off everything runs as plain Python.
PLAIN = os.environ.get("NUMBA_DISABLE_JIT", "0").strip() not in ("", "0")

Function = Callable[..., Any]
# What numba has not been told of yet: a function that compiled code may call, what chooses its body
# by the types of its arguments, and how that body is compiled.
_telling = threading.Lock()
_untold: list[tuple[Function, Function, dict[str, Any]]] = []


def _compiler() -> Any:
    """The module that imports numba, which takes longer than a small fit, told of all functions
    that compiled code may call."""
    with _telling:
        from . import compiling

        while _untold:
            compiling.tell(*_untold.pop())
    return compiling


class Kernel:
    """A compiled loop over chunks: called with (n, *args) it runs its body (k, n, *args) for every
    k from 0 to n − 1, on as many threads as are allowed and there are chunks for.

    Chunks write to memory of their own, and callers add up what they wrote in the order of chunks:
    the bits of a result do not depend on the number of threads.
    """

    registry: ClassVar[dict[str, "Kernel"]] = {}

    def __init__(self, function: Function, exact: bool):
        functools.update_wrapper(self, function)
        self.name = f"{function.__module__}.{function.__name__}"
        self.registry[self.name] = self
        self._function, self._exact = function, exact
        self.work: Function = tier.cells
        self.price = tier.COMPILE

    @functools.cached_property
    def entry(self) -> Any:
        """What runs its chunks, compiled for the arguments it meets."""
        return _compiler().make_kernel(self._function, self._exact, self.name)

    def compiled_for(self, arguments: str) -> bool:
        """Whether this process has code for arguments that are described so."""
        return "entry" in self.__dict__ and _has(self.entry, arguments)

    def __call__(self, n: int, *args: Any) -> None:
        trial = tier.trial.get()
        if PLAIN or trial is not None:
            with _interpreting(trial, self, args):
                for k in range(n):
                    self._function(k, n, *args)
        elif threads.run(self.entry, n, args):
            raise MemoryError(f"a loop of {self.name} needs more memory than there is")


class Loop:
    """A serial loop, compiled for the arguments it meets."""

    def __init__(self, function: Function, exact: bool):
        functools.update_wrapper(self, function)
        self.name = f"{function.__module__}.{function.__qualname__}"
        self._function, self._exact = function, exact
        self.work: Function = tier.cells
        self.price = tier.COMPILE
        _untold.append((self, lambda *_: function, options_of(exact)))  # kernels may call it, too

    @functools.cached_property
    def dispatcher(self) -> Any:
        """What numba compiles."""
        return _compiler().make_loop(self._function, self._exact, self.name)

    def compiled_for(self, arguments: str) -> bool:
        """Whether this process has code for arguments that are described so."""
        return "dispatcher" in self.__dict__ and _has(self.dispatcher, arguments)

    def __call__(self, *args: Any) -> Any:
        trial = tier.trial.get()
        if PLAIN or trial is not None:
            with _interpreting(trial, self, args):
                return self._function(*args)
        return self.dispatcher(*args)


def _has(dispatcher: Any, arguments: str) -> bool:
    return any(described(kinds) == arguments for kinds in dispatcher.overloads)


def _interpreting(trial: "tier.Trial | None", what: Any, args: tuple[Any, ...]) -> Any:
    """Note the work of a call that is interpreted; arithmetic wraps around and overflows silently,
    as it does in compiled code."""
    if trial is not None:
        trial.note(what, args)
    return np.errstate(all="ignore")


def kernel(function: Function) -> Kernel:
    """A kernel whose sums may be reordered within a chunk."""
    return Kernel(function, exact=False)


def exact_kernel(function: Function) -> Kernel:
    """A kernel in strict IEEE arithmetic."""
    return Kernel(function, exact=True)


def exact_loop(function: Function) -> Loop:
    """A serial loop in strict IEEE arithmetic, for what runs once per data set."""
    return Loop(function, exact=True)


def loop(function: Function) -> Loop:
    """A serial loop whose sums may be reordered, for work that is sequential by nature."""
    return Loop(function, exact=False)


def takes(work: Function, price: float = tier.COMPILE) -> Function:
    """What a call of a loop takes when it is interpreted, by its arguments and in numbers that are
    read in a Python loop: to be said where that is not about the numbers in its arrays. `price` is
    how many seconds compiling it takes, to be said of long ones."""

    def noted(loop: Kernel | Loop) -> Kernel | Loop:
        loop.work, loop.price = work, price
        return loop

    return noted


def helper(function: Function) -> Function:
    """A function for kernels to call; it is compiled into each of them."""
    return _told(function, options_of(exact=False))


def exact_helper(function: Function) -> Function:
    """A helper in strict IEEE arithmetic that allocates nothing.

    Without numba's memory manager: counting references to an array at every call cost the text
    parser half its speed and, the counter being shared, all gain from a second thread.
    """
    return _told(function, {**options_of(exact=True), "_nrt": False})


def exact_inline(function: Function) -> Function:
    """An exact helper that is inlined wherever it is called; short bodies in hot loops only."""
    return _told(function, {**options_of(exact=True), "_nrt": False, "forceinline": True})


def inline(function: Function) -> Function:
    """A function that allocates nothing, inlined in the arithmetic of what calls it."""
    return _told(function, INLINE)


def overload(function: Function, allocates: bool = False) -> Function:
    """Choose the body of `function` from the types of its arguments, inlined into kernels unless it
    allocates memory."""

    def told(chooser: Function) -> Function:
        _untold.append((function, chooser, ALLOCATING if allocates else INLINE))
        return chooser

    return told


def by_layout(dense: Function, compressed: Function) -> Function:
    """The decorator of a primitive of a matrix, its first argument, that has one body for arrays
    and one for compressed rows; it is inlined, in the arithmetic of what calls it."""

    def decorated(function: Function) -> Function:
        @functools.wraps(function)
        def primitive(X: Any, *args: Any) -> Any:
            return dense(X, *args) if isinstance(X, np.ndarray) else compressed(X, *args)

        def chosen(X: Any, *args: Any) -> Function:
            return dense if hasattr(X, "ndim") else compressed

        _untold.append((primitive, chosen, INLINE))
        return primitive

    return decorated


def _told(function: Function, options: dict[str, Any]) -> Function:
    _untold.append((function, lambda *_: function, options))
    return function
