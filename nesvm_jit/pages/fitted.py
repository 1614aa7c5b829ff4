"""Charts of a trained machine: dual weights, decision values, weights and confused classes."""

from typing import Any

import numpy as np

from ..machine.machine import Machine
from ..matrix.checks import as_matrix
from ..matrix.rows import take_rows
from .numbers import histogram, label, plain_list, share, spread, text
from .subproblems import of_largest

CELLS = 1 << 26  # kernel values or scores that are computed for a confusion matrix, at most
TOP = 30  # weights that are drawn, at most
CLASSES = 40  # classes of a confusion matrix, at most
# A row counts as paying its full cost if its u = α/c is at least FULL times the largest u: dual
# points are scaled to be feasible, so that u may end a little below 1. If the largest u is not
# above NEAR, it must be at least FULL itself.
FULL = 0.999
NEAR = 0.9


def dual_weights(machine: Machine, order: list[int]) -> dict[str, Any]:
    """Return the histogram of u = α/c: 0 for well classified rows, 1 for rows that pay the full
    cost, in between for rows on the margin. With the square loss, u has no such limits."""
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
        "title": f"Dual weights u = α/c{of_largest(machine, order)}",
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
    """Return a histogram with twenty bins of ]0, 1[ and a bin for each end."""
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
    """Return a mask of the rows at the upper end."""
    most = float(u.max(initial=0.0))
    return u >= FULL * (most if most > NEAR else 1.0)


def _ends(u: np.ndarray) -> str:
    zero, one = np.count_nonzero(u == 0.0), np.count_nonzero(_full(u))
    return (
        f"{text(int(zero))} rows at 0, beyond the margin, change nothing; "
        f"{text(int(len(u) - zero - one))} inside, on the margin; "
        f"{text(int(one))} at 1, within it or on the wrong side."
    )


def decision_values(machine: Machine, y: np.ndarray, order: list[int]) -> dict[str, Any]:
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
        "title": f"Decision values by class{of_largest(machine, order)}",
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


def weights(machine: Machine, order: list[int]) -> dict[str, Any]:
    """Return the chart of the largest weights of a linear machine."""
    assert machine.record.weights is not None
    w = machine.record.weights[:, order[0]]
    top = np.argsort(-np.abs(w), kind="stable")[:TOP]
    top = top[w[top] != 0.0]
    return {
        "kind": "bars",
        "id": "weights",
        "title": f"Largest weights{of_largest(machine, order)}",
        "note": f"The {len(top)} largest of {text(int(np.count_nonzero(w)))} weights that are not "
        f"zero, of {text(len(w))} features. Positive speaks for the first class.",
        "x": {"label": "weight"},
        "labels": [f"feature {j + 1}" for j in top],
        "values": plain_list(w[top], 5),
    }


def confusion(machine: Machine, X: Any, y: np.ndarray) -> tuple[dict[str, Any], str]:
    """Return the confusion matrix of the training rows, and the share of them that is right.

    Where all rows would take too long, some are taken.
    """
    rows, chosen = _decide(machine, X, len(y))
    of = "training rows" if len(rows) == len(y) else f"{text(len(rows))} training rows"
    truth, predicted = y[rows], machine.classes[chosen]
    chart = confusion_chart(machine.classes, truth, predicted, of)
    return chart, share(int(np.count_nonzero(truth == predicted)), len(rows))


def _decide(machine: Machine, X: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return row numbers, and the class that the machine chooses for each."""
    assert machine.solutions is not None
    margins = [s.solution.margins for s in machine.solutions if s.problem.rows is None]
    if len(margins) == len(machine.solutions):
        return np.arange(n), machine.chosen(np.stack(margins, axis=1))
    vectors = 0 if machine.record.coefs is None else len(machine.record.coefs)
    X = as_matrix(X)
    rows = spread(X.shape[0], max(1000, CELLS // max(vectors, len(machine.solutions))))
    return rows, machine.chosen(machine.scores(take_rows(X, rows)))


def confusion_chart(classes: Any, truth: Any, predicted: Any, of: str) -> dict[str, Any]:
    """Return the chart that counts rows by true and decided class; `of` describes the rows.

    Of more than CLASSES classes, those with the most errors are shown.
    """
    classes = np.append(classes, np.setdiff1d(truth, classes))
    place = {c: k for k, c in enumerate(classes.tolist())}
    true, decided = ([place[c] for c in np.asarray(v, float).tolist()] for v in (truth, predicted))
    counts = np.zeros((len(classes), len(classes)), dtype=np.int64)
    np.add.at(counts, (true, decided), 1)
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
