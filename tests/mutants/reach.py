"""Which tests reach which line, by coverage: once compiled, once with compilation off."""

import ast
import fcntl
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from .errors import MutantsError
from .faults import Fault
from .trees import BUILD, ROOT, environment, files, last_line

BATCH = 1.0  # seconds of tests of one file before another file has its turn


@dataclass
class Reach:
    """The tests that pass, how long each takes, and the lines of the package each runs."""

    tests: list[str]
    seconds: list[float]
    lines: dict[str, dict[int, int]]  # by file and line, a set of tests as bits
    failed: list[str] = field(default_factory=list)  # tests left out: they fail on unchanged code

    def of_lines(self, path: str, lines) -> int:
        table, found = self.lines.get(path, {}), 0
        for line in lines:
            found |= table.get(line, 0)
        return found

    def members(self, bits: int) -> list[int]:
        return [k for k in range(bits.bit_length()) if bits >> k & 1]


def measure(tree: Path, pure: bool, stale: bool = False) -> Reach:
    """The reach of every test; kept until a file changes that a test may read (sources, tests,
    documents, settings), or even then if `stale`."""
    name = "pure" if pure else "compiled"
    store, folder = BUILD / f"reach-{name}.json", BUILD / f"reach-{name}"
    folder.mkdir(parents=True, exist_ok=True)
    with (BUILD / f"reach-{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another run may be measuring the same
        key = _fingerprint()
        if store.exists():
            kept = json.loads(store.read_text())
            if stale or kept["key"] == key:
                return _read(kept)
        kept = {"key": key, **_measured(tree, pure, folder)}
        store.write_text(json.dumps(kept))
    return _read(kept)


def _measured(tree: Path, pure: bool, folder: Path) -> dict:
    """What the tests reach, by running them all."""
    for old in folder.iterdir():
        old.unlink()
    config = folder / "coverage.ini"
    config.write_text(
        "[run]\nbranch = false\nparallel = true\nsigterm = true\n"
        f"source = {tree / 'nesvm_jit'}\ndata_file = {folder / 'data'}\n"
        "context = ${PYTEST_CURRENT_TEST-}\n"
    )
    env = environment(tree, pure) | {"MUTANTS_REACH": str(config)}
    marks = "pure and not slow" if pure else "not slow"
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", "-m", marks]
    command += ["-o", "addopts=", "-p", "tests.mutants.watching", "-p", "no:cacheprovider"]
    code = _run_to_the_end(command, tree, env, folder / "log")
    if code not in (0, 1):  # 1: some tests failed; they are left out
        said = last_line((folder / "log").read_text())
        raise MutantsError(
            f"the tests cannot be run, pytest ended with {code}: {said} ({folder}/log)"
        )
    return _collect(tree, folder)


def _run_to_the_end(command: list[str], tree: Path, env: dict, log: Path) -> int:
    """Run a command in a session of its own, all of which ends when we are interrupted."""
    with log.open("w") as out:
        process = subprocess.Popen(
            command, cwd=tree, env=env, stdout=out, stderr=out, start_new_session=True
        )
        try:
            return process.wait()
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise


def _fingerprint() -> str:
    h = hashlib.sha256()
    for file in files():
        if not file.startswith("tests/mutants/"):
            h.update(file.encode() + b"\0" + (ROOT / file).read_bytes() + b"\0")
    return h.hexdigest()


def _read(kept: dict) -> Reach:
    lines = {
        path: {int(line): int(bits, 16) for line, bits in table.items()}
        for path, table in kept["lines"].items()
    }
    return Reach(kept["tests"], kept["seconds"], lines, kept.get("failed", []))


def _collect(tree: Path, folder: Path) -> dict:
    """What the processes of one measurement left behind."""
    from coverage import CoverageData

    seconds: dict[str, float] = {}
    for path in folder.glob("tests-*.json"):
        seconds |= json.loads(path.read_text())
    failed = [t for path in folder.glob("failed-*.json") for t in json.loads(path.read_text())]
    tests = sorted(seconds)
    number = {test: k for k, test in enumerate(tests)}
    of_file: dict[str, int] = defaultdict(int)
    for test, k in number.items():
        of_file[test.split("::")[0]] |= 1 << k
    lines: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for path in folder.glob("data*"):
        data = CoverageData(str(path))
        data.read()
        for file in data.measured_files():
            table = lines[Path(file).relative_to(tree).as_posix()]
            for line, contexts in data.contexts_by_lineno(file).items():
                for context in contexts:
                    test, phase = _place(context)
                    if phase == "setup":  # a process that serves all tests of the file
                        table[line] |= of_file[test.split("::")[0]]
                    elif test in number:
                        table[line] |= 1 << number[test]
    return {
        "tests": tests,
        "failed": sorted(failed),
        "seconds": [seconds[t] for t in tests],
        "lines": {p: {n: f"{bits:x}" for n, bits in t.items()} for p, t in lines.items()},
    }


def _place(context: str) -> tuple[str, str]:
    """A test, and the phase of it that PYTEST_CURRENT_TEST told another process."""
    found = re.fullmatch(r"(.*) \((setup|call|teardown)\)", context)
    return (found[1], found[2]) if found else (context, "")


# ---------------------------------------------------------------- the tests of a fault


def nearest(fault: Fault, reach: Reach, budget: float) -> tuple[list[int], int]:
    """The tests to run, nearest first, as many as the budget allows, and how many there are.

    A few of each file in turn, the shortest first, so that every kind of test has its say early.
    """
    found = reach.members(_reached(fault, reach))
    queues: dict[str, list[int]] = defaultdict(list)
    for k in sorted(found, key=lambda k: reach.seconds[k]):
        queues[reach.tests[k].split("::")[0]].append(k)
    waiting = sorted(queues.values(), key=lambda q: -_affinity(fault, reach.tests[q[0]]))
    chosen: list[int] = []
    spent = 0.0
    while waiting and spent < budget:
        for queue in waiting:
            batch = 0.0
            while queue and batch < BATCH and spent < budget:
                k = queue.pop(0)
                chosen.append(k)
                batch += reach.seconds[k]
                spent += reach.seconds[k]
        waiting = [queue for queue in waiting if queue]
    return chosen, len(found)


def _affinity(fault: Fault, test: str) -> int:
    """Words that the names of the two files share."""
    mine = set(fault.path.removesuffix(".py").replace("/", "_").split("_"))
    theirs = set(test.split("::")[0].removesuffix(".py").split("/")[-1].split("_"))
    return len({w.rstrip("s") for w in mine} & {w.rstrip("s") for w in theirs})


def _reached(fault: Fault, reach: Reach) -> int:
    last = fault.line + fault.n_lines - 1
    bits = reach.of_lines(fault.path, range(fault.line, last + 1))
    if bits and not fault.at_import:  # else the test that imports the module first has run it
        return bits
    tree = ast.parse((ROOT / fault.path).read_text())
    around = [n for n in ast.walk(tree) if isinstance(n, ast.stmt)]
    around = [n for n in around if n.lineno <= fault.line <= (n.end_lineno or 0)]
    functions = [n for n in around if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
    if functions:  # a default, or a line that coverage counts with another
        body = functions[-1].body
        inner = [n for n in around if n is not functions[-1] and n in ast.walk(functions[-1])]
        for node in [*reversed(inner)]:
            if bits := reach.of_lines(fault.path, range(node.lineno, (node.end_lineno or 0) + 1)):
                return bits
        if inner:  # a statement that nothing runs
            return 0
        return reach.of_lines(fault.path, range(body[0].lineno, (body[-1].end_lineno or 0) + 1))
    names = {
        n.id if isinstance(n, ast.Name) else n.attr
        for statement in around
        if isinstance(statement, (ast.Assign, ast.AnnAssign))
        for target in getattr(statement, "targets", [getattr(statement, "target", None)])
        for n in ast.walk(target)
        if isinstance(n, (ast.Name, ast.Attribute))
    }
    for path, table in reach.lines.items():
        used = _lines_naming(path, names)
        bits |= reach.of_lines(path, used & table.keys())
    return bits or reach.of_lines(fault.path, reach.lines.get(fault.path, {}))


def _lines_naming(path: str, names: set[str]) -> set[int]:
    """Lines inside functions of a file that use one of the names; a default is used by all lines of
    its function."""
    tree = ast.parse((ROOT / path).read_text())
    used: set[int] = set()
    for node in (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)):
        used |= {inner.lineno for inner in ast.walk(node) if _named(inner) in names}
        defaults = [d for d in (*node.args.defaults, *node.args.kw_defaults) if d is not None]
        if any(_named(inner) in names for d in defaults for inner in ast.walk(d)):
            used |= {*range(node.body[0].lineno, (node.body[-1].end_lineno or 0) + 1)}
    return used


def _named(node: ast.AST) -> str | None:
    """What a name, an attribute or an argument by name is called."""
    if isinstance(node, ast.Name):
        return node.id
    return getattr(node, "attr", None) or (node.arg if isinstance(node, ast.keyword) else None)
