"""Sums of products nearly as if they were made exactly and rounded once.

A product of two numbers is the sum of two (Dekker 1971). Of terms below σ, adding and subtracting σ
leaves the high digits, whose sums are exact in any order (Rump, Ogita and Oishi 2008): after three
such layers what is left of a sum of K terms of size M is below K³ 2⁻¹⁴⁰ M. So a column may be added
up by chunks of rows, one σ being known for all of it. Slower than a plain sum by a factor of some
ten, for data on which a plain one loses everything.
"""

import math
from typing import NamedTuple

import numpy as np

from ..jit import chunk_bounds, chunk_count, exact_inline, exact_kernel, partial_sums
from ..matrix.matrix import Matrix, entry, row_bounds, shape
from ..matrix.rows import size_of
from .sums import clear

SPLIT = 2.0**27 + 1.0
LAYERS = 3
UNIT = 2.0**-53
TINY = 2.0**-1074
DEAR = 8  # plain additions that an entry is worth here


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


@exact_inline
def two_product(a, b):
    """a b = p + e exactly, but for what is too small to be held."""
    p = a * b
    a1, b1 = SPLIT * a, SPLIT * b
    a1, b1 = a1 - (a1 - a), b1 - (b1 - b)
    a2, b2 = a - a1, b - b1
    return p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2


@exact_inline
def layers_of(largest, count):
    """σ of every layer for so many terms below `largest`, and how far their sum may be off."""
    room = math.frexp(count + 2.0)[1]
    exponent = math.frexp(largest)[1]
    first = exponent + room  # K · M is below 2^first
    further = room - 53
    error = 8.0 * count * TINY
    if largest > 0.0:
        error += 8.0 * UNIT**2 * np.ldexp(1.0, exponent + 3 * room)
    two = np.ldexp(1.0, first + further)
    return np.ldexp(1.0, first), two, np.ldexp(1.0, first + 2 * further), error


@exact_inline
def split(t, one, two, three):
    """The parts of a term in three layers, and what they leave."""
    first = (one + t) - one
    t -= first
    second = (two + t) - two
    t -= second
    third = (three + t) - three
    return first, second, third, t - third


@exact_kernel
def _row_products(k, n_chunks, X, w, most, high, low, error):
    """x_i·w of every row of at most so many entries."""
    lo, hi = chunk_bounds(shape(X)[0], n_chunks, k)
    terms = np.empty(2 * most)
    for i in range(lo, hi):
        first, last = row_bounds(X, i)
        count, largest = 0, 0.0
        for q in range(first, last):
            j, x = entry(X, i, q)
            p, e = two_product(x, w[j])
            terms[count] = p
            terms[count + 1] = e
            count += 2
            largest = max(largest, max(abs(p), abs(e)))
        one, two, three, off = layers_of(largest, count)
        top, second, third, rest = 0.0, 0.0, 0.0, 0.0
        for q in range(count):
            a, b, c, d = split(terms[q], one, two, three)
            top += a
            second += b
            third += c
            rest += d
        high[i] = top
        low[i] = (second + third) + rest
        error[i] = off


@exact_kernel
def _column_tops(k, n_chunks, X, a, largest, counts):
    """The largest term of every column and how many there are, of the rows of chunk k."""
    lo, hi = chunk_bounds(shape(X)[0], n_chunks, k)
    tops, number = largest[k], counts[k]
    clear(tops)
    clear(number)
    for i in range(lo, hi):
        first, last = row_bounds(X, i)
        for q in range(first, last):
            j, x = entry(X, i, q)
            p, e = two_product(x, a[i])
            tops[j] = max(tops[j], max(abs(p), abs(e)))
            number[j] += 2.0


@exact_kernel
def _column_layers(k, n_chunks, largest, counts, sigmas, error):
    """σ of every layer of the columns of chunk k, and how far their sums may be off."""
    lo, hi = chunk_bounds(len(error), n_chunks, k)
    for j in range(lo, hi):
        one, two, three, off = layers_of(largest[j], counts[j])
        sigmas[j, 0] = one
        sigmas[j, 1] = two
        sigmas[j, 2] = three
        error[j] = off


@exact_kernel
def _column_partials(k, n_chunks, X, a, sigmas, partials):
    """The layers of every column, and what they leave, of the rows of chunk k."""
    lo, hi = chunk_bounds(shape(X)[0], n_chunks, k)
    clear(partials[k])
    sums = partials[k, : 4 * len(sigmas)].reshape(len(sigmas), 4)
    for i in range(lo, hi):
        first, last = row_bounds(X, i)
        for q in range(first, last):
            j, x = entry(X, i, q)
            p, e = two_product(x, a[i])
            one, two, three = sigmas[j, 0], sigmas[j, 1], sigmas[j, 2]
            for t in (p, e):
                first_part, second, third, rest = split(t, one, two, three)
                sums[j, 0] += first_part
                sums[j, 1] += second
                sums[j, 2] += third
                sums[j, 3] += rest


def row_products(X: Matrix, w: np.ndarray) -> Sums:
    """x_i·w of every row."""
    n, p = shape(X)
    size = size_of(X)
    most = p if isinstance(X, np.ndarray) else int(np.diff(X.indptr).max(initial=0))
    high, low, error = np.empty(n), np.empty(n), np.empty(n)
    _row_products(chunk_count(n, DEAR * size.work), X, w, most, high, low, error)
    return Sums(high, low, error)


def column_products(X: Matrix, a: np.ndarray) -> Sums:
    """Σ_i a_i x_ij of every column."""
    n, p = shape(X)
    n_chunks = chunk_count(n, DEAR * size_of(X).work, 4 * p)
    largest, counts = partial_sums(n_chunks, p), partial_sums(n_chunks, p)
    _column_tops(n_chunks, X, a, largest, counts)
    sigmas, error = np.empty((p, LAYERS)), np.empty(p)
    tops, number = largest[:, :p].max(axis=0, initial=0.0), counts[:, :p].sum(axis=0)
    _column_layers(1, tops, number, sigmas, error)
    partials = partial_sums(n_chunks, 4 * p)
    _column_partials(n_chunks, X, a, sigmas, partials)
    sums = partials[:, : 4 * p].sum(axis=0).reshape(p, 4)
    return Sums(sums[:, 0], (sums[:, 1] + sums[:, 2]) + sums[:, 3], error)
