"""`nesvm-jit train`."""

import os
import sys
import time

import click

from ..errors import NesvmError
from . import fitting, options, outputs
from .progress import Progress


@click.command()
@click.argument("training_file")
@click.argument("model_file", required=False)
@click.argument("more", nargs=-1, metavar="")
@options.problem
@options.solver
@options.checkpoints
@click.option(
    "-v",
    "--folds",
    type=click.IntRange(min=2),
    metavar="N",
    help="Cross-validate with N stratified folds instead of writing a model.",
)
@options.data
@options.stream
@click.option(
    "--dask",
    metavar="ADDRESS",
    help="Train on the workers of the dask scheduler at ADDRESS, or on worker processes of this "
    "machine ('local'): all arguments are then data files that the workers can read.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    metavar="N",
    help="Worker processes of --dask local (default: one per thread).",
)
@click.option("-o", "--output", metavar="MODEL", help="The model file, also with --dask.")
@options.plot
@options.html
@options.trace
@options.threads
@options.quiet
@options.as_json
def train(
    training_file,
    model_file,
    more,
    folds,
    features,
    float32,
    stream,
    dask,
    workers,
    output,
    warm_start,
    quiet,
    as_json,
    **given,
):
    """Train a machine on TRAINING_FILE (LIBSVM text, compressed or not, `-` for standard input, or
    an on-disk matrix made by `convert`) and write it to MODEL_FILE (default: the file's name with
    `.model`, in this folder).

    \b
    Training ends when the certified duality gap of the true problem is below the
    tolerance, at a limit, or at Ctrl-C, which keeps the best model found.

    \b
      nesvm-jit train a9a                         linear C-SVM, writes a9a.model
      nesvm-jit train -c 10 -w1 3 a9a strict.model  class 1 costs three times as much
      nesvm-jit train -t rbf -g 0.01 -b 1 usps.xz   RBF, with probabilities
      nesvm-jit train -s lpsvm -e 1e-4 --json a9a   l1 norm, facts as JSON
      nesvm-jit train -v 5 a9a                    cross-validation accuracy
      nesvm-jit train --dask local -o big.model part1 part2   on worker processes
      nesvm-jit train --html a9a.html a9a           the run as a page to look at
      nesvm-jit train --checkpoint state a9a      killed, it goes on with --resume
    """
    from .. import report
    from ..files.training import read_training
    from ..machine.crossval import cross_validate
    from ..machine.machine import load_model
    from ..machine.train import train as fit

    settings = options.training_options(given)
    data = [training_file, *([model_file] if model_file else []), *more]
    if dask:
        fitting.require_distributable(
            settings,
            {"--folds": folds, "--warm-start": warm_start, "--stream": stream},
        )
        model_file = None
    elif len(data) > 2:
        raise click.UsageError(f"Got unexpected extra argument ({more[0]})")
    elif workers:
        raise click.UsageError("--workers is for --dask local")
    if output and model_file:
        raise click.UsageError("the model file is given twice, by MODEL_FILE and --output")
    model_file = model_file or output
    if folds and warm_start:
        raise click.UsageError("--warm-start and --folds do not go together")
    warm = load_model(warm_start) if warm_start else None
    features = warm.n_features if warm and features is None else features
    pages = {name: given[name] for name in ("plot", "html", "trace") if given[name] is not None}
    if folds and pages:
        raise click.UsageError(f"--{next(iter(pages))} and --folds do not go together")
    target = "" if folds else _model_name(training_file, model_file)
    if target:
        inputs = data if dask else [training_file]
        options.require_another_file("MODEL_FILE", target, *inputs)
        outputs.check({"MODEL_FILE": target}, pages, [*inputs, warm_start], as_json)
    checkpoint = settings["checkpoint"]
    read = [*(data if dask else [training_file]), warm_start]
    fitting.require_usable_checkpoint(settings, read, [target, *pages.values()], folds)
    start = time.perf_counter()
    X = y = None
    if not dask:
        X, y = read_training(training_file, settings["kernel"], features, float32, stream)
    if y is None and (folds or pages):
        asked = "folds" if folds else next(iter(pages))
        raise click.UsageError(f"--{asked} needs rows in memory, these stay where they are")
    seconds = {"read": time.perf_counter() - start}
    silent = quiet or as_json
    if not silent and y is not None and settings["kernel"] != "precomputed":
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
    watching = Progress(settings["tol"], wanted=not silent)
    with watching as callback, fitting.checkpointing(checkpoint):
        if dask:
            arguments = (data, dask, workers, features, float32)
            machine = fitting.fit_on_cluster(*arguments, callback, settings)
        else:
            kept = bool(pages)
            machine = fit(X, y, callback=callback, warm=warm, keep_solutions=kept, **settings)
    seconds["solve"] = time.perf_counter() - began
    began = time.perf_counter()
    save(machine, target)
    seconds["write"] = time.perf_counter() - began
    seconds["total"] = time.perf_counter() - start
    facts = report.training(machine, settings["solver"], seconds)
    if checkpoint and facts["status"] == "converged":
        fitting.remove_checkpoint(checkpoint)
    if as_json:
        options.print_json(facts)
    elif not quiet:
        for line in report.training_lines(machine, facts):
            click.echo(line, err=any(map(options.is_stdout, [target, *pages.values()])))
    if not silent:
        for line in report.warnings(facts, settings["tol"]):
            click.echo(f"nesvm-jit: {line}", err=True)
        if checkpoint and facts["status"] != "converged":
            hint = fitting.how_to_go_on(checkpoint, facts["status"])
            click.echo(f"nesvm-jit: {hint}", err=True)
    if pages:
        outputs.write(pages, machine, X, y, facts, training_file)
    if facts["status"] == "interrupted":
        sys.exit(130)


def _model_name(training_file: str, model_file: str | None) -> str:
    if model_file is not None:
        return model_file
    if training_file == "-":
        raise click.UsageError("MODEL_FILE is required when training from standard input")
    return os.path.basename(training_file) + ".model"


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
