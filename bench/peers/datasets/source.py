"""A LIBSVM file of NESVM_DATA, or random data of its shape."""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, random_array

from ...common import data_file


class Shape(NamedTuple):
    """What synthetic data imitate."""

    rows: int
    features: int
    density: float
    positive: float  # share of the rows


def read_or_imitate(file: str, shape: Shape, positive, dtype=np.float64):
    """X as CSR and +1 where `positive(label)`, else −1."""
    path = data_file(file)
    if path is None:
        return imitate(shape, dtype)
    from nesvm_jit import read_libsvm

    X, labels = read_libsvm(path, shape.features, dtype)
    return X, np.where(positive(labels), 1.0, -1.0)


def read_classes(file: str, shape: Shape):
    """X as CSR and the labels, of about 1/`positive` classes."""
    path = data_file(file)
    if path is not None:
        from nesvm_jit import read_libsvm

        return read_libsvm(path, shape.features)
    rng = np.random.default_rng(0)
    X, _ = imitate(shape, np.float64)
    scores = X @ rng.standard_normal((shape.features, round(1 / shape.positive)))
    scores -= scores.mean(axis=0)
    scores += 0.3 * scores.std() * rng.standard_normal(scores.shape)
    return X, scores.argmax(axis=1) + 1.0


def imitate(shape: Shape, dtype):
    """Uniform entries, and the sign of a noisy linear score."""
    rng = np.random.default_rng(0)
    size = shape.rows, shape.features
    X = csr_matrix(random_array(size, density=shape.density, format="csr", rng=rng), dtype=dtype)
    score = X @ rng.standard_normal(shape.features)
    score += 0.5 * score.std() * rng.standard_normal(shape.rows)
    return X, np.where(score > np.quantile(score, 1 - shape.positive), 1.0, -1.0)
