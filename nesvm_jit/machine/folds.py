"""Draw folds, and fit without the rows of a fold.

Rows held out have cost 0: they add nothing to the objective, the data need no copy, and their
margins in the fit are their decision values.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..binary.solution import Solution
from ..binary.solve import solve_checked
from ..binary.start import Start
from ..errors import InputError
from ..matrix.checks import as_vector
from ..settings import Settings
from .jobs import Posed


@dataclass(frozen=True)
class FoldFit:
    """A fit without the rows of a fold. If none of the other rows has a sign, `missing` is that
    sign, and there is no solution."""

    fold: int
    cost: int  # place of C in the grid
    solution: Solution | None
    missing: float = 0.0
    seconds: float = 0.0


def fit_folds(
    posed: Posed,
    costs: Mapping[int, np.ndarray],
    grid: Sequence[float],
    limit: Callable[[int, int], Settings],
    start: Start | None = None,
) -> Iterator[FoldFit]:
    """Yield the fits of every fold at every C of an ascending grid.

    The first fit of a fold starts at `start`, every other one where the fit at the C before ended.
    `costs` holds the cost of every row at C = 1 by fold, zero for the rows held out. `limit` is
    called when a fit begins, with the fold and the place in the grid, and returns its settings.
    """
    for fold, c in costs.items():
        before: tuple[Solution, float] | None = None
        missing = posed.missing(c)
        for i, C in enumerate(grid):
            if missing is not None:
                yield FoldFit(fold, i, None, missing)
                continue
            began = time.perf_counter()
            first = start if before is None else start_after(*before, C)
            rows = posed.kernel_rows
            solution = solve_checked(posed.X, posed.sign, C * c, limit(fold, i), first, rows)
            before = solution, C
            yield FoldFit(fold, i, solution, seconds=time.perf_counter() - began)


def start_after(s: Solution, C_before: float, C: float) -> Start:
    """Return the start of a fit at C: the end of one at a smaller C, with α multiplied by t.

    t is the ratio of the costs; in C-SVM it is the t that maximises
    D(tα) = tΣα − ½t²‖Σ α_i y_i x_i‖² if that is less. This is 1 if no α is at its bound, as at a
    large C: usps with γ = 0.016, C = 1000 then takes 2 rounds instead of 11.
    """
    t, total = C / C_before, float(s.alpha.sum())
    square = 2.0 * (total - s.dual_objective)
    if s.model == "csvm" and square > 0.0:
        t = min(t, max(1.0, total / square))
    return Start(s.w, s.b, alpha0=t * s.alpha)


def stratified_folds(y: Any, n_folds: int, seed: int = 0) -> np.ndarray:
    """Return the fold of each row, from 0 to n_folds − 1; the same seed gives the same folds.

    The shuffled rows are dealt out class by class, and each class begins at the fold after the
    last row of the class before. The sizes of any two folds differ by at most 1, and so do their
    numbers of rows of any class.
    """
    y = as_vector("y", y)
    for name, value, least, most in (
        ("n_folds", n_folds, 2, len(y)),
        ("seed", seed, 0, 2**63 - 1),
    ):
        whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        if not whole or not least <= value <= most:
            wanted = f"{name} must be a whole number from {least} to {most}"
            rows = " (the number of rows)" if name == "n_folds" else ""
            raise InputError(f"{wanted}{rows}, got {value!r}")
    shuffled = np.random.default_rng(seed).permutation(len(y))
    by_class = shuffled[np.argsort(y[shuffled], kind="stable")]
    folds = np.empty(len(y), dtype=np.int64)
    folds[by_class] = np.arange(len(y)) % n_folds
    return folds
