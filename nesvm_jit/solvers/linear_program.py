"""LP-SVM as the linear program it is, for where rounding keeps Newton's steps from the tolerance.

The dual, max Σα over 0 ≤ α ≤ c with |Σ α_i y_i x_ij| ≤ 1 and Σ α_i y_i = 0, goes to HiGHS (Huangfu
and Hall 2018), rows and columns of X scaled so that no entry is above 1; its multipliers are w and
b. What is found is a point and a dual point like any other: the certificate is that of all engines.
"""

import math
from functools import partial

import numpy as np

from ..clock import apart
from ..matrix.matrix import Csr
from ..matrix.rows import as_scipy
from ..problems.linear import LinearProblem
from .driver import Steps
from .run import Run

QUICK = 10_000  # rows times features, of a program that takes less than a fifth of a second
NUMERICAL_TROUBLE = 4  # the status of linprog where HiGHS gives up
MOST_CELLS = 1_000_000  # rows times features, beyond which the program takes too long: 3 s for 3e5


def suits(problem: LinearProblem) -> bool:
    """Whether a problem is such a program, and small enough."""
    cells = problem.n_rows * problem.n_features
    return problem.model.smoothed_penalty and problem.shard.data.resident and cells <= MOST_CELLS


def linear_program(problem: LinearProblem, run: Run) -> Steps:
    """The solution of the program, in one evaluation; none where HiGHS finds none."""
    rows, X = problem.shard.rows, problem.shard.whole
    used = np.flatnonzero(rows.c > 0.0)
    dense = as_scipy(X).toarray() if isinstance(X, Csr) else X
    found = _solve(
        rows.y[used, None] * dense[used].astype(np.float64),
        rows.y[used] if problem.bias else None,
        rows.c[used],
        run.remaining(),
    )
    if found is None:
        return
    alpha = np.zeros(problem.n_rows)
    alpha[used] = found[0]
    yield problem.judge(found[1], alpha, problem.dual_weights(alpha))


def _solve(
    Z: np.ndarray, y: np.ndarray | None, c: np.ndarray, seconds: float
) -> tuple[np.ndarray, np.ndarray] | None:
    """α and [w; b], or w without labels y, of the rows y_i x_i."""
    size = np.abs(Z)
    k = np.sqrt(size.max(axis=1, initial=0.0))
    k[k == 0.0] = 1.0
    columns = (size / k[:, None]).max(axis=0, initial=0.0)
    columns[columns == 0.0] = 1.0
    most, gain = 1.0 / columns, 1.0 / k  # of the scaled weights, and of α_i k_i
    top, unit = float(most.max(initial=0.0)) or 1.0, float(gain.max())
    M = (Z / k[:, None] / columns).T
    balance = {} if y is None else {"A_eq": (y * gain / unit)[None], "b_eq": [0.0]}
    from scipy.optimize import linprog

    limit = {"time_limit": seconds} if math.isfinite(seconds) else {}
    for presolve in (True, False):  # programs whose bounds differ by 1e14 may fail with it
        program = partial(
            linprog,
            -gain / unit,
            A_ub=np.vstack([M, -M]),
            b_ub=np.tile(most / top, 2),
            bounds=np.column_stack([np.zeros(len(c)), c * k / top]),
            method="highs",
            options={"presolve": presolve, **limit},
            **balance,
        )
        found = program() if M.size <= QUICK else apart(program)
        if found.status != NUMERICAL_TROUBLE:
            break
    if found.x is None or not np.isfinite(found.x).all():
        return None
    low, high = np.split(found.ineqlin.marginals, 2)
    w = (high - low) * unit / columns
    alpha = np.clip(top * found.x / k, 0.0, c)
    return alpha, w if y is None else np.append(w, -found.eqlin.marginals[0])
