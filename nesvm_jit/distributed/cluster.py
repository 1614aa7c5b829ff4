"""The client of a dask cluster, its workers, and the worker of each shard."""

import contextlib
import os
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from ..errors import NesvmError
from ..jit import get_threads
from .worker import forget

POLL = 0.5  # seconds to wait for an answer before looking whether the workers are alive
PATIENCE = 60.0  # seconds without any worker after which a run ends with an error


@contextlib.contextmanager
def connected(to: Any = "local", workers: int | None = None) -> Iterator[Any]:
    """Yield a dask client: `to` itself, one of the scheduler at the address `to`, or for `local`
    one of new worker processes on this computer, `workers` of them or one per core.

    A scheduler runs the code of everyone who can connect to it. Local ones use TLS with keys made
    for the run; for a scheduler without TLS there is a warning.
    """
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
        except (OSError, ValueError, TimeoutError, TypeError) as e:  # TypeError: TLS without keys
            raise NesvmError(f"{to}: no dask scheduler answers there: {_one_line(e)}") from None
        with client:
            _warn_if_open(to, client)
            yield client
        return
    count = workers or get_threads()
    threads = max(1, get_threads() // count)
    with _silent_tracker():
        cluster = LocalCluster(
            n_workers=count,
            threads_per_worker=threads,
            dashboard_address="127.0.0.1:0",
            silence_logs=50,
            security=_temporary_keys(),
        )
    with cluster, Client(cluster) as client:
        yield client


@contextlib.contextmanager
def _silent_tracker() -> Iterator[None]:
    """Silence warnings of the resource tracker that is started inside: a process that cleans up
    after a killed run."""
    before = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, [before, "ignore:resource_tracker"]))
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONWARNINGS"]
        else:
            os.environ["PYTHONWARNINGS"] = before


def _temporary_keys() -> Any:
    """Return keys for TLS that are kept in memory and live as long as the cluster."""
    from distributed import Security

    try:
        return Security.temporary()
    except ImportError:
        raise NesvmError(
            "cryptography must be installed, to keep other users out of the workers: "
            "pip install 'nesvm-jit[dask]'"
        ) from None


def _warn_if_open(to: str, client: Any) -> None:
    """Warn if everyone who reaches the scheduler can connect to it."""
    address = client.scheduler.address if client.scheduler else to
    if not address.startswith("tls://"):
        warnings.warn(
            f"{to}: whoever reaches this scheduler can run code on it and on its workers; "
            "use tls:// outside of a network that you trust",
            stacklevel=4,
        )


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]


class LostShardError(Exception):
    """Raised with the names of the shards, or of their rows, whose worker is gone."""

    def __init__(self, *names: str):
        super().__init__(*names)
        self.names = names


class Cluster:
    """Runs tasks on the worker that holds a shard or its rows; errors of dask become one line."""

    def __init__(self, client: Any):
        self.client = client
        self.address = client.scheduler.address if client.scheduler else "?"
        self._workers: dict[str, str] = {}  # the worker's address, by the name of a shard or rows

    def workers(self) -> dict[str, int]:
        """Return the number of threads by the worker's address; wait until there is a worker."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                threads = dict(self.client.nthreads())
            except Exception as e:
                raise self._scheduler_lost(e) from None
            if threads:
                return threads
            if time.monotonic() > end:
                raise NesvmError(f"{self.address}: no worker for {PATIENCE:g} s")
            time.sleep(POLL)

    def assign(self, name: str) -> None:
        """Choose the worker with the fewest shards per thread, unless the present one is alive."""
        alive = self.workers()
        if self._workers.get(name) not in alive:
            load = dict.fromkeys(alive, 0.0)
            for address in self._workers.values():
                if address in load:
                    load[address] += 1.0 / max(1, alive[address])
            self._workers[name] = min(sorted(load), key=lambda a: load[a])

    def assign_with(self, name: str, rows: str) -> None:
        """Choose the worker that holds the shard's rows."""
        self._workers[name] = self._workers[rows]

    def run(self, name: str, function: Callable[..., Any], *args: Any) -> Any:
        """Start a task on the worker of a shard; return its future."""
        return self.client.submit(
            function, name, *args, workers=[self._workers[name]], pure=False, retries=0
        )

    def result(self, future: Any, name: str) -> Any:
        """Wait for a task on the worker of a shard; return its result."""
        from distributed import CancelledError, KilledWorker, TimeoutError

        while True:
            try:
                return future.result(timeout=POLL)
            except TimeoutError:
                self.require_alive([name])
            except (KilledWorker, CancelledError, OSError) as e:
                if self.client.status != "running":
                    raise self._scheduler_lost(e) from None
                self.require_alive([name])
                raise LostShardError(name) from None

    def require_alive(self, names: list[str]) -> None:
        """Raise LostShardError if the worker of a named shard is gone."""
        alive = self.workers()
        gone = [name for name in names if self._workers.get(name) not in alive]
        if gone:
            raise LostShardError(*gone)

    def _scheduler_lost(self, error: BaseException) -> NesvmError:
        what = _one_line(error) or type(error).__name__
        return NesvmError(f"{self.address}: the scheduler was lost: {what}")

    def release(self, names: list[str]) -> None:
        """Let the workers that are alive forget these shards or rows."""
        addresses = {name: self._workers.pop(name) for name in names if name in self._workers}
        if self.client.status != "running":
            return
        with contextlib.suppress(Exception):  # only memory is lost if this fails
            alive = self.client.nthreads()
            for name, address in addresses.items():
                if address in alive:
                    self.client.run(forget, name, workers=[address], on_error="ignore", wait=False)
