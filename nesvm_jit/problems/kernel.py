"""A kernel machine on data: min ½βᵀKβ + Σ c_i loss(1 − y_i(f_i + b)), f = Kβ.

In β = α∘y the dual is max yᵀβ − ½βᵀKβ over 0 ≤ β_i y_i ≤ c_i (C-SVM), less Σ β_i²/(4c_i) and
without the box (LS-SVM), with Σβ = 0 where there is a bias: one β is a primal and a dual point.
"""

from typing import Any

import numpy as np

from ..kernels.loss import HINGE, SQUARE, RowData, true_loss
from ..models.base import UNSMOOTHED
from .certificate import DualPoint
from .evaluation import NO_GRADIENT, NO_SUMS, Evaluation
from .kernel_rows import KernelRows
from .lift import least_multiple, loss_slope, margin_rounding
from .settling_kernel import SettledKernel, Sums, margin_errors, settle_kernel, settle_known

DRIFT = 1e-3  # of the gap is what rounding in f may come to
GROWN = 10.0  # times what a fresh f has
SLACK = 10.0  # times the rounding in f: rows nearer to a loss may have one


class KernelProblem:
    """The problem and where it stands: β and f = Kβ. A point is v = [β; b]."""

    def __init__(self, rows: KernelRows, y: np.ndarray, c: np.ndarray, bias: bool, loss=HINGE):
        n = rows.n
        self.rows, self.y, self.c, self.bias, self.loss = rows, y, c, bias, loss
        self.n_rows, self.n_variables = n, n + 1
        self.lower, self.upper = np.where(y > 0, 0.0, -c), np.where(y > 0, c, 0.0)
        self.beta, self.f = np.zeros(n), np.zeros(n)
        # K_ij ≤ √K_ii √K_jj: rounding in f_j is about ε ‖β∘√K_ii‖ √K_jj, in P as much as the rows
        # with a loss cost; it is taken off every bound, so that K rounded to float32 certifies the
        # exact problem
        self._root = np.sqrt(np.abs(rows.diagonal()))
        with np.errstate(over="ignore"):
            self._most_felt = float(np.linalg.norm(c * self._root))  # where every row has a loss
        self._trail, self._terms = 0.0, 0  # Σ|β∘√K_ii| of all that was added up, in how many terms
        self._fresh = self._drift = 0.0  # ε ‖β∘√K_ii‖ of all that was added up, at first and now

    def on_finer_rows(self) -> "KernelProblem":
        """The same problem on rows of K with less rounding, at zero."""
        return KernelProblem(self.rows.fine(), self.y, self.c, self.bias, self.loss)

    def state(self) -> dict[str, Any]:
        """Where it stands, and what rounding may have done to f since f was computed."""
        return {
            "beta": self.beta.copy(),
            "f": self.f.copy(),
            "rounding": [self._trail, self._fresh, self._drift],
            "terms": self._terms,
            "rows": self.rows.state(),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Stand where a state was saved."""
        self.beta[:], self.f[:] = saved["beta"], saved["f"]
        self._trail, self._fresh, self._drift = map(float, saved["rounding"])
        self._terms = int(saved["terms"])
        self.rows.restore(saved["rows"])

    @property
    def passes(self) -> float:
        """How often all of K has been computed."""
        return self.rows.computed / max(1, self.n_rows)

    def split(self, v: np.ndarray) -> tuple[np.ndarray, float]:
        """β and b of a point."""
        return v[:-1], float(v[-1])

    # ------------------------------------------------------------ moving

    def place(self, beta: np.ndarray, f: np.ndarray | None = None) -> None:
        """Stand at β, made feasible, with f = Kβ computed from its rows unless it is known."""
        self.stand(self.feasible(beta), f)

    def stand(self, beta: np.ndarray, f: np.ndarray | None = None) -> None:
        """The same for any β."""
        self.beta[:] = beta
        self.f[:] = self.rows.times(self.beta)[0] if f is None else f
        self._fresh = self._drift = self._rounding(self.beta)
        self._trail = float(np.abs(self.beta) @ self._root) if f is None else np.inf
        self._terms = self.n_rows

    def move(self, indices: np.ndarray, new: np.ndarray) -> int:
        """Set β there and bring f up to date; returns how many entries changed."""
        change = new - self.beta[indices]
        moved = np.flatnonzero(change)
        self.beta[indices] = new
        self.rows.add(indices[moved], change[moved], self.f)
        self._drift = float(np.hypot(self._drift, self._rounding(change, indices)))
        self._trail += float(np.abs(change) @ self._root[indices])
        self._terms += len(moved)
        return len(moved)

    def _rounding(self, beta: np.ndarray, indices: np.ndarray | slice = slice(None)) -> float:
        return float(self.rows.epsilon * np.linalg.norm(beta * self._root[indices]))

    def coarse(self, at: Evaluation, tol: float) -> bool:
        """Whether the rounding of K takes so much of this gap that it is hard to reach."""
        raw = at.objective - self.dual_value(self.beta, self.f)
        near, rounding = raw <= 2.0 * tol * at.objective, self._drift * self._uncertain(at.felt)
        return self.rows.finer is not None and near and rounding > 0.5 * tol * at.objective

    def _uncertain(self, felt: float) -> float:
        """What P, and D with ½‖β∘√K_ii‖, feel of rounding in f."""
        return felt + 0.5 * float(np.linalg.norm(self.beta * self._root))

    def drifted(self, at: Evaluation, gap: float) -> bool:
        """Whether rounding in f, which was less once, may be felt in a gap P − D of this size."""
        felt = self._drift * self._uncertain(at.felt)
        return felt > DRIFT * gap and self._drift > GROWN * self._fresh

    def feasible(self, beta: np.ndarray) -> np.ndarray:
        """β inside its box and with Σβ = 0, as many entries as can be left as they are."""
        beta = np.where(self.c > 0.0, beta, 0.0)
        if self.loss == SQUARE:
            used = self.c > 0.0
            beta[used] -= beta[used].mean() if self.bias else 0.0
            return beta
        beta = np.clip(beta, self.lower, self.upper)
        for _ in range(2 * self.bias):  # the second time for what rounding left
            excess = float(beta.sum())
            heavy = np.flatnonzero(beta * excess > 0.0)
            at_bound = np.abs(beta[heavy]) == self.c[heavy]
            heavy = heavy[np.argsort(at_bound, kind="stable")]  # those inside give first
            has = np.abs(beta[heavy])
            gives = np.clip(abs(excess) - (np.cumsum(has) - has), 0.0, has)
            beta[heavy] -= np.copysign(gives, excess)
        return beta

    # ------------------------------------------------------------ values

    def gradient(self) -> np.ndarray:
        """e = y − f, of the C-SVM's dual by β."""
        return self.y - self.f

    def at(self, v: np.ndarray) -> Evaluation:
        """P at any [β; b]; f is computed anew unless β is where the problem stands."""
        beta, b = self.split(v)
        return self._evaluation(v.copy(), self._f_of(beta), b)

    def _f_of(self, beta: np.ndarray) -> np.ndarray:
        return self.f if np.array_equal(beta, self.beta) else self.rows.times(beta)[0]

    def current(self) -> Evaluation:
        """The current β with the b that is best for it, and P there; β is also its dual point, its
        value less what rounding in f may feign."""
        b = self.best_bias() if self.bias else 0.0
        at = self._evaluation(np.append(self.beta, b), self.f, b)
        value = self.dual_value(self.beta, self.f) - self._drift * self._uncertain(at.felt)
        known = Sums(self.f.copy(), self._trail, self._terms)
        return at._replace(dual=DualPoint(value, self.beta * self.y), known=known)

    def bound(self, at: Evaluation) -> DualPoint:
        """The dual point of an evaluation of where the problem stood."""
        assert at.dual is not None
        return at.dual

    def _evaluation(self, v: np.ndarray, f: np.ndarray, b: float) -> Evaluation:
        r = 1.0 - self.y * (f + b)
        slope = (r > -SLACK * self._drift * self._root) if self.loss == HINGE else 2.0 * r
        felt = float(np.linalg.norm(self.c * self._root * slope))
        value = 0.5 * float(v[:-1] @ f) + float(self.c @ true_loss(r, self.loss))
        return Evaluation(v, UNSMOOTHED, value, NO_GRADIENT, value, NO_SUMS, felt=felt)

    def lift(self, v: np.ndarray, f: np.ndarray, share: float = 1.0) -> np.ndarray:
        """The multiple of v that has the least P when it is settled, given f = Kβ as settled, where
        that many times of what rounding may take from margins is feared: margins are computed anew
        for the multiple, with roundings of their own."""
        beta, b = self.split(v)
        rows, margins = RowData(self.y, self.c, self._root), f + b
        if self.loss == HINGE:
            margins -= share * self.y * margin_errors(self.rows, beta, margins)
        square = float(beta @ f)

        def slope(t: float) -> float:
            return t * square + loss_slope(rows, margins, t, margin_rounding(0, 0.0), self.loss)

        return least_multiple(slope) * v

    def dual_value(self, beta: np.ndarray, f: np.ndarray) -> float:
        """D at β, given f = Kβ."""
        value = float(beta @ (self.y - 0.5 * f))
        if self.loss == SQUARE:
            used = self.c > 0.0
            value -= float((beta[used] ** 2 / (4.0 * self.c[used])).sum())
        return value

    def scaled(self, beta: np.ndarray, f: np.ndarray) -> DualPoint:
        """The best multiple of a feasible β, given f = Kβ."""
        square, gain = float(beta @ f), float(beta @ self.y)
        used = self.c > 0.0
        if self.loss == SQUARE:
            square += float((beta[used] ** 2 / (2.0 * self.c[used])).sum())
        t = max(gain / square, 0.0) if square > 0.0 else 0.0
        if self.loss == HINGE:
            share = float((np.abs(beta[used]) / self.c[used]).max(initial=0.0))
            t = min(t, 1.0 / share) if share > 0.0 else 0.0
        rounding = t * max(self._drift, self._rounding(beta)) * self._uncertain(self._most_felt)
        alpha = t * beta * self.y
        if self.loss == HINGE:
            alpha = np.minimum(alpha, self.c)
        return DualPoint(t * gain - 0.5 * t * t * square - rounding, alpha)

    def value_of(self, alpha: np.ndarray, at: Evaluation) -> DualPoint:
        """A feasible α and its value beside P of this evaluation, f computed anew unless α is where
        the problem stands."""
        beta = alpha * self.y
        value = self.dual_value(beta, self._f_of(beta))
        return DualPoint(value - self._rounding(beta) * self._uncertain(at.felt), alpha)

    def settle_known(self, at: Evaluation) -> SettledKernel:
        """P and D at an evaluation of where the problem stood, true in exact arithmetic, from the
        sums that are known there: no row of K is computed."""
        beta, b = self.split(at.point)
        data = RowData(self.y, self.c, self.c)
        return settle_known(self.rows, data, self.loss, self.bias, beta, b, at.known)

    def settle(self, v: np.ndarray, alpha: np.ndarray) -> SettledKernel:
        """P at v from above and D near α from below, true in exact arithmetic."""
        beta, b = self.split(v)
        data, stands = RowData(self.y, self.c, self.c), np.array_equal(beta, self.beta)
        known = Sums(self.f, self._trail, self._terms) if stands else None
        return settle_kernel(self.rows, data, self.loss, self.bias, beta, b, alpha, known)

    def best_bias(self) -> float:
        """The b of least loss at f.

        Hinge: row i bends at b = e_i, where the slope grows by c_i; from −Σ_{y=+1} c_i on the left
        it must reach zero, so b is a weighted quantile of e. While Σβ = 0 it lies between the
        least e that may fall and the largest that may rise, and only those between are sorted.
        """
        e = self.gradient()
        if self.loss == SQUARE:
            return float(self.c @ e / self.c.sum())
        fall = e[self.beta > self.lower].min(initial=np.inf)
        rise = e[self.beta < self.upper].max(initial=-np.inf)
        low, high = min(fall, rise), max(fall, rise)
        between = np.flatnonzero((e >= low) & (e <= high) & (self.c > 0.0))
        if not len(between):
            return 0.0
        between = between[np.argsort(e[between])]  # a third of the time of a stable sort
        slope = float(self.c[e < low].sum() - self.c[self.y > 0].sum())
        slopes = slope + np.cumsum(self.c[between])
        flat = 1e-12 * float(self.c.sum())
        k = min(int(np.searchsorted(slopes, -flat)), len(between) - 1)
        last = min(k + int(abs(slopes[k]) <= flat), len(between) - 1)
        return float(0.5 * (e[between[k]] + e[between[last]]))
