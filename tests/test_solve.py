"""Algorithms 1 and 2: optima, certificates, the O(1/k²) bound, limits, hostile numbers."""

import itertools
import os
import signal
import threading
from functools import partial

import numpy as np
import pytest
from nesvm_jit import InputError, get_threads, set_threads
from nesvm_jit.binary import linear
from nesvm_jit.matrix.checks import as_matrix
from nesvm_jit.models import MODELS, Smoothing
from nesvm_jit.problems.linear import LinearProblem, problem_in_memory
from nesvm_jit.settings import HALF_SQUARE, SOLVERS, Settings
from nesvm_jit.solvers import auto, gradient, newton
from nesvm_jit.solvers.directions import direction
from nesvm_jit.solvers.run import Run
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from tests.endings import solve

from .data import half_space, sparse_normal
from .optima import objective, optimum

MODEL_NAMES = sorted(MODELS)
WEIGHTS = {-1: 0.5, 1: 2.0}


def costs(y, C, class_weight=None):
    return C * np.array([(class_weight or {}).get(int(k), 1.0) for k in y])


# Engines that reach any tolerance; those of a fixed μ are in the test of the paper's solvers.
ENGINES = ("chain", "newton", "iterated", "homotopy", "coordinate")
every_engine_and_model = pytest.mark.parametrize(
    ("engine", "model"),
    # where coordinate has no steps homotopy stands in for it, and is here already
    [(e, m) for e in ENGINES for m in MODEL_NAMES if e != "coordinate" or m in HALF_SQUARE],
    indirect=["engine"],
)


@pytest.fixture(params=ENGINES)
def engine(request, monkeypatch, engines_only):
    """`auto` chooses this engine, Newton's with H factorised or iterated."""

    def choose(X, model, warm):
        if request.param == "chain":
            return auto.choose(X, model, warm, few_cells=0)
        if request.param in ("newton", "iterated"):
            return "newton", "tested"
        if request.param == "coordinate" and model not in HALF_SQUARE:
            return "homotopy", "tested"
        return request.param, "tested"

    monkeypatch.setattr(linear, "choose", choose)
    if request.param == "iterated":
        monkeypatch.setattr(newton, "linear_direction", partial(direction, widest=0))
    return request.param


# ---------------------------------------------------------------- optima


@pytest.mark.parametrize("class_weight", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
@every_engine_and_model
def test_the_optimum_of_independent_solvers_is_reached(engine, model, bias, class_weight):
    X, y = half_space()
    best = optimum(model, X, y, costs(y, 0.7, class_weight), bias)
    s = solve(X, y, model, C=0.7, bias=bias, tol=2e-7, class_weight=class_weight, max_iter=400_000)
    assert s.objective == pytest.approx(best, rel=1e-6)
    assert s.dual_objective <= best * (1 + 1e-9) <= s.objective * (1 + 2e-9)
    assert s.objective == pytest.approx(
        objective(model, X, y, costs(y, 0.7, class_weight), s.w, s.b), rel=1e-12
    )


@pytest.mark.parametrize("solver", ["nesvm", "homotopy"])
@pytest.mark.parametrize("model", MODEL_NAMES)
def test_the_papers_solvers_come_near_the_optimum_as_mu_falls(model, solver):
    X, y = half_space()
    best = optimum(model, X, y, costs(y, 1.0), True)
    errors = [
        solve(X, y, model, solver=solver, mu=mu, mu_end=mu, epsilon=1e-6, tol=0).objective / best
        - 1
        for mu in (5.0, 0.5, 0.05)
    ]
    assert errors[2] < 0.05
    assert errors[2] <= errors[0] + 1e-9


@pytest.mark.parametrize(
    "seeds", [range(300), pytest.param(range(300, 1000), marks=pytest.mark.slow)], ids=str
)
def test_certificates_are_never_violated(engine, seeds):
    assert len(seeds) >= 300
    rng = np.random.default_rng(seeds[0])
    kinds = list(itertools.product(MODEL_NAMES, (False, True)))
    for seed in seeds:
        n, p = int(rng.integers(2, 12)), int(rng.integers(1, 5))
        X, y = half_space(n, p, seed, noise=rng.choice([0.0, 1.0, 10.0]))
        X *= rng.choice([1e-2, 1.0, 1e2])
        model, bias = kinds[seed % len(kinds)]
        C = float(10.0 ** rng.uniform(-3, 2))
        best = optimum(model, X, y, costs(y, C), bias)
        s = solve(X, y, model, C=C, bias=bias, max_iter=int(rng.integers(1, 60)))
        slack = 1e-7 * abs(best) + 1e-9
        assert s.dual_objective <= best + slack, seed
        assert best <= s.objective + slack, seed
        assert s.gap == pytest.approx((s.objective - s.dual_objective) / s.objective)


# ---------------------------------------------------------------- the method


def recorded(problem, smoothing, rounds, lipschitz="paper"):
    """The first points of Algorithm 1, each with its value and gradient."""
    zero = np.zeros(problem.n_variables)
    penalty, loss = smoothing
    more = {"model": "lpsvm", "nu": loss} if penalty != loss else {}
    settings = Settings(solver="nesvm", mu=penalty, epsilon=0.0, lipschitz=lipschitz, **more)
    run = Run(problem, settings, engine="nesvm")
    steps = gradient.steps(problem, run, gradient.begin(problem, run, zero, zero))
    return [(at.point, at.value, at.gradient) for at in itertools.islice(steps, rounds)]


def real_data():
    datasets = pytest.importorskip("sklearn.datasets")
    X, y = datasets.load_breast_cancer(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), 2.0 * y - 1


@pytest.mark.parametrize("kind", ["paper", "tight"])
@pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
@pytest.mark.parametrize("data", [half_space, real_data], ids=["random", "real"])
@pytest.mark.parametrize("model", MODEL_NAMES)
def test_the_bound_of_order_one_over_k_squared_holds_at_every_round(model, data, bias, kind):
    X, y = data()
    smoothing = Smoothing(0.5, 0.5)
    problem = problem_in_memory(as_matrix(X), y, np.full(len(y), 0.1), MODELS[model](), bias)
    L = problem.lipschitz(kind, smoothing)
    points = recorded(problem, smoothing, 200, lipschitz=kind)

    def both(v):
        found = problem.at(v, smoothing)
        return found.value, found.gradient.copy()

    best = minimize(
        both, points[-1][0], jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-10}
    )
    distance = 0.5 * best.x @ best.x
    assert len(points) == 200
    for k, (w, _, g) in enumerate(points):
        excess = problem.at(w - g / L, smoothing).value - best.fun
        assert excess <= 4 * L * distance / ((k + 1) * (k + 2)) + 1e-8 * abs(best.fun), k


def test_the_iterates_are_the_papers():
    X, y = half_space()
    smoothing = Smoothing(1.0, 1.0)
    problem = problem_in_memory(as_matrix(X), y, np.ones(len(y)), MODELS["csvm"](), True)
    L = problem.lipschitz("paper", smoothing)
    points = recorded(problem, smoothing, 30)
    for k in range(29):
        w, _, g = points[k]
        z = -sum((i + 1) / 2 * points[i][2] for i in range(k + 1)) / L
        expect = 2 / (k + 3) * z + (k + 1) / (k + 3) * (w - g / L)
        np.testing.assert_allclose(points[k + 1][0], expect, rtol=1e-9, atol=1e-12)


def test_the_papers_least_squares_constant_diverges_and_ours_does_not(monkeypatch):
    X, y = real_data()
    problem = problem_in_memory(as_matrix(X), y, np.ones(len(y)), MODELS["lssvm"](), False)
    smoothing = Smoothing(1.0, 1.0)
    ours = [F for _, F, _ in recorded(problem, smoothing, 300)]
    assert ours[-1] < ours[0]
    printed = 1 + 2 * (X**2).sum(axis=1).max()
    monkeypatch.setattr(problem, "lipschitz", lambda *_: printed)
    with np.errstate(all="ignore"):
        theirs = [F for _, F, _ in recorded(problem, smoothing, 300)]
    assert not theirs[-1] < 1e10 * theirs[0]


def test_stopping_rule_and_one_pass_a_round():
    X, y = half_space(n=200)
    s = solve(X, y, solver="nesvm", bias=False, epsilon=1e-3, tol=0)
    F = s.history["smoothed"]
    assert abs(F[-1] - F[-2]) < 1e-3
    assert (np.abs(np.diff(F[:-1])) >= 1e-3).all()
    assert s.status == "epsilon"
    assert s.history["passes"].tolist() == list(range(1, s.n_iter + 1))


def test_the_schedules_fall_as_they_say():
    X, y = half_space()

    def stages(**options):
        mu = solve(X, y, solver="homotopy", mu_start=4.0, mu_end=0.5, tol=0, **options).history[
            "mu"
        ]
        return list(dict.fromkeys(mu.tolist()))

    assert stages() == pytest.approx([4 / (t + 1) for t in range(8)])
    assert stages(schedule="geometric") == [4, 2, 1, 0.5]
    by_gap = stages(schedule="gap")
    assert by_gap[0] == 4
    assert by_gap[-1] == 0.5
    assert by_gap == sorted(by_gap, reverse=True)


@pytest.mark.parametrize(
    "options",
    [
        {"lipschitz": "tight"},
        {"lipschitz": "tight", "restart": True},
        {"strong": True},
        {"strong": True, "restart": True, "lipschitz": "tight"},
        {"moving_centre": True, "schedule": "geometric"},
    ],
)
def test_options_beyond_the_paper_lead_to_the_same_optimum(options):
    X, y = half_space()
    best = optimum("csvm", X, y, costs(y, 1.0), False)
    s = solve(X, y, solver="homotopy", bias=False, mu_end=0.02, epsilon=1e-6, tol=1e-4, **options)
    assert s.objective == pytest.approx(best, rel=2e-2)


def test_a_constant_that_is_too_small_is_found_out(monkeypatch):
    X, y = half_space()
    monkeypatch.setattr(LinearProblem, "_largest_eigenvalue", lambda *_: 1e-3)
    s = solve(X, y, solver="nesvm", lipschitz="tight", mu=0.5, epsilon=1e-9, tol=0)
    F = solve(X, y, solver="nesvm", mu=0.5, epsilon=1e-9, tol=0).history["smoothed"].min()
    assert s.history["smoothed"].min() == pytest.approx(F, rel=1e-5)


def test_a_warm_start_saves_rounds(engine):
    X, y = half_space(n=200)
    cold = solve(X, y, tol=1e-4)
    dual = {} if engine == "homotopy" else {"alpha0": cold.alpha}
    warm = solve(X, y, tol=1e-4, w0=cold.w, b0=cold.b, **dual)
    assert warm.n_iter < 0.5 * cold.n_iter
    assert warm.gap <= 1e-4


def test_a_warm_start_from_another_cost(engines_only):
    X, y = half_space(n=2000, p=40)
    before = solve(X, y, C=1.0, bias=False)
    cold = solve(X, y, C=1.2, bias=False, solver="newton")
    for start in ({"w0": before.w}, {"w0": before.w, "alpha0": 1.2 * before.alpha}):
        warm = solve(X, y, C=1.2, bias=False, solver="newton", **start)
        assert warm.certified
        assert warm.n_iter < cold.n_iter
        assert warm.objective == pytest.approx(cold.objective, rel=2e-3)


# ---------------------------------------------------------------- bits, precisions, layouts


@every_engine_and_model
def test_same_bits_for_one_and_two_threads(engine, model, small_chunks):
    X, y = half_space(n=3000, p=20)
    before = get_threads()
    results = []
    for threads in (1, before):
        set_threads(threads)
        results.append(solve(X, y, model, max_iter=40))
    assert results[0].w.tobytes() == results[1].w.tobytes()
    assert (results[0].b, results[0].objective) == (results[1].b, results[1].objective)
    assert results[0].dual_objective == results[1].dual_objective


@every_engine_and_model
def test_dense_sparse_and_both_precisions_agree(engine, model):
    X, y = half_space(n=300, p=8)
    X = X.astype(np.float32).astype(np.float64)
    kinds = [X, csr_matrix(X), X.astype(np.float32), csr_matrix(X.astype(np.float32))]
    results = [solve(A, y, model, max_iter=50).objective for A in kinds]
    np.testing.assert_allclose(results, results[0], rtol=1e-10)


# ---------------------------------------------------------------- auto


def test_auto_says_which_engine_finished_and_why(engines_only):
    X, y = half_space(n=3000, p=30)
    small, large = (solve(X, y, C=C, bias=False, tol=1e-2) for C in (1e-5, 1e3))
    assert (small.solver, large.solver) == ("coordinate", "newton")
    assert "sufficed" in small.why
    assert "fell too slowly" in large.why
    assert solve(X[:50], y[:50]).solver == "newton"  # tiny
    assert solve(X, y, solver="homotopy", max_iter=2).why == "asked for"
    wide = csr_matrix((np.ones(6000), (np.arange(6000) % 60, np.arange(6000))))
    signs = np.where(np.arange(60) % 2, 1.0, -1.0)
    assert solve(wide, signs).solver == "coordinate"
    assert solve(wide, signs, "lpsvm", max_iter=5).solver == "homotopy"
    assert "6000 features" in solve(wide, signs).why


@pytest.mark.parametrize("bias", [False, True])
def test_newton_goes_on_where_coordinate_steps_stopped(bias):
    X, y = half_space(n=3000, p=30)
    best = solve(X, y, C=10.0, bias=bias, solver="newton", tol=1e-9).objective
    s = solve(X, y, C=10.0, bias=bias, tol=1e-7)
    assert s.solver == "newton"
    assert s.objective == pytest.approx(best, rel=1e-6)
    assert s.dual_objective <= best * (1 + 1e-12)


@pytest.mark.parametrize("tol", [1e-3, 1e-7])
@pytest.mark.parametrize("bias", [False, True])
def test_lpsvm_has_exact_zeros(bias, tol):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((400, 30))
    y = np.where(X[:, 0] - X[:, 1] + 0.3 * rng.standard_normal(400) > 0, 1.0, -1.0)
    s = solve(X, y, "lpsvm", C=0.02, bias=bias, tol=tol)
    assert s.certified
    assert 1 <= np.count_nonzero(s.w) <= 10
    assert s.objective == pytest.approx(objective("lpsvm", X, y, costs(y, 0.02), s.w, s.b))


# ---------------------------------------------------------------- limits


def test_limits_and_callback():
    X, y = half_space(n=200)
    hard = {"C": 100.0, "tol": 1e-9}
    assert solve(X, y, max_iter=7, **hard).status == "iteration_limit"
    assert solve(X, y, max_iter=7, **hard).n_iter == 7
    assert solve(X, y, time_limit=0.0, **hard).status == "time_limit"
    seen = []
    s = solve(X, y, callback=lambda row: seen.append(row) or len(seen) == 5, **hard)
    assert s.status == "interrupted"
    assert [row["round"] for row in seen] == [1, 2, 3, 4, 5]
    assert set(seen[0]) == set(s.history)
    assert s.history["objective"].min() == s.objective
    assert not s.certified


def test_the_history_bounds_only_improve():
    X, y = half_space(n=200)
    h = solve(X, y, tol=1e-4).history
    assert (np.diff(h["dual"]) >= 0).all()
    assert (np.diff(h["gap"]) <= 0).all()
    assert (np.diff(h["passes"]) >= 1).all()


# Python loses what is raised where it calls back, which a run must survive
LOST = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@LOST
@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_interrupted_runs_return_the_best_point():
    X, y = half_space(n=2000)
    solve(X, y, max_iter=2)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    hard = {"C": 1e4, "tol": 0, "solver": "homotopy", "mu_end": 1e-12}
    s = solve(X, y, max_iter=10**7, time_limit=60.0, **hard)
    assert s.status == "interrupted"
    assert s.objective == pytest.approx(objective("csvm", X, y, costs(y, 1e4), s.w, s.b))
    assert 0 < s.dual_objective <= s.objective


@LOST
@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_an_interrupt_that_python_loses_ends_the_run():
    X, y = half_space()
    lost = []

    class Finalised:
        def __del__(self):
            os.kill(os.getpid(), signal.SIGINT)
            lost.append(len(y))  # the first moment at which the handler may have run

    def callback(row):
        Finalised()

    s = solve(X, y, solver="nesvm", mu=1e-6, epsilon=0.0, max_iter=10**6, callback=callback)
    assert s.status == "interrupted"
    assert len(lost) <= 1
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert solve(X, y, solver="newton").certified  # nothing is left of it


def test_interrupted_before_the_first_round(monkeypatch, engines_only):
    X, y = half_space()

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Run, "record", interrupt)
    s = solve(X, y, C=2.0)
    assert s.status == "interrupted"
    assert 2.0 * len(y) <= s.objective <= 2.0 * len(y) * (1 + 1e-12)


# ---------------------------------------------------------------- hostile numbers

HOSTILE = {
    "zero rows": lambda X, y: (X * (np.arange(len(X)) % 3 > 0)[:, None], y),
    "zero columns": lambda X, y: (X * (np.arange(X.shape[1]) % 2), y),
    "all zero": lambda X, y: (0 * X, y),
    "duplicated rows": lambda X, y: (np.repeat(X[:5], 8, axis=0), np.repeat(y[:5], 8)),
    "contradicting rows": lambda X, y: (np.vstack([X, X]), np.r_[y, -y]),
    "one feature": lambda X, y: (X[:, :1], y),
    "one row per class": lambda X, y: (X[:2], y[:2]),
    "a class of one row": lambda X, y: (X, np.where(np.arange(len(y)) == 1, 1.0, -1.0)),
    "large features": lambda X, y: (X * 1e8, y),
    "small features": lambda X, y: (X * 1e-8, y),
    "mixed scales": lambda X, y: (X * 10.0 ** np.linspace(-8, 8, X.shape[1]), y),
    "wide": lambda X, y: (sparse_normal(40, 300), y),
}


# Every engine meets every C and both problems; what is left of their product is slow.
BIAS_AND_COST = [
    pytest.param(
        *(bias, C),
        id=f"{'bias' if bias else 'no bias'}-{C:g}",
        marks=[pytest.mark.slow] if bias == (C == 1.0) else [],
    )
    for bias in (False, True)
    for C in (1e-6, 1.0, 1e6)
]


@pytest.mark.parametrize(("bias", "C"), BIAS_AND_COST)
@pytest.mark.parametrize("case", HOSTILE)
@every_engine_and_model
def test_hostile_data_give_finite_results_with_a_valid_certificate(engine, model, bias, case, C):
    finite_and_certified(*HOSTILE[case](*half_space()), model, C, bias, "auto")


@pytest.mark.parametrize("C", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("case", HOSTILE)
@pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
@pytest.mark.parametrize("model", MODEL_NAMES)
def test_algorithm_1_on_hostile_data(model, bias, case, C):
    finite_and_certified(*HOSTILE[case](*half_space()), model, C, bias, "nesvm")


def finite_and_certified(X, y, model, C, bias, solver):
    s = solve(X, y, model, C=C, bias=bias, solver=solver, max_iter=100)
    assert np.isfinite(s.w).all()
    assert np.isfinite([s.b, s.objective, s.dual_objective, s.gap]).all()
    assert s.dual_objective <= s.objective * (1 + 1e-12)
    assert s.objective <= C * len(y) * (1 + 1e-12)  # the objective at zero
    true = objective(model, X, y, costs(y, C), s.w, s.b)
    assert s.objective == pytest.approx(true, rel=1e-9, abs=1e-15 * C * len(y))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.ones(40)}, "y must hold both classes"),
        ({"y": np.arange(40)}, "y must hold -1 and [+]1 only"),
        ({"y": np.ones(3)}, r"y must have length 40, got shape \(3,\)"),
        ({"C": 0}, "C must be positive and finite, got 0"),
        ({"C": -1.0}, "C must be positive and finite, got -1.0"),
        ({"C": np.inf}, "C must be positive and finite, got inf"),
        ({"C": "1"}, "C must be positive and finite, got '1'"),
        ({"model": "svm"}, f"model must be one of {', '.join(MODELS)}, got 'svm'"),
        ({"solver": "magic"}, f"solver must be one of {', '.join(SOLVERS)}, got 'magic'"),
        ({"kernel": "cubic"}, "kernel must be one of linear, poly, rbf, precomputed, got 'cubic'"),
        ({"mu": 0.0, "solver": "nesvm"}, "mu must be positive"),
        ({"mu_end": -1.0}, "mu_end must be positive"),
        ({"tol": -1e-3}, "tol must be zero or positive"),
        ({"epsilon": np.nan}, "epsilon must be zero or positive"),
        ({"lipschitz": "loose"}, "lipschitz must be one of paper, tight"),
        ({"schedule": "x"}, "schedule must be one of paper, geometric, gap"),
        ({"strong": True}, "strong needs a strongly convex problem"),
        ({"strong": True, "bias": False, "model": "lpsvm"}, "strong needs"),
        ({"max_iter": 0}, "max_iter must be a whole number from 1"),
        ({"time_limit": -1.0}, "time_limit must be zero or positive"),
        ({"sample_weight": [1, 2]}, "sample_weight must have length 40"),
        ({"sample_weight": -np.ones(40)}, "sample_weight must not be negative"),
        ({"sample_weight": np.zeros(40)}, "each class must have a positive"),
        ({"class_weight": {1: 0.0}}, "each class must have a positive"),
        ({"class_weight": "even"}, "class_weight must be one of balanced"),
        ({"w0": [1.0]}, "w0 must have length 5"),
        ({"X": np.full((40, 2), 1e200)}, "X and C must be smaller"),
        ({"C": 1e308}, "X and C must be smaller"),
        ({"b0": np.nan}, "b0 must be finite"),
        ({"w0": [1e155] * 5}, "w0 and its bias must be within 1e[+]50 of zero"),
        ({"C": 1e160}, "X and C must be smaller"),
        ({"C": 10**400}, "C must be positive and finite"),
        ({"mu": None}, "mu must be positive and finite, got None"),
        ({"nu": 1.0}, "nu is the hinge's own smoothing in lpsvm"),
        ({"class_weight": {"1": 2.0}}, "class_weight must map -1 and 1 to weights, got label '1'"),
        ({"class_weight": 5}, "class_weight must map -1 and 1 to weights, got 5"),
        ({"model": ["csvm"]}, "model must be one of"),
        ({"callback": 1}, "callback must be a function, got 1"),
        ({"bias": "no"}, "bias must be True or False, got 'no'"),
        ({"restart": 1}, "restart must be True or False, got 1"),
        ({"X": np.zeros((0, 2)), "y": []}, "X must have at least one row"),
        ({"max_iter": 2.5}, "max_iter must be a whole number"),
    ],
)
def test_wrong_arguments_are_one_clear_line(change, message):
    X, y = half_space()
    with pytest.raises(InputError, match=message):
        solve(**{"X": X, "y": y, **change})


def test_weights_are_costs():
    X, y = half_space()
    weights = np.where(y > 0, 3.0, 1.0)
    a = solve(X, y, sample_weight=weights, tol=1e-5)
    b = solve(X, y, class_weight={1: 3.0}, tol=1e-5)
    assert a.objective == b.objective
    twice = solve(np.vstack([X, X]), np.r_[y, y], tol=1e-6).objective
    assert twice == pytest.approx(solve(X, y, C=2.0, tol=1e-6).objective, rel=1e-5)
    balanced = solve(X, y, class_weight="balanced", tol=1e-5).objective
    counts = {k: len(y) / (2 * np.sum(y == k)) for k in (-1, 1)}
    assert balanced == pytest.approx(solve(X, y, class_weight=counts, tol=1e-5).objective)
