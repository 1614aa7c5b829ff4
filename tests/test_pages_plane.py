"""The picture over two features, and the lines of equal value in it."""

from itertools import pairwise

import numpy as np
import pytest
from nesvm_jit.pages.plane import contour, plane
from scipy.sparse import csr_matrix

from .made_up import found, machine, problem

CORNERS = np.array([0.0, 1.0])


def as_lists(lines):
    return [line.tolist() for line in lines]


def ends(lines):
    """Lines of two points, whichever comes first."""
    return sorted(sorted(line) for line in as_lists(lines))


# ---------------------------------------------------------------- contours


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([[0, 1], [0, 1]], [[[10.75, 5], [10.75, 9]]]),
        ([[0, 0], [1, 1]], [[[10, 8], [11, 8]]]),
        ([[1, 0], [0, 0]], [[[10.25, 5], [10, 6]]]),
        ([[0, 1], [0, 0]], [[[10.75, 5], [11, 6]]]),
        ([[0, 0], [0, 1]], [[[11, 8], [10.75, 9]]]),
        ([[0, 0], [1, 0]], [[[10.25, 9], [10, 8]]]),
        ([[0, 0], [0, 0]], []),
        ([[1, 1], [1, 1]], []),
        ([[0.75, 0.75], [0.75, 1]], [[[11, 5], [10, 9]]]),
    ],
)
def test_a_cell_is_crossed_where_its_sides_have_the_level(values, expected):
    lines = contour(np.array([10.0, 11.0]), np.array([5.0, 9.0]), np.array(values, float), 0.75)
    assert [{tuple(p) for p in line} for line in as_lists(lines)] == [
        {tuple(map(float, p)) for p in line} for line in expected
    ]


def test_a_saddle_is_cut_by_the_value_in_its_middle():
    low = contour(CORNERS, CORNERS, np.array([[1.0, 0.0], [0.0, 1.0]]), 0.75)
    assert ends(low) == [[[0, 0.25], [0.25, 0]], [[0.75, 1], [1, 0.75]]]
    high = contour(CORNERS, CORNERS, np.array([[1.0, 0.0], [0.0, 1.0]]), 0.25)
    assert ends(high) == [[[0, 0.75], [0.25, 1]], [[0.75, 0], [1, 0.25]]]


def test_the_middle_of_a_saddle_at_the_level_is_not_above_it():
    lines = contour(CORNERS, CORNERS, np.array([[1.0, 0.0], [0.0, 1.0]]), 0.5)
    assert ends(lines) == [[[0, 0.5], [0.5, 0]], [[0.5, 1], [1, 0.5]]]


def test_rings_are_closed_and_open_lines_are_not():
    values = np.zeros((5, 5))
    values[1, 1] = values[3, 4] = 1.0
    grid = np.arange(5.0)
    opened, ring = as_lists(contour(grid, grid, values, 0.5))
    assert opened in ([[4, 2.5], [3.5, 3], [4, 3.5]], [[4, 3.5], [3.5, 3], [4, 2.5]])
    assert ring[0] == ring[-1]
    assert sorted(ring[:-1]) == [[0.5, 1], [1, 0.5], [1, 1.5], [1.5, 1]]


@pytest.mark.parametrize("seed", range(4))
def test_contours_are_those_of_contourpy(seed):
    contourpy = pytest.importorskip("contourpy")
    rng = np.random.default_rng(seed)
    x, y = np.cumsum(rng.uniform(0.5, 2, 9)), np.cumsum(rng.uniform(0.5, 2, 7))
    values = rng.standard_normal((7, 9))
    theirs = contourpy.contour_generator(x, y, values).lines(0.1)
    ours = contour(x, y, values, 0.1)

    def pieces(lines):
        return {
            frozenset(tuple(np.round(p, 3)) for p in pair)
            for line in lines
            for pair in pairwise(line)
        }

    assert pieces(ours) == pieces(theirs)
    assert sorted(map(len, ours)) == sorted(map(len, theirs))


# ---------------------------------------------------------------- the plane


def pictured(X, y, weights=((1.0,), (0.0,)), bias=(-2.0,), alpha=None, **how):
    alpha = np.resize([0.0, 0.5], len(y)) if alpha is None else alpha
    made = machine(weights, [found(alpha)], bias=bias, **how)
    return plane(made, X, np.asarray(y, float))


def test_a_plane_shows_rows_regions_boundary_and_margins():
    X = np.array([[0.0, 10.0], [4.0, 10.0], [1.234567, 20.0]])
    chart = pictured(X, [-1, 1, -1], alpha=[0.5, 0.0, -0.25])
    assert (chart["kind"], chart["id"], chart["title"]) == ("plane", "plane", "The two features")
    assert chart["x"] == {"label": "feature 1", "range": [-0.32, 4.32]}
    assert chart["y"] == {"label": "feature 2", "range": [9.2, 20.8]}
    assert chart["classes"] == ["1", "-1"]
    assert chart["points"] == {
        "x": [0, 4, 1.2346],
        "y": [10, 10, 20],
        "class": [1, 0, 1],
        "support": [1, 0, 1],
    }
    assert chart["regions"] == [[1, 80, 0, 80]] * 160
    assert [line["level"] for line in chart["lines"]] == [-1, 0, 1]
    for line, x in zip(chart["lines"], (1, 2, 3), strict=True):
        (flat,) = line["paths"]
        assert flat[::2] == pytest.approx([x] * 160)
        heights = np.linspace(9.2, 20.8, 160)
        assert sorted(flat[1::2]) == pytest.approx(heights, rel=1e-4)
        assert flat[1::2] == [float(f"{v:.5g}") for v in flat[1::2]]
    assert chart["note"] == (
        "Background: the class decided for. Solid line: the boundary; dashed: the margins, "
        "decision value ±1. Rings: support vectors."
    )


def test_sparse_rows_of_single_precision_have_the_same_plane():
    X, y = np.array([[0.0, 1.0], [4.0, 0.0], [1.5, 2.0]]), [-1, 1, -1]
    assert pictured(csr_matrix(X.astype(np.float32)), y) == pictured(X, y)


@pytest.mark.parametrize(
    ("value", "expected"), [(3.0, [2.76, 3.24]), (0.5, [0.42, 0.58]), (-3.0, [-3.24, -2.76])]
)
def test_a_constant_feature_has_room_around_it(value, expected):
    chart = pictured(np.array([[value, 0.0], [value, 1.0]]), [1, -1])
    assert chart["x"]["range"] == pytest.approx(expected)
    assert chart["y"]["range"] == pytest.approx([-0.08, 1.08])


@pytest.mark.parametrize(("n", "said"), [(1500, ""), (1501, " 1500 of 1501 rows are shown.")])
def test_of_very_many_rows_some_are_shown(n, said):
    X = np.column_stack([np.arange(n), np.zeros(n)])
    chart = pictured(X, np.resize([1, -1], n))
    assert {len(values) for values in chart["points"].values()} == {1500}
    assert chart["note"].endswith("Rings: support vectors." + said)


def test_of_several_classes_there_are_regions_alone():
    weights = [[1, -1, 0], [0, 0, 1]]
    parts = [
        found([0, 1, 0, 0], i=0, j=None),
        found([0, 0], rows=[0, 2], i=1, j=None),
        found([0, 1], rows=[0, 3], i=2, j=None),
    ]
    made = machine(weights, parts, [problem([k]) for k in (5, 7, 9)], classes=(5, 7, 9))
    X = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    chart = plane(made, X, np.array([5.0, 7.0, 9.0, 9.0]))
    assert chart["lines"] == []
    assert chart["note"] == "Background: the class decided for. Rings: support vectors."
    assert chart["points"]["class"] == [0, 1, 2, 2]
    assert chart["points"]["support"] == [0, 1, 0, 1]
    cells = np.array([np.repeat(r[::2], r[1::2]) for r in chart["regions"]])
    x, z = (np.linspace(*chart[k]["range"], 160) for k in "xy")
    scores = np.stack([x + 0 * z[:, None], -x + 0 * z[:, None], z[:, None] + 0 * x])
    np.testing.assert_array_equal(cells, scores.argmax(axis=0))
