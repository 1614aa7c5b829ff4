"""Copies of the project in which one file is changed at a time."""

import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from .errors import MutantsError
from .faults import Fault, changed

ROOT = Path(__file__).parent.parent.parent
BUILD = ROOT / "build" / "mutants"
DIGEST = "SOURCE_DIGEST = _digest()"  # a line of the code cache
CODE = "code"  # the folder of a tree for machine code
IN_MACHINE_CODE = ("jit", "matrix", "kernels")  # whose sources a faulty tree compiles to other code
AT_START = """\
import os
from importlib.machinery import SourceFileLoader

read = SourceFileLoader.get_data


def pinned(self, path):
    data = read(self, path)
    if path == HOLDER and data == UNCHANGED:
        return data.replace(LINE, f"SOURCE_DIGEST = {DIGEST!r}".encode())
    return data


SourceFileLoader.get_data = pinned
if os.environ.get("COVERAGE_PROCESS_START"):
    import coverage

    coverage.process_startup()
"""


def files() -> list[str]:
    """The project's files, tracked or new. Bytecode is none of them: Python would run it instead of
    the source that a tree pins."""
    listed = git("ls-files", "-co", "--exclude-standard").splitlines()
    sources = [name for name in listed if not name.endswith(".pyc")]
    return sorted(name for name in sources if (ROOT / name).is_file())


def git(*words: str) -> str:
    """What git answers in the project."""
    try:
        said = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    except FileNotFoundError:
        raise MutantsError("git is needed, which lists the project's files") from None
    if said.returncode:
        raise MutantsError(f"git {words[0]}: {last_line(said.stderr)}")
    return said.stdout.strip()


def write_whole(path: Path, text: str) -> None:
    """Write a file that is never there in part, whatever happens meanwhile."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def last_line(text: str) -> str:
    return (text.strip().splitlines() or [""])[-1].strip()


def clear_dead_trees() -> None:
    """Remove the trees of processes that no longer run."""
    for tree in BUILD.glob("tree-*-*"):
        pid = tree.name.rpartition("-")[2]
        if pid.isdecimal() and not _runs(int(pid)):
            shutil.rmtree(tree, ignore_errors=True)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return pid != os.getpid()  # ours has made no tree yet


def make_tree(name: str) -> Path:
    """A copy of the project. Its code cache begins as a copy of that of the unchanged sources: a
    fault outside compiled functions leaves machine code as it is, and need not wait for the
    compiler. Copies of the tree's package, which tests make, find their own cache: no file is
    changed for that, only what is read when the module is imported from the tree, and only if no
    fault is in it."""
    holder, digest, kept = _pinned()
    tree = BUILD / f"{name}-{os.getpid()}"
    shutil.rmtree(tree, ignore_errors=True)
    for file in files():
        (tree / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / file, tree / file)
    said = f"HOLDER, DIGEST = {str(tree / holder)!r}, {digest!r}\n"
    said += f"UNCHANGED, LINE = {(ROOT / holder).read_bytes()!r}, {DIGEST.encode()!r}\n"
    (tree / "sitecustomize.py").write_text(said + AT_START)
    (tree / CODE / digest).mkdir(mode=0o700, parents=True)
    for file in kept.glob("*.nsc"):
        shutil.copy2(file, tree / CODE / digest)
    return tree


def _pinned() -> tuple[Path, str, Path]:
    """The module that holds the digest of the sources, that digest, and the folder of the code
    compiled from them."""
    holders = [p for p in (ROOT / "nesvm_jit").rglob("*.py") if DIGEST in p.read_text()]
    if len(holders) != 1:
        raise MutantsError(f"{len(holders)} files of the package have the line {DIGEST!r}, not one")
    holder = holders[0].relative_to(ROOT)
    module = ".".join(holder.with_suffix("").parts)
    program = f"from {module} import SOURCE_DIGEST, cache_folders as found\n"
    program += "print(SOURCE_DIGEST, found()[0] or '/dev/null')"
    run = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    if run.returncode:
        raise MutantsError(f"the package cannot be imported: {last_line(run.stderr)}")
    digest, folder = run.stdout.strip().split(maxsplit=1)
    return holder, digest, Path(folder)


def environment(tree: Path, pure: bool) -> dict[str, str]:
    """Of processes that work in a tree; compilation is off where `pure`. Machine code is kept in
    the tree: the user's cache must never hold what was compiled from faulty sources."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("COVERAGE")}
    env |= {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    env |= {"NESVM_JIT_CACHE_DIR": str(tree / CODE)}
    return env | {"NUMBA_DISABLE_JIT": "1"} if pure else env


@contextmanager
def with_fault(tree: Path, fault: Fault):
    """The tree with the fault in it; the file is the original's, not the tree's. Machine code that
    may hold the fault is dropped with it."""
    path = tree / fault.path
    kept, code = path.read_bytes(), set((tree / CODE).rglob("*.nsc"))
    path.write_bytes(changed(fault, (ROOT / fault.path).read_bytes()))
    try:
        yield
    finally:
        path.write_bytes(kept)
        if Path(fault.path).parts[1] in IN_MACHINE_CODE:
            for file in set((tree / CODE).rglob("*.nsc")) - code:
                file.unlink(missing_ok=True)
