"""`certify`: bounds of any model enclose the optimum that other solvers find, and the objective of
the model in rational arithmetic."""

import json
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from nesvm_jit import NESVC, InputError, certify, load_model, solve, train
from nesvm_jit.certifying import sums
from scipy.sparse import csr_matrix

from . import exact
from .commands import data_file, done, kernel_text, refused
from .data import half_space
from .optima import features_of, objective, optimum

NEAR = 1e-9  # share of the optimum, that other solvers find it to
POLISHED = 1e-6


def three_classes(n=90, seed=3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    return X, np.array([4.0, 2.0, 9.0])[
        np.argmax(X[:, :3] + 0.5 * rng.standard_normal((n, 3)), axis=1)
    ]


def rbf(X, Z, gamma):
    return np.exp(-gamma * np.square(X[:, None, :] - Z[None, :, :]).sum(axis=2))


def poly(X, Z, gamma, coef0, degree):
    return (gamma * X @ Z.T + coef0) ** degree


def kernel_values(X, Z, machine):
    r = machine.record
    return rbf(X, Z, r.gamma) if r.kernel == "rbf" else poly(X, Z, r.gamma, r.coef0, r.degree)


def sub_problems(y, classes, multiclass):
    """Rows and signs of every sub-problem."""
    if len(classes) == 2:
        return [(np.arange(len(y)), np.where(y == classes[0], 1.0, -1.0))]
    if multiclass == "ovr":
        return [(np.arange(len(y)), np.where(y == k, 1.0, -1.0)) for k in classes]
    members = [np.flatnonzero(y == k) for k in classes]
    return [
        (
            np.concatenate([members[i], members[j]]),
            np.repeat([1.0, -1.0], [len(members[i]), len(members[j])]),
        )
        for i, j in combinations(range(len(classes)), 2)
    ]


def encloses(bounds, best, within=None):
    """Whether bounds enclose an optimum, and the lower one is this near to it."""
    holds = bounds.dual_objective <= best * (1 + NEAR) and bounds.objective >= best * (1 - NEAR)
    return holds and (within is None or bounds.dual_objective >= best * (1 - within))


# ---------------------------------------------------------------- our own machines


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("model", ["csvm", "lpsvm", "lssvm"])
@pytest.mark.parametrize("data", [half_space, three_classes])
def test_bounds_of_linear_machines_enclose_the_optimum(data, model, bias):
    X, y = data()
    m = train(X, y, model=model, C=2.0, bias=bias, tol=1e-2)
    found = certify(m, X, y)
    assert (found.C, found.bias, found.model) == (2.0, "free" if bias else "none", model)
    for k, (rows, sign) in enumerate(sub_problems(y, m.classes, "ovr")):
        c = np.full(len(rows), 2.0)
        best = optimum(model, X[rows], sign, c, bias)
        point = m.record.weights[:, k], m.record.bias[k]
        assert encloses(found.problems[k], best, POLISHED)
        expected = exact.objective(exact.linear(model, X[rows], sign, c, bias), *point)
        assert expected <= Fraction(found.problems[k].objective) <= expected * (1 + Fraction(1e-10))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
@pytest.mark.parametrize("model", ["csvm", "lpsvm", "lssvm"])
def test_bounds_of_kernel_machines_enclose_the_optimum(model, kernel, bias):
    X, y = three_classes()
    how = {"gamma": 0.3, "coef0": 1.0, "degree": 2} if kernel == "poly" else {"gamma": 0.3}
    m = train(X, y, model=model, kernel=kernel, C=2.0, bias=bias, tol=1e-2, **how)
    found = certify(m, csr_matrix(X), y, polish=5.0)
    assert len(found.problems) == 3
    for bounds, (rows, sign) in zip(found.problems, sub_problems(y, m.classes, "ovo"), strict=True):
        K = kernel_values(X[rows], X[rows], m)
        features = K if model == "lpsvm" else features_of(K)
        best = optimum(model, features, sign, np.full(len(rows), 2.0), bias)
        assert encloses(bounds, best, 1e-2 if model == "lssvm" else POLISHED)


def test_coefficients_of_a_machine_are_its_dual_point_without_any_training():
    X, y = half_space(n=80)
    m = train(X, y, kernel="rbf", gamma=0.5, tol=1e-4)
    (bounds,) = certify(m, X, y).problems
    assert bounds.dual_point == "coefficients"
    assert bounds.passes <= 1.0
    assert bounds.gap <= 1.01e-4


def test_files_of_ours_are_certified_as_the_machine_is(tmp_path):
    X, y = three_classes()
    for kernel in ("linear", "rbf"):
        m = train(X, y, kernel=kernel, gamma=0.5 if kernel == "rbf" else None, C=3.0)
        m.save(tmp_path / "m")
        here, there = certify(m, X, y, polish=0), certify(str(tmp_path / "m"), X, y, polish=0)
        assert there.facts() | {"seconds": 0} == here.facts() | {"seconds": 0}


def test_precomputed_kernels_are_certified():
    X, y = half_space()
    K = X @ X.T
    m = train(K, y, kernel="precomputed", tol=1e-3)
    (bounds,) = certify(m, K, y, polish=5.0).problems
    assert encloses(bounds, optimum("csvm", features_of(K), y, np.ones(len(y)), True), POLISHED)


def test_an_approximation_is_certified_for_the_true_kernel():
    X, y = half_space(n=120)
    m = train(X, y, kernel="rbf", gamma=0.1, approx="nystroem", landmarks=30, tol=1e-6)
    (bounds,) = certify(m, X, y, polish=5.0).problems
    best = optimum("csvm", features_of(rbf(X, X, 0.1)), y, np.ones(len(y)), True)
    assert encloses(bounds, best, POLISHED)
    assert bounds.objective > best * (1 + 1e-6)  # the approximation is not the optimum


def test_weights_of_rows_and_classes_are_part_of_the_problem():
    X, y = half_space(n=60)
    weight = np.linspace(0.0, 2.0, 60)
    m = train(X, y, C=3.0, class_weight={1.0: 5.0}, sample_weight=weight)
    (bounds,) = certify(m, X, y, class_weight={1.0: 5.0}, sample_weight=weight).problems
    best = optimum("csvm", X, y, 3.0 * weight * np.where(y > 0, 5.0, 1.0), True)
    assert encloses(bounds, best, POLISHED)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("weight", [{2.0: 3.0, 9.0: 0.5}, "balanced"])
def test_weights_of_classes_are_kept_in_files_of_ours(tmp_path, weight, kernel):
    X, y = three_classes()
    m = train(X, y, kernel=kernel, gamma=0.5 if kernel == "rbf" else None, class_weight=weight)
    of = weight if weight != "balanced" else {k: 30.0 / (y == k).sum() for k in m.classes}
    kept = [of.get(k, 1.0) for k in m.classes]
    assert m.record.extra["class_weights"] == kept
    m.save(tmp_path / "m")
    known = certify(tmp_path / "m", X, y, polish=0.0)
    given = certify(m, X, y, polish=0.0, class_weight=dict(zip(m.classes, kept, strict=True)))
    assert known.facts() | {"seconds": 0} == given.facts() | {"seconds": 0}
    without = certify(m, X, y, polish=0.0, class_weight=dict.fromkeys(m.classes, 1.0))
    assert known.objective != without.objective
    assert "class_weights" not in train(X, y).record.extra


@pytest.mark.parametrize("kept", [[1.0], "many", [1.0, -2.0, 1.0], [1.0, 1.0, float("nan")]])
def test_damaged_weights_of_classes_are_refused(kept):
    X, y = three_classes()
    m = train(X, y)
    m.record.extra["class_weights"] = kept
    with pytest.raises(InputError, match="must say a weight for each of its classes"):
        certify(m, X, y)


@pytest.mark.parametrize("weight", [{"b": 3.0}, "balanced"])
def test_weights_of_classes_of_an_estimator_are_known(weight):
    pytest.importorskip("sklearn")
    X, y = half_space(n=60)
    names = np.where(y > 0, "a", "b")
    fitted = NESVC(kernel="linear", class_weight=weight).fit(X, names)
    of = weight if weight != "balanced" else {k: 30.0 / (names == k).sum() for k in "ab"}
    given = certify(fitted, X, names, class_weight={k: of.get(k, 1.0) for k in "ab"}, polish=0.0)
    assert certify(fitted, X, names, polish=0.0).objective == given.objective
    assert given.gap < 0.5


def test_duplicate_rows_are_matched_one_by_one():
    X, y = half_space(n=30)
    X, y = np.repeat(X, 3, axis=0), np.repeat(y, 3)
    m = train(X, y, kernel="rbf", gamma=0.5, tol=1e-6)
    m.support_rows = None
    found = certify(m, X, y)
    assert found.notes == ()
    assert found.gap <= 1.01e-6


# ---------------------------------------------------------------- bare weights


@pytest.mark.parametrize("bias", [True, False])
def test_any_weights_are_certified(bias):
    X, y = half_space()
    rng = np.random.default_rng(0)
    w, b = rng.standard_normal(5), 0.3 if bias else 0.0
    (bounds,) = certify((w, b), X, y, C=0.7, bias=bias).problems
    assert encloses(bounds, optimum("csvm", X, y, np.full(40, 0.7), bias), POLISHED)
    assert bounds.objective == pytest.approx(
        objective("csvm", X, y, np.full(40, 0.7), w, b), rel=1e-12
    )


def test_a_penalised_bias_is_the_weight_of_a_feature():
    X, y = half_space()
    w = np.ones(5) / 4
    (bounds,) = certify((w, 0.3), X, y, bias_feature=2.0).problems
    wide = np.hstack([X, np.full((40, 1), 2.0)])
    assert encloses(bounds, optimum("csvm", wide, y, np.ones(40), False), POLISHED)
    expected = objective("csvm", wide, y, np.ones(40), np.append(w, 0.15), 0.0)
    assert bounds.objective == pytest.approx(expected, rel=1e-12)


def test_the_optimum_has_a_gap_of_rounding_alone():
    X, y = half_space()
    s = solve(X, y, tol=1e-12)
    assert certify((s.w, s.b), X, y).gap < 1e-10


# ---------------------------------------------------------------- rational arithmetic


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("model", ["csvm", "lpsvm", "lssvm"])
def test_exact_bounds_are_inside_those_with_allowances(model, kernel):
    X, y = half_space(n=16, p=3)
    how = {} if kernel == "linear" else {"gamma": 0.5}
    m = train(X, y, model=model, kernel=kernel, C=2.0, **how)
    (plain,), (sharp,) = (certify(m, X, y, exact=e).problems for e in (False, True))
    assert sharp.exact
    assert plain.dual_objective <= sharp.dual_objective
    assert sharp.dual_objective <= sharp.objective <= plain.objective
    c = np.full(16, 2.0)
    if kernel == "linear":
        problem = exact.linear(model, X, y, c, True)
        sign = 1.0 if m.classes[0] == 1.0 else -1.0
        point = sign * m.record.weights[:, 0], sign * m.record.bias[0]
        P = exact.objective(problem, *point)
        assert Fraction(sharp.objective) == pytest.approx(P, rel=1e-15)
        assert Fraction(sharp.objective) >= P


def test_hostile_data_are_certified_truly():
    X, y = np.array([[7e6], [-21e6], [14e6]]), np.array([1.0, -1.0, 1.0])
    w = np.array([4.7e-8])
    (bounds,) = certify((w, 0.2), X, y).problems
    problem = exact.linear("csvm", X, y, np.ones(3), True)
    assert Fraction(bounds.objective) >= exact.objective(problem, w, 0.2)
    assert encloses(bounds, optimum("csvm", X, y, np.ones(3), True))


def test_exact_sums_are_refused_for_large_data(monkeypatch):
    assert sums.MOST == 2_000_000
    X, y = half_space(n=40)
    entries = np.count_nonzero(X)
    monkeypatch.setattr(sums, "MOST", entries - 1)
    message = f"^exact sums are for small data: at most {entries - 1} products"
    with pytest.raises(InputError, match=message):
        certify((X[0], 0.0), X, y, exact=True, polish=0)


# ---------------------------------------------------------------- notes and refusals


def test_a_machine_of_other_data_is_noted():
    X, y = half_space()
    m = train(X, y, kernel="rbf", gamma=0.5)
    found = certify(m, X + 1.0, y)
    assert found.notes[0].startswith(f"{m.n_support} of {m.n_support} support vectors are no rows")
    assert found.problems[0].dual_objective <= found.problems[0].objective


def test_coefficients_above_their_cost_are_noted():
    X, y = half_space()
    m = train(X, y, kernel="rbf", gamma=0.5, C=10.0)
    largest = f"{np.abs(m.record.coefs).max():.4g}"
    (note,) = certify(m, X, y, C=1.0).notes
    assert note.startswith(f"a coefficient of the model is {largest}, above the cost 1 of its row")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": [0.0] * 40}, "y must hold every class of the model, got no 1.0"),
        ({"y": [1.0, -1.0, 7.0] + [1.0] * 37}, "y must hold classes of the model alone, got 7.0"),
        ({"X": np.ones((40, 3))}, "X must have 5 columns, got 3"),
        ({"C": -1.0}, "C must be positive and finite, got -1.0"),
        ({"polish": -1.0}, "polish must"),
        ({"class_weight": {3: 1.0}}, "class_weight must be of classes of the model, got 3"),
        ({"model": 3}, "a model must be a file, a Machine, .* got int"),
        ({"model": (np.ones((2, 2)), 0.0)}, r"\(w, b\) must be a vector and a number, got shape"),
        ({"bias_feature": 0.0}, "bias_feature must be positive, got 0.0"),
    ],
)
def test_what_cannot_be_certified_is_refused_in_a_line(change, message):
    X, y = half_space()
    given = {"model": (np.ones(5), 0.0), "X": X, "y": y, **change}
    with pytest.raises(InputError, match=f"^{message}"):
        certify(**given)


# ---------------------------------------------------------------- the command


def test_the_command_prints_a_table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data_file(tmp_path / "three", labels=(1, 2, 3))
    done("train", "-q", "three", "m")
    lines = done("certify", "m", "three").out.splitlines()
    assert lines[0].startswith("C-SVM, linear, C = 1, free bias, ovr, 60 rows, ")
    assert lines[1].split() == (
        ["problem", "objective", "optimum", "at", "least", "gap", "dual", "point", "passes"]
    )
    assert [line.split()[:4] for line in lines[2:5]] == [
        [str(k), "against", "the", "rest"] for k in (1, 2, 3)
    ]
    assert lines[5].startswith("Proven gap = ")
    assert lines[5].endswith(", all rounding allowed for")
    assert done("certify", "--exact", "m", "three").out.endswith(", in rational arithmetic\n")


def test_the_json_of_the_command_is_what_the_library_finds(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data_file(tmp_path / "two")
    done("train", "-q", "-t", "rbf", "-c", "3", "-w1", "2", "two", "m")
    facts = json.loads(done("certify", "--json", "-w1", "2", "m", "two").out)
    assert (facts["C"], facts["kernel"], facts["bias"]) == (3.0, "rbf", "free")
    assert facts["gap"] <= 1e-3
    assert facts["problems"][0]["dual_point"] == "coefficients"
    assert facts["gap"] == pytest.approx(load_model("m").gap, rel=1e-6)


def test_notes_are_on_standard_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data_file(tmp_path / "two")
    done("train", "-q", "-t", "rbf", "-c", "3", "two", "m")
    outcome = done("certify", "-c", "1", "m", "two")
    assert outcome.err.startswith("nesvm-jit: note: a coefficient of the model is 3")


def test_precomputed_files_are_certified(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = half_space(n=20)
    (tmp_path / "K").write_text(kernel_text(X @ X.T, y))
    done("train", "-q", "-t", "precomputed", "K", "m")
    assert json.loads(done("certify", "--json", "m", "K").out)["gap"] <= 1e-3


def test_both_files_cannot_be_standard_input():
    assert "cannot both be standard input" in refused("certify", "-", "-")


def test_rows_that_stay_on_disk_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data_file(tmp_path / "two")
    done("train", "-q", "two", "m")
    done("convert", "-q", "two", "matrix")
    monkeypatch.setattr("nesvm_jit.files.training.memory_bytes", lambda: 0.0)
    assert refused("certify", "m", "matrix") == (
        "nesvm-jit: certify needs rows in memory, these stay on disk\n"
    )


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), (None, None, None, False, np.float64)),
        (("-c", "2"), (2.0, None, None, False, np.float64)),
        (("-w1", "3", "-w-1", "2"), (None, {1.0: 3.0, -1.0: 2.0}, None, False, np.float64)),
        (("--polish", "0"), (None, None, 0.0, False, np.float64)),
        (("--exact", "--float32"), (None, None, None, True, np.float32)),
    ],
)
def test_the_options_of_the_command_reach_the_library(tmp_path, monkeypatch, options, expected):
    monkeypatch.chdir(tmp_path)
    data_file(tmp_path / "two")
    done("train", "-q", "two", "m")
    asked = []

    def noted(machine, X, y, C, *, class_weight, polish, exact):
        asked.append((C, class_weight, polish, exact, X.dtype))
        return certify(machine, X, y, C, class_weight=class_weight, polish=0.0)

    monkeypatch.setattr("nesvm_jit.certifying.checker.certify", noted)
    done("certify", *options, "m", "two")
    assert asked == [expected]
