"""Checkpoints of `train`: refused before data are read, spoken of, and removed when done."""

import contextlib
import os
import warnings
from collections.abc import Iterator
from typing import Any

import click

from . import outputs, words


def require_usable(settings: dict[str, Any], read: list[str], written: list[str]) -> None:
    """Refuse, before data are read, a checkpoint that could not be used."""
    checkpoint = settings["checkpoint"]
    if checkpoint is None:
        if settings["resume"]:
            raise click.UsageError("--resume needs the --checkpoint to go on from")
        return
    outputs.require_another_file("--checkpoint", checkpoint, read)
    if os.path.realpath(checkpoint) in map(os.path.realpath, written):
        raise click.UsageError("--checkpoint must be another file than those that are written")
    from ..checkpoint.snapshot import require_replaceable, require_snapshot

    if settings["resume"]:
        require_snapshot(checkpoint)
    else:
        outputs.require_writable(checkpoint)
        require_replaceable(checkpoint)


@contextlib.contextmanager
def announced(checkpoint: str | None, warns: bool = False) -> Iterator[None]:
    """A fit whose warnings are one line each, where it has a checkpoint or may warn of something
    else, and whose Ctrl-C says how to go on."""

    def show(message: Any, *_: Any) -> None:
        outputs.print_notes([f"warning: {message}"])

    with warnings.catch_warnings():
        if warns or checkpoint is not None:
            warnings.showwarning = show  # type: ignore[assignment]
        try:
            yield
        except KeyboardInterrupt:
            raise KeyboardInterrupt(*([how_to_go_on(checkpoint)] if checkpoint else [])) from None


def how_to_go_on(checkpoint: str, status: str = "interrupted") -> str:
    """What to do about a run that could go on."""
    from ..files.text import display_name

    return words.how_to_go_on(display_name(checkpoint), status)


def remove(checkpoint: str) -> None:
    """Remove a checkpoint that has done its work."""
    with contextlib.suppress(OSError):
        os.unlink(checkpoint)
