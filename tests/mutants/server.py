"""A process that has imported everything but the package; it forks for each fault and runs the
tests asked for in the child. Jobs come as lines of JSON on standard input, answers go to standard
output."""

import contextlib
import importlib
import json
import os
import resource
import signal
import sys
import threading
import time
import traceback

AHEAD = (
    *("numpy", "scipy.sparse", "scipy.linalg", "scipy.optimize", "scipy.sparse.linalg", "numba"),
    *("pytest", "hypothesis", "hypothesis.extra.numpy", "click", "click.testing", "sklearn.svm"),
    *("sklearn.datasets", "sklearn.model_selection", "sklearn.utils.estimator_checks", "clarabel"),
    *("dask.array", "distributed", "matplotlib.pyplot"),
)
GRACE = 15.0  # seconds that a test may take ...
SLOWER = 8.0  # ... and times its usual length
LONGEST = 300.0  # seconds of all tests whose length is not known
USUAL = 20.0  # seconds of a test whose length is not known: it may compile code
MEMORY = 12 * 2**30


def crowd() -> float:
    """How many programs share a core: each of them takes so much longer."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


class Clock:
    """Seconds that this process was let run. A process that is stopped for a while, and a computer
    that sleeps, look at no clock: what lies between two looks counts for a second at most."""

    def __init__(self):
        self.seconds, self.last = 0.0, time.monotonic()

    def read(self) -> float:
        now = time.monotonic()
        self.seconds, self.last = self.seconds + min(now - self.last, 1.0), now
        return self.seconds


class Watch:
    """A pytest plugin that keeps the order asked for and ends a test that does not end."""

    def __init__(self, order: list[str], seconds: list[float], answer):
        self.order = {test: k for k, test in enumerate(order)}
        self.usual = dict(zip(order, seconds, strict=True))  # none: all tests, as they come
        self.answer, self.ran, self.now, self.until = answer, 0, "", float("inf")
        self.clock = Clock()
        threading.Thread(target=self._watch, daemon=True).start()

    def pytest_collection(self) -> None:
        """Failing examples of hypothesis are not made small: that one fails is enough."""
        from hypothesis import Phase, settings

        quick = settings(phases=[Phase.explicit, Phase.generate], derandomize=True, database=None)
        settings.register_profile("mutants", quick)
        settings.load_profile("mutants")

    def pytest_collection_modifyitems(self, items) -> None:
        if self.order:
            chosen = [i for i in items if i.nodeid in self.order]
            items[:] = sorted(chosen, key=lambda i: self.order[i.nodeid])

    def pytest_runtest_logstart(self, nodeid) -> None:
        self.now, self.ran = nodeid, self.ran + 1
        limit = GRACE + SLOWER * self.usual.get(nodeid, USUAL)
        self.until = self.clock.seconds + crowd() * limit

    def pytest_runtest_logreport(self, report) -> None:
        if report.failed:
            self.answer("noticed", self.now, self.ran)

    def pytest_collectreport(self, report) -> None:
        if report.failed:
            self.answer("noticed", f"import of {report.nodeid}", 0)

    def _watch(self) -> None:
        while True:
            time.sleep(0.2)
            if self.clock.read() > self.until:
                self.answer("noticed", f"{self.now} (did not end)", self.ran)


def child(job: dict, out: int) -> None:
    """Run the tests; answer once, by whichever comes first."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored, if we are in the background
    log = os.open(job["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    null = os.open(os.devnull, os.O_RDONLY)
    for target, source in ((0, null), (1, log), (2, log)):
        os.dup2(source, target)

    def answer(outcome: str, test: str, ran: int) -> None:
        os.write(out, json.dumps([outcome, test, ran]).encode())
        os._exit(0)

    import pytest

    watch = Watch(job["tests"], job["seconds"], answer)
    marks = "pure and not slow" if os.environ.get("NUMBA_DISABLE_JIT") == "1" else "not slow"
    options = ["-x", "-q", "--tb=short", "-o", "addopts=", "-p", "no:cacheprovider"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    code = pytest.main([*options, "-p", "no:xdist", "-m", marks, *job["files"]], plugins=[watch])
    if code in (4, 5) or (code == 0 and not watch.ran):  # wrong usage, no tests
        answer("error", f"no test was run, pytest ended with {int(code)}: {job['files']}", 0)
    answer("noticed" if code else "survived", watch.now, watch.ran)


def said_of(error: BaseException) -> str:
    """The first line alone: a verdict is one."""
    return "".join(traceback.format_exception_only(type(error), error)).splitlines()[0]


def handle(job: dict) -> dict:
    """One fault."""
    started = time.monotonic()
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        try:
            child(job, writer)
        except BaseException as error:
            os.write(writer, json.dumps(["error", said_of(error), 0]).encode())
        os._exit(1)
    os.close(writer)
    said, ended = b"", False
    clock, until = Clock(), crowd() * (LONGEST + SLOWER * sum(job["seconds"]))
    os.set_blocking(reader, False)
    try:
        while not said and not ended and clock.read() < until:
            time.sleep(0.02)
            ended = os.waitpid(pid, os.WNOHANG)[0] == pid
            with contextlib.suppress(BlockingIOError):
                said = os.read(reader, 65536)
    finally:  # SIGTERM too
        os.close(reader)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)  # and whatever it has started
        if not ended:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    why = "crash" if ended else "did not end"
    outcome, test, ran = json.loads(said) if said else ("noticed", why, 0)
    seconds = time.monotonic() - started
    return {"outcome": outcome, "test": test, "ran": ran, "seconds": seconds}


def main() -> None:
    for name in AHEAD:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    assert not any(m == "nesvm_jit" or m.startswith("nesvm_jit.") for m in sys.modules)
    answers = os.fdopen(os.dup(1), "w")
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(handle(json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
