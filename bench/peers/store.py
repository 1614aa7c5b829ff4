"""Measurements on disk: one JSON file per task and solver."""

import importlib.metadata
import json
import re
import time

from ..common import RESULTS, machine_facts, write_whole
from .datasets import label
from .tasks import Task

FOLDER = RESULTS / "peers"


def _slug(text: str) -> str:
    return re.sub(r"[^\w.]+", "-", text).strip("-")


def _path(task: Task, solver):
    return FOLDER / f"{_slug(task.named(label(task.data)))}--{_slug(solver.NAME)}.json"


def version(package: str) -> str:
    """The installed version of a package."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "of unknown version"


def save(task: Task, solver, points: list[dict], notice: str | None) -> None:
    """Keep the points of a curve, and why it ends early if it does."""
    result = {
        "task": task.named(label(task.data)),
        "data": label(task.data),
        "solver": solver.NAME,
        "package": solver.PACKAGE,
        "version": version(solver.PACKAGE),
        "time": time.time(),
        "machine": machine_facts(),
        "notice": notice,
        "points": points,
    }
    text = json.dumps(result, indent=1, ensure_ascii=False) + "\n"
    write_whole(_path(task, solver), lambda f: f.write(text.encode()))


def load(task: Task, solver, hours: float = float("inf")) -> dict | None:
    """What was measured at most so many hours ago, or None."""
    try:
        result = json.loads(_path(task, solver).read_text())
    except (FileNotFoundError, ValueError):
        return None
    return result if time.time() - result["time"] <= 3600 * hours else None
