"""Independent work on all threads, each piece on one."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import copy_context
from typing import TypeVar

from ..clock import watching
from ..jit import get_threads, one_blas_thread, serial_kernels

Result = TypeVar("Result")


def run_all(
    tasks: Sequence[Callable[[], Result]], stop: threading.Event, small: bool, tiny: bool = False
) -> list[Result]:
    """The results of all tasks, in order; one by one if they are so `small` that threads would
    only wait for each other in Python, on one thread alone if they are `tiny`.

    Ctrl-C sets `stop`, which tasks look at in every iteration; their best results are returned.
    """
    workers = min(get_threads(), len(tasks))
    if tiny:
        with serial_kernels(), watching(asked=stop.is_set):
            return [task() for task in tasks]
    if workers <= 1 or small:
        with watching(asked=stop.is_set):
            return [task() for task in tasks]

    def run_alone(task: Callable[[], Result]) -> Result:
        with serial_kernels(), watching(asked=stop.is_set):
            return task()

    # held here: OpenBLAS ignores a cap that a thread other than the main one asks for
    with one_blas_thread(), ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(copy_context().run, run_alone, task) for task in tasks]
        pending = set(futures)
        while pending:
            try:
                # without a timeout Ctrl-C would wait for the workers on some systems
                pending = wait(pending, timeout=0.2).not_done
                if any(f.exception() for f in futures if f.done()):
                    stop.set()
            except KeyboardInterrupt:
                stop.set()
    return [f.result() for f in futures]


def run_chains(
    chains: Sequence[Iterator[object]], stop: threading.Event, small: bool, tiny: bool = False
) -> None:
    """Take all steps of all chains, those of a chain one after the other, until `stop` is set.

    Chains are begun in their order, so that what is finished can be kept early; as many as do not
    come out even are begun together with the first ones, taking turns, so that no thread is left
    over at the end: five equal chains on two threads then take the time of 2.5, not of 3.
    """
    workers = 1 if small else max(1, min(get_threads(), len(chains)))
    together = workers + len(chains) % workers
    turns = [0 if k < together else 1 + (k - together) // workers for k in range(len(chains))]
    waiting = [(turn, 0, k) for k, turn in enumerate(turns)]  # turn, steps taken, chain
    lock = threading.Lock()

    def work() -> None:
        # where no chain is waiting, as many threads go on as there are chains left
        while True:
            with lock:
                if not waiting or stop.is_set():
                    return
                turn, steps, k = min(waiting)
                waiting.remove((turn, steps, k))
            try:
                next(chains[k])
            except StopIteration:
                continue
            except BaseException:
                stop.set()
                raise
            with lock:
                waiting.append((turn, steps + 1, k))

    run_all([work] * workers, stop, small, tiny)
