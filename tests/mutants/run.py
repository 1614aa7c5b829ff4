"""All faults of a run judged, as many at a time as there are workers."""

import json
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from .errors import MutantsError
from .faults import Fault
from .known import Known
from .reach import Reach, measure, nearest
from .report import Verdict
from .trees import environment, make_tree, with_fault


@dataclass
class Plan:
    """Which tests are run for a fault: those that reach it, or those of some files."""

    budget: float
    files: list[str]
    stale: bool  # the reach that was measured last will do
    reaches: dict[bool, Reach] = field(default_factory=dict)

    def job(self, fault: Fault, pure: bool) -> tuple[dict, int]:
        """The tests, and how many reach the fault."""
        if self.files:
            return self.files_job(), 0
        reach = self.reaches[pure]
        chosen, reaching = nearest(fault, reach, self.budget)
        tests = [reach.tests[k] for k in chosen]
        files = sorted({t.split("::")[0] for t in tests})
        seconds = [reach.seconds[k] for k in chosen]
        return {"files": files, "tests": tests, "seconds": seconds}, reaching

    def files_job(self) -> dict:
        return {"files": self.files, "tests": [], "seconds": []}


class Worker:
    """A tree of its own and two servers in it, with compilation on and off."""

    def __init__(self, number: int):
        self.tree, self.number = make_tree(f"tree-{number}"), number
        self.servers: dict[bool, subprocess.Popen] = {}

    def server(self, pure: bool) -> subprocess.Popen:
        if pure not in self.servers:
            self.servers[pure] = subprocess.Popen(
                [sys.executable, "-W", "ignore", "-m", "tests.mutants.server"],
                cwd=self.tree,
                env=environment(self.tree, pure),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,  # Ctrl-C is for us, who end it then
            )
            self.servers[pure].stdout.readline()  # type: ignore[union-attr]
        return self.servers[pure]

    def ask(self, job: dict, pure: bool) -> dict:
        """What the server says of the tests of a job; if it has died, the next one is asked
        another time."""
        server = self.server(pure)
        assert server.stdin
        assert server.stdout
        try:
            server.stdin.write(json.dumps({**job, "log": str(self.tree / "log")}) + "\n")
            server.stdin.flush()
            said = server.stdout.readline()
        except BrokenPipeError:
            said = ""
        if said:
            return json.loads(said)
        del self.servers[pure]
        server.kill()
        died = f"the process that runs the tests died, code {_close(server)}"
        return {"outcome": "error", "test": died, "ran": 0, "seconds": 0.0}

    def judge(self, fault: Fault, pure: bool, plan: Plan) -> Verdict:
        """Whether a test notices the fault."""
        job, reaching = plan.job(fault, pure)
        if not job["files"]:
            return Verdict(fault, "survived", "no test reaches it", 0, 0, 0.0)
        with with_fault(self.tree, fault):
            return Verdict(fault, reaching=reaching, **self.ask(job, pure))

    def refuse_red_tests(self, pure: bool, plan: Plan) -> None:
        """Tests that fail on the unchanged tree would notice everything."""
        said = self.ask(plan.files_job(), pure)
        how = "with compilation off, " if pure else ""
        if said["outcome"] == "noticed":
            raise MutantsError(f"{how}the unchanged package fails a test: {said['test']}")
        if said["outcome"] != "survived":
            raise MutantsError(f"{how}the unchanged package cannot be tested: {said['test']}")

    def end_servers(self) -> None:
        for server in [*self.servers.values()]:
            server.terminate()

    def close(self) -> None:
        self.end_servers()
        for server in self.servers.values():
            _close(server)
        shutil.rmtree(self.tree, ignore_errors=True)


def _close(server: subprocess.Popen) -> int:
    """Wait for a process that ends; its code."""
    with server:
        return server.wait()


def measure_reaches(plan: Plan, modes: list[bool], show: Callable[[str], None]) -> None:
    """Which tests reach which line, and which had to be left out."""
    tree = make_tree("tree-0")
    try:
        for off in modes:
            started = time.monotonic()
            reach = plan.reaches[off] = measure(tree, off, plan.stale)
            name, seconds = "uncompiled" if off else "compiled", time.monotonic() - started
            show(f"{len(reach.tests)} {name} tests, reach measured in {seconds:.0f} s")
            for test in reach.failed:
                show(f"left out, it fails on the unchanged package: {test}")
    finally:
        shutil.rmtree(tree, ignore_errors=True)


def run(
    faults: list[Fault],
    known: Known,
    uncompiled: Callable[[Fault], bool],
    plan: Plan,
    workers: int,
    show: Callable[[str], None],
) -> list[Verdict]:
    """Judge all faults; those judged so far, if Ctrl-C is pressed meanwhile."""
    modes = sorted({uncompiled(f) for f in faults if not known.kind(f)})
    if not plan.files:
        measure_reaches(plan, modes, show)
    crew: list[Worker] = []
    try:
        for number in range(1, workers + 1):
            crew.append(Worker(number))
        if plan.files:
            for off in modes:
                crew[0].refuse_red_tests(off, plan)
        return _judge(faults, known, uncompiled, plan, crew, show)
    finally:
        for worker in crew:
            worker.close()


def _judge(faults, known, uncompiled, plan, crew, show) -> list[Verdict]:
    queue, verdicts = list(enumerate(faults)), {}
    lock, stopped = threading.Lock(), threading.Event()

    def verdict_of(worker: Worker, fault: Fault) -> Verdict:
        if kind := known.kind(fault):
            return Verdict(fault, kind, "known.toml", 0, 0, 0.0)
        try:
            return worker.judge(fault, uncompiled(fault), plan)
        except Exception as error:
            return Verdict(fault, "error", f"{type(error).__name__}: {error}", 0, 0, 0.0)

    def work(worker: Worker) -> None:
        while not stopped.is_set():
            with lock:
                if not queue:
                    return
                place, fault = queue.pop(0)
            verdict = verdict_of(worker, fault)
            with lock:
                if not stopped.is_set():
                    verdicts[place] = verdict
                    show(verdict.line(len(verdicts), len(faults)))

    def work_and_tell(worker: Worker, done: threading.Event) -> None:
        try:
            work(worker)
        finally:
            done.set()

    # Events, since a join that Ctrl-C interrupts takes a thread for dead
    ends = [threading.Event() for _ in crew]
    for pair in zip(crew, ends, strict=True):
        threading.Thread(target=work_and_tell, args=pair).start()
    try:
        for end in ends:
            end.wait()
    except KeyboardInterrupt:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # what follows takes a moment
        stopped.set()
        for worker, end in zip(crew, ends, strict=True):
            while not end.wait(0.1):
                worker.end_servers()
    return [verdicts[k] for k in sorted(verdicts)]
