"""A shard: rows with their labels and costs, and what a walk remembers of each of them.

All sums over rows are made here, block by block. A problem asks for sums and never sees a row: its
rows may be in memory, on disk, or in several processes, a shard in each.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ..jit import chunk_count
from ..kernels.exact_sums import Sums as ExactSums
from ..kernels.exact_sums import column_products, row_products
from ..kernels.hessian import Memory as HessianMemory
from ..kernels.hessian import (
    _hessian,
    _hessian_diagonal,
    _hessian_times,
    hessian_memory,
)
from ..kernels.line_search import Margins, _slope, _step, line_partials
from ..kernels.loss import HINGE, RowData, true_loss
from ..kernels.sums import _accumulate, _margins, _row_norms
from ..kernels.sweep import _sweep, sweep_workspace
from ..matrix.matrix import Csr, Matrix
from ..models.base import Model
from .blocks import Blocks, Resident, block_size, count_cells, pieces
from .certificate import shares
from .rounding import row_norms_above
from .sums import Curvature, Facts, Sums


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


class Shard:
    """Rows of one process. Vectors with a number for each row are arrays here; a problem hands
    them about and does not look into them."""

    def __init__(
        self, data: Blocks, y: np.ndarray, c: np.ndarray, model: Model, bias: bool
    ) -> None:
        self.data, self.model, self.bias = data, model, bias
        self.n_rows, self.n_features = data.size.rows, data.size.cols
        self._y, self._c, self._s = y, c, np.empty(self.n_rows)
        self._bounds, self._block = data.bounds, block_size(data)
        self._pieces = pieces(data.bounds)
        self._work = sweep_workspace(self._block)
        self._chunks = chunk_count(self._block.rows, self._block.work)
        self._views: list[View] | None = None
        self._u: np.ndarray | None = None
        self._memory: Memory | None = None
        self._norms = np.empty(self.n_rows)
        self._cells = np.empty(self.n_rows, np.int32)
        self._hessian_memory: dict[type, HessianMemory] = {}
        self._H: np.ndarray | None = None
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
                facts = Facts(
                    hi - lo,
                    float(d.sum()),
                    float((d * squares).max(initial=0.0)),
                    float((squares - self.bias).sum()),
                    float(c.sum()),
                    float(c.max(initial=0.0)),
                    self._depth(hi - lo),
                )
            found = facts if found is None else found.joined(facts)
        assert found is not None
        self._keep_views()
        return found

    def _depth(self, n_rows: int) -> int:
        """Through how many additions one of so many rows goes: of its chunk, and of all chunks."""
        n_chunks = len(self._work.partials)
        return -(-n_rows // n_chunks) + n_chunks * len(self._bounds)

    # ------------------------------------------------------------ a pass at a point

    def sweep(self, w: np.ndarray, b: float, mu: float) -> Sums:
        """The u of every row at (w, b), and the sums that follow."""
        if self._u is None:
            self._u = np.zeros(self.n_rows)
        dual_weights, sums = np.zeros(self.n_features), np.zeros(4)
        loss = self.model.loss
        for k, (X, at, rows, _) in enumerate(self._blocks()):
            sums += _sweep(X, rows, w, b, mu, loss, self._u[at], self._work, dual_weights, k > 0)
        smoothed, true, total, imbalance = sums.tolist()
        return Sums(smoothed, true, total, imbalance, 1.0, dual_weights)

    def margins_at(self, w: np.ndarray, b: float) -> np.ndarray:
        """x_i·w + b of every row, as a new vector."""
        out = np.empty(self.n_rows)
        self._fill_margins(w, b, out)
        return out

    def _fill_margins(self, w: np.ndarray, b: float, out: np.ndarray) -> None:
        for X, at, _, _ in self._blocks():
            _margins(self._chunks, X, w, b, out[at])

    def row_norms(self) -> np.ndarray:
        """‖x_i‖₂ of every row, rounded up."""
        return self.map(_norms_above, (self._norms, self._cells))

    def row_cells(self) -> np.ndarray:
        """How many entries of every row are stored."""
        return self._cells

    def spread(self, v: np.ndarray, b: float) -> tuple[np.ndarray, float]:
        """Σ d_i (x_i·v + b) x_i and Σ d_i (x_i·v + b) for the curvature d of the model."""
        out, total = np.zeros(self.n_features), 0.0
        for k, (X, _, rows, _) in enumerate(self._blocks()):
            m = np.empty(len(rows.y))
            _margins(self._chunks, X, v, b, m)
            m *= self.model.curvature(rows)
            _accumulate(X, m, self._work.partials, out, k > 0)
            total += float(m.sum())
        return out, total

    # ------------------------------------------------------------ steps along directions

    @property
    def _walk(self) -> Memory:
        """The memory of a walk, made when one begins."""
        if self._memory is None:
            self._memory = Memory(*(np.zeros(self.n_rows) for _ in Memory._fields))
            self._line = line_partials(self._work.partials.shape[0])
            self._keep_views()
        return self._memory

    def place(self, w: np.ndarray, b: float, margins: np.ndarray | None = None) -> None:
        """Begin a walk at (w, b), whose margins may be known: all u are zero, smoothed about
        zero."""
        walk = self._walk
        if margins is None:
            self._fill_margins(w, b, walk.margins)
        else:
            walk.margins[:] = margins
        for a in (walk.direction, walk.centre, walk.weight):
            a[:] = 0.0

    def aim(self, w: np.ndarray, b: float) -> None:
        """Choose the direction of the next step: one pass for its margins."""
        self._fill_margins(w, b, self._walk.direction)

    def slope(self, t: float, mu: float) -> tuple[float, float]:
        """The first two derivatives by t of Σ c h_μ along the direction."""
        total = np.zeros(2)
        for _, _, rows, margins in self._without_data():
            total += _slope(rows, margins, mu, self.model.loss, t, self._line)
        return float(total[0]), float(total[1])

    def step(self, t: float, mu: float) -> Sums:
        """Go t along the direction; only rows whose u changes are added up again."""
        change, sums, largest = np.zeros(self.n_features), np.zeros(4), 0.0
        for X, _, rows, margins in self._blocks():
            *found, top = _step(
                X, rows, margins, mu, self.model.loss, t, self._work.partials, self._line, change
            )
            sums += found
            largest = max(largest, top)
        smoothed, true, total, imbalance = sums.tolist()
        return Sums(smoothed, true, total, imbalance, largest, change)

    def centre_on(self, alpha: np.ndarray) -> None:
        """Smooth about this dual point."""
        centre = self._walk.centre
        for at in self._pieces:
            centre[at] = shares(alpha[at], self._c[at])

    # ------------------------------------------------------------ curvature where steps ended

    def weight_of_curvature(self) -> float:
        """Σ d_i ‖x_i‖²."""
        return self.reduce(_product, (self._walk.curvature, self._norms), (self.bias,))

    def hessian(self, dtype: type) -> Curvature:
        """Σ d_i x_i x_iᵀ, rows multiplied in this precision."""
        p = self.n_features
        H = np.zeros((p, p)) if self._H is None else self._H
        self._H = H
        column = np.zeros(p) if self.bias else None
        for k, (X, at, _, _) in enumerate(self._blocks()):
            d = self._walk.curvature[at]
            if dtype not in self._hessian_memory:
                dense = not isinstance(X, Csr)
                self._hessian_memory[dtype] = hessian_memory(self._block, dense, dtype)
            _hessian(X, d, self._hessian_memory[dtype], k > 0, H)
            if column is not None:
                _accumulate(X, d, self._work.partials, column, k > 0)
        return Curvature(H, column, self._total_curvature())

    def _total_curvature(self) -> float:
        return self.reduce(_total, (self._walk.curvature,)) if self.bias else 0.0

    def hessian_times(self, v: np.ndarray) -> np.ndarray:
        """Σ d_i (x_i·v) x_i."""
        out = np.zeros(self.n_features)
        for k, (X, at, _, _) in enumerate(self._blocks()):
            _hessian_times(X, self._walk.curvature[at], v, self._work.partials, out, k > 0)
        return out

    def hessian_diagonal(self) -> Curvature:
        """The diagonal of Σ d_i x_i x_iᵀ."""
        out = np.zeros(self.n_features)
        column = np.zeros(self.n_features) if self.bias else None
        for k, (X, at, _, _) in enumerate(self._blocks()):
            d = self._walk.curvature[at]
            _hessian_diagonal(X, d, self._work.partials, out, k > 0)
            if column is not None:
                _accumulate(X, d, self._work.partials, column, k > 0)
        return Curvature(out, column, self._total_curvature())

    # ------------------------------------------------------------ dual points

    def swept(self) -> np.ndarray:
        """α = c∘u of the last sweep."""
        return self.map(_times_cost, (self._u,))

    def stepped(self, t: float = 1.0) -> np.ndarray:
        """t α, where α = c∘u of the last step, inside its box also where rounding would lead out
        of it."""
        return self.map(_times_label, (self._walk.weight,), (t, self.model.loss))

    def dual_weights(self, alpha: np.ndarray) -> np.ndarray:
        """Σ α_i y_i x_i."""
        out = np.zeros(self.n_features)
        for k, (X, at, rows, _) in enumerate(self._blocks()):
            _accumulate(X, alpha[at] * rows.y, self._work.partials, out, k > 0)
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

    def collect(self, vector: Any) -> np.ndarray:
        """A vector with a number for each row, as an array."""
        return vector

    def deal(self, vector: np.ndarray) -> Any:
        """An array with a number for each row, as a vector."""
        return vector

    # ------------------------------------------------------------ to go on elsewhere

    def state(self) -> dict[str, np.ndarray]:
        """What steps have left at every row: not the direction, which the next one chooses."""
        known = self._walk._asdict()
        del known["direction"]
        return known

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Go to where these steps have led."""
        for name, array in self.state().items():
            array[:] = state[name]

    # ------------------------------------------------------------ functions of rows

    def map(self, function: Callable, vectors: tuple, numbers: tuple = ()) -> np.ndarray:
        """function(rows, *vectors, *numbers) of a few rows after the other, as one vector."""
        out = np.empty(self.n_rows)
        for at in self._pieces:
            out[at] = function(self._rows(at), *(v[at] for v in vectors), *numbers)
        return out

    def reduce(
        self, function: Callable, vectors: tuple, numbers: tuple = (), by: Any = None
    ) -> Any:
        """The sum of function(rows, *vectors, *numbers) over all rows, a few after the other, or
        what `by` makes of two such values."""
        found = None
        for at in self._pieces:
            value = function(self._rows(at), *(v[at] for v in vectors), *numbers)
            found = value if found is None else by(found, value) if by else found + value
        return found


def loss_of(rows: RowData, r: np.ndarray, loss: int) -> float:
    """Σ c loss(r)."""
    return float(rows.c @ true_loss(r, loss))


def loss_at(rows: RowData, f: np.ndarray, loss: int) -> float:
    """Σ c loss at these margins."""
    return loss_of(rows, 1.0 - rows.y * f, loss)


def _times_cost(rows: RowData, u: np.ndarray) -> np.ndarray:
    return rows.c * u


def _times_label(rows: RowData, weight: np.ndarray, t: float, loss: int) -> np.ndarray:
    alpha = rows.y * weight * t
    return np.minimum(alpha, rows.c) if loss == HINGE else alpha


def _total(rows: RowData, d: np.ndarray) -> float:
    return float(d.sum())


def _product(rows: RowData, d: np.ndarray, norms: np.ndarray, bias: bool) -> float:
    return float(d @ (norms**2 + bias))


def _norms_above(rows: RowData, norms: np.ndarray, cells: np.ndarray) -> np.ndarray:
    return row_norms_above(norms, cells)
