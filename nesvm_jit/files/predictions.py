"""The lines of prediction files, with numbers as LIBSVM and LIBLINEAR print them (`%.17g`)."""

from typing import Any

import numpy as np

from ..errors import InputError

ROWS = 4096  # rows that are formatted at once


def label_lines(labels: Any) -> bytes:
    """Format one label per line; each distinct value is formatted once."""
    bits, which = np.unique(
        np.asarray(labels, dtype=np.float64).view(np.int64), return_inverse=True
    )
    lines = np.array([b"%.17g\n" % v for v in bits.view(np.float64).tolist()], dtype=bytes)
    return lines[which].tobytes().replace(b"\0", b"")  # arrays of texts are padded with \0


def label_header(classes: Any) -> bytes:
    """Format `labels l1 l2 …`, the first line of a file with probabilities."""
    return b" ".join([b"labels", *(b"%.17g" % v for v in np.asarray(classes).tolist())]) + b"\n"


def probability_lines(labels: Any, probabilities: Any) -> bytes:
    """Format lines `label p1 p2 …`, the probabilities in the order of the header."""
    return _lines(labels, probabilities, "probabilities")


def score_lines(labels: Any, scores: Any) -> bytes:
    """Format lines `label s1 s2 …`, with one score per binary problem."""
    return _lines(labels, scores, "scores")


def _lines(labels: Any, numbers: Any, name: str) -> bytes:
    labels, numbers = (np.asarray(a, dtype=np.float64) for a in (labels, numbers))
    if numbers.ndim == 1:
        numbers = numbers[:, None]
    if numbers.ndim != 2 or len(numbers) != len(labels):
        raise InputError(f"{name} must have {len(labels)} rows, got shape {numbers.shape}")
    line = " ".join(["%.17g"] * (1 + numbers.shape[1])) + "\n"
    blocks = []
    for at in range(0, len(labels), ROWS):
        rows = np.column_stack([labels[at : at + ROWS], numbers[at : at + ROWS]])
        blocks.append((line * len(rows) % tuple(rows.ravel().tolist())).encode("ascii"))
    return b"".join(blocks)
