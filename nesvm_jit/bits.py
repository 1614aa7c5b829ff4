"""Bit operations that numba has no names for; plain Python twins serve when it is off."""

import sys

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .jit import overload

LITTLE_ENDIAN = sys.byteorder == "little"


@intrinsic
def _load8(typingctx, text, pos):
    def codegen(context, builder, signature, args):
        array = context.make_array(signature.args[0])(context, builder, args[0])
        at = builder.gep(array.data, [args[1]])
        word = builder.load(builder.bitcast(at, ir.IntType(64).as_pointer()))
        word.align = 1
        return word

    return types.uint64(text, types.int64), codegen


def _count_intrinsic(name):
    @intrinsic
    def count(typingctx, x):
        def codegen(context, builder, signature, args):
            return getattr(builder, name)(args[0], ir.Constant(ir.IntType(1), 0))

        return types.uint64(types.uint64), codegen

    return count


_cttz = _count_intrinsic("cttz")
_ctlz = _count_intrinsic("ctlz")


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


@overload(load8)
def _(text, pos):
    return lambda text, pos: _load8(text, pos)


@overload(trailing_zeros)
def _(x):
    return lambda x: _cttz(x)


@overload(leading_zeros)
def _(x):
    return lambda x: _ctlz(x)
