"""`nesvm-jit convert`."""

import signal
import sys
import time

import click

from . import options
from .progress import EVERY, LATER, _columns


@click.command()
@click.argument("text_file", nargs=-1, required=True)
@click.argument("binary_dir")
@options.data
@click.option(
    "--fresh", is_flag=True, help="Start anew where an interrupted run could be taken up."
)
@options.threads
@options.quiet
@options.as_json
def convert(text_file, binary_dir, features, float32, fresh, quiet, as_json):
    """Write the rows of TEXT_FILE (LIBSVM text, compressed or not, `-` for standard input; several
    files in their order) as an on-disk matrix in the folder BINARY_DIR.

    \b
    Text of any size is read, in blocks. The folder appears when it is whole. After Ctrl-C, a
    full disk or a crash, the same command goes on where it stopped.

    \b
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
        with Meter(wanted=not (quiet or as_json)) as meter:
            found = run(text_file, binary_dir, features, dtype, resume=not fresh, progress=meter)
    except KeyboardInterrupt:
        if not unfinished(binary_dir):
            raise
        if sys.stderr.isatty():  # the terminal has written ^C
            click.echo(err=True)
        raise InterruptedRun from None
    facts = {
        "n_samples": found.n_rows,
        "n_features": found.n_cols,
        "n_cells": found.n_cells,
        "bytes": found.nbytes,
        "seconds": round(time.perf_counter() - start, 6),
        "resumed": found.resumed,
    }
    if as_json:
        options.print_json(facts)
    elif not quiet:
        click.echo(
            f"{found.n_rows} rows, {found.n_cols} features, {found.n_cells} values: "
            f"{found.nbytes / 1e6:.1f} MB in {binary_dir}"
        )


class InterruptedRun(click.ClickException):
    """Ctrl-C, with a journal to go on from."""

    exit_code = 130

    def __init__(self):
        super().__init__("interrupted; without --fresh the same command goes on where it stopped")


class Meter:
    """Rows and speed on a terminal, in one line that is written over; nothing in a pipe."""

    def __init__(self, wanted: bool):
        self._shown = wanted and sys.stderr.isatty()
        self._started = time.perf_counter()
        self._next = self._started + LATER
        self._first: int | None = None
        self._width = 0
        self._asked = False

    def __enter__(self) -> "Meter":
        self._before = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *_) -> None:
        signal.signal(signal.SIGINT, self._before)
        if self._width:
            print("\r" + " " * self._width + "\r", end="", file=sys.stderr, flush=True)

    def __call__(self, facts: dict) -> None:
        if self._asked:  # Ctrl-C inside the compiler's own callbacks is lost there
            raise KeyboardInterrupt
        now = time.perf_counter()
        if self._first is None:  # what an interrupted run had read is no speed of this one
            self._first = facts["text_bytes"]
        if self._shown and now >= self._next:
            self._next = now + EVERY
            speed = (facts["text_bytes"] - self._first) / 1e6 / (now - self._started)
            line = (
                f"{facts['rows']} rows  {facts['text_bytes'] / 1e6:.0f} MB of text  "
                f"{speed:.0f} MB/s  {facts['file']}"
            )[: max(0, _columns() - 1)]
            print("\r" + line.ljust(self._width), end="", file=sys.stderr, flush=True)
            self._width = len(line)

    def _interrupt(self, number, _) -> None:
        self._asked = True
        raise KeyboardInterrupt
