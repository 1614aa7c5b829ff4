"""A LIBSVM file of NESVM_DATA, or random data of its shape."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...common import data_file
from .synthetic import classes, two_classes


class Shape(NamedTuple):
    """What synthetic data imitate: their kind, and the share of the positive class (or of each
    of several)."""

    kind: Callable
    rows: int
    features: int
    per_row: float
    positive: float


def read_or_imitate(file: str, shape: Shape, positive, dtype=np.float64):
    """X as CSR and +1 where `positive(label)`, else −1."""
    path = data_file(file)
    if path is None:
        return imitate(shape, dtype)
    from nesvm_jit import read_libsvm

    X, labels = read_libsvm(path, shape.features, dtype)
    return X, np.where(positive(labels), 1.0, -1.0)


def read_classes(file: str, shape: Shape):
    """X as CSR and the labels, of about 1/`positive` classes."""
    path = data_file(file)
    if path is not None:
        from nesvm_jit import read_libsvm

        return read_libsvm(path, shape.features)
    X, rng = _made(shape)
    return X, classes(X, round(1 / shape.positive), rng)


def imitate(shape: Shape, dtype):
    """Rows of a kind, and labels that a linear machine learns in part."""
    X, rng = _made(shape)
    return X.astype(dtype), two_classes(X, shape.positive, rng)


def _made(shape: Shape):
    rng = np.random.default_rng(0)
    return shape.kind(shape.rows, shape.features, shape.per_row, rng), rng
