"""Warm starts: start the training of a machine at the solution of another one."""

from dataclasses import replace
from typing import Any

import numpy as np

from ..binary.start import Start
from ..errors import InputError
from .jobs import Job
from .machine import Machine


def check_warm(warm: Any, job: Job) -> None:
    """Raise InputError unless `warm` is a linear machine of the same features, problems and
    classes."""
    if not isinstance(warm, (Machine, type(None))):
        raise InputError(f"warm must be a Machine, got {warm!r:.60}")
    if warm is None:
        return
    if job.settings.kernel != "linear" or warm.record.weights is None:
        raise InputError(
            "only a linear machine can start from another one, which must be linear too"
        )
    wanted = job.X.shape[1], len(job.problems)
    if warm.record.weights.shape != wanted:
        features, problems = warm.record.weights.shape
        raise InputError(
            f"the machine to start from must have {wanted[0]} features and {wanted[1]} problems, "
            f"got {features} and {problems}"
        )
    if not np.array_equal(warm.classes, job.classes):
        raise InputError(
            f"the machine to start from must have the classes {job.classes.tolist()!s:.60} in "
            f"this order, got {warm.classes.tolist()!s:.60}"
        )


def warm_arrays(warm: Machine | None) -> list[np.ndarray]:
    """Return the arrays of a machine that the start depends on, for fingerprints."""
    if warm is None or warm.record.weights is None:
        return []
    return [warm.record.weights, warm.record.bias, *(warm.duals or [])]


def warm_starts(warm: Machine | None, job: Job) -> list[Start]:
    """Return a start for every sub-problem: the end of that machine's, with α multiplied by C."""
    if warm is None or warm.record.weights is None:
        return [Start()] * len(job.problems)
    starts = []
    for number, problem in enumerate(job.problems):
        start = Start(warm.record.weights[:, number], float(warm.record.bias[number]))
        n = len(job.y) if problem.rows is None else len(problem.rows)
        if warm.duals is not None and len(warm.duals[number]) == n:
            start = replace(start, alpha0=job.settings.C * warm.duals[number])
        starts.append(start)
    return starts
