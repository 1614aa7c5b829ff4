"""The paper's experiments, or the nearest that public data allow."""

from ..peers.tasks import COSTS, PARTS, Task

VISION = ("scene13.gist512", "usps", "mnist, 3 000 rows")
SIZES_COST = 1.0  # C at which the sets are compared
COSTS_SET = PARTS[-1]  # the set on which the C are


def linear(data: str, C: float) -> Task:
    """Census income categorisation: a linear C-SVM."""
    return Task(data, "csvm", C, paper=True)


def rbf(data: str, C: float) -> Task:
    """A vision set: RBF with γ = 1/features, one against one, with bias."""
    return Task(data, "csvm", C, bias=True, kernel="rbf", paper=True)


def all_tasks() -> list[Task]:
    """Everything on the page, in its order."""
    tasks = [
        *(linear(COSTS_SET, C) for C in COSTS),
        *(linear(data, SIZES_COST) for data in PARTS),
        *(rbf(data, C) for data in VISION for C in COSTS),
    ]
    return list(dict.fromkeys(tasks))


def quick_tasks() -> list[Task]:
    """A few."""
    return [*(linear("a1a", C) for C in (0.1, 1.0)), rbf(VISION[0], 1.0)]
