"""Preconditioned conjugate gradients for several right-hand sides, which share every product."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


class Iterate(NamedTuple):
    """The state after an iteration: the solutions S, the steps t along the directions that led to
    them, True if a direction had no curvature, and rᵀM⁻¹r of the residuals (M preconditions)."""

    S: np.ndarray
    t: np.ndarray
    flat: bool
    rest: np.ndarray


@dataclass
class State:
    """The state of the iteration: solutions, residuals, the next directions, and rᵀM⁻¹r."""

    S: np.ndarray
    R: np.ndarray
    D: np.ndarray
    rest: np.ndarray
    fresh: bool = True  # True until the first iteration


def begin(R: np.ndarray, precondition: Callable[[np.ndarray], np.ndarray]) -> State:
    """Return the state at zero, for the right-hand sides in the lines of R."""
    Z = precondition(R)
    return State(np.zeros_like(R), R.copy(), Z.copy(), _products(R, Z))


def conjugate_gradients(
    apply: Callable[[np.ndarray], np.ndarray],
    precondition: Callable[[np.ndarray], np.ndarray],
    s: State,
) -> Iterator[Iterate]:
    """Yield better and better solutions S of AS = R, with a right-hand side in each line of R.

    They start at zero, and every step is a descent. The iteration ends when all residuals are
    zero. `s` is changed: it is the state of the last iterate that was yielded.
    """
    while s.fresh or s.rest.max() > 0.0:
        s.fresh = False
        AD = apply(s.D)
        curvature = _products(s.D, AD)
        bent = curvature > 0.0
        t = np.divide(s.rest, curvature, out=np.zeros_like(s.rest), where=bent)[:, None]
        s.S, s.R = s.S + t * s.D, s.R - t * AD
        Z = precondition(s.R)
        before, s.rest = s.rest, _products(s.R, Z)
        turn = np.divide(s.rest, before, out=np.zeros_like(before), where=before > 0.0)
        s.D = Z + turn[:, None] * s.D
        yield Iterate(s.S, t, not bent.all(), s.rest)


def _products(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return the inner products of the lines of A with the lines of B."""
    return np.array([float(a @ b) for a, b in zip(A, B, strict=True)])
