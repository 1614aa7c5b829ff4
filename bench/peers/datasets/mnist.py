"""Handwritten digits, even against odd: dense float32, values scaled to 0–1."""

import numpy as np

from .source import Shape, read_or_imitate
from .synthetic import vision

NAMES = ("mnist",)


def file(name: str) -> str:
    return name


def load(name: str):
    shape = Shape(vision, 60000, 784, 150, 0.5)
    X, y = read_or_imitate(name, shape, lambda v: v % 2 == 0, np.float32)
    dense = X.toarray()
    dense /= dense.max()
    return np.ascontiguousarray(dense), y
