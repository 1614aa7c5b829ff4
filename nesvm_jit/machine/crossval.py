"""Cross-validation: the label that every row gets from a machine trained without it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InputError
from ..matrix.checks import as_matrix, as_vector
from ..matrix.matrix import shape
from ..matrix.rows import as_scipy, take_rows
from .folds import stratified_folds
from .train import train


@dataclass(frozen=True)
class CrossValidation:
    """Predicted labels in the order of the rows, and the accuracy and largest gap of each fold."""

    predicted: np.ndarray
    folds: np.ndarray
    accuracy: float
    accuracies: list[float]
    gaps: list[float]
    status: str


def cross_validate(
    X: Any, y: Any, n_folds: int = 5, *, seed: int = 0, sample_weight: Any = None, **options: Any
) -> CrossValidation:
    """Stratified cross-validation of `train(X, y, **options)`."""
    if options.get("checkpoint") is not None:
        raise InputError("checkpoint is for `train`, not for cross-validation")
    X = as_matrix(X, borrow=True)
    n, _ = shape(X)
    y = as_vector("y", y, n)
    folds = stratified_folds(y, n_folds, seed)
    weight = None if sample_weight is None else as_vector("sample_weight", sample_weight, n)
    predicted, accuracies, gaps, statuses = np.zeros(n), [], [], []
    for k in range(n_folds):
        inside, outside = np.flatnonzero(folds != k), np.flatnonzero(folds == k)
        if len(np.unique(y[inside])) < 2:
            raise InputError(
                f"fold {k + 1} leaves fewer than 2 classes to train on; use fewer folds"
            )
        machine = train(
            _square(X, inside, inside, options),
            y[inside],
            sample_weight=None if weight is None else weight[inside],
            seed=seed,
            **_for_classes(options, y, y[inside]),
        )
        predicted[outside] = machine.predict(_square(X, outside, inside, options))
        accuracies.append(float(np.mean(predicted[outside] == y[outside])))
        gaps.append(machine.gap)
        statuses += [p["status"] for p in machine.problems]
        if "interrupted" in statuses:
            raise KeyboardInterrupt
    worst = next((s for s in statuses if s != "converged"), "converged")
    accuracy = float(np.mean(predicted == y))
    return CrossValidation(predicted, folds, accuracy, accuracies, gaps, worst)


def _square(X, rows: np.ndarray, columns: np.ndarray, options: dict):
    """Rows of X; of a precomputed kernel the columns of the training rows alone."""
    part = take_rows(X, rows)
    if options.get("kernel") != "precomputed":
        return part
    return as_scipy(part)[:, columns].toarray()


def _for_classes(options: dict, y: np.ndarray, inside: np.ndarray) -> dict:
    """Options without the weights of classes of y that are not inside a fold."""
    weights = options.get("class_weight")
    if not isinstance(weights, dict):
        return options
    present = {k: v for k, v in weights.items() if k in inside or k not in y}
    return {**options, "class_weight": present}
