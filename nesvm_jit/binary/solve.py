"""`nesvm_jit.solve`: one binary problem, checked at the edge, solved and certified."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..checkpoint.checkpoint import open_checkpoint
from ..checkpoint.fingerprint import data_fingerprint
from ..endings import Outcome, warn_uncertified
from ..errors import InputError
from ..files.ondisk.matrix import OnDisk
from ..jit import interpreted_first, one_blas_thread
from ..matrix.checks import as_matrix, as_vector
from ..matrix.matrix import Matrix
from ..models import MODELS
from ..problems.kernel_rows import KernelRows
from ..problems.linear import LinearProblem
from ..problems.shard import Shard
from ..problems.streamed import Streamed
from ..settings import Settings
from .costs import costs
from .kernel import solve_kernel
from .linear import solve_problem, solve_rows
from .small import solve_small_problems
from .small_data import Part
from .solution import Solution, with_history
from .start import Start, Unfinished


@interpreted_first
def solve(
    X: Any,
    y: Any,
    model: str = "csvm",
    kernel: str = "linear",
    C: float = 1.0,
    bias: bool = True,
    solver: str = "auto",
    tol: float = 1e-3,
    *,
    sample_weight: Any = None,
    class_weight: Mapping[float, float] | str | None = None,
    w0: Any = None,
    b0: float = 0.0,
    w_star: Any = None,
    b_star: float = 0.0,
    alpha0: Any = None,
    **settings: Any,
) -> Solution:
    """Minimise R(w) + Σ c_i loss(1 − y_i(x_i·w + b)) for labels y of −1 and +1, or its kernel form.

    c_i is C times the weight of the sample and of its class (a mapping from ±1, or "balanced").
    All other settings, with what they mean, are the fields of `nesvm_jit.Settings`.
    """
    checked = Settings(model, kernel, C, bias, solver, tol, **settings)
    given = any(v is not None for v in (w0, w_star, alpha0)) or b0 != 0.0 or b_star != 0.0
    if kernel != "linear" and given:
        raise InputError("w0, b0, w_star, b_star and alpha0 are for linear machines")
    X = as_matrix(X, borrow=True)
    n, p = X.shape
    if n == 0:
        raise InputError("X must have at least one row of each class")
    y = _labels(y, n)
    c = _costs(C, y, sample_weight, class_weight)
    start = Start(w0, b0, w_star, b_star, alpha0)

    def data() -> list:
        alpha = None if alpha0 is None else as_vector("alpha0", alpha0, n)
        return data_fingerprint(X, y, c, *start.points(p, bias), alpha)

    with open_checkpoint(checked, data) as checkpoint:
        slot = None if checkpoint is None else checkpoint.slot(0)
        found = with_history(solve_checked(X, y, c, checked, replace(start, slot=slot)))
    warn_uncertified([Outcome(found.status, found.gap)], checked.tol)
    return found


def solve_checked(
    X: Matrix | OnDisk,
    y: np.ndarray,
    c: np.ndarray,
    settings: Settings,
    start: Start | None = None,
    kernel_rows: KernelRows | None = None,
    before: Unfinished | None = None,
) -> Solution:
    """`solve` for data that have been checked, with the cost of every row. The rows of a kernel
    matrix may be there already; pairwise steps then start from a dual point. A compiled call may
    have left the problem unfinished."""
    start = start or Start()
    first = settings.solver == "auto" and before is None and kernel_rows is None
    if first and start.is_cold and not isinstance(X, OnDisk):
        for found in solve_small_problems(X, [Part(None, y, c)], settings) or []:
            if isinstance(found, Solution):
                return found
            before = found
    if before is not None:
        start = before.start
    if settings.approx is not None:
        raise InputError("approx is for `train`, which keeps the landmarks")
    with one_blas_thread():
        if isinstance(X, OnDisk):
            shard = Shard(Streamed(X), y, c, MODELS[settings.model](), settings.bias)
            return solve_problem(LinearProblem(shard), settings, start)
        if settings.kernel != "linear":
            alpha0 = None if kernel_rows is None else start.alpha0
            return solve_kernel(X, y, c, settings, kernel_rows, alpha0, start.slot, before)
        return solve_rows(X, y, c, settings, start, before=before)


# ---------------------------------------------------------------- the public edge


def _labels(y: Any, n: int) -> np.ndarray:
    y = as_vector("y", y, n)
    if not (np.abs(y) == 1.0).all():
        raise InputError("y must hold -1 and +1 only; `train` takes labels of any value")
    if n == 0 or (y == y[0]).all():
        raise InputError("y must hold both classes, -1 and +1")
    return y


def _costs(C: float, y: np.ndarray, sample_weight: Any, class_weight: Any) -> np.ndarray:
    """c_i = C · class weight · sample weight."""
    c = costs(C, y, np.array([-1.0, 1.0]), sample_weight, class_weight)
    if not all(((y == k) & (c != 0.0)).any() for k in (-1.0, 1.0)):
        raise InputError("each class must have a positive, finite weight")
    return c
