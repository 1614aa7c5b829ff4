"""LIBSVM text of any length in bounded memory: whole lines, about a block at a time."""

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

READ_BYTES = 1 << 18  # asked of a file at a time
BLOCK_BYTES = 32 << 20  # of text that are parsed at a time


class Place(NamedTuple):
    """Where reading goes on: bytes of text before it, number of the line, rows before it."""

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
    """The rows of `read_libsvm` as (matrix, labels), one pair per `block_bytes` or little more.

    Arguments, accepted text and errors, line numbers included, are those of `read_libsvm`; errors
    of the file come with the block they are in. Without `n_features` every matrix is as wide as
    its own highest index. Pipes and compressed files are never held whole; a block is never cut
    within a line, however long.
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
    """`libsvm_blocks` in float64 as kernels read them: what was parsed needs no check."""
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
    """`libsvm_blocks` from `start` on: (rows, labels, the place after them)."""
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
    """The pieces put together and cut at the first line end that makes `block_bytes`: where the
    cuts are depends on the text alone, so that reading on from one finds the others again."""
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
    """The decompressed bytes of `path` from number `start` on, at most `size` at a time."""
    with contextlib.ExitStack() as stack:
        with readable(name):
            source = _opened(path, stack)
            read = _unpacked(source, stack, start)
        while True:
            with readable(name):
                piece = read(size)
            if not piece:
                return
            yield piece


def _opened(path: Any, stack: contextlib.ExitStack) -> Any:
    """A binary file; only one that is opened here is closed."""
    if hasattr(path, "read"):
        return path
    if path == "-":
        return sys.stdin.buffer
    return stack.enter_context(open(path, "rb", buffering=0))


def _unpacked(source: Any, stack: contextlib.ExitStack, start: int) -> Callable[[int], bytes]:
    """The reading function of what `source` holds, plain or packed, told by its first bytes."""
    joined = _Joined(source)
    for magic, module in PACKERS.items():
        if joined.start.startswith(magic):
            buffered = stack.enter_context(io.BufferedReader(joined, READ_BYTES))
            packed = stack.enter_context(module.open(buffered))
            read = partial(_unpack, packed, kind=module.__name__)
            _drop(read, start)
            return read
    if start:
        joined.go_to(start)
    return joined.take


def _drop(read: Callable[[int], bytes], size: int) -> None:
    """Read `size` bytes and forget them."""
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
    """The first bytes of a file, read to look at them, and the rest of it."""

    def __init__(self, source: Any):
        # Not read1 as a rule: of a non-blocking file it may say b"" before the end. A terminal
        # has to be asked once, or two ^D would be needed.
        self.source = source
        interactive = getattr(source, "isatty", bool)() and hasattr(source, "read1")
        self.more = source.read1 if interactive else source.read
        self.start = b""
        longest = max(map(len, PACKERS))
        while len(self.start) < longest and (piece := self.fresh(longest - len(self.start))):
            self.start += piece

    def fresh(self, size: int) -> bytes:
        piece = self.more(size)
        if isinstance(piece, str):
            raise TypeError("a file object must be opened in binary mode")
        if piece is None:
            raise TypeError("a blocking file is required, got one with nothing to read yet")
        return bytes(piece)

    def take(self, size: int) -> bytes:
        """At most `size` bytes, none only at the end."""
        if not self.start:
            return self.fresh(size)
        piece, self.start = self.start[:size], self.start[size:]
        return piece

    def go_to(self, offset: int) -> None:
        self.source.seek(offset)
        self.start = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self.take(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)
