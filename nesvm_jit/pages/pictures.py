"""What is drawn of a training run: a document of plain numbers for matplotlib and for HTML.

A document has a title, facts, the certificate in words and sections of charts; a chart is a dict
whose `kind` (lines, histogram, bars, matrix, plane) says what else is in it. Whatever has
`variants` is one chart for each of them, the first unless another is chosen.
"""

from typing import Any

import numpy as np

from ..errors import InputError
from ..matrix.checks import as_matrix
from ..matrix.matrix import shape
from ..matrix.rows import take_rows
from . import words
from .numbers import histogram, label, plain, plain_list, share, spread, text, thinned
from .plane import plane

CURVE = 1000  # points of a curve
CURVES = 6000  # points of all gap curves together
PROBLEMS = 60  # sub-problems that are drawn
VARIANTS = 45  # sub-problems to choose from
CELLS = 1 << 26  # kernel values, or scores, to compute for the confusion matrix
TOP = 30  # weights
CLASSES = 40  # of a confusion matrix
FULL = 0.999  # of the largest u, if that is NEAR 1: dual points are made feasible by a factor
NEAR = 0.9
AXES = (("seconds", "seconds"), ("passes", "passes over the data"), ("round", "rounds"))


def training_document(machine, X, y, facts: dict[str, Any], title: str) -> dict[str, Any]:
    """The picture of a machine that was trained on X, y with `keep_solutions`; `facts` are those
    of `report.training`."""
    if machine.solutions is None:
        raise InputError("a picture needs a machine trained with keep_solutions=True")
    y = np.asarray(y, dtype=np.float64)
    order = _largest_first(machine)
    confusion, right = _confusion(machine, X, y)
    fitted = [_u_histogram(machine, order), _decision_histogram(machine, y, order)]
    if machine.record.weights is not None:
        fitted.append(_weights(machine, order))
    if machine.n_features == 2 and machine.record.kernel != "precomputed":
        fitted = [plane(machine, X, y), confusion, *fitted]
    else:
        fitted.append(confusion)
    return {
        "kind": "train",
        "title": title,
        "subtitle": words.subtitle(facts),
        "program": machine.record.extra["program"],
        "certificate": words.certificate(facts, machine.record.extra["tol"], len(order)),
        "tiles": words.training_tiles(facts, right),
        "facts": words.training_facts(machine, facts),
        "sections": [
            {"title": "How training went", "charts": _convergence(machine, order)},
            {"title": "What was found", "charts": fitted},
        ],
    }


def problem_names(machine) -> list[str]:
    """What every sub-problem tells apart."""
    return [
        f"{label(p['classes'][0])} against "
        + (label(p["classes"][1]) if len(p["classes"]) == 2 else "the rest")
        for p in machine.problems
    ]


def _largest_first(machine) -> list[int]:
    """The sub-problems by rows, then by seconds: the first is shown in detail."""
    found = machine.solutions
    return sorted(
        range(len(found)), key=lambda k: (-len(found[k].solution.alpha), -found[k].seconds)
    )


# ---------------------------------------------------------------- convergence


def _convergence(machine, order: list[int]) -> list[dict[str, Any]]:
    names, largest = problem_names(machine), order[0]
    history = machine.solutions[largest].solution.history
    kept = thinned(len(history["round"]), CURVE)
    columns = _columns(machine, history, kept)
    of = f", class {names[largest]}" if len(order) > 1 else ""
    objective, dual = (history[name][kept] for name in ("objective", "dual"))
    series: list[dict[str, Any]] = [
        {"name": "objective", "y": plain_list(objective, 8)},
        {"name": "lower bound", "y": plain_list(dual, 8)},
    ]
    smoothed = history["smoothed"][kept]
    if np.isfinite(smoothed).any() and not np.allclose(smoothed, objective, 1e-6, equal_nan=True):
        series.append({"name": "smoothed objective", "y": plain_list(smoothed, 8), "thin": True})
    tall = objective[np.isfinite(objective)]
    both = {
        "kind": "lines",
        "id": "objective",
        "title": f"Objective and bound{of}",
        "note": "The optimum lies between the two: in the shaded band.",
        "axes": _axes(columns),
        "y": {"label": "objective", "log": bool(len(tall) and tall.max() > 10 * tall.min() > 0)},
        "columns": columns,
        "series": series,
        "band": [0, 1],
    }
    return [both, _gaps(machine, order, names)]


def _gaps(machine, order: list[int], names: list[str]) -> dict[str, Any]:
    shown = order[:PROBLEMS]
    each = min(CURVE, max(20, CURVES // len(shown)))
    tol = machine.record.extra["tol"]
    series: list[dict[str, Any]] = []
    for k in shown:
        history = machine.solutions[k].solution.history
        kept = thinned(len(history["round"]), each)
        name = names[k] if len(order) > 1 else "gap"
        gap = plain_list(np.maximum(history["gap"][kept], 1e-17), 4)
        series.append({"name": name, "y": gap, "columns": _columns(machine, history, kept)})
    note = "A proof, not an estimate: (objective − lower bound) / objective."
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


def _columns(machine, history: dict[str, np.ndarray], kept: np.ndarray) -> dict[str, list]:
    """What a curve is drawn against, and μ where there is smoothing."""
    columns = {key: plain_list(history[key][kept], 5) for key, _ in AXES}
    mu = history["mu"][kept]
    if machine.record.model != "lssvm" and np.isfinite(mu).any() and (mu > 0).any():
        columns["mu"] = plain_list(mu, 4)
    return columns


def _axes(columns: dict[str, list]) -> list[dict[str, Any]]:
    return [
        {"key": key, "label": name, "log": False}
        for key, name in AXES
        if len({v for v in columns[key] if v is not None}) > 1 or key == "seconds"
    ]


# ---------------------------------------------------------------- what was found


def _u_histogram(machine, order: list[int]) -> dict[str, Any]:
    """u = α/c: 0 for rows well classified, 1 for rows that pay the full cost, between on the
    margin. The square loss knows no ends."""
    square = machine.record.model == "lssvm"
    names = problem_names(machine)
    variants = []
    for k in order[:VARIANTS]:
        f = machine.solutions[k]
        used = f.costs > 0.0
        u = f.solution.alpha[used] / f.costs[used]
        found = histogram([u]) if square else _in_unit_interval(u)
        found |= {} if square else {"note": _ends(u)}
        series = [{"name": "rows", "counts": found.pop("counts")[0]}]
        variants.append({"name": names[k], **found, "series": series})
    heights = variants[0]["series"][0]["counts"]
    return {
        "kind": "histogram",
        "id": "u",
        "title": "Dual weights u = α/c",
        "note": "Twice what a row lacks to its aim, ±1; negative where it is beyond.",
        "x": {"label": "u = α/c", "range": None if square else [0, 1]},
        "y": {
            "label": "rows",
            "log": max(heights) > 50 * min((h for h in heights if h), default=1),
        },
        "variants": variants,
    }


def _in_unit_interval(u: np.ndarray) -> dict[str, Any]:
    """Twenty bins of ]0, 1[, and one bin each for the ends."""
    zero, full = u == 0.0, _full(u)
    counts = np.histogram(u[~(zero | full)], np.linspace(0.0, 1.0, 21))[0].tolist()
    ends = int(np.count_nonzero(zero)), int(np.count_nonzero(full))
    return {
        "edges": plain_list(np.linspace(-0.05, 1.05, 23)),
        "counts": [[ends[0], *counts, ends[1]]],
        "names": {"0": "0", "21": "1"},
        "tints": {"0": 7, "21": 1},
    }


def _full(u: np.ndarray) -> np.ndarray:
    """Which rows are at the upper end."""
    most = float(u.max(initial=0.0))
    return u >= FULL * (most if most > NEAR else 1.0)


def _ends(u: np.ndarray) -> str:
    zero, one = np.count_nonzero(u == 0.0), np.count_nonzero(_full(u))
    return (
        f"{text(int(zero))} rows at 0, beyond the margin, change nothing; "
        f"{text(int(len(u) - zero - one))} inside, on the margin; "
        f"{text(int(one))} at 1, within it or on the wrong side."
    )


def _decision_histogram(machine, y: np.ndarray, order: list[int]) -> dict[str, Any]:
    names = problem_names(machine)
    margin = (
        "±1 is the aim" if machine.record.model == "lssvm" else "between −1 and 1 is the margin"
    )
    variants = []
    for k in order[:VARIANTS]:
        f, sides = machine.solutions[k], machine.problems[k]["classes"]
        rows = slice(None) if f.problem.rows is None else f.problem.rows
        first = y[rows] == machine.classes[f.problem.i]
        found = histogram([f.solution.margins[first], f.solution.margins[~first]])
        counts = found.pop("counts")
        second = f"class {label(sides[1])}" if len(sides) == 2 else "the rest"
        both = zip((f"class {label(sides[0])}", second), counts, strict=True)
        series = [{"name": name, "counts": c} for name, c in both]
        variants.append({"name": names[k], **found, "series": series})
    return {
        "kind": "histogram",
        "id": "decision",
        "title": "Decision values by class",
        "note": f"A value above 0 is decided for the first class; {margin}.",
        "x": {"label": "decision value", "range": None},
        "y": {"label": "rows", "log": False},
        "rules": [-1, 0, 1],
        "variants": variants,
    }


def _weights(machine, order: list[int]) -> dict[str, Any]:
    """The largest weights of a linear machine."""
    names, weights = problem_names(machine), machine.record.weights
    variants = []
    for k in order[:VARIANTS]:
        w = weights[:, k]
        top = np.argsort(-np.abs(w), kind="stable")[:TOP]
        top = top[w[top] != 0.0]
        used = int(np.count_nonzero(w))
        variants.append(
            {
                "name": names[k],
                "labels": [f"feature {j + 1}" for j in top],
                "values": plain_list(w[top], 5),
                "note": f"The {len(top)} largest of {text(used)} weights that are not zero, of "
                f"{text(len(w))} features. Positive speaks for the first class.",
            }
        )
    return {
        "kind": "bars",
        "id": "weights",
        "title": "Largest weights",
        "x": {"label": "weight"},
        "variants": variants,
    }


def _confusion(machine, X, y: np.ndarray) -> tuple[dict[str, Any], str]:
    """The confusion matrix of the training rows, or of some where all would take long."""
    rows, chosen = _decided(machine, X, len(y))
    of = "training rows" if len(rows) == len(y) else f"{text(len(rows))} training rows"
    truth, predicted = y[rows], machine.classes[chosen]
    chart = confusion_chart(machine.classes, truth, predicted, of)
    return chart, share(int(np.count_nonzero(truth == predicted)), len(rows))


def _decided(machine, X, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers, and the class that the machine chooses for each."""
    found = machine.solutions
    if all(f.problem.rows is None for f in found):
        return np.arange(n), machine.chosen(np.stack([f.solution.margins for f in found], axis=1))
    vectors = 0 if machine.record.coefs is None else len(machine.record.coefs)
    X = as_matrix(X)
    rows = spread(shape(X)[0], max(1000, CELLS // max(vectors, len(found))))
    return rows, machine.chosen(machine.scores(take_rows(X, rows)))


def confusion_chart(classes, truth, predicted, of: str) -> dict[str, Any]:
    """How often rows of each class are decided for each; `of` says which rows. Of very many
    classes, those with the most errors are shown."""
    classes = np.append(classes, np.setdiff1d(truth, classes))
    place = {c: k for k, c in enumerate(classes.tolist())}
    true, said = ([place[c] for c in np.asarray(v, float).tolist()] for v in (truth, predicted))
    counts = np.zeros((len(classes), len(classes)), dtype=np.int64)
    np.add.at(counts, (true, said), 1)
    right, total = int(np.trace(counts)), int(counts.sum())
    note = f"{text(right)} of {text(total)} {of} are right: {share(right, total)}."
    kept = np.argsort(classes, kind="stable")
    if len(classes) > CLASSES:
        errors = counts.sum(axis=0) + counts.sum(axis=1) - 2 * np.diag(counts)
        kept = kept[np.sort(np.argsort(-errors[kept], kind="stable")[:CLASSES])]
        note += f" The {CLASSES} classes with the most errors are shown."
    return {
        "kind": "matrix",
        "id": "confusion",
        "title": f"Classes true and decided, {of}",
        "note": note,
        "labels": [label(c) for c in classes[kept]],
        "counts": counts[np.ix_(kept, kept)].tolist(),
    }
