"""The tree of connections between the processes of shards, through which calls reach them.

Dask places the workers and notices when one dies. A call through its scheduler takes 10 ms and
more, one through a connection of our own 0.3 ms. The driver calls shard 0; shard k passes every
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
    """The address at which a shard listens."""

    name: str
    host: str
    port: int


class Join(NamedTuple):
    """The request to build the tree below shard `number` of `endpoints`."""

    endpoints: tuple[Endpoint, ...]
    number: int
    secret: bytes


class Reply(NamedTuple):
    """The answer to a message, or an error, or the names of shards that are gone."""

    answer: Any = None
    error: BaseException | None = None
    lost: tuple[str, ...] = ()


class Answers(Protocol):
    """An object that answers the calls of a server."""

    def answer(self, call: Call) -> Any:
        """Return the answer to a call."""


def connect(endpoint: Endpoint, secret: bytes) -> Connection:
    """Connect to a shard that listens."""
    return Client((endpoint.host, endpoint.port), authkey=secret)


class Server:
    """Waits for calls of the parent in the tree, in a thread of the worker."""

    def __init__(self, name: str, holder: Answers, address: str, secret: bytes):
        host = urlsplit(address).hostname or "127.0.0.1"
        self._listener = Listener((host, 0), backlog=8, authkey=secret)
        self.endpoint = Endpoint(name, host, self._listener.address[1])
        self._holder = holder
        self._children: list[tuple[str, Connection]] = []
        self._open = True
        threading.Thread(target=self._listen, name=f"nesvm-jit-{name}", daemon=True).start()

    def close(self) -> None:
        """Stop listening; the thread ends when its parent closes the connection, or before."""
        self._open = False
        with contextlib.suppress(OSError):
            # a thread that waits for a connection is not woken by closing the socket, but by a new
            # connection
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
        """Connect to the children, and let them connect to theirs."""
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
        return _find_trouble([Reply(lost=tuple(lost)), *self._receive()]) or Reply()

    def _ask(self, call: Call) -> Reply:
        """Return the combined answer of this shard and of all below it."""
        for _, child in self._children:
            with contextlib.suppress(OSError):  # a lost child is noticed when no answer comes
                child.send(call)
        try:
            own = Reply(self._holder.answer(call))
        except Exception as e:
            own = Reply(error=e)
        replies = [own, *self._receive()]
        return _find_trouble(replies) or Reply(reduce(call.by or add, (r.answer for r in replies)))

    def _receive(self) -> list[Reply]:
        """Wait for the replies of all children; a child that is gone gives a reply that says so."""
        replies = []
        for name, child in self._children:
            try:
                replies.append(child.recv())
            except (OSError, EOFError):
                replies.append(Reply(lost=(name,)))
        return replies


def _find_trouble(replies: list[Reply]) -> Reply | None:
    """Return a reply with the first error and all lost shards, or None if there are none."""
    error = next((r.error for r in replies if r.error is not None), None)
    lost = tuple(name for r in replies for name in r.lost)
    return Reply(error=error, lost=lost) if lost or error is not None else None
