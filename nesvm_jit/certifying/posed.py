"""A sub-problem as it is certified, and what is found of it."""

from typing import NamedTuple

import numpy as np

COEFFICIENTS, MARGINS, POLISHED = "coefficients", "margins", "polished"


class Posed(NamedTuple):
    """Rows with signs and costs, and for how many seconds its dual point may be polished, with
    and without coefficients of the model to start from."""

    sign: np.ndarray
    c: np.ndarray
    bias: bool
    with_coefficients: float
    without: float


class Proven(NamedTuple):
    """P at the model from above, D from below, and the points that have these values: weights or
    coefficients, b, and α."""

    objective: float
    dual_objective: float
    point: np.ndarray
    b: float
    alpha: np.ndarray
    dual_point: str
    passes: float

    def at_least_zero(self) -> "Proven":
        """The same, or with α = 0, which is always feasible, where its D is below zero."""
        if self.dual_objective >= 0.0:
            return self
        return self._replace(dual_objective=0.0, alpha=np.zeros(len(self.alpha)))
