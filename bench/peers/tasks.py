"""The problems that are timed."""

from dataclasses import dataclass

COSTS = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)
TEXT_COSTS = (0.01, 0.1, 1.0, 10.0, 100.0)
DENSE_COSTS = (0.01, 1.0)
LP_COSTS = (0.1, 1.0, 10.0)
TABLES = ("a9a", "w8a", "ijcnn1")
TEXTS = ("news20bydate halves", "news20bydate one class")
LP_DATA = ("a1a", "a4a", "a6a", "a9a")
PARTS = ("a1a", "a2a", "a3a", "a4a", "a5a", "a6a")
COPIES = (1, 4, 16, 64)  # of a9a, one below the other, at C divided by their number
VISION = ("usps", "scene15.gist512", "mnist, 10 000 rows")
VISION_COSTS = (1.0, 100.0)
CACHE_MB = 1000.0
SAMPLED = (1.0, 1e2)  # the C at which slow peers run too
MODELS = {"csvm": "C-SVM", "lpsvm": "LP-SVM", "lssvm": "LS-SVM"}


@dataclass(frozen=True)
class Task:
    """A problem by name: data set, model, C, kernel, bias, and whether it starts from a file."""

    data: str
    model: str
    C: float
    bias: bool = False
    from_file: bool = False
    kernel: str = "linear"
    grows: bool = False  # it shows how time grows with the rows, without rivals
    cache_mb: float | None = None  # the memory for kernel rows, where that is the point
    paper: bool = False  # one run of each solver with the paper's settings

    @property
    def group(self) -> str:
        """The table that the task belongs to."""
        kind = MODELS[self.model] + ("" if self.kernel == "linear" else f", {self.kernel}")
        bias = "with bias" if self.bias else "without bias"
        more = ", from file to model" if self.from_file else ", growing" if self.grows else ""
        more += "" if self.cache_mb is None else f", {self.cache_mb:g} MB for kernel rows"
        more += ", as in the paper" if self.paper else ""
        return f"{kind} {bias}{more}"

    @property
    def name(self) -> str:
        return self.named(self.data)

    def named(self, data: str) -> str:
        """The task's name with another name of its data."""
        return f"{self.group}, {data}, C = {self.C:g}"


def copies_of_a9a(k: int) -> Task:
    """The same problem with k times the rows."""
    return Task(f"a9a × {k}", "csvm", 1.0 / k, grows=True) if k > 1 else Task("a9a", "csvm", 1.0)


def part_of_a9a(data: str) -> Task:
    """A smaller problem of the same kind."""
    return Task(data, "csvm", 1.0, grows=True)


def rbf(data: str, C: float, **more) -> Task:
    """γ = 1/features, with bias; of several classes one against one."""
    return Task(data, "csvm", C, bias=True, kernel="rbf", **more)


def all_tasks() -> list[Task]:
    """Everything on the page, in its order."""
    tasks = [
        *(Task(data, "csvm", C) for data in TABLES for C in COSTS),
        *(Task(data, "csvm", C) for data in TEXTS for C in TEXT_COSTS),
        *(Task("mnist", "csvm", C) for C in DENSE_COSTS),
        *(Task(data, "csvm", C, bias=True) for data in TABLES for C in (0.01, 1.0, 100.0)),
        *(Task(data, "csvm", 1.0, bias=True) for data in (*TEXTS, "mnist")),
        *(Task(data, "lpsvm", C) for data in LP_DATA for C in LP_COSTS),
        *(Task(data, "lssvm", C) for data in ("a9a", "mnist", TEXTS[0]) for C in DENSE_COSTS),
        *(part_of_a9a(data) for data in PARTS),
        *(copies_of_a9a(k) for k in COPIES),
        *(Task(data, "csvm", 1.0, from_file=True) for data in (*TABLES, TEXTS[0], "mnist")),
        *(rbf("a6a", C) for C in COSTS),
        *(rbf(data, C) for data in VISION for C in VISION_COSTS),
        rbf("ijcnn1", 1.0, cache_mb=CACHE_MB),
    ]
    return list(dict.fromkeys(tasks))


def quick_tasks() -> list[Task]:
    """A small task of every kind."""
    return [
        Task("a1a", "csvm", 1.0),
        Task("a1a", "csvm", 1.0, bias=True),
        Task("a1a", "lpsvm", 1.0),
        Task("a1a", "lssvm", 1.0),
        Task("a1a", "csvm", 1.0, from_file=True),
        rbf("a1a", 1.0),
    ]
