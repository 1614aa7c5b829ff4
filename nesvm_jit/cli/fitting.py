"""The three things that `train` does: train here, train on a cluster, cross-validate."""

import contextlib
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import click

from . import options, outputs
from .progress import Progress

# options of `train` that a cluster has no use for, by their name and value when not given
LOCAL_ONLY = {
    "--kernel": ("kernel", "linear"),
    "--approx": ("approx", None),
    "--landmarks": ("landmarks", None),
    "--gamma": ("gamma", None),
    "--cache-mb": ("cache_mb", None),
    "--probability": ("probability", False),
}


@dataclass(frozen=True)
class Request:
    """What `train` was asked for."""

    data: list[str]
    settings: dict[str, Any]
    pages: dict[str, str]
    features: int | None
    float32: bool
    stream: bool
    warm_start: str | None
    quiet: bool
    as_json: bool

    @property
    def silent(self) -> bool:
        """Whether nothing but results and errors is shown."""
        return self.quiet or self.as_json

    @property
    def inputs(self) -> list[str]:
        """Every file that is read."""
        return [*self.data, *filter(None, [self.warm_start])]


def train_here(asked: Request, target: str) -> None:
    """Train on this computer and write the model."""
    from ..machine.machine import load_model
    from ..machine.train import train

    warm = load_model(asked.warm_start) if asked.warm_start else None
    features = warm.n_features if warm and asked.features is None else asked.features
    _check_files(asked, target)
    clock = Clock()
    X, y = _read(asked, features, asked.pages)
    clock.stop("read")
    _give_hints(asked, X, y)

    def fit(callback: Callable) -> Any:
        kept = bool(asked.pages)
        return train(X, y, callback=callback, warm=warm, keep_solutions=kept, **asked.settings)

    _train(asked, target, fit, clock, X, y)


def train_on_cluster(
    asked: Request, target: str, address: str, workers: int | None, folds: int | None
) -> None:
    """Train on the workers of a cluster, which read the data, and write the model here."""
    given = {"--folds": folds, "--warm-start": asked.warm_start, "--stream": asked.stream}
    require_distributable(asked.settings, given)
    _check_files(asked, target)
    if asked.pages:
        _refuse_rows_elsewhere(next(iter(asked.pages)))
    clock = Clock()
    clock.stop("read")

    def fit(callback: Callable) -> Any:
        where = (asked.data, address, workers, asked.features, asked.float32)
        return fit_on_cluster(*where, callback, asked.settings)

    _train(asked, target, fit, clock, None, None)


def cross_validate_here(asked: Request, folds: int) -> None:
    """Print the accuracy of cross-validation; no model is written."""
    from ..machine import facts as report
    from ..machine.crossval import cross_validate

    if asked.warm_start:
        raise click.UsageError("--warm-start and --folds do not go together")
    if asked.pages:
        raise click.UsageError(f"--{next(iter(asked.pages))} and --folds do not go together")
    require_usable_checkpoint(asked.settings, asked.inputs, [], folds)
    clock = Clock()
    X, y = _read(asked, asked.features, ["folds"])
    clock.stop("read")
    _give_hints(asked, X, y)
    with Progress(asked.settings["tol"], wanted=not asked.silent) as callback:
        found = cross_validate(X, y, folds, callback=callback, **asked.settings)
    clock.stop("solve")
    if asked.as_json:
        options.print_json(report.cross_validation(found, X, asked.settings, clock.seconds()))
    elif not asked.quiet:
        click.echo(f"Cross Validation Accuracy = {100 * found.accuracy:g}%")


class Clock:
    """Seconds of the phases of a command."""

    def __init__(self) -> None:
        self._began = self._last = time.perf_counter()
        self._phases: dict[str, float] = {}

    def stop(self, phase: str) -> None:
        """End a phase; the next one begins."""
        now = time.perf_counter()
        self._phases[phase], self._last = now - self._last, now

    def seconds(self) -> dict[str, float]:
        """Of every phase, and in total."""
        return {**self._phases, "total": time.perf_counter() - self._began}


def _check_files(asked: Request, target: str) -> None:
    """Refuse, before data are read, files that could not be written or used."""
    options.require_another_file("MODEL_FILE", target, *asked.data)
    outputs.check({"MODEL_FILE": target}, asked.pages, asked.inputs, asked.as_json)
    written = [target, *asked.pages.values()]
    require_usable_checkpoint(asked.settings, asked.inputs, written, None)


def _read(asked: Request, features: int | None, needs_memory: Any) -> tuple[Any, Any]:
    """Rows and labels; an on-disk matrix without labels where its rows stay on disk."""
    from ..files.training import read_training

    how = (asked.settings["kernel"], features, asked.float32, asked.stream)
    X, y = read_training(asked.data[0], *how)
    if y is None and needs_memory:
        _refuse_rows_elsewhere(next(iter(needs_memory)))
    return X, y


def _refuse_rows_elsewhere(option: str) -> None:
    raise click.UsageError(f"--{option} needs rows in memory, these stay where they are")


def _give_hints(asked: Request, X: Any, y: Any) -> None:
    from ..machine import facts as report

    if not asked.silent and y is not None and asked.settings["kernel"] != "precomputed":
        for hint in report.scaling_hints(X):
            click.echo(f"nesvm-jit: hint: {hint}", err=True)


def _train(
    asked: Request, target: str, fit: Callable[[Callable], Any], clock: Clock, X: Any, y: Any
) -> None:
    """Fit, write the model and what was asked for beside it, and say how it went."""
    from ..machine import facts as report

    settings, checkpoint = asked.settings, asked.settings["checkpoint"]
    with Progress(settings["tol"], wanted=not asked.silent) as callback, checkpointing(checkpoint):
        machine = fit(callback)
    clock.stop("solve")
    outputs.save(machine, target)
    clock.stop("write")
    facts = report.training(machine, settings["solver"], clock.seconds())
    if checkpoint and facts["status"] == "converged":
        remove_checkpoint(checkpoint)
    if asked.as_json:
        options.print_json(facts)
    elif not asked.quiet:
        to_stderr = any(map(options.is_stdout, [target, *asked.pages.values()]))
        for line in report.training_lines(machine, facts):
            click.echo(line, err=to_stderr)
    if not asked.silent:
        warned = list(report.warnings(facts, settings["tol"]))
        if checkpoint and facts["status"] != "converged":
            warned.append(how_to_go_on(checkpoint, facts["status"]))
        for line in warned:
            click.echo(f"nesvm-jit: {line}", err=True)
    if asked.pages:
        outputs.write(asked.pages, machine, X, y, facts, asked.data[0])
    if facts["status"] == "interrupted":
        sys.exit(130)


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
    from ..checkpoint.snapshot import require_replaceable, require_snapshot

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
