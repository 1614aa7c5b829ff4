"""A dask client whose workers are all in this process, and whose tasks run at once."""

import signal
from contextlib import contextmanager
from types import SimpleNamespace
from unittest.mock import patch

from nesvm_jit import get_threads, set_threads

import distributed

A, B, C = (f"tcp://127.0.0.1:{k}" for k in (1, 2, 3))  # workers


class Future:
    """What a task gave, after as many timeouts as asked for."""

    def __init__(self, *outcomes):
        self.outcomes, self.waited = list(outcomes), []

    def result(self, timeout=None):
        self.waited.append(timeout)
        found = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
        if isinstance(found, BaseException):
            raise found
        return found


class FakeClient:
    """A dask client; tasks run at once, as on the worker that was asked for."""

    status = "running"

    def __init__(self):
        self.scheduler = SimpleNamespace(address="tcp://there:8786")
        self.threads = {A: 1, B: 1}  # of workers that live
        self.asked, self.told = [], []  # tasks, and functions run on workers, with all arguments
        self.here = ""  # the worker whose task runs
        self.instead = lambda function, name, worker: None  # what a task gives instead

    def nthreads(self):
        return dict(self.threads)

    def submit(self, function, name, *args, **options):
        assert len(self.asked) < 60, "tried for ever"
        self.asked.append((function, name, args, options))
        (self.here,) = options["workers"]
        instead = self.instead(function, name, self.here)
        if instead is not None:
            return instead
        try:
            return Future(function(name, *args))
        except Exception as e:
            return Future(e)

    def run(self, function, name, **options):
        self.told.append((function, name, options))
        function(name)

    def compute(self, block):
        return block.compute()

    def places(self, function):
        """(number of the shard, worker) of every task of a kind."""
        return [
            (int(name.rsplit("-", 1)[1]), options["workers"][0])
            for found, name, _, options in self.asked
            if found is function
        ]


@contextmanager
def in_time(seconds=30.0):
    """Fail where nobody answers: a fault of connections is a wait without end."""

    def fail(*_):
        raise AssertionError(f"no answer for {seconds:g} s")

    before = signal.signal(signal.SIGALRM, fail)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def fake_client():
    """A client of two workers with a thread each."""
    client, before = FakeClient(), get_threads()

    def get_worker():
        threads = client.threads.get(client.here, 1)
        return SimpleNamespace(address=client.here, state=SimpleNamespace(nthreads=threads))

    with patch.object(distributed, "get_worker", get_worker), in_time():
        yield client
    set_threads(before)


def killed():
    """What dask raises of a task whose workers have died."""
    return distributed.KilledWorker("task", SimpleNamespace(address="there"), 3)


def raising(error):
    def function(*_, **__):
        raise error

    return function
