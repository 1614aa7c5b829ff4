"""Run the paper's experiments that are not stored; write docs/bench-paper.md and docs/paper.md."""

import argparse

from ..common import DOCS, machine_facts, note
from ..peers.__main__ import measure_task
from ..peers.datasets import is_real
from ..peers.solvers import PAPER_SOLVERS
from ..peers.store import FOLDER
from . import ledger, page
from .tasks import all_tasks, quick_tasks


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.paper", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few tasks")
    parser.add_argument("--only", metavar="TEXT", default="", help="tasks whose name has this")
    parser.add_argument("--write-only", action="store_true", help="the pages from what is stored")
    parser.add_argument("--fresh", metavar="HOURS", type=float, default=24.0, help="default 24")
    options = parser.parse_args()
    machine_facts()  # before the load that we make
    tasks = [t for t in (quick_tasks() if options.quick else all_tasks()) if options.only in t.name]
    if not tasks:
        parser.error(f"no task has {options.only!r} in its name")
    for data in dict.fromkeys(task.data for task in tasks):
        if not is_real(data):
            note(f"NESVM_DATA has no {data}: synthetic data instead")
    if not options.write_only:
        for i, task in enumerate(tasks, start=1):
            measure_task(task, f"[{i}/{len(tasks)}]", options.fresh, PAPER_SOLVERS)
    folder = FOLDER.parent if options.quick or options.only else DOCS
    outcomes = page.write(tasks, folder)
    ledger.write(outcomes, folder)


if __name__ == "__main__":
    main()
