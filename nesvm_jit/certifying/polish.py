"""A better dual point of a kernel C-SVM in a limited time: its dual on working sets of rows, whose
pairs are moved by the compiled loops. A point that is not the best possible is still a proof."""

import contextlib
import time
from typing import Protocol

import numpy as np

from ..kernels.dual_newton import _newton_steps
from ..kernels.pairwise import _dual_steps
from ..problems.kernel import KernelProblem

SET = 1024  # rows of a working set, as in the solver's, where it was measured
INNER = 0.1  # share of the violation of all rows, to which a working set is solved
STEPS = 20  # steps of pairs for each row of the set, after which Newton steps are tried
RIDGE = 1e-12  # share of K's largest diagonal entry in the set, added to K for Newton steps
IDLE = 5  # rounds in which D grows by less than SMALL of itself, after which it is left
SMALL = 1e-13


class Dual(Protocol):
    """A dual point β = α∘y in its box, and e = y − Kβ, its gradient."""

    y: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    bias: bool

    @property
    def beta(self) -> np.ndarray:
        """Where it stands."""

    def gradient(self) -> np.ndarray:
        """y − Kβ."""

    def block(self, work: np.ndarray) -> np.ndarray:
        """K between these rows."""

    def move(self, work: np.ndarray, new: np.ndarray) -> None:
        """Set β there."""


class KernelDual:
    """Of a kernel machine."""

    def __init__(self, problem: KernelProblem, alpha: np.ndarray):
        self._problem, self.y, self.bias = problem, problem.y, problem.bias
        self.lower, self.upper = problem.lower, problem.upper
        problem.place(alpha * problem.y)

    @property
    def beta(self) -> np.ndarray:
        return self._problem.beta

    def gradient(self) -> np.ndarray:
        return self._problem.gradient()

    def block(self, work: np.ndarray) -> np.ndarray:
        return self._problem.rows.block(work)

    def move(self, work: np.ndarray, new: np.ndarray) -> None:
        self._problem.move(work, new)


def polish(dual: Dual, seconds: float) -> np.ndarray:
    """α after as many rounds as are of use, or as there is time for after the first, which may
    have code to compile."""
    best, idle, kept = -np.inf, 0, np.empty(0, dtype=np.int64)
    deadline = np.inf
    while time.perf_counter() < deadline and idle < IDLE:
        e = dual.gradient()
        value = 0.5 * float(dual.beta @ (dual.y + e))
        idle = 0 if value > best + SMALL * abs(best) else idle + 1
        best = max(best, value)
        rise = np.where(dual.beta < dual.upper, e, -np.inf)
        fall = np.where(dual.beta > dual.lower, -e, -np.inf)
        both = float(rise.max()), float(fall.max())
        violation = sum(both) if dual.bias else max(both)
        if not violation > 0.0:
            break
        kept = _improve(dual, _working_set(rise, fall, kept), violation)
        deadline = min(deadline, time.perf_counter() + seconds)
    return dual.beta * dual.y


def _improve(dual: Dual, work: np.ndarray, violation: float) -> np.ndarray:
    """Solve the dual on a working set; returns those inside their bounds."""
    K, beta, e = dual.block(work), dual.beta[work], dual.gradient()[work]
    lower, upper, diagonal = dual.lower[work], dual.upper[work], np.diagonal(K).copy()
    before = beta.sum()
    most = STEPS * len(work)
    if _dual_steps(K, diagonal, lower, upper, dual.bias, INNER * violation, most, beta, e) == most:
        with contextlib.suppress(np.linalg.LinAlgError):
            ridge = RIDGE * float(diagonal.max())
            _newton_steps(K, lower, upper, dual.bias, ridge, beta, e)
    if dual.bias:  # what the rounding of many steps has left in Σβ
        slack = np.minimum(beta - lower, upper - beta)
        k, excess = int(slack.argmax()), float(beta.sum() - before)
        beta[k] -= excess if slack[k] > abs(excess) else 0.0
    dual.move(work, beta)
    return work[(lower < beta) & (beta < upper)]


def _working_set(rise: np.ndarray, fall: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Rows inside their bounds of the last set, half a set at most, and those that violate the
    conditions of the optimum most, on either side."""
    if len(rise) <= SET:
        return np.arange(len(rise))
    kept = kept[-(SET // 2) :]
    free = np.ones(len(rise), dtype=bool)
    free[kept] = False
    chosen, each = [kept], (SET - len(kept)) // 2
    for side in (rise, fall):
        able = np.flatnonzero(free & (side > -np.inf))
        if len(able) > each:
            able = able[np.argpartition(-side[able], each)[:each]]
        free[able] = False
        chosen.append(able)
    return np.concatenate(chosen)
