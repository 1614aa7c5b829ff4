"""Few rows, dense and in float64: where small fits keep their vectors while they are settled, in
NumPy alone, which costs less there than a compiled loop for each sum."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..kernels.exact_sums import Sums as ExactSums
from ..kernels.exact_sums import column_products, row_products
from ..kernels.loss import RowData
from ..matrix.matrix import readonly
from ..models.base import Model
from .rounding import EntryError, row_norms_above


class FewFacts(NamedTuple):
    """How many rows there are, through how many additions one goes, and Σ c."""

    rows: int
    depth: int
    costs: float


class FewCells(NamedTuple):
    """How many entries the rows have."""

    cells: int


class FewData(NamedTuple):
    """Where rows come from."""

    size: FewCells


class FewRows:
    """The `Vectors` of a few rows; a vector is an array."""

    def __init__(
        self, X: np.ndarray, norms: np.ndarray, rows: RowData, model: Model, bias: bool
    ) -> None:
        self.X, self.rows, self.model, self.bias, self._norms = X, rows, model, bias, norms
        n, p = X.shape
        self.facts = FewFacts(n, n, float(rows.c.sum()))
        self.data = FewData(FewCells(n * p))

    def map(self, function: Callable, vectors: tuple, numbers: tuple = ()) -> Any:
        """function(rows, *vectors, *numbers)."""
        return function(self.rows, *vectors, *numbers)

    def reduce(
        self, function: Callable, vectors: tuple, numbers: tuple = (), by: Any = None
    ) -> Any:
        """The same: there is one block."""
        return function(self.rows, *vectors, *numbers)

    def dual_weights(self, alpha: np.ndarray) -> np.ndarray:
        """Σ α_i y_i x_i."""
        return (alpha * self.rows.y) @ self.X

    def margins_at(self, w: np.ndarray, b: float) -> np.ndarray:
        """x_i·w + b of every row."""
        return self.X @ w + b

    def column_products(self, a: np.ndarray) -> ExactSums:
        """Σ a_i x_i, nearly exactly."""
        return column_products(readonly(self.X), a)

    def reduce_products(
        self, function: Callable, w: np.ndarray, vectors: tuple, numbers: tuple
    ) -> Any:
        """function(rows, x_i·w nearly exactly, *vectors, *numbers)."""
        return function(self.rows, row_products(readonly(self.X), w), *vectors, *numbers)

    def row_norms(self) -> np.ndarray:
        """‖x_i‖₂ of every row, rounded up."""
        return self._norms

    def row_cells(self) -> int:
        """How many entries every row has."""
        return self.X.shape[1]

    def collect(self, vector: np.ndarray) -> np.ndarray:
        """A vector as an array."""
        return vector

    def deal(self, vector: np.ndarray) -> np.ndarray:
        """An array as a vector."""
        return vector


def norms_above(X: np.ndarray) -> np.ndarray:
    """‖x_i‖₂ of every row of a dense matrix, rounded up."""
    return row_norms_above(np.sqrt(np.einsum("ij,ij->i", X, X)), X.shape[1])


class FewKernelRows:
    """A kernel matrix in float64 between some of the rows it is for, as settling asks for it."""

    finer = None

    def __init__(self, K: np.ndarray, part: np.ndarray | None, entries: EntryError) -> None:
        self._K, self._part = K, part
        self.entries = entries if part is None else entries.take(part)

    def times(self, *vectors: np.ndarray) -> np.ndarray:
        """Kv of each vector."""
        V = np.stack(vectors)
        if self._part is None:
            return V @ self._K
        used = np.flatnonzero(V.any(axis=0))
        return (V[:, used] @ self._K[self._part[used]])[:, self._part]  # whole rows are soon copied
