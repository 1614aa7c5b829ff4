"""A machine on a few rows, for where there is no time for more: it is better than none."""

import time

import numpy as np

from ..clock import Halt, undisturbed
from ..problems.kernel import KernelProblem
from .coarse import run_in_pairs
from .pairwise import begin
from .run import Run

RESERVE = 0.5  # share of the time that is kept for it until a run has found something
TRIED = 16  # rows of K that tell how long one takes, and are used however long they take
SPENT = 0.5  # share of what is left then that more rows may take
ROUGH = 0.03  # the relative gap that the machine is solved to, on its rows


def is_trained(run: Run) -> bool:
    """Whether a run has found anything but zero."""
    return run.best is not None and bool(run.problem.split(run.best.point)[0].any())


def before_rescue(run: Run) -> float:
    """Seconds that a run may take; a share of its limit is kept until it has found something."""
    limit = run.settings.time_limit
    kept = 0.0 if limit is None or is_trained(run) else RESERVE * limit
    return run.remaining() - kept


def rescue(problem: KernelProblem, run: Run, rng: np.random.Generator) -> None:
    """The machine of as many rows of each class as the time allows, TRIED at least, as a point of
    the whole problem: it is also a dual point. The run, whose time was over, ends with it."""
    run.status = ""
    run.begin_again(problem)
    rows = _drawn(problem, rng)
    tried = rows[: min(TRIED, problem.rows.capacity)]
    began = time.perf_counter()
    with undisturbed():
        problem.rows.fetch(tried)
    seconds = (time.perf_counter() - began) / TRIED
    most = SPENT * max(0.0, run.remaining()) / max(seconds, 1e-9)
    some = np.sort(rows[: max(len(tried), int(min(len(rows), problem.rows.capacity, most)))])
    try:
        problem.rows.fetch(some)
    except Halt:
        some = np.sort(tried)
    share = float(problem.c.sum() / max(problem.c[some].sum(), np.finfo(float).tiny))
    small = KernelProblem(
        problem.rows.subset(some), problem.y[some], share * problem.c[some], problem.bias
    )
    left = max(0.0, SPENT * run.remaining())
    settings = run.settings.derive(tol=ROUGH, time_limit=left, callback=None, checkpoint=None)
    with undisturbed():  # what is left takes less than the rows did
        run_in_pairs(small, begin(small, None), Run(small, settings))
        if not small.beta.any():
            small.place(small.y * small.c.min())
        beta = np.zeros(problem.n_rows)
        beta[some] = small.beta
        problem.place(beta)
        best = problem.scaled(problem.beta, problem.f)
        if best.alpha.any():
            problem.place(best.alpha * problem.y)
        run.record(problem.current(), certify=True)
    run.status = run.status or "time_limit"


def _drawn(problem: KernelProblem, rng: np.random.Generator) -> np.ndarray:
    """All rows that cost something, in random order, those of the two classes taking turns."""
    sides = [np.flatnonzero((problem.y == side) & (problem.c > 0.0)) for side in (1.0, -1.0)]
    turns = [rng.permutation(rows) for rows in sides]
    both = min(map(len, turns))
    mixed = np.stack([rows[:both] for rows in turns], axis=1).ravel()
    return np.concatenate([mixed, *(rows[both:] for rows in turns)])
