"""What is proven of a model: numbers for people and for programs."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class ProblemBounds:
    """What is proven of a sub-problem: dual_objective ≤ optimum ≤ objective, the latter at the
    model."""

    classes: tuple[Any, ...]  # the class on the positive side, and the other unless it is the rest
    n_samples: int
    objective: float
    dual_objective: float
    dual_point: str  # where it came from: coefficients, margins, or polished
    passes: float  # over the rows, or of a kernel machine over its whole matrix
    exact: bool  # whether the bounds were added up in rational arithmetic

    @property
    def suboptimality(self) -> float:
        """How far the objective is above the optimum, at most."""
        return max(0.0, self.objective - self.dual_objective)

    @property
    def gap(self) -> float:
        """The same as a share of the objective."""
        if self.objective == self.dual_objective:
            return 0.0
        infinite = float("inf")
        return self.suboptimality / self.objective if 0.0 < self.objective < infinite else infinite


@dataclass(frozen=True)
class Certificate:
    """What is proven of a model: the problem that it is a point of, and bounds of every
    sub-problem."""

    model: str  # csvm, lpsvm, lssvm
    kernel: str
    C: float
    bias: str  # free, none, or penalised
    multiclass: str | None  # ovo or ovr, of more than two classes
    n_samples: int
    n_features: int
    n_classes: int
    problems: tuple[ProblemBounds, ...]
    notes: tuple[str, ...]  # what the reader should know about the bounds
    seconds: float

    @property
    def objective(self) -> float:
        """The sum over all sub-problems."""
        return sum(p.objective for p in self.problems)

    @property
    def dual_objective(self) -> float:
        """The sum over all sub-problems."""
        return sum(p.dual_objective for p in self.problems)

    @property
    def gap(self) -> float:
        """The largest of all sub-problems."""
        return max(p.gap for p in self.problems)

    @property
    def passes(self) -> float:
        """Of all sub-problems."""
        return sum(p.passes for p in self.problems)

    def facts(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        found = asdict(self)
        problems = [
            {**asdict(p), "suboptimality": p.suboptimality, "gap": p.gap} for p in self.problems
        ]
        for name in ("problems", "notes", "seconds"):
            del found[name]
        found |= {
            "objective": self.objective,
            "dual_objective": self.dual_objective,
            "gap": self.gap,
            "passes": self.passes,
        }
        return {**found, "problems": problems, "notes": list(self.notes), "seconds": self.seconds}
