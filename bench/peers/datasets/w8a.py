"""Web pages: binary features, very sparse, 3 % positive."""

from .source import Shape, read_or_imitate
from .synthetic import one_hot

NAMES = ("w8a",)


def file(name: str) -> str:
    return name


def load(name: str):
    return read_or_imitate(name, Shape(one_hot, 49749, 300, 11.7, 0.03), lambda v: v > 0)
