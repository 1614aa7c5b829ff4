"""Make all fits of a path γ by γ, except those saved before, and report progress."""

import dataclasses
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..checkpoint.checkpoint import Checkpoint
from ..checkpoint.fingerprint import FREE, data_fingerprint, settings_fingerprint
from ..checkpoint.form import (
    MismatchError,
    fields,
    flag,
    number,
    one_of,
    optional,
    whole,
)
from ..clock import Clock
from ..endings import worst_status
from ..machine.jobs import Job
from ..machine.parallel import run_chains
from ..machine.session import MATRIX_SHARE, Session
from ..machine.validation import Fold, Piece, Validation, group_folds, make_split
from ..settings import SCORES, STATUSES, Settings
from .result import Fit
from .scores import all_scores

FIT = fields(
    scores=fields(**dict.fromkeys(SCORES, number)),
    **dict.fromkeys(("seconds", "objective", "gap"), number),
    certified=flag,
    n_support=whole,
    n_nonzero=optional(whole),
    iterations=whole,
    status=one_of(*STATUSES),
)
Fits = dict[tuple[int, int, int, int], Fit]  # by γ, cost, repeat and fold


@dataclass(frozen=True)
class Grid:
    """The grid of a path: values of C and γ, folds, weights, and the score that progress shows."""

    costs: list[float]
    gammas: list[float | None]
    splits: np.ndarray  # the fold of every row, a line per repeat
    sample_weight: np.ndarray | None
    class_weight: Any
    scoring: str

    @property
    def n_folds(self) -> int:
        return int(self.splits.max()) + 1


class Search:
    """The fits of a grid.

    The fits of one γ, one repeat and one fold are finished and saved together, as a column.
    """

    def __init__(self, job: Job, grid: Grid, clock: Clock):
        self.job, self.grid, self.fits = job, grid, Fits()
        self._callback = job.settings.callback
        self.session = Session(job.settings.derive(callback=self._tell), clock)
        self._lock = threading.Lock()
        cells = len(grid.gammas) * len(grid.costs) * grid.splits.shape[0] * grid.n_folds
        self._total, self._done = cells * len(job.problems), 0
        self._scored: defaultdict[tuple[float, float | None], list[float]] = defaultdict(list)
        self._best: dict[str, Any] = {}

    def fingerprint(self) -> dict[str, Any]:
        """Return the fingerprint of all that the fits depend on. The limit of iterations is part of
        it, since a fit at this limit counts as finished; C and γ are those of the grid."""
        job, grid, weights = self.job, self.grid, self.grid.class_weight
        if isinstance(weights, dict):
            weights = sorted([repr(label), repr(weight)] for label, weight in weights.items())
        return settings_fingerprint(
            job.settings,
            data_fingerprint(job.X, job.y, grid.sample_weight, grid.splits),
            free=("C", "gamma", *(name for name in FREE if name != "max_iter")),
            costs=grid.costs,
            gammas=grid.gammas,
            multiclass=job.multiclass,
            class_weight=weights,
        )

    def run(self, checkpoint: Checkpoint | None) -> Fits:
        """Return all fits, after those that were not saved are made. Raise KeyboardInterrupt if
        they were to stop."""
        for g in range(len(self.grid.gammas)):
            self._run_gamma(g, checkpoint)
            if self.session.stop.is_set():
                raise KeyboardInterrupt
        return self.fits

    def _recall(self, column: "Column", checkpoint: Checkpoint | None) -> bool:
        """Take the fits of a column from the checkpoint; return True if it has them."""
        saved = None if checkpoint is None else checkpoint.done(column.name)
        if checkpoint is None or saved is None:
            return False

        def fits_of(saved: Any) -> dict[tuple[int, int], Fit]:
            fits = {}
            for fold, i, fit in saved:
                FIT(fit)
                fits[int(fold), int(i)] = Fit(**fit)
            if sorted(fits) != [(k, i) for k in column.folds for i in range(len(self.grid.costs))]:
                raise MismatchError("every C of a fold is required once")
            return fits

        self._keep(column, checkpoint.require_form(fits_of, saved))
        self._done += len(saved) * len(self.job.problems)
        return True

    def _run_gamma(self, g: int, checkpoint: Checkpoint | None) -> None:
        missing = []
        for r in range(len(self.grid.splits)):
            for group in group_folds(self.job, self.grid.n_folds):
                unsaved = [
                    fold for fold in group if not self._recall(Column(g, r, (fold,)), checkpoint)
                ]
                missing += [Column(g, r, unsaved)] if unsaved else []
        if not missing:
            return
        job = self._prepare(self.grid.gammas[g])
        chains: list[Iterator[None]] = []
        for column in missing:
            chains += self._chains(job, column, checkpoint)
        run_chains(chains, self.session.stop, job.small, job.tiny)

    def _prepare(self, gamma: float | None) -> Job:
        """Return the job of one γ, with its kernel matrix if that fits into memory."""
        job = replace(self.job, settings=self.job.settings.derive(gamma=gamma))
        if job.settings.approx is not None:
            return job.approximate()[1]
        if job.settings.kernel == "linear":
            return job
        return self.session.within(MATRIX_SHARE, job.share_matrix) or job

    def _chains(
        self, job: Job, column: "Column", checkpoint: Checkpoint | None
    ) -> list[Iterator[None]]:
        """Return the chains of fits of a column, one for every sub-problem."""
        grid = self.grid

        def limit(number: int, fold: int, i: int) -> Settings:
            where = self._where(column, fold, i)
            return self.session.limit(job.settings, **where, problem=number)

        def finish(fold: Fold) -> None:
            fits = {(fold.number, i): make_fit(job, fold, i) for i in range(len(grid.costs))}
            with self._lock:
                for (_, i), fit in fits.items():
                    self._note_score(fit, grid.costs[i], grid.gammas[column.gamma])
            one = replace(column, folds=[fold.number])
            self._keep(one, fits)
            save(checkpoint, one, fits)

        weights = grid.sample_weight, grid.class_weight
        split = make_split(job, grid.splits[column.repeat], column.folds, *weights)
        validation = Validation(job, split, grid.costs, limit, finish, self.session.stop)
        return [self._count_steps(chain) for chain in validation.chains()]

    def _where(self, column: "Column", fold: int, i: int) -> dict[str, Any]:
        """Return C, γ, repeat and fold of a fit, for progress."""
        C, gamma = self.grid.costs[i], self.grid.gammas[column.gamma]
        return {"C": C, "gamma": gamma, "repeat": column.repeat, "fold": fold}

    def _keep(self, column: "Column", fits: dict[tuple[int, int], Fit]) -> None:
        g, r = column.gamma, column.repeat
        with self._lock:
            self.fits |= {(g, i, r, fold): fit for (fold, i), fit in fits.items()}

    # ------------------------------------------------------------ progress

    def _count_steps(self, chain: Iterator[None]) -> Iterator[None]:
        for _ in chain:
            with self._lock:
                self._done += 1
            yield

    def _tell(self, row: dict[str, Any]) -> bool:
        """Call the user's callback; return True if it asks to stop."""
        if self._callback is None:
            return False
        progress = {**row, "done": self._done, "total": self._total, **self._best}
        return bool(self._callback(progress))

    def _note_score(self, fit: Fit, C: float, gamma: float | None) -> None:
        """Update the best mean score so far, among the cells with the most finished folds."""
        self._scored[C, gamma].append(fit.scores[self.grid.scoring])
        most = max(map(len, self._scored.values()))
        means = {k: np.mean(v) for k, v in self._scored.items() if len(v) == most}
        C, gamma = max(means, key=lambda k: means[k])
        self._best = {"best_C": C, "best_gamma": gamma, "best_score": float(means[C, gamma])}


@dataclass(frozen=True)
class Column:
    """The place of one γ and one repeat in the grid, and some of its folds."""

    gamma: int
    repeat: int
    folds: Sequence[int]

    @property
    def name(self) -> str:
        return " ".join(map(str, (self.gamma, self.repeat, *self.folds)))


def save(checkpoint: Checkpoint | None, column: Column, fits: dict[tuple[int, int], Fit]) -> None:
    """Save a finished column, unless the time limit ended one of its fits: a later run may continue
    that."""
    if checkpoint is not None and all(fit.status != "time_limit" for fit in fits.values()):
        facts = [[*place, dataclasses.asdict(fit)] for place, fit in sorted(fits.items())]
        checkpoint.finish(column.name, facts)


def make_fit(job: Job, fold: Fold, i: int) -> Fit:
    """Sum up the sub-problems of a fold at place i in the grid of C."""
    solved: list[Piece] = [piece for piece in fold.pieces[i] if piece is not None]
    linear = job.settings.kernel == "linear"
    supports = np.zeros(len(job.y), bool)
    for piece in solved:
        supports[piece.support] = True
    return Fit(
        all_scores(job.y[fold.rows], fold.scores[:, i], job.classes, job.multiclass),
        round(sum(p.seconds for p in solved), 6),
        sum(p.objective for p in solved),
        max(p.gap for p in solved),
        all(p.certified for p in solved),
        int(np.count_nonzero(supports)),
        sum(p.n_nonzero for p in solved) if linear else None,
        sum(p.iterations for p in solved),
        worst_status([p.status for p in solved]),
    )
