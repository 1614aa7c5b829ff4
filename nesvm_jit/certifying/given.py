"""Models as they come: our machines and files, LIBSVM's and LIBLINEAR's, scikit-learn's, or bare
weights, all turned into a record and the problem that it is a point of."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, issparse

from ..errors import InputError
from ..files.model.record import ModelRecord, pairs_of_classes
from ..files.model.text import read_model
from ..machine.machine import Machine

FREE, NONE, PENALISED = "free", "none", "penalised"
CERTIFIED = "C-SVM, LP-SVM and LS-SVM are certified"


@dataclass(frozen=True)
class Given:
    """A model and what it says of its problem; `names` are the labels that the user knows the
    classes of the record by, where they are others."""

    record: ModelRecord
    bias: str
    feature: float = 1.0  # the value of the penalised bias's feature
    C: float | None = None
    class_weight: Mapping[float, float] | str | None = None
    rest_weighted: bool = True  # LIBLINEAR: C for all rows of the rest, whatever their class
    support_rows: np.ndarray | None = None  # of the training rows, where the model says so
    names: np.ndarray | None = field(default=None)

    def name(self, number: int) -> Any:
        """The label of a class."""
        labels = self.record.classes if self.names is None else self.names
        return labels[number].item() if isinstance(labels[number], np.generic) else labels[number]


def as_given(model: Any, bias: bool, bias_feature: float | None) -> Given:
    """A model of any kind; the two last say what the b of bare weights (w, b) is."""
    if isinstance(model, Machine):
        return _of_record(model.record, model.support_rows)
    if isinstance(getattr(model, "machine_", None), Machine):  # NESVC, whose labels are numbers
        own = _of_record(model.machine_.record, model.machine_.support_rows)
        weight: Any = model.class_weight  # which are weights of rows to the machine
        if isinstance(weight, Mapping):
            weight = {float(i): float(weight.get(v, 1.0)) for i, v in enumerate(model.classes_)}
        names = np.asarray(model.classes_)[own.record.classes.astype(np.intp)]
        return replace(own, names=names, class_weight=weight)
    if isinstance(model, (str, os.PathLike)) or hasattr(model, "read"):
        return _of_record(read_model(model))
    if isinstance(model, tuple) and len(model) == 2:
        return _of_weights(*model, bias, bias_feature)
    if hasattr(model, "dual_coef_") and hasattr(model, "classes_"):
        return _of_svc(model)
    if hasattr(model, "coef_") and hasattr(model, "classes_"):
        return _of_linear_svc(model)
    raise InputError(
        "a model must be a file, a Machine, (w, b), or a trained classifier like scikit-learn's "
        f"SVC and LinearSVC, got {type(model).__name__}"
    )


def _of_record(record: ModelRecord, support_rows: np.ndarray | None = None) -> Given:
    """Our own files say what they are points of; those of others by their type."""
    if record.kernel == "sigmoid":
        raise InputError(
            "a sigmoid kernel is not positive semidefinite: nothing of it can be certified"
        )
    extra = record.extra
    if "program" in extra:
        C = extra.get("C")
        if not isinstance(C, (int, float)) or not 0.0 < C < np.inf:
            raise InputError(f"the model must say its C, a positive number, got {C!r:.40}")
        bias = FREE if extra.get("bias") is not False else NONE
        weights = _kept_weights(record)
        return Given(record, bias, C=float(C), class_weight=weights, support_rows=support_rows)
    if "svm_type" in extra:
        if extra["svm_type"] != "c_svc":
            raise InputError(f"{CERTIFIED}, got a model of type {extra['svm_type']}")
        return Given(record, FREE, support_rows=support_rows)
    if "solver_type" in extra:
        if extra["solver_type"] != "L2R_L1LOSS_SVC_DUAL":
            raise InputError(
                f"{CERTIFIED}; of LIBLINEAR's solvers that is -s 3, L2R_L1LOSS_SVC_DUAL, got "
                f"{extra['solver_type']}"
            )
        feature = extra.get("bias_feature", 0.0)
        if isinstance(feature, (int, float)) and feature > 0.0:
            return Given(record, PENALISED, float(feature), rest_weighted=False)
        return Given(record, NONE, rest_weighted=False)
    return Given(record, FREE, support_rows=support_rows)


def _kept_weights(record: ModelRecord) -> Mapping[float, float] | None:
    """The weights of classes that a model was trained with, as it says."""
    kept = record.extra.get("class_weights")
    if kept is None:
        return None
    listed = isinstance(kept, list) and len(kept) == len(record.classes)
    if not listed or not all(type(v) in (int, float) and 0.0 <= v < np.inf for v in kept):
        raise InputError(f"the model must say a weight for each of its classes, got {kept!r:.40}")
    return dict(zip(record.classes.tolist(), map(float, kept), strict=True))


def _of_weights(w: Any, b: Any, bias: bool, feature: float | None) -> Given:
    w = np.asarray(w, dtype=np.float64)
    if w.ndim != 1 or np.ndim(b) != 0:
        raise InputError(f"(w, b) must be a vector and a number, got shape {w.shape}")
    record = ModelRecord(np.array([1.0, -1.0]), len(w), np.array([float(b)]), weights=w[:, None])
    if feature is not None:
        if not 0.0 < feature < np.inf:
            raise InputError(f"bias_feature must be positive, got {feature!r:.40}")
        return Given(record, PENALISED, float(feature))
    return Given(record, FREE if bias else NONE)


# ---------------------------------------------------------------- scikit-learn's, by their names


def _dense(a: Any) -> np.ndarray:
    return np.asarray(a.toarray() if issparse(a) else a, dtype=np.float64)


def _of_svc(model: Any) -> Given:
    """Attributes of a trained SVC: of two classes a positive score speaks for the second."""
    kind = type(model).__name__
    if getattr(model, "_impl", "c_svc") != "c_svc" or not hasattr(model, "C"):
        raise InputError(f"{CERTIFIED}, got {kind}")
    kernel = model.kernel
    if kernel not in ("linear", "poly", "rbf", "precomputed"):
        raise InputError(
            "the kernel must be linear, poly, rbf or precomputed to be certified, got "
            f"{kernel!r:.40}"
        )
    coefs, k = _dense(model.dual_coef_).T, len(model.classes_)
    counts = np.asarray(model.n_support_)
    sv_class = np.repeat(np.arange(k), counts)
    order = np.arange(k)
    if k == 2:
        order, sv_class = order[::-1], 1 - sv_class
    else:
        packed, coefs = coefs, np.zeros((len(coefs), k * (k - 1) // 2))
        np.put_along_axis(coefs, pairs_of_classes(k)[sv_class], packed, axis=1)
    rows = np.asarray(model.support_, dtype=np.int64)
    fields: dict[str, Any] = {"coefs": coefs, "sv_class": sv_class, "kernel": kernel}
    if kernel == "precomputed":
        fields["support_index"] = rows
    else:
        fields["support"] = csr_matrix(model.support_vectors_, dtype=np.float64)
    if kernel in ("poly", "rbf"):
        fields["gamma"] = float(getattr(model, "_gamma", model.gamma))
    if kernel == "poly":
        fields |= {"degree": int(model.degree), "coef0": float(model.coef0)}
    n_features = int(model.shape_fit_[1] if hasattr(model, "shape_fit_") else model.n_features_in_)
    weights = getattr(model, "class_weight_", np.ones(k))
    record = ModelRecord(
        order.astype(float),
        n_features,
        np.asarray(model.intercept_, dtype=float).ravel(),
        multiclass="ovo",
        **fields,
    )
    weighted = {float(i): float(v) for i, v in enumerate(weights)}
    names = np.asarray(model.classes_)[order]
    common: dict[str, Any] = {"C": float(model.C), "class_weight": weighted}
    return Given(record, FREE, names=names, support_rows=rows, **common)


def _of_linear_svc(model: Any) -> Given:
    """Attributes of a trained LinearSVC: its bias is penalised, the weight of a feature."""
    kind = type(model).__name__
    loss, penalty = getattr(model, "loss", None), getattr(model, "penalty", None)
    if loss != "hinge" or penalty != "l2" or not hasattr(model, "C"):
        got = f"{kind} of loss {loss}" if loss else kind
        raise InputError(f"{CERTIFIED}; of LinearSVC that is loss='hinge', got {got:.60}")
    if getattr(model, "multi_class", "ovr") != "ovr":
        raise InputError(f"multi_class must be ovr to be certified, got {model.multi_class}")
    weights, k = _dense(model.coef_).T, len(model.classes_)
    order = np.arange(k)[::-1] if k == 2 else np.arange(k)
    bias = np.broadcast_to(np.asarray(model.intercept_, dtype=float), weights.shape[1])
    record = ModelRecord(order.astype(float), len(weights), bias.copy(), weights=weights)
    weight: Any = model.class_weight
    if isinstance(weight, Mapping):
        weight = {float(i): float(weight.get(v, 1.0)) for i, v in enumerate(model.classes_)}
    names = np.asarray(model.classes_)[order]
    common: dict[str, Any] = {"C": float(model.C), "class_weight": weight, "names": names}
    common["rest_weighted"] = False
    if not model.fit_intercept:
        return Given(record, NONE, **common)
    return Given(record, PENALISED, float(model.intercept_scaling), **common)
