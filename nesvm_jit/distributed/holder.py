"""What runs on a worker: it keeps rows, and what solvers remember of them, and answers calls."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError
from ..jit import most_threads, one_blas_thread, set_threads
from ..matrix import Csr, Matrix, Size, shape, size_of
from ..models.base import Model
from ..models.blocks import Block, Resident
from ..models.part import Part


class LostPartError(Exception):
    """This worker does not hold the part that it is asked about: it has been started anew."""


class Ref(NamedTuple):
    """A vector that holders keep, by its number."""

    number: int


class Call(NamedTuple):
    """A method of `Part`: the same number is answered once, however often it is asked."""

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
        self._parts = [Resident(X) for X in matrices]
        sizes = [part.size for part in self._parts]
        rows, cells = sum(s.rows for s in sizes), sum(s.cells for s in sizes)
        held = sum(s.rows * s.row_bytes for s in sizes)
        self.size = Size(rows, sizes[0].cols, cells, held // max(1, rows))
        self.dtype = self._parts[0].dtype
        self._blocks = []
        offset = 0
        for part in self._parts:
            self._blocks += [Block(offset + lo, offset + hi, X) for lo, hi, X in part]
            offset += part.size.rows
        self.bounds = [(block.lo, block.hi) for block in self._blocks]

    def __iter__(self):
        return iter(self._blocks)


@dataclass
class Holder:
    """A part and the vectors that were kept."""

    part: Part
    vectors: dict[int, Any] = field(default_factory=dict)
    last: tuple[int, Any] = (-1, None)

    def answer(self, call: Call) -> Any:
        if call.number == self.last[0]:
            return self.last[1]
        for number in call.dropped:
            self.vectors.pop(number, None)
        with one_blas_thread():
            found = getattr(self.part, call.method)(*self._resolved(call.args))
        if call.kept_as is not None:
            self.vectors[call.kept_as] = found
            found = None
        self.last = call.number, found
        return found

    def _resolved(self, args: tuple) -> tuple:
        return tuple(
            self.vectors[a.number]
            if isinstance(a, Ref)
            else self._resolved(a)
            if type(a) is tuple
            else a
            for a in args
        )


_rows: dict[str, tuple[list[Matrix], np.ndarray]] = {}
_holders: dict[str, Holder] = {}
_lock = threading.Lock()


def summarise(name: str, recipe: Recipe) -> Summary:
    """Load the rows of a part and say what they are."""
    _use_threads_of_worker()
    matrices, labels = _load(name, recipe)
    sizes = [size_of(X) for X in matrices]
    seen: dict[float, None] = dict.fromkeys(
        labels[np.sort(np.unique(labels, return_index=True)[1])]
    )
    rows = sum(s.rows for s in sizes)
    held = sum(s.rows * s.row_bytes for s in sizes)
    dtypes = {(X.data if isinstance(X, Csr) else X).dtype for X in matrices}
    return Summary(
        rows,
        max(s.cols for s in sizes),
        sum(s.cells for s in sizes),
        held // max(1, rows),
        max(dtypes, key=lambda t: t.itemsize),
        tuple(float(v) for v in seen),
    )


def build(name: str, rows: str, recipe: Recipe, width: int, task: Task, log: list[Call]) -> Any:
    """Make a part, perhaps not for the first time: then the calls it answered are made again."""
    _use_threads_of_worker()
    matrices, labels = _load(rows, recipe)
    y = np.where(labels == task.positive, 1.0, -1.0)
    c = np.zeros(len(labels))
    for label, cost in task.costs.items():
        c[labels == label] = cost
    with one_blas_thread():
        part = Part(Stacked([_widened(X, width) for X in matrices]), y, c, task.model, task.bias)
    holder = Holder(part)
    for call in log:
        holder.answer(call)
    _holders[name] = holder
    return part.facts


def answer(name: str, call: Call) -> Any:
    """The result of a call."""
    holder = _holders.get(name)
    if holder is None:
        raise LostPartError(name)
    return holder.answer(call)


def forget(name: str) -> None:
    """Let go of a part, or of rows."""
    _holders.pop(name, None)
    _rows.pop(name, None)


def joined(a: Any, b: Any) -> Any:
    """The sum of two results, whatever they are made of."""
    if a is None:
        return None
    if hasattr(a, "joined"):
        return a.joined(b)
    if isinstance(a, tuple):
        return tuple(joined(x, y) for x, y in zip(a, b, strict=True))
    return a + b


def appended(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Vectors of two parts as one."""
    return np.concatenate([a, b])


def _load(name: str, recipe: Recipe) -> tuple[list[Matrix], np.ndarray]:
    with _lock:
        if name not in _rows:
            found = [piece.load(recipe.n_features, recipe.dtype) for piece in recipe.pieces]
            matrices = [X for X, _ in found if shape(X)[0]]
            if not matrices:
                raise InputError("a part of the data has no rows; use fewer workers")
            _rows[name] = matrices, np.concatenate([labels for _, labels in found])
        return _rows[name]


def _widened(X: Matrix, width: int) -> Matrix:
    if isinstance(X, Csr):
        return X._replace(n_cols=width)
    if X.shape[1] != width:
        raise InputError(f"all parts must have {width} columns, got {X.shape[1]}")
    return X


def _use_threads_of_worker() -> None:
    from distributed import get_worker

    set_threads(max(1, min(get_worker().state.nthreads, most_threads())))
