"""`nesvm-jit path`."""

import os
import sys
import time

import click

from . import options, outputs
from .progress import Progress


@click.command()
@click.argument("training_file")
@click.option(
    "-c",
    "--costs",
    default="1e-3:1e3:7",
    show_default=True,
    metavar="GRID",
    help="C to try: LOW:HIGH:COUNT in equal ratios, or numbers with commas between.",
)
@click.option(
    "-g",
    "--gammas",
    metavar="GRID",
    help="Kernel widths to try, likewise; also scale (default: 1/features).",
)
@click.option(
    "-v",
    "--folds",
    type=click.IntRange(min=2),
    default=5,
    show_default=True,
    metavar="N",
    help="Stratified folds.",
)
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="Draw the folds so many times.",
)
@click.option(
    "--scoring",
    type=click.Choice(["accuracy", "balanced_accuracy", "f1", "auc"]),
    default="accuracy",
    show_default=True,
    help="What to choose by. Two classes: F1 and AUC of the larger label; more: means.",
)
@click.option(
    "--rule",
    type=click.Choice(["best", "one-se"]),
    default="best",
    show_default=True,
    help="one-se: the smallest C within one standard error of the best score.",
)
@click.option("-o", "--output", metavar="MODEL", help="Train on all rows, write this model file.")
@click.option("--test", "test_file", metavar="FILE", help="Score the trained machine on this file.")
@options.kernel
@options.weights
@options.engine
@options.seed
@options.data
@options.stream
@options.plot
@options.html
@options.threads
@options.quiet
@options.as_json
def path(training_file, costs, gammas, folds, repeats, scoring, rule, output, test_file, **given):
    """Cross-validate along C (and gamma) on TRAINING_FILE, and choose.

    \b
    Every fit goes to the certified gap of --tol, starting from the one before it
    in C; folds run side by side on one copy of the data. Interrupted by Ctrl-C,
    the same command goes on where it stopped.

    \b
      nesvm-jit path a9a                            seven C, five folds, a table
      nesvm-jit path a9a --rule one-se -o a9a.model trains with the simplest good C
      nesvm-jit path -t rbf -c 1:100:3 -g 0.01,0.1 -v 3 usps
      nesvm-jit path --scoring auc --repeats 3 --json a9a
      nesvm-jit path --html a9a.html --test a9a.t a9a   as a page to look at
    """
    from ..files.training import read_training
    from ..selection import lines
    from ..selection.path import path as search

    settings = options.fit_options(given)
    silent = given["quiet"] or given["as_json"]
    pages = {name: given[name] for name in ("plot", "html") if given[name] is not None}
    inputs = [training_file, *filter(None, [test_file])]
    if inputs.count("-") > 1:
        raise click.UsageError("TRAINING_FILE and --test cannot both be standard input")
    if output:
        options.require_another_file("MODEL", output, *inputs)
    outputs.check({"MODEL": output} if output else {}, pages, inputs, given["as_json"])
    began = time.perf_counter()
    asked = settings["kernel"], given["features"], given["float32"], given["stream"]
    X, y = read_training(training_file, *asked)
    if y is None and pages:
        raise click.UsageError("--plot and --html need rows in memory, these stay on disk")
    test = _read_test(test_file, settings["kernel"], X) if test_file else None
    read = time.perf_counter() - began
    if not silent and y is not None and settings["kernel"] != "precomputed":
        _hint(X)
    state = _state_file(training_file, output)
    ending = "ending; the same command will go on from here. Ctrl-C again to end at once"
    with Progress(settings["tol"], not silent, _line, ending) as callback:
        try:
            result = search(
                X,
                y,
                costs,
                gammas,
                folds,
                repeats,
                scoring=scoring,
                rule=rule.replace("-", "_"),
                refit=bool(output or test_file or pages),
                keep_solutions=bool(pages),
                test=test,
                state=state,
                callback=callback,
                **settings,
            )
        except KeyboardInterrupt:
            result = None
    if result is None:
        kept = state is not None and os.path.exists(state)
        more = f"; the same command goes on from what {state} keeps" if kept else ""
        click.echo(f"nesvm-jit: interrupted{more}", err=True)
        sys.exit(130)
    if output:
        outputs.save(result.machine, output)
    result.seconds["read"] = read
    result.seconds["total"] = time.perf_counter() - began
    if given["as_json"]:
        options.print_json(result.facts())
    elif not given["quiet"]:
        to_stderr = any(map(options.is_stdout, filter(None, [output, *pages.values()])))
        for line in _report(result, lines):
            click.echo(line, err=to_stderr)
    if not silent:
        for line in [*_about_state(result, state), *lines.warnings(result)]:
            click.echo(f"nesvm-jit: {line}", err=True)
    if pages:
        outputs.draw(_document(result, X, y, test, training_file), pages)


def _document(result, X, y, test, training_file: str) -> dict:
    """The path, the machine trained with what was chosen, and how it does on the test file."""
    from ..files.text import display_name
    from ..pages.paths import path_document
    from ..pages.pictures import confusion_chart, training_document

    title = os.path.basename(display_name(training_file))
    training = training_document(result.machine, X, y, result.refit, title)
    confusion = None
    if test is not None:
        said = result.machine.predict(test[0])
        confusion = confusion_chart(result.machine.classes, test[1], said, "rows of the test file")
    return path_document(result.facts(), title, training, confusion)


def _read_test(test_file: str, kernel: str, X):
    """Rows and labels of a test file, with the columns that the machine will have."""
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


def _hint(X) -> None:
    from ..machine import facts as report

    for hint in report.scaling_hints(X):
        click.echo(f"nesvm-jit: hint: {hint}", err=True)


def _state_file(training_file: str, output: str | None) -> str | None:
    """Where finished columns are kept: beside the model, or named after the data in this folder."""
    if output and not options.is_stdout(output):
        return output + ".path.json"
    if training_file == "-" or not os.access(".", os.W_OK):
        return None
    return os.path.basename(training_file) + ".path.json"


def _report(result, lines):
    yield from lines.table_lines(result)
    yield from lines.choice_lines(result)
    if result.refit is not None:
        facts = result.refit
        gap = f"certified gap = {facts['gap']:.3e}"
        yield f"Trained on all rows: C = {facts['C']:g}, nSV = {facts['n_support']}, {gap}"
    if result.test is not None:
        yield lines.judged_line(result.test)


def _about_state(result, state):
    if result.resumed:
        yield f"{result.resumed} columns of the table were in {state}"
    if result.ignored:
        yield f"{state} is of another run and has been left as it is"


def _line(row: dict, tol: float, seconds: float) -> str:
    if "done" not in row:
        return f"training on all rows  gap {row['gap']:.2e}  {seconds:.1f} s"
    best = ""
    if "best_score" in row:
        best = f"  best so far {row['best_score']:.4f} at C = {row['best_C']:g}"
    return f"{row['done']}/{row['total']} fits  now C = {row['C']:g}{best}  {seconds:.1f} s"
