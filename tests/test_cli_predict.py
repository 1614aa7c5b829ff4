"""`nesvm-jit predict` and `info`, beside the programs whose files they share."""

import json
import re
import shutil
import subprocess

import numpy as np
import pytest
from nesvm_jit.matrix.checks import as_matrix

from .commands import contents, data_file, done, folder_with, kernel_text, refused
from .data import blobs

needs_libsvm = pytest.mark.skipif(not shutil.which("svm-train"), reason="LIBSVM is not installed")
needs_liblinear = pytest.mark.skipif(
    not shutil.which("liblinear-train"), reason="LIBLINEAR is not installed"
)

X, y = blobs(labels=(3, 1, 2), n=120)
PAIR = X[y != 2], y[y != 2]
here = folder_with(
    **{"two": (PAIR[0][:60], PAIR[1][:60]), "two.t": (PAIR[0][60:], PAIR[1][60:])},
    **{"three": (X[:60], y[:60]), "three.t": (X[60:], y[60:])},
)


def tool(*args) -> str:
    return subprocess.run(args, check=True, capture_output=True, text=True, timeout=60).stdout


def accuracy(text: str) -> str:
    return re.search(r"\((\d+/\d+)\)", text)[1]


def rounded(text: str) -> list[list[str]]:
    """Numbers as `%.3g` shows them, for what two programs iterate to."""
    return [[f"{float(w):.3g}" for w in line.split()] for line in text.splitlines()[1:]]


# ---------------------------------------------------------------- output


def test_prints_the_line_of_svm_predict(here):
    done("train", "-q", "three")
    outcome = done("predict", "three.t", "three.model", "out")
    pattern = r"Accuracy = \d+(\.\d+)?% \(\d+/60\) \(classification\)\n"
    assert re.fullmatch(pattern, outcome.out)
    assert outcome.err == ""
    assert len((here / "out").read_text().splitlines()) == 60


def test_json_has_the_keys_of_the_contract(here):
    done("train", "-q", "three")
    facts = json.loads(done("predict", "--json", "three.t", "three.model", "out").out)
    assert list(facts) == ["n_samples", "correct", "accuracy", "seconds"]
    given = [line.split()[0] for line in (here / "three.t").read_text().splitlines()]
    got = (here / "out").read_text().split()
    assert facts["correct"] == sum(a == b for a, b in zip(given, got, strict=True))
    assert facts["accuracy"] == facts["correct"] / facts["n_samples"]


def test_quiet_prints_nothing(here):
    done("train", "-q", "two")
    assert done("predict", "-q", "two.t", "two.model", "out") == (0, "", "")


@pytest.mark.parametrize("target", ["-", "/dev/stdout"])
def test_standard_streams(here, target):
    done("train", "-q", "two")
    line = done("predict", "two.t", "two.model", "out").out
    test = (here / "two.t").read_bytes()
    expected = (0, (here / "out").read_text(), line)
    assert done("predict", "-", "two.model", target, stdin=test) == expected
    model = (here / "two.model").read_bytes()
    assert done("predict", "two.t", "-", target, stdin=model) == expected


def test_labels_are_printed_as_c_prints_them(here):
    data_file(here / "odd", labels=(0.1, 1e3, -0.0, 123456789), n=40)
    text = (here / "odd").read_text().replace("1.23457e+08", "123456789")
    (here / "odd").write_text(text)
    done("train", "-q", "-c", "100", "odd")
    out = done("predict", "-q", "odd", "odd.model", "-").out
    assert set(out.split()) == {"0.10000000000000001", "1000", "0", "123456789"}


@pytest.mark.parametrize("how", ["ovo", "ovr"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_every_kind_of_machine_learns_three_classes(here, kernel, how):
    done("train", "-q", "-t", kernel, "--multiclass", how, "three")
    facts = json.loads(done("predict", "--json", "three.t", "three.model", "out").out)
    assert facts["accuracy"] > 0.7
    scores = done("predict", "-q", "--scores", "three.t", "three.model", "-").out
    labels = [line.split()[0] for line in scores.splitlines()]
    assert labels == (here / "out").read_text().split()
    assert {len(line.split()) for line in scores.splitlines()} == {4}


def test_probabilities_have_a_header_and_add_up(here):
    done("train", "-q", "-b", "1", "three")
    header, *lines = done("predict", "-q", "-b", "1", "three.t", "three.model", "-").out.split("\n")
    assert header == "labels 3 1 2"
    table = np.array([line.split() for line in lines if line], dtype=float)
    assert table.shape == (60, 4)
    assert table[:, 1:].sum(axis=1) == pytest.approx(1)
    assert (np.array([3, 1, 2])[table[:, 1:].argmax(axis=1)] == table[:, 0]).all()


def test_rows_may_have_more_and_fewer_features(here):
    done("train", "-q", "two")
    (here / "odd").write_text("1\n3 1:1\n1 1:1 99:5\n3 4000000000:1\n")
    out = done("predict", "-q", "--scores", "odd", "two.model", "-").out.splitlines()
    assert out[1] == out[2]
    assert out[0] == out[3]


# ---------------------------------------------------------------- other programs


@needs_libsvm
@pytest.mark.parametrize("data", ["two", "three"])
@pytest.mark.parametrize("kernel", ["1", "2"])
def test_kernel_models_and_predictions_are_svm_predicts(here, data, kernel):
    for train in (lambda: done("train", "-q", "-t", kernel, data, "m"), None):
        if train is None:
            tool("svm-train", "-q", "-t", kernel, data, "m")
        else:
            train()
        theirs = tool("svm-predict", f"{data}.t", "m", "theirs")
        assert done("predict", f"{data}.t", "m", "ours").out == theirs
        assert (here / "ours").read_bytes() == (here / "theirs").read_bytes()


@needs_libsvm
@pytest.mark.parametrize("data", ["two", "three"])
def test_probabilities_are_svm_predicts(here, data):
    done("train", "-q", "-t", "rbf", "-b", "1", data, "ours.model")
    tool("svm-train", "-q", "-b", "1", data, "theirs.model")
    for model in ("ours.model", "theirs.model"):
        tool("svm-predict", "-b", "1", f"{data}.t", model, "theirs")
        done("predict", "-q", "-b", "1", f"{data}.t", model, "ours")
        texts = [(here / name).read_text() for name in ("ours", "theirs")]
        assert texts[0].split("\n")[0] == texts[1].split("\n")[0].rstrip()
        a, b = (np.array(rounded(text), dtype=float) for text in texts)
        within = 5e-3 if data == "three" else 1e-3  # LIBSVM's coupling stops early
        np.testing.assert_allclose(a[:, 1:], b[:, 1:], atol=within)
        best = np.sort(b[:, 1:], axis=1)
        tied = best[:, -1] - best[:, -2] < 2 * within
        assert (a[:, 0] == b[:, 0])[~tied].all()


@needs_libsvm
def test_precomputed_models_are_svm_predicts(here):
    X, y = blobs(n=70)
    K = X @ X.T
    (here / "K").write_text(kernel_text(K[:50, :50], y[:50]))
    (here / "K.t").write_text(kernel_text(K[50:, :50], y[50:], first=51))
    done("train", "-q", "-t", "precomputed", "K", "ours.model")
    tool("svm-train", "-q", "-t", "4", "K", "theirs.model")
    for model in ("ours.model", "theirs.model"):
        theirs = tool("svm-predict", "K.t", model, "theirs")
        assert done("predict", "K.t", model, "ours").out == theirs
        assert (here / "ours").read_bytes() == (here / "theirs").read_bytes()


@needs_liblinear
@pytest.mark.parametrize("data", ["two", "three"])
@pytest.mark.parametrize("args", [["-s", "3"], ["-s", "0", "-B", "1"], ["-s", "4"], None])
def test_linear_models_and_predictions_are_liblinears(here, data, args):
    if args is None:
        done("train", "-q", data, "m")
    else:
        tool("liblinear-train", "-q", *args, data, "m")
    theirs = tool("liblinear-predict", f"{data}.t", "m", "theirs")
    assert accuracy(done("predict", f"{data}.t", "m", "ours").out) == accuracy(theirs)
    assert (here / "ours").read_bytes() == (here / "theirs").read_bytes()


@needs_liblinear
def test_logistic_models_give_liblinears_probabilities(here):
    tool("liblinear-train", "-q", "-s", "0", "three", "m")
    tool("liblinear-predict", "-b", "1", "three.t", "m", "theirs")
    done("predict", "-q", "-b", "1", "three.t", "m", "ours")
    texts = [(here / name).read_text() for name in ("ours", "theirs")]
    assert rounded(texts[0]) == rounded(texts[1])


# ---------------------------------------------------------------- info


def test_info_shows_the_model_and_its_certificate(here):
    done("train", "-q", "-t", "poly", "-d", "2", "three")
    out = done("info", "three.model").out
    for line in ("kernel           poly", "classes          3 1 2", "degree           2"):
        assert line in out.splitlines()
    assert re.search(r"^certified gap    \d\.\d{3}e-\d\d$", out, re.M)
    assert out.count("iterations of coordinate, converged") == 3
    facts = json.loads(done("info", "--json", "three.model").out)
    assert facts["classes"] == [3, 1, 2]
    assert len(facts["problems"]) == 3


@needs_libsvm
def test_info_of_another_programs_model_claims_no_certificate(here):
    tool("svm-train", "-q", "two", "m")
    out = done("info", "m").out
    assert "certificate      none: the model was not trained by this program" in out
    assert "gap" not in json.loads(done("info", "--json", "m").out)


def test_info_reads_standard_input(here):
    done("train", "-q", "two")
    piped = done("info", "-", stdin=(here / "two.model").read_bytes())
    assert piped == done("info", "two.model")


# ---------------------------------------------------------------- mistakes


def test_precomputed_files_of_the_wrong_kind(here):
    X, y = blobs(n=20)
    K = X @ X.T
    (here / "K").write_text(kernel_text(K, y))
    done("train", "-q", "-t", "4", "K")
    (here / "wide").write_text(kernel_text(np.hstack([K, K]), y))
    assert "was trained on 20 rows" in refused("predict", "wide", "K.model", "out")
    assert "needs 0:serial in every row" in refused("predict", "two", "K.model", "out")
    assert "needs 0:serial in every row" in refused("train", "-t", "4", "two")
    (here / "shuffled").write_text(kernel_text(K, y, first=2))
    assert "needs 0:1, 0:2, ... in its rows" in refused("train", "-t", "4", "shuffled")
    assert "needs columns 1 to 20" in refused("train", "-t", "4", "wide")
    assert "takes no number" in refused("train", "-t", "4", "--features", "3", "K")
    assert not (here / "out").exists()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["-b", "1", "two", "two.model", "out"], "two.model: the model has no probabilities"),
        (["-b", "1", "--scores", "two", "two.model", "out"], "--scores and -b 1 exclude"),
        (["-b", "2", "two", "two.model", "out"], "2 is not in the range"),
        (["--json", "two", "two.model", "-"], "both need standard output"),
        (["-", "-", "out"], "cannot both be standard input"),
        (["two", "two.model", "two"], "must be another file"),
        (["two", "two.model", "./two.model"], "must be another file"),
        (["two", "two.model"], "Missing argument 'OUTPUT_FILE'"),
        (["two", "two.model", "no/out"], "no/out: cannot be written: No such file"),
        (["two", "two.model", "."], ".: cannot be written: Is a directory"),
        (["two", "two", "out"], "two:1: a model that starts with solver_type"),
        (["two.model", "two.model", "out"], "two.model:1: label must be a decimal number"),
    ],
)
def test_mistakes_are_one_line_and_write_nothing(here, args, message):
    done("train", "-q", "two")
    before = contents(here)
    assert message in refused("predict", *args)
    assert contents(here) == before


def test_a_mistake_late_in_the_file_keeps_the_old_output(here, monkeypatch):
    from nesvm_jit.machine import predict

    blocks = predict.checked_blocks
    monkeypatch.setattr(predict, "checked_blocks", lambda *a: blocks(*a, block_bytes=100))
    done("train", "-q", "two")
    (here / "late").write_text((here / "two").read_text() + "1 5:x\n")
    (here / "out").write_text("old")
    assert "late:61: value must be a decimal number" in refused(
        "predict", "late", "two.model", "out"
    )
    assert (here / "out").read_text() == "old"
    assert not list(here.glob(".*"))


def test_rows_that_are_predicted_are_told_after_every_block(tmp_path, monkeypatch):
    from nesvm_jit import train
    from nesvm_jit.machine import predict

    X, y = np.array([[1.0, 0.0], [-1.0, 0.5], [2.0, 1.0]]), np.array([1.0, -1.0, 1.0])
    model = tmp_path / "model"
    train(X, y).save(model)
    blocks = [(as_matrix(X[:2]), y[:2]), (as_matrix(X[2:]), y[2:])]
    monkeypatch.setattr(predict, "_blocks", lambda path, machine: (block for block in blocks))
    told = []
    found = predict.predict_file("rows", model, tmp_path / "out", progress=told.append)
    assert told == [{"rows": 2}, {"rows": 3}]
    assert found == (3, 3)
    assert (tmp_path / "out").read_text() == "1\n-1\n1\n"
