"""The dual of a kernel C-SVM on a few samples, by steps of one or two coordinates.

In β = α∘y the dual is max yᵀβ − ½βᵀKβ over lower ≤ β ≤ upper (0 and c for y = +1, −c and 0 for
y = −1), with Σβ = 0 where there is a free bias. Its gradient is e = y − Kβ. A sample may rise
while β < upper and fall while β > lower.
"""

import numpy as np

from ..jit import chunk_bounds, chunk_count, exact_loop, helper, kernel, takes

TINY = 1e-12  # least curvature of a step: K may be indefinite by rounding, or rows equal
COLUMNS = 512  # of the kernel matrix that a chunk adds up, about


@helper
def _largest(v):
    """max v."""
    # eight running maxima: NaN being allowed for, the compiler may not split one by itself
    m0, m1, m2, m3, m4, m5, m6, m7 = v[0], v[0], v[0], v[0], v[0], v[0], v[0], v[0]
    whole = len(v) // 8 * 8
    for k in range(0, whole, 8):
        m0 = v[k] if v[k] > m0 else m0
        m1 = v[k + 1] if v[k + 1] > m1 else m1
        m2 = v[k + 2] if v[k + 2] > m2 else m2
        m3 = v[k + 3] if v[k + 3] > m3 else m3
        m4 = v[k + 4] if v[k + 4] > m4 else m4
        m5 = v[k + 5] if v[k + 5] > m5 else m5
        m6 = v[k + 6] if v[k + 6] > m6 else m6
        m7 = v[k + 7] if v[k + 7] > m7 else m7
    for k in range(whole, len(v)):
        m0 = v[k] if v[k] > m0 else m0
    return max(max(max(m0, m1), max(m2, m3)), max(max(m4, m5), max(m6, m7)))


@helper
def _where(v, value):
    """The first k with v_k = value."""
    k = 0
    for start in range(0, len(v) - 15, 16):  # sixteen at a time, without a branch
        hits = 0
        for m in range(start, start + 16):
            hits += v[m] == value
        if hits > 0:
            break
        k = start + 16
    while k < len(v) - 1 and v[k] != value:
        k += 1
    return k


@helper
def _partner(i, Qi, diagonal, top, falling, gain):
    """The j of largest gain (e_i − e_j)²/η, η = K_ii + K_jj − 2K_ij, among those that may fall."""
    for k in range(len(falling)):
        d = top + falling[k]
        d = d if d > 0.0 else 0.0
        eta = diagonal[i] + diagonal[k] - 2.0 * Qi[k]
        eta = eta if eta > TINY else TINY
        gain[k] = d * d / eta
    return _where(gain, _largest(gain))


@helper
def _alone(diagonal, lower, upper, beta, e, gain):
    """The i of largest gain t(e_i − ½K_ii t), t = median{e_i/K_ii, lower − β_i, upper − β_i}."""
    for k in range(len(beta)):
        curvature = max(diagonal[k], TINY)
        t = min(max(e[k] / curvature, lower[k] - beta[k]), upper[k] - beta[k])
        gain[k] = t * (e[k] - 0.5 * curvature * t)
    return _where(gain, _largest(gain))


@helper
def _shifted(beta, t, lower, upper):
    """β + t; a bound is met exactly, never by a sum that rounds."""
    if t >= upper - beta:
        return upper
    if t <= lower - beta:
        return lower
    return min(max(beta + t, lower), upper)


@takes(lambda Q, *_: 8 * Q.size)  # about as many steps as there are samples
@exact_loop
def _dual_steps(Q, diagonal, lower, upper, bias, threshold, most, beta, e):
    """Raise β_i and lower β_j by t = median{(e_i − e_j)/η, 0, room}, i the steepest that may rise,
    until no pair has e_i − e_j > threshold; Σβ stays as it is. Without a bias, move one β_i alone
    where that gains more, until |e_i| ≤ threshold for all that may move. Returns the steps taken.

    Pairs serve also without a bias: one at a time, rows that are nearly equal but of different
    class push each other to their bounds in countless steps.
    """
    q = len(beta)
    rising, falling = np.empty(q), np.empty(q)  # e where β may rise, −e where it may fall, else −∞
    gain = np.empty(q)
    for k in range(q):
        rising[k] = e[k] if beta[k] < upper[k] else -np.inf
        falling[k] = -e[k] if beta[k] > lower[k] else -np.inf
    for step in range(most):
        top, bottom = _largest(rising), _largest(falling)
        if not (top + bottom if bias else max(top, bottom)) > threshold:
            return step
        i, j, t, won = 0, 0, 0.0, 0.0
        if top + bottom > 0.0:
            i = _where(rising, top)
            j = _partner(i, Q[i], diagonal, top, falling, gain)
            eta = max(diagonal[i] + diagonal[j] - 2.0 * Q[i, j], TINY)
            t = min((e[i] - e[j]) / eta, min(upper[i] - beta[i], beta[j] - lower[j]))
            won = t * (e[i] - e[j] - 0.5 * eta * t)
        if not bias:
            k = _alone(diagonal, lower, upper, beta, e, gain)
            if gain[k] >= won:
                i, j, t = k, k, e[k] / max(diagonal[k], TINY)
        Qi, Qj = Q[i], Q[j]
        if i == j:
            new = _shifted(beta[i], t, lower[i], upper[i])
            t = new - beta[i]
            beta[i] = new
            for k in range(q):
                change = t * Qi[k]
                e[k] -= change
                rising[k] -= change
                falling[k] += change
        else:
            beta[i] = _shifted(beta[i], t, lower[i], upper[i])
            beta[j] = _shifted(beta[j], -t, lower[j], upper[j])
            for k in range(q):
                change = t * (Qi[k] - Qj[k])
                e[k] -= change
                rising[k] -= change
                falling[k] += change
        for k in (i, j):
            rising[k] = e[k] if beta[k] < upper[k] else -np.inf
            falling[k] = -e[k] if beta[k] > lower[k] else -np.inf
    return most


@kernel
def _add_columns(k, n_chunks, K, slots, a, out):
    lo, hi = chunk_bounds(len(out), n_chunks, k)
    m = len(slots)
    whole = m // 4 * 4
    for s in range(0, whole, 4):
        K0, K1, K2, K3 = K[slots[s]], K[slots[s + 1]], K[slots[s + 2]], K[slots[s + 3]]
        a0, a1, a2, a3 = a[s], a[s + 1], a[s + 2], a[s + 3]
        for j in range(lo, hi):
            out[j] += (a0 * K0[j] + a1 * K1[j]) + (a2 * K2[j] + a3 * K3[j])
    for s in range(whole, m):
        K0 = K[slots[s]]
        for j in range(lo, hi):
            out[j] += a[s] * K0[j]


def _add_rows(K, slots, a, out):
    """out_j += Σ_s a_s K[slots_s, j], always in the order of s."""
    chunks = chunk_count(-(-len(out) // COLUMNS), len(out) * len(slots))
    _add_columns(chunks, K, slots, a, out)


@kernel
def _block_rows(k, n_chunks, K, slots, targets, columns, out):
    lo, hi = chunk_bounds(len(slots), n_chunks, k)
    for s in range(lo, hi):
        row, target = K[slots[s]], out[targets[s]]
        for t in range(len(columns)):
            target[t] = row[columns[t]]


def _block(K, slots, targets, columns, out):
    """out[targets_s, t] = K[slots_s, columns_t]."""
    chunks = chunk_count(len(slots), 4 * len(slots) * len(columns))
    _block_rows(chunks, K, slots, targets, columns, out)
