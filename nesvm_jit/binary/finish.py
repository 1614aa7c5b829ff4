"""How every run ends: within its limits, at its best point, with values added up afresh."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..settings import Settings
from ..solvers.run import Limits, Run
from .solution import Solution


def limits(settings: Settings) -> Limits:
    """When a run must end."""
    seconds = np.inf if settings.time_limit is None else settings.time_limit
    return Limits(settings.tol, settings.max_iter, seconds, settings.callback)


def run_to_the_end(
    run: Run, work: Callable[[], None], finish: Callable[[], dict], settings: Settings
) -> Solution:
    """Run `work` to its end or to Ctrl-C, which keeps what was found; `finish` then evaluates the
    best point afresh, and once more if Ctrl-C comes only then."""
    try:
        work()
    except KeyboardInterrupt:
        run.status = "interrupted"
    try:
        found = finish()
    except KeyboardInterrupt:
        run.status = "interrupted"
        found = finish()
    return _solution(run, settings, **found)


def _solution(run: Run, settings: Settings, **found: Any) -> Solution:
    """What a finished run found, with its certificate."""
    assert run.alpha is not None
    return Solution(
        objective=float(run.objective),
        dual_objective=float(run.dual),
        alpha=run.alpha,
        gap=float(run.gap),
        certified=bool(run.gap <= run.limits.tol),
        n_iter=run.iterations,
        status=run.status or "converged",
        solver=run.engine,
        why=run.why,
        model=settings.model,
        history=run.history(),
        **found,
    )
