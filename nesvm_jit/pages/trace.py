"""Write the rounds of a run as CSV, for other programs."""

from typing import Any

from ..errors import InputError
from ..files.text import writing
from ..machine.machine import Machine
from ..solvers.run import COLUMNS


def write_trace(machine: Machine, path: Any) -> None:
    """Write a line for every round of every sub-problem, numbered from 0 as in `problems`."""
    if machine.solutions is None:
        raise InputError("a trace needs a machine trained with keep_solutions=True")
    with writing(path) as f:
        f.write(",".join(("problem", *COLUMNS)).encode() + b"\n")
        for number, solved in enumerate(machine.solutions):
            columns = (solved.solution.history[name].tolist() for name in COLUMNS)
            for row in zip(*columns, strict=True):
                f.write(",".join((str(number), *map(repr, row))).encode() + b"\n")
