"""`nesvm-jit train`: options, output, Ctrl-C and progress."""

import fcntl
import io
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time

import pytest
from nesvm_jit.cli import progress
from nesvm_jit.cli.progress import ENDING, Progress

from .commands import ENDLESS, command, done, files_in, folder_with, kernel_text, refused
from .data import blobs

here = folder_with(two=blobs(), three=blobs((0.5, 1e3, -2)))

FACTS = {
    *("model", "kernel", "solver", "n_samples", "n_features", "n_classes", "C", "objective"),
    *("dual_objective", "gap", "iterations", "status", "seconds"),
}


def fact(out: str, name: str) -> str:
    found = re.findall(rf"^{re.escape(name)} = (.*)$", out, re.M)
    assert len(found) == 1, out
    return found[0]


# ---------------------------------------------------------------- what is printed


def test_ends_with_the_lines_of_liblinear_and_libsvm(here):
    outcome = done("train", "two")
    lines = outcome.out.splitlines()
    assert re.fullmatch(r"optimization finished, #iter = \d+", lines[0])
    assert re.fullmatch(r"Objective value = \d+\.\d{6}", lines[1])
    assert re.fullmatch(r"nSV = \d+", lines[2])
    assert re.fullmatch(r"Certified gap = \d\.\d{3}e-\d\d", lines[3])
    assert len(lines) == 4
    assert outcome.err == ""
    assert files_in(here) == ["three", "two", "two.model"]


def test_json_says_why_an_engine_ran(here):
    facts = json.loads(done("train", "--json", "two").out)
    assert facts["solver"] == "newton"
    assert facts["why"] == "the data are so few that one compiled call fits them"
    assert json.loads(done("info", "--json", "two.model").out)["problems"][0]["why"]


@pytest.mark.parametrize("data", ["two", "three"])
def test_a_model_may_be_the_start(here, data):
    done("train", "-c", "1", "-e", "1e-6", data, "first")
    cold = json.loads(done("train", "--json", "-c", "1", "-e", "1e-6", data).out)
    warm = json.loads(
        done("train", "--json", "-c", "1", "-e", "1e-6", "--warm-start", "first", data).out
    )
    assert warm["certified"]
    assert warm["objective"] == pytest.approx(cold["objective"], rel=1e-5)
    other = "three" if data == "two" else "two"
    assert "must have" in refused("train", "--warm-start", "first", other)
    assert "do not go together" in refused("train", "-v", "2", "--warm-start", "first", data)
    assert "cannot be read" in refused("train", "--warm-start", "nowhere", data)


def test_json_has_the_keys_of_the_contract(here):
    facts = json.loads(done("train", "--json", "two").out)
    assert set(facts) >= FACTS
    assert list(facts["seconds"]) == ["read", "solve", "write", "total"]
    assert facts["seconds"]["total"] >= facts["seconds"]["solve"]
    assert (facts["n_samples"], facts["n_features"], facts["n_classes"]) == (60, 4, 2)
    assert facts["status"] == "converged"
    assert facts["dual_objective"] <= facts["objective"]
    expected = (facts["objective"] - facts["dual_objective"]) / facts["objective"]
    assert facts["gap"] == pytest.approx(expected)
    assert "problems" not in facts


@pytest.mark.parametrize(("how", "count"), [("ovo", 3), ("ovr", 3), (None, 3)])
def test_json_of_several_classes_sums_the_problems(here, how, count):
    args = ["--multiclass", how] if how else []
    facts = json.loads(done("train", "--json", *args, "three").out)
    assert facts["n_classes"] == 3
    assert len(facts["problems"]) == count
    for name in ("objective", "dual_objective", "iterations"):
        assert facts[name] == pytest.approx(sum(p[name] for p in facts["problems"]))
    assert facts["gap"] == max(p["gap"] for p in facts["problems"])
    sides = {len(p["classes"]) for p in facts["problems"]}
    assert sides == ({2} if how == "ovo" else {1})


def test_several_classes_print_a_line_each(here):
    lines = done("train", "-t", "rbf", "three").out.splitlines()
    assert [line.split(":")[0] for line in lines[:3]] == [
        "class 0.5 against 1000",
        "class 0.5 against -2",
        "class 1000 against -2",
    ]
    assert len(lines) == 7


def test_quiet_prints_nothing_but_that_the_tolerance_was_not_certified(here):
    assert done("train", "-q", "two") == (0, "", "")
    outcome = done("train", "-q", "--max-iter", "1", "two")
    assert (outcome.out, outcome.err.count("\n")) == ("", 1)
    assert outcome.err.startswith("nesvm-jit: warning: the tolerance 0.001 is not certified")
    assert (here / "two.model").exists()


def test_json_prints_nothing_else(here):
    assert done("train", "--json", "two").err == ""
    outcome = done("train", "--json", "--max-iter", "1", "two")
    assert outcome.out.count("\n") == 1
    assert outcome.err.startswith("nesvm-jit: warning: the tolerance 0.001 is not certified")
    assert json.loads(outcome.out)["status"] == "iteration_limit"


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (["--max-iter", "1"], "the limit of iterations was reached"),
        (["--time-limit", "0"], "the time limit was reached"),
        (["--solver", "nesvm"], "the paper's rule, a change below --epsilon, ended it"),
    ],
)
def test_a_missed_tolerance_is_a_warning_and_no_error(here, args, why):
    outcome = done("train", *args, "two")
    said = r"nesvm-jit: warning: the tolerance 0.001 is not certified \(gap .*\): .*; .*\n"
    assert re.fullmatch(said, outcome.err)
    assert why in outcome.err
    assert (here / "two.model").exists()


def test_badly_scaled_features_are_hinted_at(here):
    (here / "wide").write_text("1 1:1 2:5000\n-1 1:2 2:1000\n")
    outcome = done("train", "--max-iter", "3", "wide")
    assert outcome.err.startswith("nesvm-jit: hint: features reach from")


# ---------------------------------------------------------------- options


@pytest.mark.parametrize(
    "args",
    [
        ["-s", "lpsvm"],
        ["--model", "lssvm"],
        ["-t", "2", "-g", "0.5", "-m", "10"],
        ["--kernel", "rbf", "--gamma", "scale", "--cache-mb", "10"],
        ["-t", "1", "-d", "2", "-r", "1"],
        ["--kernel", "poly", "--degree", "2", "--coef0", "1"],
        ["-c", "10", "-e", "1e-2"],
        ["--cost", "0.1", "--tol", "0.01"],
        ["--bias"],
        ["--no-bias"],
        ["-B", "-1"],
        ["--solver", "homotopy", "--mu-start", "2", "--mu-end", "0.5", "--epsilon", "0.1"],
        ["--solver", "nesvm", "--mu", "1", "--lipschitz", "tight"],
        ["--solver", "newton"],
        ["-t", "rbf", "--solver", "coordinate"],
        ["-b", "1"],
        ["--probability", "1", "--seed", "3"],
        ["--features", "9", "--float32"],
        ["--threads", "1", "--max-iter", "50", "--time-limit", "60"],
        ["--quiet"],
    ],
    ids=" ".join,
)
def test_every_option_of_the_contract_is_taken(here, args):
    from nesvm_jit import get_threads, set_threads

    before = get_threads()
    try:
        done("train", *args, "two", "m")
    finally:
        set_threads(before)
    assert done("info", "m").out


def test_numbers_of_kernels_are_libsvms(here):
    objective = {
        name: fact(done("train", "-t", name, "two").out, "Objective value")
        for name in ("0", "linear", "1", "poly", "2", "rbf")
    }
    assert objective["0"] == objective["linear"]
    assert objective["1"] == objective["poly"]
    assert objective["2"] == objective["rbf"]


def test_spellings_of_class_weights_agree(here):
    spelt = [
        ["-w1", "2", "-w-1", "5"],
        ["-w", "1", "2", "-w", "-1", "5"],
        ["-w1.0", "2", "-w-1e0", "5"],
        ["-c", "2", "-w-1", "2.5"],
    ]
    found = {fact(done("train", *args, "two").out, "Objective value") for args in spelt}
    assert len(found) == 1
    assert found != {fact(done("train", "two").out, "Objective value")}


def test_liblinears_bias_letter_is_the_bias_option(here):
    without = done("train", "--no-bias", "two").out
    assert done("train", "-B", "-1", "two").out == without
    assert done("train", "-B", "1", "two").out == done("train", "two").out != without


@pytest.mark.parametrize("args", [[], ["-t", "rbf"], ["-b", "1"], ["-w", "1", "2"]])
def test_cross_validation_prints_an_accuracy_and_writes_nothing(here, args):
    out = done("train", "-v", "3", *args, "two").out
    assert re.fullmatch(r"Cross Validation Accuracy = \d+(\.\d+)?%\n", out)
    assert files_in(here) == ["three", "two"]


def test_cross_validation_as_json(here):
    facts = json.loads(done("train", "-v", "3", "--json", "three").out)
    assert facts["folds"] == len(facts["accuracies"]) == 3
    assert 0.5 < facts["accuracy"] <= 1
    assert set(facts["seconds"]) == {"read", "solve", "total"}


def test_precomputed_kernels_are_read_as_libsvm_writes_them(here):
    X, y = blobs()
    (here / "K").write_text(kernel_text(X @ X.T, y))
    expected = float(fact(done("train", "-e", "1e-6", "two").out, "Objective value"))
    got = float(fact(done("train", "-e", "1e-6", "-t", "4", "K").out, "Objective value"))
    assert got == pytest.approx(expected, rel=1e-4)
    assert "Accuracy" in done("train", "-t", "precomputed", "-v", "3", "K").out


# ---------------------------------------------------------------- files


@pytest.mark.parametrize("ending", ["gz", "bz2", "xz"])
def test_compressed_files_train_the_same_model(here, ending):
    import bz2
    import gzip
    import lzma

    module = {"gz": gzip, "bz2": bz2, "xz": lzma}[ending]
    plain = (here / "two").read_bytes()
    (here / f"two.{ending}").write_bytes(module.compress(plain))
    expected = done("train", "two").out
    assert done("train", f"two.{ending}").out == expected
    assert done("train", "-", "m", stdin=module.compress(plain)).out == expected
    done("train", "-q", "two", f"packed.{ending}")
    assert done("predict", "two", f"packed.{ending}", "out").out
    assert (here / f"two.{ending}.model").exists()


def test_crlf_is_no_part_of_the_data(here):
    (here / "crlf").write_bytes((here / "two").read_bytes().replace(b"\n", b"\r\n"))
    assert done("train", "crlf").out == done("train", "two").out


@pytest.mark.parametrize("target", ["-", "/dev/stdout"])
def test_a_model_on_standard_output_has_it_alone(here, target):
    outcome = done("train", "two", target)
    done("train", "-q", "two", "m")
    cut = outcome.out.index("nesvm_jit {")
    assert outcome.out[:cut] == (here / "m").read_text()[:cut]
    assert outcome.out.count("\n") == (here / "m").read_text().count("\n")
    assert outcome.err.startswith("optimization finished, #iter = ")


@pytest.mark.parametrize("name", ["-w 1", "new\nline", "no\xe9", "a b", "x" * 240])
def test_odd_names_are_names(here, name):
    (here / name).write_bytes((here / "two").read_bytes())
    done("train", "-q", "--", name)
    assert (here / f"{name}.model").exists()
    done("predict", "-q", "--", name, f"{name}.model", "-out")
    assert (here / "-out").exists()


@pytest.mark.parametrize("name", ["two.model", "deep/er.model"])
def test_the_model_goes_where_it_is_asked_to(here, name):
    (here / "deep").mkdir()
    (here / "data").mkdir()
    (here / "two").rename(here / "data" / "two")
    done("train", "-q", "data/two", *([name] if "/" in name else []))
    assert (here / name).exists()
    assert not (here / "data" / "two.model").exists()


# ---------------------------------------------------------------- Ctrl-C and progress


def press_at(monkeypatch, at, times=1):
    """Ctrl-C in round `at` of whatever is solved next."""
    shown = Progress.__call__

    def pressing(self, row):
        if row["round"] == at:
            for _ in range(times):
                os.kill(os.getpid(), signal.SIGINT)
        return shown(self, row)

    monkeypatch.setattr(Progress, "__call__", pressing)


@pytest.mark.parametrize(("data", "args"), [("two", []), ("three", []), ("two", ["-b", "1"])])
def test_an_interrupted_run_keeps_its_model_and_certificate(here, monkeypatch, data, args):
    press_at(monkeypatch, 30)
    outcome = command("train", *ENDLESS, *args, data)
    assert outcome.code == 130
    assert outcome.err.count("\n") == 1
    assert outcome.err.startswith("nesvm-jit: warning: the tolerance 0 is not certified")
    assert "it was interrupted, and what it found was kept" in outcome.err
    facts = json.loads(done("info", "--json", f"{data}.model").out)
    assert "interrupted" in {p["status"] for p in facts["problems"]}
    assert facts["gap"] <= 1
    assert "Certified gap" in outcome.out
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupted_run_says_so_in_json(here, monkeypatch):
    press_at(monkeypatch, 30)
    outcome = command("train", "--json", *ENDLESS, "two")
    assert (outcome.code, outcome.err.count("\n")) == (130, 1)
    assert json.loads(outcome.out)["status"] == "interrupted"


def test_an_interrupted_cross_validation_has_no_result(here, monkeypatch):
    press_at(monkeypatch, 30)
    outcome = command("train", "-v", "3", *ENDLESS, "two")
    assert outcome == (130, "", "nesvm-jit: interrupted\n")


def test_a_second_interrupt_ends_at_once(here, monkeypatch):
    def leave(code):
        raise SystemExit(code)

    monkeypatch.setattr(os, "_exit", leave)
    said = []
    monkeypatch.setattr(os, "write", lambda to, text: said.append((to, text)))
    press_at(monkeypatch, 30, times=2)
    outcome = command("train", *ENDLESS, "two")
    assert (outcome.code, outcome.out) == (130, "")
    assert said == [(2, b"nesvm-jit: interrupted\n")]
    assert files_in(here) == ["three", "two"]


def test_an_interrupt_before_the_fit_is_one_line(here, monkeypatch):
    def pressed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("nesvm_jit.files.training.read_training", pressed)
    assert command("train", "two") == (130, "", "nesvm-jit: interrupted\n")
    assert files_in(here) == ["three", "two"]


def on_terminal(columns, *args):
    """A command with a terminal as standard error: what is shown after Ctrl-C in some round."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    program = subprocess.Popen(
        [sys.executable, "-m", "nesvm_jit", *args],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=slave,
    )
    os.close(slave)
    shown, asked = b"", False
    try:
        while True:
            try:
                piece = os.read(master, 4096)
            except OSError:  # the end, on Linux
                break
            if not piece:
                break
            shown += piece
            if shown.count(b"round") > 2 and not asked:
                program.send_signal(signal.SIGINT)
                asked = True
        out, _ = program.communicate(timeout=60)
    finally:
        program.kill()
        os.close(master)
    return program.returncode, out.decode(), shown.decode()


def test_a_terminal_shows_one_line_that_is_written_over(here):
    code, out, shown = on_terminal(100, "train", *ENDLESS, "-e", "1e-15", "two")
    assert code == 130
    assert "\r" not in out
    *refreshed, last = shown.rstrip("\r\n").split("\r")
    assert "\n" not in "".join(refreshed)
    pattern = r"round \d+  objective \S+  gap \S+( \(\S+ x tolerance\))?  \d+\.\d s *"
    rounds = [line for line in refreshed if line.startswith("round")]
    assert len(rounds) > 2
    assert all(re.fullmatch(pattern, line) for line in rounds)
    assert any("x tolerance" in line for line in rounds)
    assert last.startswith("nesvm-jit: warning: the tolerance 1e-15 is not certified")
    assert json.loads(done("info", "--json", "two.model").out)["problems"]


def test_a_narrow_terminal_is_not_wrapped(here):
    code, _, shown = on_terminal(20, "train", *ENDLESS, "three")
    assert code == 130
    refreshed = [line for line in shown.split("\r") if "problem" in line]
    assert refreshed
    assert all(len(line) < 20 for line in refreshed)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_long_wait_for_the_first_round_is_explained(monkeypatch):
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(progress, "WAITING", 0.01)
    with Progress(lambda *_: "line", True, ENDING) as callback:
        until = time.perf_counter() + 10
        while "compiles" not in shown.getvalue() and time.perf_counter() < until:
            time.sleep(0.01)
        assert callback({"round": 1, "objective": 1.0, "gap": 0.5}) is False
    *_, line, blank, end = shown.getvalue().split("\r")
    assert line.startswith("preparing; the first run of its kind compiles")
    assert blank == " " * len(line)
    assert end == ""


@pytest.mark.parametrize("wanted", [True, False])
def test_nothing_is_shown_where_nobody_looks(monkeypatch, wanted):
    shown = io.StringIO() if wanted else Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(progress, "LATER", 0.0)
    with Progress(lambda *_: "line", wanted, ENDING) as callback:
        callback({"round": 1, "objective": 1.0, "gap": 0.5})
    assert shown.getvalue() == ""
