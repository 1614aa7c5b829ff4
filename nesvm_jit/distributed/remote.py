"""A `Shard` whose rows are on the workers of a cluster."""

import contextlib
import itertools
import os
import uuid
import weakref
from typing import Any

import numpy as np

from ..errors import NesvmError
from ..matrix.rows import Size
from ..problems.shard import Shard
from ..problems.sums import Facts
from .cluster import POLL, Cluster, LostPartError
from .holder import Call, Recipe, Ref, Task, joined
from .log import Log
from .server import Home, Join, Question, connect
from .worker import serve

TRIES = 20  # of parts that are lost again and again


class Vector:
    """A vector with a number for each row, where the rows are."""

    def __init__(self, number: int, unused: list[int]):
        self.ref = Ref(number)
        weakref.finalize(self, unused.append, number)


def _refs(args: tuple) -> tuple:
    """Arguments with vectors by their number."""
    return tuple(
        a.ref if isinstance(a, Vector) else _refs(a) if type(a) is tuple else a for a in args
    )


class RemoteData:
    """What is known of rows that are elsewhere."""

    resident = False

    def __init__(self, size: Size, dtype: np.dtype):
        self.size, self.dtype = size, dtype


class RemoteShard:
    """Every method goes to all parts, whose answers are joined. A part that is lost is built again
    on another worker, which repeats what the part had been told."""

    def __init__(
        self, cluster: Cluster, rows: list[tuple[str, Recipe]], data: RemoteData, task: Task
    ):
        self.data, self.model, self.bias = data, task.model, task.bias
        self.n_features = data.size.cols
        self._cluster, self._task, self._rows = cluster, task, rows
        stem = uuid.uuid4().hex[:12]
        self._names = [f"{stem}-{k}" for k in range(len(rows))]
        self._secret = os.urandom(32)
        self._log, self._unused = Log(), []  # type: ignore[var-annotated]
        self._numbers = itertools.count()
        self._losses = 0
        self._homes: dict[str, Home] = {}
        self._found: dict[str, Facts] = {}
        self._root: Any = None
        for name, (source, _) in zip(self._names, rows, strict=True):
            cluster.live_with(name, source)
        self._repair(self._names)
        facts = [self._found[name] for name in self._names]
        self.facts = facts[0]
        for other in facts[1:]:
            self.facts = self.facts.joined(other)

    # ------------------------------------------------------------ parts come and go

    def _repair(self, names: list[str]) -> None:
        """Open these parts, then connect all of them; again until it succeeds."""
        while names:
            tasks = {name: self._serve(name) for name in names}
            names = []
            for name, future in tasks.items():
                try:
                    self._homes[name], self._found[name] = self._cluster.result(future, name)
                except LostPartError:
                    names.append(name)
            if not names:
                names = self._connect()
            self._count(names)

    def _serve(self, name: str) -> Any:
        number = self._names.index(name)
        rows, recipe = self._rows[number]
        self._cluster.find_home(name)
        log = self._log.calls()
        return self._cluster.run(
            name, serve, number, rows, recipe, self.n_features, self._task, log, self._secret
        )

    def _connect(self) -> list[str]:
        """Build the tree; returns the names of parts that are gone."""
        if self._root is not None:
            self._root.close()
        homes = tuple(self._homes[name] for name in self._names)
        try:
            self._root = connect(homes[0], self._secret)
            self._root.send(Join(homes, 0, self._secret))
            return list(self._heard().lost)
        except LostPartError as e:
            return list(e.names)
        except (OSError, EOFError):
            return [self._names[0]]

    def _count(self, lost: list[str]) -> None:
        self._losses += len(lost)
        if self._losses > TRIES:
            raise NesvmError(
                f"{self._cluster.address}: workers were lost {TRIES} times; they may lack memory"
            ) from None

    def _heard(self) -> Any:
        """The answer of the tree."""
        while not self._root.poll(POLL):
            self._cluster.require_alive(self._names)
        return self._root.recv()

    def _ask(self, method: str, *args: Any, kept: bool = False, by: Any = joined) -> Any:
        """The answers of all parts to a call, joined; or the vector that they keep."""
        number = next(self._numbers)
        unused = tuple(self._unused)
        del self._unused[: len(unused)]
        call = Call(number, method, _refs(args), number if kept else None, unused)
        found = self._answered(Question(call, by))
        self._log.add(call)
        return Vector(number, self._unused) if kept else found

    def _answered(self, question: Question) -> Any:
        while True:
            try:
                self._root.send(question)
                answer = self._heard()
                lost = list(answer.lost)
            except LostPartError as e:
                lost = list(e.names)
            except (OSError, EOFError):
                lost = self._gone()
            if not lost:
                if answer.error is not None:
                    raise answer.error
                return answer.found
            self._count(lost)
            self._repair(lost)

    def _gone(self) -> list[str]:
        """Parts whose worker is gone, or the one that has just hung up."""
        try:
            self._cluster.require_alive(self._names)
        except LostPartError as e:
            return list(e.names)
        return [self._names[0]]

    def close(self) -> None:
        """Let the workers forget it."""
        if self._root is not None:
            with contextlib.suppress(OSError):
                self._root.close()
        self._cluster.release(self._names)

    # ------------------------------------------------------------ the methods of Shard

    def map(self, function: Any, vectors: tuple, numbers: tuple = ()) -> Any:
        return self._ask("map", function, vectors, numbers, kept=True)

    def reduce(self, function: Any, vectors: tuple, numbers: tuple = (), by: Any = None) -> Any:
        return self._ask("reduce", function, vectors, numbers, by, by=by or joined)

    def collect(self, vector: Any) -> np.ndarray:
        found = self._ask("collect", vector)
        return np.concatenate([found[k] for k in sorted(found)])

    def deal(self, vector: np.ndarray) -> Any:
        return self._ask("deal", self._pieces(vector), kept=True)

    def state(self) -> dict[str, np.ndarray]:
        found = self._ask("state")
        parts = [found[k] for k in sorted(found)]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        pieces = {name: self._pieces(vector) for name, vector in state.items()}
        numbers = range(len(self._names))
        self._ask("restore", {k: {name: pieces[name][k] for name in pieces} for k in numbers})

    def _pieces(self, vector: np.ndarray) -> dict[int, np.ndarray]:
        """The entries of every part, by its number."""
        ends = np.cumsum([self._found[name].rows for name in self._names])
        return dict(enumerate(np.split(vector, ends[:-1])))


def _forward(method: str, kept: bool) -> Any:
    def ask(self: RemoteShard, *args: Any) -> Any:
        return self._ask(method, *args, kept=kept)

    ask.__name__, ask.__doc__ = method, getattr(Shard, method).__doc__
    return ask


# Methods of `Shard` whose answers are joined, and those whose answers are vectors that stay.
JOINED = (
    *("sweep", "spread", "place", "aim", "slope", "step", "centre_on", "dual_weights"),
    *("weight_of_curvature", "hessian", "hessian_times", "hessian_diagonal"),
)
KEPT = ("margins_at", "swept", "stepped")
for _name in (*JOINED, *KEPT):
    setattr(RemoteShard, _name, _forward(_name, _name in KEPT))
