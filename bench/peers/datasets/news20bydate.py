"""Newsgroups, tf-idf: the first ten classes against the others, or the first against the rest."""

from .source import Shape, read_or_imitate
from .synthetic import text

POSITIVE = {
    "news20bydate halves": (0.5, lambda v: v <= 10),
    "news20bydate one class": (0.05, lambda v: v == 1),
}
NAMES = tuple(POSITIVE)


def file(name: str) -> str:
    return "news20bydate"


def load(name: str):
    share, positive = POSITIVE[name]
    return read_or_imitate(file(name), Shape(text, 11314, 130107, 200, share), positive)
