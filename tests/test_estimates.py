"""What would not fit into memory is refused before the work begins: far indices, many classes."""

import time

import numpy as np
import pytest
from nesvm_jit import InputError, convert, cross_validate, get_threads, open_matrix, solve, train
from nesvm_jit.binary import linear
from nesvm_jit.cli import words
from nesvm_jit.machine import estimate as estimates
from nesvm_jit.machine.estimate import Estimate, estimate
from scipy.sparse import csr_matrix

from .commands import command, done, refused

FAR = "1 1:1 2147483648:1\n-1 2:1\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for module in (linear, estimates):
        monkeypatch.setattr(module, "memory_bytes", lambda: 32.0 * 2**30)
    return tmp_path


@pytest.mark.parametrize(
    "args", [["train", "far"], ["train", "-v", "2", "far"], ["path", "-v", "2", "far"]]
)
def test_a_far_index_is_refused_at_once_as_on_workers(here, args):
    (here / "far").write_text(FAR + FAR)
    start = time.perf_counter()
    outcome = command(*args)
    assert (outcome.code, outcome.out) == (1, "")
    message = "nesvm-jit: X must be narrower: 2147483648 features need 128 GB of memory\n"
    assert outcome.err.endswith(message)
    assert time.perf_counter() - start < 20.0  # compiling included


def test_in_memory_and_on_disk_have_one_check(here):
    (here / "far").write_text(FAR)
    convert("far", "matrix")
    X = csr_matrix(([1.0, 1.0], ([0, 1], [0, 2**31 - 1])), shape=(2, 2**31))
    for call in (
        lambda: solve(X, [1.0, -1.0]),
        lambda: train(X, [1.0, -1.0]),
        lambda: train(open_matrix("matrix")),
    ):
        with pytest.raises(InputError, match=r"^X must be narrower: 2147483648 features need 128"):
            call()


@pytest.mark.parametrize(
    ("classes", "multiclass", "problems"),
    [(2, "ovr", 1), (2, "ovo", 1), (3, "ovr", 3), (3, "ovo", 3), (10, "ovr", 10), (10, "ovo", 45)],
)
def test_an_estimate_adds_up_what_every_sub_problem_keeps(classes, multiclass, problems):
    n, p = 120, 7
    sizes = [n] * problems
    if multiclass == "ovo" and classes > 2:
        sizes = [2 * n / classes] * problems
    numbers = 3 if multiclass == "ovo" and classes > 2 else 2  # α, margins; row numbers in pairs
    arrays = sum(8.0 * numbers * size for size in sizes)
    found = estimate(n, p, n * p, classes, multiclass, True)
    assert found.problems == problems
    assert found.bytes == pytest.approx(arrays + problems * (8 * p + estimates.PROBLEM_BYTES))
    without = estimate(n, p, n * p, classes, multiclass, False)
    assert found.bytes - without.bytes == pytest.approx(8 * p * problems)
    assert found.seconds > 0


def test_an_estimate_of_the_time_goes_with_sub_problems_and_cells_and_is_shared_by_threads():
    """Of a hundred classes of 20 000 rows and 10 features, 200 000 cells in each of 100 passes."""
    many = estimate(20_000, 10, 200_000, 100, "ovr", True)
    assert many.seconds * get_threads() == pytest.approx(100 * 0.004 + 100 * 200_000 * 8e-8)
    pairs = estimate(20_000, 10, 200_000, 100, "ovo", True)
    assert pairs.seconds * get_threads() == pytest.approx(4950 * 0.004 + 99 * 200_000 * 8e-8)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_hundred_thousand_classes_are_refused_before_work(here, kernel):
    n = 100_000
    X, y = csr_matrix((np.ones(n), (np.arange(n), np.arange(n) % 50))), np.arange(n, dtype=float)
    way = "100000 sub-problems" if kernel == "linear" else "4999950000 sub-problems"
    start = time.perf_counter()
    with pytest.raises(InputError, match=rf"^y must have fewer classes: 100000 of them are {way}"):
        train(X, y, kernel=kernel)
    with pytest.raises(InputError, match=r"^y must have fewer classes"):
        cross_validate(X, y, 2, kernel=kernel)
    assert time.perf_counter() - start < 20.0


def test_many_classes_on_disk_are_refused_too(here, monkeypatch):
    (here / "text").write_text("".join(f"{k} 1:{k}\n" for k in range(1, 40)))
    convert("text", "matrix")
    monkeypatch.setattr(estimates, "ALWAYS_THERE", 0.0)
    monkeypatch.setattr(estimates, "memory_bytes", lambda: 39 * estimates.PROBLEM_BYTES)
    with pytest.raises(InputError, match=r"^y must have fewer classes: 39 of them are 39 sub"):
        train(open_matrix("matrix"))
    assert refused("train", "text").startswith("nesvm-jit: y must have fewer classes: 39")


def test_a_run_of_many_sub_problems_is_told_what_it_takes(here, monkeypatch):
    (here / "text").write_text("".join(f"{k} 1:{k}\n" for k in range(1, 5)))
    from nesvm_jit.machine import estimate as module

    assert "sub-problems" not in done("train", "text").err
    monkeypatch.setattr(module, "MANY", 4)
    assert "nesvm-jit: 4 sub-problems: 0.0 GB of memory, and at least 0 s\n" in (
        command("train", "text").err
    )
    assert "sub-problems" not in command("train", "-q", "text").err


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.4, "0 s"), (119, "119 s"), (120, "2 minutes"), (7200, "2 hours"), (864000, "10 days")],
)
def test_durations_are_said_in_their_unit(seconds, said):
    line = words.many_problems(Estimate(5000, 2.0**31, seconds))
    assert line == f"5000 sub-problems: 2.0 GB of memory, and at least {said}"
