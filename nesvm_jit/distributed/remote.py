"""The driver's side of shards on the workers: an object with the methods of `Shard`."""

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

MOST_LOSSES = 20  # lost shards in one run; with more of them, it ends: the workers may lack memory


class Vector:
    """A vector with an entry for each row, whose pieces stay on the workers of the rows."""

    def __init__(self, number: int, unused: list[int]):
        self.ref = Ref(number)
        weakref.finalize(self, unused.append, number)


class RemoteData:
    """The size and type of rows on other computers."""

    resident = False

    def __init__(self, size: Size, dtype: np.dtype):
        self.size, self.dtype = size, dtype


class RemoteShard:
    """Calls the methods of `Shard` that are in METHODS on all shards.

    A shard that is lost is built again on another worker, where it repeats the calls of the log.
    """

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
        self._unused: list[
            int
        ] = []  # numbers of vectors that the workers can drop at the next call
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
        """Call a method of all shards; return their combined answer."""
        method, number = METHODS[name], next(self._numbers)
        if method.scattered:
            args = (dict(enumerate(scatter(args[0], self._ends))),)
        refs = replace_vectors(args, Vector, lambda vector: vector.ref)
        dropped = tuple(self._unused)
        del self._unused[: len(dropped)]
        call = Call(number, name, refs, by, dropped)
        answer = self._send(call)
        self.log.add(call)
        if method.result is Result.VECTOR:
            return Vector(number, self._unused)
        if method.result is Result.GATHERED:
            return gather([answer[k] for k in sorted(answer)])
        return answer

    def _send(self, call: Call) -> Any:
        """Send a call to the tree of shards and return its answer; repeat it if shards are lost."""
        while True:
            reply = self._exchange(call)
            if not reply.lost:
                return reply.answer
            self._count_losses(reply.lost)
            self._open([*reply.lost], {})

    def _exchange(self, message: Join | Call) -> Reply:
        """Send a message to the tree and return its reply; raise the error of a shard."""
        assert self._root is not None
        try:
            self._root.send(message)
            while not self._root.poll(POLL):
                self._cluster.require_alive([*self._plans])
            reply: Reply = self._root.recv()
        except LostShardError as e:
            return Reply(lost=e.names)
        except (OSError, EOFError):
            return Reply(lost=self._find_lost())
        if reply.error is not None and not reply.lost:
            raise reply.error
        return reply

    def _find_lost(self) -> tuple[str, ...]:
        """Return the shards whose worker is gone; if there are none, the first shard, since it has
        closed its connection."""
        try:
            self._cluster.require_alive([*self._plans])
        except LostShardError as e:
            return e.names
        return (next(iter(self._plans)),)

    # ------------------------------------------------------------ shards come and go

    def _open(self, names: list[str], facts: dict[str, Facts]) -> None:
        """Open the named shards, put their facts into the dict, and connect all shards; repeat this
        for shards that are lost meanwhile."""
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
        """Build the tree of connections."""
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
        """Let the workers forget the shards."""
        if self._root is not None:
            with contextlib.suppress(OSError):
                self._root.close()
        self._cluster.release([*self._plans])
