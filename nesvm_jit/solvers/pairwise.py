"""Kernel C-SVM by working sets: the dual on the samples that violate its optimality most is
solved by pairwise steps (Platt's SMO; second-order pairs of Fan, Chen and Lin 2005; large sets as
in ThunderSVM), then f = Kβ is brought up to date by the rows that moved."""

import contextlib
from dataclasses import dataclass

import numpy as np

from ..kernels.dual_newton import _newton_steps
from ..kernels.pairwise import _dual_steps
from ..problems.evaluation import Evaluation
from ..problems.kernel import KernelProblem
from .driver import Steps
from .run import Run

# Samples of a working set on more than MANY rows, and on fewer. On a6a with C = 1 / 100 / 1000, 512
# take 24 / 54 / 222 iterations, 1024 take 14 / 17 / 37; beyond that a step costs more than it
# saves, the block K of the set no longer being in near memory. The pairs of classes of usps, 1500
# rows each, take as many iterations with 512, and these are shorter.
LARGE_SET, SMALL_SET = 1024, 512
MANY = 4096
INNER = 0.2  # share of the violation of all rows, to which a working set is solved
WHOLE = 0.01  # the same where the set is all rows
STEPS = 20  # steps of pairs for each sample of the set, after which Newton steps are tried
RIDGE = 1e-12  # share of K's largest diagonal entry in the set, added to K for Newton steps
PATIENCE = 50  # iterations without progress before f is computed anew, and again before the end


def certify_in_pairs(run: Run, at: Evaluation) -> bool:
    """Every evaluation is certified. Where K is rounded, what that takes off the bound depends on
    the rows that have a loss at the point: no bound outlives its point."""
    if run.problem.rows.finer is not None:
        run.forget_bound(np.zeros(run.problem.n_rows))
    return True


@dataclass
class State:
    """What pairwise steps remember beside where the problem stands."""

    previous: np.ndarray  # the last working set
    best: np.ndarray  # the least −D, P and violation
    idle: int = 0  # iterations without a new one
    begun: bool = False
    settled: bool = False  # the iterations are over


def begin(problem: KernelProblem, alpha0: np.ndarray | None) -> State:
    """Where pairwise steps start: at α⁰, or where the problem stands."""
    if alpha0 is not None:
        problem.place(alpha0 * problem.y)
    return State(np.empty(0, dtype=np.int64), np.full(3, np.inf))


def pairwise(problem: KernelProblem, s: State, tol: float) -> Steps:
    """Maximise the dual until rounding leaves nothing to gain, or nothing to prove."""
    q = min(LARGE_SET if problem.n_rows > MANY else SMALL_SET, problem.n_rows)
    resumed = s.begun
    while True:
        at, dual = problem.current(), problem.dual_value(problem.beta, problem.f)
        if not resumed:
            if problem.drifted(at, at.objective - dual):
                problem.place(problem.beta)
                at, dual = problem.current(), problem.dual_value(problem.beta, problem.f)
            s.begun = True
            yield at
        resumed = False
        if s.idle > 2 * PATIENCE or problem.coarse(at, tol):
            return
        s.previous, moved, violation = improve(problem, s.previous, q)
        now = np.array([-dual, at.objective, violation])
        better = (now < s.best - 4.0 * np.finfo(float).eps * np.abs(now)).any()
        s.idle = 0 if better else s.idle + 1
        s.best = np.minimum(s.best, now)
        if not moved and s.idle > PATIENCE:
            return
        if not moved or s.idle == PATIENCE:
            problem.place(problem.beta)
            s.idle = PATIENCE + 1


def improve(problem: KernelProblem, previous: np.ndarray, q: int) -> tuple[np.ndarray, int, float]:
    """Solve the dual on a working set; returns the set, those inside their bounds last, how many
    of it moved, and the violation there was before."""
    e = problem.gradient()
    rise = np.where(problem.beta < problem.upper, e, -np.inf)
    fall = np.where(problem.beta > problem.lower, -e, -np.inf)
    both = float(rise.max()), float(fall.max())
    violation = sum(both) if problem.bias else max(both)
    if not violation > 0.0:
        return previous, 0, 0.0
    work = choose(rise, fall, previous, q)
    beta, inner = problem.beta[work], e[work]
    lower, upper = problem.lower[work], problem.upper[work]
    rows = problem.rows
    block, diagonal = rows.block(work, rows.dtype), rows.diagonal()[work]
    most, ridge = STEPS * len(work), RIDGE * float(diagonal.max())
    limits = (problem.bias, (INNER if q < len(e) else WHOLE) * violation, most)
    if _dual_steps(block, diagonal, lower, upper, *limits, beta, inner) == most:
        with contextlib.suppress(np.linalg.LinAlgError):
            _newton_steps(block, lower, upper, problem.bias, ridge, beta, inner)
    if problem.bias:
        _rebalance(problem, work, beta)
    moved = problem.move(work, beta)
    inside = (lower < beta) & (beta < upper)
    return work[np.argsort(inside, kind="stable")], moved, violation


def _rebalance(problem: KernelProblem, work: np.ndarray, beta: np.ndarray) -> None:
    """Take back what the rounding of many steps has left in Σβ, where there is most slack."""
    imbalance = problem.beta.sum() - problem.beta[work].sum() + beta.sum()
    slack = np.minimum(beta - problem.lower[work], problem.upper[work] - beta)
    k = int(slack.argmax())
    if slack[k] > abs(imbalance):
        beta[k] -= imbalance


def choose(rise: np.ndarray, fall: np.ndarray, previous: np.ndarray, q: int) -> np.ndarray:
    """q samples: the last half of the previous set, and those most violating on either side."""
    n = len(rise)
    if q == n:
        return np.arange(n)
    kept = previous[-(q // 2) :]
    free = np.ones(n, dtype=bool)
    free[kept] = False
    wanted = q - len(kept)
    chosen = [kept]
    for side, count in ((rise, wanted - wanted // 2), (fall, wanted // 2)):
        able = np.flatnonzero(free & (side > -np.inf))
        count = min(count, len(able))
        if count < len(able):
            able = able[np.argpartition(-side[able], count)[:count]]
        free[able] = False
        chosen.append(able)
    return np.concatenate(chosen)
