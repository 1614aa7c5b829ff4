"""Handwritten digits of ten classes, dense: USPS, and the first rows of MNIST scaled to 0–1."""

import numpy as np

from .source import Shape, read_classes
from .synthetic import vision

ROWS = {"usps": 7291, "mnist, 10 000 rows": 10000, "mnist, 3 000 rows": 3000}
NAMES = tuple(ROWS)


def file(name: str) -> str:
    return name.split(",")[0]


def load(name: str):
    shape = Shape(vision, ROWS[name], *((256, 256) if name == "usps" else (784, 150)), 0.1)
    X, y = read_classes(file(name), shape)
    dense = X[: ROWS[name]].toarray()
    if name != "usps":
        dense /= dense.max()
    return np.ascontiguousarray(dense), y[: ROWS[name]]
