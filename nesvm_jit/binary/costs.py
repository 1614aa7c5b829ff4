"""What a row costs: C, the weight of its class and its own."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import InputError
from ..matrix.checks import as_vector
from ..settings import one_of, positive


def costs(
    C: float, y: np.ndarray, classes: np.ndarray, sample_weight: Any, class_weight: Any
) -> np.ndarray:
    """c_i = C · class weight · sample weight, for any labels."""
    c = np.full(len(y), float(C))
    if sample_weight is not None:
        weights = as_vector("sample_weight", sample_weight, len(y))
        if (weights < 0).any():
            raise InputError(f"sample_weight must not be negative, got {weights.min()}")
        c *= weights
    if isinstance(class_weight, str):
        sizes = np.array([np.count_nonzero(y == k) for k in classes])
        class_weight = weights_of(class_weight, classes, sizes)
    names = " and ".join(f"{k:g}" for k in classes) if len(classes) == 2 else "the labels"
    if not isinstance(class_weight, (Mapping, type(None))):
        raise InputError(f"class_weight must map {names} to weights, got {class_weight!r:.60}")
    for label, weight in (class_weight or {}).items():
        if label not in classes:
            raise InputError(f"class_weight must map {names} to weights, got label {label!r:.60}")
        positive(f"class_weight of {label}", weight, zero=True)
        c[y == label] *= weight
    if not np.isfinite(c).all():
        raise InputError("each class must have a positive, finite weight")
    return c


def weights_of(
    class_weight: Mapping[float, float] | str | None, classes: np.ndarray, sizes: np.ndarray
) -> Mapping[float, float]:
    """The weights of classes that are asked for by a word or one by one, of so many rows each."""
    if isinstance(class_weight, str):
        one_of("class_weight", class_weight, ("balanced",))
        shares = int(sizes.sum()) / (len(classes) * sizes)
        return dict(zip(classes.tolist(), shares.tolist(), strict=True))
    return class_weight or {}


def class_costs(
    C: float,
    class_weight: Mapping[float, float] | str | None,
    classes: np.ndarray,
    sizes: np.ndarray,
) -> np.ndarray:
    """The cost of a row of each class, of which there are this many rows."""
    if isinstance(class_weight, str):
        class_weight = weights_of(class_weight, classes, sizes)
    return costs(C, classes, classes, None, class_weight)
