"""Collect numbers about runs, models and matrices, for JSON and for texts."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ..endings import worst_status
from ..files.model.text import format_of

if TYPE_CHECKING:
    from ..files.ondisk.matrix import OnDisk
    from .crossval import CrossValidation
    from .machine import Machine

SAMPLE_CELLS = 1 << 20  # cells of the first rows by which the scale of features is judged
LARGE = 50.0  # features are badly scaled if the size of one is beyond this
UNEVEN = 1000.0  # or if the size of one is more than so many times that of another


def uneven_features(X: Any) -> tuple[float, float] | None:
    """Return the sizes of the smallest and the largest feature if features are badly scaled, else
    None. The size of a feature is its largest absolute value in the first rows."""
    if hasattr(X, "tocsr"):
        X = X.tocsr()
    if hasattr(X, "indptr"):
        part = X
        cells = min(SAMPLE_CELLS, len(part.data))
        named, which = np.unique(part.indices[:cells], return_inverse=True)
        reach = np.zeros(len(named))
        np.maximum.at(reach, which, np.abs(part.data[:cells]))
    else:
        reach = np.abs(X[: max(1, SAMPLE_CELLS // max(1, X.shape[1]))]).max(axis=0, initial=0.0)
    used = reach[reach > 0]
    if not len(used):
        return None
    least, largest = float(used.min()), float(used.max())
    return (least, largest) if largest > LARGE or largest > UNEVEN * least else None


def matrix(found: "OnDisk") -> dict[str, Any]:
    """Return the facts of an on-disk matrix that has been verified."""
    labels, counts = np.unique(found.labels, return_counts=True)
    return {
        "n_samples": found.n_rows,
        "n_features": found.n_cols,
        "n_cells": found.n_cells,
        "dtype": str(found.dtype),
        "bytes": found.nbytes,
        "n_classes": len(labels),
        "rarest": int(counts.min(initial=found.n_rows)),
        "verified": True,
    }


def training(machine: "Machine", solver: str, seconds: dict[str, float]) -> dict[str, Any]:
    """Return the facts of a run: sums over all sub-problems, and the largest gap."""
    record, problems = machine.record, machine.problems
    facts = {
        "model": record.model,
        "kernel": record.kernel,
        "solver": problems[0]["solver"] if solver == "auto" else solver,
        "why": problems[0]["why"],
        "n_samples": record.extra["n_samples"],
        "n_features": machine.n_features,
        "n_classes": len(machine.classes),
        "C": record.extra["C"],
        "objective": sum(p["objective"] for p in problems),
        "dual_objective": sum(p["dual_objective"] for p in problems),
        "gap": machine.gap,
        "certified": all(p["certified"] for p in problems),
        "iterations": sum(p["iterations"] for p in problems),
        "status": worst_status([p["status"] for p in problems]),
        "n_support": machine.n_support,
        "seconds": {name: round(value, 6) for name, value in seconds.items()},
    }
    if "approx" in record.extra:
        facts["approx"] = record.extra["approx"] | _bounds_of_kernel(problems)
    if len(problems) > 1:
        facts |= {"multiclass": record.multiclass, "problems": problems}
    return facts


def _bounds_of_kernel(problems: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the bounds of the exact kernel if it was approximated: sums over all sub-problems, and
    the largest gap."""
    known = [p["kernel"] for p in problems if "kernel" in p]
    if len(known) < len(problems):
        return {}
    found = {name: sum(k[name] for k in known) for name in ("objective", "dual_objective")}
    return {**found, "gap": max(k["gap"] for k in known)}


def cross_validation(
    found: "CrossValidation", X: Any, settings: dict[str, Any], seconds: dict[str, float]
) -> dict[str, Any]:
    """Return the facts of a cross-validation."""
    return {
        "model": settings["model"],
        "kernel": settings["kernel"],
        "n_samples": X.shape[0],
        "n_features": X.shape[1],
        "C": settings["C"],
        "folds": len(found.accuracies),
        "seed": settings["seed"],
        "accuracy": found.accuracy,
        "accuracies": found.accuracies,
        "gap": max(found.gaps),
        "status": found.status,
        "seconds": {name: round(value, 6) for name, value in seconds.items()},
    }


def model(machine: "Machine") -> dict[str, Any]:
    """Return the facts of a model file."""
    record = machine.record
    facts: dict[str, Any] = {
        "format": format_of(record),
        "model": record.model,
        "kernel": record.kernel,
        "n_features": record.n_features,
        "n_classes": len(machine.classes),
        "classes": machine.classes.tolist(),
        "multiclass": record.multiclass if len(machine.classes) > 2 else None,
        "probability": record.probability is not None,
        "n_support": machine.n_support or None,
        "bias": record.bias.tolist(),
    }
    if record.kernel in ("poly", "rbf", "sigmoid"):
        facts["gamma"] = record.gamma
    if record.kernel in ("poly", "sigmoid"):
        facts["coef0"] = record.coef0
    if record.kernel == "poly":
        facts["degree"] = record.degree
    if record.weights is not None:
        facts["nonzero_weights"] = int(np.count_nonzero(record.weights))
    facts |= {k: v for k, v in record.extra.items() if k not in facts}
    if machine.problems:
        facts["gap"] = machine.gap
    return facts
