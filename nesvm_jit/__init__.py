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
    "Machine": ".machine.machine",
    "NESVC": ".estimator",
    "convert": ".files.ondisk.convert",
    "PathResult": ".selection.result",
    "cross_validate": ".machine.crossval",
    "distributed": ".distributed",
    "get_threads": ".jit",
    "kernels": ".kernels",
    "libsvm_blocks": ".files.libsvm.stream",
    "load_model": ".machine.machine",
    "open_matrix": ".files.ondisk.matrix",
    "path": ".selection.path",
    "read_libsvm": ".files.libsvm.reader",
    "Settings": ".settings",
    "Solution": ".binary.solution",
    "set_threads": ".jit",
    "solve": ".binary.solve",
    "train": ".machine.train",
    "write_libsvm": ".files.libsvm.writer",
}

__all__ = [
    "NESVC",
    "FormatError",
    "InputError",
    "Machine",
    "NesvmError",
    "PathResult",
    "Settings",
    "Solution",
    "__version__",
    "convert",
    "cross_validate",
    "distributed",
    "get_threads",
    "kernels",
    "libsvm_blocks",
    "load_model",
    "open_matrix",
    "path",
    "read_libsvm",
    "set_threads",
    "solve",
    "train",
    "write_libsvm",
]

if TYPE_CHECKING:
    from . import distributed, kernels
    from .binary.solution import Solution
    from .binary.solve import solve
    from .errors import FormatError, InputError, NesvmError
    from .estimator import NESVC
    from .files.libsvm.reader import read_libsvm
    from .files.libsvm.stream import libsvm_blocks
    from .files.libsvm.writer import write_libsvm
    from .files.ondisk.convert import convert
    from .files.ondisk.matrix import open_matrix
    from .jit import get_threads, set_threads
    from .machine.crossval import cross_validate
    from .machine.machine import Machine, load_model
    from .machine.train import train
    from .selection.path import path
    from .selection.result import PathResult
    from .settings import Settings


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(_HOME[name], __name__)
    value = module if name in ("distributed", "kernels") else getattr(module, name)
    globals()[name] = value
    return value


def __dir__():
    return sorted(__all__)
