"""Run independent pieces of work on all threads: each piece on one thread, the last one on all."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import copy_context
from typing import TypeVar

from ..clock import watching
from ..jit import Team, get_threads, one_blas_thread, serial_kernels

Result = TypeVar("Result")


def run_all(
    tasks: Sequence[Callable[[], Result]], stop: threading.Event, small: bool, tiny: bool = False
) -> list[Result]:
    """Run all tasks and return their results in order.

    `small` tasks are run one by one, since threads would mostly wait for each other in Python;
    `tiny` ones moreover use one thread each. Ctrl-C sets `stop`, which tasks look at in every
    iteration; they then return their best results.
    """
    workers = min(get_threads(), len(tasks))
    if tiny:
        with serial_kernels(), watching(asked=stop.is_set):
            return [task() for task in tasks]
    if workers <= 1 or small:
        with watching(asked=stop.is_set):
            return [task() for task in tasks]

    team = Team()

    def run_alone(task: Callable[[], Result]) -> Result:
        with team.at_work(), watching(asked=stop.is_set):
            return task()

    # set by the main thread: OpenBLAS ignores limits that other threads set
    with one_blas_thread(), ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(copy_context().run, run_alone, task) for task in tasks]
        pending = set(futures)
        while pending:
            try:
                # the timeout lets Ctrl-C through; without it, some systems wait for the workers
                pending = wait(pending, timeout=0.2).not_done
                if any(f.exception() for f in futures if f.done()):
                    stop.set()
            except KeyboardInterrupt:
                stop.set()
    return [f.result() for f in futures]


def run_chains(
    chains: Sequence[Iterator[object]], stop: threading.Event, small: bool, tiny: bool = False
) -> None:
    """Take all steps of all chains, those of each chain in order, until `stop` is set.

    Chains are begun in order, so that finished ones can be saved early. The remainder of the
    number of chains divided by the number of threads is begun together with the first ones; these
    chains take turns, so that no thread is idle at the end: five equal chains on two threads take
    the time of 2.5 chains, not of 3.
    """
    workers = 1 if small else max(1, min(get_threads(), len(chains)))
    together = workers + len(chains) % workers
    turns = [0 if k < together else 1 + (k - together) // workers for k in range(len(chains))]
    waiting = [(turn, 0, k) for k, turn in enumerate(turns)]  # turn, steps taken, chain
    lock = threading.Lock()

    def work() -> None:
        # a thread that finds no waiting chain ends; the others continue theirs
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
