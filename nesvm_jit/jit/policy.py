"""The decorators that every compiled function of the package is made by.

`kernel` and `exact_kernel` make a `Kernel`: one Python body, compiled with `prange` in parallel
and, where that is not safe, serially. Flags let the compiler reorder sums and contract products,
but never assume that there are no infinities or NaN. `exact_*` allow nothing of the kind.
"""

import functools
import time
from collections.abc import Callable
from typing import Any, ClassVar

import numba
import numpy as np
from numba.extending import overload as _overload

from . import threads
from .cache import CodeCache, caching_enabled

FAST = frozenset({"reassoc", "nsz", "arcp", "contract", "afn"})
SMALL_BYTES = 1 << 18  # arguments of fewer bytes are done with before a second thread is awake

Function = Callable[..., Any]


def _options(exact: bool) -> dict[str, Any]:
    return {"fastmath": False if exact else set(FAST), "nogil": True, "error_model": "numpy"}


def _compile(function: Function, exact: bool, parallel: bool) -> Any:
    """One dispatcher of `function`, with our cache."""
    dispatcher = numba.njit(parallel=parallel, **_options(exact))(function)
    if caching_enabled() and not numba.config.DISABLE_JIT:
        variant = f"{parallel=} {exact=} {numba.config.BOUNDSCHECK=} {numba.config.OPT=}"
        dispatcher._cache = CodeCache(function, variant)
    return dispatcher


class Kernel:
    """A compiled function that runs on all threads asked for when that pays and is safe, else on
    one.

    It does not pay for small arrays, nor while other programs keep the cores busy: then the second
    thread may take 10 ms to come. It is not safe while another thread of this process is inside a
    parallel kernel (one threading layer of numba aborts, the others would oversubscribe), nor in a
    forked child whose parent has used OpenMP (it aborts). Both variants give the same bits.
    """

    registry: ClassVar[dict[str, "Kernel"]] = {}

    def __init__(self, function: Function, exact: bool):
        functools.update_wrapper(self, function)
        self.registry[f"{function.__module__}.{function.__name__}"] = self
        self.serial = _compile(function, exact, parallel=False)
        self.parallel = _compile(function, exact, parallel=True)

    def __call__(self, *args: Any) -> Any:
        parallel = threads.parallel_allowed() and (
            threads.worker_is("eager") or self._parallel_pays(args)
        )
        if not parallel or not threads.in_parallel.acquire(blocking=False):
            return self.serial(*args)
        before, known = numba.get_num_threads(), len(_signatures(self.parallel))
        wall, cpu = time.perf_counter(), time.process_time()
        try:
            if before != threads.get_threads():
                numba.set_num_threads(threads.get_threads())
            return self.parallel(*args)
        finally:
            if before != threads.get_threads():
                numba.set_num_threads(before)
            if known == len(_signatures(self.parallel)):  # else it was compiled or loaded meanwhile
                threads.crowd.watch(time.perf_counter() - wall, time.process_time() - cpu)
            threads.in_parallel.release()

    def _parallel_pays(self, args: tuple[Any, ...]) -> bool:
        if _size_of(args) < SMALL_BYTES:
            return False
        return not (threads.crowd.here() and self._serial_is_ready())

    def _serial_is_ready(self) -> bool:
        """Whether the serial variant need not be compiled first."""
        if _signatures(self.serial):
            return True
        known, cache = _signatures(self.parallel), getattr(self.serial, "_cache", None)
        if not known or not isinstance(cache, CodeCache):
            return False
        return cache.has(known[-1], self.serial.targetctx)


def _signatures(dispatcher: Any) -> list[Any]:
    """Of the code that is compiled or loaded; none when compilation is off."""
    return getattr(dispatcher, "signatures", [])


def _size_of(args: tuple[Any, ...]) -> int:
    """Bytes of all arrays among the arguments, also inside tuples of arrays."""
    size = 0
    for a in args:
        if isinstance(a, np.ndarray):
            size += a.nbytes
        elif isinstance(a, tuple):
            size += _size_of(a)
    return size


def kernel(function: Function) -> Kernel:
    """A parallel kernel: sums may be reordered within a chunk."""
    return Kernel(function, exact=False)


def exact_kernel(function: Function) -> Kernel:
    """A parallel kernel in strict IEEE arithmetic."""
    return Kernel(function, exact=True)


def exact_loop(function: Function) -> Any:
    """A serial loop in strict IEEE arithmetic, for what runs once per data set: a parallel
    region costs a second to compile, which these loops never earn back."""
    return _compile(function, exact=True, parallel=False)


def loop(function: Function) -> Any:
    """A serial loop whose sums may be reordered, for work that is sequential by nature."""
    return _compile(function, exact=False, parallel=False)


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
