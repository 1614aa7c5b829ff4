"""How many threads kernels run on, when several are safe, and BLAS beside them."""

import contextlib
import functools
import multiprocessing
import os
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import numba
import numpy as np

from ..errors import InputError

LONG_ENOUGH = 1e-3  # a kernel of fewer seconds tells nothing about other programs
CROWDED = (
    0.75  # a kernel that used less than this share of its threads' time was waiting for a core
)
SHORT_PAUSE, LONG_PAUSE = 0.05, 2.0  # seconds on one thread after that, at first and at most


class _Crowd:
    """Whether other programs leave our threads waiting for a core.

    A kernel on k idle cores uses k seconds of processor time a second. One that gets much less
    was waiting; for a while, then for longer, kernels run on one thread.
    """

    def __init__(self) -> None:
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


in_parallel = threading.Lock()
_worker = threading.local()
crowd = _Crowd()
_threads: int = numba.config.NUMBA_NUM_THREADS
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
    return int(numba.config.NUMBA_NUM_THREADS)


def get_threads() -> int:
    """The number of threads kernels run on."""
    return _threads


def serial_kernels() -> AbstractContextManager[None]:
    """Run kernels called by this thread on this thread alone: it is one of several workers."""
    return _worker_being("serial")


def eager_kernels() -> AbstractContextManager[None]:
    """Run kernels called by this thread on all threads however small the data are."""
    return _worker_being("eager")


@contextlib.contextmanager
def _worker_being(what: str) -> Iterator[None]:
    before = worker_is(what)
    setattr(_worker, what, True)
    try:
        yield
    finally:
        setattr(_worker, what, before)


def worker_is(what: str) -> bool:
    return bool(getattr(_worker, what, False))


def parallel_allowed() -> bool:
    return _threads > 1 and not _openmp_before_fork and not worker_is("serial")


def _openmp_started() -> bool:
    try:
        return bool(numba.threading_layer() == "omp")
    except ValueError:  # no parallel kernel has run yet
        return False


def _after_fork() -> None:
    global in_parallel, _blas_lock, _openmp_before_fork
    in_parallel = threading.Lock()
    _blas_lock = threading.Lock()
    _openmp_before_fork = _openmp_before_fork or _openmp_started()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
if multiprocessing.parent_process() is not None:  # imported only after a fork
    _openmp_before_fork = _openmp_started()


# ---------------------------------------------------------------- BLAS

_blas_lock = threading.Lock()
_blas_users = 0
_blas_before: list[int] = []


@functools.lru_cache
def _blas_libraries() -> list[Any]:
    import scipy.linalg  # noqa: F401  numba's np.dot runs on the BLAS that scipy loads
    from threadpoolctl import ThreadpoolController

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
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
