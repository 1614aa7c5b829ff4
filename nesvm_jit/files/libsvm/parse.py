"""Parse LIBSVM text: cut it into blocks, count their rows and cells, parse them in parallel."""

from typing import Any, NamedTuple

import numpy as np

from ...errors import FormatError
from ...jit import interpreted_first
from ...kernels.text import libsvm as lt
from ...matrix.checks import as_precision, boolean, whole_number
from ...matrix.matrix import CsrArrays
from ..text import display_name
from .explain import explain, line_of, token

BLOCK_BYTES = 1 << 18  # bytes of text that one thread parses at a time, in half a millisecond
LINE_BYTES = 1 << 14  # bytes of text that are searched for a line end at a time
HARD_PER_BLOCK = 64  # numbers of a block that can be left to Python before memory is enlarged


class Form(NamedTuple):
    """What the lines of a file may hold, and the name of the file in messages."""

    name: str
    base: int  # the index of the first column, 0 or 1
    n_features: int | None  # None: the highest index decides
    dtype: np.dtype

    @property
    def most_columns(self) -> int:
        return lt.HIGHEST_INDEX + 1 - self.base if self.n_features is None else self.n_features


def form_of(path: Any, n_features: int | None, dtype: Any, zero_based: bool) -> Form:
    """Check the arguments that all readers share."""
    dtype = as_precision(dtype)
    boolean("zero_based", zero_based)
    base = 0 if zero_based else 1
    if n_features is not None:
        n_features = whole_number("n_features", n_features, 0, lt.HIGHEST_INDEX + 1 - base)
    return Form(display_name(path), base, n_features, dtype)


@interpreted_first
def parse_lines(text: np.ndarray, form: Form, first_line: int = 1) -> tuple[CsrArrays, np.ndarray]:
    """Parse whole lines into rows and labels, of which there may be none.

    `text` starts with line `first_line` of its file. The rows need no check by `as_matrix`: their
    columns ascend and are in range, their values are finite and their indices unsigned.
    """
    blocks, cells, hard_per_block = _parse_blocks(text, form, first_line)
    if blocks[:, lt.N_HARD].any():
        _convert_hard(text, form.name, blocks, hard_per_block, cells, first_line)
    if blocks[:, lt.ROWS].sum() < len(cells.labels) or blocks[:, lt.CELLS].sum() < len(
        cells.values
    ):
        cells = _close_up(blocks, cells)
    widest = int(blocks[:, lt.LARGEST].max(initial=-1)) + 1
    n_cols = widest if form.n_features is None else form.n_features
    small = max(n_cols, len(cells.values)) < 2**31  # as scipy chooses its indices
    index = np.uint32 if small else np.uint64
    indptr = np.zeros(len(cells.labels) + 1, dtype=index)
    indptr[1:] = cells.stops
    indices = cells.indices.astype(index, copy=False)
    return CsrArrays(cells.values, indices, indptr, n_cols), cells.labels


def _parse_blocks(
    text: np.ndarray, form: Form, first_line: int
) -> tuple[np.ndarray, lt.Cells, int]:
    """Return the table of blocks, their cells, and how many hard numbers each block has memory
    for."""
    counted = _cut_blocks(text)
    lt._count(text, counted)
    n_rows, n_cells = (int(counted[:, c].sum()) for c in (lt.ROWS, lt.CELLS))
    for count, first in ((lt.ROWS, lt.FIRST_ROW), (lt.CELLS, lt.FIRST_CELL)):
        counted[1:, first] = np.cumsum(counted[:-1, count])
    hard_per_block = HARD_PER_BLOCK
    while True:
        blocks = counted.copy()
        cells = lt.Cells(
            labels=np.empty(n_rows),
            stops=np.empty(n_rows, dtype=np.int64),
            indices=np.empty(n_cells, dtype=np.uint32),
            values=np.empty(n_cells, dtype=form.dtype),
            hard=np.empty((len(blocks) * hard_per_block, 3), dtype=np.int64),
        )
        n_features = form.most_columns
        lt._parse(len(blocks), text, blocks, form.base, n_features, hard_per_block, cells)
        wrong = np.flatnonzero(blocks[:, lt.CODE])
        if len(wrong):
            highest = form.most_columns - 1 + form.base
            what = explain(text, blocks[wrong[0]], form.base, highest, form.dtype, first_line)
            raise FormatError(f"{form.name}:{what}")
        most_hard = int(blocks[:, lt.N_HARD].max(initial=0))
        if most_hard <= hard_per_block:
            return blocks, cells, hard_per_block
        hard_per_block = most_hard


def _cut_blocks(text: np.ndarray) -> np.ndarray:
    """Cut the text after line ends into blocks of about BLOCK_BYTES; return their table."""
    size = len(text)
    view = text.data
    cuts = [0]
    while cuts[-1] < size:
        at = cuts[-1] + BLOCK_BYTES
        while at < size:
            line_end = bytes(view[at : at + LINE_BYTES]).find(b"\n")
            if line_end >= 0:
                at += line_end + 1
                break
            at += LINE_BYTES
        cuts.append(min(at, size))
    table = np.zeros((len(cuts) - 1, lt.N_COLUMNS), dtype=np.int64)
    table[:, lt.START] = cuts[:-1]
    table[:, lt.STOP] = cuts[1:]
    return table


def _convert_hard(
    text: np.ndarray,
    name: str,
    blocks: np.ndarray,
    per_block: int,
    cells: lt.Cells,
    first_line: int,
) -> None:
    """Convert in Python the numbers that the compiled parser could not round for certain."""
    for b in np.flatnonzero(blocks[:, lt.N_HARD]):
        for slot, start, stop in cells.hard[b * per_block : b * per_block + blocks[b, lt.N_HARD]]:
            value = float(bytes(text[start:stop]))
            target, at = (cells.labels, -1 - slot) if slot < 0 else (cells.values, slot)
            target[at] = value
            if not np.isfinite(target[at]):
                where = f"{name}:{line_of(text, start, first_line)}"
                raise FormatError(f"{where}: {token(text, start)} is too large for a number")


def _close_up(blocks: np.ndarray, cells: lt.Cells) -> lt.Cells:
    """Close the gaps between blocks, which comments and `qid:` leave; return the cells."""
    row = cell = 0
    for block in blocks:
        n, m = block[lt.ROWS], block[lt.CELLS]
        r, c = block[lt.FIRST_ROW], block[lt.FIRST_CELL]
        cells.labels[row : row + n] = cells.labels[r : r + n]
        cells.stops[row : row + n] = cells.stops[r : r + n] - (c - cell)
        cells.indices[cell : cell + m] = cells.indices[c : c + m]
        cells.values[cell : cell + m] = cells.values[c : c + m]
        row, cell = row + n, cell + m
    return lt.Cells(
        cells.labels[:row].copy(),
        cells.stops[:row],
        cells.indices[:cell].copy(),
        cells.values[:cell].copy(),
        cells.hard,
    )
