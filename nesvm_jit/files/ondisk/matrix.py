"""Read on-disk matrices, by ranges of rows.

Files are not memory-mapped: only the rows that were read take memory, and a file that shrinks
while it is read is an error, where a mapped one would end the program by a signal.
"""

import os
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from ...errors import FormatError, InputError
from ...matrix.checks import ASCENDING, BROKEN, INFINITE, csr_fault
from ...matrix.matrix import Csr, readonly, trust_csr
from ...settings import whole_number
from ..text import display_name
from .format import HEADER, PIECE_BYTES, Array, Header, read_header

BLOCK_BYTES = 64 << 20  # bytes of rows that are read at a time


def is_matrix(path: Any) -> bool:
    """Return True if `path` is a folder with a header in it."""
    try:
        return path != "-" and os.path.isfile(os.path.join(path, HEADER))
    except (TypeError, ValueError):
        return False


def open_matrix(folder: Any) -> "OnDisk":
    """Open the matrix in a folder that `convert` made. Header and sizes are checked now, rows when
    they are read."""
    return OnDisk(folder, read_header(folder))


class Buffers:
    """Memory that every `read` into it uses again, overwriting the rows of the last one."""

    def __init__(self) -> None:
        self._arrays: dict[str, np.ndarray] = {}

    def take(self, name: str, n: int, dtype: Any) -> np.ndarray:
        """Return an array of n numbers, in the memory of the last one of this name if it fits."""
        array = self._arrays.get(name)
        if array is None or len(array) < n or array.dtype != dtype:
            self._arrays.pop(name, array)  # freed before the next one is made
            array = self._arrays[name] = np.empty(n, dtype=dtype)
        return array[:n]


# ---------------------------------------------------------------- the matrix


class OnDisk:
    """A matrix with labels that stays on disk; `read` and `blocks` return parts of it as `Csr`."""

    def __init__(self, path: Any, header: Header):
        self.path = os.path.abspath(os.fsdecode(path))
        self.name = display_name(path)
        self.n_rows, self.n_cols, self.n_cells = header[:3]
        self.dtype = np.dtype(header.dtype)
        self.first_index = header.first_index
        self._table = header.blocks
        self._arrays = {
            name: Array(os.path.join(os.fsdecode(path), f"{name}.bin"), dtype, length)
            for name, (dtype, length) in header.shapes.items()
        }
        self._cuts: dict[int, np.ndarray] = {}

    def __reduce__(self) -> tuple:
        return open_matrix, (self.path,)

    def __repr__(self) -> str:
        return f"<{self.n_rows} x {self.n_cols} matrix of {self.dtype} in {self.name}>"

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_rows, self.n_cols

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays on disk."""
        return sum(a.length * a.dtype.itemsize for a in self._arrays.values())

    @cached_property
    def labels(self) -> np.ndarray:
        """All labels, read at the first access."""
        return self.read_labels(0, self.n_rows)

    def read_labels(self, lo: int, hi: int) -> np.ndarray:
        """Read the labels of rows lo..hi."""
        lo, hi = self._range(lo, hi)
        labels = self._arrays["labels"].fill(lo, np.empty(hi - lo))
        if not np.isfinite(labels).all():
            raise FormatError(f"{self._arrays['labels'].name}: labels must be finite")
        return readonly(labels)

    def read(self, lo: int, hi: int, buffers: Buffers | None = None) -> Csr:
        """Read rows lo..hi and check them: damaged ones raise FormatError and reach no kernel.

        With `buffers`, the result is valid until the next read into them.
        """
        lo, hi = self._range(lo, hi)
        take = (buffers or Buffers()).take
        ends = self._row_ends(lo, hi, take("ends", hi - lo + 1, np.uint64))
        first, n = int(ends[0]), int(ends[-1] - ends[0])
        values = self._arrays["values"].fill(first, take("values", n, self.dtype))
        indices = self._arrays["indices"].fill(first, take("indices", n, np.uint32))
        ends -= ends[0]
        if max(self.n_cols, n) < 1 << 31:
            indptr = take("indptr", hi - lo + 1, np.uint32)
            indptr[:] = ends
        else:
            indices, indptr = indices.astype(np.uint64), ends
        fault = csr_fault(readonly(values), readonly(indices), readonly(indptr), self.n_cols)
        if fault != ASCENDING:
            what = {
                BROKEN: ("indices", f"an index is outside the {self.n_cols} columns"),
                INFINITE: ("values", "values must be finite"),
            }.get(fault, ("indices", "indices must ascend"))
            raise FormatError(
                f"{self._arrays[what[0]].name}: damaged in rows {lo}..{hi}: {what[1]}"
            )
        return trust_csr(values, indices, indptr, self.n_cols)

    def blocks(
        self, block_bytes: int = BLOCK_BYTES, reuse: bool = False
    ) -> Generator[tuple[int, int, Csr], None, None]:
        """Yield (lo, hi, rows lo..hi) from the first row to the last.

        A block has at most `block_bytes`, or a single row. A thread reads the next one while the
        caller has this one. With `reuse` two buffers take turns: a block is valid until the next
        one is requested.
        """
        cuts = self.cuts(block_bytes).tolist()
        return self.ranges(list(pairwise(cuts)), reuse)

    def ranges(
        self, ranges: list[tuple[int, int]], reuse: bool = False
    ) -> Generator[tuple[int, int, Csr], None, None]:
        """Yield (lo, hi, rows lo..hi) of every range, with one range read ahead as in `blocks`."""
        buffers = [Buffers(), Buffers()] if reuse else [None, None]
        with ThreadPoolExecutor(1, "nesvm-jit-read") as pool:

            def submit(k: int) -> Future[Csr]:
                lo, hi = ranges[k]
                return pool.submit(self.read, lo, hi, buffers[k % 2])

            future = submit(0)
            for k, (lo, hi) in enumerate(ranges):
                X = future.result()
                if k + 1 < len(ranges):
                    future = submit(k + 1)
                yield lo, hi, X

    def cuts(self, block_bytes: int = BLOCK_BYTES) -> np.ndarray:
        """Return row numbers 0, …, n_rows with at most `block_bytes`, or one row, between them."""
        size = whole_number("block_bytes", block_bytes, 1)
        if size not in self._cuts:
            self._cuts[size] = readonly(np.array(self._find_cuts(size)))
        return self._cuts[size]

    def _find_cuts(self, size: int) -> list[int]:
        per_cell, per_row = self.dtype.itemsize + (4 if self.n_cols < 1 << 31 else 12), 12
        cuts, start = [0], 0
        step = PIECE_BYTES // 8
        for lo in range(0, self.n_rows, step):
            hi = min(self.n_rows, lo + step)
            ends = self._row_ends(lo, hi, np.empty(hi - lo + 1, dtype=np.uint64))
            # before[i]: the bytes of all rows before row lo + i
            before = ends.astype(np.int64) * per_cell + per_row * np.arange(lo, hi + 1)
            while before[-1] - start > size:
                fits = lo + int(np.searchsorted(before, start + size, side="right")) - 1
                cuts.append(max(fits, cuts[-1] + 1))
                start = int(before[cuts[-1] - lo])
        return cuts if cuts[-1] == self.n_rows else [*cuts, self.n_rows]

    def digest(self) -> bytes:
        """Return bytes that identify the contents: the shape, the type and all checksums."""
        return repr((self.shape, self.n_cells, self.dtype.str, self._table)).encode()

    def verify(self) -> None:
        """Read all arrays once and compare them with the checksums in the header."""
        row = cell = 0
        for rows, cells, *expected in self._table:
            parts = {"values": cell, "indices": cell, "indptr": row + 1, "labels": row}
            for (name, lo), crc in zip(parts.items(), expected, strict=True):
                n = cells if name in ("values", "indices") else rows
                if self._arrays[name].crc32(lo, lo + n) != crc:
                    raise FormatError(
                        f"{self._arrays[name].name}: damaged in rows {row}..{row + rows}: "
                        "their checksum does not match"
                    )
            row, cell = row + rows, cell + cells
        self._row_ends(0, 0, np.empty(1, dtype=np.uint64))

    def _row_ends(self, lo: int, hi: int, out: np.ndarray) -> np.ndarray:
        """Read the positions of the first cells of rows lo, …, hi; require that they ascend and
        lie inside the arrays."""
        ends = self._arrays["indptr"].fill(lo, out)
        inside = (ends[:-1] <= ends[1:]).all() and ends[-1] <= self.n_cells
        if not inside or (lo == 0 and ends[0]) or (hi == self.n_rows and ends[-1] != self.n_cells):
            raise FormatError(
                f"{self._arrays['indptr'].name}: damaged in rows {lo}..{hi}: row ends must ascend "
                f"from 0 to {self.n_cells}"
            )
        return ends

    def _range(self, lo: Any, hi: Any) -> tuple[int, int]:
        try:
            whole = int(lo), int(hi)
            fits = 0 <= whole[0] <= whole[1] <= self.n_rows and whole == (lo, hi)
        except (TypeError, ValueError, OverflowError):
            fits = False
        if not fits:
            raise InputError(
                f"rows must be a range within 0..{self.n_rows}, got {lo!r:.40}..{hi!r:.40}"
            )
        return whole
