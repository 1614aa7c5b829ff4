"""The command itself and the short ones: every ending, every line."""

import importlib
import io
import json
import os
import signal
import sys
from pathlib import Path
from types import SimpleNamespace

import click
import numpy as np
import pytest
from nesvm_jit import cli
from nesvm_jit.errors import NesvmError
from nesvm_jit.jit import cache as codecache

from .commands import command, data_file, done, refused

WARMUP = importlib.import_module("nesvm_jit.cli.warmup")
CONVERT = importlib.import_module("nesvm_jit.cli.convert")
PREDICT = importlib.import_module("nesvm_jit.cli.predict")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def ending(monkeypatch):
    """`info` ends by an exception of the test's."""

    def end(error):
        def callback(**_):
            raise error

        monkeypatch.setattr(cli.command.commands["info"], "callback", callback)
        return command("info", "x")

    return end


def ticking(module, monkeypatch, *seconds):
    """The module's clock, one reading after the other."""
    times = iter(seconds)
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: next(times)))


# ---------------------------------------------------------------- endings


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (click.Abort(), 130, "interrupted"),
        (click.Abort("one", "two"), 130, "interrupted; one; two"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (KeyboardInterrupt("go on"), 130, "interrupted; go on"),
        (click.UsageError("a  wrong\n option"), 2, "a wrong option"),
        (click.ClickException("wrong"), 1, "wrong"),
        (NesvmError("two\nlines"), 1, "two lines"),
        (OSError(28, "No space left", "file"), 1, "file: No space left"),
        (OSError(28, "No space left"), 1, "<standard output>: No space left"),
        (OSError("odd"), 1, "<standard output>: odd"),
        (MemoryError(), 1, "out of memory"),
    ],
    ids=repr,
)
def test_every_error_is_a_line_and_a_code(ending, error, code, line):
    assert ending(error) == (code, "", f"nesvm-jit: {line}\n")


def test_an_exit_without_an_error_says_nothing(ending):
    assert ending(click.exceptions.Exit(0)) == (0, "", "")


def test_errors_that_are_none_of_the_users_are_raised(ending):
    with pytest.raises(ZeroDivisionError):
        ending(ZeroDivisionError())


def test_a_broken_pipe_is_silent_and_later_output_goes_nowhere(ending, monkeypatch):
    moved = []
    monkeypatch.setattr(
        os, "dup2", lambda a, b: moved.append((os.readlink(f"/proc/self/fd/{a}"), b))
    )
    monkeypatch.setattr("tests.commands.stream", Stream)
    assert ending(BrokenPipeError()) == (1, "", "")
    assert moved == [(os.devnull, 99)]


class Stream(io.TextIOWrapper):
    """What `tests.commands.stream` makes, with a number."""

    def __init__(self, data=b"", encoding="utf-8"):
        super().__init__(io.BytesIO(data), encoding=encoding, write_through=True)

    def fileno(self):
        return 99


@pytest.mark.parametrize("tty", [True, False])
def test_ctrl_c_on_a_terminal_ends_the_line_that_has_its_sign(monkeypatch, tty):
    def callback(**_):
        raise KeyboardInterrupt("why")

    monkeypatch.setattr(cli.command.commands["info"], "callback", callback)
    out, err = io.StringIO(), io.StringIO()
    err.isatty = lambda: tty
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    with pytest.raises(click.Abort) as e:
        cli.command(["info", "x"], standalone_mode=False)
    assert e.value.args == ("why",)
    assert (out.getvalue(), err.getvalue()) == ("", "\n" * tty)


def test_without_a_command_the_help_goes_to_standard_error():
    outcome = command()
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("Usage: nesvm-jit [OPTIONS] COMMAND [ARGS]...\n")


def test_the_version_is_the_packages():
    import nesvm_jit

    assert done("--version").out == f"nesvm-jit, version {nesvm_jit.__version__}\n"
    assert nesvm_jit.__version__ == "0.1.0.dev0"


def test_helps_are_a_hundred_columns_wide_at_most():
    with cli.command.make_context("nesvm-jit", ["info", "x"]) as ctx:
        assert ctx.max_content_width == 100
        assert ctx.help_option_names == ["-h", "--help"]


def test_streams_that_the_caller_closed_are_empty(monkeypatch):
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdin", None)
    monkeypatch.setattr(sys, "stderr", None)
    monkeypatch.setattr(sys, "stdout", out)
    cli._mend_streams()
    stdin, stderr = sys.stdin, sys.stderr
    assert stdin.read() == ""
    assert stderr.write("lost") == 4
    assert (stdin.name, stderr.name) == (os.devnull, os.devnull)
    out.write("é")
    out.flush()
    assert out.buffer.getvalue() == b"\\xe9"
    stdin.close()
    stderr.close()
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stdin", kept := io.StringIO("x"))
    monkeypatch.setattr(sys, "stderr", said := io.StringIO())
    cli._mend_streams()
    assert (sys.stdin, sys.stderr) == (kept, said)


def test_public_names_are_loaded_once_and_modules_are_modules():
    import nesvm_jit
    from nesvm_jit import distributed, kernels
    from nesvm_jit.errors import InputError
    from nesvm_jit.selection.path import path

    for name in ("InputError", "path", "kernels", "distributed"):
        vars(nesvm_jit).pop(name, None)
    assert nesvm_jit.InputError is InputError
    assert vars(nesvm_jit)["InputError"] is InputError
    assert nesvm_jit.path is path
    assert (nesvm_jit.kernels, nesvm_jit.distributed) == (kernels, distributed)
    assert dir(nesvm_jit) == sorted(nesvm_jit.__all__)
    with pytest.raises(AttributeError) as e:
        nesvm_jit.nothing  # noqa: B018
    assert str(e.value) == "module 'nesvm_jit' has no attribute 'nothing'"


def test_main_runs_the_command(monkeypatch):
    from nesvm_jit.__main__ import main

    ran = []
    monkeypatch.setattr(cli, "main", lambda: ran.append("run"))
    main()
    assert ran == ["run"]


# ---------------------------------------------------------------- warmup


@pytest.fixture
def steps(monkeypatch):
    """Two steps that note that they ran; Ctrl-C is ours again afterwards."""
    before = signal.getsignal(signal.SIGINT)
    ran = []
    made = [("first", lambda: ran.append(1)), ("second", lambda: ran.append(2))]
    monkeypatch.setattr("nesvm_jit.cli.compile_ahead.steps", lambda: iter(made))
    monkeypatch.setattr(codecache, "cache_folders", lambda: (Path("/cache/x"), []))
    monkeypatch.setattr(codecache, "caching_enabled", lambda: True)
    yield SimpleNamespace(ran=ran, made=made)
    signal.signal(signal.SIGINT, before)


def test_warmup_names_every_kernel_and_where_they_are(steps, monkeypatch):
    ticking(WARMUP, monkeypatch, 100.0, 101.0, 103.0, 103.0, 103.5, 107.25)
    assert done("warmup").out == (
        f"  1/2  {'first':32s}   2.00 s\n"
        f"  2/2  {'second':32s}   0.50 s\n"
        "2 kernels ready in 7.2 s, kept in /cache/x\n"
    )
    assert steps.ran == [1, 2]


@pytest.mark.parametrize(("folder", "enabled"), [(None, True), (Path("/cache/x"), False)])
def test_warmup_says_that_nothing_is_kept(steps, monkeypatch, folder, enabled):
    monkeypatch.setattr(codecache, "cache_folders", lambda: (folder, [Path("/other")]))
    monkeypatch.setattr(codecache, "caching_enabled", lambda: enabled)
    last = done("warmup").out.splitlines()[-1]
    assert last.endswith(" s, not kept: caching is off or has no folder")


def test_warmup_may_be_quiet(steps):
    assert done("warmup", "-q") == (0, "", "")
    assert steps.ran == [1, 2]


def test_ctrl_c_that_a_kernel_swallows_ends_warmup_after_it(steps):
    def swallow():
        try:
            os.kill(os.getpid(), signal.SIGINT)
        except KeyboardInterrupt:
            steps.ran.append("caught")

    steps.made.insert(1, ("swallows", swallow))
    outcome = command("warmup", "-q")
    assert outcome == (130, "", "nesvm-jit: interrupted\n")
    assert steps.ran == [1, "caught"]


# ---------------------------------------------------------------- info


def test_info_of_a_matrix_is_a_line_for_each_fact(here):
    (here / "rows").write_text("1 1:1 3:2\n-1 2:1\n1 1:5\n")
    done("convert", "-q", "--float32", "rows", "m")
    size = sum(p.stat().st_size for p in (here / "m").iterdir())
    facts = json.loads(done("info", "--json", "m").out)
    assert facts == {
        **{"n_samples": 3, "n_features": 3, "n_cells": 4, "dtype": "float32"},
        **{"bytes": facts["bytes"], "n_classes": 2, "rarest": 1, "verified": True},
    }
    assert 0 < facts["bytes"] <= size
    assert done("info", "m").out == "".join(f"{k:10} {v}\n" for k, v in facts.items())


def test_info_checks_the_sums_of_a_matrix(here):
    (here / "rows").write_text("1 1:1 3:2\n-1 2:1\n1 1:5\n")
    done("convert", "-q", "rows", "m")
    values = bytearray((here / "m/values.bin").read_bytes())
    values[0] ^= 1
    (here / "m/values.bin").write_bytes(values)
    assert "m/values.bin: damaged" in refused("info", "m")
    assert "m/values.bin: damaged" in refused("info", "--json", "m")


# ---------------------------------------------------------------- predict


@pytest.fixture
def predicting(monkeypatch):
    """predict_file notes its arguments, and finds two of three rows right."""
    asked = []

    def note(test_file, model_file, output_file, what, progress):
        asked.append((test_file, model_file, output_file, what))
        assert progress({"rows": 3}) is False
        return 3, 2

    monkeypatch.setattr("nesvm_jit.machine.predict.predict_file", note)
    return asked


@pytest.mark.parametrize(
    ("args", "what"),
    [
        ([], "labels"),
        (["-b", "0"], "labels"),
        (["-b", "1"], "probabilities"),
        (["--scores"], "scores"),
        (["--scores", "-b", "0"], "scores"),
    ],
)
def test_predict_asks_for_what_is_wanted(predicting, args, what):
    outcome = done("predict", *args, "t", "m", "out")
    assert predicting == [("t", "m", "out", what)]
    assert outcome == (0, "Accuracy = 66.6667% (2/3) (classification)\n", "")


def test_predict_as_json_quietly_and_beside_its_output(predicting, monkeypatch):
    ticking(PREDICT, monkeypatch, 10.0, 11.23456789)
    assert json.loads(done("predict", "--json", "t", "m", "out").out) == {
        **{"n_samples": 3, "correct": 2, "accuracy": 2 / 3, "seconds": 1.234568}
    }
    ticking(PREDICT, monkeypatch, *range(9))
    assert done("predict", "-q", "t", "m", "out") == (0, "", "")
    line = "Accuracy = 66.6667% (2/3) (classification)\n"
    assert done("predict", "t", "m", "-") == (0, "", line)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--json", "t", "m", "-"], "--json and an OUTPUT_FILE of - both need standard output"),
        (["-", "-", "out"], "TEST_FILE and MODEL_FILE cannot both be standard input"),
        (["--scores", "-b", "1", "t", "m", "out"], "--scores and -b 1 exclude each other"),
        (["t", "m", "t"], "OUTPUT_FILE must be another file than the one that is read"),
        (["t", "m", "m"], "OUTPUT_FILE must be another file than the one that is read"),
    ],
)
def test_predict_refuses_before_it_reads(here, predicting, args, message):
    (here / "t").write_text("")
    (here / "m").write_text("")
    outcome = command("predict", *args)
    assert outcome == (2, "", f"nesvm-jit: {message}\n")
    assert predicting == []


def test_two_names_that_are_the_same_without_being_streams_are_no_streams(here, predicting):
    done("predict", "-q", "t", "t", "out")
    assert predicting == [("t", "t", "out", "labels")]


# ---------------------------------------------------------------- convert


@pytest.fixture
def converting(monkeypatch):
    asked = []

    def note(*args, **options):
        asked.append((args, {k: v for k, v in options.items() if k != "progress"}))
        options["progress"]({"rows": 1, "text_bytes": 1, "file": "a"})
        return SimpleNamespace(n_rows=5, n_cols=4, n_cells=9, nbytes=1_260_000, resumed=True)

    monkeypatch.setattr("nesvm_jit.files.ondisk.convert.convert", note)
    return asked


@pytest.mark.parametrize(
    ("args", "features", "dtype", "resume"),
    [
        ([], None, "float64", True),
        (["--float32"], None, "float32", True),
        (["--features", "7", "--fresh"], 7, "float64", False),
    ],
)
def test_convert_hands_its_options_on(converting, args, features, dtype, resume):
    outcome = done("convert", *args, "a", "b", "m")
    assert converting == [((("a", "b"), "m", features, dtype), {"resume": resume})]
    assert outcome == (0, "5 rows, 4 features, 9 values: 1.3 MB in m\n", "")


def test_convert_as_json(converting, monkeypatch):
    ticking(CONVERT, monkeypatch, 10.0, 11.23456789)
    assert json.loads(done("convert", "--json", "a", "m").out) == {
        **{"n_samples": 5, "n_features": 4, "n_cells": 9, "bytes": 1_260_000},
        **{"seconds": 1.234568, "resumed": True},
    }


@pytest.mark.parametrize("tty", [True, False])
@pytest.mark.parametrize("left", [True, False])
def test_ctrl_c_in_convert_says_whether_it_can_go_on(monkeypatch, tty, left):
    def pressed(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("nesvm_jit.files.ondisk.convert.convert", pressed)
    monkeypatch.setattr(
        "nesvm_jit.files.ondisk.workfolder.unfinished", lambda name: name == "m" and left
    )
    err = io.StringIO()
    err.isatty = lambda: tty
    monkeypatch.setattr(sys, "stderr", err)
    with pytest.raises(click.ClickException if left else click.Abort) as e:
        cli.command(["convert", "a", "m"], standalone_mode=False)
    assert err.getvalue() == "\n" * tty
    if left:
        assert e.value.exit_code == 130
        said = "interrupted; without --fresh the same command goes on where it stopped"
        assert e.value.format_message() == said


def test_labels_of_a_file_are_compared_with_those_predicted(here):
    data_file(here / "two")
    done("train", "-q", "two")
    facts = json.loads(done("predict", "--json", "two", "two.model", "out").out)
    truth = np.array([line.split()[0] for line in (here / "two").read_text().splitlines()], float)
    said = np.loadtxt(here / "out")
    assert facts["correct"] == (truth == said).sum()
