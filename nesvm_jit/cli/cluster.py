"""`nesvm-jit train --dask`: train on the workers of a cluster, which read the data."""

from functools import partial
from typing import Any

import click

from . import checkpoints, fitting, words
from .fitting import Clock, Request
from .options import TABLE
from .progress import ENDING, Progress

# Settings of kernels and of probabilities: clusters train linear machines without probabilities.
LOCAL_ONLY = ("kernel", "approx", "landmarks", "gamma", "cache_mb", "probability")
HANDED_ON = (
    *("model", "C", "bias", "solver", "tol", "mu", "mu_start", "mu_end", "epsilon", "lipschitz"),
    "returned",
    *("max_iter", "time_limit", "seed", "checkpoint", "checkpoint_every", "resume"),
    "class_weight",
)


def train_on_cluster(
    request: Request, target: str, address: str, workers: int | None, local: dict[str, Any]
) -> None:
    """Train on the workers of the scheduler at `address` and write the model on this computer.
    `local` holds the options that are not possible on a cluster."""
    import numpy as np

    from .. import distributed

    require_distributable(request.settings, local)
    fitting.check_files(request, target)
    if request.pages:
        fitting.refuse_rows_elsewhere(next(iter(request.pages)))
    clock = Clock()
    clock.stop("read")
    line = partial(words.fit_line, tol=request.settings["tol"])
    with (
        Progress(line, not request.silent, ENDING) as callback,
        checkpoints.announced(request.settings["checkpoint"], warns=True),
        distributed.connected(address, workers) as client,
        fitting.said_at_the_end(),
    ):
        machine = distributed.train(
            request.data,
            client=client,
            n_features=request.features,
            dtype=np.float32 if request.float32 else np.float64,
            callback=callback,
            **{name: request.settings[name] for name in HANDED_ON},
        )
    clock.stop("solve")
    fitting.finish(request, target, machine, clock, None, None)


def require_distributable(settings: dict[str, Any], local: dict[str, Any]) -> None:
    """Raise an error for options that are not possible on a cluster."""
    for name in LOCAL_ONLY:
        usual = TABLE[name].default if name in TABLE else False
        if settings[name] != usual:
            option = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"--dask trains linear machines, without {option}")
    if settings["multiclass"] == "ovo":
        raise click.UsageError("--dask trains one class against the rest, --multiclass ovr")
    for option, value in local.items():
        if value:
            raise click.UsageError(f"--dask and {option} do not go together")
