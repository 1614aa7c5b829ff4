"""The picture over two features: rows, regions and decision values."""

import numpy as np
import pytest
from nesvm_jit.pages.plane import plane
from scipy.sparse import csr_matrix

from .made_up import found, machine, problem


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
    assert chart["regions"] == [[1] * 80 + [0] * 80] * 160
    across = np.linspace(-0.32, 4.32, 160) - 2.0
    assert chart["values"] == [[float(f"{v:.6g}") for v in across]] * 160
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
    assert chart["values"] is None
    assert chart["note"] == "Background: the class decided for. Rings: support vectors."
    assert chart["points"]["class"] == [0, 1, 2, 2]
    assert chart["points"]["support"] == [0, 1, 0, 1]
    cells = np.array(chart["regions"])
    x, z = (np.linspace(*chart[k]["range"], 160) for k in "xy")
    scores = np.stack([x + 0 * z[:, None], -x + 0 * z[:, None], z[:, None] + 0 * x])
    np.testing.assert_array_equal(cells, scores.argmax(axis=0))
