"""Cholesky factors of large matrices, and of matrices that may be nearly singular."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..clock import look

SMALL = 64  # systems of at most so many columns are solved by NumPy: loading SciPy takes longer
AT_ONCE = 1024  # matrices of at most so many rows are factorised at once, in a tenth of a second
PANEL = 128  # columns of a panel; larger matrices are factorised panel by panel
STRIP = 2048  # rows of a panel that are computed between two looks at the clock
RIDGES = (0.0, 1e-12, 1e-9, 1e-6, 1e-3, 1.0)  # shares of the largest diagonal entry, tried in turn


def factorise(A: np.ndarray) -> np.ndarray:
    """Compute L of A = LLᵀ in the lower triangle of A, and return A.

    Entries above the diagonal keep their values. LinAlgError is raised if A is not positive
    definite. Large matrices are factorised panel by panel, after the products of the columns on
    the left are subtracted.
    """
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
            rest = strip[:, lo:hi] - strip[:, :lo] @ A[lo:hi, :lo].T
            strip[:, lo:hi] = solve_triangular(L, rest.T, lower=True, check_finite=False).T
    return A


def factor_of(A: np.ndarray) -> np.ndarray:
    """Return a matrix whose lower triangle is L of A = LLᵀ; A is not changed.

    LinAlgError is raised if A is not positive definite.
    """
    # scipy's factorisation would hold up the other threads of Python
    return np.linalg.cholesky(A) if len(A) <= AT_ONCE else factorise(A.copy())


def solve_ridged(
    M: np.ndarray, factorise: Callable[[np.ndarray], Any], solve: Callable[[Any], Any]
) -> Any:
    """Factorise the symmetric M and return what `solve` returns for the factor.

    The diagonal of M is raised by one of RIDGES after the other until M can be factorised and
    `solve` does not return None. If that never happens, None is returned. M is changed.
    """
    diagonal = np.einsum("ii->i", M)
    scale, added = float(diagonal.max(initial=0.0)), 0.0
    for ridge in RIDGES:
        diagonal += (ridge - added) * scale
        added = ridge
        try:
            factor = factorise(M)
        except np.linalg.LinAlgError:
            continue
        solution = solve(factor)
        if solution is not None:
            return solution
    return None


def solve_factored(L: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return (LLᵀ)⁻¹b for a lower triangle L; entries above the diagonal are not read. LAPACK is
    called directly, since SciPy's cho_solve takes twice as long by checking its arguments, and for
    the transpose, whose order of entries it need not change."""
    if len(L) <= SMALL:
        L = np.tril(L)
        return np.linalg.solve(L.T, np.linalg.solve(L, b))
    from scipy.linalg.lapack import dpotrs

    solution: np.ndarray = dpotrs(L.T, b, lower=0)[0]
    return solution
