"""Operations that numba has no names for; plain Python twins serve when it is off."""

import sys

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .policy import overload

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


@intrinsic
def _prefetch(typingctx, array, index):
    def codegen(context, builder, signature, args):
        cells = context.make_array(signature.args[0])(context, builder, args[0])
        pointer = ir.IntType(8).as_pointer()
        word = ir.IntType(32)
        at = builder.bitcast(builder.gep(cells.data, [args[1]]), pointer)
        kind = ir.FunctionType(ir.VoidType(), [pointer, word, word, word])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", (pointer,), kind)
        builder.call(fetch, [at, *(ir.Constant(word, v) for v in (0, 3, 1))])  # read, keep, data
        return context.get_dummy_value()

    return types.void(array, types.int64), codegen


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


@overload(load8)
def _(text, pos):
    return lambda text, pos: _load8(text, pos)


@overload(trailing_zeros)
def _(x):
    return lambda x: _cttz(x)


@overload(leading_zeros)
def _(x):
    return lambda x: _ctlz(x)


@overload(prefetch)
def _(array, index):
    return lambda array, index: _prefetch(array, index)
