"""A small linear machine in one call: Newton's steps on the smoothed problem."""

from typing import NamedTuple

import numpy as np

from ..jit import helper, kernel, takes
from .dual_newton import _solve
from .line_search import (
    LINE_ROUNDS,
    Margins,
    line_ends,
    line_is_short,
    next_on_line,
    slope_of_rows,
    step_of_rows,
)
from .loss import HINGE, RowData, l1_bends, l1_u
from .small import ALMOST, _factorise, _note, _say, _used_rows

# The formulas as functions of their own: inlined, each would have numba look at all of a long loop
# again, which takes longer than anything else of compiling it.
_l1_u, _l1_bends = helper(l1_u), helper(l1_bends)
_line_ends, _next_on_line = helper(line_ends), helper(next_on_line)
_line_is_short = helper(line_is_short)

RIDGES = (0.0, 1e-12, 1e-9, 1e-6, 1e-3, 1.0)  # shares of H's largest diagonal entry, added to it


class Rules(NamedTuple):
    """How Newton's steps go on: the first μ and the last, what μ is multiplied by, the share of the
    gap that F_μ may be above its minimum before that, the share of F_μ that is no descent, and the
    share of what b's curvature could be that it has at least."""

    first: float
    smallest: float
    factor: float
    enough: float
    no_descent: float
    faint: float


@helper
def _descend(H, diagonal, g, d):
    """d = −H⁻¹g; the diagonal of H, whose lower triangle is overwritten, is raised until H can be
    factorised and g·d < 0. Returns −g·d, or zero where that never comes."""
    m = len(g)
    largest = 0.0
    for j in range(m):
        diagonal[j] = H[j, j]
        largest = max(largest, H[j, j])
    for ridge in RIDGES:
        for i in range(m):
            for j in range(i):
                H[i, j] = H[j, i]
            H[i, i] = diagonal[i] + ridge * largest
            d[i] = -g[i]
        if _factorise(H, m):
            _solve(H, m, d)
            descent = 0.0
            for j in range(m):
                descent -= g[j] * d[j]
            if 0.0 < descent and descent < np.inf:
                return descent
    return 0.0


@helper
def _add_curvature(Z, curvature, H):
    """H = Σ d_i z_i z_iᵀ over the rows with d_i > 0, two at a time."""
    m = Z.shape[1]
    H[:] = 0.0
    other = -1
    for i in range(len(curvature)):
        if not curvature[i] > 0.0:
            continue
        if other < 0:
            other = i
            continue
        _add_two(Z[other], curvature[other], Z[i], curvature[i], H)
        other = -1
    if other >= 0:
        _add_two(Z[other], curvature[other], Z[other], 0.0, H)
    for i in range(m):
        for j in range(i):
            H[j, i] = H[i, j]


@helper
def _add_two(x, c, z, d, H):
    """The lower triangle of H += c x xᵀ + d z zᵀ."""
    for i in range(len(x)):
        a, b, row = c * x[i], d * z[i], H[i]
        for j in range(i + 1):
            row[j] += a * x[j] + b * z[j]


@helper
def _bend(H, w, mu, centre, l1, least):
    """H += ∇²R_μ; b's curvature is at least this."""
    p = len(w)
    for j in range(p):
        H[j, j] += _l1_bends(centre[j] + w[j] / mu) / mu if l1 else 1.0
    if len(H) > p:
        H[p, p] = max(H[p, p], least)


@helper
def _load(X, parts, used, bias, Z, data, margins):
    """The rows of a sub-problem, with a column of ones for b, and what belongs to them; returns
    Σ c_i/s_i."""
    p, possible = X.shape[1], 0.0
    for i in range(len(used)):
        at, largest = used[i], 1.0 if bias else 0.0
        row, z = X[parts.index[at]], Z[i]
        for j in range(p):
            z[j] = row[j]
            largest = max(largest, abs(row[j]))
        if bias:
            z[p] = 1.0
        data.y[i] = parts.y[at]
        data.c[i] = parts.c[at]
        data.s[i] = largest if largest > 0.0 else 1.0
        margins.inverse[i] = 1.0 / data.s[i]
        possible += data.c[i] / data.s[i]
    return possible


@helper
def _products(Z, d, out):
    """z_i·d of every row."""
    for i in range(len(out)):
        total, row = 0.0, Z[i]
        for j in range(len(d)):
            total += row[j] * d[j]
        out[i] = total


@helper
def _recentre(data, margins, w, mu, centre, l1):
    """Smooth about the dual variables found."""
    for i in range(len(data.y)):
        margins.centre[i] = margins.weight[i] * data.y[i] / data.c[i]
    if l1:
        for j in range(len(w)):
            centre[j] = _l1_u(centre[j] + w[j] / mu)


@helper
def _keep_dual(used, data, margins, duals):
    """α of the rows of a sub-problem."""
    for i in range(len(used)):
        duals[used[i]] = margins.weight[i] * data.y[i]


@helper
def _penalties(w, mu, centre, l1):
    """R(w) and R_μ(w): ½‖w‖² twice, or ‖w‖₁ and what it is smoothed about this centre."""
    true, smoothed = 0.0, 0.0
    if not l1:
        for j in range(len(w)):
            true += w[j] * w[j]
        return 0.5 * true, 0.5 * true
    for j in range(len(w)):
        u = _l1_u(centre[j] + w[j] / mu)
        away = u - centre[j]
        true += abs(w[j])
        smoothed += u * w[j] - 0.5 * mu * away * away
    return true, smoothed


@helper
def _penalty_slope(w, d, t, mu, centre, l1):
    """The first two derivatives of R_μ(w + t d) by t."""
    first, second = 0.0, 0.0
    for j in range(len(w)):
        if not l1:
            first += d[j] * (w[j] + t * d[j])
            second += d[j] * d[j]
        else:
            z = centre[j] + (w[j] + t * d[j]) / mu
            first += d[j] * _l1_u(z)
            second += d[j] * d[j] / mu * _l1_bends(z)
    return first, second


@helper
def _dual_estimate(total, squares, weights, p, l1):
    """D at an α of these sums, or what D would be if Σ α_i y_i were zero."""
    size = 0.0
    for j in range(p):
        size = max(size, abs(weights[j])) if l1 else size + weights[j] * weights[j]
    return total / max(1.0, size) if l1 else total - squares - 0.5 * size


@helper
def _gradient(w, b, weights, mu, centre, objective, l1, g):
    """g = ∇F_μ; returns about what the gap owes to F_μ not being minimal there."""
    p = len(w)
    size, largest, owed = 0.0, 0.0, 0.0
    for j in range(p):
        g[j] = (_l1_u(centre[j] + w[j] / mu) if l1 else w[j]) - weights[j]
        size += abs(w[j])
        largest = max(largest, abs(g[j]))
        owed += 0.5 * g[j] * g[j]
    if l1:
        owed = largest * (2.0 * size + objective)
    if len(g) > p:
        g[p] = -weights[p]
        owed += abs(g[p]) * max(1.0, abs(b))
    return owed


@helper
def _seek(w, d, data, margins, mu, centre, loss, l1, descent):
    """How far to go along a direction whose margins are known: where F_μ is least."""
    low, high, t = 0.0, np.inf, 1.0
    for tried in range(LINE_ROUNDS):
        first, second = slope_of_rows(0, len(data.y), data, margins, mu, loss, t)
        p1, p2 = _penalty_slope(w, d, t, mu, centre, l1)
        first, second = first + p1, second + p2
        if _line_ends(tried, first, descent):
            return t
        if first < 0.0:
            low = t
        else:
            high = t
        t = _next_on_line(tried, low, high, t, first, second)
        if _line_is_short(low, high):
            break
    return low if low > 0.0 else t


def _work_of_newton(X, parts, bias, *_):
    """About twenty rounds, in each of which all rows are multiplied with a direction, and a tenth
    of them bends F_μ."""
    rows, m = int(parts.starts[-1] - parts.starts[0]), X.shape[1] + bias
    return 20 * (rows * (30 + 2 * m + m * m // 10) + (len(parts.starts) - 1) * m**3 // 3)


@takes(_work_of_newton, price=8.0)
@kernel
def _newton_fit(k, n_chunks, X, parts, bias, loss, l1, tol, rules, most, ends):
    """min R(w) + Σ c_i loss(1 − y_i(x_i·w + b)) by Newton's steps on F_μ, smoothed about zero and
    then about the dual point last found, for μ = μ⁰, μ⁰/2, …, as solvers/newton.py has them, until
    P − D ≤ tol P or nothing is left to gain, in at most so many rounds."""
    used = _used_rows(parts, k)
    q, p = len(used), X.shape[1]
    m = p + 1 if bias else p
    Z, H, vectors, rows = np.empty((q, m)), np.empty((m, m)), np.zeros((6, m)), np.zeros((9, q))
    v, d, g = vectors[0], vectors[1], vectors[2]
    weights, diagonal, centre = vectors[3], vectors[4], vectors[5]
    data = RowData(rows[0], rows[1], rows[2])
    margins = Margins(rows[3], rows[4], rows[5], rows[6], rows[7], rows[8])
    possible = _load(X, parts, used, bias, Z, data, margins)
    sums, w = np.zeros(5), v[:p]
    mu, rounds, evaluated, reached = rules.first, 0, True, False
    best, bound, b = np.inf, -np.inf, 0.0
    step_of_rows(0, q, Z, data, margins, mu, loss, 0.0, weights, sums)
    while True:
        penalty, smoothed = _penalties(w, mu, centre, l1)
        objective, value = penalty + sums[1], smoothed + sums[0]
        dual = _dual_estimate(sums[2], 0.0 if loss == HINGE else sums[1], weights, p, l1)
        lost = 0.0
        if bias:
            b = v[p]
            lost = abs(weights[p]) * (2.0 + abs(b))  # at most, to balance α
        if objective < best:
            best = objective
            ends.points[k, :] = v
        if dual - lost > bound:
            bound = dual - lost
            _keep_dual(used, data, margins, ends.duals)
        if evaluated:
            _note(ends.trace[k, rounds], mu, value, objective, bound)
            rounds += 1
            reached = best - bound <= ALMOST * tol * best
            if reached or rounds == most:
                break
        owed = _gradient(w, b, weights, mu, centre, objective, l1, g)
        descent = 0.0
        if owed > rules.enough * (objective - dual):
            _add_curvature(Z, margins.curvature, H)
            _bend(H, w, mu, centre, l1, rules.faint * possible / mu)
            descent = _descend(H, diagonal, g, d)
        evaluated = descent > rules.no_descent * abs(value)
        if evaluated:
            _products(Z, d, margins.m)
            t = _seek(w, d, data, margins, mu, centre, loss, l1, descent)
            v += t * d
            step_of_rows(0, q, Z, data, margins, mu, loss, t, weights, sums)
        elif loss != HINGE or mu <= rules.smallest:
            break
        else:
            _recentre(data, margins, w, mu, centre, l1)
            mu *= rules.factor
            step_of_rows(0, q, Z, data, margins, mu, loss, 0.0, weights, sums)
    _say(ends.how[k], rounds, rounds, reached)
