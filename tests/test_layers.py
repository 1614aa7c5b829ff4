"""The architecture, read off the imports."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "nesvm_jit"
# A module may import from its own level or a lower one.
LEVELS = {
    "errors": 0,
    "codecache": 1,
    "jit": 2,
    "bits": 3,
    "matrix": 3,
    "narrow": 4,
    "kernels": 4,
    "files": 5,
    "models": 5,
    "checkpoint": 6,
    "solvers": 6,
    "settings": 7,
    "kept": 7,
    "weights": 8,
    "binary": 8,
    "kernelised": 8,
    "nystroem": 8,
    "machine": 9,
    "distributed": 10,
    "report": 10,
    "pages": 10,
    "selection": 10,
    "warm": 10,
    "estimator": 10,
    "cli": 11,
    "__main__": 12,
}
COMPILERS = {"numba", "llvmlite"}
MAY_IMPORT_COMPILERS = {"codecache.py", "jit.py", "bits.py"}
MODULES = sorted(PACKAGE.rglob("*.py"))


def imports(path):
    """(level of dots, dotted name) of every import in a file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.module:
                yield node.level, node.module
            else:
                yield from ((node.level, alias.name) for alias in node.names)


def inside(path, dots, name):
    """The part of the package a relative import leads to."""
    folder = path.relative_to(PACKAGE).parent.parts
    base = folder[: len(folder) - (dots - 1)]
    return (*base, *name.split("."))[0]


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_down(path):
    part = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    targets = {inside(path, dots, name) for dots, name in imports(path) if dots} & {*LEVELS}
    highest = {**LEVELS, "__init__": max(LEVELS.values())}[part]
    assert [target for target in targets if LEVELS[target] > highest] == []


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_only_the_policy_imports_the_compiler(path):
    used = {name.split(".")[0] for dots, name in imports(path) if not dots} & COMPILERS
    assert not used or path.name in MAY_IMPORT_COMPILERS


def test_every_file_that_is_compiled_is_part_of_the_cache_key():
    from nesvm_jit import codecache

    covered = {p for pattern in codecache.COMPILED for p in PACKAGE.glob(pattern)}
    makers = {
        "kernel",
        "exact_kernel",
        "helper",
        "exact_helper",
        "exact_inline",
        "exact_loop",
        "overload",
    }
    for path in MODULES:
        tree = ast.parse(path.read_text())
        names = {
            alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module and node.module.endswith("jit")
            for alias in node.names
        }
        assert path in covered or not names & (makers | {"overload"}), path


def test_no_module_outgrows_the_head():
    assert not [p for p in MODULES if len(p.read_text().splitlines()) > 400]
