"""Every model and engine on data of every kind, scale, cost and weight: bounds that enclose the
optimum of another solver, and what is said about them."""

from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from nesvm_jit.settings import HALF_SQUARE, MODELS

from tests.endings import solve

from . import oracle
from .data import cases_of_every_scale
from .optima import exact_dual, exact_objective, features_of, objective, optimum

CASES = {case.name: case for case in cases_of_every_scale()}
TOL = 1e-6
SLACK = 1e-7  # of the independent solvers
ROUNDS = {"nesvm": 40, "homotopy": 200, "newton": 2000, "coordinate": 200, "auto": 2000}
KERNELS = ("rbf", "poly", "precomputed")
KERNEL_ROUNDS = {"nesvm": 30, "homotopy": 40, "newton": 100, "auto": 200}


@cache
def best(name, model):
    case = CASES[name]
    return optimum(model, case.dense, case.y, case.c, case.bias)


@cache
def fit(name, model, solver):
    _, X, y, _, C, weight, bias = CASES[name]
    options = {"C": C, "bias": bias, "sample_weight": weight, "tol": TOL}
    return solve(X, y, model, solver=solver, max_iter=ROUNDS[solver], **options)


def every(*solvers, without=()):
    """All cases, models and engines, but those of (words, model, solvers)."""
    pairs = [(m, s) for m in MODELS for s in solvers if s != "coordinate" or m in HALF_SQUARE]
    params = [
        (name, model, solver)
        for name, (model, solver) in product(CASES, pairs)
        if not any(
            name.startswith(words) and model == other and solver in engines
            for words, other, engines in without
        )
    ]
    assert len(params) == len(CASES) * len(pairs) - sum(len(row[2]) for row in without)
    return pytest.mark.parametrize(("name", "model", "solver"), params)


@every(*ROUNDS)
def test_bounds_enclose_the_optimum(name, model, solver):
    least, s = best(name, model), fit(name, model, solver)
    assert s.dual_objective <= least * (1 + SLACK)
    assert least <= s.objective * (1 + SLACK)
    assert s.gap == pytest.approx(max(0.0, 1 - s.dual_objective / s.objective), abs=1e-15)
    assert s.certified == (s.gap <= TOL)


@every(*ROUNDS)
def test_the_objective_is_that_of_the_point(name, model, solver):
    case, s = CASES[name], fit(name, model, solver)
    exact = exact_objective(model, case.dense, case.y, case.c, s.w, s.b)
    assert s.objective >= exact
    assert s.objective == pytest.approx(float(exact), rel=1e-9)
    np.testing.assert_allclose(s.margins, case.dense @ s.w + s.b, rtol=1e-9, atol=1e-9)


@every(*ROUNDS)
def test_the_bound_is_the_value_of_a_feasible_dual_point(name, model, solver):
    case, s = CASES[name], fit(name, model, solver)
    direction, tilt, value = exact_dual(model, case.dense, case.y, case.c, s.alpha)
    assert s.dual_objective <= value
    assert s.dual_objective == pytest.approx(float(value), abs=1e-9 * s.objective)
    assert not s.alpha[case.c == 0].any()
    if model != "lssvm":
        assert ((s.alpha >= 0) & (s.alpha <= case.c)).all()
    if case.bias:
        assert tilt == 0
    if model == "lpsvm":
        assert max(abs(direction)) <= 1


# With costs up to 1e5 and a column of 1e12 units in the last place of every α_i add up to
# more than the weights: no α of this precision proves the tolerance.
STALLS = (
    ("signed counts, x1e+06", "lpsvm", ("newton",)),
    ("a column of a million, x1e+06", "csvm", ("newton", "auto")),
    ("a column of a million, x1e+06", "lpsvm", ("newton", "auto")),
    ("a column of a million, x1e+06", "lssvm", ("newton", "auto")),
)


@every("newton", "auto", without=STALLS)
def test_the_tolerance_is_reached(name, model, solver):
    s = fit(name, model, solver)
    assert (s.status, s.certified) == ("converged", True)
    assert s.objective == pytest.approx(best(name, model), rel=TOL + SLACK)


@pytest.mark.parametrize(
    ("words", "model", "solver"),
    [(words, model, solver) for words, model, engines in STALLS for solver in engines],
)
def test_runs_beyond_double_precision_stall_at_a_point_no_worse_than_zero(words, model, solver):
    (name,) = [name for name in CASES if name.startswith(words)]
    s = fit(name, model, solver)
    assert (s.status, s.certified) == ("stalled", False)
    assert s.objective <= CASES[name].c.sum()
    if (model, solver) != ("csvm", "newton"):  # Newton's own steps lose w, too
        assert s.objective == pytest.approx(best(name, model), rel=2 * TOL)
        assert s.gap <= unavoidable_gap(CASES[name], model, s)


def unavoidable_gap(case, model, s):
    """What four units in the last place of every α_i, itself made by a few roundings, may take off
    the bound; that of LP-SVM was made smaller by the gap."""
    alpha = s.alpha / (1 - s.gap) if model == "lpsvm" else s.alpha
    felt = (4 * np.spacing(alpha) * (alpha != 0)) @ np.abs(case.dense)
    if model == "lpsvm":
        return felt.max() / (1 + felt.max())
    size = np.linalg.norm(felt)
    return (size * np.linalg.norm(s.w) + 0.5 * size**2) / s.objective


@pytest.mark.parametrize("name", [n for n, c in CASES.items() if not c.c.all()])
@pytest.mark.parametrize("model", MODELS)
def test_rows_of_weight_zero_have_no_influence(name, model):
    case, s = CASES[name], fit(name, model, "auto")
    used = case.c > 0
    X, y, c = case.dense[used], case.y[used], case.c[used]
    alone = solve(
        case.X[used], y, model, C=case.C, bias=case.bias, sample_weight=c / case.C, tol=TOL
    )
    assert s.objective == pytest.approx(objective(model, X, y, c, s.w, s.b), rel=1e-9)
    for a, b in ((s, alone), (alone, s)):
        assert a.dual_objective <= b.objective * (1 + 1e-9)
    np.testing.assert_allclose(case.dense @ s.w + s.b, s.margins, rtol=1e-9, atol=1e-9)


# ---------------------------------------------------------------- kernels


class Kernelised(NamedTuple):
    """A case with a kernel of the case's scale; C is divided by it, so that the optimum is that of
    the kernel of size 1, divided too."""

    K: np.ndarray
    features: np.ndarray  # of K divided by its size
    size: float
    options: dict


@cache
def kernelised(name, kernel):
    case = CASES[name]
    X, squares = case.dense, (case.dense**2).sum(axis=1)
    if kernel == "poly":
        gamma, root = 1 / squares.max(), np.sqrt(case.scale)
        options = {"gamma": gamma * root, "coef0": root, "degree": 2}
        K = oracle.gram(X, X, "poly", gamma * root, root, 2)
        return Kernelised(K, oracle.poly_features(X, gamma, 1.0), case.scale, options)
    gamma = 1 / np.median(squares)
    K = oracle.gram(X, X, "rbf", gamma, 0, 3)
    if kernel == "rbf":
        return Kernelised(K, features_of(K), 1.0, {"gamma": gamma})
    return Kernelised(case.scale * K, features_of(K), case.scale, {})


@cache
def kernel_best(name, model, kernel):
    """Rows of weight zero are left out, with their columns of K."""
    case, given = CASES[name], kernelised(name, kernel)
    used = case.c > 0
    rows = given.K[np.ix_(used, used)] / given.size if model == "lpsvm" else given.features[used]
    return optimum(model, rows, case.y[used], case.c[used], case.bias) / given.size


@cache
def kernel_fit(name, model, kernel, solver):
    case, given = CASES[name], kernelised(name, kernel)
    X = case.X.astype(float) if case.X.dtype.kind in "iu" else case.X
    options = {"C": case.C / given.size, "bias": case.bias, "sample_weight": case.weight}
    return solve(
        *(given.K if kernel == "precomputed" else X, case.y, model, kernel),
        **{**options, **given.options, "tol": TOL},
        **{"solver": solver, "max_iter": KERNEL_ROUNDS[solver]},
    )


def every_kernel(solvers, kernels):
    return pytest.mark.parametrize(
        ("name", "model", "kernel", "solver"), [*product(CASES, MODELS, kernels, solvers)]
    )


def assert_certificate_of_a_kernel_machine(name, model, kernel, solver):
    case, given = CASES[name], kernelised(name, kernel)
    K, y, c = given.K, case.y, case.C / given.size * case.weights
    least, s = kernel_best(name, model, kernel), kernel_fit(name, model, kernel, solver)
    P, D = s.objective, s.dual_objective
    assert least * (1 + SLACK) >= D
    assert least <= P * (1 + SLACK)
    f = K @ s.beta
    r = 1 - y * (f + s.b)
    penalty = np.abs(s.beta).sum() if model == "lpsvm" else 0.5 * s.beta @ f
    loss = c @ (r**2 if model == "lssvm" else np.maximum(r, 0))
    assert pytest.approx(penalty + loss, rel=1e-7) == P
    assert s.gap == pytest.approx(max(0.0, 1 - D / P), abs=1e-15)
    assert s.certified == (s.gap <= TOL)
    assert not s.beta[c == 0].any()
    assert not s.alpha[c == 0].any()
    if model != "lssvm":
        assert ((s.alpha >= 0) & (s.alpha <= c)).all()
    if case.bias:
        assert abs(s.alpha @ y) <= 1e-9 * np.abs(s.alpha).sum()
    weights = s.alpha * y
    if model == "lpsvm":
        assert np.abs(K @ weights)[c > 0].max() <= 1 + 1e-9
        value = s.alpha.sum()
    else:
        value = s.alpha.sum() - 0.5 * weights @ K @ weights
        if model == "lssvm":
            value -= np.sum(s.alpha[c > 0] ** 2 / (4 * c[c > 0]))
    assert pytest.approx(value, abs=1e-7 * P) == D


@every_kernel(["auto"], KERNELS)
def test_bounds_of_kernel_machines_enclose_the_optimum(name, model, kernel, solver):
    assert_certificate_of_a_kernel_machine(name, model, kernel, solver)


@every_kernel(["newton", "nesvm", "homotopy"], ["precomputed"])
def test_bounds_of_every_engine_enclose_the_optimum_of_a_kernel(name, model, kernel, solver):
    assert_certificate_of_a_kernel_machine(name, model, kernel, solver)


@every_kernel(["auto"], KERNELS)
def test_kernel_machines_reach_the_tolerance(name, model, kernel, solver):
    s = kernel_fit(name, model, kernel, solver)
    assert (s.status, s.certified) == ("converged", True)
    assert s.objective == pytest.approx(kernel_best(name, model, kernel), rel=TOL + SLACK)
