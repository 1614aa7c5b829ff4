"""The runner of `make mutants`: which faults are made, which tests are asked, what is reported."""

import ast
import json
import sys
import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests.mutants import __main__ as runner
from tests.mutants import reach as reach_module
from tests.mutants import server as server_module
from tests.mutants import trees
from tests.mutants.faults import Fault, all_faults, changed, faults_of
from tests.mutants.known import Known, entry, tomllib
from tests.mutants.reach import Reach, nearest
from tests.mutants.report import Verdict, page


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project of one file, whose text is given."""
    monkeypatch.setattr(trees, "ROOT", tmp_path)
    monkeypatch.setattr(reach_module, "ROOT", tmp_path)

    def write(text, name="nesvm_jit/part/code.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        return faults_of(path, tmp_path)

    return write


def afters(faults):
    return [f.after for f in faults]


# ---------------------------------------------------------------- which faults are made


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("x = a < b", ["x = (a <= b)", "x = (a >= b)"]),
        ("x = a <= b", ["x = (a < b)", "x = (a > b)"]),
        ("x = a > b", ["x = (a >= b)", "x = (a <= b)"]),
        ("x = a >= b", ["x = (a > b)", "x = (a < b)"]),
        ("x = a == b", ["x = (a != b)"]),
        ("x = a != b", ["x = (a == b)"]),
        ("x = a is b", ["x = (a is not b)"]),
        ("x = a is not b", ["x = (a is b)"]),
        ("x = a in b", ["x = (a not in b)"]),
        ("x = a not in b", ["x = (a in b)"]),
        ("x = a < b == c", ["x = (a <= b == c)", "x = (a >= b == c)", "x = (a < b != c)"]),
        ("x = a + b", ["x = (a - b)"]),
        ("x = a - b", ["x = (a + b)"]),
        ("x = a * b", ["x = (a / b)"]),
        ("x = a / b", ["x = (a * b)"]),
        ("x = a // b", ["x = (a * b)"]),
        ("x = a % b", ["x = (a * b)"]),
        ("x = a**b", ["x = (a * b)"]),
        ("x = a | b", ["x = (a & b)"]),
        ("x = a & b", ["x = (a | b)"]),
        ("x = a << b", ["x = (a >> b)"]),
        ("x = a >> b", ["x = (a << b)"]),
        ("x = a @ b", []),
        ("x = a and b", ["x = (a or b)"]),
        ("x = a or b or c", ["x = (a and b and c)"]),
        ("x = not a", ["x = (a)"]),
        ("x = ~a", ["x = (a)"]),
        ("x = +a", []),
        ("x = 3", ["x = 4"]),
        ("x = 1", ["x = 2", "x = 0"]),
        ("x = 0", ["x = 1"]),
        ("x = -1", ["x = (1)", "x = -2", "x = -0"]),
        ("x = 0.25", ["x = 0.5"]),
        ("x = 0.0", ["x = 1.0"]),
        ("x = True", ["x = False"]),
        ("x = False", ["x = True"]),
        ("x = None", []),
        ("x = min(a, b)", ["x = (max(a, b))"]),
        ("x = np.argmax(a)", ["x = (np.argmin(a))"]),
        ("x = floor(a)", ["x = (ceil(a))"]),
        ("x = all(a)", ["x = (any(a))"]),
        ("x = f(a, b=c, d=e)", ["x = (f(a, d=e))", "x = (f(a, b=c))"]),
        ("x = f(*a, **b)", []),
        ("x = f(a)[2]", ["x = f(a)[3]"]),
        ("x = lambda a: a + b", ["x = lambda a: (a - b)"]),
        ("x = a if b else c", ["x = a if not (b) else c"]),
        ("f(a)", ["pass"]),
        ("x[a] = b", ["pass"]),
        ("x.a = b", ["pass"]),
        ("x = y = a", []),
        ("del x", ["pass"]),
        ("x += a", ["pass", "x -= a"]),
        ("x @= a", ["pass"]),
        ("x: int = 4", ["x: int = 5"]),
        ("x: Literal[3]", []),
        ("assert a == b", ["assert (a != b)"]),
        ("raise Error('at least ' + a, 3)", ["pass"]),
    ],
)
def test_faults_of_a_line(project, line, expected):
    found = project(line + "\n")
    assert afters(found) == expected
    assert all(f.before == line for f in found)


@pytest.mark.parametrize(
    "text",
    [
        '"""A text."""\n',
        "x = 'text'\n",
        "x = f'{a + 1} text {min(a, b)}'\n",
        "x = 'text' + a\n",
        "x = a % 'text'\n",
        "import a\nfrom a import b\n",
        "__all__ = ['a', *b(c=1)]\n",
        "def f(a: Literal[1]) -> Literal[2]:\n    '''A text.'''\n    global b\n",
        "class A:\n    '''A text.'''\n\n    x: Literal[3]\n",
        "class A(Protocol):\n    x: int = 1\n\n    def f(self):\n        return 1\n",
        "@option(default=1)\ndef f(a):\n    return a\n",
        "x = click.option('--a', 1, a + 2)\n",
    ],
)
def test_texts_names_and_annotations_are_not_touched(project, text):
    assert project(text) == []


def test_statements_are_left_out_and_conditions_turned_round(project):
    found = project(
        "def f(a, b=2):\n"
        "    while a:\n"
        "        if b:\n"
        "            continue\n"
        "        elif c:\n"
        "            break\n"
        "    else:\n"
        "        return\n"
        "    yield a\n"
        "    return a\n"
    )
    assert [(f.line, f.after) for f in found] == [
        (1, "def f(a, b=3):"),
        (2, "while not (a):"),
        (3, "if not (b):"),
        (4, "pass"),
        (5, "elif not (c):"),
        (6, "pass"),
        (8, "pass"),
        (9, "pass"),
    ]


def test_a_fault_knows_its_function_and_whether_it_is_compiled(project):
    found = project(
        "A = 1\n"
        "class B:\n"
        "    x = 3\n"
        "    def f(self):\n"
        "        def g():\n"
        "            return 5\n"
        "        return 7\n"
        "@kernel\n"
        "def h(a):\n"
        "    def inner():\n"
        "        return 9\n"
        "@exact_helper\n"
        "def i(a):\n"
        "    return 11\n"
        "@overload(j)\n"
        "def k(a):\n"
        "    return l if a > 13 else other.m\n"
        "def l(a):\n"
        "    return 15\n"
        "def m(a):\n"
        "    return 17\n"
    )
    facts = [(f.function, f.line, f.compiled) for f in found if f.after != "A = 0"]
    assert facts == [
        ("", 1, False),
        ("B", 3, False),
        ("B.f.g", 6, False),
        ("B.f", 7, False),
        ("h.inner", 11, True),
        ("i", 14, True),
        ("l", 19, True),
        ("m", 21, False),
    ]


def test_the_lines_of_a_fault_are_told_without_their_indentation(project):
    found = project("if a:\n    x = f(\n        b,\n        c=d,\n    )  # why\n")
    assert found[1].before == "x = f( b, c=d, ) # why"
    assert found[1].after == "x = (f(b)) # why"
    assert (found[1].line, found[1].n_lines) == (2, 4)


def test_exactly_the_text_of_a_fault_is_changed(project, tmp_path):
    source = "μ = 'α'\ndef f(μ, ν):\n    g('…', μ); x = (μ <  ν)  # α\n    return x\n"
    found = project(source)
    texts = {changed(f, source.encode()).decode() for f in found}
    start, end = "μ = 'α'\ndef f(μ, ν):\n    ", "  # α\n    return x\n"
    assert texts == {
        f"{start}pass; x = (μ <  ν){end}",
        f"{start}g('…', μ); x = ((μ <= ν)){end}",
        f"{start}g('…', μ); x = ((μ >= ν)){end}",
    }
    assert (tmp_path / "nesvm_jit/part/code.py").read_text() == source


def test_the_package_with_a_fault_in_it_is_a_program():
    files = sorted((trees.ROOT / "nesvm_jit").rglob("*.py"))[::25]
    faults = [f for file in files for f in faults_of(file, trees.ROOT)[::40]]
    assert len(faults) > 8
    for found in faults:
        raw = (trees.ROOT / found.path).read_bytes()
        text = changed(found, raw).decode()
        assert ast.dump(ast.parse(text)) != ast.dump(ast.parse(raw))
        extra = text.count("\n") - raw.count(b"\n")
        lines = text.splitlines()[found.line - 1 : found.line - 1 + found.n_lines + extra]
        assert " ".join(" ".join(lines).split()) == found.after


def test_all_faults_are_those_of_the_package_in_the_order_of_its_files(project, tmp_path):
    for name in ("nesvm_jit/b.py", "nesvm_jit/a/c.py", "tests/d.py", "nesvm_jit/e.txt"):
        project("x = 2\ny = 3\n", name)
    found = [(f.path, f.line) for f in all_faults(tmp_path)]
    assert found == [(path, n) for path in ("nesvm_jit/a/c.py", "nesvm_jit/b.py") for n in (1, 2)]


def fault(path="nesvm_jit/part/code.py", line=1, function="f", before="a", after="b", **more):
    more = {"start": 0, "end": 1, "text": "b", "compiled": False} | more
    return Fault(path, line, function, before, after, **more)


def test_the_folder_of_a_fault():
    assert fault("nesvm_jit/part/code.py").folder == "part"
    assert fault("nesvm_jit/part/deeper/code.py").folder == "part"
    assert fault("nesvm_jit/code.py").folder == "code"


# ---------------------------------------------------------------- faults that are known


def test_known_faults_are_recognised_by_their_text_wherever_they_are(tmp_path):
    texts = ["x = a", "x = 'a'", "x = ''", 'x = "…\\n"']
    found = [fault(function="A.f", before=text, after=f"{text} # 'b'") for text in texts]
    path = tmp_path / "known.toml"
    path.write_text("\n".join(entry(f, "time", "It's known.") for f in found))
    known = Known(path)
    assert len(found) == len(texts)
    for f in found:
        assert known.kind(f) == "time"
        assert known.kind(replace(f, path="nesvm_jit/other.py", line=9, function="B.f")) == "time"
        for other in ({"function": "A.g"}, {"before": "y"}, {"after": "y"}):
            assert known.kind(replace(f, **other)) is None


def test_an_entry_says_all_that_is_needed():
    found = tomllib.loads(entry(fault(function="A.f", before="'a'", after="b"), "equivalent", "so"))
    expected = {"function": "f", "before": "'a'", "after": "b", "kind": "equivalent", "why": "so"}
    assert found == {"fault": [expected]}
    assert tomllib.loads(entry(fault()))["fault"][0]["kind"] == "?"


@pytest.mark.parametrize(("kind", "why"), [("?", "so"), ("equivalent", " ")])
def test_known_faults_need_a_kind_and_a_reason(tmp_path, kind, why):
    path = tmp_path / "known.toml"
    path.write_text(entry(fault(), kind, why))
    with pytest.raises(ValueError, match=r"^known.toml: a kind of .* and a reason needed: \{"):
        Known(path)


def test_nothing_is_known_without_a_file(tmp_path):
    assert Known(tmp_path / "none").kind(fault()) is None


def test_the_file_of_known_faults_is_right():
    entries = tomllib.loads(runner.ROOT.joinpath("tests/mutants/known.toml").read_text())
    keys = [(e["function"], e["before"], e["after"]) for e in entries.get("fault", [])]
    Known()
    assert len(keys) == len(set(keys))


# ---------------------------------------------------------------- the sample


MANY = [fault(line=n, after=f"{n} {k}") for n in range(30) for k in range(n % 4 + 1)]


def test_a_sample_is_the_same_for_a_seed_and_has_a_fault_of_a_line():
    first, again, other = (runner.drawn(MANY, seed, 20) for seed in (5, 5, 6))
    assert first == again
    assert first != other
    assert len({f.line for f in first}) == len(first) == 20
    assert set(first) <= set(MANY)


def test_a_sample_has_as_many_faults_as_there_are_lines_at_most():
    assert sorted(f.line for f in runner.drawn(MANY, 0, 100)) == list(range(30))
    assert runner.drawn([], 0, 100) == []


def test_every_fault_of_a_line_may_be_drawn():
    seen = {f for seed in range(60) for f in runner.drawn(MANY[:10], seed, 4)}
    assert seen == set(MANY[:10])


def test_constants_that_compiled_code_reads_are_judged_uncompiled():
    inside = fault(before="return STEP * x", compiled=True)
    words = runner.words_of_compiled_code([inside, fault(before="return OTHER")])
    assert words == {"nesvm_jit/part/code.py": {"return", "STEP", "x"}}
    top = fault(function="", before="STEP = 1")
    assert runner.uncompiled(inside, words)
    assert runner.uncompiled(top, words)
    assert runner.uncompiled(replace(top, before="A, STEP: int = 1, 2"), words)
    assert not runner.uncompiled(replace(top, before="OTHER = STEP"), words)
    assert not runner.uncompiled(replace(top, path="nesvm_jit/other.py"), words)
    assert not runner.uncompiled(fault(before="STEP = 1"), words)


# ---------------------------------------------------------------- the nearest tests


def reaching(seconds, lines):
    """Tests by name, each with its seconds, and those that run a line."""
    tests = list(seconds)
    bits = {n: sum(1 << tests.index(t) for t in found) for n, found in lines.items()}
    return Reach(tests, list(seconds.values()), {"nesvm_jit/part/code.py": bits})


def test_tests_of_files_with_a_like_name_come_first_and_short_ones_before_long_ones():
    seconds = {
        "tests/test_a.py::long": 0.3,
        "tests/test_a.py::short": 0.1,
        "tests/test_parts.py::long": 0.5,
        "tests/test_parts.py::short": 0.2,
        "tests/test_a.py::elsewhere": 0.0,
    }
    reach = reaching(seconds, {7: list(seconds)[:4], 8: list(seconds)[4:]})
    chosen, count = nearest(fault(line=7), reach, 40.0)
    assert [reach.tests[k] for k in chosen] == [
        "tests/test_parts.py::short",
        "tests/test_parts.py::long",
        "tests/test_a.py::short",
        "tests/test_a.py::long",
    ]
    assert count == 4


TURNS = [(k, file) for pair in ((0, 1), (2, 3), (4,)) for file in ("part", "a") for k in pair]


def test_files_take_turns_of_a_second_until_the_budget_is_spent():
    seconds = {f"tests/test_{x}.py::{k}": 0.6 for x in ("part", "a") for k in range(5)}
    reach = reaching(seconds, {7: list(seconds)})

    def order(budget):
        chosen, count = nearest(fault(line=7), reach, budget)
        assert count == 10
        return [reach.tests[k][11:].replace(".py::", "") for k in chosen]

    assert order(99.0) == [f"{file}{k}" for k, file in TURNS]
    assert order(2.0) == ["part0", "part1", "a0", "a1"]
    assert order(1.9) == ["part0", "part1", "a0", "a1"]
    assert order(1.7) == ["part0", "part1", "a0"]
    assert order(0.0) == []


def test_tests_that_reach_any_line_of_a_fault_are_chosen():
    seconds = {f"tests/test_a.py::{n}": 0.1 * n for n in range(1, 5)}
    reach = reaching(seconds, {n: [f"tests/test_a.py::{n}"] for n in range(1, 5)})
    assert nearest(fault(line=2, n_lines=2), reach, 40.0) == ([1, 2], 2)
    assert nearest(fault(line=4), reach, 40.0) == ([3], 1)


def test_a_default_is_reached_by_tests_that_run_the_function(project):
    (default, *_) = project("def f(\n    a,\n    b=2,\n):\n    x = a\n    return x\n")
    reach = reaching(
        {"tests/test_a.py::t": 0.1, "tests/test_a.py::u": 0.1}, {6: ["tests/test_a.py::t"]}
    )
    assert default.line == 3
    assert nearest(default, reach, 40.0) == ([0], 1)


def test_a_statement_that_nothing_runs_is_reached_by_no_test(project):
    faults = project("def f(a):\n    if a:\n        return a\n    return 2\n")
    reach = reaching({"tests/test_a.py::t": 0.1}, {2: ["tests/test_a.py::t"]})
    assert nearest(faults[0], reach, 40.0) == ([0], 1)
    assert nearest(faults[1], reach, 40.0) == ([], 0)


def test_a_constant_is_reached_by_tests_that_run_a_line_with_its_name(project):
    (constant,) = project("STEP = 2\ndef f(a):\n    return a\ndef g(a):\n    return a + STEP\n")[:1]
    tests = {"tests/test_a.py::t": 0.1, "tests/test_a.py::u": 0.1}
    lines = {3: ["tests/test_a.py::t"], 5: ["tests/test_a.py::u"]}
    assert nearest(constant, reaching(tests, lines), 40.0) == ([1], 1)


def test_a_constant_that_no_line_names_is_reached_by_all_tests_of_its_file(project):
    (constant,) = project("x = 2\ndef f(a):\n    return a\n")
    reach = reaching({"tests/test_a.py::t": 0.1}, {3: ["tests/test_a.py::t"]})
    assert nearest(constant, reach, 40.0) == ([0], 1)


def test_reach_is_a_set_of_tests_for_every_line():
    reach = Reach(["a", "b", "c"], [0.0] * 3, {"p": {1: 0b101, 2: 0b010}})
    assert reach.members(reach.of_lines("p", [1])) == [0, 2]
    assert reach.members(reach.of_lines("p", [1, 2, 3])) == [0, 1, 2]
    assert reach.members(reach.of_lines("other", [1])) == []


def test_reach_is_collected_from_what_processes_left_behind(tmp_path):
    CoverageData = pytest.importorskip("coverage").CoverageData
    tree, folder = tmp_path / "tree", tmp_path / "folder"
    folder.mkdir()
    (folder / "tests-1.json").write_text(json.dumps({"tests/test_a.py::t": 0.5}))
    (folder / "tests-2.json").write_text(
        json.dumps({"tests/test_b.py::u": 0.25, "tests/test_b.py::v": 1.0})
    )
    code = str(tree / "nesvm_jit" / "code.py")
    contexts = {
        "tests/test_a.py::t": [1, 2],
        "tests/test_b.py::u (call)": [2],
        "tests/test_b.py::u (setup)": [3],
        "tests/test_b.py::failed": [4],
        "": [5],
    }
    data = CoverageData(str(folder / "data.1"))
    for context, lines in contexts.items():
        data.set_context(context)
        data.add_lines({code: lines})
    data.write()
    found = reach_module._collect(tree, folder)
    assert found["tests"] == ["tests/test_a.py::t", "tests/test_b.py::u", "tests/test_b.py::v"]
    assert found["seconds"] == [0.5, 0.25, 1.0]
    kept = reach_module._read(json.loads(json.dumps(found)))
    table = {n: kept.members(bits) for n, bits in kept.lines["nesvm_jit/code.py"].items() if bits}
    assert table == {1: [0], 2: [0, 1], 3: [1, 2]}


def test_a_plan_names_the_tests_and_how_long_they_take():
    tests = {"tests/test_b.py::t": 0.5, "tests/test_a.py::u": 0.1, "tests/test_a.py::v": 9.0}
    reach = reaching(tests, {7: list(tests)[:2]})
    plan = runner.Plan(40.0, [], True, {False: reach})
    job, count = plan.job(fault(line=7), False)
    assert count == 2
    assert job == {
        "files": ["tests/test_a.py", "tests/test_b.py"],
        "tests": ["tests/test_a.py::u", "tests/test_b.py::t"],
        "seconds": [0.1, 0.5],
    }
    some = runner.Plan(40.0, ["tests/test_c.py"], True)
    assert some.job(fault(), True) == (
        {"files": ["tests/test_c.py"], "tests": [], "seconds": []},
        0,
    )


# ---------------------------------------------------------------- trees


def test_a_tree_has_the_fault_while_it_is_judged_and_not_afterwards(project, tmp_path):
    (found, *_) = project("x = 1\n")
    tree = tmp_path / "tree"
    file = tree / found.path
    file.parent.mkdir(parents=True)
    file.write_text("y = 5  # the tree's own\n")
    with trees.with_fault(tree, found):
        assert file.read_text() == "x = 2\n"
    assert file.read_text() == "y = 5  # the tree's own\n"
    with pytest.raises(KeyError), trees.with_fault(tree, found):
        raise KeyError
    assert file.read_text() == "y = 5  # the tree's own\n"
    assert (tmp_path / found.path).read_text() == "x = 1\n"


def test_processes_of_a_tree_import_its_files_and_write_none(tmp_path, monkeypatch):
    monkeypatch.setenv("COVERAGE_FILE", "x")
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    env = trees.environment(tmp_path, False)
    assert env["PYTHONPATH"] == str(tmp_path)
    assert env["PYTHONDONTWRITEBYTECODE"] == "1"
    assert "COVERAGE_FILE" not in env
    assert "NUMBA_DISABLE_JIT" not in env
    assert trees.environment(tmp_path, True) == env | {"NUMBA_DISABLE_JIT": "1"}


# ---------------------------------------------------------------- the process that runs tests


@pytest.fixture
def watch(monkeypatch):
    """A plugin for two tests, and its answers."""
    monkeypatch.setattr(server_module, "GRACE", 0.0)
    answers, first = [], threading.Event()

    def answer(*said):
        answers.append(said)
        first.set()

    found = server_module.Watch(["t::b", "t::a"], [0.0, 100.0], answer)
    yield SimpleNamespace(plugin=found, answers=answers, first=first)
    found.until = float("inf")


def test_tests_run_in_the_order_asked_for_and_no_others(watch):
    items = [SimpleNamespace(nodeid=name) for name in ("t::a", "t::c", "t::b")]
    watch.plugin.pytest_collection_modifyitems(items)
    assert [item.nodeid for item in items] == ["t::b", "t::a"]


def test_the_first_test_that_fails_is_the_answer(watch):
    watch.plugin.pytest_runtest_logstart("t::a")
    watch.plugin.pytest_runtest_logreport(SimpleNamespace(failed=False))
    watch.plugin.pytest_runtest_logstart("t::a")
    watch.plugin.pytest_runtest_logreport(SimpleNamespace(failed=True))
    assert watch.answers == [("noticed", "t::a", 2)]
    watch.plugin.pytest_collectreport(SimpleNamespace(failed=True))
    assert watch.answers[1] == ("noticed", "import", 0)


def test_a_test_that_does_not_end_is_the_answer(watch):
    watch.plugin.pytest_runtest_logstart("t::b")
    assert watch.first.wait(5.0)
    assert watch.answers[0] == ("noticed", "t::b (did not end)", 1)


# ---------------------------------------------------------------- the report


def verdicts(*outcomes, path="nesvm_jit/part/code.py"):
    return [
        Verdict(fault(path, line=k, before=f"b{k}", after=f"a{k}"), outcome, "t", k, 9, 0.5)
        for k, outcome in enumerate(outcomes)
    ]


def test_a_score_counts_what_was_noticed_of_what_could_be():
    found = verdicts("noticed", "noticed", "noticed", "survived", "equivalent", "time", "error")
    found += verdicts("time", path="nesvm_jit/zero.py")
    *above, header, part, zero, whole, last = page(found, 7, 90.0).splitlines()
    assert header.split() == [
        "folder",
        "noticed",
        "survived",
        "equivalent",
        "time",
        "error",
        "score",
    ]
    assert part.split() == ["part", "3", "1", "1", "1", "1", "75", "%"]
    assert zero.split() == ["zero", "0", "0", "0", "1", "0", "–"]
    assert whole.split() == ["all", "3", "1", "1", "2", "1", "75", "%"]
    assert last == "seed 7, 8 faults, 1.5 minutes"
    assert above == [
        "survived: nesvm_jit/part/code.py:3 in f (3 of 9 tests that reach it)",
        "  - b3",
        "  + a3",
        "error: nesvm_jit/part/code.py:6 in f (6 of 9 tests that reach it)",
        "  - b6",
        "  + a6",
    ]


def test_what_is_stored_of_a_verdict():
    (found,) = verdicts("noticed")
    assert found.line(2, 5) == "[2/5] noticed      0.5 s  nesvm_jit/part/code.py:0  t"
    stored = found.asdict()
    assert stored["before"] == "b0"
    assert {k: stored[k] for k in ("outcome", "test", "ran", "reaching", "seconds")} == {
        "outcome": "noticed",
        "test": "t",
        "ran": 0,
        "reaching": 9,
        "seconds": 0.5,
    }


# ---------------------------------------------------------------- the run


class FakeWorker:
    """Notices faults of odd lines."""

    judged: list

    def __init__(self, number):
        self.number = number

    def judge(self, found, pure, plan):
        self.judged.append((found.line, pure))
        return Verdict(found, "noticed" if found.line % 2 else "survived", "t", 1, 1, 0.0)

    def close(self):
        self.judged.append("closed")


@pytest.fixture
def fake_worker(tmp_path, monkeypatch):
    monkeypatch.setattr(FakeWorker, "judged", [], raising=False)
    monkeypatch.setattr(runner, "Worker", FakeWorker)
    monkeypatch.setattr(runner, "BUILD", tmp_path)
    path = tmp_path / "known.toml"
    path.write_text(entry(fault(line=2, before="known"), "time", "so"))
    monkeypatch.setattr(runner, "Known", lambda: Known(path))
    return FakeWorker


@pytest.mark.parametrize("workers", [1, 2])
def test_all_faults_are_judged_but_those_that_are_known(fake_worker, workers):
    faults = [fault(line=k, before="known" if k == 2 else "a") for k in range(5)]
    shown = []
    plan = runner.Plan(40.0, ["tests/test_a.py"], True)
    found = runner.run(faults, lambda f: f.line == 3, plan, workers, shown.append)
    outcomes = ["survived", "noticed", "time", "noticed", "survived"]
    assert [v.outcome for v in found] == outcomes
    assert [v.fault for v in found] == faults
    judged = [x for x in fake_worker.judged if x != "closed"]
    assert sorted(judged) == [(0, False), (1, False), (3, True), (4, False)]
    assert fake_worker.judged.count("closed") == workers
    assert [line.split("]")[0] for line in shown] == [f"[{k}/5" for k in range(1, 6)]


def asked(monkeypatch, *words):
    monkeypatch.setattr(
        sys, "argv", ["mutants", "--tests", "tests/test_a.py", "--workers", "1", *words]
    )
    runner.main()


def test_survivors_are_stored_and_judged_again_wherever_they_are_then(
    fake_worker, monkeypatch, tmp_path, capsys
):
    other = fault("nesvm_jit/other.py", line=1)
    faults = [fault(line=k, before=f"b{k}") for k in range(6)] + [other]
    monkeypatch.setattr(runner, "all_faults", lambda root: faults)
    asked(monkeypatch, "--only", "part/", "--seed", "1000")
    stored = tmp_path / "seed-1000part.json"
    assert sorted(v["line"] for v in json.loads(stored.read_text())) == list(range(6))
    left = tomllib.loads(stored.with_suffix(".toml").read_text())["fault"]
    assert sorted(e["before"] for e in left) == ["b0", "b2", "b4"]
    assert "6 faults" in capsys.readouterr().out
    faults[:] = [replace(f, line=f.line + 10) for f in faults if f.before != "b4"]
    del fake_worker.judged[:]
    asked(monkeypatch, "--again", str(stored))
    assert sorted(fake_worker.judged[:-1]) == [(10, False), (12, False)]
    assert len(json.loads((tmp_path / "again.json").read_text())) == 2


def test_every_fault_of_a_line_is_judged(fake_worker, monkeypatch, tmp_path):
    faults = [*MANY, fault("nesvm_jit/other.py", line=7)]
    monkeypatch.setattr(runner, "all_faults", lambda root: faults)
    asked(monkeypatch, "--at", "nesvm_jit/part/code.py:7")
    assert fake_worker.judged == [(7, False)] * 4 + ["closed"]
