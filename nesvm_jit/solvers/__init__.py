"""Solvers: each minimises a problem of `models` and reports to a `Run`."""

from .auto import chain, choose, smoothing_from
from .coordinate import coordinate
from .homotopy import SCHEDULES, Continuation, homotopy, warm_smoothing
from .nesvm import Method, nesvm
from .newton import newton
from .run import Limits, Run
from .saving import Saving

__all__ = [
    "SCHEDULES",
    "Continuation",
    "Limits",
    "Method",
    "Run",
    "Saving",
    "chain",
    "choose",
    "coordinate",
    "homotopy",
    "nesvm",
    "newton",
    "smoothing_from",
    "warm_smoothing",
]
