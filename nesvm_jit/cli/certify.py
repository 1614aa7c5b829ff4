"""`nesvm-jit certify`."""

import click

from . import options, outputs, words


@click.command()
@click.argument("model_file")
@click.argument("data_file")
@click.option(
    "-c",
    "--cost",
    "C",
    type=float,
    help="Set the C of the problem (default: the one that the model file names, or 1).",
)
@options.class_weights
@click.option(
    "--polish",
    type=click.FloatRange(min=0),
    metavar="S",
    help="Look for a better lower bound for this many seconds (default: 0 if the model has "
    "coefficients of rows, else 2).",
)
@click.option(
    "--exact",
    is_flag=True,
    help="Compute the bounds in rational arithmetic, which is slow and meant for small data.",
)
@options.float32
@options.threads
@options.as_json
def certify(
    model_file: str,
    data_file: str,
    C: float | None,
    weights: tuple[tuple[float, float], ...],
    polish: float | None,
    exact: bool,
    float32: bool,
    as_json: bool,
) -> None:
    """Prove how far the model in MODEL_FILE is from the optimum on DATA_FILE, the data that it was
    trained on. The model is not changed.

    \b
    MODEL_FILE may come from this program, from LIBSVM's svm-train or from LIBLINEAR's
    train -s 3. The files of those two do not hold C and the weights of classes: give
    them as in training. Files of this program hold them.

    \b
    Examples:
      nesvm-jit certify a9a.model a9a                            a model of this program
      nesvm-jit certify -c 10 -w1 3 libsvm.model heart_scale     trained with -c 10 -w1 3
      nesvm-jit certify --polish 60 --json liblinear.model a9a   a better bound, in a minute
      nesvm-jit certify --exact small.model small                in rational arithmetic
    """
    from ..certifying.checker import certify as prove
    from ..files.training import read_training
    from ..machine.machine import load_model

    if model_file == data_file == "-":
        raise click.UsageError("MODEL_FILE and DATA_FILE cannot both be standard input")
    machine = load_model(model_file)
    X, y = read_training(data_file, machine.record.kernel, None, float32)
    if y is None:
        raise click.UsageError("certify needs rows in memory, these stay on disk")
    certificate = prove(
        machine, X, y, C, class_weight=dict(weights) or None, polish=polish, exact=exact
    ).facts()
    if as_json:
        outputs.print_json(certificate)
        return
    for line in words.certificate_lines(certificate):
        click.echo(line)
    outputs.print_notes(f"note: {note}" for note in certificate["notes"])
