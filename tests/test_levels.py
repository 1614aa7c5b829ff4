"""Kernel C-SVM from a part of its rows: which part, at which costs, how roughly solved."""

import numpy as np
import pytest
from nesvm_jit.models import MODELS
from nesvm_jit.problems.kernel import KernelProblem, KernelRows
from nesvm_jit.problems.smoothed_kernel import SmoothedKernel
from nesvm_jit.settings import Settings
from nesvm_jit.solvers.coarse import newton_in_levels, pairwise_in_levels
from nesvm_jit.solvers.run import Run
from scipy.spatial.distance import cdist

approx = pytest.approx
every_bias = pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
every_engine = pytest.mark.parametrize("engine", ["newton", "pairwise"])


class Rows(KernelRows):
    """A matrix that writes down which parts of it were asked for."""

    def __init__(self, K, parts):
        super().__init__(None, None, 0.0, K=K)
        self.parts = parts

    def subset(self, indices):
        self.parts.append(indices)
        return Rows(self.store[np.ix_(indices, indices)], self.parts)


def draw(n=300, cost=1.0):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 3))
    y = np.where(np.linalg.norm(X, axis=1) + 0.3 * rng.standard_normal(n) > 2.0, 1.0, -1.0)
    return np.exp(-0.5 * cdist(X, X, "sqeuclidean")), y, cost * (0.5 + rng.random(n))


def solved(engine, bias=True, n=300, cost=1.0, few=100, late=0.0, **limits):
    """Solve with levels of at most 100 rows at the bottom; what the callback saw, and the parts."""
    (K, y, c), parts, seen = draw(n, cost), [], []
    problem = KernelProblem(Rows(K, parts), y, c, bias)
    run = Run(problem, Settings(callback=seen.append, **limits))
    run.started -= late
    rng = np.random.default_rng(0)
    if engine == "newton":
        newton_in_levels(SmoothedKernel(problem, MODELS["csvm"]()), run, rng, few)
    else:
        pairwise_in_levels(problem, run, rng, few)
    return y, c, parts, seen, run


@every_engine
@every_bias
@pytest.mark.parametrize("cost", [1e-2, 1.0, 1e2])
def test_a_quarter_of_each_class_costs_as_much_as_all(engine, bias, cost):
    y, c, parts, seen, run = solved(engine, bias, cost=cost, tol=1e-5)
    (part,) = parts
    assert part.tolist() == sorted(set(part.tolist()))
    assert [np.sum(y[part] == k) for k in (1, -1)] == [np.sum(y == k) // 4 for k in (1, -1)]
    assert run.status == "converged"
    zero = c.sum()
    if bias and engine == "pairwise":  # with the best b
        zero = 2 * min(c[y == k].sum() for k in (1, -1))
    assert seen[0]["objective"] == approx(zero, rel=1e-12)  # of all rows
    assert (seen[0]["warm_up"], seen[0]["rows"]) == (len(part), len(y))
    assert seen[0]["round"] == 1


@every_engine
@pytest.mark.parametrize("cost", [1e-2, 1.0, 1e2])
def test_the_costs_of_a_part_are_raised_in_proportion(engine, cost, monkeypatch):
    made = []

    class Noting(KernelProblem):
        def __init__(self, rows, y, c, bias, loss):
            made.append(c)
            super().__init__(rows, y, c, bias, loss)

    monkeypatch.setattr("nesvm_jit.solvers.coarse.KernelProblem", Noting)
    _, c, (part,), _, _ = solved(engine, cost=cost)
    (small,) = made
    np.testing.assert_allclose(small, c[part] * c.sum() / c[part].sum(), rtol=1e-12)


@every_engine
def test_a_level_is_solved_roughly_and_no_round_is_missing(engine):
    """The callback is told of every round below, and not of the last one here."""
    y, c, _, seen, run = solved(engine, tol=1e-5)
    rounds = [row["round"] for row in seen]
    assert rounds == list(range(1, run.iterations))
    below = [row for row in seen if "warm_up" in row]
    assert below == seen[: len(below)]
    assert 0 < len(below) < len(seen)
    table = run.history()
    assert table["round"].tolist() == list(range(run.iterations + 1))
    zero = c.sum() if engine == "newton" else 2 * min(c[y == k].sum() for k in (1, -1))
    assert table["objective"][: len(below) + 1] == approx(zero)
    assert (table["gap"][: len(below) + 1] == table["gap"][0]).all()
    assert np.isnan(table["smoothed"][1 : len(below) + 1]).all()
    assert (np.diff(table["passes"]) >= 0.0).all()
    if engine == "newton":
        assert table["mu"][0] == seen[0]["mu"] == 4.0
        assert table["mu"][len(below) + 1] == 0.25
        assert table["objective"][len(below) + 1] < 0.4 * zero
        rougher = solved(engine, tol=0.2)[3]
        assert sum("warm_up" in row for row in rougher) < len(below)  # no more exact than the whole
    exact = solved(engine, few=10**6, tol=1e-6)[4]
    assert run.objective == approx(exact.objective, rel=2e-5)


@every_engine
def test_levels_below_levels_count_once(engine):
    *_, parts, seen, run = solved(engine, few=60, tol=1e-5)
    assert len(parts) == 2
    assert [row["round"] for row in seen] == list(range(1, run.iterations))
    assert {row["warm_up"] for row in seen if "warm_up" in row} == {len(part) for part in parts}
    assert {row["rows"] for row in seen if "warm_up" in row} == {300}


@every_engine
@pytest.mark.parametrize(("few", "sizes"), [(299, 1), (300, 0), (60, 2)])
def test_levels_go_down_to_few_rows(engine, few, sizes):
    _, _, parts, _, run = solved(engine, few=few)
    assert len(parts) == sizes
    assert run.status == "converged"
    assert [len(part) for part in parts] == [74, 18][:sizes]


@pytest.mark.parametrize(("engine", "tol"), [("newton", 0.5), ("pairwise", 1.0)])
def test_a_problem_that_is_solved_at_zero_needs_no_level(engine, tol):
    _, _, parts, _, run = solved(engine, bias=False, cost=1e-9, tol=tol)
    assert parts == []
    assert (run.status, run.iterations) == ("converged", 1)


@every_engine
def test_a_level_has_the_time_that_is_left(engine):
    _, _, _, seen, run = solved(engine, late=100.0, time_limit=50.0, tol=1e-9)
    assert run.status == "time_limit"
    assert run.iterations == 2  # one below, one here
    assert len(seen) == 1


@every_engine
def test_a_limit_below_ends_the_run(engine):
    *_, run = solved(engine, max_iter=2, tol=1e-9)
    assert run.status == "iteration_limit"
    assert run.iterations == 3
    assert run.best is not None


def test_the_parts_of_classes_of_few_rows_have_one_of_each():
    K, y, c = draw(30)
    y[:] = -1.0
    y[:2] = 1.0
    parts = []
    problem = KernelProblem(Rows(K, parts), y, c, True)
    run = Run(problem, Settings(tol=1e-6))
    pairwise_in_levels(problem, run, np.random.default_rng(0), few=20)
    assert [np.sum(y[parts[0]] == k) for k in (1, -1)] == [1, 7]
    assert run.status == "converged"
