"""Reduce several classes to binary problems, and choose classes by the scores of these.

The score of a pair (i, j), i < j, is positive for class i. The only score of two classes is that of
the pair (0, 1), both one-versus-one and one-versus-rest.
"""

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..errors import InputError
from ..files.model.record import n_problems
from ..matrix.matrix import readonly

__all__ = ["choose", "class_order", "n_problems", "ovo_decision", "ovr_choice", "pairs", "vote"]


def class_order(y: Any) -> np.ndarray:
    """Return the classes in LIBSVM's order: as they first appear, except that −1, +1 is
    reversed."""
    y = np.asarray(y, dtype=np.float64)
    _, first = np.unique(y, return_index=True)
    classes = y[np.sort(first)] + 0.0  # −0 is 0
    return classes[::-1].copy() if classes.tolist() == [-1.0, 1.0] else classes


def pairs(k: int) -> list[tuple[int, int]]:
    """Return the problems of one-versus-one in LIBSVM's order: (0, 1), (0, 2), …, (0, k−1),
    (1, 2), …"""
    return [(i, j) for i in range(k) for j in range(i + 1, k)]


def vote(scores: Any, k: int) -> np.ndarray:
    """Return the class with the most votes of pairs, the first one if several have them. A score
    above 0 is a vote for i."""
    return _votes(scores, k).argmax(axis=1)


def choose(scores: np.ndarray, k: int, multiclass: str) -> np.ndarray:
    """Return the number of the class that each row's scores of k classes choose."""
    return vote(scores, k) if multiclass == "ovo" and k > 2 else ovr_choice(scores)


def ovr_choice(scores: Any) -> np.ndarray:
    """Return the class with the highest score, the first one if several have it. For two classes,
    return 0 where the score is above 0, else 1."""
    scores = _columns(scores)
    return np.where(scores[:, 0] > 0, 0, 1) if scores.shape[1] == 1 else scores.argmax(axis=1)


def ovo_decision(scores: Any, k: int) -> np.ndarray:
    """Return votes + s/(3(|s| + 1)), where s is the sum of a class's scores, which breaks ties but
    never outweighs a vote. This is scikit-learn's decision_function_shape="ovr"."""
    total = np.zeros((len(scores), k))
    for i, block in _by_first_class(scores, k):
        total[:, i] += block.sum(axis=1)
        total[:, i + 1 :] -= block
    return _votes(scores, k) + total / (3 * (np.abs(total) + 1))


def _votes(scores: Any, k: int) -> np.ndarray:
    scores = _of_pairs(scores, k)
    first, second = _sides(k)
    winners = np.where(scores > 0, first, second)
    winners += k * np.arange(len(scores))[:, None]  # a different number for each row and class
    return np.bincount(winners.ravel(), minlength=len(scores) * k).reshape(-1, k)


@functools.lru_cache(maxsize=16)
def _sides(k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and the second class of every pair, in LIBSVM's order."""
    first, second = np.triu_indices(k, 1)
    return readonly(first), readonly(second)


def _by_first_class(scores: Any, k: int) -> Iterator[tuple[int, np.ndarray]]:
    """Yield (i, the scores of the pairs (i, i+1), …, (i, k−1)), which are neighbours in LIBSVM's
    order."""
    scores, start = _of_pairs(scores, k), 0
    for i in range(k - 1):
        stop = start + k - 1 - i
        yield i, scores[:, start:stop]
        start = stop


def _of_pairs(scores: Any, k: int) -> np.ndarray:
    """Require scores with a column for each pair of k classes."""
    scores = _columns(scores)
    if scores.shape[1] != k * (k - 1) // 2:
        raise InputError(
            f"scores of {k} classes must have {k * (k - 1) // 2} columns, got {scores.shape[1]}"
        )
    return scores


def _columns(scores: Any) -> np.ndarray:
    scores = np.asarray(scores)
    return scores[:, None] if scores.ndim == 1 else scores
