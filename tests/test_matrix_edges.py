"""The matrix view to the letter: number types, index widths, sizes, slices, and every refusal."""

import io
from functools import partial

import nesvm_jit
import numpy as np
import pytest
import scipy.sparse as sp
from nesvm_jit import InputError
from nesvm_jit.kernels import public
from nesvm_jit.matrix import checks
from nesvm_jit.matrix.checks import (
    as_matrix,
    as_number,
    as_precision,
    as_validated,
    as_vector,
    output,
)
from nesvm_jit.matrix.matrix import Csr, CsrArrays, row_axpy, row_dot, row_load, row_norms, shape
from nesvm_jit.matrix.rows import Size, as_scipy, row_slice, size_of, sparse_size, take_rows

pytestmark = pytest.mark.pure
A = np.array(
    [
        [1.0, 0.0, -2.0, 0.5],
        [0.0, 0.0, 0.0, 0.0],
        [0.0, 3.0, 0.0, 0.0],
        [-1.5, 0.25, 4.0, 2.0],
        [0.0, 0.0, 0.0, 7.0],
    ]
)
both_layouts = pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix], ids=["dense", "CSR"])


def csr(data, indices, indptr, n_cols):
    return CsrArrays(np.asarray(data), np.asarray(indices), np.asarray(indptr), n_cols)


def is_canonical(X):
    """Whether kernels can read it: contiguous, aligned, unsigned, and not to be written to."""
    arrays = X[:3] if isinstance(X, Csr) else (X,)
    plain = all(a.flags.c_contiguous and a.flags.aligned for a in arrays)
    fixed = not any(a.flags.writeable for a in arrays)
    return plain and fixed and all(a.dtype.kind == "u" for a in arrays[1:])


# ---------------------------------------------------------------- rows


@both_layouts
def test_primitives_of_every_row(layout):
    X, w = as_matrix(layout(A)), np.array([2.0, -1.0, 0.5, 3.0])
    assert shape(X) == (5, 4)
    for i, row in enumerate(A):
        assert row_dot(X, i, w) == row @ w
        g, out = np.ones(4), np.full(4, np.nan)
        row_axpy(X, i, 2.0, g)
        assert g.tolist() == (1 + 2 * row).tolist()
        row_load(X, i, 2.0, out)
        assert out.tolist() == (2 * row).tolist()
        assert row_norms(X, i) == (row @ row, np.abs(row).max())


@both_layouts
@pytest.mark.parametrize("p", [1, 4, 7, 8, 9])
def test_the_largest_entry_is_found_in_every_column(layout, p):
    X = 0.5 + np.eye(p + 5, p) - 3 * np.eye(p + 5, p) * (np.arange(p) % 2)
    M = as_matrix(layout(X))
    assert len(X) == p + 5
    for i in range(p + 5):
        square, largest = row_norms(M, i)
        assert largest == np.abs(X[i]).max()
        assert square == pytest.approx(X[i] @ X[i])


def test_small_integers_are_squared_as_float64():
    for X in (np.array([[100, -128]], np.int8), sp.csr_matrix(np.array([[100, -128]], np.int8))):
        assert row_norms(as_matrix(X), 0) == (100**2 + 128**2, 128)


def test_sizes():
    assert size_of(as_matrix(A)) == Size(5, 4, 20, 32)
    assert size_of(as_matrix(A.astype(np.float32))) == Size(5, 4, 20, 16)
    X = as_matrix(sp.csr_matrix(A))
    assert size_of(X) == Size(5, 4, 9, 9 * 12 // 5)
    assert size_of(row_slice(X, 2, 4)) == Size(2, 4, 5, 30)
    assert size_of(row_slice(X, 1, 2)) == Size(1, 4, 0, 0)
    assert sparse_size(0, 4, 0, np.dtype(np.float64)) == Size(0, 4, 0, 0)
    assert sparse_size(1, 4, 3, np.dtype(np.float32)) == Size(1, 4, 3, 24)


@both_layouts
def test_slices_share_memory_and_taken_rows_do_not(layout):
    X = as_matrix(layout(A))
    part = row_slice(X, 1, 4)
    np.testing.assert_array_equal(as_scipy(take_rows(part, np.arange(3))).toarray(), A[1:4])
    index = np.array([3, 0, 0, 1, 4])
    taken = take_rows(X, index)
    assert is_canonical(taken)
    np.testing.assert_array_equal(as_scipy(taken).toarray(), A[index])
    mine = (X.data, part.data, taken.data) if layout is sp.csr_matrix else (X, part, taken)
    assert np.shares_memory(mine[0], mine[1])
    assert not np.shares_memory(mine[0], mine[2])
    none = take_rows(X, np.array([], dtype=np.int64))
    assert shape(none) == (0, 4)


def test_taken_rows_keep_their_index_type():
    X = sp.csr_matrix(A)
    assert take_rows(as_matrix(X), np.array([3])).indptr.dtype == np.uint32
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    taken = take_rows(as_matrix(X), np.array([3, 2]))
    assert taken.indptr.dtype == taken.indices.dtype == np.uint64
    assert taken.indptr.tolist() == [0, 4, 5]
    assert taken.n_cols == 4


@pytest.mark.parametrize(
    ("dtype", "index"),
    [(np.float64, np.int32), (np.float64, np.int64), (np.float32, np.int32)],
)
def test_scipy_sees_the_same_numbers(dtype, index):
    X = sp.csr_matrix(A.astype(dtype))
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    view = as_matrix(X)
    out = as_scipy(view)
    assert out.shape == (5, 4)
    assert (out.dtype, out.indices.dtype, out.indptr.dtype) == (dtype, index, index)
    assert np.shares_memory(out.data, view.data)
    np.testing.assert_array_equal(out.toarray(), A)
    dense = as_scipy(as_matrix(A))
    assert sp.issparse(dense)
    np.testing.assert_array_equal(dense.toarray(), A)


# ---------------------------------------------------------------- number types and layouts


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("f8", "f8"),
        (">f8", "f8"),
        ("f4", "f4"),
        (">f4", "f4"),
        ("f2", "f4"),
        ("g", "f8"),
        ("?", "u1"),
        ("i1", "i1"),
        ("u1", "u1"),
        ("i2", "f4"),
        ("u2", "f4"),
        (">i2", "f4"),
        ("i4", "f8"),
        ("u4", "f8"),
        ("i8", "f8"),
        ("u8", "f8"),
    ],
)
def test_number_types_that_are_kept_and_those_that_are_converted(given, kept):
    X = np.array([[1, 0, 1], [0, 1, 0]]).astype(given)
    M = as_matrix(X)
    assert M.dtype == np.dtype(kept)
    assert M.dtype.isnative
    assert M.tolist() == [[1, 0, 1], [0, 1, 0]]
    assert is_canonical(M)
    assert np.shares_memory(M, X) == (given in ("f8", "f4", "i1", "u1", "?"))
    narrow = np.array([0, 2, 1], np.int32), np.array([0, 2, 3], np.int32)
    S = as_matrix(csr(np.ones(3).astype(given), *narrow, 3))
    assert S.data.dtype == np.dtype(kept)
    assert S.data.dtype.isnative
    assert S.data.tolist() == [1, 1, 1]


def test_other_memory_orders_are_copied_to_c_order():
    raw = np.frombuffer(b"\0" + A.tobytes(), np.uint8)[1:].view(np.float64).reshape(A.shape)
    for X in (np.asfortranarray(A), np.repeat(A, 2, axis=1)[:, ::2], raw):
        assert is_canonical(as_matrix(X))
        np.testing.assert_array_equal(as_matrix(X), A)
    X = np.repeat(np.arange(6.0), 2)[::2]
    S = as_matrix(csr(X[1:4], np.repeat([0, 2, 1], 2)[::2], np.repeat([0, 2, 3], 2)[::2], 3))
    assert is_canonical(S)
    np.testing.assert_array_equal(as_scipy(S).toarray(), [[1, 0, 2], [0, 3, 0]])


def test_misaligned_indices_are_copied():
    def misaligned(values):
        raw = np.frombuffer(b"\0" + np.asarray(values, np.int32).tobytes(), np.uint8)
        return raw[1:].view(np.int32)

    S = as_matrix(csr([1.0, 2.0, 3.0], misaligned([0, 2, 1]), misaligned([0, 2, 3]), 3))
    assert is_canonical(S)
    np.testing.assert_array_equal(as_scipy(S).toarray(), [[1, 0, 2], [0, 3, 0]])


@pytest.mark.parametrize(
    ("indices", "indptr", "width"),
    [
        ("i4", "i4", 4),
        ("u4", "u4", 4),
        ("i2", "i2", 4),
        ("u1", "i4", 4),
        ("i4", "i8", 8),
        ("i8", "i4", 8),
        ("i8", "i8", 8),
        ("u8", "i8", 8),
        (">i4", ">i4", 4),
        (">i8", ">i4", 8),
    ],
)
def test_indices_are_unsigned_and_of_one_width(indices, indptr, width):
    given = np.array([0, 2, 1]).astype(indices), np.array([0, 2, 3]).astype(indptr)
    S = as_matrix(csr([1.0, 2.0, 3.0], *given, 3))
    assert S.indices.dtype == S.indptr.dtype == np.dtype(f"u{width}")
    assert S.indices.dtype.isnative
    assert is_canonical(S)
    assert type(S.n_cols) is int
    np.testing.assert_array_equal(as_scipy(S).toarray(), [[1, 0, 2], [0, 3, 0]])


def test_a_checked_matrix_is_not_copied_again():
    for X in (A, sp.csr_matrix(A)):
        S = as_matrix(X)
        assert as_matrix(S) is S


def test_rows_that_begin_left_of_the_last_row_are_in_order():
    given = np.ones(4), np.array([2, 3, 0, 3], np.int32), np.array([0, 2, 4], np.int32)
    S = as_matrix(csr(*given, 4))
    assert np.shares_memory(S.data, given[0])
    assert S.indices.tolist() == [2, 3, 0, 3]


@pytest.mark.parametrize(
    ("data", "kept", "index"),
    [
        (np.array([1.0, 2.0, 4.0, 8.0]), np.float64, np.int32),
        (np.array([1.0, 2.0, 4.0, 8.0]), np.float64, np.int64),
        (np.array([1, 2, 4, 8], np.float32), np.float32, np.int32),
        (np.array([100, 2, 100, 8], np.int8), np.float32, np.int32),
    ],
)
def test_repeated_columns_are_added_up_and_unsorted_ones_sorted(data, kept, index):
    indices, indptr = np.array([3, 0, 3, 2], index), np.array([0, 3, 4], index)
    S = as_matrix(csr(data, indices, indptr, 4))
    a, b, c, d = data.astype(float)
    np.testing.assert_array_equal(as_scipy(S).toarray(), [[b, 0, 0, a + c], [0, 0, d, 0]])
    assert S.data.dtype == kept
    assert S.indices.tolist() == [0, 3, 2]
    assert is_canonical(S)
    assert indices.tolist() == [3, 0, 3, 2]
    assert indptr.tolist() == [0, 3, 4]


def test_rows_only_unsorted_or_only_repeated_are_put_in_order():
    for indices, expect in (([1, 0], [[2.0, 1.0]]), ([1, 1], [[0.0, 3.0]])):
        S = as_matrix(csr([1.0, 2.0], indices, [0, 2], 2))
        np.testing.assert_array_equal(as_scipy(S).toarray(), expect)


def test_repeated_entries_whose_sum_is_infinite_are_refused():
    with pytest.raises(InputError, match=r"^V must be finite, got NaN or infinity$"):
        as_matrix(csr([1.7e308, 1.7e308], [1, 1], [0, 2], 2), "V")


# ---------------------------------------------------------------- refusals

OUTSIDE = r"a sparse V has an index outside its 2 rows, 3 columns or 3 values"


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (csr(np.ones(3), [0, 3, 1], [0, 2, 3], 3), OUTSIDE),
        (csr(np.ones(3), [0, -1, 1], [0, 2, 3], 3), OUTSIDE),
        (csr(np.ones(3), [0, 2, 1], [0, 4, 3], 3), OUTSIDE),
        (csr(np.ones(3), [0, 2, 1], [0, 2, 4], 3), OUTSIDE),
        (csr(np.ones(3), [0, 2, 1], [2, 1, 3], 3), OUTSIDE),
        (csr(np.ones(3), [0, 2, 1], [-1, 1, 3], 3), OUTSIDE),
        (csr([np.nan, 1, 1], [0, 2, 3], [0, 2, 3], 3), OUTSIDE),
        (csr([1, np.inf, 1], [0, 2, 1], [0, 2, 3], 3), "V must be finite, got NaN or infinity"),
        (csr([1, np.nan, 1], [2, 0, 1], [0, 2, 3], 3), "V must be finite, got NaN or infinity"),
        (csr([np.nan, 1, 1], [2, 0, 1], [0, 2, 3], 3), "V must be finite, got NaN or infinity"),
        (
            csr(np.ones((3, 1)), [0, 2, 1], [0, 2, 3], 3),
            "a sparse V must have data, indices and indptr of one dimension",
        ),
        (
            csr(np.ones(3), [[0], [2], [1]], [0, 2, 3], 3),
            "a sparse V must have data, indices and indptr of one dimension",
        ),
        (
            csr(np.ones(3), [0, 2, 1], [[0], [2], [3]], 3),
            "a sparse V must have data, indices and indptr of one dimension",
        ),
        (
            csr([], np.zeros(0, int), np.zeros(0, int), 3),
            "a sparse V must have data, indices and indptr of one dimension",
        ),
        (csr(np.ones(3), [0, 2], [0, 2, 3], 3), "a sparse V has 3 values but 2 indices"),
        (
            csr(np.ones(1), [0.0], [0, 1], 3),
            "a sparse V must have whole numbers as indices and indptr",
        ),
        (
            csr(np.ones(1), [0], [0.0, 1.0], 3),
            "a sparse V must have whole numbers as indices and indptr",
        ),
        (
            csr(np.ones(1), [0], [0, 1], -1),
            r"the number of columns must be from 0 to 2\^62, got -1",
        ),
        (
            csr(np.ones(1), [0], [0, 1], 2**62),
            rf"the number of columns must be from 0 to 2\^62, got {2**62}",
        ),
        (csr(np.array(["a"]), [0], [0, 1], 1), "V must hold real numbers, got dtype <U1"),
    ],
)
def test_sparse_rows_that_cannot_be_are_refused(X, message):
    with pytest.raises(InputError, match=f"^{message}$"):
        as_matrix(X, "V")


def test_the_most_columns_and_no_rows_are_taken():
    assert shape(as_matrix(csr([1.0], [2**50], [0, 1], 2**62 - 1))) == (1, 2**62 - 1)
    assert shape(as_matrix(csr([], np.zeros(0, int), [0], 0))) == (0, 0)
    assert shape(as_matrix(csr([], np.zeros(0, int), [0, 0], 0))) == (1, 0)


def test_the_last_of_the_most_columns_is_inside():
    assert as_matrix(csr([1.0], [2**62 - 2], [0, 1], 2**62 - 1)).indices.tolist() == [2**62 - 2]


class Counted(np.ndarray):
    """Like an array that counts its nonzeros."""

    nnz = 9


def test_arrays_that_count_their_nonzeros_are_dense():
    M = as_matrix(A.view(Counted))
    assert isinstance(M, np.ndarray)
    np.testing.assert_array_equal(M, A)


class OneDimension:
    """Like a sparse array of one dimension."""

    nnz, shape = 1, (3,)

    def tocsr(self):
        return self


def broken(indptr):
    X = sp.csr_matrix(A)
    X.indptr = np.asarray(indptr, X.indptr.dtype)
    return X


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (OneDimension(), "V must have 2 dimensions, got 1"),
        (broken([0, 9]), "a sparse V must have an indptr from 0 on, one more than rows"),
        (
            broken([1, 3, 3, 4, 8, 9]),
            "a sparse V must have an indptr from 0 on, one more than rows",
        ),
        (np.zeros(3), "V must have 2 dimensions, got 1"),
        (np.zeros((2, 2, 2)), "V must have 2 dimensions, got 3"),
        (np.array([["a"]]), "V must hold real numbers, got dtype <U1"),
        (np.array([[1j]]), "V must hold real numbers, got dtype complex128"),
        (np.array([[1.0, np.nan]]), "V must be finite, got NaN or infinity"),
        (np.array([[-np.inf, 1.0]]), "V must be finite, got NaN or infinity"),
        (np.array([[np.inf]], np.float16), "V must be finite, got NaN or infinity"),
        (np.ma.masked_array([[1.0]], [[True]]), "V must not have masked entries"),
    ],
)
def test_what_cannot_be_a_matrix_is_refused(X, message):
    with pytest.raises(InputError, match=f"^{message}$"):
        as_matrix(X, "V")


def test_ragged_rows_are_refused_with_numpys_reason():
    with pytest.raises(InputError, match=r"^V must be a matrix of numbers: .*inhomogeneous"):
        as_matrix([[1.0], [1.0, 2.0]], "V")


def test_the_largest_finite_numbers_are_taken():
    X = np.array([[1.7e308, -1.7e308], [1.7e308, 5e-324]])
    np.testing.assert_array_equal(as_matrix(X), X)
    assert as_matrix(np.ma.masked_array([[1.0]], [[False]])).tolist() == [[1.0]]


# ---------------------------------------------------------------- vectors and numbers


@pytest.mark.parametrize(
    ("given", "n", "expect"),
    [
        (2, 3, [2.0, 2.0, 2.0]),
        (np.array(2.5), 2, [2.5, 2.5]),
        (True, 1, [1.0]),
        ([True, False], 2, [1.0, 0.0]),
        (np.array([1, 2], np.uint8), None, [1.0, 2.0]),
        (np.array([1, 2.5], object), 2, [1.0, 2.5]),
        ([10**30], 1, [1e30]),
        (np.array([1, 2, 3, 4.0])[::2], 2, [1.0, 3.0]),
        ([], None, []),
        (7.0, 0, []),
    ],
)
def test_vectors_are_contiguous_float64(given, n, expect):
    v = as_vector("v", given, n)
    assert v.dtype == np.float64
    assert v.tolist() == expect
    assert v.flags.c_contiguous
    assert v.flags.writeable


def test_vectors_that_can_be_used_are_not_copied():
    v = np.arange(3.0)
    assert as_vector("v", v, 3) is v
    fixed = v.copy()
    fixed.flags.writeable = False
    assert as_vector("v", fixed).flags.writeable
    raw = np.frombuffer(b"\0" + v.tobytes(), np.uint8)[1:].view(np.float64)
    assert as_vector("v", raw).flags.aligned


@pytest.mark.parametrize(
    ("given", "n", "message"),
    [
        (None, 1, "v must hold real numbers, got None"),
        ("12", 1, "v must hold real numbers, got '12'"),
        ([1j], 1, r"v must hold real numbers, got \[1j\]"),
        ([None], 1, r"v must be finite, got NaN or infinity"),
        ([[1], [1, 2]], 1, r"v must hold real numbers, got \[\[1\], \[1, 2\]\]"),
        ([10**400], 1, r"v must hold real numbers, got \[10{58}"),
        (np.array(["1"]), 1, r"v must hold real numbers, got array\(\['1'\], dtype='<U1'\)"),
        ([["a"], ["b"]] * 20, 1, r"v must hold real numbers, got \[(\['a'\], \['b'\], ){4}\['a"),
        (["a\nb"], 1, r"v must hold real numbers, got \['a\\nb'\]"),
        (1.0, None, r"v must have one dimension, got shape \(\)"),
        ([[1.0]], None, r"v must have one dimension, got shape \(1, 1\)"),
        ([[1.0]], 1, r"v must have length 1, got shape \(1, 1\)"),
        ([1.0, 2.0], 3, r"v must have length 3, got shape \(2,\)"),
        ([1.0, np.nan], 2, "v must be finite, got NaN or infinity"),
        (np.inf, 2, "v must be finite, got NaN or infinity"),
        (np.ma.masked_array([1.0], [True]), 1, "v must not have masked entries"),
    ],
)
def test_what_cannot_be_a_vector_is_refused(given, n, message):
    with pytest.raises(InputError, match=f"^{message}$"):
        as_vector("v", given, n)


def test_numbers():
    for given in (2, 2.0, np.float32(2), np.array(2), np.int8(2)):
        assert as_number("b", given) == 2.0
        assert type(as_number("b", given)) is float
    with pytest.raises(InputError, match=r"^b must be one number, got shape \(1,\)$"):
        as_number("b", [2.0])
    with pytest.raises(InputError, match=r"^b must be finite, got NaN or infinity$"):
        as_number("b", -np.inf)
    with pytest.raises(InputError, match=r"^b must hold real numbers, got 'x'$"):
        as_number("b", "x")


def test_precisions():
    for given in ("float32", np.float32, np.dtype("f4"), "f4"):
        assert as_precision(given) == np.float32
    assert as_precision(float) == as_precision(np.float64) == np.dtype("f8")
    for given, shown in (("foo", "'foo'"), (int, "int64"), (np.float16, "float16"), (3, "3")):
        with pytest.raises(InputError, match=f"^dtype must be float64 or float32, got {shown}$"):
            as_precision(given)


def read_only():
    v = np.zeros((2, 3))
    v.flags.writeable = False
    return v


@pytest.mark.parametrize(
    "given",
    [
        [[0.0] * 3] * 2,
        np.zeros((2, 3), np.float32),
        np.zeros((3, 2)),
        np.zeros(6),
        np.zeros((2, 3), order="F"),
        np.zeros((2, 6))[:, ::2],
        np.zeros(49, np.uint8)[1:].view(np.float64).reshape(2, 3),
        read_only(),
    ],
)
def test_outputs_that_cannot_be_written_to_are_refused(given):
    message = r"^v must be a writable C-ordered float64 array of shape \(2, 3\)$"
    with pytest.raises(InputError, match=message):
        output("v", given, (2, 3))


def test_outputs_are_those_given_or_zeros():
    given = np.full((2, 3), 7.0)
    assert output("v", given, (2, 3)) is given
    assert (given == 7).all()
    fresh = output("v", None, (2, 3))
    assert fresh.shape == (2, 3)
    assert fresh.dtype == np.float64
    assert not fresh.any()


def test_arrays_that_others_have_validated_can_be_read_by_kernels():
    shifted = np.frombuffer(b"." + A.tobytes(), np.uint8)[1:].view(np.float64).reshape(A.shape)
    assert not shifted.flags.aligned
    for X in (A, np.asfortranarray(A), A[::2, ::2], shifted):
        found = as_validated(X)
        assert is_canonical(found)
        np.testing.assert_array_equal(found, X)
    assert is_canonical(as_validated(sp.csr_matrix(A)))
    with pytest.raises(InputError, match="finite"):
        as_validated(sp.csr_matrix(np.where(A > 3.0, np.nan, A)))


ROWS = sp.csr_matrix(A[[0, 3, 2, 4]])
SIGNS, FOUR = np.array([1.0, -1.0, 1.0, -1.0]), np.ones(4)
CALLS = {
    "solve": lambda: nesvm_jit.solve(ROWS, SIGNS),
    "train": lambda: nesvm_jit.train(ROWS, SIGNS),
    "cross_validate": lambda: nesvm_jit.cross_validate(ROWS, SIGNS, 2),
    "decision_function": lambda: nesvm_jit.solve(A, [1, 1, -1, -1, 1]).decision_function(ROWS),
    "write_libsvm": lambda: nesvm_jit.write_libsvm(io.BytesIO(), ROWS, SIGNS),
    "margins": lambda: public.margins(ROWS, FOUR),
    "row_norms": lambda: public.row_norms(ROWS),
    "accumulate": lambda: public.accumulate(ROWS, FOUR),
    "accumulate_change": lambda: public.accumulate_change(ROWS, FOUR, SIGNS, np.zeros(4)),
    "sweep": lambda: public.sweep(ROWS, SIGNS, FOUR),
    "hessian": lambda: public.hessian(ROWS, FOUR),
    "hessian_times": lambda: public.hessian_times(ROWS, FOUR, FOUR),
    "hessian_diagonal": lambda: public.hessian_diagonal(ROWS, FOUR),
    "gram": lambda: public.gram(ROWS),
    "gram of two": lambda: public.gram(ROWS, ROWS),
}
MACHINES = ("predict", "decision_function", "predict_proba", "certified")


def are_copied(monkeypatch, call):
    """Whether the caller's index arrays are, each of which is looked at."""
    seen, real = [], checks._as_index

    def noted(a, width, borrow):
        found = real(a, width, borrow)
        if any(np.shares_memory(a, given) for given in (ROWS.indices, ROWS.indptr)):
            seen.append(not np.shares_memory(found, a))
        return found

    monkeypatch.setattr(checks, "_as_index", noted)
    call()
    assert seen
    return any(seen)


@pytest.mark.parametrize("name", CALLS)
def test_what_a_call_reads_but_does_not_keep_is_not_copied(monkeypatch, name):
    assert not are_copied(monkeypatch, CALLS[name])


def test_rows_that_a_machine_scores_are_not_copied(monkeypatch):
    X, y = np.repeat(A, 4, axis=0), np.tile([1.0, -1.0], 10)
    machine = nesvm_jit.train(X, y, probability=True)
    for name in MACHINES:
        assert not are_copied(monkeypatch, partial(getattr(machine, name), ROWS)), name
    assert are_copied(monkeypatch, lambda: as_matrix(ROWS))
