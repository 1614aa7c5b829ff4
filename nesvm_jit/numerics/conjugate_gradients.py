"""Preconditioned conjugate gradients for several right sides at once, which share every product."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np


class Iterate(NamedTuple):
    """The solutions so far, the steps t along the directions D that led to them, whether a
    direction had no curvature, and rᵀM⁻¹r of the residuals (preconditioned by M)."""

    S: np.ndarray
    t: np.ndarray
    flat: bool
    rest: np.ndarray


def conjugate_gradients(
    apply: Callable[[np.ndarray], np.ndarray],
    R: np.ndarray,
    precondition: Callable[[np.ndarray], np.ndarray],
) -> Iterator[Iterate]:
    """Solutions S of AS = R, a right side in each line, better with every one; it ends where
    nothing is left of the residuals. Every S on the way descends from zero."""
    S, R = np.zeros_like(R), R.copy()
    Z = precondition(R)
    D, rest = Z.copy(), _products(R, Z)
    while True:
        AD = apply(D)
        curvature = _products(D, AD)
        bent = curvature > 0.0
        t = np.divide(rest, curvature, out=np.zeros_like(rest), where=bent)[:, None]
        S, R = S + t * D, R - t * AD
        Z = precondition(R)
        before, rest = rest, _products(R, Z)
        yield Iterate(S, t, not bent.all(), rest)
        if not rest.max() > 0.0:
            return
        D = Z + np.divide(rest, before, out=np.zeros_like(rest), where=before > 0.0)[:, None] * D


def _products(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """The inner product of each line of A with that of B."""
    return np.array([float(a @ b) for a, b in zip(A, B, strict=True)])
