"""What a run has found so far: the best point and bound, the history, and whether it must end."""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from ..models.base import Model, Smoothing
from ..problems.certificate import DualPoint
from ..problems.evaluation import Evaluation
from ..settings import CUT_SHORT, Settings
from ..signals import asked_to_end

PROGRESS = 0.99  # share of the least gap so far that a smaller one must be below to count as such
ROUNDING = 1e-9  # share of P by which estimates of a run may cross: they are not rounded outwards
COLUMNS = ("round", "mu", "smoothed", "objective", "dual", "gap", "seconds", "passes")


class Problem(Protocol):
    """What a run asks of the problem it watches."""

    bias: bool

    @property
    def passes(self) -> float:
        """Passes over the data so far."""

    def bound(self, at: Evaluation) -> DualPoint:
        """The dual point that an evaluation leads to."""

    def split(self, v: np.ndarray) -> tuple[np.ndarray, float]:
        """Weights and bias of a point."""


class Before(Protocol):
    """A compiled call that a run goes on after."""

    @property
    def status(self) -> str:
        """How it was cut short, or nothing."""

    @property
    def rounds(self) -> int:
        """How many iterations it took."""

    @property
    def best_row(self) -> int | None:
        """The row of the history where its point was found, if there is one."""

    @property
    def history(self) -> list[tuple[Any, ...]]:
        """A row of the history for each of them."""


class Walk(Protocol):
    """Steps along directions."""

    at: Evaluation

    def aim(self, direction: np.ndarray) -> None:
        """Choose the direction of the next step."""

    def slope(self, t: float, smoothing: Smoothing) -> tuple[float, float]:
        """The first two derivatives of F_μ along it."""

    def step(self, t: float, smoothing: Smoothing) -> Evaluation:
        """Go t along the direction."""

    def recentre(self) -> None:
        """Smooth about the dual point of the last step from now on."""


class Smooth(Problem, Protocol):
    """What the solvers that minimise F_μ ask of a problem, linear or with a kernel."""

    model: Model

    def inner(self, v: np.ndarray, other: np.ndarray) -> float:
        """The inner product that gradients are taken in."""

    def lipschitz(self, kind: str, smoothing: Smoothing) -> float:
        """A constant of ∇F_μ."""

    def at(self, v: np.ndarray, smoothing: Smoothing) -> Evaluation:
        """F_μ, its gradient and P at any point."""

    def suboptimality(self, at: Evaluation) -> float:
        """About what the gap owes to F_μ not being minimal there."""

    def estimate_bound(self, at: Evaluation) -> float:
        """The dual value that an evaluation leads to, roughly."""

    def walk(self, v: np.ndarray, smoothing: Smoothing, alpha: Any = None) -> Any:
        """Begin steps at v, smoothed about α."""


def relative_gap(objective: float, dual: float) -> float:
    """(P − D)/P; infinite where that is no number, or P is none of a problem whose losses and
    penalty are never negative. Below zero, where D is above P, it is no proof but a sign of a
    fault, unless P and D are estimates."""
    if not 0.0 <= objective < math.inf or math.isnan(dual):
        return math.inf
    if objective == 0.0:
        return 0.0 if dual == 0.0 else math.copysign(math.inf, -dual)
    return (objective - dual) / objective


def proves(gap: float, tol: float) -> bool:
    """Whether a gap of settled values certifies the tolerance."""
    return 0.0 <= gap <= tol


def scaled(smoothing: Smoothing, share: float) -> Smoothing:
    """Both smoothing parameters times a number."""
    return Smoothing(share * smoothing.penalty, share * smoothing.loss)


@dataclass
class Run:
    """Watches the iterations of a solver on a problem, within the limits of the settings."""

    problem: Any  # a Problem
    settings: Settings
    status: str = ""  # empty while it may go on
    engine: str = ""
    why: str = "asked for"  # this engine was chosen
    iterations: int = 0
    best: Evaluation | None = None
    best_row: int | None = None  # of the history, where it was found
    latest: Evaluation | None = None
    objective: float = float("inf")
    dual: float = float("-inf")
    alpha: Any = None
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    least_gap: float = float("inf")
    idle: int = 0  # iterations since the gap last became clearly smaller
    started: float = field(default_factory=time.perf_counter)

    @property
    def gap(self) -> float:
        """(P − D)/P of the point to return and the best bound."""
        return relative_gap(self.objective, self.dual)

    @property
    def estimated_gap(self) -> float:
        """The same inside a run, where rounding may have P and D cross a little."""
        return 0.0 if -ROUNDING <= self.gap < 0.0 else self.gap

    @property
    def done(self) -> bool:
        """Whether the run must end."""
        return bool(self.status)

    def record(self, at: Evaluation, certify: bool) -> bool:
        """Count an iteration that ends in an evaluation; True when the run must end."""
        self.iterations += 1
        gap = self._enter(at, certify)
        if gap < PROGRESS * self.least_gap:
            self.least_gap, self.idle = gap, 0
        else:
            self.idle += 1
        return bool(self.status) or self._limited(self.rows[-1])

    def passed(self) -> bool:
        """Count an iteration that nothing was evaluated in; True when the run must end."""
        self.iterations += 1
        at = self.latest
        known = (0.0, np.nan, self.objective)
        if at is not None:
            known = (at.smoothing.loss, at.value, at.objective)
        self.rows.append(self._row(*known, self.estimated_gap))
        return self._limited(self.rows[-1])

    def warm_up(self, seen: dict[str, Any], part: int) -> bool:
        """Count an iteration of a run on a part of the rows, which prepares this one; True when
        both must end. Of the problem itself it tells nothing new."""
        self.iterations += 1
        self.rows.append(self._row(seen["mu"], np.nan, self.objective, self.estimated_gap))
        where = {"warm_up": seen.get("warm_up", part), "rows": self.problem.n_rows}
        return self._limited(self.rows[-1], where)

    def enter(self, at: Evaluation) -> bool:
        """Take note of an evaluation, with its bound, in an iteration that is counted already or
        in none; True at the tolerance."""
        self._enter(at, certify=True)
        return self.done

    def _enter(self, at: Evaluation, certify: bool) -> float:
        """The gap with this evaluation, which is a row of the history from now on."""
        self.latest = at
        self.note(at)
        if certify:
            self.certify(at)
        gap = self.estimated_gap
        self.rows.append(self._row(at.smoothing.loss, at.value, at.objective, gap))
        if gap <= self.settings.tol:
            self.status = "converged"
        return gap

    def note(self, at: Evaluation) -> None:
        """Keep the point if it is the best so far, or where the last is to be returned."""
        if at.objective < self.objective or self.settings.returned == "last":
            self.objective, self.best, self.best_row = at.objective, at, len(self.rows)

    def certify(self, at: Evaluation) -> None:
        """Raise the bound with the dual point of an evaluation."""
        point = self.problem.bound(at)
        if point.value > self.dual:
            self.dual, self.alpha = point.value, point.alpha

    def measure_gap(self, at: Evaluation) -> float:
        """The gap, with the dual point of this evaluation too."""
        self.certify(at)
        return self.estimated_gap

    def remaining(self) -> float:
        """Seconds left of the limit."""
        limit = self.settings.time_limit
        return math.inf if limit is None else limit - (time.perf_counter() - self.started)

    def take_over(self, below: "Run", told: int, part: int) -> None:
        """Count the iterations of a run on a part of the rows that it has not told of, and end as
        it was ended by a limit."""
        mu = below.rows[-1][1] if below.rows else 0.0
        for _ in range(below.iterations - told):
            self.warm_up({"mu": mu}, part)
        if below.status in CUT_SHORT and not self.status:
            self.status = below.status

    def go_on_after(self, before: "Before", at: Evaluation) -> None:
        """Count the iterations of a compiled call that ended before its problem was solved, or was
        cut short, and keep its point."""
        self.iterations, self.status = before.rounds, before.status
        self.rows = list(before.history)
        self.why = f"after what one compiled call found (rounds: {before.rounds})"
        self.note(at)
        self.best_row = before.best_row
        self.certify(at)

    def begin_again(self, problem: Problem) -> None:
        """Go on with a more exact problem: the points and bounds of the other do not count."""
        self.problem, self.best, self.best_row, self.latest = problem, None, None, None
        self.objective = float("inf")
        self.forget_bound()

    @contextmanager
    def going_on(self, problem: Problem) -> Iterator[None]:
        """Go on inside with a more exact problem; what was found before is the result where nothing
        is found in time."""
        names = ("problem", "best", "best_row", "latest", "objective", "dual", "alpha")
        before = {name: getattr(self, name) for name in names}
        self.begin_again(problem)
        try:
            yield
        finally:
            if self.best is None:
                vars(self).update(before)

    def forget_bound(self, zero: np.ndarray | None = None) -> None:
        """The bound so far may not hold for the point of now; α = 0 is worth 0, where it counts."""
        self.dual, self.alpha = (float("-inf"), None) if zero is None else (0.0, zero)

    def hand_over(self, problem: Problem) -> None:
        """Go on with another view of the same problem, whose points are [weights; b]."""
        if self.best is not None:
            point = np.append(*self.problem.split(self.best.point))
            self.best = self.best._replace(point=point)
        self.problem = problem

    def settle(self, objective: float, bound: DualPoint) -> None:
        """End with proven values of the point to return, also in the history, and of its bound."""
        self.objective = objective
        # an interrupt may come before the row of the best point is written
        if self.best_row is not None and self.best_row < len(self.rows):
            row = dict(zip(COLUMNS, self.rows[self.best_row], strict=True))
            self.rows[self.best_row] = tuple((row | {"objective": objective}).values())
        self.dual, self.alpha = bound

    def history(self) -> dict[str, np.ndarray]:
        """The iterations as one array per column."""
        table = np.array(self.rows, dtype=float).reshape(-1, len(COLUMNS))
        columns = {name: table[:, j] for j, name in enumerate(COLUMNS)}
        return columns | {"round": columns["round"].astype(np.int64)}

    def _row(self, mu: float, value: float, objective: float, gap: float) -> tuple[Any, ...]:
        seconds = time.perf_counter() - self.started
        bounds = (objective, self.dual, gap)
        return (self.iterations, mu, value, *bounds, seconds, self.problem.passes)

    def _limited(self, row: tuple[Any, ...], where: dict[str, Any] | None = None) -> bool:
        """Whether the callback, told this row, a signal or a limit ends the run."""
        settings = self.settings
        told = dict(zip(COLUMNS, row, strict=True)) | (where or {})
        if (settings.callback and settings.callback(told)) or asked_to_end():
            self.status = "interrupted"
        elif self.iterations >= settings.max_iter:
            self.status = "iteration_limit"
        elif settings.time_limit is not None and self.remaining() <= 0.0:
            self.status = "time_limit"
        return bool(self.status)
