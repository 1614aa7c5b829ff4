"""`nesvm-jit train --folds`: cross-validate instead of writing a model."""

from functools import partial
from typing import Any

import click

from . import fitting, outputs, words
from .fitting import Clock, Request
from .progress import ENDING, Progress


def cross_validate_here(request: Request, folds: int, warm_start: str | None) -> None:
    """Cross-validate on this computer and print the accuracy."""
    from ..endings import Outcome
    from ..machine import facts as report
    from ..machine.crossval import cross_validate

    _refuse_what_needs_a_model(request, {"warm-start": warm_start})
    clock = Clock()
    X, y = fitting.read(request, request.features, ["folds"])
    clock.stop("read")
    line = partial(words.fit_line, tol=request.settings["tol"])
    with Progress(line, not request.silent, ENDING) as callback, fitting.said_at_the_end():
        result = cross_validate(X, y, folds, callback=callback, **request.settings)
    clock.stop("solve")
    if request.as_json:
        outputs.print_json(report.cross_validation(result, X, request.settings, clock.seconds()))
    elif not request.quiet:
        click.echo(words.cross_validation_line(result.accuracy))
    outcomes = [Outcome(result.status, max(result.gaps))]
    fitting.tell_uncertified(request, outcomes)
    fitting.exit_unless_certified(request, outcomes)


def _refuse_what_needs_a_model(request: Request, given: dict[str, Any]) -> None:
    given = {**given, **request.pages, "checkpoint": request.settings["checkpoint"]}
    for option, value in given.items():
        if value:
            raise click.UsageError(f"--{option} and --folds do not go together")
    if request.settings["resume"]:
        raise click.UsageError("--resume needs the --checkpoint to go on from")
