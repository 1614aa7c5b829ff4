"""`nesvm-jit info`."""

import click

from . import options


@click.command()
@click.argument("model_file")
@options.as_json
def info(model_file, as_json):
    """What the model in MODEL_FILE is, and its certificate.

    \b
      nesvm-jit info a9a.model
      nesvm-jit info --json a9a.model
    """
    from .. import report
    from ..machine.machine import load_model

    machine = load_model(model_file)
    if as_json:
        options.print_json(report.model(machine))
    else:
        for line in report.model_lines(machine):
            click.echo(line)
