"""`nesvm-jit convert`."""

import sys
import time

import click

from ..signals import exit_status
from . import options, outputs, words
from .progress import Progress


@click.command()
@click.argument("text_file", nargs=-1, required=True)
@click.argument("binary_dir")
@options.data
@click.option(
    "--fresh", is_flag=True, help="Start anew, even if an interrupted run could be continued."
)
@options.threads
@options.quiet
@options.as_json
def convert(
    text_file: tuple[str, ...],
    binary_dir: str,
    features: int | None,
    float32: bool,
    fresh: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Write the rows of TEXT_FILE (LIBSVM text, compressed or not, `-` for standard input; several
    files in their order) as an on-disk matrix in the folder BINARY_DIR.

    \b
    The text is read in blocks, so it may be of any size. The folder appears when it is
    complete. After Ctrl-C, a full disk or a crash, the same command continues where it
    stopped.

    \b
    Examples:
      nesvm-jit convert webspam.xz webspam.bin
      nesvm-jit convert --float32 part-*.gz all.bin
      nesvm-jit predict webspam.bin webspam.model out
    """
    from ..files.ondisk.convert import convert as run
    from ..files.ondisk.workfolder import unfinished

    if binary_dir == "-":
        raise click.UsageError("BINARY_DIR must be a folder, got -")
    start = time.perf_counter()
    dtype = "float32" if float32 else "float64"
    try:
        with Progress(words.reading_line, not (quiet or as_json)) as shown:
            conversion = run(
                text_file, binary_dir, features, dtype, resume=not fresh, progress=shown
            )
    except KeyboardInterrupt:
        if not unfinished(binary_dir):
            raise
        if sys.stderr.isatty():  # the terminal has printed ^C
            click.echo(err=True)
        raise InterruptedRun from None
    facts = {
        "n_samples": conversion.n_rows,
        "n_features": conversion.n_cols,
        "n_cells": conversion.n_cells,
        "bytes": conversion.nbytes,
        "seconds": round(time.perf_counter() - start, 6),
        "resumed": conversion.resumed,
    }
    if as_json:
        outputs.print_json(facts)
    elif not quiet:
        click.echo(words.conversion_line(facts, binary_dir))


class InterruptedRun(click.ClickException):
    """Raised at Ctrl-C or another signal if the journal allows to resume the conversion."""

    def __init__(self) -> None:
        self.exit_code = exit_status()  # type: ignore[misc]
        super().__init__("interrupted; without --fresh the same command goes on where it stopped")
