"""A small kernel machine in one call: steps of pairs on the kernel matrix, or one factorisation."""

import numpy as np

from ..jit import helper, kernel, takes
from .dual_newton import _factored_steps, _free_block, _solve
from .loss import HINGE, true_loss
from .pairwise import _dual_steps
from .small import ALMOST, _factorise, _note, _say, _used_rows

_true_loss = helper(true_loss)  # inlined, it would lengthen compiling

ONE_BY_ONE = 5  # steps of pairs for each row, and as many as MORE_PAIRS, before Newton's steps
MORE_PAIRS = 1000
CLOSER = 0.4  # share of the violation that steps of pairs leave from one certificate to the next
RIDGE = 1e-10  # share of K's largest diagonal entry, added to K for Newton's steps
REFINEMENTS = 3  # of the solution of a linear system; more change nothing but rounding


@helper
def _free_steps(Q, lower, upper, bias, ridge, beta, e):
    """Newton's steps on the samples inside their bounds; none where their block has no factor."""
    inside, L = _free_block(Q, lower, upper, ridge, beta)
    if not _factorise(L, len(L)):
        return 0
    return _factored_steps(L, inside, Q, lower, upper, bias, beta, e)


@helper
def _between(K, parts, used):
    """K between some rows; K itself where they are all of its rows in their order."""
    q = len(used)
    whole = q == len(K)
    for i in range(q):
        whole = whole and parts.index[used[i]] == i
    if whole:
        return K
    Q = np.empty((q, q))
    for i in range(q):
        row = K[parts.index[used[i]]]
        for j in range(q):
            Q[i, j] = row[parts.index[used[j]]]
    return Q


@helper
def _level(beta, e, lower, upper, bias):
    """The b between the e of rows that may rise and of those that may fall, and how far the two
    are apart where they violate optimality."""
    top, bottom = -np.inf, np.inf
    for i in range(len(beta)):
        if beta[i] < upper[i]:
            top = max(top, e[i])
        if beta[i] > lower[i]:
            bottom = min(bottom, e[i])
    if not bias:
        return 0.0, max(top, -bottom)
    if top == -np.inf or bottom == np.inf:
        return top if bottom == np.inf else bottom, 0.0
    return 0.5 * (top + bottom), top - bottom


@helper
def _hinge_values(y, c, beta, e, b):
    """P and D at β of a C-SVM, given e = y − Kβ."""
    square, gain, loss = 0.0, 0.0, 0.0
    for i in range(len(y)):
        f = y[i] - e[i]
        square += beta[i] * f
        gain += beta[i] * y[i]
        loss += c[i] * _true_loss(1.0 - y[i] * (f + b), HINGE)
    return 0.5 * square + loss, gain - 0.5 * square


def _work_of_pairs(K, parts, *_):
    """About ten steps for each row, each of which looks at all rows twice."""
    return 20 * int((np.diff(parts.starts) ** 2).sum())


@takes(_work_of_pairs, price=3.0)
@kernel
def _pairs_fit(k, n_chunks, K, parts, bias, tol, most, ends):
    """max yᵀβ − ½βᵀKβ over 0 ≤ β_i y_i ≤ c_i, with Σβ = 0 where there is a bias, by steps of pairs
    to smaller and smaller violations, and Newton's steps where those are too many, until
    P − D ≤ tol P, in at most so many rounds."""
    used = _used_rows(parts, k)
    q = len(used)
    Q = _between(K, parts, used)
    y, c, lower, upper = np.empty(q), np.empty(q), np.zeros(q), np.zeros(q)
    diagonal, beta, e = np.empty(q), np.zeros(q), np.empty(q)
    ridge = 0.0
    for i in range(q):
        y[i], c[i], diagonal[i] = parts.y[used[i]], parts.c[used[i]], Q[i, i]
        e[i] = y[i]
        if y[i] > 0.0:
            upper[i] = c[i]
        else:
            lower[i] = -c[i]
        ridge = max(ridge, RIDGE * diagonal[i])
    few = ONE_BY_ONE * q + MORE_PAIRS
    b, violation = _level(beta, e, lower, upper, bias)
    threshold, rounds, steps, reached = CLOSER * violation, 0, 0, False
    while True:
        objective, dual = _hinge_values(y, c, beta, e, b)
        _note(ends.trace[k, rounds], 0.0, objective, objective, dual)
        rounds += 1
        reached = objective - dual <= ALMOST * tol * objective
        if reached or rounds == most or not violation > 0.0:
            break
        taken = _dual_steps(Q, diagonal, lower, upper, bias, threshold, few, beta, e)
        if taken == few:
            steps += _free_steps(Q, lower, upper, bias, ridge, beta, e)
        b, violation = _level(beta, e, lower, upper, bias)
        threshold = CLOSER * min(threshold, violation)
    for i in range(q):
        ends.duals[used[i]] = beta[i]
    ends.points[k, 0] = b
    _say(ends.how[k], rounds, steps, reached)


def _work_of_factors(K, parts, *_):
    """A factorisation by rows."""
    return int((np.diff(parts.starts) ** 3).sum()) // 6


@takes(_work_of_factors, price=2.0)
@kernel
def _least_squares_fit(k, n_chunks, K, parts, bias, tol, most, ends):
    """(K + diag(1/(2c)))β + b·1 = y, with Σβ = 0 where there is a bias: an LS-SVM's β by one
    factorisation, refined in as many rounds as it takes, and at most in so many."""
    used = _used_rows(parts, k)
    q = len(used)
    Q = _between(K, parts, used)
    y, ridge, beta, f = np.empty(q), np.empty(q), np.zeros(q), np.zeros(q)
    L, level, step = np.empty((q, q)), np.ones(q), np.empty(q)
    for i in range(q):
        y[i], ridge[i] = parts.y[used[i]], 0.5 / parts.c[used[i]]
        for j in range(i):
            L[i, j] = Q[i, j]
        L[i, i] = Q[i, i] + ridge[i]
    positive_definite = _factorise(L, q)
    b, rounds, reached = 0.0, 0, False
    if positive_definite and bias:
        _solve(L, q, level)
    while positive_definite:
        rest, total, weight = 0.0, 0.0, 0.0
        for i in range(q):
            step[i] = y[i] - b - f[i] - ridge[i] * beta[i]
        _solve(L, q, step)
        if bias:
            for i in range(q):
                rest += step[i] + beta[i]
                weight += level[i]
            rest /= weight
            b += rest
        for i in range(q):
            beta[i] += step[i] - rest * level[i]
            total += beta[i]
        for i in range(q):
            f[i] = 0.0
        for i in range(q):
            row = Q[i]
            for j in range(q):
                f[j] += beta[i] * row[j]
        square, gain, loss, squares = 0.0, 0.0, 0.0, 0.0
        for i in range(q):
            r = 1.0 - y[i] * (f[i] + b)
            square += beta[i] * f[i]
            gain += beta[i] * y[i]
            loss += 0.5 * r * r / ridge[i]
            squares += 0.5 * beta[i] * beta[i] * ridge[i]
        objective, dual = 0.5 * square + loss, gain - 0.5 * square - squares
        _note(ends.trace[k, rounds], 0.0, objective, objective, dual)
        rounds += 1
        lost = abs(total) * (2.0 + abs(b)) if bias else 0.0
        reached = objective - dual + lost <= ALMOST * tol * objective
        if reached or rounds == min(most, 1 + REFINEMENTS):
            break
    for i in range(q):
        ends.duals[used[i]] = beta[i]
    ends.points[k, 0] = b
    _say(ends.how[k], rounds, 0, reached)
