"""The steps of the proximal point method, one by one: the direction and how far along it."""

import numpy as np
import pytest
from nesvm_jit.certifying import proximal
from nesvm_jit.matrix.checks import as_matrix


def drawn(bias, scale=1.0, n=40, p=6):
    rng = np.random.default_rng(3)
    c = rng.choice([0.0, 0.5, 2.0], n)
    X, y = scale * rng.standard_normal((n, p)), np.where(rng.random(n) < 0.5, 1.0, -1.0)
    found = proximal.Proximal(as_matrix(X), y, c, bias, 0.3 * c)
    w = np.linspace(-0.3, 0.4, p) / scale
    return found, X, found.at(w, 0.2, X @ w + 0.2)


def system(X, bent, bias, ridge):
    """The Hessian in [w; b]."""
    wide = np.hstack([X, np.full((len(X), 1), float(bias))])
    H = wide.T @ (bent[:, None] * wide)
    H[range(X.shape[1]), range(X.shape[1])] += 1.0
    if not bias:
        H[-1, -1] = 1.0
    H[-1, -1] += ridge * max(H[-1, -1], H.diagonal()[:-1].max())
    return H


BENT = np.resize([0.0, 0.0, 5.0, 0.25, 0.0, 20.0], 40)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("bias", [False, True])
def test_a_direction_is_newtons_with_a_little_added_for_the_bias(monkeypatch, bias, scale):
    monkeypatch.setattr(proximal, "RIDGE", 0.125)
    problem, X, at = drawn(bias, scale)
    d = problem._direction(at, BENT)
    H = system(X, BENT, bias, 0.125)
    np.testing.assert_allclose(H @ d, -at.slope, atol=1e-9 * np.abs(at.slope).max())
    assert problem.passes == 1.0 + 1.0 + bias  # of the point, of the Hessian, of its border


def test_without_bent_rows_the_bias_is_moved_by_a_margin():
    problem, _, at = drawn(True)
    d = problem._direction(at, np.zeros(40))
    np.testing.assert_allclose(d[:-1], -at.slope[:-1], rtol=1e-9)
    assert d[-1] == pytest.approx(-np.sign(at.slope[-1]), rel=1e-9)
    assert abs(at.slope[-1]) > 10.0


def test_rows_between_their_bounds_bend_the_problem(monkeypatch):
    one, seen = np.ones(1), []
    for w, bent in ((1.0, 0.0), (0.95, 20.0), (0.9, 0.0)):  # a is 0, 1 and c
        problem = proximal.Proximal(as_matrix(one[None]), one, 2.0 * one, False, 0.0 * one)
        problem.sigma = 20.0 * one
        at = problem.at(w * one, 0.0, w * one)
        at = at._replace(alpha=np.round(at.alpha))
        direction = problem._direction

        def noted(at, rows, direction=direction):
            seen.append((float(rows[0]), bent))  # noqa: B023
            return direction(at, rows)

        problem._direction = noted
        problem.step(at)
        assert problem.passes == 4.0  # of both points, the Hessian and the direction
    assert len(seen) == 3
    assert all(found == expected for found, expected in seen)


@pytest.mark.parametrize("bias", [False, True])
def test_a_direction_of_conjugate_gradients_is_as_good_as_asked_for(monkeypatch, bias):
    monkeypatch.setattr(proximal, "DENSE", 0)
    problem, X, at = drawn(bias, 3.0)
    H = system(X, BENT, bias, 0.0)

    def direction(most, share=0.0):
        monkeypatch.setattr(proximal, "MOST_PRODUCTS", most)
        monkeypatch.setattr(proximal, "SOLVED", share)
        before = problem.passes
        return problem._direction(at, BENT), problem.passes - before - 1.0 - bias

    np.testing.assert_allclose(H @ direction(100)[0], -at.slope, atol=1e-7)
    steps = [direction(k) for k in range(6)]
    assert [passes for _, passes in steps] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    z = -at.slope / H.diagonal()  # the first step goes along it
    np.testing.assert_allclose(steps[0][0], (-at.slope @ z) / (z @ H @ z) * z, rtol=1e-12)
    left = [-at.slope - H @ d for d, _ in steps]
    rest = [float(r @ (r / H.diagonal())) for r in left]
    share = 1.01 * (min(rest[:4]) / rest[0]) ** 0.5
    enough = next(k for k in range(6) if rest[k] <= share**2 * rest[0])
    assert 1 <= enough < 5
    found, passes = direction(100, share)
    assert passes == enough + 1.0
    np.testing.assert_array_equal(found, steps[enough][0])


@pytest.mark.parametrize(("p", "expected"), [(6, 1), (7, 0)])
def test_a_hessian_of_many_features_is_not_made(monkeypatch, p, expected):
    made = []
    monkeypatch.setattr(proximal, "DENSE", 6)
    monkeypatch.setattr(proximal, "hessian", lambda X, bent: (made.append(1), np.zeros((p, p)))[1])
    problem, _, at = drawn(False, p=p)
    np.testing.assert_allclose(problem._direction(at, np.zeros(40)), -at.slope, rtol=1e-9)
    assert len(made) == expected


# ---------------------------------------------------------------- how far


def visited(X, y, c, point, direction):
    """The points along a direction at which the slope was asked for."""
    problem = proximal.Proximal(as_matrix(X), y, c, True, np.zeros(len(y)))
    f, m = (X @ v[:-1] + v[-1] for v in (point, direction))
    at = problem.at(point[:-1], point[-1], f)
    alpha, seen = problem.alpha, []

    def noted(r):
        seen.append(float(((1.0 - y * f) - r)[0] / (y * m)[0]))
        return alpha(r)

    problem.alpha = noted
    return problem._along(at, direction, m), seen


def test_a_flat_slope_is_bracketed_by_tenfold_steps_and_then_halved():
    X, y = np.ones((2, 1)), np.array([1.0, -1.0])
    t, seen = visited(X, y, np.ones(2), np.array([0.0, -70.0]), np.array([0.0, 1.0]))
    assert seen[:9] == [0, 1, 10, 100, 55, 77.5, 66.25, 71.875, 69.0625]
    assert seen[9:] == pytest.approx([69.1], rel=1e-12)  # Newton's, where a row bends
    assert t == pytest.approx(69.1, rel=1e-12)


@pytest.mark.parametrize(
    ("w", "d", "expected"),
    [
        (10.0, -9.0, [0, 1]),  # a tenth of the slope is left, which will do
        (10.0, -8.5, [0, 1, 20 / 17, 18.5 / 17, 17.75 / 17, 18.125 / 17]),  # Newton's goes too far
        (0.0, 1.0, [0, 1, 0.5, 0.75, 0.875, 0.9375, 20 / 21]),  # bracketed, then Newton's step
        (0.0, 0.25, [0, 1, 8, 4.5, 2.75, 3.625, 80 / 21]),
        (-3.0, 4.0, [0, 1, 0.75, 0.875, 0.9375, 0.96875, 0.984375]),
    ],
)
def test_newtons_step_is_taken_where_it_is_inside_the_bracket(w, d, expected):
    one = np.ones(1)
    t, seen = visited(one[None], one, 2.0 * one, np.array([w, 0.0]), np.array([d, 0.0]))
    np.testing.assert_allclose(seen, expected, rtol=1e-12)
    assert t == pytest.approx(seen[-1], rel=1e-12)
