"""Labels with a proof: rows that are marked have the label of the exact optimum."""

import json

import numpy as np
import pytest
from nesvm_jit import InputError, load_model, read_libsvm
from nesvm_jit.binary import finish_linear, kernel_matrix
from nesvm_jit.kernels import rounding
from nesvm_jit.kernels.loss import HINGE, SQUARE
from nesvm_jit.kernels.public import as_spec
from nesvm_jit.machine import proven
from nesvm_jit.machine.proven import _decided
from nesvm_jit.matrix.checks import as_matrix
from nesvm_jit.models import MODELS
from nesvm_jit.problems import labels
from nesvm_jit.problems.labels import bias_range, radius_of
from nesvm_jit.problems.linear import problem_in_memory
from nesvm_jit.settings import Settings
from scipy.sparse import csr_matrix

from .commands import data_file, done, libsvm_text, refused
from .data import half_space
from .endings import solve, train
from .test_certify import three_classes


@pytest.mark.parametrize("n", [labels.MANY - 1, labels.MANY, 40_000])
@pytest.mark.parametrize("digits", [1, 17])
@pytest.mark.parametrize("alike", [True, False])
def test_a_range_of_b_by_the_rows_near_it_is_that_of_all_rows(n, digits, alike):
    rng = np.random.default_rng(n)
    e = np.round(rng.standard_normal(n), digits)
    c = np.ones(n) if alike else np.where(rng.random(n) < 0.01, 100.0, rng.random(n).round())
    order = np.argsort(e)
    for level in (0.5, 1e-3 * n, 0.3 * c.sum(), 0.99 * c.sum(), c.sum() - 0.5, c.sum() + 0.5):
        for side in ("left", "right"):
            place = np.searchsorted(np.cumsum(c[order]), level, side=side)
            expected = e[order[place]] if place < n else np.inf
            assert labels._cost_quantile(e, c, level, side) == expected


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("model", ["csvm", "lssvm"])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("multiclass", [None, "ovo", "ovr"])
def test_proven_labels_are_those_of_the_optimum(multiclass, kernel, model, bias):
    X, y = three_classes() if multiclass else half_space()
    Z = np.random.default_rng(5).standard_normal((500, X.shape[1]))
    how = {"model": model, "kernel": kernel, "bias": bias, "C": 2.0, "multiclass": multiclass}
    how |= {} if kernel == "linear" else {"gamma": 0.3}
    best = train(X, y, tol=1e-12, **how).predict(Z)
    shares = []
    for tol in (1e-2, 1e-4, 1e-8):
        m = train(X, y, tol=tol, **how)
        sure = m.certified(Z)
        assert (m.predict(Z)[sure] == best[sure]).all()
        shares.append(sure.mean())
    assert shares[-1] > 0.9


@pytest.mark.parametrize(
    ("y", "multiclass"), [([0, 1, 0, 0, 0, 0], "ovo"), ([0, 1, 2, 2, 2, 2], "ovr")]
)
def test_a_label_is_not_proven_if_the_optimum_is_known_to_choose_another(y, multiclass):
    """At zero, where the least time leaves a machine, the bias can be outside all that the best one
    may be: the optimum's labels are known, and are not the machine's."""
    X = 1e-3 * np.random.default_rng(3).standard_normal((6, 2))
    how = {"C": 0.05, "multiclass": multiclass}
    best = train(X, y, tol=1e-9, **how)
    for rounds in (1, 2, 3):
        m = train(X, y, max_iter=rounds, **how)
        sure = m.certified(X)
        assert (m.predict(X)[sure] == best.predict(X)[sure]).all()
    assert best.certified(X).any()


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_every_row_is_proven_wherever_it_stands(kernel, monkeypatch):
    monkeypatch.setattr(proven, "BLOCK", 7)
    X, y = half_space()
    m = train(X, y, kernel=kernel, tol=1e-8)
    sure, turned = m.certified(X), m.certified(X[::-1])
    assert sure.all()
    assert turned.all()
    for one in (0, 6, 7, len(X) - 1):
        assert m.certified(X[one : one + 1]).tolist() == [True]


def test_rows_may_be_sparse_and_wider_than_the_machine():
    X, y = half_space()
    wide = np.hstack([X, np.ones((40, 1))])
    m = train(csr_matrix(X), y, tol=1e-6)
    assert m.certified(csr_matrix(wide)).tolist() == m.certified(X).tolist()


def test_machines_in_files_prove_the_same_labels(tmp_path):
    X, y = three_classes()
    m = train(X, y, kernel="rbf", gamma=0.5, tol=1e-5)
    m.save(tmp_path / "m")
    assert load_model(tmp_path / "m").certified(X).tolist() == m.certified(X).tolist()


def test_the_radius_holds_the_optimum():
    X, y = half_space()
    best = solve(X, y, tol=1e-13)
    for tol in (1e-1, 1e-3, 1e-6):
        s = solve(X, y, tol=tol)
        assert np.linalg.norm(s.w - best.w) <= radius_of(s.objective, s.dual_objective)
        assert s.bias_range[0] <= best.b <= s.bias_range[1]


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("model", ["csvm", "lssvm"])
def test_the_best_bias_is_in_its_range_for_every_weight_in_the_ball(model, kernel):
    X, y = half_space()
    s = solve(X, y, model=model, kernel=kernel, tol=1e-2)
    finer = solve(X, y, model=model, kernel=kernel, tol=1e-12)
    assert s.bias_range[0] <= finer.b <= s.bias_range[1]
    widths = [of[1] - of[0] for of in (finer.bias_range, s.bias_range)]
    # at any tolerance LS-SVM is solved exactly, and rounding alone is between the two
    assert widths[0] <= widths[1] * (1 + (1e-4 if model == "lssvm" else 0.0))


@pytest.mark.parametrize("layout", [np.asarray, csr_matrix], ids=["dense", "CSR"])
@pytest.mark.parametrize("model", ["csvm", "lssvm"])
def test_the_range_of_a_bias_is_that_of_rows_as_they_are_where_columns_were_moved(model, layout):
    near, y = half_space()
    far = near + np.append(1e6, np.zeros(near.shape[1] - 1))
    s = solve(layout(far), y, model=model, tol=1e-6)
    best = solve(far - far.min(axis=0), y, model=model, tol=1e-13)
    assert s.b < s.bias_range[1]
    assert s.bias_range[0] <= best.b - best.w @ far.min(axis=0) <= s.bias_range[1]
    machine = train(layout(far), y, model=model, tol=1e-6)
    beyond = far + 1e9 * np.sign(best.w)  # so far on one side that its label is beyond doubt
    assert machine.certified(beyond).all()
    assert set(machine.predict(beyond)) == {1.0}
    there = far[(y < 0) & (best.decision_function(far - far.min(axis=0)) < 0)]
    low, high = proven._bounds(
        machine.record, machine.problems, proven._linear(machine.record, as_matrix(there))
    )
    assert (low[:, 0] < 0).all()
    assert (high[:, 0] > low[:, 0]).all()


@pytest.mark.parametrize("loss", [HINGE, SQUARE])
def test_the_range_of_a_bias_holds_all_of_least_loss(loss):
    rng = np.random.default_rng(1)
    for n in (2, 5, 12):
        y = np.where(np.arange(n) % 2, 1.0, -1.0)
        c, g, off = rng.random(n) + 0.1, rng.standard_normal(n), 0.3 * rng.random(n)
        low, high = bias_range(y, c, g, off, loss)
        for _ in range(20):
            f = g + off * rng.uniform(-1, 1, n)
            grid = np.append(np.linspace(-5, 5, 2001), y - f)
            r = 1.0 - y * (f + grid[:, None])
            losses = (r * r if loss == SQUARE else np.maximum(r, 0.0)) @ c
            best = grid[losses <= losses.min() + 1e-12]
            assert low - 0.005 <= best.min()
            assert best.max() <= high + 0.005


def test_without_a_row_of_one_class_the_bias_has_no_bound():
    ones = np.ones(3)
    assert bias_range(ones, ones, ones, 0 * ones, HINGE)[1] == np.inf
    assert bias_range(-ones, ones, ones, 0 * ones, HINGE)[0] == -np.inf


@pytest.mark.parametrize("loss", [HINGE, SQUARE])
def test_nothing_is_known_of_b_where_a_number_is_not_finite(loss):
    y, one = np.array([1.0, -1.0]), np.ones(2)
    everything = (-np.inf, np.inf)
    assert np.isfinite(bias_range(y, one, 0.5 * y, 0.1 * one, loss)).all()
    assert bias_range(y, one, np.array([np.inf, 0.0]), one, loss) == everything
    assert bias_range(y, one, np.array([0.0, np.nan]), one, loss) == everything
    assert bias_range(y, one, y, np.array([0.0, np.inf]), loss) == everything
    assert bias_range(y, 0.0 * one, y, one, loss) == everything
    # rows that cost nothing do not matter
    far = bias_range(y, np.array([1.0, 0.0]), np.array([0.0, np.nan]), 0.1 * one, SQUARE)
    assert far[0] <= 0.9 < 1.1 <= far[1]


@pytest.mark.parametrize(
    ("low", "high", "multiclass", "number"),
    [
        ([[0.1]], [[0.2]], "ovr", 0),
        ([[-0.1]], [[0.2]], "ovr", -1),
        ([[-0.3]], [[-0.2]], "ovr", 1),
        ([[1.0, 0.0, 0.0]], [[2.0, 0.9, 0.5]], "ovr", 0),
        ([[0.0, 0.0, 1.0]], [[0.5, 0.9, 2.0]], "ovr", 2),
        ([[1.0, 0.0, 0.0]], [[2.0, 1.1, 0.5]], "ovr", -1),
        ([[1.0, 1.0, -1.0]], [[2.0, 2.0, 1.0]], "ovo", 0),  # 0 has two votes whatever 1, 2 do
        ([[1.0, -1.0, 1.0]], [[2.0, 1.0, 2.0]], "ovo", 0),  # 0 is the first of equals
        ([[-1.0, -2.0, -2.0]], [[1.0, -1.0, -1.0]], "ovo", 2),
        ([[-1.0, -2.0, 1.0]], [[1.0, -1.0, 2.0]], "ovo", -1),
    ],
)
def test_a_class_is_decided_if_no_scores_between_the_bounds_choose_another(
    low, high, multiclass, number
):
    k = 2 if len(low[0]) == 1 else 3
    assert _decided(np.array(low), np.array(high), k, multiclass).tolist() == [number]


# ---------------------------------------------------------------- refusals and the command


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"model": "lpsvm"}, "labels are proven for csvm and lssvm, .* got lpsvm"),
        (
            {"kernel": "rbf", "approx": "nystroem", "landmarks": 5},
            "labels are proven for linear, poly and rbf machines, got an approximation",
        ),
    ],
)
def test_machines_without_a_proof_are_refused_in_a_line(how, message):
    X, y = half_space()
    with pytest.raises(InputError, match=f"^{message}$"):
        train(X, y, **how).certified(X)


def test_a_machine_without_a_certificate_is_refused(tmp_path):
    (tmp_path / "m").write_text(
        "solver_type L2R_L1LOSS_SVC_DUAL\nnr_class 2\nlabel 1 -1\nnr_feature 1\nbias -1\nw\n1\n"
    )
    with pytest.raises(InputError, match=r"^labels are proven for models of this program"):
        load_model(tmp_path / "m").certified(np.ones((1, 1)))


def test_a_machine_that_does_not_bound_its_bias_is_refused():
    X, y = half_space()
    m = train(X, y)
    del m.problems[0]["bias_range"]
    with pytest.raises(InputError, match=r"^the model must hold bounds of its bias"):
        m.certified(X)


def test_rows_of_another_width_are_refused():
    X, y = half_space()
    with pytest.raises(InputError, match=r"^X must have 5 columns, got 2$"):
        train(X, y).certified(X[:, :2])


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data_file(tmp_path / "two")
    done("train", "-q", "-e", "1e-5", "two", "m")
    return tmp_path


def test_the_command_marks_rows(here):
    outcome = done("predict", "--certified", "two", "m", "out")
    found = np.loadtxt(here / "out")
    m = load_model("m")
    X, _ = read_libsvm("two")
    sure = m.certified(X)
    assert found[:, 0].tolist() == m.predict(X).tolist()
    assert found[:, 1].tolist() == sure.tolist()
    assert sure.sum() > 0
    share = f"{100 * sure.mean():g}% ({sure.sum()}/60)"
    assert outcome.out.splitlines()[1] == f"Proven = {share} have the label of the exact optimum"
    facts = json.loads(done("predict", "--certified", "--json", "two", "m", "out").out)
    assert facts["certified"] == sure.sum()


def test_marks_go_with_labels_alone(here):
    words = "--certified goes with labels alone"
    assert words in refused("predict", "--certified", "--scores", "two", "m", "out")
    assert words in refused("predict", "--certified", "-b", "1", "two", "m", "out")


def test_an_lp_svm_is_refused_by_the_command(here):
    X, y = half_space()
    (here / "data").write_text(libsvm_text(X, y))
    done("train", "-q", "-s", "lpsvm", "data", "lp")
    assert "got lpsvm" in refused("predict", "--certified", "data", "lp", "out")


@pytest.mark.parametrize("b", [3.0, -3.0])
def test_what_margins_are_off_is_known_of_every_row(monkeypatch, b):
    """With a coarse unit of rounding, of which nothing is lost in this test."""
    unit, tiny = 2.0**-12, 2.0**-9
    monkeypatch.setattr(rounding, "growth", lambda k: unit * k)
    monkeypatch.setattr(finish_linear, "norm_above", np.linalg.norm)
    monkeypatch.setattr(finish_linear, "bias_range", lambda *given: given)
    X = np.array([[3.0, 4.0], [0.0, 2.0]])
    y, c, w = np.array([1.0, -1.0]), np.array([2.0, 0.5]), np.array([0.5, 1.0])
    problem = problem_in_memory(as_matrix(csr_matrix(X)), y, c, MODELS["csvm"](), True)
    margins = X @ w + b
    problem.shard.row_norms()  # before products are given a loss that can be seen
    monkeypatch.setattr(rounding, "TINY", tiny)
    found = finish_linear.linear_bias_range(problem, 2.0, w, b, margins)
    norms, cells = np.array([5.0, 2.0]), np.array([2.0, 1.0])
    off = 2.0 * norms + unit * (cells + 8.0) * norms * np.sqrt(1.25) + (cells + 1.0) * tiny
    off += 8.0 * unit * (np.abs(margins) + 3.0)
    for got, expected in zip(found, (y, c, X @ w, off, HINGE), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12)
    without = problem_in_memory(as_matrix(X), y, c, MODELS["csvm"](), False)
    assert finish_linear.linear_bias_range(without, 2.0, w, 0.0, margins) is None
    lp = problem_in_memory(as_matrix(X), y, c, MODELS["lpsvm"](), True)
    assert finish_linear.linear_bias_range(lp, 2.0, w, b, margins) is None


@pytest.mark.parametrize(("share", "dtype"), [(0.9, np.float32), (1.1, np.float64)])
def test_kernel_values_are_single_where_rounding_is_a_tenth_of_the_tolerance(share, dtype):
    X = as_matrix(np.array([[0.5, 0.0], [0.0, 0.25], [0.125, 0.5]]))
    spec = as_spec("rbf", 0.5, 0.0, 3, 2)
    plain, error = kernel_matrix.precision(X, Settings(kernel="rbf", tol=1.0), spec)
    assert plain is np.float32
    for C in (0.5, 1.0, 4.0):
        settings = Settings(kernel="rbf", C=C, tol=error * max(1.0, C) / (0.1 * share))
        assert kernel_matrix.precision(X, settings, spec)[0] is dtype
