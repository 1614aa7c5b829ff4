"""How many threads kernels run on, when several are safe, and BLAS beside them."""

import contextlib
import functools
import math
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import thread_limit
from ..errors import InputError
from .memory import group_limits
from .tier import trial

_worker = threading.local()


def most_threads() -> int:
    """The most threads that `set_threads` can ask for: those of NUMBA_NUM_THREADS, else the cores
    that this process may run on."""
    asked = os.environ.get("NUMBA_NUM_THREADS", "").strip()
    if asked:
        return int(asked)
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return max(1, os.cpu_count() or 1)


def _usual_threads() -> int:
    """As many threads as there are cores that this process may use: no more than its group has
    time for, and no more than OMP_NUM_THREADS says."""
    allowed = [most_threads(), _core_quota(), _openmp_threads()]
    return int(max(1, min(allowed)))


def _core_quota() -> float:
    """How many cores the process may keep busy all the time, rounded up."""
    quotas = [math.inf]
    for text in group_limits("cpu.max"):  # "max 100000", or so many microseconds in as many
        with contextlib.suppress(ValueError, ZeroDivisionError):
            time, period = text.split()
            quotas.append(math.ceil(int(time) / int(period)))
    return min(quotas)


def _openmp_threads() -> float:
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    return int(first) if first.strip().isdecimal() and int(first) > 0 else math.inf


_threads = _usual_threads()


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


def get_threads() -> int:
    """The number of threads kernels run on: what was asked for, within the limits that
    threadpoolctl has set."""
    return int(min(_threads, max(1, thread_limit.limit)))


class Team:
    """Workers side by side, each a thread, among whom the threads of kernels are divided; where one
    is left, its kernels run on all of them."""

    def __init__(self) -> None:
        self._lock, self._working = threading.Lock(), 0

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """This thread is one of the workers."""
        self._count(1)
        try:
            with _kernels_on(self.share):
                yield
        finally:
            self._count(-1)

    def share(self) -> int:
        """How many threads the kernels of each worker run on."""
        return max(1, get_threads() // max(1, self._working))

    def _count(self, more: int) -> None:
        with self._lock:
            self._working += more


def serial_kernels() -> contextlib.AbstractContextManager[None]:
    """Run kernels called by this thread on this thread alone."""
    return _kernels_on(lambda: 1)


@contextlib.contextmanager
def _kernels_on(share: Callable[[], int]) -> Iterator[None]:
    before = getattr(_worker, "share", get_threads)
    _worker.share = share
    try:
        yield
    finally:
        _worker.share = before


def own_threads() -> int:
    """How many threads kernels called by this thread run on."""
    share: Callable[[], int] = getattr(_worker, "share", get_threads)
    return share()


# ---------------------------------------------------------------- running kernels


def run(entry: Callable[..., int], n: int, args: tuple[Any, ...]) -> int:
    """All n chunks of a kernel; how many of its threads met an error."""
    n_threads = min(n, own_threads()) if n > 1 else n
    if n_threads < 2 or not _safe_after_fork:
        return entry(0, 1, n, *args)
    address = _launch().threads_address()
    if _layer() == "tbb":
        return entry(address, n_threads, n, *args)
    # Where other threads of this process are inside a kernel, one layer of numba aborts, and the
    # other would have twice as many threads as cores.
    if not _in_parallel.acquire(blocking=False):
        return entry(0, 1, n, *args)
    try:
        return entry(address, n_threads, n, *args)
    finally:
        _in_parallel.release()


@functools.cache
def _launch() -> Any:
    """The module that runs chunks; it imports numba."""
    from . import launch

    return launch


def compile_threads() -> None:
    """Compile what runs kernels on several threads."""
    _launch().threads_address()


@functools.lru_cache
def _layer() -> str:
    """Which threads numba runs: tbb, omp or workqueue."""
    _launch().threads_address()
    return _started_layer()


_in_parallel = threading.Lock()
_safe_after_fork = True
_forked_by_main = True


def _started_layer() -> str:
    """The same, or nothing where no threads have been started."""
    numba = sys.modules.get("numba")
    if numba is None:
        return ""
    try:
        return str(numba.threading_layer())
    except ValueError:
        return ""


def _before_fork() -> None:
    global _forked_by_main
    _forked_by_main = threading.current_thread() is threading.main_thread()


def _after_fork() -> None:
    """OpenMP aborts in a forked child; TBB is set up again in one that the main thread forked."""
    global _in_parallel, _blas_lock, _safe_after_fork
    _in_parallel = threading.Lock()
    _blas_lock = threading.Lock()
    layer = _started_layer()
    if layer == "omp" or (layer == "tbb" and not _forked_by_main):
        _safe_after_fork = False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork)
if multiprocessing.parent_process() is not None:  # imported only after a fork
    _safe_after_fork = _started_layer() != "omp"


# ---------------------------------------------------------------- BLAS

_blas_lock = threading.Lock()
_blas_users = 0
_blas_before: list[int] = []
_blas_held: list[Any] = []


def _blas_libraries() -> list[Any]:
    if trial.get() is None:
        import scipy.linalg  # noqa: F401  compiled np.dot runs on the BLAS that scipy loads

    return _loaded_blas("scipy.linalg" in sys.modules)


@functools.cache
def _loaded_blas(with_scipy: bool) -> list[Any]:
    from threadpoolctl import ThreadpoolController

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS at one thread: its threads keep spinning after a call and starve ours.

    Solvers hold it for a whole run (a cap for the length of one kernel comes too late: the
    threads of an earlier call are still spinning). It nests, also across threads.
    """
    global _blas_users, _blas_before, _blas_held
    libraries = _blas_libraries()
    with _blas_lock:
        if _blas_users == 0:
            _blas_held = libraries
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
                for lib, n in zip(_blas_held, _blas_before, strict=True):
                    lib.set_num_threads(n)
