"""Options that several commands share."""

import click


def _set_threads(ctx, param, value):
    if value is not None:
        from ..jit import set_threads

        set_threads(value)
    return value


threads = click.option(
    "--threads",
    type=click.IntRange(min=1),
    callback=_set_threads,
    expose_value=False,
    help="Threads to run on (default: all cores).",
)
quiet = click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
