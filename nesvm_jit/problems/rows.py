"""Rows with their labels and costs, block by block, as the certificate asks for them: margins, dual
weights, and functions of every row. All that a walk does with them is in shard.py."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ..jit import chunk_count
from ..kernels.exact_sums import Sums as ExactSums
from ..kernels.exact_sums import column_products, row_products
from ..kernels.line_search import Margins
from ..kernels.loss import RowData, true_loss
from ..kernels.sums import _accumulate, _margins, _row_norms
from ..kernels.sweep import sweep_workspace
from ..matrix.matrix import Matrix
from ..models.base import Model
from .blocks import Blocks, Resident, block_size, count_cells, pieces
from .rounding import row_norms_above
from .sums import Facts


class View(NamedTuple):
    """A block of rows with what belongs to them."""

    X: Matrix
    at: slice
    rows: RowData
    margins: Margins | None


class Memory(NamedTuple):
    """What a walk remembers of every row: its margin, that of the direction, the centre of
    smoothing, its dual weight c y u, and its curvature."""

    margins: np.ndarray
    direction: np.ndarray
    centre: np.ndarray
    weight: np.ndarray
    curvature: np.ndarray


class Rows:
    """The `Vectors` of rows of one process: vectors with a number for each row are arrays here; a
    problem hands them about and does not look into them."""

    def __init__(
        self, data: Blocks, y: np.ndarray, c: np.ndarray, model: Model, bias: bool
    ) -> None:
        self.data, self.model, self.bias = data, model, bias
        self.n_rows, self.n_features = data.size.rows, data.size.cols
        self._y, self._c, self._s = y, c, np.empty(self.n_rows)
        self._bounds, self._block = data.bounds, block_size(data)
        self._pieces = [(at, self._rows(at)) for at in pieces(data.bounds)]
        self._work = sweep_workspace(self._block)
        self._chunks = chunk_count(self._block.rows, self._block.work)
        self._signed = np.empty(self._block.rows)
        self._views: list[View] | None = None
        self._memory: Memory | None = None
        self._norms = np.empty(self.n_rows)
        self._norms_above: np.ndarray | None = None  # once they are asked for
        self._cells = np.empty(self.n_rows, np.int32)
        self.facts = self._learn()

    # ------------------------------------------------------------ views of rows

    @property
    def whole(self) -> Matrix:
        """The matrix, of rows in memory."""
        assert isinstance(self.data, Resident)
        return self.data.X

    @property
    def rows(self) -> RowData:
        """Of all rows."""
        return self._rows(slice(0, self.n_rows))

    def squares(self) -> np.ndarray:
        """‖x_i‖², of rows in memory."""
        return self._norms**2 + self.bias - self.bias

    def row_norms(self) -> np.ndarray:
        """‖x_i‖₂ of every row, rounded up."""
        if self._norms_above is None:
            self._norms_above = self.map(_norms_above, (self._norms, self._cells))
        return self._norms_above

    def row_cells(self) -> np.ndarray:
        """How many entries of every row are stored."""
        return self._cells

    def _rows(self, at: slice) -> RowData:
        return RowData(self._y[at], self._c[at], self._s[at])

    def _blocks(self) -> Iterator[View]:
        """Every block, read from wherever it is."""
        if self._views is not None:
            yield from self._views
            return
        for lo, hi, X in self.data:
            yield self._view(X, slice(lo, hi))

    def _view(self, X: Any, at: slice) -> View:
        margins = None
        if self._memory is not None:
            margins = Margins(1.0 / self._s[at], *(a[at] for a in self._memory))
        return View(X, at, self._rows(at), margins)

    def _without_data(self) -> Iterator[View]:
        """Every block, but not what is in its rows."""
        if self._views is not None:
            yield from self._views
            return
        for lo, hi in self._bounds:
            yield self._view(None, slice(lo, hi))

    def _keep_views(self) -> None:
        if self.data.resident:
            self._views = [self._view(X, slice(lo, hi)) for lo, hi, X in self.data]

    def _learn(self) -> Facts:
        """One pass: the norms of all rows."""
        largest = np.empty(self._block.rows)
        n_chunks = len(self._work.partials)
        found = None
        for lo, hi, X in self.data:
            at, top = slice(lo, hi), largest[: hi - lo]
            norms = self._norms[at]
            _row_norms(self._chunks, X, norms, top)
            self._cells[at] = count_cells(X)
            self._s[at] = np.maximum(top, 1.0) if self.bias else np.where(top > 0.0, top, 1.0)
            with np.errstate(over="ignore"):  # the public edge refuses what is not finite
                squares = norms**2 + self.bias
                d = self.model.curvature(self._rows(at))
                c = self._c[at]
                # through how many additions one of these rows goes: of its chunk, and of all chunks
                depth = -(-(hi - lo) // n_chunks) + n_chunks * len(self._bounds)
                facts = Facts(
                    hi - lo,
                    float(d.sum()),
                    float((d * squares).max(initial=0.0)),
                    float((squares - self.bias).sum()),
                    float(c.sum()),
                    float(c.max(initial=0.0)),
                    depth,
                )
            found = facts if found is None else found.joined(facts)
        assert found is not None
        self._keep_views()
        return found

    # ------------------------------------------------------------ a pass over all rows

    def margins_at(self, w: np.ndarray, b: float) -> np.ndarray:
        """x_i·w + b of every row, as a new vector."""
        out = np.empty(self.n_rows)
        self._fill_margins(w, b, out)
        return out

    def _fill_margins(self, w: np.ndarray, b: float, out: np.ndarray) -> None:
        for X, at, _, _ in self._blocks():
            _margins(self._chunks, X, w, b, out[at])

    def dual_weights(self, alpha: np.ndarray) -> np.ndarray:
        """Σ α_i y_i x_i."""
        out = np.zeros(self.n_features)
        for k, (X, at, rows, _) in enumerate(self._blocks()):
            signed = np.multiply(alpha[at], rows.y, out=self._signed[: len(rows.y)])
            _accumulate(X, signed, self._work.partials, out, k > 0)
        return out

    def reduce_products(
        self, function: Callable, w: np.ndarray, vectors: tuple, numbers: tuple
    ) -> Any:
        """The sum of function(rows, x_i·w nearly exactly, *vectors, *numbers) over all blocks."""
        found = 0.0
        for X, at, rows, _ in self._blocks():
            found += function(rows, row_products(X, w), *(v[at] for v in vectors), *numbers)
        return found

    def column_products(self, a: np.ndarray) -> ExactSums:
        """Σ a_i x_i, nearly exactly."""
        found = None
        for X, at, _, _ in self._blocks():
            part = column_products(X, a[at])
            found = part if found is None else found.joined(part)
        assert found is not None
        return found

    # ------------------------------------------------------------ functions of rows

    def map(self, function: Callable, vectors: tuple, numbers: tuple = ()) -> np.ndarray:
        """function(rows, *vectors, *numbers) of a few rows after the other, as one vector."""
        out = np.empty(self.n_rows)
        for at, rows in self._pieces:
            out[at] = function(rows, *[v[at] for v in vectors], *numbers)
        return out

    def reduce(
        self, function: Callable, vectors: tuple, numbers: tuple = (), by: Any = None
    ) -> Any:
        """The sum of function(rows, *vectors, *numbers) over all rows, a few after the other, or
        what `by` makes of two such values."""
        found = None
        for at, rows in self._pieces:
            value = function(rows, *[v[at] for v in vectors], *numbers)
            found = value if found is None else by(found, value) if by else found + value
        return found

    def collect(self, vector: Any) -> np.ndarray:
        """A vector with a number for each row, as an array."""
        return vector

    def deal(self, vector: np.ndarray) -> Any:
        """An array with a number for each row, as a vector."""
        return vector


def loss_of(rows: RowData, r: np.ndarray, loss: int) -> float:
    """Σ c loss(r)."""
    return float(rows.c @ true_loss(r, loss))


def loss_at(rows: RowData, f: np.ndarray, loss: int) -> float:
    """Σ c loss at these margins."""
    return loss_of(rows, 1.0 - rows.y * f, loss)


def _norms_above(rows: RowData, norms: np.ndarray, cells: np.ndarray) -> np.ndarray:
    return row_norms_above(norms, cells)
