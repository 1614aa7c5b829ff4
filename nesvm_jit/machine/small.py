"""Machines of small sub-problems, which are all fitted in one compiled call."""

from functools import partial
from typing import Any

import numpy as np

from ..binary.small import Part, SmallFit, solve_small_problems
from .jobs import Job
from .session import Session


def fit_small(job: Job, c: np.ndarray, session: Session) -> list[SmallFit] | None:
    """What one compiled call makes of every sub-problem, given the costs of all rows; None where
    they are not small, or one of them has no row of a class, which is said elsewhere, where states
    are to be saved, and where the time is over."""
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
    """The settings of a sub-problem, as the session limits it."""
    return session.limit(job.settings, problem=number, problems=len(job.problems))
