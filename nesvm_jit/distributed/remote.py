"""A `Part` whose rows are on the workers of a cluster."""

import itertools
import time
import uuid
import weakref
from typing import Any

import numpy as np

from ..errors import NesvmError
from ..matrix import Size
from ..models.part import Curvature, Facts, Sums
from .holder import Call, LostPartError, Recipe, Ref, Task, answer, appended, build, forget, joined
from .log import Log

POLL = 0.5  # seconds without an answer, after which workers are counted
PATIENCE = 60.0  # seconds without any worker
TRIES = 10  # of a part that is lost again and again
LARGE = 1 << 20  # bytes of an argument, from which it is sent to every worker once


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


class Cluster:
    """The workers of a client, and which of them holds which part."""

    def __init__(self, client: Any):
        self.client = client
        self.address = client.scheduler.address if client.scheduler else "?"
        self._homes: dict[str, str] = {}  # the worker of a part or of its rows

    def workers(self) -> dict[str, int]:
        """Threads by address; at least one worker."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                found = dict(self.client.nthreads())
            except Exception as e:
                raise self._lost(e) from None
            if found:
                return found
            if time.monotonic() > end:
                raise NesvmError(f"{self.address}: no worker for {PATIENCE:g} s")
            time.sleep(POLL)

    def home(self, name: str) -> str:
        """The worker that holds it, or is to hold it: the one with the least to do."""
        alive = self.workers()
        if self._homes.get(name) not in alive:
            load = dict.fromkeys(alive, 0.0)
            for address in self._homes.values():
                if address in load:
                    load[address] += 1.0 / max(1, alive[address])
            self._homes[name] = min(sorted(load), key=lambda a: load[a])
        return self._homes[name]

    def settle(self, names: dict[str, str]) -> None:
        """Let parts live where their rows are."""
        for name, rows in names.items():
            self._homes[name] = self._homes[rows]

    def run(self, name: str, function: Any, *args: Any) -> Any:
        """One task on the worker of a part, in the background."""
        return self.client.submit(
            function, name, *args, workers=[self._homes[name]], pure=False, retries=0
        )

    def result(self, future: Any, of: list[str]) -> Any:
        """The result of a task that needs these parts; LostPartError names one that is gone."""
        from distributed import CancelledError, KilledWorker, TimeoutError

        while True:
            try:
                return future.result(timeout=POLL)
            except TimeoutError:
                self._require_alive(of)
            except (KilledWorker, CancelledError, OSError) as e:
                self._require_alive(of)
                if self.client.status != "running":
                    raise self._lost(e) from None
                raise LostPartError(of[0]) from None

    def _require_alive(self, names: list[str]) -> None:
        alive = self.workers()
        for name in names:
            if self._homes.get(name) not in alive:
                raise LostPartError(name)

    def _lost(self, error: BaseException) -> NesvmError:
        what = " ".join(str(error).split())[:200] or type(error).__name__
        return NesvmError(f"{self.address}: the scheduler was lost: {what}")

    def release(self, names: list[str]) -> None:
        """Let workers forget parts or rows; they may be gone by now."""
        for name in names:
            address = self._homes.pop(name, None)
            if address is not None and self.client.status == "running":
                self.client.run(forget, name, workers=[address], on_error="ignore", wait=False)


def tree(client: Any, futures: list[Any], by: Any) -> Any:
    """One future: neighbours are joined, then their neighbours, always in the same order."""
    while len(futures) > 1:
        pairs = itertools.zip_longest(futures[::2], futures[1::2])
        futures = [client.submit(by, a, b, pure=False) if b is not None else a for a, b in pairs]
    return futures[0]


class RemoteData:
    """What is known of rows that are elsewhere."""

    resident = False

    def __init__(self, size: Size, dtype: np.dtype):
        self.size, self.dtype = size, dtype


class RemoteParts:
    """Every method goes to all parts, whose answers are joined in a tree. A part that is lost is
    built again on another worker, which repeats what it had been told."""

    def __init__(
        self, cluster: Cluster, rows: list[tuple[str, Recipe]], data: RemoteData, task: Task
    ):
        self.data, self.model, self.bias = data, task.model, task.bias
        self.n_features = data.size.cols
        self._cluster, self._task = cluster, task
        stem = uuid.uuid4().hex[:12]
        self._sources = {f"{stem}-{k}": source for k, source in enumerate(rows)}
        self._names = list(self._sources)
        self._log, self._unused = Log(), []  # type: ignore[var-annotated]
        self._numbers = itertools.count()
        self._lost_so_far = 0
        cluster.settle({name: source[0] for name, source in self._sources.items()})
        self.facts: Facts = self._built()

    def _built(self) -> Facts:
        while True:
            futures = [self._build(name) for name in self._names]
            top = tree(self._cluster.client, futures, joined)
            try:
                return self._cluster.result(top, self._names)
            except LostPartError as e:
                self._count(e)
                self._cluster.home(self._which(e))

    def _build(self, name: str) -> Any:
        rows, recipe = self._sources[name]
        log = self._log.calls()
        return self._cluster.run(name, build, rows, recipe, self.n_features, self._task, log)

    def _which(self, e: LostPartError) -> str:
        return str(e.args[0])

    def _count(self, e: LostPartError) -> None:
        self._lost_so_far += 1
        if self._lost_so_far > TRIES:
            raise NesvmError(
                f"{self._cluster.address}: workers were lost {TRIES} times; they may lack memory"
            ) from None

    def _ask(self, method: str, *args: Any, kept: bool = False, by: Any = joined) -> Any:
        """The answers of all parts to a call, joined; or the vector that they keep."""
        number = next(self._numbers)
        refs = _refs(args)
        unused = tuple(self._unused)
        del self._unused[: len(unused)]
        call = Call(number, method, refs, number if kept else None, unused)
        found = self._answered(call, by)
        self._log.add(call)
        return Vector(number, self._unused) if kept else found

    def _answered(self, call: Call, by: Any) -> Any:
        client = self._cluster.client
        while True:
            sent = self._sent(call)
            futures = [self._cluster.run(name, answer, sent) for name in self._names]
            try:
                return self._cluster.result(tree(client, futures, by), self._names)
            except LostPartError as e:
                self._count(e)
                self._rebuild(self._which(e))

    def _sent(self, call: Call) -> Any:
        """Large arguments go to all workers at once, not through the scheduler one by one."""
        large = any(isinstance(a, np.ndarray) and a.nbytes > LARGE for a in call.args)
        if not large or len(self._names) == 1:
            return call
        return self._cluster.client.scatter(call, broadcast=True, hash=False)

    def _rebuild(self, name: str) -> None:
        while True:
            self._cluster.home(name)
            try:
                self._cluster.result(self._build(name), [name])
                return
            except LostPartError as e:
                self._count(e)

    def close(self) -> None:
        """Let the workers forget it."""
        self._cluster.release(self._names)

    # ------------------------------------------------------------ the methods of Part

    def sweep(self, w: np.ndarray, b: float, mu: float) -> Sums:
        return self._ask("sweep", w, b, mu)

    def spread(self, v: np.ndarray, b: float) -> tuple[np.ndarray, float]:
        return self._ask("spread", v, b)

    def place(self, w: np.ndarray, b: float, known: bool = False) -> None:
        self._ask("place", w, b, known)

    def aim(self, w: np.ndarray, b: float) -> None:
        self._ask("aim", w, b)

    def slope(self, t: float, mu: float) -> tuple[float, float]:
        return self._ask("slope", t, mu)

    def step(self, t: float, mu: float) -> Sums:
        return self._ask("step", t, mu)

    def centre_on(self, alpha: Any) -> None:
        self._ask("centre_on", alpha)

    def margins(self) -> Any:
        return self._ask("margins", kept=True)

    def loss_at(self, w: np.ndarray, b: float) -> float:
        return self._ask("loss_at", w, b)

    def weight_of_curvature(self) -> float:
        return self._ask("weight_of_curvature")

    def hessian(self, dtype: type) -> Curvature:
        return self._ask("hessian", dtype)

    def hessian_times(self, v: np.ndarray) -> np.ndarray:
        return self._ask("hessian_times", v)

    def hessian_diagonal(self) -> Curvature:
        return self._ask("hessian_diagonal")

    def swept(self) -> Any:
        return self._ask("swept", kept=True)

    def stepped(self) -> Any:
        return self._ask("stepped", kept=True)

    def direction(self, alpha: Any) -> np.ndarray:
        return self._ask("direction", alpha)

    def mapped(self, function: Any, vectors: tuple, numbers: tuple = ()) -> Any:
        return self._ask("mapped", function, vectors, numbers, kept=True)

    def reduced(self, function: Any, vectors: tuple, numbers: tuple = (), by: Any = None) -> Any:
        return self._ask("reduced", function, vectors, numbers, by, by=by or joined)

    def collected(self, vector: Any) -> np.ndarray:
        return self._ask("collected", vector, by=appended)
