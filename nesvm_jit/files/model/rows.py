"""Read the rows of model files: numbers, or numbers and then sparse cells.

Memory for a number of rows is allocated only if the rest of the file is long enough for them.
"""

from typing import NamedTuple

import numpy as np

from .lines import IN_NUMBERS, WHOLE, Lines, is_number, quote_word
from .record import HIGHEST_INDEX, LARGEST_INT

# Rows of at most so many bytes are read without looking at the length of the file: the error then
# names the line that is missing.
SMALL_BYTES = 1 << 16
# From so many bytes on the compiled parser is used; below, loading it takes longer than it saves.
COMPILED_BYTES = 1 << 21


class Cells(NamedTuple):
    """Sparse rows with indices as in the file: row i has cells indptr[i]..indptr[i+1]."""

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray


def number_rows(lines: Lines, count: int, width: int) -> np.ndarray:
    """Read `count` lines of `width` numbers."""
    return _read(lines, count, width, "w")[0]


def vector_rows(lines: Lines, count: int, width: int, serial: bool) -> tuple[np.ndarray, Cells]:
    """Read `count` lines of `width` numbers and cells `index:value`, or one cell `0:serial`."""
    first = lines.number + 1
    numbers, cells = _read(lines, count, width, "SV")
    per_row = np.diff(cells.indptr)
    if serial and (per_row != 1).any():
        row = int(np.argmax(per_row != 1))
        raise lines.error(f"one cell 0:serial is required, got {per_row[row]}", first + row)
    _check_cells(lines, cells, first, serial)
    return numbers, cells


def _read(lines: Lines, count: int, width: int, section: str) -> tuple[np.ndarray, Cells]:
    left = len(lines.data) - lines.position
    if 2 * count * width > max(left, SMALL_BYTES):
        what = f"{count} lines of {width} number{'s' * (width != 1)}"
        raise lines.error(f"{what} required after '{section}', only {left} bytes are left")
    most_cells = lines.data.count(b":", lines.position) if section == "SV" else 0
    numbers = np.empty((count, width))
    cells = Cells(
        np.zeros(count + 1, dtype=np.int64),
        np.empty(most_cells, dtype=np.int64),
        np.empty(most_cells),
    )
    compiled = left >= COMPILED_BYTES
    row = 0
    while row < count:
        if compiled:
            row = _read_plain(lines, row, numbers, cells)
        if row < count:
            _read_row(lines, row, numbers, cells, section)
            row += 1
    end = cells.indptr[-1]
    return numbers, Cells(cells.indptr, cells.indices[:end], cells.values[:end])


def _read_plain(lines: Lines, row: int, numbers: np.ndarray, cells: Cells) -> int:
    """Read rows up to the first one that the compiled parser leaves to Python; return its
    number."""
    from ...kernels.text.model import _parse_rows

    text = np.frombuffer(lines.data, dtype=np.uint8)
    after, position = _parse_rows(text, lines.position, row, numbers, *cells)
    lines.skip_to(position, after - row)
    return after


def _read_row(lines: Lines, row: int, numbers: np.ndarray, cells: Cells, section: str) -> None:
    line = lines.next()
    count, width = numbers.shape
    if not line:
        raise lines.error(f"{count} lines required after '{section}', the file ends at {row}")
    if not line.endswith(b"\n"):
        raise lines.error("a newline is required, the file ends within the line")
    words = line.split(None, width)
    rest = words.pop() if len(words) > width else b""
    if len(words) < width or (rest and section == "w"):
        got = "more" if rest else len(words)
        raise lines.error(f"{width} number{'s' * (width != 1)} required, got {got}")
    for word in words:
        if not is_number(word):
            raise lines.error(f"a finite number required, got {quote_word(word)}")
    numbers[row] = [float(word) for word in words]
    indices, values = _cells_of(lines, rest)
    stored = slice(cells.indptr[row], cells.indptr[row] + len(values))
    cells.indices[stored] = indices
    cells.values[stored] = values
    cells.indptr[row + 1] = stored.stop


def _cells_of(lines: Lines, text: bytes) -> tuple[list[int], list[float]]:
    words = text.split()
    text = b" ".join(words)
    parts = text.replace(b":", b" ").split()
    form = b" ".join([b":"] * len(words))
    try:
        if len(parts) != 2 * len(words) or text.translate(None, IN_NUMBERS) != form:
            raise ValueError
        indices = [int(part) for part in parts[0::2]]
        if any(abs(index) > 10**18 for index in indices):
            raise ValueError
        return indices, [float(part) for part in parts[1::2]]
    except ValueError:
        bad = next((word for word in words if not _is_cell(word)), b"")
        raise lines.error(f"index:value required, got {quote_word(bad)}") from None


def _is_cell(word: bytes) -> bool:
    index, _, value = word.partition(b":")
    return bool(WHOLE.fullmatch(index)) and is_number(value)


def _check_cells(lines: Lines, cells: Cells, first: int, serial: bool) -> None:
    """Require indices in range that ascend in each row, finite values and whole serials."""
    indptr, indices, values = cells
    low, high = (0, 0) if serial else (1, HIGHEST_INDEX)
    after = np.zeros(len(indices), dtype=bool)
    after[1:] = indices[1:] <= indices[:-1]
    after[indptr[:-1][indptr[:-1] < len(after)]] = False
    wrong_value = ~np.isfinite(values)
    if serial:
        wrong_value |= (values != np.rint(values)) | (values < 1) | (values > LARGEST_INT)
    bad = np.flatnonzero((indices < low) | (indices > high) | after | wrong_value)
    if not len(bad):
        return
    at = bad[0]
    index, value = int(indices[at]), float(values[at])
    if not low <= index <= high:
        what = f"index must be from {low} to {high}, got {index}"
    elif after[at]:
        what = f"index {index} after {indices[at - 1]}, indices must ascend"
    else:
        kind = f"a whole number from 1 to {LARGEST_INT}" if serial else "finite"
        what = f"value must be {kind}, got {value:g}"
    raise lines.error(what, first + int(np.searchsorted(indptr, at, side="right")) - 1)
