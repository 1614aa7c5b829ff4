"""`nesvm-jit train`."""

import os
from functools import partial
from typing import Any

import click

from . import checkpoints, fitting, options, words
from .cluster import train_on_cluster
from .crossval import cross_validate_here
from .fitting import Clock, Request
from .progress import ENDING, Progress


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
    help="Train on the workers of the dask scheduler at ADDRESS, or with 'local' on worker "
    "processes of this computer. All arguments are then data files, which every worker must be "
    "able to read.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    metavar="N",
    help="Start N worker processes for --dask local (default: one per thread).",
)
@click.option("-o", "--output", metavar="MODEL", help="Write the model to this file.")
@options.plot
@options.html
@options.trace
@options.threads
@options.strict
@options.quiet_fit
@options.as_json
def train(training_file: str, model_file: str | None, more: tuple[str, ...], **given: Any) -> None:
    """Train a machine on TRAINING_FILE (LIBSVM text, compressed or not, `-` for standard input, or
    an on-disk matrix made by `convert`) and write it to MODEL_FILE (default: the file's name with
    `.model`, in this folder).

    \b
    Training ends when the certified duality gap is below the tolerance, when nothing
    improves any more, at a limit, or at Ctrl-C. The best model found is written in
    every case; a line tells if the tolerance was not certified.

    \b
    Examples:
      nesvm-jit train a9a                            train a linear C-SVM, write a9a.model
      nesvm-jit train -c 10 -w1 3 a9a strict.model   weigh errors of class 1 three times
      nesvm-jit train -t rbf -g 0.01 -b 1 usps.xz    use an RBF kernel, with probabilities
      nesvm-jit train -s lpsvm -e 1e-4 --json a9a    use the l1 norm, print JSON
      nesvm-jit train -v 5 a9a                       print the cross-validation accuracy
      nesvm-jit train --dask local -o big.model part1 part2    use worker processes
      nesvm-jit train --html a9a.html a9a            draw the run, too
      nesvm-jit train --checkpoint state a9a         if killed, add --resume to continue
    """
    dask, folds, warm_start = given["dask"], given["folds"], given["warm_start"]
    if dask:
        request = Request.of([training_file, *filter(None, [model_file]), *more], given)
        target = _model_name(training_file, given["output"])
        local = {"--folds": folds, "--warm-start": warm_start, "--stream": request.stream}
        return train_on_cluster(request, target, dask, given["workers"], local)
    if given["output"] and model_file:
        raise click.UsageError("the model file is given twice, by MODEL_FILE and --output")
    if more:
        raise click.UsageError(f"Got unexpected extra argument ({more[0]})")
    if given["workers"]:
        raise click.UsageError("--workers is for --dask local")
    request = Request.of([training_file], given)
    if folds:
        return cross_validate_here(request, folds, warm_start)
    train_here(request, _model_name(training_file, model_file or given["output"]), warm_start)


def train_here(request: Request, target: str, warm_start: str | None) -> None:
    """Train on this computer and write the model."""
    from ..machine.machine import load_model
    from ..machine.train import train_silently

    warm = load_model(warm_start) if warm_start else None
    features = warm.n_features if warm and request.features is None else request.features
    fitting.check_files(request, target, warm_start)
    clock = Clock()
    X, y = fitting.read(request, features, list(request.pages))
    clock.stop("read")
    line, kept = partial(words.fit_line, tol=request.settings["tol"]), bool(request.pages)
    with (
        Progress(line, not request.silent, ENDING) as callback,
        checkpoints.announced(request.settings["checkpoint"]),
    ):
        more = {"callback": callback, "warm": warm, "keep_solutions": kept}
        machine = train_silently(X, y, **more, **request.settings)
    clock.stop("solve")
    fitting.finish(request, target, machine, clock, X, y)


def _model_name(training_file: str, model_file: str | None) -> str:
    if model_file is not None:
        return model_file
    if training_file == "-":
        raise click.UsageError("MODEL_FILE is required when training from standard input")
    return os.path.basename(training_file) + ".model"
