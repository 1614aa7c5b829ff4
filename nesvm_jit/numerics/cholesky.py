"""Cholesky factors of matrices that may be singular, or nearly so, and of large ones."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..clock import look

SMALL = 64  # columns up to which NumPy solves: loading scipy.linalg takes longer
AT_ONCE = 1024  # rows up to which LAPACK factorises the whole matrix: in a tenth of a second
PANEL = 128  # columns that are factorised between two looks at the clock, in strips of ...
STRIP = 2048  # ... so many rows
RIDGES = (0.0, 1e-12, 1e-9, 1e-6, 1e-3, 1.0)  # shares of the largest entry on the diagonal


def factorise(A: np.ndarray) -> np.ndarray:
    """L of A = LLᵀ in the place of the lower triangle of A; the entries above the diagonal stay.
    It raises LinAlgError if A is not positive definite. Large matrices are factorised panel by
    panel, each less what the columns on its left take from it."""
    n = len(A)
    size = n if n <= AT_ONCE else PANEL
    for lo in range(0, n, max(1, size)):
        hi = min(n, lo + size)
        corner = A[lo:hi, lo:hi] - A[lo:hi, :lo] @ A[lo:hi, :lo].T
        L = np.linalg.cholesky(corner)
        A[lo:hi, lo:hi] = np.tril(L) + np.triu(A[lo:hi, lo:hi], 1)
        if hi < n:
            from scipy.linalg import solve_triangular
        for top in range(hi, n, STRIP):
            look()
            strip = A[top : min(n, top + STRIP)]
            left = strip[:, lo:hi] - strip[:, :lo] @ A[lo:hi, :lo].T
            strip[:, lo:hi] = solve_triangular(L, left.T, lower=True, check_finite=False).T
    return A


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
    """(LLᵀ)⁻¹b for a lower triangle L, whatever stands above it; by LAPACK itself, since scipy's
    cho_solve takes as long again to look at its arguments."""
    if len(L) <= SMALL:
        L = np.tril(L)
        return np.linalg.solve(L.T, np.linalg.solve(L, b))
    from scipy.linalg.lapack import dpotrs

    found: np.ndarray = dpotrs(L, b, lower=1)[0]
    return found
