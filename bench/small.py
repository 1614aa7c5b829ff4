"""Small data beside scikit-learn, and the first minute: `python -m bench.small`."""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from nesvm_jit import NESVC, read_libsvm, write_libsvm
from sklearn import datasets
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsOneClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from .common import DOCS, data_file, machine_facts, median_time, note, table, write_page

COSTS = (0.01, 1.0, 100.0)
TOLERANCE = 1e-3
TWICE = ("iris", "wine")  # where ours is to be twice as fast as the fastest of the others
GAMMAS, GRID_COSTS, FOLDS = np.logspace(-4, 1, 9), np.logspace(-1, 3, 7), 5  # 63 × 5 fits
FIRST_FIT = """
import time
from sklearn.datasets import load_wine
from nesvm_jit import NESVC
X, y = load_wine(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
start = time.perf_counter()
NESVC(kernel="{kernel}").fit(X, y)
print(time.perf_counter() - start)
"""


class Small(NamedTuple):
    """A data set, its features standardised."""

    name: str
    X: np.ndarray
    y: np.ndarray


class Fit(NamedTuple):
    """What is fitted, ours and theirs by name."""

    kind: str
    ours: Callable[[float], Any]
    others: dict[str, Callable[[float], Any]]


def sets() -> Iterator[Small]:
    """The data, those that are made always the same."""
    for name in ("iris", "wine", "breast_cancer", "digits"):
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        yield Small(name.replace("_", " "), StandardScaler().fit_transform(X), y)
    path = data_file("heart_scale")
    if path is None:
        note("NESVM_DATA has no heart_scale: left out")
    else:
        X, y = read_libsvm(path)
        yield Small("heart_scale", X.toarray(), y)
    for n, p in ((1000, 20), (5000, 50)):
        X, y = datasets.make_classification(n, p, random_state=0)
        yield Small(f"{n} × {p}", StandardScaler().fit_transform(X), y)


def hinge(C: float) -> LinearSVC:
    """LIBLINEAR's hinge by scikit-learn."""
    return LinearSVC(loss="hinge", C=C)


def fits(small: Small) -> Iterator[Fit]:
    """Linear machines and RBF; of several classes one against the rest, and one against one."""
    several = len(np.unique(small.y)) > 2
    svc = partial(_svc, "linear")
    others: dict[str, Callable[[float], Any]] = {"LinearSVC": hinge}
    if not several:
        others["SVC"] = svc
    yield Fit("linear", lambda C: NESVC(C=C), others)
    if several:
        pairs = {"SVC": svc, "LinearSVC": lambda C: OneVsOneClassifier(hinge(C))}
        yield Fit("linear, one against one", lambda C: NESVC(C=C, multiclass="ovo"), pairs)
    yield Fit("RBF", lambda C: NESVC(C=C, kernel="rbf"), {"SVC": partial(_svc, "rbf")})


def _svc(kernel: str, C: float) -> SVC:
    return SVC(kernel=kernel, C=C)


def repeats(seconds: float) -> int:
    """How often to time what takes so long."""
    return int(np.clip(0.3 / max(seconds, 1e-4), 3, 31))


def timed(work: Callable[[], Any]) -> float:
    """A median of as many calls as pay, in milliseconds."""
    first = median_time(work, 1)
    return 1e3 * median_time(work, repeats(first), warmups=0)


def fit_rows(small: Small, only: str) -> Iterator[tuple[str, ...]]:
    """A row for each kind of machine and each C: fit, predict, and the gap that is certified."""
    X, y = small.X, small.y
    for fit in fits(small):
        if only not in f"{small.name} {fit.kind}":
            continue
        for C in COSTS:
            ours = fit.ours(C)
            mine = timed(lambda ours=ours: ours.fit(X, y))
            predicts = timed(lambda ours=ours: ours.predict(X))
            found = {}
            for name, make in fit.others.items():
                other = make(C)
                seconds = timed(lambda other=other: other.fit(X, y))
                found[name] = seconds, timed(lambda other=other: other.predict(X))
            best = min(found, key=lambda name: found[name][0])
            ratio, goal = found[best][0] / mine, 2.0 if small.name in TWICE else 1.0
            met = "met" if ratio >= goal and ours.gap_ <= TOLERANCE else "missed"
            fastest = min(predict for _, predict in found.values())
            yield (
                small.name,
                fit.kind,
                f"{C:g}",
                f"{mine:.2f}",
                f"{found[best][0]:.2f} ({best})",
                f"{ratio:.2f}",
                met,
                f"{ours.gap_:.0e}",
                f"{predicts:.2f}",
                f"{fastest:.2f}",
            )


def choice_rows() -> Iterator[tuple[str, ...]]:
    """GridSearchCV and cross_val_score of RBF machines on breast cancer, with one job and two."""
    X, y = datasets.load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    grid = {"C": GRID_COSTS, "gamma": GAMMAS}
    for jobs in (1, 2):
        for name, work in (
            (f"GridSearchCV, {len(GAMMAS) * len(GRID_COSTS)} × {FOLDS} fits", partial(_grid, grid)),
            (f"cross_val_score, {FOLDS} folds", _score),
        ):
            ours, theirs = (
                median_time(partial(work, make(kernel="rbf"), X, y, jobs), 3)
                for make in (NESVC, SVC)
            )
            ratio = theirs / ours
            met = "met" if ratio >= 1.0 else "missed"
            yield name, str(jobs), f"{ours:.3f}", f"{theirs:.3f}", f"{ratio:.2f}", met


def _grid(grid: dict[str, Any], machine: Any, X: np.ndarray, y: np.ndarray, jobs: int) -> None:
    GridSearchCV(machine, grid, cv=FOLDS, n_jobs=jobs).fit(X, y)


def _score(machine: Any, X: np.ndarray, y: np.ndarray, jobs: int) -> None:
    cross_val_score(machine, X, y, cv=FOLDS, n_jobs=jobs)


def _fresh(arguments: list[str], cache: Path) -> str:
    """What a fresh process prints that keeps its compiled code in `cache`."""
    environment = {**os.environ, "NESVM_JIT_CACHE_DIR": str(cache)}
    environment.pop("NESVM_JIT_CACHE", None)
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, env=environment, check=True, capture_output=True, text=True
    ).stdout


def first_rows(folder: Path) -> Iterator[tuple[str, ...]]:
    """Commands on 270 rows and the first fit of a fresh process, without compiled code and with."""
    data = data_file("heart_scale")
    if data is None:
        X, y = datasets.make_classification(270, 13, random_state=0)
        data = folder / "made"
        write_libsvm(data, X, 2.0 * y - 1.0)
    for kernel in ("linear", "rbf"):
        cache, model = folder / f"train {kernel}", folder / f"{kernel}.model"
        train = ["-m", "nesvm_jit", "train", "-q", "-t", kernel, str(data), str(model)]
        predict = ["-m", "nesvm_jit", "predict", "-q", str(data), str(model), str(folder / "out")]
        for name, command in (("train", train), ("predict", predict)):
            work = partial(_fresh, command, cache)
            cold, warm = median_time(work, 1, warmups=0), median_time(work, 3, warmups=0)
            yield f"`nesvm-jit {name}`, {kernel}, whole process", f"{cold:.2f}", f"{warm:.2f}"
        fit = ["-c", FIRST_FIT.format(kernel=kernel)]
        cold, *warm_fits = (float(_fresh(fit, folder / f"fit {kernel}")) for _ in range(4))
        warm = float(np.median(warm_fits))
        yield f"first `NESVC().fit` on wine, {kernel}", f"{cold:.2f}", f"{warm:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="Measure the fits whose names contain this.")
    only = parser.parse_args().only
    machine_facts()
    rows = []
    for small in sets():
        note(small.name)
        for row in fit_rows(small, only):
            print(*row, flush=True)
            rows.append(row)
    if only:
        return
    note("choices")
    choices = list(choice_rows())
    note("fresh processes")
    with tempfile.TemporaryDirectory() as name:
        first = list(first_rows(Path(name)))
    columns = ("data", "machine", "C", "ours, ms", "fastest other, ms", "times as fast", "goal")
    about = (
        "Features standardised (heart_scale as it is), default settings, medians; the checks of "
        "scikit-learn are part of all. The others: LinearSVC with the hinge, which is LIBLINEAR, "
        "and SVC, which is LIBSVM. The goal is twice as fast as the fastest of them on "
        f"{' and '.join(TWICE)} and as fast on the rest, certified to {TOLERANCE:g}; the others "
        "certify nothing. Predictions are of all rows."
    )
    columns = (*columns, "gap", "predict, ms", "fastest other, ms")
    sections = [
        ("Fits", f"{about}\n\n{table(rows, columns)}"),
        (
            "Choices of C and γ",
            "Breast cancer, RBF; seconds.\n\n"
            + table(choices, ("", "jobs", "ours", "SVC", "times as fast", "goal")),
        ),
        (
            "The first minute",
            "Seconds with an empty cache of compiled code, and with the cache that this left.\n\n"
            + table(first, ("", "cold", "warm")),
        ),
    ]
    write_page(DOCS / "bench-small.md", "Small data", "make bench-small", sections)


if __name__ == "__main__":
    main()
