"""Rows of a kernel matrix, computed when asked for and kept as memory allows."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from ..clock import look, pieces
from ..jit import one_blas_thread
from ..kernels.gram import Part, _gram_part, _products_of_part
from ..kernels.pairwise import _add_rows, _block
from ..kernels.spec import (
    RBF,
    Spec,
    centre_of,
    exact_products,
    reach_of,
    squares_of,
    tile_starts,
    tiling,
)
from ..matrix.matrix import Matrix
from ..matrix.rows import take_rows
from .kernel_errors import entries_of, entry_error
from .rounding import EntryError, given_entries

FEWEST = 16  # rows kept however small the budget
PANEL = 1024  # rows that are computed at a time to be multiplied once
BLOCKS = 16  # of columns that these are cut into, or more, so that all threads have work to the end
NARROWEST = 128  # columns of such a block, at least: narrower ones take longer
ADDED_CELLS = 1 << 26  # of rows that are added up between two looks at the clock


class KernelRows:
    """K_ij = k(x_i, x_j), n × n, by rows. The least recently used rows make room for new ones
    under the budget; a matrix K that is there already is read where it lies.

    `store` holds row i in store[slot], the slots being what `fetch` returns. In float32 it takes
    half the room and time; `epsilon` says how far it may be off.
    """

    def __init__(
        self,
        X: Matrix | None,
        spec: Spec | None,
        budget_bytes: float,
        dtype=np.float64,
        K: np.ndarray | None = None,
        epsilon: float = np.finfo(float).eps,
        finer: Callable[[], "KernelRows"] | None = None,
        entries: EntryError | None = None,
    ):
        self.computed = 0.0  # rows, or as many cells as n of them have
        self.epsilon = epsilon  # about the relative error of an entry, against √K_ii √K_jj
        self._clock = 0
        self._groups: dict[int, np.ndarray] = {}  # rows that were computed together
        self.X, self.spec = X, spec
        self.finer = finer  # the same rows with less rounding, where there are such
        self._entries = entries
        self._fine: KernelRows | None = None
        if K is not None:
            self.n = self.capacity = len(K)
            K = K if K.flags.c_contiguous else K.T if K.flags.f_contiguous else K.copy()
            self.dtype, self._writable = K.dtype, K
            self._slots = np.arange(self.n)
            self._diagonal = np.diagonal(K).astype(np.float64)
        else:
            assert X is not None
            assert spec is not None
            self.dtype = np.dtype(dtype)
            if self.dtype == np.float32:
                self.finer = partial(KernelRows, X, spec, budget_bytes)
            self.n = n = X.shape[0]
            fit = int(min(n, max(0.0, budget_bytes) // max(1, n * self.dtype.itemsize)))
            self.capacity = max(min(n, FEWEST), fit)
            xx = squares_of("X", X)
            # products of rows as they are may be exact, those of moved rows hardly ever
            exact = exact_products(X, np.sqrt(xx), self.dtype)
            self._squares = (xx, xx)
            self._centre = np.zeros(X.shape[1]) if exact else centre_of(X, spec)
            reach = reach_of(X, spec, self._centre)
            self._how, self._size = tiling(X, self.dtype, reach)
            self.epsilon = entry_error(X, spec, self.dtype, reach)
            # the system hands out its pages when they are first written to
            self._writable = np.empty((self.capacity, n), self.dtype)
            self._slots = np.full(n, -1)  # of each row, −1 for none
            self._owner = np.full(self.capacity, -1)  # of each slot
            self._used = np.full(self.capacity, -1)  # when it was last asked for
            self._with = np.full(self.capacity, -1)  # the group that its row was computed in
            with np.errstate(over="ignore"):
                self._diagonal = (
                    np.ones(n)
                    if spec.kind == RBF
                    else (spec.gamma * xx + spec.coef0) ** spec.degree
                )
        self._diagonal_is_one = K is None and spec is not None and spec.kind == RBF
        self.store = self._writable.view()
        self.store.flags.writeable = False

    def subset(self, indices: np.ndarray) -> "KernelRows":
        """K between these samples alone, with a budget of as many rows."""
        if self.X is None:
            part = self.store[np.ix_(indices, indices)]
            return KernelRows(
                None, None, 0.0, K=part, epsilon=self.epsilon, entries=self.entries.take(indices)
            )
        X = take_rows(self.X, indices)
        budget = float(self._writable.nbytes)
        return KernelRows(X, self.spec, budget, self.dtype)

    def diagonal(self) -> np.ndarray:
        """K_ii."""
        return self._diagonal

    @property
    def entries(self) -> EntryError:
        """How far entries may be off at most; those of a matrix that is there are exact unless
        something else was said."""
        if self._entries is None:
            if self.X is None or self.spec is None:
                self._entries = given_entries(self._diagonal, np.zeros(self.n))
                if self.finer is not None:
                    self._entries = self._entries._replace(epsilon=2.0 * self.epsilon)
            else:
                how = (self.dtype, self._centre, self._how)
                self._entries = entries_of(self.X, self.spec, *how)
        return self._entries

    def largest(self) -> np.ndarray:
        """max_j |K_ij| of every row."""
        if self._diagonal_is_one:
            return self._diagonal
        out = np.zeros(self.n)
        for lo in range(0, self.n, self.capacity):
            part = np.arange(lo, min(self.n, lo + self.capacity))
            for i, slot in zip(part, self.fetch(part), strict=True):
                out[i] = np.abs(self.store[slot]).max()
        return out

    def fetch(self, indices: np.ndarray) -> np.ndarray:
        """The slots of these different rows, at most `capacity`; those missing are computed."""
        slots = self._slots[indices]
        missing = indices[slots < 0]
        if len(missing):
            self._clock += 1
            self._used[slots[slots >= 0]] = self._clock
            self._admit(missing)
            slots = self._slots[indices]
        if len(self._slots) > self.capacity:
            self._clock += 1
            self._used[slots] = self._clock
        return slots

    def rows(self, indices: np.ndarray) -> np.ndarray:
        """A copy of these rows."""
        indices = np.asarray(indices)
        out = np.empty((len(indices), self.n), self.dtype)
        for lo in range(0, len(indices), self.capacity):
            part, where = np.unique(indices[lo : lo + self.capacity], return_inverse=True)
            out[lo : lo + self.capacity] = self.store[self.fetch(part)[where]]
        return out

    def block(self, indices: np.ndarray, dtype: Any = np.float64) -> np.ndarray:
        """K between these samples; no row is computed for it."""
        q = len(indices)
        out = np.empty((q, q), dtype)
        slots = self._slots[indices]
        here, missing = np.flatnonzero(slots >= 0), np.flatnonzero(slots < 0)
        if len(here):
            _block(self.store, slots[here], here, indices, out)
        if len(missing):
            part = out if self.dtype == out.dtype else np.empty((q, q), self.dtype)
            self._compute(indices[missing], indices, missing, part)
            if part is not out:
                out[missing] = part[missing]
        return out

    def add(self, indices: np.ndarray, a: np.ndarray, out: np.ndarray) -> None:
        """out += Σ a_i K_i over these rows."""
        for part in self._parts(len(indices)):
            _add_rows(self.store, self.fetch(indices[part]), a[part], out)

    def times(self, *vectors: np.ndarray) -> np.ndarray:
        """Kv of each vector v, by the rows where one is not zero, those in the store first."""
        V, out = np.stack(vectors), np.zeros((len(vectors), self.n))
        nonzero = np.flatnonzero(V.any(axis=0))
        nonzero = nonzero[np.argsort(self._slots[nonzero] < 0, kind="stable")]
        for at in self._parts(len(nonzero)):
            part = nonzero[at]
            slots = self.fetch(part)
            for v, Kv in zip(V, out, strict=True):
                _add_rows(self.store, slots, v[part], Kv)
        return out

    def _parts(self, count: int) -> Iterator[slice]:
        """So many rows in parts that fit into the store, and that are added up in a moment; sums
        are the same for any parts, which are whole fours of rows."""
        for lo in range(0, count, self.capacity):
            hi = min(count, lo + self.capacity)
            size = max(4, ADDED_CELLS // max(1, self.n) // 4 * 4)
            for first in range(lo, hi, size):
                yield slice(first, min(hi, first + size))
                look()

    def fine(self) -> "KernelRows":
        """The same rows with as little rounding as there can be."""
        if self._fine is None:
            self._fine = self.finer() if self.finer is not None else self
        return self._fine

    def times_between(self, V: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Kv of each row v of V, computed afresh where one of them is not zero and at the other
        rows asked for; nothing is kept. Between the former K is symmetric: half of it will do."""
        if self.X is None:
            return self.times(*V)
        out = np.zeros(V.shape)
        used = np.flatnonzero(V.any(axis=0))
        m, index = len(used), np.concatenate([used, others])
        W, found = np.ascontiguousarray(V[:, used]), np.zeros((len(V), len(index)))
        width = max(NARROWEST, -(-m // BLOCKS))
        size = self._size[0], min(self._size[1], width)
        fixed = (self._centre, self._squares, self.spec, size, self._how)
        with one_blas_thread():
            for lo in range(0, len(index), PANEL):
                hi = min(len(index), lo + PANEL)
                blocks = -(-min(hi, m) // size[1])
                sums = np.zeros((blocks, len(V), hi - lo))
                part = Part(index, lo, hi, m)
                _products_of_part(blocks, self.X, part, W, *fixed, sums, found)
                found[:, lo:hi] += sums.sum(axis=0)
        self.computed += m * (0.5 * (m + 1) + len(others)) / self.n
        out[:, index] = found
        return out

    def _admit(self, missing: np.ndarray) -> None:
        """Compute these rows into the slots free or longest unused."""
        oldest = np.argpartition(self._used, len(missing) - 1)[: len(missing)]
        slots = np.sort(oldest)
        gone = self._owner[slots]
        self._slots[gone[gone >= 0]] = -1
        self._owner[slots], self._slots[missing] = missing, slots
        self._used[slots] = self._with[slots] = self._clock
        self._groups[self._clock] = missing
        if len(self._groups) > 2 * len(self._with):
            here = set(self._with.tolist())
            self._groups = {k: rows for k, rows in self._groups.items() if k in here}
        self._compute(missing, np.arange(self.n), slots, self._writable)

    # ------------------------------------------------------------ checkpoints

    def state(self) -> dict[str, Any]:
        """Which rows are kept and how they were computed, not the rows themselves. The bits of a
        row may depend on those that were computed beside it."""
        if self.X is None:
            return {"computed": self.computed, "kept": None}
        here = [k for k in self._groups if (self._with == k).any()]
        groups = [self._groups[k] for k in here]
        return {
            "computed": self.computed,
            "kept": {
                "clock": self._clock,
                "owner": self._owner.astype(np.int64),
                "used": self._used.astype(np.int64),
                "with": self._with.astype(np.int64),
                "numbers": np.array(here, dtype=np.int64),
                "sizes": np.array([len(rows) for rows in groups], dtype=np.int64),
                "members": np.concatenate([np.empty(0, np.int64), *groups]).astype(np.int64),
            },
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Keep the rows of a state, computed as they were; none where there is other room for
        them, or where the state is none of these rows."""
        self.computed = float(saved["computed"])
        kept = saved["kept"]
        if kept is None or self.X is None or not self._fits(kept):
            return
        self._clock, self._groups = int(kept["clock"]), {}
        self._slots[:] = -1
        self._owner[:], self._used[:], self._with[:] = kept["owner"], kept["used"], kept["with"]
        places = np.flatnonzero(self._owner >= 0)
        self._slots[self._owner[places]] = places
        ends = np.cumsum(kept["sizes"])
        for number, rows in zip(kept["numbers"], np.split(kept["members"], ends)[:-1], strict=True):
            out = np.empty((len(rows), self.n), self.dtype)
            self._compute(rows, np.arange(self.n), np.arange(len(rows)), out)
            slots = self._slots[rows]
            mine = (slots >= 0) & (self._with[slots] == number)
            self._writable[slots[mine]] = out[mine]
            self._groups[int(number)] = rows
        self.computed = float(saved["computed"])

    def _fits(self, kept: dict[str, Any]) -> bool:
        """Whether the arrays of a state are of these rows, each row in one slot and computed in a
        group that it belongs to."""
        owner, group = kept["owner"], kept["with"]
        if not len(owner) == len(kept["used"]) == len(group) == self.capacity:
            return False
        rows, members, sizes = owner[owner >= 0], kept["members"], kept["sizes"]
        both = np.concatenate([owner + 1, members + 1])  # no row is 0 here
        inside = (both >= 0).all() and (both <= self.n).all() and (members >= 0).all()
        if not inside or (sizes < 1).any() or sizes.sum() != len(members):
            return False
        if len(sizes) != len(kept["numbers"]) or len(np.unique(rows)) != len(rows):
            return False
        of = np.repeat(kept["numbers"], sizes)
        pairs = set(zip(of.tolist(), members.tolist(), strict=True))
        return all(
            pair in pairs for pair in zip(group[owner >= 0].tolist(), rows.tolist(), strict=True)
        )

    def _compute(self, rows, columns, slots, out) -> None:
        self.computed += len(rows) * len(columns) / self.n
        tiles = tile_starts(len(rows), len(columns), self._size, False)
        fixed = (self._centre, self._squares, self.spec)
        with one_blas_thread():
            for some in pieces(len(tiles)):
                part = tiles[some]
                _gram_part(self.X, rows, columns, slots, *fixed, part, self._size, self._how, out)
