"""Predict from file to file, block by block."""

import contextlib
import itertools
from collections.abc import Callable, Generator, Iterator
from typing import IO, Any, NamedTuple

import numpy as np

from ..errors import FormatError, InputError
from ..files import predictions
from ..files.libsvm.stream import checked_blocks
from ..files.ondisk.matrix import is_matrix, open_matrix
from ..files.text import display_name, writing
from ..files.training import kernel_columns
from ..matrix.checks import as_matrix
from ..matrix.matrix import Csr, Matrix
from ..matrix.rows import as_scipy, first_columns
from .machine import Machine, load_model


class Counts(NamedTuple):
    """The numbers of rows, of rows with the right label, and of rows with a proven label."""

    rows: int
    correct: int
    certified: int


def predict_file(
    test_file: Any,
    model_file: Any,
    output_file: Any,
    what: str = "labels",
    progress: Callable[[dict], Any] | None = None,
) -> tuple[int, int]:
    """Write a line per row of `test_file`; return the numbers of rows and of right labels.

    `what` says what follows the label: nothing ("labels"), "probabilities" or "scores".
    `progress` is called with a dict of `rows` after every block.
    """
    found = _predict(test_file, model_file, output_file, what, progress)
    return found.rows, found.correct


def predict_certified(
    test_file: Any,
    model_file: Any,
    output_file: Any,
    progress: Callable[[dict], Any] | None = None,
) -> Counts:
    """Write the label of every row, followed by 1 if it is proven to be that of the exact optimum,
    else by 0; return the counts."""
    return _predict(test_file, model_file, output_file, "certified", progress)


def _predict(
    test_file: Any,
    model_file: Any,
    output_file: Any,
    what: str,
    progress: Callable[[dict], Any] | None,
) -> Counts:
    machine = load_model(model_file)
    if what == "probabilities" and machine.record.probability is None:
        raise InputError(
            f"{display_name(model_file)}: the model has no probabilities; train it with -b 1"
        )
    with contextlib.closing(_blocks(test_file, machine)) as blocks:
        first = next(blocks)  # before the output is opened: a bad test file must not replace it
        with writing(output_file) as f:
            if what == "probabilities":
                f.write(predictions.label_header(machine.classes))
            found = Counts(0, 0, 0)
            for X, y in itertools.chain([first], blocks):
                found = _write_block(f, machine, X, y, what, found)
                if progress is not None:
                    progress({"rows": found.rows})
            return found


def _write_block(
    f: IO[bytes], machine: Machine, X: Matrix, y: np.ndarray, what: str, found: Counts
) -> Counts:
    """Write the lines of a block; return the counts with those of the block added."""
    labels, lines = _lines(machine, X, what)
    proven = 0
    if what == "certified":
        sure = machine.certified(X)
        proven = int(np.count_nonzero(sure))
        lines = predictions.score_lines(labels, sure)
    f.write(lines)
    correct = int(np.count_nonzero(labels == y))
    return Counts(found.rows + len(y), found.correct + correct, found.certified + proven)


def _blocks(path: Any, machine: Machine) -> Generator[tuple[Matrix, np.ndarray], None, None]:
    """Yield blocks of rows and labels of LIBSVM text or an on-disk matrix."""
    precomputed = machine.record.kernel == "precomputed"
    read = _stored_blocks if is_matrix(path) else checked_blocks
    for X, y in read(path, precomputed):
        yield as_matrix(columns_for(as_scipy(X), machine, path)) if precomputed else X, y


def _stored_blocks(path: Any, precomputed: bool) -> Iterator[tuple[Matrix, np.ndarray]]:
    stored = open_matrix(path)
    if precomputed and stored.first_index != 0:
        raise FormatError(
            f"{stored.name}: a precomputed kernel needs 0:serial in every row, this matrix was "
            "converted from indices that count from 1"
        )
    with contextlib.closing(stored.blocks()) as blocks:
        for lo, hi, X in blocks:
            yield X, stored.read_labels(lo, hi)


def _lines(machine: Machine, X: Matrix, what: str) -> tuple[np.ndarray, bytes]:
    scores = machine.scores(X)
    if what == "probabilities":
        probabilities = machine.probabilities(scores)
        labels = machine.classes[probabilities.argmax(axis=1)]
        return labels, predictions.probability_lines(labels, probabilities)
    labels = machine.classes[machine.chosen(scores)]
    if what == "scores":
        return labels, predictions.score_lines(labels, scores)
    return labels, predictions.label_lines(labels)


def columns_for(X: Any, machine: Machine, path: Any) -> Any:
    """Return a block with the columns that the machine needs."""
    record = machine.record
    ours = record.extra.get("n_samples") == machine.n_features
    return columns_of(X, record.kernel, machine.n_features, path, ours)


def columns_of(X: Any, kernel: str, n: int, path: Any, ours: bool = True) -> Any:
    """Return rows of a test file with the columns that a machine of n features needs.

    A machine of `ours` with a precomputed kernel states the number of its training rows.
    """
    if kernel != "precomputed":
        # features that training did not see: LIBLINEAR ignores them, LIBSVM's distances count them
        if kernel != "linear" or X.shape[1] <= n:
            return X
        return first_columns(X, n) if isinstance(X, Csr) else X[:, :n]
    K = kernel_columns(X, path)
    if K.shape[1] > n and ours:
        raise FormatError(
            f"{display_name(path)}: the model was trained on {n} rows, its kernel has columns "
            f"1 to {n}, got {K.shape[1]}"
        )
    # LIBSVM's models do not state the number of training rows, and rows may omit zeros
    return np.pad(K[:, :n], ((0, 0), (0, max(0, n - K.shape[1]))))
