"""Newton's steps on the dual of a kernel C-SVM on a few samples, for K so nearly singular that
steps of two coordinates would go on for ever."""

import numpy as np

from ..jit import exact_loop, helper, takes


@helper
def _solve(L, m, x):
    """x ← (LLᵀ)⁻¹x, by the first m rows of L."""
    for i in range(m):
        row = L[i]
        total = 0.0
        for k in range(i):
            total += row[k] * x[k]
        x[i] = (x[i] - total) / row[i]
    for i in range(m - 1, -1, -1):
        row = L[i]
        x[i] /= row[i]
        for k in range(i):
            x[k] -= row[k] * x[i]


@helper
def _drop(L, m, r, cosine, sine):
    """L becomes the factor of LLᵀ without its row and column r, in the first m − 1 rows.

    The rows below r move up; one rotation for each takes what then stands above the diagonal.
    """
    for i in range(r, m - 1):
        row, below = L[i], L[i + 1]
        for k in range(i + 2):
            row[k] = below[k]
        for k in range(r, i):
            a, b = row[k], row[k + 1]
            row[k] = cosine[k] * a + sine[k] * b
            row[k + 1] = cosine[k] * b - sine[k] * a
        length = np.sqrt(row[i] * row[i] + row[i + 1] * row[i + 1])
        cosine[i], sine[i] = row[i] / length, row[i + 1] / length
        row[i], row[i + 1] = length, 0.0


@helper
def _direction(L, m, inside, bias, e, step, level):
    """step = K_FF⁻¹(e_F − b), F the m samples inside; b, with a bias, such that Σ step = 0."""
    for k in range(m):
        step[k] = e[inside[k]]
        level[k] = 1.0
    _solve(L, m, step)
    if bias:
        _solve(L, m, level)
        total, weight = 0.0, 0.0
        for k in range(m):
            total += step[k]
            weight += level[k]
        for k in range(m):
            step[k] -= total / weight * level[k]


@takes(lambda Q, *_: 20 * Q.size)  # a few steps, each of which changes the whole factor
@exact_loop
def _free_block(Q, lower, upper, ridge, beta):
    """The samples F inside their bounds, and K_FF with a ridge of this size on its diagonal."""
    q = len(beta)
    inside = np.empty(q, np.int64)
    m = 0
    for k in range(q):
        if lower[k] < beta[k] and beta[k] < upper[k]:
            inside[m] = k
            m += 1
    A = np.empty((m, m))
    for s in range(m):
        for k in range(m):
            A[s, k] = Q[inside[s], inside[k]]
        A[s, s] += ridge
    return inside, A


@exact_loop
def _factored_steps(L, inside, Q, lower, upper, bias, beta, e):
    """On the samples F inside their bounds the dual is largest at β_F + K_FF⁻¹(e_F − b): go there,
    or as far as the first of them reaches a bound; leave that one there, and again. Returns the
    steps taken.

    K_FF is factorised once, and each sample that leaves is taken out of the factor.
    """
    q, m = len(beta), len(L)
    step, level, cosine, sine = np.empty(m), np.empty(m), np.empty(m), np.empty(m)
    steps = 0
    while m > (1 if bias else 0):
        _direction(L, m, inside, bias, e, step, level)
        t, first = 1.0, -1
        for s in range(m):
            k = inside[s]
            room = (upper[k] if step[s] > 0.0 else lower[k]) - beta[k]
            if abs(step[s]) * t > abs(room):
                t, first = room / step[s], s
        steps += 1
        left = m
        for s in range(m - 1, -1, -1):
            k = inside[s]
            bound = upper[k] if step[s] > 0.0 else lower[k]
            change = t * step[s]
            row = Q[k]
            for j in range(q):
                e[j] -= change * row[j]
            if s == first or abs(change) >= abs(bound - beta[k]):
                beta[k] = bound
                _drop(L, left, s, cosine, sine)
                left -= 1
                for j in range(s, left):
                    inside[j] = inside[j + 1]
            else:
                beta[k] = min(max(beta[k] + change, lower[k]), upper[k])
        if left == m:
            break
        m = left
    return steps


@exact_loop
def _newton_steps(Q, lower, upper, bias, ridge, beta, e):
    """The steps on the samples inside their bounds, K_FF being factorised by LAPACK."""
    inside, A = _free_block(Q, lower, upper, ridge, beta)
    return _factored_steps(np.linalg.cholesky(A), inside, Q, lower, upper, bias, beta, e)
