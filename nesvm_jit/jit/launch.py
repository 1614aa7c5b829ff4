"""How the chunks of a kernel are run: claimed one by one, by as many threads as come.

The body of a kernel is what chunk k of n does. It is compiled once, into a function that claims
the next chunk by an atomic counter until none is left. One thread runs that function alone; several
run it side by side, from the one `prange` of the package. A thread that comes late finds less to
do, or nothing; with TBB nobody has waited for it.
"""

import ctypes
import functools
import sys
from typing import Any

import numba
from llvmlite import ir
from numba import prange, types
from numba.core import cgutils
from numba.extending import intrinsic

from ..signals import deferred
from .cache import attach_cache

_INT = ir.IntType(64)
_POINTER = ir.IntType(8).as_pointer()
_WORKER = ir.FunctionType(ir.VoidType(), [_POINTER])  # claims chunks of the work it points to
_NEXT, _COUNT, _FAILED, _ARGUMENTS = 0, 1, 2, 3  # fields of the work, which arguments follow
_SIDE_BY_SIDE = (types.intp, types.intp, types.intp)


@intrinsic
def _call(typingctx: Any, worker: Any, work: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        function = builder.inttoptr(values[0], _WORKER.as_pointer())
        builder.call(function, [builder.inttoptr(values[1], _POINTER)])
        return context.get_dummy_value()

    return types.void(types.intp, types.intp), codegen


def _run_side_by_side(worker, work, n_threads):  # type: ignore[no-untyped-def]
    """`worker` on every thread; the two are addresses."""
    for _ in prange(n_threads):
        _call(worker, work)


@functools.lru_cache
def threads_address() -> int:
    """The address of compiled `_run_side_by_side`, which kernels are given to run on threads."""
    _load_tbb()
    dispatcher = numba.njit(parallel=True, nogil=True)(_run_side_by_side)
    attach_cache(dispatcher, "side by side")
    with deferred():
        dispatcher.compile(_SIDE_BY_SIDE)
    compiled = dispatcher.overloads[_SIDE_BY_SIDE]
    _KEPT.append(compiled)
    return int(compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name))


_KEPT: list[Any] = []  # compiled code that is known by its address alone


def _load_tbb() -> None:
    """Load the threads of the package tbb where it is installed: it puts its library where the
    loader does not look, so that numba would not find it."""
    if numba.config.THREADING_LAYER not in ("default", "safe", "threadsafe", "forksafe", "tbb"):
        return
    from importlib import metadata

    name = "tbb12.dll" if sys.platform == "win32" else "libtbb.so.12"
    try:
        files = metadata.files("tbb") or []
        paths = [str(f.locate()) for f in files if f.name == name]
        for path in paths:
            ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    except (metadata.PackageNotFoundError, OSError):
        return  # numba takes OpenMP, or its own threads


def make_entry(body: Any, options: dict[str, Any]) -> Any:
    """A compiled function (threads_address, n_threads, n, *args) that runs the compiled `body`
    (k, n, *args) for every k below n; it returns how many threads met an error."""

    @intrinsic
    def run(typingctx: Any, address: Any, n_threads: Any, n: Any, args: Any) -> Any:
        of_body = typingctx.resolve_function_type(
            types.Dispatcher(body), (types.int64, types.int64, *args), {}
        )

        def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            compiled = body.overloads[of_body.args]
            context.active_code_library.add_linking_library(compiled.library)
            address, n_threads, n, packed = values
            args = cgutils.unpack_tuple(builder, packed)
            work = _pack(builder, n, args)
            worker = _define_worker(context, builder, compiled.fndesc, of_body, work.type)
            _launch(context, builder, worker, work, address, n_threads)
            return builder.load(cgutils.gep_inbounds(builder, work, 0, _FAILED))

        return types.int64(address, n_threads, n, args), codegen

    def entry(address, n_threads, n, *args):  # type: ignore[no-untyped-def]
        return run(address, n_threads, n, args)

    return numba.njit(**options)(entry)


def _pack(builder: Any, n: Any, args: list[Any]) -> Any:
    """The work: the next chunk, how many there are, how many errors, and the arguments."""
    fields = [ir.Constant(_INT, 0), n, ir.Constant(_INT, 0), *args]
    work = cgutils.alloca_once(builder, ir.LiteralStructType([f.type for f in fields]))
    for k, value in enumerate(fields):
        builder.store(value, cgutils.gep_inbounds(builder, work, 0, k))
    return work


def _define_worker(
    context: Any, caller: Any, body: Any, signature: Any, kind: ir.PointerType
) -> ir.Function:
    """while (k = next++) < n: body(k, n, *args). It is never inlined, so that one thread and
    several run the same code."""
    name = caller.module.get_unique_name(f"{body.mangled_name}.claim")
    worker = ir.Function(caller.module, _WORKER, name)
    worker.linkage = "internal"
    worker.attributes.add("noinline")
    start, claim, chunk, end = (
        worker.append_basic_block(name) for name in ("start", "claim", "chunk", "end")
    )
    builder = ir.IRBuilder(start)
    work = builder.bitcast(worker.args[0], kind)

    def pointer(k: int) -> Any:
        return cgutils.gep_inbounds(builder, work, 0, k)

    one = ir.Constant(_INT, 1)
    n_args = len(kind.pointee.elements) - _ARGUMENTS
    args = [builder.load(pointer(_ARGUMENTS + j)) for j in range(n_args)]
    counter, failed, n = pointer(_NEXT), pointer(_FAILED), builder.load(pointer(_COUNT))
    builder.branch(claim)
    builder.position_at_end(claim)
    k = builder.atomic_rmw("add", counter, one, "monotonic")
    builder.cbranch(builder.icmp_signed("<", k, n), chunk, end)
    builder.position_at_end(chunk)
    status, _ = context.call_internal_no_propagate(builder, body, signature, [k, n, *args])
    with builder.if_then(status.is_error, likely=False):
        builder.atomic_rmw("add", failed, one, "monotonic")
    builder.branch(claim)
    builder.position_at_end(end)
    builder.ret_void()
    return worker


def _launch(
    context: Any, builder: Any, worker: Any, work: Any, address: Any, n_threads: Any
) -> None:
    """The worker on this thread alone, or on several."""
    alone = builder.icmp_signed("<=", n_threads, ir.Constant(_INT, 1))
    with builder.if_else(alone) as (then, otherwise):
        with then:
            builder.call(worker, [builder.bitcast(work, _POINTER)])
        with otherwise:
            kind = context.call_conv.get_function_type(types.none, _SIDE_BY_SIDE)
            places = [cgutils.alloca_once(builder, place.pointee) for place in kind.args[:2]]
            addresses = [builder.ptrtoint(pointer, _INT) for pointer in (worker, work)]
            function = builder.inttoptr(address, kind.as_pointer())
            builder.call(function, [*places, *addresses, n_threads])
