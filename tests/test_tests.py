"""Every test asserts something, whatever happens: nothing passes by not asserting."""

from pathlib import Path

import pytest

from .silence import faults_of, helpers_of

TESTS = Path(__file__).parent


def shared_helpers():
    """Helpers of files that are not tests themselves, and of those that use them."""
    found = frozenset()
    for _ in range(2):
        for path in sorted(TESTS.glob("*.py")):
            if not path.name.startswith("test_"):
                found = helpers_of(path.read_text(), found)
    return found


SHARED = shared_helpers()


@pytest.mark.parametrize("file", sorted(p.name for p in TESTS.glob("test_*.py")))
def test_every_test_asserts(file):
    assert faults_of((TESTS / file).read_text(), SHARED) == []


HELPERS = """
def same(a, b):
  agree(a, b)
def agree(a, b):
  assert a == b
def quiet(a):
  return a
FULL = (1, 2)
NONE = ()
"""


def found(body, head="def test_it():"):
    lines = "\n".join(f"  {line}" for line in body.splitlines())
    return [fault.split(":")[0] for fault in faults_of(f"{HELPERS}{head}\n{lines}\n")]


@pytest.mark.parametrize(
    "body",
    [
        "assert a == b",
        "same(a, b)",
        "with pytest.raises(ValueError): solve(X, y)",
        "with pytest.raises(Exception, match='no'): solve(X, y)",
        "pytest.raises(ValueError, solve)",
        "pytest.raises(ValueError, func=solve)",
        "with pytest.warns(UserWarning): solve(X, y)",
        "assert [k for k in found]",
        "assert [*found]",
        "assert f'{a}'",
        "assert len(found) >= 1",
        "assert len(found) <= 0",
        "assert 0 >= len(found)",
        "assert len(found) == 0",
        "assert n >= 0",
        "assert path.exists()",
        "assert mock.called",
        "np.testing.assert_allclose(a, b)",
        "mock.assert_called_once()",
        "module.same(a, b)",
        "for k in (1, 2): same(a, k)",
        "for k in ENGINES: assert k",
        "for k in FULL[1:]: assert k",
        "for k in module.ENGINES: assert k",
        "cases = (1, 2)\nfor k in cases: assert k",
        "for k, v in {'a': 1}.items(): assert k",
        "for k in [*(), *FULL]: assert k",
        "for k in range(3): assert k",
        "for k in range(N): assert k",
        "for a, b in zip((1, 2), FULL, strict=True): assert a",
        "for a, b in combinations((1, 2), 2): assert a",
        "for a, b in pairwise(FULL): assert a",
        "if n: assert a\nelse: same(a, b)",
        "if n:\n  assert a\n  return\nassert b",
        "n = 0\nfor k in found:\n  if k: n += 1\nassert n == 3",
        "for k in found:\n  if k: break\nassert k",
        "while n:\n  if n == 2: continue\nassert n",
        "assert n\nreturn",
        "def check(): assert n\ncheck()",
        "try: assert n\nfinally: close()",
        "try: run()\nexcept OSError: pytest.fail('no')\nassert n",
        "try: run()\nfinally: assert n",
        "assert solve(a) == solve(a)",
        "assert a != a",
        "a = b = 0\na += 1\nassert a == b",
        "assert all(k for k in found)",
        "assert not n",
        "datasets = pytest.importorskip('sklearn')\nassert datasets",
        "return same(a, b)",
        "with suppress(OSError): run()\nassert n",
    ],
)
def test_what_asserts_on_every_way_is_a_test(body):
    assert found(body) == []


@pytest.mark.parametrize(
    "body",
    [
        "solve(X, y)",
        "quiet(a)",
        # not on every way
        "if k < n: assert a == b",
        "for k in found: assert k",
        "for k in (1, 2):\n  if k < n: same(a, b)",
        "while n: assert n",
        "def check(): assert False",
        "class A:\n  def f(self): assert False",
        "try: pass\nexcept Error: assert n",
        "match n:\n  case 1: assert n",
        "False and np.testing.assert_allclose(a, b)",
        "n or same(a, b)",
        "same(a, b) if n else None",
        "[np.testing.assert_allclose(k, 1) for k in found]",
        "any(same(k, 1) for k in [])",
        "call = lambda: same(a, b)",
        # ways out before the assertion
        "return\nassert n",
        "if not n: return\nassert n",
        "pytest.skip()\nassert n",
        "if n: pytest.skip('no')\nassert n",
        "pytest.xfail('known')\nassert n",
        "for k in (1, 2):\n  continue\n  assert k",
        "for k in (1, 2):\n  if k: continue\n  assert k",
        "for k in (1, 2):\n  if n: break\n  assert k",
        "for k in (1, 2):\n  if n: return\nassert n",
        "with open(f):\n  return\nassert n",
        # swallowed
        "try: assert False\nexcept AssertionError: pass",
        "try: assert False\nexcept Exception: pass",
        "try: assert False\nexcept: pass",
        "try: assert False\nexcept (ValueError, AssertionError): print(n)",
        "try:\n  run()\n  assert n\nexcept ValueError: pass",
        "with suppress(AssertionError): assert n",
        "with contextlib.suppress(Exception): assert n",
        "with pytest.raises(Exception): 1 / 0",
        "with pytest.raises(BaseException): 1 / 0",
        # loops that never turn
        "for k in (): assert k",
        "cases = []\nfor k in cases: assert k",
        "for k in range(0): assert k",
        "for k in range(1, 1): assert k",
        "for k in range(5, 2): assert k",
        "for k in zip(): assert k",
        "for k in zip((1, 2), ()): assert k",
        "for k in combinations((1,), 2): assert k",
        "for k in pairwise((1,)): assert k",
        "for k in FULL[:0]: assert k",
        "for k in FULL[2:]: assert k",
        "for k in NONE: assert k",
        "for k in [*NONE]: assert k",
        "for k in {}.items(): assert k",
        "CASES = find()\nfor k in CASES: assert k",
        # assertions that cannot fail
        "assert True",
        "assert 1",
        "assert 'text'",
        "assert not False",
        "assert (a == b, 'text')",
        "assert 1 == 1",
        "assert r == r",
        "assert r.x[0] is r.x[0]",
        "assert n or True",
        "got = want = solve()\nassert got == want",
        "np.testing.assert_array_equal(r, r)",
        "same(r, r)",
        "assert all(k for k in [])",
        "assert all([])",
        "assert all(k for k in NONE)",
        "assert (k == 1 for k in found)",
        "assert [a == b]",
        "assert {a == b}",
        "assert {'a': a == b}",
        "assert [*FULL]",
        "assert lambda: a == b",
        "assert path.exists",
        "assert text.startswith",
        "assert f'{a} is {b}'",
        "assert len(found) >= 0",
        "assert 0 <= len(found)",
        # what only looks like an assertion
        "pytest.raises(ValueError)",
        "pytest.warns(UserWarning, match='no')\nsolve()",
        "mock.assert_caled_once()",
        "def cb(): assert n\nobj = run()\nobj.cb()",
        "assert_nothing(a)",
    ],
)
def test_what_may_pass_without_an_assertion_is_refused(body):
    assert found(body) == ["test_it"]


@pytest.mark.parametrize(
    "head",
    [
        "async def test_it():",
        "@pytest.mark.parametrize('a', [])\ndef test_it(a):",
        "@pytest.mark.parametrize('a', NONE)\ndef test_it(a):",
        "@pytest.mark.parametrize('a', range(0))\ndef test_it(a):",
        "@pytest.mark.skip\ndef test_it(a):",
        "@pytest.mark.skip(reason='slow')\ndef test_it(a):",
        "@pytest.mark.xfail\ndef test_it(a):",
        "@pytest.mark.xfail(reason='known')\ndef test_it(a):",
        "@pytest.mark.xfail(strict=False)\ndef test_it(a):",
    ],
)
def test_what_is_never_run_or_never_counts_is_refused(head):
    assert found("assert a", head) == ["test_it"]


@pytest.mark.parametrize(
    "head",
    [
        "@pytest.mark.parametrize('a', [1])\ndef test_it(a):",
        "@pytest.mark.parametrize('a', find())\ndef test_it(a):",
        "@pytest.mark.parametrize('a', range(n))\ndef test_it(a):",
        "@pytest.mark.parametrize('a', [*find(), *(k for k in found)])\ndef test_it(a):",
        "@pytest.mark.skipif(PURE, reason='slow')\ndef test_it(a):",
        "@pytest.mark.xfail(strict=True, reason='known')\ndef test_it(a):",
    ],
)
def test_other_marks_are_fine(head):
    assert found("assert a", head) == []


def test_no_parameters_and_unexpected_success_are_errors(pytestconfig):
    assert pytestconfig.getini("empty_parameter_set_mark") == "fail_at_collect"
    assert pytestconfig.getini("xfail_strict") is True


def test_whatever_pytest_collects_is_a_test():
    assert found("solve()", "def testit():") == ["testit"]
    assert found("def test_it(self): solve()", "class TestAll:") == ["test_it"]
    assert found("def test_it(self): solve()", "class Other:") == []
    assert found("solve()", "def helper():") == []
