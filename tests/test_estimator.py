"""NESVC as scikit-learn users know estimators."""

import pickle
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_matrix

sklearn = pytest.importorskip("sklearn")

from nesvm_jit import NESVC  # noqa: E402
from sklearn.base import clone  # noqa: E402
from sklearn.datasets import load_breast_cancer, load_iris  # noqa: E402
from sklearn.exceptions import ConvergenceWarning, NotFittedError  # noqa: E402
from sklearn.metrics.pairwise import rbf_kernel  # noqa: E402
from sklearn.model_selection import GridSearchCV, cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler, scale  # noqa: E402
from sklearn.svm import SVC  # noqa: E402
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402

DATA = {"iris": load_iris, "breast_cancer": load_breast_cancer}
every_kernel = pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
every_data = pytest.mark.parametrize("name", sorted(DATA))


def standardised(name):
    X, y = DATA[name](return_X_y=True)
    return scale(X), y


def failing_as_svc(estimator):
    """Checks that scikit-learn expects its SVC to fail too."""
    if estimator.kernel == "linear":
        return {}
    reason = "weights and repeated rows agree to tol, the check asks for 1e-7; SVC fails it too"
    return {f"check_sample_weight_equivalence_on_{k}_data": reason for k in ("dense", "sparse")}


# Rows with 64-bit indices, for which all that a kernel machine needs is compiled: half a minute.
LONG_CHECKS = ("check_estimator_sparse_array", "check_estimator_sparse_matrix")


def is_long(check):
    estimator, function = getattr(check, "values", check)
    return estimator.kernel == "rbf" and function.func.__name__ in LONG_CHECKS


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    CHECKS = parametrize_with_checks(
        [NESVC(), NESVC(kernel="rbf")], expected_failed_checks=failing_as_svc
    )
    EVERY_CHECK = list(CHECKS.args[1])


def checks(long):
    chosen = [check for check in EVERY_CHECK if is_long(check) == long]
    return pytest.mark.parametrize(CHECKS.args[0], chosen, **CHECKS.kwargs)


@checks(long=False)
def test_scikit_learns_own_checks(estimator, check):
    assert check(estimator) is None  # it raises what it finds


@pytest.mark.slow
@checks(long=True)
def test_scikit_learns_own_checks_of_large_indices(estimator, check):
    assert check(estimator) is None


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_weights_are_repeated_rows_at_a_tight_tolerance(kernel):
    X, y = standardised("iris")
    weight = np.random.default_rng(0).integers(4, size=len(y))
    rows = np.repeat(np.arange(len(y)), weight)
    a = NESVC(kernel=kernel, tol=1e-9).fit(X, y, sample_weight=weight)
    b = NESVC(kernel=kernel, tol=1e-9, gamma=a.machine_.record.gamma or "scale")
    b.fit(X[rows], y[rows])
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), atol=1e-3)


# ---------------------------------------------------------------- attributes


@every_data
def test_linear_attributes(name):
    X, y = standardised(name)
    m = NESVC().fit(X, y)
    k = len(np.unique(y))
    rows = 1 if k == 2 else k
    assert m.coef_.shape == (rows, X.shape[1])
    assert m.intercept_.shape == (rows,)
    f = X @ m.coef_.T + m.intercept_
    got = m.decision_function(X)
    np.testing.assert_allclose(got if k > 2 else got[:, None], f, rtol=1e-10, atol=1e-10)
    chosen = f.argmax(axis=1) if k > 2 else (f[:, 0] > 0).astype(int)
    np.testing.assert_array_equal(m.predict(X), m.classes_[chosen])
    assert 0 <= m.gap_ <= 1e-3
    assert 0 < m.dual_objective_ <= m.objective_
    assert m.n_iter_ >= 1
    assert m.n_features_in_ == X.shape[1]
    assert not hasattr(m, "dual_coef_")


@every_data
@pytest.mark.parametrize("kernel", ["poly", "rbf"])
def test_kernel_attributes(name, kernel):
    X, y = standardised(name)
    m = NESVC(kernel=kernel, gamma=0.1, coef0=1.0, decision_function_shape="ovo").fit(X, y)
    k = len(np.unique(y))
    assert m.dual_coef_.shape == (k * (k - 1) // 2, len(m.support_))
    np.testing.assert_array_equal(m.support_vectors_, X[m.support_])
    K = rbf_kernel(X, m.support_vectors_, 0.1)
    if kernel == "poly":
        K = (0.1 * X @ m.support_vectors_.T + 1) ** 3
    f = K @ m.dual_coef_.T + m.intercept_
    got = m.decision_function(X)
    np.testing.assert_allclose(got if k > 2 else got[:, None], f, rtol=1e-9, atol=1e-9)
    assert 0 <= m.gap_ <= 1e-3
    assert 0 < m.dual_objective_ <= m.objective_
    assert not hasattr(m, "coef_")


def test_attributes_of_another_kernel_are_gone_after_a_new_fit():
    X, y = standardised("iris")
    m = NESVC(warm_start=True).fit(X, y)
    m.set_params(kernel="rbf").fit(X, y)
    assert not hasattr(m, "coef_")
    m.set_params(kernel="linear").fit(X, y)
    assert not hasattr(m, "support_")
    assert hasattr(m, "coef_")


@every_data
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("shape", ["ovo", "ovr"])
def test_scores_and_signs_are_svcs(name, kernel, shape):
    X, y = standardised(name)
    both = {"kernel": kernel, "gamma": "scale", "decision_function_shape": shape}
    ours = NESVC(multiclass="ovo", tol=1e-10, **both).fit(X, y)
    theirs = SVC(tol=1e-9, **both).fit(X, y)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=2e-3)
    if name == "breast_cancer":
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-3)
    if name == "breast_cancer" and kernel == "rbf":
        full = np.zeros(len(y))
        full[theirs.support_] = theirs.dual_coef_[0]
        np.testing.assert_allclose(ours.dual_coef_[0], full[ours.support_], atol=2e-3)


@pytest.mark.parametrize("shape", ["ovo", "ovr"])
def test_unknown_shapes_of_scores_are_refused(shape):
    X, y = standardised("iris")
    m = NESVC(kernel="rbf", decision_function_shape=shape).fit(X, y)
    assert m.decision_function(X).shape == (len(X), 3)
    with pytest.raises(ValueError, match="decision_function_shape must be 'ovr' or 'ovo'"):
        m.set_params(decision_function_shape="both").decision_function(X)


# ---------------------------------------------------------------- fitting


@every_data
def test_a_warm_start_saves_rounds(name):
    X, y = standardised(name)
    m = NESVC(warm_start=True, tol=1e-6).fit(X, y)
    cold = m.n_iter_
    assert m.fit(X, y).n_iter_ < 0.5 * cold
    assert NESVC(tol=1e-6).fit(X, y).n_iter_ == cold


def test_a_warm_start_survives_other_data_and_parameters():
    X, y = standardised("iris")
    m = NESVC(warm_start=True, multiclass="ovo").fit(X, y)
    for change in ({"multiclass": "ovr"}, {"multiclass": None}, {"kernel": "rbf"}):
        m.set_params(**change).fit(X, y)
        assert m.gap_ <= 1e-3
    m.set_params(kernel="linear").fit(X[:, :2], y)
    m.fit(X[:, :2], y + 1)
    m.fit(X[:, :2], y > 0)
    assert m.gap_ <= 1e-3


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_weights_of_classes_are_weights_of_rows(kernel):
    X, y = standardised("iris")
    names = np.array(["a", "b", "c"])[y]
    by_class = {"a": 5.0, "b": 0.5}
    rows = np.array([by_class.get(label, 1.0) for label in names])
    a = NESVC(kernel=kernel, class_weight=by_class).fit(X, names)
    b = NESVC(kernel=kernel).fit(X, names, sample_weight=rows)
    np.testing.assert_array_equal(a.decision_function(X), b.decision_function(X))
    few = np.r_[:60, 100:150]
    counts = {k: len(few) / (3 * np.sum(names[few] == k)) for k in "abc"}
    a = NESVC(kernel=kernel, class_weight="balanced").fit(X[few], names[few])
    b = NESVC(kernel=kernel, class_weight=counts).fit(X[few], names[few])
    np.testing.assert_array_equal(a.decision_function(X), b.decision_function(X))


@every_kernel
def test_float32_is_not_turned_into_float64(kernel):
    X, y = standardised("iris")
    for A in (X.astype(np.float32), csr_matrix(X.astype(np.float32))):
        m = NESVC(kernel=kernel).fit(A, y)
        if kernel != "linear":
            assert m.support_vectors_.dtype == np.float32
        same = NESVC(kernel=kernel).fit(A.astype(np.float64), y)
        assert np.mean(m.predict(A) == same.predict(A)) > 0.97


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("limit", [{"max_iter": 1}, {"time_limit": 0.0}])
def test_a_fit_that_stops_early_warns_and_says_how_far_it_is(kernel, limit):
    X, y = standardised("breast_cancer")
    with pytest.warns(ConvergenceWarning, match="the tolerance 1e-06 is not certified"):
        m = NESVC(kernel=kernel, tol=1e-6, **limit).fit(X, y)
    assert m.gap_ > 1e-6
    assert m.n_iter_ == (0 if kernel == "rbf" and limit.get("time_limit") == 0.0 else 1)
    assert np.isin(m.predict(X), y).all()


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_labels_may_be_strings(kernel):
    X, y = standardised("iris")
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    m = NESVC(kernel=kernel).fit(X, names)
    assert m.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert m.score(X, names) > 0.9
    two = names[y > 0]
    m.fit(X[y > 0], two)
    np.testing.assert_array_equal(
        m.decision_function(X[y > 0]) > 0, m.predict(X[y > 0]) == "virginica"
    )


def test_one_class_is_refused_and_so_is_use_before_fit():
    X, _ = standardised("iris")
    with pytest.raises(ValueError, match="at least 2 classes, got 1 class: a"):
        NESVC().fit(X, ["a"] * len(X))
    with pytest.raises(NotFittedError):
        NESVC().predict(X)


@every_data
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_probabilities_exist_when_asked_for(name, kernel):
    X, y = standardised(name)
    plain = NESVC(kernel=kernel).fit(X, y)
    assert not hasattr(plain, "predict_proba")
    with pytest.raises(AttributeError, match="predict_proba"):
        plain.predict_proba(X)
    m = NESVC(kernel=kernel, probability=True, random_state=0).fit(X, y)
    p = m.predict_proba(X)
    assert p.shape == (len(X), len(m.classes_))
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert np.mean(m.classes_[p.argmax(axis=1)] == y) > 0.9
    np.testing.assert_array_equal(m.predict_log_proba(X), np.log(p))
    again = clone(m).fit(X, y)
    np.testing.assert_array_equal(again.predict_proba(X), p)


# ---------------------------------------------------------------- company


@every_kernel
def test_pickle_and_clone(kernel):
    X, y = standardised("iris")
    m = NESVC(C=2.0, kernel=kernel).fit(X, y)
    again = pickle.loads(pickle.dumps(m))
    np.testing.assert_array_equal(again.decision_function(X), m.decision_function(X))
    fresh = clone(m)
    assert fresh.get_params() == m.get_params()
    assert not hasattr(fresh, "machine_")


def test_pipelines_and_searches_in_two_processes():
    X, y = DATA["iris"](return_X_y=True)
    pipe = make_pipeline(StandardScaler(), NESVC())
    search = GridSearchCV(pipe, {"nesvc__C": [0.1, 10.0], "nesvc__kernel": ["linear", "rbf"]},
                          cv=3, n_jobs=2)  # fmt: skip
    search.fit(X, y)
    assert search.best_score_ > 0.9
    assert (search.cv_results_["mean_test_score"] > 0.8).all()


def test_a_precomputed_kernel_is_cut_on_both_sides():
    X, y = standardised("iris")
    K = rbf_kernel(X, gamma=0.1)
    here = cross_val_score(NESVC(kernel="precomputed", tol=1e-6), K, y, cv=3)
    there = cross_val_score(NESVC(kernel="rbf", gamma=0.1, tol=1e-6), X, y, cv=3)
    np.testing.assert_array_equal(here, there)
    search = GridSearchCV(NESVC(kernel="precomputed"), {"C": [0.1, 1.0]}, cv=3).fit(K, y)
    assert search.predict(K).shape == y.shape
    with pytest.raises(ValueError, match="square"):
        NESVC(kernel="precomputed").fit(K[:, :5], y)
