"""The picture of a machine over two features: regions, boundary, margins and rows."""

from typing import Any

import numpy as np
from scipy.sparse import issparse

from ..matrix.checks import as_matrix
from .numbers import label, plain, plain_list, spread

GRID = 160
POINTS = 1500
PAD = 0.08  # of the range of the rows, on every side
LEVELS = (-1.0, 0.0, 1.0)  # margin, boundary, margin


def plane(machine, X, y: np.ndarray) -> dict[str, Any]:
    """What the machine decides around the training rows, of which some are shown."""
    rows = spread(len(y), POINTS)
    shown = X[rows]
    shown = np.asarray(shown.toarray() if issparse(shown) else shown, dtype=np.float64)
    ranges = [_range(column) for column in shown.T]
    x, z = (np.linspace(*r, GRID) for r in ranges)
    mesh = np.stack(np.meshgrid(x, z), axis=-1).reshape(-1, 2)
    scores = machine.scores(as_matrix(mesh))
    chosen = machine.chosen(scores).reshape(GRID, GRID)
    lines = []
    if scores.shape[1] == 1:
        values = scores[:, 0].reshape(GRID, GRID)
        lines = [
            {"level": v, "paths": [plain_list(p.ravel(), 5) for p in contour(x, z, values, v)]}
            for v in LEVELS
        ]
    support = _support(machine, len(y))[rows]
    return {
        "kind": "plane",
        "id": "plane",
        "title": "The two features",
        "note": "Background: the class decided for."
        + (" Solid line: the boundary; dashed: the margins, decision value ±1." if lines else "")
        + " Rings: support vectors."
        + (f" {POINTS} of {len(y)} rows are shown." if len(rows) < len(y) else ""),
        "x": {"label": "feature 1", "range": plain_list(ranges[0])},
        "y": {"label": "feature 2", "range": plain_list(ranges[1])},
        "classes": [label(c) for c in machine.classes],
        "regions": [_runs(row) for row in chosen],
        "lines": lines,
        "points": {
            "x": plain_list(shown[:, 0], 5),
            "y": plain_list(shown[:, 1], 5),
            "class": np.argmax(y[rows][:, None] == machine.classes[None, :], axis=1).tolist(),
            "support": support.astype(int).tolist(),
        },
    }


def _range(column: np.ndarray) -> tuple[float, float]:
    lo, hi = float(column.min()), float(column.max())
    pad = PAD * (hi - lo) or max(1.0, abs(hi)) * PAD
    return lo - pad, hi + pad


def _support(machine, n: int) -> np.ndarray:
    """Which rows have a dual weight in some sub-problem."""
    support = np.zeros(n, dtype=bool)
    for f in machine.solutions:
        support[slice(None) if f.problem.rows is None else f.problem.rows] |= f.solution.alpha != 0
    return support


def _runs(row: np.ndarray) -> list[int]:
    """class, length, class, length, … of a row of cells."""
    starts = np.append(0, np.flatnonzero(np.diff(row)) + 1)
    lengths = np.diff(np.append(starts, len(row)))
    return np.stack([row[starts], lengths], axis=1).ravel().tolist()


def contour(x: np.ndarray, y: np.ndarray, values: np.ndarray, level: float) -> list[np.ndarray]:
    """Lines where `values` (a row per y) have the level: marching squares, linear on edges."""
    above = values > level
    corners = above[:-1, :-1].astype(int) + above[:-1, 1:] + above[1:, 1:] + above[1:, :-1]
    next_to: dict[tuple, list[tuple]] = {}
    for j, i in np.argwhere((corners > 0) & (corners < 4)).tolist():
        sides = (("h", j, i), ("v", j, i + 1), ("h", j + 1, i), ("v", j, i))  # around the cell
        crossed = [s for s in sides if _crosses(above, s)]
        if len(crossed) == 4:  # a saddle: cut off the corners that differ from the middle
            middle = values[j : j + 2, i : i + 2].mean() > level
            crossed = crossed if middle == above[j, i] else crossed[3:] + crossed[:3]
        for a, b in zip(crossed[::2], crossed[1::2], strict=True):
            next_to.setdefault(a, []).append(b)
            next_to.setdefault(b, []).append(a)
    return [np.array([_point(x, y, values, level, s) for s in chain]) for chain in _chains(next_to)]


def _crosses(above: np.ndarray, side: tuple) -> bool:
    kind, j, i = side
    return bool(above[j, i] != (above[j, i + 1] if kind == "h" else above[j + 1, i]))


def _point(x, y, values, level: float, side: tuple) -> tuple[float | None, float | None]:
    kind, j, i = side
    to = (j, i + 1) if kind == "h" else (j + 1, i)
    t = float((level - values[j, i]) / (values[to] - values[j, i]))
    return plain(x[i] + t * (x[to[1]] - x[i])), plain(y[j] + t * (y[to[0]] - y[j]))


def _chains(next_to: dict[tuple, list[tuple]]) -> list[list[tuple]]:
    """The sides in the order that lines pass them; open lines first, then rings."""
    chains, seen = [], set()
    for start in sorted(next_to, key=lambda side: len(next_to[side])):
        if start in seen:
            continue
        chain, here = [start], start
        seen.add(start)
        while True:
            onward = [s for s in next_to[here] if s not in seen]
            if not onward:
                break
            here = onward[0]
            seen.add(here)
            chain.append(here)
        if len(chain) > 2 and start in next_to[here]:
            chain.append(start)
        chains.append(chain)
    return chains
