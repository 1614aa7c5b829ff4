"""A model on rows: values, gradients and bounds. One evaluation is one pass over the rows."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..kernels.loss import HINGE
from ..matrix.matrix import Matrix
from ..models.base import UNSMOOTHED, Model, Smoothing
from ..numerics.eigenvalues import power_iteration
from . import certificate
from .blocks import Resident
from .certificate import DualPoint, DualSums
from .evaluation import NO_GRADIENT, Evaluation
from .lift import least_margin, least_multiple, loss_slope, margin_rounding, multiple_of_margins
from .lipschitz import Curved
from .rounding import Columns, column_errors
from .rows import loss_at, loss_of
from .settling import Settled, settle_linear
from .shard import Shard
from .sums import Sums
from .upper_bound import settle_objective
from .walk import Walk

NEARLY = 1e-6  # that every margin may be below 1 where rows are as good as separated
SMALL = (1e-2, 1e-3, 1e-4, 1e-6)  # shares of the largest weight, below which weights are tried as 0


def problem_in_memory(
    X: Matrix, y: np.ndarray, c: np.ndarray, model: Model, bias: bool
) -> "LinearProblem":
    """The problem on a matrix in memory."""
    return LinearProblem(Shard(Resident(X), y, c, model, bias))


class LinearProblem(Curved):
    """min R(w) + Σ c_i loss(1 − y_i(x_i·w + b)); a point is v = [w; b], or w without a bias.

    Everything that belongs to a row is in `shard`, which remembers the u of one evaluation and the
    rows of one walk. Evaluations are values: what the shard has forgotten of one is made again.
    """

    def __init__(self, shard: Shard):
        super().__init__()
        self.shard, self.model, self.bias = shard, shard.model, shard.bias
        self.n_rows, self.n_features = shard.facts.rows, shard.n_features
        self.n_variables = self.n_features + self.bias
        self.passes = 0.0  # over the rows, so far
        self._swept: Evaluation | None = None  # whose u the shard remembers
        self.walking: Walk | None = None  # whose rows the shard remembers
        self.columns: Columns | None = None  # where the entries of X are computed kernel values

    def split(self, v: np.ndarray) -> tuple[np.ndarray, float]:
        """w and b of a point."""
        return v[: self.n_features], float(v[-1]) if self.bias else 0.0

    # ------------------------------------------------------------ values

    def at(self, v: np.ndarray, smoothing: Smoothing) -> Evaluation:
        """One pass over the data at v: u, F_μ(v), ∇F_μ(v), P(v)."""
        self._swept = None  # also where Ctrl-C ends the pass
        sums = self.shard.sweep(*self.split(v), smoothing.loss)
        self.passes += 1
        self._swept = self.evaluation(v.copy(), smoothing, sums, None, 0.0)
        return self._swept

    def evaluation(
        self, v: np.ndarray, smoothing: Smoothing, sums: Sums, centre: Any, penalty_centre: Any
    ) -> Evaluation:
        """F_μ, smoothed about these centres, ∇F_μ and P at v from the sums over rows."""
        w, _ = self.split(v)
        g = np.empty(self.n_variables)
        self.model.penalty_gradient(w, smoothing, g[: self.n_features], penalty_centre)
        g[: self.n_features] -= sums.dual_weights
        if self.bias:
            g[-1] = -sums.imbalance
        penalty, smoothed = self.model.penalty(w, smoothing, penalty_centre)
        return Evaluation(
            point=v,
            smoothing=smoothing,
            value=smoothed + sums.smoothed,
            gradient=g,
            objective=penalty + sums.loss,
            # Σ α²/(4c) is the loss where α = 2cr
            sums=DualSums(sums.total, sums.loss, sums.dual_weights),
            largest=sums.largest,
            centre=centre,
            penalty_centre=penalty_centre,
        )

    def objective_at(self, v: np.ndarray) -> tuple[float, Any]:
        """P at v by margins added up afresh, and these margins."""
        w, b = self.split(v)
        margins = self.shard.margins_at(w, b)
        self.passes += 1
        loss = self.shard.reduce(loss_at, (margins,), (self.model.loss,))
        return self.model.true_penalty(w) + loss, margins

    def judge(self, v: np.ndarray, alpha: Any, weights: np.ndarray) -> Evaluation:
        """P at v in one pass, beside a dual point α whose dual weights are known."""
        P, margins = self.objective_at(v)
        sums = certificate.sums_of(self.shard, alpha, weights.copy())
        return Evaluation(
            v.copy(), UNSMOOTHED, P, NO_GRADIENT, P, sums, alpha=alpha, margins=margins
        )

    def zero(self) -> Evaluation:
        """The point zero, whose P is known without a pass, beside α = 0."""
        P = self.shard.facts.costs
        alpha, weights = self.shard.map(certificate.no_dual_point, ()), np.zeros(self.n_features)
        sums = DualSums(0.0, 0.0, weights)
        v = np.zeros(self.n_variables)
        return Evaluation(v, UNSMOOTHED, P, NO_GRADIENT, P, sums, alpha=alpha)

    def walk(
        self, v: np.ndarray, smoothing: Smoothing, alpha: Any = None, margins: Any = None
    ) -> Walk:
        """Begin steps at v, smoothed about α or zero."""
        return Walk.begin(self, v, smoothing, alpha, margins)

    def resume_walk(self, state: dict[str, Any]) -> Walk:
        """Go on with the steps of a walk that was saved."""
        return Walk.resume(self, state)

    def mean_square(self) -> float:
        """The mean ‖x_i‖², or 1 where all rows are empty."""
        return self.shard.facts.squares / self.n_rows or 1.0

    # ------------------------------------------------------------ bounds

    def suboptimality(self, at: Evaluation) -> float:
        """About what the gap owes to F_μ not being minimal at the point."""
        w, b = self.split(at.point)
        g = at.gradient
        found = self.model.suboptimality(w, g[: self.n_features], at.objective)
        return found + abs(float(g[-1])) * max(1.0, abs(b)) if self.bias else found

    def bound(self, at: Evaluation) -> DualPoint:
        """The best dual point that an evaluation leads to.

        Without a bias it costs nothing; with one, a pass for each repaired point.
        """
        walked = self.walking is not None and at is self.walking.at
        if walked and not self.bias:
            value, t = certificate.best_multiple(self.model, at.sums, at.largest)
            return DualPoint(value, self.shard.stepped(t))
        remembered = walked or at is self._swept or at.alpha is not None
        alpha = self.alpha_of(at)
        if self.bias:
            return self._balanced_bound(alpha)
        return (
            certificate.scaled(self.shard, alpha, at.sums) if remembered else self.value_of(alpha)
        )

    def alpha_of(self, at: Evaluation) -> Any:
        """α = c∘u of an evaluation; one that the shard no longer remembers takes a pass."""
        if at.alpha is not None:
            return at.alpha
        if at is self._swept:
            return self.shard.swept()
        if self.walking is not None and at is self.walking.at:
            return self.shard.stepped()
        margins = self.shard.margins_at(*self.split(at.point))
        self.passes += 1
        return self._alpha_of_margins(margins, at.smoothing, at.centre)

    def bound_of_margins(self, margins: Any, smoothing: Smoothing) -> DualPoint:
        """The best dual point that the u of a point with these margins leads to. One without any
        loss, whose u is zero, leads to none: then it is that of a multiple of the point, whose
        least margin is half of what is smoothed below 1."""
        least = self.shard.reduce(least_margin, (margins,), by=min)
        if least >= 1.0 and self.model.loss == HINGE:
            t = (1.0 - 0.5 * min(1.0, smoothing.loss)) / least
            margins = self.shard.map(multiple_of_margins, (margins,), (t,))
        alpha = self._alpha_of_margins(margins, smoothing, None)
        return self._balanced_bound(alpha) if self.bias else self.value_of(alpha)

    def _alpha_of_margins(self, margins: Any, smoothing: Smoothing, centre: Any) -> Any:
        if centre is None:
            centre = self.shard.map(certificate.no_dual_point, ())
        how = (smoothing.loss, self.model.loss)
        return self.shard.map(certificate.dual_of_margins, (margins, centre), how)

    def _balanced_bound(self, alpha: Any) -> DualPoint:
        point, passes = certificate.balanced_and_scaled(self.shard, alpha)
        self.passes += passes
        return point

    def estimate_bound(self, at: Evaluation) -> float:
        """The dual value before α is repaired for the bias: what `bound` will come near to."""
        sums = at.sums
        return self.model.dual_value(sums.total, sums.squares, sums.weights, 1.0)[0]

    def value_of(self, alpha: Any) -> DualPoint:
        """A feasible α and its value, added up afresh."""
        weights = self.dual_weights(alpha)
        return certificate.scaled(
            self.shard, alpha, certificate.sums_of(self.shard, alpha, weights)
        )

    def settle(self, v: np.ndarray, alpha: Any, tol: float) -> Settled:
        """P at v from above and D near α from below, true in exact arithmetic."""
        self.passes += 2
        return settle_linear(self.shard, *self.split(v), alpha, tol, self.columns)

    def settle_objective(self, v: np.ndarray, tol: float) -> tuple[float, Any]:
        """P at v from above, true in exact arithmetic, and the margins there."""
        self.passes += 1
        return settle_objective(self.shard, *self.split(v), tol, self.columns)

    def dual_weights(self, alpha: Any) -> np.ndarray:
        """Σ α_i y_i x_i."""
        self.passes += 1
        return self.shard.dual_weights(alpha)

    def _steepest(self) -> float:
        return self.shard.facts.steepest

    def _largest_eigenvalue(self) -> float:
        image = np.zeros(self.n_variables)

        def apply(v: np.ndarray) -> np.ndarray:
            w, b = self.split(v)
            image[: self.n_features], total = self.shard.spread(w, b)
            if self.bias:
                image[-1] = total
            self.passes += 2
            return image

        return power_iteration(apply, self.n_variables)

    # ------------------------------------------------------------ exact zeros

    def sparser(self, v: np.ndarray, last: Evaluation) -> Iterator[np.ndarray]:
        """v with more or fewer exact zeros: where ℓ1's |u| < 1 as it was smoothed last, as the
        optimum has them, or else where w is small."""
        w, _ = self.split(v)
        size = np.abs(w)
        undecided = w == 0.0
        if last.smoothing != UNSMOOTHED:
            undecided = self.model.penalty_curvature(w, last.smoothing, last.penalty_centre) > 0.0
        for zero in (undecided, *(size <= share * size.max(initial=0.0) for share in SMALL)):
            out = v.copy()
            self.split(out)[0][zero] = 0.0
            yield out

    # ------------------------------------------------------------ the best multiple

    def lift(self, v: np.ndarray, margins: Any, share: float = 1.0) -> np.ndarray:
        """The multiple of v that has the least P, its margins being known and that share of what
        rounding may take from them being feared; all of what kernel values may be off by."""
        w, b = self.split(v)
        model, slack = self.model, share * self._margin_rounding(w, b)
        if self.columns is not None and model.loss == HINGE:
            margins = margins - self.shard.rows.y * column_errors(self.columns, w)
        penalty = model.true_penalty(w)

        def slope(t: float) -> float:
            loss = self.shard.reduce(loss_slope, (margins,), (t, slack, model.loss))
            return loss + (penalty if model.smoothed_penalty else 2.0 * t * penalty)

        return least_multiple(slope) * v

    def separate(self, at: Evaluation) -> Evaluation:
        """The multiple of a judged point that has every margin beyond 1, where all are about there
        and that is better; else what was given."""
        w, b = self.split(at.point)
        least = self.shard.reduce(least_margin, (at.margins,), by=min)
        if not 1.0 - NEARLY <= least < 1.0 or self.model.loss != HINGE:
            return at
        t = (1.0 + self._margin_rounding(w, b)) / least
        if not self.model.true_penalty(t * w) < at.objective:
            return at
        return self.judge(t * at.point, at.alpha, at.sums.weights)

    def _margin_rounding(self, w: np.ndarray, b: float) -> float:
        size = float(np.sqrt(self.shard.facts.squares) * np.linalg.norm(w)) + abs(b)
        return margin_rounding(self.n_variables, size)

    # ------------------------------------------------------------ row by row, in memory

    def loss_of(self, r: np.ndarray) -> float:
        """Σ c loss(r)."""
        return loss_of(self.shard.rows, r, self.model.loss)

    def guess_gap(self, w: np.ndarray, loss: float, total: float, squares: float) -> float:
        """The relative gap at w = Σ α y x if this were its loss, from Σα and Σ α²/(4c)."""
        objective = self.model.true_penalty(w) + loss
        value, _ = self.model.dual_value(total, squares, w, 1.0)
        return (objective - value) / objective if objective > 0.0 else 0.0

    # ------------------------------------------------------------ to go on elsewhere

    def state(self) -> dict[str, Any]:
        """What has been counted and found."""
        return {"passes": self.passes, "spectral": self._spectral}

    def restore(self, state: dict[str, Any]) -> None:
        """Go to where a problem on the same data was."""
        self.passes, self._spectral = state["passes"], state["spectral"]
