"""Checkpoints of `train`: checked before data are read, announced, and removed at the end."""

import contextlib
import os
import warnings
from collections.abc import Iterator
from typing import Any

import click

from . import outputs, words


def require_usable(settings: dict[str, Any], read: list[str], written: list[str]) -> None:
    """Raise an error, before data are read, if the checkpoint could not be used."""
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
    """Print warnings of the fit inside as one line each, and tell at Ctrl-C how to continue it."""

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
    """Return the advice on how to continue a run from its checkpoint."""
    from ..files.text import display_name

    return words.how_to_go_on(display_name(checkpoint), status)


def remove(checkpoint: str) -> None:
    """Remove the checkpoint of a finished run."""
    with contextlib.suppress(OSError):
        os.unlink(checkpoint)
