"""Bounds of a linear machine: weights and b, and perhaps the coefficients of its rows."""

import time
from functools import partial

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_matrix, hstack

from ..clock import apart
from ..kernels.loss import HINGE
from ..matrix.checks import as_matrix
from ..matrix.matrix import Csr, Matrix
from ..matrix.rows import as_scipy
from ..models import MODELS
from ..problems.blocks import Resident
from ..problems.certificate import DualPoint, balanced_and_scaled, dual_of_margins, scaled, sums_of
from ..problems.lower_bound import settle_dual
from ..problems.rounding import Columns
from ..problems.settling import settle_linear
from ..problems.shard import Shard
from ..problems.sharpness import rounding_felt
from .posed import COEFFICIENTS, MARGINS, POLISHED, Posed, Proven
from .proximal import climb

WIDTHS = (1e-4, 1e-2, 1.0)  # of the margin, over which α falls from c to 0: the best is taken
TOL = 1e-8  # sums are made nearly exactly where rounding takes a tenth of this share of P
FREE = 1e-3  # of an LP-SVM, rows whose |r| is larger have α = 0 or c


def with_feature(X: Matrix, value: float) -> Matrix:
    """X with one more column, the feature whose weight is a penalised bias."""
    n, held = X.shape[0], (X.data if isinstance(X, Csr) else X).dtype
    kind = np.float32 if held == np.float32 and float(np.float32(value)) == value else np.float64
    column = np.full((n, 1), value, dtype=kind)
    if isinstance(X, Csr):
        return as_matrix(hstack([as_scipy(X).astype(kind), csr_matrix(column)], format="csr"))
    return as_matrix(np.hstack([X.astype(kind), column]))


def prove_linear(
    X: Matrix,
    posed: Posed,
    model: str,
    w: np.ndarray,
    b: float,
    alpha: np.ndarray | None,
    columns: Columns | None = None,
) -> Proven:
    """P at (w, b) and the best D that the coefficients lead to, or the margins."""
    shard = Shard(Resident(X), posed.sign, posed.c, MODELS[model](), posed.bias)
    passes, came_from = 2.0, MARGINS if alpha is None else COEFFICIENTS
    seconds = posed.without if alpha is None else posed.with_coefficients
    better = None
    if alpha is None:
        f = shard.margins_at(w, b)
        alpha, more = _from_margins(shard, f)
        passes += more + 1.0
        if model == "lpsvm" and seconds > 0.0:
            better = _by_linear_program(X, posed, f, seconds)
    if model == "csvm" and seconds > 0.0:
        better, more = climb(X, posed.sign, posed.c, posed.bias, alpha, w, b, seconds)
        passes += more
    objective, found, _ = settle_linear(shard, w, b, alpha, TOL, columns)
    if better is not None:  # it was as far as the time allowed, which may be worse
        polished = settle_dual(shard, better, rounding_felt(shard, objective, TOL), columns)
        passes += 1.0
        if polished.value > found.value:
            found, came_from = polished, POLISHED
    point = (objective, found.value, w, b, shard.collect(found.alpha))
    return Proven(*point, came_from, passes).at_least_zero()


def _from_margins(shard: Shard, f: np.ndarray) -> tuple[np.ndarray, float]:
    """The best dual point of a few that margins lead to, made feasible, and the passes it took."""
    square = shard.model.loss != HINGE
    centre = shard.rows.c / 2.0
    found: list[DualPoint] = []
    passes = 0.0
    for width in WIDTHS[:1] if square else WIDTHS:
        alpha = shard.map(dual_of_margins, (f, centre), (width, shard.model.loss))
        if shard.bias:
            point, more = balanced_and_scaled(shard, alpha)
        else:
            point = scaled(shard, alpha, sums_of(shard, alpha, shard.dual_weights(alpha)))
            more = 1
        passes += more
        found.append(point)
    return max(found, key=lambda point: point.value).alpha, passes


def _by_linear_program(X: Matrix, posed: Posed, f: np.ndarray, seconds: float) -> np.ndarray | None:
    """α of an LP-SVM: max Σα over |Σ α_i y_i x_ij| ≤ 1 and the box, which is made a point where
    the margins leave no doubt; None if there is no such point, or no time."""
    r, deadline = 1.0 - posed.sign * f, time.perf_counter() + seconds
    for near in (FREE, np.inf):
        inside = (np.abs(r) <= near) & (posed.c > 0.0)
        fixed = np.where(~inside & (r > 0.0), posed.c, 0.0) * posed.sign
        A = as_scipy(X).astype(np.float64)
        before, columns = A.T @ fixed, A[inside].multiply(posed.sign[inside, None]).T.tocsr()
        left = deadline - time.perf_counter()
        if left <= 0.0 or not inside.any():
            continue
        program = partial(
            linprog,
            -np.ones(int(inside.sum())),
            A_ub=csr_matrix(np.vstack([columns.toarray(), -columns.toarray()])),
            b_ub=np.concatenate([1.0 - before, 1.0 + before]),
            A_eq=posed.sign[inside][None, :] if posed.bias else None,
            b_eq=[-fixed.sum()] if posed.bias else None,
            bounds=np.column_stack([np.zeros(int(inside.sum())), posed.c[inside]]),
            method="highs",
            options={"time_limit": left},
        )
        found = apart(program)
        if found.x is not None:
            alpha = np.abs(fixed)
            alpha[inside] = found.x
            return alpha
    return None
