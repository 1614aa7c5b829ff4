"""Every formula of the models and of the linear problem against plain NumPy: rows in one block or
several, costs of zero, empty rows, features and costs of other sizes."""

from copy import deepcopy
from inspect import signature
from itertools import pairwise, product
from types import SimpleNamespace

import numpy as np
import pytest
from nesvm_jit.kernels.loss import RowData
from nesvm_jit.matrix.checks import as_matrix
from nesvm_jit.matrix.rows import row_slice, size_of
from nesvm_jit.models import MODELS, Smoothing
from nesvm_jit.numerics.eigenvalues import power_iteration
from nesvm_jit.problems import blocks, certificate
from nesvm_jit.problems.blocks import Block, Resident, block_bounds, block_size
from nesvm_jit.problems.linear import LinearProblem, problem_in_memory
from nesvm_jit.problems.rounding import row_norms_above
from nesvm_jit.problems.shard import Shard
from nesvm_jit.problems.streamed import ClassCosts, Mapped, Signs, Streamed
from nesvm_jit.problems.sums import Curvature, Facts, Sums
from scipy.sparse import csr_matrix

from . import oracle

MU = Smoothing(0.3, 0.7)
BOUNDS = {"one block": [(0, 31)], "four blocks": [(0, 5), (5, 5), (5, 6), (6, 31)]}
every_model = pytest.mark.parametrize("model", MODELS)
every_bias = pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
every_cut = pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS)
approx = pytest.approx
# to an evaluation that the problem remembers
WAYS = {
    "at": lambda problem, *at: problem.at(*at),
    "walk": lambda problem, *at: problem.walk(*at).at,
}


class Pieces:
    """Rows that come in these blocks, and how often they were read."""

    def __init__(self, X, bounds, resident=True):
        self.X, self.bounds, self.resident = as_matrix(X), bounds, resident
        self.size, self.dtype = size_of(self.X), X.dtype
        self.reads = 0

    def __iter__(self):
        self.reads += 1
        return iter([Block(lo, hi, row_slice(self.X, lo, hi)) for lo, hi in self.bounds])


def draw(n=31, p=4, scale=1.0, cost=1.0, seed=0):
    rng = np.random.default_rng(seed)
    X = scale * rng.standard_normal((n, p)) * (rng.random((n, p)) < 0.8)
    X[3] = 0.0
    y = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    y[:2] = [1.0, -1.0]
    c = cost * rng.random(n)
    c[[2, 7]] = 0.0
    return X, y, c, rng


def made(model, bias, bounds=((0, 31),), resident=True, **kind):
    X, y, c, rng = draw(**kind)
    shard = Shard(Pieces(X, list(bounds), resident), y, c, MODELS[model](), bias)
    return LinearProblem(shard), X, y, c, rng


def scales(X, bias):
    s = np.abs(X).max(axis=1)
    return np.maximum(s, 1.0) if bias else np.where(s > 0, s, 1.0)


class Twin:
    """F_μ in plain NumPy, smoothed about centres u and v of the dual variables."""

    def __init__(self, model, X, y, c, bias):
        self.model, self.X, self.y, self.c, self.bias = model, X, y, c, bias
        self.s, self.loss = scales(X, bias), "square" if model == "lssvm" else "hinge"
        self.u0, self.v0 = np.zeros(len(y)), np.zeros(X.shape[1])

    def at(self, v, mu):
        p = self.X.shape[1]
        w, b = v[:p], v[p] if self.bias else 0.0
        centre = 0.0 if self.loss == "square" else self.u0
        weight, d, sums, ascent = oracle.centred_step(
            self.X, self.y, self.c, self.s, centre, self.X @ w + b, mu.loss, self.loss
        )
        if self.model == "lpsvm":
            u = np.clip(self.v0 + w / mu.penalty, -1, 1)
            R, R_mu, g = np.abs(w).sum(), u @ w - mu.penalty / 2 * np.sum((u - self.v0) ** 2), u
            bend = np.where(np.abs(self.v0 + w / mu.penalty) < 1, 1 / mu.penalty, 0.0)
        else:
            R, R_mu, g, bend = 0.5 * w @ w, 0.5 * w @ w, w, np.ones(p)
        A = np.hstack([self.X, np.ones((len(self.y), 1))]) if self.bias else self.X
        H = A.T @ (d[:, None] * A)
        H[range(p), range(p)] += bend
        gradient = np.append(g - ascent, -sums[3])[: len(v)]
        return SimpleNamespace(
            value=R_mu + sums[0],
            objective=R + sums[1],
            gradient=gradient,
            H=H,
            alpha=weight * self.y,
        )

    def dual_value(self, alpha):
        direction = self.X.T @ (alpha * self.y)
        if self.model == "lpsvm":
            assert np.abs(direction).max() <= 1 + 1e-12
            return alpha.sum()
        used = self.c > 0
        square = np.sum(alpha[used] ** 2 / (4 * self.c[used])) if self.model == "lssvm" else 0.0
        return alpha.sum() - square - 0.5 * direction @ direction

    def best_multiple(self, alpha):
        """The largest dual value among the feasible multiples of α, on a fine grid."""
        direction = self.X.T @ (alpha * self.y)
        most = 1e300
        if self.model != "lssvm":
            most = 1 / max((alpha[self.c > 0] / self.c[self.c > 0]).max(), 1e-300)
        if self.model == "lpsvm":
            return min(most, 1 / np.abs(direction).max()) * alpha.sum()
        used = self.c > 0
        square = np.sum(alpha[used] ** 2 / (4 * self.c[used])) if self.model == "lssvm" else 0.0
        bend = direction @ direction + 2 * square
        t = np.linspace(0, min(most, 2 * alpha.sum() / bend), 20001)
        return (t * alpha.sum() - 0.5 * t**2 * bend).max()


def same(found, expect):
    assert found.value == approx(expect.value, rel=1e-12)
    assert found.objective == approx(expect.objective, rel=1e-12)
    np.testing.assert_allclose(found.gradient, expect.gradient, rtol=1e-11, atol=1e-12)


# ---------------------------------------------------------------- the three models


def test_penalties_that_need_no_smoothing():
    w, d = np.array([3.0, -4.0, 0.5]), np.array([1.0, 2.0, -2.0])
    for name in ("csvm", "lssvm"):
        model, out = MODELS[name](), np.empty(3)
        assert model.penalty(w, MU) == (12.625, 12.625)
        model.penalty_gradient(w, MU, out)
        assert out.tolist() == w.tolist()
        assert model.penalty_curvature(w, MU) == 1.0
        assert model.penalty_slope(w, d, 0.5, MU) == (-6.0 + 4.5, 9.0)
        assert model.penalty_lipschitz(MU) == 1.0
        assert model.suboptimality(w, d, 7.0) == 4.5
        assert (model.smoothed_penalty, model.strong_convexity) == (False, 1.0)


def test_the_smoothed_l1_norm():
    mu = Smoothing(2.0, 99.0)
    model, out = MODELS["lpsvm"](), np.empty(4)
    w, centre = np.array([3.0, -1.0, 1.0, -8.0]), np.array([0.5, 0.0, -0.25, 0.0])
    u = np.array([1.0, -0.5, 0.25, -1.0])
    model.penalty_gradient(w, mu, out, centre)
    assert out.tolist() == u.tolist()
    away = 0.25 + 0.25 + 0.25 + 1.0
    assert model.penalty(w, mu, centre) == (13.0, 3.0 + 0.5 + 0.25 + 8.0 - away)
    assert model.penalty_curvature(w, mu, centre).tolist() == [0.0, 0.5, 0.5, 0.0]
    d = np.array([-4.0, 2.0, 1.0, 6.0])
    # at t = ½: w + td = (1, 0, 1.5, −5), about the centre (1, 0, 0.5, −2.5)
    assert model.penalty_slope(w, d, 0.5, mu, centre) == (-4.0 + 0.5 - 6.0, (4.0 + 1.0) / 2.0)
    assert model.penalty_lipschitz(mu) == 0.5
    assert model.suboptimality(w, d, 7.0) == 6.0 * (26.0 + 7.0)
    assert model.suboptimality(w, d / 32.0, 7.0) == 6.0 / 32.0 * (26.0 + 7.0)
    model.penalty_gradient(w, mu, out)
    assert out.tolist() == [1.0, -0.5, 0.5, -1.0]
    assert model.penalty(w, mu) == (13.0, 3.0 + 0.5 + 0.5 + 8.0 - (1.0 + 0.25 + 0.25 + 1.0))
    assert (model.smoothed_penalty, model.strong_convexity) == (True, 0.0)


def test_an_l1_variable_at_its_bound_bends_nothing():
    model, mu = MODELS["lpsvm"](), Smoothing(2.0, 1.0)
    w = np.array([2.0, -2.0, 1.999])
    assert model.penalty_curvature(w, mu).tolist() == [0.0, 0.0, 0.5]
    assert model.penalty_slope(0 * w, np.ones(3), 2.0, mu) == (3.0, 0.0)
    assert model.penalty_slope(0 * w, np.ones(3), 0.0, mu) == (0.0, 1.5)


def test_all_models_smooth_about_zero_unless_told_otherwise():
    for name in ("penalty", "penalty_gradient", "penalty_curvature", "penalty_slope"):
        found = [signature(getattr(model, name)) for model in MODELS.values()]
        assert found == [found[0]] * len(MODELS)
        assert found[0].parameters["centre"].default == 0.0


def test_without_features_there_is_nothing_to_gain():
    none = np.zeros(0)
    for made in MODELS.values():
        model = made()
        assert model.penalty(none, MU) == (0.0, 0.0)
        assert model.suboptimality(none, none, 7.0) == 0.0
    assert MODELS["lpsvm"]().dual_value(3.0, 0.0, none, 0.5) == (1.5, 0.5)


def test_the_curvature_of_the_losses():
    rows = RowData(np.ones(2), np.array([3.0, 0.5]), np.array([2.0, 4.0]))
    for name in ("csvm", "lpsvm"):
        assert MODELS[name]().curvature(rows).tolist() == [1.5, 0.125]
        assert MODELS[name]().curvature_scale(Smoothing(5.0, 0.25)) == 4.0
        assert MODELS[name]().smoothed
    assert MODELS["lssvm"]().curvature(rows).tolist() == [6.0, 1.0]
    assert MODELS["lssvm"]().curvature_scale(Smoothing(5.0, 0.25)) == 1.0
    assert not MODELS["lssvm"]().smoothed


def test_the_best_multiple_of_a_dual_point():
    direction, none = np.array([1.0, -2.0]), np.zeros(2)
    csvm, lpsvm, lssvm = (MODELS[name]() for name in ("csvm", "lpsvm", "lssvm"))
    assert csvm.dual_value(2.5, 0.0, direction, 9.0) == (0.625, 0.5)
    assert csvm.dual_value(3.0, 0.0, direction, 0.5) == (1.5 - 0.625, 0.5)
    assert csvm.dual_value(3.0, 0.0, none, 0.5) == (1.5, 0.5)
    assert lpsvm.dual_value(3.0, 0.0, direction, 9.0) == (1.5, 0.5)
    assert lpsvm.dual_value(3.0, 0.0, direction, 0.25) == (0.75, 0.25)
    assert lpsvm.dual_value(3.0, 0.0, 1e-3 * direction, 9.0) == (27.0, 9.0)
    assert lpsvm.dual_value(3.0, 0.0, none, 0.25) == (0.75, 0.25)
    assert lssvm.dual_value(3.0, 0.5, direction, 0.1) == (0.75, 0.5)  # no bound on it
    assert lssvm.dual_value(3.0, 1.5, none, 1.0) == (1.5, 1.0)


def test_functions_of_rows_are_called_for_a_few_rows_of_a_block_at_a_time(monkeypatch):
    monkeypatch.setattr(blocks, "PIECE", 4)
    problem, _, y, c, _ = made("csvm", False, [(0, 10), (10, 31)])
    shard, a = problem.shard, np.arange(31.0)
    seen: list = []

    def times(rows, v, t):
        seen.append(v.astype(int).tolist())
        return t * rows.y * rows.c * v

    np.testing.assert_array_equal(shard.map(times, (a,), (3.0,)), 3.0 * y * c * a)
    edges = [0, 4, 8, 10, 14, 18, 22, 26, 30, 31]
    assert seen == [list(range(lo, hi)) for lo, hi in pairwise(edges)]
    found = shard.reduce(lambda rows, v: float(rows.c @ v), (a,))
    assert found == pytest.approx(c @ a, rel=1e-14)
    assert shard.reduce(lambda rows, v: v.tolist(), (a,)) == a.tolist()
    assert shard.reduce(lambda rows, v: float(v[0]), (a,), by=max) == 30.0
    norms = row_norms_above(shard._norms, shard.row_cells())
    np.testing.assert_array_equal(shard.row_norms(), norms)


def test_rows_that_cost_nothing_have_no_share_of_their_cost():
    alpha = np.array([1.0, 3.0, 0.0])
    assert certificate.shares(alpha, np.array([2.0, 4.0, 1.0])).tolist() == [0.5, 0.75, 0.0]
    assert certificate.shares(alpha, np.array([2.0, 0.0, 0.0])).tolist() == [0.5, 0.0, 0.0]
    assert certificate.shares(np.zeros(0), np.zeros(0)).tolist() == []


# ---------------------------------------------------------------- balancing


def balanced(model, alpha, y, c, bounds=None):
    alpha, y, c = (np.array(a, dtype=float) for a in (alpha, y, c))
    X = np.ones((len(y), 1))
    shard = Shard(Pieces(X, bounds or [(0, len(y))]), y, c, MODELS[model](), True)
    return [a.tolist() for a in certificate.balanced(shard, alpha)]


@pytest.mark.parametrize("bounds", [None, [(0, 1), (1, 4)]])
@pytest.mark.parametrize("model", ["csvm", "lpsvm"])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("size", [2.0**-20, 1.0, 2.0**20])
def test_points_in_the_box_are_balanced_in_two_ways(model, sign, bounds, size):
    y, alpha = [sign, sign, -sign, -sign], size * np.array([2.0, 2.0, 1.0, 1.0])
    # 2 too much; inside there is room of 2 in the heavy class and of 1 in the other
    scaled, moved = balanced(model, alpha, y, size * np.array([3.0, 2.0, 1.0, 2.0]), bounds)
    assert scaled == [size, size, size, size]
    assert np.array(moved) / size == approx([2.0 - 4 / 3, 2.0, 1.0, 1.0 + 2 / 3])


def test_a_class_of_zeros_takes_the_other_to_zero():
    assert balanced("csvm", [0.5, 0.0], [1, -1], [1.0, 1.0]) == [[0.0, 0.0], [0.0, 0.0]]


def test_what_is_balanced_is_left_alone():
    assert balanced("csvm", [1.0, 0.5, 0.5], [1, -1, -1], [2, 2, 2]) == [[1.0, 0.5, 0.5]]


def test_where_there_is_too_little_room_the_heavy_class_gives_the_rest():
    # 5 too much, room of 1 on each side: after it, 3 of 5 are left to be scaled
    scaled, moved = balanced("csvm", [5.0, 1.0, 1.0], [1, 1, -1], [5.0, 2.0, 2.0])
    assert scaled == approx([5 / 6, 1 / 6, 1.0])
    assert moved == approx([2.0, 0.0, 2.0])


def test_entries_at_their_bounds_do_not_help_to_balance():
    scaled, moved = balanced("csvm", [4.0, 0.0, 2.0, 0.0], [1, 1, -1, -1], [4.0, 1.0, 2.0, 1.0])
    assert scaled == moved == [2.0, 0.0, 2.0, 0.0]


def test_least_squares_are_balanced_in_their_own_metric():
    (a,) = balanced("lssvm", [2.0, 1.0, 0.5], [1, 1, -1], [1.0, 3.0, 1.0], [(0, 2), (2, 3)])
    assert a == [1.5, -0.5, 1.0]


def test_balancing_moves_exactly_the_excess_where_room_equals_it():
    _, moved = balanced("csvm", [2.0, 1.0, 1.0], [1, 1, -1], [2.0, 2.0, 2.0])
    assert moved == [2.0, 0.0, 2.0]


# ---------------------------------------------------------------- rows and sums


def test_sums_of_two_shards_are_those_of_both():
    a, b = np.array([1.0, 2.0]), np.array([10.0, 30.0])
    both = Sums(1, 2, 3, 4, 5, a).joined(Sums(20, 30, 40, 50, 4, b))
    assert both[:5] == (21, 32, 43, 54, 5)
    assert both.dual_weights.tolist() == [11.0, 32.0]
    with_bias = Curvature(a, b, 2.0).joined(Curvature(b, a, 5.0))
    assert (with_bias.H.tolist(), with_bias.column.tolist()) == ([11.0, 32.0], [11.0, 32.0])
    assert with_bias.total == 7.0
    assert Curvature(a, None, 0.0).joined(Curvature(b, None, 0.0)).column is None
    facts = Facts(1, 2.0, 3.0, 4.0, 5.0, 6.0, 9).joined(Facts(10, 20.0, 2.0, 40.0, 50.0, 7.0, 8))
    assert facts == (11, 22.0, 3.0, 44.0, 55.0, 7.0, 10)


@every_model
@every_bias
@every_cut
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_what_is_learnt_of_the_rows(model, bias, bounds, scale):
    problem, X, _, c, _ = made(model, bias, bounds, scale=scale)
    s, squares = scales(X, bias), (X**2).sum(axis=1)
    d = 2 * c if model == "lssvm" else c / s
    expect = (31, d.sum(), (d * (squares + bias)).max(), squares.sum(), c.sum(), c.max())
    facts = problem.shard.facts
    np.testing.assert_allclose(facts[:-1], expect, rtol=1e-12, atol=1e-14)
    blocks = [hi - lo for lo, hi in problem.shard.data.bounds]  # each of one chunk
    assert max(blocks) + len(blocks) <= facts.depth <= max(blocks) + 2 * len(blocks)
    np.testing.assert_allclose(problem.shard.rows.s, s, rtol=1e-15)
    np.testing.assert_allclose(problem.shard.squares(), squares, rtol=1e-9, atol=1e-15)
    assert problem.mean_square() == approx(squares.mean(), rel=1e-3)
    assert problem.lipschitz("paper", MU) == approx(
        (1 / MU.penalty if model == "lpsvm" else 1.0)
        + 31 * expect[2] / (1.0 if model == "lssvm" else MU.loss),
        rel=1e-12,
    )


def test_the_mean_square_of_empty_rows_is_one():
    shard = Shard(
        Resident(as_matrix(np.zeros((3, 2)))),
        np.array([1.0, -1, 1]),
        np.ones(3),
        MODELS["csvm"](),
        1,
    )
    assert LinearProblem(shard).mean_square() == 1.0


def test_blocks_have_about_64_mb_and_at_least_one_row():
    def bounds(n, p):
        return block_bounds(size_of(np.broadcast_to(0.0, (n, p))))

    assert bounds(10, 4) == [(0, 10)]
    assert bounds(8, 1 << 20) == [(0, 8)]  # 64 MB
    assert bounds(9, 1 << 20) == [(0, 4), (4, 9)]
    assert bounds(3, 1 << 25) == [(0, 1), (1, 2), (2, 3)]
    assert bounds(0, 4) == [(0, 0)]


def test_the_size_of_a_block_is_that_of_the_largest():
    X = np.ones((10, 3))
    size = block_size(Pieces(X, [(0, 2), (2, 9), (9, 10)]))
    assert (size.rows, size.cols, size.cells, size.row_bytes) == (7, 3, 10, 24)


def test_a_matrix_in_memory_is_its_own_only_block():
    for X in (as_matrix(draw()[0]), as_matrix(csr_matrix(draw()[0]))):
        data = Resident(X)
        ((lo, hi, block),) = list(data)
        assert (lo, hi) == (0, 31)
        assert block is X
        assert data.resident
        assert data.dtype == np.float64
        assert data.size == size_of(X)


def test_rows_on_disk_come_in_the_blocks_of_memory():
    asked = []

    def ranges(bounds, reuse):
        asked.append((bounds, reuse))
        return [(lo, hi, f"rows {lo} to {hi}") for lo, hi in bounds]

    disk = SimpleNamespace(
        n_rows=10, n_cols=7, n_cells=30, dtype=np.dtype(np.float32), ranges=ranges
    )
    data = Streamed(disk)
    assert not data.resident
    assert data.dtype == np.float32
    assert data.size == (10, 7, 30, 24)
    assert list(data) == [(0, 10, "rows 0 to 10")]
    wide = Mapped(disk, lambda X: X.upper(), 1 << 20, np.dtype(np.float64))
    assert not wide.resident
    assert wide.dtype == np.float64
    assert wide.size == (10, 1 << 20, 10 << 20, 8 << 20)
    assert list(wide) == [(0, 5, "ROWS 0 TO 5"), (5, 10, "ROWS 5 TO 10")]
    assert asked == [([(0, 10)], True), ([(0, 5), (5, 10)], True)]


def test_labels_and_costs_of_classes_are_numbers_where_they_are_read():
    signs = Signs(np.array([True, False, True]))
    assert len(signs) == 3
    assert signs[1:3].tolist() == [-1.0, 1.0]
    assert signs[1:3].dtype == np.float64
    costs = ClassCosts(np.array([1, 0, 1, 1]), np.array([0.5, 2.0]))
    assert len(costs) == 4
    assert costs[0:3].tolist() == [2.0, 0.5, 2.0]


def test_power_iteration_counts_and_comes_from_below():
    calls = []

    def times(A):
        return lambda v: calls.append(1) or A @ v

    assert power_iteration(times(3.0 * np.eye(4)), 4) == approx(3.0, rel=1e-12)
    assert len(calls) == 2
    calls.clear()
    assert power_iteration(times(np.zeros((4, 4))), 4) == 0.0
    assert len(calls) == 1
    calls.clear()
    A = np.diag([5.0, 4.0, 1.0])
    assert 0.999 * 5.0 <= power_iteration(times(A), 3) <= 5.0
    assert 5 <= len(calls) <= 40
    for size in (1e-6, 1.0, 1e6):
        calls.clear()
        B = size * np.random.default_rng(3).standard_normal((40, 6))
        v, value, before, rounds = np.random.default_rng(0).random(6) + 0.5, 0.0, -1.0, 0
        while value - before > 1e-4 * value or rounds < 1:
            v, rounds = v / np.linalg.norm(v), rounds + 1
            before, value, v = value, v @ B.T @ B @ v, B.T @ B @ v
        assert power_iteration(times(B.T @ B), 6) == approx(value, rel=1e-9)
        assert len(calls) == rounds
    calls.clear()
    power_iteration(lambda v: calls.append(1) or 2.0 ** len(calls) * v, 3)  # never still
    assert len(calls) == 100


# ---------------------------------------------------------------- values, steps, curvature


@every_model
@every_bias
@every_cut
@pytest.mark.parametrize(("scale", "cost"), [(1.0, 1.0), (1e-6, 1e3), (1e6, 1e-9)])
def test_values_at_any_point(model, bias, bounds, scale, cost):
    problem, X, y, c, rng = made(model, bias, bounds, scale=scale, cost=cost)
    twin = Twin(model, X, y, c, bias)
    v = rng.standard_normal(problem.n_variables) / scale
    for k, mu in enumerate((MU, Smoothing(2.0, 0.01), MU)):
        same(problem.at(v, mu), twin.at(v, mu))
        assert problem.passes == k + 1
        assert problem.shard.data.reads == 2  # rows in memory are cut into blocks once


@every_model
@every_bias
@every_cut
@pytest.mark.parametrize("resident", [True, False])
def test_steps_slopes_and_curvature(model, bias, bounds, resident):
    problem, X, y, c, rng = made(model, bias, bounds, resident)
    twin, mu = Twin(model, X, y, c, bias), MU
    v, n = rng.standard_normal(problem.n_variables), problem.n_variables
    if model != "lssvm":
        twin.u0 = np.where(c > 0, rng.random(31), 0.0)
    walk = problem.walk(v, mu, c * twin.u0)
    same(walk.at, twin.at(v, mu))
    assert problem.passes == 1
    for k in range(3):
        d = rng.standard_normal(n)
        reads = problem.shard.data.reads
        walk.aim(d)
        assert problem.passes == 2 + k + 2 * k
        for t in (0.0, 0.4, -1.5):
            first, second = walk.slope(t, mu)
            at = twin.at(v + t * d, mu)
            assert first == approx(at.gradient @ d, rel=1e-10, abs=1e-10)
            assert second == approx(d @ at.H @ d, rel=1e-10, abs=1e-10)
        assert problem.shard.data.reads == reads + (not resident)
        t = (0.3, 1.0, -0.5)[k]
        same(walk.step(t, mu), twin.at(v + t * d, mu))
        v = v + t * d
        np.testing.assert_allclose(walk.point, v, rtol=1e-14)
        np.testing.assert_allclose(
            walk.state()["rows"]["margins"],
            X @ v[:4] + (v[-1] if bias else 0.0),
            rtol=1e-11,
            atol=1e-12,
        )
        H = twin.at(v, mu).H
        np.testing.assert_allclose(walk.hessian(), H, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(walk.hessian_diagonal(), np.diag(H), rtol=1e-11)
        for e in (d, np.eye(n)[-1]):
            np.testing.assert_allclose(walk.hessian_times(e), H @ e, rtol=1e-10, atol=1e-10)
        at = twin.at(v, mu)
        walk.recentre()
        if model != "lssvm":
            twin.u0 = np.divide(at.alpha, c, out=np.zeros(31), where=c > 0)
        if model == "lpsvm":
            twin.v0 = np.clip(twin.v0 + v[:4] / mu.penalty, -1, 1)
        mu = Smoothing(0.5 * mu.penalty, 0.5 * mu.loss)
        same(walk.step(0.0, mu), twin.at(v, mu))
    walk = problem.walk(v, MU)
    same(walk.at, Twin(model, X, y, c, bias).at(v, MU))
    assert walk.slope(2.0, MU) == (0.0, 0.0)  # the direction is chosen anew
    problem.shard.place(2 * v[:4], 0.5)
    margins = problem.shard.state()["margins"]
    np.testing.assert_allclose(margins, X @ (2 * v[:4]) + 0.5, rtol=1e-12)


@pytest.mark.parametrize("model", ["csvm", "lpsvm"])
@every_cut
def test_a_bias_without_active_rows_keeps_a_little_curvature(model, bounds):
    problem, X, _, c, _ = made(model, True, bounds)
    v = np.append(np.zeros(4), 1e9)
    walk = problem.walk(v, MU)
    little = 1e-8 * (c / scales(X, True)).sum() / MU.loss
    bend = 1 / MU.penalty if model == "lpsvm" else 1.0
    expect = np.diag(np.append(np.full(4, bend), little))
    np.testing.assert_allclose(walk.hessian(), expect, rtol=1e-12)
    np.testing.assert_allclose(walk.hessian_diagonal(), np.diag(expect), rtol=1e-12)
    np.testing.assert_allclose(walk.hessian_times(np.ones(5)), np.diag(expect), rtol=1e-12)


@pytest.mark.parametrize("make", [as_matrix, lambda X: as_matrix(csr_matrix(X))])
@pytest.mark.parametrize(("model", "scale", "single"), [
    ("csvm", 1.0, True), ("lssvm", 1.0, True), ("lpsvm", 1.0, False), ("csvm", 1e8, False),
])  # fmt: skip
def test_hessians_of_single_data_are_multiplied_in_single_where_it_is_enough(
    make, model, scale, single
):
    X, y, c, _ = draw(scale=scale)
    X = X.astype(np.float32)
    mu = Smoothing(1e9, 1e9)  # every row bends F_μ
    problem = problem_in_memory(
        make(X), y, 1e9 * c if model != "lssvm" else c, MODELS[model](), False
    )
    walk = problem.walk(np.zeros(4), mu)
    X = X.astype(float)
    d = 2 * c if model == "lssvm" else c / scales(X, False)
    H = X.T @ (d[:, None] * X) + (1e-9 if model == "lpsvm" else 1.0) * np.eye(4)
    error = np.abs(walk.hessian() - H).max() / np.abs(H).max()
    assert 1e-11 < error < 1e-5 if single else error < 1e-13


@pytest.mark.parametrize(("trace", "single"), [(0.9e8, True), (1.1e8, False)])
def test_hessians_are_multiplied_in_single_up_to_a_trace_of_1e8(trace, single):
    X, y, c, _ = draw()
    X = X.astype(np.float32)
    c *= trace / (2 * c @ (X.astype(float) ** 2).sum(axis=1))
    problem = problem_in_memory(as_matrix(X), y, c, MODELS["lssvm"](), False)
    walk = problem.walk(np.zeros(4), MU)
    X = X.astype(float)
    H = X.T @ (2 * c[:, None] * X) + np.eye(4)
    error = np.abs(walk.hessian() - H).max() / np.abs(H).max()
    assert 1e-11 < error < 1e-5 if single else error < 1e-13


def test_rows_that_are_read_again_in_single_precision_have_a_hessian_too():
    X, y, c, _ = draw()
    data = Pieces(X.astype(np.float32), [(0, 9), (9, 31)], resident=False)
    problem = LinearProblem(Shard(data, y, c, MODELS["lssvm"](), False))
    walk = problem.walk(np.zeros(4), MU)
    H = X.T @ (2 * c[:, None] * X) + np.eye(4)
    np.testing.assert_allclose(walk.hessian(), H, rtol=1e-4, atol=1e-5)


# ---------------------------------------------------------------- bounds


@every_model
@every_cut
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mu", [MU, Smoothing(5.0, 50.0)], ids=["sharp", "soft"])
def test_without_a_bias_the_best_multiple_costs_no_pass(model, bounds, way, mu):
    problem, X, y, c, rng = made(model, False, bounds)
    twin, v = Twin(model, X, y, c, False), 0.3 * rng.standard_normal(4)
    at = twin.at(v, mu)
    found = WAYS[way](problem, v, mu)
    before = problem.passes
    value, alpha = problem.bound(found)
    assert problem.passes == before
    assert value == approx(twin.dual_value(alpha), rel=1e-12)
    assert value == approx(twin.best_multiple(at.alpha), rel=1e-6)
    t = alpha.sum() / at.alpha.sum()
    np.testing.assert_allclose(alpha, t * at.alpha, rtol=1e-11, atol=1e-15)
    plain = twin.best_multiple(at.alpha) if model == "lssvm" else None
    if model == "csvm":
        direction = X.T @ (at.alpha * y)
        t = min(1.0, at.alpha.sum() / (direction @ direction))
        plain = t * at.alpha.sum() - 0.5 * t * t * (direction @ direction)
    if model == "lpsvm":
        plain = at.alpha.sum() * min(1.0, 1 / np.abs(X.T @ (at.alpha * y)).max())
    assert problem.estimate_bound(found) == approx(plain, rel=1e-6)


@every_model
@every_bias
def test_a_dual_point_is_of_its_evaluation_whatever_was_evaluated_before(model, bias):
    def fresh():
        return made(model, bias)[0]

    _, X, y, c, rng = made(model, bias)
    one, two = 0.3 * rng.standard_normal((2, 5))[:, : fresh().n_variables]
    alpha = 0.1 * c
    direction = X.T @ (alpha * y)
    expect = {}
    for way in ("step", "sweep", "judge"):
        problem = fresh()
        expect[way] = problem.bound(_go(problem, way, two, alpha, direction))
    for before, after in product(("step", "sweep", "judge"), repeat=2):
        problem = fresh()
        problem.bound(_go(problem, before, one, 0.5 * alpha, 0.5 * direction))
        value, point = problem.bound(_go(problem, after, two, alpha, direction))
        assert value == expect[after].value
        np.testing.assert_array_equal(point, expect[after].alpha)


def _go(problem, way, v, alpha, direction):
    if way == "step":
        return problem.walk(v, MU).at
    if way == "sweep":
        return problem.at(v, MU)
    return problem.judge(v, alpha, direction)


def test_two_repaired_points_may_be_the_same():
    X, y, c, _ = draw()
    problem = problem_in_memory(as_matrix(X), y, c, MODELS["csvm"](), True)
    _, alpha = problem.bound(problem.at(np.zeros(5), Smoothing(1e-9, 1e-9)))  # every u is one
    heavy = 1.0 if c @ y > 0 else -1.0
    lighter = c[y != heavy].sum() / c[y == heavy].sum()
    expect = np.where(y == heavy, lighter * c, c)
    np.testing.assert_allclose(alpha, expect * (alpha.sum() / expect.sum()), rtol=1e-12)


@pytest.mark.parametrize("times", [2.0, 4.0, 0.5, 1.0])
def test_a_multiple_is_taken_whatever_it_is(times):
    X, y, c = 1e-3 * np.eye(2), np.array([1.0, -1.0]), np.array([1.0, 0.5])
    problem = problem_in_memory(as_matrix(X), y, c, MODELS["csvm"](), False)
    value, alpha = problem.value_of(c / times)
    assert alpha.tolist() == c.tolist()
    assert value == approx(1.5 - 0.5e-6 * 1.25)


def in_two_ways(alpha, y, c):
    """Balanced in NumPy: the heavy class scaled down; entries inside moved first."""
    heavy = 1.0 if alpha @ y > 0 else -1.0

    def lowered(a):
        most, least = a[y == heavy].sum(), a[y != heavy].sum()
        return np.where(y == heavy, a * least / most, a) if most > least else a

    inside = (alpha > 0) & (alpha < c)
    room = np.where(inside, np.where(y == heavy, alpha, c - alpha), 0.0)
    share = min(1.0, abs(alpha @ y) / room.sum())
    return lowered(alpha), lowered(alpha - heavy * y * share * room)


def best_between(twin, one, two):
    """The point between two whose best multiple is worth most: the value rises and then falls."""

    def point(t):
        return (1 - t) * one + t * two

    low, high = 0.0, 1.0
    while high - low > 1e-10:
        a, b = low + (high - low) / 3, high - (high - low) / 3
        if twin.best_multiple(point(a)) < twin.best_multiple(point(b)):
            low = a
        else:
            high = b
    return max(map(point, (0.0, low, 1.0)), key=twin.best_multiple)


@every_model
@every_cut
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shift", [0.0, 0.4, -0.3])
def test_with_a_bias_the_best_point_between_two_repaired_ones_is_taken(model, bounds, way, shift):
    problem, X, y, c, rng = made(model, True, bounds)
    twin = Twin(model, X, y, c, True)
    v = np.append(0.3 * rng.standard_normal(4), shift)
    raw = twin.at(v, MU).alpha
    found = WAYS[way](problem, v, MU)
    before = problem.passes
    value, alpha = problem.bound(found)
    if model == "lssvm":
        best, points = raw - c * y * (raw @ y) / c.sum(), 1
    else:
        best, points = best_between(twin, *in_two_ways(raw, y, c)), 2
    assert problem.passes == before + points
    assert abs(alpha @ y) <= 1e-13 * np.abs(alpha).sum()
    assert value == approx(twin.best_multiple(best), rel=1e-9)
    assert value == approx(twin.dual_value(alpha), rel=1e-12)
    near = 1e-9 if model == "lssvm" else 1e-6  # the value is flat where it is largest
    np.testing.assert_allclose(alpha, best * (alpha.sum() / best.sum()), rtol=near, atol=1e-14)


@every_model
@every_bias
@every_cut
def test_a_dual_point_is_valued_afresh_in_one_pass(model, bias, bounds):
    problem, X, y, c, rng = made(model, bias, bounds)
    twin = Twin(model, X, y, c, bias)
    for alpha in (c * rng.random(31), 0.01 * c, np.zeros(31)):
        before = problem.passes
        value, found = problem.value_of(alpha)
        assert problem.passes == before + 1
        if not alpha.any():
            assert value == 0.0
            continue
        assert value == approx(twin.best_multiple(alpha), rel=1e-6)
        assert value == approx(twin.dual_value(found), rel=1e-12)
        np.testing.assert_allclose(problem.dual_weights(alpha), X.T @ (alpha * y), atol=1e-13)


@pytest.mark.parametrize("model", ["csvm", "lpsvm"])
def test_a_point_that_is_its_own_best_multiple_is_returned_as_it_is(model):
    problem, _, _, c, _ = made(model, False)
    alpha = 1e-12 * c
    assert problem.value_of(alpha).alpha.max() <= c.max()
    full = np.where(c > 0, c, 0.0)
    scaled = problem.value_of(full / 3).alpha
    np.testing.assert_allclose(problem.value_of(scaled).alpha, scaled, rtol=1e-14)


@every_model
@every_bias
def test_what_the_gap_owes_to_a_gradient(model, bias):
    problem, _, _, _, rng = made(model, bias)
    for b in (0.2, -7.0):
        v = np.append(rng.standard_normal(4), b)[: problem.n_variables]
        found = problem.at(v, MU)
        g, w = found.gradient[:4], v[:4]
        expect = 0.5 * g @ g
        if model == "lpsvm":
            expect = np.abs(g).max() * (2 * np.abs(w).sum() + found.objective)
        if bias:
            expect += abs(found.gradient[4]) * max(1.0, abs(b))
        assert problem.suboptimality(found) == approx(expect, rel=1e-12)


@every_model
@every_bias
@every_cut
def test_the_spectral_constant_takes_two_passes_a_round_once(model, bias, bounds):
    problem, X, _, c, _ = made(model, bias, bounds, resident=False)
    d = 2 * c if model == "lssvm" else c / scales(X, bias) / MU.loss
    A = np.hstack([X, np.ones((31, 1))]) if bias else X
    top = np.linalg.eigvalsh(A.T @ (d[:, None] * A))[-1]
    before = problem.shard.data.reads
    tight = problem.lipschitz("tight", MU) - (1 / MU.penalty if model == "lpsvm" else 1.0)
    assert problem.passes == 2 * (problem.shard.data.reads - before)
    assert 1.01 * top * 0.998 <= tight <= 1.01 * top * (1 + 1e-12)
    rounds = problem.passes
    assert 4 <= rounds <= 60
    problem.lipschitz("tight", Smoothing(9.0, 9.0))
    problem.lipschitz("paper", MU)
    assert problem.passes == rounds


# ---------------------------------------------------------------- values afresh


@every_model
@every_bias
@every_cut
def test_a_judged_point_has_its_objective_and_bound(model, bias, bounds):
    problem, X, y, c, rng = made(model, bias, bounds)
    twin = Twin(model, X, y, c, bias)
    v = 0.3 * rng.standard_normal(problem.n_variables)
    alpha = 0.5 * c * rng.random(31)
    found = problem.judge(v, alpha, X.T @ (alpha * y))
    expect = twin.at(v, MU).objective
    assert found.value == found.objective == approx(expect, rel=1e-12)
    assert problem.passes == 1
    margins = X @ v[:4] + (v[-1] if bias else 0)
    np.testing.assert_allclose(found.margins, margins, rtol=1e-12)
    value, point = problem.bound(found)
    assert value == approx(twin.dual_value(point), rel=1e-12)
    if not bias:
        assert value == approx(twin.best_multiple(alpha), rel=1e-6)
        assert problem.estimate_bound(found) <= value * (1 + 1e-12)
    before = problem.passes
    for k, u in enumerate((v, v + 1.0, v)):
        objective, margins = problem.objective_at(u)
        assert objective == approx(twin.at(u, MU).objective, rel=1e-12)
        np.testing.assert_allclose(margins, X @ u[:4] + (u[-1] if bias else 0), rtol=1e-12)
        assert problem.passes == before + 1 + k
    before = problem.passes
    same(problem.walk(v, MU, margins=margins).at, twin.at(v, MU))  # they are known
    assert problem.passes == before
    same(problem.walk(v + 1.0, MU).at, twin.at(v + 1.0, MU))


@every_model
@pytest.mark.parametrize("size", [0.1, 1.0, 10.0])
def test_the_loss_of_residuals_and_the_gap_they_promise(model, size):
    problem, _, _, c, rng = made(model, False)
    r = rng.standard_normal(31)
    loss = c @ (r**2 if model == "lssvm" else np.maximum(r, 0))
    assert problem.loss_of(r) == approx(loss, rel=1e-13)
    w = size * rng.standard_normal(4)
    P = (np.abs(w).sum() if model == "lpsvm" else 0.5 * w @ w) + loss
    D, total = {"csvm": (2.0 - 0.5 * w @ w, 2.0), "lssvm": (2.0 - 0.5 * w @ w - 0.7, 2.0)}.get(
        model, (2.0 * min(1, 1 / np.abs(w).max()), 2.0)
    )
    if model == "csvm":
        t = min(1.0, 2.0 / (w @ w))
        D = 2.0 * t - 0.5 * t * t * w @ w
    if model == "lssvm":
        t = 2.0 / (w @ w + 1.4)
        D = 2.0 * t - t * t * (0.7 + 0.5 * w @ w)
    assert problem.guess_gap(w, loss, total, 0.7) == approx((P - D) / P, rel=1e-12)
    assert problem.guess_gap(0 * w, 0.0, 0.0, 0.0) == 0.0
    assert problem.guess_gap(1e-3 * w, 0.0, 0.0, 0.0) == 1.0


@pytest.mark.parametrize("scale", [2.0**-12, 1.0, 2.0**12])
def test_points_with_more_and_more_zeros(scale):
    X, y, c, _ = draw(p=10)
    problem = problem_in_memory(as_matrix(X), y, c, MODELS["lpsvm"](), True)
    v = np.array([20.0, -0.2, 0.02, 2e-3, 1.9e-5, 5.0, 0.3, 0.03, -3e-3, 3e-5, 0.7]) * scale
    last = problem.at(v, Smoothing(6.0 * scale, 1.0))
    kept = [set(np.flatnonzero(z)) for z in problem.sparser(v, last)]
    assert kept[0] == {0, 10}  # those beyond 6, and the bias
    assert kept[1] == {0, 5, 6, 10}
    assert kept[2] == kept[1] | {1, 7}
    assert kept[3] == kept[2] | {2, 8}
    assert kept[4] == kept[3] | {3, 9}
    assert len(kept) == 5
    assert all(z[-1] == v[-1] for z in problem.sparser(v, problem.at(v, MU)))
    assert v[1] == -0.2 * scale
    nothing = np.zeros(11)
    assert all(not z.any() for z in problem.sparser(nothing, problem.at(nothing, MU)))


# ---------------------------------------------------------------- to go on elsewhere


@every_model
@every_bias
def test_a_problem_goes_on_from_the_state_of_another(model, bias):
    one, _, _, c, rng = made(model, bias)
    other = made(model, bias)[0]
    v = rng.standard_normal(one.n_variables)
    one.lipschitz("tight", MU)
    first = one.walk(v, MU, 0.5 * c)
    first.aim(rng.standard_normal(one.n_variables))
    first.step(0.2, MU)
    first.recentre()
    first.step(0.0, MU)
    assert set(one.state()) == {"passes", "spectral"}
    assert set(first.state()) == {"at", "centre", "penalty_centre", "factor", "rows"}
    other.restore(deepcopy(one.state()))
    second = other.resume_walk(deepcopy(first.state()))
    assert second.slope(0.7, MU) == (0.0, 0.0)  # a direction is yet to be chosen
    assert other.passes == one.passes
    assert other.lipschitz("tight", MU) == one.lipschitz("tight", MU)
    assert other.passes == one.passes
    assert other.bound(second.at).value == one.bound(first.at).value
    assert other.estimate_bound(second.at) == one.estimate_bound(first.at)
    d = rng.standard_normal(one.n_variables)
    for walk in (first, second):
        walk.aim(d)
    assert first.slope(0.3, MU) == second.slope(0.3, MU)
    a, b = first.step(0.3, MU), second.step(0.3, MU)
    assert (a.value, a.objective) == (b.value, b.objective)
    np.testing.assert_array_equal(a.gradient, b.gradient)
    np.testing.assert_array_equal(first.hessian(), second.hessian())
    np.testing.assert_array_equal(one.bound(a).alpha, other.bound(b).alpha)


def test_counts_alone_are_restored_where_no_walk_was_saved():
    one, other = made("csvm", True)[0], made("csvm", True)[0]
    one.lipschitz("tight", MU)
    other.restore(one.state())
    assert other.passes == one.passes > 0
    v = np.ones(5)
    assert other.walk(v, MU).at.value == one.walk(v, MU).at.value


@pytest.mark.parametrize("alpha", [[5.0, 0.5], [0.0, 0.0]])
def test_smoothing_about_a_point_of_the_shard(alpha):
    X, y, c = np.eye(2), np.array([1.0, -1.0]), np.array([10.0, 0.0])
    problem = problem_in_memory(as_matrix(X), y, c, MODELS["csvm"](), False)
    v = np.array([2.0, 0.0])
    found = problem.walk(v, Smoothing(4.0, 4.0), np.array(alpha)).at
    # r = −1: u = median(α/c − ¼, 0, 1), h = u r − 2(u − α/c)²
    u0 = alpha[0] / 10
    u = max(0.0, u0 - 0.25)
    assert found.value == approx(2.0 + 10 * (-u - 2 * (u - u0) ** 2))


def test_a_balanced_point_of_a_problem_in_memory_is_left_alone():
    y, c = np.array([1.0, -1.0]), np.ones(2)
    shard = problem_in_memory(as_matrix(np.ones((2, 1))), y, c, MODELS["csvm"](), True).shard
    (same_point,) = certificate.balanced(shard, np.array([0.5, 0.5]))
    assert same_point.tolist() == [0.5, 0.5]
