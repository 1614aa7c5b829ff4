"""`nesvm-jit train --folds`: the accuracy of cross-validation, and no model."""

from functools import partial
from typing import Any

import click

from . import fitting, outputs, words
from .fitting import Clock, Request
from .progress import ENDING, Progress


def cross_validate_here(asked: Request, folds: int, warm_start: str | None) -> None:
    """Print the accuracy of cross-validation."""
    from ..endings import Outcome
    from ..machine import facts as report
    from ..machine.crossval import cross_validate

    _refuse_what_needs_a_model(asked, {"warm-start": warm_start})
    clock = Clock()
    X, y = fitting.read(asked, asked.features, ["folds"])
    clock.stop("read")
    line = partial(words.fit_line, tol=asked.settings["tol"])
    with Progress(line, not asked.silent, ENDING) as callback, fitting.said_at_the_end():
        found = cross_validate(X, y, folds, callback=callback, **asked.settings)
    clock.stop("solve")
    if asked.as_json:
        outputs.print_json(report.cross_validation(found, X, asked.settings, clock.seconds()))
    elif not asked.quiet:
        click.echo(words.cross_validation_line(found.accuracy))
    outcomes = [Outcome(found.status, max(found.gaps))]
    fitting.tell_uncertified(asked, outcomes)
    fitting.exit_unless_certified(asked, outcomes)


def _refuse_what_needs_a_model(asked: Request, given: dict[str, Any]) -> None:
    given = {**given, **asked.pages, "checkpoint": asked.settings["checkpoint"]}
    for option, value in given.items():
        if value:
            raise click.UsageError(f"--{option} and --folds do not go together")
    if asked.settings["resume"]:
        raise click.UsageError("--resume needs the --checkpoint to go on from")
