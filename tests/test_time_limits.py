"""A time limit is that of the whole call, however many fits it makes; certificates stay valid."""

import time

import numpy as np
import pytest
from nesvm_jit import convert, open_matrix
from nesvm_jit.files.libsvm.writer import write_libsvm
from scipy.sparse import csr_matrix

from tests.endings import cross_validate, path, train

CLASSES, LIMIT = 8, 0.4
# tol = 0 is never reached: without a limit these fits go on for very long
ENDLESS = {"solver": "nesvm", "tol": 0.0, "epsilon": 0.0, "max_iter": 10**9}


def clouds(n=400, p=6, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % CLASSES
    return rng.standard_normal((n, p)) + np.eye(CLASSES, p)[y], y.astype(float)


@pytest.fixture(scope="module")
def on_disk(tmp_path_factory):
    folder, (X, y) = tmp_path_factory.mktemp("matrix"), clouds()
    write_libsvm(folder / "text", csr_matrix(X), y)
    convert([folder / "text"], folder / "matrix")
    return open_matrix(folder / "matrix")


CALLS = {
    "train": lambda X, y, disk, **given: train(X, y, **given),
    "calibration": lambda X, y, disk, **given: train(X, y, probability=True, **given),
    "pairs": lambda X, y, disk, **given: train(X, y, multiclass="ovo", **given),
    "disk": lambda X, y, disk, **given: train(disk, **given),
    "cross_validate": lambda X, y, disk, **given: cross_validate(X, y, 5, **given),
    "path": lambda X, y, disk, **given: path(X, y, [0.1, 1.0, 10.0], folds=3, **given),
    "path on disk": lambda X, y, disk, **given: path(disk, None, [0.1, 1.0], folds=3, **given),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_time_limit_is_of_the_whole_call(name, on_disk):
    X, y = clouds()
    CALLS[name](X, y, on_disk, **{**ENDLESS, "max_iter": 1})  # compiles what is needed
    began = time.perf_counter()
    found = CALLS[name](X, y, on_disk, time_limit=LIMIT, **ENDLESS)
    seconds = time.perf_counter() - began
    assert LIMIT <= seconds < 6 * LIMIT  # a limit of each of eight fits or more would be 8 · LIMIT
    assert getattr(found, "status", "time_limit") == "time_limit"
    machine = getattr(found, "machine", found)
    for p in getattr(machine, "problems", []):
        assert p["status"] == "time_limit"
        assert 0.0 <= p["dual_objective"] <= p["objective"]
        assert not p["certified"]


def test_what_a_limit_leaves_of_a_path_has_valid_certificates():
    X, y = clouds()
    exact = path(X, y, [1.0], folds=3, tol=1e-8, refit=False)
    short = path(X, y, [1.0], folds=3, time_limit=0.0, refit=False, **ENDLESS)
    lowest = short.table["objective"] * (1.0 - short.table["gap"].max())
    assert (short.table["status"] == "time_limit").all()
    assert (exact.table["objective"] <= short.table["objective"]).all()
    assert (lowest <= exact.table["objective"]).all()
