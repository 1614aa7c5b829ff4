"""Rows a second that a trained kernel machine predicts: digits of usps.t by the model of usps."""

import json
import multiprocessing
import time

import numpy as np

from ..common import data_file, median_time, note, table, verdict, write_whole
from .datasets import label, load
from .store import FOLDER, version

STORED = FOLDER / "prediction.json"
DATA = "usps"
TIMES_FASTER = 3.0
REPEATS = 5


def _test_rows(features: int) -> np.ndarray:
    from nesvm_jit import read_libsvm

    path = data_file(f"{DATA}.t")
    if path is None:
        return np.random.default_rng(1).random((2007, features))
    return read_libsvm(path, features)[0].toarray()


def _rates(name: str) -> tuple[float, int]:
    """Rows a second of a solver's model, and its support vectors."""
    X, y = load(DATA)
    Z = _test_rows(X.shape[1])
    if name == "nesvm-jit":
        from nesvm_jit import train

        model = train(X, y, kernel="rbf")
        support = model.n_support
    else:
        from sklearn.svm import SVC

        model = SVC(gamma=1.0 / X.shape[1]).fit(X, y)
        support = len(model.support_)
    return len(Z) / median_time(lambda: model.predict(Z), REPEATS), support


def measure() -> None:
    """Time both, each in a process of its own, and store it."""
    context = multiprocessing.get_context("spawn")
    rates = {}
    for name in ("nesvm-jit", "SVC"):
        with context.Pool(1) as pool:
            rates[name] = pool.apply(_rates, (name,))
        note(f"prediction, {label(DATA)}: {name} {rates[name][0]:.0f} rows/s")
    result = {
        "data": label(DATA),
        "rates": rates,
        "scikit-learn": version("scikit-learn"),
        "time": time.time(),
    }
    text = json.dumps(result, indent=1) + "\n"
    write_whole(STORED, lambda f: f.write(text.encode()))


def section() -> str | None:
    """The table of what is stored."""
    try:
        result = json.loads(STORED.read_text())
    except (FileNotFoundError, ValueError):
        return None
    (ours, mine), (theirs, others) = (result["rates"][name] for name in ("nesvm-jit", "SVC"))
    measured = f"{ours / theirs:.1f} ×"
    rows = [
        ("nesvm-jit", f"{ours:.0f}", mine, measured, verdict(ours / theirs, TIMES_FASTER)),
        ("SVC", f"{theirs:.0f}", others, "", ""),
    ]
    heads = ("solver", "rows/s", "support vectors", f"target ≥ {TIMES_FASTER:g} ×", "")
    text = (
        f"Test rows of {result['data']}, C = 1, ten classes one against one, from dense rows.\n\n"
    )
    return text + table(rows, heads)
