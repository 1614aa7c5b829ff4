"""A judge of certificates in exact rational arithmetic. Imports nothing of ours.

Every number is a fraction, so nothing is rounded. Only e^x of the RBF kernel is irrational: it is
enclosed to fifty digits, and what is judged then has a margin that comes to 10⁻⁴⁰ of its parts.
"""

from decimal import Context, Decimal
from fractions import Fraction
from typing import NamedTuple

import numpy as np

DIGITS = Context(prec=80, Emin=-999999, Emax=999999)
ENCLOSED = Fraction(1, 10**50)  # of 1, that an exponential is off at most
HALF = Fraction(1, 2)


def fractions(values):
    """The numbers as they are, exactly."""
    return [Fraction(float(v)) for v in np.asarray(values, dtype=np.float64).ravel()]


def table(values):
    """The rows of a matrix, exactly."""
    return [fractions(row) for row in np.asarray(values)]


def dot(a, b):
    return sum((x * z for x, z in zip(a, b, strict=True) if x and z), Fraction(0))


def exp_minus(t):
    """e^{−t} for a fraction t ≥ 0, off by at most ENCLOSED."""
    if t > 120:  # below 10⁻⁵²
        return Fraction(0)
    x = DIGITS.divide(Decimal(t.numerator), Decimal(t.denominator))
    return Fraction(DIGITS.exp(DIGITS.minus(x)))


def kernel_matrix(X, kernel, gamma, coef0, degree):
    """K between all rows, and how far an entry is off at most."""
    if kernel == "precomputed":
        return table(X), Fraction(0)
    rows, g, r = table(X), Fraction(float(gamma)), Fraction(float(coef0))
    if kernel == "poly":
        return [[(g * dot(x, z) + r) ** degree for z in rows] for x in rows], Fraction(0)
    K = [[Fraction(1)] * len(rows) for _ in rows]
    for i, x in enumerate(rows):
        for j in range(i):
            d = [a - b for a, b in zip(x, rows[j], strict=True)]
            K[i][j] = K[j][i] = exp_minus(g * dot(d, d))
    return K, ENCLOSED


class Problem(NamedTuple):
    """min R + Σ c loss(1 − y(x·w + b)), or its kernel form over β, whose rows are those of K."""

    model: str
    rows: list  # x_i, or the rows of K
    y: list
    c: list
    bias: bool
    of_kernel: bool = False
    off: Fraction = Fraction(0)  # an entry of `rows`, at most


def linear(model, X, y, c, bias):
    return Problem(model, table(X), fractions(y), fractions(c), bias)


def with_kernel(model, K, off, y, c, bias):
    return Problem(model, K, fractions(y), fractions(c), bias, True, off)


def objective(problem, w, b):
    """P at (w, b) or (β, b) from below: exactly, or less what the entries may be off."""
    w, b = fractions(w), Fraction(float(b))
    f = [dot(x, w) for x in problem.rows]
    size = sum(map(abs, w), Fraction(0))
    error = problem.off * size
    if problem.model == "lpsvm":
        penalty = size
    elif problem.of_kernel:
        penalty = HALF * dot(w, f) - error * size
    else:
        penalty = HALF * dot(w, w)
    loss = Fraction(0)
    for y, c, margin in zip(problem.y, problem.c, f, strict=True):
        r = 1 - y * (margin + b)
        if problem.model == "lssvm":
            loss += c * max(abs(r) - error, Fraction(0)) ** 2
        else:
            loss += c * max(r - error, Fraction(0))
    return penalty + loss


def violations(problem, alpha):
    """In what way α is not feasible: words, none if it is."""
    alpha, found = fractions(alpha), []
    if problem.bias and dot(alpha, problem.y) != 0:
        found.append(f"Σαy is {float(dot(alpha, problem.y)):g}, not 0")
    if problem.model != "lssvm" and any(
        not 0 <= a <= c for a, c in zip(alpha, problem.c, strict=True)
    ):
        found.append("α is outside its box")
    if any(a != 0 and c == 0 for a, c in zip(alpha, problem.c, strict=True)):
        found.append("α is not 0 where a row costs nothing")
    if problem.model == "lpsvm":
        error = problem.off * sum(map(abs, alpha), Fraction(0))
        largest = max(map(abs, weights(problem, alpha)), default=Fraction(0))
        if largest - error > 1:
            found.append(f"‖Σαyx‖ is 1 + {float(largest - 1):g}")
    return found


def weights(problem, alpha):
    """Σ α_i y_i x_i; with a kernel over the rows that cost something alone, which are its
    features."""
    signed = [a * y for a, y in zip(alpha, problem.y, strict=True)]
    columns = list(zip(*problem.rows, strict=True))
    if problem.of_kernel and problem.model == "lpsvm":
        columns = [k for k, c in zip(columns, problem.c, strict=True) if c > 0]
    return [dot(signed, column) for column in columns]


def dual(problem, alpha):
    """D at α from above: exactly, or with what the entries may be off."""
    alpha = fractions(alpha)
    value = sum(alpha, Fraction(0))
    if problem.model == "lpsvm":
        return value
    if problem.model == "lssvm":
        pairs = zip(alpha, problem.c, strict=True)
        value -= sum((a * a / (4 * c) for a, c in pairs if a), Fraction(0))
    v = weights(problem, alpha)
    if not problem.of_kernel:
        return value - HALF * dot(v, v)
    signed = [a * y for a, y in zip(alpha, problem.y, strict=True)]
    size = sum(map(abs, alpha), Fraction(0))
    return value - HALF * (dot(signed, v) - problem.off * size * size)


def judge(problem, solution):
    """What of a certificate is false, in words: nothing if P at the returned point is not above
    `objective`, α is feasible, D there is not below `dual_objective`, and those are in order."""
    point = solution.w if solution.beta is None else solution.beta
    found = violations(problem, solution.alpha)
    if np.isfinite(solution.objective):
        P = objective(problem, point, solution.b)
        if Fraction(solution.objective) < P:
            found.append(f"P is {float(P)!r}, said to be at most {solution.objective!r}")
    if np.isfinite(solution.dual_objective):
        D = dual(problem, solution.alpha)
        if Fraction(solution.dual_objective) > D:
            found.append(f"D is {float(D)!r}, said to be at least {solution.dual_objective!r}")
    if not solution.dual_objective <= solution.objective:
        found.append(f"bounds {solution.dual_objective!r} and {solution.objective!r} cross")
    return found
