"""The low-level kernels, one by one in docs/kernels.md.

A name without underscore checks its arguments and allocates what it returns; its twin with an
underscore, in the module of the kernel, is the compiled loop that solvers call.
"""

from .gram import gram
from .hessian import hessian, hessian_diagonal, hessian_times
from .line_search import slope
from .projection import project_hinge, project_l1
from .sums import accumulate, accumulate_change, margins, row_norms
from .sweep import Sweep, sweep

__all__ = [
    "Sweep",
    "accumulate",
    "accumulate_change",
    "gram",
    "hessian",
    "hessian_diagonal",
    "hessian_times",
    "margins",
    "project_hinge",
    "project_l1",
    "row_norms",
    "slope",
    "sweep",
]
