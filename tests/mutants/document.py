"""The scores in docs/mutants.md, written from stored runs."""

import json
import re
import subprocess
from pathlib import Path

from .known import FILE, KINDS, tomllib
from .trees import BUILD, ROOT

PAGE = ROOT / "docs" / "mutants.md"
MEASURED = re.compile(r"(?<=writes this -->\n).*(?=<!-- end -->)", re.DOTALL)


def scores(runs: dict[int, list[dict]], commit: str) -> str:
    """Noticed of those that count, by folder, for each seed."""
    folders = sorted({_folder(v) for run in runs.values() for v in run})
    lines = [f"Commit {commit}: noticed of those that count.\n"]
    lines.append("| folder | " + " | ".join(f"seed {seed}" for seed in runs) + " |")
    lines.append("|---|" + "---|" * len(runs))
    for folder in [*folders, "all"]:
        cells = [_cell([v for v in run if folder in ("all", _folder(v))]) for run in runs.values()]
        lines.append(f"| {folder} | " + " | ".join(cells) + " |")
    entries = tomllib.loads(FILE.read_text()).get("fault", [])
    same, slower = (sum(e["kind"] == kind for e in entries) for kind in KINDS)
    lines.append(f"\nknown.toml holds {same} faults that change nothing, {slower} that cost time.")
    return "\n".join(lines) + "\n"


def write(seeds: list[int]) -> Path:
    """Bring the page up to date with the runs of these seeds."""
    runs = {seed: json.loads((BUILD / f"seed-{seed}.json").read_text()) for seed in seeds}
    text = scores(runs, _commit())
    PAGE.write_text(MEASURED.sub(lambda _: text, PAGE.read_text()))
    return PAGE


def _folder(verdict: dict) -> str:
    return Path(verdict["path"]).parts[1].removesuffix(".py")


def _cell(verdicts: list[dict]) -> str:
    outcomes = [v["outcome"] for v in verdicts]
    noticed, survived = outcomes.count("noticed"), outcomes.count("survived")
    counted = noticed + survived
    return f"{noticed} of {counted} ({100 * noticed / counted:.0f} %)" if counted else "–"


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return found.stdout.strip()
