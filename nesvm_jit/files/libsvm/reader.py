"""LIBSVM / SVM-light text: reader and writer."""

import contextlib
import mmap
import sys
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from ...errors import FormatError, InputError
from ...kernels.text import libsvm as lt
from ...matrix.checks import as_matrix, as_precision, as_vector
from ...matrix.matrix import Csr, shape
from ..text import decompressed, display_name, writing

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

BLOCK_BYTES = 1 << 20
LINE_BYTES = 1 << 14
HARD_PER_BLOCK = 64


def read_libsvm(
    path: Any,
    n_features: int | None = None,
    dtype: Any = np.float64,
    zero_based: bool = False,
) -> "tuple[csr_matrix, np.ndarray]":
    """Read `label index:value …` lines: a scipy CSR matrix and the labels as float64.

    `path` is a file name, `-` for standard input, or an open binary file; gzip, bzip2 and xz
    are recognised by their content. Every number has the bits of Python's ``float()`` (rounded
    once more for float32). Without `n_features` the highest index decides the width.
    Comments (`# …`), `qid:N`, blank lines, CRLF and a missing last newline are accepted;
    anything else that is not a row raises FormatError: ``file:line: what``.
    """
    dtype = as_precision(dtype)
    base = _base(zero_based)
    limit = _limit(n_features, base)
    name = display_name(path)
    return _parse_text(_text_of(path, name), name, base, limit, n_features, dtype)


def parse_range(
    path: Any, start: int, stop: int, n_features: int | None = None, dtype: Any = np.float64
) -> "tuple[csr_matrix, np.ndarray]":
    """The rows of the lines that begin at bytes start to stop of a plain file, perhaps none."""
    dtype, name, limit = as_precision(dtype), display_name(path), _limit(n_features, 1)
    with _readable(name), open(path, "rb") as f:
        begin, end = _line_start(f, start), _line_start(f, stop)
        f.seek(begin)
        text = np.frombuffer(f.read(end - begin), dtype=np.uint8)
        try:
            return _parse_lines(text, name, 1, limit, n_features, dtype)
        except FormatError:  # now it is worth the time to count the lines before
            f.seek(0)
            pieces = iter(lambda: f.read(min(BLOCK_BYTES, begin - f.tell())), b"")
            first = 1 + sum(piece.count(b"\n") for piece in pieces)
            return _parse_lines(text, name, 1, limit, n_features, dtype, first)


def _line_start(f: BinaryIO, at: int) -> int:
    """The first byte of a line, at this one or after it."""
    if at == 0:
        return 0
    f.seek(at - 1)
    f.readline()
    return f.tell()


def _base(zero_based: bool) -> int:
    if not isinstance(zero_based, (bool, np.bool_)):
        raise InputError(f"zero_based must be True or False, got {zero_based!r}")
    return 0 if zero_based else 1


def _limit(n_features: int | None, base: int) -> int:
    """The number of columns that a file may have."""
    widest = lt.HIGHEST_INDEX + 1 - base
    if n_features is None:
        return widest
    whole = isinstance(n_features, (int, np.integer)) and not isinstance(n_features, bool)
    if not whole or not 0 <= n_features <= widest:
        raise InputError(
            f"n_features must be a whole number from 0 to {widest}, got {n_features!r}"
        )
    return int(n_features)


@contextlib.contextmanager
def _readable(name: str):
    """Whatever keeps a file from being read is a FormatError with its name."""
    try:
        yield
    except OSError as e:
        raise FormatError(f"{name}: cannot be read: {e.strerror or e}") from None
    except (EOFError, ValueError, TypeError) as e:
        raise FormatError(f"{name}: {e}") from None


def _text_of(path, name: str) -> np.ndarray:
    """The bytes of `path` as a read-only uint8 array, memory-mapped when they can be."""
    with _readable(name):
        if hasattr(path, "read"):
            data = path.read()
        elif path == "-":
            data = sys.stdin.buffer.read()
        else:
            with open(path, "rb") as f:
                data = _mapped_or_read(f)
        return np.frombuffer(decompressed(data), dtype=np.uint8)


def _mapped_or_read(f: BinaryIO):
    """A read-only map of a regular file, the bytes of anything else."""
    try:
        return mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):  # a pipe, a device, an empty file
        return f.read()


def _blocks(text: np.ndarray) -> np.ndarray:
    """The table of blocks: about BLOCK_BYTES each, cut after line ends."""
    size = len(text)
    view = text.data
    cuts = [0]
    while cuts[-1] < size:
        at = cuts[-1] + BLOCK_BYTES
        while at < size:
            found = bytes(view[at : at + LINE_BYTES]).find(b"\n")
            if found >= 0:
                at += found + 1
                break
            at += LINE_BYTES
        cuts.append(min(at, size))
    table = np.zeros((len(cuts) - 1, lt.N_COLUMNS), dtype=np.int64)
    table[:, lt.START] = cuts[:-1]
    table[:, lt.STOP] = cuts[1:]
    return table


def _parse_text(text, name, base, limit, n_features, dtype):
    X, labels = _parse_lines(text, name, base, limit, n_features, dtype)
    if not len(labels):
        raise _no_rows(name)
    return X, labels


def _parse_lines(text, name, base, limit, n_features, dtype, first_line=1):
    """The rows of whole lines, perhaps none; `text` starts with line `first_line` of its file."""
    from scipy.sparse import csr_matrix

    blocks = _blocks(text)
    lt._count(text, blocks)
    n_rows, n_cells = (int(blocks[:, c].sum()) for c in (lt.ROWS, lt.CELLS))
    for count, first in ((lt.ROWS, lt.FIRST_ROW), (lt.CELLS, lt.FIRST_CELL)):
        blocks[1:, first] = np.cumsum(blocks[:-1, count])
    hard_per_block = HARD_PER_BLOCK
    counted = blocks.copy()
    while True:
        cells = lt.Cells(
            labels=np.empty(n_rows),
            stops=np.empty(n_rows, dtype=np.int64),
            indices=np.empty(n_cells, dtype=np.uint32),
            values=np.empty(n_cells, dtype=dtype),
            hard=np.empty((len(blocks) * hard_per_block, 3), dtype=np.int64),
        )
        lt._parse(text, blocks, base, limit, hard_per_block, cells)
        wrong = np.flatnonzero(blocks[:, lt.CODE])
        if len(wrong):
            line, what = _explain(text, blocks[wrong[0]], base, n_features, dtype, first_line)
            raise FormatError(f"{name}:{line}: {what}")
        most_hard = int(blocks[:, lt.N_HARD].max(initial=0))
        if most_hard <= hard_per_block:
            break
        hard_per_block = most_hard
        blocks = counted.copy()
    _convert_hard(text, name, blocks, hard_per_block, cells, first_line)
    labels, stops, indices, values = _closed_up(blocks, cells)
    largest = int(blocks[:, lt.LARGEST].max(initial=-1))
    width = largest + 1 if n_features is None else int(n_features)
    small = max(width, len(values)) < 2**31
    indptr = np.zeros(len(labels) + 1, dtype=np.int32 if small else np.int64)
    indptr[1:] = stops
    indices = indices.view(np.int32) if small else indices.astype(np.int64)
    X = csr_matrix((len(labels), width), dtype=dtype)
    X.data, X.indices, X.indptr = values, indices, indptr
    X.has_sorted_indices = X.has_canonical_format = True
    return X, labels


def _convert_hard(text, name, blocks, per_block, cells, first_line) -> None:
    """Let Python convert the numbers that the compiled parser was not sure of."""
    for b in np.flatnonzero(blocks[:, lt.N_HARD]):
        for slot, start, stop in cells.hard[b * per_block : b * per_block + blocks[b, lt.N_HARD]]:
            value = float(bytes(text[start:stop]))
            target, at = (cells.labels, -1 - slot) if slot < 0 else (cells.values, slot)
            target[at] = value
            if not np.isfinite(target[at]):
                where = f"{name}:{_line_of(text, start, first_line)}"
                raise FormatError(f"{where}: {_token(text, start)} is too large for a number")


def _closed_up(blocks, cells):
    """Labels, row ends, indices and values without the room that comments and `qid:` left."""
    rows, n_cells = blocks[:, lt.ROWS], blocks[:, lt.CELLS]
    if rows.sum() == len(cells.labels) and n_cells.sum() == len(cells.values):
        return cells.labels, cells.stops, cells.indices, cells.values
    row = cell = 0
    for block in blocks:
        n, m = block[lt.ROWS], block[lt.CELLS]
        r, c = block[lt.FIRST_ROW], block[lt.FIRST_CELL]
        cells.labels[row : row + n] = cells.labels[r : r + n]
        cells.stops[row : row + n] = cells.stops[r : r + n] - (c - cell)
        cells.indices[cell : cell + m] = cells.indices[c : c + m]
        cells.values[cell : cell + m] = cells.values[c : c + m]
        row, cell = row + n, cell + m
    return (
        cells.labels[:row].copy(),
        cells.stops[:row],
        cells.indices[:cell].copy(),
        cells.values[:cell].copy(),
    )


# ---------------------------------------------------------------- what is wrong


def _no_rows(name: str) -> FormatError:
    return FormatError(f"{name}: no rows; at least one line `label index:value ...` is required")


def _line_of(text: np.ndarray, pos: int, first_line: int) -> int:
    step = 1 << 24
    return first_line + sum(
        int(np.count_nonzero(text[at : min(at + step, pos)] == lt.NEWLINE))
        for at in range(0, pos, step)
    )


def _token(text: np.ndarray, pos: int) -> str:
    """The word at `pos`, made printable and cut to 40 characters, in quotes."""
    words = bytes(text[pos : pos + 200]).split(b"\n")[0].split()
    word = words[0] if words else b""
    shown = word.decode("ascii", "backslashreplace")
    shown = "".join(ch if ch.isprintable() else f"\\x{ord(ch):02x}" for ch in shown)
    return f"'{shown[:40]}…'" if len(shown) > 40 else f"'{shown}'"


def _explain(text, block, base, n_features, dtype, first_line) -> tuple[int, str]:
    """The line, and what is wrong with it."""
    pos, code = int(block[lt.WHERE]), int(block[lt.CODE])
    token = _token(text, pos)
    index, _, value = token.strip("'").partition(":")
    previous = int(block[lt.PREVIOUS])
    marked = pos == 0 and first_line == 1 and text[0] >= 0xEF
    highest = lt.HIGHEST_INDEX if n_features is None else n_features - 1 + base
    what = {
        lt.BAD_LABEL: f"label must be a decimal number, got {token}"
        + (" (a byte order mark: save as plain ASCII)" if marked else ""),
        lt.BAD_INDEX: f"index:value required with a whole number as index, got {token}",
        lt.NO_COLON: f"index:value required, got {token} without a colon",
        lt.BAD_VALUE: f"value must be a decimal number, got {token}",
        lt.TOO_SMALL: f"index must be at least {base}, got {index}"
        + (" (indices count from 1 in files of this format)" if base else ""),
        lt.NOT_ASCENDING: f"index {index} after {previous}, indices must ascend",
        lt.TOO_LARGE: f"index must be at most {highest}, got {index}",
        lt.NOT_FINITE: f"number too large for {dtype}, got {value or index}",
        lt.BAD_QID: f"qid:N with a whole number required, got {token}",
        lt.NO_ROOM: "the file changed while it was read",
    }[code]
    return _line_of(text, pos, first_line), what


# ---------------------------------------------------------------- writer


def write_libsvm(path: Any, X, y, zero_based: bool = False) -> None:
    """Write X and labels y as LIBSVM text; `read_libsvm` gives back the same bits.

    Explicit zeros of a sparse X are kept, zeros of an array are not written. `path` is a file
    name (compressed if it ends in .gz, .bz2 or .xz; written under a temporary name, then
    renamed), `-` for standard output, or an open binary file.
    """
    X = as_matrix(X)
    n, p = shape(X)
    if n == 0:
        raise InputError("X must have at least one row to be written")
    y = as_vector("y", y, n)
    base = _base(zero_based)
    if p - 1 + base > lt.HIGHEST_INDEX:
        raise InputError(f"X must have at most {lt.HIGHEST_INDEX + 1 - base} columns, got {p}")
    with writing(path) as f:
        for i in range(n):
            cells = [f"{j + base}:{_shortest(v)}" for j, v in _cells_of(X, i)]
            f.write((" ".join([_shortest(y[i]), *cells]) + "\n").encode("ascii"))


def _cells_of(X, i: int):
    """(column, value) of the entries of row i that are written."""
    if isinstance(X, Csr):
        stored = slice(X.indptr[i], X.indptr[i + 1])
        return zip(X.indices[stored].tolist(), X.data[stored].tolist(), strict=True)
    columns = np.flatnonzero(X[i])
    return zip(columns.tolist(), X[i, columns].tolist(), strict=True)


def _shortest(value: float) -> str:
    """The shortest decimal text of the same float64, whole numbers without `.0`."""
    text = repr(float(value))
    return text[:-2] if text.endswith(".0") else text
