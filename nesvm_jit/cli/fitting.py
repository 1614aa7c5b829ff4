"""How `train` gets its machine: on this machine, or on a dask cluster."""

import click

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

    kept = "model C bias solver tol mu mu_start mu_end epsilon lipschitz max_iter time_limit seed"
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
