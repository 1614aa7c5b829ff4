"""Error messages about LIBSVM text: the line, what is required there and what was found."""

import codecs

import numpy as np

from ...errors import FormatError
from ...kernels.text import libsvm as lt

BYTE_ORDER_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def no_rows(name: str) -> FormatError:
    """Return the error of a file without any row."""
    return FormatError(f"{name}: no rows; at least one line `label index:value ...` is required")


def line_of(text: np.ndarray, pos: int, first_line: int) -> int:
    """Return the number of the line that byte `pos` is in; `text` starts with `first_line`."""
    step = 1 << 24
    return first_line + sum(
        int(np.count_nonzero(text[at : min(at + step, pos)] == lt.NEWLINE))
        for at in range(0, pos, step)
    )


def token(text: np.ndarray, pos: int) -> str:
    """Return the word at `pos` in quotes, made printable and cut to 40 characters."""
    words = bytes(text[pos : pos + 200]).split(b"\n")[0].split()
    word = words[0] if words else b""
    shown = word.decode("ascii", "backslashreplace")
    shown = "".join(ch if ch.isprintable() else f"\\x{ord(ch):02x}" for ch in shown)
    return f"'{shown[:40]}…'" if len(shown) > 40 else f"'{shown}'"


def explain(
    text: np.ndarray, block: np.ndarray, base: int, highest: int, dtype: np.dtype, first_line: int
) -> str:
    """Return `line: what is wrong` for a block whose CODE is that of an error."""
    pos, code = int(block[lt.WHERE]), int(block[lt.CODE])
    word = token(text, pos)
    index, _, value = word.strip("'").partition(":")
    previous = int(block[lt.PREVIOUS])
    marked = pos == 0 and first_line == 1 and bytes(text[:3]).startswith(BYTE_ORDER_MARKS)
    what = {
        lt.BAD_LABEL: f"label must be a decimal number, got {word}"
        + (" (a byte order mark: save as plain ASCII)" if marked else ""),
        lt.BAD_INDEX: f"index:value required with a whole number as index, got {word}",
        lt.NO_COLON: f"index:value required, got {word} without a colon",
        lt.BAD_VALUE: f"value must be a decimal number, got {word}",
        lt.TOO_SMALL: f"index must be at least {base}, got {index}"
        + (" (indices count from 1 in files of this format)" if base else ""),
        lt.NOT_ASCENDING: f"index {index} after {previous}, indices must ascend",
        lt.TOO_LARGE: f"index must be at most {highest}, got {index}",
        lt.NOT_FINITE: f"number too large for {dtype}, got {value or index}",
        lt.BAD_QID: f"qid:N with a whole number required, got {word}",
        lt.NO_ROOM: "the file changed while it was read",
    }[code]
    return f"{line_of(text, pos, first_line)}: {what}"
