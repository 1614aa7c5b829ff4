"""Fit all sub-problems of a machine in one compiled call if they are small."""

from functools import partial
from typing import Any

import numpy as np

from ..binary.small import SmallFit, solve_small_problems
from ..binary.small_data import Part
from .jobs import Job
from .session import Session


def fit_small(job: Job, c: np.ndarray, session: Session) -> list[SmallFit] | None:
    """Fit all sub-problems in one compiled call; `c` holds the costs of all rows.

    Return None if the sub-problems are not small, if one of them has no row of a class (which is
    reported elsewhere), if states are to be saved, or if there is no time left.
    """
    if session.checkpoint is not None or session.clock.left() == 0.0:
        return None
    parts = []
    for problem in job.problems:
        y = job.y if problem.rows is None else job.y[problem.rows]
        sign = np.where(y == job.classes[problem.i], 1.0, -1.0)
        costs = job.costs_of(problem, c)
        if not (costs[sign > 0.0].any() and costs[sign < 0.0].any()):
            return None
        parts.append(Part(problem.rows, sign, costs))
    watched = job.settings.callback is not None or job.settings.time_limit is not None
    return solve_small_problems(
        job.X, parts, job.settings, partial(_limit, job, session) if watched else None
    )


def _limit(job: Job, session: Session, number: int) -> Any:
    """Return the settings of a sub-problem with the session's limits."""
    return session.limit(job.settings, problem=number, problems=len(job.problems))
