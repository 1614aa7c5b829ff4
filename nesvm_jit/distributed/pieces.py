"""The pieces in which the rows of a distributed problem come: files, byte ranges of files, parts of
on-disk matrices, chunks of dask arrays. Every worker can load every piece."""

import os
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..errors import FormatError, InputError
from ..files.libsvm.reader import parse_range, read_libsvm
from ..files.ondisk.matrix import is_matrix, open_matrix
from ..files.text import display_name, is_packed
from ..matrix.checks import as_matrix, as_vector
from ..matrix.matrix import Matrix


class Text(NamedTuple):
    """LIBSVM text: the lines that begin in a range of bytes, or all of a file."""

    path: str
    start: int
    stop: int | None

    @property
    def weight(self) -> float:
        return (self.stop if self.stop is not None else os.path.getsize(self.path)) - self.start

    def load(self, n_features: int | None, dtype: type) -> tuple[Matrix, np.ndarray]:
        if self.stop is None:
            X, labels = read_libsvm(self.path, n_features, dtype)
        else:
            X, labels = parse_range(self.path, self.start, self.stop, n_features, dtype)
        return as_matrix(X), labels


class OnDiskRows(NamedTuple):
    """Rows lo..hi of an on-disk matrix."""

    path: str
    lo: int
    hi: int
    weight: float

    def load(self, n_features: int | None, dtype: type) -> tuple[Matrix, np.ndarray]:
        matrix = open_matrix(self.path)
        X = matrix.read(self.lo, self.hi)
        if n_features is not None and matrix.n_cols > n_features:
            raise FormatError(
                f"{display_name(self.path)}: {matrix.n_cols} features, at most {n_features} wanted"
            )
        return X, matrix.labels[self.lo : self.hi]


class Chunk(NamedTuple):
    """A chunk of dask arrays: the futures of its rows and of its labels."""

    X: Any
    y: Any
    weight: float

    def load(self, n_features: int | None, dtype: type) -> tuple[Matrix, np.ndarray]:
        X = as_matrix(self.X)
        return X, as_vector("y", self.y, X.shape[0])


Piece = Text | OnDiskRows | Chunk


def file_pieces(paths: list[str], n_shards: int) -> list[Piece]:
    """Cut files into pieces of about equal size, if possible at least one for each shard."""
    sizes = [_bytes_of(path) for path in paths]
    most = max(1.0, sum(sizes) / n_shards)
    pieces: list[Piece] = []
    for path, size in zip(paths, sizes, strict=True):
        count = max(1, round(size / most))
        if is_matrix(path):
            n = open_matrix(path).n_rows
            count = min(count, n)
            cuts = [n * k // count for k in range(count + 1)]
            pieces += [
                OnDiskRows(os.path.abspath(path), lo, hi, size * (hi - lo) / n)
                for lo, hi in pairwise(cuts)
            ]
        elif count == 1 or is_packed(path):
            pieces.append(Text(os.path.abspath(path), 0, None))
        else:
            cuts = [int(size) * k // count for k in range(count + 1)]
            pieces += [Text(os.path.abspath(path), lo, hi) for lo, hi in pairwise(cuts)]
    return pieces


def _bytes_of(path: str) -> float:
    if is_matrix(path):
        return float(open_matrix(path).nbytes)
    try:
        return float(os.path.getsize(path))
    except OSError as e:
        raise FormatError(f"{display_name(path)}: cannot be read: {e.strerror}") from None


def array_pieces(client: Any, X: Any, y: Any) -> list[Piece]:
    """Return a piece for every chunk of rows of dask arrays, which stay on the cluster."""
    if getattr(X, "ndim", 0) != 2:
        raise InputError("X must be file names or a dask array of 2 dimensions")
    import dask.array

    X = X.rechunk({1: -1})
    y = y if isinstance(y, dask.array.Array) else dask.array.from_array(np.asarray(y))
    if any(np.isnan(n) for n in X.shape):
        X = X.compute_chunk_sizes()
    if y.shape != (X.shape[0],):
        raise InputError(f"y must have length {X.shape[0]}, got shape {y.shape}")
    y = y.rechunk((X.chunks[0],))
    rows = [client.compute(block) for block in X.to_delayed().ravel()]
    labels = [client.compute(block) for block in y.to_delayed().ravel()]
    weights = [float(n) for n in X.chunks[0]]
    chunks = zip(rows, labels, weights, strict=True)
    return [Chunk(*piece) for piece in chunks if piece[2] > 0]


def group(pieces: list[Piece], n_shards: int) -> list[list[Piece]]:
    """Divide the pieces, in order, into at most `n_shards` groups of about equal weight."""
    groups: list[list[Piece]] = [[] for _ in range(min(n_shards, len(pieces)))]
    total, done = sum(piece.weight for piece in pieces), 0.0
    for k, piece in enumerate(pieces):
        middle = (done + 0.5 * piece.weight) / total if total else 0.0
        at_most = len(groups) - 1
        at_least = max(0, len(groups) - (len(pieces) - k))  # no group may remain empty
        groups[min(at_most, max(int(middle * len(groups)), at_least))].append(piece)
        done += piece.weight
    return [group for group in groups if group]
