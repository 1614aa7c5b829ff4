"""The tree of connections between shards on workers, here threads of this process."""

import contextlib
import operator
import socket
import sys
import threading
import time
from multiprocessing import AuthenticationError

import pytest

pytest.importorskip("distributed")
from nesvm_jit.distributed.calls import Call
from nesvm_jit.distributed.server import Join, Reply, Server, connect

from tests.fake_dask import in_time

SECRET = b"known to all shards"


class Says:
    """Answers every call with the same, or raises it."""

    def __init__(self, what):
        self.what = what

    def answer(self, call):
        if isinstance(self.what, Exception):
            raise self.what
        return self.what


class HangsUp:
    """An answer that cannot be sent: the connection is closed, as when the process dies."""

    def __add__(self, other):
        return self

    def __reduce__(self):
        raise EOFError


@pytest.fixture
def shards():
    """Opens servers, which are closed afterwards."""
    opened = []

    def listen(*said, secret=SECRET):
        k = len(opened)
        opened.extend(
            Server(f"p{k + j}", Says(what), "tcp://127.0.0.1:9", secret)
            for j, what in enumerate(said)
        )
        return opened[k:]

    with in_time():
        yield listen
    for server in opened:
        server.close()


def endpoints_of(servers):
    return tuple(server.endpoint for server in servers)


class Root:
    """The driver's end of the tree."""

    def __init__(self, servers, endpoints=None):
        self.endpoints = endpoints or endpoints_of(servers)
        self.connection = connect(servers[0].endpoint, SECRET)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def tell(self, message):
        self.connection.send(message)
        assert self.connection.poll(10.0), "no answer"
        return self.connection.recv()

    def join(self):
        return self.tell(Join(self.endpoints, 0, SECRET))

    def ask(self, method="reduce", by=operator.add):
        return self.tell(Call(0, method, (), by))


def is_free(endpoint):
    """Whether a shard listens for a new parent."""
    with (
        contextlib.suppress(OSError),
        socket.create_connection((endpoint.host, endpoint.port), 10.0) as s,
    ):
        return bool(s.recv(1))
    return False


def thread_of(server):
    named = [t for t in threading.enumerate() if t.name == f"nesvm-jit-{server.endpoint.name}"]
    return named[-1]


def test_a_shard_listens_at_the_host_of_its_worker():
    server = Server("one", Says(1), "tcp://127.0.0.2:4711", SECRET)
    assert server.endpoint[:2] == ("one", "127.0.0.2")
    assert server.endpoint.port not in (0, 4711)
    assert is_free(server.endpoint)
    assert not is_free(server.endpoint._replace(host="127.0.0.1"))
    nowhere = Server("two", Says(1), "inproc", SECRET)
    assert nowhere.endpoint[:2] == ("two", "127.0.0.1")
    assert thread_of(server).daemon
    for s in (server, nowhere):
        s.close()


def test_strangers_are_refused_and_the_shard_goes_on_listening(shards):
    (server,) = shards(["answer"])
    with pytest.raises(AuthenticationError):
        connect(server.endpoint, b"another secret")
    assert is_free(server.endpoint)
    with Root([server]) as root:
        assert root.ask() == Reply(["answer"])


def test_several_may_wait_for_a_shard_that_is_busy(shards):
    (server,) = shards(["answer"])
    address = (server.endpoint.host, server.endpoint.port)
    with Root([server]) as root, contextlib.ExitStack() as waiting:
        for _ in range(6):
            waiting.enter_context(socket.create_connection(address, 0.5))
        assert root.ask().answer == ["answer"]


@pytest.mark.parametrize("count", [1, 2, 3, 5, 6, 8])
def test_answers_are_joined_in_the_order_of_the_tree(shards, count):
    order = {1: [0], 2: [0, 1], 3: [0, 1, 2], 5: [0, 1, 3, 4, 2], 6: [0, 1, 3, 4, 2, 5]}
    order[8] = [0, 1, 3, 7, 4, 2, 5, 6]
    servers = shards(*([k] for k in range(count)))
    with Root(servers) as root:
        for _ in range(2):
            assert root.join() == Reply()
            assert root.ask() == Reply(order[count])
            assert root.ask() == Reply(order[count])
    assert all(is_free(endpoint) for endpoint in endpoints_of(servers))


def test_every_shard_hears_the_call_and_how_answers_are_joined(shards):
    servers = shards(3.0, 7.0, 5.0)
    with Root(servers) as root:
        root.join()
        assert root.ask("sweep", max) == Reply(7.0)
        assert root.ask("slope", min) == Reply(3.0)
        assert root.ask("spread", None) == Reply(15.0)


@pytest.mark.parametrize("gone", [1, 2, 3, 4])
def test_shards_that_cannot_be_reached_are_named(shards, gone):
    servers = shards(*([k] for k in range(5)))
    endpoints = list(endpoints_of(servers))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    endpoints[gone] = endpoints[gone]._replace(port=port)
    with Root(servers, tuple(endpoints)) as root:
        assert root.join() == Reply(lost=(f"p{gone}",))


@pytest.mark.parametrize("gone", [1, 2, 3, 4])
def test_shards_that_hang_up_are_named_and_the_others_go_on(shards, gone):
    said = [[k] for k in range(5)]
    said[gone] = HangsUp()
    servers = shards(*said)
    with Root(servers) as root:
        root.join()
        for _ in range(2):
            assert root.ask() == Reply(lost=(f"p{gone}",))


def test_the_error_of_a_shard_travels_to_the_driver(shards):
    for said in ([ValueError("own"), [1], [2]], [[0], [1], ValueError("own")]):
        with Root(shards(*said)) as root:
            root.join()
            answer = root.ask()
            assert (answer.answer, answer.lost, repr(answer.error)) == (
                None,
                (),
                "ValueError('own')",
            )
    with Root(shards(ValueError("first"), HangsUp(), ValueError("second"))) as root:
        root.join()
        answer = root.ask()
        assert (repr(answer.error), len(answer.lost)) == ("ValueError('first')", 1)


def test_an_answer_that_cannot_be_joined_is_an_error(shards):
    with Root(shards([0], "text")) as root:
        root.join()
        assert type(root.ask().error) is TypeError


def test_a_shard_that_is_closed_lets_its_children_go(shards):
    servers = shards([0], [1], [2])
    with Root(servers) as root:
        root.join()
        servers[0].close()
        assert is_free(servers[1].endpoint)
        assert is_free(servers[2].endpoint)


def test_a_shard_whose_parent_has_gone_lets_its_children_go(shards):
    servers = shards([0], [1])
    with Root(servers) as root:
        root.join()
    assert is_free(servers[1].endpoint)
    with Root(servers[1:]) as root:
        assert root.ask() == Reply([1])


def test_a_shard_that_is_closed_while_it_is_asked_does_not_listen_again(shards):
    (server,) = shards([0])
    thread = thread_of(server)
    with Root([server]) as root:
        server.close()
        assert root.ask() == Reply([0])
    thread.join(5.0)
    assert not thread.is_alive()
    assert not is_free(server.endpoint)


def test_a_shard_that_is_closed_while_it_waits_lets_its_rows_go(shards):
    (server,) = shards([0])
    thread = thread_of(server)
    for _ in range(500):
        if sys._current_frames()[thread.ident].f_code.co_name == "accept":
            break
        time.sleep(0.01)
    time.sleep(0.05)
    server.close()
    thread.join(0.5)
    assert not thread.is_alive()


def test_a_shard_that_refuses_its_parent_is_not_left_out_of_sums(shards):
    servers = [*shards([0], [1]), *shards([2], secret=b"another"), *shards([3])]
    endpoints = endpoints_of(servers)
    with Root(servers, (endpoints[0], endpoints[1], endpoints[3], endpoints[2])) as root:
        assert type(root.join().error) is AuthenticationError
