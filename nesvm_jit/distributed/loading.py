"""Load the rows of a shard on its worker, describe them, and join them to one matrix."""

import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..checkpoint.fingerprint import data_fingerprint
from ..errors import InputError
from ..matrix.matrix import Csr, Matrix
from ..matrix.rows import Size, size_of, widen
from ..problems.blocks import Block, Resident
from .pieces import Piece


class Source(NamedTuple):
    """The pieces of data in which the rows of a shard are, and how they are read."""

    pieces: tuple[Piece, ...]
    n_features: int | None
    dtype: type


class Summary(NamedTuple):
    """The size and type of the rows of a shard, and the number of rows by label, in the order in
    which labels appear."""

    size: Size
    dtype: np.dtype
    labels: dict[float, int]


class Loaded(NamedTuple):
    """The matrices of all pieces that have rows, and their labels."""

    matrices: list[Matrix]
    labels: np.ndarray


_loaded: dict[str, Loaded] = {}
_lock = threading.Lock()


def load(name: str, source: Source) -> Loaded:
    """Return the rows of this name, which are read at the first call."""
    with _lock:
        if name not in _loaded:
            pieces = [piece.load(source.n_features, source.dtype) for piece in source.pieces]
            kept = [(X, labels) for X, labels in pieces if X.shape[0]] or pieces[:1]
            labels = np.concatenate([labels for _, labels in kept])
            _loaded[name] = Loaded([X for X, _ in kept], labels)
        return _loaded[name]


def forget_rows(name: str) -> None:
    """Remove rows from memory."""
    _loaded.pop(name, None)


def summarise_rows(rows: Loaded) -> Summary:
    """Return the summary of rows; raise InputError if their types differ."""
    dtypes = {(X.data if isinstance(X, Csr) else X).dtype for X in rows.matrices}
    if len(dtypes) > 1:
        types = sorted(map(str, dtypes))
        raise InputError(f"all pieces of the data must hold numbers of one type, got {types}")
    values, first, counts = np.unique(rows.labels, return_index=True, return_counts=True)
    labels = {float(values[k]): int(counts[k]) for k in np.argsort(first)}
    return Summary(total_size([size_of(X) for X in rows.matrices]), dtypes.pop(), labels)


def checksum_rows(rows: Loaded) -> list[Any]:
    """Return the checksums of rows and of their labels."""
    return data_fingerprint(*rows.matrices, rows.labels)


def total_size(sizes: list[Size]) -> Size:
    """Return the size of several matrices, one above the other, as wide as the widest."""
    rows = sum(s.rows for s in sizes)
    held = sum(s.rows * s.row_bytes for s in sizes)
    width = max(s.cols for s in sizes)
    return Size(rows, width, sum(s.cells for s in sizes), held // max(1, rows))


class Stacked:
    """Matrices in memory, one above the other, which are the blocks of one matrix."""

    resident = True

    def __init__(self, matrices: list[Matrix], width: int):
        stacked = [Resident(_widen(X, width)) for X in matrices]
        self.size = total_size([matrix.size for matrix in stacked])
        self.dtype = stacked[0].dtype
        self._blocks: list[Block] = []
        offset = 0
        for matrix in stacked:
            self._blocks += [Block(offset + lo, offset + hi, X) for lo, hi, X in matrix]
            offset += matrix.size.rows
        self.bounds = [(block.lo, block.hi) for block in self._blocks]

    def __iter__(self) -> Iterator[Block]:
        return iter(self._blocks)


def _widen(X: Matrix, width: int) -> Matrix:
    columns = X.shape[1]
    if isinstance(X, Csr) and columns <= width:
        return widen(X, width)
    if columns != width:
        raise InputError(f"all pieces of the data must have {width} columns, got {columns}")
    return X
