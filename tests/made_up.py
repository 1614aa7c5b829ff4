"""Machines and their runs made up by hand, as `train(..., keep_solutions=True)` leaves them."""

from types import SimpleNamespace

import numpy as np
from nesvm_jit.files.model.record import ModelRecord
from nesvm_jit.machine.machine import Machine
from nesvm_jit.solvers.run import COLUMNS

SECONDS = {"read": 0.5, "solve": 2.0, "write": 0.25, "total": 2.75}


def problem(classes=(1, -1), **changes):
    """A certificate as model files have it."""
    return {
        "classes": list(classes),
        "objective": 4.0,
        "dual_objective": 3.0,
        "gap": 0.25,
        "certified": False,
        "iterations": 7,
        "solver": "newton",
        "why": "few features",
        "status": "converged",
        "n_support": 3,
        **changes,
    }


def history(n=3, **columns):
    """n rounds; columns that are not given are 1, 2, 3 … and μ is none."""
    usual = dict.fromkeys(COLUMNS, np.arange(1.0, n + 1)) | {"mu": np.full(n, np.nan)}
    given = {name: np.array(values, dtype=float) for name, values in columns.items()}
    return {**usual, "smoothed": np.full(n, np.nan), **given}


def found(alpha, margins=None, costs=None, rows=None, i=0, j=1, took=1.0, **columns):
    """A solved sub-problem."""
    alpha = np.array(alpha, dtype=float)
    margins = np.zeros(len(alpha)) if margins is None else np.array(margins, dtype=float)
    costs = np.ones(len(alpha)) if costs is None else np.array(costs, dtype=float)
    n = len(next(iter(columns.values()))) if columns else 3
    solution = SimpleNamespace(alpha=alpha, margins=margins, history=history(n, **columns))
    rows = None if rows is None else np.array(rows)
    asked = SimpleNamespace(i=i, j=j, rows=rows)
    return SimpleNamespace(problem=asked, solution=solution, costs=costs, seconds=took)


def machine(weights, solutions, problems=None, classes=(1.0, -1.0), bias=None, extra=(), **record):
    """A linear machine with a column of weights per sub-problem."""
    weights = np.array(weights, dtype=float)
    p, k = weights.shape
    problems = [problem()] if problems is None else problems
    facts = {"program": "nesvm-jit 9", "tol": 1e-3, "bias": True, "C": 2.0, "n_samples": 4}
    facts |= {"n_support": 3, "problems": problems, **dict(extra)}
    made = Machine(
        ModelRecord(
            np.array(classes, dtype=float),
            p,
            np.zeros(k) if bias is None else np.array(bias, dtype=float),
            weights=weights,
            extra=facts,
            **record,
        )
    )
    made.solutions = solutions
    return made
