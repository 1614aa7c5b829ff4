"""`solve` and `train` on rows that stay on the workers of a cluster.

The solvers are those of one process; only the shard of their problem is another object. Each
iteration sends w to the workers and adds up their answers: the loss, the gradient and, for
Newton's steps, the Hessian.
"""

import contextlib
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from ..binary.costs import class_costs
from ..binary.linear import solve_problem
from ..binary.solution import Solution
from ..binary.start import Start
from ..checkpoint.checkpoint import Slot, open_checkpoint
from ..endings import Outcome, outcomes_of, warn_uncertified
from ..errors import InputError
from ..jit import one_blas_thread
from ..machine.assembled import linear_machine, note_weights
from ..machine.estimate import estimate, require_memory_for
from ..machine.machine import Machine
from ..machine.multiclass import class_order, n_problems
from ..machine.session import Session
from ..models import MODELS
from ..settings import Settings
from .cluster import connected
from .holder import ClassProblem
from .rows import RowsOnWorkers, describe_labels

ClassWeight = Mapping[float, float] | str | None


def solve(
    data: Any,
    y: Any = None,
    model: str = "csvm",
    C: float = 1.0,
    bias: bool = True,
    solver: str = "auto",
    tol: float = 1e-3,
    *,
    client: Any = "local",
    class_weight: ClassWeight = None,
    n_features: int | None = None,
    dtype: Any = np.float64,
    **settings: Any,
) -> Solution:
    """Do as `nesvm_jit.solve` for labels −1 and +1, on rows of a cluster.

    `data` is the name of a LIBSVM file or of an on-disk matrix that all workers can read, a list
    of such names, or a dask array of rows with the labels `y`. `client` is a dask client, the
    address of a scheduler, or "local".
    """
    checked = Settings(model, "linear", C, bias, solver, tol, **settings)
    with _load(client, data, y, n_features, dtype) as rows:
        if sorted(rows.labels) != [-1.0, 1.0]:
            raise InputError(f"labels must be -1 and +1, got {describe_labels(rows.labels)}")
        costs = _costs(C, rows, class_weight)
        with open_checkpoint(checked, partial(rows.checksums, costs)) as checkpoint:
            slot = None if checkpoint is None else checkpoint.slot(0)
            solution = _solve_class(rows, 1.0, costs, checked, slot)
    warn_uncertified([Outcome(solution.status, solution.gap)], tol)
    return solution


def train(
    data: Any,
    y: Any = None,
    model: str = "csvm",
    C: float = 1.0,
    bias: bool = True,
    solver: str = "auto",
    tol: float = 1e-3,
    *,
    client: Any = "local",
    class_weight: ClassWeight = None,
    n_features: int | None = None,
    dtype: Any = np.float64,
    **settings: Any,
) -> Machine:
    """Do as `nesvm_jit.train` for linear machines, one class against the rest, on rows of a
    cluster."""
    checked = Settings(model, "linear", C, bias, solver, tol, **settings)
    session = Session(checked)
    with _load(client, data, y, n_features, dtype) as rows:
        classes = class_order(np.array(list(rows.labels)))
        if len(classes) < 2:
            got = describe_labels(rows.labels)
            raise InputError(f"labels must be of at least 2 classes, got {got}")
        size, k = rows.data.size, len(classes)
        require_memory_for(estimate(size.rows, size.cols, size.cells, k, "ovr", True), k)
        costs = _costs(C, rows, class_weight)

        def solve_one(k: int, settings: Settings, slot: Slot | None) -> Solution:
            return _solve_class(rows, float(classes[k]), costs, settings, slot)

        with session.saved(checked, partial(rows.checksums, costs)):
            count = n_problems(len(classes), "ovr")
            solutions = session.solve_in_sequence(checked, count, solve_one)
        machine = linear_machine(checked, classes, rows.data.size.cols, solutions)
        note_weights(machine, class_weight, *_sizes(rows))
    warn_uncertified(outcomes_of(machine.problems), tol)
    return machine


@contextlib.contextmanager
def _load(
    client: Any, data: Any, y: Any, n_features: int | None, dtype: Any
) -> Iterator[RowsOnWorkers]:
    """Let the workers of a client load the rows, yield them, and release them at the end."""
    with (
        connected(client) as dask_client,
        one_blas_thread(),
        contextlib.closing(RowsOnWorkers(dask_client, data, y, n_features, dtype)) as rows,
    ):
        yield rows


def _sizes(rows: RowsOnWorkers) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels, and the number of rows with each."""
    return np.array(list(rows.labels)), np.array(list(rows.labels.values()))


def _costs(C: float, rows: RowsOnWorkers, class_weight: ClassWeight) -> dict[float, float]:
    """Return the cost of a row by class."""
    labels, counts = _sizes(rows)
    return dict(zip(rows.labels, class_costs(C, class_weight, labels, counts), strict=True))


def _solve_class(
    rows: RowsOnWorkers,
    positive: float,
    costs: Mapping[float, float],
    settings: Settings,
    slot: Slot | None,
) -> Solution:
    """Solve the sub-problem of one class against the others."""
    problem = rows.pose(ClassProblem(positive, costs, MODELS[settings.model](), settings.bias))
    shard: Any = problem.shard
    with contextlib.closing(shard):
        return solve_problem(problem, settings, Start(slot=slot))
