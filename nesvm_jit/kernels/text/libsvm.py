"""The compiled loops of the LIBSVM text reader: count the cells of each block, then parse it.

A block consists of whole lines. No loop reads beyond the end of its block or writes beyond the
memory that was counted for it, whatever the bytes are, even if they change meanwhile.
"""

from typing import NamedTuple

import numpy as np

from ...jit import exact_helper, exact_inline, exact_kernel, exact_loop, takes
from .decimal import BAD, HARD, parse_decimal, parse_digits

NEWLINE, COLON, HASH, TAB, RETURN, SPACE = 10, 58, 35, 9, 13, 32
HIGHEST_INDEX = (1 << 32) - 2

# Values of CODE: the fault of a line, or FINE.
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
    """The arrays for parsed data. A line of `hard` is (slot, start, stop) of a number that Python
    must read."""

    labels: np.ndarray
    stops: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    hard: np.ndarray


# The columns of the table of blocks.
START, STOP, ROWS, CELLS, FIRST_ROW, FIRST_CELL, CODE, WHERE, PREVIOUS, LARGEST, N_HARD = range(11)
N_COLUMNS = 11


@exact_helper
def _count_bytes(text, start, stop):
    """Count newlines and colons in text[start:stop], by counters of one byte, of which 32 fit into
    a register."""
    newlines = 0
    colons = 0
    whole = start + (stop - start) // 128 * 128
    for lo in range(start, whole, 128):
        few_newlines = np.uint8(0)
        few_colons = np.uint8(0)
        for i in range(np.uint64(lo), np.uint64(lo + 128)):
            few_newlines = np.uint8(few_newlines + np.uint8(text[i] == NEWLINE))
            few_colons = np.uint8(few_colons + np.uint8(text[i] == COLON))
        newlines += np.int64(few_newlines)
        colons += np.int64(few_colons)
    for i in range(whole, stop):
        newlines += text[i] == NEWLINE
        colons += text[i] == COLON
    return newlines, colons


@takes(lambda text, blocks: 10 * len(text))
@exact_loop
def _count(text, blocks):
    """Count newlines and colons of every block, upper bounds of its rows and cells."""
    for b in range(blocks.shape[0]):
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
    """Return the position after `qid:N` and the blanks that follow it, `pos` if there is no qid, or
    −1 if it is wrong."""
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
    """Note a number that Python must read if there is space for it; count it in any case."""
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
    """Parse one block. Its first fault, if there is one, is in block[CODE], its place in
    block[WHERE]."""
    pos, end = block[START], min(block[STOP], len(text))
    row, last_row = block[FIRST_ROW], block[FIRST_ROW] + block[ROWS]
    cell, last_cell = block[FIRST_CELL], block[FIRST_CELL] + block[CELLS]
    labels, stops, indices, values = cells.labels, cells.stops, cells.indices, cells.values
    n_hard = 0
    largest = -1
    previous = -1
    in_row = False
    block[CODE] = FINE
    while True:
        pos = _skip_blanks(text, pos, end)
        if _at_line_end(text, pos, end):
            if in_row:
                stops[row] = cell
                row += 1
                largest = max(largest, previous)
                in_row = False
            if pos >= end:
                break
            pos = _next_line(text, pos, end)
            continue
        start = pos
        if in_row:
            index, pos = parse_digits(text, pos, end, np.uint64(0))
            column = np.int64(index) - base
            if pos == start or pos >= end or text[pos] != COLON:
                whole = pos > start and _ends_token(text, pos, end)
                return _fail(block, NO_COLON if whole else BAD_INDEX, start, 0)
            if index > np.uint64(HIGHEST_INDEX) or pos - start > 19 or column >= n_features:
                return _fail(block, TOO_LARGE, start, 0)
            if column <= previous:
                code = TOO_SMALL if column < 0 else NOT_ASCENDING
                return _fail(block, code, start, previous + base)
            previous = column
            pos += 1
        value, stop, code = parse_decimal(text, pos, end)
        if code == BAD or not _ends_token(text, stop, end):
            return _fail(block, BAD_VALUE if in_row else BAD_LABEL, start, 0)
        if row >= last_row or (in_row and cell >= last_cell):
            return _fail(block, NO_ROOM, start, 0)
        if code == HARD:
            n_hard = _note_hard(
                cells.hard, hard_room, n_hard, cell if in_row else -1 - row, pos, stop
            )
        if in_row:
            indices[cell] = column
            values[cell] = value
            if not np.isfinite(values[cell]):
                return _fail(block, NOT_FINITE, start, 0)
            cell += 1
            pos = stop
        else:
            labels[row] = value
            if not np.isfinite(value):
                return _fail(block, NOT_FINITE, start, 0)
            start = _skip_blanks(text, stop, end)
            pos = _skip_qid(text, start, end)
            if pos < 0:
                return _fail(block, BAD_QID, start, 0)
            in_row = True
            previous = -1
    block[ROWS] = row - block[FIRST_ROW]
    block[CELLS] = cell - block[FIRST_CELL]
    block[LARGEST] = largest
    block[N_HARD] = n_hard
    return FINE


@takes(lambda text, *_: 25 * len(text))
@exact_kernel
def _parse(k, n_blocks, text, blocks, base, n_features, hard_per_block, cells):
    """Parse block k into its own rows and cells."""
    room = (k * hard_per_block, (k + 1) * hard_per_block)
    _parse_block(text, blocks[k], base, n_features, room, cells)
