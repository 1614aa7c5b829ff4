"""Speed of each kernel against the memory of this machine and against NumPy and SciPy:
`python -m bench.kernels`."""

import time
from statistics import median
from typing import NamedTuple

import numba
import numpy as np
from nesvm_jit import get_threads
from nesvm_jit.jit import one_blas_thread

from .common import DOCS, machine_facts, note, table, timings, verdict, write_page
from .kernel_cases import SHAPES, cases, dense_name

LEGEND = """Times are medians, and after the slash the best. GB/s (of the median) counts the bytes
of the rows that have to be touched, once: all rows, or those with u ≠ 0 (accumulate, hessian,
hessian_times), or the tenth that changed (accumulate_change). Data that fit in the cache can
exceed the bandwidth of memory; hessian and gram are bound by arithmetic. Rivals are NumPy or
SciPy with all BLAS threads, in the precision of X; for gram scikit-learn. Difference: the
largest between the two results, relative to the largest entry."""
HEADERS = ("X", "kernel", "ms", "GB/s", "of bandwidth", "rival ms", "times faster", "difference")


class Found(NamedTuple):
    """One line: seconds of ours and of the rival, each (median, best)."""

    case: str
    kernel: str
    n_bytes: float
    ours: tuple[float, float]
    rival: tuple[float, float]
    difference: float


@numba.njit(parallel=True)
def _sum(a, n_chunks):
    total = 0
    for k in numba.prange(n_chunks):
        part = a[len(a) * k // n_chunks : len(a) * (k + 1) // n_chunks]
        inner = 0
        for i in range(len(part)):
            inner += part[i]
        total += inner
    return total


def read_bandwidth() -> float:
    """Bytes per second that all threads together read from 1 GB; the best of ten passes."""
    a = np.ones(1 << 27, dtype=np.int64)
    return a.nbytes / min(timings(lambda: _sum(a, 64), 10))


def timed(function):
    """(first result, (median, best) of about a second of repeats)."""
    first = np.array(function())
    once = timings(function, 1, warmups=0)[0]
    seconds = timings(function, int(np.clip(1.0 / once, 3, 50)), warmups=0)
    return first, (median(seconds), min(seconds))


def measure(case: str, pair) -> Found:
    """Ours with BLAS held at one thread, as solvers hold it; then the rival with all of them."""
    note(f"{pair.name}, {case}")
    time.sleep(0.2)  # BLAS threads of an earlier rival spin for a while
    with one_blas_thread():
        mine, ours = timed(pair.ours)
    other, rival = timed(pair.rival)
    difference = np.abs(mine - other).max() / np.abs(other).max()
    return Found(case, pair.name, pair.n_bytes, ours, rival, difference)


def aims_table(found, bandwidth) -> str:
    """Aims of the fused pass, judged by medians, with the best beside."""
    sweeps = {f.case: f for f in found if f.kernel == "sweep"}
    rows = []

    def add(what, aim, values, unit=""):
        shown = " / ".join(f"{v:.2f}{unit}" for v in values)
        rows.append((what, f"≥ {aim:g}{unit}", shown, verdict(values[0], aim)))

    for case, f in sweeps.items():
        dense = case.startswith("dense")
        if dense:
            add(
                f"{case}: of bandwidth", 80, [100 * f.n_bytes / t / bandwidth for t in f.ours], " %"
            )
        add(
            f"{case}: times the speed of {'NumPy' if dense else 'SciPy'}",
            3 if dense else 2,
            [theirs / t for t, theirs in zip(f.ours, f.rival, strict=True)],
        )
    for n, p in SHAPES:
        wide, single = (sweeps[dense_name(n, p, kind)].ours for kind in ("float64", "float32"))
        ratios = [a / b for a, b in zip(wide, single, strict=True)]
        add(f"dense {n} × {p}: rows per second of float32 to float64", 1.6, ratios)
    return table(rows, ("fused pass (sweep)", "aim", "measured: median / best", "by median"))


def _row(f: Found, bandwidth):
    speed = f.n_bytes / f.ours[0]
    return (
        f.case,
        f.kernel,
        f"{1e3 * f.ours[0]:.2f} / {1e3 * f.ours[1]:.2f}",
        f"{speed / 1e9:.1f}",
        f"{100 * speed / bandwidth:.0f} %",
        f"{1e3 * f.rival[0]:.2f} / {1e3 * f.rival[1]:.2f}",
        f"{f.rival[0] / f.ours[0]:.2f} / {f.rival[1] / f.ours[1]:.2f}",
        f"{f.difference:.0e}",
    )


def main() -> None:
    machine_facts()
    bandwidth = read_bandwidth()
    found, shares = [], []
    for case in cases():
        if case.active is not None:
            shares.append((case.name, f"{100 * case.active:.0f} %"))
        while case.pairs:  # each lets go of its data when done
            found.append(measure(case.name, case.pairs.pop(0)))
    bandwidth = max(bandwidth, read_bandwidth())
    text = (
        f"{get_threads()} threads read {bandwidth / 1e9:.1f} GB/s from memory: the sum of 1 GB, "
        "best of passes before and after everything else."
    )
    rows = [_row(f, bandwidth) for f in found]
    sections = [
        ("Bandwidth", text),
        ("Aims", aims_table(found, bandwidth)),
        ("Kernels", f"{LEGEND}\n\n{table(rows, HEADERS)}"),
        ("Active rows", table(shares, ("X", "rows with u ≠ 0"))),
    ]
    write_page(DOCS / "bench-kernels.md", "Kernels", "python -m bench.kernels", sections)


if __name__ == "__main__":
    main()
