"""The compile policy: every compiled function of the package is made by a decorator of this
module, and no other module imports numba.

`kernel` and `exact_kernel` make a `Kernel`: one Python body, compiled with `prange` in
parallel and, where that is not safe, serially. Sums run over chunks that depend on the shape
of the data alone, so that every result has the same bits for any number of threads.

Flags let the compiler reorder sums and contract products, but never assume that there are no
infinities or NaN. `exact_*` allow nothing of the kind.

| environment | meaning |
|---|---|
| NESVM_JIT_CACHE=0 | compile anew in every process |
| NESVM_JIT_CACHE_DIR | where compiled code is kept (else NUMBA_CACHE_DIR, else the user's cache) |
| NUMBA_NUM_THREADS | the most threads `set_threads` can ask for |
| NUMBA_DISABLE_JIT=1, NUMBA_BOUNDSCHECK=1 | plain Python; bounds-checked code |
"""

import contextlib
import functools
import multiprocessing
import os
import threading
import time
from typing import ClassVar

import numba
import numpy as np
from numba import prange, types
from numba.extending import overload as _overload

from .codecache import CodeCache, caching_enabled
from .errors import InputError

__all__ = [
    "Kernel",
    "chunk_bounds",
    "chunk_count",
    "eager_kernels",
    "exact_helper",
    "exact_inline",
    "exact_kernel",
    "exact_loop",
    "get_threads",
    "helper",
    "kernel",
    "loop",
    "memory_bytes",
    "most_threads",
    "one_blas_thread",
    "overload",
    "prange",
    "serial_kernels",
    "set_threads",
    "types",
]

FAST = frozenset({"reassoc", "nsz", "arcp", "contract", "afn"})
USUAL_MEMORY = 2.0**33
MOST_CHUNKS = 32
CHUNK_ROWS = 256  # a chunk of fewer rows costs more to start than to run
CHUNK_CELLS = 1 << 20  # partial sums of all chunks together: 8 MB of float64 ...
SERIAL_CELLS = 1 << 26  # ... or two of them, up to 512 MB each; beyond that one
LONG_ENOUGH = 1e-3  # seconds of a kernel that tell something
CROWDED = 0.75  # of the processor time that all threads could have used
SHORT_PAUSE, LONG_PAUSE = 0.05, 2.0  # seconds on one thread
SMALL_BYTES = 1 << 18  # arguments that one thread is done with before a second is awake


def _options(exact: bool) -> dict:
    return {"fastmath": False if exact else set(FAST), "nogil": True, "error_model": "numpy"}


def _compile(function, exact: bool, parallel: bool):
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

    def __init__(self, function, exact: bool):
        functools.update_wrapper(self, function)
        self.registry[f"{function.__module__}.{function.__name__}"] = self
        self.py_func = function
        self.serial = _compile(function, exact, parallel=False)
        self.parallel = _compile(function, exact, parallel=True)

    def __call__(self, *args):
        parallel = _parallel_allowed() and (_worker_is("eager") or self._parallel_pays(args))
        if not parallel or not _in_parallel.acquire(blocking=False):
            return self.serial(*args)
        before, known = numba.get_num_threads(), len(_signatures(self.parallel))
        wall, cpu = time.perf_counter(), time.process_time()
        try:
            if before != _threads:
                numba.set_num_threads(_threads)
            return self.parallel(*args)
        finally:
            if before != _threads:
                numba.set_num_threads(before)
            if known == len(_signatures(self.parallel)):  # else it was compiled or loaded meanwhile
                _crowd.watch(time.perf_counter() - wall, time.process_time() - cpu)
            _in_parallel.release()

    def _parallel_pays(self, args) -> bool:
        if _size_of(args) < SMALL_BYTES:
            return False
        return not (_crowd.here() and self._serial_is_ready())

    def _serial_is_ready(self) -> bool:
        """Whether the serial variant need not be compiled first."""
        if _signatures(self.serial):
            return True
        known, cache = _signatures(self.parallel), getattr(self.serial, "_cache", None)
        if not known or not isinstance(cache, CodeCache):
            return False
        return cache.has(known[-1], self.serial.targetctx)


def _signatures(dispatcher) -> list:
    """Of the code that is compiled or loaded; none when compilation is off."""
    return getattr(dispatcher, "signatures", [])


class _Crowd:
    """Whether other programs leave our threads waiting for a core.

    A kernel on k idle cores uses k seconds of processor time a second. One that gets much less
    was waiting; for a while, then for longer, kernels run on one thread.
    """

    def __init__(self):
        self._until, self._pause = 0.0, SHORT_PAUSE

    def here(self) -> bool:
        return time.perf_counter() < self._until

    def watch(self, wall: float, cpu: float) -> None:
        if wall < LONG_ENOUGH:
            return
        if cpu < CROWDED * _threads * wall:
            self._until = time.perf_counter() + self._pause
            self._pause = min(2.0 * self._pause, LONG_PAUSE)
        else:
            self._pause = SHORT_PAUSE


def _size_of(args) -> int:
    """Bytes of all arrays among the arguments, also inside tuples of arrays."""
    size = 0
    for a in args:
        if isinstance(a, np.ndarray):
            size += a.nbytes
        elif isinstance(a, tuple):
            size += _size_of(a)
    return size


def kernel(function):
    """A parallel kernel: sums may be reordered within a chunk."""
    return Kernel(function, exact=False)


def exact_kernel(function):
    """A parallel kernel in strict IEEE arithmetic."""
    return Kernel(function, exact=True)


def exact_loop(function):
    """A serial loop in strict IEEE arithmetic, for what runs once per data set: a parallel
    region costs a second to compile, which these loops never earn back."""
    return _compile(function, exact=True, parallel=False)


def loop(function):
    """A serial loop whose sums may be reordered, for work that is sequential by nature."""
    return _compile(function, exact=False, parallel=False)


def helper(function):
    """A function for kernels to call; it is compiled into each of them."""
    return numba.njit(**_options(exact=False))(function)


def exact_helper(function):
    """A helper in strict IEEE arithmetic that allocates nothing.

    Without numba's memory manager: counting references to an array at every call cost the text
    parser half its speed and, the counter being shared, all gain from a second thread.
    """
    return numba.njit(_nrt=False, **_options(exact=True))(function)


def exact_inline(function):
    """An exact helper that is inlined wherever it is called; short bodies in hot loops only."""
    return numba.njit(_nrt=False, forceinline=True, **_options(exact=True))(function)


def overload(function):
    """Choose the body of `function` from the types of its arguments, inlined into kernels."""
    return _overload(
        function, inline="always", jit_options={"fastmath": set(FAST), "error_model": "numpy"}
    )


# ---------------------------------------------------------------- chunks


def chunk_count(n_rows: int, n_cells: int) -> int:
    """How many chunks `n_rows` rows are summed in when each chunk has `n_cells` partial sums.

    It depends on the shape alone, never on threads.
    """
    if n_cells > SERIAL_CELLS:
        return 1
    by_rows = -(-n_rows // CHUNK_ROWS)
    by_memory = max(2, CHUNK_CELLS // max(n_cells, 1))
    return max(1, min(MOST_CHUNKS, by_rows, by_memory))


@helper
def chunk_bounds(n_rows, n_chunks, k):
    """Rows of chunk k: consecutive, and as equal in number as can be."""
    return n_rows * k // n_chunks, n_rows * (k + 1) // n_chunks


def partial_sums(n_chunks: int, n_cells: int) -> np.ndarray:
    """Zeros for `n_chunks` partial sums of length `n_cells`, no two in one cache line."""
    padded = -(-n_cells // 8) * 8 + 8
    return np.zeros((n_chunks, padded))


# ---------------------------------------------------------------- threads

_in_parallel = threading.Lock()
_worker = threading.local()
_crowd = _Crowd()
_threads = numba.config.NUMBA_NUM_THREADS
_openmp_before_fork = False


def set_threads(n: int) -> None:
    """Run kernels on `n` threads from now on, in this process."""
    global _threads
    most = most_threads()
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or not 1 <= n <= most:
        raise InputError(
            f"threads must be a whole number from 1 to {most} "
            f"(NUMBA_NUM_THREADS raises the limit), got {n!r}"
        )
    _threads = int(n)


def most_threads() -> int:
    """The most threads that `set_threads` can ask for."""
    return numba.config.NUMBA_NUM_THREADS


def get_threads() -> int:
    """The number of threads kernels run on."""
    return _threads


def serial_kernels():
    """Run kernels called by this thread on this thread alone: it is one of several workers."""
    return _worker_being("serial")


def eager_kernels():
    """Run kernels called by this thread on all threads however small the data are."""
    return _worker_being("eager")


@contextlib.contextmanager
def _worker_being(what: str):
    before = _worker_is(what)
    setattr(_worker, what, True)
    try:
        yield
    finally:
        setattr(_worker, what, before)


def _worker_is(what: str) -> bool:
    return getattr(_worker, what, False)


def _parallel_allowed() -> bool:
    return _threads > 1 and not _openmp_before_fork and not _worker_is("serial")


def _openmp_started() -> bool:
    try:
        return numba.threading_layer() == "omp"
    except ValueError:  # no parallel kernel has run yet
        return False


def _after_fork() -> None:
    global _in_parallel, _blas_lock, _openmp_before_fork
    _in_parallel = threading.Lock()
    _blas_lock = threading.Lock()
    _openmp_before_fork = _openmp_before_fork or _openmp_started()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
if multiprocessing.parent_process() is not None:  # imported only after a fork
    _openmp_before_fork = _openmp_started()


def memory_bytes() -> float:
    """The memory of the machine, or a usual one where the system does not tell; less where this
    process may not have all of it."""
    try:
        most = float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        most = USUAL_MEMORY
    return min(most, *_memory_limits())


def _memory_limits() -> list[float]:
    """Of the process (`ulimit -v`) and of its group."""
    found = [float("inf")]
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        soft = resource.getrlimit(resource.RLIMIT_AS)[0]
        found += [float(soft)] if soft != resource.RLIM_INFINITY else []
    with contextlib.suppress(OSError, ValueError), open("/proc/self/cgroup") as f:
        groups = [line.strip()[3:] for line in f if line.startswith("0::")]
        folder = f"/sys/fs/cgroup{groups[0]}" if groups else ""
        while folder.startswith("/sys/fs/cgroup"):
            with contextlib.suppress(OSError, ValueError), open(f"{folder}/memory.max") as limit:
                found.append(float(limit.read()))  # "max" is no number
            folder = os.path.dirname(folder)
    return found


# ---------------------------------------------------------------- BLAS

_blas_lock = threading.Lock()
_blas_users = 0
_blas_before: list = []


@functools.lru_cache
def _blas_libraries():
    import scipy.linalg  # noqa: F401  numba's np.dot runs on the BLAS that scipy loads
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas").lib_controllers


@contextlib.contextmanager
def one_blas_thread():
    """Hold BLAS at one thread: its threads keep spinning after a call and starve ours.

    Solvers hold it for a whole run (a cap for the length of one kernel comes too late: the
    threads of an earlier call are still spinning). It nests, also across threads.
    """
    global _blas_users, _blas_before
    libraries = _blas_libraries()
    with _blas_lock:
        if _blas_users == 0:
            _blas_before = [lib.get_num_threads() for lib in libraries]
            for lib in libraries:
                lib.set_num_threads(1)
        _blas_users += 1
    try:
        yield
    finally:
        with _blas_lock:
            _blas_users -= 1
            if _blas_users == 0:
                for lib, n in zip(libraries, _blas_before, strict=True):
                    lib.set_num_threads(n)
