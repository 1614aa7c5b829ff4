"""The tasks that dask runs on workers: loading rows, and opening shards to calls."""

from typing import Any

from ..jit import most_threads, set_threads
from ..problems.sums import Facts
from .calls import Call
from .holder import Holder, Plan, pose
from .loading import Source, Summary, checksum_rows, forget_rows, load, summarise_rows
from .server import Endpoint, Server

_servers: dict[str, Server] = {}


def summarise(name: str, source: Source) -> Summary:
    """Load rows and return their summary."""
    _use_threads_of_worker()
    return summarise_rows(load(name, source))


def checksum(name: str, source: Source) -> list[Any]:
    """Load rows and return the checksums of them and of their labels."""
    _use_threads_of_worker()
    return checksum_rows(load(name, source))


def serve(name: str, plan: Plan, log: list[Call], secret: bytes) -> tuple[Endpoint, Facts]:
    """Open a shard to calls, after it has repeated those of the log if it was lost. Return the
    address at which it listens, and the facts of its rows."""
    _use_threads_of_worker()
    holder = Holder(plan.number, pose(load(plan.rows, plan.source), plan.width, plan.problem))
    for call in log:
        holder.answer(call)
    if name in _servers:
        _servers.pop(name).close()
    server = _servers[name] = Server(name, holder, _worker().address, secret)
    return server.endpoint, holder.shard.facts


def forget(name: str) -> None:
    """Remove a shard or rows from memory."""
    if name in _servers:
        _servers.pop(name).close()
    forget_rows(name)


def _worker() -> Any:
    from distributed import get_worker

    return get_worker()


def _use_threads_of_worker() -> None:
    set_threads(max(1, min(_worker().state.nthreads, most_threads())))
