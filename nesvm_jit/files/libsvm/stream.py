"""Read LIBSVM text of any length block by block, in bounded memory."""

import contextlib
import io
import lzma
import sys
import zlib
from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...matrix.checks import whole_number
from ...matrix.matrix import Csr, CsrArrays, trust_csr
from ..text import PACKERS, readable
from .explain import no_rows
from .parse import Form, form_of, parse_lines
from .reader import scipy_rows

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

READ_BYTES = 1 << 18  # bytes that are read from a file at a time
BLOCK_BYTES = 32 << 20  # bytes of text that are parsed at a time


class Place(NamedTuple):
    """A position between two lines: the bytes before it, the number of the next line, and the
    rows before it."""

    offset: int = 0
    line: int = 1
    rows: int = 0


START = Place()
Blocks = Generator[tuple[CsrArrays, np.ndarray, Place], None, None]


def libsvm_blocks(
    path: Any,
    n_features: int | None = None,
    dtype: Any = np.float64,
    zero_based: bool = False,
    block_bytes: int = BLOCK_BYTES,
) -> "Iterator[tuple[csr_matrix, np.ndarray]]":
    """Yield the rows of `read_libsvm` as (matrix, labels), a pair for every `block_bytes` of text.

    Arguments, accepted text and errors with their line numbers are those of `read_libsvm`; an
    error is raised when the block that it is in is read. Without `n_features` every matrix is as
    wide as its own highest index. Pipes and compressed files are never held in memory as a whole.
    A block ends at the first line end after `block_bytes`, however long that line is.
    """
    blocks = placed_blocks(path, n_features, dtype, zero_based, block_bytes)  # checks now
    return _scipy_blocks(blocks)


def _scipy_blocks(blocks: Blocks) -> "Iterator[tuple[csr_matrix, np.ndarray]]":
    with contextlib.closing(blocks):
        for rows, labels, _ in blocks:
            yield scipy_rows(rows), labels


def checked_blocks(
    path: Any, zero_based: bool, block_bytes: int = BLOCK_BYTES
) -> Iterator[tuple[Csr, np.ndarray]]:
    """Yield the rows of `libsvm_blocks` in float64 as (`Csr`, labels)."""
    blocks = placed_blocks(path, None, np.float64, zero_based, block_bytes)
    with contextlib.closing(blocks):
        for rows, labels, _ in blocks:
            yield trust_csr(*rows), labels


def placed_blocks(
    path: Any,
    n_features: int | None,
    dtype: Any,
    zero_based: bool,
    block_bytes: int,
    start: Place = START,
) -> Blocks:
    """Yield the rows of `libsvm_blocks` from `start` on as (rows, labels, the place after them)."""
    form = form_of(path, n_features, dtype, zero_based)
    size = whole_number("block_bytes", block_bytes, 1)
    texts = _whole_lines(_pieces(path, form.name, min(size, READ_BYTES), start.offset), size)
    return _parse_blocks(texts, form, start)


def _parse_blocks(texts: Generator[bytearray, None, None], form: Form, place: Place) -> Blocks:
    with contextlib.closing(texts):
        for text in texts:
            view = np.frombuffer(memoryview(text).toreadonly(), dtype=np.uint8)
            rows, labels = parse_lines(view, form, place.line)
            place = Place(
                place.offset + len(text), place.line + text.count(b"\n"), place.rows + len(labels)
            )
            if len(labels):
                yield rows, labels, place
    if not place.rows:
        raise no_rows(form.name)


def _whole_lines(
    pieces: Generator[bytes, None, None], block_bytes: int
) -> Generator[bytearray, None, None]:
    """Join the pieces and cut them at the first line end after every `block_bytes`.

    The cuts depend on the text alone: a reader that starts at one of them makes the same later
    ones.
    """
    block, searched = bytearray(), block_bytes - 1
    with contextlib.closing(pieces):
        for piece in pieces:
            block += piece
            while (end := block.find(b"\n", searched)) >= 0:
                rest = block[end + 1 :]
                del block[end + 1 :]
                yield block
                block, searched = rest, block_bytes - 1
            searched = max(searched, len(block))
    if block:
        yield block


# ---------------------------------------------------------------- bytes as they come


def _pieces(path: Any, name: str, size: int, start: int) -> Generator[bytes, None, None]:
    """Yield the unpacked bytes of `path` from byte `start` on, at most `size` at a time."""
    with contextlib.ExitStack() as stack:
        with readable(name):
            source = _open_source(path, stack)
            read = _choose_reader(source, stack, start)
        while True:
            with readable(name):
                piece = read(size)
            if not piece:
                return
            yield piece


def _open_source(path: Any, stack: contextlib.ExitStack) -> Any:
    """Return a binary file; the stack closes it only if it was opened here."""
    if hasattr(path, "read"):
        return path
    if path == "-":
        return sys.stdin.buffer
    return stack.enter_context(open(path, "rb", buffering=0))


def _choose_reader(source: Any, stack: contextlib.ExitStack, start: int) -> Callable[[int], bytes]:
    """Return a function that reads `source` from byte `start` on, and unpacks it if its first
    bytes are those of a packed file."""
    joined = _Joined(source)
    for magic, module in PACKERS.items():
        if joined.start.startswith(magic):
            buffered = stack.enter_context(io.BufferedReader(joined, READ_BYTES))
            packed = stack.enter_context(module.open(buffered))
            read = partial(_unpack, packed, kind=module.__name__)
            _skip(read, start)
            return read
    if start:
        joined.seek_to(start)
    return joined.take


def _skip(read: Callable[[int], bytes], size: int) -> None:
    """Read `size` bytes without keeping them."""
    while size:
        piece = read(min(size, READ_BYTES))
        if not piece:
            raise ValueError("the file is shorter than it was")
        size -= len(piece)


def _unpack(packed: Any, size: int, kind: str) -> bytes:
    try:
        return packed.read1(size)
    except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as e:
        if getattr(e, "errno", None) is not None:  # the disk's fault, not the data's
            raise
        raise ValueError(f"damaged {kind} data: {e}") from None


class _Joined(io.RawIOBase):
    """A file whose first bytes have been read already; it gives them again before the rest."""

    def __init__(self, source: Any):
        # read1 of a non-blocking file may return b"" before the end, so `read` is used. Terminals
        # are the exception: with `read`, Ctrl-D would have to be pressed twice.
        self.source = source
        interactive = getattr(source, "isatty", bool)() and hasattr(source, "read1")
        self.read_source = source.read1 if interactive else source.read
        self.start = b""
        longest = max(map(len, PACKERS))
        while len(self.start) < longest and (piece := self.read_new(longest - len(self.start))):
            self.start += piece

    def read_new(self, size: int) -> bytes:
        """Read bytes that have not been read before."""
        piece = self.read_source(size)
        if isinstance(piece, str):
            raise TypeError("a file object must be opened in binary mode")
        if piece is None:
            raise TypeError("a blocking file is required, got one with nothing to read yet")
        return bytes(piece)

    def take(self, size: int) -> bytes:
        """Return at most `size` bytes; none mean the end."""
        if not self.start:
            return self.read_new(size)
        piece, self.start = self.start[:size], self.start[size:]
        return piece

    def seek_to(self, offset: int) -> None:
        self.source.seek(offset)
        self.start = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self.take(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)
