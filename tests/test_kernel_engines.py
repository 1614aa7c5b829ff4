"""The smoothed kernel machine and the engines that minimise it, against NumPy and each other."""

import numpy as np
import pytest
from nesvm_jit import solve
from nesvm_jit.kernels.gram import as_spec
from nesvm_jit.matrix import as_matrix
from nesvm_jit.models import MODELS
from nesvm_jit.models.base import Smoothing
from nesvm_jit.models.kernel_problem import KernelProblem, KernelRows
from nesvm_jit.models.smoothed_kernel import SmoothedKernel
from nesvm_jit.solvers import active_set, levels
from nesvm_jit.solvers.active_set import active_set_direction

from . import oracle

MU = Smoothing(0.7, 0.7)
every_model = pytest.mark.parametrize("model", ["csvm", "lssvm"])
every_bias = pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
every_kernel = pytest.mark.parametrize("kernel", ["rbf", "poly"])


def draw(n=60, p=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    y = np.where(np.linalg.norm(X, axis=1) + 0.3 * rng.standard_normal(n) > 1.8, 1.0, -1.0)
    return X, y


def smoothed(model="csvm", bias=True, kernel="rbf", C=2.0, **shape):
    X, y = draw(**shape)
    c = C * np.random.default_rng(1).random(len(y))
    c[3] = 0.0
    rows = KernelRows(as_matrix(X), as_spec(kernel, 0.3, 1.0, 2, X.shape[1]), 1e9)
    loss = MODELS[model]().loss
    problem = SmoothedKernel(KernelProblem(rows, y, c, bias, loss), MODELS[model]())
    return problem, oracle.gram(X, X, kernel, 0.3, 1.0, 2), y, c


def F(K, y, c, model, bias, beta, b, mu, centre):
    """F_μ and h by the definition."""
    f = K @ beta
    r = 1 - y * (f + b)
    if model == "lssvm":
        return 0.5 * beta @ f + c @ r**2, 2 * c * y * r
    largest = np.abs(K).max(axis=1)
    s = np.maximum(largest, 1.0) if bias else largest
    u = np.clip(centre + r / (mu * s), 0, 1)
    return 0.5 * beta @ f + c @ (u * r - mu * s / 2 * (u - centre) ** 2), c * y * u


@every_model
@every_bias
@every_kernel
def test_values_and_gradients_are_those_of_numpy(model, bias, kernel):
    problem, K, y, c = smoothed(model, bias, kernel)
    rng = np.random.default_rng(2)
    for _ in range(3):
        beta, b = rng.standard_normal(len(y)), float(rng.standard_normal()) * bias
        alpha = c * rng.random(len(y))
        centre = np.where(c > 0, alpha / np.where(c > 0, c, 1), 0) if model == "csvm" else 0.0
        found = problem.place(problem.start(beta, b), MU, alpha)
        value, h = F(K, y, c, model, bias, beta, b, MU.loss, centre)
        assert found.value == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(found.gradient[: len(y)], beta - h, atol=1e-10)
        np.testing.assert_allclose(found.gradient[len(y) : -1], K @ (beta - h), atol=1e-8)
        assert found.gradient[-1] == pytest.approx(-h.sum() * bias, abs=1e-10)
        assert found.objective == pytest.approx(
            oracle.kernel_objective(model, K, y, c, beta, b), rel=1e-12
        )


@every_model
@every_bias
def test_slopes_are_differences_of_values(model, bias):
    problem, _, y, _ = smoothed(model, bias)
    rng = np.random.default_rng(3)
    problem.place(problem.start(rng.standard_normal(len(y))), MU)
    problem.aim(problem.start(rng.standard_normal(len(y)), float(bias)))
    at, h = 0.3, 1e-5
    first, second = problem.slope(at, MU)
    values = [
        problem.evaluate(problem.point + t * problem._step, MU).value for t in (at - h, at + h)
    ]
    assert first == pytest.approx((values[1] - values[0]) / (2 * h), rel=1e-5)
    around = [problem.slope(t, MU)[0] for t in (at - h, at + h)]
    assert second == pytest.approx((around[1] - around[0]) / (2 * h), rel=1e-4)


@every_bias
@pytest.mark.parametrize("largest", [0, 10**6], ids=["iterated", "factorised"])
def test_newtons_direction_solves_its_equations(monkeypatch, bias, largest):
    monkeypatch.setattr(active_set, "LARGEST", largest)
    monkeypatch.setattr(active_set, "FORCING", 1e-12)
    problem, K, y, _ = smoothed(bias=bias)
    g = problem.place(problem.start(np.full(len(y), 0.1) * y), MU).gradient
    d = active_set_direction(problem, g, MU)
    A, W = problem.active(MU)
    assert len(A) > 5
    n = len(y)
    bent = np.zeros(n)
    bent[A] = W * (d[n : 2 * n][A] + d[-1])
    np.testing.assert_allclose(d[:n] + bent, -g[:n], atol=1e-8)
    np.testing.assert_allclose(K @ d[:n], d[n : 2 * n], atol=1e-8)
    if bias:
        assert bent.sum() == pytest.approx(-g[-1], abs=1e-8)
    assert problem.inner(g, d) < 0


@every_bias
@every_kernel
def test_lipschitz_constants_bound_the_gradient(bias, kernel):
    problem, K, _, c = smoothed(bias=bias, kernel=kernel)
    d = c / problem.rows.s
    whole = np.sqrt(d)[:, None] * (K + bias) * np.sqrt(d)
    exact = 1 + np.linalg.eigvalsh(whole)[-1] / MU.loss
    assert 0.999 * exact <= problem.lipschitz("tight", MU) <= 1.02 * exact
    assert problem.lipschitz("paper", MU) >= exact


@every_model
@every_bias
@every_kernel
def test_engines_reach_one_optimum(model, bias, kernel):
    X, y = draw(n=80)
    options = {"model": model, "kernel": kernel, "gamma": 0.3, "coef0": 1.0, "bias": bias, "C": 3.0}
    best = solve(X, y, tol=1e-9, **options)
    tight = {"lipschitz": "tight", "restart": True}
    engines = {
        "homotopy": {"tol": 1e-4, "mu_end": 1e-7, "schedule": "gap", "epsilon": 1e-9, **tight},
        "newton": {"tol": 1e-6},
    }
    for solver, more in engines.items():
        s = solve(X, y, solver=solver, **options, **more)
        assert s.solver == solver
        assert s.certified, (solver, s.gap)
        assert s.dual_objective <= best.objective * (1 + 1e-9)
        assert best.dual_objective <= s.objective <= best.objective * (1 + 2e-4)


@every_bias
def test_the_papers_literal_form_reaches_the_same_objective(bias):
    """X replaced by K and gradients taken in β: two products with K a round."""
    X, y = draw(n=40)
    C, mu, gamma = 2.0, 0.5, 0.3
    K = oracle.gram(X, X, "rbf", gamma, 0, 3)
    n, c = len(y), np.full(len(y), C)
    B = np.hstack([K, np.ones((n, int(bias)))])
    L = np.linalg.eigvalsh(np.pad(K, (0, int(bias))) + B.T @ (B * (C / mu)))[-1]
    w, z_sum, k = np.zeros(n + bias), np.zeros(n + bias), 0
    for k in range(20000):
        r = 1 - y * (B @ w)
        u = np.clip(r / mu, 0, 1)
        g = -B.T @ (c * y * u)
        g[:n] += K @ w[:n]
        step = w - g / L
        z_sum += (k + 1) / 2 * g
        w = 2 / (k + 3) * (-z_sum / L) + (k + 1) / (k + 3) * step
    literal = F(K, y, c, "csvm", bias, w[:n], w[-1] if bias else 0.0, mu, 0.0)[0]
    s = solve(
        X,
        y,
        kernel="rbf",
        gamma=gamma,
        C=C,
        bias=bias,
        solver="nesvm",
        mu=mu,
        epsilon=1e-13,
        lipschitz="tight",
        tol=0.0,
    )
    assert s.history["smoothed"].min() == pytest.approx(literal, rel=1e-6)


def test_newton_starts_from_a_part_of_the_rows(monkeypatch):
    monkeypatch.setattr(levels, "FEW", 50)
    X, y = draw(n=800)
    sizes = []
    part = levels._part
    monkeypatch.setattr(levels, "_part", lambda *a: sizes.append(len(a[0])) or part(*a))
    s = solve(X, y, kernel="rbf", gamma=0.3, C=5.0, solver="newton", tol=1e-5)
    assert sizes == [800, 199]  # a quarter of each class
    assert s.certified
    again = solve(X, y, kernel="rbf", gamma=0.3, C=5.0, solver="newton", tol=1e-5)
    assert np.array_equal(s.beta, again.beta)


@pytest.mark.parametrize("solver", ["nesvm", "homotopy", "newton"])
@every_model
def test_limits_keep_the_best_point(solver, model):
    X, y = draw(n=100)
    for limit in ({"max_iter": 2}, {"time_limit": 0.0}, {"callback": lambda _: True}):
        s = solve(X, y, model, "rbf", solver=solver, tol=1e-12, **limit)
        K = oracle.gram(X, X, "rbf", 1 / 4, 0, 3)
        value = oracle.kernel_objective(model, K, y, np.ones(len(y)), s.beta, s.b)
        assert s.objective == pytest.approx(value, rel=1e-9)
        assert s.dual_objective <= s.objective
        if (solver, model) != ("newton", "lssvm"):  # which is done at once
            assert s.status in ("iteration_limit", "time_limit", "interrupted")


def test_dual_points_become_sparse_machines():
    X, y = draw(n=200)
    s = solve(
        X,
        y,
        kernel="rbf",
        gamma=0.3,
        C=5.0,
        solver="homotopy",
        mu_end=1e-6,
        tol=1e-2,
        lipschitz="tight",
        schedule="gap",
        restart=True,
        epsilon=1e-9,
    )
    assert s.certified
    assert 0 < np.count_nonzero(s.beta) < len(y)
