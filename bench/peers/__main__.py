"""Measure what is not stored yet, then write docs/benchmarks.md (of a part: build/bench)."""

import argparse
import sys

from .. import selection
from ..common import DOCS, machine_facts, note
from . import page, prediction
from .curves import median
from .datasets import is_real
from .solvers import REFERENCE, SOLVERS
from .store import FOLDER, load, save
from .tasks import Task, all_tasks, quick_tasks
from .worker import measure


def measure_task(task: Task, number: str, hours: float, among) -> None:
    """Ours and all peers next to each other: all again when the result of one is missing."""
    solvers = [REFERENCE]
    for solver in among:
        reason = solver.missing(task)
        if reason is None:
            solvers.append(solver)
        elif "installed" in reason:
            note(f"{number} {task.name}: {reason}, skipped")
    if all(load(task, solver, hours) for solver in solvers):
        note(f"{number} {task.name}: stored")
        return
    for solver in solvers:
        points, notice = measure(solver, task)
        save(task, solver, points, notice)
        times = ", ".join(f"{1e3 * median(p):.3g}" for p in points)
        end = f" ({notice})" if notice else ""
        note(f"{number} {task.name}: {solver.NAME} {times} ms{end}")


def measured(name: str, description: str | None, everything, some, among=SOLVERS):
    """Measure what the command line asks for; returns the tasks and the folder of their pages."""
    parser = argparse.ArgumentParser(prog=f"python -m {name}", description=description)
    parser.add_argument("--quick", action="store_true", help="a few small tasks")
    parser.add_argument("--only", metavar="TEXT", default="", help="tasks whose name has this")
    parser.add_argument("--write-only", action="store_true", help="the page from what is stored")
    parser.add_argument(
        "--fresh",
        metavar="HOURS",
        type=float,
        default=24.0,
        help="measure again what is older than this (default 24; 0: everything)",
    )
    options = parser.parse_args()
    machine_facts()  # before the load that we make
    tasks = some if options.quick else everything
    tasks = [task for task in tasks if options.only in task.name]
    if not tasks:
        parser.error(f"no task has {options.only!r} in its name")
    for data in dict.fromkeys(task.data for task in tasks):
        if not is_real(data):
            note(f"NESVM_DATA has no {data}: synthetic data instead")
    if not options.write_only:
        for i, task in enumerate(tasks, start=1):
            measure_task(task, f"[{i}/{len(tasks)}]", options.fresh, among)
    return tasks, FOLDER.parent if options.quick or options.only else DOCS


def main() -> None:
    tasks, folder = measured("bench.peers", __doc__, all_tasks(), quick_tasks())
    if folder == DOCS and "--write-only" not in sys.argv:
        prediction.measure()
        selection.measure()
    page.write(tasks, folder)


if __name__ == "__main__":
    main()
