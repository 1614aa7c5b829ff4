"""Put faults into the package one at a time and see whether the tests notice.

python -m tests.mutants --seed 1                     a sample of the whole package
python -m tests.mutants --seed 1 --only kernels/     of a part of it
python -m tests.mutants --at nesvm_jit/matrix/rows.py:20  every fault of one line
python -m tests.mutants --again build/mutants/seed-1.json --tests tests/test_solve.py
                                                     its survivors, against the tests of some files
python -m tests.mutants --document 1 2               the scores of two seeds in docs/mutants.md
"""

import argparse
import json
import random
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from .document import write
from .faults import Fault, all_faults
from .known import Known, entry
from .reach import Reach, measure, nearest
from .report import Verdict, page
from .trees import BUILD, ROOT, environment, make_tree, with_fault


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
            return {"files": self.files, "tests": [], "seconds": []}, 0
        reach = self.reaches[pure]
        chosen, reaching = nearest(fault, reach, self.budget)
        tests = [reach.tests[k] for k in chosen]
        files = sorted({t.split("::")[0] for t in tests})
        seconds = [reach.seconds[k] for k in chosen]
        return {"files": files, "tests": tests, "seconds": seconds}, reaching


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
            )
            self.servers[pure].stdout.readline()  # type: ignore[union-attr]
        return self.servers[pure]

    def judge(self, fault: Fault, pure: bool, plan: Plan) -> Verdict:
        """Whether a test notices the fault."""
        job, reaching = plan.job(fault, pure)
        if not job["files"]:
            return Verdict(fault, "survived", "no test reaches it", 0, 0, 0.0)
        job["log"] = str(self.tree / "log")
        with with_fault(self.tree, fault):
            server = self.server(pure)
            assert server.stdin
            assert server.stdout
            server.stdin.write(json.dumps(job) + "\n")
            server.stdin.flush()
            said = json.loads(server.stdout.readline())
        return Verdict(fault, reaching=reaching, **said)

    def close(self) -> None:
        for server in self.servers.values():
            server.terminate()
            server.wait()
        shutil.rmtree(self.tree, ignore_errors=True)


def drawn(faults: list[Fault], seed: int, count: int) -> list[Fault]:
    """A sample: lines first, then one fault of each, so that no table of numbers crowds it."""
    by_line: dict[tuple, list[Fault]] = {}
    for fault in faults:
        by_line.setdefault((fault.path, fault.line), []).append(fault)
    rng = random.Random(seed)
    lines = rng.sample(sorted(by_line), min(count, len(by_line)))
    return [rng.choice(by_line[line]) for line in lines]


def uncompiled(fault: Fault, read_by_compiled_code: dict[str, set[str]]) -> bool:
    """Whether it is run with compilation off: in compiled functions, and in constants that they
    read."""
    if fault.compiled or fault.function:
        return fault.compiled
    names = fault.before.split("=")[0].split(":")[0].split(",")
    return any(name.strip() in read_by_compiled_code.get(fault.path, ()) for name in names)


def words_of_compiled_code(faults: list[Fault]) -> dict[str, set[str]]:
    """By file, every word of the lines inside its compiled functions."""
    words: dict[str, set[str]] = {}
    for fault in faults:
        if fault.compiled:
            words.setdefault(fault.path, set()).update(re.findall(r"\w+", fault.before))
    return words


def run(
    faults: list[Fault], pure: Callable, plan: Plan, workers: int, show: Callable
) -> list[Verdict]:
    """Judge all faults, as many at a time as there are workers."""
    known = Known()
    if not plan.files:
        tree = make_tree("tree-0")
        for off in sorted({pure(f) for f in faults}):
            started = time.monotonic()
            plan.reaches[off] = measure(tree, off, plan.stale)
            name, seconds = "uncompiled" if off else "compiled", time.monotonic() - started
            show(f"{len(plan.reaches[off].tests)} {name} tests, reach measured in {seconds:.0f} s")
        shutil.rmtree(tree, ignore_errors=True)
    queue, verdicts, lock = list(enumerate(faults)), {}, threading.Lock()

    def work(number: int) -> None:
        worker = Worker(number)
        while True:
            with lock:
                if not queue:
                    break
                place, fault = queue.pop(0)
            if kind := known.kind(fault):
                verdict = Verdict(fault, kind, "known.toml", 0, 0, 0.0)
            else:
                verdict = worker.judge(fault, pure(fault), plan)
            with lock:
                verdicts[place] = verdict
                show(verdict.line(len(verdicts), len(faults)))
        worker.close()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, workers + 1)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return [verdicts[k] for k in sorted(verdicts)]


def survivors(stored: Path, faults: list[Fault]) -> list[Fault]:
    """The survivors of an earlier run, wherever their lines are now."""
    by_text = {(f.path, f.function, f.before, f.after): f for f in faults}
    old = [v for v in json.loads(stored.read_text()) if v["outcome"] in ("survived", "error")]
    keys = [tuple(v[k] for k in ("path", "function", "before", "after")) for v in old]
    return [by_text[key] for key in keys if key in by_text]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="make mutants", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample")
    parser.add_argument("--count", type=int, default=100, help="number of faults drawn")
    parser.add_argument("--only", default="", help="draw from paths that contain this")
    parser.add_argument("--budget", type=float, default=40.0, help="seconds of tests for a fault")
    parser.add_argument("--at", default="", help="PATH:LINE, every fault of a line")
    parser.add_argument("--again", type=Path, help="survivors of an earlier run")
    parser.add_argument("--workers", type=int, default=2, help="faults judged at a time")
    parser.add_argument("--stale", action="store_true", help="take the reach measured last")
    parser.add_argument("--tests", nargs="*", default=[], help="run the tests of these files")
    parser.add_argument("--document", nargs="+", type=int, help="seeds of runs to write a page of")
    args = parser.parse_args()
    if args.document:
        print(write(args.document))
        return
    faults = all_faults(ROOT)
    words = words_of_compiled_code(faults)
    if args.at:
        path, _, line = args.at.rpartition(":")
        chosen = [f for f in faults if f.path == path and f.line == int(line)]
    elif args.again:
        chosen = survivors(args.again, faults)
    else:
        chosen = drawn([f for f in faults if args.only in f.path], args.seed, args.count)
    started = time.monotonic()
    plan = Plan(args.budget, args.tests, args.stale)
    verdicts = run(
        chosen,
        lambda f: uncompiled(f, words),
        plan,
        args.workers,
        lambda text: print(text, flush=True),
    )
    print(page(verdicts, args.seed, time.monotonic() - started))
    name = "again" if args.again or args.at else f"seed-{args.seed}"
    stored = BUILD / f"{name}{args.only.strip('/').replace('/', '-')}.json"
    stored.write_text(json.dumps([v.asdict() for v in verdicts], indent=1))
    left = [entry(v.fault) for v in verdicts if v.outcome == "survived"]
    stored.with_suffix(".toml").write_text("\n".join(left))


if __name__ == "__main__":
    main()
