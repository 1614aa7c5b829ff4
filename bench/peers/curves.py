"""Reading times off measured curves: pure functions of points, no clock and no data.

A point is {setting, seconds of each repeat, objective, bound or None}.
"""

import math
import statistics
from dataclasses import dataclass, field

from .tasks import Task

LEVELS = (1e-2, 1e-3, 1e-4, 1e-6)


@dataclass
class Curve:
    """What one solver reached on one task."""

    solver: str
    points: list[dict]
    certified: bool = False  # whether the solver proves its accuracy, and so has to
    notice: str | None = None


@dataclass
class Outcome:
    """A task, what all solvers reached, and what is known of its optimum."""

    task: Task
    data: str  # the name to show: synthetic data say so
    curves: dict[str, Curve]
    bound: float = -math.inf  # a proven lower bound of the optimum
    best: float = field(default=math.inf)  # the least objective seen

    def __post_init__(self):
        for curve in self.curves.values():
            for p in curve.points:
                self.best = min(self.best, p["objective"])
                self.bound = max(self.bound, p["bound"] if p["bound"] is not None else -math.inf)

    @property
    def name(self) -> str:
        """The task's name as shown."""
        return self.task.named(self.data)

    @property
    def gap(self) -> float:
        """How far below the best objective the optimum may still lie, relatively."""
        return (self.best - self.bound) / self.best


def short(number: float) -> str:
    """One digit and a power of ten: 1e-3."""
    return f"{number:.0e}".replace("e-0", "e-").replace("e+0", "e+")


def median(point: dict) -> float:
    return statistics.median(point["seconds"])


def off(point: dict, best: float) -> float:
    """Suboptimality: (objective − best) / best."""
    return max(point["objective"] - best, 0.0) / best


def proven(point: dict) -> float:
    """The gap that the solver itself certifies."""
    return (point["objective"] - point["bound"]) / point["objective"]


def reaches(curve: Curve, point: dict, best: float, level: float) -> bool:
    """Near enough; a solver that certifies must have been asked for it and have proved it."""
    if off(point, best) > level:
        return False
    return not curve.certified or (point["setting"] <= level and proven(point) <= level)


def fastest(curve: Curve, best: float, level: float) -> dict | None:
    """The point of least median time among those that reach a level."""
    good = [p for p in curve.points if reaches(curve, p, best, level)]
    return min(good, key=median, default=None)


def nearest(curve: Curve, best: float) -> dict | None:
    """The point of least suboptimality (ours: of least proven gap)."""
    far = proven if curve.certified else lambda p: off(p, best)
    return min(curve.points, key=far, default=None)


def time_to(curve: Curve | None, best: float, level: float) -> float:
    """Seconds to a level, infinite when it is not reached."""
    point = fastest(curve, best, level) if curve else None
    return median(point) if point else math.inf
