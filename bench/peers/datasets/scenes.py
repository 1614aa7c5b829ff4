"""Natural scenes by 512 GIST features, dense: fifteen classes, and the thirteen outdoor ones."""

import numpy as np

from .source import Shape, read_classes
from .synthetic import vision

OUTDOOR = "scene13.gist512"
NAMES = ("scene15.gist512", OUTDOOR)
INDOOR = (12.0, 15.0)  # labels


def file(name: str) -> str:
    return NAMES[0]


def load(name: str):
    X, y = read_classes(file(name), Shape(vision, 1500, 512, 512, 1 / 15))
    kept = ~np.isin(y, INDOOR) if name == OUTDOOR else np.full(len(y), True)
    return X.toarray()[kept], y[kept]
