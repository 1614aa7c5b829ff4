"""Decision values of rows by machines that were fitted without them.

If classes are trained in pairs, a row of a third class has no margin in the fit of a pair. It is
scored when all fits of its fold are finished.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..binary.costs import costs
from ..binary.kernel_matrix import worker_mb
from ..binary.solution import Solution
from ..binary.start import Start
from ..errors import InputError
from ..kernels import gram, margins
from ..matrix.rows import narrowed, take_rows
from ..settings import Settings
from .folds import fit_folds
from .jobs import Job, Problem

BLOCK_CELLS = 1 << 22  # kernel values of rows held out that are in memory at a time


@dataclass(frozen=True)
class Piece:
    """The part of a solved sub-problem that is kept until its fold is scored."""

    margins: np.ndarray | None  # margins of the rows held out; None if the fit does not have them
    support: np.ndarray
    beta: np.ndarray | None  # β of the support vectors if there are no margins
    b: float
    seconds: float
    objective: float
    gap: float
    certified: bool
    iterations: int
    status: str
    n_nonzero: int


@dataclass(frozen=True)
class Fold:
    """The pieces of all fits of a fold by cost and sub-problem (None for one with rows of a single
    class), and the scores of the rows held out by row, cost and sub-problem."""

    number: int
    rows: np.ndarray  # numbers of the rows held out
    pieces: list[list[Piece | None]]
    scores: np.ndarray


@dataclass(frozen=True)
class Split:
    """The rows that some folds hold out, and the costs of the other rows at C = 1."""

    held_out: dict[int, np.ndarray]
    costs: dict[int, np.ndarray]  # zero for the rows held out


def make_split(
    job: Job, fold_of: np.ndarray, folds: Sequence[int], sample_weight: Any, class_weight: Any
) -> Split:
    """Return the split of some folds; each must leave at least two classes to train on."""
    unit = {}
    for k in folds:
        unit[k] = _unit_costs(job, fold_of != k, sample_weight, class_weight)
        if len(np.unique(job.y[unit[k] > 0.0])) < 2:
            raise InputError(
                f"fold {k + 1} leaves fewer than 2 classes to train on; use fewer folds"
            )
    return Split({k: np.flatnonzero(fold_of == k) for k in folds}, unit)


def group_folds(job: Job, n_folds: int) -> list[tuple[int, ...]]:
    """Return groups of folds that are fitted one after the other: one group of all folds if
    classes are in pairs, so that the rows of a pair are copied once, else a group for each fold."""
    every = tuple(range(n_folds))
    return [every] if job.problems[0].rows is not None else [(k,) for k in every]


def _unit_costs(job: Job, inside: np.ndarray, sample_weight: Any, class_weight: Any) -> np.ndarray:
    """Return the cost of every row at C = 1, zero for those held out. Weights of classes that have
    no row inside are ignored."""
    y = job.y
    classes = [label for label in job.classes if (y[inside] == label).any()]
    if isinstance(class_weight, dict):
        class_weight = {
            k: v for k, v in class_weight.items() if k in classes or k not in job.classes
        }
    own = None if sample_weight is None else sample_weight[inside]
    c = np.zeros(len(y))
    c[inside] = costs(1.0, y[inside], np.array(classes), own, class_weight)
    return c


class Validation:
    """The fits of all sub-problems without some folds, at every C of a grid.

    `limit` is called with sub-problem, fold and place in the grid when a fit begins, and returns
    its settings. `finished` is called with a fold when all its fits are made. An interrupted fit
    sets `stop`.
    """

    def __init__(
        self,
        job: Job,
        split: Split,
        grid: Sequence[float],
        limit: Callable[[int, int, int], Settings],
        finished: Callable[[Fold], None],
        stop: threading.Event,
    ):
        self._job, self._split, self._grid = job, split, grid
        self._limit, self._finished, self._stop = limit, finished, stop
        self._lock = threading.Lock()
        self._cache_mb = worker_mb(job.settings)
        count = len(job.problems)
        self._pieces: dict[int, list[list[Piece | None]]] = {
            k: [[None] * count for _ in grid] for k in split.costs
        }
        self._open = dict.fromkeys(split.costs, count * len(grid))

    def chains(self, starts: Sequence[Start] | None = None) -> list[Iterator[None]]:
        """Return a chain of fits for every sub-problem: fold by fold, from the least C to the
        largest."""
        count = len(self._job.problems)
        return [self._chain(k, None if starts is None else starts[k]) for k in range(count)]

    def _chain(self, number: int, start: Start | None) -> Iterator[None]:
        job, problem = self._job, self._job.problems[number]
        posed = job.pose_for_many(problem, self._cache_mb)
        unit = {k: job.costs_of(problem, c) for k, c in self._split.costs.items()}

        def limit(fold: int, i: int) -> Settings:
            given = self._limit(number, fold, i)
            return given.derive(C=self._grid[i], cache_mb=self._cache_mb)

        for fit in fit_folds(posed, unit, self._grid, limit, start):
            piece = None
            if fit.solution is not None:
                if fit.solution.status == "interrupted":
                    self._stop.set()
                    return
                held_out = self._split.held_out[fit.fold]
                piece = make_piece(job, problem, fit.solution, held_out, fit.seconds)
            self._place(fit.fold, fit.cost, number, piece)
            yield

    def _place(self, fold: int, i: int, number: int, piece: Piece | None) -> None:
        """Store the piece of a fit; after the last fit of a fold, score the fold."""
        with self._lock:
            self._pieces[fold][i][number] = piece
            self._open[fold] -= 1
            if self._open[fold]:
                return
            pieces = self._pieces.pop(fold)
        held_out, unit = self._split.held_out[fold], self._split.costs[fold]
        scores = score_rows(self._job, pieces, held_out, unit)
        self._finished(Fold(fold, held_out, pieces, scores))


def make_piece(
    job: Job, problem: Problem, s: Solution, held_out: np.ndarray, seconds: float
) -> Piece:
    """Return the part of a solution that is needed until its fold is scored."""
    rows = problem.rows
    used = np.flatnonzero(s.alpha if s.beta is None else s.beta)
    known, beta = None, None
    if rows is None:
        known = s.margins[held_out]
    elif s.w is not None:
        known = margins(job.X, s.w, s.b)[held_out]
    else:
        assert s.beta is not None
        beta = s.beta[used]
    return Piece(
        known,
        used if rows is None else rows[used],
        beta,
        s.b,
        seconds,
        s.objective,
        s.gap,
        s.certified,
        s.n_iter,
        s.status,
        0 if s.w is None else int(np.count_nonzero(s.w)),
    )


def score_rows(
    job: Job, pieces: list[list[Piece | None]], held_out: np.ndarray, unit: np.ndarray
) -> np.ndarray:
    """Return the scores of the rows held out, by row, cost and sub-problem. A sub-problem with rows
    of a single class scores for this class."""
    scores = np.empty((len(held_out), len(pieces), len(job.problems)))
    unscored: list[tuple[int, int, Piece]] = []
    for i, row in enumerate(pieces):
        for n, (piece, problem) in enumerate(zip(row, job.problems, strict=True)):
            if piece is None:
                of_class = job.y == job.classes[problem.i]
                sure = np.inf if problem.j is None else 1.0
                scores[:, i, n] = sure if unit[of_class].any() else -sure
            elif piece.margins is None:
                unscored.append((i, n, piece))
            else:
                scores[:, i, n] = piece.margins
    if unscored:
        support = np.unique(np.concatenate([piece.support for _, _, piece in unscored]))
        coefs = np.zeros((len(support), len(unscored)))
        for column, (_, _, piece) in enumerate(unscored):
            coefs[np.searchsorted(support, piece.support), column] = piece.beta
        values = score_by_kernel(job, held_out, support, coefs)
        for column, (i, n, piece) in enumerate(unscored):
            scores[:, i, n] = values[:, column] + piece.b
    return scores


def score_by_kernel(
    job: Job, rows: np.ndarray, support: np.ndarray, coefs: np.ndarray
) -> np.ndarray:
    """Return Σ β_i k(x_i, x) of some rows, with a column per column of β."""
    scores, settings = np.empty((len(rows), coefs.shape[1])), job.settings
    kernel: Any = (settings.kernel, settings.gamma, settings.coef0, settings.degree)
    size = max(1, BLOCK_CELLS // max(1, len(support)))
    vectors = job.X if job.shared else take_rows(job.X, support)
    for lo in range(0, len(rows), size):
        block = rows[lo : lo + size]
        if job.shared is not None:
            K = job.shared.between(block, support)
        else:
            (X, V), _ = narrowed(take_rows(job.X, block), vectors)
            K = gram(X, V, *kernel)
        scores[lo : lo + size] = K.astype(np.float64) @ coefs
    return scores
