"""Odd input gets one clear line: pipes in the place of files, options that contradict each
other."""

import os

import pytest
from nesvm_jit import FormatError, convert, open_matrix

from .commands import command, data_file, done


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data_file(tmp_path / "two")
    return tmp_path


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
@pytest.mark.parametrize("name", ["values.bin", "indices.bin", "indptr.bin", "labels.bin"])
def test_a_pipe_in_a_matrix_is_not_waited_for(here, name):
    convert("two", "m")
    (here / "m" / name).unlink()
    os.mkfifo(here / "m" / name)
    why = "cannot be read: a regular file is required, it is a pipe"
    assert command("info", "m") == (1, "", f"nesvm-jit: {os.path.join('m', name)}: {why}\n")
    (here / "m" / "header.json").unlink()
    os.mkfifo(here / "m" / "header.json")
    with pytest.raises(FormatError, match="a regular file is required"):
        open_matrix("m")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
def test_a_pipe_is_no_checkpoint(here):
    os.mkfifo(here / "state")
    line = "nesvm-jit: state: cannot be read: it is a pipe\n"
    assert command("train", "--checkpoint", "state", "--resume", "two") == (1, "", line)


@pytest.mark.parametrize(
    ("args", "flag"),
    [
        (["--no-bias", "-B", "1"], "--no-bias and -B 1"),
        (["-B", "1", "--no-bias"], "--no-bias and -B 1"),
        (["--bias", "-B", "-1"], "--bias and -B -1"),
        (["--no-bias", "-B", "0"], "--no-bias and -B 0"),
    ],
)
@pytest.mark.parametrize("what", ["train", "path"])
def test_options_of_the_bias_that_contradict_each_other_are_refused(here, what, args, flag):
    assert command(what, *args, "two") == (
        2,
        "",
        f"nesvm-jit: {flag} contradict each other\n",
    )


@pytest.mark.parametrize("args", [["--no-bias", "-B", "-1"], ["--bias", "-B", "1"]])
def test_options_of_the_bias_that_agree_are_not(here, args):
    assert done("train", "-q", *args, "two") == (0, "", "")
