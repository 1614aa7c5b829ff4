"""Smoothing, gradients, Lipschitz constants and dual values of the models."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nesvm_jit.matrix.checks import as_matrix
from nesvm_jit.models import MODELS, Smoothing
from nesvm_jit.problems.certificate import balanced
from nesvm_jit.problems.linear import problem_in_memory

from . import oracle
from .data import sparse_normal
from .optima import objective

# The loss of each model by its name in the oracle.
LOSSES = {"csvm": "hinge", "lpsvm": "hinge", "lssvm": "square"}
SMOOTHINGS = [Smoothing(0.3, 0.7), Smoothing(5.0, 5.0), Smoothing(1e-3, 1e-2)]


@pytest.fixture(params=MODELS)
def model(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["no bias", "bias"])
def bias(request):
    return request.param


def make(model, bias, n=40, p=6, seed=0, free=0.0):
    """A problem and the arrays it is of."""
    rng = np.random.default_rng(seed)
    X, y, c = sparse_normal(n, p, seed), rng.choice([-1.0, 1.0], n), rng.random(n)
    c[rng.random(n) < free] = 0.0
    problem = problem_in_memory(as_matrix(X), y, c, MODELS[model](), bias)
    return problem, X, y, c, rng


def half_square(w, mu):
    return 0.5 * w @ w


def smoothed_l1(w, mu):
    u = oracle.project_l1(w, mu)
    return np.sum(u * w - mu / 2 * u**2)


PENALTIES = {"csvm": half_square, "lpsvm": smoothed_l1, "lssvm": half_square}


def smoothed_objective(model, X, y, c, s, w, b, smoothing):
    """F_μ in plain NumPy."""
    value = oracle.sweep(X, y, w, b, c, s, smoothing.loss, LOSSES[model])[1]
    return value + PENALTIES[model](w, smoothing.penalty)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_value_and_objective(model, bias, smoothing):
    problem, X, y, c, rng = make(model, bias)
    v = rng.standard_normal(problem.n_variables)
    w, b = problem.split(v)
    s = np.abs(X).max(axis=1)
    s = np.maximum(s, 1) if bias else np.where(s > 0, s, 1)
    found = problem.at(v, smoothing)
    assert found.value == pytest.approx(smoothed_objective(model, X, y, c, s, w, b, smoothing))
    assert found.objective == pytest.approx(objective(model, X, y, c, w, b))


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_gradient_is_the_slope(model, bias, smoothing):
    problem, *_, rng = make(model, bias)
    v = rng.standard_normal(problem.n_variables)
    g = problem.at(v, smoothing).gradient
    assert len(g) == 6 + bias
    for j in range(problem.n_variables):
        h = np.zeros_like(v)
        h[j] = 1e-6
        slope = (problem.at(v + h, smoothing).value - problem.at(v - h, smoothing).value) / 2e-6
        assert g[j] == pytest.approx(slope, rel=1e-4, abs=1e-4 * np.abs(g).max())


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_smoothing_errs_by_no_more_than_the_theorems_say(model, bias, smoothing):
    problem, _, _, c, rng = make(model, bias)
    most = 0.0
    if model != "lssvm":
        most += smoothing.loss / 2 * np.sum(c * problem.shard.rows.s)
    if model == "lpsvm":
        most += smoothing.penalty / 2 * problem.n_features
    for scale in (0, 0.1, 1, 10):
        found = problem.at(scale * rng.standard_normal(problem.n_variables), smoothing)
        assert -1e-9 <= found.objective - found.value <= most * (1 + 1e-12) + 1e-9


@pytest.mark.parametrize("kind", ["paper", "tight"])
@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_lipschitz_constants_bound_the_gradient(model, bias, smoothing, kind):
    problem, *_, rng = make(model, bias)
    L = problem.lipschitz(kind, smoothing)
    for scale in (1e-3, 1e-1, 1):
        a, b = scale * rng.standard_normal((2, problem.n_variables))
        difference = problem.at(a, smoothing).gradient - problem.at(b, smoothing).gradient
        assert np.linalg.norm(difference) <= L * np.linalg.norm(a - b) * (1 + 1e-9)


def test_tight_constant_is_spectral(model, bias):
    problem, X, *_ = make(model, bias)
    smoothing = SMOOTHINGS[0]
    d = problem.model.curvature(problem.shard.rows) * problem.model.curvature_scale(smoothing)
    A = np.hstack([X, np.ones((len(X), 1))]) if bias else X
    spectral = np.linalg.eigvalsh(A.T @ (d[:, None] * A))[-1]
    tight = problem.lipschitz("tight", smoothing) - problem.model.penalty_lipschitz(smoothing)
    assert spectral * 0.995 <= tight <= spectral * 1.02
    assert tight <= problem.lipschitz("paper", smoothing)


def test_dual_points_are_feasible_and_worth_what_they_claim(model, bias):
    for seed in range(20):
        problem, X, y, c, rng = make(model, bias, seed=seed, free=0.1)
        at = problem.at(rng.standard_normal(problem.n_variables), SMOOTHINGS[seed % 3])
        value, alpha = problem.bound(at)
        direction = X.T @ (alpha * y)
        if bias:
            assert abs(alpha @ y) <= 1e-12 * np.abs(alpha).sum()
        used = c > 0
        squares = np.sum(alpha[used] ** 2 / (4 * c[used]))
        if model == "lssvm":
            assert value == pytest.approx(alpha.sum() - squares - direction @ direction / 2)
            continue
        assert (alpha >= 0).all()
        assert (alpha <= c * (1 + 1e-12)).all()
        if model == "csvm":
            assert value == pytest.approx(alpha.sum() - direction @ direction / 2)
        elif model == "lpsvm":
            assert value == pytest.approx(alpha.sum())
            assert np.abs(direction).max() <= 1 + 1e-12
        else:
            pytest.fail(f"what a dual point of {model} is worth is not said here")


@given(st.integers(0, 10**6), st.integers(2, 12))
def test_balancing_stays_in_the_box(seed, n):
    rng = np.random.default_rng(seed)
    y = rng.choice([-1.0, 1.0], n)
    y[:2] = [-1, 1]
    c = rng.random(n) * rng.choice([0, 1, 1e6], n)
    alpha = c * rng.choice([0, 0.3, 1], n)
    shard = problem_in_memory(as_matrix(np.ones((n, 1))), y, c, MODELS["csvm"](), True).shard
    points = balanced(shard, alpha)
    assert len(points) in (1, 2)
    for a in points:
        assert (a >= 0).all()
        assert (a <= c * (1 + 1e-12)).all()
        assert abs(a @ y) <= 1e-12 * max(c.sum(), 1e-300)
