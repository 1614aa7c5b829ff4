"""`nesvm_jit.train`: any labels, any number of classes, weights and probabilities."""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from .. import __version__
from ..binary import Solution, Start, costs, solve_checked
from ..checkpoint import Checkpoint
from ..errors import InputError
from ..files.ondisk import OnDisk
from ..files.record import ModelRecord
from ..jit import get_threads, one_blas_thread
from ..kept import checksums, matrix_checksum, opened
from ..kernelised import SharedMatrix, budget_bytes, gamma_of, shared_matrix, solve_kernel
from ..matrix import Csr, Matrix, as_matrix, as_scipy, as_vector, shape, take_rows
from ..models.kernel_rows import KernelRows
from ..nystroem import Landmarks, nystroem
from ..settings import Settings, one_of
from .calibration import fit_sigmoid
from .finished import finished, solution_again, solution_facts
from .folds import stratified_folds
from .machine import Machine
from .multiclass import class_order, pairs
from .parallel import run_all
from .streamed import class_costs, train_streamed

CALIBRATION_FOLDS = 5  # as in LIBSVM
SMALL_CELLS = 200_000  # of an average sub-problem: the pairs of scene15 take 0.15 s, in threads 0.2


@dataclass(frozen=True)
class Problem:
    """A binary sub-problem: class i against class j, or against the rest where j is None."""

    i: int
    j: int | None
    rows: np.ndarray | None  # None for all


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
    **settings: Any,
) -> Machine:
    """A machine for labels of any value and any number of classes.

    multiclass: "ovo" one problem per pair of classes (the default with a kernel), "ovr" one per
    class (the default without). probability: calibrate by Platt's sigmoid on cross-validated
    scores, folds drawn by `seed`. class_weight maps labels to weights, or "balanced". `classes`
    fixes the order of the classes, else it is LIBSVM's. `warm` is a linear machine of the same
    shape to start from; one that was trained with `keep_duals` on the same rows saves the most.
    The other settings are those of `nesvm_jit.Settings`. X may be an on-disk matrix, which has
    labels of its own and is read again in every pass.
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
        }
        for name in (name for name, value in given.items() if value):
            raise InputError(f"{name} is for rows in memory, X is on disk")
        return train_streamed(X, checked, multiclass, partial(class_costs, C, class_weight))
    X = as_matrix(X)
    n, p = shape(X)
    y = as_vector("y", y, n)
    if kernel == "precomputed" and n != p:
        raise InputError(f"a precomputed kernel must be square, got {n} rows and {p} columns")
    if kernel in ("poly", "rbf"):  # one γ for all sub-problems, whatever rows they have
        checked = replace(checked, gamma=gamma_of(checked.gamma, X))
    order = class_order(y) if classes is None else as_vector("classes", classes)
    if classes is not None and not np.array_equal(np.sort(order), np.unique(y)):
        raise InputError(f"classes must be the labels in y, each once, got {classes!r:.60}")
    if len(order) < 2:
        got = f"only {order[0]:g}" if len(order) else "no rows"
        raise InputError(f"y must hold at least 2 classes, got {got}")
    how = multiclass or ("ovr" if kernel == "linear" else "ovo")
    one_of("multiclass", how, ("ovo", "ovr"))
    c = costs(C, y, order, sample_weight, class_weight)
    problems = _problems(y, order, how)
    _check_warm(warm, kernel, p, len(problems), order)
    data = partial(_data_of, X, y, c, order, warm)
    with opened(checked, data, multiclass=how, probability=bool(probability)) as checkpoint:
        job = _Job(X, y, c, order, checked, bool(probability), seed, checkpoint=checkpoint)
        return _trained(job, how, problems, warm, keep_duals)


def _data_of(X: Matrix, y, c, order: np.ndarray, warm: Machine | None) -> list:
    """Checksums of all that the result depends on, beside the settings."""
    facts = [matrix_checksum(X), *checksums(y, c, order)]
    if warm is not None:
        facts += checksums(warm.record.weights, warm.record.bias, *(warm.duals or []))
    return facts


def _trained(
    job: "_Job", how: str, problems: list[Problem], warm: Machine | None, keep_duals: bool
) -> Machine:
    checked, X, y, order = job.settings, job.X, job.y, job.order
    if checked.approx is not None:
        marks, features = nystroem(X, checked)
        plain = replace(checked, kernel="linear", approx=None, landmarks=None)
        found = replace(job, X=features, settings=plain).run(problems, None)
        return _approximate_machine(checked, order, how, found, marks, y[marks.numbers])
    several = len(problems) > 1 or job.probability
    if several and checked.kernel in ("poly", "rbf") and checked.model != "lpsvm":
        in_pairs = problems[0].rows is not None
        by_class = np.concatenate([np.flatnonzero(y == k) for k in order]) if in_pairs else None
        job = replace(job, shared=shared_matrix(X, checked, by_class))
    found = job.run(problems, warm)
    machine = _machine(job, how, found)
    if keep_duals:
        machine.duals = [f.solution.alpha / checked.C for f in found]
    return machine


def _problems(y: np.ndarray, order: np.ndarray, how: str) -> list[Problem]:
    k = len(order)
    if k == 2:
        return [Problem(0, 1, None)]
    if how == "ovr":
        return [Problem(i, None, None) for i in range(k)]
    members = [np.flatnonzero(y == label) for label in order]
    return [Problem(i, j, np.concatenate([members[i], members[j]])) for i, j in pairs(k)]


@dataclass(frozen=True)
class Found:
    """A solved sub-problem."""

    problem: Problem
    solution: Solution
    seconds: float
    sigmoid: tuple[float, float] | None


@dataclass(frozen=True)
class _Job:
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

        n, p = shape(self.X)
        rows = sum(n if problem.rows is None else len(problem.rows) for problem in problems)
        small = rows / workers * min(n, p) < SMALL_CELLS
        return run_all([partial(task, k) for k in range(workers)], stop, small)

    def _kept(self, problem: Problem, number: int, of: int, start: Start, stop) -> Found:
        """What the checkpoint has of a sub-problem, or what it then keeps."""
        assert self.checkpoint is not None
        known = self.checkpoint.done(number)
        if known is not None:
            sigmoid = known["sigmoid"] and tuple(known["sigmoid"])
            return Found(problem, solution_again(known["solution"]), known["seconds"], sigmoid)
        slot = self.checkpoint.slot(number)
        settings = self._settings_of(number, of, slot.began, stop)
        found = self._solve(problem, settings, replace(start, slot=slot), stop)
        seconds = time.perf_counter() - self.checkpoint.started - slot.began
        if finished(found.solution) and not stop.is_set():  # which may have cut calibration short
            facts = {"seconds": seconds, "sigmoid": found.sigmoid}
            self.checkpoint.finish(number, {"solution": solution_facts(found.solution), **facts})
        return replace(found, seconds=seconds)

    def _settings_of(self, number: int, of: int, spent: float, stop) -> Settings:
        settings, callback = _less(self.settings, spent), self.settings.callback

        def watched(row: dict) -> bool:
            if callback is not None and callback({**row, "problem": number, "problems": of}):
                stop.set()
            return stop.is_set()

        workers = min(get_threads(), of)
        share = budget_bytes(settings.cache_mb) / 2.0**20 / workers
        return replace(settings, callback=watched, cache_mb=share)

    def _solve(self, problem: Problem, settings: Settings, start: Start, stop) -> Found:
        began = time.perf_counter()
        rows = problem.rows
        X, y, c = self.X, self.y, self.c
        if rows is not None:
            y, c = y[rows], c[rows]
            X = X if self.shared else _subset(X, rows, settings.kernel)
        solver = partial(self._fit, X, self._kernel_rows(rows))
        sign = np.where(y == self.order[problem.i], 1.0, -1.0)
        for side in (1.0, -1.0):
            if not c[sign == side].any():
                name = f"{self.order[problem.i]:g}" if side > 0 else _other(self.order, problem)
                raise InputError(f"class {name} must have a row of positive weight")
        solution = solver(sign, c, settings, start)
        if solution.status == "interrupted":
            stop.set()
        sigmoid = None
        if self.probability:
            sigmoid = self._calibrate(solver, sign, c, _remaining(settings, began), solution)
        return Found(problem, solution, time.perf_counter() - began, sigmoid)

    def _kernel_rows(self, rows: np.ndarray | None) -> KernelRows | None:
        """The part of the shared kernel matrix that belongs to these rows."""
        if self.shared is None:
            return None
        return self.shared.rows(rows)

    def _fit(self, X, kernel_rows, sign, c, settings: Settings, start: Start) -> Solution:
        if kernel_rows is None:
            return solve_checked(X, sign, c, settings, start)
        with one_blas_thread():
            return solve_kernel(X, sign, c, settings, kernel_rows)

    def _calibrate(self, solver, sign, c, settings: Settings, solution: Solution):
        """Platt's sigmoid on the scores that rows get from machines trained without them."""
        used = c > 0.0
        folds = np.full(len(sign), -1)
        n_folds = min(CALIBRATION_FOLDS, int(used.sum()))
        folds[used] = stratified_folds(sign[used], n_folds, self.seed)
        scores = np.zeros(len(sign))
        began = time.perf_counter()
        for k in range(n_folds):
            out, c_k = folds == k, np.where(folds == k, 0.0, c)
            left = {side: c_k[sign == side].any() for side in (1.0, -1.0)}
            if not all(left.values()):
                scores[out] = 1.0 if left[1.0] else -1.0
                continue
            start = Start(solution.w, solution.b, alpha0=solution.alpha)
            fit = solver(sign, c_k, _remaining(settings, began), start)
            scores[out] = fit.margins[out]
        return fit_sigmoid(scores[used], sign[used] > 0)


def _remaining(settings: Settings, began: float) -> Settings:
    """Settings with what is left of the time limit."""
    return _less(settings, time.perf_counter() - began)


def _less(settings: Settings, seconds: float) -> Settings:
    if settings.time_limit is None:
        return settings
    return replace(settings, time_limit=max(0.0, settings.time_limit - seconds))


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


def _start(warm: Machine | None, number: int, problem: Problem, job: _Job) -> Start:
    """Where that machine ended, for costs C times as large."""
    if warm is None or warm.record.weights is None:
        return Start()
    start = Start(warm.record.weights[:, number], float(warm.record.bias[number]))
    n = len(job.y) if problem.rows is None else len(problem.rows)
    if warm.duals is None or len(warm.duals[number]) != n:
        return start
    return replace(start, alpha0=job.settings.C * warm.duals[number])


def linear_machine(
    settings: Settings, order: np.ndarray, n_features: int, solutions: list[Solution]
) -> Machine:
    """A machine of problems solved elsewhere: the only one of two classes, or one per class."""
    found = _found(solutions)
    weights = np.array([s.w for s in solutions]).T
    common = _common(settings, order, n_features, "ovr", found)
    return Machine(ModelRecord(weights=weights, **common))


def _found(solutions: list[Solution]) -> list[Found]:
    other = 1 if len(solutions) == 1 else None
    return [
        Found(Problem(i, other, None), s, float(s.history["seconds"][-1]), None)
        for i, s in enumerate(solutions)
    ]


def _common(
    settings: Settings, order: np.ndarray, n_features: int, how: str, found: list[Found]
) -> dict[str, Any]:
    """What machines of every kind have."""
    common: dict[str, Any] = {
        "classes": order,
        "n_features": n_features,
        "bias": [f.solution.b for f in found],
        "multiclass": how,
        "model": settings.model,
        "kernel": settings.kernel,
        "extra": _facts(settings, order, found),
    }
    sigmoids = [f.sigmoid for f in found if f.sigmoid is not None]
    if sigmoids:
        A, B = zip(*sigmoids, strict=True)
        common["probability"] = (np.array(A), np.array(B))
    return common


def _machine(job: _Job, how: str, found: list[Found]) -> Machine:
    settings = job.settings
    common = _common(settings, job.order, shape(job.X)[1], how, found)
    if settings.kernel == "linear":
        weights = np.array([f.solution.w for f in found]).T
        return Machine(ModelRecord(weights=weights, **common))
    beta = np.zeros((len(job.y), len(found)))
    for k, f in enumerate(found):
        rows = slice(None) if f.problem.rows is None else f.problem.rows
        beta[rows, k] = f.solution.beta
    used = np.flatnonzero((beta != 0.0).any(axis=1))
    return _kernel_machine(job.X, job.y, job.order, used, beta[used], common, settings)


def _kernel_machine(
    X: Matrix, y: np.ndarray, order: np.ndarray, used: np.ndarray, coefs, common: dict, settings
) -> Machine:
    """A machine whose support vectors are the rows `used`, by class as LIBSVM keeps them."""
    sv_class = np.argmax(y[used][:, None] == order[None, :], axis=1)
    by_class = np.argsort(sv_class, kind="stable")
    used = used[by_class]
    common |= {"coefs": coefs[by_class], "sv_class": sv_class[by_class]}
    if settings.kernel == "precomputed":
        return Machine(ModelRecord(support_index=used, **common), used)
    kernel: dict[str, Any] = {k: getattr(settings, k) for k in ("gamma", "coef0", "degree")}
    return Machine(ModelRecord(support=_packed(take_rows(X, used)), **common, **kernel), used)


def _packed(X: Matrix) -> csr_matrix:
    """X in float64 as CSR without zeros; scipy takes three times as long for dense rows."""
    if isinstance(X, Csr):
        out = as_scipy(X).astype(np.float64)
        out.eliminate_zeros()
        return out
    filled = X != 0.0
    starts = np.append(0, np.cumsum(np.count_nonzero(filled, axis=1)))
    return csr_matrix((X[filled].astype(np.float64), np.nonzero(filled)[1], starts), shape(X))


def machine_of_landmarks(
    settings: Settings,
    order: np.ndarray,
    marks: Landmarks,
    labels: np.ndarray,
    solutions: list[Solution],
) -> Machine:
    """A machine of problems solved on the features of landmarks that have these labels."""
    found = _found(solutions)
    return _approximate_machine(settings, order, "ovr", found, marks, labels)


def _approximate_machine(
    settings: Settings,
    order: np.ndarray,
    how: str,
    found: list[Found],
    marks: Landmarks,
    labels: np.ndarray,
) -> Machine:
    """The landmarks as support vectors of a machine that was trained as a linear one."""
    common = _common(settings, order, shape(marks.L)[1], how, found)
    common["extra"]["approx"] = {"kind": "nystroem", "landmarks": len(marks.numbers)}
    weights = np.array([f.solution.w for f in found])
    coefs = marks.coefficients(weights.T)
    machine = _kernel_machine(
        marks.L, labels, order, np.arange(len(labels)), coefs, common, settings
    )
    machine.support_rows = marks.numbers[machine.support_rows]
    return machine


def _facts(settings: Settings, order: np.ndarray, found: list[Found]) -> dict[str, Any]:
    rows_of = (f.problem.rows for f in found if f.problem.rows is not None)
    n = max((1 + int(rows.max()) for rows in rows_of), default=len(found[0].solution.alpha))
    support = np.zeros(n, dtype=bool)
    for f in found:
        rows = slice(None) if f.problem.rows is None else f.problem.rows
        support[rows] |= f.solution.alpha != 0.0
    return {
        "program": f"nesvm-jit {__version__}",
        "C": float(settings.C),
        "bias": bool(settings.bias),
        "tol": float(settings.tol),
        "solver": settings.solver,
        "n_samples": n,
        "n_support": int(support.sum()),
        "problems": [_certificate(order, f) for f in found],
    }


def _certificate(order: np.ndarray, f: Found) -> dict[str, Any]:
    s = f.solution
    sides = [float(order[f.problem.i])]
    sides += [] if f.problem.j is None else [float(order[f.problem.j])]
    return {
        "classes": sides,
        "n_samples": len(s.alpha),
        "objective": s.objective,
        "dual_objective": s.dual_objective,
        "gap": s.gap,
        "certified": s.certified,
        "iterations": s.n_iter,
        "status": s.status,
        "solver": s.solver,
        "why": s.why,
        "n_support": int(np.count_nonzero(s.alpha)),
        "seconds": round(f.seconds, 6),
    }
