"""Chains of fits on all threads: each fit needs the one before it in its chain, chains are free."""

import heapq
import itertools
import threading
from collections.abc import Sequence
from typing import Protocol

from ..jit import get_threads
from ..machine.parallel import run_all


class Chain(Protocol):
    """Work in steps, one after the other."""

    def step(self) -> "Sequence[Chain]":
        """Do the next step; returns the chains to go on with, this one unless it has ended."""


def run_chains(chains: Sequence[Chain], stop: threading.Event, small: bool) -> None:
    """Run all chains to their ends, or until `stop` is set; one by one if they are `small`.

    Chains are begun in their order, so that what is finished can be kept early; as many as do not
    come out even are begun together with the first ones, taking turns, so that no thread is left
    over at the end.
    """
    workers = 1 if small else max(1, min(get_threads(), len(chains)))
    first = workers + len(chains) % workers
    count = itertools.count()
    ready: list[tuple] = []
    for k, chain in enumerate(chains):
        turn = 0 if k < first else 1 + (k - first) // workers
        heapq.heappush(ready, (turn, 0, next(count), chain))
    changed, running = threading.Condition(), 0

    def work() -> None:
        nonlocal running
        while True:
            with changed:
                while not ready and running and not stop.is_set():
                    changed.wait(0.2)
                if not ready or stop.is_set():
                    return
                turn, steps, _, chain = heapq.heappop(ready)
                running += 1
            following: Sequence[Chain] = ()
            try:
                following = chain.step()
            except BaseException:
                stop.set()
                raise
            finally:
                with changed:
                    running -= 1
                    for next_one in following:
                        done = steps + 1 if next_one is chain else -1  # what ends a chain at once
                        heapq.heappush(ready, (turn, done, next(count), next_one))
                    changed.notify_all()

    run_all([work] * workers, stop, small)
