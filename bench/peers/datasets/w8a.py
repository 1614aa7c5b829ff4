"""Web pages: binary features, very sparse, 3 % positive."""

from .source import Shape, read_or_imitate

NAMES = ("w8a",)


def file(name: str) -> str:
    return name


def load(name: str):
    return read_or_imitate(name, Shape(49749, 300, 0.039, 0.03), lambda v: v > 0)
