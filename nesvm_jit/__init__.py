"""Support vector machines with certified accuracy, in Numba-compiled Python.

Importing the package does not import numba: public names are loaded at their first use.
"""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0.dev0"

# The public names, and the modules from which they are loaded.
_HOME = {
    "FormatError": ".errors",
    "InputError": ".errors",
    "NesvmError": ".errors",
    "NotCertifiedWarning": ".errors",
    "Machine": ".machine.machine",
    "NESVC": ".estimator",
    "Certificate": ".certifying.result",
    "certify": ".certifying.checker",
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

__all__ = ["__version__", *_HOME]

if TYPE_CHECKING:  # the names of the table, for type checkers and editors
    from . import distributed as distributed
    from . import kernels as kernels
    from .binary.solution import Solution as Solution
    from .binary.solve import solve as solve
    from .certifying.checker import certify as certify
    from .certifying.result import Certificate as Certificate
    from .errors import FormatError as FormatError
    from .errors import InputError as InputError
    from .errors import NesvmError as NesvmError
    from .errors import NotCertifiedWarning as NotCertifiedWarning
    from .estimator import NESVC as NESVC
    from .files.libsvm.reader import read_libsvm as read_libsvm
    from .files.libsvm.stream import libsvm_blocks as libsvm_blocks
    from .files.libsvm.writer import write_libsvm as write_libsvm
    from .files.ondisk.convert import convert as convert
    from .files.ondisk.matrix import open_matrix as open_matrix
    from .jit import get_threads as get_threads
    from .jit import set_threads as set_threads
    from .machine.crossval import cross_validate as cross_validate
    from .machine.machine import Machine as Machine
    from .machine.machine import load_model as load_model
    from .machine.train import train as train
    from .selection.path import path as path
    from .selection.result import PathResult as PathResult
    from .settings import Settings as Settings


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(_HOME[name], __name__)
    value = module if name in ("distributed", "kernels") else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
