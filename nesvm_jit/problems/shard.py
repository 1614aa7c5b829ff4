"""A shard: rows with their labels and costs, and what a walk remembers of each of them.

All sums over rows are made here and in rows.py, block by block. A problem asks for sums and never
sees a row: its rows may be in memory, on disk, or in several processes, a shard in each.
"""

import numpy as np

from ..kernels.hessian import Memory as HessianMemory
from ..kernels.hessian import (
    _hessian,
    _hessian_diagonal,
    _hessian_times,
    hessian_memory,
)
from ..kernels.line_search import _slope, _step, line_partials
from ..kernels.loss import RowData
from ..kernels.sums import _accumulate, _margins
from ..kernels.sweep import _sweep
from ..matrix.matrix import Csr
from ..models.base import Model
from .blocks import Blocks
from .certificate import multiple, shares
from .rows import Memory, Rows
from .sums import Curvature, Sums


class Shard(Rows):
    """Rows of one process, with the u of their last sweep and the memory of a walk."""

    def __init__(
        self, data: Blocks, y: np.ndarray, c: np.ndarray, model: Model, bias: bool
    ) -> None:
        super().__init__(data, y, c, model, bias)
        self._u: np.ndarray | None = None
        self._hessian_memory: dict[type, HessianMemory] = {}
        self._H: np.ndarray | None = None

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
        for at, rows in self._pieces:
            centre[at] = shares(alpha[at], rows.c)

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


def _times_cost(rows: RowData, u: np.ndarray) -> np.ndarray:
    return rows.c * u


def _times_label(rows: RowData, weight: np.ndarray, t: float, loss: int) -> np.ndarray:
    return multiple(rows, rows.y * weight, t, loss)


def _total(rows: RowData, d: np.ndarray) -> float:
    return float(d.sum())


def _product(rows: RowData, d: np.ndarray, norms: np.ndarray, bias: bool) -> float:
    return float(d @ (norms**2 + bias))
