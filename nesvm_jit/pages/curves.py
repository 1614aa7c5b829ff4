"""Charts of convergence: objective and bound of the largest sub-problem, and the gaps of all."""

from typing import Any

import numpy as np

from ..machine.machine import Machine
from . import words
from .numbers import plain, plain_list, text, thin
from .subproblems import of_largest, problem_names

CURVE = 1000  # points of a curve, at most
CURVES = 3000  # points of all gap curves together, at most
PROBLEMS = 60  # sub-problems whose gaps are drawn, at most
SMALLEST_GAP = 1e-17  # a gap of zero is drawn here, since a logarithmic axis has no zero
AXES = (("seconds", "seconds"), ("passes", "passes over the data"), ("round", "rounds"))


def convergence(machine: Machine, order: list[int]) -> list[dict[str, Any]]:
    """Return the charts of objective and bound of the largest sub-problem, and of all gaps,
    against time and work."""
    gaps = _gaps(machine, order)
    charts = [_objective(machine, order), gaps]
    if len(gaps["axes"]) > 1:
        first, second, *others = gaps["axes"]
        title = f"{gaps['title']}, by {'passes' if second['key'] == 'passes' else 'rounds'}"
        bare = {"id": "gap-again", "title": title, "note": "", "table": False}
        charts.append({**gaps, **bare, "axes": [second, *others, first]})
    return charts


def _objective(machine: Machine, order: list[int]) -> dict[str, Any]:
    assert machine.solutions is not None
    history = machine.solutions[order[0]].solution.history
    kept = thin(len(history["round"]), CURVE)
    columns = _columns(machine, history, kept)
    objective, dual, smoothed = (history[name][kept] for name in ("objective", "dual", "smoothed"))
    series: list[dict[str, Any]] = [
        {"name": "objective", "y": plain_list(objective, 8)},
        {"name": "lower bound", "y": plain_list(dual, 8)},
    ]
    if np.isfinite(smoothed).any() and not np.allclose(smoothed, objective, 1e-6, equal_nan=True):
        series.append({"name": "smoothed objective", "y": plain_list(smoothed, 8), "thin": True})
    tall = objective[np.isfinite(objective)]
    return {
        "kind": "lines",
        "id": "objective",
        "title": f"Objective and bound{of_largest(machine, order)}",
        "note": "The optimum lies between the two: in the shaded band.",
        "axes": _axes(columns),
        "y": {"label": "objective", "log": bool(len(tall) and tall.max() > 10 * tall.min() > 0)},
        "columns": columns,
        "series": series,
        "band": [0, 1],
    }


def _gaps(machine: Machine, order: list[int]) -> dict[str, Any]:
    assert machine.solutions is not None
    names, shown = problem_names(machine), order[:PROBLEMS]
    each = min(CURVE, max(20, CURVES // len(shown)))
    tol = machine.record.extra["tol"]
    series: list[dict[str, Any]] = []
    for k in shown:
        history = machine.solutions[k].solution.history
        kept = thin(len(history["round"]), each)
        name = names[k] if len(order) > 1 else "gap"
        gap = plain_list(np.maximum(history["gap"][kept], SMALLEST_GAP), 4)
        series.append({"name": name, "y": gap, "columns": _columns(machine, history, kept)})
    note = words.GAP
    if len(order) > len(shown):
        note += f" The {len(shown)} largest of {text(len(order))} sub-problems are shown."
    return {
        "kind": "lines",
        "id": "gap",
        "title": "Certified gap" + (" of every sub-problem" if len(order) > 1 else ""),
        "note": note,
        "axes": _axes(series[0]["columns"]),
        "y": {"label": "relative gap", "log": True},
        "series": series,
        "levels": [{"value": plain(tol), "label": f"tolerance {text(tol)}"}] if tol > 0 else [],
    }


def _columns(
    machine: Machine, history: dict[str, np.ndarray], kept: np.ndarray
) -> dict[str, list[int | float | None]]:
    """Return what a curve is drawn against (seconds, passes, rounds), and μ if there is one."""
    columns = {key: plain_list(history[key][kept], 5) for key, _ in AXES}
    mu = history["mu"][kept]
    if machine.record.model != "lssvm" and np.isfinite(mu).any() and (mu > 0).any():
        columns["mu"] = plain_list(mu, 4)
    return columns


def _axes(columns: dict[str, list[int | float | None]]) -> list[dict[str, Any]]:
    """Return the possible x axes: seconds first, then every other column that is not constant."""
    return [
        {"key": key, "label": name, "log": False}
        for key, name in AXES
        if len({v for v in columns[key] if v is not None}) > 1 or key == "seconds"
    ]
