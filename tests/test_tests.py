"""Every test asserts something, whatever happens: nothing passes by not asserting."""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
ASSERTING = {"raises", "warns", "fail"}
NEVER_EMPTY = {
    "range",
    "zip",
    "enumerate",
    "product",
    "combinations",
    "sorted",
    "reversed",
    "pairwise",
}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def name_of(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


class Spelled(ast.NodeTransformer):
    """Puts the literals that a function gives names to in the place of these names."""

    def __init__(self, function: ast.FunctionDef):
        given = [s for s in function.body if isinstance(s, ast.Assign) and len(s.targets) == 1]
        self.literals = {
            s.targets[0].id: s.value
            for s in given
            if isinstance(s.targets[0], ast.Name) and isinstance(s.value, ast.Tuple | ast.List)
        }

    def visit_Name(self, node: ast.Name) -> ast.expr:
        literal = self.literals.get(node.id) if isinstance(node.ctx, ast.Load) else None
        return literal or node


def has_elements(node: ast.expr) -> bool:
    """Whether a loop over this is sure to run: a literal, a CONSTANT, or a function of such."""
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return bool(node.elts)
    if isinstance(node, ast.Dict):
        return bool(node.keys)
    if isinstance(node, ast.Constant):
        return bool(node.value)
    if isinstance(node, ast.Name):
        return node.id.isupper()
    if isinstance(node, ast.Subscript | ast.Attribute):
        return has_elements(node.value)
    if isinstance(node, ast.Call):
        if name_of(node) in ("items", "keys", "values") and isinstance(node.func, ast.Attribute):
            return has_elements(node.func.value)
        return name_of(node) in NEVER_EMPTY and all(has_elements(a) for a in node.args)
    return False


def calls_in(node: ast.AST):
    """The calls of a statement, those of functions that it defines left out."""
    if isinstance(node, ast.Call):
        yield node
    if not isinstance(node, (*FUNCTIONS, ast.Lambda)):
        for child in ast.iter_child_nodes(node):
            yield from calls_in(child)


def asserts(body: list[ast.stmt], helpers: frozenset[str]) -> bool:
    """Whether these statements assert on every way through them."""
    return any(_asserts(statement, helpers) for statement in body)


def _asserts(node: ast.stmt, helpers: frozenset[str]) -> bool:
    if isinstance(node, ast.Assert):
        return True
    if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        return False
    if isinstance(node, ast.If):
        return asserts(node.body, helpers) and asserts(node.orelse, helpers)
    if isinstance(node, ast.For):
        return has_elements(node.iter) and asserts(node.body, helpers)
    if isinstance(node, ast.While):
        return False
    if isinstance(node, ast.Try):
        return asserts(node.body + node.finalbody, helpers)
    if isinstance(node, ast.With):
        heads = [call for item in node.items for call in calls_in(item.context_expr)]
        return any(_checks(call, helpers) for call in heads) or asserts(node.body, helpers)
    return any(_checks(call, helpers) for call in calls_in(node))


def _checks(call: ast.Call, helpers: frozenset[str]) -> bool:
    name = name_of(call)
    return name in ASSERTING or name.startswith("assert_") or name in helpers


def functions_of(source: str) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(ast.parse(source)) if isinstance(node, FUNCTIONS)]


def asserting_helpers(functions, known: frozenset[str] = frozenset()) -> frozenset[str]:
    """The names of helpers that assert, and of those that call them."""
    helpers = [f for f in functions if not f.name.startswith("test_")]
    while True:
        more = known | {f.name for f in helpers if asserts(f.body, known)}
        if more == known:
            return known
        known = more


def silent(source: str, helpers: frozenset[str]) -> list[str]:
    """The tests of a file that may pass without having asserted."""
    mine = [Spelled(f).visit(f) for f in functions_of(source)]
    helpers = asserting_helpers(mine, helpers)
    return [f.name for f in mine if f.name.startswith("test_") and not asserts(f.body, helpers)]


SHARED = asserting_helpers(
    f for name in ("commands.py", "compare.py") for f in functions_of((TESTS / name).read_text())
)


@pytest.mark.parametrize("file", sorted(p.name for p in TESTS.glob("test_*.py")))
def test_every_test_asserts(file):
    assert silent((TESTS / file).read_text(), SHARED) == []


@pytest.mark.parametrize(
    ("body", "fine"),
    [
        ("solve(X, y)", False),
        ("if k < n: assert a == b", False),
        ("for k in found: assert k", False),
        ("for k in (1, 2):\n  if k < n: same(a, b)", False),
        ("while n: assert n", False),
        ("def check(): assert False", False),
        ("for k in (): assert k", False),
        ("try: pass\nexcept Error: assert n", False),
        ("assert a == b", True),
        ("same(a, b)", True),
        ("with pytest.raises(ValueError): solve(X, y)", True),
        ("np.testing.assert_allclose(a, b)", True),
        ("for k in (1, 2): same(a, k)", True),
        ("for k in ENGINES: assert k", True),
        ("cases = (1, 2)\nfor k in cases: assert k", True),
        ("cases = []\nfor k in cases: assert k", False),
        ("if n: assert a\nelse: same(a, b)", True),
        ("n = 0\nfor k in found:\n  if k: n += 1\nassert n == 3", True),
    ],
)
def test_only_what_asserts_on_every_way_is_a_test(body, fine):
    lines = "\n".join(f"  {line}" for line in body.splitlines())
    helper = "def same(a, b):\n  agree(a, b)\ndef agree(a, b):\n  assert a == b\n"
    assert silent(f"{helper}def test_it():\n{lines}\n", frozenset()) == ["test_it"] * (not fine)
