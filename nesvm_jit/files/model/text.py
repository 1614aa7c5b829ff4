"""Write model files: LIBLINEAR's text, LIBSVM's text, or our own for what neither can hold.

A linear machine of two classes or one-versus-rest is written as LIBLINEAR's `train` does, a
kernel machine of two classes or one-versus-one as LIBSVM's `svm-train` does (support vectors
grouped by class), if labels are whole numbers. Their programs read these files; what the
formats cannot say follows in a last line that they never reach, `nesvm_jit {JSON}`, with
`version`, `model`, `multiclass`, `extra` and those of `n_features`, `gamma`, `coef0`, `degree`,
`probability` that are not said above it.

Everything else is text of the same kind, every header line required unless in brackets:

    nesvm_jit 1
    model csvm|lpsvm|lssvm
    kernel linear|poly|rbf|sigmoid|precomputed
    degree 3
    gamma 0.5
    coef0 0
    multiclass ovo|ovr
    nr_class 3
    label 0.5 1.5 2.5
    nr_feature 4
    bias 0 0.25 -1                    one per sub-problem
    [probA 1 1 1]  [probB 0 0 0]      as in LIBSVM, one per sub-problem
    w                                 then nr_feature lines, one number per sub-problem
    nesvm_jit {"version":1,"extra":{}}

or, for kernel machines, `total_sv N`, perhaps `sv_class` (N class numbers from 0), and instead
of `w` the word `SV` and N lines: a coefficient per sub-problem, then index:value from 1 as in
LIBSVM (precomputed: `0:serial`, from 1). The last line is required. All numbers are `%.17g`.
"""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...errors import InputError
from ..text import writing
from .reader import KERNEL_TYPES, SOLVER_TYPES, read_model
from .record import LARGEST_INT, ModelRecord, pairs_of_classes

__all__ = ["format_of", "read_model", "write_model"]

BLOCK_NUMBERS = 1 << 14
_SOLVER_OF = {
    "csvm": "L2R_L1LOSS_SVC_DUAL",
    "lssvm": "L2R_L2LOSS_SVC_DUAL",
    "lpsvm": "L1R_L2LOSS_SVC",
}
_TYPE_OF = {kernel: word for word, kernel in KERNEL_TYPES.items()}
_HAS_GAMMA, _HAS_COEF0 = ("poly", "rbf", "sigmoid"), ("poly", "sigmoid")


def write_model(path: Any, record: ModelRecord) -> None:
    """Write a model file; `read_model` gives back the same bits.

    `path` is a file name (compressed if it ends in .gz, .bz2 or .xz; written under a temporary
    name, then renamed), `-` for standard output, or an open binary file. Support vectors in
    LIBSVM's format come back grouped by class; keys of `extra` come back as strings.
    """
    if not isinstance(record, ModelRecord):
        raise InputError(f"a ModelRecord is required, got {type(record).__name__}")
    kind = format_of(record)
    body = {"LIBLINEAR": _liblinear, "LIBSVM": _libsvm, "nesvm_jit": _own}[kind](record)
    closing = _closing(record, kind)
    with writing(path) as f:
        for text in body:
            f.write(text.encode("ascii"))
        f.write(closing.encode("ascii"))


def format_of(record: ModelRecord) -> str:
    """Return the format in which a record is written: LIBLINEAR, LIBSVM or nesvm_jit."""
    k = len(record.classes)
    if not _fit_int(record.classes) or record.n_features >= LARGEST_INT:
        return "nesvm_jit"
    if record.weights is not None:
        small = (record.n_features + 1) * record.n_problems <= LARGEST_INT
        return "LIBLINEAR" if small and (k == 2 or record.multiclass == "ovr") else "nesvm_jit"
    if record.coefs is None or record.sv_class is None or (k > 2 and record.multiclass != "ovo"):
        return "nesvm_jit"
    held = np.count_nonzero(_by_class(record)) == np.count_nonzero(record.coefs)
    return "LIBSVM" if held else "nesvm_jit"


def _fit_int(classes: np.ndarray) -> bool:
    """Return True if no label changes when it is converted to a C int and back."""
    if np.abs(classes).max() > LARGEST_INT:
        return False
    return classes.astype(np.int32).astype(np.float64).tobytes() == classes.tobytes()


def _by_class(record: ModelRecord) -> np.ndarray:
    """Return the coefficients of each vector in the pairs of its own class."""
    assert record.coefs is not None
    pairs = pairs_of_classes(len(record.classes))[record.sv_class]
    return np.take_along_axis(record.coefs, pairs, axis=1)


# ---------------------------------------------------------------- the three formats


def _liblinear(record: ModelRecord) -> Iterator[str]:
    bias, weights = record.bias, record.weights
    assert weights is not None
    with_bias = bool(bias.any() or np.signbit(bias).any() or record.extra.get("bias"))
    yield f"solver_type {_solver_type(record)}\nnr_class {len(record.classes)}\n"
    yield _line("label", record.classes, "%d")
    yield f"nr_feature {record.n_features}\nbias {1 if with_bias else -1}\nw\n"
    yield from _rows(weights)
    if with_bias:
        yield from _rows(bias[None, :])


def _solver_type(record: ModelRecord) -> str:
    """Return the solver that the model was read with, or LIBLINEAR's nearest one to ours."""
    given = record.extra.get("solver_type")
    fits = given != "MCSVM_CS" or len(record.classes) > 2
    if isinstance(given, str) and given in SOLVER_TYPES and fits:
        return given
    return _SOLVER_OF[record.model]


def _libsvm(record: ModelRecord) -> Iterator[str]:
    kernel, k, coefs = record.kernel, len(record.classes), _by_class(record)
    assert record.sv_class is not None
    yield f"svm_type c_svc\nkernel_type {_TYPE_OF[kernel]}\n"
    if kernel == "poly":
        yield f"degree {record.degree}\n"
    if kernel in _HAS_GAMMA:
        yield f"gamma {record.gamma:.17g}\n"
    if kernel in _HAS_COEF0:
        yield f"coef0 {record.coef0:.17g}\n"
    yield f"nr_class {k}\ntotal_sv {len(coefs)}\n"
    yield _line("rho", -record.bias) + _line("label", record.classes, "%d") + _prob(record)
    yield _line("nr_sv", np.bincount(record.sv_class, minlength=k), "%d") + "SV\n"
    order = np.argsort(record.sv_class, kind="stable")
    yield from _vectors(record, coefs, order)


def _own(record: ModelRecord) -> Iterator[str]:
    yield f"nesvm_jit 1\nmodel {record.model}\nkernel {record.kernel}\ndegree {record.degree}\n"
    yield f"gamma {record.gamma:.17g}\ncoef0 {record.coef0:.17g}\n"
    yield f"multiclass {record.multiclass}\nnr_class {len(record.classes)}\n"
    yield _line("label", record.classes) + f"nr_feature {record.n_features}\n"
    yield _line("bias", record.bias) + _prob(record)
    if record.weights is not None:
        yield "w\n"
        yield from _rows(record.weights)
        return
    coefs = record.coefs
    assert coefs is not None
    yield f"total_sv {len(coefs)}\n"
    if record.sv_class is not None:
        yield _line("sv_class", record.sv_class, "%d")
    yield "SV\n"
    yield from _vectors(record, coefs, np.arange(len(coefs)))


# ---------------------------------------------------------------- lines


def _line(key: str, values: np.ndarray, form: str = "%.17g") -> str:
    return " ".join([key, *(form % v for v in values.tolist())]) + "\n"


def _prob(record: ModelRecord) -> str:
    if record.probability is None:
        return ""
    A, B = record.probability
    return _line("probA", A) + _line("probB", B)


def _rows(table: np.ndarray) -> Iterator[str]:
    n, m = table.shape
    form = "%.17g " * m + "\n"
    step = max(1, BLOCK_NUMBERS // m)
    for at in range(0, n, step):
        block = table[at : at + step]
        yield form * len(block) % tuple(block.ravel().tolist())


def _vectors(record: ModelRecord, coefs: np.ndarray, order: np.ndarray) -> Iterator[str]:
    """Yield a line per support vector, in the given order: its coefficients, then its cells."""
    start = "%.17g " * coefs.shape[1]
    if record.support_index is not None:
        for i in order.tolist():
            yield start % tuple(coefs[i].tolist()) + f"0:{record.support_index[i] + 1} \n"
        return
    support = record.support
    assert support is not None
    for i in order.tolist():
        stored = slice(support.indptr[i], support.indptr[i + 1])
        cells: list[float] = [0] * (2 * (stored.stop - stored.start))
        cells[0::2] = (support.indices[stored].astype(np.int64) + 1).tolist()
        cells[1::2] = support.data[stored].tolist()
        form = start + "%d:%.17g " * (len(cells) // 2) + "\n"
        yield form % (*coefs[i].tolist(), *cells)


def _closing(record: ModelRecord, kind: str) -> str:
    """Return the last line, which holds what the format has no place for."""
    facts: dict[str, Any] = {"version": 1}
    if kind != "nesvm_jit":
        facts |= {"model": record.model, "multiclass": record.multiclass}
        libsvm = kind == "LIBSVM"
        if libsvm:
            facts["n_features"] = record.n_features
        if not (libsvm and record.kernel in _HAS_GAMMA):
            facts["gamma"] = record.gamma
        if not (libsvm and record.kernel in _HAS_COEF0):
            facts["coef0"] = record.coef0
        if not (libsvm and record.kernel == "poly"):
            facts["degree"] = record.degree
        if not libsvm and record.probability is not None:
            facts["probability"] = [a.tolist() for a in record.probability]
    facts["extra"] = record.extra
    try:
        text = json.dumps(facts, separators=(",", ":"), default=_plain)
    except (TypeError, ValueError, RecursionError) as e:
        raise InputError(f"extra must be writable as JSON: {e}") from None
    return f"nesvm_jit {text}\n"


def _plain(value: Any) -> Any:
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(f"JSON has no {type(value).__name__}")
