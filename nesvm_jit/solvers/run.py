"""The state of a run: limits, history, and the best point and bound seen so far."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from ..models.base import Model, Smoothing
from ..models.problem import DualPoint, Evaluation
from .saving import Saving

CHECK_EVERY = 10  # rounds between two dual points: with a bias each costs up to two passes
COLUMNS = ("round", "mu", "smoothed", "objective", "dual", "gap", "seconds", "passes")


@dataclass
class Limits:
    """When to stop, whatever the solver's own rule says."""

    tol: float = 1e-3
    max_iter: int = 100_000
    time_limit: float = float("inf")
    callback: Callable[[dict], object] | None = None


class Problem(Protocol):
    """What a run asks of the problem it watches."""

    @property
    def passes(self) -> float:
        """Passes over the data so far."""

    def dual(self) -> DualPoint:
        """The dual point that the last evaluation leads to."""

    def value_of(self, alpha: np.ndarray) -> DualPoint:
        """A dual point, evaluated afresh."""

    def split(self, v: np.ndarray) -> tuple[np.ndarray, float]:
        """Weights and bias of a point."""


class Smooth(Problem, Protocol):
    """What the solvers that minimise F_μ ask of a problem, linear or with a kernel."""

    model: Model
    bias: bool
    point: np.ndarray

    def inner(self, v: np.ndarray, other: np.ndarray) -> float:
        """The inner product that gradients are taken in."""

    def lipschitz(self, kind: str, smoothing: Smoothing) -> float:
        """A constant of ∇F_μ."""

    def evaluate(self, v: np.ndarray, smoothing: Smoothing) -> Evaluation:
        """F_μ, its gradient and P at any point."""

    def excess(self, v: np.ndarray, found: Evaluation) -> float:
        """About what the gap owes to F_μ not being minimal there."""

    def bound_now(self) -> float:
        """The dual value that the last evaluation leads to, roughly."""

    def place(
        self, v: np.ndarray, smoothing: Smoothing, alpha: np.ndarray | None = None
    ) -> Evaluation:
        """Start steps at v, smoothed about α."""

    def aim(self, direction: np.ndarray) -> None:
        """Choose the direction of the next step."""

    def slope(self, t: float, smoothing: Smoothing) -> tuple[float, float]:
        """The first two derivatives of F_μ along it."""

    def step(self, t: float, smoothing: Smoothing) -> Evaluation:
        """Go t along the direction."""

    def recentre(self, smoothing: Smoothing) -> None:
        """Smooth about the dual point of the last step from now on."""


@dataclass
class Run:
    """Watches the rounds of a solver on a problem."""

    problem: Problem
    limits: Limits
    status: str = ""
    engine: str = ""
    why: str = "asked for"  # this engine was chosen
    rounds: int = 0
    best: np.ndarray | None = None
    best_row: int | None = None  # of the history, where it was found
    objective: float = float("inf")
    dual: float = float("-inf")
    alpha: np.ndarray | None = None
    smoothing: Smoothing | None = None
    rows: list[tuple] = field(default_factory=list)
    started: float = field(default_factory=time.perf_counter)
    saving: Saving | None = None
    asked: bool = False  # to end where the state can be saved

    @property
    def gap(self) -> float:
        """(P − D)/P of the best point and the best bound."""
        if not np.isfinite(self.objective):
            return float("inf")
        if self.objective <= 0.0:
            return 0.0
        return max(0.0, (self.objective - self.dual) / self.objective)

    @property
    def done(self) -> bool:
        """Whether the run must end."""
        return bool(self.status)

    def record(
        self,
        v: np.ndarray,
        found: Evaluation,
        smoothing: Smoothing,
        certify: bool | None = None,
    ) -> bool:
        """Take note of a round just evaluated; True when the run must end.

        A dual point is made if `certify`, or now and then if that is left open.
        """
        self.rounds += 1
        if self.rounds % CHECK_EVERY == 1 if certify is None else certify:
            return self.enter(v, found, smoothing, True) or self._limited()
        return self.enter(v, found, smoothing, False) or self._limited()

    def enter(
        self, v: np.ndarray, found: Evaluation, smoothing: Smoothing, certify: bool = True
    ) -> bool:
        """Take note of an evaluation in a round that is counted; True at the tolerance."""
        self.smoothing = smoothing
        if found.objective < self.objective:
            self.objective, self.best, self.best_row = found.objective, v.copy(), len(self.rows)
        if certify:
            self.certify()
        self.rows.append(self._row(smoothing.loss, found.value, found.objective))
        if self.gap <= self.limits.tol:
            self.status = "converged"
        return self.done

    def remaining(self) -> float:
        """Seconds left of the limit."""
        return self.limits.time_limit - (time.perf_counter() - self.started)

    def take_over(self, below: "Run") -> None:
        """Count the rounds of a run that prepared this one, and end as it was ended."""
        self.rounds += below.rounds
        if below.status in ("interrupted", "time_limit", "iteration_limit"):
            self.status = below.status

    def begin_again(self, problem: Problem) -> None:
        """Go on with a more exact problem: the points and bounds of the other do not count."""
        self.problem, self.best, self.best_row = problem, None, None
        self.objective = float("inf")
        self.forget_bound()

    def forget_bound(self, zero: np.ndarray | None = None) -> None:
        """The bound so far may not hold for the point of now; α = 0 is worth 0, where it counts."""
        self.dual, self.alpha = (float("-inf"), None) if zero is None else (0.0, zero)

    def hand_over(self, problem: Problem) -> None:
        """Go on with another view of the same problem, whose points are [weights; b]."""
        if self.best is not None:
            self.best = np.append(*self.problem.split(self.best))
        self.problem = problem

    def passed(self) -> bool:
        """Count a round that nothing was evaluated in; True when the run must end."""
        self.rounds += 1
        return self._limited()

    def pausing(self, loop: str, state: Callable[[], dict], steps: bool = False) -> bool:
        """Save the state of a loop, at its top, where that is due; True when the run must end.
        `steps` are what the problem must know too."""
        saving = self.saving
        return saving is not None and saving.pausing(self, loop, state, steps, self.asked)

    def resumes(self, loop: str) -> bool:
        """Whether the run was in this loop when it was saved."""
        return self.saving is not None and self.saving.resumes(loop)

    def resumed(self, loop: str) -> dict[str, Any] | None:
        """The state to take this loop up from; None to start it afresh."""
        return None if self.saving is None else self.saving.resumed(loop)

    def _row(self, mu: float, value: float, objective: float) -> tuple:
        seconds = time.perf_counter() - self.started
        bounds = (objective, self.dual, self.gap)
        return (self.rounds, mu, value, *bounds, seconds, self.problem.passes)

    def _limited(self) -> bool:
        row = self.rows[-1] if self.rows else self._row(0.0, np.nan, self.objective)
        facts = {**dict(zip(COLUMNS, row, strict=True)), "round": self.rounds}
        if self.limits.callback and self.limits.callback(facts):
            self.asked = self.saving is not None
            self.status = "" if self.asked else "interrupted"
        elif self.rounds >= self.limits.max_iter:
            self.status = "iteration_limit"
        elif self.remaining() <= 0.0:
            self.status = "time_limit"
        return self.done

    def certify(self) -> None:
        """Raise the bound with the dual point of the last evaluation."""
        point = self.problem.dual()
        if point.value > self.dual:
            self.dual, self.alpha = point.value, point.alpha

    def settle(self, objective: float) -> None:
        """End with the best point evaluated afresh, also in the history, and its bound added up
        afresh too."""
        self.objective = objective
        # an interrupt may come before the row of the best point is written
        if self.best_row is not None and self.best_row < len(self.rows):
            row = dict(zip(COLUMNS, self.rows[self.best_row], strict=True))
            self.rows[self.best_row] = tuple((row | {"objective": objective}).values())
        assert self.alpha is not None
        self.dual, self.alpha = self.problem.value_of(self.alpha)

    def history(self) -> dict[str, np.ndarray]:
        """The rounds as one array per column."""
        table = np.array(self.rows, dtype=float).reshape(-1, len(COLUMNS))
        columns = {name: table[:, j] for j, name in enumerate(COLUMNS)}
        return columns | {"round": columns["round"].astype(np.int64)}
