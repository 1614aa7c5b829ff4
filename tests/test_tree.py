"""What git tracks: sources, not data, and nothing that a test has left behind."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LARGEST = 1_000_000  # bytes of a tracked file
FOLDERS = {".ci", ".github", "bench", "constraints", "docs", "nesvm_jit", "tests"}
FILES = {
    *(".gitignore", ".pre-commit-config.yaml", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE"),
    "SECURITY.md",
    *("Makefile", "README.md"),
    *("mkdocs.yml", "pyproject.toml"),
}


@pytest.fixture(scope="module")
def tracked() -> list[Path]:
    try:
        top = subprocess.run(
            ["git", "rev-parse", "--show-toplevel"], cwd=ROOT, capture_output=True, text=True
        )
    except FileNotFoundError:
        pytest.skip("git is not installed")
    if top.returncode or Path(top.stdout.strip()).resolve() != ROOT.resolve():
        pytest.skip("not a checkout, or a copy inside of one")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    return [ROOT / name for name in listed.stdout.decode().split("\0") if name]


def test_no_data_set_is_tracked(tracked):
    large = [p.relative_to(ROOT) for p in tracked if p.exists() and p.stat().st_size > LARGEST]
    assert large == []


def test_the_top_of_the_tree_holds_what_it_is_meant_to(tracked):
    tops = {p.relative_to(ROOT).parts[0] for p in tracked if p.exists()}
    assert tops == FOLDERS | FILES
