"""The same bounds in rational arithmetic, with nothing of the program's own sums: every number is a
fraction, so nothing is rounded, but for e^x, which is enclosed to fifty digits."""

from decimal import Context, Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from ..errors import InputError
from ..files.model.record import ModelRecord
from ..matrix.matrix import Csr, Matrix
from ..matrix.rows import as_scipy
from .posed import Posed, Proven

MOST = 2_000_000  # products of fractions: about ten seconds
DIGITS = Context(prec=80, Emin=-999999, Emax=999999)
ENCLOSED = Fraction(1, 10**50)  # of 1, that an exponential is off at most
ZERO, HALF = Fraction(0), Fraction(1, 2)

Row = dict[int, Fraction]


def exact_bounds(
    record: ModelRecord, X: Matrix, posed: Posed, proven: Proven
) -> tuple[float, float]:
    """P at the point from above and D at α from below."""
    rows = _rows(X)
    point, alpha = _fractions(proven.point), _fractions(proven.alpha)
    y, c = _fractions(posed.sign), _fractions(posed.c)
    b, signed = Fraction(proven.b), [a * s for a, s in zip(alpha, y, strict=True)]
    off = ZERO
    if record.kernel == "linear":
        _require_small(sum(map(len, rows)))
        weights = _sum_of_rows(signed, rows, len(point))
    else:
        every = record.model == "lpsvm"  # whose features are all columns
        used = [j for j, v in enumerate(point) if every or v or signed[j]]
        _require_small(len(rows) * len(used) * max(1, max(map(len, rows))))
        off = ENCLOSED if record.kernel == "rbf" else ZERO
        rows = [{j: _kernel(record, rows, i, j) for j in used} for i in range(len(rows))]
        weights = _sum_of_rows(signed, rows, len(point))  # K is symmetric
    f = [sum((v * point[j] for j, v in row.items()), ZERO) for row in rows]
    size = sum(map(abs, point), ZERO)
    if record.model == "lpsvm":
        penalty = size
    elif record.kernel == "linear":
        penalty = HALF * sum((v * v for v in point), ZERO)
    else:
        penalty = HALF * (sum((v * g for v, g in zip(point, f, strict=True)), ZERO) + off * size**2)
    P = penalty
    for s, cost, g in zip(y, c, f, strict=True):
        r = 1 - s * (g + b)
        if record.model == "lssvm":
            P += cost * (abs(r) + off * size) ** 2
        else:
            P += cost * max(r + off * size, ZERO)
    return _above(P), _below(_dual(record, posed, alpha, signed, c, weights, off))


def _dual(
    record: ModelRecord,
    posed: Posed,
    alpha: list[Fraction],
    signed: list[Fraction],
    c: list[Fraction],
    weights: list[Fraction],
    off: Fraction,
) -> Fraction | None:
    """D at α from below; None if α is not feasible."""
    size = sum(map(abs, alpha), ZERO)
    value = sum(alpha, ZERO)
    if posed.bias and sum(signed, ZERO) != 0:
        return None
    boxed = record.model != "lssvm"
    for a, cost in zip(alpha, c, strict=True):
        if (boxed and not 0 <= a <= cost) or (a and not cost):
            return None
    if record.model == "lpsvm":
        features = weights
        if record.kernel != "linear":  # only rows that cost something are features
            features = [v for v, cost in zip(weights, c, strict=True) if cost]
        largest = max(map(abs, features), default=ZERO) + off * size
        return value / max(largest, Fraction(1))
    if record.model == "lssvm":
        value -= sum((a * a / (4 * cost) for a, cost in zip(alpha, c, strict=True) if a), ZERO)
    if record.kernel == "linear":
        return value - HALF * sum((v * v for v in weights), ZERO)
    square = sum((s * v for s, v in zip(signed, weights, strict=True)), ZERO)
    return value - HALF * (square + off * size**2)


def _require_small(products: int) -> None:
    if products > MOST:
        raise InputError(
            f"exact sums are for small data: at most {MOST} products, these would be {products}"
        )


def _rows(X: Matrix) -> list[Row]:
    S = as_scipy(X) if isinstance(X, Csr) else None
    if S is None:
        return [{j: Fraction(float(v)) for j, v in enumerate(row) if v} for row in np.asarray(X)]
    ends = S.indptr.tolist()
    return [
        {int(S.indices[k]): Fraction(float(S.data[k])) for k in range(a, b)}
        for a, b in pairwise(ends)
    ]


def _fractions(values: np.ndarray) -> list[Fraction]:
    return [Fraction(float(v)) for v in values]


def _sum_of_rows(signed: list[Fraction], rows: list[Row], width: int) -> list[Fraction]:
    out = [ZERO] * width
    for s, row in zip(signed, rows, strict=True):
        if s:
            for j, v in row.items():
                out[j] += s * v
    return out


def _kernel(record: ModelRecord, rows: list[Row], i: int, j: int) -> Fraction:
    x, z = rows[i], rows[j]
    if record.kernel == "precomputed":
        return Fraction(0.5 * (float(x.get(j, ZERO)) + float(z.get(i, ZERO))))
    gamma = Fraction(record.gamma)
    if record.kernel == "poly":
        product = sum((v * z[k] for k, v in x.items() if k in z), ZERO)
        return (gamma * product + Fraction(record.coef0)) ** record.degree
    keys: Any = x.keys() | z.keys()
    square = sum(((x.get(k, ZERO) - z.get(k, ZERO)) ** 2 for k in keys), ZERO)
    t = gamma * square
    if t > 120:  # below 10⁻⁵²
        return ZERO
    exponent = DIGITS.divide(Decimal(t.numerator), Decimal(t.denominator))
    return Fraction(DIGITS.exp(DIGITS.minus(exponent)))


def _above(value: Fraction) -> float:
    try:
        found = float(value)
    except OverflowError:
        return float("inf")
    return found if Fraction(found) >= value else float(np.nextafter(found, np.inf))


def _below(value: Fraction | None) -> float:
    return float("-inf") if value is None else -_above(-value)
