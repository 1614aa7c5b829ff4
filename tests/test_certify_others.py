"""`certify` on models of LIBSVM, LIBLINEAR and scikit-learn: bounds enclose the optimum of the
problem that they solved, found by another solver."""

import numpy as np
import pytest
from nesvm_jit import InputError, certify, read_libsvm

from .data import half_space
from .optima import features_of, optimum
from .test_certify import POLISHED, encloses, rbf, sub_problems, three_classes
from .test_peers import LIBLINEAR, LIBSVM, Programs

svm = pytest.importorskip("sklearn.svm")


@pytest.fixture
def libsvm():
    return Programs(LIBSVM)


@pytest.fixture
def liblinear():
    return Programs(LIBLINEAR)


def trained(program, options, data, path):
    """The data as the program has read it, and its model."""
    program.fit(options, *data, path)
    X, y = read_libsvm(f"{path}.x")
    return X, y


# ---------------------------------------------------------------- LIBSVM


@pytest.mark.parametrize("data", [half_space, three_classes])
@pytest.mark.parametrize("options", ["-t 0", "-t 2 -g 0.3", "-t 2 -g 0.3 -e 0.5"])
def test_models_of_svm_train(libsvm, tmp_path, options, data):
    X, y = trained(libsvm, f"{options} -c 2", data(), tmp_path / "m")
    found = certify(tmp_path / "m", X, y, C=2.0, polish=5.0)
    classes = [p.classes for p in found.problems]
    labels = [classes[0][0], *(pair[1] for pair in classes[: len(np.unique(y)) - 1])]
    assert found.notes == ()
    dense = X.toarray()
    for bounds, (rows, sign) in zip(found.problems, sub_problems(y, labels, "ovo"), strict=True):
        features = (
            dense[rows] if "-t 0" in options else features_of(rbf(dense[rows], dense[rows], 0.3))
        )
        best = optimum("csvm", features, sign, np.full(len(rows), 2.0), True)
        assert encloses(bounds, best, POLISHED)


def test_coefficients_of_libsvm_are_a_dual_point_in_two_passes(libsvm, tmp_path):
    X, y = trained(libsvm, "-t 0 -e 1e-5", half_space(n=200), tmp_path / "m")
    (bounds,) = certify(tmp_path / "m", X, y).problems
    assert (bounds.dual_point, bounds.passes) == ("coefficients", 2.0)
    assert bounds.gap < 1e-5


def test_support_vectors_of_which_eight_digits_are_printed_are_recognised(libsvm, tmp_path):
    rng = np.random.default_rng(0)
    data = rng.standard_normal((80, 3)), np.where(rng.random(80) < 0.5, 1.0, -1.0)
    X, y = trained(libsvm, "-t 2 -g 0.5 -e 1e-6", data, tmp_path / "m")
    found = certify(tmp_path / "m", X, y)
    assert found.notes == ()
    assert found.problems[0].dual_point == "coefficients"
    assert found.gap < 1e-5
    assert certify(tmp_path / "m", X, y, exact=True).gap == pytest.approx(found.gap, rel=1e-3)


def test_class_weights_of_svm_train(libsvm, tmp_path):
    X, y = trained(libsvm, "-t 0 -c 2 -w1 3 -e 1e-4", half_space(), tmp_path / "m")
    (bounds,) = certify(tmp_path / "m", X, y, C=2.0, class_weight={1: 3.0}).problems
    best = optimum("csvm", X.toarray(), y, np.where(y > 0, 6.0, 2.0), True)
    assert encloses(bounds, best, 1e-3)


@pytest.mark.parametrize(
    ("options", "message"), [("-s 1 -n 0.1", "got a model of type nu_svc"), ("-t 3", "sigmoid")]
)
def test_other_models_of_svm_train_are_refused(libsvm, tmp_path, options, message):
    X, y = trained(libsvm, options, half_space(), tmp_path / "m")
    with pytest.raises(InputError, match=message):
        certify(tmp_path / "m", X, y)


# ---------------------------------------------------------------- LIBLINEAR


@pytest.mark.parametrize("data", [half_space, three_classes])
@pytest.mark.parametrize(("options", "feature"), [("", None), ("-B 1", 1.0), ("-B 2.5", 2.5)])
def test_models_of_liblinear(liblinear, tmp_path, options, feature, data):
    X, y = trained(liblinear, f"-s 3 -c 2 {options}", data(), tmp_path / "m")
    found = certify(tmp_path / "m", X, y, C=2.0, polish=5.0)
    wide = X.toarray()
    if feature is not None:
        wide = np.hstack([wide, np.full((len(y), 1), feature)])
    assert found.bias == ("none" if feature is None else "penalised")
    labels = [p.classes[0] for p in found.problems]
    if len(labels) == 1:
        labels = found.problems[0].classes
    for bounds, (_, sign) in zip(found.problems, sub_problems(y, labels, "ovr"), strict=True):
        best = optimum("csvm", wide, sign, np.full(len(y), 2.0), False)
        assert encloses(bounds, best, POLISHED)


def test_class_weights_of_liblinear_are_not_those_of_the_rest(liblinear, tmp_path):
    X, y = trained(liblinear, "-s 3 -w2 3 -w4 5", three_classes(), tmp_path / "m")
    found = certify(tmp_path / "m", X, y, class_weight={2: 3.0, 4: 5.0})
    weights = {2.0: 3.0, 4.0: 5.0, 9.0: 1.0}
    assert {p.classes[0] for p in found.problems} == {*weights}
    for bounds in found.problems:
        (label,) = bounds.classes
        sign = np.where(y == label, 1.0, -1.0)
        c = np.where(y == label, weights[label], 1.0)
        assert encloses(bounds, optimum("csvm", X.toarray(), sign, c, False), POLISHED)


@pytest.mark.parametrize("solver", [0, 1, 2, 4, 5, 6, 7])
def test_other_models_of_liblinear_are_refused(liblinear, tmp_path, solver):
    X, y = trained(liblinear, f"-s {solver}", three_classes(), tmp_path / "m")
    with pytest.raises(InputError, match="of LIBLINEAR's solvers that is -s 3"):
        certify(tmp_path / "m", X, y)


# ---------------------------------------------------------------- scikit-learn


@pytest.mark.parametrize("weights", [None, "balanced"])
@pytest.mark.parametrize("data", [half_space, three_classes])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_models_of_svc(kernel, data, weights):
    X, y = data()
    m = svm.SVC(kernel=kernel, gamma=0.3, C=2.0, class_weight=weights).fit(X, y)
    found = certify(m, X, y, polish=5.0)
    labels = m.classes_[::-1] if len(m.classes_) == 2 else m.classes_
    counts = {k: np.count_nonzero(y == k) for k in labels}
    each = {k: len(y) / (len(labels) * n) if weights else 1.0 for k, n in counts.items()}
    c = 2.0 * np.array([each[k] for k in y])
    for bounds, (rows, sign) in zip(found.problems, sub_problems(y, labels, "ovo"), strict=True):
        features = X[rows] if kernel == "linear" else features_of(rbf(X[rows], X[rows], 0.3))
        assert encloses(bounds, optimum("csvm", features, sign, c[rows], True), POLISHED)
    assert found.gap < 1e-2


@pytest.mark.parametrize("data", [half_space, three_classes])
@pytest.mark.parametrize("scaling", [None, 1.0, 3.0])
def test_models_of_linear_svc(data, scaling):
    X, y = data()
    how = {"fit_intercept": False} if scaling is None else {"intercept_scaling": scaling}
    m = svm.LinearSVC(loss="hinge", C=2.0, max_iter=10**6, random_state=0, **how).fit(X, y)
    found = certify(m, X, y, polish=5.0)
    wide = X if scaling is None else np.hstack([X, np.full((len(y), 1), scaling)])
    labels = m.classes_[::-1] if len(m.classes_) == 2 else m.classes_
    for bounds, (_, sign) in zip(found.problems, sub_problems(y, labels, "ovr"), strict=True):
        assert encloses(bounds, optimum("csvm", wide, sign, np.full(len(y), 2.0), False), POLISHED)
    assert found.gap < 1e-2


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_an_svc_of_another_cost_is_noted(kernel):
    X, y = half_space()
    m = svm.SVC(kernel=kernel, gamma=0.3, C=3.0).fit(X, y)
    assert certify(m, X, y).notes == ()
    (note,) = certify(m, X, y, C=1.0).notes
    assert note.startswith("a coefficient of the model is 3, above the cost 1 of its row")


def test_labels_may_be_words():
    X, y = three_classes()
    names = np.array([f"class {k:g}" for k in y])
    m = svm.SVC(gamma=0.3).fit(X, names)
    found = certify(m, X, names)
    assert found.problems[0].classes == ("class 2", "class 4")
    assert found.gap == certify(svm.SVC(gamma=0.3).fit(X, y), X, y).gap


def test_a_trained_nesvc_is_its_machine():
    nesvc = pytest.importorskip("nesvm_jit").NESVC
    X, y = three_classes()
    m = nesvc(kernel="rbf", gamma=0.3).fit(X, y)
    found = certify(m, X, y)
    assert found.gap <= 1.01e-3
    assert found.problems[0].objective == pytest.approx(
        certify(m.machine_, X, np.searchsorted(m.classes_, y)).problems[0].objective
    )


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda: svm.LinearSVC(), "that is loss='hinge', got LinearSVC of loss squared_hinge"),
        (lambda: svm.NuSVC(nu=0.1), "got NuSVC"),
        (lambda: svm.SVC(kernel="sigmoid"), "the kernel must be linear, poly, rbf or precomputed"),
        (lambda: pytest.importorskip("sklearn.linear_model").LogisticRegression(), "got Logistic"),
        (lambda: svm.OneClassSVM(), "got OneClassSVM"),
    ],
)
def test_other_models_of_scikit_learn_are_refused(model, message):
    X, y = half_space()
    with pytest.raises(InputError, match=message):
        certify(model().fit(X, y), X, y)


def test_a_model_that_was_not_trained_is_refused():
    X, y = half_space()
    with pytest.raises(InputError, match="a trained classifier"):
        certify(svm.SVC(), X, y)
