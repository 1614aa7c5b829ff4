"""What surrounds the compiled loops: Python calls are counted, so that they cannot creep back; and
machines that answer many threads at once."""

import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from threading import Barrier

import nesvm_jit
import numpy as np
import pytest
from nesvm_jit import load_model
from nesvm_jit.machine import train as training
from nesvm_jit.matrix import checks
from nesvm_jit.matrix.checks import as_matrix
from scipy.sparse import csr_matrix

from tests.endings import train

PACKAGE = str(Path(nesvm_jit.__file__).parent)
THREADS = 16


def clouds(n=90, p=5, k=3):
    rng = np.random.default_rng(0)
    y = np.arange(n) % k
    return rng.standard_normal((n, p)) + 2.0 * np.eye(k, p)[y], y.astype(float)


def calls_of_ours(work):
    """How many functions of the package Python enters; compiled ones are not among them."""
    count = 0

    def note(frame, event, arg):
        nonlocal count
        count += event == "call" and frame.f_code.co_filename.startswith(PACKAGE)

    work()  # imports, machine code, and what is prepared once
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


# ---------------------------------------------------------------- prediction


@pytest.mark.parametrize(("kernel", "most"), [("linear", 38), ("rbf", 90)])
def test_a_row_is_predicted_in_few_calls(kernel, most):
    X, y = clouds()
    machine, row = train(X, y, kernel=kernel), X[:1]
    assert calls_of_ours(lambda: machine.predict(row)) <= most


@pytest.mark.parametrize(("kernel", "most"), [("linear", 38), ("rbf", 90)])
def test_a_row_is_predicted_by_the_estimator_in_few_calls(kernel, most):
    pytest.importorskip("sklearn")
    X, y = clouds()
    machine, row = nesvm_jit.NESVC(kernel=kernel).fit(X, y), X[:1]
    assert calls_of_ours(lambda: machine.predict(row)) <= most


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_more_rows_and_classes_take_no_more_calls(kernel):
    few, many = clouds(60, 5, 3), clouds(120, 5, 5)
    counts = []
    for X, y in (few, many):
        machine = train(X, y, kernel=kernel, tol=1e-2)
        counts += [calls_of_ours(lambda m=machine, X=X, n=n: m.predict(X[:n])) for n in (1, 50)]
    assert len(set(counts)) == 1


@pytest.mark.parametrize("make", [np.asarray, csr_matrix])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_a_machine_answers_many_threads_at_once(kernel, make, tmp_path):
    X, y = clouds()
    m = train(X, y, kernel=kernel, C=10.0, tol=1e-2)
    m.save(tmp_path / "model")
    rows = [make(X[i : i + 1 + i % 7]) for i in range(64)]
    expected = [load_model(tmp_path / "model").decision_function(part) for part in rows]
    fresh, together = load_model(tmp_path / "model"), Barrier(THREADS)

    def answer(number):
        together.wait()  # all of them find that nothing has been prepared
        return [fresh.decision_function(part) for part in rows[number:] + rows[:number]]

    with ThreadPoolExecutor(THREADS) as pool:
        answers = list(pool.map(answer, range(THREADS)))
    turned = [expected[number:] + expected[:number] for number in range(THREADS)]
    same = [np.array_equal(*pair) for pair in zip(chain(*answers), chain(*turned), strict=True)]
    assert same == [True] * (64 * THREADS)


@pytest.mark.parametrize("make", [np.asarray, csr_matrix])
@pytest.mark.parametrize("k", [2, 4])
def test_a_linear_score_is_the_same_in_any_company(make, k):
    X, y = clouds(400, 37, k)
    m = train(X, y, tol=1e-2)
    whole = m.scores(as_matrix(make(X)))
    assert whole.shape == (400, 1 if k == 2 else 4)
    expected = X @ m.record.weights + m.record.bias
    np.testing.assert_allclose(whole, expected, rtol=1e-12, atol=1e-12)
    for lo, hi in ((0, 1), (17, 18), (399, 400), (3, 90), (250, 400)):
        assert np.array_equal(m.scores(as_matrix(make(X[lo:hi]))), whole[lo:hi])


def test_a_prepared_machine_is_pickled_without_what_was_prepared():
    X, y = clouds()
    m = train(X, y, kernel="rbf", tol=1e-2)
    before = len(pickle.dumps(m))
    scores = m.decision_function(X)
    assert len(pickle.dumps(m)) == before
    assert np.array_equal(pickle.loads(pickle.dumps(m)).decision_function(X), scores)


# ---------------------------------------------------------------- training


def stub(monkeypatch):
    """Solutions that are there at once, by the signs of the rows."""
    known, real = {}, training.solve_checked

    def recall(X, sign, c, settings, start=None, kernel_rows=None, before=None):
        key = sign.tobytes()
        if key not in known:
            known[key] = real(X, sign, c, settings, start, kernel_rows, before)
        return known[key]

    monkeypatch.setattr(training, "solve_checked", recall)


def test_training_is_few_calls_around_its_solver(monkeypatch, engines_only):
    stub(monkeypatch)
    X, y = clouds()
    two = y < 2
    once = calls_of_ours(lambda: nesvm_jit.train(X[two], y[two]))
    thrice = calls_of_ours(lambda: nesvm_jit.train(X, y))
    assert once <= 155
    assert thrice - once <= 2 * 24  # of each sub-problem more


def test_a_small_machine_is_trained_in_few_calls():
    X, y = clouds()
    two = y < 2
    once = calls_of_ours(lambda: nesvm_jit.train(X[two], y[two]))
    thrice = calls_of_ours(lambda: nesvm_jit.train(X, y))
    assert once <= 155
    assert thrice - once <= 2 * 26


def test_an_estimator_adds_few_calls_to_those_of_training(monkeypatch, engines_only):
    pytest.importorskip("sklearn")
    stub(monkeypatch)
    X, y = clouds()
    assert calls_of_ours(lambda: nesvm_jit.NESVC().fit(X, y)) <= 230


def test_what_scikit_learn_has_checked_is_not_looked_at_again(monkeypatch):
    sklearn = pytest.importorskip("sklearn")
    X, y = clouds()
    m, real, looked = nesvm_jit.NESVC(), checks._all_finite, []
    monkeypatch.setattr(checks, "_all_finite", lambda v: looked.append(len(v)) or real(v))
    m.fit(X, y).predict(X)
    assert looked == []
    bad = X.copy()
    bad[3, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        m.predict(bad)
    with sklearn.config_context(assume_finite=True):  # then nobody else has looked
        with pytest.raises(nesvm_jit.InputError, match="X must be finite"):
            m.predict(bad)
        with pytest.raises(nesvm_jit.InputError, match="X must be finite"):
            m.fit(bad, y)
