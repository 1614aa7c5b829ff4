"""Functions that are compiled into others: never optimised nor called by themselves.

Numba makes machine code of every function, with wrappers for Python and C, and optimises it again
in each function that calls it. Here what is called by kernels alone is left as it was lowered, to
be inlined and optimised once, where the kernel is finished.
"""

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler


class _Linked(JITCodeLibrary):  # type: ignore[misc]
    """Code to be linked into other code."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> Any:
        """Where a caller of finished code would be told its environment: nobody calls this."""
        return self

    def set_env(self, env_name: str, env: Any) -> None:
        """Nothing to set: there is no machine code."""


class LinkedCompiler(Compiler):  # type: ignore[misc]
    """The compiler of such functions."""

    def __init__(
        self, typing: Any, target: Any, library: Any, args: Any, result: Any, flags: Any, names: Any
    ):
        flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        library = _Linked(target.codegen(), "linked")
        super().__init__(typing, target, library, args, result, flags, names)
