"""The common parts of `train` and `path`: options, data, clock, and the end of training."""

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
    """The values of a command's options and arguments."""

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
        """Make a request from the values of a command's options."""
        files = {name: given.get(name) for name in ("plot", "html", "trace")}
        pages = {name: file for name, file in files.items() if file is not None}
        same = ("features", "float32", "stream", "strict", "quiet", "as_json")
        more = {name: given[name] for name in same}
        return cls(data, options.fit_keywords(given), pages, **more)

    @property
    def silent(self) -> bool:
        """True if nothing but results and errors is printed."""
        return self.quiet or self.as_json


class Clock:
    """Measures the seconds of the phases of a command."""

    def __init__(self) -> None:
        self._began = self._last = time.perf_counter()
        self._phases: dict[str, float] = {}

    def stop(self, phase: str) -> None:
        """End a phase; the next one begins."""
        now = time.perf_counter()
        self._phases[phase], self._last = now - self._last, now

    def seconds(self) -> dict[str, float]:
        """Return the seconds of every phase, and in total."""
        return {**self._phases, "total": time.perf_counter() - self._began}


def read(request: Request, features: int | None, in_memory: list[str]) -> tuple[Any, Any]:
    """Read rows and labels of the first file, and print a hint if features are badly scaled.

    If rows stay on disk, return the on-disk matrix, and None for the labels; the options in
    `in_memory` are then an error.
    """
    from ..files.text import display_name
    from ..files.training import read_training
    from ..machine.estimate import estimate_long_training
    from ..machine.facts import uneven_features

    kernel = request.settings["kernel"]
    text = f"reading {os.path.basename(display_name(request.data[0]))}"
    with Progress(None, not request.silent), doing(text):
        X, y = read_training(request.data[0], kernel, features, request.float32, request.stream)
    if y is None and in_memory:
        refuse_rows_elsewhere(in_memory[0])
    if not request.silent and y is not None:
        estimated = estimate_long_training(X, y, kernel, request.settings["multiclass"])
        notes = [words.many_problems(estimated)] if estimated else []
        uneven = uneven_features(X) if kernel != "precomputed" else None
        outputs.print_notes(notes + ([words.scaling_hint(*uneven)] if uneven else []))
    return X, y


def refuse_rows_elsewhere(option: str) -> NoReturn:
    """Raise an error for an option that needs rows in memory."""
    raise click.UsageError(f"--{option} needs rows in memory, these stay where they are")


def check_files(request: Request, target: str, warm_start: str | None = None) -> None:
    """Raise an error, before data are read, if a file could not be written or used."""
    inputs = [*request.data, *filter(None, [warm_start])]
    outputs.require_another_file("MODEL_FILE", target, request.data)
    outputs.check({"MODEL_FILE": target}, request.pages, inputs, request.as_json)
    checkpoints.require_usable(request.settings, inputs, [target, *request.pages.values()])


def finish(request: Request, target: str, machine: Any, clock: Clock, X: Any, y: Any) -> None:
    """Write the model and the requested pages, and print how training went."""
    from ..machine import facts as report

    settings, checkpoint = request.settings, request.settings["checkpoint"]
    with deferred():  # a signal in the last second must not lose hours of training
        outputs.save(machine, target)
    clock.stop("write")
    facts = report.training(machine, settings["solver"], clock.seconds())
    cut_short, outcomes = facts["status"] in CUT_SHORT, outcomes_of(machine.problems)
    if checkpoint and not cut_short:
        checkpoints.remove(checkpoint)
    if request.as_json:
        outputs.print_json(facts)
    elif not request.quiet:
        to_stderr = any(map(outputs.is_stdout, [target, *request.pages.values()]))
        for line in words.training_lines(facts):
            click.echo(line, err=to_stderr)
    tell_uncertified(request, outcomes)
    if checkpoint and cut_short and not request.silent:
        outputs.print_notes([checkpoints.how_to_go_on(checkpoint, facts["status"])])
    if request.pages:
        outputs.write(request.pages, machine, X, y, facts, request.data[0])
    exit_unless_certified(request, outcomes)


def tell_uncertified(request: Request, outcomes: Sequence[Outcome]) -> None:
    """Print in one line, also with --quiet, that the tolerance was not certified."""
    outputs.print_notes(words.uncertified_lines(outcomes, request.settings["tol"]))


def exit_unless_certified(request: Request, outcomes: Sequence[Outcome]) -> None:
    """End with an exit status after an interrupt or, with --strict, if the tolerance was not
    certified."""
    statuses = {outcome.status for outcome in outcomes}
    if "interrupted" in statuses:
        sys.exit(exit_status())
    if request.strict and statuses != {"converged"}:
        sys.exit(NOT_CERTIFIED)


@contextlib.contextmanager
def said_at_the_end() -> Iterator[None]:
    """Suppress the warning that a result is not certified; `tell_uncertified` prints it later."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertifiedWarning)
        yield
