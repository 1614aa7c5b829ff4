"""Independent sub-problems on all threads, each on one."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait

from ..jit import get_threads, one_blas_thread, serial_kernels


def run_all(tasks: Sequence[Callable[[], object]], stop: threading.Event, small: bool) -> list:
    """The results of all tasks, in order; one by one if they are so small that threads would only
    wait for each other in Python.

    Ctrl-C sets `stop`, which tasks look at in every round; their best results are returned.
    """
    workers = min(get_threads(), len(tasks))
    if workers <= 1 or small:
        return [task() for task in tasks]

    def alone(task):
        with serial_kernels():
            return task()

    # held here: OpenBLAS ignores a cap that a thread other than the main one asks for
    with one_blas_thread(), ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(alone, task) for task in tasks]
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
