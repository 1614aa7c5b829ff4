"""Checkpoints: the states of unfinished fits and the results of finished ones, in a file that is
renewed now and then, so that a run that was killed goes on to the same result."""

import contextlib
import os
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ..clock import GRACE, Clock
from ..errors import FormatError, InputError, NesvmError
from ..files.text import display_name
from ..settings import Settings
from .fingerprint import settings_fingerprint, short_name
from .form import Form, MismatchError, anything, duration, fields, plain, table
from .snapshot import copy_facts, read_snapshot, require_replaceable, write_snapshot

LONG = 0.5 * GRACE  # seconds of a round that may not come to its end after a signal

CHECKPOINT = fields(
    fingerprint=fields(rest=plain),
    seconds=duration,
    done=table(anything),
    slots=table(fields(began=duration, state=fields(rest=anything))),
)


class Checkpoint:
    """A file for all fits of a run; as a context, it writes what is new at the end.

    `fingerprint` says which data and settings the run is of; with `resume` the file must be of the
    same, and the clock goes on where that run stood.
    """

    def __init__(
        self,
        path: Any,
        every: float,
        fingerprint: dict[str, Any],
        resume: bool = False,
        clock: Clock | None = None,
    ):
        self.path, self._every, self._fingerprint = path, every, fingerprint
        self.clock = Clock() if clock is None else clock
        self._done: dict[str, Any] = {}
        self._slots: dict[str, dict[str, Any]] = {}
        self._lock = threading.Lock()
        self._new = False
        if resume:
            self._take_up(read_snapshot(path))
        else:
            require_replaceable(path)
            self._write()  # fails now rather than later
        self.resumed = len(self._done)
        self.next = time.perf_counter() + every

    def _take_up(self, facts: dict[str, Any]) -> None:
        name = display_name(self.path)
        try:
            CHECKPOINT(facts)
        except MismatchError:
            raise InputError(f"{name}: a checkpoint of a training run is required") from None
        found, done, slots = facts["fingerprint"], facts["done"], facts["slots"]
        self.clock.add(facts["seconds"])
        for what, wanted in self._fingerprint.items():
            if found.get(what) != wanted:
                got = f"{what} = {found.get(what)!s:.60}, required is {wanted!s:.60}"
                got = "other data" if what == "data" else got
                raise InputError(f"{name}: the checkpoint is of {got}")
        self._done, self._slots = done, slots

    def __enter__(self) -> "Checkpoint":
        return self

    def __exit__(self, *_: Any) -> None:
        with self._lock:
            if self._new:
                self._write_if_possible()

    @property
    def empty(self) -> bool:
        """Whether there is nothing to go on from."""
        return not self._done and not self._slots

    def counts(self) -> dict[str, int]:
        """How many fits are done and begun."""
        return {"done": len(self._done), "begun": len(self._slots)}

    def done(self, name: object, form: Form = anything) -> Any:
        """What a fit ended with, which must have this form; None if it has not ended."""
        found = self._done.get(str(name))
        if found is not None:
            self.require_form(form, found)
        return found

    def require_form(self, form: Callable[[Any], Any], found: Any) -> Any:
        """What `form` makes of what was saved, which it may refuse."""
        try:
            return form(found)
        except (ValueError, TypeError, KeyError, IndexError, AttributeError) as e:
            raise self.changed(e) from None

    def changed(self, error: Exception) -> FormatError:
        """What to say of a checkpoint that is whole and cannot be."""
        kind = "" if isinstance(error, MismatchError) else f"{type(error).__name__}, "
        what = " ".join(f"{kind}{error}".split())
        return FormatError(f"{display_name(self.path)}: the checkpoint has been changed: {what}")

    def finish(self, name: object, facts: Any) -> None:
        """Keep what a fit ended with, instead of its state."""
        with self._lock:
            self._slots.pop(str(name), None)
            self._done[str(name)] = facts
            self._renew()

    def slot(self, name: object) -> "Slot":
        """Where a fit keeps its state, and may find one."""
        known = self._slots.get(str(name))
        began = self.clock.now() if known is None else known["began"]
        return Slot(self, name, began, known and known["state"], self._every)

    def put(self, name: object, began: float, state: dict[str, Any]) -> None:
        """Take over a state; it is written when the file is due."""
        with self._lock:
            self._slots[str(name)] = {"began": began, "state": copy_facts(state)}
            self._renew()

    def remove(self) -> None:
        """Remove the file: the run is complete."""
        self._new = False
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)

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
        facts = {
            "fingerprint": self._fingerprint,
            "seconds": self.clock.now(),
            "done": self._done,
            "slots": self._slots,
        }
        write_snapshot(self.path, facts)
        self._new = False


class Slot:
    """The place of one fit in a checkpoint."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        name: object,
        began: float,
        state: dict[str, Any] | None,
        every: float,
    ):
        self._checkpoint, self._name, self._every = checkpoint, name, every
        self.began = began  # seconds on the clock of the whole run
        self.state = state  # to go on from
        self._asked = time.perf_counter()  # when it was last asked whether it is time to save
        self._next = self._asked + every

    def require_form(self, form: Callable[[Any], Any], found: Any) -> Any:
        """What `form` makes of what was saved, which it may refuse."""
        return self._checkpoint.require_form(form, found)

    def due(self) -> bool:
        """Whether it is time to save; always after a long round, since a signal ends the next one
        in the middle."""
        now = time.perf_counter()
        long = now - self._asked >= LONG
        self._asked = now
        return long or now >= self._next or now >= self._checkpoint.next

    def put(self, state: dict[str, Any]) -> None:
        """Save a state."""
        self._checkpoint.put(self._name, self.began, state)
        self._next = time.perf_counter() + self._every


def open_checkpoint(
    settings: Settings,
    data: Callable[[], list[Any]],
    clock: Clock | None = None,
    **facts: Any,
) -> AbstractContextManager[Checkpoint | None]:
    """The checkpoint that the settings ask for, of a run with these facts; None if they do not.

    `data` is called for the fingerprint of all data that the result depends on, if it is needed.
    """
    if settings.checkpoint is None:
        return nullcontext()
    fingerprint = settings_fingerprint(settings, data(), **facts)
    every, resume = settings.checkpoint_every, settings.resume
    return Checkpoint(settings.checkpoint, every, fingerprint, resume, clock)


def resume_if_same(
    path: Any, every: float, fingerprint: dict[str, Any], clock: Clock
) -> tuple[Checkpoint, bool]:
    """A checkpoint that goes on where the file is of the same run, and otherwise begins; and
    whether the file is of another run. Such a file may be worth hours: it is left as it is, and the
    checkpoint is a file beside it."""
    path = os.fspath(path)
    require_replaceable(path)
    if not os.path.exists(path):
        return Checkpoint(path, every, fingerprint, clock=clock), False
    if _is_of(path, fingerprint):
        return Checkpoint(path, every, fingerprint, True, clock), False
    beside = f"{path}.{short_name(fingerprint)}"
    same = os.path.exists(beside) and _is_of(beside, fingerprint)
    return Checkpoint(beside, every, fingerprint, same, clock), True


def _is_of(path: str, fingerprint: dict[str, Any]) -> bool:
    facts = read_snapshot(path)
    found = facts.get("fingerprint") if isinstance(facts, dict) else None
    try:
        plain(found)
    except MismatchError:
        return False
    return found == fingerprint
