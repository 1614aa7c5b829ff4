"""An evaluation: everything a pass finds at a point, as a value that stays true."""

from typing import Any, NamedTuple

import numpy as np

from ..models.base import Smoothing
from .certificate import DualPoint, DualSums

NO_GRADIENT = np.empty(0)
NO_SUMS = DualSums(0.0, 0.0, np.empty(0))


class Evaluation(NamedTuple):
    """F_μ, its gradient and the true objective P at a point, and the sums of the dual point that
    it leads to. What follows from it is asked of the problem: `bound(at)`, `suboptimality(at)`."""

    point: np.ndarray
    smoothing: Smoothing
    value: float
    gradient: np.ndarray  # empty where only P was asked for
    objective: float
    sums: DualSums  # empty for kernel machines, of which `alpha` and `dual` say it all
    largest: float = 1.0  # α/c
    alpha: Any = None  # the dual point, where it is known; else it follows from the point ...
    centre: Any = None  # ... and the dual point that the loss is smoothed about (None: zero)
    penalty_centre: Any = 0.0  # what the penalty is smoothed about
    margins: Any = None  # of every row, where they are known
    u: Any = None  # α/c of a kernel machine
    dual: DualPoint | None = None  # what the point is as a dual point, of a kernel machine
    felt: float = 0.0  # by P, of an error of 1 in every margin of a kernel machine
    known: Any = None  # of a kernel machine: the sums f = Kβ there, as steps have left them
