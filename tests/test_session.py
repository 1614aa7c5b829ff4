"""What the fits of one call share: a clock, the wish to stop, a checkpoint."""

from types import SimpleNamespace

import numpy as np
import pytest
from nesvm_jit import clock as clocks
from nesvm_jit import train
from nesvm_jit.machine.session import Session
from nesvm_jit.settings import Settings


def a_solution(status="converged"):
    X = np.array([[1.0], [2.0], [-1.0], [-2.0]])
    found = train(X, [1, 1, 2, 2], keep_solutions=True).solutions[0].solution
    return type(found)(**{**vars(found), "status": status, "history": dict(found.history)})


class Kept:
    """A checkpoint of this call, with a slot that began three seconds after it."""

    def __init__(self, known=None):
        self.known, self.finished = known, []

    def done(self, number):
        return self.known

    def slot(self, number):
        return SimpleNamespace(began=3.0, number=number)

    def finish(self, number, facts):
        self.finished.append((number, facts))


def test_a_fit_has_what_is_left_of_the_time(time):
    settings = Settings(time_limit=8.0, C=3.0)
    session = Session(settings)
    time.now = 105.0
    assert session.limit(settings).time_limit == 3.0
    assert session.limit(settings, 2.0).time_limit == 6.0
    assert session.limit(settings).C == 3.0
    time.now = 109.0
    assert session.limit(settings).time_limit == 0.0
    assert Session(Settings()).limit(Settings()).time_limit is None
    clock = clocks.Clock(50.0)
    assert Session(settings, clock).limit(settings).time_limit == 50.0


def test_fits_share_the_time_that_is_left(time):
    settings = Settings(time_limit=8.0)
    session = Session(settings)
    time.now = 102.0
    assert session.limit(settings, fits=3.0).time_limit == 2.0
    assert session.limit(settings, 1.0, 3.0).time_limit == 3.0  # of which one is over
    assert session.limit(settings, fits=0.5).time_limit == 6.0
    time.now = 110.0
    assert session.limit(settings, fits=3.0).time_limit == 0.0
    assert session.limit(settings, 0.5, 3.0).time_limit == 7.5  # no more than it ever had


def test_fits_that_there_is_no_time_for_are_not_begun(time):
    session = Session(Settings(time_limit=8.0))
    assert session.ending(0) == ""
    time.now = 108.0
    assert session.ending(0) == "time_limit"
    session.stop.set()
    assert session.ending(0) == "interrupted"
    session.checkpoint = Kept({"solved": True})
    assert session.ending(0) == ""
    session.checkpoint = Kept()
    assert session.ending(0) == "interrupted"
    assert Session(Settings()).ending(0) == ""


def test_what_fits_could_do_without_has_a_share_of_the_time(time):
    session = Session(Settings(time_limit=8.0))

    def make(seconds):
        time.now += seconds
        clocks.look()
        return seconds

    assert session.within(0.25, lambda: make(1.9)) == 1.9
    assert session.within(0.25, lambda: make(1.6)) is None
    assert not session.stop.is_set()
    session.stop.set()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clocks, "GRACE", 0.0)
        assert session.within(0.25, lambda: make(0.0)) is None
    assert Session(Settings()).within(0.25, lambda: make(1e9)) == 1e9


def test_a_callback_is_told_which_fit_it_is_and_one_answer_ends_all():
    rows, answers = [], [False, "yes", None]

    def callback(row):
        rows.append(row)
        return answers.pop(0)

    settings = Settings(callback=callback)
    session = Session(settings)
    for k, ends in enumerate((False, True, True)):
        assert session.limit(settings, problem=k, problems=4).callback({"round": k + 1}) is ends
    elapsed = [row.pop("elapsed") for row in rows]
    assert sorted(elapsed) == elapsed
    assert rows == [{"round": k + 1, "problem": k, "problems": 4} for k in range(3)]
    assert session.stop.is_set()


def test_a_call_without_a_callback_can_be_stopped():
    session = Session(Settings())
    callback = session.limit(Settings()).callback
    assert callback({}) is False
    session.stop.set()
    assert callback({}) is True


@pytest.mark.parametrize("sigmoid", [None, [1.0, 2.0]])
def test_a_sub_problem_that_a_checkpoint_has_is_recalled(sigmoid):
    session, solution = Session(Settings()), vars(a_solution())
    session.checkpoint = Kept({"solution": solution, "sigmoid": sigmoid, "seconds": 5.0})
    found = session.recall(0)
    assert vars(found.solution) == solution
    assert (found.seconds, found.sigmoid) == (5.0, None if sigmoid is None else (1.0, 2.0))


@pytest.mark.parametrize(
    ("status", "stopped", "kept"),
    [("converged", False, True), ("converged", True, False)]
    + [(name, False, False) for name in ("iteration_limit", "time_limit", "interrupted")],
)
def test_a_sub_problem_is_kept_if_it_converged_and_nothing_was_cut_short(
    time, status, stopped, kept
):
    solution, session = a_solution(status), Session(Settings(time_limit=8.0))
    session.checkpoint = Kept()

    def calibrate(found):
        assert found is solution
        assert session.stop.is_set() is (status == "interrupted")
        if stopped:
            session.stop.set()
        return 1.0, 2.0

    assert session.recall(4) is None
    began, slot = session.begin(4)
    assert (began, slot.number) == (3.0, 4)
    time.now = 110.0
    found = session.end(4, began, solution, calibrate)
    assert found == (solution, (1.0, 2.0), 7.0)
    facts = {"solution": vars(solution), "sigmoid": (1.0, 2.0), "seconds": 7.0}
    assert session.checkpoint.finished == ([(4, facts)] if kept else [])


def test_without_a_checkpoint_a_sub_problem_begins_now(time):
    session, solution = Session(Settings()), a_solution()
    time.now = 104.0
    assert session.recall(0) is None
    assert session.begin(0) == (4.0, None)
    time.now = 106.0
    assert session.end(0, 4.0, solution) == (solution, None, 2.0)


def test_problems_in_sequence_share_the_time_and_an_interrupt_ends_those_that_follow(time):
    settings, given = Settings(time_limit=8.0, C=2.0), []
    session = Session(settings)

    def solve(number, limited, slot):
        given.append((number, limited.time_limit, limited.C, limited.callback({}), slot))
        time.now += 3.0
        return a_solution("interrupted" if number == 1 else "converged")

    found = session.solve_in_sequence(settings, 3, solve)
    assert [s.status for s in found] == ["converged", "interrupted", "converged"]
    assert given == [
        (0, 8.0 / 3.0, 2.0, False, None),
        (1, 2.5, 2.0, False, None),
        (2, 2.0, 2.0, True, None),
    ]
