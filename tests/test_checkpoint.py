"""A run that was stopped, or killed, and goes on from its checkpoint ends with the same bits."""

import json
import os
import signal
import subprocess
import sys
import time
import warnings
from functools import partial
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from nesvm_jit import (
    InputError,
    NesvmError,
    convert,
    get_threads,
    load_model,
    open_matrix,
    set_threads,
    write_libsvm,
)
from nesvm_jit.binary import linear
from nesvm_jit.checkpoint.checkpoint import Checkpoint
from nesvm_jit.checkpoint.snapshot import read_snapshot, write_snapshot
from nesvm_jit.checkpoint.states import Saving
from nesvm_jit.matrix.checks import as_matrix
from nesvm_jit.models import MODELS
from nesvm_jit.problems import blocks
from nesvm_jit.problems.shard import Shard
from nesvm_jit.settings import HALF_SQUARE, SOLVERS, Settings
from nesvm_jit.solvers import auto, newton
from nesvm_jit.solvers.directions import direction
from nesvm_jit.solvers.driver import always, drive
from nesvm_jit.solvers.run import Run

from tests.commands import command, data_file, done, refused
from tests.compare import same_machine, same_solution
from tests.data import first_against_rest, sparse_scores
from tests.endings import cross_validate, path, solve, train

OFTEN = 1e-9  # seconds
HARD = {"tol": 1e-7, "max_iter": 120}


class Killed(Exception):  # noqa: N818
    """As if the process had ended here."""


def several(n=300, p=8, classes=2):
    return sparse_scores(n, p, classes, density=0.5, normal=True)


def binary(**how):
    return first_against_rest(*several(**how))


def killed_at(k, error=Killed):
    """A callback that ends a run in round k, of problem 1 if there are several."""

    def callback(row):
        if row["round"] == k and row.get("problem", 1) in (1, row.get("problems", 1) - 1):
            raise error

    return callback


def test_another_file_is_not_taken_for_a_checkpoint(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data_file(tmp_path / "data")
    (tmp_path / "thesis").write_text("years of work")
    assert "it is another file" in refused("train", "--checkpoint", "thesis", "data")
    assert (tmp_path / "thesis").read_text() == "years of work"
    with pytest.raises(NesvmError, match="it is another file"):
        solve(*binary(), checkpoint=tmp_path / "thesis")


def asked_at(k):
    return lambda row: row["round"] == k


def resumed(fit, file, callback, **options):
    """What a run ends with that was stopped by a callback, and taken up again."""
    kept = {"checkpoint": file, **options}
    try:
        stopped = fit(checkpoint_every=OFTEN, callback=callback, **kept)
        assert getattr(stopped, "status", "interrupted") == "interrupted"
    except (Killed, KeyboardInterrupt):
        pass
    return fit(resume=True, **kept)


# ---------------------------------------------------------------- one problem


@pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
@pytest.mark.parametrize(
    ("solver", "model"),
    [(s, m) for s, m in product(SOLVERS, MODELS) if s != "coordinate" or m in HALF_SQUARE],
)
def test_the_same_bits_wherever_it_was_stopped(tmp_path, solver, model, bias, engines_only):
    X, y = binary()
    options = {"model": model, "solver": solver, "bias": bias, **HARD}

    def fit(**more):
        return solve(X, y, **options, **more)

    whole, compared = fit(), 0
    for k, stop in ((1, asked_at), (2, killed_at), (5, asked_at), (11, killed_at), (40, asked_at)):
        if k < whole.n_iter:
            same_solution(whole, resumed(fit, tmp_path / "file", stop(k)))
            compared += 1
    direct = model == "lssvm" and solver in ("newton", "auto")  # which take two rounds
    assert compared == 1 if direct else compared >= 4


@pytest.mark.parametrize(
    "options",
    [
        {"solver": "nesvm", "lipschitz": "tight", "restart": True},
        {"solver": "nesvm", "strong": True, "bias": False},
        {"solver": "homotopy", "lipschitz": "tight", "schedule": "gap", "moving_centre": True},
        {"solver": "homotopy", "schedule": "geometric", "strong": True, "bias": False},
        {"solver": "newton", "moving_centre": False},
        {"solver": "newton", "model": "lssvm"},
    ],
    ids=lambda o: " ".join(map(str, o.values())),
)
def test_options_of_engines(tmp_path, options):
    X, y = binary()
    start = np.full(X.shape[1], 0.1)

    def fit(**more):
        return solve(X, y, w0=start, **options, **HARD, **more)

    whole, compared = fit(), 0
    for k in (1, 6, 23, 61):
        if k < whole.n_iter:
            same_solution(whole, resumed(fit, tmp_path / "file", killed_at(k)))
            compared += 1
    assert compared >= (1 if options.get("model") == "lssvm" else 2)


def test_a_chain_goes_on_with_either_engine(tmp_path, monkeypatch, engines_only):
    monkeypatch.setattr(linear, "choose", partial(auto.choose, few_cells=10))
    monkeypatch.setattr(auto, "patience", lambda size: 200.0)
    X, y = binary(n=200)

    def fit(**more):
        return solve(X, y, tol=1e-8, **more)

    whole, engines = fit(), set()
    assert whole.why.startswith("after 9 epochs of coordinate steps")
    for k in (1, 2, 8, 9, 10, 11, whole.n_iter - 1):
        same_solution(whole, resumed(fit, tmp_path / "file", killed_at(k)))
        same_solution(whole, resumed(fit, tmp_path / "file", asked_at(k)))
        engines.add(read_snapshot(tmp_path / "file")["slots"]["0"]["state"]["run"]["engine"])
    assert engines == {"coordinate", "newton"}


def test_newton_by_conjugate_gradients(tmp_path, monkeypatch):
    monkeypatch.setattr(newton, "linear_direction", partial(direction, widest=4))
    X, y = binary()
    for model in MODELS:

        def fit(model=model, **more):
            return solve(X, y, model=model, solver="newton", tol=1e-5, **more)

        same_solution(fit(), resumed(fit, tmp_path / "file", killed_at(min(4, fit().n_iter - 1))))


def test_starts_and_single_precision(tmp_path):
    X, y = binary()
    X, rough = X.toarray().astype(np.float32), solve(X, y, tol=0.1)
    for solver in ("newton", "coordinate", "auto"):

        def fit(solver=solver, **more):
            return solve(X, y, solver=solver, w0=rough.w, b0=rough.b, C=3.0, **HARD, **more)

        whole = fit()
        assert whole.n_iter > 2
        same_solution(whole, resumed(fit, tmp_path / "file", killed_at(2)))


def test_another_number_of_threads_goes_on_to_the_same_bits(tmp_path, small_chunks):
    X, y = binary()
    options = {"solver": "newton", "checkpoint": tmp_path / "file", "tol": 1e-4}
    before = get_threads()
    whole = solve(X, y, solver="newton", tol=1e-4)
    try:
        set_threads(1)
        with pytest.raises(Killed):
            solve(X, y, checkpoint_every=OFTEN, callback=killed_at(5), **options)
    finally:
        set_threads(before)
    same_solution(whole, solve(X, y, resume=True, **options))


def test_it_may_be_stopped_again_and_again(tmp_path):
    X, y = binary()
    options = {"solver": "newton", **HARD}
    whole = solve(X, y, **options)
    kept = {"checkpoint": tmp_path / "file", "checkpoint_every": OFTEN}
    assert solve(X, y, callback=lambda row: True, **kept, **options).status == "interrupted"
    for _ in range(whole.n_iter):
        found = solve(X, y, callback=lambda row: True, resume=True, **kept, **options)
        if found.status != "interrupted":
            break
    same_solution(whole, found)


def test_a_higher_limit_goes_on(tmp_path):
    X, y = binary()
    kept = {"checkpoint": tmp_path / "file", "checkpoint_every": OFTEN, "tol": 1e-7}
    short = solve(X, y, solver="newton", max_iter=3, **kept)
    assert (short.status, short.n_iter) == ("iteration_limit", 3)
    same_solution(
        solve(X, y, solver="newton", tol=1e-7), solve(X, y, solver="newton", resume=True, **kept)
    )


def test_seconds_of_earlier_runs_count(tmp_path):
    X, y = binary()
    endless = {"solver": "nesvm", "tol": 0.0, "epsilon": 0.0, "max_iter": 10**9}
    kept = {"checkpoint": tmp_path / "file", "checkpoint_every": OFTEN}

    def slow(row):
        time.sleep(0.02)
        return row["round"] >= 10

    solve(X, y, callback=slow, **endless, **kept)
    again = solve(X, y, resume=True, time_limit=0.1, **endless, **kept)
    assert again.status == "time_limit"
    assert again.n_iter == 11
    assert (np.diff(again.history["seconds"]) >= 0.0).all()
    assert again.history["seconds"][-1] >= 0.2
    train(X, y, callback=slow, **endless, **kept)
    job = train(X, y, resume=True, time_limit=0.1, **endless, **kept)
    assert job.problems[0]["iterations"] == 11
    assert job.problems[0]["seconds"] >= 0.2


# ---------------------------------------------------------------- several problems


@pytest.mark.parametrize("multiclass", ["ovr", "ovo"])
@pytest.mark.parametrize("small", [0, 10**9], ids=["threads", "one by one"])
def test_several_classes(tmp_path, monkeypatch, multiclass, small):
    monkeypatch.setattr("nesvm_jit.machine.jobs.SMALL_CELLS", small)
    X, y = several(classes=4)

    def fit(**more):
        return train(X, y, multiclass=multiclass, solver="newton", tol=1e-6, **more)

    for callback in (killed_at(4), lambda row: row["problem"] == 2 and row["round"] == 4):
        same_machine(fit(), resumed(fit, tmp_path / "file", callback))


def test_finished_problems_are_not_solved_again(tmp_path):
    X, y = several(classes=4)
    kept = {"checkpoint": tmp_path / "file", "solver": "newton"}
    whole = train(X, y, checkpoint_every=OFTEN, **kept)
    seen = []
    same_machine(whole, train(X, y, resume=True, callback=seen.append, **kept))
    assert not seen


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_kernels_and_probabilities(tmp_path, kernel, engines_only):
    X, y = several(n=90, classes=3)

    def fit(**more):
        return train(X, y, kernel=kernel, probability=True, **more)

    same_machine(fit(), resumed(fit, tmp_path / "file", killed_at(1)))


def test_linear_probabilities_and_nystroem(tmp_path):
    X, y = several(classes=3)
    for options in ({"probability": True}, {"kernel": "rbf", "approx": "nystroem"}):

        def fit(options=options, **more):
            return train(X, y, solver="newton", tol=1e-5, **options, **more)

        same_machine(fit(), resumed(fit, tmp_path / "file", asked_at(3)))


@pytest.mark.parametrize(
    ("solver", "classes", "stop"), [("homotopy", 2, killed_at), ("newton", 3, asked_at)]
)
def test_rows_on_disk(tmp_path, monkeypatch, solver, classes, stop):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 20_000)
    X, y = several(classes=classes)
    write_libsvm(tmp_path / "text", X, y)
    convert([tmp_path / "text"], tmp_path / "matrix", n_features=X.shape[1])
    matrix = open_matrix(tmp_path / "matrix")

    def fit(**more):
        return train(matrix, solver=solver, tol=1e-7, max_iter=40, **more)

    same_machine(fit(), resumed(fit, tmp_path / "file", stop(5)))
    write_libsvm(tmp_path / "text", X, y[::-1])
    convert([tmp_path / "text"], tmp_path / "other", n_features=X.shape[1])
    with pytest.raises(InputError, match="of other data"):
        train(
            open_matrix(tmp_path / "other"),
            solver=solver,
            tol=1e-7,
            checkpoint=tmp_path / "file",
            resume=True,
        )


# ---------------------------------------------------------------- the file


@pytest.fixture
def stopped(tmp_path):
    """Data, and the checkpoint of an unfinished run on them."""
    X, y = binary()
    file = tmp_path / "file"
    with pytest.raises(Killed):
        solve(X, y, checkpoint=file, checkpoint_every=OFTEN, callback=killed_at(3), tol=1e-7)
    return X, y, file


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"C": 2.0}, "of C = 1.0, required is 2.0"),
        ({"model": "lssvm"}, "of model = csvm, required is lssvm"),
        ({"bias": False}, "of bias = True, required is False"),
        ({"tol": 1e-3}, "of tol = 1e-07, required is 0.001"),
        ({"seed": 1}, "of seed = 0"),
        ({"w0": 0.1}, "of other data"),
        ({"class_weight": {1.0: 2.0}}, "of other data"),
    ],
)
def test_another_run_is_refused(stopped, change, message):
    X, y, file = stopped
    with pytest.raises(InputError, match=message) as error:
        solve(X, y, checkpoint=file, resume=True, **{"tol": 1e-7, **change})
    assert "\n" not in str(error.value)


def test_other_data_are_refused(stopped):
    X, y, file = stopped
    data = X.data.copy()
    data[7] = np.nextafter(data[7], 1.0)
    other = X.copy()
    other.data = data
    for matrix, labels in ((other, y), (X[::-1], y), (X, -y), (X.toarray(), y)):
        with pytest.raises(InputError, match="the checkpoint is of other data"):
            solve(matrix, labels, checkpoint=file, resume=True, tol=1e-7)
    with pytest.raises(InputError, match="the checkpoint is of multiclass"):
        train(X, y, checkpoint=file, resume=True, tol=1e-7)


def test_damaged_files_are_refused(stopped):
    X, y, file = stopped
    whole = file.read_bytes()
    rng = np.random.default_rng(0)
    texts = [whole[:n] for n in (0, 1, 40, len(whole) // 2, len(whole) - 1)]
    for at in rng.integers(0, len(whole), 60):
        texts.append(whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1 :])
    texts += [
        b"{}\n",
        b"\x1f\x8b\x00",
        b"\x80\x04",
        whole.replace(b'"version": 2', b'"version": 1'),
    ]
    assert len(texts) == 69
    for text in texts:
        file.write_bytes(text)
        with pytest.raises(InputError) as error:
            solve(X, y, checkpoint=file, resume=True, tol=1e-7)
        assert str(error.value).startswith(f"{file}: ")
        assert "\n" not in str(error.value)


def test_what_cannot_be_is_refused(tmp_path):
    X, y = binary()
    with pytest.raises(InputError, match="no checkpoint to resume from"):
        solve(X, y, checkpoint=tmp_path / "none", resume=True)
    with pytest.raises(InputError, match="resume needs the checkpoint"):
        solve(X, y, resume=True)
    with pytest.raises(InputError, match="must be the name of a file"):
        solve(X, y, checkpoint="-")
    with pytest.raises(InputError, match="checkpoint must be the name of a file, got 3"):
        solve(X, y, checkpoint=3)
    with pytest.raises(InputError, match="checkpoint_every must be positive"):
        solve(X, y, checkpoint=tmp_path / "a", checkpoint_every=0.0)
    with pytest.raises(NesvmError, match="cannot be written"):
        solve(X, y, checkpoint=tmp_path / "no" / "folder")
    with pytest.raises(InputError, match="not for cross-validation"):
        cross_validate(X, y, checkpoint=tmp_path / "a")
    with pytest.raises(InputError, match="path takes no checkpoint; use state"):
        path(X, y, checkpoint=tmp_path / "a")


def test_a_disk_that_fills_up_does_not_end_training(tmp_path, monkeypatch, engines_only):
    X, y = binary()
    real = Checkpoint._write

    def full(self):
        if self._slots:
            raise NesvmError("file: cannot be written: no space left")
        real(self)

    monkeypatch.setattr(Checkpoint, "_write", full)
    with pytest.warns(UserWarning, match="no space left; training goes on"):
        found = solve(X, y, checkpoint=tmp_path / "file", checkpoint_every=OFTEN, **HARD)
    same_solution(solve(X, y, **HARD), found)


def test_facts_and_arrays_come_back_as_they_were(tmp_path):
    numbers = [0.1, 1e-310, float("inf"), -float("inf"), 2**63, -0.0, True, None, "ä"]
    arrays = {"a": np.arange(6.0).reshape(2, 3)[:, ::2], "b": np.zeros(0), "c": np.uint64([2**63])}
    write_snapshot(tmp_path / "file", {"numbers": tuple(numbers), "arrays": arrays})
    found = read_snapshot(tmp_path / "file")
    assert [*map(repr, found["numbers"])] == [*map(repr, numbers)]
    for name, array in arrays.items():
        assert found["arrays"][name].dtype == array.dtype
        assert np.array_equal(found["arrays"][name], array)


def test_looking_at_the_clock_costs_nothing(tmp_path):
    checkpoint = Checkpoint(tmp_path / "file", 1e9, {})
    for slot in (None, checkpoint.slot(0)):
        saving = slot and Saving(slot, None)
        if saving:
            saving.state = SimpleNamespace(settled=False)
        seconds = []
        for _ in range(5):  # another program may have the core meanwhile
            run = Run(SimpleNamespace(passes=0.0), Settings())
            began = time.perf_counter()
            drive((None for _ in range(1000)), run, always, saving=saving)
            seconds.append(time.perf_counter() - began)
            assert run.iterations == 1000
        assert min(seconds) < 0.02  # 20 µs a round; a round takes as much or more


def test_no_checkpoint_is_written_before_it_is_due(tmp_path, monkeypatch):
    written = []
    monkeypatch.setattr(Checkpoint, "_write", lambda self: written.append(len(self._slots)))
    solve(*binary(), checkpoint=tmp_path / "file", checkpoint_every=60.0)
    assert written == [0]


# ---------------------------------------------------------------- the command line

LONG = ("--solver", "homotopy", "-e", "0", "--epsilon", "1e-9", "--max-iter", "5000")


def same_model_files(a, b):
    same_machine(load_model(a), load_model(b))


def test_a_process_that_is_killed_goes_on(tmp_path):
    data = data_file(tmp_path / "data", n=200)
    whole, model, file = tmp_path / "whole", tmp_path / "model", tmp_path / "state"
    options = (*LONG, "--checkpoint", file, "--checkpoint-every", 0.02)
    done("train", *LONG, data, whole)
    process = subprocess.Popen(
        [sys.executable, "-m", "nesvm_jit", "train", *map(str, options), str(data), str(model)]
    )
    seen = set()
    while len(seen) < 4 and process.poll() is None:
        time.sleep(0.005)
        if file.exists():
            seen.add(file.stat().st_mtime_ns)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not model.exists()
    slots = read_snapshot(file)["slots"]
    assert 0 < slots["0"]["state"]["run"]["iterations"] < 5000
    ended = done("train", "--resume", *options, data, model)
    assert "--resume and a higher limit goes on from" in ended.err
    same_model_files(whole, model)
    assert file.exists()  # it ended at a limit


def test_the_file_is_removed_when_the_model_is_there(tmp_path):
    data, model, file = data_file(tmp_path / "data"), tmp_path / "model", tmp_path / "state"
    done("train", "--checkpoint", file, data, model)
    assert model.exists()
    assert not file.exists()


def test_ctrl_c_keeps_the_model_and_says_how_to_go_on(tmp_path):
    data, model, file = data_file(tmp_path / "data"), tmp_path / "model", tmp_path / "state"
    options = (*LONG, "--checkpoint", file)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nesvm_jit.cli.progress.Progress.__call__", lambda self, row: True)
        found = command("train", *options, data, model)
    assert found.code == 130
    assert found.err.endswith(f"nesvm-jit: the same command with --resume goes on from {file}\n")
    assert load_model(model).problems[0]["status"] == "interrupted"
    whole = tmp_path / "whole"
    done("train", *LONG, data, whole)
    facts = json.loads(done("train", "--json", "--resume", *options, data, model).out)
    assert facts["iterations"] == 5000
    same_model_files(whole, model)


def test_ctrl_c_between_problems_says_how_to_go_on_too(tmp_path):
    data, file = data_file(tmp_path / "data", labels=(1, 2, 3)), tmp_path / "state"
    done("convert", "-q", data, tmp_path / "matrix")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nesvm_jit.cli.progress.Progress.__call__", lambda self, row: True)
        stream = ("--stream", "--checkpoint", file, tmp_path / "matrix", tmp_path / "model")
        found = command("train", *stream)
    assert found.code == 130
    hint = f"the same command with --resume goes on from {file}"
    kept, how = found.err.splitlines()
    assert "it was interrupted, and what it found was kept" in kept
    assert how == f"nesvm-jit: {hint}"
    assert file.exists()
    again = done("train", "--stream", "--resume", *stream[1:])
    assert "ertified gap" in again.out
    assert not file.exists()


def test_wrong_commands(tmp_path):
    data, file = data_file(tmp_path / "data"), tmp_path / "state"
    model = tmp_path / "model"
    assert "--resume needs" in refused("train", "--resume", data, model)
    assert "no checkpoint" in refused("train", "--resume", "--checkpoint", file, data, model)
    assert "--folds" in refused("train", "-v", "3", "--checkpoint", file, data)
    assert "another file" in refused("train", "--checkpoint", model, data, model)
    assert "another file" in refused("train", "--checkpoint", data, data, model)
    assert "positive" in refused(
        "train", "--checkpoint", file, "--checkpoint-every", 0, data, model
    )


# ---------------------------------------------------------------- dask


@pytest.fixture(scope="module")
def client():
    pytest.importorskip("distributed")
    from nesvm_jit import distributed

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with distributed.connected("local", workers=2) as found:
            yield found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("solver", "model", "bias"),
    [
        ("nesvm", "csvm", True),
        ("homotopy", "lpsvm", False),
        ("newton", "csvm", True),
        ("newton", "lpsvm", True),
        ("newton", "lssvm", True),
    ],
)
def test_rows_on_workers(client, tmp_path, solver, model, bias):
    from nesvm_jit import distributed

    X, y = binary()
    write_libsvm(tmp_path / "data", X, y)
    options = {"model": model, "solver": solver, "bias": bias, "tol": 1e-5, "max_iter": 30}

    def fit(**more):
        return distributed.solve(str(tmp_path / "data"), client=client, **options, **more)

    whole, compared = fit(), 0
    for k, stop in ((1, killed_at), (4, asked_at)):
        if k < whole.n_iter:
            same_solution(whole, resumed(fit, tmp_path / "file", stop(k)))
            compared += 1
    assert compared == (1 if (solver, model) == ("newton", "lssvm") else 2)


@pytest.mark.filterwarnings("ignore")
def test_several_classes_on_workers(client, tmp_path):
    from nesvm_jit import distributed

    X, y = several(classes=3)
    write_libsvm(tmp_path / "data", X, y)

    def fit(**more):
        path = str(tmp_path / "data")
        return distributed.train(path, client=client, solver="newton", **more)

    same_machine(fit(), resumed(fit, tmp_path / "file", asked_at(3)))
    write_libsvm(tmp_path / "data", X, y[::-1])
    with pytest.raises(InputError, match="of other data"):
        fit(resume=True, checkpoint=tmp_path / "file")


def test_shards_that_are_lost_after_resuming_are_built_again():
    pytest.importorskip("distributed")
    from nesvm_jit.distributed.calls import Call
    from nesvm_jit.distributed.holder import Holder
    from nesvm_jit.distributed.log import Log

    X, y = binary()
    w = np.linspace(-1.0, 1.0, X.shape[1])

    def holder():
        data = blocks.Resident(as_matrix(X))
        return Holder(0, Shard(data, y, np.ones(len(y)), MODELS["csvm"](), True))

    first, log = holder(), Log()
    first.answer(Call(0, "place", (w, 0.5)))
    first.answer(Call(1, "step", (0.0, 1.0)))
    state = {0: first.answer(Call(2, "state", ()))[0]}
    calls = [
        Call(0, "deal", ({0: np.arange(len(y)) / len(y)},)),
        Call(1, "place", (2 * w, 0.0)),
        Call(2, "restore", (state,)),
        Call(3, "aim", (w, 0.0)),
        Call(4, "step", (0.5, 1.0)),
    ]
    second, third = holder(), holder()
    for call in calls:
        second.answer(call)
        log.add(call)
    assert [call.method for call in log.calls()] == ["deal", "restore", "aim", "step"]
    for call in log.calls():
        third.answer(call)
    for name, array in second.shard.state().items():
        assert np.array_equal(array, third.shard.state()[name]), name
    assert np.array_equal(second.vectors[0], third.vectors[0])
