"""What commands write: files, looked at before the work begins and written when it is done, and
lines of text or JSON."""

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
    """Whether a result goes to standard output, where nothing else may be then."""
    return path in ("-", "/dev/stdout")


def print_json(facts: dict[str, Any]) -> None:
    """Print one line of JSON; what is no number (an infinite gap) is null."""

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
    """Refuse to write over a file that is read."""
    for given in inputs:
        if os.path.isfile(path) and os.path.exists(given) and os.path.samefile(path, given):
            raise click.UsageError(f"{name} must be another file than the one that is read")


def check(
    results: dict[str, str], pages: dict[str, str], inputs: Iterable[str], as_json: bool
) -> None:
    """Refuse, before the work begins, files that could not be written after it.

    `results` and `pages` are names and files; the names of pages are options: plot, html, trace.
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
    """Write what was asked for of plot, html and trace of a machine that kept its solutions."""
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
    """Write a document as plot and as page, where asked for."""
    if "plot" in pages:
        from ..pages.plots import plot

        plot(document, pages["plot"])
    if "html" in pages:
        from ..pages.html import write_html

        write_html(document, pages["html"])


def require_writable(target: str) -> None:
    """Say now, not after hours of training, that a file cannot be written."""
    if is_stdout(target):
        return
    from ..files.text import display_name

    why = _obstacle(os.path.realpath(target))
    if why:
        raise NesvmError(f"{display_name(target)}: cannot be written: {why}")


def _obstacle(target: str) -> str:
    """Why a file cannot be written; nothing if it can."""
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
        return "permission denied in its folder"  # it is written beside the old one, then renamed
    return ""


def save(machine: Any, target: str) -> None:
    """Write the model; where that fails, save it elsewhere rather than lose it."""
    try:
        machine.save(target)
    except NesvmError as e:
        raise NesvmError(f"{e}{_rescue(machine)}") from None


def _rescue(machine: Any) -> str:
    """Where the model is now, as the end of a sentence; nothing if it is lost."""
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
