"""Operations that numba has no names for: what they do in plain Python; `native` is what they are
compiled to."""

import sys

import numpy as np

from .memory import LINE
from .policy import overload

LITTLE_ENDIAN = sys.byteorder == "little"


def prefetch(array, index):
    """Ask for the cell `index` of a flat, contiguous array; a wrong index is no fault."""


def stream(source, target):
    """target = source, for what is not read again soon: past the caches, a line at a time. Both
    are contiguous. Whoever claims the next chunk thereby waits for what was written."""
    target[:] = source


def load8(text, pos):
    """text[pos:pos+8] as one little-endian number; the caller has checked that they are there."""
    return np.uint64(int.from_bytes(text[pos : pos + 8].tobytes(), sys.byteorder))


def trailing_zeros(x):
    """How many low bits of a 64-bit number are 0 (64 for 0)."""
    x = int(x)
    return np.uint64((x & -x).bit_length() - 1 if x else 64)


def leading_zeros(x):
    """How many high bits of a 64-bit number are 0 (64 for 0)."""
    return np.uint64(64 - int(x).bit_length())


def _native(name):
    from . import native

    return getattr(native, name)


@overload(load8)
def _(text, pos):
    load = _native("load8")
    return lambda text, pos: load(text, pos)


@overload(trailing_zeros)
def _(x):
    count = _native("trailing_zeros")
    return lambda x: count(x)


@overload(leading_zeros)
def _(x):
    count = _native("leading_zeros")
    return lambda x: count(x)


@overload(prefetch)
def _(array, index):
    fetch = _native("prefetch")
    return lambda array, index: fetch(array, index)


@overload(stream)
def _(source, target):
    store_line = _native("store_line")

    def stream(source, target):
        n, size = len(target), target.itemsize
        ahead = min(n, (-target.ctypes.data % LINE) // size)
        for k in range(ahead):
            target[k] = source[k]
        per_line = LINE // size
        lines = (n - ahead) // per_line
        for line in range(lines):
            store_line(source, target, ahead + line * per_line)
        for k in range(ahead + lines * per_line, n):
            target[k] = source[k]

    return stream
