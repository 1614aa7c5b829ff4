"""`nesvm-jit path`: table, files, JSON, Ctrl-C."""

import json
import os
import re
import signal

import numpy as np
import pytest
from nesvm_jit import load_model, read_libsvm
from nesvm_jit.cli.progress import Progress

from tests.endings import train

from .commands import command, done, files_in, folder_with, kernel_text, refused
from .data import blobs

here = folder_with(two=blobs(n=90), three=blobs((0.5, 1e3, -2)))

FACTS = {
    *("model", "kernel", "solver", "n_samples", "n_features", "classes", "bias", "tol", "folds"),
    *("repeats", "seed", "scoring", "costs", "gammas", "cells", "best", "one_se", "chosen"),
    *("refit", "test", "seconds", "status"),
}


def test_prints_a_table_and_writes_nothing(here):
    lines = done("path", "two", "-v", "3").out.splitlines()
    assert re.fullmatch(r" +C +accuracy +time +SV +weights +gap", lines[0])
    assert [float(line.split()[0]) for line in lines[1:8]] == [10.0**k for k in range(-3, 4)]
    assert sum("best" in line for line in lines[1:8]) == 1
    assert sum("one-se" in line for line in lines[1:8]) == 1
    assert re.fullmatch(r"Best: C = \S+, accuracy = 0\.\d{4} \+/- 0\.\d{4}", lines[8])
    assert lines[9].startswith("Within one standard error: C = ")
    assert len(lines) == 10
    assert files_in(here) == ["three", "two"]


def test_trains_the_model_chosen_and_tests_it(here):
    args = ("path", "two", "-c", "0.1:10:3", "--rule", "one-se", "-o", "m", "--test", "two")
    out = done(*args).out
    C = float(re.search(r"^Within one standard error: C = (\S+),", out, re.M)[1])
    X, y = read_libsvm("two")
    weights = train(X, y, C=C).record.weights
    np.testing.assert_allclose(load_model("m").record.weights, weights)
    accuracy = np.mean(load_model("m").predict(X) == y)
    assert f"Test: accuracy = {accuracy:.4f}, balanced accuracy" in out
    assert files_in(here) == ["m", "three", "two"]


def test_json(here):
    args = ("--json", "-c", "1,10", "-v", "3", "--repeats", "2", "--scoring", "auc", "--test")
    facts = json.loads(done("path", "two", *args, "two").out)
    assert set(facts) == FACTS
    assert list(facts["seconds"]) == ["read", "fits", "refit", "total"]
    assert facts["test"]["n_samples"] == 90
    assert facts["refit"]["status"] == facts["status"] == "converged"
    assert [len(cell["gaps"]) for cell in facts["cells"]] == [6, 6]
    assert all(all(cell["certified"]) for cell in facts["cells"])
    best = max(facts["cells"], key=lambda cell: np.mean(cell["scores"]["auc"]))
    assert facts["best"]["C"] == best["C"]


def test_kernels_and_several_classes(here):
    out = done("path", "three", "-t", "rbf", "-c", "1,10", "-g", "0.1,scale", "-v", "3").out
    assert re.match(r" +C +gamma +accuracy +time +SV +gap\n", out)
    assert len(out.splitlines()) == 7
    K, y = np.eye(20) + 0.5, np.resize([1.0, -1.0], 20)
    (here / "K").write_text(kernel_text(K, y))
    done("path", "K", "-t", "precomputed", "-c", "1", "-v", "2", "--test", "K", "-q")


def test_quiet_prints_nothing(here):
    assert done("path", "two", "-q", "-c", "1", "-v", "2") == (0, "", "")


def test_a_missed_tolerance_is_a_warning(here):
    outcome = done("path", "two", "-c", "1,2", "-v", "2", "--max-iter", "1")
    assert outcome.err.startswith("nesvm-jit: warning: the tolerance 0.001 is not certified")
    assert "for 4 of 4 fits" in outcome.err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["-c", "1:2"], "costs must be LOW:HIGH:COUNT"),
        (["-g", "1"], "gammas are for poly and rbf kernels"),
        (["-v", "91"], "n_folds must be a whole number from 2 to 90"),
        (["-v", "1"], "1 is not in the range x>=2"),
        (["-o", "two"], "MODEL must be another file than the one that is read"),
        (["-o", "no/where"], "no such folder"),
        (["--json", "-o", "-"], "--json and a MODEL of - both need standard output"),
        (["--test", "nowhere"], "nowhere: cannot be read"),
    ],
)
def test_mistakes_are_one_line(here, args, message):
    assert message in refused("path", "two", *args)
    assert files_in(here) == ["three", "two"]


def test_ctrl_c_and_the_same_command_again(here, monkeypatch):
    args = ("path", "two", "-c", "0.1:10:3", "-v", "4", "--json")
    whole = json.loads(done(*args).out)
    shown = Progress.__call__

    def pressing(self, row):
        if row["done"] == 7:
            os.kill(os.getpid(), signal.SIGINT)
        return shown(self, row)

    with monkeypatch.context() as patch:
        patch.setattr(Progress, "__call__", pressing)
        outcome = command(*args)
    line = "nesvm-jit: interrupted; the same command goes on from what two.path.json keeps\n"
    assert outcome == (130, "", line)
    assert files_in(here) == ["three", "two", "two.path.json"]
    again = json.loads(done(*args).out)
    for a, b in zip(whole["cells"], again["cells"], strict=True):
        assert {**a, "seconds": 0} == {**b, "seconds": 0}
    assert files_in(here) == ["three", "two"]


def test_ctrl_c_before_anything_is_finished(here, monkeypatch):
    def pressing(self, row):
        return True

    monkeypatch.setattr(Progress, "__call__", pressing)
    assert command("path", "two") == (130, "", "nesvm-jit: interrupted\n")
    assert files_in(here) == ["three", "two"]
