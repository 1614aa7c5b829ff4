"""A better dual point of a linear C-SVM in a limited time, by the proximal point method: α is drawn
ever less to where it was, and every such problem is solved by Newton steps in the weights
(Rockafellar 1976; for SVMs Li, Sun and Toh 2018).

The maximum of D(a) − Σ (a_i − α_i)²/(2σ_i) over the box is the least value of ½‖w‖² + Σ ψ_i(r_i),
where r_i = 1 − y_i(x_i·w + b) and ψ_i has the slope a_i = median{α_i + σ_i r_i, 0, c_i}. With a
free bias its slope in b is −Σ a_i y_i, so that the minimum is balanced.
"""

import time
from typing import NamedTuple

import numpy as np

from ..jit import one_blas_thread
from ..kernels import accumulate, hessian, hessian_diagonal, hessian_times, margins
from ..matrix.matrix import Matrix
from ..numerics.conjugate_gradients import begin, conjugate_gradients

FIRST, GROWTH, LARGEST = 10.0, 5.0, 1e8  # σ_i/c_i at first, its factor, and its end
DENSE = 2000  # features up to which the Hessian is factorised, beyond by conjugate gradients
ENOUGH = 1e-9  # share of P that the gap between w and α may be at the end
INNER = 0.01  # share of the gap, to which a problem is solved
STEPS = 60  # Newton steps for a problem, at most
TRIALS = 40  # points along a direction, at most
FARTHER = 10.0  # times as far along a direction, where no row bends the function
FLAT = 0.1  # share of the first slope along a direction that may be left
SOLVED, MOST_PRODUCTS = 0.1, 200  # of the residual of a Newton step, by conjugate gradients
BALANCED = 1e-9  # share of Σα that Σ α_i y_i may be where a problem is solved
NEARLY = 1e-3  # the same of points that are worth keeping
RIDGE = 1e-10  # share of the Hessian's largest diagonal entry, added to that of the bias


class Trial(NamedTuple):
    """A point [w; b], its margins, α there, and the gradient."""

    w: np.ndarray
    b: float
    f: np.ndarray
    alpha: np.ndarray
    slope: np.ndarray


class Proximal:
    """The problem drawn to α by 1/σ."""

    def __init__(self, X: Matrix, y: np.ndarray, c: np.ndarray, bias: bool, alpha: np.ndarray):
        self.X, self.y, self.c, self.bias = X, y, c, bias
        self.centre, self.sigma = np.clip(alpha, 0.0, c), FIRST * c
        self.passes = 0.0

    def at(self, w: np.ndarray, b: float, f: np.ndarray) -> Trial:
        """What is known at a point of these margins."""
        alpha = self.alpha(1.0 - self.y * f)
        signed = alpha * self.y
        slope = np.append(w - accumulate(self.X, signed), -signed.sum() * self.bias)
        self.passes += 1.0
        return Trial(w, b, f, alpha, slope)

    def alpha(self, r: np.ndarray) -> np.ndarray:
        """median{α + σr, 0, c}."""
        return np.clip(self.centre + self.sigma * r, 0.0, self.c)

    def gap(self, at: Trial) -> tuple[float, float]:
        """P there, and how far D is below it; for a balanced α."""
        v = at.w - at.slope[:-1]
        objective = 0.5 * float(at.w @ at.w) + float(self.c @ np.maximum(1.0 - self.y * at.f, 0.0))
        return objective, objective - float(at.alpha.sum()) + 0.5 * float(v @ v)

    def imbalance(self, at: Trial) -> float:
        """|Σ α_i y_i|, which is taken off D about 1 + |b| times when α is made feasible."""
        return abs(float(at.slope[-1]))

    def balanced(self, at: Trial) -> bool:
        """Whether α is feasible but for rounding."""
        return self.imbalance(at) <= BALANCED * float(at.alpha.sum())

    def step(self, at: Trial) -> Trial:
        """A Newton step, as far as the function falls."""
        bent = np.where((at.alpha > 0.0) & (at.alpha < self.c), self.sigma, 0.0)
        d = self._direction(at, bent)
        m = margins(self.X, d[:-1], float(d[-1]))
        self.passes += 1.0
        t = self._along(at, d, m)
        return self.at(at.w + t * d[:-1], at.b + t * float(d[-1]), at.f + t * m)

    def _direction(self, at: Trial, bent: np.ndarray) -> np.ndarray:
        p, total = self.X.shape[1], float(bent.sum())
        border = accumulate(self.X, bent) if self.bias else np.zeros(p)
        # without a bent row nothing is known of how far b is from its best: a margin, it is tried
        corner = total if self.bias and total > 0.0 else abs(float(at.slope[-1])) or 1.0
        self.passes += 1.0 + self.bias
        if p <= DENSE:
            H = np.empty((p + 1, p + 1))
            H[:p, :p] = hessian(self.X, bent)
            H[range(p), range(p)] += 1.0
            H[:p, p] = H[p, :p] = border
            H[p, p] = corner + RIDGE * max(corner, float(H.diagonal()[:p].max(initial=1.0)))
            with one_blas_thread():
                try:
                    return -np.linalg.solve(H, at.slope)
                except np.linalg.LinAlgError:  # singular by rounding: as far as its diagonal says
                    return -at.slope / H.diagonal()

        def times(V: np.ndarray) -> np.ndarray:
            v, last = V[0, :-1], V[0, -1]
            first = v + hessian_times(self.X, bent, v) + last * border
            return np.append(first, border @ v + corner * last)[None]

        diagonal = np.append(1.0 + hessian_diagonal(self.X, bent), corner)
        enough, found = None, np.zeros((1, p + 1))

        def precondition(R: np.ndarray) -> np.ndarray:
            return R / diagonal

        start = begin(-at.slope[None], precondition)
        steps = conjugate_gradients(times, precondition, start)
        for k, iterate in enumerate(steps):
            self.passes += 1.0
            found, rest = iterate.S, float(iterate.rest[0])
            enough = SOLVED**2 * rest if enough is None else enough
            if rest <= enough or k >= MOST_PRODUCTS:
                break
        return found[0]

    def _along(self, at: Trial, d: np.ndarray, m: np.ndarray) -> float:
        """Where the slope along d is zero, or nearly so."""
        linear, square = float(at.w @ d[:-1]), float(d[:-1] @ d[:-1])
        pull, low, high, t = self.y * m, 0.0, np.inf, 1.0
        r = 1.0 - self.y * at.f
        first = abs(linear - float(self.alpha(r) @ pull))
        for _ in range(TRIALS):
            a = self.alpha(r - t * pull)
            slope = linear + t * square - float(a @ pull)
            if abs(slope) <= FLAT * first:
                return t
            low, high = (t, high) if slope < 0.0 else (low, t)
            inside = (a > 0.0) & (a < self.c)
            curvature = square + float(self.sigma[inside] @ pull[inside] ** 2)
            step = t - slope / curvature if curvature > 0.0 else np.inf
            most = high if high < np.inf else FARTHER * t
            middle = 0.5 * (low + high) if high < np.inf else most
            t = step if low < step < most else middle
        return low if low > 0.0 else t  # up to there the function falls


def climb(
    X: Matrix,
    y: np.ndarray,
    c: np.ndarray,
    bias: bool,
    alpha: np.ndarray,
    w: np.ndarray,
    b: float,
    seconds: float,
) -> tuple[np.ndarray | None, float]:
    """The best α found in the time there is after the first problem, begun at α and a model's w and
    b, None if none was nearly balanced; and the passes it took."""
    problem = Proximal(X, y, c, bias, alpha)
    at = problem.at(w, b if bias else 0.0, margins(X, w, b if bias else 0.0))
    deadline, least, best = np.inf, np.inf, None
    while True:
        for _ in range(STEPS):
            objective, gap = problem.gap(at)
            left = max(INNER * gap, 0.1 * ENOUGH * objective)
            done = 0.5 * float(at.slope[:-1] @ at.slope[:-1]) <= left and problem.balanced(at)
            if done or time.perf_counter() > deadline:
                break
            at = problem.step(at)
        objective, gap = problem.gap(at)
        slip = problem.imbalance(at)
        if slip <= NEARLY * float(at.alpha.sum()) and abs(gap) + slip * (1.0 + abs(at.b)) < least:
            least, best = abs(gap) + slip * (1.0 + abs(at.b)), at.alpha
        deadline = min(deadline, time.perf_counter() + seconds)
        ratio = float((problem.sigma / np.where(c > 0.0, c, 1.0)).max())
        if gap <= ENOUGH * objective or time.perf_counter() > deadline or ratio >= LARGEST:
            return best, problem.passes
        problem.centre, problem.sigma = at.alpha, GROWTH * problem.sigma
        at = problem.at(at.w, at.b, at.f)
