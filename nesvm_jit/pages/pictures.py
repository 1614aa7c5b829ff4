"""Make the document of a training run, from which plots and pages are drawn.

A document consists of plain numbers and text: a title, facts, the certificate in words and
sections of charts. A chart is a dict; its other keys depend on its `kind` (lines, histogram,
bars, matrix, plane, table). If there are several sub-problems, the charts show the largest one,
except for the gaps, which have a curve for each, and a table of all.
"""

from typing import Any

import numpy as np

from ..errors import InputError
from ..machine.machine import Machine
from . import fitted, words
from .curves import convergence
from .plane import plane
from .subproblems import largest_first, problems


def training_document(
    machine: Machine, X: Any, y: Any, facts: dict[str, Any], title: str
) -> dict[str, Any]:
    """Return the document of a machine that was trained on X, y with `keep_solutions`; `facts` are
    those of `machine.facts.training`."""
    if machine.solutions is None:
        raise InputError("a picture needs a machine trained with keep_solutions=True")
    y = np.asarray(y, dtype=np.float64)
    order = largest_first(machine)
    confusion, right = fitted.confusion(machine, X, y)
    charts = [fitted.dual_weights(machine, order), fitted.decision_values(machine, y, order)]
    if machine.record.weights is not None:
        charts.append(fitted.weights(machine, order))
    if machine.n_features == 2 and machine.record.kernel != "precomputed":
        charts = [plane(machine, X, y), confusion, *charts]
    else:
        charts.append(confusion)
    if len(order) > 1:
        charts.append(problems(machine, order))
    return {
        "kind": "train",
        "title": title,
        "subtitle": words.subtitle(facts),
        "program": machine.record.extra["program"],
        "certificate": words.certificate(facts, machine.record.extra["tol"], len(order)),
        "tiles": words.training_tiles(facts, right),
        "facts": words.training_facts(machine, facts),
        "sections": [
            {"title": "How training went", "charts": convergence(machine, order)},
            {"title": "What was found", "charts": charts},
        ],
    }
