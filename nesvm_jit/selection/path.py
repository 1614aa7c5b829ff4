"""`nesvm_jit.path`: cross-validation along C, and the machine refitted with the best."""

import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import report
from ..errors import InputError
from ..kernelised import gamma_of, shared_matrix
from ..machine.folds import stratified_folds
from ..machine.multiclass import class_order
from ..machine.train import Job, is_small, problems_of, train
from ..matrix import Matrix, as_matrix, as_vector, shape
from ..nystroem import nystroem
from ..settings import Settings, one_of
from .columns import Column, folds_together
from .grid import cost_grid, gamma_grid
from .result import RULES, PathResult
from .schedule import run_chains
from .scores import SCORES, all_scores
from .stage import Fit, Stage
from .state import IRRELEVANT, State, key_of

COSTS = "1e-3:1e3:7"  # the seven of the paper


def path(
    X: Any,
    y: Any,
    costs: Any = COSTS,
    gammas: Any = None,
    folds: int = 5,
    repeats: int = 1,
    *,
    scoring: str = "accuracy",
    rule: str = "best",
    refit: bool = True,
    test: tuple[Any, Any] | None = None,
    seed: int = 0,
    model: str = "csvm",
    kernel: str = "linear",
    multiclass: str | None = None,
    sample_weight: Any = None,
    class_weight: Mapping[float, float] | str | None = None,
    state: Any = None,
    callback: Callable[[dict], object] | None = None,
    **settings: Any,
) -> PathResult:
    """Cross-validate every C (and γ), choose by `scoring` and `rule`, refit on all rows.

    costs and gammas are sequences or text: "1e-3:1e3:7" is 7 values in equal ratios, "0.1,1" these
    two. Folds are stratified and drawn by `seed`, those of the next repeat by the seed after it.
    scoring: accuracy, balanced_accuracy, f1 or auc. rule: "best", or "one_se", the smallest C whose
    mean score is within one standard error of the best. `test` is a pair (X, y) that the machine is
    scored on. `state` names a file that keeps finished columns, for the same call to go on after an
    interruption; it is removed at the end. `callback` is called every round with a dict, and a true
    answer, like Ctrl-C, ends the path with KeyboardInterrupt. The other settings are those of
    `nesvm_jit.train`; every fit goes to the certified gap `tol`.
    """
    began = time.perf_counter()
    for name, value, allowed in (("scoring", scoring, SCORES), ("rule", rule, RULES)):
        one_of(name, value, allowed)
    if "C" in settings or "gamma" in settings or "probability" in settings:
        name = next(k for k in ("C", "gamma", "probability") if k in settings)
        instead = {"C": "costs", "gamma": "gammas"}.get(name, "train on the chosen C")
        raise InputError(f"path takes no {name}; use {instead}")
    grid = cost_grid(costs)
    checked = Settings(
        model, kernel, C=grid[-1], seed=seed, gamma=None, callback=callback, **settings
    )
    X = as_matrix(X)
    data = _Data.of(X, y, kernel, multiclass, sample_weight, class_weight)
    splits = np.stack([stratified_folds(data.y, folds, seed + r) for r in range(_count(repeats))])
    search = _Search(data, grid, _gammas(gammas, kernel, X), splits, checked, scoring)
    stored = State() if state is None else State(os.fspath(state), search.key())
    fits = search.run(stored)
    result = PathResult(
        np.array(grid),
        search.gammas,
        fits,
        checked,
        data.order,
        shape(X),
        splits,
        scoring,
        rule,
        seed,
        seconds={"fits": time.perf_counter() - began},
        resumed=stored.resumed,
        ignored=stored.ignored,
    )
    if refit:
        _refit(result, data, multiclass, settings)
        if test is not None:
            result.test = judge(result.machine, *test)
    result.seconds["total"] = time.perf_counter() - began
    stored.forget()
    return result


@dataclass(frozen=True)
class _Data:
    """The rows, checked once."""

    X: Matrix
    y: np.ndarray
    order: np.ndarray
    how: str
    sample_weight: np.ndarray | None
    class_weight: Any

    @staticmethod
    def of(X: Matrix, y, kernel: str, multiclass, sample_weight, class_weight) -> "_Data":
        n, p = shape(X)
        y = as_vector("y", y, n)
        if kernel == "precomputed" and n != p:
            raise InputError(f"a precomputed kernel must be square, got {n} rows and {p} columns")
        order = class_order(y)
        if len(order) < 2:
            got = f"only {order[0]:g}" if len(order) else "no rows"
            raise InputError(f"y must hold at least 2 classes, got {got}")
        how = multiclass or ("ovr" if kernel == "linear" else "ovo")
        one_of("multiclass", how, ("ovo", "ovr"))
        weight = None if sample_weight is None else as_vector("sample_weight", sample_weight, n)
        class_weight = dict(class_weight) if isinstance(class_weight, Mapping) else class_weight
        return _Data(X, y, order, how, weight, class_weight)


class _Search:
    """All columns, γ by γ, and what is known of them so far."""

    def __init__(
        self, data: _Data, costs, gammas, splits: np.ndarray, settings: Settings, scoring: str
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
        settings = replace(self.settings, gamma=gamma, callback=None)
        X, shared = data.X, None
        if settings.approx is not None:
            X = nystroem(X, settings).features
            settings = replace(settings, kernel="linear", approx=None, gamma=None)
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


def _refit(result: PathResult, data: _Data, multiclass, settings: dict) -> None:
    """The machine of the C and γ chosen, on all rows."""
    began = time.perf_counter()
    asked, chosen = result.settings, result.chosen
    weights = {"sample_weight": data.sample_weight, "class_weight": data.class_weight}
    result.machine = train(
        data.X,
        data.y,
        asked.model,
        asked.kernel,
        chosen.C,
        gamma=chosen.gamma,
        multiclass=multiclass,
        seed=result.seed,
        callback=asked.callback,
        **weights,
        **settings,
    )
    seconds = time.perf_counter() - began
    result.seconds["refit"] = seconds
    result.refit = report.training(result.machine, asked.solver, {"solve": seconds})
    if result.refit["status"] == "interrupted":
        raise KeyboardInterrupt


def judge(machine, X: Any, y: Any) -> dict[str, Any]:
    """The four scores of a machine on rows with labels."""
    X = as_matrix(X)
    y = as_vector("y", y, shape(X)[0])
    found = all_scores(y, machine.scores(X), machine.classes, machine.record.multiclass)
    return {"n_samples": len(y), **found}


def _gammas(gammas: Any, kernel: str, X: Matrix) -> list[float | None]:
    """γ as numbers; None for kernels that have none."""
    if kernel not in ("poly", "rbf"):
        if gammas is not None:
            raise InputError(f"gammas are for poly and rbf kernels, got kernel {kernel!r}")
        return [None]
    given = [None] if gammas is None else gamma_grid(gammas)
    return list(dict.fromkeys(gamma_of(gamma, X) for gamma in given))


def _count(repeats: Any) -> int:
    whole = isinstance(repeats, (int, np.integer)) and not isinstance(repeats, bool)
    if not whole or not 1 <= repeats <= 1000:
        raise InputError(f"repeats must be a whole number from 1 to 1000, got {repeats!r:.60}")
    return int(repeats)
