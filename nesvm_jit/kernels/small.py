"""Whole fits in one call, for data so small that a round costs less than Python around it: what the
loops of linear machines (small_newton.py) and of kernel machines (small_pairs.py) share.

Each chunk is a binary sub-problem of its own; its rows are numbers of rows of one matrix that all
share. The formulas, the line search, the steps of pairs and the solving of triangles are those of
the engines; only what Python does between their rounds is here instead.
"""

from typing import NamedTuple

import numpy as np

from ..jit import helper

# What the trace has of every round, and what is said of the end of a sub-problem.
MU, SMOOTHED, OBJECTIVE, DUAL, TRACED = 0, 1, 2, 3, 4
ROUNDS, STEPS, REACHED, ENDED = 0, 1, 2, 3
ALMOST = 1.0 - 1e-9  # times the tolerance is reached here, so that rounding does not exceed it


class Parts(NamedTuple):
    """Sub-problem k has the rows index[starts_k], …, index[starts_(k+1) − 1], their labels ±1 and
    their costs."""

    starts: np.ndarray
    index: np.ndarray
    y: np.ndarray
    c: np.ndarray


class Ends(NamedTuple):
    """What comes out: the weights with b of every sub-problem, or only b; α of linear machines or β
    of kernel machines, for the rows in their order; a trace of the rounds; how it ended."""

    points: np.ndarray
    duals: np.ndarray
    trace: np.ndarray
    how: np.ndarray


@helper
def _used_rows(parts, k):
    """Which of the rows of a sub-problem cost something."""
    lo, hi = parts.starts[k], parts.starts[k + 1]
    used = np.empty(hi - lo, np.int64)
    m = 0
    for i in range(lo, hi):
        if parts.c[i] > 0.0:
            used[m] = i
            m += 1
    return used[:m]


@helper
def _factorise(H, m):
    """H = LLᵀ by rows, L in the place of the lower triangle; whether H is positive definite."""
    for i in range(m):
        row = H[i]
        for j in range(i):
            other, total = H[j], row[j]
            for k in range(j):
                total -= row[k] * other[k]
            row[j] = total / other[j]
        total = row[i]
        for k in range(i):
            total -= row[k] * row[k]
        if not total > 0.0:
            return False
        row[i] = np.sqrt(total)
    return True


@helper
def _note(trace, mu, smoothed, objective, dual):
    """A round of the trace."""
    trace[MU] = mu
    trace[SMOOTHED] = smoothed
    trace[OBJECTIVE] = objective
    trace[DUAL] = dual


@helper
def _say(how, rounds, steps, reached):
    """How a sub-problem ended."""
    how[ROUNDS] = rounds
    how[STEPS] = steps
    how[REACHED] = 1 if reached else 0
