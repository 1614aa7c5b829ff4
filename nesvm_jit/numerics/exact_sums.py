"""Sums of products nearly as if they were made exactly and rounded once.

A product of two numbers is the sum of two (Dekker 1971). Of terms below σ, adding and subtracting σ
leaves the high digits, whose sums are exact in any order (Rump, Ogita and Oishi 2008): after three
such layers what is left of a sum of K terms of size M is below K³ 2⁻¹⁴⁰ M. Slower than a plain sum
by a factor of some ten, for data on which a plain one loses everything.
"""

from typing import NamedTuple

import numpy as np

from ..matrix.matrix import Csr, Matrix, shape

SPLIT = 2.0**27 + 1.0
LAYERS = 3
UNIT = 2.0**-53
TINY = 2.0**-1074


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


def two_product(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """a b = p + e exactly, but for what is too small to be held."""
    p = a * b
    a1, b1 = SPLIT * a, SPLIT * b
    a1, b1 = a1 - (a1 - a), b1 - (b1 - b)
    a2, b2 = a - a1, b - b1
    return p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2


def row_products(X: Matrix, w: np.ndarray) -> Sums:
    """x_i·w of every row."""
    n, p = shape(X)
    if isinstance(X, Csr):
        lo, hi = int(X.indptr[0]), int(X.indptr[-1])
        counts = np.diff(X.indptr).astype(np.int64)
        a, b = X.data[lo:hi].astype(np.float64), w[X.indices[lo:hi]]
    else:
        counts = np.full(n, p)
        a, b = X.astype(np.float64).ravel(), np.tile(w, n)
    return _sum_products(a, b, counts)


def column_products(X: Matrix, a: np.ndarray) -> Sums:
    """Σ_i a_i x_ij of every column."""
    n, p = shape(X)
    if isinstance(X, Csr):
        lo, hi = int(X.indptr[0]), int(X.indptr[-1])
        columns = X.indices[lo:hi]
        order = np.argsort(columns, kind="stable")
        each = np.repeat(a, np.diff(X.indptr).astype(np.int64))
        counts = np.bincount(columns, minlength=p)
        return _sum_products(X.data[lo:hi].astype(np.float64)[order], each[order], counts)
    return _sum_products(X.T.astype(np.float64).ravel(), np.tile(a, p), np.full(p, n))


def _sum_products(a: np.ndarray, b: np.ndarray, counts: np.ndarray) -> Sums:
    """Σ a b over consecutive segments of so many entries."""
    found = Sums(*(np.zeros(len(counts)) for _ in Sums._fields))
    filled = np.flatnonzero(counts)
    if not len(filled):
        return found
    terms = np.stack(two_product(a, b), axis=1).ravel()
    counts = 2 * counts[filled]
    starts = np.cumsum(counts) - counts
    largest = np.maximum.reduceat(np.abs(terms), starts)
    room = np.frexp(counts + 2.0)[1]
    exponent = np.frexp(largest)[1] + room  # K · M is below 2^exponent
    high, low = np.zeros(len(filled)), np.zeros(len(filled))
    for layer in range(LAYERS):
        sigma = np.repeat(np.ldexp(1.0, exponent), counts)
        part = (sigma + terms) - sigma
        terms = terms - part
        total = np.add.reduceat(part, starts)  # exact
        if layer:
            low += total
        else:
            high += total
        exponent = exponent + room - 53
    low += np.add.reduceat(terms, starts)
    size = np.where(largest > 0.0, np.ldexp(1.0, np.frexp(largest)[1] + 3 * room), 0.0)
    for field, value in zip(
        found, (high, low, 8.0 * UNIT**2 * size + 8.0 * counts * TINY), strict=True
    ):
        field[filled] = value
    return found
