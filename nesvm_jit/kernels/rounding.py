"""How far rounding may lead: the allowances of the certificate that NumPy code and compiled loops
both take, of arrays or of numbers. docs/certificate.md derives them.

u = 2⁻⁵³. A number that k roundings led to is off by at most the share γ_k = ku/(1 − ku) (Higham,
Accuracy and Stability of Numerical Algorithms, §3.1); a sum of m products, in any order, with or
without fused multiply-add, by γ_m Σ|products| and m · 2⁻¹⁰⁷⁴ for those too small to be held. Bounds
from above are computed as usual and then raised by the roundings that led to them.
"""

import math
from typing import NamedTuple

import numpy as np

from ..jit import exact_inline, overload
from .loss import HINGE, SQUARE, positive

UNIT = 2.0**-53
TINY = 2.0**-1074  # what a product loses at most where it is too small for all its digits
GRID_BITS = 50  # of Σ|α|, on the grid that α is put on: every sum of entries is exact


@exact_inline
def growth(k):
    """γ_k rounded up: (1 + 10⁻⁶) k u, for k up to 2³¹."""
    return (1.000001 * UNIT) * k


@exact_inline
def above(x, k):
    """A bound from above of a number that was computed from terms that are not negative with k
    roundings of each."""
    return x * (1.0 + (1.000001 * UNIT) * (k + 4))  # γ, without a call for a product


def up(x: float) -> float:
    """The next number above."""
    return math.nextafter(x, math.inf)


def down(x: float) -> float:
    """The next number below."""
    return math.nextafter(x, -math.inf)


@overload(up)
def _up(x):
    return lambda x: np.nextafter(x, np.inf)


@overload(down)
def _down(x):
    return lambda x: np.nextafter(x, -np.inf)


@exact_inline
def row_norms_above(norm, cells):
    """‖x_i‖₂ or a little more, from what a sum of `cells` squares and a root gave."""
    return above(norm, 0.5 * cells + 2) + cells**0.5 * 2.0**-537


@exact_inline
def root_above(square, count):
    """The root of a sum of so many squares or a little more, before it is scaled back."""
    return above(np.sqrt(above(square, count) + count * TINY), 1)


@exact_inline
def half_square_above(size):
    """½‖v‖², given ‖v‖ from above."""
    return above(0.5 * size * size, 2) + TINY


@exact_inline
def grid_of(total):
    """The exponent of the grid for numbers whose sizes add up to this."""
    return max(math.frexp(total)[1] - GRID_BITS, -1074)


# ---------------------------------------------------------------- P


@exact_inline
def margin_error(cells, norm, size):
    """How far x·w + b may be off by products, given ‖x‖ and ‖w‖."""
    return growth(cells + 5.0) * norm * size + (cells + 1.0) * TINY


@exact_inline
def residual(y, f):
    """r = 1 − y f."""
    return 1.0 - y * f


@exact_inline
def residual_error(f, r):
    """The roundings of f and of r in r."""
    return growth(6.0) * (abs(f) + abs(r))


@exact_inline
def raised_loss(r, error, loss):
    """loss(r) or more, of a residual that is off by `error`."""
    if loss == HINGE:
        return positive(r + above(error, 2))
    size = abs(r) + above(error, 2)
    return above(size * size, 3) + TINY


@exact_inline
def objective_above(penalty, loss, rows):
    """R + Σ c loss, both from above but for the roundings of this sum of so many rows."""
    return up(penalty + (above(loss, rows) + rows * TINY))


# ---------------------------------------------------------------- D


class Spread(NamedTuple):
    """Of a dual point: how many entries are not zero, Σα, Σ|α|, Σα²/(4c), and what rounding in
    Σ α_i y_i x_i goes with, Σ|α_i|‖x_i‖ and Σ|α_i|‖x_i‖_∞."""

    entries: float
    total: float
    size: float
    squares: float
    norms: float
    largest: float


@exact_inline
def sum_error(terms, reach, entries):
    """How far Σ α_i y_i x_i may be off in norm (or any entry), each row going through so many
    additions, given Σ|α_i|‖x_i‖ (or Σ|α_i|‖x_i‖_∞)."""
    return growth(terms + 6.0) * reach + entries * TINY


@exact_inline
def total_below(spread, exact):
    """Σα from below: on the grid that makes Σα y = 0 the sum is exact."""
    if exact or spread.entries == 0.0:
        return spread.total
    return down(spread.total - growth(spread.entries + 6.0) * spread.size)


@exact_inline
def value_below(spread, exact, loss, half_square):
    """Σα − Σα²/(4c) less half a square that is given from above; Σα is exact on the grid."""
    value = total_below(spread, exact)
    if loss == SQUARE:
        value = down(value - above(spread.squares, spread.entries + 4.0))
        value = down(value - spread.entries * TINY * (1.0 + spread.size))
    return down(value - up(half_square))


# ---------------------------------------------------------------- kernel matrices


@exact_inline
def product_rate(epsilon, m):
    """ρ: f̂_i of m support vectors is off by at most ρ κ_i Σ|β_j|κ_j."""
    return above(epsilon + growth(m + 8.0) * (1.0 + epsilon), 4)


@exact_inline
def product_error(rate, reach, root, shifted, m):
    """How far f̂_i may be off, also of K + diag(τ)."""
    return above(rate * reach * root, 6) + shifted + m * TINY


@exact_inline
def shifted_by(shift, size):
    """τ_i|β_i| or a little more."""
    return above(shift * size, 2)


@exact_inline
def quadratic_above(product, sizes, rate, reach, shifted, n, m):
    """βᵀKβ from above, given β·f̂, Σ|β_i f̂_i|, ρ, Σ|β_j|κ_j and Σ|β_i|τ_i|β_i|."""
    total = product + growth(m + 8.0) * sizes + above(rate * reach * reach, 6)
    total += above(shifted, n) + (2.0 * n + m) * TINY
    return up(total + growth(8.0) * abs(total))


# ---------------------------------------------------------------- the exact optimum


@exact_inline
def radius_of(objective, dual_objective):
    """R = √(2(P − D)) or a little more."""
    between = max(objective - dual_objective, 0.0)
    return above(np.sqrt(2.0 * up(between)), 3) if between > 0.0 else 0.0


@exact_inline
def product_off(radius, cells, size, norm, f, b):
    """How far the exact optimum's x·w* may be from x·w̃ = f̂ − b as it is computed."""
    off = (radius + growth(cells + 8.0) * size) * norm
    return off + (cells + 1.0) * TINY + growth(8.0) * (abs(f) + abs(b))


@exact_inline
def target_off(off, e):
    """How far e_i = y_i − x_i·w* may be from what is computed."""
    return above(off + growth(4.0) * (1.0 + abs(e)), 4)


@exact_inline
def mean_off(spread, sizes, total, n):
    """How far a weighted mean of n numbers may be off, given Σ c·off, Σ c(|e| + off) and Σ c."""
    slip = growth(2.0 * n + 8.0) * sizes / total
    return above(spread / total + slip, 4)


@exact_inline
def cost_doubt(n, total):
    """How far sums of n costs may be off."""
    return growth(2.0 * n + 8.0) * total
