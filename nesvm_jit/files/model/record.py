"""The contents of a model file of any format: plain arrays and facts, checked when it is made."""

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from ...settings import MODELS, MULTICLASS, one_of, whole_number

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

KERNELS = ("linear", "poly", "rbf", "sigmoid", "precomputed")  # LIBSVM's; sigmoid is only read
HIGHEST_INDEX = (1 << 32) - 2  # highest index of a feature, as in the reader of data files
LARGEST_INT = 2**31 - 1


def n_problems(n_classes: int, multiclass: str) -> int:
    """Return the number of sub-problems: one for two classes, else one per pair or per class."""
    if n_classes == 2:
        return 1
    return n_classes * (n_classes - 1) // 2 if multiclass == "ovo" else n_classes


def pairs_of_classes(n_classes: int) -> np.ndarray:
    """Return a table whose row i holds the numbers of the pairs with class i, in the order of
    the other class."""
    k = n_classes
    number = np.zeros((k, k), dtype=np.int64)
    i, j = np.triu_indices(k, 1)
    number[i, j] = number[j, i] = np.arange(len(i))
    return number[~np.eye(k, dtype=bool)].reshape(k, k - 1)


@dataclass(frozen=True, eq=False)
class ModelRecord:
    """A trained classifier. Its decisions are x·weights + bias or Σ coefs k(sv, x) + bias.

    A positive decision of the pair (i, j) means class i; of only two classes it means classes[0].
    Linear machines have `weights`, kernel machines have `coefs` and `support`. For a precomputed
    kernel, `support_index` takes the place of `support`: the numbers of training samples from 0.
    `probability` is the pair of arrays (A, B) in P(first class) = 1 / (1 + exp(A f + B)), with one
    entry per sub-problem.
    """

    classes: np.ndarray
    n_features: int
    bias: np.ndarray
    multiclass: str = "ovr"
    model: str = "csvm"
    kernel: str = "linear"
    gamma: float = 0.0
    coef0: float = 0.0
    degree: int = 3
    weights: np.ndarray | None = None
    support: "csr_matrix | None" = None
    support_index: np.ndarray | None = None
    coefs: np.ndarray | None = None
    sv_class: np.ndarray | None = None
    probability: tuple[np.ndarray, np.ndarray] | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def n_problems(self) -> int:
        return n_problems(len(self.classes), self.multiclass)

    def __post_init__(self) -> None:
        for name, choices in (("model", MODELS), ("kernel", KERNELS), ("multiclass", MULTICLASS)):
            one_of(name, getattr(self, name), choices)
        self._set("n_features", whole_number("n_features", self.n_features, 0, HIGHEST_INDEX))
        self._set("degree", whole_number("degree", self.degree, 0, LARGEST_INT))
        for name in ("gamma", "coef0"):
            self._set(name, _number(name, getattr(self, name)))
        if self.gamma < 0:
            raise InputError(f"gamma must be at least 0, got {self.gamma}")
        k = np.size(self.classes)
        if k < 2:
            raise InputError(f"at least 2 classes are required, got {k}")
        self._set("classes", _numbers("classes", self.classes, (k,)))
        if len(set(self.classes.tolist())) < k:
            raise InputError("classes must be distinct")
        m = self.n_problems
        self._set("bias", _numbers("bias", self.bias, (m,)))
        if self.probability is not None:
            A, B = self.probability
            self._set("probability", (_numbers("A", A, (m,)), _numbers("B", B, (m,))))
        if not isinstance(self.extra, dict):
            raise InputError(f"extra must be a dict, got {type(self.extra).__name__}")
        if (self.weights is None) == (self.coefs is None):
            raise InputError("either weights or coefs are required")
        if self.weights is not None:
            self._check_linear(m)
        else:
            self._check_expansion(m)

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _check_linear(self, m: int) -> None:
        if self.kernel != "linear":
            raise InputError(f"weights belong to a linear kernel, got {self.kernel}")
        if not (self.support is None and self.support_index is None and self.sv_class is None):
            raise InputError("support vectors need coefs, got weights")
        self._set("weights", _numbers("weights", self.weights, (self.n_features, m)))

    def _check_expansion(self, m: int) -> None:
        from scipy.sparse import csr_matrix

        if self.kernel == "precomputed":
            if self.support is not None or self.support_index is None:
                raise InputError("precomputed kernels need support_index and no support")
            index = _counts("support_index", self.support_index, None, self.n_features)
            self._set("support_index", index)
            n = len(index)
        else:
            if self.support is None or self.support_index is not None:
                raise InputError(f"{self.kernel} kernels need support and no support_index")
            support = self.support
            if not isinstance(support, csr_matrix) or support.dtype != np.float64:
                support = csr_matrix(support, dtype=np.float64)
            if not support.has_canonical_format:
                support = support.copy()
                support.sum_duplicates()
            n, p = support.shape
            if p != self.n_features:
                raise InputError(f"support must have {self.n_features} columns, got {p}")
            if not np.isfinite(support.data).all():
                raise InputError("support must be finite")
            self._set("support", support)
        self._set("coefs", _numbers("coefs", self.coefs, (n, m)))
        if self.sv_class is not None:
            self._set("sv_class", _counts("sv_class", self.sv_class, n, len(self.classes)))


def _number(name: str, value: Any) -> float:
    if type(value) is float and math.isfinite(value):
        return value
    return float(_numbers(name, value, ()))


def _numbers(name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} must be real numbers, got {value!r:.40}") from None
    if array.shape != shape:
        raise InputError(f"{name} must have shape {shape}, got {array.shape}")
    if not np.isfinite(array).all():
        raise InputError(f"{name} must be finite")
    return array


def _counts(name: str, value: Any, length: int | None, below: int) -> np.ndarray:
    array = np.asarray(value)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InputError(f"{name} must be a vector of whole numbers")
    if length is not None and len(array) != length:
        raise InputError(f"{name} must have {length} entries, got {len(array)}")
    if array.size and not (array.min() >= 0 and array.max() < below):
        raise InputError(f"{name} must be from 0 to {below - 1}")
    return array.astype(np.int64)
