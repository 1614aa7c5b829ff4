"""The problems that are timed."""

from dataclasses import dataclass

COSTS = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)
TEXT_COSTS = (0.01, 0.1, 1.0, 10.0, 100.0)
DENSE_COSTS = (0.01, 1.0)
LP_COSTS = (0.1, 1.0, 10.0)
TABLES = ("a9a", "w8a", "ijcnn1")
TEXTS = ("news20bydate halves", "news20bydate one class")
LP_DATA = ("a1a", "a4a", "a6a")
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

    @property
    def group(self) -> str:
        """The table that the task belongs to."""
        kind = MODELS[self.model] + ("" if self.kernel == "linear" else f", {self.kernel}")
        bias = "with bias" if self.bias else "without bias"
        return f"{kind} {bias}" + (", from file to model" if self.from_file else "")

    @property
    def name(self) -> str:
        return self.named(self.data)

    def named(self, data: str) -> str:
        """The task's name with another name of its data."""
        return f"{self.group}, {data}, C = {self.C:g}"


def all_tasks() -> list[Task]:
    """Everything on the page, in its order."""
    return [
        *(Task(data, "csvm", C) for data in TABLES for C in COSTS),
        *(Task(data, "csvm", C) for data in TEXTS for C in TEXT_COSTS),
        *(Task("mnist", "csvm", C) for C in DENSE_COSTS),
        *(Task(data, "csvm", C, bias=True) for data in TABLES for C in (0.01, 1.0, 100.0)),
        *(Task(data, "csvm", 1.0, bias=True) for data in (*TEXTS, "mnist")),
        *(Task(data, "lpsvm", C) for data in LP_DATA for C in LP_COSTS),
        *(Task(data, "lssvm", C) for data in ("a9a", "mnist", TEXTS[0]) for C in DENSE_COSTS),
        *(Task(data, "csvm", 1.0, from_file=True) for data in (*TABLES, TEXTS[0], "mnist")),
    ]


def quick_tasks() -> list[Task]:
    """A small task of every kind."""
    return [
        Task("a1a", "csvm", 1.0),
        Task("a1a", "csvm", 1.0, bias=True),
        Task("a1a", "lpsvm", 1.0),
        Task("a1a", "lssvm", 1.0),
        Task("a1a", "csvm", 1.0, from_file=True),
    ]
