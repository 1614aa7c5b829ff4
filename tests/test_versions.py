"""The lowest versions that are promised are those that are tested."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = (ROOT / "pyproject.toml").read_text()


def promised():
    """The lowest version of everything that the package and its tests depend on."""
    tested = PROJECT[: PROJECT.index("peers = [")] + PROJECT[PROJECT.index("\ntest = [") :]
    found = re.findall(r'"([a-z-]+)(?:\[\w+\])?>=([\d.]+)', tested)
    return {name: version for name, version in found if name not in ("setuptools", "mkdocs")}


def constrained():
    lines = (ROOT / "constraints" / "lowest.txt").read_text().splitlines()
    return dict(line.split("==") for line in lines if not line.startswith("#"))


def parts(version):
    return [int(part) for part in version.split(".")]


def test_every_promise_is_tested_with_this_very_version():
    lowest, asked = constrained(), promised()
    assert set(asked) - set(lowest) == {"ruff", "mypy"}  # they run in one environment alone
    assert set(lowest) - set(asked) == {"pyparsing"}  # matplotlib asks for it
    for name in set(lowest) & set(asked):
        version, wanted = lowest[name], parts(asked[name])
        assert parts(version)[: len(wanted)] == wanted, name
        assert not any(parts(version)[len(wanted) :]), name


def test_numba_is_bounded_above_beyond_the_version_in_use():
    (bound,) = re.findall(r'"numba>=[\d.]+,<([\d.]+)"', PROJECT)
    numba = pytest.importorskip("numba")
    assert parts(".".join(numba.__version__.split(".")[:2])) < parts(bound)


def test_the_hosted_workflow_runs_what_make_runs():
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text()
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"run: make ([\w-]+)", workflow)
    assert targets == ["test", "test-lowest", "test-newest", "test-slow"]
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
    assert 'requires-python = ">=3.10"' in PROJECT
    assert re.findall(r'"(3\.\d+t?)"', workflow.split("matrix:")[1].split("steps:")[0]) == [
        *("3.10", "3.11", "3.12", "3.13", "3.14", "3.14t")
    ]
