"""Text of any size, made fast: 40 entries a row, one for each of 40 questions, of two decimals."""

import os
from pathlib import Path

import numpy as np

from ..common import UNPACKED

ENTRIES = 40
VALUES = 50
BLOCK = 100_000
NOISE = 1.0
LABELS = (b"-1", b"+1")


def bytes_of_row() -> int:
    return 3 + 10 * ENTRIES


def text_file(rows: int, features: int) -> Path:
    """The file, made when it is not there yet."""
    path = UNPACKED / f"made-{rows}-{features}.txt"
    if path.is_file() and path.stat().st_size == rows * bytes_of_row():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    with open(part, "wb") as f:
        for lo in range(0, rows, BLOCK):
            f.write(_block(min(BLOCK, rows - lo), features, lo))
    os.replace(part, path)
    return path


def _block(rows: int, features: int, first: int) -> bytes:
    """Rows by number: the same whatever the size of the file."""
    rng = np.random.default_rng([7, first, features])
    truth = np.random.default_rng(7).standard_normal((features, VALUES))
    width = features // ENTRIES
    column = np.arange(ENTRIES) * width + rng.integers(0, width, (rows, ENTRIES))
    value = rng.integers(0, VALUES, (rows, ENTRIES))
    score = truth[column, value].sum(axis=1) + NOISE * ENTRIES**0.5 * rng.standard_normal(rows)
    words = np.array(
        [
            [f" {j + 1}:{(k + 1) / VALUES:.2f}".rjust(10) for k in range(VALUES)]
            for j in range(features)
        ],
        dtype="S10",
    )
    cells = words[column, value].view("S1").reshape(rows, 10 * ENTRIES)
    label = np.array(LABELS, dtype="S2")[(score > 0).astype(int)].view("S1").reshape(rows, 2)
    end = np.full((rows, 1), b"\n")
    return np.hstack([label, cells, end]).tobytes()
