"""The folder of an on-disk matrix: a sealed header, and four little-endian arrays in files."""

import errno
import os
import stat
import sys
import threading
import weakref
import zlib
from typing import Any, NamedTuple

import numpy as np

from ...errors import FormatError
from .. import sealed
from ..text import display_name

FORMAT, VERSION = "nesvm-jit matrix", 1
HEADER = "header.json"
ARRAYS = ("values", "indices", "indptr", "labels")
FILES = frozenset({HEADER, *(f"{a}.bin" for a in ARRAYS)})
PIECE_BYTES = 8 << 20  # bytes that are read at a time where a whole array is read
MOST_COLUMNS = (1 << 32) - 1


class Header(NamedTuple):
    """The contents of header.json.

    An entry of `blocks` is the number of rows, the number of cells, and the CRC-32 of their part
    of each of ARRAYS (of indptr: the ends of the rows).
    """

    n_rows: int
    n_cols: int
    n_cells: int
    dtype: str
    first_index: int
    blocks: list[list[int]]
    byte_order: str = "little"

    @property
    def shapes(self) -> dict[str, tuple[np.dtype, int]]:
        """The type, in this computer's byte order, and the length of every array."""
        return {
            "values": (np.dtype(self.dtype), self.n_cells),
            "indices": (np.dtype(np.uint32), self.n_cells),
            "indptr": (np.dtype(np.uint64), self.n_rows + 1),
            "labels": (np.dtype(np.float64), self.n_rows),
        }

    def text(self) -> bytes:
        return sealed.seal(FORMAT, VERSION, self._asdict())


def read_header(folder: Any) -> Header:
    name = display_name(folder)
    where = os.path.join(os.fsdecode(folder), HEADER)
    try:
        require_regular(where)
        with open(where, "rb") as f:
            data = f.read()
    except (FileNotFoundError, NotADirectoryError):
        raise FormatError(f"{name}: an on-disk matrix is required, there is no {HEADER}") from None
    except (OSError, ValueError) as e:
        why = getattr(e, "strerror", None) or e
        raise FormatError(f"{display_name(where)}: cannot be read: {why}") from None
    try:
        return _check_header(sealed.unseal(FORMAT, VERSION, data))
    except ValueError as e:
        raise FormatError(f"{display_name(where)}: {e}") from None


def _check_header(facts: dict) -> Header:
    """Return the header that the facts describe; raise ValueError if one of them cannot be."""
    try:
        header = Header(**{name: facts[name] for name in Header._fields})
    except KeyError as e:
        raise ValueError(f"{e.args[0]} is missing") from None
    table = header.blocks
    if not isinstance(table, list) or not all(
        isinstance(row, list) and len(row) == 2 + len(ARRAYS) and all(map(_is_count, row))
        for row in table
    ):
        raise ValueError("blocks must be lists of rows, cells and four checksums")
    for name, least, most, value in (
        ("n_rows", 1, sum(row[0] for row in table), header.n_rows),
        ("n_cells", 0, sum(row[1] for row in table), header.n_cells),
    ):
        if not _is_count(value) or value < least or value != most:
            raise ValueError(f"{name} must be the sum over all blocks, {most}, got {value!r:.40}")
    if not _is_count(header.n_cols) or header.n_cols > MOST_COLUMNS:
        raise ValueError(f"n_cols must be from 0 to {MOST_COLUMNS}, got {header.n_cols!r:.40}")
    choices = {"dtype": ("float64", "float32"), "first_index": (0, 1), "byte_order": ("little",)}
    for name, allowed in choices.items():
        value = facts[name]
        if value not in allowed or isinstance(value, bool):
            raise ValueError(f"{name} must be {' or '.join(map(str, allowed))}, got {value!r:.40}")
    return header


def require_regular(path: str) -> None:
    """Refuse a pipe: opening it would block until another process writes to it."""
    if stat.S_ISFIFO(os.stat(path).st_mode):
        raise OSError(errno.EINVAL, "a regular file is required, it is a pipe")


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 60


# ---------------------------------------------------------------- arrays


class Array:
    """The numbers in an open file, read from any position."""

    def __init__(self, path: str, dtype: np.dtype, length: int):
        self.name = display_name(path)
        self.dtype, self.length = dtype, length
        self._lock = threading.Lock()
        try:
            require_regular(path)
            self._file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        except OSError as e:
            raise FormatError(f"{self.name}: cannot be read: {e.strerror}") from None
        weakref.finalize(self, os.close, self._file)
        required, size = length * dtype.itemsize, os.fstat(self._file).st_size
        if size != required:
            raise FormatError(f"{self.name}: {required} bytes are required, got {size}")

    def fill(self, lo: int, out: np.ndarray) -> np.ndarray:
        """Fill `out` with the numbers from position `lo` on, and return it."""
        view, offset = out.view(np.uint8).data, 0
        while offset < len(view):
            try:
                n = self._read_at(lo * self.dtype.itemsize + offset, view[offset:])
            except OSError as e:
                raise FormatError(f"{self.name}: cannot be read: {e.strerror}") from None
            if not n:
                raise FormatError(f"{self.name}: the file is shorter than it was")
            offset += n
        if sys.byteorder == "big":
            out.byteswap(inplace=True)
        return out

    def _read_at(self, offset: int, out: memoryview) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(self._file, [out], offset)
        with self._lock:  # on Windows all threads share the position in the file
            os.lseek(self._file, offset, os.SEEK_SET)
            data = os.read(self._file, min(len(out), PIECE_BYTES))
        out[: len(data)] = data
        return len(data)

    def crc32(self, lo: int, hi: int) -> int:
        """Return the checksum of the numbers lo..hi, as they stand in the file."""
        crc, step = 0, PIECE_BYTES // self.dtype.itemsize
        piece = np.empty(min(step, hi - lo), dtype=self.dtype)
        for at in range(lo, hi, step):
            part = self.fill(at, piece[: min(step, hi - at)])
            crc = zlib.crc32(part.astype(self.dtype.newbyteorder("<"), copy=False).data, crc)
        return crc
