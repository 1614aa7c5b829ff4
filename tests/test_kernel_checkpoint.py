"""Kernel machines that are stopped inside a fit and taken up again end bit by bit where they would
have ended."""

import numpy as np
import pytest
from nesvm_jit import FormatError
from nesvm_jit.checkpoint.snapshot import read_snapshot, write_snapshot
from nesvm_jit.kernels.public import as_spec
from nesvm_jit.problems.kernel_rows import KernelRows
from nesvm_jit.solvers import coarse

from .compare import same_solution
from .endings import solve, train

FITS = {
    "rows in memory": {"gamma": 0.05, "C": 100.0},
    "few rows in memory": {"gamma": 0.05, "C": 100.0, "cache_mb": 0.3},
    "finer rows": {"gamma": 0.02, "C": 1000.0, "tol": 1e-8},
    "no bias": {"gamma": 0.05, "C": 10.0, "bias": False},
    "precomputed": {"C": 10.0, "kernel": "precomputed"},
    "least squares, factorised": {"model": "lssvm", "gamma": 0.05, "C": 10.0, "tol": 1e-30},
    "least squares, rows in memory": {"model": "lssvm", "gamma": 0.05, "C": 100.0, "cache_mb": 3.7},
    "least squares, few rows": {"model": "lssvm", "gamma": 0.05, "C": 100.0, "cache_mb": 0.3},
    "least squares, no bias": {"model": "lssvm", "C": 100.0, "cache_mb": 0.3, "bias": False},
    "newton": {"solver": "newton", "gamma": 0.05, "C": 10.0},
    "newton, few rows": {"solver": "newton", "gamma": 0.05, "C": 10.0, "cache_mb": 0.3},
    "newton, then pairs": {
        **{"solver": "newton", "kernel": "poly", "gamma": 1.0, "degree": 2, "coef0": 1.0},
        **{"C": 1e4, "tol": 1e-9, "max_iter": 500},
    },
    "algorithm 1": {
        "solver": "nesvm",
        "mu": 0.1,
        "tol": 1e-3,
        "max_iter": 60,
        "lipschitz": "tight",
    },
    "algorithm 1, printed": {"solver": "nesvm", "tol": 1e-12, "max_iter": 60, "epsilon": 1e-9},
    "algorithm 2": {"solver": "homotopy", "gamma": 0.05, "tol": 1e-12, "max_iter": 60},
    "algorithm 2, moving": {
        **{"solver": "homotopy", "kernel": "poly", "gamma": 0.1, "degree": 2, "max_iter": 60},
        **{"lipschitz": "tight", "moving_centre": True, "restart": True, "schedule": "gap"},
    },
    "algorithm 1 of least squares": {"model": "lssvm", "solver": "nesvm", "max_iter": 40},
    "columns": {"model": "lpsvm", "gamma": 0.05, "C": 10.0},
}


def draw(n=700, p=12):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((n, p))
    return X, np.where(X[:, 0] * X[:, 1] + 0.5 * rng.standard_normal(n) > 0.0, 1.0, -1.0)


SLOW = {"columns"}  # half a minute


@pytest.mark.parametrize(
    "name", [pytest.param(k, marks=pytest.mark.slow) if k in SLOW else k for k in FITS]
)
def test_a_fit_that_is_resumed_anywhere_has_the_bits_of_one_that_was_not(name, tmp_path):
    X, y = draw()
    file = tmp_path / "state"
    asked = {"kernel": "rbf", "tol": 1e-6, **FITS[name]}
    if asked["kernel"] == "precomputed":
        X = X @ X.T
    given = {**asked, "checkpoint": file, "checkpoint_every": 1e-9}
    whole = solve(X, y, **given)
    assert whole.n_iter >= 4
    for stop in sorted({1, 2, whole.n_iter // 2, whole.n_iter - 1}):
        file.unlink(missing_ok=True)
        part = solve(X, y, **given, callback=lambda row, stop=stop: row["round"] >= stop)
        assert part.status == "interrupted"
        assert part.n_iter >= stop
        assert read_snapshot(file)["slots"]["0"]["state"]["engine"] is not None
        rest = solve(X, y, **given, resume=True)
        same_solution(rest, whole)
        np.testing.assert_array_equal(rest.beta, whole.beta)


@pytest.mark.parametrize("solver", ["newton", "coordinate"])
def test_a_level_of_few_rows_that_was_cut_short_is_begun_again(solver, tmp_path, monkeypatch):
    monkeypatch.setattr(coarse.newton_in_levels, "__defaults__", (100, None))
    monkeypatch.setattr(coarse.pairwise_in_levels, "__defaults__", (100, None))
    X, y = draw()
    given = {"kernel": "rbf", "gamma": 0.05, "C": 100.0, "tol": 1e-6, "solver": solver}
    given |= {"checkpoint": tmp_path / "state", "checkpoint_every": 1e-9}
    whole = solve(X, y, **given)
    (tmp_path / "state").unlink()
    part = solve(X, y, **given, callback=lambda row: "warm_up" in row)
    assert part.status == "interrupted"
    assert read_snapshot(tmp_path / "state")["slots"] == {}
    rest = solve(X, y, **given, resume=True)
    same_solution(rest, whole)
    np.testing.assert_array_equal(rest.beta, whole.beta)


@pytest.mark.parametrize("solver", ["newton", "coordinate", "homotopy"])
def test_a_run_at_its_limit_is_saved_where_it_stands(solver, tmp_path):
    X, y = draw()
    given = {"kernel": "rbf", "gamma": 0.05, "C": 100.0, "tol": 1e-12, "solver": solver}
    whole = solve(X, y, **given, max_iter=20)
    given |= {"checkpoint": tmp_path / "state"}  # renewed after a minute
    assert solve(X, y, **given, max_iter=7).n_iter == 7
    (slot,) = read_snapshot(tmp_path / "state")["slots"].values()
    assert slot["state"]["run"]["iterations"] == 7
    rest = solve(X, y, **given, max_iter=20, resume=True)
    same_solution(rest, whole)
    np.testing.assert_array_equal(rest.beta, whole.beta)


def test_pairs_of_classes_go_on_inside_a_pair(tmp_path):
    X, _ = draw(300)
    y = np.arange(300) % 3
    given = {"kernel": "rbf", "gamma": 0.1, "C": 50.0, "tol": 1e-7}
    given |= {"checkpoint": tmp_path / "state", "checkpoint_every": 1e-9}
    whole = train(X, y, **given)
    (tmp_path / "state").unlink()
    seen = []

    def stop(row):
        seen.append(row)
        return row["problem"] == 1 and row["round"] >= 3

    train(X, y, **given, callback=stop)
    kept = read_snapshot(tmp_path / "state")
    assert "1" in kept["slots"]
    told = []
    rest = train(X, y, **given, resume=True, callback=told.append)
    assert told[0]["resumed"]["begun"] == len(kept["slots"])
    assert told[0]["resumed"]["done"] == len(kept["done"])
    assert told[0]["elapsed"] > kept["seconds"]
    np.testing.assert_array_equal(rest.record.coefs, whole.record.coefs)
    assert [p["iterations"] for p in rest.problems] == [p["iterations"] for p in whole.problems]


# ---------------------------------------------------------------- rows that are kept


def rows(n=60, budget=None):
    X = np.random.default_rng(1).standard_normal((n, 5))
    return KernelRows(X, as_spec("rbf", 0.2, 0.0, 3, 5), 8.0 * n * n if budget is None else budget)


@pytest.mark.parametrize("slots", [20, 60])
def test_rows_are_kept_as_they_were(slots):
    first, again = rows(budget=8.0 * 60 * slots), rows(budget=8.0 * 60 * slots)
    rng = np.random.default_rng(0)
    for _ in range(6):
        first.fetch(rng.choice(60, 9, replace=False))
    saved = first.state()
    again.restore(saved)
    np.testing.assert_array_equal(again._slots, first._slots)
    held = first._owner >= 0
    np.testing.assert_array_equal(again.store[held], first.store[held])
    assert again.computed == first.computed
    for _ in range(3):
        some = rng.choice(60, 9, replace=False)
        np.testing.assert_array_equal(first.fetch(some), again.fetch(some))
        np.testing.assert_array_equal(first.store[held], again.store[held])


@pytest.mark.parametrize(
    "change",
    [
        {"owner": np.full(60, 60)},
        {"owner": np.full(60, -2)},
        {"owner": np.zeros(60, np.int64)},
        {"owner": np.zeros(3, np.int64)},
        {"with": np.full(60, 77)},
        {"used": np.zeros(1, np.int64)},
        {"members": np.full(9, 60)},
        {"members": np.full(9, -1)},
        {"sizes": np.array([8])},
        {"sizes": np.array([-1])},
        {"numbers": np.array([1, 2])},
    ],
)
def test_rows_of_a_state_that_cannot_be_are_not_kept(change):
    first, again = rows(), rows()
    first.fetch(np.arange(9))
    saved = first.state()
    again.restore({**saved, "kept": {**saved["kept"], **change}})
    assert (again._slots == -1).all()
    again.restore(saved)
    assert (again._slots >= 0).sum() == 9


def test_groups_of_rows_that_are_gone_are_forgotten():
    few = rows(budget=0.0)
    for k in range(200):
        few.fetch(np.array([k % 60]))
    assert len(few._groups) <= 2 * few.capacity + 1
    assert len(few.state()["kept"]["numbers"]) <= few.capacity


# ---------------------------------------------------------------- states that were edited


def edits(state):
    n = len(state["problem"]["beta"])
    yield "run", "alpha", np.zeros(n + 1)
    yield "run", "rows", np.zeros((2, 3))
    yield "run", "iterations", -1
    yield "run", "objective", "high"
    yield "problem", "beta", np.zeros(n - 1)
    yield "problem", "rounding", [0.0, 1.0]
    yield "problem", "rows", {"computed": 1.0}
    yield "steps", "previous", np.array([0, 0])
    yield "steps", "previous", np.array([n])
    yield "steps", "best", np.zeros(2)
    yield "steps", "idle", True


def test_a_state_that_was_edited_is_refused_in_one_line(tmp_path):
    X, y = draw(200)
    file = tmp_path / "state"
    given = {"kernel": "rbf", "gamma": 0.05, "C": 100.0, "tol": 1e-7}
    given |= {"checkpoint": file, "checkpoint_every": 1e-9}
    solve(X, y, **given, callback=lambda row: row["round"] >= 2)
    facts = read_snapshot(file)
    state = facts["slots"]["0"]["state"]
    assert len(list(edits(state))) > 5
    for part, name, value in edits(state):
        changed = {**state, part: {**state[part], name: value}}
        slots = {"0": {**facts["slots"]["0"], "state": changed}}
        write_snapshot(file, {**facts, "slots": slots})
        with pytest.raises(FormatError, match=r"the checkpoint has been changed") as refusal:
            solve(X, y, **given, resume=True)
        assert "\n" not in str(refusal.value)
