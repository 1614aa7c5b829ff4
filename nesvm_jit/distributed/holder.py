"""What runs on a worker: it keeps rows, and what solvers remember of them, and answers calls."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..checkpoint.fingerprint import checksums, matrix_checksum
from ..errors import InputError
from ..jit import one_blas_thread
from ..matrix.matrix import Csr, Matrix, shape
from ..matrix.rows import Size, size_of, widen
from ..models.base import Model
from ..problems.blocks import Block, Resident
from ..problems.shard import Shard

GATHERED = ("collect", "state")  # answers that stay apart, by the number of the part
DEALT = ("deal", "restore")  # calls whose argument has a piece for every part


class Ref(NamedTuple):
    """A vector that holders keep, by its number."""

    number: int


class Call(NamedTuple):
    """A method of `Shard`: the same number is answered once, however often it is asked."""

    number: int
    method: str
    args: tuple
    kept_as: int | None  # the result stays, as this vector
    dropped: tuple[int, ...]  # vectors that nobody needs any more


class Recipe(NamedTuple):
    """How to get the rows of a part again."""

    pieces: tuple
    n_features: int | None
    dtype: type


class Task(NamedTuple):
    """Which problem is posed on the rows: one class against the others, and what each costs."""

    positive: float
    costs: Mapping[float, float]
    model: Model
    bias: bool


class Summary(NamedTuple):
    """What a part says of its rows: their number, width, cells, and labels as they appear."""

    rows: int
    width: int
    cells: int
    row_bytes: int
    dtype: np.dtype
    labels: tuple[float, ...]


class Stacked:
    """Several matrices as one."""

    resident = True

    def __init__(self, matrices: list[Matrix]):
        parts = [Resident(X) for X in matrices]
        self.size = _together([part.size for part in parts])
        self.dtype = parts[0].dtype
        self._blocks = []
        offset = 0
        for part in parts:
            self._blocks += [Block(offset + lo, offset + hi, X) for lo, hi, X in part]
            offset += part.size.rows
        self.bounds = [(block.lo, block.hi) for block in self._blocks]

    def __iter__(self):
        return iter(self._blocks)


def _together(sizes: list[Size]) -> Size:
    rows = sum(s.rows for s in sizes)
    held = sum(s.rows * s.row_bytes for s in sizes)
    width = max(s.cols for s in sizes)
    return Size(rows, width, sum(s.cells for s in sizes), held // max(1, rows))


@dataclass
class Holder:
    """The shard of a part, and the vectors that were kept."""

    number: int  # of the part: rows of part k come before those of part k + 1
    shard: Shard
    vectors: dict[int, Any] = field(default_factory=dict)
    last: tuple[int, Any] = (-1, None)

    def answer(self, call: Call) -> Any:
        if call.number == self.last[0]:
            return self.last[1]
        for number in call.dropped:
            self.vectors.pop(number, None)
        args = self._resolved(call.args)
        if call.method in DEALT:
            args = (args[0][self.number],)
        with one_blas_thread():
            found = getattr(self.shard, call.method)(*args)
        if call.method in GATHERED:
            found = {self.number: found}
        if call.kept_as is not None:
            self.vectors[call.kept_as] = found
            found = None
        self.last = call.number, found
        return found

    def _resolved(self, args: tuple) -> tuple:
        return tuple(self._resolved_one(a) for a in args)

    def _resolved_one(self, a: Any) -> Any:
        if isinstance(a, Ref):
            return self.vectors[a.number]
        return self._resolved(a) if type(a) is tuple else a


_rows: dict[str, tuple[list[Matrix], np.ndarray]] = {}
_lock = threading.Lock()


def summary_of(name: str, recipe: Recipe) -> Summary:
    """Load the rows of a part and say what they are."""
    matrices, labels = _load(name, recipe)
    size = _together([size_of(X) for X in matrices])
    dtypes = {(X.data if isinstance(X, Csr) else X).dtype for X in matrices}
    if len(dtypes) > 1:
        raise InputError(f"all parts must hold numbers of one type, got {sorted(map(str, dtypes))}")
    first = np.sort(np.unique(labels, return_index=True)[1])
    seen = tuple(float(v) for v in labels[first])
    return Summary(size.rows, size.cols, size.cells, size.row_bytes, dtypes.pop(), seen)


def checksums_of(name: str, recipe: Recipe) -> list:
    """Of the rows of a part and of their labels."""
    matrices, labels = _load(name, recipe)
    return [*(matrix_checksum(X) for X in matrices), *checksums(labels)]


def holder_of(number: int, rows: str, recipe: Recipe, width: int, task: Task) -> Holder:
    """A part as it is before the first call."""
    matrices, labels = _load(rows, recipe)
    y = np.where(labels == task.positive, 1.0, -1.0)
    c = np.zeros(len(labels))
    for label, cost in task.costs.items():
        c[labels == label] = cost
    with one_blas_thread():
        data = Stacked([_widened(X, width) for X in matrices])
        return Holder(number, Shard(data, y, c, task.model, task.bias))


def forget_rows(name: str) -> None:
    """Let go of rows."""
    _rows.pop(name, None)


def joined(a: Any, b: Any) -> Any:
    """The sum of two results, whatever they are made of."""
    if a is None:
        return None
    if hasattr(a, "joined"):
        return a.joined(b)
    if isinstance(a, tuple):
        return tuple(joined(x, y) for x, y in zip(a, b, strict=True))
    return a | b if isinstance(a, dict) else a + b


def _load(name: str, recipe: Recipe) -> tuple[list[Matrix], np.ndarray]:
    with _lock:
        if name not in _rows:
            found = [piece.load(recipe.n_features, recipe.dtype) for piece in recipe.pieces]
            kept = [(X, labels) for X, labels in found if shape(X)[0]] or found[:1]
            _rows[name] = [X for X, _ in kept], np.concatenate([labels for _, labels in kept])
        return _rows[name]


def _widened(X: Matrix, width: int) -> Matrix:
    if isinstance(X, Csr):
        return widen(X, width)
    if X.shape[1] != width:
        raise InputError(f"all parts must have {width} columns, got {X.shape[1]}")
    return X
