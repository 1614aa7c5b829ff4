"""Every model and engine on data of every kind, scale, cost and weight: bounds that enclose the
optimum of another solver, and what is said about them."""

from functools import cache
from itertools import product

import numpy as np
import pytest
from nesvm_jit import solve

from .data import cases_of_every_scale
from .optima import exact_dual, exact_objective, objective, optimum

CASES = {case.name: case for case in cases_of_every_scale()}
MODELS = ("csvm", "lpsvm", "lssvm")
TOL = 1e-6
SLACK = 1e-7  # of the independent solvers
ROUNDS = {"nesvm": 40, "homotopy": 200, "newton": 2000, "coordinate": 200, "auto": 2000}
KERNELS = ("rbf", "poly", "precomputed")
every_case = pytest.mark.parametrize("name", CASES)
every_model = pytest.mark.parametrize("model", MODELS)
every_kernel = pytest.mark.parametrize("kernel", KERNELS)


@cache
def best(name, model):
    case = CASES[name]
    return optimum(model, case.dense, case.y, case.c, case.bias)


@cache
def fit(name, model, solver):
    X, y, C, weight, bias = CASES[name][1:]
    options = {"C": C, "bias": bias, "sample_weight": weight, "tol": TOL}
    return solve(X, y, model, solver=solver, max_iter=ROUNDS[solver], **options)


def every(*solvers, faults=()):
    """All cases, models and engines; those that meet a fault of (words, model, solvers, reason)
    are expected to fail."""
    pairs = [(m, s) for m in MODELS for s in solvers if (m, s) != ("lpsvm", "coordinate")]
    params = []
    for name, (model, solver) in product(CASES, pairs):
        marks = [
            pytest.mark.xfail(strict=True, reason=reason)
            for words, faulty, engines, reason in faults
            if name.startswith(words) and model == faulty and solver in engines
        ]
        params.append(pytest.param(name, model, solver, marks=marks))
    assert sum(len(p.marks) for p in params) == sum(len(f[2]) for f in faults)
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
    assert s.objective == pytest.approx(float(exact), rel=1e-9)
    np.testing.assert_allclose(s.margins, case.dense @ s.w + s.b, rtol=1e-9, atol=1e-9)


BOUND_FAULTS = (
    (
        *("one far row, x1e-06", "csvm", ("homotopy",)),
        "issue 17: an α lies above its c by one rounding",
    ),
    *(
        (words, "lpsvm", ("newton", "auto"), "issue 17, W5: Σαyx of a large α is above 1")
        for words in ("one far row, x1e+06", "constant columns, x1e+06")
    ),
    *(
        (
            *("a column of a million, x1e+06", model, ("newton", "auto")),
            "issue 17, W2: the rounding of Σαyx is not in the bound",
        )
        for model in ("csvm", "lssvm")
    ),
)


@every(*ROUNDS, faults=BOUND_FAULTS)
def test_the_bound_is_the_value_of_a_feasible_dual_point(name, model, solver):
    case, s = CASES[name], fit(name, model, solver)
    direction, tilt, value = exact_dual(model, case.dense, case.y, case.c, s.alpha)
    assert s.dual_objective == pytest.approx(float(value), abs=1e-9 * s.objective)
    assert not s.alpha[case.c == 0].any()
    if model != "lssvm":
        assert ((s.alpha >= 0) & (s.alpha <= case.c)).all()
    if case.bias:
        assert abs(tilt) <= 1e-12 * np.abs(s.alpha).sum()
    if model == "lpsvm":
        assert max(abs(direction)) <= 1 + 1e-9


STALLS = (
    ("separable, x1e+06", "csvm"),
    ("unit rows, x1e+06", "lpsvm"),
    ("a column of a million, x1e+06", "csvm"),
    ("a column of a million, x1e+06", "lpsvm"),
    ("a column of a million, x1e+06", "lssvm"),
    ("constant columns, x1e+06", "lpsvm"),
    ("constant columns, x1e+06", "lssvm"),
)


@every(
    "newton",
    "auto",
    faults=[
        (*stall, ("newton", "auto"), "issue 17, W6: it stalls and says converged")
        for stall in STALLS
    ],
)
def test_the_tolerance_is_reached(name, model, solver):
    s = fit(name, model, solver)
    assert (s.status, s.certified) == ("converged", True)
    assert s.objective == pytest.approx(best(name, model), rel=TOL + SLACK)


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
