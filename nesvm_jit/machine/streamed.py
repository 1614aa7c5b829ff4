"""Train on a matrix that stays on disk: linear machines, and those of Nyström's landmarks."""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..binary.costs import class_costs
from ..binary.linear import require_memory, solve_problem
from ..binary.nystroem import landmarks_on_disk
from ..binary.solution import Solution
from ..binary.start import Start
from ..checkpoint.checkpoint import Slot
from ..checkpoint.fingerprint import data_fingerprint
from ..errors import InputError
from ..files.ondisk.matrix import OnDisk
from ..jit import one_blas_thread
from ..models import MODELS
from ..problems.blocks import Blocks
from ..problems.linear import LinearProblem
from ..problems.shard import Shard
from ..problems.streamed import ClassCosts, Mapped, Signs, Streamed
from ..settings import Settings
from .assembled import approximate_machine_ovr, linear_machine, note_weights
from .estimate import estimate, require_memory_for
from .machine import Machine
from .multiclass import class_order, n_problems
from .session import Session


class Classes(NamedTuple):
    """The labels of the classes in LIBSVM's order, the number of the class of every row, and for
    each class the cost of a row and the number of rows."""

    labels: np.ndarray
    row_classes: np.ndarray
    costs: np.ndarray
    sizes: np.ndarray


def train_streamed(
    matrix: OnDisk,
    settings: Settings,
    session: Session,
    multiclass: str | None,
    class_weight: Mapping[float, float] | str | None,
) -> Machine:
    """Train one class against the rest; every pass reads the matrix once."""
    if settings.kernel != "linear" and settings.approx is None:
        raise InputError(f"a {settings.kernel} kernel needs all rows in memory, or approx nystroem")
    if multiclass == "ovo":
        raise InputError("rows on disk are trained one class against the rest (ovr), got ovo")
    require_memory(matrix.n_cols)
    classes = read_classes(matrix, settings.C, class_weight)
    n, k = matrix.n_rows, len(classes.labels)
    require_memory_for(estimate(n, matrix.n_cols, matrix.n_cells, k, "ovr", True), k)
    data = partial(data_fingerprint, matrix, classes.costs)
    with session.saved(settings, data), one_blas_thread():
        machine = _train_classes(matrix, settings, session, classes)
    note_weights(machine, class_weight, classes.labels, classes.sizes)
    return machine


def _train_classes(
    matrix: OnDisk, settings: Settings, session: Session, classes: Classes
) -> Machine:
    if settings.approx is None:
        found = _solve_classes(Streamed(matrix), classes, settings, session)
        return linear_machine(settings, classes.labels, matrix.n_cols, found)
    marks = landmarks_on_disk(matrix, settings)
    features = Mapped(matrix, marks.features, marks.rank, marks.dtype)
    plain = settings.derive(kernel="linear", approx=None, landmarks=None)
    found = _solve_classes(features, classes, plain, session)
    labels = classes.labels[classes.row_classes[marks.numbers]]
    return approximate_machine_ovr(settings, classes.labels, marks, labels, found)


def read_classes(
    matrix: OnDisk, C: float, class_weight: Mapping[float, float] | str | None
) -> Classes:
    """Read the classes of the rows of a matrix, and compute their costs."""
    row_labels = matrix.read_labels(0, matrix.n_rows)
    labels = class_order(row_labels)
    if len(labels) < 2:
        raise InputError(f"{matrix.name}: labels must be of at least 2 classes, got {labels[0]:g}")
    by_value = np.argsort(labels)
    row_classes = by_value[np.searchsorted(labels[by_value], row_labels)]
    sizes = np.bincount(row_classes, minlength=len(labels))
    costs = class_costs(C, class_weight, labels, sizes)
    return Classes(labels, row_classes.astype(np.min_scalar_type(len(labels))), costs, sizes)


def _solve_classes(
    data: Blocks, classes: Classes, settings: Settings, session: Session
) -> list[Solution]:
    """Solve the problem of every class against the rest, one after the other."""

    def solve_one(k: int, settings: Settings, slot: Slot | None) -> Solution:
        y: Any = Signs(classes.row_classes == k)
        c: Any = ClassCosts(classes.row_classes, classes.costs)
        shard = Shard(data, y, c, MODELS[settings.model](), settings.bias)
        return solve_problem(LinearProblem(shard), settings, Start(slot=slot))

    count = n_problems(len(classes.labels), "ovr")
    return session.solve_in_sequence(settings, count, solve_one)
