"""The matrix view: what is accepted, what is copied, and that nothing outside is ever read."""

import pickle
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from nesvm_jit import InputError, kernels
from nesvm_jit.matrix import checks
from nesvm_jit.matrix.checks import as_matrix
from nesvm_jit.matrix.matrix import Csr, CsrArrays, is_checked, shape, trust_csr
from nesvm_jit.matrix.rows import as_scipy, first_columns, row_slice, take_rows, widen

from . import oracle
from .data import sparse_normal

pytestmark = pytest.mark.pure
A = sparse_normal(30, 8)
W = np.arange(8.0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8, np.uint8, np.bool_])
def test_dense_data_are_not_copied(dtype):
    X = A.astype(dtype)
    assert np.shares_memory(as_matrix(X), X)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8])
def test_csr_data_are_not_copied(dtype):
    X = sp.csr_matrix(A.astype(dtype))
    view = as_matrix(X, borrow=True)
    for mine, theirs in ((view.data, X.data), (view.indices, X.indices), (view.indptr, X.indptr)):
        assert np.shares_memory(mine, theirs)
    assert view.indices.dtype.kind == "u"
    view = as_matrix(X)
    assert np.shares_memory(view.data, X.data)
    assert not np.shares_memory(view.indices, X.indices)
    assert not np.shares_memory(view.indptr, X.indptr)


def test_memory_maps_are_not_copied(tmp_path):
    np.save(tmp_path / "X.npy", A)
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert np.shares_memory(as_matrix(X), X)
    np.testing.assert_allclose(kernels.margins(X, W), A @ W)


@pytest.mark.parametrize(
    "convert",
    [
        sp.csc_matrix,
        sp.coo_matrix,
        sp.lil_matrix,
        sp.dok_matrix,
        sp.bsr_matrix,
        sp.dia_matrix,
        sp.csr_array,
        np.asfortranarray,
        lambda X: X.tolist(),
        lambda X: X.astype(">f8"),
        lambda X: X.astype(np.longdouble),
        lambda X: np.repeat(X, 2, axis=0)[::2],
    ],
)
def test_every_layout_gives_the_same_margins(convert):
    np.testing.assert_allclose(kernels.margins(convert(A), W), A @ W, rtol=1e-13)


def test_misaligned_data():
    raw = np.frombuffer(b"\0" + A.tobytes(), dtype=np.uint8)[1:].view(np.float64).reshape(A.shape)
    np.testing.assert_allclose(kernels.margins(raw, W), A @ W, rtol=1e-13)


@pytest.mark.parametrize("dtype", [np.float16, np.int16, np.uint16, np.int32, np.int64, ">f4"])
def test_other_numbers_are_converted_exactly(dtype):
    X = np.rint(A * 10).astype(dtype)
    np.testing.assert_allclose(kernels.margins(X, W), X.astype(float) @ W, rtol=1e-13)


def test_unsorted_and_duplicate_entries_are_put_in_order():
    X = sp.csr_matrix((np.ones(4), [3, 0, 0, 2], [0, 3, 4]), shape=(2, 4))
    np.testing.assert_allclose(kernels.row_norms(X)[1], oracle.row_norms(X)[1])
    assert not X.has_canonical_format  # the caller's matrix is left as it was


def test_wide_indices():
    X = sp.csr_matrix(A)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    np.testing.assert_allclose(kernels.margins(X, W), A @ W, rtol=1e-13)


def test_entries_beyond_two_to_the_31(tmp_path):
    n = 2**31 + 8
    files = [
        np.memmap(tmp_path / name, dtype=dtype, mode="w+", shape=n)  # holes: no disk is used
        for name, dtype in (("data", np.int8), ("indices", np.uint8))
    ]
    files[0][-3:] = 2
    # three entries in one row, which starts beyond 2^31
    from nesvm_jit.kernels.sums import _margins

    files[1][-3:] = [0, 1, 3]
    out = np.zeros(1)
    view = trust_csr(*files, np.array([n - 3, n], np.uint64), 4)
    _margins(1, view, np.array([1.0, 10.0, 100.0, 1000.0]), 0.0, out)
    assert out[0] == 2022


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (lambda X: X.indices.__setitem__(0, 8), "index outside"),
        (lambda X: X.indices.__setitem__(0, -1), "index outside"),
        (lambda X: X.indptr.__setitem__(3, 10**6), "index outside"),
        (lambda X: X.indptr.__setitem__(3, -5), "index outside"),
        (lambda X: X.indptr.__setitem__(-1, X.nnz + 1), "index outside"),
        (lambda X: X.indptr.__setitem__(0, 1), "indptr from 0"),
        (lambda X: setattr(X, "indptr", X.indptr[:-1]), "indptr from 0"),
        (lambda X: X.data.__setitem__(2, np.nan), "finite, got NaN"),
        (lambda X: X.data.__setitem__(2, -np.inf), "finite, got NaN"),
    ],
)
def test_broken_sparse_matrices_are_refused(fault, message):
    X = sp.csr_matrix(A)
    fault(X)
    with pytest.raises(InputError, match=message):
        as_matrix(X)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.array([1.0, 2.0]), "2 dimensions, got 1"),
        (np.zeros((2, 2, 2)), "2 dimensions, got 3"),
        (np.array([["a"]]), "real numbers"),
        (np.array([[1j]]), "real numbers"),
        ([[1.0], [1.0, 2.0]], "matrix of numbers"),
        (np.array([[np.nan]]), "finite, got NaN"),
        (np.array([[np.inf]], dtype=np.float32), "finite, got NaN"),
        (CsrArrays(np.ones(2), np.zeros(3, int), np.array([0, 2]), 1), "2 values but 3 indices"),
        (CsrArrays(np.ones(1), np.zeros(1), np.array([0, 1]), 1), "whole numbers"),
        (CsrArrays(np.ones(1), np.zeros(1, int), np.array([0, 1]), -1), "number of columns"),
        (CsrArrays(np.ones((1, 1)), np.zeros(1, int), np.array([0, 1]), 1), "one dimension"),
    ],
)
def test_what_is_no_matrix_is_refused(X, message):
    with pytest.raises(InputError, match=message):
        as_matrix(X)


# ---------------------------------------------------------------- a checked matrix is a type


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_a_caller_who_changes_indices_afterwards_changes_nothing(index):
    X = sp.csr_matrix(A)
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    view = as_matrix(X)
    X.indices[:] = 2**31 - 1
    X.indptr[1:] = 2**31 - 1
    np.testing.assert_allclose(kernels.margins(view, W), A @ W, rtol=1e-13)
    np.testing.assert_allclose(kernels.gram(view, view), kernels.gram(A), rtol=1e-12)


def test_a_read_only_view_of_indices_that_can_be_written_to_is_copied():
    X = sp.csr_matrix(A)
    mine = X.indices
    X.indices = mine.view()
    X.indices.flags.writeable = False
    view = as_matrix(X)
    mine[:] = 2**31 - 1
    np.testing.assert_allclose(kernels.margins(view, W), A @ W, rtol=1e-13)


def test_indices_that_nobody_can_change_are_not_copied():
    X = sp.csr_matrix(A)
    X.indices.flags.writeable = X.indptr.flags.writeable = False
    X.indices = np.frombuffer(X.indices.tobytes(), X.indices.dtype)
    view = as_matrix(X)
    assert np.shares_memory(view.indices, X.indices)
    assert np.shares_memory(view.indptr, X.indptr)


def test_nothing_in_a_checked_matrix_can_be_written_to():
    for view in (as_matrix(sp.csr_matrix(A)), as_matrix(sp.csr_matrix(A), borrow=True)):
        for a in view[:3]:
            with pytest.raises(ValueError, match="read-only"):
                a[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        as_matrix(A)[0, 0] = 1


def test_only_checks_make_a_checked_matrix():
    arrays = as_matrix(sp.csr_matrix(A))
    for make in (
        lambda: Csr(*arrays),
        lambda: Csr._make(arrays),
        lambda: arrays._replace(n_cols=1),
        lambda: pickle.loads(pickle.dumps(arrays)),
    ):
        with pytest.raises(TypeError, match="made by as_matrix"):
            make()
    assert not is_checked(CsrArrays(*arrays))


def test_only_a_view_that_was_scanned_counts_as_checked():
    view = as_matrix(A)
    assert is_checked(view)
    for other in (A, view.view(), view[:], view * 1.0, view.copy(), view[:, :2]):
        assert not is_checked(other)


def test_what_was_checked_is_not_scanned_again(monkeypatch):
    known = [as_matrix(A), as_matrix(sp.csr_matrix(A))]
    for name in ("csr_fault", "_all_finite"):
        monkeypatch.setattr(checks, name, lambda *_: pytest.fail("scanned again"))
    for X in known:
        for M in (X, row_slice(X, 3, 20), take_rows(X, np.array([4, 1]))):
            assert as_matrix(M) is M
        kernels.gram(X)
        kernels.margins(X, W)
        kernels.row_norms(X)
        kernels.accumulate(X, np.ones(30))


def test_slices_of_what_nobody_checked_are_checked():
    broken = np.array([[1.0], [np.nan]])
    for part in (row_slice(broken, 0, 2), take_rows(broken, np.array([1]))):
        with pytest.raises(InputError, match="finite"):
            as_matrix(part)


def test_columns_are_added_and_left_out():
    X = as_matrix(sp.csr_matrix(A))
    wide = widen(X, 11)
    np.testing.assert_array_equal(sp.csr_matrix(wide[:3], (30, 11)).toarray()[:, :8], A)
    with pytest.raises(ValueError, match="at least 8 columns"):
        widen(X, 7)
    assert first_columns(X, 8) is X
    for part, expect in ((X, A), (row_slice(X, 5, 9), A[5:9])):
        for n in range(8):
            got = first_columns(part, n)
            assert shape(got) == (len(expect), n)
            np.testing.assert_array_equal(as_scipy(got).toarray(), expect[:, :n])
            assert got.indices.dtype == got.indptr.dtype == X.indices.dtype


def test_trusting_is_for_those_who_check():
    """Beside the checks themselves: rows of checked rows, and rows that were read and checked."""
    package = Path(checks.__file__).parent.parent
    users = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if re.search(r"\btrust_(csr|array)\b|tuple\.__new__", path.read_text())
    }
    assert users == TRUSTED


TRUSTED = {
    *("matrix/matrix.py", "matrix/checks.py", "matrix/rows.py"),
    *("files/ondisk/matrix.py", "files/libsvm/reader.py", "files/libsvm/stream.py"),
}
