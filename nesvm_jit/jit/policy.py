"""The decorators that every compiled function of the package is made by.

`kernel` and `exact_kernel` make a `Kernel` of a body that says what chunk k of n does. Flags let
the compiler reorder sums and contract products, but never assume that there are no infinities or
NaN. `exact_*` allow nothing of the kind.
"""

import functools
from collections.abc import Callable
from typing import Any, ClassVar

import numba
from numba.extending import overload as _overload

from . import threads
from .cache import attach_cache
from .launch import make_entry

FAST = frozenset({"reassoc", "nsz", "arcp", "contract", "afn"})

Function = Callable[..., Any]


def _options(exact: bool) -> dict[str, Any]:
    return {"fastmath": False if exact else set(FAST), "nogil": True, "error_model": "numpy"}


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
        options = _options(exact)
        self.body = numba.njit(**options)(function)
        self.entry = make_entry(self.body, options)
        attach_cache(self.entry, f"{exact=}", self.name)

    def __call__(self, n: int, *args: Any) -> None:
        if numba.config.DISABLE_JIT:
            for k in range(n):
                self.body(k, n, *args)
        elif threads.run(self.entry, n, args):
            raise MemoryError(f"a loop of {self.name} needs more memory than there is")


def kernel(function: Function) -> Kernel:
    """A kernel whose sums may be reordered within a chunk."""
    return Kernel(function, exact=False)


def exact_kernel(function: Function) -> Kernel:
    """A kernel in strict IEEE arithmetic."""
    return Kernel(function, exact=True)


def exact_loop(function: Function) -> Any:
    """A serial loop in strict IEEE arithmetic, for what runs once per data set."""
    return _loop(function, exact=True)


def loop(function: Function) -> Any:
    """A serial loop whose sums may be reordered, for work that is sequential by nature."""
    return _loop(function, exact=False)


def _loop(function: Function, exact: bool) -> Any:
    dispatcher = numba.njit(**_options(exact))(function)
    attach_cache(dispatcher, f"{exact=}")
    return dispatcher


def helper(function: Function) -> Any:
    """A function for kernels to call; it is compiled into each of them."""
    return numba.njit(**_options(exact=False))(function)


def exact_helper(function: Function) -> Any:
    """A helper in strict IEEE arithmetic that allocates nothing.

    Without numba's memory manager: counting references to an array at every call cost the text
    parser half its speed and, the counter being shared, all gain from a second thread.
    """
    return numba.njit(_nrt=False, **_options(exact=True))(function)


def exact_inline(function: Function) -> Any:
    """An exact helper that is inlined wherever it is called; short bodies in hot loops only."""
    return numba.njit(_nrt=False, forceinline=True, **_options(exact=True))(function)


def overload(function: Function) -> Any:
    """Choose the body of `function` from the types of its arguments, inlined into kernels."""
    return _overload(
        function, inline="always", jit_options={"fastmath": set(FAST), "error_model": "numpy"}
    )
