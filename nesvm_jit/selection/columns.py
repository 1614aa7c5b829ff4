"""Columns of the table: one γ, some folds, all costs; a fit starts from the one before it in C.

Rows held out cost nothing: they add nothing to the objective, the data need no copy, and the
margins of the fit are their scores. Where classes are trained in pairs, a row of a third class has
no margin and is scored at the end.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..binary import Solution, Start, costs
from ..errors import InputError
from ..files.certificates import STATUSES
from ..jit import get_threads
from ..kernelised import budget_bytes, kernel_rows
from ..kernels.gram import gram
from ..kernels.sums import margins
from ..machine.train import Job, Part, Problem
from ..matrix import take_rows
from ..narrow import narrowed
from ..settings import Settings
from .schedule import Chain
from .scores import all_scores

BLOCK_CELLS = 1 << 22  # of kernel values between rows held out and support vectors


@dataclass(frozen=True)
class Fit:
    """What is kept of a fit: its scores on the rows held out, and its certificate."""

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
class Piece:
    """What is needed of a solved sub-problem until the fit is scored."""

    margins: np.ndarray | None  # of the rows held out, where they are known
    support: np.ndarray
    beta: np.ndarray | None  # of these rows
    b: float
    facts: tuple[float, float, float, bool, int, str]  # those of a fit
    n_nonzero: int


@dataclass
class Stage:
    """What the columns of one γ share: the problems, the costs, and who watches."""

    job: Job
    how: str
    problems: list[Problem]
    costs: list[float]
    weights: tuple[Any, Any]  # of samples and of classes
    gamma: float | None
    stop: threading.Event
    watch: Callable[[dict], object]
    stepped: Callable[[], None]  # after every sub-problem
    fitted: Callable[[Fit, dict], None]  # after every fit

    @property
    def linear(self) -> bool:
        return self.job.settings.kernel == "linear"

    @cached_property
    def share(self) -> float:
        """MB for the kernel rows of one chain."""
        return budget_bytes(self.job.settings.cache_mb) / 2.0**20 / get_threads()

    def part(self, problem: Problem) -> Part:
        """The rows of a sub-problem; their kernel rows stay from one fit to the next."""
        part, job = self.job.part(problem), self.job
        if self.linear or part.kernel_rows is not None or job.settings.model == "lpsvm":
            return part
        settings = replace(job.settings, cache_mb=self.share, C=self.costs[-1])
        return replace(part, kernel_rows=kernel_rows(part.X, settings))

    def unit_costs(self, inside: np.ndarray) -> np.ndarray:
        """The cost of every row at C = 1, none for those held out."""
        y, (sample_weight, class_weight) = self.job.y, self.weights
        classes = [label for label in self.job.order if (y[inside] == label).any()]
        if isinstance(class_weight, dict):
            class_weight = {
                k: v for k, v in class_weight.items() if k in classes or k not in self.job.order
            }
        own = None if sample_weight is None else sample_weight[inside]
        c = np.zeros(len(y))
        c[inside] = costs(1.0, y[inside], np.array(classes), own, class_weight)
        return c

    def kernel_scores(self, out: np.ndarray, support: np.ndarray, coefs: np.ndarray) -> np.ndarray:
        """Σ β_i k(x_i, x) of the rows held out, a column per sub-problem."""
        job, scores = self.job, np.empty((len(out), coefs.shape[1]))
        settings, size = job.settings, max(1, BLOCK_CELLS // max(1, len(support)))
        vectors = job.X if job.shared else take_rows(job.X, support)
        for lo in range(0, len(out), size):
            rows = out[lo : lo + size]
            if job.shared is not None:
                K = job.shared.between(rows, support)
            else:
                (block, V), _ = narrowed(take_rows(job.X, rows), vectors)
                K = gram(block, V, settings.kernel, self.gamma, settings.coef0, settings.degree)
            scores[lo : lo + size] = K.astype(np.float64) @ coefs
        return scores


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
        self._open = dict.fromkeys(self.pieces, len(stage.problems))
        for k in folds:
            _require_two_classes(stage.job.y[self.c[k] > 0.0], k)

    def chains(self) -> list["Walk"]:
        """A chain for every sub-problem."""
        return [Walk(self, number) for number in range(len(self.stage.problems))]

    def place(self, fold: int, i: int, number: int, piece: Piece | None) -> "Sequence[Chain]":
        """Take what is needed of a sub-problem; the last one of a fit has it scored."""
        with self._lock:
            self.pieces[fold, i][number] = piece
            self._open[fold, i] -= 1
            return [] if self._open[fold, i] else [Scoring(self, fold, i)]

    def score(self, fold: int, i: int) -> None:
        """Score the rows held out, now that all sub-problems of the fit are solved."""
        stage, out = self.stage, self.out[fold]
        pieces = self.pieces.pop((fold, i))
        scores = self._scores(pieces, fold)
        found = [p for p in pieces if p is not None]
        facts = zip(*(p.facts for p in found), strict=True)
        seconds, objectives, gaps, certified, rounds, statuses = facts
        support = np.unique(np.concatenate([p.support for p in found]))
        fit = Fit(
            all_scores(stage.job.y[out], scores, stage.job.order, stage.how),
            round(sum(seconds), 6),
            sum(objectives),
            max(gaps),
            all(certified),
            len(support),
            sum(p.n_nonzero for p in found) if stage.linear else None,
            sum(rounds),
            min(statuses, key=STATUSES.index),
        )
        with self._lock:
            self.fits[fold, i] = fit
            whole = len(self.fits) == len(self.folds) * len(stage.costs)
        stage.fitted(fit, self.where(fold, i))
        if whole:
            self.finished(self)

    def where(self, fold: int, i: int) -> dict:
        """Which fit it is."""
        C, gamma = self.stage.costs[i], self.stage.gamma
        return {"C": C, "gamma": gamma, "repeat": self.key[1], "fold": fold, "cost": i}

    def _scores(self, pieces: list[Piece | None], fold: int) -> np.ndarray:
        """A column per sub-problem; one that had rows of one class only speaks for this class."""
        stage, out = self.stage, self.out[fold]
        scores = np.empty((len(out), len(pieces)))
        apart = [n for n, p in enumerate(pieces) if p is not None and p.margins is None]
        if apart:
            found = [p for p in (pieces[n] for n in apart) if p is not None]
            support = np.unique(np.concatenate([p.support for p in found]))
            coefs = np.zeros((len(support), len(apart)))
            for column, p in enumerate(found):
                coefs[np.searchsorted(support, p.support), column] = p.beta
            scores[:, apart] = stage.kernel_scores(out, support, coefs)
            scores[:, apart] += [p.b for p in found]
        inside = {*stage.job.y[self.c[fold] > 0.0].tolist()}
        for n, piece in enumerate(pieces):
            if piece is None:
                problem = stage.problems[n]
                absent = stage.job.order[problem.i] not in inside
                sure = np.inf if problem.j is None else 1.0
                scores[:, n] = -sure if absent else sure
            elif piece.margins is not None:
                scores[:, n] = piece.margins
        return scores


class Walk:
    """One sub-problem, fold by fold from the least cost to the largest."""

    def __init__(self, column: Column, number: int):
        self.column, self.number = column, number
        self.problem = column.stage.problems[number]
        self.steps = list(column.pieces)
        self.part: Part | None = None
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
        given = replace(stage.job.settings, C=C, callback=watched, cache_mb=stage.share)
        assert self.part is not None
        solution = self.part.fit(C * c, given, start_of(self.before, C, given))
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
    """The scores of a fit whose sub-problems are solved."""

    column: Column
    fold: int
    i: int

    def step(self) -> "Sequence[Chain]":
        self.column.score(self.fold, self.i)
        return []


def start_of(before: tuple[Solution, float] | None, C: float, settings: Settings) -> Start:
    """Where the fit before ended, its dual point raised in the ratio of the costs."""
    if before is None:
        return Start()
    s, C_before = before
    return Start(s.w, s.b, alpha0=s.alpha * (C / C_before))


def folds_together(problems: list[Problem]) -> bool:
    """Whether a column has all folds: pairs of classes are cut out once for all of them."""
    return problems[0].rows is not None


def _require_two_classes(inside: np.ndarray, fold: int) -> None:
    if len(np.unique(inside)) < 2:
        raise InputError(
            f"fold {fold + 1} leaves fewer than 2 classes to train on; use fewer folds"
        )
