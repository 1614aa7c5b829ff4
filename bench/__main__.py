"""A few tasks beside one peer each, in a few minutes: the page that `make bench` prints."""

import json
import statistics

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


def main() -> None:
    machine_facts()  # before the load that we make
    results = measured()
    text = json.dumps({"machine": machine_facts(), "results": results}, indent=1) + "\n"
    write_whole(STORED, lambda f: f.write(text.encode()))
    print(summary(results))


if __name__ == "__main__":
    main()
