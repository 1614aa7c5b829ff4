"""Cholesky factors of matrices that may be singular, or nearly so."""

from collections.abc import Callable
from typing import Any

import numpy as np

SMALL = 64  # columns up to which NumPy solves: loading scipy.linalg takes longer
RIDGES = (0.0, 1e-12, 1e-9, 1e-6, 1e-3, 1.0)  # shares of the largest entry on the diagonal


def solve_ridged(
    M: np.ndarray, factorise: Callable[[np.ndarray], Any], solve: Callable[[Any], Any]
) -> Any:
    """What `solve` makes of a factor of the symmetric M, whose diagonal is raised until it can be
    factorised and `solve` finds something; None if it never does. M is changed."""
    diagonal = np.einsum("ii->i", M)
    scale, added = float(diagonal.max(initial=0.0)), 0.0
    for ridge in RIDGES:
        diagonal += (ridge - added) * scale
        added = ridge
        try:
            factor = factorise(M)
        except np.linalg.LinAlgError:
            continue
        found = solve(factor)
        if found is not None:
            return found
    return None


def solve_factored(L: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(LLᵀ)⁻¹b for a lower triangle L, by LAPACK itself: scipy's cho_solve takes as long again to
    look at its arguments."""
    if len(L) <= SMALL:
        return np.linalg.solve(L.T, np.linalg.solve(L, b))
    from scipy.linalg.lapack import dpotrs

    found: np.ndarray = dpotrs(L, b, lower=1)[0]
    return found
