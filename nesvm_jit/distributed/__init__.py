"""Linear machines on rows that stay on the workers of a dask cluster.

The solvers are those of one machine: only the problem is another object. Each round sends w to the
workers and joins what they find, the loss, the gradient and for Newton's steps the Hessian.
"""

import contextlib
import uuid
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from ..binary.linear import require_memory, solve_problem
from ..binary.solution import Solution
from ..binary.start import Start
from ..checkpoint.checkpoint import Slot
from ..checkpoint.fingerprint import opened
from ..errors import InputError, NesvmError
from ..jit import one_blas_thread
from ..machine.assembled import linear_machine
from ..machine.finished import solve_or_recall
from ..machine.machine import Machine
from ..machine.multiclass import class_order
from ..machine.streamed import Relay, class_costs
from ..matrix.rows import Size
from ..models import MODELS
from ..problems.linear import LinearProblem
from ..settings import Settings
from .cluster import Cluster, LostPartError
from .holder import Recipe, Summary, Task
from .pieces import array_pieces, file_pieces, grouped
from .remote import RemoteData, RemoteShard
from .worker import checksum, summarise

__all__ = ["connected", "solve", "train"]


@contextlib.contextmanager
def connected(to: Any = "local", workers: int | None = None) -> Iterator[Any]:
    """A dask client: one that is given, of the scheduler at an address, or `local` for worker
    processes on this machine, one per core or as many as asked for."""
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise NesvmError(
            "dask.distributed must be installed: pip install 'nesvm-jit[dask]'"
        ) from None
    if not isinstance(to, str):
        yield to
        return
    if to != "local":
        try:
            client = Client(to, timeout=5)
        except (OSError, ValueError, TimeoutError) as e:
            what = " ".join(str(e).split())[:200]
            raise NesvmError(f"{to}: no dask scheduler answers there: {what}") from None
        with client:
            yield client
        return
    from ..jit import get_threads

    count = workers or get_threads()
    threads = max(1, get_threads() // count)
    with (
        LocalCluster(
            n_workers=count,
            threads_per_worker=threads,
            dashboard_address="127.0.0.1:0",
            silence_logs=50,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


class Rows:
    """Rows that the workers have loaded."""

    def __init__(self, client: Any, data: Any, y: Any, n_features: int | None, dtype: type):
        self.cluster = Cluster(client)
        n_parts = len(self.cluster.workers())
        if y is None:
            paths = [data] if isinstance(data, str) else list(data)
            if not paths:
                raise InputError("at least one file is required")
            pieces = file_pieces(paths, n_parts)
        else:
            pieces = array_pieces(client, data, y)
        stem = uuid.uuid4().hex[:12]
        groups = grouped(pieces, n_parts)
        self.sources = [
            (f"{stem}-rows-{k}", Recipe(tuple(group), n_features, dtype))
            for k, group in enumerate(groups)
        ]
        found: list[Summary] = self._of_all(summarise)
        kept = [k for k, summary in enumerate(found) if summary.rows]  # a long line fills a piece
        if not kept:
            raise InputError("the data must have rows, they have none")
        self.sources, found = [self.sources[k] for k in kept], [found[k] for k in kept]
        width = max(s.width for s in found) if n_features is None else n_features
        rows = sum(s.rows for s in found)
        held = sum(s.rows * s.row_bytes for s in found)
        size = Size(rows, width, sum(s.cells for s in found), held // max(1, rows))
        self.data = RemoteData(size, found[0].dtype)
        self.labels = list(dict.fromkeys(label for s in found for label in s.labels))

    def checksums(self, costs: Mapping[float, float]) -> list:
        """Of the rows and labels of every part, and the costs of classes."""
        return [self._of_all(checksum), [*self.data.size], [*map(list, costs.items())]]

    def _of_all(self, function: Callable) -> list:
        """What a function finds of the rows of every part."""
        while True:
            names = [name for name, _ in self.sources]
            for name in names:
                self.cluster.find_home(name)
            futures = [self.cluster.run(name, function, recipe) for name, recipe in self.sources]
            try:
                found = zip(futures, names, strict=True)
                return [self.cluster.result(future, name) for future, name in found]
            except LostPartError:
                continue

    def problem(self, task: Task) -> LinearProblem:
        """One class against the others."""
        require_memory(self.data.size.cols)
        return LinearProblem(RemoteShard(self.cluster, self.sources, self.data, task))  # type: ignore[arg-type]

    def close(self) -> None:
        self.cluster.release([name for name, _ in self.sources])


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
    class_weight: Mapping[float, float] | None = None,
    n_features: int | None = None,
    dtype: Any = np.float64,
    **settings: Any,
) -> Solution:
    """`nesvm_jit.solve` for labels −1 and +1 on rows of a cluster.

    `data` is the name of a LIBSVM file or of an on-disk matrix, or several of them, which all
    workers can read, or a dask array of rows with the labels `y`. `client` is a dask client, the
    address of a scheduler, or "local".
    """
    checked = Settings(model, "linear", C, bias, solver, tol, **settings)
    with (
        connected(client) as found,
        one_blas_thread(),
        contextlib.closing(Rows(found, data, y, n_features, dtype)) as rows,
    ):
        if sorted(rows.labels) != [-1.0, 1.0]:
            raise InputError(f"labels must be -1 and +1, got {_shown(rows.labels)}")
        costs = _costs(C, rows.labels, class_weight)
        task = Task(1.0, costs, MODELS[model](), bias)
        with opened(checked, partial(rows.checksums, costs)) as checkpoint:
            slot = None if checkpoint is None else checkpoint.slot(0)
            return _solved(rows, task, checked, slot)


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
    class_weight: Mapping[float, float] | None = None,
    n_features: int | None = None,
    dtype: Any = np.float64,
    **settings: Any,
) -> Machine:
    """`nesvm_jit.train` of a linear machine, one class against the rest, on rows of a cluster."""
    checked = Settings(model, "linear", C, bias, solver, tol, **settings)
    with (
        connected(client) as found,
        one_blas_thread(),
        contextlib.closing(Rows(found, data, y, n_features, dtype)) as rows,
    ):
        order = class_order(np.array(rows.labels))
        if len(order) < 2:
            raise InputError(f"labels must be of at least 2 classes, got {_shown(rows.labels)}")
        costs = _costs(C, rows.labels, class_weight)
        solved: list[Solution] = []
        with opened(checked, partial(rows.checksums, costs)) as checkpoint:
            ahead = order[:1] if len(order) == 2 else order
            relay = Relay(checked, len(ahead))
            for k, label in enumerate(ahead):
                task = Task(float(label), costs, MODELS[model](), bias)
                work = partial(_solved, rows, task, relay.settings(k))
                solved.append(solve_or_recall(checkpoint, k, work))
        return linear_machine(checked, order, rows.data.size.cols, solved)


def _solved(rows: Rows, task: Task, settings: Settings, slot: Slot | None) -> Solution:
    problem = rows.problem(task)
    try:
        return solve_problem(problem, settings, Start(slot=slot))
    finally:
        problem.shard.close()  # type: ignore[attr-defined]


def _costs(C: float, labels: list[float], weights: Mapping[float, float] | None) -> dict:
    order = np.array(labels)
    return dict(zip(labels, class_costs(C, weights, order, np.ones(len(order))), strict=True))


def _shown(labels: list[float]) -> str:
    return ", ".join(f"{label:g}" for label in labels[:5]) + (" …" if len(labels) > 5 else "")
