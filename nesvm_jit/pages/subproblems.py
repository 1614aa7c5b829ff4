"""The sub-problems of a machine on pages: their names, their order and the table of their
certificates."""

from typing import Any

from ..machine.machine import Machine
from .numbers import label, text

LISTED = 200  # sub-problems in the table, at most


def problem_names(machine: Machine) -> list[str]:
    """Return the names of the classes that each sub-problem separates."""
    return [
        f"{label(p['classes'][0])} against "
        + (label(p["classes"][1]) if len(p["classes"]) == 2 else "the rest")
        for p in machine.problems
    ]


def largest_first(machine: Machine) -> list[int]:
    """Sort the sub-problems by rows, then by seconds; the first one is shown in detail."""
    solved = machine.solutions or []
    return sorted(
        range(len(solved)), key=lambda k: (-len(solved[k].solution.alpha), -solved[k].seconds)
    )


def of_largest(machine: Machine, order: list[int]) -> str:
    """Return the end of the title of a chart that shows the largest of several sub-problems."""
    return f", class {problem_names(machine)[order[0]]}" if len(order) > 1 else ""


def problems(machine: Machine, order: list[int]) -> dict[str, Any]:
    """Return the table of the certificates of all sub-problems."""
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
