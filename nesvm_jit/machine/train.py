"""`nesvm_jit.train`: any labels, any number of classes, weights and probabilities."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import Any, ParamSpec

import numpy as np

from ..binary.costs import costs
from ..binary.finish import untrained
from ..binary.kernel_matrix import budget_bytes
from ..binary.nystroem import Landmarks
from ..binary.small import SmallFit
from ..binary.solution import Solution, with_history
from ..binary.solve import solve_checked
from ..binary.start import Start
from ..checkpoint.fingerprint import data_fingerprint
from ..clock import watching
from ..endings import outcomes_of, warn_uncertified
from ..errors import InputError
from ..files.ondisk.matrix import OnDisk
from ..jit import get_threads, interpreted_first
from ..matrix.checks import as_matrix
from ..settings import HALF_SQUARE, Settings
from .assembled import Found, approximate_machine, machine_of, note_weights
from .calibration import fit_sigmoid
from .folds import fit_folds, stratified_folds
from .jobs import Job, Posed, make_job
from .machine import Machine
from .parallel import run_all
from .session import MATRIX_SHARE, Session
from .small import fit_small
from .streamed import train_streamed
from .warm import check_warm, warm_arrays, warm_starts

CALIBRATION_FOLDS = 5  # as in LIBSVM

Arguments = ParamSpec("Arguments")


def _telling(train: Callable[Arguments, Machine]) -> Callable[Arguments, Machine]:
    """The same, with a warning where the tolerance is not certified."""

    @wraps(train)
    def told(*args: Arguments.args, **given: Arguments.kwargs) -> Machine:
        machine = train(*args, **given)
        facts = machine.record.extra
        warn_uncertified(outcomes_of(facts["problems"]), facts["tol"])
        return machine

    return told


@_telling
@interpreted_first
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
    session = Session(checked)
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
        return train_streamed(X, checked, session, multiclass, class_weight)
    job = make_job(as_matrix(X, borrow=True), y, checked, multiclass, classes)
    c = costs(C, job.y, job.classes, sample_weight, class_weight)
    check_warm(warm, job)

    def data() -> list[Any]:
        return data_fingerprint(job.X, job.y, c, job.classes, *warm_arrays(warm))

    facts = {"multiclass": job.multiclass, "probability": bool(probability)}
    with session.saved(job.settings, data, **facts):
        marks, posed, ready = None, job, None
        if checked.approx is not None:
            marks, posed = _approximate(job, session)
        elif warm is None and checked.solver == "auto":
            ready = fit_small(job, c, session)
        share, has_kernel = checked.cache_mb, posed.settings.kernel != "linear"
        unfinished = ready is None or not all(isinstance(r, Solution) for r in ready)
        solves = unfinished or probability  # else memory is not looked at
        if has_kernel and solves and _shares_matrix(job, probability):
            posed = session.within(MATRIX_SHARE, job.share_matrix) or job
        if solves and (has_kernel or share is not None):
            share = budget_bytes(share) / 2.0**20 / min(get_threads(), len(job.problems))
        starts = warm_starts(warm, job)
        training = Training(posed, c, starts, session, bool(probability), share, ready)
        tasks = [partial(training.solve, number) for number in range(len(job.problems))]
        found = run_all(tasks, session.stop, posed.small, posed.tiny)
    machine = machine_of(job, found) if marks is None else approximate_machine(job, found, marks)
    sizes = np.array([np.count_nonzero(job.y == k) for k in job.classes])
    note_weights(machine, class_weight, job.classes, sizes)
    machine.duals = [f.solution.alpha / checked.C for f in found] if keep_duals else None
    if keep_solutions:
        machine.solutions = [replace(f, solution=with_history(f.solution)) for f in found]
    return machine


# For callers that say in their own way what is not certified.
train_silently: Callable[..., Machine] = train.__wrapped__  # type: ignore[attr-defined]


def _approximate(job: Job, session: Session) -> tuple[Landmarks | None, Job]:
    """Landmarks and the job on their features; where there is no time for them, none of the fits is
    begun. Fits that a checkpoint has need them in any case."""
    if session.checkpoint is None:
        return session.within(1.0, job.approximate) or (None, job.unapproximated())
    with watching(asked=session.stop.is_set):
        return job.approximate()


def _shares_matrix(job: Job, probability: bool) -> bool:
    """Whether several fits need the same kernel values."""
    several = len(job.problems) > 1 or probability
    kernel = job.settings.kernel in ("poly", "rbf") and job.settings.approx is None
    return several and kernel and job.settings.model in HALF_SQUARE


@dataclass(frozen=True)
class Training:
    """The sub-problems of a job with the costs of all rows, and where they start."""

    job: Job
    c: np.ndarray
    starts: list[Start]
    session: Session
    probability: bool
    cache_mb: float | None  # for kernel rows of each sub-problem: its share of those side by side
    ready: list[SmallFit] | None = None  # what a compiled call has made of the sub-problems

    def solve(self, number: int) -> Found:
        """Solve a sub-problem, or recall it from the checkpoint, and calibrate it if asked to."""
        job, problem = self.job, self.job.problems[number]
        ready = None if self.ready is None else self.ready[number]
        c = job.costs_of(problem, self.c)
        if isinstance(ready, Solution) and not self.probability:
            return Found(problem, ready, c, self._share(ready), None)
        if ready is None and job.settings.kernel != "linear" and not self.probability:
            ending = self.session.ending(number)
            if ending:
                return Found(problem, untrained(c, job.settings, ending), c, 0.0, None)
        posed = job.pose(problem)
        missing = posed.missing(c)
        if missing is not None:
            name = job.name_side(problem, missing)
            raise InputError(f"class {name} must have a row of positive weight")

        solved = self.session.recall(number, (len(c), job.X.shape[1]))
        if solved is None:
            began, slot = self.session.begin(number)
            if isinstance(ready, Solution):
                solution = ready
            else:
                start = replace(self.starts[number], slot=slot)
                settings, rows = self._limit(number, began), posed.kernel_rows
                solution = solve_checked(posed.X, posed.sign, c, settings, start, rows, ready)
            calibrate = partial(self._calibrate, posed, c, number) if self.probability else None
            solved = self.session.end(number, began, solution, calibrate)
        solution, sigmoid, seconds = solved
        return Found(problem, solution, c, seconds, sigmoid)

    def _share(self, ready: Solution) -> float:
        """The seconds that a sub-problem has taken of a call for all."""
        return float(ready.history["seconds"][-1]) / len(self.job.problems)

    def _limit(self, number: int, began: float | None = None, done: int = 0) -> Settings:
        """The settings of a fit of a sub-problem, which shares the memory with those that run
        beside it, and the time with all that are left; so many of this sub-problem are done."""
        count, settings = len(self.job.problems), self.job.settings
        where = {"problem": number, "problems": count}
        # problems are begun in their order, so many at a time
        workers = 1 if self.job.small else min(get_threads(), count)
        fits = (count - number) * (1 + CALIBRATION_FOLDS * self.probability) - done
        limited = self.session.limit(settings, began, fits / workers, **where)
        return limited.derive(cache_mb=self.cache_mb)

    def _calibrate(
        self, posed: Posed, c: np.ndarray, number: int, solution: Solution
    ) -> tuple[float, float]:
        """Platt's sigmoid on the scores that rows get from machines trained without them."""
        used = c > 0.0
        sign, n_folds = posed.sign, min(CALIBRATION_FOLDS, int(used.sum()))
        folds = np.full(len(sign), -1)
        folds[used] = stratified_folds(sign[used], n_folds, self.job.settings.seed)
        outside = {k: np.where(folds == k, 0.0, c) for k in range(n_folds)}
        start = Start(solution.w, solution.b, alpha0=solution.alpha)
        scores = np.zeros(len(sign))

        def limit(fold: int, i: int) -> Settings:
            return self._limit(number, done=1 + fold)

        for fit in fit_folds(posed, outside, [1.0], limit, start):
            held_out = folds == fit.fold
            s = fit.solution
            scores[held_out] = -fit.missing if s is None else s.margins[held_out]
        return fit_sigmoid(scores[used], sign[used] > 0)
