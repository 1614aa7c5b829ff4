"""A shard on a worker, and its vectors: it answers calls."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..jit import one_blas_thread
from ..models.base import Model
from ..problems.shard import Shard
from .calls import METHODS, Call, Ref, Result, replace_vectors
from .loading import Loaded, Source, Stacked


class ClassProblem(NamedTuple):
    """A sub-problem of one class against the others: the label of the class, the cost of a row by
    label, the model, and True if there is a bias."""

    positive: float
    costs: Mapping[float, float]
    model: Model
    bias: bool


class Plan(NamedTuple):
    """All that a worker needs to open a shard."""

    number: int  # the rows of shard k come before those of shard k + 1
    rows: str  # the name of the rows
    source: Source
    width: int  # the number of features of all shards
    problem: ClassProblem


def pose(rows: Loaded, width: int, problem: ClassProblem) -> Shard:
    """Make the shard of these rows, in its state before the first call."""
    y = np.where(rows.labels == problem.positive, 1.0, -1.0)
    c = np.zeros(len(rows.labels))
    for label, cost in problem.costs.items():
        c[rows.labels == label] = cost
    with one_blas_thread():
        return Shard(Stacked(rows.matrices, width), y, c, problem.model, problem.bias)


class Holder:
    """A shard, the vectors that it keeps, and its last answer."""

    def __init__(self, number: int, shard: Shard):
        self.number, self.shard = number, shard
        self.vectors: dict[int, Any] = {}
        self._last_number, self._last_answer = -1, None

    def answer(self, call: Call) -> Any:
        """Return the answer to a call; a call that is repeated is not carried out again."""
        if call.number != self._last_number:
            self._last_answer = self._carry_out(call)
            self._last_number = call.number
        return self._last_answer

    def _carry_out(self, call: Call) -> Any:
        for number in call.dropped:
            self.vectors.pop(number, None)
        method = METHODS[call.method]
        args = replace_vectors(call.args, Ref, lambda ref: self.vectors[ref.number])
        if method.scattered:
            args = (args[0][self.number],)
        options = {} if call.by is None else {"by": call.by}
        with one_blas_thread():
            result = getattr(self.shard, call.method)(*args, **options)
        if method.result is Result.VECTOR:
            self.vectors[call.number] = result
            return None
        return {self.number: result} if method.result is Result.GATHERED else result
