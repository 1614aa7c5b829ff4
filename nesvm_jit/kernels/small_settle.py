"""The certificates of small fits in one call: P from above, D from below and the range of b for all
sub-problems of a machine, true in exact arithmetic.

The formulas are those of rounding.py, which problems/settling.py and settling_kernel.py take for
data of any size. Only the ordinary case is here: what is felt of rounding, or what one entry of α
cannot balance, is left to them.
"""

import math
from typing import NamedTuple

import numpy as np

from ..jit import exact_helper, exact_kernel, helper, takes
from .loss import HINGE, SQUARE
from .rounding import (
    TINY,
    Spread,
    above,
    cost_doubt,
    grid_of,
    half_square_above,
    margin_error,
    mean_off,
    objective_above,
    product_error,
    product_off,
    product_rate,
    quadratic_above,
    radius_of,
    raised_loss,
    residual,
    residual_error,
    root_above,
    row_norms_above,
    shifted_by,
    sum_error,
    target_off,
    up,
    value_below,
)

# What is said of a sub-problem: P, D, the least and the greatest b, how many entries of α are not
# zero, and whether it is settled at all.
OBJECTIVE, DUAL, LEAST, MOST, SUPPORT, SETTLED, SAID = 0, 1, 2, 3, 4, 5, 6


class Verdict(NamedTuple):
    """What comes out: the numbers of every sub-problem; α (or β of kernel machines) where it is
    feasible beyond doubt, and the margins, for the rows in their order."""

    said: np.ndarray
    duals: np.ndarray
    margins: np.ndarray


class Entries(NamedTuple):
    """How far entries of a kernel matrix may be off: ε, κ and τ."""

    epsilon: float
    roots: np.ndarray
    shift: np.ndarray


@helper
def _product(x, w):
    """x·w and ‖x‖², in any order."""
    total, square = 0.0, 0.0
    for j in range(len(w)):
        total += x[j] * w[j]
        square += x[j] * x[j]
    return total, square


@exact_helper
def _norm_above(v):
    """‖v‖₂ or a little more; scaled by a power of two, so that no square is lost."""
    largest = 0.0
    for j in range(len(v)):
        largest = max(largest, abs(v[j]))
    if not 0.0 < largest < np.inf:
        return largest
    exponent, square = math.frexp(largest)[1], 0.0
    for j in range(len(v)):
        scaled = math.ldexp(v[j], -exponent)
        square += scaled * scaled
    return up(math.ldexp(root_above(square, len(v)), exponent))


@exact_helper
def _inside(y, c, given, bias, loss, out):
    """α∘y inside its box, and with a bias on the grid where Σ α_i y_i = 0 exactly; whether one
    entry could give what was left over."""
    size = 0.0
    for i in range(len(y)):
        a = y[i] * given[i]
        if loss == HINGE:
            a = min(max(a, 0.0), c[i])
        elif not c[i] > 0.0:
            a = 0.0
        out[i] = a * y[i]
        size += abs(out[i])
    if not bias or size == 0.0:
        return True
    if not size < np.inf:
        return False
    q, excess, top, bottom = math.ldexp(1.0, grid_of(size)), 0.0, 0, 0
    for i in range(len(y)):
        out[i] = np.trunc(out[i] / q) * q
        excess += out[i]
        if out[i] > out[top]:
            top = i
        if out[i] < out[bottom]:
            bottom = i
    giver = top if excess >= 0.0 else bottom
    enough = abs(out[giver]) >= abs(excess) and out[giver] * excess >= 0.0
    out[giver] -= excess
    return enough


@exact_helper
def _spread_of(signed, y, c, norms, loss):
    """What the value of a dual point and its rounding go with."""
    entries, total, size, squares, reach = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(len(y)):
        a = signed[i] * y[i]
        if a == 0.0:
            continue
        entries += 1.0
        total += a
        size += abs(a)
        reach += abs(a) * norms[i]
        if loss == SQUARE:
            squares += a * (a / (4.0 * c[i]))
    return Spread(entries, total, size, squares, reach, 0.0)


@exact_helper
def _quantile(v, c, target, beyond):
    """The least v_i with Σ{c_j : v_j ≤ v_i} ≥ target, or > target if `beyond`; infinite if there is
    none. Both arrays are sorted in part."""
    lo, hi, below = 0, len(v), 0.0
    while lo < hi:
        a, b, d = v[lo], v[(lo + hi) // 2], v[hi - 1]
        pivot = max(min(a, b), min(max(a, b), d))
        i, left, right, less, same = lo, lo, hi, 0.0, 0.0
        while i < right:  # less, equal, not looked at yet, more
            x, w = v[i], c[i]
            if x < pivot:
                less += w
                v[i], c[i] = v[left], c[left]
                v[left], c[left] = x, w
                left, i = left + 1, i + 1
            elif x > pivot:
                right -= 1
                v[i], c[i] = v[right], c[right]
                v[right], c[right] = x, w
            else:
                same += w
                i += 1
        first, second = below + less, below + less + same
        if first > target or (first == target and not beyond and left > lo):
            hi = left
        elif second > target or (second == target and not beyond):
            return pivot
        else:
            lo, below = right, second
    return np.inf


@exact_helper
def _bias_range(y, c, e, off, loss, work):
    """Bounds of every b that is optimal for targets y_i − x_i·w* within `off` of e."""
    m, total, positive = 0, 0.0, 0.0
    low, high, costs, other = work[0], work[1], work[2], work[3]
    mean, spread, sizes = 0.0, 0.0, 0.0
    for i in range(len(y)):
        if not c[i] > 0.0:
            continue
        wide = target_off(off[i], e[i])
        if not (abs(e[i]) < np.inf and wide < np.inf):
            return -np.inf, np.inf
        low[m], high[m], costs[m], other[m] = e[i] - wide, e[i] + wide, c[i], c[i]
        mean += c[i] * e[i]
        spread += c[i] * wide
        sizes += c[i] * (abs(e[i]) + wide)
        total += c[i]
        if y[i] > 0.0:
            positive += c[i]
        m += 1
    if m == 0:
        return -np.inf, np.inf
    if loss != HINGE:
        half = mean_off(spread, sizes, total, m)
        return mean / total - half, mean / total + half
    doubt, least = cost_doubt(m, total), -np.inf
    if positive > doubt:
        least = _quantile(low[:m], costs[:m], positive - doubt, False)
        least = least if least < np.inf else -np.inf
    return least, _quantile(high[:m], other[:m], positive + doubt, True)


@exact_helper
def _say(said, objective, dual, support):
    """The numbers of a sub-problem, settled if they are such."""
    said[OBJECTIVE], said[DUAL], said[SUPPORT] = objective, dual, support
    said[LEAST], said[MOST] = -np.inf, np.inf
    said[SETTLED] = 1.0 if abs(objective) < np.inf and abs(dual) < np.inf else 0.0


def _work_of_rows(X, parts, *_):
    """About three passes over the rows of every sub-problem, and as much again for each row."""
    return len(parts.y) * (60 + 4 * X.shape[1])


@takes(_work_of_rows, price=3.0)
@exact_kernel
def _settle_rows(k, n_chunks, X, parts, bias, loss, felt, ends, verdict):
    """P at (w, b) and D near α of linear machines, R being ½‖w‖²; settled unless rounding takes
    more than this share of P (`felt`)."""
    lo, hi, p = parts.starts[k], parts.starts[k + 1], X.shape[1]
    n, y, c = hi - lo, parts.y[lo:hi], parts.c[lo:hi]
    w, b, said = ends.points[k, :p], 0.0, verdict.said[k]
    signed, margins = verdict.duals[lo:hi], verdict.margins[lo:hi]
    said[SETTLED] = 0.0
    if bias:
        b = ends.points[k, p]
    size, norms, off = _norm_above(w), np.empty(n), np.empty(n)
    plain, raised = 0.0, 0.0
    for i in range(n):
        product, square = _product(X[parts.index[lo + i]], w)
        f = product + b
        norms[i], margins[i] = row_norms_above(np.sqrt(square), p), f
        r = residual(y[i], f)
        error = residual_error(f, r)
        plain += c[i] * raised_loss(r, error, loss)
        error += margin_error(p, norms[i], size)
        raised += c[i] * raised_loss(r, error, loss)
    penalty = half_square_above(size)
    objective = objective_above(penalty, raised, n)
    if not objective - objective_above(penalty, plain, n) <= felt[k] * objective:
        return
    if not _inside(y, c, ends.duals[lo:hi] * y, bias, loss, signed):
        return
    spread = _spread_of(signed, y, c, norms, loss)
    weights = np.zeros(p)
    for i in range(n):
        if signed[i] != 0.0:
            a, row = signed[i], X[parts.index[lo + i]]
            for j in range(p):
                weights[j] += a * row[j]
    error = sum_error(spread.entries, spread.norms, spread.entries)
    size_of_sum = _norm_above(weights)
    if not error * (size_of_sum + error) <= felt[k] * objective:
        return
    size_of_sum = up(up(size_of_sum + (error + p * TINY)) + TINY)
    dual = 0.0
    if spread.entries > 0.0:
        dual = value_below(spread, bias, loss, half_square_above(size_of_sum))
    _say(said, objective, dual, spread.entries)
    for i in range(n):
        signed[i] *= y[i]
    if bias:
        radius, e = radius_of(objective, dual), np.empty(n)
        for i in range(n):
            off[i] = product_off(radius, p, size, norms[i], margins[i], b)
            e[i] = y[i] - (margins[i] - b)
        said[LEAST], said[MOST] = _bias_range(y, c, e, off, loss, np.empty((4, n)))


def _work_of_products(K, parts, *_):
    """A product with K for every sub-problem."""
    return int((np.diff(parts.starts) ** 2).sum()) + 60 * len(parts.y)


@takes(_work_of_products, price=3.0)
@exact_kernel
def _settle_gram(k, n_chunks, K, parts, bias, loss, entries, ends, verdict):
    """P at (β, b) and D at β of kernel machines, for the exact kernel."""
    lo, hi = parts.starts[k], parts.starts[k + 1]
    n, y, c, index = hi - lo, parts.y[lo:hi], parts.c[lo:hi], parts.index[lo:hi]
    b, said = ends.points[k, 0], verdict.said[k]
    beta, margins = verdict.duals[lo:hi], verdict.margins[lo:hi]
    said[SETTLED] = 0.0
    if not _inside(y, c, ends.duals[lo:hi], bias, loss, beta):
        return
    roots, f, off = np.empty(n), np.zeros(n), np.empty(n)
    whole = n == len(K)
    for i in range(n):
        roots[i] = entries.roots[index[i]]
        whole = whole and index[i] == i
    spread = _spread_of(beta, y, c, roots, loss)
    for j in range(n):
        a, row = beta[j], K[index[j]]
        if a != 0.0:
            for i in range(n):
                f[i] += a * (row[i] if whole else row[index[i]])
    rate, m = product_rate(entries.epsilon, spread.entries), spread.entries
    reach = above(spread.norms, n) + m * TINY
    product, sizes, shifts, losses = 0.0, 0.0, 0.0, 0.0
    for i in range(n):
        size = abs(beta[i])
        shifted = shifted_by(entries.shift[index[i]], size)
        off[i] = product_error(rate, reach, roots[i], shifted, m)
        product += beta[i] * f[i]
        sizes += size * abs(f[i])
        shifts += size * shifted
        margins[i] = f[i] + b
        r = residual(y[i], margins[i])
        losses += c[i] * raised_loss(r, off[i] + residual_error(margins[i], r), loss)
    half = 0.5 * quadratic_above(product, sizes, rate, reach, shifts, n, m)
    objective = objective_above(up(half), losses, n)
    dual = 0.0
    if m > 0.0:
        dual = value_below(spread, bias, loss, half)
    _say(said, objective, dual, m)
    if bias:
        radius = radius_of(objective, dual)
        for i in range(n):
            off[i] += radius * roots[i]
            f[i] = y[i] - f[i]
        said[LEAST], said[MOST] = _bias_range(y, c, f, off, loss, np.empty((4, n)))
