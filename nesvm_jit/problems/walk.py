"""Steps along directions from a point, each building on the margins known so far.

The one object of a problem that changes: the shard remembers the margins and dual weights where a
walk stands, so that a problem has one walk at a time, the one begun last.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from ..models.base import Smoothing
from .certificate import DualSums
from .evaluation import NO_GRADIENT, Evaluation
from .sums import Curvature

if TYPE_CHECKING:
    from .linear import LinearProblem

SINGLE = 1e8  # times R's curvature: the trace of H up to which on mnist single precision suffices
FAINT = 1e-8  # share of what b's curvature could be, where no row is active


class Walk:
    """Where steps have led, `at`, and what F_μ is smoothed about from now on: a dual point (or
    None for zero), and the dual variables of the penalty."""

    def __init__(self, problem: "LinearProblem", at: Evaluation):
        self.problem, self.at = problem, at
        self.centre, self.penalty_centre = at.centre, at.penalty_centre
        self.factor: np.ndarray | None = None  # of a Hessian that nothing changes, once it is known
        self._direction = np.zeros(problem.n_variables)
        self._H: np.ndarray | None = None
        self._bias_column: tuple[np.ndarray, float] | None = None  # of H, at this point

    @classmethod
    def begin(
        cls,
        problem: "LinearProblem",
        v: np.ndarray,
        smoothing: Smoothing,
        alpha: Any = None,
        margins: Any = None,
    ) -> "Walk":
        """Begin at v, smoothed about α (or zero): what `problem.at` gives, in two passes that
        later steps build on; one where the margins are known."""
        shard = problem.shard
        shard.place(*problem.split(v), margins)
        problem.passes += margins is None
        if alpha is not None:
            shard.centre_on(alpha)
        walk = cls(problem, _nowhere(problem, v.copy(), smoothing, alpha))
        problem.walking = walk
        walk.step(0.0, smoothing)
        return walk

    @property
    def point(self) -> np.ndarray:
        """Where the last step ended."""
        return self.at.point

    def aim(self, direction: np.ndarray) -> None:
        """Choose the direction of the next step: one pass for its margins."""
        self._require_last()
        self._direction = direction.copy()
        self.problem.shard.aim(*self.problem.split(direction))
        self.problem.passes += 1

    def slope(self, t: float, smoothing: Smoothing) -> tuple[float, float]:
        """The first two derivatives of F_μ(point + t · direction) by t."""
        self._require_last()
        problem = self.problem
        first, second = problem.shard.slope(t, smoothing.loss)
        w, d = problem.split(self.point)[0], problem.split(self._direction)[0]
        p1, p2 = problem.model.penalty_slope(w, d, t, smoothing, self.penalty_centre)
        return first + p1, second + p2

    def step(self, t: float, smoothing: Smoothing) -> Evaluation:
        """Go t along the direction; only rows whose u changes are added up again."""
        self._require_last()
        point = self.point + t * self._direction if t != 0.0 else self.point
        self.problem.walking = None  # also where Ctrl-C ends the step
        found = self.problem.shard.step(t, smoothing.loss)
        sums = found._replace(dual_weights=self.at.sums.weights + found.dual_weights)
        centres = (self.centre, self.penalty_centre)
        self.at = self.problem.evaluation(point, smoothing, sums, *centres)
        self._bias_column = None
        self.problem.walking = self
        return self.at

    def recentre(self) -> None:
        """Smooth about the dual variables of the last step from now on: steps on the dual that
        are proximal, so that the optimum itself is reached at a μ that is not small."""
        self._require_last()
        problem, at = self.problem, self.at
        self.centre = problem.shard.stepped()
        problem.shard.centre_on(self.centre)
        if problem.model.smoothed_penalty:
            w = problem.split(at.point)[0]
            centre = np.empty_like(w)
            problem.model.penalty_gradient(w, at.smoothing, centre, self.penalty_centre)
            self.penalty_centre = centre

    def _require_last(self) -> None:
        if self.problem.walking is not self:
            raise RuntimeError("another walk has begun on the same rows, or a step was interrupted")

    # ------------------------------------------------------------ curvature

    def hessian(self) -> np.ndarray:
        """∇²F_μ at the point, valid until the next call."""
        self._require_last()
        problem, p = self.problem, self.problem.n_features
        found = problem.shard.hessian(self._precision())
        H: np.ndarray = found.H
        if problem.bias:
            if self._H is None:
                self._H = np.empty((p + 1, p + 1))
            H = self._H
            H[:p, :p] = found.H
            H[p, :p] = H[:p, p] = found.column
            H[p, p] = self._bias_curvature(found)
        np.einsum("ii->i", H)[:p] += self._penalty_curvature()
        return H

    def hessian_times(self, v: np.ndarray) -> np.ndarray:
        """∇²F_μ v at the point."""
        self._require_last()
        problem = self.problem
        p, out = problem.n_features, np.zeros(problem.n_variables)
        w, b = problem.split(v)
        out[:p] = problem.shard.hessian_times(w)
        problem.passes += 1
        out[:p] += self._penalty_curvature() * w
        if problem.bias:
            if self._bias_column is None:
                self.hessian_diagonal()
            assert self._bias_column is not None
            column, total = self._bias_column
            out[:p] += b * column
            out[p] = float(column @ w) + b * total
        return out

    def hessian_diagonal(self) -> np.ndarray:
        """The diagonal of ∇²F_μ at the point; with a bias also its column in H."""
        self._require_last()
        problem = self.problem
        found = problem.shard.hessian_diagonal()
        out = np.append(found.H, 0.0) if problem.bias else found.H
        out[: problem.n_features] += self._penalty_curvature()
        if problem.bias:
            out[-1] = self._bias_curvature(found)
            self._bias_column = found.column, out[-1]
        return out

    def _penalty_curvature(self) -> Any:
        w = self.problem.split(self.point)[0]
        model = self.problem.model
        return model.penalty_curvature(w, self.at.smoothing, self.at.penalty_centre)

    def _precision(self) -> type:
        """Of the products of the Hessian: single, at half the time, where the data are and where
        the rounding is small beside the curvature of R."""
        shard = self.problem.shard
        if shard.data.dtype != np.float32:
            return np.float64
        most = SINGLE * self.problem.model.strong_convexity
        return np.float32 if shard.weight_of_curvature() < most else np.float64

    def _bias_curvature(self, found: Curvature) -> float:
        """Σ d; where no row is active, a little of what b's curvature could be."""
        model, facts = self.problem.model, self.problem.shard.facts
        return max(found.total, FAINT * model.curvature_scale(self.at.smoothing) * facts.curvature)

    # ------------------------------------------------------------ to go on elsewhere

    def state(self) -> dict[str, Any]:
        """All that the next step builds on."""
        self._require_last()
        shard = self.problem.shard
        return {
            "at": saved_evaluation(self.problem, self.at),
            "centre": None if self.centre is None else shard.collect(self.centre),
            "penalty_centre": self.penalty_centre,
            "factor": self.factor,
            "rows": shard.state(),
        }

    @classmethod
    def resume(cls, problem: "LinearProblem", state: dict[str, Any]) -> "Walk":
        """Go on from where a walk on the same rows was."""
        at, shard = evaluation_of(problem, state["at"]), problem.shard
        assert at is not None
        walk = cls(problem, at)
        walk.centre = None if state["centre"] is None else shard.deal(state["centre"])
        walk.penalty_centre, walk.factor = state["penalty_centre"], state["factor"]
        shard.restore(state["rows"])
        problem.walking = walk
        return walk


_VECTORS = ("alpha", "centre", "margins")  # of an evaluation, kept by the shard


def saved_evaluation(problem: "LinearProblem", at: Evaluation | None) -> tuple | None:
    """An evaluation with its vectors as arrays."""
    if at is None:
        return None
    vectors: dict[str, Any] = {name: getattr(at, name) for name in _VECTORS}
    collect = problem.shard.collect
    held: dict[str, Any] = {k: None if v is None else collect(v) for k, v in vectors.items()}
    return at._replace(**held)


def evaluation_of(problem: "LinearProblem", fields: Any) -> Evaluation | None:
    """An evaluation that was saved, its vectors where the shard keeps them."""
    if fields is None:
        return None
    found = Evaluation(*fields)
    vectors = {name: getattr(found, name) for name in _VECTORS}
    deal = problem.shard.deal
    held: dict[str, Any] = {k: None if v is None else deal(v) for k, v in vectors.items()}
    return found._replace(smoothing=Smoothing(*found.smoothing), sums=DualSums(*found.sums), **held)


def _nowhere(problem: "LinearProblem", v: np.ndarray, smoothing: Smoothing, centre: Any):
    """Where no u has been found yet: all dual weights are zero."""
    sums = DualSums(0.0, 0.0, np.zeros(problem.n_features))
    return Evaluation(v, smoothing, np.nan, NO_GRADIENT, np.nan, sums, centre=centre)
