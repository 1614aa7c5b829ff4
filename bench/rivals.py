"""The NumPy and SciPy way of what the kernels do, in the precision of its arguments."""

import numpy as np
from scipy.sparse import issparse
from scipy.sparse.linalg import norm as sparse_norm


def sweep(X, y, w, b, c, s, mu):
    """Two products and the clip arithmetic between them; returns the ascent."""
    r = 1 - y * (X @ w + b)
    u = np.clip(r / (mu * s), 0, 1)
    smoothed = (c * u * (r - 0.5 * mu * s * u)).sum()
    loss = (c * np.maximum(r, 0)).sum()
    a = c * y * u
    ascent = X.T @ a
    return ascent, u, smoothed, loss, a.sum()


def row_norms(X):
    """‖x_i‖₂ and ‖x_i‖_∞, without a temporary copy of a dense X."""
    if issparse(X):
        return sparse_norm(X, axis=1), abs(X).max(axis=1)
    return np.sqrt(np.einsum("ij,ij->i", X, X)), np.maximum(X.max(axis=1), -X.min(axis=1))


def accumulate_change(X, new, old, out):
    """out += Xᵀ(new − old), of the rows that differ only: copying these is cheaper than all."""
    rows = np.flatnonzero(new != old)
    out += X[rows].T @ (new[rows] - old[rows])
    return out


def hessian(X, d):
    """Xᵀ diag(d) X over the rows with d ≠ 0, as BᵀB with B = diag(√d) X (BLAS does half of it)."""
    rows = np.flatnonzero(d)
    root = np.sqrt(d[rows])
    if issparse(X):
        B = X[rows].multiply(root[:, None]).tocsr()
        return (B.T @ B).toarray()
    B = X[rows] * root[:, None]
    return B.T @ B


def rbf(X, gamma):
    """scikit-learn's kernel matrix, or from distances of SciPy where it is not installed."""
    try:
        from sklearn.metrics.pairwise import rbf_kernel
    except ImportError:
        from scipy.spatial.distance import cdist

        X = X.toarray() if issparse(X) else X
        return np.exp(-gamma * cdist(X, X, "sqeuclidean"))
    return rbf_kernel(X, gamma=gamma)
