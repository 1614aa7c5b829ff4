"""A `Shard` whose rows are in shards on the workers of a cluster."""

import contextlib
import itertools
import os
import uuid
import weakref
from collections.abc import Callable
from functools import partial, reduce
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from ..errors import NesvmError
from ..matrix.rows import Size
from ..problems.sums import Facts
from .calls import METHODS, Call, Ref, Result, add, gather, replace_vectors, scatter
from .cluster import POLL, Cluster, LostShardError
from .holder import ClassProblem, Plan
from .loading import Source
from .log import Log
from .server import Endpoint, Join, Reply, connect
from .worker import serve

MOST_LOSSES = 20  # of shards in one run: beyond it the workers are taken to lack memory


class Vector:
    """A vector with an entry for each row, which stays where the rows are."""

    def __init__(self, number: int, unused: list[int]):
        self.ref = Ref(number)
        weakref.finalize(self, unused.append, number)


class RemoteData:
    """What is known of rows that are elsewhere."""

    resident = False

    def __init__(self, size: Size, dtype: np.dtype):
        self.size, self.dtype = size, dtype


class RemoteShard:
    """Has the methods of `Shard` that are in METHODS: each goes to all shards. A shard that is
    lost is built again on another worker, where it repeats the calls of the log."""

    def __init__(
        self,
        cluster: Cluster,
        rows: list[tuple[str, Source]],
        data: RemoteData,
        problem: ClassProblem,
    ):
        self.data, self.model, self.bias = data, problem.model, problem.bias
        self.n_features = data.size.cols
        self._cluster = cluster
        stem = uuid.uuid4().hex[:12]
        self._plans = {
            f"{stem}-{k}": Plan(k, name, source, self.n_features, problem)
            for k, (name, source) in enumerate(rows)
        }
        self._secret = os.urandom(32)
        self.log = Log()
        self._unused: list[int] = []  # vectors that workers have not been told to drop
        self._numbers = itertools.count()
        self._losses = 0
        self._endpoints: dict[str, Endpoint] = {}
        self._root: Connection | None = None
        for name, plan in self._plans.items():
            cluster.assign_with(name, plan.rows)
        facts: dict[str, Facts] = {}
        self._open([*self._plans], facts)
        in_order = [facts[name] for name in self._plans]
        self.facts: Facts = reduce(add, in_order)
        self._ends = np.cumsum([f.rows for f in in_order]).tolist()

    def __getattr__(self, method: str) -> Callable[..., Any]:
        if method not in METHODS:
            raise AttributeError(f"RemoteShard has no {method}")
        return partial(self._ask, method)

    def _ask(self, name: str, *args: Any, by: Callable[[Any, Any], Any] | None = None) -> Any:
        """What a method of all shards finds together."""
        method, number = METHODS[name], next(self._numbers)
        if method.scattered:
            args = (dict(enumerate(scatter(args[0], self._ends))),)
        refs = replace_vectors(args, Vector, lambda vector: vector.ref)
        dropped = tuple(self._unused)
        del self._unused[: len(dropped)]
        call = Call(number, name, refs, by, dropped)
        found = self._answer(call)
        self.log.add(call)
        if method.result is Result.VECTOR:
            return Vector(number, self._unused)
        if method.result is Result.GATHERED:
            return gather([found[k] for k in sorted(found)])
        return found

    def _answer(self, call: Call) -> Any:
        """The answer of the tree, asked again as often as shards are lost."""
        while True:
            reply = self._exchange(call)
            if not reply.lost:
                return reply.found
            self._count_losses(reply.lost)
            self._open([*reply.lost], {})

    def _exchange(self, message: Join | Call) -> Reply:
        """The reply of the tree; an error in it is raised."""
        assert self._root is not None
        try:
            self._root.send(message)
            while not self._root.poll(POLL):
                self._cluster.require_alive([*self._plans])
            reply: Reply = self._root.recv()
        except LostShardError as e:
            return Reply(lost=e.names)
        except (OSError, EOFError):
            return Reply(lost=self._hung_up())
        if reply.error is not None and not reply.lost:
            raise reply.error
        return reply

    def _hung_up(self) -> tuple[str, ...]:
        """Shards whose worker is gone, or the first, which has just hung up."""
        try:
            self._cluster.require_alive([*self._plans])
        except LostShardError as e:
            return e.names
        return (next(iter(self._plans)),)

    # ------------------------------------------------------------ shards come and go

    def _open(self, names: list[str], facts: dict[str, Facts]) -> None:
        """Open these shards, whose facts are put into a dict, then connect all of them; again
        until it succeeds."""
        while names:
            lost: list[str] = []
            for name, future in {name: self._serve(name) for name in names}.items():
                try:
                    self._endpoints[name], facts[name] = self._cluster.result(future, name)
                except LostShardError:
                    lost.append(name)
            names = lost or [*self._connect().lost]
            self._count_losses(names)

    def _serve(self, name: str) -> Any:
        self._cluster.assign(name)
        plan, log = self._plans[name], self.log.calls()
        return self._cluster.run(name, serve, plan, log, self._secret)

    def _connect(self) -> Reply:
        """Build the tree."""
        if self._root is not None:
            self._root.close()
        endpoints = tuple(self._endpoints[name] for name in self._plans)
        try:
            self._root = connect(endpoints[0], self._secret)
        except (OSError, EOFError):
            return Reply(lost=(endpoints[0].name,))
        return self._exchange(Join(endpoints, 0, self._secret))

    def _count_losses(self, lost: list[str] | tuple[str, ...]) -> None:
        self._losses += len(lost)
        if self._losses > MOST_LOSSES:
            raise NesvmError(
                f"{self._cluster.address}: workers were lost {MOST_LOSSES} times; "
                "they may lack memory"
            )

    def close(self) -> None:
        """Let the workers forget it."""
        if self._root is not None:
            with contextlib.suppress(OSError):
                self._root.close()
        self._cluster.release([*self._plans])
