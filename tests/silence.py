"""Whether a test asserts on every way through it, as far as its syntax tells.

What it cannot tell: whether an assertion of different names can fail, whether the elements of a
CONSTANT are computed and none, and what the methods of other objects do."""

import ast
from collections.abc import Iterable, Iterator
from math import comb
from typing import NamedTuple
from unittest.mock import NonCallableMock

import numpy as np

ASSERTING = {"raises", "warns", "fail"}
# attributes that begin with assert_ may be misspelt: a mock takes any name without a word
ASSERTING |= {name for name in dir(np.testing) if name.startswith("assert_")}
ASSERTING |= {name for name in dir(NonCallableMock) if name.startswith("assert_")}
METHODS = {"exists", "is_file", "is_dir", "is_symlink", "is_set", "is_alive", "all", "any"}
METHODS |= {name for name in dir(str) if name.startswith("is") or name.endswith("with")}
SKIPPING = {"skip", "xfail", "exit"}  # of pytest; importorskip says what is missing
ANYTHING = {"Exception", "BaseException"}
SWALLOWING = {"AssertionError", *ANYTHING}
SAME = (ast.Eq, ast.Is, ast.LtE, ast.GtE)  # a number that is compared with itself so is right
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SOME = 1 << 20  # elements of something whose length is not known, though it is not empty


class Ways(NamedTuple):
    """What a way through some statements that has not asserted can do."""

    goes_on: bool = False  # to the statement after
    ends_turn: bool = False  # of the loop around, by break or continue
    ends_test: bool = False  # by return or skip

    def __or__(self, other):  # type: ignore[override]
        return Ways(*(a or b for a, b in zip(self, other, strict=True)))

    @property
    def silent(self) -> bool:
        return any(self)


ASSERTED, GOES_ON = Ways(), Ways(goes_on=True)


def name_of(node: ast.expr) -> str:
    if isinstance(node, ast.Call):
        return name_of(node.func)
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def names_stored(function: ast.AST) -> list[str]:
    return [
        n.id
        for n in ast.walk(function)
        if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)
    ]


def literals(body: list[ast.stmt]) -> dict[str, ast.expr]:
    """The tuples and other displays that statements give names to."""
    displays = (ast.Tuple, ast.List, ast.Set, ast.Dict)
    return {
        target.id: statement.value
        for statement in body
        if isinstance(statement, ast.Assign) and isinstance(statement.value, displays)
        for target in statement.targets
        if isinstance(target, ast.Name)
    }


class Reader:
    """Reads one function, knowing the helpers that assert and the constants of its module."""

    def __init__(self, function, helpers: frozenset[str], constants: dict[str, ast.expr]):
        own = [f for f in ast.walk(function) if isinstance(f, FUNCTIONS) and f is not function]
        self.stored = names_stored(function)
        self.known = {
            **{k: v for k, v in constants.items() if k not in self.stored},
            **literals(function.body),
        }
        self.helpers = asserting(own, helpers, constants) if own else helpers
        once = {name for name in self.stored if self.stored.count(name) == 1}
        self.aliases = {  # a = b = …: two names of one thing
            target.id: statement.targets[0].id
            for statement in function.body
            if isinstance(statement, ast.Assign)
            and len(statement.targets) > 1
            and all(isinstance(t, ast.Name) and t.id in once for t in statement.targets)
            for target in statement.targets
        }

    # ------------------------------------------------------------ statements

    def ways(self, body: list[ast.stmt]) -> Ways:
        found = GOES_ON
        for statement in body:
            step = self.step(statement)
            found = Ways(False, found.ends_turn, found.ends_test) | step
            if not step.goes_on:
                break
        return found

    def step(self, node: ast.stmt) -> Ways:
        if isinstance(node, ast.Assert):
            return GOES_ON if self.is_true(node.test) else ASSERTED
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            return GOES_ON
        if isinstance(node, ast.Raise):
            return ASSERTED  # the test fails, unless it is caught
        if isinstance(node, ast.Continue | ast.Break):
            return Ways(ends_turn=True)
        if isinstance(node, ast.If):
            return self.ways(node.body) | self.ways(node.orelse)
        if isinstance(node, ast.For | ast.AsyncFor | ast.While):
            return self.loop(node)
        if isinstance(node, ast.Try):
            return self.attempt(node)
        if isinstance(node, ast.With | ast.AsyncWith):
            return self.context(node)
        if isinstance(node, ast.Match):
            found = [self.ways(case.body) for case in node.cases]
            return _any([GOES_ON, *found])
        said = self.calls(node)
        if said.goes_on and isinstance(node, ast.Return):
            return Ways(ends_test=True)
        return said

    def loop(self, node: ast.For | ast.AsyncFor | ast.While) -> Ways:
        """A turn that asserts has to be certain."""
        inside = self.ways(node.body)
        certain = not isinstance(node, ast.While) and self.least(node.iter) > 0
        return Ways(not certain or inside.goes_on or inside.ends_turn, False, inside.ends_test)

    def attempt(self, node: ast.Try) -> Ways:
        last = self.ways(node.finalbody)
        if not last.silent:
            return last
        body = self.ways([*node.body, *node.orelse])
        return _any([body, *(self.ways(handler.body) for handler in node.handlers)])

    def context(self, node: ast.With | ast.AsyncWith) -> Ways:
        heads = [item.context_expr for item in node.items]
        if any(isinstance(h, ast.Call) and self.checks(h) for h in heads):
            return ASSERTED
        inside = self.ways(node.body)
        suppressed = {name_of(a) for h in heads if name_of(h) == "suppress" for a in h.args}  # type: ignore[attr-defined]
        return inside | GOES_ON if suppressed & SWALLOWING else inside

    # ------------------------------------------------------------ expressions

    def calls(self, node: ast.AST) -> Ways:
        for call in _certain_calls(node):
            if isinstance(call.func, ast.Attribute) and name_of(call) in SKIPPING:
                if name_of(call.func.value) in ("pytest", "sys"):
                    return Ways(ends_test=True)
            elif self.checks(call) and not self.is_only_made(call):
                return ASSERTED
        return GOES_ON

    def is_only_made(self, call: ast.Call) -> bool:
        """pytest.raises(Error) without anything to call, and without `with`."""
        calls = len(call.args) > 1 or any(k.arg == "func" for k in call.keywords)
        return name_of(call) in ("raises", "warns") and not calls

    def checks(self, call: ast.Call) -> bool:
        """Whether the call asserts something that could be wrong."""
        name = name_of(call)
        if name == "raises":
            return not call.args or bool(
                name_of(call.args[0]) not in ANYTHING
                or any(k.arg == "match" for k in call.keywords)
            )
        if isinstance(call.func, ast.Name):
            found = name in self.helpers or name in ASSERTING
        else:
            found = name in ASSERTING or (name in self.helpers and self.is_of_a_module(call.func))
        return found and not (len(call.args) > 1 and self.alike(*call.args[:2]))

    def is_of_a_module(self, func: ast.expr) -> bool:
        """module.helper(…) or self.helper(…), not a method of any object."""
        base = func.value if isinstance(func, ast.Attribute) else None
        return isinstance(base, ast.Name) and (base.id == "self" or base.id not in self.stored)

    def is_true(self, test: ast.expr) -> bool:
        """Whether an assertion cannot fail."""
        if isinstance(test, ast.Constant):
            return bool(test.value)
        if isinstance(test, ast.GeneratorExp | ast.Lambda):
            return True  # all(…) and a call are forgotten
        if isinstance(test, ast.Attribute):
            return test.attr in METHODS  # as a call is here
        if isinstance(test, ast.Tuple | ast.List | ast.Set | ast.Dict):
            return self.least(test) > 0
        if isinstance(test, ast.JoinedStr):
            return any(isinstance(part, ast.Constant) and part.value for part in test.values)
        if isinstance(test, ast.BoolOp):
            some = any if isinstance(test.op, ast.Or) else all
            return some(self.is_true(value) for value in test.values)
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return isinstance(test.operand, ast.Constant) and not test.operand.value
        if isinstance(test, ast.Compare):
            sides = [test.left, *test.comparators]
            if all(isinstance(side, ast.Constant) for side in sides):
                return True
            pairs = [*zip(sides, test.ops, sides[1:], strict=False)]
            if len(pairs) == 1 and _is_any_length(*pairs[0]):
                return True
            return all(isinstance(op, SAME) and self.alike(a, b) for a, op, b in pairs)
        if isinstance(test, ast.Call) and name_of(test) == "all" and test.args:
            (over,) = test.args
            if isinstance(over, ast.GeneratorExp | ast.ListComp):
                return any(self.is_empty(g.iter) for g in over.generators)
            return self.is_empty(over)
        return False

    def alike(self, a: ast.expr, b: ast.expr) -> bool:
        """The same expression without a call, which may answer differently."""
        calls = any(isinstance(n, ast.Call) for n in ast.walk(a))
        return not calls and self._dump(a) == self._dump(b)

    def _dump(self, node: ast.expr) -> str:
        if isinstance(node, ast.Name):
            return f"name {self.aliases.get(node.id, node.id)}"
        return ast.dump(node)

    def is_empty(self, node: ast.expr) -> bool:
        """Whether this is visibly empty."""
        node = self.known.get(node.id, node) if isinstance(node, ast.Name) else node
        if isinstance(node, ast.Starred):
            return self.is_empty(node.value)
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            return all(isinstance(e, ast.Starred) and self.is_empty(e) for e in node.elts)
        if isinstance(node, ast.Dict):
            return not node.keys
        if name_of(node) == "range" and isinstance(node, ast.Call):
            return all(isinstance(a, ast.Constant) for a in node.args) and not self.least(node)
        return False

    def least(self, node: ast.expr) -> int:
        """The elements that a loop over this has at least: of a display, of a CONSTANT, of a
        function of such; 0 if that is not certain."""
        if isinstance(node, ast.Starred):
            return self.least(node.value)
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            return sum(self.least(e) if isinstance(e, ast.Starred) else 1 for e in node.elts)
        if isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            return sum(1 if key else self.least(value) for key, value in pairs)
        if isinstance(node, ast.Constant):
            return len(node.value) if isinstance(node.value, str | bytes) else 0
        if isinstance(node, ast.Name):
            if node.id in self.known:
                return self.least(self.known[node.id])
            return SOME if node.id.isupper() and node.id not in self.stored else 0
        if isinstance(node, ast.Attribute):
            return SOME if node.attr.isupper() or self.least(node.value) else 0
        if isinstance(node, ast.Subscript):
            return self._least_of_part(node)
        return self._least_of_call(node) if isinstance(node, ast.Call) else 0

    def _least_of_part(self, node: ast.Subscript) -> int:
        whole = self.least(node.value)
        if not isinstance(node.slice, ast.Slice):
            return SOME if whole else 0
        ends = [node.slice.lower, node.slice.upper, node.slice.step]
        try:
            numbers = [None if e is None else ast.literal_eval(e) for e in ends]
            return len(range(whole)[slice(*numbers)])
        except (ValueError, TypeError):
            return 0

    def _least_of_call(self, node: ast.Call) -> int:
        name, args = name_of(node), node.args
        if name in ("items", "keys", "values") and isinstance(node.func, ast.Attribute):
            return self.least(node.func.value)
        if name == "range":
            return self._least_of_range(args)
        counts = [self.least(a) for a in args]
        if name in ("zip", "product"):
            return min(counts, default=0)
        if name in ("enumerate", "sorted", "reversed", "list", "tuple", "set") and counts:
            return counts[0]
        if name == "pairwise" and counts:
            return max(counts[0] - 1, 0)
        if name == "combinations" and isinstance(args[-1], ast.Constant):
            return comb(counts[0], args[-1].value)
        return 0

    def _least_of_range(self, args: list[ast.expr]) -> int:
        """CONSTANTS are above any number."""
        upper = {a.id for a in args if isinstance(a, ast.Name) and a.id.isupper()}
        if upper:
            return 0 if upper & set(self.stored) else SOME
        try:
            return len(range(*(ast.literal_eval(a) for a in args)))
        except (ValueError, TypeError):
            return 0


def _is_any_length(a: ast.expr, op: ast.cmpop, b: ast.expr) -> bool:
    """len(…) >= 0, or 0 <= len(…)"""
    if isinstance(op, ast.LtE):
        a, b = b, a
    elif not isinstance(op, ast.GtE):
        return False
    return isinstance(a, ast.Call) and name_of(a) == "len" and getattr(b, "value", None) == 0


def _any(ways: Iterable[Ways]) -> Ways:
    found = ASSERTED
    for way in ways:
        found = found | way
    return found


def _certain_calls(node: ast.AST) -> Iterator[ast.Call]:
    """The calls that a statement is certain to make, if nothing stops it."""
    if isinstance(node, (*FUNCTIONS, ast.Lambda, ast.GeneratorExp)):
        return
    if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp):
        yield from _certain_calls(node.generators[0].iter)
        return
    parts: Iterable[ast.AST] = ast.iter_child_nodes(node)
    if isinstance(node, ast.BoolOp):
        parts = node.values[:1]
    if isinstance(node, ast.IfExp):
        parts = [node.test]
    for part in parts:
        yield from _certain_calls(part)
    if isinstance(node, ast.Call):
        yield node


def asserting(
    functions, known: frozenset[str] = frozenset(), constants: dict[str, ast.expr] | None = None
) -> frozenset[str]:
    """The names of helpers that assert, and of those that call them."""
    helpers = [f for f in functions if not f.name.startswith("test")]
    while True:
        more = known | {
            f.name for f in helpers if not Reader(f, known, constants or {}).ways(f.body).silent
        }
        if more == known:
            return known
        known = more


def _of_module(tree: ast.Module) -> tuple[list, list]:
    """The functions of a module, those of its classes among them, and the tests: what pytest
    collects."""
    classes = [n for n in tree.body if isinstance(n, ast.ClassDef)]
    functions = [n for n in tree.body if isinstance(n, FUNCTIONS)]
    methods = [(c, f) for c in classes for f in c.body if isinstance(f, FUNCTIONS)]
    tests = functions + [f for c, f in methods if c.name.startswith("Test")]
    return functions + [f for _, f in methods], [f for f in tests if f.name.startswith("test")]


def helpers_of(source: str, known: frozenset[str] = frozenset()) -> frozenset[str]:
    tree = ast.parse(source)
    return asserting(_of_module(tree)[0], known, literals(tree.body))


def faults_of(source: str, helpers: frozenset[str] = frozenset()) -> list[str]:
    """The tests of a file that may pass without having asserted, each with the reason."""
    tree = ast.parse(source)
    constants = literals(tree.body)
    functions, tests = _of_module(tree)
    helpers = asserting(functions, helpers, constants)
    return [f"{f.name}: {why}" for f in tests if (why := _fault(f, helpers, constants))]


def _fault(test, helpers: frozenset[str], constants: dict[str, ast.expr]) -> str:
    if isinstance(test, ast.AsyncFunctionDef):
        return "pytest does not run it"
    reader = Reader(test, helpers, constants)
    for mark in test.decorator_list:
        name, args = name_of(mark), getattr(mark, "args", [])
        if name == "parametrize" and len(args) > 1 and reader.is_empty(args[1]):
            return "no parameters"
        if name == "skip":
            return "always skipped"
        strict = [k.value for k in getattr(mark, "keywords", []) if k.arg == "strict"]
        if name == "xfail" and not any(isinstance(v, ast.Constant) and v.value for v in strict):
            return "it may fail or pass"
    ways = reader.ways(test.body)
    if ways.ends_test or ways.ends_turn:
        return "a way out before the first assertion"
    return "a way without an assertion" if ways.goes_on else ""
