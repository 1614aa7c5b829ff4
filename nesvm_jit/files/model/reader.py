"""Read model files of the three formats that `files/model/text.py` describes.

Nothing in a file is executed, and no memory is allocated for a size that the file states but
cannot hold. Every fault is a FormatError of one line, ``file:line: what``.
"""

from typing import Any

import numpy as np

from ...errors import FormatError, InputError
from ...settings import MODELS, MULTICLASS
from ..text import display_name, read_bytes
from .lines import Header, Lines, quote_word, read_closing
from .record import (
    HIGHEST_INDEX,
    KERNELS,
    LARGEST_INT,
    ModelRecord,
    n_problems,
    pairs_of_classes,
)
from .rows import Cells, number_rows, vector_rows

# LIBLINEAR's classifiers by name: the nearest of our models, and True for logistic regression.
SOLVER_TYPES = {
    "L2R_LR": ("csvm", True),
    "L2R_L2LOSS_SVC_DUAL": ("lssvm", False),
    "L2R_L2LOSS_SVC": ("lssvm", False),
    "L2R_L1LOSS_SVC_DUAL": ("csvm", False),
    "MCSVM_CS": ("csvm", False),
    "L1R_L2LOSS_SVC": ("lpsvm", False),
    "L1R_LR": ("csvm", True),
    "L2R_LR_DUAL": ("csvm", True),
}
KERNEL_TYPES = {
    "linear": "linear",
    "polynomial": "poly",
    "rbf": "rbf",
    "sigmoid": "sigmoid",
    "precomputed": "precomputed",
}
# Coefficients of one model that are read at most: each vector has k−1 in LIBSVM's files and
# k(k−1)/2 in ours.
LARGEST_TABLE = 1 << 28
_LIBLINEAR = ("solver_type", "nr_class", "label", "nr_feature", "bias", "rho")
_LIBSVM = (
    *("svm_type", "kernel_type", "degree", "gamma", "coef0", "nr_class", "total_sv", "rho"),
    *("label", "probA", "probB", "prob_density_marks", "nr_sv"),
)
_OWN = (
    *("nesvm_jit", "model", "kernel", "degree", "gamma", "coef0", "multiclass", "nr_class"),
    *("label", "nr_feature", "bias", "probA", "probB", "total_sv", "sv_class"),
)


def read_model(path: Any) -> ModelRecord:
    """Read a model file of LIBLINEAR, LIBSVM or nesvm_jit, recognised by its content.

    `path` is a file name, `-` for standard input, or an open binary file; gzip, bzip2 and xz
    are recognised too. A file that is not a classification model raises FormatError.
    """
    name = display_name(path)
    try:
        return _record(Lines(bytes(read_bytes(path, name)), name))
    except FormatError:
        raise
    except InputError as e:
        raise FormatError(f"{name}: {e}") from None
    except (MemoryError, RecursionError) as e:
        raise FormatError(f"{name}: too large to be read ({type(e).__name__})") from None


def _record(lines: Lines) -> ModelRecord:
    line = lines.next()
    first = (line.split(None, 1) or [b""])[0]
    if first == b"solver_type":
        return _read_liblinear(lines, Header(lines, line, _LIBLINEAR, ("w",)))
    if first == b"svm_type":
        return _read_libsvm(lines, Header(lines, line, _LIBSVM, ("SV",)))
    if first == b"nesvm_jit":
        return _read_own(lines, Header(lines, line, _OWN, ("w", "SV")))
    start = "solver_type (LIBLINEAR), svm_type (LIBSVM) or nesvm_jit"
    raise lines.error(f"a model that starts with {start} is required, got {quote_word(line)}", 1)


# ---------------------------------------------------------------- the three formats


def _read_liblinear(lines: Lines, header: Header) -> ModelRecord:
    solver = header.choice("solver_type", SOLVER_TYPES)
    model, logistic = SOLVER_TYPES[solver]
    classes = header.labels(whole=True)
    k = len(classes)
    n_features = header.whole("nr_feature", 0, LARGEST_INT)
    bias_feature = header.number("bias")
    n_rows = n_features + (bias_feature >= 0)
    n_columns = k if k > 2 or solver == "MCSVM_CS" else 1
    table = number_rows(lines, n_rows, n_columns)
    facts = read_closing(lines)
    with np.errstate(over="ignore"):
        if k == 2 and n_columns == 2:
            table = table[:, :1] - table[:, 1:]
        bias = bias_feature * table[-1] if bias_feature >= 0 else np.zeros(table.shape[1])
    m = table.shape[1]
    fields: dict[str, Any] = {"model": model, "multiclass": "ovr"}
    if facts is None:
        fields["extra"] = {"solver_type": solver}
        if bias_feature >= 0:  # the bias is the penalised weight of a feature of this value
            fields["extra"]["bias_feature"] = bias_feature
        if logistic:  # P(first class) = 1 / (1 + exp(−f))
            fields["probability"] = -np.ones(m), np.zeros(m)
    else:
        fields |= _fields(lines, facts, m)
        _require_multiclass(lines, fields, k, "ovr")
    return ModelRecord(classes, n_features, bias, weights=table[:n_features], **fields)


def _read_libsvm(lines: Lines, header: Header) -> ModelRecord:
    svm_type = header.choice("svm_type", ("c_svc", "nu_svc"))
    kernel = KERNEL_TYPES[header.choice("kernel_type", KERNEL_TYPES)]
    classes = header.labels(whole=True)
    k = len(classes)
    m = n_problems(k, "ovo")
    header_fields: dict[str, Any] = {"kernel": kernel, "probability": header.probability(m)}
    if kernel == "poly":
        header_fields["degree"] = header.whole("degree", 0, LARGEST_INT)
    if kernel in ("poly", "rbf", "sigmoid"):
        header_fields["gamma"] = header.number("gamma")
    if kernel in ("poly", "sigmoid"):
        header_fields["coef0"] = header.number("coef0")
    bias = -header.numbers("rho", m)
    n = header.whole("total_sv", 0, LARGEST_INT)
    counts = header.wholes("nr_sv", k, 0, LARGEST_INT)
    if sum(counts) != n:
        raise header.error("nr_sv", f"{n} in all, as total_sv, got {sum(counts)}")
    packed, cells = vector_rows(lines, n, k - 1, kernel == "precomputed")
    facts = read_closing(lines)
    fields: dict[str, Any] = {"multiclass": "ovo", "extra": {"svm_type": svm_type}}
    if facts is not None:
        fields |= _fields(lines, facts, m)
        _require_multiclass(lines, fields, k, "ovo")
    fields |= header_fields
    n_features = fields.pop("n_features", None)
    fields |= _support(lines, cells, n_features, kernel)
    if n * m > LARGEST_TABLE:
        most = f"{LARGEST_TABLE} coefficients"
        raise lines.error(f"at most {most} are held, got {n} vectors in {m} pairs")
    fields["sv_class"] = np.repeat(np.arange(k), counts)
    coefs = np.zeros((n, m))
    np.put_along_axis(coefs, pairs_of_classes(k)[fields["sv_class"]], packed, axis=1)
    return ModelRecord(classes, bias=bias, coefs=coefs, **fields)


def _read_own(lines: Lines, header: Header) -> ModelRecord:
    if header.words("nesvm_jit", 1) != [b"1"]:
        raise header.error("nesvm_jit", f"1, got {quote_word(header.words('nesvm_jit', 1)[0])}")
    classes = header.labels(whole=False)
    kernel = header.choice("kernel", KERNELS)
    fields: dict[str, Any] = {
        "model": header.choice("model", MODELS),
        "kernel": kernel,
        "degree": header.whole("degree", 0, LARGEST_INT),
        "gamma": header.number("gamma"),
        "coef0": header.number("coef0"),
        "multiclass": header.choice("multiclass", MULTICLASS),
    }
    m = n_problems(len(classes), fields["multiclass"])
    n_features = header.whole("nr_feature", 0, HIGHEST_INDEX)
    fields["bias"] = header.numbers("bias", m)
    fields["probability"] = header.probability(m)
    if header.section == "w":
        fields["weights"] = number_rows(lines, n_features, m)
        fields["n_features"] = n_features
    else:
        n = header.whole("total_sv", 0, LARGEST_INT)
        if "sv_class" in header:
            wholes = header.wholes("sv_class", n, 0, len(classes) - 1)
            fields["sv_class"] = np.array(wholes, dtype=np.int64)
        fields["coefs"], cells = vector_rows(lines, n, m, kernel == "precomputed")
        fields |= _support(lines, cells, n_features, kernel)
    facts = read_closing(lines, required=True)
    assert facts is not None
    return ModelRecord(classes, extra=facts["extra"], **fields)


def _support(lines: Lines, cells: Cells, n_features: int | None, kernel: str) -> dict[str, Any]:
    """Return support vectors or their sample numbers, and the number of features."""
    from scipy.sparse import csr_matrix

    numbers = cells.values.astype(np.int64) if kernel == "precomputed" else cells.indices
    widest = int(numbers.max(initial=0))
    if n_features is None:
        n_features = widest
    elif n_features < widest:
        raise lines.error(f"n_features must be at least {widest}, the highest, got {n_features}")
    if kernel == "precomputed":
        return {"n_features": n_features, "support_index": numbers - 1}
    X = csr_matrix(
        (cells.values, cells.indices - 1, cells.indptr), (len(cells.indptr) - 1, n_features)
    )
    return {"n_features": n_features, "support": X}


# ---------------------------------------------------------------- facts of the last line


def _fields(lines: Lines, facts: dict[str, Any], m: int) -> dict[str, Any]:
    """Return the fields in the last line of a LIBLINEAR or LIBSVM file, checked."""
    fields: dict[str, Any] = {"extra": facts["extra"]}
    for key, choices in (("model", MODELS), ("multiclass", MULTICLASS)):
        if facts.get(key) not in choices:
            got = facts.get(key)
            raise lines.error(f"{key} must be one of {', '.join(choices)}, got {got!r:.40}")
        fields[key] = facts[key]
    for key, highest in (("n_features", HIGHEST_INDEX), ("degree", LARGEST_INT)):
        if key in facts:
            value = facts[key]
            if type(value) is not int or not 0 <= value <= highest:
                what = f"a whole number from 0 to {highest}"
                raise lines.error(f"{key} must be {what}, got {value!r:.40}")
            fields[key] = value
    for key in ("gamma", "coef0"):
        if key in facts:
            fields[key] = _floats(lines, key, [facts[key]], 1)[0]
    if facts.get("probability") is not None:
        pair = facts["probability"]
        if not isinstance(pair, list) or len(pair) != 2:
            raise lines.error("probability must be two lists")
        fields["probability"] = tuple(_floats(lines, "probability", half, m) for half in pair)
    return fields


def _floats(lines: Lines, key: str, values: Any, count: int) -> np.ndarray:
    if not isinstance(values, list) or len(values) != count:
        raise lines.error(f"{key} must have {count} entries")
    try:
        if any(type(v) not in (int, float) for v in values):
            raise ValueError
        numbers = np.array([float(v) for v in values])
        if not np.isfinite(numbers).all():
            raise ValueError
    except (ValueError, OverflowError):
        raise lines.error(f"{key} must be finite numbers") from None
    return numbers


def _require_multiclass(lines: Lines, fields: dict[str, Any], k: int, kind: str) -> None:
    if k > 2 and fields["multiclass"] != kind:
        raise lines.error(f"multiclass must be {kind} here, got {fields['multiclass']}")
