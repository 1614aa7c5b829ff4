"""Whatever goes wrong is one line on standard error; old files survive, nothing is left over."""

import errno
import json
import os
import resource
import subprocess
import sys
import tempfile

import pytest
from nesvm_jit.settings import MODELS

from .commands import contents, done, folder_with, refused
from .data import blobs

here = folder_with(two=blobs())


# ---------------------------------------------------------------- options


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["-c", "0"], "C must be positive and finite, got 0.0"),
        (["-c", "-1"], "C must be positive and finite, got -1.0"),
        (["-c", "nan"], "C must be positive and finite, got nan"),
        (["-c", "inf"], "C must be positive and finite, got inf"),
        (["-c", "much"], "'much' is not a valid float"),
        (["-c", "1,5"], "'1,5' is not a valid float"),
        (["-e", "-1"], "tol must be zero or positive"),
        (["-s", "3"], f"'3' is not one of {str(MODELS)[1:-1]}"),
        (["-t", "3"], "'3' is not one of 'linear', 'poly', 'rbf', 'precomputed'"),
        (["-t", "rbf", "-g", "0"], "gamma must be positive, got 0"),
        (["-t", "rbf", "-g", "-1"], "gamma must be positive, got -1"),
        (["-t", "rbf", "-g", "nan"], "gamma must be finite"),
        (["-t", "rbf", "-g", "wide"], "'wide' is not a valid float"),
        (["-t", "poly", "-d", "-1"], "degree must be a whole number"),
        (["-t", "poly", "-d", "1.5"], "'1.5' is not a valid integer"),
        (["-t", "poly", "-r", "nan"], "coef0 must be finite"),
        (["-t", "rbf", "-m", "0"], "cache_mb must be positive"),
        (["-w", "1"], "'two' is not a valid float"),
        (["-wx", "2"], "'x' is not a valid float"),
        (["-w3", "2"], "got label 3.0"),
        (["-w1", "-2"], "class_weight of 1.0 must be zero or positive"),
        (["-w1", "nan"], "class_weight of 1.0 must be zero or positive"),
        (["-w1", "0"], "class 1 must have a row of positive weight"),
        (["-b", "2"], "2 is not in the range 0<=x<=1"),
        (["-v", "1"], "1 is not in the range x>=2"),
        (["-v", "61"], "from 2 to 60 (the number of rows), got 61"),
        (["--solver", "fast"], "'fast' is not one of 'auto', 'nesvm'"),
        (
            ["--solver", "coordinate", "-s", "lssvm", "-t", "rbf"],
            "solver must be one of auto, nesvm",
        ),
        (["--mu", "0"], "mu must be positive"),
        (["--mu-end", "0"], "mu_end must be positive"),
        (["--epsilon", "-1"], "epsilon must be zero or positive"),
        (["--lipschitz", "loose"], "'loose' is not one of 'paper', 'tight'"),
        (["--multiclass", "all"], "'all' is not one of 'ovo', 'ovr'"),
        (["--max-iter", "0"], "0 is not in the range x>=1"),
        (["--time-limit", "-1"], "time_limit must be zero or positive"),
        (["--time-limit", "nan"], "time_limit must be zero or positive"),
        (["--seed", "-1"], "-1 is not in the range x>=0"),
        (["--features", "0"], "0 is not in the range x>=1"),
        (["--features", "3"], "two:1: index must be at most 3, got 4"),
        (["--threads", "0"], "0 is not in the range x>=1"),
        (["--threads", "9999"], "threads must be a whole number from 1 to"),
        (["--fast"], "No such option"),
    ],
    ids=" ".join,
)
def test_wrong_values_are_one_line(here, args, message):
    before = contents(here)
    assert message in refused("train", *args, "two")
    assert contents(here) == before


def test_arguments_that_do_not_go_together(here):
    assert "MODEL_FILE is required" in refused("train", "-")
    assert "both need standard output" in refused("train", "--json", "two", "-")
    assert "must be another file" in refused("train", "two", "../here/two")
    assert "Missing argument 'TRAINING_FILE'" in refused("train")
    assert "unexpected extra argument" in refused("train", "two", "m", "n")


# ---------------------------------------------------------------- data


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "bad: no rows"),
        (b"\n\n# nothing\n", "bad: no rows"),
        (b"1 1:1\n1 1:2\n", "at least 2 classes, got only 1"),
        (b"1 1:nan\n-1 1:2\n", "bad:1: value must be a decimal number"),
        (b"1 1:1\n-1 1:inf\n", "bad:2: value must be a decimal number"),
        (b"1 1:1e999\n-1 1:2\n", "bad:1: number too large"),
        (b"nan 1:1\n-1 1:2\n", "bad:1: label must be a decimal number"),
        (b"1 99999999999:1\n", "bad:1: index must be at most"),
        (b"1 0:1\n-1 1:2\n", "bad:1: index must be at least 1"),
        (b"1 2:1 1:1\n", "bad:1: "),
        (bytes(range(128, 256)) * 9, "bad:1: label must be a decimal number"),
        (b"\x1f\x8b\x08\x00junk", "bad: damaged gzip data"),
    ],
)
def test_unusable_data_are_one_line(here, data, message):
    (here / "bad").write_bytes(data)
    done("train", "-q", "two", "good.model")
    before = contents(here)
    assert message in refused("train", "bad")
    if "classes" not in message:
        assert message in refused("predict", "bad", "good.model", "out")
        assert message.replace("bad:", "<standard input>:") in refused(
            "train", "-", "m", stdin=data
        )
    assert contents(here) == before


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing", "missing: cannot be read: No such file or directory"),
        (".", ".: cannot be read: Is a directory"),
        ("two/x", "two/x: cannot be read: Not a directory"),
        ("", "'': cannot be read: No such file or directory"),
        ("no\nsuch", r"'no\nsuch': cannot be read: No such file or directory"),
        ("x" * 300, "x: cannot be read: File name too long"),
        ("\x1b[31m", r"'\x1b[31m': cannot be read"),
    ],
)
def test_files_that_cannot_be_read(here, name, message):
    before = contents(here)
    assert message in refused("train", name, "m")
    assert message in refused("info", name)
    assert message in refused("predict", "two", name, "out")
    assert contents(here) == before


def test_a_file_without_permission(here, monkeypatch):
    def denied(path, *_, **__):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr("nesvm_jit.files.text.open", denied, raising=False)
    assert refused("train", "two") == "nesvm-jit: two: cannot be read: Permission denied\n"


# ---------------------------------------------------------------- results that cannot be written


def test_a_model_that_cannot_be_written_is_known_before_training(here, monkeypatch):
    monkeypatch.setattr("nesvm_jit.files.training.read_training", None)
    (here / "loop").symlink_to("loop")
    (here / "astray").symlink_to("no/such")
    for name, why in {
        "no/m": "no such folder",
        "a\nb/m": "no such folder",
        "astray": "no such folder",
        ".": "it is a folder",
        "two/m": "Not a directory",
        "x" * 300: "File name too long",
        "loop": "Too many levels of symbolic links",
    }.items():
        assert f"cannot be written: {why}" in refused("train", "two", name)


def test_permissions_are_asked_before_training(here, monkeypatch):
    monkeypatch.setattr("nesvm_jit.files.training.read_training", None)
    (here / "old").write_text("old")
    denied = {str(here / "old")}
    monkeypatch.setattr(os, "access", lambda path, _: os.fspath(path) not in denied)
    assert "old: cannot be written: permission denied\n" in refused("train", "two", "old")
    denied.add(str(here))
    assert "permission denied in its folder" in refused("train", "two", "new")


def test_a_full_disk_keeps_the_old_files(here):
    done("train", "-q", "two")
    done("predict", "-q", "two", "two.model", "out")
    before = contents(here.parent)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50, limits[1]))
    try:
        trained = refused("train", "-c", "2", "two")
        predicted = refused("predict", "two", "two.model", "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert trained == "nesvm-jit: two.model: cannot be written: File too large\n"
    assert predicted == "nesvm-jit: out: cannot be written: File too large\n"
    assert contents(here.parent) == before
    assert os.listdir(tempfile.gettempdir()) == []


def test_a_model_is_rescued_when_its_disk_is_full(here, monkeypatch):
    from nesvm_jit.files.model import text as model_text

    def full_here(path):
        if path == "two.model":
            raise model_text.InputError("two.model: cannot be written: No space left on device")
        return writing(path)

    writing = model_text.writing
    monkeypatch.setattr(model_text, "writing", full_here)
    line = refused("train", "two")
    assert "No space left on device; the model was saved as " in line
    assert "certified gap" in done("info", line.split()[-1]).out
    assert list(contents(here)) == ["two"]


# ---------------------------------------------------------------- models


def test_truncated_models_are_refused(here):
    done("train", "-q", "two")
    whole = (here / "two.model").read_bytes()
    for size in range(0, len(whole) - 1, 29):
        (here / "cut").write_bytes(whole[:size])
        at = whole.index(b"nesvm_jit")
        if size == at:  # what LIBLINEAR would have written
            continue
        assert "cut:" in refused("info", "cut"), size
    assert "cut:" in refused("predict", "two", "cut", "out")
    assert not (here / "out").exists()


JUNK = [
    *(None, 1, -1.5, 10**400, True, float("nan"), float("inf"), "x", "\x1b[31m\n", "é"),
    *([], {}, [1], [[]], [None], ["x"], [{}], [{"gap": "x"}], [10**400], {"a": 1}, "y" * 999),
]


def info_is_sensible(here, head: bytes, closing: dict) -> bool:
    """`info` prints plain text or one line of error; true for text."""
    (here / "hostile").write_bytes(head + b"nesvm_jit " + json.dumps(closing).encode() + b"\n")
    results = []
    for args in (["hostile"], ["--json", "hostile"]):
        try:
            outcome = done("info", *args, encoding="ascii")
            assert outcome.err == ""
            assert "\x1b" not in outcome.out
            results.append(True)
            if args[0] == "--json":
                json.loads(outcome.out)
        except AssertionError:
            assert "the certificate in the model is damaged" in refused("info", *args)
            results.append(False)
    done("predict", "-q", "two", "hostile", "out")
    assert results[0] == results[1]
    return results[0]


def test_whatever_the_last_line_of_a_model_says_there_is_no_traceback(here):
    done("train", "-q", "two")
    head, _, last = (here / "two.model").read_bytes().rpartition(b"nesvm_jit ")
    closing = json.loads(last)
    extra = closing["extra"]
    (problem,) = extra["problems"]
    assert info_is_sensible(here, head, {**closing, "extra": {}})
    for name in (*extra, "new", "\x1b[2J", "gap", "classes"):
        for junk in JUNK:
            shown = info_is_sensible(here, head, {**closing, "extra": {**extra, name: junk}})
            assert shown == (name != "problems")
    for name in ("classes", "objective", "dual_objective", "gap", "iterations", "solver", "status"):
        for junk in (None, "\x1b[31m\n", [], {}, [None]):
            wrong = {**extra, "problems": [{**problem, name: junk}]}
            assert not info_is_sensible(here, head, {**closing, "extra": wrong})
        less = {k: v for k, v in problem.items() if k != name}
        assert not info_is_sensible(here, head, {**closing, "extra": {**extra, "problems": [less]}})


# ---------------------------------------------------------------- surroundings


def shell(script: str, **env) -> subprocess.CompletedProcess:
    """A shell script in which $N is the command."""
    return subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "N": f"{sys.executable} -m nesvm_jit", **env},
    )


def test_pipes_that_break_and_streams_that_are_closed(here):
    done("train", "-q", "two")
    found = shell(
        "$N predict two two.model - 2>/dev/null | true; echo ${PIPESTATUS[0]}\n"
        "$N predict two two.model - >&-; echo $?\n"
        "$N predict - two.model out <&-; echo $?\n"
        "$N train -v 2 two 2>&-; echo $?\n"
    )
    assert "Traceback" not in found.stderr
    assert "Exception" not in found.stderr
    assert found.stderr.splitlines() == [
        "nesvm-jit: <standard output>: cannot be written: it is closed",
        "nesvm-jit: <standard input>: no rows; at least one line `label index:value ...` "
        "is required",
    ]
    lines = found.stdout.splitlines()
    assert [line for line in lines if "=" not in line][1:] == ["1", "1", "0"]


def test_other_locales_change_no_number(here):
    expected = done("train", "two").out
    model = (here / "two.model").read_text().partition("nesvm_jit")[0]
    assert shell("$N train two", LC_ALL="de_DE.UTF-8").stdout == expected
    assert (here / "two.model").read_text().partition("nesvm_jit")[0] == model
    found = shell("$N train $'no\\xc3\\xa9'", LC_ALL="C", PYTHONIOENCODING="ascii")
    (line,) = found.stderr.splitlines()
    assert line.startswith("nesvm-jit: no")
    assert line.endswith(": cannot be read: No such file or directory")
