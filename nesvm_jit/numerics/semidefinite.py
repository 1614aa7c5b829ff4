"""Prove that a symmetric matrix plus a small diagonal is positive semidefinite.

A Cholesky factorisation of A that succeeds is exact for A + E with |E_ij| ≤ γ √(a_ii a_jj), in
whatever order its sums are made (Demmel 1989; Higham, Theorem 10.3). Hence λ_min(A) ≥ −γ′ tr(A)
(Rump 2006). Here A is σI plus the matrix scaled to a unit diagonal by powers of two, which is
exact.
"""

import numpy as np

from .cholesky import factorise

UNIT = 2.0**-53
SMALLEST = 2.0**-500  # the scale of a row whose diagonal entry is zero
SPARE = 8.0  # roundings beyond one for each row: those of reciprocals and of the sum σ + a_ii


def proven_diagonal(K: np.ndarray, most: float) -> np.ndarray | None:
    """Return d ≥ 0, as small as can be proven, such that K + diag(d) is positive semidefinite.

    Return None if the entries of d would have to be above about the share `most` of the trace.
    """
    diagonal = np.diagonal(K).astype(np.float64)
    n = float(len(K))
    off = 1.01 * (n + SPARE) * UNIT * n  # γ′ times a trace that is below n(1 + σ)
    each, largest = _scales(diagonal), np.full(len(K), diagonal.max(initial=0.0))
    one = _scales(largest)
    # first a share of every diagonal entry, then one of the largest, which may be far larger
    tried = [(each, off), (one, off), (one, (off * n * most) ** 0.5), (one, n * most)]
    for scale, sigma in tried:
        if sigma >= off and _factorises(K, scale, sigma):
            share = (sigma + off * (1.0 + sigma)) * (1.0 + 8.0 * UNIT)
            return share * scale * scale + 2.0**-1000
    return None


def _scales(diagonal: np.ndarray) -> np.ndarray:
    """Return powers of two; division by their squares brings the diagonal into [1/4, 1)."""
    scale, used = np.full(len(diagonal), SMALLEST), diagonal > 0.0
    scale[used] = np.ldexp(1.0, (np.frexp(diagonal[used])[1] + 1) // 2)
    return scale


def _factorises(K: np.ndarray, scale: np.ndarray, sigma: float) -> bool:
    with np.errstate(over="ignore", invalid="ignore"):
        A = np.asfortranarray(K / scale / scale[:, None], dtype=np.float64)
    A[np.diag_indices(len(A))] += sigma
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            L = factorise(A)
    except np.linalg.LinAlgError:
        return False
    return bool(np.isfinite(np.diagonal(L)).all())
