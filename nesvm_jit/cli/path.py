"""`nesvm-jit path`."""

import os
import sys
from typing import Any

import click

from ..settings import SCORES
from ..signals import deferred, exit_status
from . import fitting, options, outputs, words
from .fitting import Clock, Request
from .progress import Progress

ENDING = "ending; the same command will go on from here. Ctrl-C again to end at once"


@click.command()
@click.argument("training_file")
@click.option(
    "-c",
    "--costs",
    default="1e-3:1e3:7",
    show_default=True,
    metavar="GRID",
    help="Try these values of C: either LOW:HIGH:COUNT for a geometric series, or numbers "
    "separated by commas.",
)
@click.option(
    "-g",
    "--gammas",
    metavar="GRID",
    help="Try these values of gamma for poly and rbf, written as for --costs; scale is one of "
    "them too (default: 1/features).",
)
@click.option(
    "-v",
    "--folds",
    type=click.IntRange(min=2),
    default=5,
    show_default=True,
    metavar="N",
    help="Cross-validate with N stratified folds.",
)
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="Cross-validate N times with different folds, drawn from --seed and the numbers after it.",
)
@click.option(
    "--scoring",
    type=click.Choice(SCORES),
    default="accuracy",
    show_default=True,
    help="Choose C by this score. With two classes, f1 and auc are those of the larger label; "
    "with more, the mean over the classes.",
)
@click.option(
    "--rule",
    type=click.Choice(["best", "one-se"]),
    default="best",
    show_default=True,
    help="Choose the C with the best score (best), or the smallest C whose score is within one "
    "standard error of it (one-se).",
)
@click.option(
    "-o",
    "--output",
    metavar="MODEL",
    help="Train on all rows with the chosen C and gamma, and write the model to this file.",
)
@click.option(
    "--test",
    "test_file",
    metavar="FILE",
    help="Train on all rows with the chosen C and gamma, and score the model on this file.",
)
@options.kernel
@options.weights
@options.engine
@options.seed
@options.data
@options.stream
@options.plot
@options.html
@options.threads
@options.strict
@options.quiet_fit
@options.as_json
def path(training_file: str, output: str | None, test_file: str | None, **given: Any) -> None:
    """Choose C (and gamma) by cross-validation on TRAINING_FILE.

    \b
    Every fit aims at the certified gap of --tol and starts from the fit with the next
    smaller C. Folds run in parallel on one copy of the data. After Ctrl-C, the
    same command continues where it stopped.

    \b
    Examples:
      nesvm-jit path a9a                                try seven values of C, print a table
      nesvm-jit path a9a --rule one-se -o a9a.model     train with the simplest good C
      nesvm-jit path -t rbf -c 1:100:3 -g 0.01,0.1 -v 3 usps    choose gamma, too
      nesvm-jit path --scoring auc --repeats 3 --json a9a       choose by another score
      nesvm-jit path --html a9a.html --test a9a.t a9a   draw the path, too
    """
    from ..selection.path import path as search

    request = Request.of([training_file], given)
    _check_files(request, output, test_file)
    clock = Clock()
    X, y = fitting.read(request, request.features, list(request.pages))
    test = _read_test(test_file, request.settings["kernel"], X) if test_file else None
    clock.stop("read")
    state = _state_file(training_file, output)
    grid = (given[name] for name in ("costs", "gammas", "folds", "repeats"))
    try:
        with (
            Progress(words.path_line, not request.silent, ENDING) as callback,
            fitting.said_at_the_end(),
        ):
            result = search(
                X,
                y,
                *grid,
                scoring=given["scoring"],
                rule=given["rule"].replace("-", "_"),
                refit=bool(output or test_file or request.pages),
                keep_solutions=bool(request.pages),
                test=test,
                state=state,
                callback=callback,
                **request.settings,
            )
    except KeyboardInterrupt:
        outputs.print_notes([_interrupted(state)])
        sys.exit(exit_status())
    if output:
        with deferred():
            outputs.save(result.machine, output)
    result.seconds |= clock.seconds()
    outcomes = result.outcomes()
    _print(request, result, state, output)
    fitting.tell_uncertified(request, outcomes)
    if request.pages:
        outputs.draw(_document(result, X, y, test, training_file), request.pages)
    fitting.exit_unless_certified(request, outcomes)


def _check_files(request: Request, output: str | None, test_file: str | None) -> None:
    """Raise an error, before data are read, if a file could not be read or written."""
    inputs = [*request.data, *filter(None, [test_file])]
    if inputs.count("-") > 1:
        raise click.UsageError("TRAINING_FILE and --test cannot both be standard input")
    if output:
        outputs.require_another_file("MODEL", output, inputs)
    outputs.check({"MODEL": output} if output else {}, request.pages, inputs, request.as_json)


def _read_test(test_file: str, kernel: str, X: Any) -> tuple[Any, Any]:
    """Read rows and labels of a test file, with the columns that the machine will have."""
    from ..files.libsvm.reader import read_libsvm
    from ..files.ondisk.matrix import is_matrix
    from ..files.training import read_training
    from ..machine.predict import columns_of

    if is_matrix(test_file):
        Z, truth = read_training(test_file, kernel, None, False)
        if truth is None:
            raise click.UsageError("--test needs rows in memory, these are too many; use predict")
    else:
        Z, truth = read_libsvm(test_file, zero_based=kernel == "precomputed")
    return columns_of(Z, kernel, X.shape[1], test_file), truth


def _state_file(training_file: str, output: str | None) -> str | None:
    """Return the name of the file of finished columns: beside the model, or in this folder with the
    name of the data."""
    if output and not outputs.is_stdout(output):
        return output + ".path.json"
    if training_file == "-" or not os.access(".", os.W_OK):
        return None
    return os.path.basename(training_file) + ".path.json"


def _interrupted(state: str | None) -> str:
    kept = state is not None and os.path.exists(state)
    return "interrupted" + (f"; the same command goes on from what {state} keeps" if kept else "")


def _print(request: Request, result: Any, state: str | None, output: str | None) -> None:
    """Print the result as JSON, or as lines; if a file goes to standard output, print them on
    standard error."""
    if request.as_json:
        outputs.print_json(result.facts())
    elif not request.quiet:
        to_stderr = any(map(outputs.is_stdout, filter(None, [output, *request.pages.values()])))
        for line in words.path_lines(result):
            click.echo(line, err=to_stderr)
        outputs.print_notes(words.state_lines(result, state))


def _document(result: Any, X: Any, y: Any, test: Any, training_file: str) -> dict[str, Any]:
    """Return the document of the path, of the machine trained with its choice, and of its scores on
    the test file."""
    from ..files.text import display_name
    from ..pages.fitted import confusion_chart
    from ..pages.paths import path_document
    from ..pages.pictures import training_document

    title = os.path.basename(display_name(training_file))
    training = training_document(result.machine, X, y, result.refit, title)
    confusion = None
    if test is not None:
        predicted = result.machine.predict(test[0])
        confusion = confusion_chart(
            result.machine.classes, test[1], predicted, "rows of the test file"
        )
    return path_document(result.facts(), title, training, confusion)
