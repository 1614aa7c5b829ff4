"""Compile every kernel for every kind of matrix by a small call, and cache the code."""

import io
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from .. import jit, kernels
from ..binary.solve import solve
from ..files.libsvm.reader import read_libsvm
from ..kernels.dual_newton import _newton_steps
from ..kernels.exact_sums import column_products, row_products
from ..kernels.gram import _sum_columns
from ..kernels.public import as_spec
from ..kernels.sums import scores_of
from ..kernels.text.model import _parse_rows
from ..matrix.checks import as_matrix
from ..problems.kernel_rows import KernelRows

FAR = 1e12  # a γ so large that distances are computed as sums of squares


def matrices() -> dict[str, Any]:
    """Return a small matrix of each kind for which kernels are compiled."""
    dense = np.array([[1.0, 0.0, 2.0], [0.0, -1.0, 0.5], [3.0, 0.0, 0.0], [0.0, 1.0, 1.0]])
    return {
        "dense float64": dense,
        "dense float32": dense.astype(np.float32),
        "CSR float64": csr_matrix(dense),
        "CSR float32": csr_matrix(dense.astype(np.float32)),
    }


def calls(X: Any) -> dict[str, Callable[[], Any]]:
    """Return a call on X of every kernel that reads a matrix, by name."""
    n, p = X.shape
    a, w = np.arange(float(n)), np.ones(p)
    y = np.where(a % 2, 1.0, -1.0)
    return {
        "margins": partial(kernels.margins, X, w),
        "scores": partial(scores_of, as_matrix(X), np.ones((2, p)), np.zeros(2)),
        "row_norms": partial(kernels.row_norms, X),
        "accumulate": partial(kernels.accumulate, X, a),
        "accumulate_change": partial(kernels.accumulate_change, X, a, y, w.copy()),
        "sweep": partial(kernels.sweep, X, y, w),
        "hessian": partial(kernels.hessian, X, a),
        "hessian_diagonal": partial(kernels.hessian_diagonal, X, a),
        "hessian_times": partial(kernels.hessian_times, X, a, w),
        "exact sums of rows": partial(row_products, as_matrix(X), w),
        "exact sums of columns": partial(column_products, as_matrix(X), a),
        "gram float64": partial(kernels.gram, X),
        "gram float32": partial(kernels.gram, X, dtype=np.float32),
        "distances float64": partial(kernels.gram, X, gamma=FAR),
        "distances float32": partial(kernels.gram, X, gamma=FAR, dtype=np.float32),
    }


def steps() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield (name, call) of everything that is compiled."""
    for name, call in _steps():
        yield name, partial(_compile, call)


def _compile(call: Callable[[], Any]) -> None:
    with jit.compiled():
        call()


def _steps() -> Iterator[tuple[str, Callable[[], Any]]]:
    yield "threads", jit.compile_threads
    for dtype in (np.float64, np.float32):
        yield f"read_libsvm, {np.dtype(dtype)}", partial(_read, dtype)
    yield "project_hinge", partial(kernels.project_hinge, np.ones(2))
    yield "project_l1", partial(kernels.project_l1, np.ones(2))
    yield "slope", partial(kernels.slope, np.ones(2), np.ones(2), [1.0, -1.0])
    for kind, X in matrices().items():
        for name, call in calls(X).items():
            yield f"{name}, {kind}", call
        choices: list[dict[str, Any]] = [
            *({"solver": "newton"}, {"solver": "coordinate"}),
            {"kernel": "rbf", "solver": "coordinate"},
        ]
        for options in choices:
            call = partial(solve, X, [1.0, -1.0, 1.0, -1.0], **options)
            yield f"solve{_words(options)}, {kind}", call
        yield f"kernel rows, {kind}", partial(_kernel_rows, X)
        if not isinstance(X, np.ndarray):
            wide = csr_matrix((X.data, X.indices, X.indptr), (X.shape[0], 1000))
            for dtype in (np.float64, np.float32):
                call = partial(kernels.gram, wide, dtype=dtype)
                yield f"thin gram {np.dtype(dtype)}, {kind}", call
            yield f"thin hessian, {kind}", partial(kernels.hessian, wide, np.ones(X.shape[0]))
    small: list[dict[str, Any]] = [{}, {"kernel": "rbf"}, {"kernel": "rbf", "model": "lssvm"}]
    for options in small:
        call = partial(solve, matrices()["dense float64"], [1.0, -1.0, 1.0, -1.0], **options)
        yield f"small fits{_words(options)}", call
    yield "hard duals", _hard_dual
    yield "many scores", _many_scores
    yield "model files", _read_model


def _words(options: dict[str, Any]) -> str:
    """Return the values of some options, each after a space."""
    return "".join(f" {value}" for value in options.values())


def _read(dtype: Any) -> None:
    read_libsvm(io.BytesIO(b"1 1:2\n"), dtype=dtype)


def _kernel_rows(X: Any) -> None:
    """Compute rows, and a block some of whose rows are in the cache."""
    spec = as_spec("rbf", None, 0.0, 3, X.shape[1])
    rows = KernelRows(as_matrix(X), spec, budget_bytes=1e6)
    rows.rows(np.arange(2))
    rows.block(np.arange(3))
    rows.times(np.ones(X.shape[0]))


def _hard_dual() -> None:
    """Solve a problem on which steps of two coordinates would not end."""
    side, two = np.ones(2), np.eye(2)
    _newton_steps(two, -side, side, True, 0.0, np.zeros(2), np.array([1.0, -1.0]))


def _many_scores() -> None:
    """Add up scores of kernel machines as it is done for many rows."""
    _sum_columns(1, np.eye(2), np.ones((2, 1)), np.empty((2, 1)))


def _read_model() -> None:
    text = np.frombuffer(b"1 2:3\n", np.uint8)
    cells = (np.zeros(2, np.int64), np.zeros(1, np.int64), np.zeros(1))
    _parse_rows(text, 0, 0, np.zeros((1, 1)), *cells)
