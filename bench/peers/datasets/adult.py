"""Adult: binary features of people, sparse; a1a to a6a are parts of a9a."""

import numpy as np
from scipy.sparse import vstack

from ..tasks import COPIES, copies_of_a9a
from .source import Shape, read_or_imitate
from .synthetic import one_hot

ROWS = {
    "a1a": 1605,
    "a2a": 2265,
    "a3a": 3185,
    "a4a": 4781,
    "a5a": 6414,
    "a6a": 11220,
    "a9a": 32561,
}
MANY = {copies_of_a9a(k).data: k for k in COPIES if k > 1}
NAMES = (*ROWS, *MANY)


def file(name: str) -> str:
    return "a9a" if name in MANY else name


def load(name: str):
    if name in MANY:
        X, y = load("a9a")
        return vstack([X] * MANY[name], format="csr"), np.tile(y, MANY[name])
    return read_or_imitate(name, Shape(one_hot, ROWS[name], 123, 13.9, 0.24), lambda v: v > 0)
