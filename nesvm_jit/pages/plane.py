"""The chart of a machine with two features: regions, boundary, margins and rows."""

from typing import Any

import numpy as np

from ..machine.machine import Machine
from ..matrix.checks import as_matrix
from ..matrix.rows import as_scipy
from .numbers import label, plain_list, spread

GRID = 160  # points along each feature at which the decision is computed
POINTS = 1500  # training rows that are shown, at most
PAD = 0.08  # space on every side, as a share of the range of the rows


def plane(machine: Machine, X: Any, y: np.ndarray) -> dict[str, Any]:
    """Return the chart of the machine's decisions around the training rows, with some of them."""
    rows = spread(len(y), POINTS)
    shown = X[rows] if isinstance(X, np.ndarray) else as_scipy(as_matrix(X))[rows].toarray()
    shown = np.asarray(shown, dtype=np.float64)
    ranges = [_range(column) for column in shown.T]
    x, z = (np.linspace(*r, GRID) for r in ranges)
    mesh = np.stack(np.meshgrid(x, z), axis=-1).reshape(-1, 2)
    scores = machine.scores(as_matrix(mesh))
    values = None
    if scores.shape[1] == 1:
        values = [plain_list(row) for row in scores[:, 0].reshape(GRID, GRID)]
    return {
        "kind": "plane",
        "id": "plane",
        "title": "The two features",
        "note": "Background: the class decided for."
        + (" Solid line: the boundary; dashed: the margins, decision value ±1." if values else "")
        + " Rings: support vectors."
        + (f" {POINTS} of {len(y)} rows are shown." if len(rows) < len(y) else ""),
        "x": {"label": "feature 1", "range": plain_list(ranges[0])},
        "y": {"label": "feature 2", "range": plain_list(ranges[1])},
        "classes": [label(c) for c in machine.classes],
        "regions": machine.chosen(scores).reshape(GRID, GRID).tolist(),
        "values": values,
        "points": {
            "x": plain_list(shown[:, 0], 5),
            "y": plain_list(shown[:, 1], 5),
            "class": np.argmax(y[rows][:, None] == machine.classes[None, :], axis=1).tolist(),
            "support": _support(machine, len(y))[rows].astype(int).tolist(),
        },
    }


def _range(column: np.ndarray) -> tuple[float, float]:
    lo, hi = float(column.min()), float(column.max())
    pad = PAD * (hi - lo) or max(1.0, abs(hi)) * PAD
    return lo - pad, hi + pad


def _support(machine: Machine, n: int) -> np.ndarray:
    """Return a mask of the rows that have a dual weight in some sub-problem."""
    support = np.zeros(n, dtype=bool)
    for solved in machine.solutions or ():
        rows = slice(None) if solved.problem.rows is None else solved.problem.rows
        support[rows] |= solved.solution.alpha != 0
    return support
