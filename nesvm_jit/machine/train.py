"""`nesvm_jit.train`: any labels, any number of classes, weights and probabilities."""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..binary.costs import costs
from ..binary.kernel import solve_kernel
from ..binary.kernel_matrix import SharedMatrix, budget_bytes, gamma_of, shared_matrix
from ..binary.nystroem import nystroem
from ..binary.solution import Solution
from ..binary.solve import solve_checked
from ..binary.start import Start
from ..checkpoint.checkpoint import Checkpoint
from ..checkpoint.fingerprint import data_of, opened
from ..errors import InputError
from ..files.ondisk.matrix import OnDisk, extent
from ..jit import get_threads, one_blas_thread
from ..matrix.checks import as_matrix, as_vector, square_kernel
from ..matrix.matrix import Csr, Matrix, shape
from ..matrix.rows import as_scipy, take_rows
from ..problems.kernel_rows import KernelRows
from ..settings import MULTICLASS, Settings, one_of
from .assembled import Found, Problem, approximate_machine, machine_of
from .calibration import fit_sigmoid
from .finished import finished
from .folds import stratified_folds
from .machine import Machine
from .multiclass import class_order, pairs
from .parallel import run_all
from .streamed import train_streamed

CALIBRATION_FOLDS = 5  # as in LIBSVM
SMALL_CELLS = 200_000  # of an average sub-problem: the pairs of scene15 take 0.15 s, in threads 0.2


def train(
    X: Any,
    y: Any = None,
    model: str = "csvm",
    kernel: str = "linear",
    C: float = 1.0,
    bias: bool = True,
    solver: str = "auto",
    tol: float = 1e-3,
    *,
    multiclass: str | None = None,
    probability: bool = False,
    sample_weight: Any = None,
    class_weight: Mapping[float, float] | str | None = None,
    classes: Any = None,
    seed: int = 0,
    warm: Machine | None = None,
    keep_duals: bool = False,
    keep_solutions: bool = False,
    **settings: Any,
) -> Machine:
    """A machine for labels of any value and any number of classes.

    multiclass: "ovo" one problem per pair of classes (the default with a kernel), "ovr" one per
    class (the default without). probability: calibrate by Platt's sigmoid on cross-validated
    scores, folds drawn by `seed`. class_weight maps labels to weights, or "balanced". `classes`
    fixes the order of the classes, else it is LIBSVM's. `warm` is a linear machine of the same
    shape to start from; one that was trained with `keep_duals` on the same rows saves the most.
    `keep_solutions` keeps what every sub-problem went through, for pictures of it. The other
    settings are those of `nesvm_jit.Settings`. X may be an on-disk matrix, which has labels of its
    own and is read again in every pass.
    """
    checked = Settings(model, kernel, C, bias, solver, tol, seed=seed, **settings)
    if isinstance(X, OnDisk):
        given = {
            "y": y is not None,
            "probability": probability,
            "sample_weight": sample_weight is not None,
            "classes": classes is not None,
            "warm": warm is not None,
            "keep_duals": keep_duals,
            "keep_solutions": keep_solutions,
        }
        for name in (name for name, value in given.items() if value):
            raise InputError(f"{name} is for rows in memory, X is on disk")
        return train_streamed(X, checked, multiclass, class_weight)
    X = as_matrix(X, borrow=True)
    n, p = shape(X)
    y = as_vector("y", y, n)
    if kernel == "precomputed":
        square_kernel(n, p)
    if kernel in ("poly", "rbf"):  # one γ for all sub-problems, whatever rows they have
        checked = checked.derive(gamma=gamma_of(checked.gamma, X))
    order = class_order(y) if classes is None else as_vector("classes", classes)
    if classes is not None and not np.array_equal(np.sort(order), np.unique(y)):
        raise InputError(f"classes must be the labels in y, each once, got {classes!r:.60}")
    if len(order) < 2:
        got = f"only {order[0]:g}" if len(order) else "no rows"
        raise InputError(f"y must hold at least 2 classes, got {got}")
    how = multiclass or ("ovr" if kernel == "linear" else "ovo")
    one_of("multiclass", how, MULTICLASS)
    c = costs(C, y, order, sample_weight, class_weight)
    problems = problems_of(y, order, how)
    _check_warm(warm, kernel, p, len(problems), order)
    data = partial(data_of, X, y, c, order, *_arrays(warm))
    with opened(checked, data, multiclass=how, probability=bool(probability)) as checkpoint:
        job = Job(X, y, c, order, checked, bool(probability), seed, checkpoint=checkpoint)
        return _trained(job, how, problems, warm, keep_duals, keep_solutions)


def _trained(
    job: "Job",
    how: str,
    problems: list[Problem],
    warm: Machine | None,
    keep_duals: bool,
    keep_solutions: bool,
) -> Machine:
    checked, X, y, order = job.settings, job.X, job.y, job.order
    if checked.approx is not None:
        marks, features = nystroem(X, checked)
        plain = checked.derive(kernel="linear", approx=None, landmarks=None)
        found = replace(job, X=features, settings=plain).run(problems, None)
        machine = approximate_machine(checked, order, how, found, marks, y[marks.numbers])
        machine.solutions = found if keep_solutions else None
        return machine
    several = len(problems) > 1 or job.probability
    if several and checked.kernel in ("poly", "rbf") and checked.model != "lpsvm":
        in_pairs = problems[0].rows is not None
        by_class = np.concatenate([np.flatnonzero(y == k) for k in order]) if in_pairs else None
        job = replace(job, shared=shared_matrix(X, checked, by_class))
    found = job.run(problems, warm)
    machine = machine_of(X, y, order, checked, how, found)
    if keep_duals:
        machine.duals = [f.solution.alpha / checked.C for f in found]
    machine.solutions = found if keep_solutions else None
    return machine


def is_small(X: Matrix | OnDisk, problems: list[Problem]) -> bool:
    """Whether the sub-problems are so small that threads would not pay."""
    n, p = extent(X)
    rows = sum(n if problem.rows is None else len(problem.rows) for problem in problems)
    return rows / len(problems) * min(n, p) < SMALL_CELLS


def problems_of(y: np.ndarray, order: np.ndarray, how: str) -> list[Problem]:
    """A problem for two classes; of more one per pair, or one per class."""
    k = len(order)
    if k == 2:
        return [Problem(0, 1, None)]
    if how == "ovr":
        return [Problem(i, None, None) for i in range(k)]
    members = [np.flatnonzero(y == label) for label in order]
    return [Problem(i, j, np.concatenate([members[i], members[j]])) for i, j in pairs(k)]


@dataclass(frozen=True)
class Posed:
    """The rows of a sub-problem with their signs, and their kernel matrix where it is there."""

    X: Matrix
    sign: np.ndarray
    kernel_rows: KernelRows | None = None

    def missing(self, c: np.ndarray) -> float | None:
        """The sign that no row of positive cost has."""
        return next((side for side in (1.0, -1.0) if not c[self.sign == side].any()), None)

    def fit(self, c: np.ndarray, settings: Settings, start: Start) -> Solution:
        """The solution for these costs; a row that costs nothing is left out, its margin known."""
        if self.kernel_rows is None:
            return solve_checked(self.X, self.sign, c, settings, start)
        with one_blas_thread():
            return solve_kernel(self.X, self.sign, c, settings, self.kernel_rows, start.alpha0)


@dataclass(frozen=True)
class Job:
    """What all sub-problems share."""

    X: Matrix
    y: np.ndarray
    c: np.ndarray
    order: np.ndarray
    settings: Settings
    probability: bool
    seed: int
    shared: SharedMatrix | None = None
    checkpoint: Checkpoint | None = None

    def run(self, problems: list[Problem], warm: Machine | None) -> list[Found]:
        stop = threading.Event()
        started = time.perf_counter()
        workers = len(problems)

        def task(number: int):
            start = _start(warm, number, problems[number], self)
            if self.checkpoint is not None:
                return self._kept(problems[number], number, workers, start, stop)
            settings = self._settings_of(number, workers, time.perf_counter() - started, stop)
            return self._solve(problems[number], settings, start, stop)

        small = is_small(self.X, problems)
        return run_all([partial(task, k) for k in range(workers)], stop, small)

    def _kept(self, problem: Problem, number: int, of: int, start: Start, stop) -> Found:
        """What the checkpoint has of a sub-problem, or what it then keeps."""
        assert self.checkpoint is not None
        known = self.checkpoint.done(number)
        if known is not None:
            solution, sigmoid = Solution(**known["solution"]), known["sigmoid"]
            c = self.c if problem.rows is None else self.c[problem.rows]
            return Found(problem, solution, c, known["seconds"], sigmoid and tuple(sigmoid))
        slot = self.checkpoint.slot(number)
        settings = self._settings_of(number, of, slot.began, stop)
        found = self._solve(problem, settings, replace(start, slot=slot), stop)
        seconds = time.perf_counter() - self.checkpoint.started - slot.began
        if finished(found.solution) and not stop.is_set():  # which may have cut calibration short
            facts = {"solution": vars(found.solution), "sigmoid": found.sigmoid}
            self.checkpoint.finish(number, {**facts, "seconds": seconds})
        return replace(found, seconds=seconds)

    def _settings_of(self, number: int, of: int, spent: float, stop) -> Settings:
        settings, callback = _less(self.settings, spent), self.settings.callback

        def watched(row: dict) -> bool:
            if callback is not None and callback({**row, "problem": number, "problems": of}):
                stop.set()
            return stop.is_set()

        workers = min(get_threads(), of)
        share = budget_bytes(settings.cache_mb) / 2.0**20 / workers
        return settings.derive(callback=watched, cache_mb=share)

    def part(self, problem: Problem) -> "Posed":
        """The rows of a sub-problem, ready to be fitted at any cost."""
        rows = problem.rows
        y, X = self.y, self.X
        if rows is not None:
            y = y[rows]
            X = X if self.shared else _subset(X, rows, self.settings.kernel)
        sign = np.where(y == self.order[problem.i], 1.0, -1.0)
        return Posed(X, sign, self.shared.rows(rows) if self.shared else None)

    def _solve(self, problem: Problem, settings: Settings, start: Start, stop) -> Found:
        began = time.perf_counter()
        part = self.part(problem)
        c = self.c if problem.rows is None else self.c[problem.rows]
        missing = part.missing(c)
        if missing is not None:
            name = f"{self.order[problem.i]:g}" if missing > 0 else _other(self.order, problem)
            raise InputError(f"class {name} must have a row of positive weight")
        solution = part.fit(c, settings, start)
        if solution.status == "interrupted":
            stop.set()
        sigmoid = None
        if self.probability:
            sigmoid = self._calibrate(part, c, _remaining(settings, began), solution)
        return Found(problem, solution, c, time.perf_counter() - began, sigmoid)

    def _calibrate(self, part: "Posed", c, settings: Settings, solution: Solution):
        """Platt's sigmoid on the scores that rows get from machines trained without them."""
        sign, used = part.sign, c > 0.0
        folds = np.full(len(sign), -1)
        n_folds = min(CALIBRATION_FOLDS, int(used.sum()))
        folds[used] = stratified_folds(sign[used], n_folds, self.seed)
        scores = np.zeros(len(sign))
        began = time.perf_counter()
        for k in range(n_folds):
            out, c_k = folds == k, np.where(folds == k, 0.0, c)
            missing = part.missing(c_k)
            if missing is not None:
                scores[out] = -missing
                continue
            start = Start(solution.w, solution.b, alpha0=solution.alpha)
            fit = part.fit(c_k, _remaining(settings, began), start)
            scores[out] = fit.margins[out]
        return fit_sigmoid(scores[used], sign[used] > 0)


def _remaining(settings: Settings, began: float) -> Settings:
    """Settings with what is left of the time limit."""
    return _less(settings, time.perf_counter() - began)


def _less(settings: Settings, seconds: float) -> Settings:
    if settings.time_limit is None:
        return settings
    return settings.derive(time_limit=max(0.0, settings.time_limit - seconds))


def _other(order: np.ndarray, problem: Problem) -> str:
    return "(all others)" if problem.j is None else f"{order[problem.j]:g}"


def _subset(X: Matrix, rows: np.ndarray, kernel: str) -> Matrix:
    if kernel != "precomputed":
        return take_rows(X, rows)
    dense = as_scipy(X).toarray() if isinstance(X, Csr) else X
    return as_matrix(dense[np.ix_(rows, rows)])


def _check_warm(warm, kernel: str, p: int, n_problems: int, order: np.ndarray) -> None:
    if not isinstance(warm, (Machine, type(None))):
        raise InputError(f"warm must be a Machine, got {warm!r:.60}")
    if warm is None:
        return
    if kernel != "linear" or warm.record.weights is None:
        raise InputError(
            "only a linear machine can start from another one, which must be linear too"
        )
    if warm.record.weights.shape != (p, n_problems):
        features, problems = warm.record.weights.shape
        raise InputError(
            f"the machine to start from must have {p} features and {n_problems} problems, "
            f"got {features} and {problems}"
        )
    if not np.array_equal(warm.classes, order):
        raise InputError(
            f"the machine to start from must have the classes {order.tolist()!s:.60} in this "
            f"order, got {warm.classes.tolist()!s:.60}"
        )


def _arrays(warm: Machine | None) -> list[np.ndarray]:
    """What of a machine to start from matters."""
    if warm is None or warm.record.weights is None:
        return []
    return [warm.record.weights, warm.record.bias, *(warm.duals or [])]


def _start(warm: Machine | None, number: int, problem: Problem, job: Job) -> Start:
    """Where that machine ended, for costs C times as large."""
    if warm is None or warm.record.weights is None:
        return Start()
    start = Start(warm.record.weights[:, number], float(warm.record.bias[number]))
    n = len(job.y) if problem.rows is None else len(problem.rows)
    if warm.duals is None or len(warm.duals[number]) != n:
        return start
    return replace(start, alpha0=job.settings.C * warm.duals[number])
