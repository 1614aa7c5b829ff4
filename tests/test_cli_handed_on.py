"""`train` and `path` beside a library that only notes what it is handed: options, files, lines."""

import contextlib
import importlib
import json
import os
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from nesvm_jit import InputError, NesvmError, distributed, estimator, load_model, read_libsvm
from nesvm_jit.cli.progress import Progress
from nesvm_jit.endings import Outcome
from nesvm_jit.machine import crossval
from nesvm_jit.machine.machine import Machine
from nesvm_jit.matrix.rows import as_scipy
from nesvm_jit.selection import path as selection

from .commands import command, data_file, done, kernel_text, refused
from .made_up import found, machine, problem

FITTING, TRAIN, CROSSVAL, PATH = (
    importlib.import_module(f"nesvm_jit.cli.{name}")
    for name in ("fitting", "train", "crossval", "path")
)
IMPORTED = (
    crossval,
    estimator,
    selection,
)  # whatever imports `train` does so before it is replaced
USUAL = {
    **{"model": "csvm", "kernel": "linear", "degree": 3, "coef0": 0.0, "cache_mb": None},
    **{"multiclass": None, "solver": "auto", "tol": 1e-3, "mu": 5.0, "mu_start": 5.0},
    **{"mu_end": None, "epsilon": 1e-3, "lipschitz": None, "returned": "best"},
    "max_iter": 100_000,
    **{"time_limit": None, "seed": 0, "approx": None, "landmarks": None, "bias": True},
    **{"class_weight": None},
}
ALONE = {
    **{"gamma": None, "C": 1.0, "probability": False, "checkpoint": None},
    **{"checkpoint_every": 60.0, "resume": False},
}
ARGS = [
    *("-s", "lpsvm", "-t", "poly", "-d", "2", "-r", "1.5", "-m", "7", "--multiclass", "ovr"),
    *("--solver", "nesvm", "-e", "1e-4", "--mu", "2", "--mu-start", "3", "--mu-end", "0.1"),
    *("--epsilon", "0.01", "--lipschitz", "tight", "--returned", "last"),
    *("--max-iter", "9", "--time-limit", "8"),
    *("--seed", "4", "--approx", "nystroem", "--landmarks", "11", "--no-bias", "-w1", "2"),
]
GIVEN = {
    **{"model": "lpsvm", "kernel": "poly", "degree": 2, "coef0": 1.5, "cache_mb": 7.0},
    **{"multiclass": "ovr", "solver": "nesvm", "tol": 1e-4, "mu": 2.0, "mu_start": 3.0},
    **{"mu_end": 0.1, "epsilon": 0.01, "lipschitz": "tight", "returned": "last"},
    **{"max_iter": 9, "time_limit": 8.0},
    **{"seed": 4, "approx": "nystroem", "landmarks": 11, "bias": False},
    **{"class_weight": {1.0: 2.0}},
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data_file(tmp_path / "two", n=20)
    return tmp_path


def names(folder):
    return sorted(p.name for p in folder.iterdir())


def made(status="converged", certified=True, gap=1e-4):
    certificate = problem(status=status, certified=certified, gap=gap)
    return machine(np.ones((4, 1)), [found(np.ones(20), np.ones(20))], [certificate])


@pytest.fixture
def fits(monkeypatch):
    """train notes its arguments and finds a machine that the test may choose."""
    noted = SimpleNamespace(asked=[], machine=made())

    def fit(X, y, **given):
        noted.asked.append((X, y, given))
        return noted.machine

    monkeypatch.setattr("nesvm_jit.machine.train.train_silently", fit)
    return noted


def watched(monkeypatch, *modules):
    """Arguments of every Progress of a command."""
    asked = []

    class Noting(Progress):
        def __init__(self, *args):
            asked.append(args)
            super().__init__(*args)

    for module in modules:
        monkeypatch.setattr(module, "Progress", Noting)
    return asked


# ---------------------------------------------------------------- train: what is handed on


@pytest.mark.parametrize(
    ("args", "changes"),
    [
        ([], {}),
        (
            [*ARGS, "-c", "3", "-g", "0.5", "-b", "1"],
            {**GIVEN, "C": 3.0, "gamma": 0.5, "probability": True},
        ),
        (["--checkpoint", "state", "--checkpoint-every", "5"], {"checkpoint_every": 5.0}),
    ],
)
def test_train_hands_every_option_on(here, fits, args, changes):
    if "--checkpoint" in args:
        changes = {**changes, "checkpoint": "state"}
    done("train", "-q", *args, "two")
    ((X, y, given),) = fits.asked
    callback = given.pop("callback")
    assert callback({"round": 1, "objective": 1.0, "gap": 1.0}) is False
    assert given == {**USUAL, **ALONE, "warm": None, "keep_solutions": False, **changes}
    expected, labels = read_libsvm("two")
    np.testing.assert_array_equal(as_scipy(X).toarray(), expected.toarray())
    np.testing.assert_array_equal(y, labels)


@pytest.mark.parametrize(
    ("args", "columns", "dtype"),
    [([], 4, np.float64), (["--features", "9"], 9, np.float64), (["--float32"], 4, np.float32)],
)
def test_data_are_read_as_asked(here, fits, args, columns, dtype):
    done("train", "-q", *args, "two")
    X = fits.asked[0][0]
    assert (X.shape, X.dtype) == ((20, columns), dtype)


@pytest.mark.parametrize(("args", "columns"), [([], 7), (["--features", "9"], 9)])
def test_a_warm_start_says_how_many_features_there_are(here, fits, args, columns):
    machine(np.ones((7, 1)), None).save("first")
    done("train", "-q", "--warm-start", "first", *args, "two")
    X, _, given = fits.asked[0]
    assert X.shape == (20, columns)
    assert isinstance(given["warm"], Machine)
    assert given["warm"].n_features == 7


@pytest.mark.parametrize(
    ("args", "target"),
    [
        (["two"], "two.model"),
        (["two", "m"], "m"),
        (["-o", "m", "two"], "m"),
        (["./two"], "two.model"),
    ],
)
def test_the_model_is_written_where_it_is_asked_for(here, fits, args, target):
    done("train", "-q", *args)
    assert names(here) == sorted(["two", target])
    np.testing.assert_array_equal(load_model(target).record.weights, np.ones((4, 1)))


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["two", "m", "n"], "Got unexpected extra argument (n)"),
        (["two", "m", "n", "o"], "Got unexpected extra argument (n)"),
        (["--workers", "2", "two"], "--workers is for --dask local"),
        (["-o", "n", "two", "m"], "the model file is given twice, by MODEL_FILE and --output"),
        (["-v", "2", "--warm-start", "w", "two"], "--warm-start and --folds do not go together"),
        (["-v", "2", "--html", "a", "two"], "--html and --folds do not go together"),
        (["-v", "2", "--checkpoint", "a", "two"], "--checkpoint and --folds do not go together"),
        (["-v", "2", "--resume", "two"], "--resume needs the --checkpoint to go on from"),
        (["-"], "MODEL_FILE is required when training from standard input"),
        (["two", "two"], "MODEL_FILE must be another file than the one that is read"),
        (["--html", "two", "two"], "--html must be another file than the one that is read"),
        (["--html", "w", "--warm-start", "w", "two"], "--html must be another file than the one"),
        (["--dask", "local", "-v", "3", "two"], "--dask and --folds do not go together"),
        (["--dask", "local", "--stream", "two"], "--dask and --stream do not go together"),
        (["--dask", "local", "-o", "m", "--warm-start", "w", "two"], "--dask and --warm-start do"),
        (["--dask", "local", "-o", "b", "two", "b"], "MODEL_FILE must be another file than the"),
        (["--checkpoint", "two", "two"], "--checkpoint must be another file than the one that"),
        (["--checkpoint", "w", "--warm-start", "w", "two"], "--checkpoint must be another file"),
        (["--checkpoint", "a", "--html", "a", "two"], "--checkpoint must be another file than"),
        (["--checkpoint", "two.model", "two"], "--checkpoint must be another file than those"),
        (["--dask", "local", "-o", "m", "--checkpoint", "b", "two", "b"], "--checkpoint must be"),
    ],
)
def test_what_does_not_go_together_is_refused_before_training(here, fits, args, message):
    machine(np.ones((4, 1)), None).save("w")
    (here / "b").write_bytes((here / "two").read_bytes())
    before = names(here)
    assert refused("train", *args).startswith(f"nesvm-jit: {message}")
    assert fits.asked == []
    assert names(here) == before


@pytest.mark.parametrize(
    ("args", "asked"),
    [(["-v", "2"], "folds"), (["--html", "a"], "html"), (["--trace", "a"], "trace")],
)
def test_rows_that_stay_on_disk_have_no_folds_and_no_pages(here, fits, args, asked):
    done("convert", "-q", "two", "m")
    said = refused("train", "--stream", *args, "m")
    assert said == f"nesvm-jit: --{asked} needs rows in memory, these stay where they are\n"
    assert done("train", "-q", "--stream", "m").code == 0
    assert fits.asked[0][1] is None


@pytest.fixture
def cluster_fits(monkeypatch):
    """distributed.train notes its arguments; a client is the arguments it was made with."""
    asked = []

    @contextlib.contextmanager
    def connected(*where):
        yield ("client of", *where)

    def fit(*args, **given):
        asked.append((args, given))
        return made()

    monkeypatch.setattr(distributed, "connected", connected)
    monkeypatch.setattr(distributed, "train", fit)
    return asked


@pytest.mark.parametrize("float32", [True, False])
def test_a_cluster_gets_the_files_and_the_settings(here, cluster_fits, float32):
    args = [*ARGS[: ARGS.index("-t")], *ARGS[ARGS.index("--solver") : ARGS.index("--approx")]]
    args += ["--no-bias", "-w1", "2", "-c", "3", "--checkpoint", "state", "--checkpoint-every", "5"]
    where = ["--dask", "tcp://x", "--features", "9", *["--float32"] * float32]
    (here / "b").write_text("")
    (here / "c").write_text("")
    done("train", "-q", *where, *args, "-o", "m", "two", "b", "c")
    ((data,), given) = cluster_fits.pop()
    assert data == ["two", "b", "c"]
    assert given.pop("callback")({"round": 1, "objective": 1.0, "gap": 1.0}) is False
    kernels = ("kernel", "degree", "coef0", "cache_mb", "approx", "landmarks", "multiclass")
    assert given == {
        **{name: value for name, value in GIVEN.items() if name not in kernels},
        **{"C": 3.0, "checkpoint": "state", "checkpoint_every": 5.0, "resume": False},
        "client": ("client of", "tcp://x", None),
        "n_features": 9,
        "dtype": np.float32 if float32 else np.float64,
    }
    assert names(here) == ["b", "c", "m", "two"]


def test_worker_processes_and_the_model_have_their_usual_names(here, cluster_fits):
    done("train", "-q", "--dask", "local", "--workers", "3", "two")
    ((data,), given) = cluster_fits.pop()
    assert (data, given["client"]) == (["two"], ("client of", "local", 3))
    assert names(here) == ["two", "two.model"]


# ---------------------------------------------------------------- train: what is said


LINES = (
    "optimization finished, #iter = 7\nObjective value = 4.000000\nnSV = 3\n"
    "Certified gap = 1.000e-04\n"
)
WARNED = "nesvm-jit: warning: the tolerance 0.001 is not certified (gap 5.00e-01): {}\n"


@pytest.mark.parametrize(
    ("target", "pages", "to_stderr"),
    [
        (["m"], [], False),
        (["-"], [], True),
        (["m"], ["--trace", "-"], True),
        (["m"], ["--trace", "t.csv"], False),
    ],
)
def test_lines_make_room_for_results_on_standard_output(here, fits, target, pages, to_stderr):
    outcome = done("train", *pages, "two", *target)
    assert (LINES in outcome.err, LINES in outcome.out) == (to_stderr, not to_stderr)


def test_a_run_that_ended_early_warns_and_an_interrupted_one_has_its_code(here, fits):
    fits.machine = made("iteration_limit", certified=False, gap=0.5)
    outcome = done("train", "two")
    said = WARNED.format("the limit of iterations was reached; raise --max-iter or --tol")
    assert outcome.err == said
    assert done("train", "-q", "two") == (0, "", said)
    assert done("train", "--json", "two").err == said
    assert command("train", "-q", "--strict", "two") == (3, "", said)
    assert (here / "two.model").exists()
    fits.machine = made("interrupted", certified=False, gap=0.5)
    outcome = command("train", "two")
    assert outcome.code == 130
    said = WARNED.format("it was interrupted, and what it found was kept; let it run on")
    assert outcome.err == said
    assert command("train", "-q", "--strict", "two") == (130, "", said)
    fits.machine = made()
    assert done("train", "-q", "--strict", "two") == (0, "", "")


@pytest.mark.parametrize("status", ["converged", "stalled", "epsilon", "time_limit", "interrupted"])
@pytest.mark.parametrize("quiet", [True, False])
def test_a_checkpoint_is_removed_when_training_is_done(here, fits, status, quiet):
    fits.machine = made(status, certified=status == "converged")

    def fit(*_, **__):
        (here / "state").write_text("kept")
        return fits.machine

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nesvm_jit.machine.train.train_silently", fit)
        outcome = command("train", *["-q"] * quiet, "--checkpoint", "state", "two")
    cut_short = status in ("time_limit", "interrupted")
    assert (here / "state").exists() == cut_short
    more = "" if status == "interrupted" else " and a higher limit"
    hint = f"nesvm-jit: the same command with --resume{more} goes on from state\n"
    assert outcome.err.count("\n") == (status != "converged") + (cut_short and not quiet)
    assert outcome.err.endswith(hint) == (cut_short and not quiet)


@pytest.mark.parametrize(
    ("args", "wanted"), [([], True), (["-q"], False), (["--json"], False), (["-v", "2"], True)]
)
def test_train_shows_progress_unless_silent(here, fits, monkeypatch, args, wanted):
    asked = watched(monkeypatch, TRAIN, CROSSVAL)
    done("train", "-e", "0.5", *args, "two")
    ((line, shown, ending),) = asked
    assert shown is wanted
    assert ending == "ending with the best model found; Ctrl-C again to give it up"
    row = {"round": 1, "objective": 2.0, "gap": 1.0}
    assert line(row, row, 1.25) == "round 1  objective 2  gap 1.00e+00 (2 x tolerance)  1.2 s"


def test_a_silent_cross_validation_shows_no_progress(here, monkeypatch):
    asked = watched(monkeypatch, CROSSVAL)
    done("train", "-q", "-v", "2", "two")
    done("train", "--json", "-v", "2", "two")
    assert [wanted for _, wanted, _ in asked] == [False, False]


def test_times_of_a_run_are_those_of_its_parts(here, fits, monkeypatch):
    times = iter([10.0, 11.0, 13.5, 13.75, 20.0])
    monkeypatch.setattr(FITTING, "time", SimpleNamespace(perf_counter=lambda: next(times)))
    facts = json.loads(done("train", "--json", "two").out)
    assert facts["seconds"] == {"read": 1.0, "solve": 2.5, "write": 0.25, "total": 10.0}


def test_cross_validation_hands_every_option_on(here, monkeypatch):
    asked = []

    def validate(X, y, folds, **given):
        asked.append((X.shape, len(y), folds, given))
        return SimpleNamespace(
            accuracy=0.625, accuracies=[0.5, 0.75], gaps=[1e-4, 1e-3], status="converged"
        )

    monkeypatch.setattr("nesvm_jit.machine.crossval.cross_validate", validate)
    assert done("train", "-v", "2", "two").out == "Cross Validation Accuracy = 62.5%\n"
    ((shape, n, folds, given),) = asked
    assert (shape, n, folds) == ((20, 4), 20, 2)
    assert given.pop("callback")({"round": 1, "objective": 1.0, "gap": 1.0}) is False
    assert given == {**USUAL, **ALONE}
    assert done("train", "-q", "-v", "2", "two") == (0, "", "")
    times = iter([10.0, 11.0, 13.5, 16.0])
    monkeypatch.setattr(FITTING, "time", SimpleNamespace(perf_counter=lambda: next(times)))
    facts = json.loads(done("train", "--json", "-v", "2", "-c", "3", "--seed", "7", "two").out)
    assert facts == {
        **{"model": "csvm", "kernel": "linear", "n_samples": 20, "n_features": 4, "C": 3.0},
        **{"folds": 2, "seed": 7, "accuracy": 0.625, "accuracies": [0.5, 0.75], "gap": 1e-3},
        **{"status": "converged", "seconds": {"read": 1.0, "solve": 2.5, "total": 6.0}},
    }
    assert names(here) == ["two"]


@pytest.mark.parametrize("program", ["train", "path"])
def test_hints_are_for_people_and_for_rows_with_features(here, fits, program):
    (here / "wide").write_text("".join(f"{k % 2} 1:{k + 1} 2:5000\n" for k in range(8)))
    (here / "K").write_text(kernel_text(100 * np.eye(8), np.resize([1.0, -1.0], 8)))
    args = [program, *(["-c", "1", "-v", "2"] if program == "path" else [])]
    hint = "nesvm-jit: hint: features reach from 8 to 5e+03; scaled to [0, 1] or [-1, 1] they "
    assert done(*args, "wide").err.startswith(hint)
    assert done(*args, "-q", "wide") == (0, "", "")
    assert done(*args, "--json", "wide").err == ""
    assert done(*args, "-t", "precomputed", "K").err == ""
    done("convert", "-q", "wide", "m")
    assert done(*args, "--stream", "m").err == ""


def test_pages_are_drawn_of_the_machine_that_was_trained(here, fits, monkeypatch):
    drawn = []
    monkeypatch.setattr(FITTING.outputs, "write", lambda *a: drawn.append(a))
    done("train", "-q", "two")
    assert drawn == []
    assert fits.asked[0][2]["keep_solutions"] is False
    facts = json.loads(done("train", "--json", "--html", "a", "--trace", "b", "two").out)
    ((pages, machine_, X, y, told, name),) = drawn
    assert (pages, name) == ({"html": "a", "trace": "b"}, "two")
    assert machine_ is fits.machine
    assert (X.shape, len(y)) == ((20, 4), 20)
    assert told == facts
    assert fits.asked[1][2]["keep_solutions"] is True


def test_a_model_that_cannot_be_saved_is_saved_elsewhere_or_lost(here, monkeypatch, tmp_path):
    class Unsaved:
        def __init__(self, fails):
            self.fails, self.asked = fails, []

        def save(self, path):
            self.asked.append(path)
            if len(self.asked) <= self.fails:
                if path.endswith("rescued.model"):
                    os.rmdir(os.path.dirname(path))
                raise InputError("the disk is full")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    FITTING.outputs.save(saved := Unsaved(0), "m")
    assert saved.asked == ["m"]
    with pytest.raises(NesvmError) as e:
        FITTING.outputs.save(rescued := Unsaved(1), "m")
    assert str(e.value) == f"the disk is full; the model was saved as {rescued.asked[1]}"
    folder, name = os.path.split(rescued.asked[1])
    assert name == "rescued.model"
    assert os.path.basename(folder).startswith("nesvm-jit-")
    with pytest.raises(NesvmError) as e:
        FITTING.outputs.save(lost := Unsaved(2), "m")
    assert str(e.value) == "the disk is full"
    assert not os.path.exists(os.path.dirname(lost.asked[1]))


# ---------------------------------------------------------------- path: what is handed on


class Chosen(SimpleNamespace):
    """What a search finds, as far as JSON and pages are concerned."""

    def facts(self):
        return {"seconds": self.seconds}

    def outcomes(self):
        return [Outcome(p["status"], p["gap"]) for p in self.machine.problems]


@pytest.fixture
def searches(monkeypatch):
    noted = SimpleNamespace(asked=[], result=None)

    def search(*args, **given):
        noted.asked.append((args, given))
        if isinstance(noted.result, BaseException):
            raise noted.result
        return noted.result or Chosen(
            machine=made(), seconds={}, refit=None, test=None, resumed=0, ignored=False
        )

    monkeypatch.setattr("nesvm_jit.selection.path.path", search)
    return noted


@pytest.mark.parametrize(
    ("args", "grid", "more", "changes"),
    [
        ([], ("1e-3:1e3:7", None, 5, 1), {}, {}),
        (
            [*ARGS, "-c", "1,2", "-g", "0.5", "-v", "3", "--repeats", "2", "--scoring", "auc"],
            ("1,2", "0.5", 3, 2),
            {"scoring": "auc"},
            GIVEN,
        ),
        (["--rule", "one-se"], ("1e-3:1e3:7", None, 5, 1), {"rule": "one_se"}, {}),
        (
            ["-o", "m"],
            ("1e-3:1e3:7", None, 5, 1),
            {"refit": True, "state": "m.path.json"},
            {},
        ),
        (["-o", "-"], ("1e-3:1e3:7", None, 5, 1), {"refit": True}, {}),
    ],
)
def test_path_hands_every_option_on(here, searches, args, grid, more, changes):
    done("path", "-q", *args, "two")
    (((X, y, *handed), given),) = searches.asked
    assert tuple(handed) == grid
    assert X.shape == (20, 4)
    assert len(y) == 20
    assert given.pop("callback")({"round": 1, "gap": 1.0}) is False
    expected = {"scoring": "accuracy", "rule": "best", "refit": False, "keep_solutions": False}
    expected |= {"test": None, "state": "two.path.json"}
    assert given == {**USUAL, **expected, **more, **changes}


def test_path_reads_data_as_asked(here, searches):
    done("path", "-q", "--features", "9", "--float32", "two")
    X = searches.asked[0][0][0]
    assert (X.shape, X.dtype) == ((20, 9), np.float32)
    done("convert", "-q", "two", "m")
    done("path", "-q", "--stream", "m")
    assert searches.asked[1][0][1] is None
    said = refused("path", "--stream", "--html", "a", "m")
    assert said == "nesvm-jit: --html needs rows in memory, these stay where they are\n"


def test_rows_of_a_test_file_get_the_columns_of_the_training_rows(here, searches):
    (here / "t").write_text("1 1:1 9:5\n-1 2:3\n")
    done("path", "-q", "--test", "t", "two")
    given = searches.asked[0][1]
    assert given["refit"] is True
    Z, truth = given["test"]
    assert Z.shape == (2, 4)
    np.testing.assert_array_equal(as_scipy(Z).toarray(), [[1, 0, 0, 0], [0, 3, 0, 0]])
    assert truth.tolist() == [1, -1]
    done("convert", "-q", "t", "matrix")
    done("path", "-q", "--test", "matrix", "two")
    Z, truth = searches.asked[1][1]["test"]
    np.testing.assert_array_equal(as_scipy(Z).toarray(), [[1, 0, 0, 0], [0, 3, 0, 0]])
    assert truth.tolist() == [1, -1]


def test_a_test_file_that_stays_on_disk_is_refused(here, searches, monkeypatch):
    done("convert", "-q", "two", "m")
    real = sys.modules["nesvm_jit.files.training"].read_training

    def read(name, *asked):
        return (None, None) if name == "m" else real(name, *asked)

    monkeypatch.setattr("nesvm_jit.files.training.read_training", read)
    assert refused("path", "--test", "m", "two") == (
        "nesvm-jit: --test needs rows in memory, these are too many; use predict\n"
    )


def test_rows_of_a_precomputed_test_file_start_at_zero(here, searches):
    (here / "K").write_text(kernel_text(np.eye(6), np.resize([1.0, -1.0], 6)))
    (here / "t").write_text(kernel_text(np.eye(6)[:2], [1.0, -1.0]))
    done("path", "-q", "-t", "precomputed", "--test", "t", "K")
    Z, truth = searches.asked[0][1]["test"]
    np.testing.assert_array_equal(
        Z if isinstance(Z, np.ndarray) else as_scipy(Z).toarray(), np.eye(6)[:2]
    )
    assert truth.tolist() == [1, -1]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--test", "-", "-"], "TRAINING_FILE and --test cannot both be standard input"),
        (["-o", "two", "two"], "MODEL must be another file than the one that is read"),
        (["-o", "t", "--test", "t", "two"], "MODEL must be another file than the one that is read"),
        (["--html", "t", "--test", "t", "two"], "--html must be another file than the one that is"),
        (["--html", "a", "-o", "a", "two"], "MODEL and --html must be different files"),
        (["--json", "--html", "-", "two"], "--json and --html - both need standard output"),
        (["-o", "-", "--html", "-", "two"], "a MODEL of - and --html - both need standard output"),
        (["--html", "no/a", "two"], "no/a: cannot be written: no such folder"),
    ],
)
def test_path_refuses_before_it_reads(here, searches, args, message):
    (here / "t").write_text("1 1:1\n")
    assert refused("path", *args).startswith(f"nesvm-jit: {message}")
    assert searches.asked == []


@pytest.mark.parametrize(
    ("args", "state"),
    [(["two"], "two.path.json"), (["./two"], "two.path.json"), (["-o", "m", "two"], "m.path.json")],
)
def test_columns_are_kept_beside_the_model_or_in_this_folder(here, searches, args, state):
    done("path", "-q", *args)
    assert searches.asked[0][1]["state"] == state


def test_nothing_is_kept_of_standard_input_or_in_a_closed_folder(here, searches, monkeypatch):
    done("path", "-q", "-", stdin=(here / "two").read_bytes())
    assert searches.asked[0][1]["state"] is None
    done("path", "-q", "-o", "m", "-", stdin=(here / "two").read_bytes())
    assert searches.asked[1][1]["state"] == "m.path.json"
    asked = []
    monkeypatch.setattr(os, "access", lambda *a: asked.append(a) and False)
    done("path", "-q", "two")
    assert searches.asked[2][1]["state"] is None
    assert asked == [(".", os.W_OK)]


# ---------------------------------------------------------------- path: what is said


@pytest.mark.parametrize("kept", [True, False])
def test_an_interrupted_path_says_what_it_has_kept(here, searches, kept):
    searches.result = KeyboardInterrupt()
    if kept:
        (here / "two.path.json").write_text("")
    more = "; the same command goes on from what two.path.json keeps" if kept else ""
    assert command("path", "two") == (130, "", f"nesvm-jit: interrupted{more}\n")
    outcome = command("path", "-", stdin=(here / "two").read_bytes())
    assert outcome == (130, "", "nesvm-jit: interrupted\n")


def test_times_of_a_path_have_reading_and_all(here, searches, monkeypatch):
    times = iter([10.0, 11.5, 20.0])
    monkeypatch.setattr(FITTING, "time", SimpleNamespace(perf_counter=lambda: next(times)))
    assert json.loads(done("path", "--json", "two").out) == {
        "seconds": {"read": 1.5, "total": 10.0}
    }


@pytest.mark.parametrize(("args", "wanted"), [([], True), (["-q"], False), (["--json"], False)])
def test_path_shows_progress_unless_silent(here, monkeypatch, args, wanted):
    asked = watched(monkeypatch, PATH)
    done("path", "-e", "0.5", "-c", "1", "-v", "2", *args, "two")
    assert [shown for _, shown, _ in asked] == [wanted]


def test_the_answer_to_ctrl_c_and_the_line_are_those_of_a_path(here, searches, monkeypatch):
    handed = watched(monkeypatch, PATH)
    done("path", "-q", "two")
    ((line, wanted, ending),) = handed
    assert wanted is False
    assert ending == "ending; the same command will go on from here. Ctrl-C again to end at once"
    assert line({"gap": 0.0123}, {}, 1.25) == "training on all rows  gap 1.23e-02  1.2 s"
    row = {"done": 3, "total": 35, "C": 0.5, "gap": 1.0}
    assert line(row, {}, 1.25) == "3/35 problems solved  now C = 0.5  1.2 s"
    row |= {"best_score": 0.87654, "best_C": 2.0}
    shown = "3/35 problems solved  now C = 0.5  best so far 0.8765 at C = 2  1.2 s"
    assert line(row, {}, 1.25) == shown


def test_what_was_resumed_or_left_alone_is_said(here, searches, monkeypatch):
    monkeypatch.setattr("nesvm_jit.cli.words.table_lines", lambda result: ["table"])
    monkeypatch.setattr("nesvm_jit.cli.words.choice_lines", lambda result: ["choice"])
    monkeypatch.setattr("nesvm_jit.cli.words.uncertified_lines", lambda *_: ["warning: w"])
    monkeypatch.setattr("nesvm_jit.cli.words.judged_line", lambda facts: f"judged {facts}")
    searches.result = Chosen(
        machine=made(),
        seconds={},
        refit={"gap": 0.012345, "C": 2.0, "n_support": 5},
        test="rows",
        resumed=3,
        ignored=True,
    )
    outcome = done("path", "two")
    table = "table\nchoice\nTrained on all rows: C = 2, nSV = 5, certified gap = 1.235e-02\n"
    table = table.replace("1.235e-02", f"{0.012345:.3e}") + "judged rows\n"
    said = (
        "nesvm-jit: 3 columns of the table were in two.path.json\n"
        "nesvm-jit: two.path.json is of another run and has been left as it is\n"
        "nesvm-jit: warning: w\n"
    )
    assert outcome == (0, table, said)
    assert done("path", "-q", "two") == (0, "", "nesvm-jit: warning: w\n")
    assert done("path", "--json", "two").err == "nesvm-jit: warning: w\n"
    searches.result = Chosen(**{**vars(searches.result), "refit": None, "test": None, "resumed": 0})
    searches.result.ignored = False
    assert done("path", "two") == (0, "table\nchoice\n", "nesvm-jit: warning: w\n")
    outcome = done("path", "-o", "-", "two")
    assert outcome.err == "table\nchoice\nnesvm-jit: warning: w\n"
    assert outcome.out.startswith("solver_type ")


def test_pages_of_a_path_show_the_machine_and_the_test_file(here, monkeypatch):
    drawn = []
    monkeypatch.setattr(PATH.outputs, "draw", lambda *a: drawn.append(a))
    data_file(here / "t", n=10, seed=5)
    args = ("path", "-c", "1", "-v", "2", "--html", "a", "two")
    outcome = done(*args)
    assert "Best: C = 1," in outcome.out
    document, pages = drawn[0]
    assert pages == {"html": "a"}
    assert document["title"] == "two"
    assert [s["title"] for s in document["sections"]] == [
        *("Every cost", "Other scores", "All rows: How training went"),
        "All rows: What was found",
    ]
    done(*args[:-1], "--test", "t", "two")
    document = drawn[1][0]
    assert document["sections"][2]["title"] == "The test file"
    (chart,) = document["sections"][2]["charts"]
    assert chart["id"] == "test"
    assert chart["title"] == "Classes true and decided, rows of the test file"
    assert np.sum(chart["counts"]) == 10
    assert np.sum(chart["counts"], axis=1).tolist() == [5, 5]
    done(*args[:-2], "-", "two")
    outcome = done("path", "-c", "1", "-v", "2", "--html", "-", "two")
    assert "Best: C = 1," in outcome.err
    assert outcome.out == ""
    assert len(drawn) == 4
    done("path", "-q", "-c", "1", "-v", "2", "two")
    assert len(drawn) == 4
