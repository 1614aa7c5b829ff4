"""All columns of a path: γ by γ, those stored and those that are not yet, with progress."""

import threading
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..binary.kernel_matrix import shared_matrix
from ..binary.nystroem import nystroem
from ..errors import InputError
from ..files.ondisk.matrix import OnDisk, extent
from ..machine.multiclass import class_order
from ..machine.train import Job, is_small, problems_of
from ..matrix.checks import as_vector, square_kernel
from ..matrix.matrix import Matrix
from ..settings import MULTICLASS, Settings, one_of
from .columns import Column, folds_together
from .schedule import run_chains
from .stage import Fit, Stage
from .state import IRRELEVANT, State, key_of


@dataclass(frozen=True)
class Data:
    """The rows, checked once."""

    X: Matrix | OnDisk
    y: np.ndarray
    order: np.ndarray
    how: str
    sample_weight: np.ndarray | None
    class_weight: Any

    @staticmethod
    def of(X: Matrix | OnDisk, y, kernel: str, multiclass, sample_weight, class_weight) -> "Data":
        n, p = extent(X)
        y = as_vector("y", y, n)
        if kernel == "precomputed":
            square_kernel(n, p)
        order = class_order(y)
        if len(order) < 2:
            got = f"only {order[0]:g}" if len(order) else "no rows"
            raise InputError(f"y must hold at least 2 classes, got {got}")
        how = multiclass or ("ovr" if kernel == "linear" else "ovo")
        one_of("multiclass", how, MULTICLASS)
        weight = None if sample_weight is None else as_vector("sample_weight", sample_weight, n)
        class_weight = dict(class_weight) if isinstance(class_weight, Mapping) else class_weight
        return Data(X, y, order, how, weight, class_weight)


class Search:
    """All columns, γ by γ, and what is known of them so far."""

    def __init__(
        self, data: Data, costs, gammas, splits: np.ndarray, settings: Settings, scoring: str
    ):
        self.data, self.costs, self.gammas, self.splits = data, costs, gammas, splits
        self.settings, self.stop = settings, threading.Event()
        self.problems = problems_of(data.y, data.order, data.how)
        self.fits: dict[tuple[int, int, int, int], Fit] = {}
        self._lock = threading.Lock()
        cells = len(gammas) * len(costs) * splits.shape[0] * self._n_folds
        self._total, self._done = cells * len(self.problems), 0
        self._scoring = scoring
        self._scored: defaultdict[tuple, list[float]] = defaultdict(list)
        self._best: dict[str, Any] = {}

    @property
    def _n_folds(self) -> int:
        return int(self.splits.max()) + 1

    def key(self) -> str:
        """What a stored column must have been asked for."""
        asked = {k: v for k, v in vars(self.settings).items() if k not in IRRELEVANT}
        asked |= {"costs": self.costs, "gammas": self.gammas, "how": self.data.how}
        weights = self.data.class_weight
        asked["class_weight"] = sorted(weights.items()) if isinstance(weights, dict) else weights
        return key_of(self.data.X, [self.data.y, self.data.sample_weight, self.splits], asked)

    def run(self, state: State) -> dict[tuple[int, int, int, int], Fit]:
        """The fits of all columns, those stored and those that are not yet."""
        try:
            for g in range(len(self.gammas)):
                self._run_gamma(g, state)
                if self.stop.is_set():
                    raise KeyboardInterrupt
        finally:
            state.write()
        return self.fits

    def _run_gamma(self, g: int, state: State) -> None:
        together = folds_together(self.problems)
        every = tuple(range(self._n_folds))
        groups = [every] if together else [(k,) for k in every]
        missing = []
        for r in range(len(self.splits)):
            for group in groups:
                stored = state.get(g, r, group, len(self.costs))
                if stored is None:
                    missing.append((r, group))
                else:
                    self._keep(g, r, stored)
                    self._done += len(stored) * len(self.problems)
        if not missing:
            return
        stage = self._stage(g)

        def finished(column: Column) -> None:
            self._keep(g, column.key[1], column.fits)
            state.add(column)

        chains = []
        for r, group in missing:
            chains += Column(stage, (g, r), self.splits[r], group, finished).chains()
        run_chains(chains, self.stop, is_small(stage.job.X, self.problems))

    def _stage(self, g: int) -> Stage:
        """The job of one γ, with its kernel matrix where that fits into memory."""
        data, gamma = self.data, self.gammas[g]
        settings = self.settings.derive(gamma=gamma, callback=None)
        X: Any = data.X
        shared = None
        if settings.approx is not None:
            X = nystroem(X, settings)[1]
            settings = settings.derive(kernel="linear", approx=None, landmarks=None, gamma=None)
        elif settings.kernel != "linear":
            in_pairs = self.problems[0].rows is not None and settings.kernel != "precomputed"
            by_class = [np.flatnonzero(data.y == k) for k in data.order]
            shared = shared_matrix(X, settings, np.concatenate(by_class) if in_pairs else None)
        job = Job(X, data.y, np.empty(0), data.order, settings, False, settings.seed, shared)
        weights = (data.sample_weight, data.class_weight)
        watchers = (self.stop, self._watch, self._stepped, self._fitted)
        return Stage(job, data.how, self.problems, self.costs, weights, gamma, *watchers)

    def _keep(self, g: int, r: int, fits: dict[tuple[int, int], Fit]) -> None:
        with self._lock:
            self.fits |= {(g, i, r, fold): fit for (fold, i), fit in fits.items()}

    # ------------------------------------------------------------ progress

    def _watch(self, row: dict) -> bool:
        """Tell the user's callback; true to stop."""
        if self.settings.callback is None:
            return False
        told = {**row, "done": self._done, "total": self._total, **self._best}
        if self.settings.callback(told):
            self.stop.set()
        return self.stop.is_set()

    def _stepped(self) -> None:
        with self._lock:
            self._done += 1

    def _fitted(self, fit: Fit, where: dict) -> None:
        """Keep the best mean score so far, of the cells that most folds have."""
        with self._lock:
            place = where["C"], where["gamma"]
            self._scored[place].append(fit.scores[self._scoring])
            most = max(map(len, self._scored.values()))
            means = {k: np.mean(v) for k, v in self._scored.items() if len(v) == most}
            C, gamma = max(means, key=lambda k: means[k])
            self._best = {"best_C": C, "best_gamma": gamma, "best_score": float(means[C, gamma])}
