"""Read LIBSVM (SVM-light) text: whole files, or the lines in a range of bytes."""

from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from ...errors import FormatError
from ...matrix.matrix import Csr, CsrArrays, trust_csr
from ..text import read_bytes, readable
from .explain import no_rows
from .parse import Form, form_of, parse_lines

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

PIECE_BYTES = 1 << 20  # bytes that are read at a time where lines are counted


def read_libsvm(
    path: Any,
    n_features: int | None = None,
    dtype: Any = np.float64,
    zero_based: bool = False,
) -> "tuple[csr_matrix, np.ndarray]":
    """Read `label index:value …` lines: a scipy CSR matrix and the labels as float64.

    `path` is a file name, `-` for standard input, or an open binary file; gzip, bzip2 and xz
    are recognised by their content. Every number has the bits of Python's ``float()`` (rounded
    once more for float32). Without `n_features` the highest index decides the width.
    Comments (`# …`), `qid:N`, blank lines, CRLF and a missing last newline are accepted;
    anything else that is not a row raises FormatError: ``file:line: what``.
    """
    rows, labels = _read(path, form_of(path, n_features, dtype, zero_based))
    return scipy_rows(rows), labels


def read_checked(path: Any, n_features: int | None, dtype: Any) -> tuple[Csr, np.ndarray]:
    """Read the rows of `read_libsvm` as a `Csr`, which kernels take; this needs no scipy."""
    rows, labels = _read(path, form_of(path, n_features, dtype, zero_based=False))
    return trust_csr(*rows), labels


def _read(path: Any, form: Form) -> tuple[CsrArrays, np.ndarray]:
    text = np.frombuffer(read_bytes(path, form.name), dtype=np.uint8)
    rows, labels = parse_lines(text, form)
    if not len(labels):
        raise no_rows(form.name)
    return rows, labels


def parse_range(
    path: Any, start: int, stop: int, n_features: int | None = None, dtype: Any = np.float64
) -> "tuple[csr_matrix, np.ndarray]":
    """Read the rows of the lines that begin in bytes start..stop of a plain file, if any do."""
    form = form_of(path, n_features, dtype, zero_based=False)
    with readable(form.name), open(path, "rb") as f:
        begin, end = _line_start(f, start), _line_start(f, stop)
        f.seek(begin)
        text = np.frombuffer(f.read(end - begin), dtype=np.uint8)
        try:
            rows, labels = parse_lines(text, form)
        except FormatError:  # the message needs the line number: count the lines before `begin`
            f.seek(0)
            pieces = iter(lambda: f.read(min(PIECE_BYTES, begin - f.tell())), b"")
            first = 1 + sum(piece.count(b"\n") for piece in pieces)
            rows, labels = parse_lines(text, form, first)
        return scipy_rows(rows), labels


def _line_start(f: BinaryIO, at: int) -> int:
    """Return the first position from `at` on at which a line begins."""
    if at == 0:
        return 0
    f.seek(at - 1)
    f.readline()
    return f.tell()


def scipy_rows(rows: CsrArrays) -> "csr_matrix":
    """Make a scipy matrix that shares the arrays of the parsed rows."""
    from scipy.sparse import csr_matrix

    X = csr_matrix((len(rows.indptr) - 1, rows.n_cols), dtype=rows.data.dtype)
    index = np.dtype(f"i{rows.indptr.dtype.itemsize}")
    X.data, X.indices, X.indptr = rows.data, rows.indices.view(index), rows.indptr.view(index)
    X.has_sorted_indices = X.has_canonical_format = True
    return X
