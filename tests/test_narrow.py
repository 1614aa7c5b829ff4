"""Columns without entries cost nothing, whatever their number."""

import tracemalloc

import numpy as np
import pytest
from nesvm_jit.matrix.checks import as_matrix
from nesvm_jit.matrix.rows import as_scipy, narrowed, row_slice
from scipy.sparse import csr_matrix

from tests.endings import solve, train

from .data import first_column_decides

FAR = 4_000_000_000


def wide(X, columns, p=FAR):
    """X with its columns at these numbers among p."""
    X = csr_matrix(X)
    index = np.asarray(columns, dtype=np.int64)[X.indices]
    return csr_matrix((X.data, index, X.indptr.astype(np.int64)), (X.shape[0], p))


def test_columns_are_renumbered_together_and_slices_too():
    X, _ = first_column_decides()
    columns = [3, 70, 10**6, FAR - 1]
    A, B = as_matrix(wide(X, columns)), as_matrix(wide(X[:5, :2], columns[:2]))
    (a, b), kept = narrowed(row_slice(A, 10, 20), B)
    assert kept.tolist() == columns
    np.testing.assert_array_equal(as_scipy(a).toarray(), X[10:20])
    np.testing.assert_array_equal(as_scipy(b).toarray()[:, :2], X[:5, :2])


def test_full_and_dense_matrices_stay():
    X, _ = first_column_decides()
    for matrix in (as_matrix(X), as_matrix(csr_matrix(X))):
        (same,), kept = narrowed(matrix)
        assert same is matrix
        assert kept is None


@pytest.mark.parametrize(
    "kernel",
    ["linear", "poly", pytest.param("rbf", marks=pytest.mark.slow)],  # indices of 64 bits
)
def test_a_far_column_changes_nothing_and_costs_little(kernel):
    X, y = first_column_decides()
    p = 3_000_000 if kernel == "linear" else FAR  # w itself has p entries
    far = wide(X, [0, 5, 9, p - 1], p)
    options = {"kernel": kernel, "C": 1.0, "tol": 1e-6, "gamma": 0.25}
    near = solve(X, y, **options)
    tracemalloc.start()
    found = solve(far, y, **options)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < (2 * 8 * p if kernel == "linear" else 10**9)  # 32 GB for one dense row
    assert found.objective == pytest.approx(near.objective, rel=1e-5)
    if kernel == "linear":
        np.testing.assert_allclose(found.w[[0, 5, 9, p - 1]], near.w, atol=1e-3)
        again = solve(far, y, w0=found.w, b0=found.b, **options)
        assert again.objective == pytest.approx(near.objective, rel=1e-5)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_rows_with_a_far_column_are_scored(kernel):
    X, y = first_column_decides()
    m = train(csr_matrix(X), y, kernel=kernel)
    rows = np.hstack([X[:3], np.ones((3, 1))])
    far = wide(rows, [0, 1, 2, 3, FAR - 1])
    got = m.decision_function(far)
    if kernel == "linear":  # left out, as LIBLINEAR does
        np.testing.assert_allclose(got, m.decision_function(X[:3]), rtol=1e-12)
    else:
        assert np.isfinite(got).all()
        np.testing.assert_allclose(got, m.decision_function(csr_matrix(rows)), rtol=1e-9)


def two(columns, p):
    """Two sparse matrices of p columns with one entry in each of these columns."""
    return [as_matrix(csr_matrix(([1.0], ([0], [c])), (1, p))) for c in columns]


def test_as_many_columns_as_entries_stay_and_one_more_does_not():
    for matrices in (two([0, 1], 2), two([1], 1 + 1)[:1] * 2):
        same, kept = narrowed(*matrices)
        assert kept is None
        assert all(a is b for a, b in zip(same, matrices, strict=True))
    (a, b), kept = narrowed(*two([0, 2], 3))
    assert kept.tolist() == [0, 2]
    assert kept.dtype == np.int64
    assert (a.n_cols, b.n_cols) == (2, 2)
    assert as_scipy(a).toarray().tolist() == [[1.0, 0.0]]
    assert as_scipy(b).toarray().tolist() == [[0.0, 1.0]]


def test_the_widest_of_several_matrices_decides():
    narrow, far = two([0], 1)[0], two([99], 100)[0]
    assert narrowed(narrow, far)[1].tolist() == [0, 99]
    assert narrowed(far, narrow)[1].tolist() == [0, 99]


def test_one_dense_matrix_among_sparse_ones_leaves_all_as_they_are():
    far, dense = two([99], 100)[0], as_matrix(np.ones((1, 100)))
    same, kept = narrowed(far, dense)
    assert same[0] is far
    assert same[1] is dense
    assert kept is None


def test_renumbered_rows_keep_their_types_and_are_not_to_be_written_to():
    X = as_matrix(csr_matrix(([1.0, 2.0, 3.0], [5, 90, 7], [0, 2, 3]), (2, 100)))
    (whole,), kept = narrowed(X)
    assert kept.tolist() == [5, 7, 90]
    assert (whole.indices.tolist(), whole.indptr.tolist()) == ([0, 2, 1], [0, 2, 3])
    assert whole.indices.dtype == whole.indptr.dtype == X.indices.dtype
    assert not whole.indices.flags.writeable
    assert not whole.indptr.flags.writeable
    (part,), kept = narrowed(row_slice(X, 1, 2))
    assert kept.tolist() == [7]
    assert (part.data.tolist(), part.indices.tolist(), part.indptr.tolist()) == ([3.0], [0], [0, 1])
    assert as_scipy(part).shape == (1, 1)
