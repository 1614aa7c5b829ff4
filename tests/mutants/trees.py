"""Copies of the project in which one file is changed at a time."""

import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from .faults import Fault, changed

ROOT = Path(__file__).parent.parent.parent
BUILD = ROOT / "build" / "mutants"
DIGEST = "SOURCE_DIGEST = _digest()"  # a line of the code cache


def files() -> list[str]:
    """The project's files, tracked or new."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return sorted(name for name in listed.stdout.splitlines() if (ROOT / name).is_file())


def make_tree(name: str) -> Path:
    """A copy of the project. Its code cache is that of the unchanged sources: a fault outside
    compiled functions leaves machine code as it is, and need not wait for the compiler."""
    tree = BUILD / f"{name}-{os.getpid()}"
    shutil.rmtree(tree, ignore_errors=True)
    for file in files():
        (tree / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / file, tree / file)
    (tree / "sitecustomize.py").write_text(
        "import os\n"
        'if os.environ.get("COVERAGE_PROCESS_START"):\n'
        "    import coverage\n"
        "    coverage.process_startup()\n"
    )
    holders = [p for p in (tree / "nesvm_jit").rglob("*.py") if DIGEST in p.read_text()]
    (holder,) = holders
    text = holder.read_text()
    holder.write_text(text.replace(DIGEST, f"SOURCE_DIGEST = {_digest(holder, tree)!r}"))
    return tree


def _digest(holder: Path, tree: Path) -> str:
    module = ".".join(holder.relative_to(tree).with_suffix("").parts)
    program = f"from {module} import SOURCE_DIGEST; print(SOURCE_DIGEST)"
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return run.stdout.strip()


def environment(tree: Path, pure: bool) -> dict[str, str]:
    """Of processes that work in a tree; compilation is off where `pure`."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("COVERAGE")}
    env |= {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    return env | {"NUMBA_DISABLE_JIT": "1"} if pure else env


@contextmanager
def with_fault(tree: Path, fault: Fault):
    """The tree with the fault in it; the file is the original's, not the tree's."""
    path = tree / fault.path
    kept = path.read_bytes()
    path.write_bytes(changed(fault, (ROOT / fault.path).read_bytes()))
    try:
        yield
    finally:
        path.write_bytes(kept)
