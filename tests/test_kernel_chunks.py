"""Kernels over several chunks, tiles and panels, called as solvers call them: every output against
the NumPy oracle or numbers worked out by hand."""

import sys

import numpy as np
import pytest
from nesvm_jit import InputError, jit, kernels
from nesvm_jit.kernels import line_search as line
from nesvm_jit.kernels import sums
from nesvm_jit.kernels.hessian import (
    SEGMENT,
    Memory,
    _collect_triangles,
    _hessian,
    _hessian_diagonal,
    _hessian_times,
    hessian_memory,
)
from nesvm_jit.kernels.loss import (
    HINGE,
    SQUARE,
    RowData,
    _project_hinge,
    _project_l1,
    loss_code,
)
from nesvm_jit.kernels.public import as_row_data, require_scale
from nesvm_jit.kernels.sweep import Workspace, _sweep, _sweep_partials, sweep_workspace
from nesvm_jit.matrix.checks import as_matrix
from nesvm_jit.matrix.matrix import Csr
from nesvm_jit.matrix.rows import Size, row_slice, size_of
from scipy.sparse import csr_matrix

from . import oracle

pytestmark = pytest.mark.pure
EXACT = {"rtol": 1e-12, "atol": 0.0}
both_layouts = pytest.mark.parametrize("layout", [np.asarray, csr_matrix], ids=["dense", "CSR"])
every_scale = pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
# an empty row, an empty column, and rows of every length
A = np.array(
    [
        [1.0, 0.0, -2.0, 0.5, 0.0],
        [0.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, 3.0, 0.0, 0.0],
        [-1.5, 0.0, 0.25, 4.0, 2.0],
        [2.0, 0.0, 0.0, -7.0, 0.0],
        [0.0, 0.0, 0.0, 0.0, -0.75],
        [1.0, 0.0, 1.0, 1.0, 1.0],
    ]
)
W = np.array([0.5, 9.0, -0.25, 0.125, 1.0])
D = np.array([1.0, 2.0, 0.0, 0.5, 3.0, 0.25, 0.0])


def dirty(n_chunks, cells):
    """Room for partial sums that an earlier pass has left full."""
    return np.full((n_chunks, cells + 3), 77.0)


# ---------------------------------------------------------------- chunks and their number


def test_chunks_are_as_equal_as_can_be():
    bounds = [jit.chunk_bounds(11, 4, k) for k in range(4)]
    assert bounds == [(0, 2), (2, 5), (5, 8), (8, 11)]


@pytest.mark.parametrize(
    ("rows", "cells", "n_sums", "chunks"),
    [
        (0, 0, 0, 1),
        (1, 10**9, 0, 1),
        (3, 10**9, 0, 3),
        (10**6, 2 * 65536 - 1, 0, 1),
        (10**6, 2 * 65536, 0, 2),
        (10**6, 3 * 65536 - 1, 1, 2),
        (10**6, 63 * 65536, 1, 63),
        (10**6, 64 * 65536, 1, 64),
        (10**6, 65 * 65536, 1, 64),
        (10**6, 10**9, 2**20 // 5, 5),
        (10**6, 10**9, 2**20 // 3 + 1, 2),
        (10**6, 10**9, 2**20, 2),
        (10**6, 10**9, 2**26, 2),
        (10**6, 10**9, 2**26 + 1, 1),
    ],
)
def test_chunks_are_few_for_few_numbers_and_for_long_sums(rows, cells, n_sums, chunks):
    assert jit.chunk_count(rows, cells, n_sums) == chunks


def test_a_pass_that_adds_nothing_up_needs_no_memory_for_sums():
    assert jit.chunk_count(10**6, 10**9) == 64


@pytest.mark.parametrize(("cells", "padded"), [(0, 8), (1, 16), (8, 16), (9, 24), (16, 24)])
def test_no_two_partial_sums_share_a_line_of_the_cache(cells, padded):
    room = jit.partial_sums(3, cells)
    assert room.shape == (3, padded)
    assert not room.any()


@pytest.mark.parametrize(
    ("size", "chunks"),
    [
        (Size(10**6, 10, 10**7, 80), 64),
        (Size(10**5, 10, 10**6, 80), 15),
        (Size(10**5, 10, 25 * 10**4, 80), 15),
        (Size(10**5, 10, 2**15, 80), 2),
        (Size(10**5, 10, 2**15 - 1, 80), 1),
        (Size(10**5, 10, 0, 80), 1),
        (Size(10**5, 5000, 320_000, 80), 16),
        (Size(10**5, 5000, 339_999, 80), 16),
        (Size(10**5, 50_000, 320_000, 80), 2),
        (Size(10**5, 0, 10**6, 0), 15),
    ],
)
def test_partial_sums_cost_less_to_add_up_than_to_make(size, chunks):
    assert sums.row_partials(size).shape == (chunks, -(-size.cols // 8) * 8 + 8)


@pytest.mark.parametrize(
    ("size", "dense", "partials", "panel"),
    [
        (Size(4000, 10, 4 * 10**4, 80), True, (8, 112), 8 * 512 * 10),
        (Size(10**5, 100, 10**7, 800), True, (16, 10008), 16 * 512 * 100),
        (Size(10**5, 500, 5 * 10**7, 4000), False, (4, 250_008), 4 * 512 * 500),
        (Size(10**5, 2000, 2 * 10**8, 16_000), True, (1, 4_000_008), 512 * 2000),
        (Size(10**5, 100, 10**6, 120), False, (13, 10008), 0),
        (Size(10**5, 100, 10**6, 120), True, (16, 10008), 16 * 512 * 100),
        (Size(1, 2, 2, 16), False, (1, 16), 512 * 2),
        (Size(0, 2, 0, 0), False, (1, 16), 0),
        (Size(0, 2, 0, 0), True, (1, 16), 512 * 2),
        (Size(3, 0, 0, 0), True, (1, 8), 0),
    ],
)
def test_memory_of_a_hessian_is_a_panel_of_thick_rows_and_a_few_triangles(
    size, dense, partials, panel
):
    made = hessian_memory(size, dense)
    assert made.partials.shape == partials
    assert made.panel.shape == (panel,)
    assert made.panel.dtype == np.float64
    assert hessian_memory(size, dense, np.float32).panel.dtype == np.float32


@pytest.mark.parametrize(
    ("row_bytes", "at_once"),
    [(0, 64), (1, 64), (256, 64), (260, 63), (2**13, 2), (2**14, 1), (2**14 + 1, 1), (2**20, 1)],
)
def test_as_many_rows_at_once_as_fit_a_fast_cache(row_bytes, at_once):
    work = sweep_workspace(Size(10_000, 5, 49_999, row_bytes))
    assert work.at_once == at_once
    assert isinstance(work.at_once, int)
    assert work.partials.shape == (3, 16)
    assert work.scalars.shape == (3, 16)


# ---------------------------------------------------------------- sums over rows


@pytest.mark.parametrize("keep", [False, True])
def test_partial_sums_are_added_column_by_column(keep):
    rng = np.random.default_rng(0)
    parts, out = rng.normal(size=(3, 8200)), rng.normal(size=8193)  # two blocks of 4096, and 1
    expect = parts[:, :8193].sum(axis=0) + keep * out
    sums._collect(parts, keep, out)
    np.testing.assert_allclose(out, expect, rtol=1e-12, atol=1e-15)


@both_layouts
@every_scale
@pytest.mark.parametrize("n_chunks", [1, 3, 7])
def test_margins_and_norms_of_every_chunk(layout, scale, n_chunks):
    X, out = as_matrix(layout(scale * A)), np.full(7, np.nan)
    sums._margins(n_chunks, X, W, 0.5 * scale, out)
    np.testing.assert_allclose(out, scale * (A @ W + 0.5), rtol=1e-12, atol=1e-15 * scale)
    two, largest = np.full(7, np.nan), np.full(7, np.nan)
    sums._row_norms(n_chunks, X, two, largest)
    np.testing.assert_allclose(two, scale * np.linalg.norm(A, axis=1), **EXACT)
    np.testing.assert_allclose(largest, scale * np.array([2, 0, 3, 4, 7, 0.75, 1]), **EXACT)


@both_layouts
@every_scale
@pytest.mark.parametrize("n_chunks", [1, 3, 7])
def test_sums_of_rows_of_every_chunk(layout, scale, n_chunks):
    X, a = as_matrix(layout(scale * A)), np.where(D > 1, -D, D)
    out = np.full(5, 2.0 * scale)
    sums._accumulate(X, a, dirty(n_chunks, 5), out)
    np.testing.assert_allclose(out, scale * (A.T @ a), **EXACT)
    sums._accumulate(X, a, dirty(n_chunks, 5), out, keep=True)
    np.testing.assert_allclose(out, 2 * scale * (A.T @ a), **EXACT)
    new = a + np.array([0.0, 0.0, 1.0, -0.5, 0.0, 2.0, 0.25])
    sums._accumulate_change(X, new, a, dirty(n_chunks, 5), out)
    np.testing.assert_allclose(out, scale * (A.T @ (a + new)), rtol=1e-11)


# ---------------------------------------------------------------- projections


@pytest.mark.parametrize("n_chunks", [1, 2, 5])
def test_projections_of_every_chunk(n_chunks):
    r = np.array([-3.0, 0.0, 0.25, 0.5, 7.0])
    u, s = np.full(5, np.nan), np.array([1.0, 1.0, 2.0, 0.5, 1e-6])
    _project_hinge(n_chunks, r, s, 0.5, u)
    assert u.tolist() == [0.0, 0.0, 0.25, 1.0, 1.0]
    _project_l1(n_chunks, r, 0.5, u)
    assert u.tolist() == [-1.0, 0.0, 0.5, 1.0, 1.0]
    _project_l1(n_chunks, -r, 2.0, u)
    assert u.tolist() == [1.0, 0.0, -0.125, -0.25, -1.0]


def test_projections_have_scales_of_one_unless_told():
    assert kernels.project_hinge([0.25, 2.0]).tolist() == [0.25, 1.0]
    assert kernels.project_l1([0.25, -2.0]).tolist() == [0.25, -1.0]
    out = np.zeros(1)
    assert kernels.project_hinge([0.25], out=out) is out
    assert kernels.project_l1([0.25], out=out) is out


@pytest.mark.parametrize(
    ("scale", "message"),
    [
        (0.0, "x must be positive, got 0"),
        (-2.0, "x must be positive, got -2"),
        ([1.0, -3.0, 1e200], "x must be positive, got -3"),
        (9e-101, r"x must be from 1e-100 to 1e\+100, got 9e-101"),
        (2e100, r"x must be from 1e-100 to 1e\+100, got 2e\+100"),
        ([1e-100, 1e200], r"x must be from 1e-100 to 1e\+100, got 1e\+200"),
        ([1e-200, 1e200], r"x must be from 1e-100 to 1e\+100, got 1e-200"),
    ],
)
def test_scales_beyond_all_use_are_refused(scale, message):
    with pytest.raises(InputError, match=f"^{message}$"):
        require_scale("x", scale)


@pytest.mark.parametrize("scale", [1e-100, 1e100, 0.5, 1.0, [1e-100, 1e100], []])
def test_scales_up_to_the_limits_are_taken(scale):
    assert require_scale("x", scale) is None


@pytest.mark.parametrize(
    "call",
    [
        lambda bad: kernels.project_hinge([1.0], s=bad),
        lambda bad: kernels.sweep([[1.0]], [1], [0.0], s=bad),
        lambda bad: kernels.slope([1.0], [1.0], [1], s=bad),
    ],
)
def test_every_kernel_refuses_scales_that_are_not_positive(call):
    with pytest.raises(InputError, match=r"^s must be positive, got -1$"):
        call(-1.0)


@pytest.mark.parametrize(
    "call",
    [
        lambda bad: kernels.project_hinge([1.0], mu=bad),
        lambda bad: kernels.project_l1([1.0], mu=bad),
        lambda bad: kernels.sweep([[1.0]], [1], [0.0], mu=bad),
        lambda bad: kernels.slope([1.0], [1.0], [1], mu=bad),
    ],
)
def test_every_kernel_refuses_a_smoothing_that_is_not_positive(call):
    with pytest.raises(InputError, match=r"^mu must be positive, got -1$"):
        call(-1.0)


# ---------------------------------------------------------------- the fused pass

Y = np.array([1.0, -1.0, -1.0, 1.0, -1.0, 1.0, 1.0])
C = np.array([0.5, 2.0, 0.0, 1.0, 1e-3, 100.0, 1.0])
S = np.array([1.0, 0.5, 2.0, 4.0, 3.0, 1.0, 0.25])


@both_layouts
@pytest.mark.parametrize("loss", ["hinge", "square"])
@pytest.mark.parametrize(("n_chunks", "at_once"), [(1, 1), (1, 64), (2, 2), (3, 2), (7, 3)])
def test_the_fused_pass_over_chunks_and_few_rows_at_a_time(layout, loss, n_chunks, at_once):
    X, u, ascent = as_matrix(layout(A)), np.full(7, np.nan), np.full(5, 3.0)
    work = Workspace(dirty(n_chunks, 5), dirty(n_chunks, 4), at_once)
    rows, expect = RowData(Y, C, S), oracle.sweep(A, Y, W, 0.3, C, S, 0.7, loss)
    found = _sweep(X, rows, W, 0.3, 0.7, loss_code(loss), u, work, ascent)
    np.testing.assert_allclose(u, expect[0], **EXACT)
    np.testing.assert_allclose(found, [*expect[1:4], expect[5]], **EXACT)
    np.testing.assert_allclose(ascent, expect[4], **EXACT)
    assert (work.scalars[:, 4:] == 77).all()
    _sweep(X, rows, W, 0.3, 0.7, loss_code(loss), u, work, ascent, keep=True)
    np.testing.assert_allclose(ascent, 2 * expect[4], **EXACT)


def test_partial_losses_of_a_chunk_are_those_of_its_rows():
    work = Workspace(dirty(2, 5), dirty(2, 4), 2)
    _sweep_partials(2, as_matrix(A), RowData(Y, C, S), W, 0.3, 0.7, HINGE, np.zeros(7), work)
    for k, rows in enumerate((slice(0, 3), slice(3, 7))):
        args = (A[rows], Y[rows], W, 0.3, C[rows], S[rows], 0.7, "hinge")
        _, smoothed, true, total, ascent, ascent_b = oracle.sweep(*args)
        np.testing.assert_allclose(work.scalars[k, :4], [smoothed, true, total, ascent_b], **EXACT)
        np.testing.assert_allclose(work.partials[k, :5], ascent, **EXACT)


@both_layouts
@every_scale
@pytest.mark.parametrize("loss", ["hinge", "square"])
def test_the_fused_pass_at_every_scale(layout, scale, loss):
    found = kernels.sweep(layout(scale * A), Y, W / scale, 0.3, C, S, 1e-3, loss)
    expect = oracle.sweep(scale * A, Y, W / scale, 0.3, C, S, 1e-3, loss)
    for got, want in zip(found, expect, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-11)
    assert found._fields == ("u", "smoothed", "loss", "total", "ascent", "ascent_b")


def test_the_fused_pass_has_costs_scales_and_smoothing_of_one_unless_told():
    found = kernels.sweep([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]], [1, 1, 1], [0.5, 3.0])
    assert found.u.tolist() == [0.5, 0.0, 1.0]
    assert (found.smoothed, found.loss, found.total) == (0.125 + 4.0, 0.5 + 4.5, 1.5)
    assert (found.ascent.tolist(), found.ascent_b) == ([-0.5, -1.0], 1.5)
    u = np.zeros(1)
    assert kernels.sweep([[1.0]], [1], [0.5], u=u).u is u


def test_losses_have_names():
    assert (loss_code("hinge"), loss_code("square")) == (HINGE, SQUARE) == (0, 1)
    with pytest.raises(InputError, match=r"^loss must be one of hinge, square, got 'log'$"):
        loss_code("log")


@pytest.mark.parametrize(
    ("y", "c", "s", "message"),
    [
        ([1, 0], 1, 1, r"y must hold -1 and \+1 only"),
        ([1, 2], 1, 1, r"y must hold -1 and \+1 only"),
        ([1, -1], [1, -0.5], 1, "c must not be negative, got -0.5"),
        ([1, -1], 1, 0, "s must be positive, got 0"),
        ([1, -1, 1], 1, 1, r"y must have length 2, got shape \(3,\)"),
        ([1, -1], [1], 1, r"c must have length 2, got shape \(1,\)"),
        ([1, -1], 1, [1], r"s must have length 2, got shape \(1,\)"),
    ],
)
def test_labels_costs_and_scales_are_checked(y, c, s, message):
    with pytest.raises(InputError, match=f"^{message}$"):
        as_row_data(y, c, s, 2)


def test_costs_of_zero_are_taken():
    rows = as_row_data([1, -1], [0.0, 3.0], 2.0, 2)
    assert [v.tolist() for v in rows] == [[1, -1], [0, 3], [2, 2]]


# ---------------------------------------------------------------- along a direction

F = np.array([0.5, -2.0, 0.0, 1.0, -0.9, 3.0, 1.0])
M = np.array([1.0, 0.5, -1.0, 2.0, 0.25, -4.0, 0.0])
CENTRE = np.array([0.0, 0.5, 1.0, 0.25, 0.75, 0.0, 0.5])


@pytest.mark.parametrize("loss", ["hinge", "square"])
@pytest.mark.parametrize("n_chunks", [1, 3, 7])
@pytest.mark.parametrize("t", [0.0, 0.3, -2.0])
def test_slopes_over_chunks_about_a_centre(loss, n_chunks, t):
    mu, code = 0.7, loss_code(loss)
    margins = line.Margins(1 / S, F, M, CENTRE, np.zeros(0), np.zeros(0))
    first, second = line._slope(RowData(Y, C, S), margins, mu, code, t, dirty(n_chunks, 5))
    weight, curvature, *_ = oracle.centred_step(A, Y, C, S, CENTRE, F + t * M, mu, loss)
    assert first == pytest.approx(-weight @ M, rel=1e-12)
    assert second == pytest.approx(curvature @ M**2, rel=1e-12)


def test_slopes_at_the_bends_take_neither_side():
    f, y = np.array([1.0, 0.5, 0.75]), np.ones(3)  # r/(μs) = 0, 1, ½
    assert kernels.slope(f, np.ones(3), y, mu=0.5) == (-1.5, 2.0)
    assert kernels.slope(f, np.ones(3), y, t=0.25, mu=0.5) == (-0.5, 2.0)


def test_slopes_have_costs_scales_and_smoothing_of_one_unless_told():
    assert kernels.slope([0.5, 2.0], [1.0, 3.0], [1, -1]) == (-0.5 + 3.0, 1.0)
    assert kernels.slope([0.5], [3.0], [1], c=2.0, s=4.0, mu=0.5) == (-1.5, 9.0)
    assert kernels.slope([0.5], [3.0], [1], c=2.0, loss="square") == (-6.0, 36.0)


def test_slopes_are_summed_in_chunks_of_256_rows():
    assert line.line_partials(4).shape == (4, 16)
    n = 600
    f = np.linspace(-1, 1, n)
    got = kernels.slope(f, np.ones(n), np.ones(n))
    assert got == pytest.approx(oracle.slope(f, np.ones(n), np.ones(n), 0, 1, 1, 1, "hinge"))


@both_layouts
@pytest.mark.parametrize("loss", ["hinge", "square"])
@pytest.mark.parametrize("n_chunks", [1, 3, 7])
def test_steps_over_chunks(layout, loss, n_chunks):
    X, code, mu = as_matrix(layout(A)), loss_code(loss), 0.7
    margins = line.Margins(1 / S, F.copy(), M, CENTRE, np.zeros(7), np.full(7, np.nan))
    parts, room, ascent, f = dirty(n_chunks, 5), dirty(n_chunks, 5), np.zeros(5), F.copy()
    for t in (0.0, 0.3, 0.0, -2.0):
        f += t * M
        got = line._step(X, RowData(Y, C, S), margins, mu, code, t, parts, room, ascent)
        weight, curvature, sums_, expect = oracle.centred_step(A, Y, C, S, CENTRE, f, mu, loss)
        np.testing.assert_allclose(margins.weight, weight, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(margins.curvature, curvature, **EXACT)
        np.testing.assert_allclose(got, sums_, **EXACT)
        np.testing.assert_allclose(ascent, expect, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(margins.f, f, **EXACT)


def test_rows_at_the_bends_have_no_curvature_and_the_largest_u_is_that_of_all_chunks():
    y, f = np.ones(3), np.array([0.0, 0.9, 1.0])
    for order in ([0, 1, 2], [2, 1, 0], [1, 0, 2]):
        margins = line.Margins(y, f[order], 0 * y, 0 * y, np.zeros(3), np.full(3, np.nan))
        args = (as_matrix(np.eye(3)), RowData(y, y, y), margins, 1.0, HINGE, 0.0)
        ascent = np.zeros(3)
        found = line._step(*args, dirty(3, 3), dirty(3, 5), ascent)
        assert found == pytest.approx((0.5 + 0.005, 1.1, 1.1, 1.1, 1.0))
        u = np.array([1.0, 0.1, 0.0])[order]
        np.testing.assert_allclose(margins.weight, u, **EXACT)
        np.testing.assert_allclose(ascent, u, **EXACT)
        np.testing.assert_array_equal(margins.curvature, np.array([0.0, 1.0, 0.0])[order])
    margins = line.Margins(y, f + 5, 0 * y, 0 * y, np.zeros(3), np.zeros(3))
    args = (as_matrix(np.eye(3)), RowData(y, y, y), margins, 1.0, HINGE, 0.0)
    assert line._step(*args, dirty(3, 3), dirty(3, 5), np.zeros(3)) == (0, 0, 0, 0, 0)


# ---------------------------------------------------------------- curvature


def thin(n_chunks, p):
    """Memory that says that rows are thin."""
    return Memory(dirty(n_chunks, p * p), np.empty(0))


def thick(n_segments, p, dtype=np.float64):
    """Memory that says that rows are thick."""
    return Memory(dirty(n_segments, p * p), np.full(n_segments * SEGMENT * p, 77.0, dtype))


@both_layouts
@every_scale
@pytest.mark.parametrize("n_chunks", [1, 3, 7])
def test_curvature_over_chunks(layout, scale, n_chunks):
    X, expect = as_matrix(layout(scale * A)), scale**2 * oracle.hessian(A, D)
    near = {"rtol": 1e-12, "atol": 1e-14 * scale**2}
    for memory in [thick(n_chunks, 5)] + [thin(n_chunks, 5)] * isinstance(X, Csr):
        H = np.full((5, 5), 2.0 * scale**2)
        _hessian(X, D, memory, False, H)
        np.testing.assert_allclose(H, expect, **near)
        H[:] = 0.5 * expect
        _hessian(X, D, memory, True, H)
        np.testing.assert_allclose(H, 1.5 * expect, **near)
    out = np.full(5, 3.0)
    _hessian_times(X, D, W, dirty(n_chunks, 5), out)
    np.testing.assert_allclose(out, expect @ W, **near)
    _hessian_times(X, D, W, dirty(n_chunks, 5), out, keep=True)
    np.testing.assert_allclose(out, 2 * expect @ W, **near)
    _hessian_diagonal(X, D, dirty(n_chunks, 5), out)
    np.testing.assert_allclose(out, np.diag(expect), **near)
    _hessian_diagonal(X, D, dirty(n_chunks, 5), out, keep=True)
    np.testing.assert_allclose(out, 2 * np.diag(expect), **near)


@pytest.mark.parametrize(("n_segments", "n_groups"), [(2, 1), (3, 1), (3, 2), (5, 3)])
@pytest.mark.parametrize("n", [65, 512, 1030, 2600])
def test_curvature_of_groups_of_segments(n, n_segments, n_groups):
    X = np.random.default_rng(n).normal(size=(n, 3))
    d = 0.5 + np.arange(n) % 3
    memory, H = (
        Memory(dirty(n_groups, 9), np.full(n_segments * SEGMENT * 3, 77.0)),
        np.zeros((3, 3)),
    )
    _hessian(as_matrix(X), d, memory, False, H)
    np.testing.assert_allclose(H, oracle.hessian(X, d), rtol=1e-12, atol=1e-12 * n)


@pytest.mark.parametrize("n_segments", [1, 2])
@pytest.mark.parametrize("n", [63, 64, 65, 511, 512, 513, 1030, 1600])
def test_curvature_of_several_segments_and_panels_of_rows(n, n_segments):
    X = np.random.default_rng(n).normal(size=(n, 2))
    d = np.where(np.arange(n) % 100 == 99, 0.0, 0.5 + np.arange(n) % 3)
    H = np.zeros((2, 2))
    _hessian(as_matrix(X), d, thick(n_segments, 2), False, H)
    np.testing.assert_allclose(H, oracle.hessian(X, d), rtol=1e-12)


@pytest.mark.parametrize("p", [127, 128, 129, 260])
def test_curvature_of_several_tiles_of_columns(p):
    X, d = np.random.default_rng(p).normal(size=(3, p)), np.array([1.0, 0.0, 2.0])
    H = np.full((p, p), np.nan)
    _hessian(as_matrix(X), d, thick(1, p), False, H)
    np.testing.assert_allclose(H, oracle.hessian(X, d), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("n_chunks", [1, 2, 5, 9])
def test_triangles_are_added_and_mirrored(n_chunks, keep):
    rng = np.random.default_rng(n_chunks)
    lower = np.tril(rng.normal(size=(3, 9, 9)))
    start = rng.normal(size=(9, 9))
    start += start.T
    H, total = start.copy(), lower.sum(axis=0)
    _collect_triangles(n_chunks, np.ascontiguousarray(lower.reshape(3, 81)), keep, H)
    whole = total + np.tril(total, -1).T
    np.testing.assert_allclose(H, whole + keep * start, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize(("cells", "spread"), [(3, False), (4, True)])
def test_sparse_rows_are_spread_out_from_a_third_full_on(cells, spread):
    size = Size(6, 10, 6 * cells, 12 * cells)
    assert bool(hessian_memory(size, False).panel.size) is spread


def test_rows_of_a_segment_are_multiplied_together():
    memory, used = thick(1, 5), D > 0
    _hessian(as_matrix(A), D, memory, False, np.zeros((5, 5)))
    columns = memory.panel[: 5 * used.sum()].reshape(5, -1)
    np.testing.assert_allclose(columns, (np.sqrt(D)[:, None] * A)[used].T, **EXACT)
    assert (memory.panel[5 * used.sum() :] == 77).all()


def test_chunks_without_rows_add_nothing():
    for X, memory in (
        (as_matrix(A[:2]), thick(4, 5)),
        (as_matrix(csr_matrix(A[:2])), thick(4, 5)),
        (as_matrix(csr_matrix(A[:2])), thin(4, 5)),
    ):
        H = np.zeros((5, 5))
        _hessian(X, np.ones(2), memory, False, H)
        np.testing.assert_allclose(H, A[:2].T @ A[:2], **EXACT)
        _hessian(X, np.zeros(2), memory, False, H)
        assert not H.any()


@pytest.mark.parametrize("call", [kernels.hessian, kernels.hessian_diagonal])
def test_curvature_is_not_negative(call):
    with pytest.raises(InputError, match=r"^d must not be negative, got -0\.5$"):
        call(A, np.linspace(-0.5, 1, 7))
    assert not call(A, 0.0).any()
    with pytest.raises(
        InputError, match=r"^out must be a writable C-ordered float64 array of shape"
    ):
        call(A, 1.0, out=np.zeros(3))


def test_curvature_goes_where_it_is_asked_to():
    H, v, g = np.full((5, 5), 8.0), np.full(5, 8.0), np.full(5, 8.0)
    assert kernels.hessian(A, D, out=H) is H
    assert kernels.hessian_times(A, D, W, out=v) is v
    assert kernels.hessian_diagonal(A, D, out=g) is g
    np.testing.assert_allclose(H @ W, v, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(np.diag(H), g, **EXACT)


def test_blas_is_held_at_one_thread_for_a_hessian(monkeypatch):
    seen = []
    module = sys.modules["nesvm_jit.kernels.public"]
    held = jit.one_blas_thread
    monkeypatch.setattr(module, "one_blas_thread", lambda: seen.append(1) or held())
    kernels.hessian(A, D)
    assert seen == [1]


# ---------------------------------------------------------------- public names


@both_layouts
def test_slices_of_rows_are_matrices_too(layout):
    X = row_slice(as_matrix(layout(A)), 2, 6)
    np.testing.assert_allclose(kernels.margins(X, W, 1.0), A[2:6] @ W + 1.0, **EXACT)
    np.testing.assert_allclose(kernels.hessian(X, D[2:6]), oracle.hessian(A[2:6], D[2:6]), **EXACT)
    assert size_of(X)[:3] == (4, 5, 8 if layout is csr_matrix else 20)


@both_layouts
def test_results_go_where_they_are_asked_to(layout):
    X, f, g = layout(A), np.zeros(7), np.ones(5)
    assert kernels.margins(X, W, out=f) is f
    np.testing.assert_allclose(f, A @ W, **EXACT)
    assert kernels.accumulate(X, D, out=g) is g
    np.testing.assert_allclose(g, A.T @ D, **EXACT)
    assert kernels.accumulate_change(X, D + Y, D, g) is g
    np.testing.assert_allclose(g, A.T @ (D + Y), **EXACT)
    for call in (
        lambda: kernels.margins(X, W, out=np.zeros(5)),
        lambda: kernels.accumulate(X, D, out=np.zeros(7)),
        lambda: kernels.accumulate_change(X, D, D, np.zeros(7)),
    ):
        with pytest.raises(InputError, match=r"^out must be a writable C-ordered float64 array of"):
            call()


def test_margins_over_w_are_those_of_the_w_that_was_given():
    v = np.arange(10.0)
    out = kernels.margins(np.ones((4, 4)), v[2:6], 1.0, out=v[4:8])
    assert out.tolist() == [15.0] * 4
