"""How `train` gets its machine: on this machine, or on a dask cluster."""

import contextlib
import os
import warnings
from collections.abc import Iterator

import click

from . import options, outputs

# options of `train` that a cluster has no use for, by their name and value when not given
LOCAL_ONLY = {
    "--kernel": ("kernel", "linear"),
    "--approx": ("approx", None),
    "--landmarks": ("landmarks", None),
    "--gamma": ("gamma", None),
    "--cache-mb": ("cache_mb", None),
    "--probability": ("probability", False),
}


def require_distributable(settings: dict, given: dict) -> None:
    """Refuse what only one machine can do."""
    for option, (name, usual) in LOCAL_ONLY.items():
        if settings[name] != usual:
            raise click.UsageError(f"--dask trains linear machines, without {option}")
    if settings["multiclass"] == "ovo":
        raise click.UsageError("--dask trains one class against the rest, --multiclass ovr")
    for option, value in given.items():
        if value:
            raise click.UsageError(f"--dask and {option} do not go together")


def fit_on_cluster(data, address, workers, features, float32, callback, settings):
    """Train on files that the workers of a cluster read."""
    import numpy as np

    from .. import distributed

    kept = (
        "model C bias solver tol mu mu_start mu_end epsilon lipschitz max_iter time_limit seed "
        "checkpoint checkpoint_every resume"
    )
    options = {name: settings[name] for name in [*kept.split(), "class_weight"]}
    with distributed.connected(address, workers) as client:
        return distributed.train(
            data,
            client=client,
            n_features=features,
            dtype=np.float32 if float32 else np.float64,
            callback=callback,
            **options,
        )


def require_usable_checkpoint(settings: dict, read: list, written: list, folds) -> None:
    """Refuse, before data are read, a checkpoint that could not be used."""
    checkpoint = settings["checkpoint"]
    if checkpoint is None:
        if settings["resume"]:
            raise click.UsageError("--resume needs the --checkpoint to go on from")
        return
    if folds:
        raise click.UsageError("--checkpoint and --folds do not go together")
    options.require_another_file("--checkpoint", checkpoint, *(path for path in read if path))
    if os.path.realpath(checkpoint) in map(os.path.realpath, written):
        raise click.UsageError("--checkpoint must be another file than those that are written")
    from ..files.snapshot import require_replaceable, require_snapshot

    if settings["resume"]:
        require_snapshot(checkpoint)
    else:
        outputs.require_writable(checkpoint)
        require_replaceable(checkpoint)


@contextlib.contextmanager
def checkpointing(checkpoint: str | None) -> Iterator[None]:
    """A fit whose warnings are one line each; Ctrl-C says how to go on."""

    def show(message, *_):
        click.echo(f"nesvm-jit: warning: {message}", err=True)

    with warnings.catch_warnings():
        if checkpoint is not None:
            warnings.showwarning = show  # type: ignore[assignment]
        try:
            yield
        except KeyboardInterrupt:
            raise KeyboardInterrupt(*([how_to_go_on(checkpoint)] if checkpoint else [])) from None


def how_to_go_on(checkpoint: str, status: str = "interrupted") -> str:
    """What to do about a run that could go on."""
    from ..files.text import display_name

    more = "" if status == "interrupted" else " and a higher limit"
    return f"the same command with --resume{more} goes on from {display_name(checkpoint)}"


def remove_checkpoint(checkpoint: str) -> None:
    """It has done its work."""
    with contextlib.suppress(OSError):
        os.unlink(checkpoint)
