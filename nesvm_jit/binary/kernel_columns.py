"""Kernel machines whose penalty is R(β) and not ½‖w‖²: linear machines whose features are the
columns of the kernel matrix."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..checkpoint.checkpoint import Slot
from ..clock import Clock, Halt, watching
from ..errors import InputError
from ..kernels import gram
from ..matrix.checks import as_matrix
from ..matrix.matrix import Matrix
from ..matrix.rows import narrowed
from ..problems.kernel_errors import entries_of
from ..problems.kernel_rows import KernelRows
from ..problems.rounding import Columns, EntryError
from ..settings import Settings
from .finish import untrained
from .kernel_matrix import budget_bytes, spec_of, symmetric_matrix
from .linear import solve_rows
from .solution import Solution
from .start import Start

# Columns that are smaller than this beside the bias, whose column is one, are made about one by a
# power of two: LP-SVM is stuck where K is of size 1e-6.
SMALLEST = 2.0**-8
MOST_HALVINGS = 60
SCALED = ("smoothed", "objective", "dual")  # what a run tells that is as large as P


def solve_on_columns(
    X: Matrix,
    y: np.ndarray,
    c: np.ndarray,
    settings: Settings,
    rows: KernelRows | None,
    slot: Slot | None,
) -> Solution:
    """R(β) as penalty: the linear machine whose features are the columns of K."""
    entries = None  # of a matrix that is the problem itself
    if rows is not None:
        K, entries = rows.store, rows.entries
    elif settings.kernel == "precomputed":
        K = symmetric_matrix(X)
    else:
        n = X.shape[0]
        budget = budget_bytes(settings.cache_mb)
        if 8.0 * n * n > budget:
            raise InputError(
                f"{settings.model} with a kernel needs {8 * n * n / 2**20:.3g} MB "
                f"for its {n} rows, got a budget of {budget / 2**20:.3g} MB"
            )
        spec, narrow = spec_of(X, settings), narrowed(X)[0][0]
        kernel = (settings.kernel, spec.gamma, settings.coef0, settings.degree)
        end = Clock(settings.time_limit)
        try:
            with watching(lambda: np.inf if end.limit is None else end.limit - end.now()):
                K = gram(narrow, None, *kernel)
        except Halt as halt:
            return untrained(c, settings, halt.status)
        entries = entries_of(narrow, spec, np.float64)
    used = np.flatnonzero(c)  # a row without weight is no feature either
    K = K if len(used) == len(c) else np.ascontiguousarray(K[:, used])
    settings = settings.derive(kernel="linear")
    k = _halvings(K, c) if settings.bias else 0
    if k > 0:
        K, c = K * 2.0**k, c * 2.0**-k
        entries = None if entries is None else _scaled_entries(entries, k)
        settings = settings.derive(callback=_told_scaled(settings.callback, 2.0**k))
    columns = None
    if entries is not None and entries.epsilon > 0.0:
        columns = Columns(entries, entries.roots[used])
    found = _scaled(solve_rows(as_matrix(K), y, c, settings, Start(slot=slot), columns), 2.0**k)
    beta = np.zeros(len(c))
    beta[used] = found.w
    return replace(found, w=None, beta=beta)


def _halvings(K: np.ndarray, c: np.ndarray) -> int:
    """The even k for which 2ᵏK is about one, or zero where K is no smaller than it may be, or where
    2⁻ᵏc would lose a digit. With β/2ᵏ this is the same problem, its P and α divided by 2ᵏ."""
    largest = float(np.abs(K).max(initial=0.0))
    if not 0.0 < largest < SMALLEST:
        return 0
    k = min(-int(np.frexp(largest)[1]), MOST_HALVINGS) // 2 * 2
    return k if (c * 2.0**-k * 2.0**k == c).all() else 0


def _scaled_entries(entries: EntryError, k: int) -> EntryError:
    return entries._replace(roots=entries.roots * 2.0 ** (k // 2), shift=entries.shift * 2.0**k)


def _told_scaled(callback: Callable | None, scale: float) -> Callable | None:
    """A callback that is told of the problem as it was given."""
    if callback is None:
        return None

    def told(row: dict[str, Any]) -> object:
        return callback(row | {name: row[name] * scale for name in SCALED})

    return told


def _scaled(found: Solution, scale: float) -> Solution:
    """The solution of the problem as it was given; powers of two change no digit of it."""
    if scale == 1.0:
        return found
    history = {**found.history, **{name: found.history[name] * scale for name in SCALED}}
    return replace(
        found,
        w=None if found.w is None else found.w * scale,
        objective=found.objective * scale,
        dual_objective=found.dual_objective * scale,
        alpha=found.alpha * scale,
        history=history,
    )
