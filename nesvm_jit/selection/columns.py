"""Columns of the table: one γ, some folds, all costs; a fit starts from the one before it in C.

Rows held out cost nothing: they add nothing to the objective, the data need no copy, and the
margins of the fit are their scores. Where classes are trained in pairs, a row of a third class has
no margin and is scored at the end.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..binary.solution import Solution
from ..binary.start import Start
from ..errors import InputError
from ..kernels import margins
from ..machine.assembled import Problem
from ..machine.train import Posed
from ..settings import STATUSES
from .schedule import Chain
from .scores import all_scores
from .stage import Fit, Stage


@dataclass(frozen=True)
class Piece:
    """What is needed of a solved sub-problem until the fit is scored."""

    margins: np.ndarray | None  # of the rows held out, where they are known
    support: np.ndarray
    beta: np.ndarray | None  # of these rows
    b: float
    facts: tuple[float, float, float, bool, int, str]  # those of a fit
    n_nonzero: int


class Column:
    """The fits of one γ, one repeat and some of its folds, which are finished and kept together."""

    def __init__(
        self,
        stage: Stage,
        key: tuple[int, int],
        split: np.ndarray,
        folds: Sequence[int],
        finished: Callable[["Column"], None],
    ):
        self.stage, self.key, self.folds, self.finished = stage, key, tuple(folds), finished
        self.out = {k: np.flatnonzero(split == k) for k in folds}
        self.c = {k: stage.unit_costs(split != k) for k in folds}
        self.pieces: dict[tuple[int, int], list[Piece | None]] = {
            (k, i): [None] * len(stage.problems) for k in folds for i in range(len(stage.costs))
        }
        self.fits: dict[tuple[int, int], Fit] = {}
        self._lock = threading.Lock()
        self._open = dict.fromkeys(folds, len(stage.problems) * len(stage.costs))
        for k in folds:
            _require_two_classes(stage.job.y[self.c[k] > 0.0], k)

    def chains(self) -> list["Walk"]:
        """A chain for every sub-problem."""
        return [Walk(self, number) for number in range(len(self.stage.problems))]

    def place(self, fold: int, i: int, number: int, piece: Piece | None) -> "Sequence[Chain]":
        """Take what is needed of a sub-problem; the last one of a fold has the fold scored."""
        with self._lock:
            self.pieces[fold, i][number] = piece
            self._open[fold] -= 1
            return [] if self._open[fold] else [Scoring(self, fold)]

    def score(self, fold: int) -> None:
        """Score the rows held out by every fit of a fold, whose sub-problems are all solved."""
        found = [self.pieces.pop((fold, i)) for i in range(len(self.stage.costs))]
        fits = self._fits(fold, found, self._scores(fold, found))
        with self._lock:
            self.fits |= {(fold, i): fit for i, fit in enumerate(fits)}
            whole = len(self.fits) == len(self.folds) * len(fits)
        for i, fit in enumerate(fits):
            self.stage.fitted(fit, self.where(fold, i))
        if whole:
            self.finished(self)

    def where(self, fold: int, i: int) -> dict:
        """Which fit it is."""
        C, gamma = self.stage.costs[i], self.stage.gamma
        return {"C": C, "gamma": gamma, "repeat": self.key[1], "fold": fold}

    def _fits(self, fold: int, found: list[list[Piece | None]], scores: np.ndarray) -> list[Fit]:
        job, linear, fits = self.stage.job, self.stage.linear, []
        truth = job.y[self.out[fold]]
        for i, pieces in enumerate(found):
            solved = [p for p in pieces if p is not None]
            facts = zip(*(p.facts for p in solved), strict=True)
            seconds, objectives, gaps, certified, rounds, statuses = facts
            fit = Fit(
                all_scores(truth, scores[:, i], job.order, self.stage.how),
                round(sum(seconds), 6),
                sum(objectives),
                max(gaps),
                all(certified),
                len(np.unique(np.concatenate([p.support for p in solved]))),
                sum(p.n_nonzero for p in solved) if linear else None,
                sum(rounds),
                min(statuses, key=STATUSES.index),
            )
            fits.append(fit)
        return fits

    def _scores(self, fold: int, found: list[list[Piece | None]]) -> np.ndarray:
        """The scores of the rows held out, by cost and sub-problem; a sub-problem that had rows
        of one class only speaks for this class."""
        stage, out = self.stage, self.out[fold]
        scores = np.empty((len(out), len(found), len(stage.problems)))
        apart: list[tuple[int, int, Piece]] = []
        for i, pieces in enumerate(found):
            for n, (piece, problem) in enumerate(zip(pieces, stage.problems, strict=True)):
                if piece is None:
                    of_class = stage.job.y == stage.job.order[problem.i]
                    sure = np.inf if problem.j is None else 1.0
                    scores[:, i, n] = sure if self.c[fold][of_class].any() else -sure
                elif piece.margins is None:
                    apart.append((i, n, piece))
                else:
                    scores[:, i, n] = piece.margins
        if apart:
            support = np.unique(np.concatenate([piece.support for _, _, piece in apart]))
            coefs = np.zeros((len(support), len(apart)))
            for column, (_, _, piece) in enumerate(apart):
                coefs[np.searchsorted(support, piece.support), column] = piece.beta
            values = stage.kernel_scores(out, support, coefs)
            for column, (i, n, piece) in enumerate(apart):
                scores[:, i, n] = values[:, column] + piece.b
        return scores


class Walk:
    """One sub-problem, fold by fold from the least cost to the largest."""

    def __init__(self, column: Column, number: int):
        self.column, self.number = column, number
        self.problem = column.stage.problems[number]
        self.steps = list(column.pieces)
        self.part: Posed | None = None
        self.before: tuple[Solution, float] | None = None

    def step(self) -> "Sequence[Chain]":
        column, stage = self.column, self.column.stage
        if self.part is None:
            self.part = stage.part(self.problem)
        fold, i = self.steps.pop(0)
        if i == 0:
            self.before = None
        c = column.c[fold] if self.problem.rows is None else column.c[fold][self.problem.rows]
        piece = None
        if self.part.missing(c) is None:
            solution, seconds = self._fit(c, fold, i)
            if solution.status == "interrupted":
                stage.stop.set()
                return []
            piece = self._piece(solution, column.out[fold], seconds)
        following = column.place(fold, i, self.number, piece)
        stage.stepped()
        if self.steps:
            return [self, *following]
        self.part = self.before = None
        return following

    def _fit(self, c: np.ndarray, fold: int, i: int) -> tuple[Solution, float]:
        stage, where = self.column.stage, self.column.where(fold, i)
        began = time.perf_counter()

        def watched(row: dict) -> bool:
            asked = stage.watch({**row, **where, "problem": self.number})
            return bool(asked) or stage.stop.is_set()

        C = stage.costs[i]
        given = stage.job.settings.derive(C=C, callback=watched, cache_mb=stage.share)
        assert self.part is not None
        solution = self.part.fit(C * c, given, start_of(self.before, C))
        self.before = solution, C
        return solution, time.perf_counter() - began

    def _piece(self, s: Solution, out: np.ndarray, seconds: float) -> Piece:
        stage, rows = self.column.stage, self.problem.rows
        used = np.flatnonzero(s.alpha if s.beta is None else s.beta)
        support = used if rows is None else rows[used]
        known, beta = None, None
        if rows is None:
            known = s.margins[out]
        elif s.w is not None:
            known = margins(stage.job.X, s.w, s.b)[out]
        else:
            assert s.beta is not None
            beta = s.beta[used]
        facts = seconds, s.objective, s.gap, s.certified, s.n_iter, s.status
        nonzero = 0 if s.w is None else int(np.count_nonzero(s.w))
        return Piece(known, support, beta, s.b, facts, nonzero)


@dataclass(frozen=True)
class Scoring:
    """The scores of a fold whose fits are done."""

    column: Column
    fold: int

    def step(self) -> "Sequence[Chain]":
        self.column.score(self.fold)
        return []


def start_of(before: tuple[Solution, float] | None, C: float) -> Start:
    """Where the fit before ended, α raised by the ratio of the costs; in C-SVM by what raises
    D(tα) = tΣα − ½t²‖Σ α_i y_i x_i‖² most, if that is less. Where no α is at its bound, as at a
    large C, it is 1: usps, γ = 0.016, C = 1000 then takes 2 rounds instead of 11."""
    if before is None:
        return Start()
    s, C_before = before
    t, total = C / C_before, float(s.alpha.sum())
    square = 2.0 * (total - s.dual_objective)
    if s.model == "csvm" and square > 0.0:
        t = min(t, max(1.0, total / square))
    return Start(s.w, s.b, alpha0=t * s.alpha)


def folds_together(problems: list[Problem]) -> bool:
    """Whether a column has all folds: pairs of classes are cut out once for all of them."""
    return problems[0].rows is not None


def _require_two_classes(inside: np.ndarray, fold: int) -> None:
    if len(np.unique(inside)) < 2:
        raise InputError(
            f"fold {fold + 1} leaves fewer than 2 classes to train on; use fewer folds"
        )
