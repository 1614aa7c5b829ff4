"""The architecture, read off the imports; every rule is also shown to notice a breach."""

import ast
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "nesvm_jit"
# From the cellar up: a module imports from its own room or from one above it in this list.
ROOMS = (
    *(
        "errors",
        "signals",
        "activity",
        "clock",
        "thread_limit",
        "settings",
        "endings",
        "jit",
        "matrix",
        "numerics",
        "kernels",
        "files",
        "models",
    ),
    *(
        "problems",
        "solvers",
        "checkpoint",
        "binary",
        "machine",
        "certifying",
        "selection",
        "distributed",
        "pages",
    ),
    *("estimator", "cli", "__main__"),
)
COMPILERS = {"numba", "llvmlite"}
MAY_IMPORT_COMPILERS = "jit"
# Names of one room that another may use although they begin with an underscore: compiled loops.
MAY_LEND_PRIVATE_NAMES = {"kernels"}
# Where imports inside functions delay what is heavy: commands import what they do only when asked,
# and plots say in one line that matplotlib is missing before they import what needs it.
MAY_DELAY_IMPORTS = {
    *("__main__.py", "files/model/rows.py"),
    *(f"cli/{name}.py" for name in ("checkpoints", "cluster", "convert", "crossval", "fitting")),
    *(
        f"cli/{name}.py"
        for name in ("certify", "info", "options", "outputs", "path", "predict", "train")
    ),
    *("cli/warmup.py", "pages/plots.py"),
    # numba is imported when the first function is compiled
    *("jit/policy.py", "jit/threads.py", "jit/intrinsics.py"),
}
MAKERS = {
    *("kernel", "exact_kernel", "loop", "exact_loop"),
    *("helper", "exact_helper", "exact_inline", "inline", "by_layout", "overload"),
}


@dataclass(frozen=True)
class Import:
    """What a file imports: from where inside the package (None: from outside), and which names."""

    inside: tuple[str, ...] | None
    outside: str
    names: tuple[str, ...]
    delayed: bool


def imports_of(file: str, source: str) -> list[Import]:
    """Every import of a file of the package."""
    folder = Path(file).parent.parts
    tree = ast.parse(source)
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    delayed = {id(n) for f in functions for n in ast.walk(f)}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [Import(None, a.name, (), id(node) in delayed) for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = tuple(a.name for a in node.names)
            if not node.level:
                found.append(Import(None, node.module or "", names, id(node) in delayed))
                continue
            base = folder[: len(folder) - (node.level - 1)]
            if node.module:
                where = [(*base, *node.module.split("."))]
            else:
                where = [(*base, name) for name in names]
            found += [Import(w, "", names, id(node) in delayed) for w in where]
    return found


def room_of(file: str) -> str:
    return Path(file).parts[0].removesuffix(".py")


def module_of(file: str) -> tuple[str, ...]:
    parts = Path(file).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


# ---------------------------------------------------------------- the rules


def upward(files: dict[str, str]) -> list[str]:
    """Imports from a room that is not below."""
    floors = {room: floor for floor, room in enumerate(ROOMS)}
    found = []
    for file, source in files.items():
        room = room_of(file)
        if room == "__init__":
            continue
        for i in imports_of(file, source):
            target = i.inside[0] if i.inside else None
            if target is None or target == room or target == "__version__":
                continue
            if floors.get(target, len(ROOMS)) >= floors[room]:
                found.append(f"{file} imports {target}")
    return found


def by_its_full_name(files: dict[str, str]) -> list[str]:
    """Imports of the package by its full name, or of what its top level lends."""
    return [
        f"{file} imports {i.outside or 'the top level'}"
        for file, source in files.items()
        for i in imports_of(file, source)
        if i.outside.split(".")[0] == "nesvm_jit"
        or (i.inside is not None and i.inside[0] not in (*ROOMS, "__version__"))
    ]


def circles(files: dict[str, str]) -> list[str]:
    """Modules of one folder that import each other, directly or not."""
    known = {module_of(file): file for file in files}
    above: dict[str, set[str]] = {}
    for file, source in files.items():
        targets = set()
        for i in imports_of(file, source):
            if i.inside is None or _type_checking(source, i):
                continue
            places = [i.inside, *((*i.inside, name) for name in i.names)]
            targets |= {known[p] for p in places if p in known and known[p] != file}
        above[file] = {t for t in targets if Path(t).name != "__init__.py"}
    found = []
    for file in files:
        seen, ahead = set(), list(above[file])
        while ahead:
            at = ahead.pop()
            if at not in seen:
                seen.add(at)
                ahead += above[at]
        found += [file] if file in seen else []
    return found


def _type_checking(source: str, wanted: Import) -> bool:
    """Whether an import is for type checkers alone."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            inner = "\n".join(ast.unparse(n) for n in node.body)
            return any(name in inner for name in wanted.names)
    return False


def private_names(files: dict[str, str]) -> list[str]:
    """Names with an underscore that another room imports."""
    return [
        f"{file} imports {name} from {i.inside[0]}"
        for file, source in files.items()
        for i in imports_of(file, source)
        if i.inside and i.inside[0] not in (room_of(file), *MAY_LEND_PRIVATE_NAMES)
        for name in i.names
        if name.startswith("_") and not name.startswith("__")
    ]


def delayed(files: dict[str, str]) -> list[str]:
    """Imports of our own inside functions, where no command delays its work by them."""
    return [
        f"{file} imports {'.'.join(i.inside)} inside a function"
        for file, source in files.items()
        for i in imports_of(file, source)
        if i.delayed and i.inside and file not in MAY_DELAY_IMPORTS
    ]


def compilers(files: dict[str, str]) -> list[str]:
    """Files beside the policy that import the compiler."""
    return [
        file
        for file, source in files.items()
        if room_of(file) != MAY_IMPORT_COMPILERS
        and any(i.outside.split(".")[0] in COMPILERS for i in imports_of(file, source))
    ]


RULES = (upward, by_its_full_name, circles, private_names, delayed, compilers)
BREACHES = [
    (upward, {"matrix/matrix.py": "from ..models import CSvm"}),
    (upward, {"jit/policy.py": "from ..matrix.matrix import Csr"}),
    (upward, {"solvers/newton.py": "from ..binary.linear import solve_linear"}),
    (upward, {"solvers/newton.py": "def f():\n    from ..binary import linear"}),
    (upward, {"solvers/newton.py": "from .. import cli"}),
    (by_its_full_name, {"models/csvm.py": "import nesvm_jit.binary"}),
    (by_its_full_name, {"models/csvm.py": "from nesvm_jit.matrix.matrix import shape"}),
    (by_its_full_name, {"models/csvm.py": "from .. import solve"}),
    (circles, {"models/a.py": "from .b import x", "models/b.py": "from . import a"}),
    (private_names, {"binary/linear.py": "from ..solvers.newton import _line_search"}),
    (delayed, {"binary/linear.py": "def f():\n    from .kernel import solve_kernel"}),
    (compilers, {"kernels/jit.py": "import numba"}),
    (compilers, {"kernels/sums.py": "from numba import njit"}),
]


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    return {str(p.relative_to(PACKAGE)): p.read_text() for p in sorted(PACKAGE.rglob("*.py"))}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_architecture_holds(rule, files):
    assert rule(files) == []


@pytest.mark.parametrize(("rule", "breach"), BREACHES)
def test_a_breach_is_noticed(rule, breach):
    assert rule(breach) != []


def test_every_room_is_on_the_list(files):
    assert {room_of(file) for file in files} == {*ROOMS, "__init__"}


def test_every_file_that_is_compiled_is_part_of_the_cache_key(files):
    from nesvm_jit.jit import cache as codecache

    covered = {str(p.relative_to(PACKAGE)) for c in codecache.COMPILED for p in PACKAGE.glob(c)}
    compiled = {
        file
        for file, source in files.items()
        for i in imports_of(file, source)
        if i.inside and i.inside[0] == "jit" and {*i.names} & MAKERS
    }
    assert compiled
    assert compiled <= covered


def test_no_module_outgrows_the_head(files):
    assert [file for file, source in files.items() if len(source.splitlines()) > 400] == []


def test_solving_arrays_imports_no_reader_of_text():
    program = "import sys, nesvm_jit; nesvm_jit.solve; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    loaded = found.stdout.decode().split()
    assert "nesvm_jit.binary.solve" in loaded
    readers = ("nesvm_jit.files.libsvm", "nesvm_jit.files.model", "nesvm_jit.kernels.text")
    assert [name for name in loaded if name.startswith(readers)] == []
