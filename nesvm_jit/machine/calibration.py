"""Probabilities from decision values: Platt's sigmoid and pairwise coupling."""

from typing import Any

import numpy as np

from ..errors import InputError
from ..matrix.checks import as_vector

CLIP = 1e-7  # least distance of r_ij from 0 and 1, as in LIBSVM
MAX_ROUNDS = 200  # iterations of Newton's method, at most
SUFFICIENT = 1e-4  # a step must bring this share of the decrease that the slope promises
SHORTEST = 1e-10  # backtracking gives up below this share of Newton's step
NOISE = 2e-15  # a gradient below this share of the weight of all rows is only rounding
RIDGE = 1e-12  # share of the diagonal of the Hessian that is added to it
TINY = 1e-290  # divisors below this count as zero


def fit_sigmoid(decisions: Any, positive: Any, weight: Any = None) -> tuple[float, float]:
    """Fit A, B of P(positive | f) = 1/(1 + exp(A f + B)) by the likelihood of Platt's targets,
    which are t = (n₊+1)/(n₊+2) for positive and 1/(n₋+2) for negative rows; a row of weight v
    counts as v rows.

    With z = A f + B, the loss Σ c (t z + log(1 + e⁻ᶻ)) is convex, its derivatives by z are
    c (t − p) and c p (1 − p), and since the targets are inside (0, 1), its minimum is finite. It is
    found by Newton's method with backtracking (Lin, Lin and Weng 2007), on f shifted by its median
    and scaled to [−1, 1]. If all f are equal, A = 0.
    """
    f = as_vector("decisions", decisions)
    positive = np.asarray(positive, dtype=bool)
    if positive.shape != f.shape:
        raise InputError(f"positive must have shape {f.shape}, got {positive.shape}")
    c = as_vector("weight", 1.0 if weight is None else weight, len(f))
    if not c.any() or c.min() < 0:
        raise InputError("weight must have some positive and no negative entries")
    f, positive, c = f[c > 0], positive[c > 0], c[c > 0]
    n_pos, n_neg = float(c[positive].sum()), float(c[~positive].sum())
    t = np.where(positive, (n_pos + 1) / (n_pos + 2), 1 / (n_neg + 2))
    not_t = np.where(positive, 1 / (n_pos + 2), (n_neg + 1) / (n_neg + 2))
    unit = max(float(np.abs(f).max()), TINY)
    g = f / unit
    centre = float(np.median(g))
    g -= centre
    spread = float(np.abs(g).max())
    if spread < 1e-17:  # all equal, or below TINY
        g, spread = np.zeros(len(f)), 1.0
    a, b = _newton(g / spread, t, not_t, c, float(np.log((n_neg + 1) / (n_pos + 1))))
    return a / spread / unit, b - a / spread * centre


def _newton(
    g: np.ndarray, t: np.ndarray, not_t: np.ndarray, c: np.ndarray, b: float
) -> tuple[float, float]:
    """Return the minimiser (a, b) of Σ c (t z + log(1 + e⁻ᶻ)), z = a g + b, starting at (0, b).

    1 − t and 1 − p are computed without subtracting from 1, which would round them to zero for
    heavy weights.
    """

    def loss(a: float, b: float) -> float:
        z = a * g + b
        far = np.abs(z)
        return float(c @ (np.where(z >= 0, t, not_t) * far + np.log1p(np.exp(-far))))

    weight_a, weight_b = float(c @ np.abs(g)), float(c.sum())
    a = 0.0
    value = loss(a, b)
    for _ in range(MAX_ROUNDS):
        p, not_p = sigmoid(g, a, b), sigmoid(g, -a, -b)
        slope, curve = c * np.where(t < 0.5, t - p, not_p - not_t), c * p * not_p
        ga, gb = float(slope @ g), float(slope.sum())
        if abs(ga) <= NOISE * weight_a and abs(gb) <= NOISE * weight_b:
            break
        haa, hab, hbb = float(curve @ (g * g)), float(curve @ g), float(curve.sum())
        haa, hbb = max(haa * (1 + RIDGE), TINY), max(hbb * (1 + RIDGE), TINY)
        det = haa - hab * (hab / hbb)
        da = (gb * (hab / hbb) - ga) / det if det > 0 else 0.0
        db = -(gb + hab * da) / hbb
        gain = -(ga * da + gb * db)
        step = 1.0
        while (new := loss(a + step * da, b + step * db)) > (
            value * (1 + 1e-15) - SUFFICIENT * step * gain
        ):
            step /= 2
            if step < SHORTEST:
                return a, b
        a, b, value = a + step * da, b + step * db, new
    return a, b


def sigmoid(decisions: Any, A: Any, B: Any) -> np.ndarray:
    """Return 1/(1 + exp(A f + B)) without overflow; A and B broadcast, with one per column for
    instance."""
    with np.errstate(over="ignore"):
        z = A * np.asarray(decisions, dtype=np.float64) + B
    e = np.exp(-np.abs(z))
    return np.where(z >= 0, e, 1.0) / (1.0 + e)


def couple(pairwise: Any) -> np.ndarray:
    """Return class probabilities p of shape (n, k) from r_ij = P(i | i or j) of shape (n, k, k),
    with r_ij + r_ji = 1.

    p minimises Σ_{i≠j} (r_ji p_i − r_ij p_j)² = pᵀQp on Σ p = 1: the second method of Wu, Lin and
    Weng (2004). It is computed exactly; LIBSVM's iteration stops at 0.005/k.

    Qp = −b e with b ≤ 0 at the minimum, so p ∝ (Q + eeᵀ)⁻¹ e, and that matrix is well
    conditioned: on Σ v = 0 every pair of opposite signs adds at least min(v_i², v_j²) to vᵀQv.
    """
    r = np.clip(np.asarray(pairwise, dtype=np.float64), CLIP, 1 - CLIP)
    if r.ndim != 3 or r.shape[1] != r.shape[2] or r.shape[1] < 1:
        raise InputError(f"pairwise must have shape (n, k, k), got {r.shape}")
    n, k, _ = r.shape
    diagonal = np.arange(k)
    r[:, diagonal, diagonal] = 0.0
    Q = 1.0 - r * r.transpose(0, 2, 1)
    Q[:, diagonal, diagonal] += np.square(r).sum(axis=1)
    return normalise(np.linalg.solve(Q, np.ones((n, k, 1)))[:, :, 0])


def normalise(scores: Any) -> np.ndarray:
    """Divide rows of one-versus-rest probabilities by their sums, as LIBLINEAR does; return equal
    shares where all are 0. Entries that are below 0 by rounding count as 0."""
    p = np.maximum(np.asarray(scores, dtype=np.float64), 0.0)
    total = p.sum(axis=1, keepdims=True)
    return np.where(total > TINY, p, 1.0) / np.where(total > TINY, total, p.shape[1])
