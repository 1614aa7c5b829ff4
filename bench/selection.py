"""Choosing C: whole grids of cross-validated fits, ours beside those of peers on all cores.

Everyone fits the same folds, kept in memory as its interface wants them, and scores the rows held
out by accuracy. Linear machines have no bias, so that all solve the same problem.
"""

import argparse
import json
import multiprocessing
import os
import time
import warnings

import numpy as np

from .common import machine_facts, note, table, verdict, write_whole
from .peers.datasets import label, load
from .peers.store import FOLDER, version

STORED = FOLDER / "selection.json"
COSTS = [10.0**k for k in range(-3, 4)]
FOLDS = 5
KERNEL = {"costs": [0.1, 1.0, 10.0, 100.0, 1000.0], "gammas": [0.001, 0.004, 0.016], "folds": 3}
CORES = os.cpu_count() or 1
LEVEL = 1e-3  # of the optimum
TOLERANCES = (0.1, 0.03, 0.01, 1e-3, 1e-4)  # of -e that are tried for it
TIMES_FASTER = {"linear": 8.0, "rbf": 1.0}
REPEATS = 3
LONG = 20.0  # seconds of a run that is not repeated
LONGEST = 900.0


def splits(y, folds: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows to train on and rows held out: the folds of `nesvm_jit.path`."""
    from nesvm_jit.machine.folds import stratified_folds

    fold = stratified_folds(y, folds, 0)
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(folds)]


def timed(run) -> tuple[float, object]:
    """The median seconds of a run, after one that is not counted; a long run counts at once."""
    seconds, found = [], None
    for _ in range(REPEATS + 1):
        start = time.perf_counter()
        found = run()
        seconds.append(time.perf_counter() - start)
        if seconds[-1] > LONG:
            return seconds[-1], found
    return float(np.median(seconds[1:])), found


# ---------------------------------------------------------------- linear


def ours_linear(data: str, bias: bool) -> dict:
    from nesvm_jit import path

    X, y = load(data)
    seconds, found = timed(lambda: path(X, y, COSTS, folds=FOLDS, bias=bias, refit=False))
    return {
        "seconds": seconds,
        "accuracy": float(found.means().max()),
        "note": f"largest certified gap {found.table['gap'].max():.1e}",
    }


_fold_data: list = []  # of a worker: what LIBLINEAR trains on and what it is scored on


def _prepare(data: str) -> None:
    from liblinear.liblinear import problem

    X, y = load(data)
    for inside, out in splits(y, FOLDS):
        _fold_data.append(
            (problem(y[inside], X[inside], bias=-1), X[inside], y[inside], X[out], y[out])
        )


def _liblinear(fold: int, C: float, e: float) -> tuple[float, np.ndarray]:
    """The accuracy on a fold, and the weights."""
    from liblinear.liblinear import parameter
    from liblinear.liblinearutil import train

    given, X, _, Z, truth = _fold_data[fold]
    model = train(given, parameter(f"-s 3 -c {C} -e {e} -B -1 -q"))
    w = float(model.label[0]) * np.ctypeslib.as_array(model.w, (X.shape[1],))
    accuracy = float(np.mean(np.where(Z @ w > 0, 1.0, -1.0) == truth))
    return accuracy, w


def _accuracy(task: tuple[int, float, float]) -> float:
    return _liblinear(*task)[0]


def _suboptimality(task: tuple[int, float, float, float]) -> float:
    fold, C, e, best = task
    _, X, y, _, _ = _fold_data[fold]
    w = _liblinear(fold, C, e)[1]
    value = 0.5 * w @ w + C * np.maximum(0.0, 1.0 - y * (X @ w)).sum()
    return float(value / best - 1.0)


def _optima(data: str) -> list[float]:
    """The optimum of the first fold at every C."""
    from nesvm_jit import solve

    X, y = load(data)
    inside, _ = splits(y, FOLDS)[0]
    Z, s = X[inside], y[inside]
    return [solve(Z, s, C=C, bias=False, tol=1e-6).dual_objective for C in COSTS]


def liblinear(data: str, reach: bool) -> dict:
    """LIBLINEAR, one process per core, the longest fits first: at its own tolerance, or at every C
    at the loosest that comes within LEVEL of the optimum, if one does."""
    context = multiprocessing.get_context("spawn")
    tolerances, missed = dict.fromkeys(COSTS, 0.1), []
    with context.Pool(CORES, _prepare, (data,)) as pool:
        if reach:
            for C, best in zip(COSTS, _optima(data), strict=True):
                tried = [(0, C, e, best) for e in TOLERANCES]
                off = pool.map(_suboptimality, tried, chunksize=1)
                good = [e for e, o in zip(TOLERANCES, off, strict=True) if o <= LEVEL]
                missed += [] if good else [f"C = {C:g} ({min(off):.0e})"]
                tolerances[C] = good[0] if good else 0.1
        tasks = [(k, C, tolerances[C]) for C in reversed(COSTS) for k in range(FOLDS)]
        seconds, found = timed(lambda: pool.map(_accuracy, tasks, chunksize=1))
    means = np.array(found).reshape(len(COSTS), FOLDS).mean(axis=1)
    notes = "not reached at " + ", ".join(missed) if missed else ""
    return {"seconds": seconds, "accuracy": float(means.max()), "note": notes}


def linear_svc(data: str) -> dict:
    from sklearn.svm import LinearSVC

    X, y = load(data)
    model = LinearSVC(loss="hinge", dual=True, fit_intercept=False, random_state=0)
    return _grid_search(model, {"C": COSTS}, X, y, FOLDS, CORES)


# ---------------------------------------------------------------- kernels


def ours_rbf(data: str) -> dict:
    from nesvm_jit import path

    X, y = load(data)
    seconds, found = timed(lambda: path(X, y, kernel="rbf", refit=False, **KERNEL))
    return {
        "seconds": seconds,
        "accuracy": float(found.means().max()),
        "note": f"largest certified gap {found.table['gap'].max():.1e}",
    }


def svc(data: str, package: str, jobs: int) -> dict:
    if package == "sklearnex":
        from sklearnex.svm import SVC
    else:
        from sklearn.svm import SVC
    X, y = load(data)
    grid = {"C": KERNEL["costs"], "gamma": KERNEL["gammas"]}
    return _grid_search(SVC(kernel="rbf", cache_size=1000), grid, X, y, KERNEL["folds"], jobs)


def _grid_search(model, grid: dict, X, y, folds: int, jobs: int) -> dict:
    from sklearn.model_selection import GridSearchCV

    os.environ["PYTHONWARNINGS"] = (
        "ignore"  # of its workers: LinearSVC tells 20 times that it gave up
    )
    search = GridSearchCV(model, grid, cv=splits(y, folds), n_jobs=jobs, refit=False)
    seconds, found = timed(lambda: search.fit(X, y))
    if jobs > 1:
        from joblib.externals.loky import get_reusable_executor

        get_reusable_executor().shutdown()  # its workers would wait for five minutes
    return {"seconds": seconds, "accuracy": float(found.best_score_), "note": ""}


# ---------------------------------------------------------------- all of it

RUNS = {
    "linear": {
        "nesvm-jit path": (ours_linear, False),
        "nesvm-jit path, with bias": (ours_linear, True),
        "LIBLINEAR, its default tolerance": (liblinear, False),
        "LIBLINEAR, to 1e-3 of the optimum where it can": (liblinear, True),
        "GridSearchCV(LinearSVC)": (linear_svc,),
    },
    "rbf": {
        "nesvm-jit path": (ours_rbf,),
        f"GridSearchCV(SVC), {CORES} jobs": (svc, "sklearn", CORES),
        f"GridSearchCV(SVC of scikit-learn-intelex), {CORES} jobs": (svc, "sklearnex", CORES),
        "GridSearchCV(SVC of scikit-learn-intelex), 1 job": (svc, "sklearnex", 1),
    },
}
DATA = {"linear": "a9a", "rbf": "usps"}


def _work(pipe, kind: str, name: str) -> None:
    warnings.simplefilter("ignore")
    function, *args = RUNS[kind][name]
    try:
        pipe.send(function(DATA[kind], *args))
    except ImportError as e:
        pipe.send({"missing": str(e)})


def _alone(kind: str, name: str) -> dict:
    """A run in a process of its own, ended when it takes too long."""
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(theirs, kind, name))
    process.start()
    theirs.close()
    try:
        return mine.recv() if mine.poll(LONGEST) else {"missing": f"no answer in {LONGEST:g} s"}
    except EOFError:
        return {"missing": "the process ended"}
    finally:
        process.join(10.0)
        process.terminate()
        process.join()


def stored() -> dict:
    """What was measured before."""
    try:
        return json.loads(STORED.read_text())
    except (FileNotFoundError, ValueError):
        return {}


def measure(kinds=tuple(RUNS)) -> None:
    """Time everyone and store it."""
    result = {**stored(), "machine": machine_facts(), "time": time.time()}
    result["versions"] = {
        name: version(name)
        for name in ("scikit-learn", "liblinear-official", "scikit-learn-intelex")
    }
    for kind in kinds:
        result[kind] = {"data": label(DATA[kind]), "runs": {}}
        for name in RUNS[kind]:
            found = result[kind]["runs"][name] = _alone(kind, name)
            shown = found.get("missing") or f"{found['seconds']:.2f} s, {found['accuracy']:.4f}"
            note(f"choosing C, {label(DATA[kind])}: {name} {shown}")
    text = json.dumps(result, indent=1) + "\n"
    write_whole(STORED, lambda f: f.write(text.encode()))


def section() -> str | None:
    """The tables of what is stored."""
    result = stored()
    shape = {
        "linear": f"C-SVM without bias, {len(COSTS)} C × {FOLDS} folds",
        "rbf": f"RBF kernel, {len(KERNEL['costs'])} C × {len(KERNEL['gammas'])} γ × "
        f"{KERNEL['folds']} folds",
    }
    parts = [
        f"Whole grids on {CORES} cores, ours to a certified {LEVEL:g} at every fit, peers at their "
        "default tolerances; times are of fitting and scoring, data in memory."
    ]
    if not result:
        return None
    for kind in filter(result.get, shape):
        found, text = result[kind], shape[kind]
        parts += [f"{found['data']}, {text}:", table(_rows(kind, found["runs"]), _heads(kind))]
    return "\n\n".join(parts)


def _heads(kind: str) -> tuple[str, ...]:
    return ("", "seconds", "best accuracy", f"target ≥ {TIMES_FASTER[kind]:g} ×", "", "")


def _rows(kind: str, runs: dict):
    ours = runs["nesvm-jit path"]
    for name, found in runs.items():
        if "missing" in found:
            yield name, found["missing"], "", "", "", ""
            continue
        ratio, end = "", ""
        if not name.startswith("nesvm-jit"):
            times = found["seconds"] / ours["seconds"]
            ratio, end = f"{times:.1f} ×", verdict(times, TIMES_FASTER[kind])
        yield name, f"{found['seconds']:.2f}", f"{found['accuracy']:.4f}", ratio, end, found["note"]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.selection", description=__doc__)
    parser.add_argument("--only", choices=list(RUNS), help="one of the two grids")
    options = parser.parse_args()
    measure([options.only] if options.only else list(RUNS))
    print(section())


if __name__ == "__main__":
    main()
