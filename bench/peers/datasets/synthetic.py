"""Random data of the shapes that benchmarks know: ones like Adult's, words of a text, pictures."""

import itertools

import numpy as np
from scipy.sparse import csr_matrix

NOISE = 0.5  # of the spread of the scores that decide labels


def one_hot(rows: int, features: int, per_row: float, rng) -> csr_matrix:
    """A questionnaire: about `per_row` questions of several answers, a one for the answer given."""
    questions = max(1, round(per_row))
    starts = np.linspace(0, features, questions + 1).astype(int)
    columns = np.empty((rows, questions), dtype=np.int64)
    for q, (lo, hi) in enumerate(itertools.pairwise(starts)):
        share = rng.dirichlet(np.full(hi - lo, 0.7))
        columns[:, q] = lo + rng.choice(hi - lo, rows, p=share)
    answered = rng.random((rows, questions)) < min(1.0, per_row / questions)
    indptr = np.append(0, np.cumsum(answered.sum(axis=1)))
    return csr_matrix((np.ones(indptr[-1]), columns[answered], indptr), (rows, features))


def text(rows: int, features: int, per_row: float, rng) -> csr_matrix:
    """Words by Zipf's law, weighted by how rare they are, every row of length 1."""
    lengths = np.maximum(1, rng.lognormal(np.log(per_row), 0.6, rows).astype(int))
    words = np.minimum(features * rng.random(lengths.sum()) ** 4, features - 1).astype(np.int64)
    X = csr_matrix((np.ones(len(words)), words, np.append(0, np.cumsum(lengths))), (rows, features))
    X.sum_duplicates()
    seen = np.bincount(X.indices, minlength=features)
    X.data = (1.0 + np.log(X.data)) * np.log(rows / np.maximum(seen, 1))[X.indices]
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X.data /= np.repeat(np.where(norms > 0.0, norms, 1.0), np.diff(X.indptr))
    return X


def vision(rows: int, features: int, per_row: float, rng) -> csr_matrix:
    """Pictures: few strokes that many of them share, from 0 to 1, dark but for `per_row` points."""
    strokes = rng.standard_normal((40, features))
    width = max(3, features // 20)
    window = np.hanning(width) / np.hanning(width).sum()
    strokes = np.apply_along_axis(np.convolve, 1, strokes, window, "same")
    X = rng.standard_normal((rows, 40)) @ strokes
    X += 0.05 * X.std() * rng.standard_normal(X.shape)
    X -= np.quantile(X, 1.0 - min(1.0, per_row / features), axis=1, keepdims=True)
    return csr_matrix(np.maximum(X, 0.0) / X.max())


def two_classes(X: csr_matrix, positive: float, rng) -> np.ndarray:
    """The sign of a noisy linear score; +1 for that share of the rows."""
    score = _scores(X, 1, rng)[:, 0]
    return np.where(score > np.quantile(score, 1.0 - positive), 1.0, -1.0)


def classes(X: csr_matrix, n_classes: int, rng) -> np.ndarray:
    """1, 2, … by the largest of as many noisy linear scores."""
    return _scores(X, n_classes, rng).argmax(axis=1) + 1.0


def _scores(X: csr_matrix, n_scores: int, rng) -> np.ndarray:
    scores = X @ rng.standard_normal((X.shape[1], n_scores))
    scores -= scores.mean(axis=0)
    return scores + NOISE * scores.std(axis=0) * rng.standard_normal(scores.shape)
