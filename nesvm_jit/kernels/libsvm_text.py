"""Compiled loops of the LIBSVM text reader: count, then parse each block into its place.

A block is a run of whole lines. No loop reads at or beyond the end of its block or writes
beyond the room that counting gave it, whatever the bytes are, even if they change meanwhile.
"""

from typing import NamedTuple

import numpy as np

from ..jit import exact_helper, exact_inline, exact_kernel, prange
from .decimal import BAD, HARD, parse_decimal, parse_digits

NEWLINE, COLON, HASH, TAB, RETURN, SPACE = 10, 58, 35, 9, 13, 32
HIGHEST_INDEX = (1 << 32) - 2

# What is wrong with a line.
(
    FINE,
    BAD_LABEL,
    BAD_INDEX,
    NO_COLON,
    BAD_VALUE,
    TOO_SMALL,
    NOT_ASCENDING,
    TOO_LARGE,
    NOT_FINITE,
    BAD_QID,
    NO_ROOM,
) = range(11)


class Cells(NamedTuple):
    """Where the parsed data go; `hard` takes (slot, start, stop) of numbers Python must read."""

    labels: np.ndarray
    stops: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    hard: np.ndarray


# Columns of the table of blocks.
START, STOP, ROWS, CELLS, FIRST_ROW, FIRST_CELL, CODE, WHERE, PREVIOUS, LARGEST, N_HARD = range(11)
N_COLUMNS = 11


@exact_helper
def _count_bytes(text, start, stop):
    """Newlines and colons in text[start:stop]; counters of one byte, so that 32 fit a register."""
    newlines = 0
    colons = 0
    whole = start + (stop - start) // 128 * 128
    for lo in range(start, whole, 128):
        few_newlines = np.uint8(0)
        few_colons = np.uint8(0)
        for i in range(np.uint64(lo), np.uint64(lo + 128)):
            few_newlines = np.uint8(few_newlines + np.uint8(text[i] == NEWLINE))
            few_colons = np.uint8(few_colons + np.uint8(text[i] == COLON))
        newlines += few_newlines
        colons += few_colons
    for i in range(whole, stop):
        newlines += text[i] == NEWLINE
        colons += text[i] == COLON
    return newlines, colons


@exact_kernel
def _count(text, blocks):
    """Newlines and colons of every block: upper bounds of its rows and cells."""
    for b in prange(blocks.shape[0]):
        start, stop = blocks[b, START], min(blocks[b, STOP], len(text))
        newlines, colons = _count_bytes(text, start, stop)
        if stop > start and text[stop - 1] != NEWLINE:
            newlines += 1
        blocks[b, ROWS] = newlines
        blocks[b, CELLS] = min(colons, (stop - start) // 3)


@exact_inline
def _is_blank(ch):
    return ch == SPACE or ch == TAB or ch == RETURN


@exact_inline
def _skip_blanks(text, pos, end):
    while pos < end and _is_blank(text[pos]):
        pos += 1
    return pos


@exact_inline
def _ends_token(text, pos, end):
    return pos >= end or _is_blank(text[pos]) or text[pos] == NEWLINE or text[pos] == HASH


@exact_inline
def _at_line_end(text, pos, end):
    return pos >= end or text[pos] == NEWLINE or text[pos] == HASH


@exact_helper
def _next_line(text, pos, end):
    while pos < end and text[pos] != NEWLINE:
        pos += 1
    return pos + 1


@exact_helper
def _skip_qid(text, pos, end):
    """The position after `qid:N` and the blanks that follow, `pos` if there is none, −1 if bad."""
    if not (pos + 3 < end and text[pos] == 113 and text[pos + 1] == 105 and text[pos + 2] == 100):
        return pos
    if text[pos + 3] != COLON:
        return -1
    start = pos + 4
    pos = start
    while pos < end and 48 <= text[pos] <= 57:
        pos += 1
    if pos == start or not _ends_token(text, pos, end):
        return -1
    return _skip_blanks(text, pos, end)


@exact_helper
def _note_hard(hard, room, n_hard, slot, start, stop):
    """Note a number for Python to read while there is room; count it in any case."""
    at = room[0] + n_hard
    if at < room[1]:
        hard[at, 0] = slot
        hard[at, 1] = start
        hard[at, 2] = stop
    return n_hard + 1


@exact_helper
def _fail(block, code, where, previous):
    block[CODE] = code
    block[WHERE] = where
    block[PREVIOUS] = previous
    return code


@exact_helper
def _parse_block(text, block, base, n_features, hard_room, cells):
    """Parse one block; block[CODE], block[WHERE] tell what is wrong first, and where."""
    pos, end = block[START], min(block[STOP], len(text))
    row, last_row = block[FIRST_ROW], block[FIRST_ROW] + block[ROWS]
    cell, last_cell = block[FIRST_CELL], block[FIRST_CELL] + block[CELLS]
    n_hard = 0
    largest = -1
    block[CODE] = FINE
    while pos < end:
        pos = _skip_blanks(text, pos, end)
        if _at_line_end(text, pos, end):
            pos = _next_line(text, pos, end)
            continue
        value, stop, code = parse_decimal(text, pos, end)
        if code == BAD or not _ends_token(text, stop, end):
            return _fail(block, BAD_LABEL, pos, 0)
        if not np.isfinite(value):
            return _fail(block, NOT_FINITE, pos, 0)
        if row >= last_row:
            return _fail(block, NO_ROOM, pos, 0)
        if code == HARD:
            n_hard = _note_hard(cells.hard, hard_room, n_hard, -1 - row, pos, stop)
        cells.labels[row] = value
        pos = _skip_blanks(text, stop, end)
        after = _skip_qid(text, pos, end)
        if after < 0:
            return _fail(block, BAD_QID, pos, 0)
        pos = after
        previous = -1
        while not _at_line_end(text, pos, end):
            start = pos
            index, pos = parse_digits(text, pos, end, np.uint64(0))
            if pos == start:
                return _fail(block, BAD_INDEX, start, previous + base)
            if pos >= end or text[pos] != COLON:
                code = NO_COLON if _ends_token(text, pos, end) else BAD_INDEX
                return _fail(block, code, start, previous + base)
            if index > np.uint64(HIGHEST_INDEX) or pos - start > 19:
                return _fail(block, TOO_LARGE, start, previous + base)
            column = np.int64(index) - base
            if column < 0:
                return _fail(block, TOO_SMALL, start, previous + base)
            if column <= previous:
                return _fail(block, NOT_ASCENDING, start, previous + base)
            if column >= n_features:
                return _fail(block, TOO_LARGE, start, previous + base)
            previous = column
            pos += 1
            value, stop, code = parse_decimal(text, pos, end)
            if code == BAD or not _ends_token(text, stop, end):
                return _fail(block, BAD_VALUE, start, previous + base)
            if cell >= last_cell:
                return _fail(block, NO_ROOM, start, previous + base)
            if code == HARD:
                n_hard = _note_hard(cells.hard, hard_room, n_hard, cell, pos, stop)
            cells.indices[cell] = column
            cells.values[cell] = value
            if not np.isfinite(cells.values[cell]):
                return _fail(block, NOT_FINITE, start, previous + base)
            cell += 1
            pos = _skip_blanks(text, stop, end)
        largest = max(largest, previous)
        cells.stops[row] = cell
        row += 1
        pos = _next_line(text, pos, end)
    block[ROWS] = row - block[FIRST_ROW]
    block[CELLS] = cell - block[FIRST_CELL]
    block[LARGEST] = largest
    block[N_HARD] = n_hard
    return FINE


@exact_kernel
def _parse(text, blocks, base, n_features, hard_per_block, cells):
    """Every block into its own rows and cells."""
    for b in prange(blocks.shape[0]):
        room = (b * hard_per_block, (b + 1) * hard_per_block)
        _parse_block(text, blocks[b], base, n_features, room, cells)
