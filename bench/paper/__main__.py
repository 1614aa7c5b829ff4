"""Run the paper's experiments that are not stored; write docs/bench-paper.md and docs/paper.md."""

from ..peers.__main__ import measured
from ..peers.solvers import PAPER_SOLVERS
from . import ledger, page
from .tasks import all_tasks, quick_tasks


def main() -> None:
    tasks, folder = measured("bench.paper", __doc__, all_tasks(), quick_tasks(), PAPER_SOLVERS)
    ledger.write(page.write(tasks, folder), folder)


if __name__ == "__main__":
    main()
