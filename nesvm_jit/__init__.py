"""Support vector machines with certified accuracy, in Numba-compiled Python.

Importing the package imports no numba: public names are loaded when first used.
"""

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0.dev0"

_HOME = {
    "FormatError": ".errors",
    "InputError": ".errors",
    "NesvmError": ".errors",
    "get_threads": ".jit",
    "kernels": ".kernels",
    "read_libsvm": ".files.libsvm",
    "Settings": ".settings",
    "Solution": ".binary",
    "set_threads": ".jit",
    "solve": ".binary",
    "write_libsvm": ".files.libsvm",
}

__all__ = [
    "FormatError",
    "InputError",
    "NesvmError",
    "Settings",
    "Solution",
    "__version__",
    "get_threads",
    "kernels",
    "read_libsvm",
    "set_threads",
    "solve",
    "write_libsvm",
]

if TYPE_CHECKING:
    from . import kernels
    from .errors import FormatError, InputError, NesvmError
    from .files.libsvm import read_libsvm, write_libsvm
    from .jit import get_threads, set_threads
    from .settings import Settings
    from .binary import Solution, solve


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(_HOME[name], __name__)
    value = module if name == "kernels" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__():
    return sorted(__all__)
