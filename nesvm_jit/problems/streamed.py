"""Rows that are read from disk again in every pass, the next block while one is worked on."""

from collections.abc import Callable, Iterator

import numpy as np

from ..files.ondisk.matrix import OnDisk
from ..matrix.matrix import Matrix
from ..matrix.rows import Size, sparse_size
from .blocks import Block, block_bounds


class Streamed:
    """An on-disk matrix, in the blocks that it would have in memory."""

    resident = False

    def __init__(self, matrix: OnDisk):
        self._matrix = matrix
        self.dtype = matrix.dtype
        self.size = sparse_size(matrix.n_rows, matrix.n_cols, matrix.n_cells, matrix.dtype)
        self.bounds = block_bounds(self.size)

    def __iter__(self) -> Iterator[Block]:
        for lo, hi, X in self._matrix.ranges(self.bounds, reuse=True):
            yield Block(lo, hi, X)


class Mapped:
    """Dense features of the rows of an on-disk matrix, made of every block when it is read."""

    resident = False

    def __init__(
        self, matrix: OnDisk, features: Callable[[Matrix], np.ndarray], width: int, dtype: np.dtype
    ):
        self._matrix, self._features, self.dtype = matrix, features, dtype
        n = matrix.n_rows
        self.size = Size(n, width, n * width, width * dtype.itemsize)
        self.bounds = block_bounds(self.size)

    def __iter__(self) -> Iterator[Block]:
        for lo, hi, X in self._matrix.ranges(self.bounds, reuse=True):
            yield Block(lo, hi, self._features(X))


class Signs:
    """Labels ±1 in a byte each; slices are numbers."""

    def __init__(self, positive: np.ndarray):
        self._signs = np.where(positive, 1, -1).astype(np.int8)

    def __len__(self) -> int:
        return len(self._signs)

    def __getitem__(self, at: slice) -> np.ndarray:
        return self._signs[at].astype(np.float64)


class ClassCosts:
    """The costs of rows whose class decides: slices are numbers."""

    def __init__(self, which: np.ndarray, costs: np.ndarray):
        self._which, self._costs = which, costs

    def __len__(self) -> int:
        return len(self._which)

    def __getitem__(self, at: slice) -> np.ndarray:
        return self._costs[self._which[at]]
