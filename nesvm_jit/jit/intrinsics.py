"""Operations that numba has no names for: what they do in plain Python; `native` is what they are
compiled to."""

import sys

import numpy as np

from .policy import overload

LITTLE_ENDIAN = sys.byteorder == "little"


def prefetch(array, index):
    """Ask for the cell `index` of a flat, contiguous array; a wrong index is no fault."""


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
