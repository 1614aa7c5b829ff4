"""The steps of `certify`, one by one, with numbers that are exact."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from nesvm_jit import InputError, certify
from nesvm_jit.certifying import checker, kernel, linear, polish, proximal, sums
from nesvm_jit.certifying.given import FREE, NONE, PENALISED, Given, as_given
from nesvm_jit.certifying.linear import with_feature
from nesvm_jit.certifying.matching import match
from nesvm_jit.certifying.posed import Posed, Proven
from nesvm_jit.certifying.result import Certificate, ProblemBounds
from nesvm_jit.files.model.record import ModelRecord
from nesvm_jit.kernels.loss import HINGE, SQUARE
from nesvm_jit.kernels.public import as_spec
from nesvm_jit.matrix.checks import as_matrix
from nesvm_jit.matrix.matrix import shape
from nesvm_jit.problems.kernel import KernelProblem
from nesvm_jit.problems.kernel_rows import KernelRows
from scipy.sparse import csr_matrix

from .data import half_space
from .endings import solve
from .optima import optimum

X = np.array([[1.0, 2.0], [0.0, -0.5], [2.0, 0.0], [0.5, 1.0]])
Y = np.array([1.0, -1.0, 1.0, -1.0])
C = np.array([2.0, 1.0, 0.5, 0.0])
W, B = np.array([0.5, -0.25]), 0.125
ALPHA = np.array([0.5, 0.75, 0.25, 0.0])


def record(model="csvm", kernel="linear", **how):
    how = {"gamma": 1.0, "coef0": 0.0, "degree": 1, **how}
    return SimpleNamespace(model=model, kernel=kernel, **how)


def bounds(model, kernel="linear", rows=X, point=W, alpha=ALPHA, bias=True, **how):
    posed, proven = Posed(Y, C, bias, 0.0, 0.0), Proven(0.0, 0.0, point, B, alpha, "", 0.0)
    return sums.exact_bounds(record(model, kernel, **how), as_matrix(rows), posed, proven)


def losses(model, f):
    r = 1.0 - Y * (f + B)
    return float(C @ (r * r if model == "lssvm" else np.maximum(r, 0.0)))


# ---------------------------------------------------------------- rational arithmetic


@pytest.mark.parametrize("kind", [np.asarray, csr_matrix])
def test_rational_bounds_of_linear_machines_are_the_formulas(kind):
    v, f = X.T @ (ALPHA * Y), X @ W
    half = 0.5 * float(W @ W)
    rows = kind(X)
    assert bounds("csvm", rows=rows) == (half + losses("csvm", f), 1.5 - 0.5 * float(v @ v))
    squares = float((ALPHA[:3] ** 2 / (4.0 * C[:3])).sum())
    assert bounds("lssvm", rows=rows) == (
        half + losses("lssvm", f),
        1.5 - squares - 0.5 * float(v @ v),
    )
    assert bounds("lpsvm", rows=rows) == (
        0.75 + losses("lpsvm", f),
        float(Fraction(3, 2) / Fraction(np.abs(v).max())),
    )
    assert bounds("lpsvm", rows=kind(0.25 * X))[1] == 1.5  # no column is above 1


@pytest.mark.parametrize(
    ("alpha", "boxed", "any_sign"),
    [
        ([0.5, 0.75, 0.25, 0.0], True, True),
        ([1.0, 1.5, 0.5, 0.0], False, True),  # above its cost
        ([-0.25, 0.25, 0.5, 0.0], False, True),
        ([0.5, 0.5, 0.25, 0.25], False, False),  # of a row that costs nothing
        ([2.0, 1.0, 0.5, 0.0], False, False),  # not balanced
        ([0.5, 1.0, 0.5, 0.0], True, True),  # at its bounds
    ],
)
def test_rational_dual_points_are_checked(alpha, boxed, any_sign):
    assert np.isfinite(bounds("csvm", alpha=np.array(alpha))[1]) == boxed
    assert np.isfinite(bounds("lssvm", alpha=np.array(alpha))[1]) == any_sign


def test_a_dual_point_need_not_be_balanced_without_a_bias():
    alpha = np.array([2.0, 1.0, 0.5, 0.0])
    v = X.T @ (alpha * Y)
    assert bounds("csvm", alpha=alpha, bias=False)[1] == 3.5 - 0.5 * float(v @ v)


POINT = np.array([0.5, 0.0, -0.25, 1.0])


def kernel_matrix(kernel):
    if kernel == "precomputed":
        return (X @ X.T + (X @ X.T).T) / 2.0
    if kernel == "poly":
        return (0.5 * (X @ X.T) + 0.25) ** 2
    return np.exp(-0.5 * np.square(X[:, None] - X[None]).sum(axis=2))


@pytest.mark.parametrize("off", [0, Fraction(1, 8)])
@pytest.mark.parametrize("kernel", ["precomputed", "poly", "rbf"])
@pytest.mark.parametrize("model", ["csvm", "lssvm", "lpsvm"])
def test_rational_bounds_of_kernel_machines_are_the_formulas(monkeypatch, model, kernel, off):
    monkeypatch.setattr(sums, "ENCLOSED", off)
    off = float(off) if kernel == "rbf" else 0.0
    K = kernel_matrix(kernel)
    rows = X @ X.T if kernel == "precomputed" else X
    if kernel == "precomputed":  # what is not symmetric by rounding is halved
        rows = rows + np.array([[0, 1.0, 0, 0], [-1.0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]])
    how = {"gamma": 0.5, "coef0": 0.25, "degree": 2}
    P, D = bounds(model, kernel, rows, POINT, **how)
    f, size = K @ POINT, float(np.abs(POINT).sum())
    r = 1.0 - Y * (f + B)
    if model == "lssvm":
        loss = C @ (np.abs(r) + off * size) ** 2
    else:
        loss = C @ np.maximum(r + off * size, 0.0)
    penalty = size if model == "lpsvm" else 0.5 * (POINT @ f + off * size**2)
    assert pytest.approx(penalty + loss, rel=1e-14) == P
    v = K @ (ALPHA * Y)
    square = (ALPHA * Y) @ v + off * 1.5**2
    if model == "lpsvm":
        expected = 1.5 / max(1.0, np.abs(v)[:3].max() + off * 1.5)
    else:
        expected = 1.5 - 0.5 * square
        expected -= (ALPHA[:3] ** 2 / (4 * C[:3])).sum() if model == "lssvm" else 0.0
    assert pytest.approx(expected, rel=1e-13) == D


def test_rows_that_cost_nothing_are_no_features_of_an_lp():
    far = X.copy()
    far[3] = [50.0, -40.0]
    how = {"gamma": 1.0, "coef0": 0.0, "degree": 1}
    D = bounds("lpsvm", "poly", far, POINT, **how)[1]
    v = (far @ far.T) @ (ALPHA * Y)
    assert pytest.approx(1.5 / np.abs(v[:3]).max(), rel=1e-14) == D


def test_an_exponential_is_zero_beyond_120():
    rows = [{0: Fraction(0)}, {0: Fraction(2)}, {0: Fraction(2), 1: Fraction(1)}]
    at = {g: sums._kernel(record(kernel="rbf", gamma=g), rows, 0, 1) for g in (30.0, 30.5)}
    assert float(at[30.0]) == pytest.approx(np.exp(-120.0), rel=1e-15)
    assert at[30.5] == 0
    found = sums._kernel(record(kernel="rbf", gamma=0.25), rows, 0, 2)
    e = Fraction(1) / sum((Fraction(5, 4) ** k / factorial(k) for k in range(60)), Fraction(0))
    assert abs(found - e) < Fraction(1, 10**50)
    assert Fraction(1, 10**50) == sums.ENCLOSED


def factorial(k):
    return 1 if k < 2 else k * factorial(k - 1)


@pytest.mark.parametrize(
    ("model", "kernel", "products"),
    [("csvm", "linear", 6), ("csvm", "poly", 4 * 4 * 2), ("lpsvm", "poly", 4 * 4 * 2)],
)
def test_products_are_counted_before_any_is_made(monkeypatch, model, kernel, products):
    point = W if kernel == "linear" else POINT
    monkeypatch.setattr(sums, "MOST", products)
    assert bounds(model, kernel, point=point)[0] > 0.0
    monkeypatch.setattr(sums, "MOST", products - 1)
    with pytest.raises(InputError, match=f"at most {products - 1} products.* be {products}$"):
        bounds(model, kernel, point=point)


def test_columns_without_coefficients_are_not_computed(monkeypatch):
    monkeypatch.setattr(sums, "MOST", 4 * 3 * 2)
    point = np.array([0.5, 0.0, 0.0, 0.0])
    assert bounds("csvm", "poly", point=point)[0] > 0.0  # α uses two more
    with pytest.raises(InputError):
        bounds("lpsvm", "poly", point=point)
    monkeypatch.setattr(sums, "MOST", 4 * 3)
    assert bounds("csvm", "poly", 0.0 * X, point)[0] > 0.0


def test_fractions_are_rounded_outwards():
    third = Fraction(1, 3)
    assert Fraction(sums._below(third)) < third < Fraction(sums._above(third))
    assert np.nextafter(sums._below(third), 1.0) == sums._above(third)
    assert (sums._above(Fraction(1, 4)), sums._below(Fraction(1, 4))) == (0.25, 0.25)
    assert sums._below(None) == -np.inf
    assert sums._above(Fraction(10) ** 400) == np.inf
    assert sums._below(-(Fraction(10) ** 400)) == -np.inf


@pytest.mark.parametrize("exact", [False, True])
def test_weights_whose_square_is_too_large_are_certified_to_nothing(exact):
    found = certify((np.array([1e200, 0.0]), 0.0), X, Y, polish=0, exact=exact)
    assert (found.objective, found.gap) == (np.inf, np.inf)
    assert np.isfinite(found.dual_objective)


# ---------------------------------------------------------------- what is said


def problem(objective, dual, passes=1.0):
    return ProblemBounds((1.0,), 4, objective, dual, "margins", passes, False)


@pytest.mark.parametrize(
    ("objective", "dual", "gap", "over"),
    [
        (4.0, 3.0, 0.25, 1.0),
        (0.5, 0.25, 0.5, 0.25),
        (0.0, 0.0, 0.0, 0.0),
        (0.0, -1.0, np.inf, 1.0),
        (3.0, 4.0, 0.0, 0.0),
        (np.inf, 1.0, np.inf, np.inf),
    ],
)
def test_a_gap_is_a_share_of_the_objective(objective, dual, gap, over):
    found = problem(objective, dual)
    assert (found.gap, found.suboptimality) == (gap, over)


def test_sums_and_the_largest_gap_are_of_all_sub_problems():
    parts = (problem(4.0, 3.0), problem(2.0, 1.75, 2.5))
    how = ("csvm", "linear", 1.0, FREE, "ovr", 4, 2, 3)
    found = Certificate(*how, problems=parts, notes=("a note",), seconds=0.5)
    assert (found.objective, found.dual_objective) == (6.0, 4.75)
    assert (found.gap, found.passes) == (0.25, 3.5)
    facts = found.facts()
    assert list(facts)[-3:] == ["problems", "notes", "seconds"]
    assert (facts["objective"], facts["dual_objective"]) == (6.0, 4.75)
    assert (facts["gap"], facts["passes"], facts["seconds"]) == (0.25, 3.5, 0.5)
    assert facts["notes"] == ["a note"]
    assert [p["gap"] for p in facts["problems"]] == [0.25, 0.125]
    assert [p["suboptimality"] for p in facts["problems"]] == [1.0, 0.25]
    assert (facts["n_classes"], facts["multiclass"]) == (3, "ovr")


# ---------------------------------------------------------------- support vectors and rows

ROWS = csr_matrix(np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0], [1.0, 0.0, 2.0], [0.0, 0.0, 0.5]]))
CLASSES = np.array([0, 1, 1, 0])


def matched(vectors, sv_class=None, hint=None, rows=ROWS):
    found = match(csr_matrix(np.atleast_2d(vectors)), rows, sv_class, CLASSES, hint)
    return found.rows.tolist(), found.same.tolist()


def test_support_vectors_are_rows_of_their_class():
    assert matched([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]) == ([0, 1], [True, True])
    assert matched([1.0, 0.0, 2.0], np.array([1])) == ([2], [True])
    assert matched([0.0, 3.0, 0.0], np.array([0])) == ([-1], [False])
    assert matched([[1.0, 0.0, 2.0]] * 3) == ([0, 2, -1], [True, True, False])
    assert matched([1.0, 0.0]) == ([-1], [False])


def test_vectors_are_compared_over_all_their_columns():
    assert matched([[0.0, 3.0, 0.0, 0.0], [0.0, 3.0, 0.0, 1.0]]) == ([1, -1], [True, False])
    assert matched([0.0, 3.0]) == ([1], [True])


def test_a_zero_that_is_stored_is_no_difference():
    stored = csr_matrix((np.array([0.0, 3.0]), np.array([0, 1]), np.array([0, 2])), (1, 3))
    found = match(stored, ROWS, None, CLASSES, None)
    assert found.rows.tolist() == [1]
    turned = csr_matrix((np.array([2.0, 1.0]), np.array([2, 0]), np.array([0, 2])), (1, 3))
    assert match(turned, ROWS, None, CLASSES, None).rows.tolist() == [0]


def test_rows_that_are_printed_alike_will_do():
    near = [1.0 + 1e-10, 0.0, 2.0]
    assert matched(near) == ([0], [False])
    assert matched([near, [1.0, 0.0, 2.0]]) == ([2, 0], [False, True])
    assert matched([near, [1.0, 0.0, 2.0], near]) == ([2, 0, -1], [False, True, False])
    assert matched([1.0 + 1e-6, 0.0, 2.0]) == ([-1], [False])
    assert matched([near, near, near], np.array([1, 1, 0])) == ([2, -1, 0], [False] * 3)


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        ([2, 1], [2, 1]),  # as it says
        ([3, 1], [0, 1]),  # another row
        ([2], [0, 1]),
        ([2, 4], [0, 1]),  # no row
        (None, [0, 1]),
    ],
)
def test_rows_that_a_model_names_come_first_if_they_are_its_vectors(hint, expected):
    hint = None if hint is None else np.array(hint)
    assert matched([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]], None, hint) == (expected, [True, True])


def test_the_last_row_may_be_named():
    assert matched([0.0, 0.0, 0.5], None, np.array([3])) == ([3], [True])
    doubled = csr_matrix(np.vstack([ROWS.toarray()[1:], [[1.0, 0.0, 2.0]]]))
    assert matched([1.0, 0.0, 2.0], None, np.array([3]), doubled) == ([3], [True])
    empty = match(csr_matrix((0, 3)), ROWS, None, CLASSES, np.empty(0, dtype=np.int64))
    assert len(empty.rows) == 0


# ---------------------------------------------------------------- a better dual point


def test_a_working_set_holds_the_largest_violations_of_both_sides(monkeypatch):
    monkeypatch.setattr(polish, "SET", 4)
    rise = np.array([5.0, 1.0, -np.inf, 4.0, 3.0, 2.0])
    fall = np.array([-5.0, 6.0, 7.0, -4.0, -np.inf, 1.0])
    nothing = np.empty(0, dtype=np.int64)
    assert sorted(polish._working_set(rise, fall, nothing).tolist()) == [0, 1, 2, 3]
    kept = np.array([5, 4, 3])  # of which the last two stay
    found = polish._working_set(rise, fall, kept).tolist()
    assert found == [4, 3, 0, 2]
    worst = np.array([0, 1])  # which are chosen once, though they violate most
    assert polish._working_set(rise, -rise, worst).tolist() == [0, 1, 3, 2]
    assert polish._working_set(rise[:4], fall[:4], nothing).tolist() == [0, 1, 2, 3]
    few = np.full(6, -np.inf)
    assert sorted(polish._working_set(few, fall, nothing).tolist()) == [1, 2]
    rise[:4] = -np.inf
    assert sorted(polish._working_set(rise, fall, nothing)[:2].tolist()) == [4, 5]


def dual(bias=False, alpha=ALPHA):
    rows = KernelRows(as_matrix(X), as_spec("poly", 1.0, 0.0, 1, X.shape[1]), 1e6)
    return polish.KernelDual(KernelProblem(rows, Y, C, bias, HINGE), alpha)


def test_a_dual_knows_its_gradient_wherever_it_moves():
    found = dual(alpha=np.array([3.0, -1.0, 0.25, 1.0]))
    np.testing.assert_array_equal(found.beta, [2.0, 0.0, 0.25, 0.0])  # in its box
    np.testing.assert_array_equal(found.lower, [0.0, -1.0, 0.0, 0.0])
    np.testing.assert_array_equal(found.upper, [2.0, 0.0, 0.5, 0.0])
    np.testing.assert_allclose(found.gradient(), Y - X @ X.T @ found.beta)
    found.move(np.array([1, 2]), np.array([-0.5, 0.5]))
    np.testing.assert_array_equal(found.beta, [2.0, -0.5, 0.5, 0.0])
    np.testing.assert_allclose(found.gradient(), Y - X @ X.T @ found.beta, atol=1e-15)
    np.testing.assert_allclose(found.block(np.array([2, 0])), (X @ X.T)[np.ix_([2, 0], [2, 0])])


def value_of(alpha):
    v = X.T @ (alpha * Y)
    return alpha.sum() - 0.5 * v @ v


@pytest.mark.parametrize("bias", [False, True])
def test_polish_ends_at_the_best_point_of_the_box(bias):
    found = dual(bias, np.zeros(4))
    alpha = polish.polish(found, 60.0)
    assert ((alpha >= 0.0) & (alpha <= C)).all()
    assert not bias or alpha @ Y == pytest.approx(0.0, abs=1e-15)
    rng = np.random.default_rng(0)
    others = rng.random((4000, 4)) * C
    if bias:
        others[:, 1] = others[:, 0] + others[:, 2]
        others = others[others[:, 1] <= 1.0]
    assert value_of(alpha) >= max(map(value_of, others))
    e = Y - X @ X.T @ (alpha * Y)
    rise, fall = (alpha * Y < found.upper), (alpha * Y > found.lower)
    worst = max(e[rise].max(), 0.0), max((-e[fall]).max(initial=0.0), 0.0)
    assert bias or max(worst) <= 1e-9


def counted(monkeypatch, found):
    """How often a dual point moves, in a list."""
    moves, move = [], found.move
    monkeypatch.setattr(found, "move", lambda *to: (moves.append(1), move(*to)))
    return moves


def test_polish_stops_when_time_is_up_after_the_first_round(monkeypatch):
    monkeypatch.setattr(polish, "INNER", 1e9)
    found = dual(False, np.zeros(4))
    moves = counted(monkeypatch, found)
    polish.polish(found, -1.0)
    assert len(moves) == 1


def test_polish_leaves_the_optimum_alone(monkeypatch):
    best = polish.polish(dual(False, np.zeros(4)), 60.0)
    found = dual(False, best)
    moves = counted(monkeypatch, found)
    violation = np.where(found.beta < found.upper, found.gradient(), -np.inf).max()
    assert violation < 1e-9
    polish.polish(found, 60.0)
    assert len(moves) <= polish.IDLE + 1


def test_newtons_steps_are_tried_where_those_of_pairs_do_not_end(monkeypatch):
    tried, steps = [], polish._newton_steps
    monkeypatch.setattr(polish, "_newton_steps", lambda *a: (tried.append(a[4]), steps(*a))[1])
    best = polish.polish(dual(False, np.zeros(4)), 60.0)
    assert tried == []
    monkeypatch.setattr(polish, "STEPS", 0)
    found = polish.polish(dual(False, 0.5 * C), 60.0)
    assert set(tried) == {1e-12 * 5.0}  # of the largest square of a row
    np.testing.assert_allclose(found, best, atol=1e-9)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_rows_between_their_bounds_stay_in_the_working_set(sign):
    rows = KernelRows(as_matrix(X), as_spec("poly", 1.0, 0.0, 1, X.shape[1]), 1e6)
    problem = KernelProblem(rows, sign * Y, C, False, HINGE)
    found = polish.KernelDual(problem, np.zeros(4))
    kept = polish._improve(found, np.array([3, 1, 2, 0]), 1e-9)
    at_lower, at_upper = found.beta == found.lower, found.beta == found.upper
    bounded = at_lower if sign > 0.0 else at_upper
    assert (bounded & (C > 0.0)).any()
    assert kept.tolist() == [k for k in (3, 1, 2, 0) if not (at_lower[k] or at_upper[k])]
    assert 0 < len(kept) < 3


def test_what_rounding_leaves_in_the_balance_goes_to_the_row_with_most_room(monkeypatch):
    def moved(K, diagonal, lower, upper, bias, enough, most, beta, e):
        beta += [0.25, 0.0, 0.125, 0.0]
        return 0

    monkeypatch.setattr(polish, "_dual_steps", moved)
    found = dual(True, np.array([0.5, 0.5, 0.0, 0.0]))
    polish._improve(found, np.arange(4), 1.0)  # the first has most room, 0.75 on either side
    np.testing.assert_array_equal(found.beta, [0.375, -0.5, 0.125, 0.0])
    found = dual(False, np.array([0.5, 0.5, 0.0, 0.0]))
    polish._improve(found, np.arange(4), 1.0)
    np.testing.assert_array_equal(found.beta, [0.75, -0.5, 0.125, 0.0])


# ---------------------------------------------------------------- proximal points


def drawn(n=40, p=5, seed=1):
    rng = np.random.default_rng(seed)
    c = rng.choice([0.0, 0.5, 2.0], n)
    return rng.standard_normal((n, p)), np.where(rng.random(n) < 0.5, 1.0, -1.0), c


@pytest.mark.parametrize("bias", [False, True])
def test_slopes_of_a_proximal_problem_are_those_of_its_values(bias):
    rows, y, c = drawn()
    found = proximal.Proximal(as_matrix(rows), y, c, bias, 0.3 * c)
    np.testing.assert_array_equal(found.sigma, 10.0 * c)

    def value(v):
        r = 1.0 - y * (rows @ v[:-1] + v[-1])
        a = np.clip(0.3 * c + 10.0 * c * r, 0.0, c)
        pulled = np.divide((a - 0.3 * c) ** 2, 20.0 * c, out=np.zeros(40), where=c > 0.0)
        return 0.5 * v[:-1] @ v[:-1] + a @ r - pulled.sum()

    v = np.append(np.linspace(-0.3, 0.4, 5), 0.2)
    at = found.at(v[:-1], v[-1], rows @ v[:-1] + v[-1])
    step = 1e-6
    slopes = [(value(v + step * e) - value(v - step * e)) / (2 * step) for e in np.eye(6)]
    np.testing.assert_allclose(at.slope[:-1], slopes[:-1], rtol=1e-6, atol=1e-6)
    assert at.slope[-1] == (pytest.approx(slopes[-1], rel=1e-6) if bias else 0.0)
    objective, gap = found.gap(at)
    w, a = v[:-1], at.alpha
    P = 0.5 * w @ w + c @ np.maximum(1.0 - y * (rows @ w + 0.2), 0.0)
    dual_weights = rows.T @ (a * y)
    assert objective == pytest.approx(P, rel=1e-13)
    assert gap == pytest.approx(P - a.sum() + 0.5 * dual_weights @ dual_weights, rel=1e-12)


@pytest.mark.parametrize("dense", [2000, 0])
@pytest.mark.parametrize("bias", [False, True])
def test_climbing_ends_at_the_optimum_of_the_dual(monkeypatch, bias, dense):
    monkeypatch.setattr(proximal, "DENSE", dense)
    rows, y, c = drawn()
    best = optimum("csvm", rows, y, c, bias)
    for start in (np.zeros(5), np.full(5, 3.0)):
        a, passes = proximal.climb(as_matrix(rows), y, c, bias, 9.0 * c, start, 0.5, 60.0)
        v = rows.T @ (a * y)
        assert a.sum() - 0.5 * v @ v == pytest.approx(best, rel=2e-8)
        assert ((a >= 0.0) & (a <= c)).all()
        assert not bias or a @ y == pytest.approx(0.0, abs=1e-8 * a.sum())
        assert 4.0 < passes < 3000.0


def test_climbing_stops_when_time_is_up_after_the_first_problem():
    rows, y, c = drawn()
    matrix, start = as_matrix(rows), np.full(5, 3.0)
    soon, few = proximal.climb(matrix, y, c, True, 0.5 * c, start, 0.0, -1.0)
    late, many = proximal.climb(matrix, y, c, True, 0.5 * c, start, 0.0, 60.0)
    assert few < many

    def value(a):
        v = rows.T @ (a * y)
        return a.sum() - 0.5 * v @ v

    assert 0.0 < value(soon) < value(late)
    assert soon @ y == pytest.approx(0.0, abs=1e-8 * soon.sum())


def test_nothing_balanced_is_nothing_found(monkeypatch):
    monkeypatch.setattr(proximal, "STEPS", 0)
    monkeypatch.setattr(proximal, "BALANCED", -1.0)
    rows, y, c = drawn()
    found, _ = proximal.climb(as_matrix(rows), y, c, True, 0.5 * c, np.zeros(5), 0.0, -1.0)
    assert found is None


# ---------------------------------------------------------------- models and data


def given(**how):
    fields = {"names": None, **how}
    weights = np.ones((2, 1))
    return Given(ModelRecord(np.array([4.0, 2.0]), 2, np.zeros(1), weights=weights), FREE, **fields)


def test_classes_of_rows_are_numbered_as_the_model_counts_them():
    y = np.array([2.0, 4.0, 4.0])
    np.testing.assert_array_equal(checker._numbers_of(given(), y, 3), [1, 0, 0])
    named = given(names=np.array(["no", "yes"]))
    np.testing.assert_array_equal(checker._numbers_of(named, ["yes", "no"], 2), [1, 0])
    with pytest.raises(InputError, match=r"^y must have length 3, got shape \(2,\)"):
        checker._numbers_of(named, ["yes", "no"], 3)


def test_costs_and_weights_are_the_models_unless_others_are_given():
    assert checker._cost(given(), None) == 1.0
    assert checker._cost(given(C=3.0), None) == 3.0
    assert checker._cost(given(C=3.0), 2) == 2.0
    assert checker._weights(given(), None) is None
    assert checker._weights(given(), "balanced") == "balanced"
    assert checker._weights(given(), {2.0: 5.0}) == {1.0: 5.0}
    own = given(class_weight={4.0: 0.5, 2.0: 3.0})
    assert checker._weights(own, None) == {0.0: 0.5, 1.0: 3.0}
    assert checker._weights(own, {4.0: 7.0}) == {0.0: 7.0}
    assert checker._weights(given(class_weight="balanced"), None) == "balanced"
    named = given(names=np.array(["no", "yes"]))
    assert checker._weights(named, {"yes": 2.0}) == {1.0: 2.0}


def test_data_have_the_columns_of_the_model_at_least():
    square = as_matrix(np.ones((3, 3)))
    assert checker._fitting(square, 3, "linear") is square
    assert checker._fitting(square, 3, "precomputed") is square
    assert checker._fitting(square, 2, "precomputed") is square
    with pytest.raises(InputError, match="must be square, got 3 rows and 2 columns"):
        checker._fitting(as_matrix(np.ones((3, 2))), 2, "precomputed")
    with pytest.raises(InputError, match="is of 4 samples at least, got 3 rows"):
        checker._fitting(square, 4, "precomputed")
    with pytest.raises(InputError, match="X must have 2 columns, got 3"):
        checker._fitting(square, 2, "linear")
    sparse = as_matrix(csr_matrix(np.ones((3, 2))))
    assert shape(checker._fitting(sparse, 4, "linear")) == (3, 4)
    assert shape(checker._fitting(sparse, 1, "linear")) == (3, 2)


@pytest.mark.parametrize(
    ("polished", "expected"), [(None, (0.0, 1.0)), (6.0, (3.0, 3.0)), (0.0, (0.0, 0.0))]
)
def test_time_is_shared_by_the_sub_problems(monkeypatch, polished, expected):
    seen = []

    def prove(rows, posed, model, w, b, alpha):
        seen.append((posed.with_coefficients, posed.without))
        return Proven(2.0, 1.0, w, b, np.zeros(len(posed.sign)), "margins", 1.0)

    monkeypatch.setattr(checker, "prove_linear", prove)
    how = ModelRecord(np.array([1.0, 2.0, 3.0]), 2, np.zeros(3), weights=np.ones((2, 3)))
    two = checker.Checker(Given(how, FREE), as_matrix(X[:3]), [1, 2, 3], None, None, None)
    two.problems = two.problems[:2]
    found = two.run(0.0, polished, False)
    assert seen == [expected] * 2
    assert (found.multiclass, found.n_classes, found.n_samples, found.n_features) == (
        "ovr",
        3,
        3,
        2,
    )
    assert [p.classes for p in found.problems] == [(1.0,), (2.0,)]
    assert [p.n_samples for p in found.problems] == [3, 3]


@pytest.mark.parametrize("rest_weighted", [True, False])
def test_weights_of_classes_hold_for_the_rest_unless_liblinear_trained(monkeypatch, rest_weighted):
    seen = []

    def prove(rows, posed, model, w, b, alpha):
        seen.append((posed.sign.tolist(), posed.c.tolist()))
        return Proven(2.0, 1.0, w, b, np.zeros(len(posed.sign)), "margins", 1.0)

    monkeypatch.setattr(checker, "prove_linear", prove)
    how = ModelRecord(np.array([1.0, 2.0, 3.0]), 2, np.zeros(3), weights=np.ones((2, 3)))
    own = Given(how, NONE, rest_weighted=rest_weighted)
    weights = {1.0: 2.0, 2.0: 3.0, 3.0: 5.0}
    made = checker.Checker(own, as_matrix(X[:3]), [1, 2, 3], 0.5, weights, [1.0, 2.0, 4.0])
    made.run(0.0, None, False)
    rest = [1.0, 3.0, 10.0] if rest_weighted else [0.5, 1.0, 2.0]
    for k, own_cost in enumerate([1.0, 3.0, 10.0]):
        sign, c = seen[k]
        assert sign == [1.0 if j == k else -1.0 for j in range(3)]
        assert c == [own_cost if j == k else rest[j] for j in range(3)]


def test_a_coefficient_a_little_above_its_cost_is_not_noted():
    made = checker.Checker.__new__(checker.Checker)
    made.notes = []
    made._warn_of_bounds(None, np.ones(2))
    made._warn_of_bounds(np.array([1.0009, 0.5]), np.ones(2))
    assert made.notes == []
    made._warn_of_bounds(np.array([1.0011, 2.5, 7.0]), np.array([1.0, 2.0, 8.0]))
    assert made.notes[0].startswith("a coefficient of the model is 2.5, above the cost 2 of its")


def test_a_feature_is_added_in_the_precision_of_the_rows():
    for kind in (np.asarray, csr_matrix):
        for dtype, value, out in (
            (np.float32, 0.5, np.float32),
            (np.float32, 0.1, np.float64),
            (np.float64, 0.5, np.float64),
        ):
            found = with_feature(as_matrix(kind(X.astype(dtype))), value)
            held = found if isinstance(found, np.ndarray) else found.data
            assert held.dtype == out
            wide = certify_dense(found)
            np.testing.assert_array_equal(wide, np.hstack([X, np.full((4, 1), value)]))


def certify_dense(matrix):
    if isinstance(matrix, np.ndarray):
        return matrix
    return csr_matrix((matrix.data, matrix.indices, matrix.indptr), shape=(4, 3)).toarray()


def extra(**entries):
    return SimpleNamespace(kernel="linear", extra=entries)


def test_files_say_what_they_are_points_of():
    from nesvm_jit.certifying.given import _of_record

    rows = np.array([1])
    own = _of_record(extra(program="nesvm-jit", C=2, bias=False), rows)
    assert (own.bias, own.C, own.support_rows) == (NONE, 2.0, rows)
    assert _of_record(extra(program="nesvm-jit", C=0.5)).bias == FREE
    assert _of_record(extra(program="nesvm-jit", C=0.5)).rest_weighted
    for wrong in (None, 0.0, -1.0, np.inf, "1"):
        with pytest.raises(InputError, match=r"^the model must say its C, a positive number"):
            _of_record(extra(program="nesvm-jit", C=wrong))
    theirs = _of_record(extra(svm_type="c_svc"), rows)
    assert (theirs.bias, theirs.C, theirs.support_rows) == (FREE, None, rows)
    linear = _of_record(extra(solver_type="L2R_L1LOSS_SVC_DUAL", bias_feature=2))
    assert (linear.bias, linear.feature, linear.rest_weighted) == (PENALISED, 2.0, False)
    for feature in (0.0, -1.0, 0):
        linear = _of_record(extra(solver_type="L2R_L1LOSS_SVC_DUAL", bias_feature=feature))
        assert (linear.bias, linear.feature, linear.rest_weighted) == (NONE, 1.0, False)
    bare = _of_record(extra(), rows)
    assert (bare.bias, bare.support_rows) == (FREE, rows)
    with pytest.raises(InputError, match=r"^a sigmoid kernel is not positive semidefinite"):
        _of_record(SimpleNamespace(kernel="sigmoid", extra={}))


def test_bare_weights_are_a_machine_of_two_labels():
    plain = as_given(([1.0, 2.0], 3), True, None)
    assert (plain.bias, plain.feature) == (FREE, 1.0)
    np.testing.assert_array_equal(plain.record.weights, [[1.0], [2.0]])
    np.testing.assert_array_equal(plain.record.classes, [1.0, -1.0])
    np.testing.assert_array_equal(plain.record.bias, [3.0])
    assert as_given(([1.0, 2.0], 3), False, None).bias == NONE
    wide = as_given(([1.0, 2.0], 3), False, 2)
    assert (wide.bias, wide.feature) == (PENALISED, 2.0)
    for wrong in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(InputError, match=r"^bias_feature must be positive"):
            as_given(([1.0, 2.0], 3), True, wrong)
    with pytest.raises(InputError, match=r"^\(w, b\) must be a vector and a number"):
        as_given((np.ones(2), np.ones(1)), True, None)
    with pytest.raises(InputError, match=r"^a model must be a file"):
        as_given((np.ones(2), 0.0, 1.0), True, None)


# ---------------------------------------------------------------- scikit-learn's attributes


def a_linear_svc(**how):
    attributes = {
        **{"loss": "hinge", "penalty": "l2", "multi_class": "ovr", "C": 3, "class_weight": None},
        **{"coef_": np.array([[1.0, 2.0]]), "intercept_": np.array([0.5])},
        **{"classes_": np.array(["no", "yes"]), "fit_intercept": True, "intercept_scaling": 2},
    }
    return SimpleNamespace(**{**attributes, **how})


def test_a_linear_svc_of_two_classes_speaks_for_the_second():
    found = as_given(a_linear_svc(), True, None)
    assert (found.bias, found.feature, found.C, found.rest_weighted) == (PENALISED, 2.0, 3.0, False)
    assert found.names.tolist() == ["yes", "no"]
    assert found.class_weight is None
    record = found.record
    np.testing.assert_array_equal(record.classes, [1.0, 0.0])
    np.testing.assert_array_equal(record.weights, [[1.0], [2.0]])
    np.testing.assert_array_equal(record.bias, [0.5])
    assert (record.n_features, record.kernel, record.model) == (2, "linear", "csvm")


def test_a_linear_svc_of_three_classes_without_a_bias():
    coefs = csr_matrix(np.arange(6.0).reshape(3, 2))
    how = {"coef_": coefs, "classes_": np.array([4, 7, 9]), "fit_intercept": False}
    found = as_given(a_linear_svc(**how, intercept_=0.0, class_weight={7: 2, 9: 0.5}), True, None)
    assert (found.bias, found.feature, found.rest_weighted) == (NONE, 1.0, False)
    assert found.names.tolist() == [4, 7, 9]
    assert found.class_weight == {0.0: 1.0, 1.0: 2.0, 2.0: 0.5}
    np.testing.assert_array_equal(found.record.weights, [[0.0, 2.0, 4.0], [1.0, 3.0, 5.0]])
    np.testing.assert_array_equal(found.record.bias, [0.0, 0.0, 0.0])
    np.testing.assert_array_equal(found.record.classes, [0.0, 1.0, 2.0])
    balanced = as_given(a_linear_svc(class_weight="balanced"), True, None)
    assert balanced.class_weight == "balanced"


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (
            {"loss": "squared_hinge"},
            "that is loss='hinge', got SimpleNamespace of loss squared_hin",
        ),
        ({"penalty": "l1"}, "that is loss='hinge', got SimpleNamespace of loss hinge"),
        ({"loss": None}, "that is loss='hinge', got SimpleNamespace$"),
        ({"multi_class": "crammer_singer"}, "^multi_class must be ovr to be certified, got cramme"),
    ],
)
def test_a_linear_svc_of_another_problem_is_refused(how, message):
    with pytest.raises(InputError, match=message):
        as_given(a_linear_svc(**how), True, None)
    nothing = a_linear_svc()
    del nothing.C
    with pytest.raises(InputError, match="that is loss='hinge'"):
        as_given(nothing, True, None)


def an_svc(**how):
    attributes = {
        **{"kernel": "poly", "C": 2, "gamma": "scale", "_gamma": 0.25, "degree": 3.0, "coef0": 1},
        **{"dual_coef_": np.array([[-0.5, 0.25, 0.25]]), "n_support_": np.array([1, 2])},
        **{"classes_": np.array([3, 5]), "support_": np.array([4, 0, 2], dtype=np.int32)},
        **{"support_vectors_": X[:3], "intercept_": np.array([0.5]), "n_features_in_": 2},
        "class_weight_": np.array([1.0, 4.0]),
    }
    return SimpleNamespace(**{**attributes, **how})


def test_an_svc_of_two_classes_speaks_for_the_second():
    found = as_given(an_svc(), True, None)
    assert (found.bias, found.C, found.rest_weighted) == (FREE, 2.0, True)
    assert found.names.tolist() == [5, 3]
    assert found.class_weight == {0.0: 1.0, 1.0: 4.0}
    assert found.support_rows.tolist() == [4, 0, 2]
    record = found.record
    np.testing.assert_array_equal(record.classes, [1.0, 0.0])
    np.testing.assert_array_equal(record.coefs, [[-0.5], [0.25], [0.25]])
    np.testing.assert_array_equal(record.sv_class, [1, 0, 0])
    np.testing.assert_array_equal(record.support.toarray(), X[:3])
    np.testing.assert_array_equal(record.bias, [0.5])
    assert (record.kernel, record.gamma, record.coef0, record.degree) == ("poly", 0.25, 1.0, 3)
    assert (record.n_features, record.multiclass) == (2, "ovo")


def test_an_svc_of_three_classes_has_coefficients_of_pairs():
    packed = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    how = {"dual_coef_": csr_matrix(packed), "n_support_": np.ones(3, int), "n_features_in_": 5}
    found = as_given(
        an_svc(
            **how, classes_=np.array(["a", "b", "c"]), kernel="precomputed", intercept_=np.arange(3)
        ),
        True,
        None,
    )
    assert found.names.tolist() == ["a", "b", "c"]
    record = found.record
    # of pairs 0-1, 0-2, 1-2: each class has a coefficient against both others
    np.testing.assert_array_equal(record.coefs, [[1.0, 4.0, 0.0], [2.0, 0.0, 5.0], [0.0, 3.0, 6.0]])
    np.testing.assert_array_equal(record.sv_class, [0, 1, 2])
    np.testing.assert_array_equal(record.support_index, [4, 0, 2])
    assert record.support is None
    np.testing.assert_array_equal(record.bias, [0.0, 1.0, 2.0])


def test_an_svc_may_lack_what_older_versions_had():
    model = an_svc(kernel="rbf", gamma=0.5, shape_fit_=(9, 2), n_features_in_=3)
    del model._gamma
    del model.class_weight_
    found = as_given(model, True, None)
    assert (found.record.gamma, found.record.n_features) == (0.5, 2)
    assert found.class_weight == {0.0: 1.0, 1.0: 1.0}


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"_impl": "nu_svc"}, "are certified, got SimpleNamespace$"),
        (
            {"kernel": "sigmoid"},
            "^the kernel must be linear, poly, rbf or precomputed to be certifi",
        ),
        ({"kernel": abs}, "got <built-in function abs>$"),
    ],
)
def test_an_svc_of_another_problem_is_refused(how, message):
    with pytest.raises(InputError, match=message):
        as_given(an_svc(**how), True, None)


def test_names_of_classes_are_numbers_and_words_of_python():
    assert type(given().name(0)) is float
    assert given().name(1) == 2.0
    words = given(names=np.array(["no", "yes"]))
    assert (words.name(0), type(words.name(0))) == ("no", str)
    objects = given(names=np.array([("a", 1), "b"], dtype=object))
    assert objects.name(0) == ("a", 1)


def test_a_polynomial_below_zero_is_no_kernel():
    with pytest.raises(InputError, match=r"^coef0 must not be negative: .* no kernel, got -0.5$"):
        kernel.kernel_of(as_matrix(X), record(kernel="poly", coef0=-0.5))
    rows = kernel.kernel_of(as_matrix(X), record(kernel="poly", gamma=0.5, coef0=0.0, degree=2))
    np.testing.assert_allclose(rows.rows(np.arange(4)), (0.5 * X @ X.T) ** 2, rtol=1e-15)


def test_vectors_of_an_lp_machine_must_be_rows():
    posed = Posed(Y, C, True, 0.0, 0.0)  # the last costs nothing
    how = record("lpsvm", "poly", gamma=0.5, coef0=0.25, degree=2)
    with pytest.raises(InputError, match=r"^the support vectors of an LP-SVM must be rows"):
        kernel.prove_kernel(as_matrix(X), posed, how, POINT, B, None)
    point = np.where(C > 0.0, POINT, 0.0)
    found = kernel.prove_kernel(as_matrix(X), posed, how, point, B, None)
    K = (0.5 * X @ X.T + 0.25) ** 2
    expected = np.abs(point).sum() + C @ np.maximum(1.0 - Y * (K @ point + B), 0.0)
    assert found.objective == pytest.approx(expected, rel=1e-12)
    np.testing.assert_array_equal(found.point, point)


def test_without_coefficients_least_squares_start_at_the_residuals():
    K, c = X @ X.T, np.array([2.0, 1.0, 0.5, 1.0])
    problem = KernelProblem(KernelRows(None, None, 0.0, K=K), Y, c, False, SQUARE)
    beta = np.array([0.25, -0.125, 0.0, 0.0])
    alpha, name = kernel._best_start(problem, beta, B, None)
    start = 2.0 * c * (1.0 - Y * (K @ beta + B))
    assert name == "margins"
    share = alpha / start  # the best multiple of it
    np.testing.assert_allclose(share, share[0], rtol=1e-12)
    quadratic = (start * Y) @ K @ (start * Y) + (start**2 / (2.0 * c)).sum()
    assert share[0] == pytest.approx(start.sum() / quadratic, rel=1e-12)


# ---------------------------------------------------------------- dual points that are found


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("cost", [2e-3, 2.0, 2e4])
def test_weights_far_from_the_optimum_lead_to_its_dual_point(cost, bias):
    """Where no row was bent, steps went 10¹² times too far and never came back."""
    rng = np.random.default_rng(11)
    rows, y = rng.standard_normal((12, 4)), np.where(rng.random(12) < 0.4, 1.0, -1.0)
    best = solve(rows, y, C=cost, bias=bias, tol=1e-10)
    for size in (0.0, 1.0, 1e3):
        found = certify((size * rng.standard_normal(4), 0.0), rows, y, cost, bias=bias, polish=5.0)
        assert found.dual_objective >= best.objective * (1 - 1e-6)
        assert found.passes < 400


def test_an_equation_that_rounding_makes_singular_is_no_error(monkeypatch):
    def singular(H, slope):
        raise np.linalg.LinAlgError("Singular matrix")

    rows, y = half_space()
    monkeypatch.setattr(np.linalg, "solve", singular)
    found = certify((np.ones(rows.shape[1]), 0.0), rows, y, polish=0.01)
    assert 0.0 < found.dual_objective <= found.objective


@pytest.mark.parametrize("size", [0.0, 1e-3, 1e9])
def test_a_polished_dual_point_is_not_worse_than_that_of_the_margins(monkeypatch, size):
    """It was as far as the time allowed, far below zero where that was short."""
    rows, y = half_space()
    w = np.ones(rows.shape[1])
    plain = certify((w, 0.0), rows, y, polish=0.0)
    monkeypatch.setattr(linear, "climb", lambda X, y, c, *_: (size * c, 1.0))
    found = certify((w, 0.0), rows, y, polish=1.0)
    assert found.dual_objective >= plain.dual_objective > 0.0
    assert found.problems[0].dual_point == "margins"


def test_no_dual_point_is_worse_than_zero():
    worse = Proven(1.0, -3.0, np.ones(2), 0.0, np.ones(3), "margins", 1.0)
    assert worse.at_least_zero().dual_objective == 0.0
    assert not worse.at_least_zero().alpha.any()
    unknown = worse._replace(dual_objective=float("nan"))
    assert unknown.at_least_zero().dual_objective == 0.0
    better = worse._replace(dual_objective=0.5)
    assert better.at_least_zero() is better
