"""`nesvm-jit info`."""

import click

from . import options


@click.command()
@click.argument("model_file")
@options.as_json
def info(model_file, as_json):
    """What the model in MODEL_FILE is, and its certificate; or what an on-disk matrix holds, and
    whether its checksums are right.

    \b
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
        facts = report.matrix(matrix)
        if as_json:
            options.print_json(facts)
        else:
            for name, value in facts.items():
                click.echo(f"{name:10} {value}")
        return
    machine = load_model(model_file)
    if as_json:
        options.print_json(report.model(machine))
    else:
        for line in report.model_lines(machine):
            click.echo(line)
