"""What is said of results that are not certified, and the warning that says it."""

import inspect
import warnings
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, NamedTuple

from .errors import NotCertifiedWarning
from .settings import ENDINGS, STATUSES, Settings

NAMES = {row.name: row.name for row in fields(Settings)}  # what Python calls the settings
PACKAGE = f"{__package__}."  # how the names of its modules begin


class Outcome(NamedTuple):
    """How a fit ended, and the gap that it is certified to."""

    status: str
    gap: float
    untrained: str = ""  # what kind of fit was not begun, so that there is no machine; else empty


def worst_status(statuses: Sequence[str]) -> str:
    """That of the fit that ended worst."""
    return min(statuses, key=STATUSES.index)


def describe_uncertified(
    outcomes: Sequence[Outcome], tol: float, names: dict[str, str] | None = None
) -> str:
    """One sentence about fits of which some are not certified: how far they are, how they ended and
    what to do; nothing if all are. `names` are what the settings are called."""
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
    """Those of the sub-problems of a machine, by their certificates."""
    return [Outcome(p["status"], p["gap"], _untrained(p)) for p in problems]


def _untrained(problem: dict[str, Any]) -> str:
    """What kind of sub-problem this is, if it has a machine that is no better than none."""
    if problem.get("trained", True) is not False:
        return ""
    sides = problem.get("classes")
    return "pairs" if isinstance(sides, list) and len(sides) == 2 else "classes"


def warn_uncertified(outcomes: Sequence[Outcome], tol: float) -> None:
    """Warn whoever called the package of fits that are not certified."""
    said = describe_uncertified(outcomes, tol)
    if said:
        warnings.warn(said, NotCertifiedWarning, stacklevel=2 + _own_frames())


def _own_frames() -> int:
    """How many callers of the caller are functions of the package."""
    frame, count = inspect.currentframe(), 0
    frame = frame and frame.f_back and frame.f_back.f_back
    while frame is not None and frame.f_globals.get("__name__", "").startswith(PACKAGE):
        frame, count = frame.f_back, count + 1
    return count
