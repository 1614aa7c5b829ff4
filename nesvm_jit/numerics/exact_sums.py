"""Sums of products nearly as if they were made exactly and rounded once: by `kernels/exact.py`, for
data on which plain sums lose too much."""

from typing import NamedTuple

import numpy as np

from ..kernels.exact import TINY, UNIT, exact_column_products, exact_row_products
from ..matrix.matrix import Matrix

__all__ = ["TINY", "UNIT", "Sums", "column_products", "row_products", "two_sum"]


class Sums(NamedTuple):
    """Sums as high + low, unevaluated, and how far that may be from the truth."""

    high: np.ndarray
    low: np.ndarray
    error: np.ndarray

    def joined(self, other: "Sums") -> "Sums":
        """The sums of more terms: the low parts, and their sum, are rounded."""
        high, rest = two_sum(self.high, other.high)
        low = rest + (self.low + other.low)
        rounding = 4.0 * UNIT * (np.abs(rest) + np.abs(self.low) + np.abs(other.low))
        return Sums(high, low, 2.0 * (self.error + other.error) + rounding)


def two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """a + b = s + e exactly (Knuth)."""
    s = a + b
    z = s - a
    return s, (a - (s - z)) + (b - z)


def row_products(X: Matrix, w: np.ndarray) -> Sums:
    """x_i·w of every row."""
    return Sums(*exact_row_products(X, w))


def column_products(X: Matrix, a: np.ndarray) -> Sums:
    """Σ_i a_i x_ij of every column."""
    return Sums(*exact_column_products(X, a))
