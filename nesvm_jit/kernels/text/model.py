"""The compiled loop of the reader of model files; it leaves unusual rows to Python."""

import numpy as np

from ...jit import exact_inline, exact_loop, takes
from .decimal import OK, parse_decimal, parse_digits
from .libsvm import COLON, NEWLINE, _is_blank, _skip_blanks


@exact_inline
def _ends_number(text, pos, end):
    return pos < end and (_is_blank(text[pos]) or text[pos] == NEWLINE)


@takes(lambda text, *_: 25 * len(text))
@exact_loop
def _parse_rows(text, pos, row, numbers, ends, indices, values):
    """Parse lines of numbers and then `index:value` cells from text[pos] into numbers[row] and the
    rows after it; the cells of row i end at ends[i + 1].

    Stop after the last row, or at the first row that is wrong or has a number that is not certain;
    return its number and the position of its line.
    """
    end = len(text)
    n_rows, width = numbers.shape
    while row < n_rows:
        at = pos
        for j in range(width):
            value, at, code = parse_decimal(text, _skip_blanks(text, at, end), end)
            if code != OK or not _ends_number(text, at, end) or not np.isfinite(value):
                return row, pos
            numbers[row, j] = value
        cell = ends[row]
        at = _skip_blanks(text, at, end)
        while at < end and text[at] != NEWLINE:
            start = at
            index, at = parse_digits(text, at, end, np.uint64(0))
            if at == start or at - start > 10 or at >= end or text[at] != COLON:
                return row, pos
            value, at, code = parse_decimal(text, at + 1, end)
            if code != OK or not _ends_number(text, at, end) or not np.isfinite(value):
                return row, pos
            if cell >= len(values):
                return row, pos
            indices[cell] = index
            values[cell] = value
            cell += 1
            at = _skip_blanks(text, at, end)
        if at >= end:
            return row, pos
        pos = at + 1
        row += 1
        ends[row] = cell
    return row, pos
