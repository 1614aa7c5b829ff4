"""Preconditioned conjugate gradients for several right sides at once, which share every product."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


class Iterate(NamedTuple):
    """The solutions so far, the steps t along the directions D that led to them, whether a
    direction had no curvature, and rᵀM⁻¹r of the residuals (preconditioned by M)."""

    S: np.ndarray
    t: np.ndarray
    flat: bool
    rest: np.ndarray


@dataclass
class State:
    """Where the iterations stand: solutions, residuals, the next directions, and rᵀM⁻¹r."""

    S: np.ndarray
    R: np.ndarray
    D: np.ndarray
    rest: np.ndarray
    fresh: bool = True  # no iteration has been made yet


def begin(R: np.ndarray, precondition: Callable[[np.ndarray], np.ndarray]) -> State:
    """At zero, for these right sides."""
    Z = precondition(R)
    return State(np.zeros_like(R), R.copy(), Z.copy(), _products(R, Z))


def conjugate_gradients(
    apply: Callable[[np.ndarray], np.ndarray],
    precondition: Callable[[np.ndarray], np.ndarray],
    s: State,
) -> Iterator[Iterate]:
    """Solutions S of AS = R, a right side in each line, better with every one; it ends where
    nothing is left of the residuals. Every S on the way descends from zero. The state is that of
    the iterate handed out last."""
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
    """The inner product of each line of A with that of B."""
    return np.array([float(a @ b) for a, b in zip(A, B, strict=True)])
