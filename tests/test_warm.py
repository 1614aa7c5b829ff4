"""What is compiled ahead: every kind of matrix, every kernel, once serial and once parallel."""

import numpy as np
import pytest
from nesvm_jit.cli import compile_ahead as warm
from scipy.sparse import issparse

from . import oracle

KINDS = ["dense float64", "dense float32", "CSR float64", "CSR float32"]
SAMPLE = [[1.0, 0.0, 2.0], [0.0, -1.0, 0.5], [3.0, 0.0, 0.0], [0.0, 1.0, 1.0]]


def test_a_matrix_of_every_kind():
    found = warm.matrices()
    assert list(found) == KINDS
    for kind, X in found.items():
        layout, dtype = kind.split()
        assert X.dtype == dtype
        assert issparse(X) == (layout == "CSR")
        assert oracle.dense(X).tolist() == SAMPLE


@pytest.mark.parametrize("kind", ["dense float64", "CSR float64"])
def test_every_kernel_is_called_with_what_it_takes(kind):
    X, A = warm.matrices()[kind], np.array(SAMPLE)
    got = {name: call() for name, call in warm.calls(X).items()}
    a, w, y = np.arange(4.0), np.ones(3), np.array([-1.0, 1.0, -1.0, 1.0])
    np.testing.assert_allclose(got["margins"], A @ w)
    np.testing.assert_allclose(got["row_norms"], oracle.row_norms(A))
    np.testing.assert_allclose(got["accumulate"], A.T @ a)
    np.testing.assert_allclose(got["accumulate_change"], 1.0 + A.T @ (a - y))
    np.testing.assert_allclose(got["sweep"].u, oracle.sweep(A, y, w, 0, 1, 1, 1, "hinge")[0])
    np.testing.assert_allclose(got["hessian"], oracle.hessian(A, a))
    np.testing.assert_allclose(got["hessian_diagonal"], np.diag(oracle.hessian(A, a)))
    np.testing.assert_allclose(got["hessian_times"], oracle.hessian(A, a) @ w)
    K = oracle.gram(A, A, "rbf", 1 / 3, 0.0, 3)
    np.testing.assert_allclose(got["gram float64"], K, rtol=1e-12)
    np.testing.assert_allclose(got["gram float32"], K, rtol=1e-5)
    assert (got["gram float64"].dtype, got["gram float32"].dtype) == (np.float64, np.float32)
    near = {name: got[f"distances {name}"] for name in ("float64", "float32")}
    for name, found in near.items():  # at such a γ rows are near none but themselves
        assert found.tolist() == np.eye(4).tolist()
        assert found.dtype == np.dtype(name)
    np.testing.assert_allclose(got["scores"], np.column_stack([A @ w] * 2))
    np.testing.assert_array_equal(got["exact sums of rows"].high, A @ w)
    np.testing.assert_array_equal(got["exact sums of columns"].high, A.T @ a)
    assert len(got) == 15


def test_every_step_has_a_name():
    names = [name for name, _ in warm.steps()]
    expect = [
        "threads",
        "read_libsvm, float64",
        "read_libsvm, float32",
        "project_hinge",
        "project_l1",
        "slope",
    ]
    for kind, X in warm.matrices().items():
        expect += [f"{name}, {kind}" for name in warm.calls(X)]
        engines = ("newton", "coordinate", "rbf coordinate")
        expect += [f"solve {engine}, {kind}" for engine in engines]
        expect += [f"kernel rows, {kind}"]
        if issparse(X):
            expect += [f"thin gram {precision}, {kind}" for precision in ("float64", "float32")]
            expect += [f"thin hessian, {kind}"]
    expect += ["small fits", "small fits rbf", "small fits rbf lssvm"]
    assert names == [*expect, "hard duals", "many scores", "model files"]


def test_steps_that_need_no_matrix_run():
    quick = (
        "threads",
        "project_hinge",
        "project_l1",
        "slope",
        "hard duals",
        "many scores",
        "model files",
    )
    ran = []
    for name, call in warm.steps():
        if name in quick:
            call()
            ran.append(name)
    assert sorted(ran) == sorted(quick)
    assert warm._read(np.float64) is None
    assert warm._kernel_rows(warm.matrices()["dense float64"]) is None


def test_solvers_are_called_with_a_label_for_every_row(monkeypatch):
    seen = []
    monkeypatch.setattr(warm, "solve", lambda X, y, **options: seen.append((X.shape, y, options)))
    for name, call in warm.steps():
        if name.startswith("solve") and "float64" in name:
            call()
    options = [
        *({"solver": "newton"}, {"solver": "coordinate"}),
        {"kernel": "rbf", "solver": "coordinate"},
    ]
    assert seen == [((4, 3), [1.0, -1.0, 1.0, -1.0], o) for o in (*options, *options)]
    del seen[:]
    for name, call in warm.steps():
        if name.startswith("small fits"):
            call()
    small = ({}, {"kernel": "rbf"}, {"kernel": "rbf", "model": "lssvm"})
    assert seen == [((4, 3), [1.0, -1.0, 1.0, -1.0], o) for o in small]


def test_text_is_read_in_both_precisions(monkeypatch):
    seen = []
    monkeypatch.setattr(warm, "read_libsvm", lambda f, dtype: seen.append((f.read(), dtype)))
    for name, call in warm.steps():
        if name.startswith("read_libsvm"):
            call()
    text = b"1 1:2\n"
    assert seen == [(text, np.float64), (text, np.float32)]


def test_rows_of_a_kernel_matrix_are_asked_for_twice_and_as_a_block(monkeypatch):
    seen = []

    class Rows:
        def __init__(self, X, spec, budget_bytes):
            seen.append((X.shape, spec.gamma, spec.degree, budget_bytes))

        def rows(self, index):
            seen.append(("rows", index.tolist()))

        def block(self, index):
            seen.append(("block", index.tolist()))

        def times(self, v):
            seen.append(("times", v.tolist()))

    monkeypatch.setattr(warm, "KernelRows", Rows)
    warm._kernel_rows(warm.matrices()["dense float64"])
    assert seen == [
        ((4, 3), 1 / 3, 3, 1e6),
        ("rows", [0, 1]),
        ("block", [0, 1, 2]),
        ("times", [1.0] * 4),
    ]


def test_the_loops_of_duals_and_model_files_are_called_as_they_are_used(monkeypatch):
    seen = []
    monkeypatch.setattr(warm, "_newton_steps", lambda *args: seen.append(args))
    monkeypatch.setattr(warm, "_parse_rows", lambda *args: seen.append(args))
    warm._hard_dual()
    warm._read_model()
    Q, lower, upper, bias, ridge, beta, e = seen[0]
    assert (Q.tolist(), lower.tolist(), upper.tolist()) == ([[1, 0], [0, 1]], [-1, -1], [1, 1])
    assert (bias, ridge, beta.tolist(), e.tolist()) == (True, 0.0, [0, 0], [1, -1])
    text, pos, row, numbers, ends, indices, values = seen[1]
    assert (bytes(text), pos, row) == (b"1 2:3\n", 0, 0)
    assert (numbers.shape, len(ends), len(indices), len(values)) == ((1, 1), 2, 1, 1)
    assert ends.dtype == indices.dtype == np.int64
    assert numbers.dtype == values.dtype == np.float64
