"""Ctrl-C, SIGTERM and SIGHUP alike: what is found is kept, the exit status tells which it was, and
the second one ends at once."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from nesvm_jit import open_matrix, signals, write_libsvm
from nesvm_jit.cli.progress import Progress
from nesvm_jit.signals import deferred, exit_status, watched

from .commands import ENDLESS, command, data_file, done
from .data import sparse_scores

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
CASES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
each_signal = pytest.mark.parametrize(("number", "status"), CASES.items())


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data_file(tmp_path / "two")
    return tmp_path


def send(number):
    os.kill(os.getpid(), number)


def handlers():
    return [signal.getsignal(number) for number in CASES]


def test_an_interrupt_in_the_middle_of_an_import_keeps_the_exit_status(tmp_path):
    """Classes are made from text there, which Python remembers an interrupt of."""
    code = """
import nesvm_jit.cli
from nesvm_jit.__main__ import main
def run():
    try:
        exec("raise KeyboardInterrupt")
    except KeyboardInterrupt:
        raise SystemExit(143)
nesvm_jit.cli.main = run
main()
"""
    (tmp_path / "interrupted.py").write_text(code)
    run = subprocess.run([sys.executable, "-m", "interrupted"], cwd=tmp_path, env=ENVIRONMENT)
    assert run.returncode == 143


# ---------------------------------------------------------------- the handler


@each_signal
def test_the_first_signal_interrupts_and_its_status_is_remembered_inside(number, status):
    before = handlers()
    with watched(), watched():
        assert exit_status() == 130
        assert not signals.asked_to_end()
        with pytest.raises(KeyboardInterrupt):
            send(number)
        assert exit_status() == status
        assert signals.asked_to_end()
    assert exit_status() == 130
    assert handlers() == before


@each_signal
def test_a_fit_may_hear_it_instead(number, status):
    heard = []
    with watched(), watched(lambda: heard.append(exit_status())):
        send(number)
    assert heard == [status]


@each_signal
@pytest.mark.parametrize("midline", [False, True])
def test_the_second_signal_ends_at_once(monkeypatch, number, status, midline):
    said = []
    monkeypatch.setattr(os, "write", lambda to, text: said.append((to, text)))
    monkeypatch.setattr(os, "_exit", said.append)
    with watched(lambda: None, midline):
        send(signal.SIGINT)
        assert said == []
        send(number)
    assert said == [(2, b"\n" * midline + b"nesvm-jit: interrupted\n"), status]


def test_what_is_finished_first_is_finished():
    work = []

    def write():
        with deferred():
            send(signal.SIGTERM)
            work.append("done")

    with watched(), pytest.raises(KeyboardInterrupt):
        write()
    assert work == ["done"]
    with deferred():
        work.append("again")
    assert work == ["done", "again"]


def test_a_fit_hears_a_signal_at_once_and_is_not_interrupted_afterwards():
    heard = []
    with watched(lambda: heard.append(True)), deferred():
        send(signal.SIGTERM)
        assert heard == [True]


def test_without_a_command_ctrl_c_comes_after_what_is_finished_first():
    work, before = [], handlers()

    def write():
        with deferred():
            with deferred():
                send(signal.SIGINT)
                work.append("inside")
            work.append("done")

    with pytest.raises(KeyboardInterrupt):
        write()
    assert work == ["inside", "done"]
    assert handlers() == before
    with deferred():
        work.append("again")


@pytest.mark.parametrize("make", ["exact_loop", "exact_kernel"])
def test_a_signal_while_a_loop_is_compiled_comes_after_it(make, monkeypatch):
    """LLVM calls Python, where an exception is lost but for its traceback."""
    policy = pytest.importorskip("nesvm_jit.jit.policy")
    from nesvm_jit.jit import cache, compiled

    begun, ended = [], []
    load, save = cache.CodeCache.load_overload, cache.CodeCache.save_overload

    def sending(*args):
        if not begun:
            begun.append(send(signal.SIGTERM))
        load(*args)  # as if there were no code yet

    def saving(*args):
        save(*args)
        ended.append(True)

    monkeypatch.setattr(cache.CodeCache, "load_overload", sending)
    monkeypatch.setattr(cache.CodeCache, "save_overload", saving)

    def body(k, n, x):
        x[k] = n

    loop, x = getattr(policy, make)(body), np.zeros(3)

    def run():
        with watched(), compiled():
            loop(*((3, x) if make == "exact_kernel" else (0, 3, x)))

    with pytest.raises(KeyboardInterrupt):
        run()
    assert ended[-1:] == [True]
    assert not x.any()


def test_signals_that_are_ignored_stay_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with watched():
            send(signal.SIGHUP)
            assert not signals.asked_to_end()
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_other_threads_leave_signals_alone():
    before, found = handlers(), []

    def work():
        with watched():
            found.append(handlers())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [before]


# ---------------------------------------------------------------- commands, in this process


@each_signal
def test_train_keeps_the_best_model(here, monkeypatch, number, status):
    shown = Progress.__call__

    def sending(self, row):
        if row["round"] == 30:
            send(number)
        return shown(self, row)

    monkeypatch.setattr(Progress, "__call__", sending)
    outcome = command("train", *ENDLESS, "two")
    assert outcome.code == status
    assert "it was interrupted, and what it found was kept" in outcome.err.splitlines()[-1]
    facts = json.loads(done("info", "--json", "two.model").out)
    assert facts["problems"][0]["status"] == "interrupted"


@each_signal
def test_a_model_that_is_being_written_is_written(here, monkeypatch, number, status):
    from nesvm_jit import Machine

    save = Machine.save

    def sending(self, target):
        send(number)
        save(self, target)

    with monkeypatch.context() as patched:
        patched.setattr(Machine, "save", sending)
        assert command("train", "-q", "two") == (status, "", "nesvm-jit: interrupted\n")
    assert json.loads(done("info", "--json", "two.model").out)["gap"] <= 1e-3


@each_signal
def test_predict_leaves_no_half_of_a_file(here, monkeypatch, number, status):
    done("train", "-q", "two")
    (here / "out").write_text("older\n")

    def sending(*_):
        send(number)
        raise AssertionError("the signal was not heard")

    monkeypatch.setattr("nesvm_jit.machine.predict._lines", sending)
    assert command("predict", "two", "two.model", "out") == (
        status,
        "",
        "nesvm-jit: interrupted\n",
    )
    assert (here / "out").read_text() == "older\n"
    assert sorted(path.name for path in here.iterdir()) == ["out", "two", "two.model"]


@each_signal
def test_convert_goes_on_where_it_was_ended(here, monkeypatch, number, status):
    from nesvm_jit.files.ondisk import convert

    write_all = convert._write_all

    def sending(*args):
        write_all(*args)
        send(number)

    monkeypatch.setattr(convert, "_write_all", sending)
    outcome = command("convert", "two", "m")
    assert outcome.code == status
    assert "the same command goes on where it stopped" in outcome.err
    monkeypatch.setattr(convert, "_write_all", write_all)
    assert json.loads(done("convert", "--json", "two", "m").out)["resumed"] is True


@each_signal
def test_path_keeps_finished_folds(here, monkeypatch, number, status):
    shown, rows = Progress.__call__, []

    def sending(self, row):
        rows.append(row)
        if row.get("done", 0) >= 4 and len(rows) > 1:
            send(number)
            monkeypatch.setattr(Progress, "__call__", shown)
        return shown(self, row)

    monkeypatch.setattr(Progress, "__call__", sending)
    outcome = command("path", "-c", "1e-2:1e2:3", "-v", "3", "--threads", "1", "two")
    assert outcome.code == status
    assert outcome.err.startswith("nesvm-jit: interrupted")


# ---------------------------------------------------------------- commands, in processes


def start(*args, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "nesvm_jit", *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def wait_for(path, process, seconds=120.0):
    end = time.monotonic() + seconds
    while not path.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, f"no {path}"
        time.sleep(0.02)


def alive(marker):
    """Processes whose environment has this marker."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if marker.encode() in entry.read_bytes():
                found.append(int(entry.parent.name))
        except OSError:
            continue
    return found


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="no /proc")
@pytest.mark.parametrize("twice", [False, True], ids=["once", "twice"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_local_cluster_leaves_nothing_behind(tmp_path, number, twice):
    pytest.importorskip("distributed")
    X, y = sparse_scores(3000, 30, 2)
    write_libsvm(tmp_path / "data", X, y)
    marker = f"NESVM_TEST_MARKER={os.getpid()}-{time.monotonic_ns()}"
    name, value = marker.split("=")
    process = start(
        *("train", "--dask", "local", "--workers", "2", "-o", "m", "--checkpoint", "state"),
        *("--checkpoint-every", "0.1", *ENDLESS, "data"),
        cwd=tmp_path,
        env={**os.environ, name: value},
    )
    wait_for(tmp_path / "state", process)
    assert len(alive(marker)) >= 3
    process.send_signal(number)
    if twice:
        time.sleep(0.05)  # two of them at once are one
        process.send_signal(number)
    _, err = process.communicate(timeout=120)
    assert process.returncode == CASES[number], err
    assert "Traceback" not in err
    assert "semaphore" not in err
    assert (tmp_path / "m").exists() or twice
    end = time.monotonic() + 30
    while alive(marker) and time.monotonic() < end:
        time.sleep(0.1)
    assert alive(marker) == []


def test_a_terminal_that_is_closed_costs_no_model(here):
    import pty

    pid, master = pty.fork()
    if pid == 0:  # the leader of a session whose terminal goes
        os.execv(sys.executable, [sys.executable, "-m", "nesvm_jit", "train", *ENDLESS, "two"])
    shown = b""
    while b"round" not in shown:
        shown += os.read(master, 4096)
    os.close(master)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 129
    facts = json.loads(done("info", "--json", "two.model").out)
    assert facts["problems"][0]["status"] == "interrupted"


KILLS = 200


@pytest.mark.slow
@pytest.mark.parametrize("what", ["train", "path", "convert"])
def test_killed_at_any_moment_a_command_goes_on_to_the_same_end(tmp_path, what):
    """SIGTERM at random moments, a third of KILLS for each command; then it runs to its end."""
    draw = random.Random(what)
    X, y = sparse_scores(20_000 if what == "convert" else 4000, 40, 3)
    write_libsvm(tmp_path / "data", X, y)
    args = {
        "train": ["train", "-e", "1e-5", "--checkpoint", "state", "--checkpoint-every", "0.05"],
        "path": ["path", "-c", "1e-2:1e2:4", "-v", "3", "-o", "m"],
        "convert": ["convert"],
    }[what]
    rest = {"train": ["data", "m"], "path": ["data"], "convert": ["data", "m"]}[what]
    began = time.monotonic()
    whole = start(*args, *rest, cwd=tmp_path)
    whole.communicate(timeout=600)
    usual = time.monotonic() - began
    expected = result(tmp_path, what)
    statuses = []
    for _ in range(KILLS // 3):
        resume = ["--resume"] if what == "train" and (tmp_path / "state").exists() else []
        process = start(*args, *resume, *rest, cwd=tmp_path)
        time.sleep(draw.uniform(0.0, usual))
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=120)
        statuses.append(process.returncode)
        assert process.returncode in (0, 143, -signal.SIGTERM), err
        assert "Traceback" not in err
        assert not list(tmp_path.glob(".*.part")) or what == "convert"
    assert 143 in statuses
    resume = ["--resume"] if what == "train" and (tmp_path / "state").exists() else []
    last = start(*args, *resume, *rest, cwd=tmp_path)
    assert last.communicate(timeout=600)[1] == "" or last.returncode == 0
    assert result(tmp_path, what) == expected
    assert not list(tmp_path.glob(".*.part"))


def result(folder, what):
    """All that a command ends with but times."""
    if what == "convert":
        matrix = open_matrix(folder / "m")
        X = matrix.read(0, matrix.n_rows)
        return [np.asarray(a).tobytes() for a in (X.data, X.indices, X.indptr, matrix.labels)]
    return [line for line in (folder / "m").read_text().splitlines() if "seconds" not in line]
