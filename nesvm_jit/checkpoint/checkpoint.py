"""Checkpoints: the states of unfinished sub-problems and the results of finished ones, in a file
that is renewed now and then, so that a run that was killed goes on to the same result."""

import threading
import time
import warnings
from typing import Any

from ..errors import InputError, NesvmError
from ..files.text import display_name
from .snapshot import copied, read_snapshot, require_replaceable, write_snapshot


class Checkpoint:
    """A file for all sub-problems of a run; as a context, it writes what is new at the end."""

    def __init__(self, path: Any, every: float, key: dict[str, Any], resume: bool = False):
        self._path, self._every, self._key = path, every, key
        self._done: dict[str, dict] = {}
        self._slots: dict[str, dict] = {}
        self._lock = threading.Lock()
        self._new = False
        self.started = time.perf_counter()
        if resume:
            self._take_up(read_snapshot(path))
        else:
            require_replaceable(path)
            self._write()  # fails now rather than later
        self.next = time.perf_counter() + every

    def _take_up(self, facts: dict) -> None:
        name = display_name(self._path)
        try:
            key, done, slots = facts["key"], facts["done"], facts["slots"]
            self.started -= facts["seconds"]
        except (KeyError, TypeError):
            raise InputError(f"{name}: a checkpoint of a training run is required") from None
        for what, wanted in self._key.items():
            if key.get(what) != wanted:
                got = f"{what} = {key.get(what)!s:.60}, required is {wanted!s:.60}"
                got = "other data" if what == "data" else got
                raise InputError(f"{name}: the checkpoint is of {got}")
        self._done, self._slots = done, slots

    def __enter__(self) -> "Checkpoint":
        return self

    def __exit__(self, *_: Any) -> None:
        with self._lock:
            if self._new:
                self._write_if_possible()

    def done(self, number: int) -> dict | None:
        """What a sub-problem ended with, if it has ended."""
        return self._done.get(str(number))

    def finish(self, number: int, facts: dict) -> None:
        """Keep what a sub-problem ended with, instead of its state."""
        with self._lock:
            self._slots.pop(str(number), None)
            self._done[str(number)] = facts
            self._renew()

    def slot(self, number: int) -> "Slot":
        """Where a sub-problem keeps its state, and may find one."""
        known = self._slots.get(str(number))
        began = time.perf_counter() - self.started if known is None else known["began"]
        return Slot(self, number, began, known and known["state"], self._every)

    def put(self, number: int, began: float, state: dict) -> None:
        """Take over a state; it is written when the file is due."""
        with self._lock:
            self._slots[str(number)] = {"began": began, "state": copied(state)}
            self._renew()

    def _renew(self) -> None:
        self._new = True
        if time.perf_counter() >= self.next:
            self._write_if_possible()
            self.next = time.perf_counter() + self._every

    def _write_if_possible(self) -> None:
        try:
            self._write()
        except NesvmError as e:  # a full disk must not end hours of training
            warnings.warn(f"{e}; training goes on without a new checkpoint", stacklevel=2)

    def _write(self) -> None:
        seconds = time.perf_counter() - self.started
        facts = {"key": self._key, "seconds": seconds, "done": self._done, "slots": self._slots}
        write_snapshot(self._path, facts)
        self._new = False


class Slot:
    """The place of one sub-problem in a checkpoint."""

    def __init__(
        self, checkpoint: Checkpoint, number: int, began: float, state: dict | None, every: float
    ):
        self._checkpoint, self._number, self._every = checkpoint, number, every
        self.began = began  # seconds after the start of the whole run
        self.state = state  # to go on from
        self._next = time.perf_counter() + every

    def due(self) -> bool:
        """Whether it is time to save."""
        now = time.perf_counter()
        return now >= self._next or now >= self._checkpoint.next

    def put(self, state: dict) -> None:
        """Save a state."""
        self._checkpoint.put(self._number, self.began, state)
        self._next = time.perf_counter() + self._every
