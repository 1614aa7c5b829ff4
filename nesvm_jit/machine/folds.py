"""Cross-validation folds."""

import numpy as np

from ..errors import InputError
from ..matrix.checks import as_vector


def stratified_folds(y, n_folds: int, seed: int = 0) -> np.ndarray:
    """The fold, 0 to n_folds − 1, of each row; the same for the same seed.

    The rows, shuffled, are dealt out class by class, each class going on where the last one
    stopped: the sizes of any two folds differ by at most 1, and so do their rows of any class.
    """
    y = as_vector("y", y)
    for name, value, least, most in (
        ("n_folds", n_folds, 2, len(y)),
        ("seed", seed, 0, 2**63 - 1),
    ):
        whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        if not whole or not least <= value <= most:
            wanted = f"{name} must be a whole number from {least} to {most}"
            rows = " (the number of rows)" if name == "n_folds" else ""
            raise InputError(f"{wanted}{rows}, got {value!r}")
    shuffled = np.random.default_rng(seed).permutation(len(y))
    by_class = shuffled[np.argsort(y[shuffled], kind="stable")]
    folds = np.empty(len(y), dtype=np.int64)
    folds[by_class] = np.arange(len(y)) % n_folds
    return folds
