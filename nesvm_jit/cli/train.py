"""`nesvm-jit train`."""

import os
import stat
import sys
import time

import click

from ..errors import NesvmError
from . import options
from .progress import Progress


@click.command()
@click.argument("training_file")
@click.argument("model_file", required=False)
@options.problem
@options.solver
@click.option(
    "-v",
    "--folds",
    type=click.IntRange(min=2),
    metavar="N",
    help="Cross-validate with N stratified folds instead of writing a model.",
)
@options.data
@options.threads
@options.quiet
@options.as_json
def train(training_file, model_file, folds, features, float32, warm_start, quiet, as_json, **given):
    """Train a machine on TRAINING_FILE (LIBSVM text, compressed or not, `-` for standard input)
    and write it to MODEL_FILE (default: the file's name with `.model`, in this folder).

    \b
    Training ends when the certified duality gap of the true problem is below the
    tolerance, at a limit, or at Ctrl-C, which keeps the best model found.

    \b
      nesvm-jit train a9a                         linear C-SVM, writes a9a.model
      nesvm-jit train -c 10 -w1 3 a9a strict.model  class 1 costs three times as much
      nesvm-jit train -t rbf -g 0.01 -b 1 usps.xz   RBF, with probabilities
      nesvm-jit train -s lpsvm -e 1e-4 --json a9a   l1 norm, facts as JSON
      nesvm-jit train -v 5 a9a                    cross-validation accuracy
    """
    from .. import report
    from ..files.training import read_training
    from ..machine.crossval import cross_validate
    from ..machine.machine import load_model
    from ..machine.train import train as fit

    settings = options.training_options(given)
    if folds and warm_start:
        raise click.UsageError("--warm-start and --folds do not go together")
    warm = load_model(warm_start) if warm_start else None
    features = warm.n_features if warm and features is None else features
    target = "" if folds else _model_name(training_file, model_file)
    if target:
        if as_json and options.is_stdout(target):
            raise click.UsageError("--json and a MODEL_FILE of - both need standard output")
        options.require_another_file("MODEL_FILE", target, training_file)
        require_writable(target)
    start = time.perf_counter()
    X, y = read_training(training_file, settings["kernel"], features, float32)
    seconds = {"read": time.perf_counter() - start}
    silent = quiet or as_json
    if not silent and settings["kernel"] != "precomputed":
        for hint in report.scaling_hints(X):
            click.echo(f"nesvm-jit: hint: {hint}", err=True)
    began = time.perf_counter()
    if folds:
        with Progress(settings["tol"], wanted=not silent) as callback:
            found = cross_validate(X, y, folds, callback=callback, **settings)
        seconds["solve"] = time.perf_counter() - began
        seconds["total"] = time.perf_counter() - start
        if as_json:
            options.print_json(report.cross_validation(found, X, settings, seconds))
        elif not quiet:
            click.echo(f"Cross Validation Accuracy = {100 * found.accuracy:g}%")
        return
    with Progress(settings["tol"], wanted=not silent) as callback:
        machine = fit(X, y, callback=callback, warm=warm, **settings)
    seconds["solve"] = time.perf_counter() - began
    began = time.perf_counter()
    save(machine, target)
    seconds["write"] = time.perf_counter() - began
    seconds["total"] = time.perf_counter() - start
    facts = report.training(machine, settings["solver"], seconds)
    if as_json:
        options.print_json(facts)
    elif not quiet:
        for line in report.training_lines(machine, facts):
            click.echo(line, err=options.is_stdout(target))
    if not silent:
        for line in report.warnings(facts, settings["tol"]):
            click.echo(f"nesvm-jit: {line}", err=True)
    if facts["status"] == "interrupted":
        sys.exit(130)


def _model_name(training_file: str, model_file: str | None) -> str:
    if model_file is not None:
        return model_file
    if training_file == "-":
        raise click.UsageError("MODEL_FILE is required when training from standard input")
    return os.path.basename(training_file) + ".model"


def require_writable(target: str) -> None:
    """Say now, not after hours of training, that the model cannot be written."""
    if options.is_stdout(target):
        return
    from ..files.text import display_name

    why = _obstacle(os.path.realpath(target))
    if why:
        raise NesvmError(f"{display_name(target)}: cannot be written: {why}")


def _obstacle(target: str) -> str:
    """Why a file cannot be written; nothing if it can."""
    folder = os.path.dirname(target)
    try:
        exists = stat.S_IFMT(os.stat(target).st_mode)
    except FileNotFoundError:
        exists = 0
    except OSError as e:
        return str(e.strerror)
    if exists == stat.S_IFDIR:
        return "it is a folder"
    if not os.path.isdir(folder):
        return "no such folder"
    if exists and not os.access(target, os.W_OK):
        return "permission denied"
    if exists in (0, stat.S_IFREG) and not os.access(folder, os.W_OK):
        return "permission denied in its folder"  # it is written beside the old one, then renamed
    return ""


def save(machine, target: str) -> None:
    """Write the model; where that fails, save it elsewhere rather than lose it."""
    try:
        machine.save(target)
    except NesvmError as e:
        raise NesvmError(f"{e}{_rescue(machine)}") from None


def _rescue(machine) -> str:
    """Where the model is now, as the end of a sentence; nothing if it is lost."""
    import shutil
    import tempfile

    folder = tempfile.mkdtemp(prefix="nesvm-jit-")
    spare = os.path.join(folder, "rescued.model")
    try:
        machine.save(spare)
    except NesvmError:
        shutil.rmtree(folder, ignore_errors=True)
        return ""
    return f"; the model was saved as {spare}"
