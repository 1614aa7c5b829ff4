"""Data for tests, each cloud by its name, and cases of every scale. Imports nothing of ours."""

from itertools import combinations, product
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, random_array

KINDS = ("dense float64", "dense float32", "CSR float64", "CSR float32", "dense int8", "CSR uint8")
ODD_LABELS = (0.5, -3.0, 1e10, 7.0)


def as_kind(X, kind):
    """The array X as a matrix of that kind: rounded to whole numbers and cut to their range (which
    has negative ones unless they are unsigned) where the kind demands it."""
    layout, dtype = kind.split()
    if "int" in dtype:
        X = np.rint(X).clip(np.iinfo(dtype).min, np.iinfo(dtype).max)
    A = X.astype(dtype)
    return csr_matrix(A) if layout == "CSR" else A


# ---------------------------------------------------------------- rows of two classes, +1 and −1


def sparse_normal(n, p, seed=0, density=0.4):
    rng = np.random.default_rng(seed)
    return 3 * rng.standard_normal((n, p)) * (rng.random((n, p)) < density)


def half_space(n=40, p=5, seed=0, noise=1.0):
    """Rows of zeros and normal numbers, classes on either side of a noisy plane."""
    return _half_space(np.random.default_rng(seed), n, p, seed, noise)


def half_space_and_costs(n=40, p=5, seed=0):
    """A noisier half space with the row costs c, of which the third and some others are zero."""
    rng = np.random.default_rng(seed)
    X, y = _half_space(rng, n, p, seed, noise=3)
    c = 10 * rng.random(n) * (rng.random(n) < 0.9)
    c[:3] = [1.0, 1.0, 0.0]
    return X, y, c


def _half_space(rng, n, p, seed, noise):
    X = sparse_normal(n, p, seed, density=0.7)
    y = np.sign(X @ rng.standard_normal(p) + noise * rng.standard_normal(n) + 0.5)
    y[:2] = [-1, 1]
    return X, np.where(y == 0, 1.0, y)


def csr_half_space(n=300, p=8):
    """A half space through the origin, as a CSR matrix."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p)) * (rng.random((n, p)) < 0.6)
    y = np.where(X @ rng.standard_normal(p) + rng.standard_normal(n) > 0, 1.0, -1.0)
    return csr_matrix(X), y


def first_column_decides(n=60, p=4):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((n, p))
    return X, np.where(X[:, 0] + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)


def ball(n=60, p=4, seed=0):
    """A noisy ball of −1 amid +1, which no plane separates."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    y = np.where(np.linalg.norm(X, axis=1) + 0.3 * rng.standard_normal(n) > 1.8, 1.0, -1.0)
    return X, y


def random_signs(kind, n, p, seed=0):
    """A matrix of this kind, labels, weights w, and row weights with zeros among them."""
    rng = np.random.default_rng(seed + 1)
    X = as_kind(sparse_normal(n, p, seed), kind)
    y = rng.choice([-1.0, 1.0], n)
    d = rng.random(n) * (rng.random(n) < 0.5)
    return X, y, 0.2 * rng.standard_normal(p), d


def scores_and_counts(seed, n=200, flip=0.1):
    """Decision values, the rows that are positive, and how often each row counts."""
    rng = np.random.default_rng(seed)
    f = rng.normal(size=n) * 2 + rng.normal()
    positive = (f + rng.normal(size=n) > 0.5) ^ (rng.random(n) < flip)
    return f, positive, rng.integers(0, 4, n).astype(float)


# ---------------------------------------------------------------- rows of any number of classes


def blobs(labels=(1, -1), n=60, p=4, seed=0):
    """Rows around a point for each label, overlapping a little."""
    rng = np.random.default_rng(seed)
    y = np.resize(np.array(labels, dtype=float), n)
    centres = {label: rng.standard_normal(p) for label in labels}
    return np.array([centres[label] for label in y]) + 0.6 * rng.standard_normal((n, p)), y


def corners(k=3, n=60, p=4, seed=0, labels=ODD_LABELS):
    """Overlapping classes about the corners of a simplex, the labels in no order."""
    rng = np.random.default_rng(seed)
    code = np.r_[np.arange(k), rng.integers(k, size=n - k)]
    X = rng.standard_normal((n, p)) + 1.5 * np.eye(k, p)[code]
    X[rng.random((n, p)) < 0.2] = 0.0
    return X, np.array(labels)[code]


def shells(n=200, p=3, k=2):
    """Classes 1…k by the distance from the origin, as many rows in each."""
    X = np.random.default_rng(1).standard_normal((n, p))
    radius = np.linalg.norm(X, axis=1)
    return X, np.digitize(radius, np.quantile(radius, np.arange(1, k) / k)) + 1.0


def sparse_scores(n=400, p=12, classes=2, seed=0, density=0.3, normal=False):
    """A CSR matrix of positive (or normal) values, classes 1, 2, … by the highest noisy score."""
    rng = np.random.default_rng(seed)
    sampler = rng.standard_normal if normal else None
    X = random_array((n, p), density=density, format="csr", rng=rng, data_sampler=sampler)
    score = X @ rng.standard_normal((p, classes)) + 0.3 * rng.standard_normal((n, classes))
    return X, score.argmax(axis=1) + 1.0


def first_against_rest(X, y):
    return X, np.where(y == 1.0, 1.0, -1.0)


# ---------------------------------------------------------------- cases of every scale

ROWS, COLUMNS = 26, 4


def _plane(X, rng, noise):
    """Labels by a plane through the middle of the rows, of both classes."""
    f = X @ rng.standard_normal(X.shape[1])
    f = (f - np.median(f)) / (np.std(f) or 1.0) + noise * rng.standard_normal(len(X))
    y = np.where(f > 0, 1.0, -1.0)
    y[:2] = [1.0, -1.0]
    return X, y


def separable(rng):
    X = rng.standard_normal((ROWS, COLUMNS))
    y = np.where(np.arange(ROWS) % 2, 1.0, -1.0)
    return X + 3 * y[:, None] * [1, -1, 0, 0], y


def overlapping(rng):
    return _plane(rng.standard_normal((ROWS, COLUMNS)), rng, 1.0)


def duplicated_rows(rng):
    """Four rows once, eight rows twice, and one row six times, under both labels."""
    X, y = _plane(rng.standard_normal((ROWS, COLUMNS)), rng, 0.5)
    half = ROWS // 2
    X[half:], y[half:] = X[:half], y[:half]
    X[4:9], y[4:9] = X[4], [1, -1, 1, -1, 1]
    return X, y


def zeros_and_ones(rng):
    return _plane((rng.random((ROWS, COLUMNS + 2)) < 0.4).astype(float), rng, 0.5)


def counts(rng):
    return _plane(rng.poisson(3.0, (ROWS, COLUMNS)).astype(float), rng, 0.5)


def signed_counts(rng):
    """Whole numbers of either sign."""
    return _plane(np.rint(3 * rng.standard_normal((ROWS, COLUMNS))), rng, 0.5)


def unit_rows(rng):
    X = rng.standard_normal((ROWS, COLUMNS))
    return _plane(X / np.linalg.norm(X, axis=1)[:, None], rng, 0.5)


def one_far_row(rng):
    X, y = overlapping(rng)
    X[5] *= 1e6
    return X, y


def a_column_of_a_million(rng):
    """One column is 1e6 plus noise."""
    X, y = overlapping(rng)
    X[:, 1] += 1e6
    return X, y


def constant_columns(rng):
    """Half of the columns are the same in all rows."""
    X, y = overlapping(rng)
    X[:, 1], X[:, 2] = 1.0, -3.0
    return X, y


def empty_rows(rng):
    """Rows of zeros in both classes, in the last of all too."""
    X, y = overlapping(rng)
    X[[0, 1, 6, ROWS - 1]] = 0.0
    return X, y


def no_weights(rng):
    return None


def weights_with_zeros(rng):
    """0, 1 or 2 for each row."""
    weight = rng.integers(0, 3, ROWS).astype(float)
    weight[:3] = [1.0, 1.0, 0.0]
    return weight


def mixed_weights(rng):
    """Weights from 1e-4 to 1e2."""
    return 10.0 ** rng.uniform(-4, 2, ROWS)


CLOUDS = (
    *(separable, overlapping, duplicated_rows, zeros_and_ones, counts, unit_rows),
    *(one_far_row, a_column_of_a_million, constant_columns, empty_rows),
)
LATER = (signed_counts,)  # clouds whose cases come last: a case's number is the seed of its data
SCALES = (1e-6, 1.0, 1e6)
COSTS = (1e-3, 1.0, 1e3)
WEIGHTS = (no_weights, weights_with_zeros, mixed_weights)
WHOLE = {"int8": (zeros_and_ones, counts, signed_counts), "uint8": (zeros_and_ones, counts)}


class Case(NamedTuple):
    name: str
    X: np.ndarray | csr_matrix
    y: np.ndarray
    scale: float
    C: float
    weight: np.ndarray | None
    bias: bool

    @property
    def dense(self):
        """X as a float64 array: exactly the numbers that it stores."""
        return np.asarray(self.X.toarray() if hasattr(self.X, "toarray") else self.X, float)

    @property
    def weights(self):
        return np.ones(len(self.y)) if self.weight is None else self.weight

    @property
    def c(self):
        """The row costs."""
        return self.C * self.weights


def _possible(cloud, scale, C, weight, bias, kind):
    """Whole numbers have no other scale than 1, and few clouds consist of them."""
    dtype = kind.split()[1]
    return "float" in dtype or (cloud in WHOLE[dtype] and scale == 1.0)


def _pairs(choice):
    """The pairs that a choice covers, bar that of the cloud and the kind of matrix."""
    pairs = combinations(range(len(choice)), 2)
    return {(i, j, choice[i], choice[j]) for i, j in pairs if (i, j) != (0, len(choice) - 1)}


def _cover(clouds, taken):
    """These settings and more, taken greedily, that cover all pairs of these clouds."""
    axes = (clouds, SCALES, COSTS, WEIGHTS, (False, True), KINDS)
    possible = [choice for choice in product(*axes) if _possible(*choice)]
    pairs = {choice: _pairs(choice) for choice in possible}
    missing, more = set().union(*pairs.values()).difference(*map(_pairs, taken)), []
    while missing:
        best = max(possible, key=lambda c: len(pairs[c] & missing))
        missing -= pairs[best]
        more.append(best)
    return taken + sorted(more, key=possible.index)


def _chosen():
    """Settings that cover all pairs, and every cloud as a dense and as a CSR matrix of floats:
    where one of the two is missing, the cloud's second setting is taken in that layout too. The
    last case has whole numbers of either sign."""
    taken = _cover(CLOUDS + LATER, _cover(CLOUDS, []))
    for cloud in CLOUDS + LATER:
        of_floats = [c for c in taken if c[0] is cloud and "float" in c[-1]]
        layouts = {c[-1].split()[0] for c in of_floats}
        for layout in {"dense", "CSR"} - layouts:
            *settings, kind = of_floats[1]
            taken.append((*settings, f"{layout} {kind.split()[1]}"))
    *settings, _ = next(c for c in taken if c[:2] == (signed_counts, 1.0))
    return [*taken, (*settings, "dense int8")]


def _case(number, cloud, scale, C, weight, bias, kind):
    rng = np.random.default_rng(number)
    X, y = cloud(rng)
    words = (
        cloud.__name__,
        f"x{scale:g}",
        f"C{C:g}",
        weight.__name__,
        "bias" if bias else "no bias",
    )
    name = ", ".join((*words, kind)).replace("_", " ")
    return Case(name, as_kind(X * scale, kind), y, scale, C, weight(rng), bias)


def cases_of_every_scale():
    """Small problems that cover every possible pair of two of cloud, scale, C, weights, bias and
    kind of matrix; of clouds and kinds, every cloud as a dense and as a CSR matrix of floats."""
    return [_case(number, *choice) for number, choice in enumerate(_chosen())]
