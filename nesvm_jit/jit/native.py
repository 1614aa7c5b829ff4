"""Operations that numba has no names for, as it compiles them; `intrinsics` names them."""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .memory import LINE


@intrinsic
def load8(typingctx, text, pos):
    def codegen(context, builder, signature, args):
        array = context.make_array(signature.args[0])(context, builder, args[0])
        at = builder.gep(array.data, [args[1]])
        word = builder.load(builder.bitcast(at, ir.IntType(64).as_pointer()))
        word.align = 1
        return word

    return types.uint64(text, types.int64), codegen


@intrinsic
def store_line(typingctx, source, target, first):
    """target[first:] = source[first:] for one line, where the target's line begins."""

    def codegen(context, builder, signature, args):
        number = context.get_data_type(signature.args[1].dtype)
        size = context.get_abi_sizeof(number)
        line = ir.VectorType(number, LINE // size)
        arrays = (context.make_array(signature.args[k])(context, builder, args[k]) for k in (0, 1))
        places = (builder.gep(array.data, [args[2]]) for array in arrays)
        read, write = (builder.bitcast(place, line.as_pointer()) for place in places)
        cells = builder.load(read, align=size)
        store = builder.store(cells, write, align=LINE)
        once = builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)])
        store.set_metadata("nontemporal", once)
        return context.get_dummy_value()

    return types.void(source, target, types.int64), codegen


def _count_intrinsic(name):
    @intrinsic
    def count(typingctx, x):
        def codegen(context, builder, signature, args):
            return getattr(builder, name)(args[0], ir.Constant(ir.IntType(1), 0))

        return types.uint64(types.uint64), codegen

    return count


trailing_zeros = _count_intrinsic("cttz")
leading_zeros = _count_intrinsic("ctlz")


@intrinsic
def prefetch(typingctx, array, index):
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
