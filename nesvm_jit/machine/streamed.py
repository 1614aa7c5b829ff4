"""Training on a matrix that stays on disk: linear machines, and Nyström's."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..binary.costs import costs
from ..binary.linear import require_memory, solve_problem
from ..binary.nystroem import Landmarks, landmarks_on_disk
from ..binary.solution import Solution
from ..binary.start import Start
from ..checkpoint.checkpoint import Checkpoint, Slot
from ..checkpoint.fingerprint import checksums, opened
from ..errors import InputError
from ..files.ondisk.matrix import OnDisk
from ..jit import one_blas_thread
from ..models import MODELS
from ..problems.blocks import Blocks
from ..problems.linear import LinearProblem
from ..problems.shard import Shard
from ..problems.streamed import ClassCosts, Mapped, Signs, Streamed
from ..settings import Settings, one_of
from .assembled import linear_machine, machine_of_landmarks
from .finished import solve_or_recall
from .machine import Machine
from .multiclass import class_order


def train_streamed(
    matrix: OnDisk, settings: Settings, multiclass: str | None, cost_of: Any
) -> Machine:
    """One class against the rest; a pass reads the matrix once."""
    if settings.kernel != "linear" and settings.approx is None:
        raise InputError(f"a {settings.kernel} kernel needs all rows in memory, or approx nystroem")
    if multiclass == "ovo":
        raise InputError("rows on disk are trained one class against the rest (ovr), got ovo")
    require_memory(matrix.n_cols)
    order, which = _classes(matrix)
    if len(order) < 2:
        raise InputError(f"{matrix.name}: labels must be of at least 2 classes, got {order[0]:g}")
    per_class = cost_of(order, np.bincount(which, minlength=len(order)))
    data_of = partial(_data_of, matrix, per_class)
    with opened(settings, data_of) as checkpoint, one_blas_thread():
        if settings.approx is None:
            found = _solved(Streamed(matrix), order, which, per_class, settings, checkpoint)
            return linear_machine(settings, order, matrix.n_cols, found)
        marks = landmarks_on_disk(matrix, settings)
        data = Mapped(matrix, partial(features, marks), marks.rank, marks.dtype)
        plain = replace(settings, kernel="linear", approx=None, landmarks=None)
        found = _solved(data, order, which, per_class, plain, checkpoint)
        labels = order[which[marks.numbers]]
        return machine_of_landmarks(settings, order, marks, labels, found)


def class_costs(
    C: float, class_weight: Mapping[float, float] | str | None, order: np.ndarray, sizes: np.ndarray
) -> np.ndarray:
    """The cost of a row of each class."""
    n = int(sizes.sum())
    if isinstance(class_weight, str):
        one_of("class_weight", class_weight, ("balanced",))
        return C * n / (len(order) * sizes)
    return costs(C, order, order, None, class_weight)


def features(marks: Landmarks, X: Any) -> np.ndarray:
    """φ of some rows."""
    return marks.features(X)


def _classes(matrix: OnDisk) -> tuple[np.ndarray, np.ndarray]:
    """The classes in LIBSVM's order, and the number of the class of every row."""
    labels = matrix.read_labels(0, matrix.n_rows)
    order = class_order(labels)
    by_size = np.argsort(order)
    which = by_size[np.searchsorted(order[by_size], labels)]
    return order, which.astype(np.min_scalar_type(len(order)))


def _data_of(matrix: OnDisk, per_class: np.ndarray) -> list:
    """Checksums of all rows, which are in the header, and of the costs."""
    header = np.frombuffer(matrix.digest(), dtype=np.uint8)
    return checksums(header, per_class)


def _solved(
    data: Blocks,
    order: np.ndarray,
    which: np.ndarray,
    costs: np.ndarray,
    settings: Settings,
    checkpoint: Checkpoint | None,
) -> list[Solution]:
    """The machine of every class against the rest, one after the other."""
    problems = 1 if len(order) == 2 else len(order)
    relay = Relay(settings, problems)

    def solve(k: int, slot: Slot | None) -> Solution:
        y: Any = Signs(which == k)
        c: Any = ClassCosts(which, costs)
        shard = Shard(data, y, c, MODELS[settings.model](), settings.bias)
        return solve_problem(LinearProblem(shard), relay.settings(k), Start(slot=slot))

    return [solve_or_recall(checkpoint, k, partial(solve, k)) for k in range(problems)]


class Relay:
    """Problems one after the other: their callback is told which it is, and once it has asked to
    stop, those that follow end after a round with what they have."""

    def __init__(self, settings: Settings, of: int):
        self._settings, self._of, self._stopped = settings, of, False

    def settings(self, k: int) -> Settings:
        """Those of problem k."""
        callback = self._settings.callback
        if callback is None:
            return self._settings

        def told(row: dict) -> bool:
            asked = callback({**row, "problem": k, "problems": self._of})
            self._stopped = self._stopped or bool(asked)
            return self._stopped

        return replace(self._settings, callback=told)
