"""A proof that a symmetric matrix is positive semidefinite, but for a diagonal that is known.

A Cholesky factorisation of A that runs to its end has factored A + E with |E_ij| ≤ γ √(a_ii a_jj)
(Demmel 1989; Higham, Theorem 10.3), in any order of its sums, so that λ_min(A) ≥ −γ′ tr(A) (Rump
2006). A is the matrix scaled to a unit diagonal by powers of two, which is exact, plus σI.
"""

import numpy as np

from .cholesky import factorise

UNIT = 2.0**-53
SMALLEST = 2.0**-500  # scale of a row whose diagonal entry is zero
SPARE = 8.0  # roundings beside one for each row: reciprocals, the scaled sum σ + a_ii


def proven_diagonal(K: np.ndarray, most: float) -> np.ndarray | None:
    """Numbers d_i ≥ 0, as small as can be proven, such that K + diag(d) is positive semidefinite;
    None if they would have to be above the share `most` of the trace, about."""
    diagonal = np.diagonal(K).astype(np.float64)
    n = float(len(K))
    off = 1.01 * (n + SPARE) * UNIT * n  # γ′ times a trace that is below n(1 + σ)
    each, largest = _scales(diagonal), np.full(len(K), diagonal.max(initial=0.0))
    one = _scales(largest)
    # a share of every entry first; then of the largest, which any other may be small beside
    tried = [(each, off), (one, off), (one, (off * n * most) ** 0.5), (one, n * most)]
    for scale, sigma in tried:
        if sigma >= off and _factorises(K, scale, sigma):
            share = (sigma + off * (1.0 + sigma)) * (1.0 + 8.0 * UNIT)
            return share * scale * scale + 2.0**-1000
    return None


def _scales(diagonal: np.ndarray) -> np.ndarray:
    """Powers of two whose squares bring the diagonal into [1/4, 1)."""
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
