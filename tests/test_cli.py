"""The command line, run as users run it."""

import os
import subprocess
import sys

import pytest


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


@pytest.mark.parametrize("args", [["--help"], ["warmup", "--help"], ["--version"]])
def test_help_imports_no_numba(args):
    program = (
        "import sys, nesvm_jit.cli as c\n"
        f"sys.argv = ['nesvm-jit', *{args!r}]\n"
        "try: c.main()\n"
        "finally: print('numba' in sys.modules, file=sys.stderr)"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert out.returncode == 0
    assert out.stdout
    assert out.stderr.strip() == "False"


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
    out = run(*args)
    assert out.returncode != 0
    assert not out.stdout
    assert message in out.stderr
    assert len(out.stderr.splitlines()) == 1


def test_no_command_shows_the_help():
    assert "Commands:" in run().stdout + run().stderr


def test_public_names_exist():
    import nesvm_jit

    for name in nesvm_jit.__all__:
        assert getattr(nesvm_jit, name) is not None
    assert set(dir(nesvm_jit)) == set(nesvm_jit.__all__)
    with pytest.raises(AttributeError, match="no attribute 'bogus'"):
        nesvm_jit.bogus  # noqa: B018
