"""Rows that stay on disk lead to the bits that rows in memory lead to."""

import json

import numpy as np
import pytest
from nesvm_jit import InputError, convert, open_matrix, write_libsvm
from nesvm_jit.problems import blocks
from nesvm_jit.settings import MODELS, SOLVERS

from tests.commands import done, refused
from tests.compare import same_machine
from tests.data import sparse_scores
from tests.endings import path, train

ENGINES = [s for s in SOLVERS if s not in ("auto", "coordinate")]


def same_bits(a, b):
    same_machine(a, b, leaving_out=("seconds", "why"))


def on_disk(tmp_path, X, y, **options):
    write_libsvm(tmp_path / "text", X, y)
    convert([tmp_path / "text"], tmp_path / "matrix", n_features=X.shape[1], **options)
    return open_matrix(tmp_path / "matrix")


@pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("solver", ENGINES)
def test_the_same_bits_as_in_memory(tmp_path, small_blocks, solver, model, bias):
    X, y = sparse_scores()
    options = {"model": model, "solver": solver, "bias": bias, "max_iter": 300}
    matrix = on_disk(tmp_path, X, y)
    same_bits(train(matrix, **options), train(X, y, **options))


def test_the_same_bits_in_one_block(tmp_path):
    X, y = sparse_scores()
    for bias in (False, True):
        options = {"solver": "newton", "bias": bias}
        same_bits(train(on_disk(tmp_path, X, y), **options), train(X, y, **options))


def test_the_same_bits_in_single_precision_and_for_several_classes(tmp_path, small_blocks):
    X, y = sparse_scores(classes=3)
    matrix = on_disk(tmp_path, X, y, dtype=np.float32)
    options = {"solver": "newton", "class_weight": {1.0: 2.0}, "C": 5.0}
    same_bits(train(matrix, **options), train(X.astype(np.float32), y, **options))
    same_bits(
        train(matrix, solver="newton", class_weight="balanced"),
        train(X.astype(np.float32), y, solver="newton", class_weight="balanced"),
    )


@pytest.mark.parametrize("p", [12, 2100], ids=["narrow", "wide"])
def test_auto_certifies(tmp_path, monkeypatch, p):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 200 * p)
    m = train(on_disk(tmp_path, *sparse_scores(p=p)), tol=1e-5)
    assert m.gap <= 1e-5
    assert m.problems[0]["solver"] == "newton"


def test_a_pass_reads_the_matrix_once(tmp_path, small_blocks, monkeypatch):
    X, y = sparse_scores()
    matrix = on_disk(tmp_path, X, y)
    read, real = [], type(matrix).read
    monkeypatch.setattr(
        type(matrix), "read", lambda m, lo, hi, *more: read.append(hi - lo) or real(m, lo, hi)
    )
    train(matrix, solver="nesvm", bias=False, max_iter=20, tol=0, epsilon=0)
    # norms, 20 rounds, and at the end the margins, the step at the best point and two values
    assert sum(read) <= len(y) * 26


def test_nystroem_of_rows_on_disk(tmp_path, small_blocks):
    X, y = sparse_scores(classes=3)
    options = {"kernel": "rbf", "gamma": 0.5, "approx": "nystroem", "landmarks": 50, "C": 10.0}
    m = train(on_disk(tmp_path, X, y), **options)
    near = train(X, y, multiclass="ovr", **options)
    assert m.gap <= 1e-3
    assert np.mean(m.predict(X) == near.predict(X)) > 0.98


def test_asked_to_stop_it_keeps_what_it_has(tmp_path, small_blocks):
    X, y = sparse_scores(classes=3)
    asked = []

    def stop(row):
        asked.append(row["problem"])
        return len(asked) == 3

    m = train(on_disk(tmp_path, X, y), callback=stop, tol=1e-9)
    assert [p["status"] for p in m.problems] == ["interrupted"] * 3
    assert 0.0 < m.gap <= 1.0
    assert set(asked) == {0, 1, 2}


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"kernel": "rbf"}, "a rbf kernel needs all rows in memory"),
        ({"multiclass": "ovo"}, "one class against the rest"),
        ({"solver": "coordinate"}, "needs all rows in memory"),
        ({"probability": True}, "probability is for rows in memory"),
        ({"class_weight": {7: 1.0}}, "got label 7"),
    ],
)
def test_what_needs_memory_is_refused(tmp_path, options, what):
    matrix = on_disk(tmp_path, *sparse_scores())
    with pytest.raises(InputError, match=what):
        train(matrix, **options)


def test_one_class_is_refused(tmp_path):
    X, y = sparse_scores()
    with pytest.raises(InputError, match="at least 2 classes, got 1"):
        train(on_disk(tmp_path, X, np.ones_like(y)))


def test_on_the_command_line(tmp_path, monkeypatch, small_blocks):
    monkeypatch.chdir(tmp_path)
    on_disk(tmp_path, *sparse_scores())
    facts = json.loads(done("train", "--stream", "--json", "matrix").out)
    assert facts["gap"] <= 1e-3
    assert facts["solver"] == "newton"
    kept = json.loads(done("train", "--json", "matrix", "other.model").out)
    assert kept["objective"] == pytest.approx(facts["objective"], rel=2e-3)
    assert "Accuracy" in done("predict", "matrix", "matrix.model", "out").out
    assert json.loads(done("info", "--json", "matrix").out)["n_samples"] == 400
    assert "verified" in done("info", "matrix").out
    with open("matrix/values.bin", "r+b") as f:
        f.write(b"x")
    assert "checksum" in refused("info", "matrix")
    assert "only an on-disk matrix" in refused("train", "--stream", "text")
    assert "stay where they are" in refused("train", "--stream", "-v", "3", "matrix")
    assert "holds float64" in refused("train", "--float32", "matrix")
    assert "has 12 features" in refused("train", "--features", "20", "matrix")


def test_memory_is_what_the_process_may_have(monkeypatch):
    import resource

    from nesvm_jit import jit

    monkeypatch.setattr(resource, "getrlimit", lambda _: (2**30, 2**30))
    assert jit.memory_bytes() == 2**30


def test_a_path_along_rows_on_disk(tmp_path, small_blocks):
    X, y = sparse_scores(classes=3)
    matrix = on_disk(tmp_path, X, y)
    options = {"costs": (0.1, 1.0), "folds": 3, "solver": "newton"}
    there, here = path(matrix, **options), path(X, y, **options)
    for a, b in zip(there.facts()["cells"], here.facts()["cells"], strict=True):
        assert a["scores"] == b["scores"]
        assert a["gaps"] == b["gaps"]
    assert np.array_equal(there.machine.record.weights, here.machine.record.weights)
    with pytest.raises(InputError, match="rows on disk is linear"):
        path(matrix, kernel="rbf")
