"""ijcnn1: few real features, 10 % positive."""

from .source import Shape, read_or_imitate
from .synthetic import vision

NAMES = ("ijcnn1",)


def file(name: str) -> str:
    return name


def load(name: str):
    return read_or_imitate(name, Shape(vision, 49990, 22, 13, 0.1), lambda v: v > 0)
