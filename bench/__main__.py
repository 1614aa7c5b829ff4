"""A few tasks beside one peer each, in a few minutes: the page that `make bench` prints.

`--against FILE` compares with a stored result of this machine: times are taken as ratios to the
peer measured next to them, and a task that has become slower than noise explains fails.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path

from .common import machine_facts, note, table, write_whole
from .peers.curves import median, proven, short
from .peers.datasets import is_real, label
from .peers.solvers import BY_NAME
from .peers.store import FOLDER
from .peers.targets import ms
from .peers.tasks import Task, rbf
from .peers.worker import measure

STORED = FOLDER.parent / "quick.json"
TASKS = {
    Task("a9a", "csvm", 1.0): "LIBLINEAR",
    Task("a9a", "csvm", 100.0): "LIBLINEAR",
    Task("a9a", "csvm", 1.0, bias=True): "LinearSVC",
    Task("news20bydate halves", "csvm", 1.0): "LIBLINEAR",
    Task("a4a", "lpsvm", 1.0): "HiGHS",
    Task("a9a", "lssvm", 1.0): "RidgeClassifier",
    rbf("a4a", 1.0): "LIBSVM",
    rbf("scene15.gist512", 10.0): "SVC",
}
LEVEL = 1e-3
SLOWER = 1.5  # times: beyond what repeated runs of the same code differ by
TRIES = 3  # before a task counts as slower


def nearest(points: list[dict], best: float) -> dict | None:
    """The quickest point within LEVEL of the best objective, or else the nearest one."""
    close = [p for p in points if p["objective"] <= best * (1.0 + LEVEL)]
    if close:
        return min(close, key=median)
    return min(points, key=lambda p: p["objective"], default=None)


def run(task: Task, peer: str) -> dict | None:
    """Ours and its peer on a task; None when there is nothing to compare."""
    reason = BY_NAME[peer].missing(task)
    if reason is not None:
        note(f"{task.name}: {reason}, skipped")
        return None
    found = {name: measure(BY_NAME[name], task)[0] for name in ("nesvm-jit", peer)}
    if not all(found.values()):
        return None
    best = min(p["objective"] for points in found.values() for p in points)
    certified = [p for p in found["nesvm-jit"] if proven(p) <= LEVEL]
    if not certified:
        return None
    ours = min(certified, key=median)
    theirs = nearest(found[peer], best)
    assert theirs is not None
    return {
        "task": task.named(label(task.data)),
        "peer": peer,
        "ours": median(ours),
        "gap": proven(ours),
        "theirs": median(theirs),
        "off": theirs["objective"] / best - 1.0,
        "ratio": median(theirs) / median(ours),
    }


def measured() -> list[dict]:
    results = []
    for task, peer in TASKS.items():
        if not is_real(task.data):
            note(f"NESVM_DATA has no {task.data}: synthetic data instead")
        result = run(task, peer)
        if result:
            note(f"{result['task']}: {result['ratio']:.2f} × {peer}")
            results.append(result)
    return results


def summary(results: list[dict]) -> str:
    """One page."""
    rows = [
        (
            r["task"],
            ms(r["ours"]),
            short(r["gap"]),
            r["peer"],
            ms(r["theirs"]),
            f"{r['off']:.0e}",
            f"{r['ratio']:.2f}",
        )
        for r in results
    ]
    headers = ("problem", "ours, ms", "certified", "peer", "its ms", "its error", "times faster")
    facts = ", ".join(f"{k} {v}" for k, v in machine_facts().items())
    middle = statistics.geometric_mean([r["ratio"] for r in results]) if results else float("nan")
    return f"{table(rows, headers)}\n\ngeometric mean {middle:.2f} ×; {facts}"


def slower(results: list[dict], stored: list[dict]) -> list[str]:
    """A line for each task whose ratio to its peer has fallen beyond noise."""
    before = {r["task"]: r for r in stored}
    lines = []
    for r in results:
        old = before.get(r["task"])
        if old and r["ratio"] * SLOWER < old["ratio"]:
            lines.append(
                f"{r['task']}: {r['ratio']:.2f} × {r['peer']}, it was {old['ratio']:.2f} ×"
            )
    return lines


def compare(stored: list[dict]) -> int:
    """Measure, and again what looks slower, since a machine may be busy for a while."""
    suspects, lines = dict(TASKS), []
    for _ in range(TRIES):
        results = [r for task, peer in suspects.items() if (r := run(task, peer))]
        lines = slower(results, stored)
        named = {line.split(":")[0] for line in lines}
        suspects = {t: p for t, p in suspects.items() if t.named(label(t.data)) in named}
        if not suspects:
            print(f"no task is slower than {SLOWER} × what was stored")
            return 0
    print("\n".join(["slower:", *lines]))
    return 1


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--against", metavar="FILE", type=Path, help="compare instead of storing")
    options = parser.parse_args()
    machine_facts()  # before the load that we make
    if options.against:
        try:
            stored = json.loads(options.against.read_text())["results"]
        except (OSError, ValueError, KeyError) as error:
            print(f"{options.against} must be a result of make bench: {error}", file=sys.stderr)
            return 1
        return compare(stored)
    results = measured()
    text = json.dumps({"machine": machine_facts(), "results": results}, indent=1) + "\n"
    write_whole(STORED, lambda f: f.write(text.encode()))
    print(summary(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
