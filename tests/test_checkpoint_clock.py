"""Checkpoints by a clock that the test sets: when they are due, what they hold and refuse."""

import hashlib
import inspect
import warnings
from dataclasses import fields, replace

import numpy as np
import pytest
from nesvm_jit import InputError, NesvmError, __version__
from nesvm_jit import clock as clocks
from nesvm_jit.checkpoint import checkpoint
from nesvm_jit.checkpoint.checkpoint import Checkpoint, open_checkpoint
from nesvm_jit.checkpoint.fingerprint import data_fingerprint
from nesvm_jit.checkpoint.snapshot import read_snapshot, write_snapshot
from nesvm_jit.clock import Clock
from nesvm_jit.matrix.checks import as_matrix
from nesvm_jit.settings import Settings
from scipy.sparse import csr_matrix

pytestmark = pytest.mark.pure

KEY = {"C": 1.0, "model": "csvm", "data": [1, 2]}


class FakeTime:
    now = 100.0

    def perf_counter(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = FakeTime()
    monkeypatch.setattr(checkpoint, "time", clock)
    monkeypatch.setattr(clocks, "time", clock)
    return clock


@pytest.fixture
def written(monkeypatch):
    """The facts of each file that is written, which is written indeed."""
    found = []

    def noting(path, facts):
        write_snapshot(path, facts)
        found.append(read_snapshot(path))

    monkeypatch.setattr(checkpoint, "write_snapshot", noting)
    return found


def test_a_state_is_saved_after_every_long_round(tmp_path, clock):
    slot = Checkpoint(tmp_path / "file", 10.0, KEY).slot(0)
    for seconds, due in ((0.1, False), (0.14, False), (0.16, True), (0.1, False), (3.0, True)):
        clock.now += seconds
        assert slot.due() is due


# ---------------------------------------------------------------- when it is written


def test_a_new_checkpoint_is_written_at_once(tmp_path, clock, written):
    found = Checkpoint(tmp_path / "file", 10.0, KEY)
    assert written == [{"fingerprint": KEY, "seconds": 0.0, "done": {}, "slots": {}}]
    assert (found.clock.now(), found.next) == (0.0, 110.0)
    assert found.done(0) is None


def test_states_are_written_when_the_file_is_due_and_not_before(tmp_path, clock, written):
    found = Checkpoint(tmp_path / "file", 10.0, KEY)
    clock.now = 103.0
    slot = found.slot(7)
    assert (slot.began, slot.state) == (3.0, None)
    clock.now = 109.5
    slot.put({"a": 1})
    assert len(written) == 1
    clock.now = 110.0
    slot.put({"a": 2})
    assert len(written) == 2
    assert written[1]["seconds"] == 10.0
    assert written[1]["slots"] == {"7": {"began": 3.0, "state": {"a": 2}}}
    assert found.next == 120.0
    clock.now = 119.0
    slot.put({"a": 3})
    assert len(written) == 2


def test_a_problem_saves_when_its_own_time_or_that_of_the_file_has_come(
    tmp_path, clock, monkeypatch
):
    monkeypatch.setattr(checkpoint, "LONG", 1e9)
    found = Checkpoint(tmp_path / "file", 10.0, KEY)
    clock.now = 104.0
    slot = found.slot(0)
    for now, due in ((104.0, False), (109.9, False), (110.0, True), (113.0, True)):
        clock.now = now
        assert slot.due() is due
    slot.put({})  # the file was due: it is written, and next at 123
    assert found.next == 123.0
    for now, due in ((122.9, False), (123.0, True)):
        clock.now = now
        assert slot.due() is due
    other = found.slot(1)  # next at 133
    found.next = 200.0
    for now, due in ((132.9, False), (133.0, True)):
        clock.now = now
        assert other.due() is due
    other.put({})
    assert not other.due()
    clock.now = 143.0
    assert other.due()


def test_the_end_of_a_run_writes_what_is_new_and_nothing_else(tmp_path, clock, written):
    with Checkpoint(tmp_path / "file", 10.0, KEY) as found:
        pass
    assert len(written) == 1
    with Checkpoint(tmp_path / "file", 10.0, KEY) as found:
        found.slot(0).put({"a": 1})
        assert len(written) == 2
    assert len(written) == 3
    assert written[2]["slots"]["0"]["state"] == {"a": 1}
    with found:
        pass
    assert len(written) == 3


def test_a_result_takes_the_place_of_its_state(tmp_path, clock, written):
    found = Checkpoint(tmp_path / "file", 10.0, KEY)
    found.slot(3).put({"a": 1})
    clock.now = 110.0
    found.finish(3, {"b": 2.5})
    assert written[-1] == {
        "fingerprint": KEY,
        "seconds": 10.0,
        "done": {"3": {"b": 2.5}},
        "slots": {},
    }
    assert found.done(3) == {"b": 2.5}
    assert found.slot(3).state is None
    found.finish(4, {})
    assert len(written) == 2
    assert found.done(4) == {}


def test_a_state_is_kept_as_it_was(tmp_path):
    found, a = Checkpoint(tmp_path / "file", 1e9, KEY), np.arange(3.0)
    with found:
        found.slot(0).put({"a": a})
        a[:] = 7.0
    assert read_snapshot(tmp_path / "file")["slots"]["0"]["state"]["a"].tolist() == [0, 1, 2]


# ---------------------------------------------------------------- going on


def test_going_on_counts_the_seconds_before_and_finds_everything(tmp_path, clock, written):
    with Checkpoint(tmp_path / "file", 10.0, KEY) as first:
        clock.now = 104.0
        slot = first.slot(0)
        slot.put({"a": 1})
        first.finish(1, {"b": 2})
        clock.now = 106.0
    clock.now = 500.0
    before = (tmp_path / "file").read_bytes()
    found = Checkpoint(tmp_path / "file", 10.0, KEY, resume=True)
    assert (tmp_path / "file").read_bytes() == before
    assert (found.clock.now(), found.next) == (6.0, 510.0)
    assert found.done(1) == {"b": 2}
    assert (found.slot(0).began, found.slot(0).state) == (4.0, {"a": 1})
    assert found.slot(2).began == 6.0
    with found:
        clock.now = 507.0
    assert (tmp_path / "file").read_bytes() == before


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"C": 2.0}, "C = 1.0, required is 2.0"),
        ({"model": "x" * 80}, f"model = csvm, required is {'x' * 60}"),
        ({"data": [1, 3]}, "other data"),
        ({"more": 1}, "more = None, required is 1"),
    ],
)
def test_a_checkpoint_of_another_run_is_told(tmp_path, change, what):
    path = tmp_path / "file"
    Checkpoint(path, 10.0, KEY)
    with pytest.raises(InputError) as e:
        Checkpoint(path, 10.0, {**KEY, **change}, resume=True)
    assert str(e.value) == f"{path}: the checkpoint is of {what}"
    fewer = {k: v for k, v in KEY.items() if k not in change}
    assert Checkpoint(path, 10.0, fewer, resume=True).done(0) is None


@pytest.mark.parametrize(
    "facts", [{}, {"fingerprint": {}}, {"fingerprint": {}, "done": {}, "slots": {}}, [1]]
)
def test_what_is_no_checkpoint_of_a_training_run_is_told(tmp_path, facts):
    write_snapshot(tmp_path / "file", facts)
    with pytest.raises(InputError) as e:
        Checkpoint(tmp_path / "file", 10.0, {}, resume=True)
    assert str(e.value) == f"{tmp_path / 'file'}: a checkpoint of a training run is required"


def test_another_file_is_not_overwritten(tmp_path):
    (tmp_path / "file").write_bytes(b"mine")
    with pytest.raises(InputError, match="it is another file"):
        Checkpoint(tmp_path / "file", 10.0, KEY)
    assert (tmp_path / "file").read_bytes() == b"mine"


def test_a_disk_that_fills_up_is_a_warning_and_is_tried_again(tmp_path, clock, monkeypatch):
    calls = []

    def full(path, facts):
        calls.append(facts)
        raise NesvmError("file: cannot be written: full")

    found = Checkpoint(tmp_path / "file", 10.0, KEY)
    monkeypatch.setattr(checkpoint, "write_snapshot", full)
    clock.now = 110.0
    with pytest.warns(UserWarning, match="full") as told:
        found.slot(0).put({})
    message = "file: cannot be written: full; training goes on without a new checkpoint"
    assert [str(w.message) for w in told] == [message]
    code, first = inspect.getsourcelines(Checkpoint._renew)  # the warning names who wanted to write
    assert told[0].filename == checkpoint.__file__
    assert first < told[0].lineno < first + len(code)
    assert found.next == 120.0
    with pytest.warns(UserWarning, match="full"), found:
        pass
    assert len(calls) == 2
    monkeypatch.setattr(checkpoint, "write_snapshot", write_snapshot)
    with warnings.catch_warnings(), found:
        warnings.simplefilter("error")
    assert read_snapshot(tmp_path / "file")["slots"] == {"0": {"began": 10.0, "state": {}}}


# ---------------------------------------------------------------- which data and settings


def test_a_fit_without_a_checkpoint_has_none():
    with open_checkpoint(Settings(), None, n=1) as found:
        assert found is None


def test_the_key_holds_every_setting_that_decides_where_a_run_goes(tmp_path):
    free = {"max_iter", "time_limit", "callback", "checkpoint", "checkpoint_every", "resume"}
    asked = {"C": np.float64(2.5), "tol": 1e-5, "max_iter": 7, "checkpoint_every": 30.0}
    settings = Settings(checkpoint=tmp_path / "file", **asked)
    with open_checkpoint(settings, lambda: [1, None], multiclass="ovo") as found:
        key = read_snapshot(tmp_path / "file")["fingerprint"]
    names = {f.name for f in fields(Settings)}
    assert free <= names
    assert set(key) == {"program", "multiclass", "data"} | names - free
    assert key["program"] == f"nesvm-jit {__version__}"
    assert (key["multiclass"], key["data"]) == ("ovo", [1, None])
    assert (key["C"], key["tol"], key["model"]) == (2.5, 1e-5, "csvm")
    assert found._every == 30.0
    other = Settings(checkpoint=tmp_path / "file", C=2.5, tol=1e-5, max_iter=9, resume=True)
    with open_checkpoint(other, lambda: [1, None], multiclass="ovo") as found:
        assert found.done(0) is None
    with pytest.raises(InputError, match="of other data"):
        open_checkpoint(other, lambda: [2, None], multiclass="ovo")


def test_a_checkpoint_goes_on_with_the_clock_of_the_call(tmp_path, clock):
    call = Clock(20.0)
    clock.now = 103.0
    settings = Settings(checkpoint=tmp_path / "file", checkpoint_every=5.0)
    with open_checkpoint(settings, lambda: [], call) as found:
        assert found.clock is call
        assert found.slot(0).began == 3.0
        clock.now = 108.0
        found.finish(0, {})
    clock.now = 1000.0
    again = Clock(20.0)
    assert (again.now(), again.left()) == (0.0, 20.0)
    clock.now = 1001.0
    open_checkpoint(replace(settings, resume=True), lambda: [], again)
    assert (again.now(), again.left()) == (9.0, 11.0)
    assert Clock().left() is None


def digest(*parts):
    found = hashlib.blake2b(digest_size=16)
    for part in parts:
        found.update(part if isinstance(part, bytes) else np.ascontiguousarray(part).tobytes())
    return found.hexdigest()


def test_data_are_known_by_type_shape_and_digest():
    A = np.arange(12.0).reshape(3, 4)
    y = np.array([1, 2, 3], dtype=np.int32)
    of_y, of_A = digest(b"<i4 (3,) ", y), digest(b"<f8 (3, 4) ", A)
    every_second = digest(b"<f8 (3, 2) ", A[:, ::2])
    assert data_fingerprint(y, None, A[:, ::2], A) == [of_y, None, every_second, of_A]
    X = as_matrix(csr_matrix(A))
    parts = [b"4 "]
    for a in (X.data, X.indices, X.indptr):
        parts += [f"{a.dtype.str} {a.shape} ".encode(), a]
    assert data_fingerprint(X) == [digest(*parts)]
