"""The result of a path: every fit, the best C, and the machine that is refitted with it."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..endings import Outcome, outcomes_of, worst_status
from ..machine.machine import Machine
from ..settings import SCORES, Settings

RULES = ("best", "one_se")
PHASES = ("read", "fits", "refit", "total")
FACTS = (
    *("seconds", "objective", "gap", "certified", "n_support", "n_nonzero", "iterations"),
    "status",
)


@dataclass(frozen=True)
class Fit:
    """The facts of a fit: its scores on the rows held out, and its certificate."""

    scores: dict[str, float]
    seconds: float
    objective: float
    gap: float
    certified: bool
    n_support: int
    n_nonzero: int | None
    iterations: int
    status: str


@dataclass(frozen=True)
class Choice:
    """A cell of the grid, its mean score and the standard error of this mean."""

    C: float
    gamma: float | None
    mean: float
    std_error: float

    def facts(self) -> dict[str, Any]:
        return {"C": self.C, "gamma": self.gamma, "mean": self.mean, "std_error": self.std_error}


@dataclass(eq=False)
class PathResult:
    """All fits of a path, by γ, cost and fold.

    `table[name]` is an array of shape (gammas, costs, folds · repeats), with the folds of one
    repeat after those of the other. The names are the four scores, seconds, objective, gap,
    certified, n_support, n_nonzero (0 with a kernel), iterations and status.
    """

    costs: np.ndarray
    gammas: list[float | None]
    fits: dict[tuple[int, int, int, int], Fit]  # by γ, cost, repeat and fold
    settings: Settings
    classes: np.ndarray
    shape: tuple[int, int]
    splits: np.ndarray  # the fold of every row, a line per repeat
    scoring: str
    rule: str
    seed: int
    machine: Machine | None = None
    refit: dict[str, Any] | None = None
    test: dict[str, Any] | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    resumed: int = 0  # number of columns that a state file had
    ignored: bool = False  # True if there was a state file of another run

    def __post_init__(self) -> None:
        repeats, n_folds = len(self.splits), int(self.splits.max()) + 1
        self.n_folds, self.n_repeats = n_folds, repeats
        places = [(r, k) for r in range(repeats) for k in range(n_folds)]
        grid = [
            [[self.fits[g, i, r, k] for r, k in places] for i in range(len(self.costs))]
            for g in range(len(self.gammas))
        ]

        def collected(value: Any) -> np.ndarray:
            return np.array([[[value(fit) for fit in row] for row in rows] for rows in grid])

        self.table: dict[str, np.ndarray] = {
            name: collected(lambda fit, name=name: fit.scores[name]) for name in SCORES
        }
        for name in FACTS:
            self.table[name] = collected(lambda fit, name=name: _zero_if_none(getattr(fit, name)))
        self.best = self._choice(*_highest(self.means()))
        self.one_se = self._choice(*self._simplest())

    def means(self, score: str | None = None) -> np.ndarray:
        """Return the mean of a score over folds and repeats, by γ and cost."""
        return _means(self.table[score or self.scoring])

    def std_errors(self, score: str | None = None) -> np.ndarray:
        """Return the standard error of the mean of a score, by γ and cost."""
        values = self.table[score or self.scoring]
        known = np.isfinite(values).sum(axis=2)
        return self.stds(score) / np.sqrt(np.maximum(known, 1))

    def stds(self, score: str | None = None) -> np.ndarray:
        """Return the standard deviation of a score over folds and repeats, by γ and cost."""
        values = self.table[score or self.scoring]
        known = np.isfinite(values).sum(axis=2)
        deviations = np.where(np.isfinite(values), values - _means(values)[:, :, None], 0.0)
        return np.sqrt(np.square(deviations).sum(axis=2) / np.maximum(known - 1, 1))

    @property
    def chosen(self) -> Choice:
        """The C and γ that the machine is refitted with."""
        return self.best if self.rule == "best" else self.one_se

    @property
    def certified(self) -> bool:
        """True if every fit reached its tolerance."""
        return bool(self.table["certified"].all())

    def outcomes(self) -> list[Outcome]:
        """Return how every fit ended, and every sub-problem of the refitted machine."""
        outcomes = [Outcome(fit.status, fit.gap) for fit in self.fits.values()]
        return outcomes + ([] if self.machine is None else outcomes_of(self.machine.problems))

    @property
    def status(self) -> str:
        """`converged`, or the worst status of a fit."""
        return worst_status([fit.status for fit in self.fits.values()])

    def _choice(self, g: int, i: int) -> Choice:
        mean, error = self.means()[g, i], self.std_errors()[g, i]
        return Choice(float(self.costs[i]), self.gammas[g], float(mean), float(error))

    def _simplest(self) -> tuple[int, int]:
        """Return the place of the smallest C whose mean score is within one standard error of the
        best; if several γ have one, of the γ that scores best there."""
        means = self.means()
        g, i = _highest(means)
        enough = means >= means[g, i] - self.std_errors()[g, i]
        enough[g, i] = True
        least = int(enough.any(axis=0).argmax())
        return int(np.where(enough[:, least], means[:, least], -np.inf).argmax()), least

    def facts(self) -> dict[str, Any]:
        """Return the result as plain numbers and lists, for JSON."""
        s, (n, p) = self.settings, self.shape
        return {
            "model": s.model,
            "kernel": s.kernel,
            "solver": s.solver,
            "n_samples": n,
            "n_features": p,
            "classes": self.classes.tolist(),
            "bias": bool(s.bias),
            "tol": float(s.tol),
            "folds": self.n_folds,
            "repeats": self.n_repeats,
            "seed": int(self.seed),
            "scoring": self.scoring,
            "costs": self.costs.tolist(),
            "gammas": list(self.gammas),
            "cells": [
                self._cell(g, i) for g in range(len(self.gammas)) for i in range(len(self.costs))
            ],
            "best": self.best.facts(),
            "one_se": self.one_se.facts(),
            "chosen": self.rule,
            "refit": self.refit,
            "test": self.test,
            "seconds": {
                name: round(self.seconds[name], 6) for name in PHASES if name in self.seconds
            },
            "status": self.status,
        }

    def _cell(self, g: int, i: int) -> dict[str, Any]:
        def listed(name: str) -> Any:
            return self.table[name][g, i].tolist()

        linear = self.gammas[0] is None and self.settings.kernel == "linear"
        return {
            "C": float(self.costs[i]),
            "gamma": self.gammas[g],
            "scores": {name: listed(name) for name in SCORES},
            "seconds": listed("seconds"),
            "objectives": listed("objective"),
            "gaps": listed("gap"),
            "certified": listed("certified"),
            "n_support": listed("n_support"),
            "n_nonzero": listed("n_nonzero") if linear else None,
            "iterations": listed("iterations"),
            "status": listed("status"),
        }


def _zero_if_none(value: Any) -> Any:
    return 0 if value is None else value


def _means(values: np.ndarray) -> np.ndarray:
    """Return the means of the finite values along the last axis, −inf where there are none."""
    known = np.isfinite(values)
    total = np.where(known, values, 0.0).sum(axis=2)
    return np.where(known.any(axis=2), total / np.maximum(known.sum(axis=2), 1), -np.inf)


def _highest(means: np.ndarray) -> tuple[int, int]:
    """Return the place of the highest mean; of equal ones that of the smallest C, then of the first
    γ."""
    i, g = np.unravel_index(int(means.T.argmax()), means.T.shape)
    return int(g), int(i)
