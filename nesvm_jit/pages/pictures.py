"""What is drawn of a training run: a document of plain numbers.

A document has a title, facts, the certificate in words and sections of charts; a chart is a dict
whose `kind` (lines, histogram, bars, matrix, plane, table) says what else is in it. Of several
sub-problems the largest is drawn; the gaps of all are curves, and a table has the others.
"""

from typing import Any

import numpy as np

from ..errors import InputError
from ..machine.machine import Machine
from ..matrix.checks import as_matrix
from ..matrix.matrix import shape
from ..matrix.rows import take_rows
from . import words
from .numbers import histogram, label, plain, plain_list, share, spread, text, thinned
from .plane import plane

CURVE = 1000  # points of a curve, at most
CURVES = 3000  # points of all gap curves together, at most
PROBLEMS = 60  # sub-problems whose gaps are drawn, at most
LISTED = 200  # sub-problems in the table, at most
CELLS = 1 << 26  # kernel values, or scores, that are computed for the confusion matrix, at most
TOP = 30  # weights that are drawn, at most
CLASSES = 40  # classes of a confusion matrix, at most
# A row pays its full cost if its u = α/c is at least FULL of the largest u: dual points are made
# feasible by a factor, so u may end a little below 1. If no u is above NEAR, that is FULL of 1.
FULL = 0.999
NEAR = 0.9
SMALLEST_GAP = 1e-17  # drawn for a gap of zero, which a logarithmic axis has no place for
AXES = (("seconds", "seconds"), ("passes", "passes over the data"), ("round", "rounds"))


def training_document(
    machine: Machine, X: Any, y: Any, facts: dict[str, Any], title: str
) -> dict[str, Any]:
    """The picture of a machine that was trained on X, y with `keep_solutions`; `facts` are those
    of `machine.facts.training`."""
    if machine.solutions is None:
        raise InputError("a picture needs a machine trained with keep_solutions=True")
    y = np.asarray(y, dtype=np.float64)
    order = _largest_first(machine)
    confusion, right = _confusion(machine, X, y)
    fitted = [_dual_weights(machine, order), _decision_values(machine, y, order)]
    if machine.record.weights is not None:
        fitted.append(_weights(machine, order))
    if machine.n_features == 2 and machine.record.kernel != "precomputed":
        fitted = [plane(machine, X, y), confusion, *fitted]
    else:
        fitted.append(confusion)
    if len(order) > 1:
        fitted.append(_problems(machine, order))
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


def problem_names(machine: Machine) -> list[str]:
    """What every sub-problem tells apart."""
    return [
        f"{label(p['classes'][0])} against "
        + (label(p["classes"][1]) if len(p["classes"]) == 2 else "the rest")
        for p in machine.problems
    ]


def _largest_first(machine: Machine) -> list[int]:
    """The sub-problems by rows, then by seconds: the first is shown in detail."""
    solved = machine.solutions or []
    return sorted(
        range(len(solved)), key=lambda k: (-len(solved[k].solution.alpha), -solved[k].seconds)
    )


def _of_largest(machine: Machine, order: list[int]) -> str:
    """The end of the title of a chart that shows the largest of several sub-problems."""
    return f", class {problem_names(machine)[order[0]]}" if len(order) > 1 else ""


# ---------------------------------------------------------------- convergence


def _convergence(machine: Machine, order: list[int]) -> list[dict[str, Any]]:
    """Objective and bound of the largest sub-problem; the gaps of all, against time and work."""
    gaps = _gaps(machine, order)
    charts = [_objective(machine, order), gaps]
    if len(gaps["axes"]) > 1:
        first, second, *others = gaps["axes"]
        title = f"{gaps['title']}, by {'passes' if second['key'] == 'passes' else 'rounds'}"
        again = {"id": "gap-again", "title": title, "note": "", "table": False}
        charts.append({**gaps, **again, "axes": [second, *others, first]})
    return charts


def _objective(machine: Machine, order: list[int]) -> dict[str, Any]:
    assert machine.solutions is not None
    history = machine.solutions[order[0]].solution.history
    kept = thinned(len(history["round"]), CURVE)
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
        "title": f"Objective and bound{_of_largest(machine, order)}",
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
        kept = thinned(len(history["round"]), each)
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
    """What a curve is drawn against, and μ where there is smoothing."""
    columns = {key: plain_list(history[key][kept], 5) for key, _ in AXES}
    mu = history["mu"][kept]
    if machine.record.model != "lssvm" and np.isfinite(mu).any() and (mu > 0).any():
        columns["mu"] = plain_list(mu, 4)
    return columns


def _axes(columns: dict[str, list[int | float | None]]) -> list[dict[str, Any]]:
    """Seconds, and what else moves; a chart is drawn against the first."""
    return [
        {"key": key, "label": name, "log": False}
        for key, name in AXES
        if len({v for v in columns[key] if v is not None}) > 1 or key == "seconds"
    ]


def _problems(machine: Machine, order: list[int]) -> dict[str, Any]:
    """The certificates of all sub-problems."""
    assert machine.solutions is not None
    names, rows = problem_names(machine), []
    for k in order[:LISTED]:
        problem, solved = machine.problems[k], machine.solutions[k]
        counts = len(solved.solution.alpha), problem["iterations"], problem["n_support"]
        bounds = [text(problem[key], 8) for key in ("objective", "dual_objective")]
        rows.append([names[k], *map(text, counts), *bounds, text(problem["gap"], 3)])
    note = f"The {LISTED} largest of {text(len(order))} are listed." if len(order) > LISTED else ""
    return {
        "kind": "table",
        "id": "problems",
        "title": "Sub-problems",
        "note": note,
        "head": [
            *("class", "rows", "rounds", "support vectors", "objective", "lower bound", "gap"),
        ],
        "rows": rows,
    }


# ---------------------------------------------------------------- what was found


def _dual_weights(machine: Machine, order: list[int]) -> dict[str, Any]:
    """u = α/c: 0 for rows well classified, 1 for rows that pay the full cost, between on the
    margin. The square loss knows no ends."""
    assert machine.solutions is not None
    square = machine.record.model == "lssvm"
    solved = machine.solutions[order[0]]
    used = solved.costs > 0.0
    u = solved.solution.alpha[used] / solved.costs[used]
    bins = histogram([u]) if square else _in_unit_interval(u)
    (heights,) = bins.pop("counts")
    note = "Twice what a row lacks to its aim, ±1; negative where it is beyond."
    return {
        "kind": "histogram",
        "id": "u",
        "title": f"Dual weights u = α/c{_of_largest(machine, order)}",
        "note": note if square else _ends(u),
        "x": {"label": "u = α/c"},
        "y": {
            "label": "rows",
            "log": max(heights) > 50 * min((h for h in heights if h), default=1),
        },
        **bins,
        "series": [{"name": "rows", "counts": heights}],
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


def _decision_values(machine: Machine, y: np.ndarray, order: list[int]) -> dict[str, Any]:
    assert machine.solutions is not None
    solved, sides = machine.solutions[order[0]], machine.problems[order[0]]["classes"]
    rows = slice(None) if solved.problem.rows is None else solved.problem.rows
    first = y[rows] == machine.classes[solved.problem.i]
    margins = solved.solution.margins
    bins = histogram([margins[first], margins[~first]])
    names = f"class {label(sides[0])}", f"class {label(sides[1])}" if sides[1:] else "the rest"
    square = machine.record.model == "lssvm"
    margin = "±1 is the aim" if square else "between −1 and 1 is the margin"
    return {
        "kind": "histogram",
        "id": "decision",
        "title": f"Decision values by class{_of_largest(machine, order)}",
        "note": f"A value above 0 is decided for the first class; {margin}.",
        "x": {"label": "decision value"},
        "y": {"label": "rows", "log": False},
        "rules": [-1, 0, 1],
        "series": [
            {"name": name, "counts": counts}
            for name, counts in zip(names, bins.pop("counts"), strict=True)
        ],
        **bins,
    }


def _weights(machine: Machine, order: list[int]) -> dict[str, Any]:
    """The largest weights of a linear machine."""
    assert machine.record.weights is not None
    w = machine.record.weights[:, order[0]]
    top = np.argsort(-np.abs(w), kind="stable")[:TOP]
    top = top[w[top] != 0.0]
    return {
        "kind": "bars",
        "id": "weights",
        "title": f"Largest weights{_of_largest(machine, order)}",
        "note": f"The {len(top)} largest of {text(int(np.count_nonzero(w)))} weights that are not "
        f"zero, of {text(len(w))} features. Positive speaks for the first class.",
        "x": {"label": "weight"},
        "labels": [f"feature {j + 1}" for j in top],
        "values": plain_list(w[top], 5),
    }


def _confusion(machine: Machine, X: Any, y: np.ndarray) -> tuple[dict[str, Any], str]:
    """The confusion matrix of the training rows, or of some where all would take long, and the
    share of them that is right."""
    rows, chosen = _decided(machine, X, len(y))
    of = "training rows" if len(rows) == len(y) else f"{text(len(rows))} training rows"
    truth, predicted = y[rows], machine.classes[chosen]
    chart = confusion_chart(machine.classes, truth, predicted, of)
    return chart, share(int(np.count_nonzero(truth == predicted)), len(rows))


def _decided(machine: Machine, X: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers, and the class that the machine chooses for each."""
    assert machine.solutions is not None
    margins = [s.solution.margins for s in machine.solutions if s.problem.rows is None]
    if len(margins) == len(machine.solutions):
        return np.arange(n), machine.chosen(np.stack(margins, axis=1))
    vectors = 0 if machine.record.coefs is None else len(machine.record.coefs)
    X = as_matrix(X)
    rows = spread(shape(X)[0], max(1000, CELLS // max(vectors, len(machine.solutions))))
    return rows, machine.chosen(machine.scores(take_rows(X, rows)))


def confusion_chart(classes: Any, truth: Any, predicted: Any, of: str) -> dict[str, Any]:
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
