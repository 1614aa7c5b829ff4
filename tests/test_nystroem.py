"""Nyström's approximation: its features, its machines and their files."""

import json

import numpy as np
import pytest
from nesvm_jit import InputError, certify, load_model
from nesvm_jit.binary.nystroem import nystroem
from nesvm_jit.cli import words
from nesvm_jit.machine import facts as report
from nesvm_jit.matrix.checks import as_matrix
from nesvm_jit.settings import Settings
from scipy.sparse import csr_matrix

from tests.endings import solve, train

from . import oracle
from .commands import data_file, done, refused
from .data import shells
from .optima import features_of, optimum


@pytest.mark.parametrize(
    "make", [np.asarray, csr_matrix, np.float32], ids=["dense", "CSR", "float32"]
)
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_with_every_row_a_landmark_products_are_the_kernel(kernel, make):
    X, _ = shells(n=40)
    settings = Settings(kernel=kernel, gamma=0.3, coef0=1.0, approx="nystroem", landmarks=100)
    marks, features = nystroem(as_matrix(make(X)), settings)
    K = oracle.gram(X, X, kernel, 0.3, 1.0, 3)
    np.testing.assert_allclose(features @ features.T, K, atol=1e-3 * np.abs(K).max())
    assert marks.numbers.tolist() == list(range(40))
    assert features.dtype == (np.float32 if make is np.float32 else np.float64)


def test_landmarks_are_those_of_the_seed():
    X = as_matrix(shells()[0])
    drawn = [
        nystroem(X, Settings(kernel="rbf", approx="nystroem", landmarks=20, seed=seed))[0].numbers
        for seed in (0, 0, 1)
    ]
    assert np.array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], drawn[2])
    assert len(set(drawn[0])) == 20


@pytest.mark.parametrize("model", ["csvm", "lssvm"])
def test_with_every_row_a_landmark_the_machine_is_the_exact_one(model):
    X, y = shells(n=60)
    options = {"kernel": "rbf", "gamma": 0.5, "C": 3.0, "tol": 1e-7}
    exact = train(X, y, model, **options)
    near = train(X, y, model, approx="nystroem", landmarks=60, **options)
    assert near.problems[0]["objective"] == pytest.approx(exact.problems[0]["objective"], rel=1e-4)
    np.testing.assert_allclose(near.decision_function(X), exact.decision_function(X), atol=2e-2)


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
@pytest.mark.parametrize("k", [2, 4])
def test_machines_classify_and_survive_their_file(tmp_path, k, multiclass):
    X, y = shells(n=600, k=k)
    options = {"kernel": "rbf", "gamma": 0.5, "C": 10.0, "multiclass": multiclass}
    m = train(X, y, approx="nystroem", landmarks=80, probability=True, **options)
    assert m.gap <= 1e-3
    assert m.record.extra["approx"] == {"kind": "nystroem", "landmarks": 80}
    assert len(m.record.coefs) == 80
    assert (m.predict(X) == y).mean() > 0.9
    m.save(tmp_path / "m")
    again = load_model(tmp_path / "m")
    np.testing.assert_array_equal(again.decision_function(X), m.decision_function(X))
    np.testing.assert_array_equal(again.predict_proba(X), m.predict_proba(X))


def test_what_cannot_be_is_refused():
    X, y = shells()
    with pytest.raises(InputError, match="approx is for poly and rbf"):
        train(X, y, approx="nystroem")
    with pytest.raises(InputError, match="approx must be one of"):
        train(X, y, kernel="rbf", approx="fourier")
    with pytest.raises(InputError, match="landmarks must be a whole number"):
        train(X, y, kernel="rbf", approx="nystroem", landmarks=0)
    with pytest.raises(InputError, match="got a budget of"):
        train(X, y, kernel="rbf", approx="nystroem", cache_mb=0.01)
    with pytest.raises(InputError, match="approx is for `train`"):
        solve(X, np.where(y > 1, 1.0, -1.0), kernel="rbf", approx="nystroem")


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
@pytest.mark.parametrize("model", ["csvm", "lssvm"])
@pytest.mark.parametrize("bias", [True, False])
def test_the_kernel_itself_is_certified_beside_its_approximation(model, kernel, bias):
    X, y = shells(n=150)
    how = {"gamma": 0.5, "coef0": 1.0, "degree": 2}
    m = train(
        X, y, model, kernel, C=3.0, bias=bias, approx="nystroem", landmarks=20, tol=1e-6, **how
    )
    (problem,) = m.problems
    found = problem["kernel"]
    K, sign = oracle.gram(X, X, kernel, *how.values()), np.where(y == m.classes[0], 1.0, -1.0)
    best = optimum(model, features_of(K), sign, np.full(150, 3.0), bias)
    assert found["dual_objective"] <= best * (1 + 1e-9)
    assert best * (1 - 1e-9) <= found["objective"]
    beta = np.zeros(150)
    np.add.at(beta, m.support_rows, m.record.coefs[:, 0])
    f = K @ beta
    r = 1.0 - sign * (f + m.record.bias[0])
    loss = np.maximum(r, 0.0) if model == "csvm" else r**2
    assert found["objective"] == pytest.approx(0.5 * beta @ f + 3.0 * loss.sum(), rel=1e-9)
    P, D = found["objective"], found["dual_objective"]
    assert found["gap"] == (P - D) / P
    assert kernel == "poly" or found["gap"] > 1e-6  # a polynomial of few features is matched
    (there,) = certify(m, X, y, polish=0.0).problems
    assert there.objective == pytest.approx(P, rel=1e-9)


def test_every_pair_of_classes_is_certified_and_the_facts_are_their_sums():
    X, y = shells(n=90, k=3)
    m = train(X, y, kernel="rbf", gamma=0.5, approx="nystroem", landmarks=15, tol=1e-6)
    known = [p["kernel"] for p in m.problems]
    facts = report.training(m, "auto", {})["approx"]
    assert len(known) == 3
    for name in ("objective", "dual_objective"):
        assert facts[name] == sum(k[name] for k in known)
    assert facts["gap"] == max(k["gap"] for k in known)
    line = f"Certified gap of the kernel itself = {facts['gap']:.3e}"
    assert list(words.training_lines(report.training(m, "auto", {})))[-1] == line
    for bounds, k in zip(certify(m, X, y, polish=0.0).problems, known, strict=True):
        assert bounds.objective == pytest.approx(k["objective"], rel=1e-9)


def test_the_kernel_itself_is_left_out_where_it_takes_too_long_or_is_none(monkeypatch):
    X, y = shells(n=60)
    how = {"kernel": "rbf", "gamma": 0.5, "approx": "nystroem", "landmarks": 10}
    assert "kernel" not in train(X, y, "lpsvm", **how).problems[0]
    monkeypatch.setattr("nesvm_jit.binary.nystroem.MOST_CELLS", 60)
    m = train(X, y, **how)
    assert "kernel" not in m.problems[0]
    assert report.training(m, "auto", {})["approx"] == {"kind": "nystroem", "landmarks": 10}


def test_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data_file(tmp_path / "three", labels=(1, 2, 3))
    out = done("train", "-t", "rbf", "--approx", "nystroem", "--landmarks", "10", "three").out
    assert "Approximation = nystroem, 10 landmarks; the gap is of that problem\n" in out
    facts = json.loads(done("train", "-t", "rbf", "--approx", "nystroem", "--json", "three").out)
    assert facts["approx"]["kind"] == "nystroem"
    assert "approx" in done("info", "three.model").out
    assert "Accuracy" in done("predict", "three", "three.model", "out").out
    assert "approx is for" in refused("train", "--approx", "nystroem", "three")
    line = refused("train", "-t", "rbf", "--landmarks", "5", "three")
    assert "landmarks are for approx" in line


def test_as_an_estimator():
    pytest.importorskip("sklearn")
    from nesvm_jit import NESVC

    X, y = shells(n=400, k=3)
    m = NESVC(kernel="rbf", gamma=0.5, C=10.0, approx="nystroem", landmarks=60).fit(X, y)
    assert m.score(X, y) > 0.9
    assert m.support_vectors_.shape == (60, 3)
    assert sorted(m.support_.tolist()) == sorted(set(m.support_.tolist()))
