"""Options of the command line: what each takes, says and changes; files that are refused early."""

import json
import os
import stat
import warnings

import click
import pytest
from nesvm_jit import cli
from nesvm_jit.cli import checkpoints, cluster, options, outputs
from nesvm_jit.errors import NesvmError
from nesvm_jit.settings import KERNELS, MODELS, SCORES, SOLVERS

from .commands import command, data_file, done
from .made_up import found, machine


def one_of(names):
    """A choice as Click shows it."""
    return f"[{'|'.join(names)}]"


TAKES = {
    **{"model": one_of(MODELS), "kernel": one_of(KERNELS)},
    **{"degree": "INTEGER", "coef0": "FLOAT", "cache_mb": "FLOAT", "approx": "[nystroem]"},
    **{"landmarks": "M", "gamma": "FLOAT|SCALE", "C": "FLOAT", "liblinear_bias": "FLOAT"},
    "polish": "S",
    **{"weights": "LABEL WEIGHT", "multiclass": "[ovo|ovr]", "probability": "INTEGER RANGE"},
    **{"solver": one_of(SOLVERS), "tol": "FLOAT", "mu": "FLOAT"},
    **{"mu_start": "FLOAT", "mu_end": "FLOAT", "epsilon": "FLOAT", "lipschitz": "[paper|tight]"},
    "returned": "[best|last]",
    **{"max_iter": "INTEGER RANGE", "time_limit": "S", "warm_start": "MODEL"},
    **{"seed": "INTEGER RANGE", "checkpoint": "FILE", "checkpoint_every": "S", "folds": "N"},
    **{"features": "N", "dask": "ADDRESS", "workers": "N", "output": "MODEL", "plot": "FILE"},
    **{"html": "FILE", "trace": "FILE", "threads": "INTEGER RANGE", "costs": "GRID"},
    **{"gammas": "GRID", "repeats": "N", "scoring": one_of(SCORES)},
    **{"rule": "[best|one-se]", "test_file": "FILE"},
}
FLAGS = {
    *("bias", "resume", "float32", "stream", "strict", "quiet", "as_json", "fresh"),
    *("certified", "exact"),
    "scores",
}
SHOWN = {
    *("model", "kernel", "degree", "coef0", "C", "bias", "probability", "solver", "tol", "mu"),
    *("mu_start", "epsilon", "max_iter", "seed", "checkpoint_every", "costs", "repeats"),
    *("scoring", "rule", "returned"),
}


@pytest.fixture(scope="module", autouse=True)
def both_commands(tmp_path_factory):
    """Options are looked at where the commands that have them work."""
    folder = tmp_path_factory.mktemp("options")
    data_file(folder / "two", n=20)
    done("train", "-q", folder / "two", folder / "model")
    done("path", "-q", "-c", "1", "-v", "2", folder / "two", "-o", folder / "best")
    return folder


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data_file(tmp_path / "two", n=20)
    return tmp_path


# ---------------------------------------------------------------- the options themselves


@pytest.mark.parametrize("name", cli.command.commands)
def test_every_option_says_what_it_takes_what_it_does_and_its_default(name):
    sub = cli.command.commands[name]
    given = [p for p in sub.params if p.param_type_name == "option"]
    ctx = sub.context_class(sub, info_name=name)
    assert bool(given) == (name != "completion")
    for option in given:
        assert option.help.endswith("."), option.name
        assert option.is_flag == (option.name in FLAGS), option.name
        if not option.is_flag:
            assert option.make_metavar(ctx) == TAKES[option.name], option.name
        shown = option.name in SHOWN or (name == "path" and option.name == "folds")
        shown = shown and not (name == "certify" and option.name == "C")  # else that of the model
        assert bool(option.show_default) == shown, option.name
        assert option.hidden == (option.name == "liblinear_bias")
        assert option.multiple == (option.name == "weights")


def test_numbers_are_read_as_numbers():
    args = ["--landmarks", "3", "--features", "4", "--time-limit", "5", "-w1", "2", "-w", "-1", "3"]
    args += ["--degree", "2", "--coef0", "1", "--cost", "4", "--tol", "0", "--mu", "1"]
    args += [
        "--cache-mb",
        "9",
        "--mu-end",
        "1",
        "-B",
        "1",
        "--checkpoint-every",
        "7",
        "--seed",
        "8",
    ]
    given = cli.command.commands["train"].make_context("train", [*args, "file"]).params
    names = ("landmarks", "features", "time_limit", "weights", "degree", "coef0", "C", "tol")
    names += ("mu", "cache_mb", "mu_end", "liblinear_bias", "checkpoint_every", "seed")
    assert repr([given[name] for name in names]) == (
        "[3, 4, 5.0, ((1.0, 2.0), (-1.0, 3.0)), 2, 1.0, 4.0, 0.0, 1.0, 9.0, 1.0, 1.0, 7.0, 8]"
    )


def test_threads_are_those_asked_for(both_commands, tmp_path):
    from nesvm_jit import get_threads, set_threads

    before = get_threads()
    try:
        files = (both_commands / "two", both_commands / "model", tmp_path / "out")
        done("predict", "-q", *files)
        assert get_threads() == before
        done("predict", "-q", "--threads", "1", *files)
        assert get_threads() == 1
    finally:
        set_threads(before)


def test_the_defaults_of_path_are_its_own():
    given = cli.command.commands["path"].make_context("path", ["file"]).params
    names = ("costs", "gammas", "folds", "repeats", "scoring", "rule", "output", "test_file")
    assert [given[name] for name in names] == [
        *("1e-3:1e3:7", None, 5, 1, "accuracy", "best", None, None)
    ]
    given = cli.command.commands["train"].make_context("train", ["file"]).params
    assert (given["checkpoint_every"], given["C"], given["folds"]) == (60.0, 1.0, None)
    assert (given["model_file"], given["more"]) == (None, ())


def test_arguments_are_required_where_they_must_be():
    asked = {
        name: [(p.name, p.required, p.nargs) for p in sub.params if p.param_type_name == "argument"]
        for name, sub in cli.command.commands.items()
    }
    assert asked == {
        "train": [("training_file", True, 1), ("model_file", False, 1), ("more", False, -1)],
        "predict": [("test_file", True, 1), ("model_file", True, 1), ("output_file", True, 1)],
        "path": [("training_file", True, 1)],
        "info": [("model_file", True, 1)],
        "certify": [("model_file", True, 1), ("data_file", True, 1)],
        "convert": [("text_file", True, -1), ("binary_dir", True, 1)],
        "warmup": [],
        "completion": [("shell", True, 1)],
    }
    usage = done("train", "--help").out.splitlines()[0]
    assert usage == "Usage: nesvm-jit train [OPTIONS] TRAINING_FILE [MODEL_FILE]"


GIVEN = {
    **{"model": "csvm", "kernel": "rbf", "degree": 3, "coef0": 0.5, "cache_mb": 7.0},
    **{"multiclass": "ovo", "solver": "auto", "tol": 1e-4, "mu": 2.0, "mu_start": 3.0},
    **{"mu_end": 0.1, "epsilon": 1e-2, "lipschitz": "tight", "max_iter": 9, "time_limit": 8.0},
    **{"seed": 4, "approx": "nystroem", "landmarks": 11},
}


@pytest.mark.parametrize(
    ("bias", "letter", "expected"),
    [
        *((True, None, True), (False, None, False), (True, -1.0, False), (True, -0.5, False)),
        *((False, 0.0, True), (False, 0.5, True), (False, 1.0, True)),
    ],
)
def test_what_every_fit_takes(bias, letter, expected):
    given = {**GIVEN, "bias": bias, "liblinear_bias": letter, "weights": ()}
    assert options.fit_keywords(given) == {**GIVEN, "bias": expected, "class_weight": None}
    weighed = options.fit_keywords({**given, "weights": ((1.0, 2.0), (-1.0, 0.5))})
    assert weighed["class_weight"] == {1.0: 2.0, -1.0: 0.5}


def test_what_training_takes_besides():
    given = {**GIVEN, "bias": True, "liblinear_bias": None, "weights": ()}
    more = {"checkpoint": "file", "checkpoint_every": 5.0, "resume": True, "gamma": "scale"}
    found_ = options.fit_keywords({**given, **more, "C": 3.0, "probability": 1})
    assert found_ == {
        **{**GIVEN, "bias": True, "class_weight": None, "C": 3.0, "probability": True, **more}
    }


@pytest.mark.parametrize(
    ("value", "found_"), [("scale", "scale"), ("auto", "auto"), ("0.5", 0.5), ("1e-3", 1e-3)]
)
def test_a_width_is_a_number_or_a_word(value, found_):
    assert options.Gamma().convert(value, None, None) == found_


def test_json_has_no_numbers_that_json_lacks(capsys):
    nested = {"a": [1.0, float("inf"), (float("nan"), 2)], "b": {"c": -float("inf")}, "d": "inf"}
    outputs.print_json(nested)
    assert (
        capsys.readouterr().out == '{"a": [1.0, null, [null, 2]], "b": {"c": null}, "d": "inf"}\n'
    )


@pytest.mark.parametrize(
    ("path", "inputs", "same"),
    [
        ("a", ["b", "a"], True),
        ("a", ["b"], False),
        ("link", ["a"], True),
        ("new", ["new"], False),
        ("folder", ["folder"], False),
        ("a", ["none"], False),
        ("a", [], False),
    ],
)
def test_a_file_that_is_read_is_not_written_over(here, path, inputs, same):
    for name in "ab":
        (here / name).write_text("")
    (here / "link").symlink_to("a")
    (here / "folder").mkdir()
    if same:
        with pytest.raises(click.UsageError) as e:
            outputs.require_another_file("RESULT", path, inputs)
        assert e.value.message == "RESULT must be another file than the one that is read"
    else:
        assert outputs.require_another_file("RESULT", path, inputs) is None


# ---------------------------------------------------------------- files to be written


@pytest.mark.parametrize(
    ("results", "pages", "as_json", "message"),
    [
        ({"MODEL": "-"}, {}, True, "--json and a MODEL of - both need standard output"),
        ({}, {"html": "-"}, True, "--json and --html - both need standard output"),
        ({"MODEL": "-"}, {"trace": "/dev/stdout"}, False, "a MODEL of - and --trace - both need"),
        ({"MODEL": "-"}, {"trace": "-"}, True, "--json and a MODEL of - both need standard output"),
        ({}, {"html": "-", "trace": "-"}, False, "--html - and --trace - both need standard"),
        ({"MODEL": "a"}, {"html": "./a"}, False, "MODEL and --html must be different files"),
        ({}, {"html": "old", "trace": "old"}, False, "--html and --trace must be different files"),
        ({}, {"html": "old"}, False, "--html must be another file than the one that is read"),
    ],
)
def test_files_are_refused_before_the_work_begins(here, results, pages, as_json, message):
    (here / "old").write_text("")
    with pytest.raises(click.UsageError) as e:
        outputs.check(results, pages, ["two", "old"], as_json)
    assert e.value.message.startswith(message)


def test_files_that_can_be_written_are_not_refused(here):
    outputs.check({"MODEL": "-"}, {"html": "a"}, ["two"], False)
    outputs.check({"MODEL": "m"}, {"html": "-"}, ["two"], False)
    outputs.check({}, {"html": "/dev/null", "trace": "/dev/null"}, [], True)
    assert outputs.check({}, {}, [], True) is None


@pytest.mark.parametrize("name", ["plot", "html"])
def test_a_plot_must_end_as_plots_do_a_page_need_not(here, name):
    if name == "plot":
        with pytest.raises(NesvmError) as e:
            outputs.check({}, {"plot": "a.gif"}, [], False)
        assert str(e.value) == "a.gif: a plot must end in .png, .svg or .pdf"
    outputs.check({}, {name: "a.svg"}, [], False)
    with pytest.raises(NesvmError) as e:
        outputs.check({"MODEL": "no/m"}, {name: "a.svg"}, [], False)
    assert str(e.value) == "no/m: cannot be written: no such folder"
    with pytest.raises(NesvmError) as e:
        outputs.check({"MODEL": "m"}, {name: "no/a.svg"}, [], False)
    assert str(e.value) == "no/a.svg: cannot be written: no such folder"


@pytest.mark.parametrize(
    ("target", "denied", "why"),
    [
        ("new", [], None),
        ("old", [], None),
        ("-", ["."], None),
        ("/dev/stdout", ["/dev"], None),
        ("folder", [], "it is a folder"),
        ("no/new", [], "no such folder"),
        ("old/new", [], "Not a directory"),
        ("old", ["old"], "permission denied"),
        ("old", ["."], "permission denied in its folder"),
        ("new", ["."], "permission denied in its folder"),
        ("pipe", ["."], None),
        ("pipe", ["pipe"], "permission denied"),
    ],
)
def test_what_stands_in_the_way_of_a_file(here, monkeypatch, target, denied, why):
    (here / "old").write_text("")
    (here / "folder").mkdir()
    os.mkfifo(here / "pipe")
    assert stat.S_ISFIFO(os.stat("pipe").st_mode)
    closed = {os.path.realpath(name) for name in denied}

    def access(path, mode):
        assert mode == os.W_OK
        return os.path.realpath(path) not in closed

    monkeypatch.setattr(os, "access", access)
    if why is None:
        outputs.require_writable(target)
    else:
        with pytest.raises(NesvmError) as e:
            outputs.require_writable(target)
        assert str(e.value) == f"{target}: cannot be written: {why}"


def test_only_what_is_asked_for_is_written(here):
    made = machine([[1.0], [2.0]], [found([0, 1], [1, -1])])
    outputs.write({"trace": "a.csv"}, made, None, None, {}, "rows")
    assert sorted(os.listdir()) == ["a.csv", "two"]


@pytest.mark.parametrize("asked", [["plot"], ["html"], ["plot", "html"], ["html", "trace"]])
def test_pages_are_written_with_the_name_of_the_data(here, monkeypatch, asked):
    drawn = []
    monkeypatch.setattr("nesvm_jit.pages.plots.plot", lambda d, p: drawn.append((d, p)))
    monkeypatch.setattr("nesvm_jit.pages.html.write_html", lambda d, p: drawn.append((d, p)))
    monkeypatch.setattr("nesvm_jit.pages.trace.write_trace", lambda m, p: drawn.append((m, p)))
    monkeypatch.setattr("nesvm_jit.pages.pictures.training_document", lambda *a: a)
    outputs.write({name: f"to {name}" for name in asked}, "made", "X", "y", "facts", "a/b\n")
    document = ("made", "X", "y", "facts", r"b\n'")
    expected = [(document, f"to {name}") for name in asked if name != "trace"]
    if "trace" in asked:
        expected.insert(0, ("made", "to trace"))
    assert drawn == expected


# ---------------------------------------------------------------- clusters and checkpoints

LOCAL = {
    **{"kernel": "linear", "approx": None, "landmarks": None, "gamma": None, "cache_mb": None},
    **{"probability": False, "multiclass": None},
}


@pytest.mark.parametrize(
    ("settings", "given", "message"),
    [
        ({"kernel": "rbf"}, {}, "--dask trains linear machines, without --kernel"),
        ({"approx": "nystroem"}, {}, "--dask trains linear machines, without --approx"),
        ({"landmarks": 3}, {}, "--dask trains linear machines, without --landmarks"),
        ({"gamma": 0.5}, {}, "--dask trains linear machines, without --gamma"),
        ({"cache_mb": 1.0}, {}, "--dask trains linear machines, without --cache-mb"),
        ({"probability": True}, {}, "--dask trains linear machines, without --probability"),
        (
            {"multiclass": "ovo"},
            {},
            "--dask trains one class against the rest, --multiclass ovr",
        ),
        ({}, {"--folds": None, "--stream": True}, "--dask and --stream do not go together"),
        ({}, {"--folds": None, "--stream": False}, None),
        ({"multiclass": "ovr"}, {}, None),
    ],
)
def test_what_a_cluster_cannot_do_is_refused(settings, given, message):
    if message is None:
        assert cluster.require_distributable({**LOCAL, **settings}, given) is None
    else:
        with pytest.raises(click.UsageError) as e:
            cluster.require_distributable({**LOCAL, **settings}, given)
        assert e.value.message == message


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"checkpoint": None, "resume": True}, "--resume needs the --checkpoint to go on"),
        ({"checkpoint": "two"}, "--checkpoint must be another file than the one that is"),
        ({"checkpoint": "./m"}, "--checkpoint must be another file than those that are"),
        ({"checkpoint": "no/c"}, "no/c: cannot be written: no such folder"),
        ({"checkpoint": "old"}, "old: "),
        ({"checkpoint": "none", "resume": True}, "none: "),
        ({"checkpoint": None}, None),
        ({"checkpoint": "c"}, None),
    ],
)
def test_checkpoints_that_could_not_be_used_are_refused(here, settings, message):
    (here / "old").write_text("something else")
    settings = {"resume": False, **settings}
    if message is None:
        assert checkpoints.require_usable(settings, ["two"], ["m"]) is None
    else:
        with pytest.raises((click.UsageError, NesvmError)) as e:
            checkpoints.require_usable(settings, ["two"], ["m"])
        assert getattr(e.value, "message", str(e.value)).startswith(message)


def test_warnings_of_a_fit_with_a_checkpoint_are_lines(capsys):
    with checkpoints.announced("state"):
        warnings.simplefilter("always")
        warnings.warn("disk is full", stacklevel=1)
    assert capsys.readouterr().err == "nesvm-jit: warning: disk is full\n"
    with checkpoints.announced(None, warns=True):
        warnings.simplefilter("always")
        warnings.warn("anybody may", stacklevel=1)
    assert capsys.readouterr().err == "nesvm-jit: warning: anybody may\n"
    with pytest.warns(UserWarning, match="disk is full"), checkpoints.announced(None):
        warnings.warn("disk is full", stacklevel=1)
    assert capsys.readouterr().err == ""


def test_ctrl_c_in_a_fit_says_how_to_go_on():
    said = {}
    for checkpoint in ("a\nb", None):
        with pytest.raises(KeyboardInterrupt) as e, checkpoints.announced(checkpoint):
            raise KeyboardInterrupt("other")
        said[checkpoint] = e.value.args
    assert said == {
        "a\nb": (r"the same command with --resume goes on from 'a\nb'",),
        None: (),
    }


def test_a_run_that_met_its_limit_needs_a_higher_one():
    more = checkpoints.how_to_go_on("state", "time_limit")
    assert more == "the same command with --resume and a higher limit goes on from state"
    assert checkpoints.how_to_go_on("state", "interrupted") == checkpoints.how_to_go_on("state")
    assert checkpoints.how_to_go_on("state") == "the same command with --resume goes on from state"


def test_a_checkpoint_is_removed_if_it_is_there(here):
    (here / "state").write_text("")
    checkpoints.remove("state")
    assert not (here / "state").exists()
    checkpoints.remove("state")


def test_completion_is_for_the_shells_that_are_named():
    for shell, sign in (("bash", "COMPREPLY"), ("zsh", "#compdef nesvm-jit"), ("fish", "complete")):
        script = done("completion", shell).out
        assert sign in script
        assert "nesvm-jit" in script
        assert "_NESVM_JIT_COMPLETE" in script
    said = command("completion", "tcsh")
    assert said.code == 2
    assert "'tcsh' is not one of 'bash', 'zsh', 'fish'" in said.err


def test_json_of_train_and_path_is_one_line(here):
    for args in (("train", "--json", "two"), ("path", "--json", "-c", "1", "-v", "2", "two")):
        outcome = done(*args)
        assert outcome.out.count("\n") == 1
        assert json.loads(outcome.out)["n_samples"] == 20
