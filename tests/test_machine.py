"""`train`: machines of any labels and classes, against plain NumPy, other solvers and LIBSVM."""

import inspect
import os
import pickle
import signal
import threading
import time

import nesvm_jit
import numpy as np
import pytest
from nesvm_jit import InputError, load_model
from nesvm_jit.binary.solve import solve_checked
from nesvm_jit.machine import folds
from nesvm_jit.machine.multiclass import class_order
from nesvm_jit.settings import HALF_SQUARE, MODELS
from scipy.sparse import csr_matrix

from tests.endings import cross_validate, train

from . import oracle
from .data import corners
from .optima import objective, optimum

GAMMA, COEF0, DEGREE = 0.2, 1.0, 2
KERNELS = ("linear", "poly", "rbf", "precomputed")
OPTIONS = {"gamma": GAMMA, "coef0": COEF0, "degree": DEGREE}
every_kernel = pytest.mark.parametrize("kernel", KERNELS)
every_model = pytest.mark.parametrize("model", MODELS)


def gram(X, Z, kernel):
    """Kernel values; those of precomputed kernels are RBF's."""
    if kernel == "linear":
        return X @ Z.T
    return oracle.gram(X, Z, "poly" if kernel == "poly" else "rbf", GAMMA, COEF0, DEGREE)


def given(X, kernel):
    """What `train` is given for the rows X."""
    return gram(X, X, kernel) if kernel == "precomputed" else X


def fit(X, y, kernel="linear", **options):
    return train(given(X, kernel), y, kernel=kernel, **{**OPTIONS, **options})


def expansion(m, n):
    """β of every training row and sub-problem."""
    beta = np.zeros((n, m.record.coefs.shape[1]))
    beta[m.support_rows] = m.record.coefs
    return beta


def binary_problems(y, classes, multiclass):
    """Rows and signs of every sub-problem, in LIBSVM's order."""
    k = len(classes)
    if k == 2 or multiclass == "ovo":
        for i in range(k):
            for j in range(i + 1, k):
                rows = np.flatnonzero((y == classes[i]) | (y == classes[j]))
                yield rows, np.where(y[rows] == classes[i], 1.0, -1.0)
    else:
        for c in classes:
            yield np.arange(len(y)), np.where(y == c, 1.0, -1.0)


def best(model, kernel, X, sign, c):
    """The optimum by a solver that is not ours: K = ΦΦᵀ makes Φ the features of a linear one. Where
    the penalty is not ½‖w‖², they are the columns of K."""
    if kernel == "linear":
        return optimum(model, X, sign, c, True)
    K = gram(X, X, kernel)
    if model not in HALF_SQUARE:
        return optimum(model, K, sign, c, True)
    values, vectors = np.linalg.eigh(K)
    return optimum(model, vectors * np.sqrt(np.maximum(values, 0.0)), sign, c, True)


def attained(m, model, kernel, X, rows, sign, c, number):
    """The objective of a sub-problem, in plain NumPy."""
    b = m.record.bias[number]
    if kernel == "linear":
        return objective(model, X[rows], sign, c, m.record.weights[:, number], b)
    beta = expansion(m, len(X))[rows, number]
    K = gram(X[rows], X[rows], kernel)
    if model not in HALF_SQUARE:
        return objective(model, K, sign, c, beta, b)
    f = K @ beta
    r, penalty = 1 - sign * (f + b), 0.5 * beta @ f
    return penalty + np.sum(c * (r**2 if model == "lssvm" else np.maximum(0, r)))


# ---------------------------------------------------------------- optima and certificates


@pytest.mark.parametrize(("k", "multiclass"), [(2, None), (3, "ovr"), (4, "ovo")])
@every_kernel
@every_model
def test_every_sub_problem_is_solved_and_certified(model, kernel, k, multiclass):
    X, y = corners(k)
    m = fit(X, y, kernel, model=model, C=0.7, tol=1e-6, multiclass=multiclass)
    problems = list(binary_problems(y, class_order(y), multiclass))
    assert len(m.problems) == len(problems)
    for number, (rows, sign) in enumerate(problems):
        found, c = m.problems[number], np.full(len(rows), 0.7)
        P = attained(m, model, kernel, X, rows, sign, c, number)
        least = best(model, kernel, X[rows], sign, c)
        assert found["objective"] == pytest.approx(P, rel=1e-9)
        assert found["dual_objective"] <= least * (1 + 1e-8)
        assert least <= P * (1 + 1e-8)
        assert found["gap"] == pytest.approx(1 - found["dual_objective"] / P, abs=1e-9)
        assert found["gap"] <= 1e-6
        assert (found["certified"], found["status"]) == (True, "converged")
        assert found["n_samples"] == len(rows)
    assert m.gap == max(p["gap"] for p in m.problems)


@pytest.mark.parametrize(("kernel", "multiclass"), [("linear", "ovr"), ("rbf", "ovo")])
def test_by_default_linear_machines_are_one_against_the_rest_others_of_pairs(kernel, multiclass):
    X, y = corners(4)
    m = fit(X, y, kernel)
    assert m.record.multiclass == multiclass
    assert len(m.problems) == {"ovr": 4, "ovo": 6}[multiclass]


@every_kernel
@pytest.mark.parametrize("multiclass", ["ovr", "ovo"])
@pytest.mark.parametrize("k", [2, 4])
def test_scores_are_those_of_plain_numpy_and_decide(k, multiclass, kernel):
    X, y = corners(k)
    m = fit(X, y, kernel, multiclass=multiclass)
    Z, _ = corners(k, n=25, seed=1)
    columns = m.record.weights if kernel == "linear" else expansion(m, len(X))
    f = (Z if kernel == "linear" else gram(Z, X, kernel)) @ columns + m.record.bias
    given_Z = gram(Z, X, kernel) if kernel == "precomputed" else Z
    got = m.decision_function(given_Z)
    np.testing.assert_allclose(got if k > 2 else got[:, None], f, rtol=1e-10, atol=1e-12)
    if k == 2:
        chosen = np.where(f[:, 0] > 0, 0, 1)
    elif multiclass == "ovr":
        chosen = f.argmax(axis=1)
    else:
        votes, column = np.zeros((len(Z), k)), 0
        for i in range(k):
            for j in range(i + 1, k):
                votes[np.arange(len(Z)), np.where(f[:, column] > 0, i, j)] += 1
                column += 1
        chosen = votes.argmax(axis=1)
    np.testing.assert_array_equal(m.predict(given_Z), class_order(y)[chosen])


@every_model
@pytest.mark.parametrize("multiclass", ["ovr", "ovo"])
def test_a_precomputed_kernel_is_the_kernel(multiclass, model):
    X, y = corners(3)
    tol = 1e-10 if model == "lpsvm" else 1e-8
    a = fit(X, y, "rbf", model=model, multiclass=multiclass, tol=tol)
    b = fit(X, y, "precomputed", model=model, multiclass=multiclass, tol=tol)
    np.testing.assert_array_equal(a.support_rows, b.support_rows)
    K = gram(X, X, "rbf")
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(K), atol=1e-6)


def test_gamma_scale_is_that_of_all_rows_in_every_pair():
    X, y = corners(3)
    X[y == y[0]] *= 5
    gamma = 1 / (X.shape[1] * X.var())
    for A in (X, csr_matrix(X)):
        a = train(A, y, kernel="rbf", gamma="scale", tol=1e-8)
        b = train(A, y, kernel="rbf", gamma=gamma, tol=1e-8)
        assert a.record.gamma == pytest.approx(gamma)
        np.testing.assert_allclose(a.decision_function(A), b.decision_function(A), atol=1e-6)


def test_a_machine_is_shown_as_what_it_is_and_how_good():
    X, y = corners(3)[:2]
    m = fit(X, y, "rbf")
    what = "csvm, rbf kernel, 3 classes, 4 features"
    assert repr(m) == f"<Machine: {what}, gap {m.gap:.2e}>"
    m.record.extra.clear()  # as if another program had trained it
    assert repr(m) == f"<Machine: {what}, no certificate>"


def test_a_machine_without_support_vectors_scores_its_bias(tmp_path):
    X, y = corners(2)[0], np.tile([0.5, -3.0], 30)
    m = fit(X, y, "rbf", model="lpsvm", C=1e-6)
    assert m.n_support == 0
    np.testing.assert_array_equal(m.decision_function(X), np.full(len(X), m.record.bias[0]))
    m.save(tmp_path / "m")
    np.testing.assert_array_equal(load_model(tmp_path / "m").predict(X), m.predict(X))


# ---------------------------------------------------------------- labels and weights


@pytest.mark.parametrize(
    ("labels", "order"),
    [
        ((0.5, -3.0), [0.5, -3.0]),
        ((-1.0, 1.0), [1.0, -1.0]),
        ((1.0, -1.0), [1.0, -1.0]),
        ((1.0, 2.0), [1.0, 2.0]),
        ((1e10, 0.5, -3.0), [1e10, 0.5, -3.0]),
    ],
)
def test_labels_of_any_value_in_libsvms_order(labels, order):
    X, y = corners(len(labels), labels=labels)
    m = fit(X, y, "rbf", C=100.0)
    np.testing.assert_array_equal(m.classes, order)
    assert set(m.predict(X)) == set(labels)
    assert np.mean(m.predict(X) == y) > 0.9
    if len(labels) == 2:
        np.testing.assert_array_equal(m.decision_function(X) > 0, m.predict(X) == order[0])


def test_the_order_of_classes_may_be_given():
    X, y = corners(3)
    m = fit(X, y, tol=1e-8)
    turned = fit(X, y, tol=1e-8, classes=m.classes[::-1])
    np.testing.assert_array_equal(turned.classes, m.classes[::-1])
    scores = turned.decision_function(X)[:, ::-1]
    np.testing.assert_allclose(scores, m.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("multiclass", ["ovr", "ovo"])
def test_weights_of_classes_are_weights_of_their_rows(multiclass, kernel):
    X, y = corners(3)
    weights = {0.5: 3.0, -3.0: 0.2}
    options = {"multiclass": multiclass, "tol": 1e-8}
    rows = np.array([weights.get(label, 1.0) for label in y])
    a = fit(X, y, kernel, class_weight=weights, **options)
    b = fit(X, y, kernel, sample_weight=rows, **options)
    np.testing.assert_array_equal(a.decision_function(X), b.decision_function(X))
    counts = {c: len(y) / (3 * np.sum(y == c)) for c in np.unique(y)}
    a = fit(X, y, kernel, class_weight="balanced", **options)
    b = fit(X, y, kernel, class_weight=counts, **options)
    np.testing.assert_array_equal(a.decision_function(X), b.decision_function(X))


@every_kernel
@every_model
def test_a_weight_is_so_many_rows(model, kernel):
    X, y = corners(3)
    weight = np.random.default_rng(1).integers(3, size=len(y)).astype(float)
    rows = np.repeat(np.arange(len(y)), weight.astype(int))
    options = {"model": model, "tol": 1e-8, "classes": class_order(y)}
    a = fit(X, y, kernel, sample_weight=weight, **options)
    b = fit(X[rows], y[rows], kernel, **options)
    P, Q = ([p["objective"] for p in m.problems] for m in (a, b))
    np.testing.assert_allclose(P, Q, rtol=2e-8)
    if kernel != "linear":
        assert (weight[a.support_rows] > 0).all()
    if model != "lpsvm":  # whose optimum may be no single point
        Z = (gram(X, X, kernel), gram(X, X[rows], kernel)) if kernel == "precomputed" else (X, X)
        np.testing.assert_allclose(a.decision_function(Z[0]), b.decision_function(Z[1]), atol=2e-3)


# ---------------------------------------------------------------- layouts, precisions, threads


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
@every_model
def test_dense_sparse_and_both_precisions_agree(model, kernel):
    X, y = corners(3)
    X = X.astype(np.float32).astype(np.float64)
    kinds = [X, csr_matrix(X), X.astype(np.float32), csr_matrix(X.astype(np.float32))]
    tol = 1e-4 if model == "lpsvm" else 1e-6
    machines = [fit(A, y, kernel, model=model, tol=tol) for A in kinds]
    P = [[p["objective"] for p in m.problems] for m in machines]
    np.testing.assert_allclose(P, P[:1] * 4, rtol=2 * tol)
    first = machines[0].decision_function(X)
    for A in kinds:
        got = machines[0].decision_function(A)
        np.testing.assert_allclose(got, first, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("kernel", "model"),
    [("linear", "csvm"), ("linear", "lpsvm"), ("rbf", "csvm"), ("rbf", "lssvm"), ("rbf", "lpsvm")],
)
def test_same_bits_for_one_and_two_threads(kernel, model, small_chunks):
    X, y = corners(3, n=300 if model == "lpsvm" else 600)
    before = nesvm_jit.get_threads()
    found = []
    try:
        for threads in (1, before):
            nesvm_jit.set_threads(threads)
            m = fit(X, y, kernel, model=model, probability=True, max_iter=40)
            kept = m.record.weights if kernel == "linear" else m.record.coefs
            scores, p = m.decision_function(X), m.predict_proba(X)
            found.append([a.tobytes() for a in (kept, m.record.bias, scores, p)])
            found[-1] += [p["objective"] for p in m.problems]
    finally:
        nesvm_jit.set_threads(before)
    assert found[0] == found[1]


# ---------------------------------------------------------------- limits


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("multiclass", ["ovr", "ovo"])
@pytest.mark.parametrize(
    ("limit", "status"),
    [
        ({"max_iter": 1}, "iteration_limit"),
        ({"time_limit": 0.0}, "time_limit"),
        ({"callback": lambda row: True}, "interrupted"),
    ],
)
def test_limits_are_told_and_leave_a_valid_certificate(multiclass, kernel, limit, status, threads):
    X, y = corners(3)
    m = fit(X, y, kernel, tol=0.0, C=100.0, multiclass=multiclass, **limit)
    problems = binary_problems(y, m.classes, multiclass)
    for number, (rows, sign) in enumerate(problems):
        p, c = m.problems[number], np.full(len(rows), 100.0)
        assert (p["status"], p["certified"]) == (status, False)
        P = attained(m, "csvm", kernel, X, rows, sign, c, number)
        assert p["objective"] == pytest.approx(P, rel=1e-9)
        assert p["dual_objective"] <= best("csvm", kernel, X[rows], sign, c) * (1 + 1e-8)
    assert np.isfinite(m.decision_function(X)).all()


def test_a_callback_is_told_which_problem_it_is(threads):
    seen = set()
    X, y = corners(4)
    fit(X, y, "rbf", callback=lambda row: seen.add((row["problem"], row["problems"])))
    assert seen <= {(k, 6) for k in range(6)}
    assert seen


@pytest.mark.parametrize("probability", [False, True])
def test_the_time_limit_is_that_of_all_that_is_solved(monkeypatch, engines_only, probability):
    X, y = corners(3)
    limits, solve = [], solve_checked

    def slowly(X, y, c, settings, start, rows, before=None):
        limits.append(settings.time_limit)
        time.sleep(0.01)
        return solve(X, y, c, settings, start, rows, before)

    for module in (inspect.getmodule(train), folds):
        monkeypatch.setattr(module, "solve_checked", slowly)
    before = nesvm_jit.get_threads()
    nesvm_jit.set_threads(1)
    try:
        fit(X, y, time_limit=60.0, probability=probability)
    finally:
        nesvm_jit.set_threads(before)
    assert len(limits) == (18 if probability else 3)
    left = limits * np.arange(len(limits), 0, -1)  # each fit has its share of it
    assert left[0] == pytest.approx(60.0, abs=1.0)
    assert np.all(np.diff(left) <= -0.01)


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize("multiclass", ["ovr", "ovo"])
def test_interrupted_machines_are_the_best_so_far(multiclass, threads):
    X, y = corners(4, n=400)
    hard = {"C": 1e4, "tol": 0.0, "solver": "homotopy", "mu_end": 1e-12, "multiclass": multiclass}
    train(X, y, **{**hard, "max_iter": 2})
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    m = train(X, y, max_iter=10**7, time_limit=60.0, **hard)
    assert {p["status"] for p in m.problems} == {"interrupted"}
    for number, (rows, sign) in enumerate(binary_problems(y, m.classes, multiclass)):
        c = np.full(len(rows), 1e4)
        P = attained(m, "csvm", "linear", X, rows, sign, c, number)
        assert m.problems[number]["objective"] == pytest.approx(P, rel=1e-9)
        assert m.problems[number]["dual_objective"] <= P
    assert np.isin(m.predict(X), y).all()


# ---------------------------------------------------------------- what cannot be trained


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.full(60, 0.5)}, "y must hold at least 2 classes, got only 0.5"),
        ({"X": np.zeros((0, 4)), "y": []}, "y must hold at least 2 classes, got no rows"),
        ({"y": np.ones(3)}, r"y must have length 60, got shape \(3,\)"),
        ({"y": np.full(60, np.nan)}, "y must be finite, got NaN or infinity"),
        ({"y": ["a"] * 60}, "y must hold real numbers, got"),
        ({"X": np.full((60, 4), np.nan)}, "X must be finite"),
        ({"X": [["a"]]}, "X must"),
        ({"class_weight": {5.0: 2.0}}, "class_weight must map the labels to weights, got label 5"),
        ({"class_weight": {0.5: -1.0}}, "class_weight of 0.5 must be zero or positive"),
        ({"class_weight": "even"}, "class_weight must be one of balanced, got 'even'"),
        ({"class_weight": {0.5: 0.0}}, "class 0.5 must have a row of positive weight"),
        ({"sample_weight": np.ones(3)}, "sample_weight must have length 60"),
        ({"sample_weight": -np.ones(60)}, "sample_weight must not be negative"),
        ({"sample_weight": np.zeros(60)}, "must have a row of positive weight"),
        ({"multiclass": "all"}, "multiclass must be one of ovo, ovr, got 'all'"),
        ({"classes": [0.5, -3.0]}, "classes must be the labels in y, each once"),
        ({"classes": [0.5, -3.0, 1e10, 1e10]}, "classes must be the labels in y, each once"),
        ({"kernel": "precomputed"}, "a precomputed kernel must be square, got 60 rows and 4"),
        ({"kernel": "rbf", "gamma": -1.0}, "gamma must be"),
        ({"kernel": "rbf", "gamma": "wide"}, "gamma must be one of scale, auto, got 'wide'"),
        ({"C": 0.0}, "C must be positive and finite"),
        ({"warm": "one"}, "warm must be a Machine"),
        ({"seed": -1, "probability": True}, "seed must be a whole number"),
    ],
)
def test_wrong_arguments_are_one_clear_line(change, message):
    X, y = corners(3)
    with pytest.raises(InputError, match=message) as e:
        train(**{"X": X, "y": y, **change})
    assert "\n" not in str(e.value)


def test_a_machine_to_start_from_must_have_the_same_shape():
    X, y = corners(4)
    warm = train(X, y)
    cold = train(X, y, tol=1e-6)
    again = train(X, y, tol=1e-6, warm=cold)
    assert sum(p["iterations"] for p in again.problems) < sum(
        p["iterations"] for p in cold.problems
    )
    with pytest.raises(InputError, match="the machine to start from must have 3 features"):
        train(X[:, :3], y, warm=warm)
    with pytest.raises(InputError, match="and 6 problems, got 4 and 4"):
        train(X, y, multiclass="ovo", warm=warm)


# ---------------------------------------------------------------- files


@pytest.mark.parametrize("probability", [False, True])
@pytest.mark.parametrize(("k", "multiclass"), [(2, None), (3, "ovr"), (4, "ovo")])
@every_kernel
@every_model
def test_a_saved_machine_scores_the_same_bits(tmp_path, model, kernel, k, multiclass, probability):
    X, y = corners(k, n=40)
    asked = {"multiclass": multiclass, "probability": probability, "max_iter": 10}
    m = fit(X, y, kernel, model=model, **asked)
    m.save(tmp_path / "m")
    again = load_model(tmp_path / "m")
    Z = given(X, kernel)
    np.testing.assert_array_equal(again.decision_function(Z), m.decision_function(Z))
    np.testing.assert_array_equal(again.predict(Z), m.predict(Z))
    np.testing.assert_array_equal(again.classes, m.classes)
    assert again.problems == m.problems
    assert again.record.multiclass == m.record.multiclass or k == 2
    if probability:
        np.testing.assert_array_equal(again.predict_proba(Z), m.predict_proba(Z))
    else:
        with pytest.raises(InputError, match="the model has no probabilities"):
            again.predict_proba(Z)


@every_kernel
def test_a_pickled_machine_scores_the_same_bits(kernel):
    X, y = corners(3)
    m = fit(X, y, kernel)
    Z = given(X, kernel)
    fresh = pickle.loads(pickle.dumps(m))
    m.predict(Z)
    used = pickle.loads(pickle.dumps(m))
    for again in (fresh, used):
        np.testing.assert_array_equal(again.decision_function(Z), m.decision_function(Z))
        assert again.problems == m.problems


# ---------------------------------------------------------------- features not seen


def test_linear_machines_leave_out_features_that_training_did_not_see():
    X, y = corners(3)
    m = train(csr_matrix(X), y)
    wide = csr_matrix(np.hstack([X, np.full((len(X), 3), 9.0)]))
    got = m.decision_function(wide)
    np.testing.assert_allclose(got, m.decision_function(X), rtol=1e-12, atol=1e-14)
    narrow = np.hstack([X[:, :2], np.zeros((len(X), 2))])
    got = m.decision_function(csr_matrix(X[:, :2]))
    np.testing.assert_allclose(got, m.decision_function(narrow), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_kernels_count_features_that_training_did_not_see(kernel):
    X, y = corners(3)
    m = fit(csr_matrix(X), y, kernel)
    beta = expansion(m, len(X))
    wide = np.hstack([X, np.full((len(X), 3), 0.5)])
    f = gram(wide, np.hstack([X, np.zeros((len(X), 3))]), kernel) @ beta + m.record.bias
    np.testing.assert_allclose(m.decision_function(csr_matrix(wide)), f, rtol=1e-10, atol=1e-12)
    narrow = np.hstack([X[:, :2], np.zeros((len(X), 2))])
    f = gram(narrow, X, kernel) @ beta + m.record.bias
    got = m.decision_function(csr_matrix(X[:, :2]))
    np.testing.assert_allclose(got, f, rtol=1e-10, atol=1e-12)


@every_kernel
def test_dense_rows_of_another_width_are_refused(kernel):
    X, y = corners(3)
    m = fit(X, y, kernel)
    width = len(X) if kernel == "precomputed" else 4
    for p in (width - 1, width + 1):
        with pytest.raises(InputError, match=f"X must have {width} columns, got {p}"):
            m.predict(np.zeros((2, p)))
    assert m.predict(np.zeros((0, width))).shape == (0,)
    assert m.predict(csr_matrix((0, width))).shape == (0,)


# ---------------------------------------------------------------- cross-validation


def test_cross_validation_is_that_of_machines_without_the_fold():
    X, y = corners(3)
    for kernel in ("linear", "rbf", "precomputed"):
        options = {"kernel": kernel, "tol": 1e-6, **OPTIONS}
        cv = cross_validate(given(X, kernel), y, 4, seed=3, **options)
        for k in range(4):
            out = cv.folds == k
            m = fit(X[~out], y[~out], kernel, tol=1e-6, classes=class_order(y))
            Z = gram(X[out], X[~out], kernel) if kernel == "precomputed" else X[out]
            np.testing.assert_array_equal(cv.predicted[out], m.predict(Z))
            assert cv.accuracies[k] == np.mean(cv.predicted[out] == y[out])
        assert cv.accuracy == np.mean(cv.predicted == y)
        assert max(cv.gaps) <= 1e-6
        assert cv.status == "converged"


def test_cross_validation_is_the_same_for_the_same_seed():
    X, y = corners(3)
    a, b = (cross_validate(X, y, 5, seed=7, sample_weight=np.ones(60)) for _ in range(2))
    np.testing.assert_array_equal(a.predicted, b.predicted)
    np.testing.assert_array_equal(a.folds, b.folds)
    assert (a.folds != cross_validate(X, y, 5, seed=8).folds).any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_folds": 61}, r"n_folds must be a whole number from 2 to 60 \(the number of rows\)"),
        ({"n_folds": 1}, "n_folds must be a whole number from 2"),
        ({"y": np.r_[1.0, np.zeros(59)]}, "leaves fewer than 2 classes to train on"),
        (
            {"class_weight": {99.0: 2.0}},
            "class_weight must map the labels to weights, got label 99",
        ),
        ({"sample_weight": [1.0]}, "sample_weight must have length 60"),
    ],
)
def test_folds_that_cannot_be_are_one_clear_line(change, message):
    X, y = corners(3)
    with pytest.raises(InputError, match=message):
        cross_validate(**{"X": X, "y": y, "n_folds": 5, **change})


def test_a_fold_may_lack_a_class_that_has_a_weight():
    X, y = corners(3)
    y = np.r_[5.0, np.where(y[1:] == 0.5, -3.0, y[1:])]
    cv = cross_validate(X, y, 5, class_weight={5.0: 2.0})
    assert not (cv.predicted == 5.0)[0]


# ---------------------------------------------------------------- probabilities


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("multiclass", ["ovr", "ovo"])
@pytest.mark.parametrize("k", [2, 4])
def test_probabilities_sum_to_one_and_follow_the_scores(k, multiclass, kernel):
    X, y = corners(k)
    m = fit(X, y, kernel, multiclass=multiclass, probability=True)
    p = m.predict_proba(X)
    assert p.shape == (len(X), k)
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    if k == 2:
        order = np.argsort(m.decision_function(X))
        assert (np.diff(p[order, 0]) >= 0).all()
    again = fit(X, y, kernel, multiclass=multiclass, probability=True)
    np.testing.assert_array_equal(again.predict_proba(X), p)


def real(name):
    datasets = pytest.importorskip("sklearn.datasets")
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    order = np.random.default_rng(0).permutation(len(y))[:1000]
    X, y = X[order], y[order].astype(float)
    half = len(y) // 2
    return X[:half], y[:half], X[half:], y[half:]


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("breast_cancer", marks=pytest.mark.slow),
        "iris",
        pytest.param("digits", marks=pytest.mark.slow),
    ],
)
def test_brier_scores_are_libsvms(name, kernel):
    svm = pytest.importorskip("libsvm.svmutil")
    X, y, Z, z = real(name)
    ours, theirs = [], []
    for seed in range(4):  # folds are drawn at random, LIBSVM's too: one draw may be 0.01 off
        m = train(X, y, kernel=kernel, multiclass="ovo", probability=True, seed=seed)
        ours.append(oracle.brier(m.predict_proba(Z), np.argmax(m.classes == z[:, None], axis=1)))
        model = svm.svm_train(y, csr_matrix(X), f"-t {2 if kernel == 'rbf' else 0} -b 1 -q")
        p = svm.svm_predict(z, csr_matrix(Z), model, "-b 1 -q")[2]
        labels = np.array(model.get_labels())
        theirs.append(oracle.brier(np.array(p), np.argmax(labels == z[:, None], axis=1)))
    assert abs(np.mean(ours) - np.mean(theirs)) < 0.01
