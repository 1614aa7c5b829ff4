"""What the command line tells about a training run: facts for JSON, and lines for people."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, issparse

from ..files.model.certificates import STATUSES
from ..files.model.text import format_of

SAMPLE_CELLS = 1 << 20
LARGE = 50.0  # a feature that reaches this far
UNEVEN = 1000.0  # between the widest and the narrowest feature


def scaling_hints(X) -> Iterator[str]:
    """A line if the features, as far as the first rows tell, are badly scaled."""
    if issparse(X):
        part = csr_matrix(X)
        cells = min(SAMPLE_CELLS, len(part.data))
        named, which = np.unique(part.indices[:cells], return_inverse=True)
        reach = np.zeros(len(named))
        np.maximum.at(reach, which, np.abs(part.data[:cells]))
    else:
        reach = np.abs(X[: max(1, SAMPLE_CELLS // max(1, X.shape[1]))]).max(axis=0, initial=0.0)
    used = reach[reach > 0]
    if len(used) and (used.max() > LARGE or used.max() > UNEVEN * used.min()):
        yield (
            f"features reach from {used.min():.3g} to {used.max():.3g}; scaled to [0, 1] or "
            "[-1, 1] they usually train faster and predict better"
        )


def matrix(found) -> dict[str, Any]:
    """The facts of an on-disk matrix whose checksums are right."""
    labels, counts = np.unique(found.labels, return_counts=True)
    return {
        "n_samples": found.n_rows,
        "n_features": found.n_cols,
        "n_cells": found.n_cells,
        "dtype": str(found.dtype),
        "bytes": found.nbytes,
        "n_classes": len(labels),
        "rarest": int(counts.min(initial=found.n_rows)),
        "verified": True,
    }


def training(machine, solver: str, seconds: dict[str, float]) -> dict[str, Any]:
    """The facts of a run; of several sub-problems the sums, and the largest gap."""
    record, problems = machine.record, machine.problems
    facts = {
        "model": record.model,
        "kernel": record.kernel,
        "solver": problems[0]["solver"] if solver == "auto" else solver,
        "why": problems[0]["why"],
        "n_samples": record.extra["n_samples"],
        "n_features": machine.n_features,
        "n_classes": len(machine.classes),
        "C": record.extra["C"],
        "objective": sum(p["objective"] for p in problems),
        "dual_objective": sum(p["dual_objective"] for p in problems),
        "gap": machine.gap,
        "certified": all(p["certified"] for p in problems),
        "iterations": sum(p["iterations"] for p in problems),
        "status": min((p["status"] for p in problems), key=STATUSES.index),
        "n_support": machine.n_support,
        "seconds": {name: round(value, 6) for name, value in seconds.items()},
    }
    if "approx" in record.extra:
        facts["approx"] = record.extra["approx"]
    if len(problems) > 1:
        facts |= {"multiclass": record.multiclass, "problems": problems}
    return facts


def training_lines(machine, facts: dict[str, Any]) -> Iterator[str]:
    """The lines LIBLINEAR and LIBSVM end with, and the certificate."""
    if len(machine.problems) > 1:
        for p in machine.problems:
            yield (
                f"{_sides(p)}: #iter = {p['iterations']}, objective = {p['objective']:.6f}, "
                f"nSV = {p['n_support']}, gap = {p['gap']:.2e}"
            )
    yield f"optimization finished, #iter = {facts['iterations']}"
    yield f"Objective value = {facts['objective']:.6f}"
    yield f"nSV = {facts['n_support']}"
    if "approx" in facts:
        landmarks = facts["approx"]["landmarks"]
        yield f"Approximation = nystroem, {landmarks} landmarks; the gap is of that problem"
    yield f"Certified gap = {facts['gap']:.3e}"


def warnings(facts: dict[str, Any], tol: float) -> Iterator[str]:
    """A line for a run that did not reach its tolerance."""
    if not facts["certified"]:
        why = {
            "interrupted": "interrupted; the best model found was kept",
            "time_limit": "the time limit was reached",
            "iteration_limit": "the limit of rounds was reached",
            "converged": "the solver's own stopping rule was reached",
        }[facts["status"]]
        yield f"warning: gap {facts['gap']:.2e} is above the tolerance {tol:g}: {why}"


def cross_validation(found, X, settings: dict[str, Any], seconds) -> dict[str, Any]:
    """The facts of a cross-validation."""
    return {
        "model": settings["model"],
        "kernel": settings["kernel"],
        "n_samples": X.shape[0],
        "n_features": X.shape[1],
        "C": settings["C"],
        "folds": len(found.accuracies),
        "seed": settings["seed"],
        "accuracy": found.accuracy,
        "accuracies": found.accuracies,
        "gap": max(found.gaps),
        "status": found.status,
        "seconds": {name: round(value, 6) for name, value in seconds.items()},
    }


def model(machine) -> dict[str, Any]:
    """The facts of a model file."""
    record = machine.record
    facts: dict[str, Any] = {
        "format": format_of(record),
        "model": record.model,
        "kernel": record.kernel,
        "n_features": record.n_features,
        "n_classes": len(machine.classes),
        "classes": machine.classes.tolist(),
        "multiclass": record.multiclass if len(machine.classes) > 2 else None,
        "probability": record.probability is not None,
        "n_support": machine.n_support or None,
        "bias": record.bias.tolist(),
    }
    if record.kernel in ("poly", "rbf", "sigmoid"):
        facts["gamma"] = record.gamma
    if record.kernel in ("poly", "sigmoid"):
        facts["coef0"] = record.coef0
    if record.kernel == "poly":
        facts["degree"] = record.degree
    if record.weights is not None:
        facts["nonzero_weights"] = int(np.count_nonzero(record.weights))
    facts |= {k: v for k, v in record.extra.items() if k not in facts}
    if machine.problems:
        facts["gap"] = machine.gap
    return facts


def model_lines(machine) -> Iterator[str]:
    """The same for people."""
    facts = model(machine)
    problems = facts.pop("problems", [])
    gap = facts.pop("gap", None)
    for name, value in facts.items():
        if value is not None:
            yield f"{_text(name.replace('_', ' ')):16s} {_text(value)}"
    if gap is None:
        yield "certificate      none: the model was not trained by this program"
        return
    yield f"certified gap    {gap:.3e}"
    for p in problems:
        yield (
            f"  {_sides(p)}: objective {p['objective']:.9g}, at least {p['dual_objective']:.9g}, "
            f"gap {p['gap']:.2e}, {p['iterations']} rounds of {p['solver']}, {p['status']}"
        )


def _sides(p: dict[str, Any]) -> str:
    sides = [_number(c) for c in p["classes"]]
    return f"class {sides[0]} against {sides[1] if len(sides) == 2 else 'the rest'}"


def _number(value: float) -> str:
    """Nine digits, or all of a whole number."""
    if not isinstance(value, int) and value == value // 1 and abs(value) < 1e15:
        return str(int(value))
    return str(value) if isinstance(value, int) else f"{value:.9g}"


def _text(value: Any) -> str:
    """A fact in one line; what this program does not write is shown as JSON, and not at length."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        return _number(value)
    if isinstance(value, list) and all(type(v) in (int, float) for v in value):
        shown = " ".join(map(_number, value[:20]))
        return shown + (f" ... ({len(value)})" if len(value) > 20 else "")
    if isinstance(value, str) and value.isascii() and value.isprintable():
        return value
    text = json.dumps(value)
    return text if len(text) <= 200 else text[:197] + "..."
