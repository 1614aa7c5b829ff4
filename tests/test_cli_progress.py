"""Progress on a terminal, by a clock that the test moves: what is shown, when, and how wide."""

import io
import math
import os
import signal
import sys
import threading
from functools import partial
from types import SimpleNamespace

import pytest
from nesvm_jit import activity
from nesvm_jit.cli import progress
from nesvm_jit.cli.progress import ENDING, Progress
from nesvm_jit.cli.words import fit_line, going_on, path_line, reading_line

from .commands import command

ROW = {"round": 3, "objective": 1.23456789, "gap": 0.0123}
LONG = "x" * 200


def fit_progress(tol=1e-3, wanted=True, line=None, ending=ENDING):
    return Progress(line or partial(fit_line, tol=tol), wanted, ending)


def meter(wanted=True):
    return Progress(reading_line, wanted)


class Terminal(io.StringIO):
    """What is written is seen when it is flushed."""

    seen = ""

    def isatty(self):
        return True

    def fileno(self):
        return 77

    def flush(self):
        self.seen += self.getvalue()
        self.seek(0)
        self.truncate()


@pytest.fixture
def terminal(monkeypatch):
    """Standard error: a terminal that the test makes as wide as it likes."""
    shown = Terminal()
    shown.columns = 120
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=shown))

    def size(fd):
        assert fd == 77
        if isinstance(shown.columns, Exception):
            raise shown.columns
        return os.terminal_size((shown.columns, 24))

    monkeypatch.setattr(os, "get_terminal_size", size)
    return shown


@pytest.fixture
def clock(monkeypatch):
    now = SimpleNamespace(seconds=0.0)
    monkeypatch.setattr(progress, "time", SimpleNamespace(perf_counter=lambda: now.seconds))
    return now


def new(terminal):
    """What has been shown since it was last asked."""
    text, terminal.seen = terminal.seen, ""
    assert terminal.getvalue() == ""
    return text


@pytest.fixture(autouse=True)
def nothing_else(monkeypatch):
    """What other tests of this process may have left unfinished."""
    monkeypatch.setattr(activity, "_doing", {})


# ---------------------------------------------------------------- rounds


def test_rounds_are_shown_after_half_a_second_and_ten_times_a_second(terminal, clock):
    with fit_progress() as callback:
        for seconds, round_, shown in (
            (0.49, 3, False),
            (0.5, 4, True),
            (0.59, 5, False),
            (0.6, 6, True),
            (2.0, 7, True),
            (2.05, 8, False),
        ):
            clock.seconds = seconds
            assert callback({**ROW, "round": round_}) is False
            line = f"round {round_}  objective 1.23457  gap 1.23e-02 (12.3 x tolerance)"
            assert new(terminal) == (f"\r{line}  {seconds:.1f} s" if shown else "")


@pytest.mark.parametrize(
    ("row", "tol", "line"),
    [
        ({"problem": 0, "problems": 3}, 1e-3, "problem 1/3  round 3  {}gap 1.23e-02 (12.3 x"),
        ({"problem": 0, "problems": 1}, 1e-3, "round 3  {}gap 1.23e-02 (12.3 x tolerance)  1.0 s"),
        ({"problem": 1, "problems": 2}, 0.0, "problem 2/2  round 3  {}gap 1.23e-02  1.0 s"),
        ({}, 0.0, "round 3  {}gap 1.23e-02  1.0 s"),
        ({"gap": math.inf}, 1e-3, "round 3  {}gap inf  1.0 s"),
        ({"gap": 2.0}, 1.0, "round 3  {}gap 2.00e+00 (2 x tolerance)  1.0 s"),
    ],
)
def test_a_line_says_which_problem_and_how_far_from_the_tolerance(terminal, clock, row, tol, line):
    with fit_progress(tol) as callback:
        clock.seconds = 1.0
        callback({**ROW, **row})
        assert new(terminal).startswith("\r" + line.format("objective 1.23457  "))


def test_a_shorter_line_writes_over_a_longer_one_and_the_end_leaves_nothing(terminal, clock):
    texts = iter(["longer", "short", "longest"])
    with fit_progress(line=lambda *_: next(texts)) as callback:
        for seconds, expected in ((1.0, "\rlonger"), (2.0, "\rshort "), (3.0, "\rlongest")):
            clock.seconds = seconds
            callback(ROW)
            assert new(terminal) == expected
    assert new(terminal) == "\r       \r"
    clock.seconds = 9.0
    callback(ROW)
    assert new(terminal) == ""


def test_what_was_never_shown_is_not_wiped_away(terminal, clock):
    with fit_progress() as callback:
        callback(ROW)
    assert new(terminal) == ""


@pytest.mark.parametrize(
    ("columns", "width"),
    [
        *((120, 119), (20, 19), (1, 0), (0, 79)),
        *((OSError("none"), 79), (ValueError("closed"), 79)),
    ],
)
def test_a_line_is_a_column_narrower_than_the_terminal(terminal, clock, columns, width):
    terminal.columns = columns
    with fit_progress(line=lambda *_: LONG) as callback:
        clock.seconds = 1.0
        callback(ROW)
        assert new(terminal) == "\r" + "x" * width
    with meter() as show:
        clock.seconds = 2.0
        show({"rows": 1, "text_bytes": 1, "file": LONG})
        clock.seconds = 3.0
        show({"rows": 1, "text_bytes": 1, "file": LONG})
        shown = new(terminal).split("\r")[-1]
        assert len(shown) == width
        assert "1 rows  0 MB of text  0 MB/s  xxx".startswith(shown[:30])


def test_a_line_gets_the_row_the_first_row_and_the_seconds(terminal, clock):
    got = []
    clock.seconds = 10.0
    with Progress(lambda *a: got.append(a) or "line", True) as callback:
        callback(ROW)
        clock.seconds = 11.5
        callback({"second": 2})
    assert got == [({"second": 2}, ROW, 1.5)]


# ---------------------------------------------------------------- the first round


def test_two_seconds_without_a_round_are_explained(terminal, clock):
    with fit_progress() as callback:
        for seconds, shown in ((1.99, ""), (2.0, "2.0 s"), (2.3, ""), (2.6, "2.6 s")):
            clock.seconds = seconds
            callback._tick()
            said = "\rpreparing; the first run of its kind compiles, later ones do not  "
            assert new(terminal) == (said + shown if shown else "")


def test_only_fits_explain_that_they_compile(terminal, clock):
    with meter() as show:
        clock.seconds = 5.0
        show._tick()
        assert new(terminal) == ""


def test_a_line_is_shown_again_after_half_a_second_with_the_time_of_now(terminal, clock):
    line = "round 3  objective 1.23457  gap 1.23e-02 (12.3 x tolerance)"
    with fit_progress() as callback:
        for seconds, elapsed, shown in (
            (1.0, 31.0, "31.0 s"),
            (1.4, None, ""),
            (1.6, None, "31.6 s"),
            (2.0, None, ""),
            (2.2, None, "32.2 s"),
            (2.5, 40.0, "40.0 s"),
        ):
            clock.seconds = seconds
            if elapsed is None:
                callback._tick()
            else:
                callback({**ROW, "elapsed": elapsed})
            assert new(terminal) == (f"\r{line}  {shown}" if shown else "")
    clock.seconds = 9.0
    callback._tick()
    assert new(terminal).endswith("\r")


def test_what_takes_long_and_counts_no_rounds_is_said_while_it_lasts(terminal, clock):
    with fit_progress() as callback:
        clock.seconds = 1.0
        with activity.doing("kernel matrix of 9 rows"):
            with activity.doing("compiling gram_tiles"):
                callback._tick()
                assert new(terminal) == "\rcompiling gram_tiles  1.0 s"
            clock.seconds = 2.0
            callback._tick()
            assert new(terminal).rstrip() == "\rkernel matrix of 9 rows  2.0 s"
        clock.seconds = 3.0
        callback(ROW)
        assert "round 3" in new(terminal)
    assert activity.current() == ""


def test_threads_refresh_the_line_by_themselves(terminal, monkeypatch):
    monkeypatch.setattr(progress, "TICK", 0.01)
    monkeypatch.setattr(progress, "LATER", 0.0)
    monkeypatch.setattr(progress, "EVERY", 0.01)
    with fit_progress() as callback:
        callback(ROW)
        ticker = callback._ticker
        assert ticker.daemon
        for _ in range(1000):
            if terminal.seen.count("round 3") >= 3:
                break
            threading.Event().wait(0.01)
        assert terminal.seen.count("round 3") >= 3
    ticker.join(5.0)
    assert not ticker.is_alive()


def test_what_a_run_goes_on_from_stays_on_the_terminal(terminal, clock):
    resumed = {"seconds": 34.25, "done": 12, "begun": 2}
    with fit_progress() as callback:
        clock.seconds = 1.0
        callback({**ROW, "resumed": resumed})
        said, line = new(terminal).split("\n")
        assert said == "nesvm-jit: going on after 34.2 s, 12 problems solved, 2 begun"
        assert line.startswith("\rround 3")
        assert not line.endswith(" ")  # nothing is left of a line to write over
        clock.seconds = 2.0
        callback({**ROW, "resumed": resumed})
        assert "going on" not in new(terminal)
    with fit_progress(wanted=False) as callback:
        callback({**ROW, "resumed": resumed})
    assert "going on" not in new(terminal)
    assert going_on({"seconds": 0.04, "done": 0, "begun": 1}) == "going on after 0.0 s"


def test_rounds_on_a_part_of_the_rows_say_so_and_nothing_of_the_problem(terminal, clock):
    row = {**ROW, "warm_up": 1200, "rows": 10000}
    assert fit_line(row, row, 2.0, tol=1e-3) == "warm-up on 1 200 of 10 000 rows  round 3  2.0 s"
    several = {**row, "problem": 11, "problems": 45}
    assert fit_line(several, row, 2.0, tol=1e-3).startswith("problem 12/45  warm-up on 1 200 of")
    assert path_line(row, row, 3.0) == (
        "training on all rows  warm-up on 1 200 of 10 000 rows  3.0 s"
    )


def test_lines_fit_into_eighty_columns():
    row = {"problem": 997, "problems": 1000, "round": 123456, "objective": -1.23456e-100}
    line = fit_line({**row, "gap": 1.23e-2}, row, 12345.6, tol=1e-3)
    assert line.startswith("problem 998/1000  round 123456  objective -1.23456e-100")
    assert line.endswith("  gap 1.23e-02  12345.6 s")
    assert len(line) <= 82
    row = {"done": 12345, "total": 99999, "C": 1.23456e-5, "best_score": 0.12345, "best_C": 1.1e-5}
    assert path_line(row, row, 1.0) == "12345/99999 problems solved  now C = 1.23456e-05  1.0 s"
    row = {**row, "done": 1, "C": 1.0}
    assert len(path_line(row, row, 1.0)) <= 79
    assert "best so far 0.1235 at C = 1.1e-05" in path_line(row, row, 1.0)


# ---------------------------------------------------------------- Ctrl-C


def test_ctrl_c_is_answered_once_and_ends_the_rounds(terminal, clock):
    before = signal.getsignal(signal.SIGINT)
    with fit_progress() as callback:
        os.kill(os.getpid(), signal.SIGINT)
        ending = "ending with the best model found; Ctrl-C again to give it up"
        assert new(terminal) == f"\r{ending}"
        clock.seconds = 5.0
        callback._tick()
        assert callback(ROW) is True
        assert new(terminal) == ""
    assert signal.getsignal(signal.SIGINT) is before


def test_the_answer_may_be_another_one(terminal):
    with fit_progress(ending="ending soon"):
        os.kill(os.getpid(), signal.SIGINT)
        assert new(terminal) == "\rending soon"


@pytest.mark.parametrize("wanted", [True, False])
@pytest.mark.parametrize("closed", [True, False])
def test_the_second_ctrl_c_ends_the_program(terminal, monkeypatch, wanted, closed):
    said = []

    def write(to, text):
        said.append((to, text))
        if closed:
            raise OSError("closed")

    monkeypatch.setattr(os, "write", write)
    monkeypatch.setattr(os, "_exit", lambda code: said.append(code))
    with fit_progress(wanted=wanted):
        os.kill(os.getpid(), signal.SIGINT)
        assert said == []
        assert bool(new(terminal)) == wanted
        os.kill(os.getpid(), signal.SIGINT)
    assert said == [(2, b"\n" * wanted + b"nesvm-jit: interrupted\n"), 130]


def test_ctrl_c_in_the_middle_of_a_line_says_nothing(terminal, monkeypatch):
    def busy(_):
        raise RuntimeError("reentrant call")

    with fit_progress() as callback:
        with monkeypatch.context() as patch:
            patch.setattr(terminal, "write", busy, raising=False)
            os.kill(os.getpid(), signal.SIGINT)
        assert callback(ROW) is True


def test_a_fit_in_another_thread_leaves_signals_alone(terminal, clock):
    before = signal.getsignal(signal.SIGINT)
    found = []

    def fit():
        with fit_progress() as callback:
            clock.seconds = 1.0
            found.append(callback(ROW))
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=fit)
    thread.start()
    thread.join()
    assert found == [False, before]
    assert "round 3" in new(terminal)


# ---------------------------------------------------------------- convert


def test_speed_is_of_what_this_run_has_read(terminal, clock):
    with meter() as show:
        for seconds, rows, megabytes, expected in (
            (0.25, 5, 100, ""),
            (0.5, 10, 110, "\r10 rows  110 MB of text  20 MB/s  a9a"),
            (0.59, 11, 111, ""),
            (0.6, 12, 160, "\r12 rows  160 MB of text  100 MB/s  a9a"),
            (2.0, 20, 104, "\r20 rows  104 MB of text  2 MB/s  a9a  "),
        ):
            clock.seconds = seconds
            show({"rows": rows, "text_bytes": megabytes * 10**6, "file": "a9a"})
            assert new(terminal) == expected
    assert new(terminal) == "\r" + " " * len("20 rows  104 MB of text  2 MB/s  a9a") + "\r"


def test_a_meter_that_showed_nothing_leaves_nothing(terminal, clock):
    with meter() as show:
        show({"rows": 1, "text_bytes": 1, "file": "a9a"})
    with meter(False) as show:
        clock.seconds = 9.0
        show({"rows": 1, "text_bytes": 1, "file": "a9a"})
    assert new(terminal) == ""


def test_ctrl_c_that_the_compiler_swallows_ends_the_next_block():
    before = signal.getsignal(signal.SIGINT)
    with meter(False) as show:
        show({"rows": 1, "text_bytes": 1, "file": "a9a"})
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            show({"rows": 1, "text_bytes": 1, "file": "a9a"})
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize(
    ("args", "wanted"),
    [([], True), (["-q"], False), (["--json"], False), (["-q", "--json"], False)],
)
def test_convert_shows_progress_unless_silent(tmp_path, monkeypatch, args, wanted):
    asked = []

    class Noting(Progress):
        def __init__(self, line, wanted):
            asked.append((line, wanted))
            super().__init__(line, wanted)

    monkeypatch.setattr(sys.modules["nesvm_jit.cli.convert"], "Progress", Noting)
    (tmp_path / "two").write_text("1 1:1\n-1 1:2\n")
    assert command("convert", *args, tmp_path / "two", tmp_path / "m").code == 0
    assert asked == [(reading_line, wanted)]


def test_what_is_said_besides_fits_into_79_columns():
    """The distance to the tolerance, and the best score so far, whatever the time has grown to."""
    fit = {"round": 3, "objective": 1.23456, "gap": 0.0123, "problem": 1, "problems": 2}
    path = {"done": 3, "total": 40, "C": 0.125, "best_score": 0.5, "best_C": 16.0}
    for line, row, part in (
        (partial(fit_line, tol=1e-3), fit, "x tolerance)"),
        (path_line, path, "best so far"),
    ):
        shown = [line(row, row, 10.0**k) for k in range(30)]
        widths = {len(text) for text in shown if part in text}
        assert max(widths) == 79
        assert shown == sorted(shown, key=lambda text: part not in text)
