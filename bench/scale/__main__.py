"""Training on data larger than memory, growth with rows and features, SGD, and dask workers."""

import argparse
import shutil

import numpy as np

from ..common import DOCS, RESULTS, UNPACKED, machine_facts, note, table, verdict, write_page
from .losses import FEATURES as LOSS_FEATURES
from .losses import ROWS as LOSS_ROWS
from .losses import what_losses_cost
from .made import ENTRIES, bytes_of_row, text_file
from .runs import Done, read_speed, run
from .sgd import reached
from .workers import call_times, copies

ROWS, FEATURES, C = 20_000_000, 1000, 1e-3
RESIDENT = 2e9  # bytes at most
ADDRESSES = 4 * 2.0**30  # bytes of address space that the limited run gets
GROWTH = (200_000, 600_000, 2_000_000)
WIDTHS = (200, 400, 800, 1600)
NARROW_ROWS = 200_000


def converted(rows: int, features: int) -> tuple[str, Done, int]:
    """The on-disk matrix of made-up text, what converting took, and the bytes of the text."""
    text = text_file(rows, features)
    folder = UNPACKED / f"made-{rows}-{features}"
    note(f"converting {rows} rows of {features} features")
    done = run("convert", text, folder, "--fresh")
    return str(folder), done, text.stat().st_size


def trained(folder: str, *more: object, most: float | None = None) -> Done:
    note(f"training on {folder.rsplit('/', 1)[-1]}")
    words = ("train", "--stream", "-c", C, "--no-bias", folder, f"{folder}.model", *more)
    return run(*words, most=most)


def large(rows: int) -> list[tuple[str, str]]:
    """The data that do not fit."""
    folder, done, size = converted(rows, FEATURES)
    values = UNPACKED / f"made-{rows}-{FEATURES}" / "values.bin"
    held = done.facts["bytes"]
    cold, warm = read_speed(values, cold=True), read_speed(values, cold=False)
    fit = trained(folder)
    limited = trained(folder, most=ADDRESSES)
    facts, again = fit.facts, limited.facts
    per_round = facts["seconds"]["solve"] / max(1, facts["iterations"])
    same = facts["objective"] == again["objective"] and facts["gap"] == again["gap"]
    peak = max(fit.peak, limited.peak)
    UNPACKED.joinpath(f"made-{rows}-{FEATURES}.txt").unlink()
    return [
        ("rows × features, entries a row", f"{rows:,} × {FEATURES}, {ENTRIES}"),
        ("text, on-disk matrix", f"{size / 1e9:.1f} GB, {held / 1e9:.1f} GB"),
        ("the disk reads, uncached and cached", f"{cold / 1e9:.2f}, {warm / 1e9:.2f} GB/s"),
        ("converting", f"{done.seconds:.0f} s, {size / done.seconds / 1e6:.0f} MB/s of text"),
        ("peak memory of converting", f"{done.peak / 1e9:.2f} GB"),
        ("training to a certified gap", f"{facts['gap']:.1e} ({facts['solver']})"),
        ("seconds, rounds", f"{facts['seconds']['solve']:.0f} s, {facts['iterations']}"),
        ("a round", f"{per_round:.1f} s; one pass at the disk's speed: {held / cold:.1f} s"),
        (
            f"peak memory of training (aim < {RESIDENT / 1e9:g} GB)",
            f"{peak / 1e9:.2f} GB: {verdict(RESIDENT, peak)}",
        ),
        (
            f"again with {ADDRESSES / 2**30:g} GB of address space",
            f"{limited.seconds:.0f} s, {'the same bits' if same else 'other bits'}",
        ),
    ]


def growth(sizes, features) -> tuple[list[tuple], float]:
    """Seconds against a size, and the exponent; sizes are rows or features."""
    rows, seconds = [], []
    for n, p in [(s, features) if features else (NARROW_ROWS, s) for s in sizes]:
        folder, done, size = converted(n, p)
        fit = trained(folder)
        solve = fit.facts["seconds"]["solve"]
        seconds.append(solve / fit.facts["iterations"])
        rate = n * fit.facts["iterations"] / solve
        held = done.facts["bytes"] * fit.facts["iterations"] / solve
        rows.append(
            (
                f"{n:,}",
                p,
                f"{size / done.seconds / 1e6:.0f}",
                f"{solve:.2f}",
                fit.facts["iterations"],
                f"{fit.facts['gap']:.0e}",
                f"{rate / 1e6:.2f}",
                f"{held / 1e9:.2f}",
            )
        )
    exponent = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
    return rows, exponent


def against_sgd(rows: int) -> tuple[list[tuple], float]:
    folder, _, _ = converted(rows, FEATURES)
    ours = trained(folder)
    seconds, best = ours.facts["seconds"]["solve"], ours.facts["objective"]
    bound = ours.facts["dual_objective"]
    out = [("nesvm-jit", f"{seconds:.1f}", ours.facts["iterations"], f"{best / bound - 1:.1e}")]
    for spent, epochs, value in reached(folder, C, seconds):
        out.append(("SGD (partial_fit)", f"{spent:.1f}", epochs, f"{value / bound - 1:.1e}"))
    return out, seconds


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS, help="of the large matrix")
    parser.add_argument("--quick", action="store_true", help="small sizes, the page in build/bench")
    options = parser.parse_args()
    machine_facts()
    UNPACKED.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(UNPACKED).free
    rows = 100_000 if options.quick else options.rows
    fits = int(0.8 * free / (bytes_of_row() + 12 * ENTRIES + 16))
    if rows > fits:
        note(f"the disk has room for {fits} rows, not for {rows}")
        rows = fits
    sizes = [n // 20 for n in GROWTH] if options.quick else list(GROWTH)
    grown, by_rows = growth(sizes, FEATURES)
    wider, by_width = growth(list(WIDTHS), None)
    sgd, _ = against_sgd(sizes[-1])
    spread, ratios = copies(options.quick)
    calls = call_times()
    losses = what_losses_cost()
    facts = large(rows)
    heads = ("rows", "features", "converting, MB/s", "solve s", "rounds", "gap", "Mrows/s", "GB/s")
    folder = RESULTS if options.quick else DOCS
    speed = ratios["speed-up"]
    write_page(
        folder / "bench-scale.md",
        "Beyond memory and one process, measured",
        "make bench-scale",
        [
            ("Data larger than memory may be", table(facts, ("", "measured"))),
            (
                "Growth",
                "Rows streamed from disk, newton, C-SVM without bias to 1e-3; a round is about "
                "three passes. Rates count every row once a round.\n\n"
                + table([*grown, *wider], heads)
                + f"\n\nSeconds a round grow with rows^{by_rows:.2f} and features^{by_width:.2f}.",
            ),
            (
                "Beside SGD",
                "How far above the lower bound the objective is, on the largest of the matrices "
                "above; SGD reads the same matrix block by block.\n\n"
                + table(sgd, ("", "seconds", "rounds or epochs", "above the bound")),
            ),
            (
                "Workers",
                f"a9a repeated to {ratios['rows']:,} rows, newton, one thread per worker.\n\n"
                + table(spread, ("", "seconds", "Mrows/s, a pass a round"))
                + f"\n\nTwo workers are {speed:.2f} × as fast as one (aim ≥ 1.6: "
                + f"{verdict(speed, 1.6)}). Objectives differ from those of one process by "
                + f"{ratios['objective']:.0e}, weights by {ratios['weights']:.0e} (relative).",
            ),
            (
                "What a call costs",
                "Milliseconds of a pass over 4000 short rows with 10 000 features, and of a line "
                "search's step, which sends next to nothing (aim < 20 ms).\n\n"
                + table(calls, ("workers", "gradient", "slope")),
            ),
            (
                "When a worker is lost",
                f"At the end of runs to 1e-5 on {LOSS_ROWS:,} rows and {LOSS_FEATURES} features, "
                "with a bias: what the log makes a lost shard repeat, and what a saved state "
                "would have moved to the driver every time.\n\n"
                + table(
                    losses,
                    ("", "rounds", "passes", "passes repeated", "log, kB", "state, MB"),
                ),
            ),
        ],
    )


if __name__ == "__main__":
    main()
