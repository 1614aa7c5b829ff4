"""The command line, run as users run it."""

import dataclasses
import os
import subprocess
import sys
import time

import pytest
from nesvm_jit import cli
from nesvm_jit.cli import options

from .commands import command, done, refused


def run(*args, **env):
    return subprocess.run(
        [sys.executable, "-m", "nesvm_jit", *args],
        capture_output=True,
        text=True,
        env={**os.environ, **env},
        timeout=300,
    )


@pytest.mark.parametrize("program", ["import nesvm_jit", "import nesvm_jit.cli; nesvm_jit.__all__"])
def test_importing_the_package_imports_no_numba(program):
    check = f"{program}; import sys; print({{'numba', 'scipy', 'numpy'}} & set(sys.modules))"
    out = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "set()"


def test_no_help_imports_numba():
    program = (
        "import sys, nesvm_jit.cli as c\n"
        "for args in ['--help'], ['--version'], *([n, '-h'] for n in c.command.commands):\n"
        "    sys.argv = ['nesvm-jit', *args]\n"
        "    try: c.main()\n"
        "    except SystemExit as e: assert not e.code\n"
        "print({'numba', 'scipy', 'numpy'} & set(sys.modules), file=sys.stderr)"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert out.returncode == 0
    assert out.stdout.count("Usage: nesvm-jit") == 1 + len(cli.command.commands)
    assert out.stderr.strip() == "set()"


def test_help_is_there_at_once():
    def seconds():
        start = time.perf_counter()
        assert run("train", "--help").returncode == 0
        return time.perf_counter() - start

    assert min(seconds() for _ in range(3)) < 1.5  # 0.21 to 0.30 on two busy cores


@pytest.mark.parametrize("name", cli.command.commands)
def test_every_command_has_an_example_in_lines_that_fit(name):
    text = done(name, "--help").out
    assert f"nesvm-jit {name}" in text.partition("\n")[2]
    assert max(map(len, text.splitlines())) <= 100
    assert text.isascii()


def test_train_has_every_option_of_the_contract():
    names = {name for option in cli.command.commands["train"].params for name in option.opts}
    names |= {n for option in cli.command.commands["train"].params for n in option.secondary_opts}
    wanted = (
        "-s --model -t --kernel -g --gamma -d --degree -r --coef0 -m --cache-mb -c --cost --bias "
        "--no-bias --solver -e --tol --mu --mu-start --mu-end --epsilon --lipschitz -w "
        "--multiclass -b --probability -v --folds --features --float32 --threads --max-iter "
        "--time-limit --seed -q --quiet --json"
    )
    assert names >= set(wanted.split())


def test_choices_and_defaults_are_those_of_the_library():
    from nesvm_jit import settings

    assert tuple(options.LIBSVM_NUMBERS.values()) == settings.KERNELS
    library = {field.name: field.default for field in dataclasses.fields(settings.Settings)}
    given = cli.command.commands["train"].make_context("train", ["file"]).params
    for name in set(given) & set(library):
        assert given[name] == library[name], name


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(shell):
    assert "_NESVM_JIT_COMPLETE" in done("completion", shell).out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("nesvm-jit tra", "train"),
        ("nesvm-jit train --multi", "--multiclass"),
        ("nesvm-jit train --solver h", "homotopy"),
        ("nesvm-jit train -t r", "rbf"),
    ],
)
def test_completion_completes(words, expected, monkeypatch):
    from click.shell_completion import BashComplete

    complete = BashComplete(cli.command, {}, "nesvm-jit", "_NESVM_JIT_COMPLETE")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    assert expected in [line.split(",")[-1] for line in complete.complete().splitlines()]


def test_completion_answers_the_shell():
    found = run(_NESVM_JIT_COMPLETE="bash_complete", COMP_WORDS="nesvm-jit tra", COMP_CWORD="1")
    assert found.stdout == "plain,train\n"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["bogus"], "nesvm-jit: No such command 'bogus'."),
        (["warmup", "--bogus"], "nesvm-jit: No such option"),
        (["warmup", "--threads", "0"], "0 is not in the range x>=1"),
        (["warmup", "--threads", "9999"], "threads must be a whole number from 1 to"),
        (["warmup", "extra"], "Got unexpected extra argument (extra)"),
    ],
)
def test_mistakes_are_one_line_and_a_non_zero_exit(args, message):
    assert message in refused(*args)


def test_no_command_shows_the_help():
    outcome = command()
    assert outcome.code == 2
    assert "Commands:" in outcome.out + outcome.err


def test_public_names_exist():
    import nesvm_jit

    for name in nesvm_jit.__all__:
        assert getattr(nesvm_jit, name) is not None
    assert set(dir(nesvm_jit)) == set(nesvm_jit.__all__)
    with pytest.raises(AttributeError, match="no attribute 'bogus'"):
        nesvm_jit.bogus  # noqa: B018


def test_an_interrupt_while_importing_is_one_line(monkeypatch, capsys):
    from nesvm_jit.__main__ import main

    def pressed(name, *args, **kwargs):
        if name == "cli":
            raise KeyboardInterrupt
        return real(name, *args, **kwargs)

    real = __import__
    monkeypatch.setattr("builtins.__import__", pressed)
    with pytest.raises(SystemExit) as e:
        main()
    assert e.value.code == 130
    assert capsys.readouterr().err == "nesvm-jit: interrupted\n"
