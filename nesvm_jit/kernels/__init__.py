"""The low-level kernels, one by one in docs/kernels.md.

A name without underscore, in `public`, checks its arguments and allocates what it returns. Its
twin with an underscore, in the module of the kernel, trusts its arguments and writes into memory
that the caller made: the compiled loop itself, or a few lines that run it and add up its partial
sums.
"""

from .public import (
    Sweep,
    accumulate,
    accumulate_change,
    gram,
    hessian,
    hessian_diagonal,
    hessian_times,
    margins,
    project_hinge,
    project_l1,
    row_data,
    row_norms,
    slope,
    sweep,
)

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
    "row_data",
    "row_norms",
    "slope",
    "sweep",
]
