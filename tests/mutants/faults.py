"""Every small change of a source that could be made: comparisons, operators, constants, conditions,
statements and arguments left out. Texts for people (messages, docstrings, annotations) are not
touched."""

import ast
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from zlib import crc32

from .errors import MutantsError

COMPARISONS = {
    ast.Lt: [ast.LtE, ast.GtE],
    ast.LtE: [ast.Lt, ast.Gt],
    ast.Gt: [ast.GtE, ast.LtE],
    ast.GtE: [ast.Gt, ast.Lt],
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.Is: [ast.IsNot],
    ast.IsNot: [ast.Is],
    ast.In: [ast.NotIn],
    ast.NotIn: [ast.In],
}
OPERATORS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
NAMES = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "minimum": "maximum",
    "maximum": "minimum",
    "argmin": "argmax",
    "argmax": "argmin",
    "floor": "ceil",
    "ceil": "floor",
}
COMPILING = {
    *("kernel", "exact_kernel", "loop", "exact_loop"),
    *("helper", "exact_helper", "exact_inline", "inline"),
}
CLICKS = {"option", "argument", "command", "group"}  # texts for people, and what users are asked
INSIDE_THE_COMPILER = {"overload", "intrinsic"}  # run by numba alone, when code is compiled
LEFT_OUT = (ast.Expr, ast.AugAssign, ast.Raise, ast.Continue, ast.Break, ast.Delete)
# names, and messages for people
UNTOUCHED = (ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.JoinedStr, ast.Raise)


@dataclass(frozen=True)
class Fault:
    """A change of one place. `before` and `after` are the lines it touches, without indentation:
    they stay the same where code is moved."""

    path: str  # from the project's root
    line: int
    function: str  # dotted, empty at the top of a module
    before: str
    after: str
    start: int  # bytes of the file that are replaced ...
    end: int
    text: str  # ... by these
    compiled: bool  # inside a compiled function
    n_lines: int = 1  # of the file that it touches
    at_import: bool = False  # outside functions
    occurrence: int = 1  # which of the faults with this path, function, before and after
    checksum: int = 0  # of the file it was found in

    @property
    def folder(self) -> str:
        """The package's folder, or the module where it lies at the top."""
        return self.path.split("/", 1)[1].split("/")[0].removesuffix(".py")

    def asdict(self) -> dict:
        return asdict(self)


class _Places(ast.NodeVisitor):
    """Collects (node, text that replaces it, dotted function, whether compiled)."""

    def __init__(self, bodies: set[str]):
        self.found: list[tuple] = []
        self.scope: list[str] = []
        self.bodies = bodies  # functions that are chosen by the compiler, and then compiled
        self.compiled = False
        self.depth = 0  # of functions

    def add(self, node: ast.AST, text: str) -> None:
        place = (".".join(self.scope), self.compiled, self.depth == 0)
        self.found.append((node, text, *place))

    # ------------------------------------------------------------ scopes

    def visit_FunctionDef(self, node) -> None:
        # the policy's decorators are bare names; `@options.kernel` is the command line's
        bare = [d for d in node.decorator_list if not isinstance(d, ast.Attribute)]
        decorators = {_name(d) for d in bare}
        if decorators & INSIDE_THE_COMPILER:
            return
        before = self.compiled
        self.compiled = before or bool(decorators & COMPILING) or node.name in self.bodies
        self.scope.append(node.name)
        for default in [*node.args.defaults, *node.args.kw_defaults]:
            if default is not None:
                self.visit(default)
        self.depth += 1
        self._body(node.body)
        self.depth -= 1
        self.scope.pop()
        self.compiled = before

    def visit_ClassDef(self, node) -> None:
        if any(_name(base) == "Protocol" for base in node.bases):
            return
        self.scope.append(node.name)
        self._body(node.body)
        self.scope.pop()

    def _body(self, body: list) -> None:
        for k, statement in enumerate(body):
            if k == 0 and isinstance(statement, ast.Expr) and _is_text(statement.value):
                continue  # a docstring
            self.visit(statement)

    def visit_Module(self, node) -> None:
        self._body(node.body)

    # ------------------------------------------------------------ statements

    def visit(self, node) -> None:
        if isinstance(node, LEFT_OUT) or _writes_into_something(node):
            self.add(node, "pass")
        if isinstance(node, ast.Return) and node.value is None:
            self.add(node, "pass")
        if isinstance(node, (ast.If, ast.While, ast.IfExp)):
            self.add(node.test, f"not ({ast.unparse(node.test)})")
        if not isinstance(node, UNTOUCHED):
            super().visit(node)

    def visit_Expr(self, node) -> None:
        self.visit(node.value)

    def visit_Assert(self, node) -> None:
        self.visit(node.test)

    def visit_AnnAssign(self, node) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Assign(self, node) -> None:
        if any(_name(t) == "__all__" for t in node.targets):
            return
        self.generic_visit(node)

    def visit_AugAssign(self, node) -> None:
        other = OPERATORS.get(type(node.op))
        if other:
            changed = ast.AugAssign(node.target, other(), node.value)
            self.add(node, ast.unparse(changed))
        self.generic_visit(node)

    # ------------------------------------------------------------ expressions

    def visit_Compare(self, node) -> None:
        for k, op in enumerate(node.ops):
            for other in COMPARISONS[type(op)]:
                ops = [*node.ops[:k], other(), *node.ops[k + 1 :]]
                self._expression(node, ast.Compare(node.left, ops, node.comparators))
        self.generic_visit(node)

    def visit_BinOp(self, node) -> None:
        other = OPERATORS.get(type(node.op))
        text = _is_text(node.left) or _is_text(node.right)
        if other and not text:
            self._expression(node, ast.BinOp(node.left, other(), node.right))
        self.generic_visit(node)

    def visit_BoolOp(self, node) -> None:
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        self._expression(node, ast.BoolOp(other, node.values))
        self.generic_visit(node)

    def visit_UnaryOp(self, node) -> None:
        if isinstance(node.op, (ast.Not, ast.USub, ast.Invert)):
            self._expression(node, node.operand)
        self.generic_visit(node)

    def visit_Constant(self, node) -> None:
        value = node.value
        if value is True or value is False:
            self.add(node, repr(not value))
        elif isinstance(value, int):
            self.add(node, str(value + 1))
            if value == 1:
                self.add(node, "0")
        elif isinstance(value, float):
            self.add(node, repr(2.0 * value) if value else "1.0")

    def visit_Call(self, node) -> None:
        name = _name(node.func)
        if name in NAMES:
            func = (
                ast.Name(NAMES[name])
                if isinstance(node.func, ast.Name)
                else ast.Attribute(node.func.value, NAMES[name])
            )
            self._expression(node, ast.Call(func, node.args, node.keywords))
        if name in CLICKS:
            return
        for k, keyword in enumerate(node.keywords):
            if keyword.arg is not None and not _is_guard(node, keyword):
                others = [*node.keywords[:k], *node.keywords[k + 1 :]]
                self._expression(node, ast.Call(node.func, node.args, others))
        kept = [k for k in node.keywords if not _is_guard(node, k)]
        for part in (node.func, *node.args, *kept):
            self.visit(part)

    def visit_Attribute(self, node) -> None:
        self.visit(node.value)

    def _expression(self, node, changed) -> None:
        self.add(node, f"({ast.unparse(ast.fix_missing_locations(changed))})")


def _name(node) -> str:
    if isinstance(node, ast.Call):
        return _name(node.func)
    return getattr(node, "attr", getattr(node, "id", ""))


def _is_guard(call: ast.Call, keyword: ast.keyword) -> bool:
    """zip(…, strict=True): an assertion, that lengths are the same."""
    strict = isinstance(keyword.value, ast.Constant) and keyword.value.value is True
    return _name(call.func) == "zip" and keyword.arg == "strict" and strict


def _is_text(node) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _writes_into_something(node) -> bool:
    """x[i] = …, x.name = …: left out, the name still exists."""
    return isinstance(node, ast.Assign) and any(
        isinstance(t, (ast.Subscript, ast.Attribute)) for t in node.targets
    )


def faults_of(path: Path, root: Path) -> list[Fault]:
    """Every fault that can be put into a file."""
    name = path.relative_to(root).as_posix()
    raw = path.read_bytes()
    try:
        source = raw.decode()
    except UnicodeDecodeError as error:
        raise MutantsError(f"{name}: {error}") from None
    starts = [0]
    for line in raw.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        where = f"{name}:{error.lineno}" if error.lineno else name
        raise MutantsError(f"{where}: {error.msg}") from None
    except ValueError as error:  # a zero byte, in some versions of Python
        raise MutantsError(f"{name}: {error}") from None
    places = _Places(_bodies_of_overloads(tree))
    places.visit(tree)
    faults: list[Fault] = []
    checksum = crc32(raw)
    seen: Counter[tuple] = Counter()
    for node, text, function, compiled, at_import in places.found:
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        first, last = starts[node.lineno - 1], starts[node.end_lineno]
        before = _flat(raw[first:last])
        after = _flat(raw[first:start] + text.encode() + raw[end:last])
        place = (name, node.lineno, function)
        n_lines = node.end_lineno - node.lineno + 1
        seen[function, before, after] += 1
        facts = (compiled, n_lines, at_import, seen[function, before, after], checksum)
        faults.append(Fault(*place, before, after, start, end, text, *facts))
    return faults


def _bodies_of_overloads(tree: ast.Module) -> set[str]:
    chosen = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and any(
            _name(d) == "overload" for d in node.decorator_list
        ):
            chosen |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        for d in getattr(node, "decorator_list", []):
            if isinstance(d, ast.Call) and _name(d) == "by_layout":
                chosen |= {a.id for a in d.args if isinstance(a, ast.Name)}
    return chosen


def _flat(raw: bytes) -> str:
    return " ".join(raw.decode().split())


def all_faults(root: Path) -> list[Fault]:
    """Of the whole package, in the order of its files."""
    files = sorted((root / "nesvm_jit").rglob("*.py"))
    return [fault for path in files for fault in faults_of(path, root)]


def changed(fault: Fault, raw: bytes) -> bytes:
    """The file with the fault in it. It may have been edited since the fault was found: an edit
    anywhere in it may be what a test then notices."""
    lines = raw.splitlines()[fault.line - 1 : fault.line - 1 + fault.n_lines]
    if _flat(b"\n".join(lines)) != fault.before or crc32(raw) != fault.checksum:
        raise MutantsError(f"{fault.path} was changed while its faults were judged")
    return raw[: fault.start] + fault.text.encode() + raw[fault.end :]
