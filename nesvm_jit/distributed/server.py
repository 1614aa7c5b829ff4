"""How calls reach the shards: a tree of connections between the processes that hold them.

Dask says where the workers are and notices when one dies; a call through its scheduler takes 10 ms
and more, through a connection of our own 0.3 ms. The driver talks to shard 0; shard k hands every
call on to the shards 2k + 1 and 2k + 2 and adds their answers to its own, always in this order.
"""

import contextlib
import socket
import threading
from functools import reduce
from multiprocessing.connection import Client, Connection, Listener
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

from .calls import Call, add


class Endpoint(NamedTuple):
    """Where a shard listens."""

    name: str
    host: str
    port: int


class Join(NamedTuple):
    """The order to build the tree below shard `number` of these."""

    endpoints: tuple[Endpoint, ...]
    number: int
    secret: bytes


class Reply(NamedTuple):
    """What was found; or the error; or the names of shards that are gone."""

    found: Any = None
    error: BaseException | None = None
    lost: tuple[str, ...] = ()


class Answers(Protocol):
    """Whatever answers the calls that a server hears."""

    def answer(self, call: Call) -> Any:
        """The answer to a call."""


def connect(endpoint: Endpoint, secret: bytes) -> Connection:
    """A connection to a shard that listens."""
    return Client((endpoint.host, endpoint.port), authkey=secret)


class Server:
    """Listens for its parent in the tree, in a thread of the worker."""

    def __init__(self, name: str, holder: Answers, address: str, secret: bytes):
        host = urlsplit(address).hostname or "127.0.0.1"
        self._listener = Listener((host, 0), backlog=8, authkey=secret)
        self.endpoint = Endpoint(name, host, self._listener.address[1])
        self._holder = holder
        self._children: list[tuple[str, Connection]] = []
        self._open = True
        threading.Thread(target=self._listen, name=f"nesvm-jit-{name}", daemon=True).start()

    def close(self) -> None:
        """Stop listening; the thread ends, at the latest when its parent hangs up."""
        self._open = False
        with contextlib.suppress(OSError):
            # closing a socket does not wake a thread that waits for a connection; another one does
            socket.create_connection((self.endpoint.host, self.endpoint.port), 1.0).close()
        with contextlib.suppress(OSError):
            self._listener.close()
        self._drop_children()

    def _listen(self) -> None:
        while self._open:
            try:
                parent = self._listener.accept()
            except Exception:  # a stranger without the secret, or the listener was closed
                continue
            with contextlib.suppress(EOFError, OSError), parent:
                while True:
                    parent.send(self._reply(parent.recv()))
            self._drop_children()

    def _drop_children(self) -> None:
        for _, child in self._children:
            with contextlib.suppress(OSError):
                child.close()
        self._children = []

    def _reply(self, message: Join | Call) -> Reply:
        try:
            return self._join(message) if isinstance(message, Join) else self._ask(message)
        except Exception as e:
            return Reply(error=e)

    def _join(self, message: Join) -> Reply:
        """Connect to the children, which connect to theirs."""
        self._drop_children()
        lost: list[str] = []
        for number in (2 * message.number + 1, 2 * message.number + 2):
            if number < len(message.endpoints):
                endpoint = message.endpoints[number]
                try:
                    child = connect(endpoint, message.secret)
                    self._children.append((endpoint.name, child))
                    child.send(message._replace(number=number))
                except (OSError, EOFError):
                    lost.append(endpoint.name)
        return _in_trouble([Reply(lost=tuple(lost)), *self._hear()]) or Reply()

    def _ask(self, call: Call) -> Reply:
        """The answer of this shard and of all below it."""
        for _, child in self._children:
            with contextlib.suppress(OSError):  # it will not answer either
                child.send(call)
        try:
            own = Reply(self._holder.answer(call))
        except Exception as e:
            own = Reply(error=e)
        replies = [own, *self._hear()]
        return _in_trouble(replies) or Reply(reduce(call.by or add, (r.found for r in replies)))

    def _hear(self) -> list[Reply]:
        """The replies of the children, each waited for."""
        found = []
        for name, child in self._children:
            try:
                found.append(child.recv())
            except (OSError, EOFError):
                found.append(Reply(lost=(name,)))
        return found


def _in_trouble(replies: list[Reply]) -> Reply | None:
    """The first error and all shards that are gone, if there are any."""
    error = next((r.error for r in replies if r.error is not None), None)
    lost = tuple(name for r in replies for name in r.lost)
    return Reply(error=error, lost=lost) if lost or error is not None else None
