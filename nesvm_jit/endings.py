"""Describe results that are not certified, and warn of them."""

import inspect
import warnings
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, NamedTuple

from .errors import NotCertifiedWarning
from .settings import ENDINGS, STATUSES, Settings

NAMES = {row.name: row.name for row in fields(Settings)}  # the names of the settings in Python
PACKAGE = f"{__package__}."  # the start of the names of all modules of the package


class Outcome(NamedTuple):
    """The status of a finished fit, and its certified gap."""

    status: str
    gap: float
    untrained: str = ""  # "pairs" or "classes" if there is no machine, since no fit was made


def worst_status(statuses: Sequence[str]) -> str:
    """Return the worst of the statuses of several fits."""
    return min(statuses, key=STATUSES.index)


def describe_uncertified(
    outcomes: Sequence[Outcome], tol: float, names: dict[str, str] | None = None
) -> str:
    """Describe fits that are not certified in one sentence: their gap, how they ended and what to
    do. Return an empty text if all fits are certified. `names` holds the names of the settings in
    the text."""
    missed = [outcome for outcome in outcomes if outcome.status != "converged"]
    if not missed:
        return ""
    names = names or NAMES
    gap = f"gap {max(outcome.gap for outcome in missed):.2e}"
    goal = f"the tolerance {tol:g} is not certified"
    if len(outcomes) > 1:
        goal = f"{goal} for {len(missed)} of {len(outcomes)} fits"
        gap = f"the largest {gap}"
        untrained = [outcome.untrained for outcome in missed if outcome.untrained]
        if untrained:
            gap = f"{len(untrained)} of {len(outcomes)} {untrained[0]} not trained, {gap}"
    why, remedy = ENDINGS[worst_status([outcome.status for outcome in missed])]
    return f"{goal} ({gap}): {why.format_map(names)}; {remedy.format_map(names)}"


def outcomes_of(problems: Sequence[dict[str, Any]]) -> list[Outcome]:
    """Return the outcomes of the sub-problems of a machine from their certificates."""
    return [Outcome(p["status"], p["gap"], _untrained(p)) for p in problems]


def _untrained(problem: dict[str, Any]) -> str:
    """Return "pairs" or "classes", the kind of a sub-problem, if it was not trained; else an empty
    text."""
    if problem.get("trained", True) is not False:
        return ""
    sides = problem.get("classes")
    return "pairs" if isinstance(sides, list) and len(sides) == 2 else "classes"


def warn_uncertified(outcomes: Sequence[Outcome], tol: float) -> None:
    """Warn of fits that are not certified; the warning names the line that called the package."""
    said = describe_uncertified(outcomes, tol)
    if said:
        warnings.warn(said, NotCertifiedWarning, stacklevel=2 + _own_frames())


def _own_frames() -> int:
    """Count the stack frames above the caller that are functions of the package."""
    frame, count = inspect.currentframe(), 0
    frame = frame and frame.f_back and frame.f_back.f_back
    while frame is not None and frame.f_globals.get("__name__", "").startswith(PACKAGE):
        frame, count = frame.f_back, count + 1
    return count
