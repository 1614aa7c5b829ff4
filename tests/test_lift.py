"""The best multiple of a point: where the slope of P along it changes its sign."""

from fractions import Fraction

import numpy as np
import pytest
from nesvm_jit.kernels.loss import HINGE, SQUARE, RowData
from nesvm_jit.problems import lift

Y = np.array([1.0, -1.0, 1.0, -1.0])
ROWS = RowData(Y, np.array([2.0, 0.5, 1.0, 0.0]), np.ones(4))
MARGINS = np.array([0.5, -2.0, -0.25, 3.0])  # y f: 0.5, 2, −0.25, −3


def watched(root):
    """A slope that is zero at a root, and where it is asked for."""
    asked = []

    def slope(t):
        asked.append(t)
        return t - root

    return slope, asked


@pytest.mark.parametrize("root", [0.0, 1e-9, 0.3, 1.0, 1.5, 3.0, 1e6, 2.0**40])
def test_the_least_multiple_is_where_the_slope_is_zero(root):
    found = lift.least_multiple(watched(root)[0])
    assert found >= root
    assert found == pytest.approx(root, rel=1e-15, abs=2.0**-70)


def test_a_bracket_is_doubled_and_halved():
    slope, asked = watched(3.0)
    assert lift.least_multiple(slope) == 3.0
    assert asked[:5] == [1.0, 2.0, 4.0, 3.0, 2.5]
    assert len(asked) <= 3 + 54  # until no number is between
    slope, asked = watched(1e-30)
    assert lift.least_multiple(slope) == 2.0**-70
    assert len(asked) == 1 + 70


def test_a_slope_that_never_ends_to_fall_moves_nothing():
    asked = []
    assert lift.least_multiple(lambda t: asked.append(t) or -1.0) == 1.0
    assert asked == [2.0**k for k in range(41)]
    assert lift.least_multiple(watched(2.0**40 * 1.5)[0]) == 1.0


@pytest.mark.parametrize("t", [0.25, 0.5, 1.0, 2.0, 8.0])
@pytest.mark.parametrize("slack", [0.0, 0.5, np.array([0.0, 3.0, 0.5, 9.0])])
def test_the_slope_of_the_hinge_loss_is_that_of_rows_inside_the_margin(t, slack):
    expected = 0.0
    for y, c, f, s in zip(Y, ROWS.c, MARGINS, np.broadcast_to(slack, 4), strict=True):
        expected -= c * y * f if t * y * f < 1.0 + s else 0.0
    assert lift.loss_slope(ROWS, MARGINS, t, slack, HINGE) == expected


def test_the_slope_of_the_squared_loss_has_no_slack():
    for t in (0.25, 1.0, 2.0):
        expected = sum(
            Fraction(-2) * Fraction(c) * Fraction(y * f) * (1 - Fraction(t) * Fraction(y * f))
            for y, c, f in zip(Y, ROWS.c, MARGINS, strict=True)
        )
        assert lift.loss_slope(ROWS, MARGINS, t, 0.75, SQUARE) == float(expected)


def test_the_least_margin_is_of_rows_that_cost_something():
    assert lift.least_margin(ROWS, MARGINS) == -0.25
    nothing = ROWS._replace(c=np.zeros(4))
    assert lift.least_margin(nothing, MARGINS) == np.inf


def test_what_rounding_may_take_goes_with_terms_and_sizes():
    assert lift.margin_rounding(4, 2.0) == 36.0 * 2.0**-52
    found = lift.margin_rounding(0, np.array([0.0, 1.0]))
    np.testing.assert_array_equal(found, [8.0 * 2.0**-52, 16.0 * 2.0**-52])


def test_a_multiple_has_margins_as_many_times_as_large():
    np.testing.assert_array_equal(lift.multiple_of_margins(ROWS, MARGINS, 3.0), 3.0 * MARGINS)
