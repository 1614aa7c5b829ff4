"""What was noticed, by folder, and the lines of the survivors."""

from collections import Counter
from dataclasses import dataclass

from .faults import Fault

OUTCOMES = ("noticed", "survived", "equivalent", "time", "error")


@dataclass(frozen=True)
class Verdict:
    """What became of a fault: by which test, after how many of those that reach it."""

    fault: Fault
    outcome: str
    test: str
    ran: int
    reaching: int
    seconds: float

    def line(self, number: int, count: int) -> str:
        where = f"{self.fault.path}:{self.fault.line}"
        return f"[{number}/{count}] {self.outcome:10} {self.seconds:5.1f} s  {where}  {self.test}"

    def asdict(self) -> dict:
        return self.fault.asdict() | {
            "outcome": self.outcome,
            "test": self.test,
            "ran": self.ran,
            "reaching": self.reaching,
            "seconds": round(self.seconds, 2),
        }


def page(verdicts: list[Verdict], seed: int, seconds: float) -> str:
    """Survivors, then the table."""
    parts = []
    for v in verdicts:
        if v.outcome in ("survived", "error"):
            parts.append(
                f"{v.outcome}: {v.fault.path}:{v.fault.line} in {v.fault.function or 'the module'}"
                f" ({_ran(v)})\n"
                f"  - {v.fault.before}\n  + {v.fault.after}"
            )
    header = f"{'folder':<14}" + "".join(f"{name:>12}" for name in OUTCOMES) + f"{'score':>9}"
    parts.append(header)
    folders = sorted({v.fault.folder for v in verdicts})
    for folder in folders:
        parts.append(_row(folder, [v for v in verdicts if v.fault.folder == folder]))
    parts.append(_row("all", verdicts))
    parts.append(f"seed {seed}, {len(verdicts)} faults, {seconds / 60:.1f} minutes")
    return "\n".join(parts)


def _ran(verdict: Verdict) -> str:
    if verdict.outcome == "error":
        return verdict.test
    if verdict.ran > verdict.reaching:  # the tests of some files, whatever they reach
        return f"{verdict.ran} tests"
    return f"{verdict.ran} of {verdict.reaching} tests that reach it"


def _row(name: str, verdicts: list[Verdict]) -> str:
    count = Counter(v.outcome for v in verdicts)
    judged = count["noticed"] + count["survived"]
    score = f"{100 * count['noticed'] / judged:.0f} %" if judged else "–"
    return f"{name:<14}" + "".join(f"{count[o]:>12}" for o in OUTCOMES) + f"{score:>9}"
