"""The scores in docs/mutants.md, written from stored runs."""

import re
from pathlib import Path

from .errors import MutantsError
from .known import KINDS
from .store import Request, load
from .trees import BUILD, ROOT, write_whole

PAGE = ROOT / "docs" / "mutants.md"
MEASURED = re.compile(r"(?<=writes this -->\n).*(?=<!-- end -->)", re.DOTALL)


def scores(requests: list[Request], runs: dict[int, list[dict]]) -> str:
    """Noticed of those that count, by folder, for each seed."""
    folders = sorted({_folder(v) for run in runs.values() for v in run})
    commits = [*dict.fromkeys(request.commit for request in requests)]
    word = "Commit" if len(commits) == 1 else "Commits"
    lines = [f"{word} {', '.join(commits)}: noticed of those that count.\n"]
    lines.append("| folder | " + " | ".join(f"seed {seed}" for seed in runs) + " |")
    lines.append("|---|" + "---|" * len(runs))
    for folder in [*folders, "all"]:
        cells = [_cell([v for v in run if folder in ("all", _folder(v))]) for run in runs.values()]
        lines.append(f"| {folder} | " + " | ".join(cells) + " |")
    same, slower = (requests[-1].known[kind] for kind in KINDS)
    lines.append(f"\nknown.toml holds {same} faults that change nothing, {slower} that cost time.")
    return "\n".join(lines) + "\n"


def write(seeds: list[int]) -> Path:
    """Bring the page up to date with the runs of these seeds."""
    found = {seed: load(BUILD / f"seed-{seed}.json") for seed in seeds}
    for seed, (request, verdicts) in found.items():
        if lack := request.shortfall(verdicts):
            raise MutantsError(f"seed {seed} is not a whole sample: {lack}")
    requests = [request for request, _ in found.values()]
    text = scores(requests, {seed: verdicts for seed, (_, verdicts) in found.items()})
    write_whole(PAGE, MEASURED.sub(lambda _: text, PAGE.read_text(encoding="utf-8")))
    return PAGE


def _folder(verdict: dict) -> str:
    return Path(verdict["path"]).parts[1].removesuffix(".py")


def _cell(verdicts: list[dict]) -> str:
    outcomes = [v["outcome"] for v in verdicts]
    noticed, survived = outcomes.count("noticed"), outcomes.count("survived")
    counted = noticed + survived
    return f"{noticed} of {counted} ({100 * noticed / counted:.0f} %)" if counted else "–"
