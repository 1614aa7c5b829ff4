"""What numba is asked to do: the one module of decorators that imports it."""

import functools
from collections.abc import Callable
from typing import Any

import numba
from numba.extending import overload

from ..signals import deferred
from .cache import attach_cache
from .environment import require_threading_layer
from .flags import options_of
from .launch import make_entry
from .linked import LinkedCompiler

require_threading_layer()

Function = Callable[..., Any]


def tell(function: Function, chooser: Function, options: dict[str, Any]) -> None:
    """Let compiled code call a function: `chooser` gives its body by the types of its arguments."""

    @functools.wraps(function)
    def chosen(*types: Any) -> Function:
        return chooser(*types)

    options = {**options, "pipeline_class": LinkedCompiler}
    overload(function, jit_options=options, strict=False)(chosen)


def make_kernel(function: Function, exact: bool, name: str) -> Any:
    """What runs the chunks of a kernel, kept under its name."""
    options = options_of(exact)
    body = numba.njit(pipeline_class=LinkedCompiler, **options)(function)
    entry = make_entry(body, options)
    attach_cache(entry, f"{exact=}", name)
    return _whole(entry)


def make_loop(function: Function, exact: bool, name: str) -> Any:
    """A serial loop, kept under its name."""
    dispatcher = numba.njit(**options_of(exact))(function)
    attach_cache(dispatcher, f"{exact=}", name)
    return _whole(dispatcher)


def _whole(dispatcher: Any) -> Any:
    """The same, compiling to the end where a signal comes: LLVM calls Python, where an exception is
    lost but for its traceback on standard error."""
    if numba.config.DISABLE_JIT:
        return dispatcher
    compile_one = dispatcher.compile

    def compile_whole(signature: Any) -> Any:
        with deferred():
            return compile_one(signature)

    dispatcher.compile = compile_whole
    return dispatcher
