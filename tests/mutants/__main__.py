"""Put faults into the package one at a time and see whether the tests notice.

python -m tests.mutants --seed 1                     a sample of the whole package
python -m tests.mutants --seed 1 --only kernels/     of a part of it
python -m tests.mutants --at nesvm_jit/FILE.py:LINE  every fault of one line
python -m tests.mutants --again build/mutants/seed-1.json --tests tests/test_solve.py
                                                     its survivors, against the tests of some files
python -m tests.mutants --document 1 2               the scores of two seeds in docs/mutants.md
python -m tests.mutants --prune                      move the entries of known.toml that name no
                                                     fault any more to build/mutants/pruned.toml
"""

import argparse
import os
import random
import re
import signal
import sys
import time
from pathlib import Path

from .document import write
from .errors import MutantsError
from .faults import Fault, all_faults
from .known import Known, entry, prune, wrong_entries
from .report import page
from .run import Plan, run
from .store import BUDGET, SAMPLE, Request, store, survivors
from .trees import BUILD, ROOT, clear_dead_trees, git, write_whole


def draw(faults: list[Fault], seed: int, count: int) -> list[Fault]:
    """A sample: lines first, then one fault of each, so that no table of numbers crowds it."""
    by_line: dict[tuple, list[Fault]] = {}
    for fault in faults:
        by_line.setdefault((fault.path, fault.line), []).append(fault)
    rng = random.Random(seed)
    lines = rng.sample(sorted(by_line), min(count, len(by_line)))
    return [rng.choice(by_line[line]) for line in lines]


def uncompiled(fault: Fault, read_by_compiled_code: dict[str, set[str]]) -> bool:
    """Whether it is run with compilation off: in compiled functions, and in constants that they
    read."""
    if fault.compiled or fault.function:
        return fault.compiled
    names = fault.before.split("=")[0].split(":")[0].split(",")
    return any(name.strip() in read_by_compiled_code.get(fault.path, ()) for name in names)


def words_of_compiled_code(faults: list[Fault]) -> dict[str, set[str]]:
    """By file, every word of the lines inside its compiled functions."""
    words: dict[str, set[str]] = {}
    for fault in faults:
        if fault.compiled:
            words.setdefault(fault.path, set()).update(re.findall(r"\w+", fault.before))
    return words


def faults_at(place: str, faults: list[Fault]) -> list[Fault]:
    """Every fault of a line, given as PATH:LINE."""
    path, _, line = place.rpartition(":")
    if not path or not line.isdecimal():
        raise MutantsError(f"--at needs PATH:LINE, got {place!r}")
    if not any(f.path == path for f in faults):
        raise MutantsError(f"--at: no fault can be put into {path!r}; paths start with nesvm_jit/")
    found = [f for f in faults if f.path == path and f.line == int(line)]
    if not found:
        raise MutantsError(f"--at: no fault starts in line {line} of {path}")
    return found


def choose(args: argparse.Namespace, faults: list[Fault]) -> list[Fault]:
    """The faults asked for: at least one."""
    if args.at is not None:
        return faults_at(args.at, faults)
    if args.again:
        found, lost = survivors(args.again, faults)
        for line in lost:
            print(f"not found any more: {line}")
        if not found:
            raise MutantsError(f"{args.again}: none of its survivors is there any more")
        return found
    some = [f for f in faults if (args.only or "") in f.path]
    if not some:
        raise MutantsError(f"--only: no fault in a path that contains {args.only!r}")
    return draw(some, args.seed, args.count)


def prune_known(faults: list[Fault]) -> int:
    """The exit code: 1 where an entry names several faults."""
    moved = BUILD / "pruned.toml"
    dead = prune(faults, moved)
    for line in dead:
        print(f"moved to {moved.relative_to(ROOT)}: {line}")
    if not dead:
        print("every entry of known.toml names a fault")
    _, several = wrong_entries(faults)
    for line in several:
        print(line)
    return int(bool(several))


def say(text: str) -> None:
    """A reader that has gone away, as `head` does, ends no run: its verdicts are kept."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def judge(args: argparse.Namespace, faults: list[Fault]) -> int:
    """Judge the faults asked for, and keep the verdicts."""
    words, known, chosen = words_of_compiled_code(faults), Known(faults), choose(args, faults)
    request = Request(
        *(git("describe", "--always", "--dirty"), args.seed, args.count, args.only or ""),
        *(args.tests, args.budget, args.stale, str(args.again or ""), args.at or ""),
        *(len(chosen), known.count()),
    )
    clear_dead_trees()
    started, plan = time.monotonic(), Plan(args.budget, args.tests, args.stale)
    verdicts = run(
        chosen,
        known,
        lambda f: uncompiled(f, words),
        plan,
        min(args.workers, len(chosen)),
        say,
    )
    stored = store(BUILD, request, verdicts)
    left = [entry(v.fault, faults) for v in verdicts if v.outcome == "survived"]
    write_whole(stored.with_suffix(".toml"), "\n".join(left))
    if len(verdicts) < len(chosen):
        say(f"mutants: interrupted, {len(verdicts)} of {len(chosen)} judged: {stored}")
        return 128 + signal.SIGINT
    say(page(verdicts, args.seed, time.monotonic() - started))
    say(str(stored))
    return int(any(v.outcome == "error" for v in verdicts))


class Parser(argparse.ArgumentParser):
    """A mistake is one line, without the usage."""

    def error(self, message: str):
        raise MutantsError(f"{message}; --help lists the options")


# What each of these asks for is all that is done: no sample is drawn beside it.
WHAT = {"--at": ("only", "count"), "--again": ("only", "count")}
NO_TESTS = ("only", "count", "tests", "budget", "workers", "stale")  # which run no tests
WHAT |= dict.fromkeys(("--document", "--prune"), NO_TESTS)
REACH = ("budget", "stale")  # of tests that reach a fault, which --tests takes the place of


def parse(words: list[str] | None = None) -> argparse.Namespace:
    parser = Parser(
        prog="make mutants", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    add = parser.add_argument
    add("--seed", type=int, default=0, help="seed of the sample (make: SEED=)")
    add("--count", type=int, help=f"number of faults drawn, {SAMPLE} unless said otherwise")
    add("--only", metavar="TEXT", help="draw from paths that contain this")
    add("--at", metavar="PATH:LINE", help="judge every fault of a line, no sample")
    add("--again", metavar="FILE", type=Path, help="judge the survivors of an earlier run")
    add("--tests", metavar="FILE", nargs="+", default=[], help="judge by the tests of these files")
    add("--budget", metavar="S", type=float, help=f"seconds of tests for a fault, {BUDGET:g}")
    add("--workers", metavar="N", type=int, help="faults judged at a time, 2")
    add("--stale", action="store_true", help="use the reach measured last, whatever has changed")
    add("--document", metavar="SEED", nargs="+", type=int, help="write the scores of stored runs")
    add("--prune", action="store_true", help="move dead entries out of known.toml")
    args = parser.parse_args(words)
    refuse_contradictions(args)
    args.count = SAMPLE if args.count is None else args.count
    args.budget = BUDGET if args.budget is None else args.budget
    args.workers = 2 if args.workers is None else args.workers
    for name in ("count", "workers", "budget"):
        if not getattr(args, name) > 0:
            raise MutantsError(f"--{name} must be positive, got {getattr(args, name)}")
    for file in args.tests:
        if Path(file).parts[:1] != ("tests",):  # of the project: another file has no copy in a tree
            raise MutantsError(f"--tests: paths start with tests/, got {file!r}")
        if not (ROOT / file.split("::")[0]).is_file():
            raise MutantsError(f"--tests: no file {file}")
    return args


def refuse_contradictions(args: argparse.Namespace) -> None:
    """One thing is done at a time, and no option is left aside in silence."""
    asked = [name for name in WHAT if getattr(args, name[2:]) not in (None, False)]
    if len(asked) > 1:
        raise MutantsError(f"{asked[0]} and {asked[1]} cannot be had at once")
    useless = {name: WHAT[name] for name in asked} | ({"--tests": REACH} if args.tests else {})
    for name, others in useless.items():
        for other in others:
            if getattr(args, other) not in (None, False, []):
                raise MutantsError(f"{name} has no use for --{other}")


def main() -> int:
    """The exit code: 0, or 1 where an error kept a fault from being judged."""
    try:
        for number in (signal.SIGTERM, signal.SIGHUP):  # as Ctrl-C: else children would go on
            signal.signal(number, signal.default_int_handler)
        args = parse()
        if args.document:
            print(write(args.document))
            return 0
        faults = all_faults(ROOT)
        return prune_known(faults) if args.prune else judge(args, faults)
    except MutantsError as error:
        print(f"mutants: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"mutants: {where}{error.strerror or error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("mutants: interrupted, nothing was judged", file=sys.stderr)
        return 128 + signal.SIGINT


if __name__ == "__main__":
    sys.exit(main())
