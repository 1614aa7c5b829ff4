"""`nesvm-jit convert`, and `predict` on what it makes."""

import json
import os
import re
import signal
import sys

import numpy as np
import pytest
from nesvm_jit import convert, open_matrix, read_libsvm
from nesvm_jit.cli import progress
from nesvm_jit.cli.progress import Progress
from nesvm_jit.cli.words import reading_line

from .commands import command, done, files_in, folder_with, kernel_text, refused
from .data import blobs

here = folder_with(two=blobs(), three=blobs((3, 1, 2)))


# ---------------------------------------------------------------- convert


def test_prints_what_there_is_now(here):
    outcome = done("convert", "two", "three", "m")
    assert re.fullmatch(r"120 rows, 4 features, \d+ values: \S+ MB in m\n", outcome.out)
    assert outcome.err == ""
    assert open_matrix("m").n_rows == 120


def test_json_has_its_keys(here):
    facts = json.loads(done("convert", "--json", "--features", "9", "two", "m").out)
    M = open_matrix("m")
    assert facts.pop("seconds") > 0
    expected = {"n_samples": 60, "n_features": 9, "n_cells": M.n_cells, "bytes": M.nbytes}
    assert facts == {**expected, "resumed": False}


def test_quiet_prints_nothing(here):
    assert done("convert", "-q", "--float32", "--threads", "1", "two", "m") == (0, "", "")
    assert open_matrix("m").dtype == np.float32


def test_standard_input(here):
    done("convert", "-q", "-", "m", stdin=(here / "two").read_bytes())
    assert open_matrix("m").labels.tolist() == read_libsvm("two")[1].tolist()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["none", "m"], "none: cannot be read: No such file"),
        (["two", "three"], "three: cannot be written: it exists and is no on-disk matrix"),
        (["two", "."], ".: cannot be written: the folder exists and holds something else"),
        (["two", "-"], "BINARY_DIR must be a folder, got -"),
        (["-", "two", "m"], "standard input or an open file must be the only one"),
        (["two"], "Missing argument 'TEXT_FILE...'"),
        (["--features", "2", "two", "m"], "two:1: index must be at most 2, got 3"),
        (["two", "no/m"], "no/m: cannot be written: No such file"),
    ],
)
def test_mistakes_are_one_line_and_write_nothing(here, args, message):
    before = files_in(here)
    assert message in refused("convert", *args)
    assert files_in(here) == before


def press_at(monkeypatch, at):
    """Ctrl-C after so many blocks."""
    shown, calls = Progress.__call__, []

    def pressing(self, facts):
        calls.append(facts)
        if len(calls) == at + 1:
            os.kill(os.getpid(), signal.SIGINT)
        return shown(self, facts)

    monkeypatch.setattr(Progress, "__call__", pressing)


def test_an_interrupted_run_says_that_it_can_go_on(here, monkeypatch, small_text_blocks):
    with monkeypatch.context() as patch:
        press_at(patch, 3)
        outcome = command("convert", "two", "m")
    message = "nesvm-jit: interrupted; without --fresh the same command goes on where it stopped\n"
    assert outcome == (130, "", message)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert files_in(here) == [".m.part", "three", "two"]
    assert json.loads(done("convert", "--json", "two", "m").out)["resumed"] is True
    assert open_matrix("m").labels.tolist() == read_libsvm("two")[1].tolist()
    assert files_in(here) == ["m", "three", "two"]


def test_fresh_starts_anew(here, monkeypatch, small_text_blocks):
    with monkeypatch.context() as patch:
        press_at(patch, 3)
        assert command("convert", "two", "m").code == 130
    facts = json.loads(done("convert", "--json", "--fresh", "two", "m").out)
    assert facts["resumed"] is False
    assert facts["n_samples"] == 60


@pytest.mark.parametrize(("args", "at", "stdin"), [(["two"], 0, b""), (["-"], 3, b"1 1:1\n" * 999)])
def test_an_interrupt_with_nothing_to_go_on_from(
    here, monkeypatch, small_text_blocks, args, at, stdin
):
    press_at(monkeypatch, at)
    outcome = command("convert", *args, "m", stdin=stdin)
    assert outcome == (130, "", "nesvm-jit: interrupted\n")
    assert files_in(here) == ["three", "two"]


def test_a_terminal_shows_rows_and_speed(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(progress, "LATER", 0.0)
    monkeypatch.setattr(progress, "EVERY", 0.0)
    with Progress(reading_line, wanted=True) as meter:
        for k in range(3):
            meter({"rows": k, "cells": k, "text_bytes": k * 10**6, "file": "a9a"})
    *lines, blank, end = capsys.readouterr().err.split("\r")[1:]
    pattern = r"\d rows  \d MB of text  \d+ MB/s  a9a *"
    assert len(lines) == 3
    assert all(re.fullmatch(pattern, line) for line in lines)
    assert blank.strip() == end == ""
    with Progress(reading_line, wanted=False) as meter:
        meter({"rows": 1, "cells": 1, "text_bytes": 1, "file": "a9a"})
    assert capsys.readouterr().err == ""


# ---------------------------------------------------------------- predict


@pytest.mark.parametrize("args", [[], ["-b", "1"], ["--scores"]])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_predictions_are_those_of_the_text(here, kernel, args, monkeypatch):
    from nesvm_jit.files.ondisk.matrix import OnDisk

    blocks = OnDisk.blocks
    monkeypatch.setattr(OnDisk, "blocks", lambda self: blocks(self, 500))
    done("train", "-q", "-t", kernel, "-b", "1", "three")
    done("convert", "-q", "three", "m")
    text = done("predict", *args, "three", "three.model", "out.text").out
    assert done("predict", *args, "m", "three.model", "out.disk").out == text
    words = [(here / f"out.{kind}").read_text().replace("labels", "0") for kind in ("disk", "text")]
    got, expected = (np.array(w.split(), dtype=float) for w in words)
    np.testing.assert_allclose(got, expected, rtol=1e-12)  # BLAS rounds by the shape of a block


@pytest.mark.parametrize("features", [2, 4, 9])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_rows_may_have_more_and_fewer_features(here, kernel, features):
    X, y = blobs(p=features)
    rows = (" ".join(f"{j}:{v:.6g}" for j, v in enumerate(x, 1)) for x in X)
    (here / "t").write_text("".join(f"{k:g} {row}\n" for k, row in zip(y, rows, strict=True)))
    done("train", "-q", "-t", kernel, "two")
    done("convert", "-q", "t", "m")
    text = done("predict", "t", "two.model", "out.text").out
    assert done("predict", "m", "two.model", "out.disk").out == text
    assert (here / "out.disk").read_bytes() == (here / "out.text").read_bytes()


def test_precomputed_kernels_need_their_serials(here):
    X, y = blobs()
    (here / "k").write_text(kernel_text(X @ X.T, y))
    done("train", "-q", "-t", "precomputed", "k")
    convert("k", "m", zero_based=True)
    text = done("predict", "k", "k.model", "out.text").out
    assert done("predict", "m", "k.model", "out.disk").out == text
    assert (here / "out.disk").read_bytes() == (here / "out.text").read_bytes()
    done("convert", "-q", "two", "from-one")
    assert "from-one: a precomputed kernel needs 0:serial" in refused(
        "predict", "from-one", "k.model", "out"
    )


def test_a_damaged_matrix_keeps_the_old_output(here):
    done("train", "-q", "two")
    done("convert", "-q", "two", "m")
    (here / "out").write_text("old")
    indices = bytearray((here / "m/indices.bin").read_bytes())
    indices[-1] = 255
    (here / "m/indices.bin").write_bytes(indices)
    assert "m/indices.bin: damaged in rows 0..60" in refused("predict", "m", "two.model", "out")
    os.truncate(here / "m/indices.bin", 8)
    assert "m/indices.bin: 960 bytes are required, got 8" in refused(
        "predict", "m", "two.model", "out"
    )
    (here / "m/header.json").write_bytes(b"{")
    assert "m/header.json: damaged" in refused("predict", "m", "two.model", "out")
    assert "Is a directory" in refused("predict", ".", "two.model", "out")
    assert (here / "out").read_text() == "old"
