"""Prediction from file to file, block by block."""

import numpy as np

from ..errors import InputError
from ..files import predictions
from ..files.stream import libsvm_blocks
from ..files.text import writing
from ..files.training import kernel_columns
from ..matrix import as_matrix
from .machine import Machine, load_model

WHAT = ("labels", "probabilities", "scores")


def predict_file(test_file, model_file, output_file, what: str = "labels") -> tuple[int, int]:
    """Write a line per row of `test_file`; returns the number of rows and of right labels."""
    machine = load_model(model_file)
    if what == "probabilities" and machine.record.probability is None:
        raise InputError(f"{model_file}: the model has no probabilities; train it with -b 1")
    precomputed = machine.record.kernel == "precomputed"
    n = correct = 0
    blocks = libsvm_blocks(test_file, zero_based=precomputed)
    block = next(blocks, None)  # a file that cannot be read leaves the output as it is
    with writing(output_file) as f:
        if what == "probabilities":
            f.write(predictions.label_header(machine.classes))
        while block is not None:
            X, y = block
            X = as_matrix(_kernel_block(X, machine, test_file) if precomputed else X)
            labels, lines = _lines(machine, X, what)
            f.write(lines)
            n, correct = n + len(y), correct + int(np.count_nonzero(labels == y))
            block = next(blocks, None)
    return n, correct


def _lines(machine: Machine, X, what: str) -> tuple[np.ndarray, bytes]:
    scores = machine.scores(X)
    if what == "probabilities":
        probabilities = machine.probabilities(scores)
        labels = machine.classes[probabilities.argmax(axis=1)]
        return labels, predictions.probability_lines(labels, probabilities)
    labels = machine.classes[machine.chosen(scores)]
    if what == "scores":
        return labels, predictions.score_lines(labels, scores)
    return labels, predictions.label_lines(labels)


def _kernel_block(X, machine: Machine, path) -> np.ndarray:
    """A block of a precomputed kernel: a column for every training row, absent ones zero."""
    K = kernel_columns(X, path, 0)
    missing = machine.n_features - K.shape[1]
    return np.pad(K, ((0, 0), (0, missing))) if missing > 0 else K
