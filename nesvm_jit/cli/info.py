"""`nesvm-jit info`."""

import click

from . import options, outputs, words


@click.command()
@click.argument("model_file")
@options.as_json
def info(model_file: str, as_json: bool) -> None:
    """Describe the model in MODEL_FILE and show its certificate. For an on-disk matrix, tell what
    it holds and whether its checksums are right.

    \b
    Examples:
      nesvm-jit info a9a.model
      nesvm-jit info --json a9a.model
      nesvm-jit info matrix
    """
    from ..files.ondisk.matrix import is_matrix, open_matrix
    from ..machine import facts as report
    from ..machine.machine import load_model

    if is_matrix(model_file):
        matrix = open_matrix(model_file)
        matrix.verify()
        facts, lines = report.matrix(matrix), words.matrix_lines
    else:
        facts, lines = report.model(load_model(model_file)), words.model_lines
    if as_json:
        outputs.print_json(facts)
    else:
        for line in lines(facts):
            click.echo(line)
