"""What `NESVC` asks `train` for, and what it makes of the answer."""

import inspect
import sys
from dataclasses import fields
from inspect import signature

import numpy as np
import pytest
from scipy.sparse import csr_matrix

sklearn = pytest.importorskip("sklearn")

from nesvm_jit import NESVC, Settings, estimator  # noqa: E402
from nesvm_jit.matrix.matrix import Csr  # noqa: E402
from sklearn.exceptions import ConvergenceWarning, NotFittedError  # noqa: E402
from sklearn.utils import get_tags  # noqa: E402

DEFAULTS = {
    "C": 1.0,
    "kernel": "linear",
    "gamma": "scale",
    "degree": 3,
    "coef0": 0.0,
    "model": "csvm",
    "fit_intercept": True,
    "solver": "auto",
    "tol": 1e-3,
    "multiclass": None,
    "decision_function_shape": "ovr",
    "probability": False,
    "class_weight": None,
    "warm_start": False,
    "cache_mb": None,
    "approx": None,
    "landmarks": None,
    "max_iter": 100_000,
    "time_limit": None,
    "random_state": None,
}
NAMES = np.array(["b", "a", "c"])


def blobs(n=36, k=3, seed=0):
    rng = np.random.default_rng(seed)
    code = np.arange(n) % k
    return rng.standard_normal((n, 3)) + 1.5 * np.eye(3)[code], NAMES[code]


@pytest.fixture
def asked(monkeypatch):
    """The arguments of `train`, by name, and its machine."""
    calls, real = [], estimator.train_silently

    def noted(*args, **options):
        bound = inspect.signature(real).bind(*args, **options).arguments
        extra = bound.pop("settings", {})
        calls.append({**bound, **extra})
        calls[-1]["found"] = real(*args, **options)
        return calls[-1]["found"]

    monkeypatch.setattr(estimator, "train_silently", noted)
    return calls


def test_the_parameters_and_their_defaults_are_the_documented_ones():
    assert NESVC().get_params() == DEFAULTS
    assert NESVC(2.5).C == 2.5


def test_every_parameter_is_kept_as_it_is_given():
    given = {name: object() for name in DEFAULTS}
    assert all(getattr(NESVC(**given), name) is value for name, value in given.items())


def test_by_default_train_is_asked_for_the_defaults(asked):
    X, y = blobs()
    NESVC(random_state=5).fit(X, y)
    (call,) = asked
    assert np.array_equal(call.pop("X"), X)
    assert call.pop("y").tolist() == [{"a": 0, "b": 1, "c": 2}[name] for name in y]
    assert call.pop("classes").tolist() == [0, 1, 2]
    call.pop("found")
    assert call == {
        "model": "csvm",
        "kernel": "linear",
        "C": 1.0,
        "bias": True,
        "solver": "auto",
        "tol": 1e-3,
        "multiclass": None,
        "probability": False,
        "sample_weight": None,
        "seed": np.random.RandomState(5).randint(2**31),
        "warm": None,
        "keep_duals": False,
        "gamma": "scale",
        "degree": 3,
        "coef0": 0.0,
        "cache_mb": None,
        "approx": None,
        "landmarks": None,
        "max_iter": 100_000,
        "time_limit": None,
    }


def test_whatever_is_asked_of_the_estimator_is_asked_of_train(asked):
    X, y = blobs(k=2)
    given = {
        "C": 0.5,
        "kernel": "poly",
        "gamma": 0.25,
        "degree": 2,
        "coef0": 1.5,
        "model": "lssvm",
        "solver": "newton",
        "tol": 1e-2,
        "multiclass": "ovr",
        "cache_mb": 7.0,
        "approx": "nystroem",
        "landmarks": 9,
        "time_limit": 100.0,
    }
    NESVC(fit_intercept=0, probability=1, max_iter=-1, random_state=1, **given).fit(X, y)
    (call,) = asked
    assert {name: call[name] for name in given} == given
    assert call["bias"] is False
    assert call["probability"] is True
    assert call["max_iter"] == sys.maxsize
    assert call["classes"] == [1, 0]
    assert call["keep_duals"] is False


def test_a_seed_is_drawn_from_the_state_that_is_given(asked):
    X, y = blobs()
    state = np.random.RandomState(3)
    NESVC(random_state=state).fit(X, y)
    NESVC(random_state=state).fit(X, y)
    both = np.random.RandomState(3).randint(2**31, size=2)
    assert [call["seed"] for call in asked] == both.tolist()
    assert type(asked[0]["seed"]) is int


def test_weights_of_rows_and_classes_are_multiplied(asked):
    X, y = blobs()
    weight = np.arange(36) % 5 + 0.5
    by_class = np.array([{"a": 2.0, "b": 1.0, "c": 0.25}[name] for name in y])
    NESVC().fit(X, y, sample_weight=weight)
    NESVC(class_weight={"a": 2.0, "c": 0.25}).fit(X, y)
    NESVC(class_weight={"a": 2.0, "c": 0.25}).fit(X, y, sample_weight=weight)
    got = [call["sample_weight"].tolist() for call in asked]
    assert got == [weight.tolist(), by_class.tolist(), (weight * by_class).tolist()]
    NESVC().fit(X, y, sample_weight=weight.astype(np.float32))
    assert [call["sample_weight"].dtype for call in asked] == [np.float64] * 4


# ---------------------------------------------------------------- what a fit leaves


def test_a_linear_fit_has_its_weights(asked):
    X, y = blobs()
    m = NESVC().fit(X, y)
    record, problems = asked[0]["found"].record, asked[0]["found"].problems
    assert np.array_equal(m.coef_, record.weights.T)
    assert m.coef_.flags["C_CONTIGUOUS"]
    assert np.array_equal(m.intercept_, record.bias)
    assert m.gap_ == max(p["gap"] for p in problems)
    assert m.objective_ == sum(p["objective"] for p in problems)
    assert m.dual_objective_ == sum(p["dual_objective"] for p in problems)
    assert m.n_iter_ == max(p["iterations"] for p in problems)
    assert min(p["iterations"] for p in problems) < m.n_iter_
    assert m.classes_.tolist() == ["a", "b", "c"]
    assert m.n_features_in_ == 3


@pytest.mark.parametrize("make", [np.asarray, csr_matrix], ids=["dense", "CSR"])
def test_a_kernel_fit_has_its_support_vectors(asked, make):
    X, y = blobs()
    m = NESVC(kernel="rbf").fit(make(X), y)
    found = asked[0]["found"]
    assert m.support_.tolist() == found.support_rows.tolist()
    vectors = m.support_vectors_ if make is np.asarray else m.support_vectors_.toarray()
    assert np.array_equal(vectors, X[m.support_])
    assert np.array_equal(m.dual_coef_, found.record.coefs.T)
    assert m.dual_coef_.flags["C_CONTIGUOUS"]
    assert not hasattr(m, "coef_")


def test_scores_of_two_classes_are_positive_for_the_second():
    X, y = blobs(k=2)
    m = NESVC().fit(X, y)
    scores = m.decision_function(X)
    np.testing.assert_allclose(scores, X @ m.coef_[0] + m.intercept_[0], atol=1e-12)
    assert m.predict(X).tolist() == np.where(scores > 0, "b", "a").tolist()


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
@pytest.mark.parametrize("k", [2, 3])
def test_probabilities_are_in_the_order_of_classes(multiclass, k):
    X, y = blobs(k=k)
    m = NESVC(probability=True, multiclass=multiclass, random_state=0).fit(X, y)
    p = m.predict_proba(X)
    assert p.shape == (36, k)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert np.mean(m.classes_[p.argmax(axis=1)] == y) > 0.6
    np.testing.assert_array_equal(m.predict_log_proba(X), np.log(p))
    raw = m.machine_.predict_proba(X)
    np.testing.assert_array_equal(p, raw[:, ::-1] if k == 2 else raw)


def test_probabilities_that_were_not_asked_for_do_not_exist():
    X, y = blobs()
    m = NESVC().fit(X, y)
    for name in ("predict_proba", "predict_log_proba"):
        assert not hasattr(m, name)
        with pytest.raises(AttributeError) as e:
            getattr(m, name)
        said = [str(e.value), str(e.value.__cause__)]
        assert "predict_proba is not available when probability=False" in said


@pytest.mark.parametrize(
    ("multiclass", "shape", "by_class"),
    [("ovo", "ovr", True), ("ovo", "ovo", False), ("ovr", "ovr", None), ("ovr", "ovo", None)],
)
def test_scores_of_pairs_may_be_those_of_classes(multiclass, shape, by_class):
    X, y = blobs()
    m = NESVC(multiclass=multiclass, decision_function_shape=shape).fit(X, y)
    got, raw = m.decision_function(X), m.machine_.decision_function(X)
    if by_class:
        votes = np.rint(got).astype(int)
        assert (votes.sum(axis=1) == 3).all()
        a, b, c = raw.T
        expected = np.column_stack(
            [(a > 0) + 0 + (b > 0), (a <= 0) + 0 + (c > 0), 2 - (b > 0) - (c > 0)]
        )
        assert np.array_equal(votes, expected)
    else:
        assert np.array_equal(got, raw)


def test_an_unknown_shape_of_scores_is_one_whole_line():
    X, y = blobs()
    m = NESVC(decision_function_shape="both").fit(X, y)
    with pytest.raises(ValueError) as e:  # noqa: PT011
        m.decision_function(X)
    assert str(e.value) == "decision_function_shape must be 'ovr' or 'ovo', got 'both'"


def test_one_class_is_one_whole_line():
    X, _ = blobs()
    with pytest.raises(ValueError) as e:  # noqa: PT011
        NESVC().fit(X, np.full(36, "a"))
    assert str(e.value) == "y must hold at least 2 classes, got 1 class: a"


def test_what_is_no_class_is_refused():
    X, _ = blobs()
    with pytest.raises(ValueError, match="continuous"):
        NESVC().fit(X, np.linspace(0, 1, 36))


def test_nothing_is_scored_before_a_fit():
    with pytest.raises(NotFittedError):
        NESVC().predict(blobs()[0])


def test_rows_of_another_width_are_refused():
    X, y = blobs()
    m = NESVC().fit(csr_matrix(X), y)
    for call in (m.predict, m.decision_function):
        with pytest.raises(ValueError, match="X has 2 features, but NESVC is expecting 3 features"):
            call(csr_matrix(X[:, :2]))


def test_a_fit_that_stops_early_says_how_far_it_is():
    X, y = blobs()
    with pytest.warns(ConvergenceWarning) as said:
        m = NESVC(solver="nesvm", max_iter=1, tol=1e-9).fit(X, y)
    (warning,) = said
    assert str(warning.message) == (
        f"the tolerance 1e-09 is not certified for 3 of 3 fits (the largest gap {m.gap_:.2e}): the "
        "limit of iterations was reached; raise max_iter or tol"
    )
    assert warning.filename == __file__


def test_one_sub_problem_that_is_not_certified_is_enough_to_warn(monkeypatch):
    X, y = blobs()
    real = estimator.train_silently

    def almost(*args, **options):
        found = real(*args, **options)
        found.problems[1]["status"] = "stalled"
        return found

    monkeypatch.setattr(estimator, "train_silently", almost)
    with pytest.warns(ConvergenceWarning, match="0.001 is not certified for 1 of 3 fits"):
        NESVC().fit(X, y)


def test_parameters_that_are_settings_have_their_defaults():
    table = {row.name: row.default for row in fields(Settings)}
    given = {name: p.default for name, p in signature(NESVC).parameters.items() if name in table}
    assert given == {**{name: table[name] for name in given}, "gamma": "scale"}
    assert {*given} == {
        *("C", "kernel", "gamma", "degree", "coef0", "model", "solver", "tol", "cache_mb"),
        *("approx", "landmarks", "max_iter", "time_limit"),
    }


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_labels_of_three_classes_follow_their_scores(multiclass):
    X, y = blobs()
    m = NESVC(multiclass=multiclass).fit(X, y)
    expected = m.classes_[m.decision_function(X).argmax(axis=1)]
    assert np.mean(m.predict(X) == expected) >= (1.0 if multiclass == "ovr" else 0.9)
    assert np.mean(m.predict(X) == y) > 0.6


def test_only_kernels_that_are_there_already_are_of_pairs():
    for kernel in ("linear", "poly", "rbf", "precomputed"):
        tags = get_tags(NESVC(kernel=kernel)).input_tags
        assert (tags.sparse, tags.pairwise) == (
            kernel != "precomputed",
            kernel == "precomputed",
        )


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_single_precision_reaches_train_as_it_is_all_else_as_double(asked, dtype):
    X, y = blobs()
    rows = np.asfortranarray(np.rint(4 * X).astype(dtype))
    m = NESVC().fit(rows, y)
    assert asked[0]["X"].dtype == (np.float32 if dtype == np.float32 else np.float64)
    assert asked[0]["X"].flags["C_CONTIGUOUS"]
    assert m.decision_function(rows.tolist()).shape == (36, 3)


def test_sparse_rows_of_any_layout_are_taken(asked):
    X, y = blobs()
    m = NESVC().fit(csr_matrix(X).tocsc(), y)
    assert type(asked[0]["X"]) is Csr
    whole = m.decision_function(X)
    np.testing.assert_allclose(m.decision_function(csr_matrix(X).tocoo()), whole, atol=1e-12)


def test_sparse_rows_may_have_long_indices():
    X, y = blobs()
    rows = csr_matrix(X)
    rows.indices, rows.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    got = NESVC().fit(rows, y).decision_function(X)
    np.testing.assert_array_equal(got, NESVC().fit(csr_matrix(X), y).decision_function(X))


# ---------------------------------------------------------------- warm starts


def test_a_warm_start_begins_with_the_last_machine(asked):
    X, y = blobs()
    m = NESVC(warm_start=True).fit(X, y)
    first = m.machine_
    m.set_params(C=2.0).fit(X, y)
    assert [call["keep_duals"] for call in asked] == [True, True]
    assert asked[0]["warm"] is None
    assert asked[1]["warm"] is first
    assert first.duals is not None
    m.set_params(warm_start=False).fit(X, y)
    assert (asked[2]["warm"], asked[2]["keep_duals"]) == (None, False)


@pytest.mark.parametrize(
    ("before", "after", "again"),
    [
        ({}, {"multiclass": "ovr"}, True),
        ({}, {"multiclass": "ovo"}, False),
        ({"multiclass": "ovo"}, {"multiclass": "ovo"}, True),
        ({"multiclass": "ovo"}, {"multiclass": None}, False),
        ({"kernel": "rbf"}, {"kernel": "linear"}, False),
        ({}, {"kernel": "rbf"}, False),
        ({}, {"width": 2}, False),
        ({}, {"labels": "xyz"}, False),
    ],
)
def test_a_warm_start_begins_anew_where_the_last_machine_does_not_fit(asked, before, after, again):
    X, y = blobs()
    m = NESVC(warm_start=True, **before).fit(X, y)
    names = dict(zip("abc", after.get("labels", "abc"), strict=True))
    width = after.get("width", 3)
    m.set_params(**{k: v for k, v in after.items() if k not in ("width", "labels")}).fit(
        X[:, :width], np.array([names[v] for v in y])
    )
    assert (asked[1]["warm"] is not None) == again
    assert asked[1]["keep_duals"] == (m.kernel == "linear")
