"""`nesvm-jit predict`."""

import time

import click

from . import options, outputs, words
from .progress import Progress


@click.command()
@click.argument("test_file")
@click.argument("model_file")
@click.argument("output_file")
@click.option(
    "-b",
    "--probability",
    type=click.IntRange(0, 1),
    default=0,
    show_default=True,
    help="Write a probability for every class if this is 1.",
)
@click.option(
    "--scores",
    is_flag=True,
    help="Write the decision value of every sub-problem after the label.",
)
@click.option(
    "--certified",
    is_flag=True,
    help="Write 1 after each label that is proven to be that of the exact optimum, and 0 after "
    "the others.",
)
@options.threads
@options.quiet
@options.as_json
def predict(
    test_file: str,
    model_file: str,
    output_file: str,
    probability: int,
    scores: bool,
    certified: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Predict the labels of the rows of TEST_FILE by the model in MODEL_FILE, and write one label
    per line to OUTPUT_FILE. A `-` stands for standard input or output. Rows are read and written
    in blocks, so a file may be of any size.

    \b
    MODEL_FILE may come from this program, from LIBLINEAR's train or from LIBSVM's svm-train.

    \b
    Examples:
      nesvm-jit predict a9a.t a9a.model a9a.out
      nesvm-jit predict --certified a9a.t a9a.model a9a.out
      nesvm-jit predict -b 1 usps.t usps.model usps.probabilities
      xzcat big.xz | nesvm-jit predict - a9a.model - | sort | uniq -c
    """
    from ..machine.predict import predict_certified, predict_file

    if as_json and outputs.is_stdout(output_file):
        raise click.UsageError("--json and an OUTPUT_FILE of - both need standard output")
    if test_file == model_file == "-":
        raise click.UsageError("TEST_FILE and MODEL_FILE cannot both be standard input")
    outputs.require_another_file("OUTPUT_FILE", output_file, [test_file, model_file])
    if probability and scores:
        raise click.UsageError("--scores and -b 1 exclude each other")
    if certified and (probability or scores):
        raise click.UsageError("--certified goes with labels alone, without --scores and -b 1")
    start = time.perf_counter()
    what = "probabilities" if probability else "scores" if scores else "labels"
    proven = {}
    with Progress(None, wanted=False) as block_done:
        if certified:
            counts = predict_certified(test_file, model_file, output_file, block_done)
            n, correct, proven["certified"] = counts
        else:
            n, correct = predict_file(test_file, model_file, output_file, what, block_done)
    facts = {
        "n_samples": n,
        "correct": correct,
        "accuracy": correct / n,
        **proven,
        "seconds": round(time.perf_counter() - start, 6),
    }
    if as_json:
        outputs.print_json(facts)
    elif not quiet:
        for line in words.prediction_lines(facts):
            click.echo(line, err=outputs.is_stdout(output_file))
