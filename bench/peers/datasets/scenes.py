"""Natural scenes of fifteen classes by 512 GIST features, dense."""

from .source import Shape, read_classes

NAMES = ("scene15.gist512",)


def file(name: str) -> str:
    return name


def load(name: str):
    X, y = read_classes(name, Shape(1500, 512, 1.0, 1 / 15))
    return X.toarray(), y
