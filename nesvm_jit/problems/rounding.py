"""How far rounding may lead: the allowances of the certificate that are of arrays alone; those that
compiled loops take, too, are in kernels/rounding.py. The derivation of every allowance is in
docs/certificate.md.
"""

import math
from typing import NamedTuple

import numpy as np

from ..kernels.rounding import (
    TINY,
    UNIT,
    above,
    down,
    grid_of,
    growth,
    root_above,
    row_norms_above,
    up,
)
from ..kernels.spec import DIFFERENCES, RBF, Spec

__all__ = [
    "TINY",
    "UNIT",
    "Columns",
    "EntryError",
    "above",
    "column_errors",
    "down",
    "given_entries",
    "growth",
    "kernel_entries",
    "kernel_sum",
    "norm_above",
    "on_grid",
    "row_norms_above",
    "sum_above",
    "up",
]

EXP_ROUNDINGS = 8  # that kernels/exp.py is worth: its polynomial and reduction stay below 4
EXP_ZERO, EXP_ZERO_SINGLE = 4e-308, 2e-38  # e^x is taken as 0 below x = −708, and below −87


def norm_above(v: np.ndarray) -> float:
    """‖v‖₂ or a little more; scaled by a power of two, so that no square is lost."""
    largest = float(np.abs(v).max(initial=0.0))
    if largest == 0.0 or not math.isfinite(largest):
        return largest
    exponent = math.frexp(largest)[1]
    scaled = np.ldexp(v, -exponent)
    return up(float(np.ldexp(root_above(float(scaled @ scaled), len(v)), exponent)))


def sum_above(v: np.ndarray) -> float:
    """Σ v_i or a little more, of entries that are not negative."""
    return above(float(v.sum()), len(v))


def on_grid(beta: np.ndarray) -> np.ndarray:
    """β with Σβ = 0 in exact arithmetic and no entry larger than before, changed as little as can
    be: entries are rounded towards zero to whole multiples of q = 2^(⌈log₂ Σ|β|⌉ − 50), so that
    all their sums are exact, and those of the heavier sign give what is left over."""
    total = float(np.abs(beta).sum())
    if total == 0.0:
        return np.zeros(len(beta))
    q = math.ldexp(1.0, grid_of(total))
    out = beta / q
    np.trunc(out, out=out)
    out *= q
    excess = float(out.sum())
    top = int(out.argmin() if excess < 0.0 else out.argmax())
    if abs(out[top]) >= abs(excess):  # one entry can give it all, and the largest feels it least
        out[top] -= excess
        return out
    heavy = np.copysign(1.0, excess) * out
    givers = np.flatnonzero(heavy > 0.0)
    has = heavy[givers]
    gives = np.clip(abs(excess) - (np.cumsum(has) - has), 0.0, has)
    out[givers] -= np.copysign(gives, excess)
    return out


class EntryError(NamedTuple):
    """Of a kernel matrix: |K̂_ij − K_ij| ≤ ε κ_i κ_j, |K_ij| ≤ κ_i κ_j, and K + diag(τ) is positive
    semidefinite (τ = 0 where K is by what it is)."""

    epsilon: float
    roots: np.ndarray  # κ
    shift: np.ndarray  # τ

    def take(self, part: np.ndarray) -> "EntryError":
        """Of the kernel between some of the rows."""
        return self._replace(roots=self.roots[part], shift=self.shift[part])


def given_entries(diagonal: np.ndarray, shift: np.ndarray) -> EntryError:
    """Of a matrix that is the problem itself: K_ij² ≤ (K_ii + τ_i)(K_jj + τ_j)."""
    return EntryError(0.0, above(np.sqrt(np.maximum(diagonal + shift, 0.0)), 4), shift)


def kernel_entries(
    spec: Spec,
    how: int,
    norms: np.ndarray,
    cells: int,
    reach: float,
    eps: float,
    exact: bool = False,
) -> EntryError:
    """Of kernel values computed in a precision whose unit is `eps`, tile by tile in this way.

    `norms` are the ‖x_i‖ from above, `cells` the most entries of a row, `reach` the largest
    γ‖x_i − centre‖², of rows as products take them; or squared distances are `exact`.
    """
    unit = eps / UNIT  # roundings of float64 that one in this precision is worth
    if spec.kind != RBF:
        # x·z is off by γ_p‖x‖‖z‖, the base by three roundings more, its powers by one each
        base = above(spec.gamma * norms * norms + spec.coef0, 4)
        share = growth(spec.degree * (cells + 8) * unit)
        roots = above(base ** (0.5 * spec.degree), 2 * spec.degree + 8)
        return EntryError(share, roots, np.zeros(len(norms)))
    if exact:  # t = γ‖x − z‖² is off by γ's rounding and its own, and te^{−t} ≤ 1/e
        share = growth(unit)
    elif how == DIFFERENCES:  # e^{−t} is off by at most te^{−t} < 1 times the share that t is off
        share = growth((cells + 8) * unit)
    else:  # ‖x‖² + ‖z‖² − 2x·z of rows moved by the centre, each sum with its own roundings
        share = float(np.expm1(growth((4.0 * cells + 64.0) * unit) * reach))
    least = EXP_ZERO if eps == UNIT else EXP_ZERO_SINGLE
    share = above(share + growth(EXP_ROUNDINGS * unit), 8) + least
    return EntryError(float(share), np.ones(len(norms)), np.zeros(len(norms)))


class Columns(NamedTuple):
    """Of a matrix whose entries are kernel values K̂_ij: their error, and the κ_j of its columns."""

    entries: EntryError
    roots: np.ndarray


def kernel_sum(entries: EntryError, beta: np.ndarray, roots: np.ndarray) -> float:
    """ε Σ|β_j|κ_j."""
    return above(entries.epsilon * sum_above(np.abs(beta) * roots), 3)


def column_errors(columns: Columns, w: np.ndarray) -> np.ndarray:
    """How far margins are off where the entries of X are kernel values."""
    return above(columns.entries.roots * kernel_sum(columns.entries, w, columns.roots), 3)
