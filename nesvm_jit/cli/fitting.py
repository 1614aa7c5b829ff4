"""What `train` and `path` share: their request, the data, the clock; and how training ends."""

import contextlib
import os
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import click

from ..activity import doing
from ..endings import Outcome, outcomes_of
from ..errors import NotCertifiedWarning
from ..settings import CUT_SHORT
from ..signals import deferred, exit_status
from . import checkpoints, options, outputs, words
from .progress import Progress

NOT_CERTIFIED = 3  # exit status


@dataclass(frozen=True)
class Request:
    """What was asked for."""

    data: list[str]
    settings: dict[str, Any]
    pages: dict[str, str]  # files by option: plot, html, trace
    features: int | None
    float32: bool
    stream: bool
    strict: bool
    quiet: bool
    as_json: bool

    @classmethod
    def of(cls, data: list[str], given: dict[str, Any]) -> "Request":
        """From the values of a command's options."""
        files = {name: given.get(name) for name in ("plot", "html", "trace")}
        pages = {name: file for name, file in files.items() if file is not None}
        same = ("features", "float32", "stream", "strict", "quiet", "as_json")
        more = {name: given[name] for name in same}
        return cls(data, options.fit_keywords(given), pages, **more)

    @property
    def silent(self) -> bool:
        """Whether nothing but results and errors is shown."""
        return self.quiet or self.as_json


class Clock:
    """Seconds of the phases of a command."""

    def __init__(self) -> None:
        self._began = self._last = time.perf_counter()
        self._phases: dict[str, float] = {}

    def stop(self, phase: str) -> None:
        """End a phase; the next one begins."""
        now = time.perf_counter()
        self._phases[phase], self._last = now - self._last, now

    def seconds(self) -> dict[str, float]:
        """Of every phase, and in total."""
        return {**self._phases, "total": time.perf_counter() - self._began}


def read(asked: Request, features: int | None, in_memory: list[str]) -> tuple[Any, Any]:
    """Rows and labels of the first file, with a hint where they are badly scaled; an on-disk
    matrix without labels where rows stay on disk. `in_memory` are options that then are refused."""
    from ..files.text import display_name
    from ..files.training import read_training
    from ..machine.estimate import MANY, estimate_training
    from ..machine.facts import uneven_features

    kernel = asked.settings["kernel"]
    said = f"reading {os.path.basename(display_name(asked.data[0]))}"
    with Progress(None, not asked.silent), doing(said):
        X, y = read_training(asked.data[0], kernel, features, asked.float32, asked.stream)
    if y is None and in_memory:
        refuse_rows_elsewhere(in_memory[0])
    if not asked.silent and y is not None:
        found = estimate_training(X, y, kernel, asked.settings["multiclass"])
        outputs.print_notes([words.many_problems(found)] if found.problems >= MANY else [])
    if not asked.silent and y is not None and kernel != "precomputed":
        uneven = uneven_features(X)
        outputs.print_notes([words.scaling_hint(*uneven)] if uneven else [])
    return X, y


def refuse_rows_elsewhere(option: str) -> NoReturn:
    """Refuse an option that looks at rows."""
    raise click.UsageError(f"--{option} needs rows in memory, these stay where they are")


def check_files(asked: Request, target: str, warm_start: str | None = None) -> None:
    """Refuse, before data are read, files that could not be written or used."""
    inputs = [*asked.data, *filter(None, [warm_start])]
    outputs.require_another_file("MODEL_FILE", target, asked.data)
    outputs.check({"MODEL_FILE": target}, asked.pages, inputs, asked.as_json)
    checkpoints.require_usable(asked.settings, inputs, [target, *asked.pages.values()])


def finish(asked: Request, target: str, machine: Any, clock: Clock, X: Any, y: Any) -> None:
    """Write the model and what was asked for beside it, and say how training went."""
    from ..machine import facts as report

    settings, checkpoint = asked.settings, asked.settings["checkpoint"]
    with deferred():  # hours of training are not lost by a signal in the last second
        outputs.save(machine, target)
    clock.stop("write")
    facts = report.training(machine, settings["solver"], clock.seconds())
    cut_short, outcomes = facts["status"] in CUT_SHORT, outcomes_of(machine.problems)
    if checkpoint and not cut_short:
        checkpoints.remove(checkpoint)
    if asked.as_json:
        outputs.print_json(facts)
    elif not asked.quiet:
        to_stderr = any(map(outputs.is_stdout, [target, *asked.pages.values()]))
        for line in words.training_lines(facts):
            click.echo(line, err=to_stderr)
    tell_uncertified(asked, outcomes)
    if checkpoint and cut_short and not asked.silent:
        outputs.print_notes([checkpoints.how_to_go_on(checkpoint, facts["status"])])
    if asked.pages:
        outputs.write(asked.pages, machine, X, y, facts, asked.data[0])
    exit_unless_certified(asked, outcomes)


def tell_uncertified(asked: Request, outcomes: Sequence[Outcome]) -> None:
    """Say in one line, also if quiet, that the tolerance was not certified."""
    outputs.print_notes(words.uncertified_lines(outcomes, asked.settings["tol"]))


def exit_unless_certified(asked: Request, outcomes: Sequence[Outcome]) -> None:
    """End with the exit status that tells of an interrupt or, if asked to be strict, of a tolerance
    that was not certified."""
    statuses = {outcome.status for outcome in outcomes}
    if "interrupted" in statuses:
        sys.exit(exit_status())
    if asked.strict and statuses != {"converged"}:
        sys.exit(NOT_CERTIFIED)


@contextlib.contextmanager
def said_at_the_end() -> Iterator[None]:
    """A fit whose warning of what is not certified is left to `tell_uncertified`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertifiedWarning)
        yield
