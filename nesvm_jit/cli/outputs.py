"""The output of commands: lines of text or JSON, and files, which are checked before the work
begins and written when it is done."""

import json
import math
import os
import stat
from collections.abc import Iterable
from itertools import combinations
from typing import Any

import click

from ..errors import NesvmError


def is_stdout(path: str) -> bool:
    """Return True if a result goes to standard output; nothing else may then be printed there."""
    return path in ("-", "/dev/stdout")


def print_json(facts: dict[str, Any]) -> None:
    """Print one line of JSON; numbers that are not finite, such as an infinite gap, are null."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: plain(v) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return [plain(v) for v in value]
        if isinstance(value, float) and not math.isfinite(value):
            return None
        return value

    click.echo(json.dumps(plain(facts), allow_nan=False))


def print_notes(lines: Iterable[str]) -> None:
    """Print lines about a result on standard error."""
    for line in lines:
        click.echo(f"nesvm-jit: {line}", err=True)


def require_another_file(name: str, path: str, inputs: Iterable[str]) -> None:
    """Raise an error if a file to write is one that is read."""
    for given in inputs:
        if os.path.isfile(path) and os.path.exists(given) and os.path.samefile(path, given):
            raise click.UsageError(f"{name} must be another file than the one that is read")


def check(
    results: dict[str, str], pages: dict[str, str], inputs: Iterable[str], as_json: bool
) -> None:
    """Raise an error, before the work begins, if a file could not be written after it.

    `results` and `pages` map names to files; the names of pages are the options plot, html and
    trace.
    """
    if "plot" in pages or "html" in pages:
        from ..pages.plots import format_of, require_matplotlib

        if "plot" in pages:
            format_of(pages["plot"])
        require_matplotlib()
    given = results | {f"--{name}": path for name, path in pages.items()}
    streams = [f"a {name} of -" for name, path in results.items() if is_stdout(path)]
    streams += [f"--{name} -" for name, path in pages.items() if is_stdout(path)]
    streams = ["--json"] * as_json + streams
    if len(streams) > 1:
        raise click.UsageError(f"{streams[0]} and {streams[1]} both need standard output")
    for (a, first), (b, second) in combinations(given.items(), 2):
        same = os.path.realpath(first) == os.path.realpath(second)
        if same and (os.path.isfile(first) or not os.path.exists(first)):
            raise click.UsageError(f"{a} and {b} must be different files")
    for name, path in pages.items():
        require_another_file(f"--{name}", path, inputs)
    for path in given.values():
        require_writable(path)


def write(
    pages: dict[str, str], machine: Any, X: Any, y: Any, facts: dict[str, Any], training_file: str
) -> None:
    """Write plot, html and trace if requested; the machine must have kept its solutions."""
    if "trace" in pages:
        from ..pages.trace import write_trace

        write_trace(machine, pages["trace"])
    if "plot" not in pages and "html" not in pages:
        return
    from ..files.text import display_name
    from ..pages.pictures import training_document

    title = os.path.basename(display_name(training_file))
    draw(training_document(machine, X, y, facts, title), pages)


def draw(document: dict[str, Any], pages: dict[str, str]) -> None:
    """Write a document as plot and as page, if requested."""
    if "plot" in pages:
        from ..pages.plots import plot

        plot(document, pages["plot"])
    if "html" in pages:
        from ..pages.html import write_html

        write_html(document, pages["html"])


def require_writable(target: str) -> None:
    """Raise NesvmError before training if a file cannot be written after it."""
    if is_stdout(target):
        return
    from ..files.text import display_name

    why = _obstacle(os.path.realpath(target))
    if why:
        raise NesvmError(f"{display_name(target)}: cannot be written: {why}")


def _obstacle(target: str) -> str:
    """Return the reason why a file cannot be written, or an empty text."""
    folder = os.path.dirname(target)
    try:
        exists = stat.S_IFMT(os.stat(target).st_mode)
    except FileNotFoundError:
        exists = 0
    except OSError as e:
        return str(e.strerror)
    if exists == stat.S_IFDIR:
        return "it is a folder"
    if not os.path.isdir(folder):
        return "no such folder"
    if exists and not os.access(target, os.W_OK):
        return "permission denied"
    if exists in (0, stat.S_IFREG) and not os.access(folder, os.W_OK):
        return "permission denied in its folder"  # where a temporary file is written first
    return ""


def save(machine: Any, target: str) -> None:
    """Write the model; if that fails, write it to another place."""
    try:
        machine.save(target)
    except NesvmError as e:
        raise NesvmError(f"{e}{_rescue(machine)}") from None


def _rescue(machine: Any) -> str:
    """Write the model to another place and return where, as the end of a sentence; return an empty
    text if that fails."""
    import shutil
    import tempfile

    folder = tempfile.mkdtemp(prefix="nesvm-jit-")
    spare = os.path.join(folder, "rescued.model")
    try:
        machine.save(spare)
    except NesvmError:
        shutil.rmtree(folder, ignore_errors=True)
        return ""
    return f"; the model was saved as {spare}"
