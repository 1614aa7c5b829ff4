"""Make the document of a path over costs, from `PathResult.facts()`."""

import math
import statistics
from collections.abc import Callable
from typing import Any

from . import words
from .curves import SMALLEST_GAP
from .numbers import plain, plain_list, spread, text

FITS = 2000  # fits of one γ whose gaps are drawn, at most
COST = [{"key": "C", "label": "C", "log": True}]
Values = list[float | None] | None  # the values of the folds of a cell
Middle = tuple[float | None, float | None]  # their mean or median, and its standard error


def path_document(
    facts: dict[str, Any],
    title: str,
    training: dict[str, Any] | None = None,
    confusion: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the document of a path. `training` is the document of the machine that was trained on
    all rows at the end, `confusion` the `confusion_chart` of the test file."""
    chosen_by, *others = _scores(facts)
    charts = [chosen_by, _seconds(facts), _sizes(facts), _gaps(facts)]
    sections = [{"title": "Every cost", "charts": [c for c in charts if c]}]
    if others:
        sections.append({"title": "Other scores", "charts": others})
    if confusion is not None:
        sections.append({"title": "The test file", "charts": [{**confusion, "id": "test"}]})
    if training is not None:
        sections += [{**s, "title": f"All rows: {s['title']}"} for s in training["sections"]]
    return {
        "kind": "path",
        "title": title,
        "subtitle": words.subtitle(facts),
        "program": "nesvm-jit",
        "certificate": words.path_certificate(facts),
        "tiles": words.path_tiles(facts),
        "facts": words.path_facts(facts),
        "sections": sections,
    }


def _by_gamma(facts: dict[str, Any]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return (name, cells by C) for every γ; a single γ has an empty name."""
    groups = []
    for gamma in facts["gammas"]:
        cells = [c for c in facts["cells"] if c["gamma"] == gamma]
        name = "" if len(facts["gammas"]) == 1 else f"γ = {text(gamma)}"
        groups.append((name, sorted(cells, key=lambda c: c["C"])))
    return [g for g in groups if g[1]]


def _median(values: Values) -> Middle:
    """Return the median of the finite values, which one slow fit does not change, and no error."""
    known = [float(v) for v in values or () if v is not None and math.isfinite(v)]
    return (statistics.median(known) if known else None), None


def _mean(values: Values) -> Middle:
    """Return the mean of the finite values, and its standard error."""
    known = [float(v) for v in values or () if v is not None and math.isfinite(v)]
    if not known:
        return None, None
    mean = sum(known) / len(known)
    if len(known) == 1:
        return mean, None
    squares = sum((v - mean) ** 2 for v in known)
    return mean, math.sqrt(squares / (len(known) - 1) / len(known))


def _line(
    name: str,
    cells: list[dict[str, Any]],
    values: list[Values],
    middle: Callable[[Values], Middle] = _mean,
) -> dict[str, Any]:
    """Return the curve of the mean or median over folds of every cell's values against C, with
    standard errors if there are any."""
    middles = [middle(of_folds) for of_folds in values]
    line: dict[str, Any] = {
        "name": name,
        "columns": {"C": plain_list(c["C"] for c in cells)},
        "y": [plain(m) for m, _ in middles],
        "dots": True,
    }
    if any(e is not None for _, e in middles):
        line["errors"] = [plain(e, 3) for _, e in middles]
    return line


def _scores(facts: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a chart for every score that some fold has, first the one that chose the best C."""
    keys = sorted(facts["cells"][0]["scores"], key=lambda key: key != facts["scoring"])
    charts = []
    for key in keys:
        name, chosen_by = words.score_name(key), key == facts["scoring"]
        series = [
            _line(gamma or name, cells, [c["scores"].get(key) for c in cells])
            for gamma, cells in _by_gamma(facts)
        ]
        if chosen_by or any(v is not None for s in series for v in s["y"]):
            charts.append(
                {
                    "kind": "lines",
                    "id": f"scores-{key}",
                    "title": f"{name[0].upper()}{name[1:]} against C",
                    "note": "Mean over the folds; bars are its standard error.",
                    "axes": COST,
                    "y": {"label": name, "log": False},
                    "series": series,
                    "marks": _marks(facts, series) if chosen_by else [],
                }
            )
    return charts


def _marks(facts: dict[str, Any], series: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return marks at the best cell and at the simplest one within a standard error of it."""
    places: dict[tuple[int, int], list[str]] = {}
    for key, name in (("best", "best"), ("one_se", "one standard error")):
        cell = facts.get(key)
        if not cell:
            continue
        for k, (_, cells) in enumerate(_by_gamma(facts)):
            for at, c in enumerate(cells):
                if c["C"] == cell["C"] and c["gamma"] == cell["gamma"]:
                    places.setdefault((k, at), []).append(name)
    return [
        {"series": k, "index": at, "label": " and ".join(names)}
        for (k, at), names in places.items()
        if series[k]["y"][at] is not None
    ]


def _seconds(facts: dict[str, Any]) -> dict[str, Any]:
    return {
        "kind": "lines",
        "id": "seconds",
        "title": "Time against C",
        "note": "Seconds of a fit, the median over the folds.",
        "axes": COST,
        "y": {"label": "seconds", "log": True},
        "series": [
            _line(gamma or "seconds", cells, [c["seconds"] for c in cells], _median)
            for gamma, cells in _by_gamma(facts)
        ],
    }


def _sizes(facts: dict[str, Any]) -> dict[str, Any] | None:
    series = []
    for key, name in (("n_support", "support vectors"), ("n_nonzero", "weights not zero")):
        for gamma, cells in _by_gamma(facts):
            full = f"{name}, {gamma}" if gamma else name
            line = _line(full, cells, [c.get(key) for c in cells])
            if any(v is not None for v in line["y"]):
                series.append(line)
    if not series:
        return None
    return {
        "kind": "lines",
        "id": "sizes",
        "title": "Size of the machine against C",
        "note": "Mean over the folds.",
        "axes": COST,
        "y": {"label": "number", "log": False},
        "series": series,
    }


def _gaps(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the chart of gaps, with a dot for every fit."""
    series = []
    for gamma, cells in _by_gamma(facts):
        pairs = [(c["C"], g) for c in cells for g in c["gaps"] if g is not None]
        pairs = [pairs[k] for k in spread(len(pairs), FITS)]
        series.append(
            {
                "name": gamma or "fits",
                "columns": {"C": plain_list(C for C, _ in pairs)},
                "y": plain_list((max(g, SMALLEST_GAP) for _, g in pairs), 4),
                "dots": "only",
            }
        )
    tol = facts["tol"]
    return {
        "kind": "lines",
        "id": "gaps",
        "title": "Certified gap of every fit",
        "note": "A dot for every fold. Below the tolerance nothing is left to gain by training on.",
        "axes": COST,
        "y": {"label": "relative gap", "log": True},
        "series": series,
        "levels": [{"value": plain(tol), "label": f"tolerance {text(tol)}"}] if tol > 0 else [],
    }
