"""`nesvm-jit train`."""

import os
from dataclasses import replace

import click

from . import fitting, options
from .fitting import Request


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
    asked = Request(
        data=[training_file, *([model_file] if model_file else []), *more],
        settings=options.training_options(given),
        pages={name: given[name] for name in ("plot", "html", "trace") if given[name] is not None},
        features=features,
        float32=float32,
        stream=stream,
        warm_start=warm_start,
        quiet=quiet,
        as_json=as_json,
    )
    if output and model_file and not dask:
        raise click.UsageError("the model file is given twice, by MODEL_FILE and --output")
    if dask:
        target = _model_name(training_file, output)
        fitting.train_on_cluster(asked, target, dask, workers, folds)
        return
    if more:
        raise click.UsageError(f"Got unexpected extra argument ({more[0]})")
    if workers:
        raise click.UsageError("--workers is for --dask local")
    asked = replace(asked, data=[training_file])
    if folds:
        fitting.cross_validate_here(asked, folds)
    else:
        fitting.train_here(asked, _model_name(training_file, model_file or output))


def _model_name(training_file: str, model_file: str | None) -> str:
    if model_file is not None:
        return model_file
    if training_file == "-":
        raise click.UsageError("MODEL_FILE is required when training from standard input")
    return os.path.basename(training_file) + ".model"
