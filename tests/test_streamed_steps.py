"""Rows on disk and landmarks, step by step: classes, costs, callbacks, features in blocks, memory;
prediction from file to file."""

from types import SimpleNamespace

import numpy as np
import pytest
from nesvm_jit import convert, open_matrix, write_libsvm
from nesvm_jit.binary import nystroem as landmarks
from nesvm_jit.binary.costs import class_costs
from nesvm_jit.binary.nystroem import landmarks_on_disk, nystroem
from nesvm_jit.checkpoint.fingerprint import data_fingerprint
from nesvm_jit.checkpoint.snapshot import read_snapshot
from nesvm_jit.errors import FormatError
from nesvm_jit.files.model.record import ModelRecord
from nesvm_jit.machine import predict as predictions
from nesvm_jit.machine import scoring, streamed, validation
from nesvm_jit.machine.machine import Machine
from nesvm_jit.machine.predict import columns_for, columns_of, predict_file
from nesvm_jit.matrix.checks import as_matrix
from nesvm_jit.matrix.rows import row_slice
from nesvm_jit.settings import Settings
from scipy.sparse import csr_matrix

from tests.endings import path, train

from . import oracle
from .compare import refusal

APPROX = {"kernel": "rbf", "gamma": 0.5, "approx": "nystroem"}


def blobs(n=40, labels=(4.0, 2.0, 9.0), p=3, seed=0):
    rng = np.random.default_rng(seed)
    code = np.arange(n) % len(labels)
    X = np.round(rng.standard_normal((n, p)) + 1.5 * np.eye(len(labels), p)[code], 3)
    return X, np.array(labels)[code]


def on_disk(tmp_path, X, y, **options):
    write_libsvm(tmp_path / "text", csr_matrix(X), y)
    convert([tmp_path / "text"], tmp_path / "matrix", n_features=X.shape[1], **options)
    return open_matrix(tmp_path / "matrix")


# ---------------------------------------------------------------- landmarks


def drawn(n, M, seed):
    return np.sort(np.random.default_rng(seed).choice(n, M, replace=False))


@pytest.mark.parametrize(("asked", "n", "count"), [(None, 1500, 1000), (None, 7, 7), (5, 7, 5)])
def test_a_thousand_landmarks_or_all_rows_or_as_many_as_asked_for(asked, n, count):
    settings = Settings(**APPROX, landmarks=asked, seed=2)
    assert landmarks._drawn(n, settings).tolist() == drawn(n, count, 2).tolist()


@pytest.mark.parametrize("make", [np.asarray, csr_matrix], ids=["dense", "CSR"])
def test_features_are_the_kernel_to_landmarks_times_its_inverse_root(make):
    X, _ = blobs()
    marks, features = nystroem(as_matrix(make(X)), Settings(**APPROX, landmarks=6, seed=1))
    numbers = drawn(40, 6, 1)
    assert marks.numbers.tolist() == numbers.tolist()
    K = oracle.gram(X, X[numbers], "rbf", 0.5, 0, 0)
    values, vectors = np.linalg.eigh(K[numbers])
    root = vectors / np.sqrt(values) @ vectors.T  # K_L^(-1/2), whose products are those of any root
    expected = K @ root
    np.testing.assert_allclose(features @ features.T, expected @ expected.T, atol=1e-9)
    w = np.arange(6.0)
    np.testing.assert_allclose(K @ marks.coefficients(w), features @ w, atol=1e-9)
    assert (marks.rank, marks.dtype, features.dtype) == (6, np.float64, np.float64)


def test_a_polynomial_kernel_has_all_its_parameters():
    X, _ = blobs()
    asked = {"kernel": "poly", "gamma": 0.25, "coef0": 2.0, "degree": 2, "approx": "nystroem"}
    _, features = nystroem(as_matrix(X), Settings(**asked))
    np.testing.assert_allclose(features @ features.T, (0.25 * X @ X.T + 2.0) ** 2, atol=1e-7)


@pytest.mark.parametrize("cells", [1, 11, 12, 1 << 22])
def test_features_are_made_in_blocks_of_any_size(monkeypatch, cells):
    X, _ = blobs()
    marks, whole = nystroem(as_matrix(X), Settings(**APPROX, landmarks=6))
    sizes, real = [], landmarks.gram
    monkeypatch.setattr(landmarks, "BLOCK_CELLS", cells)
    monkeypatch.setattr(landmarks, "gram", lambda A, *rest: sizes.append(len(A)) or real(A, *rest))
    np.testing.assert_allclose(marks.features(as_matrix(X)), whole, rtol=1e-12, atol=1e-14)
    block = max(1, cells // 6)
    assert sizes == [min(block, 40 - k) for k in range(0, 40, block)]


@pytest.mark.parametrize("module", [landmarks, scoring, validation])
def test_a_block_of_kernel_values_takes_32_mb(module):
    assert module.BLOCK_CELLS * np.dtype(float).itemsize == 32 * 2**20


def test_one_landmark_fills_its_blocks(monkeypatch):
    X, _ = blobs()
    marks, _ = nystroem(as_matrix(X), Settings(**APPROX, landmarks=1))
    sizes, real = [], landmarks.gram
    monkeypatch.setattr(landmarks, "BLOCK_CELLS", 30)
    monkeypatch.setattr(landmarks, "gram", lambda A, *rest: sizes.append(len(A)) or real(A, *rest))
    features = marks.features(as_matrix(X))
    np.testing.assert_allclose(np.abs(features), oracle.gram(X, X[marks.numbers], "rbf", 0.5, 0, 0))
    assert sizes == [30, 10]


def test_directions_that_landmarks_do_not_have_are_left_out():
    X = np.repeat(blobs(n=5)[0], 3, axis=0)
    marks, features = nystroem(as_matrix(X), Settings(**APPROX))
    assert marks.rank == features.shape[1] == 5
    np.testing.assert_allclose(
        features @ features.T, oracle.gram(X, X, "rbf", 0.5, 0, 0), atol=1e-9
    )


@pytest.mark.parametrize(("share", "kept"), [(0.9e-12, 1), (1.5e-12, 2), (4e-12, 2)])
def test_a_direction_counts_from_a_share_of_the_largest_on(monkeypatch, share, kept):
    K = np.diag([1e6 * share, 1e6])
    monkeypatch.setattr(landmarks, "gram", lambda *args: K)
    marks = landmarks._landmarks(as_matrix(np.eye(2)), np.arange(2), 1.0, Settings(**APPROX))
    assert marks.rank == kept
    assert np.abs(marks.root).max() == pytest.approx(1 / np.sqrt(1e6 * share) if kept > 1 else 1e-3)


@pytest.mark.parametrize(
    ("values", "kept"), [([0.0, 0.0], 0), ([1e-20, 1e-14], 2), ([-1e-9, 0.0], 0), ([-1.0, 4.0], 1)]
)
def test_directions_are_counted_at_every_scale(monkeypatch, values, kept):
    monkeypatch.setattr(landmarks, "gram", lambda *args: np.diag(values))
    marks = landmarks._landmarks(as_matrix(np.eye(2)), np.arange(2), 1.0, Settings(**APPROX))
    assert marks.root.shape == (2, kept)
    assert np.isfinite(marks.root).all()


def test_single_precision_stays_single():
    X, _ = blobs()
    for make in (np.float32, lambda A: csr_matrix(A.astype(np.float32))):
        marks, features = nystroem(as_matrix(make(X)), Settings(**APPROX, landmarks=6))
        assert marks.dtype == features.dtype == np.float32


def test_features_must_fit_into_the_memory_for_them():
    X, y = blobs(n=64)
    exactly = 64 * 16 * 8 / 2**20
    train(X, y, **APPROX, landmarks=16, cache_mb=exactly)
    assert refusal(train, X, y, **APPROX, landmarks=16, cache_mb=exactly / 2) == (
        "16 landmarks need 0.00781 MB for the features of 64 rows, got a budget of 0.00391 MB"
    )
    train(X.astype(np.float32), y, **APPROX, landmarks=16, cache_mb=exactly / 2)


def test_landmarks_of_rows_on_disk_are_those_in_memory(tmp_path):
    X, y = blobs()
    settings = Settings(**APPROX, landmarks=6, seed=1)
    there = landmarks_on_disk(on_disk(tmp_path, X, y), settings)
    here, _ = nystroem(as_matrix(csr_matrix(X)), settings)
    assert there.numbers.tolist() == here.numbers.tolist()
    np.testing.assert_allclose(there.root, here.root, rtol=1e-12)
    assert there.kernel == ("rbf", 0.5, 0.0, 3)
    scaled = Settings(kernel="rbf", gamma="scale", approx="nystroem")
    message = "gamma must be a number for rows on disk, got 'scale'"
    assert refusal(landmarks_on_disk, open_matrix(tmp_path / "matrix"), scaled) == message


# ---------------------------------------------------------------- training on disk


@pytest.mark.parametrize("labels", [(4.0, 2.0, 9.0), (-1.0, 1.0), (3.0, 2.0)])
def test_classes_and_who_belongs_to_them(tmp_path, labels):
    X, y = blobs(n=7, labels=labels)
    matrix = on_disk(tmp_path, X, y)
    order, index, costs, sizes = streamed.read_classes(matrix, 2.0, "balanced")
    assert order.tolist() == ([1.0, -1.0] if -1.0 in labels else list(labels))
    assert order[index].tolist() == y.tolist()
    assert index.dtype == np.uint8
    assert sizes.tolist() == [np.count_nonzero(y == label) for label in order]
    assert costs.tolist() == [2.0 * 7 / (len(order) * size) for size in sizes]


def test_the_costs_of_classes():
    order, sizes = np.array([4.0, 2.0, 9.0]), np.array([1, 2, 3])
    assert class_costs(0.5, None, order, sizes).tolist() == [0.5, 0.5, 0.5]
    assert class_costs(0.5, {2.0: 4.0}, order, sizes).tolist() == [0.5, 2.0, 0.5]
    assert class_costs(0.5, "balanced", order, sizes).tolist() == [1.0, 0.5, 1 / 3]
    message = "class_weight must be one of balanced, got 'even'"
    assert refusal(class_costs, 0.5, "even", order, sizes) == message


@pytest.mark.parametrize("weights", [None, "balanced", {2.0: 0.25}])
def test_weights_of_classes_on_disk_are_those_in_memory(tmp_path, weights):
    X, y = blobs(n=50)
    options = {"solver": "newton", "class_weight": weights, "C": 0.5, "tol": 1e-6}
    there, here = train(on_disk(tmp_path, X, y), **options), train(csr_matrix(X), y, **options)
    assert np.array_equal(there.record.weights, here.record.weights)
    assert np.array_equal(there.record.bias, here.record.bias)
    assert there.classes.tolist() == here.classes.tolist()


@pytest.mark.parametrize("labels", [(4.0, 2.0), (4.0, 2.0, 9.0)])
def test_landmarks_on_disk_lead_to_the_machine_in_memory(tmp_path, labels):
    X, y = blobs(labels=labels)
    asked = {**APPROX, "landmarks": 12, "seed": 3, "tol": 1e-7, "C": 2.0, "solver": "newton"}
    there = train(on_disk(tmp_path, X, y), **asked)
    here = train(csr_matrix(X), y, multiclass="ovr", **asked)
    assert there.support_rows.tolist() == here.support_rows.tolist()
    assert there.record.sv_class.tolist() == here.record.sv_class.tolist()
    assert there.record.extra["approx"] == here.record.extra["approx"]
    assert (there.record.kernel, there.record.gamma) == ("rbf", 0.5)
    for ours, theirs in zip(there.problems, here.problems, strict=True):
        assert ours["classes"] == theirs["classes"]
        assert ours["objective"] == pytest.approx(theirs["objective"], rel=1e-6)
    np.testing.assert_allclose(there.decision_function(X), here.decision_function(X), atol=1e-2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": "rbf"}, "a rbf kernel needs all rows in memory, or approx nystroem"),
        (
            {"multiclass": "ovo"},
            "rows on disk are trained one class against the rest (ovr), got ovo",
        ),
        ({"y": np.ones(40)}, "y is for rows in memory, X is on disk"),
        ({"probability": True}, "probability is for rows in memory, X is on disk"),
        ({"sample_weight": np.ones(40)}, "sample_weight is for rows in memory, X is on disk"),
        ({"classes": [4, 2, 9]}, "classes is for rows in memory, X is on disk"),
        ({"warm": 3}, "warm is for rows in memory, X is on disk"),
        ({"keep_duals": True}, "keep_duals is for rows in memory, X is on disk"),
        ({"keep_solutions": True}, "keep_solutions is for rows in memory, X is on disk"),
    ],
)
def test_what_needs_rows_in_memory_is_one_whole_line(tmp_path, options, message):
    assert refusal(train, on_disk(tmp_path, *blobs()), **options) == message


def test_landmarks_on_disk_are_refused_what_linear_machines_on_disk_are(tmp_path):
    matrix = on_disk(tmp_path, *blobs())
    asked = {"model": "lssvm", "solver": "coordinate"}
    message = refusal(train, matrix, **asked)
    assert "needs all rows in memory" in message
    assert refusal(train, matrix, **asked, **APPROX) == message


def test_one_class_on_disk_is_named(tmp_path):
    X, y = blobs()
    matrix = on_disk(tmp_path, X, np.full(len(y), 2.5))
    message = f"{matrix.name}: labels must be of at least 2 classes, got 2.5"
    assert refusal(train, matrix) == message


def test_a_matrix_wider_than_memory_is_refused(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(streamed, "require_memory", seen.append)
    train(on_disk(tmp_path, *blobs()), tol=1e-2)
    assert seen == [3]


def test_a_checkpoint_on_disk_is_of_its_rows_and_costs(tmp_path):
    X, y = blobs()

    def fingerprint(rows, **given):
        kept = tmp_path / "kept"
        train(on_disk(tmp_path, rows, y), tol=1e-2, checkpoint=kept, **given)
        return read_snapshot(kept)["fingerprint"]["data"]

    found = fingerprint(X)
    assert found == fingerprint(X) == data_fingerprint(open_matrix(tmp_path / "matrix"), np.ones(3))
    assert found != fingerprint(X, class_weight={4.0: 2.0})
    assert found[0] != fingerprint(X + 1)[0]


def test_sub_problems_on_disk_are_recalled_from_a_checkpoint(tmp_path):
    X, y = blobs()
    matrix = on_disk(tmp_path, X, y)
    asked = {"solver": "newton", "checkpoint": tmp_path / "kept", "tol": 1e-6}
    whole = train(matrix, solver="newton", tol=1e-6)
    rows = []

    def stop_in_the_second(row):
        rows.append(row["problem"])
        return row["problem"] == 1

    train(matrix, callback=stop_in_the_second, **asked)
    seen = []
    again = train(
        matrix, resume=True, callback=lambda row: seen.append(row["problem"]) and False, **asked
    )
    assert set(rows) == {0, 1, 2}
    assert set(seen) == {1, 2}
    np.testing.assert_allclose(again.record.weights, whole.record.weights, rtol=1e-6, atol=1e-8)


def test_a_sub_problem_on_disk_has_its_slot_in_the_checkpoint(tmp_path, monkeypatch):
    starts, real = [], streamed.solve_problem
    monkeypatch.setattr(
        streamed, "solve_problem", lambda p, s, start: starts.append(start) or real(p, s, start)
    )
    matrix = on_disk(tmp_path, *blobs())
    train(matrix, tol=1e-2)
    train(matrix, tol=1e-2, checkpoint=tmp_path / "kept")
    assert [start.slot is None for start in starts] == [True] * 3 + [False] * 3


def test_the_key_of_a_path_on_disk_is_that_of_its_rows(tmp_path):
    X, y = blobs()
    first = data_fingerprint(on_disk(tmp_path, X, y), y)
    assert first == data_fingerprint(open_matrix(tmp_path / "matrix"), y)
    assert first != data_fingerprint(on_disk(tmp_path, X + 1, y), y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": "rbf"}, "a path along rows on disk is linear, got kernel 'rbf'"),
        (
            {"multiclass": "ovo"},
            "rows on disk are trained one class against the rest (ovr), got ovo",
        ),
    ],
)
def test_paths_that_need_rows_in_memory_are_one_whole_line(tmp_path, options, message):
    assert refusal(path, on_disk(tmp_path, *blobs()), **options) == message


# ---------------------------------------------------------------- from file to file


def a_machine(kernel="linear", n=3, extra=None):
    record = SimpleNamespace(kernel=kernel, extra=extra or {})
    return SimpleNamespace(record=record, n_features=n)


def test_unseen_features_are_cut_for_linear_machines_alone():
    X = csr_matrix(np.arange(8.0).reshape(2, 4))
    assert columns_of(X, "linear", 3, "file").shape == (2, 3)
    assert columns_of(X, "linear", 4, "file") is X
    assert columns_of(X, "linear", 5, "file") is X
    assert columns_of(X, "rbf", 3, "file") is X


KERNEL = csr_matrix(np.array([[1.0, 0.5, 0.25, 0.125], [2.0, 0.0, 1.0, 3.0]]))  # serials first


@pytest.mark.parametrize("ours", [True, False])
def test_columns_of_a_kernel_are_those_of_the_training_rows(ours):
    K = np.array([[0.5, 0.25, 0.125], [0.0, 1.0, 3.0]])
    assert columns_of(KERNEL, "precomputed", 3, "file", ours).tolist() == K.tolist()
    wider = columns_of(KERNEL, "precomputed", 5, "file", ours)
    assert wider.tolist() == np.hstack([K, np.zeros((2, 2))]).tolist()


def test_a_kernel_with_more_columns_than_training_rows_is_refused_where_they_are_known():
    message = "file: the model was trained on 2 rows, its kernel has columns 1 to 2, got 3"
    assert refusal(columns_of, KERNEL, "precomputed", 2, "file", kind=FormatError) == message
    assert columns_of(KERNEL, "precomputed", 2, "file", False).shape == (2, 2)
    known = a_machine("precomputed", 2, {"n_samples": 2})
    assert refusal(columns_for, KERNEL, known, "file", kind=FormatError) == message
    for extra in ({}, {"n_samples": 3}):
        assert columns_for(KERNEL, a_machine("precomputed", 2, extra), "file").shape == (2, 2)


def saved(tmp_path, probability=None):
    weights = np.array([[1.0], [-2.0], [0.5]])
    record = ModelRecord(
        np.array([4.0, 2.0]), 3, np.array([0.25]), weights=weights, probability=probability
    )
    Machine(record).save(tmp_path / "model")
    return Machine(record)


@pytest.fixture
def in_blocks(monkeypatch):
    """Files are read a few rows at a time."""
    sizes = []
    real = predictions.checked_blocks

    def small(*args):
        for X, y in real(*args):
            for k in range(0, len(y), 7):
                sizes.append(len(y[k : k + 7]))
                yield row_slice(X, k, min(k + 7, len(y))), y[k : k + 7]

    monkeypatch.setattr(predictions, "checked_blocks", small)
    return sizes


@pytest.mark.parametrize("stored", [False, True], ids=["text", "matrix"])
def test_labels_scores_and_probabilities_go_from_file_to_file(tmp_path, stored, in_blocks):
    X, y = blobs(n=20, labels=(4.0, 2.0))
    m = saved(tmp_path, ([-2.0], [0.5]))
    on_disk(tmp_path, X, y)
    source = tmp_path / ("matrix" if stored else "text")
    right = int((m.predict(X) == y).sum())
    assert 0 < right < 20
    for what in ("labels", "scores", "probabilities"):
        got = predict_file(source, tmp_path / "model", tmp_path / "out", what)
        lines = (tmp_path / "out").read_text().splitlines()
        if what == "probabilities":
            assert lines.pop(0) == "labels 4 2"
            p = m.predict_proba(X)
            labels = m.classes[p.argmax(axis=1)]
            assert got == (20, int((labels == y).sum()))
            np.testing.assert_allclose([np.float64(s.split()[1:]) for s in lines], p, rtol=1e-5)
        else:
            labels = m.predict(X)
            assert got == (20, right)
        if what == "scores":
            f = m.decision_function(X)
            np.testing.assert_allclose([float(s.split()[1]) for s in lines], f, rtol=1e-5)
        assert [float(s.split()[0]) for s in lines] == labels.tolist()
        assert {len(s.split()) for s in lines} == {{"labels": 1, "scores": 2}.get(what, 3)}
    assert in_blocks == ([] if stored else [7, 7, 6] * 3)
    assert predict_file(source, tmp_path / "model", tmp_path / "out") == (20, right)


def test_a_model_without_probabilities_is_named(tmp_path):
    saved(tmp_path)
    message = f"{tmp_path / 'model'}: the model has no probabilities; train it with -b 1"
    got = refusal(predict_file, "any", tmp_path / "model", "out", "probabilities")
    assert got == message


def test_a_file_that_cannot_be_read_leaves_the_output_as_it_is(tmp_path):
    saved(tmp_path)
    (tmp_path / "out").write_text("before")
    (tmp_path / "text").write_text("1 x\n")
    with pytest.raises(FormatError):
        predict_file(tmp_path / "text", tmp_path / "model", tmp_path / "out")
    assert (tmp_path / "out").read_text() == "before"


@pytest.mark.parametrize("stored", [False, True], ids=["text", "matrix"])
def test_a_precomputed_kernel_goes_from_file_to_file(tmp_path, stored, in_blocks):
    X, y = blobs(n=16, labels=(4.0, 2.0))
    K = np.round(oracle.gram(X, X, "rbf", 0.5, 0, 0), 6)
    m = train(K, y, kernel="precomputed")
    m.save(tmp_path / "model")
    text = "".join(
        f"{label:g} 0:{i} " + " ".join(f"{j}:{v!r}" for j, v in enumerate(row.tolist(), 1)) + "\n"
        for i, (label, row) in enumerate(zip(y, K, strict=True), 1)
    )
    (tmp_path / "text").write_text(text)
    source = tmp_path / "text"
    if stored:
        source = tmp_path / "matrix"
        convert([tmp_path / "text"], source, zero_based=True)
    got = predict_file(source, tmp_path / "model", tmp_path / "out", "scores")
    assert got == (16, int((m.predict(K) == y).sum()))
    scores = [float(s.split()[1]) for s in (tmp_path / "out").read_text().splitlines()]
    np.testing.assert_allclose(scores, m.decision_function(K), rtol=1e-5)


def test_a_matrix_whose_indices_count_from_one_is_no_kernel(tmp_path):
    X, y = blobs(n=16, labels=(4.0, 2.0))
    K = oracle.gram(X, X, "rbf", 0.5, 0, 0)
    train(K, y, kernel="precomputed").save(tmp_path / "model")
    matrix = on_disk(tmp_path, K, y)
    message = (
        f"{matrix.name}: a precomputed kernel needs 0:serial in every row, this matrix was "
        "converted from indices that count from 1"
    )
    files = tmp_path / "matrix", tmp_path / "model", tmp_path / "out"
    assert refusal(predict_file, *files, kind=FormatError) == message
