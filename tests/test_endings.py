"""How runs end: `converged` if and only if certified, and otherwise not in silence."""

import json
import warnings
from fractions import Fraction
from types import SimpleNamespace

import nesvm_jit
import numpy as np
import pytest
from nesvm_jit import InputError, NotCertifiedWarning
from nesvm_jit.binary import centred
from nesvm_jit.binary.centred import centre_columns
from nesvm_jit.binary.finish import Ending, conclude
from nesvm_jit.binary.kernel_columns import _halvings, _scaled_entries
from nesvm_jit.endings import Outcome, describe_uncertified, worst_status
from nesvm_jit.matrix.checks import as_matrix
from nesvm_jit.matrix.matrix import shape
from nesvm_jit.matrix.rows import as_scipy
from nesvm_jit.models import MODELS as FORMULAS
from nesvm_jit.problems.certificate import DualPoint, best_shares
from nesvm_jit.problems.linear import problem_in_memory
from nesvm_jit.problems.rounding import EntryError
from nesvm_jit.settings import ENDINGS, STATUSES, Settings
from nesvm_jit.solvers import linear_program
from nesvm_jit.solvers.run import Run
from scipy import optimize
from scipy.optimize import OptimizeResult
from scipy.sparse import csr_matrix

from . import optima
from .commands import command, done
from .data import blobs, half_space, separable
from .endings import solve, statuses_of, train

MODELS = ("csvm", "lpsvm", "lssvm")


# ---------------------------------------------------------------- what is said


@pytest.mark.parametrize("status", [s for s in STATUSES if s != "converged"])
def test_a_sentence_says_the_gap_the_end_and_what_to_do(status):
    said = describe_uncertified([Outcome(status, 0.25)], 1e-3)
    why, remedy = (text.replace("{", "").replace("}", "") for text in ENDINGS[status])
    assert said == f"the tolerance 0.001 is not certified (gap 2.50e-01): {why}; {remedy}"


def test_of_several_fits_those_that_are_not_certified_are_counted_and_the_worst_is_named():
    fits = [Outcome("converged", 1e-4), Outcome("stalled", 0.5), Outcome("time_limit", 0.25)]
    said = describe_uncertified(fits, 1e-3)
    start = "the tolerance 0.001 is not certified for 2 of 3 fits (the largest gap 5.00e-01): "
    assert said == start + "the time limit was reached; raise time_limit or tol"
    assert describe_uncertified(fits[:1], 1e-3) == ""
    assert worst_status(["converged", "epsilon", "stalled"]) == "stalled"


# ---------------------------------------------------------------- who warns


@pytest.mark.parametrize(
    ("status", "options"),
    [
        ("iteration_limit", {"max_iter": 1}),
        ("time_limit", {"time_limit": 0.0}),
        ("interrupted", {"callback": lambda row: True}),
        ("epsilon", {"solver": "nesvm"}),
        ("epsilon", {"solver": "homotopy"}),
    ],
)
def test_every_ending_but_converged_warns_the_caller(status, options):
    X, y = half_space(n=60)
    with pytest.warns(NotCertifiedWarning, match="not certified") as said:
        s = nesvm_jit.solve(X, y, tol=1e-9, **options)
    assert (s.status, s.certified) == (status, False)
    with pytest.warns(NotCertifiedWarning, match="not certified") as told:
        m = nesvm_jit.train(X, y, tol=1e-9, **options)
    assert statuses_of(m) == [status]
    assert [w.filename for w in (*said, *told)] == [__file__, __file__]


def test_what_is_certified_says_nothing():
    X, y = half_space(n=60)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        s = nesvm_jit.solve(X, y)
    assert (s.status, s.certified) == ("converged", True)


def test_folds_and_paths_warn_once_and_count():
    X, y = blobs()
    with pytest.warns(NotCertifiedWarning, match="for 3 of 3 fits") as said:
        nesvm_jit.cross_validate(X, y, 3, tol=1e-9, max_iter=1)
    assert len(said) == 1
    with pytest.warns(NotCertifiedWarning, match="for 7 of 7 fits") as said:
        nesvm_jit.path(X, y, [0.1, 1.0], folds=3, tol=1e-9, max_iter=1)
    assert len(said) == 1


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("solver", ["auto", "newton"])
def test_without_a_tolerance_a_run_stalls_unless_its_gap_is_zero(model, solver):
    X, y = half_space(n=60, noise=0.3)
    s = solve(X, y, model, solver=solver, tol=0.0)
    assert s.status == ("converged" if s.gap == 0.0 else "stalled")
    assert s.gap < 1e-9


@pytest.mark.parametrize("crossed", [1e-15, 1e-12, 1e-3])
@pytest.mark.parametrize(("solver", "status"), [("auto", "stalled"), ("nesvm", "epsilon")])
def test_settled_bounds_that_cross_certify_nothing(crossed, solver, status):
    run = Run(None, Settings(solver=solver))
    run.status, rest = "converged", {"w": None, "beta": None, "b": 0.0, "margins": np.zeros(1)}

    def settle():
        run.settle(1.0, DualPoint(1.0 + crossed, np.zeros(1)))
        return rest

    s = conclude(run, settle)
    assert (s.status, s.certified) == (status, False)
    assert s.gap == 1.0 - s.dual_objective < 0.0


# ---------------------------------------------------------------- the command line


@pytest.fixture
def two(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = half_space(n=60)
    nesvm_jit.write_libsvm("two", X, y)
    return tmp_path


def test_strict_ends_with_three_and_a_model(two):
    hard = ("-q", "-e", "1e-9", "--max-iter", "1")
    outcome = done("train", *hard, "two")
    assert outcome.out == ""
    assert outcome.err.startswith("nesvm-jit: warning: the tolerance 1e-09 is not certified (gap ")
    assert outcome.err.endswith("raise --max-iter or --tol\n")
    (two / "two.model").unlink()
    assert command("train", "--strict", *hard, "two").code == 3
    assert nesvm_jit.load_model("two.model").problems[0]["status"] == "iteration_limit"
    assert command("train", "--strict", "-q", "two") == (0, "", "")
    assert command("train", "--strict", "-v", "3", *hard, "two").code == 3
    outcome = command("path", "--strict", "-c", "1", "-o", "m", *hard, "two")
    assert (outcome.code, outcome.err.count("\n")) == (3, 1)
    assert "for 6 of 6 fits" in outcome.err
    assert (two / "m").exists()


def test_json_has_the_status_and_standard_error_the_line(two):
    outcome = done("train", "--json", "--solver", "nesvm", "two")
    assert json.loads(outcome.out)["status"] == "epsilon"
    assert outcome.err.count("\n") == 1


# ---------------------------------------------------------------- the last point


def algorithm_1(X, y, mu, epsilon):
    """The paper's Algorithm 1 for the C-SVM of C = 1 without a bias, in plain NumPy."""
    n, p = X.shape
    s = np.abs(X).max(axis=1)
    L = 1 + n / mu * ((X**2).sum(axis=1) / s).max()
    w, history, F_before, k = np.zeros(p), np.zeros(p), np.inf, 0
    while True:
        r = 1 - y * (X @ w)
        u = np.clip(r / (mu * s), 0, 1)
        F = w @ w / 2 + (u * r - mu * s * u**2 / 2).sum()
        if abs(F - F_before) < epsilon:
            return w
        g = w - X.T @ (y * u)
        history = history + (k + 1) / 2 * g
        w = 2 / (k + 3) * (-history / L) + (k + 1) / (k + 3) * (w - g / L)
        F_before, k = F, k + 1


def test_the_last_point_is_that_of_the_paper():
    X, y = half_space(n=80, noise=0.3)
    expected = algorithm_1(X, y, 0.5, 1e-3)
    s = solve(X, y, solver="nesvm", bias=False, mu=0.5, returned="last")
    np.testing.assert_allclose(s.w, expected, rtol=1e-9)
    r = 1 - y * (X @ expected)
    assert s.objective == pytest.approx(expected @ expected / 2 + np.maximum(r, 0).sum())
    assert s.history["objective"][-1] == s.objective


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("solver", ["nesvm", "homotopy"])
def test_the_best_point_is_no_worse_than_the_last(model, kernel, solver):
    X, y = half_space(n=60, noise=0.3)
    best, last = (
        solve(X, y, model, kernel, solver=solver, returned=returned, max_iter=500)
        for returned in ("best", "last")
    )
    assert best.objective <= last.objective * (1 + 1e-12)
    assert last.objective == pytest.approx(last.history["objective"][-1], rel=1e-9)
    assert last.gap == pytest.approx(1 - last.dual_objective / last.objective, abs=1e-12)


@pytest.mark.parametrize("solver", ["auto", "newton", "coordinate"])
def test_only_the_papers_solvers_have_a_last_point(solver):
    X, y = half_space(n=20)
    with pytest.raises(InputError, match="returned 'last' is for nesvm and homotopy"):
        solve(X, y, solver=solver, returned="last")


# ---------------------------------------------------------------- numbers at their limits

HUGE = np.array([[9999.0], [10000.0], [10001.0], [10003.0]])
SIGNS = np.array([1.0, -1.0, 1.0, -1.0])


@pytest.mark.parametrize("bias", [True, False])
def test_a_kernel_beyond_double_precision_stalls_at_a_point_no_worse_than_zero(bias):
    options = {"gamma": 1e11, "degree": 2, "coef0": 10.0, "C": 10.0, "bias": bias}
    s = solve(HUGE, SIGNS, "lssvm", "poly", **options)
    assert s.status == "stalled"
    assert s.objective <= 40.0 * (1 + 1e-12)  # rounded up
    assert s.dual_objective >= 0.0


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_cost_of_next_to_nothing_ends(model, kernel):
    X, y = half_space(n=20)
    s = solve(X, y, model, kernel, C=1e-310)
    assert 0.0 <= s.dual_objective <= s.objective * (1 + 1e-12)
    assert s.objective <= 20 * 1e-310 * (1 + 1e-12)


TOYS = (  # LP-SVM with a bias, where the Hessian is singular but for its ridge; and C
    ([[2.0], [1.0], [-5.0], [4.0]], 0.1, Fraction(2, 5)),
    ([[-5.0, 0.0], [4.0, 5.0], [-4.0, -3.0], [-4.0, -1.0]], 0.1, None),
    ([[3.0], [1.0], [3.0], [4.0]], 10.0, None),
    ([[-5.0], [2.0], [0.0], [4.0]], 1.0, None),
)


@pytest.mark.parametrize(("X", "C", "least"), TOYS)
def test_four_rows_are_solved_to_the_last_bits(X, C, least):
    for tol in (1e-3, 1e-15, 1e-16):
        s = solve(np.array(X), SIGNS, "lpsvm", C=C, tol=tol)
        assert s.gap <= max(tol, 1e-12)
    assert least is None or s.dual_objective <= float(least) * (1 + 1e-12)


# ---------------------------------------------------------------- not stuck


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("width", [10.0, 1000.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_column_far_from_zero_does_not_matter_beside_a_bias(model, width, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((300, 5))
    y = np.where(X @ np.ones(5) + rng.standard_normal(300) > 0, 1.0, -1.0)
    X[:, 2] = 1.6e9 + width * rng.random(300)
    s = solve(X, y, model)
    assert s.status == "converged"
    same = X.copy()
    same[:, 2] -= 1.6e9
    assert s.objective == pytest.approx(solve(same, y, model).objective, rel=2e-3)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("solver", ["auto", "newton", "coordinate"])
@pytest.mark.parametrize("seed", range(4))
def test_rows_that_are_separable_and_huge_are_certified(bias, solver, seed):
    rng = np.random.default_rng(seed)
    X = 1e8 * rng.standard_normal((60, 20))
    y = np.where(X @ np.ones(20) > 0, 1.0, -1.0)
    s = solve(X, y, bias=bias, solver=solver)
    assert s.status == "converged"
    # the same problem: X/1e8 at a C of 1e16, which is the hard margin
    assert s.objective == pytest.approx(
        1e-16 * solve(X / 1e8, y, C=1e6, bias=bias).objective, rel=1e-2
    )


def test_a_kernel_of_separable_rows_is_certified_by_newton_however_large_the_cost():
    """Residuals that are rounding cost as much as the penalty there: a multiple has none."""
    X, y = separable(np.random.default_rng(4))
    s = solve(X @ X.T, y, kernel="precomputed", C=1e12, solver="newton", max_iter=60)
    assert s.status == "converged"
    assert s.objective == pytest.approx(optima.optimum("csvm", X, y, np.full(26, 1e12), True))


@pytest.mark.parametrize(
    ("name", "most", "model"),
    [
        # the rounding of kernel values of cancer, which reach 1e18, is worth 1.2e-3 and 2.9e-3
        ("breast_cancer", 3e-3, "csvm"),
        pytest.param("breast_cancer", 3e-3, "lpsvm", marks=pytest.mark.slow),
        ("wine", 1e-6, "csvm"),
        ("wine", 1e-6, "lpsvm"),
    ],
)
def test_a_cubic_kernel_of_unscaled_rows_is_certified_but_for_rounding(name, most, model):
    from sklearn import datasets

    data = getattr(datasets, f"load_{name}")()
    m = train(data.data, data.target.astype(float), model, "poly", degree=3)
    assert max(p["gap"] for p in m.problems) <= most
    assert {*statuses_of(m)} == {"converged" if most <= 1e-3 else "stalled"}


def test_least_squares_of_an_unscaled_cubic_kernel_stall_no_worse_than_zero():
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    m = train(data.data, data.target.astype(float), "lssvm", "poly", degree=3)
    assert statuses_of(m) == ["stalled"]
    assert m.problems[0]["objective"] <= 569.0


@pytest.mark.parametrize("gamma", [None, "scale"])
def test_an_lp_machine_with_rbf_on_wine_is_certified(gamma):
    from sklearn.datasets import load_wine

    data = load_wine()
    m = train(data.data, data.target.astype(float), "lpsvm", "rbf", gamma=gamma)
    assert {*statuses_of(m)} == {"converged"}


# ---------------------------------------------------------------- the means


@pytest.mark.parametrize("model", ["csvm", "lpsvm"])
def test_the_best_point_between_two_dual_points_is_as_good_as_any_on_a_grid(model):
    rng = np.random.default_rng(0)
    for _ in range(20):
        totals, (v, w) = rng.random(2).tolist(), rng.standard_normal((2, 3))

        def value(t, totals=totals, v=v, w=w):
            total, weights = (1 - t) * totals[0] + t * totals[1], (1 - t) * v + t * w
            if model == "csvm":
                return total - weights @ weights / 2
            return total / max(1, np.abs(weights).max())

        found = best_shares(FORMULAS[model](), totals, [v, w])
        assert 0.0 <= min(found) <= max(found) <= 1.0
        assert max(map(value, found)) >= max(map(value, np.linspace(0, 1, 501))) - 1e-6


@pytest.mark.parametrize("make", [np.asarray, csr_matrix], ids=["dense", "CSR"])
@pytest.mark.parametrize(
    ("low", "high", "moved"),
    [
        *((1000.0, 1001.0, True), (999.0, 1000.0, False), (-1001.0, -1000.0, True)),
        *((999.5, 1000.5, True), (1e100, 1e100, True), (1.5e100, 1.5e100, False)),
    ],
)
def test_far_is_a_thousand_times_the_spread_of_a_column(make, low, high, moved):
    X = np.array([[low, 1.0], [high, -1.0], [high, 2.0]])
    _, shift = centre_columns(as_matrix(make(X)))
    assert (shift is not None and shift.tolist() == [low + (high - low) / 2, 0.0]) == moved


@pytest.mark.parametrize(
    ("n", "far", "looks"), [(3, False, [3]), (200, False, [64]), (200, True, [64, 200])]
)
def test_where_no_column_is_far_in_the_first_rows_no_others_are_looked_at(
    n, far, looks, monkeypatch
):
    X = np.random.default_rng(0).standard_normal((n, 3))
    X[:, 1] += 1e6 * far
    seen, real = [], centred._far_columns
    monkeypatch.setattr(
        centred, "_far_columns", lambda X, *given: seen.append(shape(X)[0]) or real(X, *given)
    )
    assert (centre_columns(as_matrix(X))[1] is not None) == far
    assert seen == looks


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("make", [np.asarray, csr_matrix], ids=["dense", "CSR"])
def test_columns_far_from_zero_are_moved_without_rounding(make, dtype):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 5)).astype(dtype)
    X[:, 1] = dtype(1e6) + rng.random(100).astype(dtype)
    X[:, 3] = dtype(-7e5)
    moved, shift = centre_columns(as_matrix(make(X)))
    assert np.flatnonzero(shift).tolist() == [1, 3]
    moved = moved if isinstance(moved, np.ndarray) else as_scipy(moved).toarray()
    assert moved.dtype == dtype
    for row, original in zip(moved.tolist(), X.tolist(), strict=True):
        assert [Fraction(x) + Fraction(m) for x, m in zip(row, shift, strict=True)] == [
            Fraction(x) for x in original
        ]
    assert np.abs(moved[:, [1, 3]]).max() <= 1.0


@pytest.mark.parametrize(
    "X",
    [
        np.random.default_rng(0).standard_normal((100, 3)),
        np.vstack([np.full((99, 1), 1e6), [[0.0]]]),  # far from zero but in the last row
        csr_matrix(np.where(np.arange(200).reshape(100, 2) % 3, 5.0, 0.0)),
        np.full((100, 2), 3, dtype=np.int8),
        np.zeros((100, 2)),
    ],
)
def test_other_columns_stay_where_they_are(X):
    X = as_matrix(X)
    same, shift = centre_columns(X)
    assert same is X
    assert shift is None


@pytest.mark.parametrize("solver", ["newton", "coordinate"])
def test_a_start_is_moved_with_the_columns(solver):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3)) + np.array([0.0, 1e5, 0.0])
    y = np.where(X[:, 0] + 0.3 * rng.standard_normal(60) > 0, 1.0, -1.0)
    first = solve(X, y, solver=solver, tol=1e-6)
    np.testing.assert_allclose(first.margins, X @ first.w + first.b, atol=1e-6)
    start = {"w0": first.w, "b0": first.b, "alpha0": first.alpha}
    assert solve(X, y, solver=solver, tol=1e-4, **start).n_iter <= 2


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("bias", [True, False])
def test_the_best_multiple_of_a_point_is_that_of_a_fine_grid(model, bias):
    X, y = half_space(n=40, noise=0.3)
    c = np.linspace(0, 1, 40)
    problem = problem_in_memory(as_matrix(X), y, c, FORMULAS[model](), bias)
    v = np.random.default_rng(0).standard_normal(problem.n_variables) / 3
    w, b = (v[:-1], v[-1]) if bias else (v, 0.0)
    w[:] += 0.3 * (X.T @ y) / len(y)
    found = problem.lift(v, X @ w + b)

    def P(t):
        r = 1 - t * y * (X @ w + b)
        R = np.abs(t * w).sum() if model == "lpsvm" else t * t * (w @ w) / 2
        return R + c @ (r**2 if model == "lssvm" else np.maximum(r, 0))

    t = np.linalg.norm(found) / np.linalg.norm(v)
    assert P(t) <= min(P(s) for s in np.linspace(0, 5, 2001)) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("n", "p", "suitable"),
    [(1000, 1000, True), (1001, 1000, False), (1000, 1001, False), (10, 10**6, False)],
)
def test_linear_programs_of_more_than_a_million_cells_are_not_begun(n, p, suitable):
    data = SimpleNamespace(resident=True)
    problem = SimpleNamespace(
        n_rows=n,
        n_features=p,
        model=FORMULAS["lpsvm"](),
        shard=SimpleNamespace(data=data),
    )
    assert linear_program.suits(problem) == suitable
    data.resident = False  # HiGHS wants all rows
    assert not linear_program.suits(problem)


def test_a_program_that_highs_gives_up_is_tried_without_presolving(monkeypatch):
    rng = np.random.default_rng(3)
    Z, c = rng.standard_normal((6, 3)), np.full(6, 2.0)
    expected = linear_program._solve(Z, None, c, np.inf)
    tried, solve = [], optimize.linprog

    def giving_up(*given, options, **more):
        tried.append(options)
        found = solve(*given, options=options, **more)
        return OptimizeResult(status=4, x=None) if options["presolve"] else found

    monkeypatch.setattr(optimize, "linprog", giving_up)
    found = linear_program._solve(Z, None, c, 7.0)
    assert tried == [{"presolve": p, "time_limit": 7.0} for p in (True, False)]
    for part, same in zip(found, expected, strict=True):
        np.testing.assert_allclose(part, same, atol=1e-9)
    tried.clear()
    monkeypatch.setattr(
        optimize,
        "linprog",
        lambda *_, options, **more: tried.append(options) or OptimizeResult(status=1, x=None),
    )
    assert linear_program._solve(Z, None, c, np.inf) is None
    assert tried == [{"presolve": True}]


@pytest.mark.parametrize("weight", [1.0, 2.0**-1060])
def test_a_tiny_kernel_is_scaled_and_told_as_it_was_given(weight):
    X, y = np.random.default_rng(4).integers(-3, 4, (30, 3)).astype(float), np.ones(30)
    y[::2] = -1.0
    K, told = X @ X.T, []
    size = 2.0 ** -np.frexp(np.abs(K).max())[1]  # makes the largest a half or more
    given = {"model": "lpsvm", "kernel": "precomputed", "max_iter": 60}
    c = 4.0 * weight
    plain = solve(K * size, y, C=c, **given)
    tiny = solve(K * size * 2.0**-40, y, C=c * 2.0**40, callback=told.append, **given)
    assert tiny.objective == plain.objective * 2.0**40
    assert tiny.dual_objective == plain.dual_objective * 2.0**40
    np.testing.assert_array_equal(tiny.beta, plain.beta * 2.0**40)
    np.testing.assert_array_equal(tiny.alpha, plain.alpha * 2.0**40)
    np.testing.assert_array_equal(tiny.margins, plain.margins)
    assert tiny.history["dual"].tolist() == (plain.history["dual"] * 2.0**40).tolist()
    assert [row["dual"] for row in told] == tiny.history["dual"][: len(told)].tolist()
    assert (plain.certified and len(told) > 1) or weight < 1.0


def go_on(gap, end=None):
    """The tolerances of the runs that follow one whose gap, settled, is this; and the last run."""
    run = SimpleNamespace(
        **{"objective": 2.0, "dual": 1.0, "alpha": None, "gap": gap, "status": "converged"},
        settings=Settings(tol=1e-3),
    )
    ending, tols = Ending(run, lambda: {"b": len(tols)}), []

    def steps():
        tols.append(run.settings.tol)
        run.status = end or ""

    ending.go_on(steps)
    return tols, run, ending.settle()


def test_a_run_goes_on_three_times_to_what_makes_up_for_rounding():
    tols, run, found = go_on(1.1e-3)
    assert tols == pytest.approx([8e-4, 6e-4, 4e-4])
    assert (run.settings.tol, run.status, found["b"]) == (1e-3, "converged", 3)
    assert go_on(1.4e-3)[0] == pytest.approx([2e-4])
    assert go_on(1.1e-3, "time_limit")[0] == pytest.approx([8e-4])
    for settled in (1e-3, 1.46e-3, 3e-3, np.inf, np.nan):
        assert go_on(settled)[0] == []


@pytest.mark.parametrize(
    ("largest", "k"),
    [
        *((0.0, 0), (2.0, 0), (2.0**-8, 0), (0.75 * 2.0**-8, 8), (2.0**-9, 8), (2.0**-10, 8)),
        *((0.75 * 2.0**-10, 10), (2.0**-59, 58), (2.0**-61, 60), (2.0**-63, 60), (1e-300, 60)),
    ],
)
def test_a_kernel_that_is_smaller_than_the_bias_is_scaled_by_a_power_of_four(largest, k):
    K = largest * np.array([[0.25, -1.0], [-1.0, 0.5]])
    assert _halvings(K, np.array([3.0, 0.0])) == k
    assert _halvings(K, np.array([3.0, 5e-324])) == 0  # which would be lost


def test_what_entries_are_off_is_scaled_with_them():
    """Errors are at most ε κ_i κ_j, and K + diag(τ) is positive semidefinite."""
    entries = EntryError(1e-15, np.array([1.0, 3.0]), np.array([0.0, 2.0**-80]))
    scaled = _scaled_entries(entries, 40)
    assert scaled.epsilon == 1e-15
    assert scaled.roots.tolist() == [2.0**20, 3.0 * 2.0**20]
    assert scaled.shift.tolist() == [0.0, 2.0**-40]
