"""The tasks that dask runs on workers: loading rows, and opening parts to calls."""

from typing import Any

from ..jit import most_threads, set_threads
from .holder import (
    Call,
    Recipe,
    Summary,
    Task,
    checksums_of,
    forget_rows,
    holder_of,
    summary_of,
)
from .server import Home, Server

_servers: dict[str, Server] = {}


def summarise(name: str, recipe: Recipe) -> Summary:
    """Load rows and say what they are."""
    _use_threads_of_worker()
    return summary_of(name, recipe)


def checksum(name: str, recipe: Recipe) -> list:
    """Load rows and give the checksums of them and of their labels."""
    _use_threads_of_worker()
    return checksums_of(name, recipe)


def serve(
    name: str,
    number: int,
    rows: str,
    recipe: Recipe,
    width: int,
    task: Task,
    log: list[Call],
    secret: bytes,
) -> tuple[Home, Any]:
    """Open a part to calls, perhaps not for the first time: then those it has answered are made
    again. Returns where it listens, and the facts of its rows."""
    _use_threads_of_worker()
    holder = holder_of(number, rows, recipe, width, task)
    for call in log:
        holder.answer(call)
    if name in _servers:
        _servers.pop(name).close()
    server = _servers[name] = Server(name, holder, _worker().address, secret)
    return server.home, holder.shard.facts


def forget(name: str) -> None:
    """Let go of a part, or of rows."""
    if name in _servers:
        _servers.pop(name).close()
    forget_rows(name)


def _worker() -> Any:
    from distributed import get_worker

    return get_worker()


def _use_threads_of_worker() -> None:
    set_threads(max(1, min(_worker().state.nthreads, most_threads())))
