"""The rows of a matrix, block by block.

A pass over many rows adds up one block after the other. Where blocks begin depends on the size of
the matrix alone, so that sums have the same bits whether the rows are in memory or come from disk.
"""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np

from ..matrix.matrix import Csr, Matrix
from ..matrix.rows import Size, row_slice, size_of

BLOCK_BYTES = 1 << 26  # of rows; a pass over as many takes a few milliseconds
# Rows that one call of NumPy is for: what it makes on the way stays in the cache, and in memory
# that the process has already; new memory costs more than the arithmetic.
PIECE = 1 << 14


class Block(NamedTuple):
    """Rows lo to hi."""

    lo: int
    hi: int
    X: Matrix


class Blocks(Protocol):
    """Where the rows of a matrix come from."""

    size: Size
    dtype: np.dtype
    bounds: list[tuple[int, int]]  # rows of every block

    @property
    def resident(self) -> bool:
        """Whether the rows stay in memory, so that a pass over a few of them costs little."""

    def __iter__(self) -> Iterator[Block]:
        """All blocks, in order."""


def block_bounds(size: Size) -> list[tuple[int, int]]:
    """The first and last row of every block: about BLOCK_BYTES each, and at least one of them."""
    n = size.rows
    count = max(1, min(n, -(-n * size.row_bytes // BLOCK_BYTES)))
    return [(n * k // count, n * (k + 1) // count) for k in range(count)]


def pieces(bounds: list[tuple[int, int]]) -> list[slice]:
    """The rows of every block, a few at a time."""
    starts = [(first, hi) for lo, hi in bounds for first in range(lo, hi, PIECE)]
    return [slice(first, min(first + PIECE, hi)) for first, hi in starts]


def block_size(data: Blocks) -> Size:
    """The size of a block, about: what room for its partial sums is made for."""
    most = max(hi - lo for lo, hi in data.bounds)
    return data.size._replace(rows=most, cells=data.size.cells // len(data.bounds))


def count_cells(X: Matrix) -> np.ndarray | int:
    """How many entries of each row are stored."""
    return np.diff(X.indptr) if isinstance(X, Csr) else X.shape[1]


class Resident:
    """A matrix in memory."""

    resident = True

    def __init__(self, X: Matrix):
        self.X, self.size = X, size_of(X)
        self.dtype = X.data.dtype if isinstance(X, Csr) else X.dtype
        self.bounds = block_bounds(self.size)
        alone = len(self.bounds) == 1  # one block is the matrix itself
        self._blocks = [
            Block(lo, hi, X if alone else row_slice(X, lo, hi)) for lo, hi in self.bounds
        ]

    def __iter__(self) -> Iterator[Block]:
        return iter(self._blocks)
