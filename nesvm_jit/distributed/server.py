"""How calls reach the parts: a tree of connections between the processes that hold them.

Dask says where the workers are and notices when one dies; a call through its scheduler takes 10 ms
and more, through a connection of our own 0.3 ms. The driver talks to part 0; part k hands every
call on to the parts 2k + 1 and 2k + 2 and joins their answers with its own, always in this order.
"""

import contextlib
import itertools
import threading
from collections.abc import Callable
from multiprocessing.connection import Client, Connection, Listener
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from .holder import Holder


class Home(NamedTuple):
    """Where a part listens."""

    name: str
    host: str
    port: int


class Join(NamedTuple):
    """Build the tree below part `number` of these."""

    homes: tuple[Home, ...]
    number: int
    secret: bytes


class Question(NamedTuple):
    """A call, and how two answers become one."""

    call: Any
    by: Callable


class Answer(NamedTuple):
    """What was found; or the error; or the names of parts that are gone."""

    found: Any = None
    error: BaseException | None = None
    lost: tuple[str, ...] = ()


def connect(home: Home, secret: bytes) -> Connection:
    """A connection to a part that listens."""
    return Client((home.host, home.port), authkey=secret)


class Server:
    """Listens for its parent in the tree, in a thread of the worker."""

    def __init__(self, name: str, holder: Holder, address: str, secret: bytes):
        host = urlsplit(address).hostname or "127.0.0.1"
        self._listener = Listener((host, 0), backlog=8, authkey=secret)
        self.home = Home(name, host, self._listener.address[1])
        self._holder = holder
        self._children: list[tuple[str, Connection]] = []
        self._open = True
        threading.Thread(target=self._listen, name=f"nesvm-jit-{name}", daemon=True).start()

    def close(self) -> None:
        """Stop listening."""
        self._open = False
        with contextlib.suppress(OSError):
            self._listener.close()
        self._drop_children()

    def _listen(self) -> None:
        while self._open:
            try:
                parent = self._listener.accept()
            except Exception:  # a stranger without the secret, or the listener was closed
                if not self._open:
                    return
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

    def _reply(self, message: Any) -> Answer:
        try:
            return self._joined(message) if isinstance(message, Join) else self._asked(message)
        except Exception as e:
            return Answer(error=e)

    def _joined(self, message: Join) -> Answer:
        """Connect to the children, which connect to theirs."""
        self._drop_children()
        lost: list[str] = []
        for number in (2 * message.number + 1, 2 * message.number + 2):
            if number < len(message.homes):
                home = message.homes[number]
                try:
                    self._children.append((home.name, connect(home, message.secret)))
                    self._children[-1][1].send(message._replace(number=number))
                except (OSError, EOFError):
                    lost.append(home.name)
        for answer in self._heard():
            lost += answer.lost
        return Answer(lost=tuple(lost))

    def _heard(self) -> list[Answer]:
        """The answers of the children, each waited for."""
        found = []
        for name, child in self._children:
            try:
                found.append(child.recv())
            except (OSError, EOFError):
                found.append(Answer(lost=(name,)))
        return found

    def _asked(self, question: Question) -> Answer:
        for _, child in self._children:
            with contextlib.suppress(OSError):  # it will not answer either
                child.send(question)
        try:
            mine = Answer(self._holder.answer(question.call))
        except Exception as e:
            mine = Answer(error=e)
        answers = [mine, *self._heard()]
        lost = tuple(itertools.chain.from_iterable(a.lost for a in answers))
        error = next((a.error for a in answers if a.error is not None), None)
        if lost or error is not None:
            return Answer(error=error, lost=lost)
        found = mine.found
        for answer in answers[1:]:
            found = question.by(found, answer.found)
        return Answer(found)
