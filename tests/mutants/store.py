"""Runs that are kept in build/mutants: what was asked for, and every verdict."""

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import get_origin

from .errors import MutantsError
from .faults import Fault
from .known import KINDS
from .report import Verdict
from .trees import write_whole

SAMPLE = 100  # faults of a whole sample; fewer say little of the package
BUDGET = 40.0  # seconds of tests that a fault of a whole sample has
KEY = ("path", "function", "before", "after", "occurrence")  # what a fault is found again by
READ = {*KEY, "line", "outcome"}  # what is read of a stored verdict


@dataclass(frozen=True)
class Request:
    """What a run was asked for, and the commit it was asked at."""

    commit: str
    seed: int
    count: int
    only: str
    tests: list[str]
    budget: float
    stale: bool
    again: str  # the stored run whose survivors are judged again
    at: str  # a line, all of whose faults are judged
    drawn: int  # faults to be judged
    known: dict[str, int]  # entries of known.toml, by kind

    def shortfall(self, verdicts: list[dict]) -> str:
        """What is missing from a whole sample of the package, judged by all tests; nothing if it
        is one."""
        errors = sum(v["outcome"] == "error" for v in verdicts)
        lacks = {
            "some faults judged again": bool(self.again or self.at),
            f"only {self.only}": bool(self.only),
            f"{self.count} faults, not {SAMPLE}": self.count < SAMPLE,
            f"{len(verdicts)} of {self.drawn} faults judged": len(verdicts) < self.drawn,
            f"the tests of {' '.join(self.tests)} alone": bool(self.tests),
            f"a budget of {self.budget:g} s, not {BUDGET:g}": self.budget < BUDGET,
            "the reach of other sources": self.stale,
            f"{errors} errors": errors > 0,
        }
        return ", ".join(words for words, lacking in lacks.items() if lacking)

    def name(self, verdicts: list[dict]) -> str:
        """Of the file: no part of a sample has the name of the whole, nor has a run of survivors
        that was stopped the name of one that was not."""
        if self.again or self.at:
            name, partial = "again", len(verdicts) < self.drawn
        else:
            only = self.only.strip("/").replace("/", "-")
            name = f"seed-{self.seed}" + (f"-{only}" if only else "")
            partial = bool(self.shortfall(verdicts))
        return name + ("-partial" if partial else "") + ".json"


def store(folder: Path, request: Request, verdicts: list[Verdict]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    kept = [v.asdict() for v in verdicts]
    path = folder / request.name(kept)
    write_whole(path, json.dumps({"request": asdict(request), "verdicts": kept}, indent=1))
    return path


def load(path: Path) -> tuple[Request, list[dict]]:
    """What was asked for, and the verdicts."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        request, verdicts = Request(**kept["request"]), kept["verdicts"]
    except OSError as error:
        raise MutantsError(f"{path}: {error.strerror}") from None
    except (ValueError, TypeError, KeyError):
        raise MutantsError(f"{path}: not a stored run") from None
    if not _is_whole(request, verdicts):
        raise MutantsError(f"{path}: not a stored run")
    return request, verdicts


def _is_whole(request: Request, verdicts: list) -> bool:
    """Whether everything that is read of a stored run is there, and what it should be."""
    return (
        all(
            isinstance(getattr(request, f.name), get_origin(f.type) or f.type)
            for f in fields(request)
        )  # type: ignore[arg-type]
        and set(KINDS) <= request.known.keys()
        and isinstance(verdicts, list)
        and all(isinstance(v, dict) and v.keys() >= READ for v in verdicts)
    )


def survivors(path: Path, faults: list[Fault]) -> tuple[list[Fault], list[str]]:
    """The survivors of an earlier run, wherever their lines are now, and those that are nowhere,
    each in one line."""
    there = {tuple(getattr(f, k) for k in KEY): f for f in faults}
    old = [v for v in load(path)[1] if v["outcome"] in ("survived", "error")]
    if not old:
        raise MutantsError(f"{path}: no survivors")
    keys = [tuple(v[k] for k in KEY) for v in old]
    lost = [
        f"{v['path']}:{v['line']} in {v['function'] or 'the module'}: {v['before']} → {v['after']}"
        for v, key in zip(old, keys, strict=True)
        if key not in there
    ]
    return [there[key] for key in keys if key in there], lost
