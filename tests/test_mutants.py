"""The runner of `make mutants`: which faults are made, which tests are asked, what is reported."""

import ast
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from nesvm_jit.jit import cache as code_cache

from tests.mutants import __main__ as runner
from tests.mutants import document, trees
from tests.mutants import reach as reach_module
from tests.mutants import run as run_module
from tests.mutants import server as server_module
from tests.mutants.errors import MutantsError
from tests.mutants.faults import Fault, all_faults, changed, faults_of
from tests.mutants.known import Known, entry, prune, tomllib, wrong_entries
from tests.mutants.reach import Reach, nearest
from tests.mutants.report import Verdict, page
from tests.mutants.run import Plan, Worker
from tests.mutants.store import Request, load, store


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
        ("x = zip(a, b, strict=True)", []),
        ("x = zip(a + b, strict=True)", ["x = zip((a - b), strict=True)"]),
        ("x = zip(a, strict=False)", ["x = (zip(a))", "x = zip(a, strict=True)"]),
        ("x = f(a, strict=True)", ["x = (f(a))", "x = f(a, strict=False)"]),
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
        "x = click.option('--a', metavar='A', help='A text.', default=3)\n",
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


@pytest.mark.parametrize(
    ("text", "edited"),
    [
        *(("x = 2\n", edited) for edited in ("# a line more\nx = 2\n", "x = 3\n", "")),
        ("# why\nx = 2\n", "# why so\nx = 2\n"),  # would be put into another place
        ("x = 2\n", "x = 2\nraise ValueError\n"),  # is what tests would notice
    ],
)
def test_no_fault_is_put_into_a_file_that_was_edited_meanwhile(project, text, edited):
    (found,) = project(text)
    with pytest.raises(MutantsError, match=r"^nesvm_jit/part/code.py was changed while its faults"):
        changed(found, edited.encode())


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


def test_faults_with_the_same_text_are_numbered(project):
    found = project("def f():\n    x = 2\n    x = 2\n    y = 2\ndef g():\n    x = 2\n")
    assert [(f.line, f.occurrence) for f in found] == [(2, 1), (3, 2), (4, 1), (6, 1)]


def test_a_source_that_is_no_program_is_refused(project):
    with pytest.raises(MutantsError, match=r"^nesvm_jit/part/code.py:2: [^\n]+$"):
        project("x = 1\nx = = 2\n")


def fault(path="nesvm_jit/part/code.py", line=1, function="f", before="a", after="b", **more):
    more = {"start": 0, "end": 1, "text": "b", "compiled": False} | more
    return Fault(path, line, function, before, after, **more)


def test_the_folder_of_a_fault():
    assert fault("nesvm_jit/part/code.py").folder == "part"
    assert fault("nesvm_jit/part/deeper/code.py").folder == "part"
    assert fault("nesvm_jit/code.py").folder == "code"


# ---------------------------------------------------------------- faults that are known


def known(folder, text, faults):
    path = folder / "known.toml"
    path.write_text(text)
    return Known(faults, path)


def test_known_faults_are_recognised_by_their_text_wherever_they_are(tmp_path):
    texts = ["x = a", "x = 'a'", "x = ''", 'x = "…\\n"']
    found = [fault(function="A.f", before=text, after=f"{text} # 'b'") for text in texts]
    file = "\n".join(entry(f, found, "time", "It's known.") for f in found)
    assert len(found) == len(texts)
    for f in found:
        moved = replace(f, path="nesvm_jit/other.py", line=9, function="B.f")
        assert known(tmp_path, file, [f]).kind(f) == "time"
        assert known(tmp_path, file, [moved]).kind(moved) == "time"
        for change in ({"function": "A.g"}, {"before": "y"}, {"after": "y"}):
            other = replace(f, **change)
            assert known(tmp_path, file, [other, f]).kind(other) is None


def test_an_entry_says_all_that_is_needed():
    found = fault(function="A.f", before="'a'", after="b")
    parsed = tomllib.loads(entry(found, [found], "equivalent", "so"))
    expected = {"function": "f", "before": "'a'", "after": "b", "kind": "equivalent", "why": "so"}
    assert parsed == {"fault": [expected]}
    assert tomllib.loads(entry(fault()))["fault"][0]["kind"] == "?"


ALIKE = {
    "": fault("nesvm_jit/a/code.py", function="A.f"),
    "file = 'other.py'": fault("nesvm_jit/a/other.py", function="A.f"),
    "file = 'b/code.py'": fault("nesvm_jit/b/code.py", function="A.f"),
    "function = 'B.f'": fault("nesvm_jit/a/code.py", function="B.f"),
    "occurrence = 2": fault("nesvm_jit/a/code.py", function="A.f", occurrence=2),
}


def test_an_entry_names_one_fault_alone(tmp_path):
    faults = [*ALIKE.values()]
    for said, meant in ALIKE.items():
        text = entry(meant, faults, "time", "so")
        assert said in text
        file = known(tmp_path, text, faults)
        assert [f for f in faults if file.kind(f)] == [meant]
    assert "file" not in entry(faults[0], faults[:1])


def test_an_entry_that_names_several_faults_is_refused(tmp_path):
    faults = [*ALIKE.values()]
    with pytest.raises(
        MutantsError, match=r"^known.toml: 2 faults match f: a → b: a file, .* needed"
    ):
        known(tmp_path, entry(faults[0], [], "time", "so"), faults[:2])
    with pytest.raises(MutantsError, match=r"^known.toml: two entries of one fault: f: a → b$"):
        known(tmp_path, 2 * entry(faults[0], [], "time", "so"), faults[:1])
    with pytest.raises(MutantsError, match=r"^known.toml: [^\n]+$"):
        known(tmp_path, "[[fault]]\nfunction =\n", faults)


@pytest.mark.parametrize(("kind", "why"), [("?", "so"), ("equivalent", " ")])
def test_known_faults_need_a_kind_and_a_reason(tmp_path, kind, why):
    with pytest.raises(MutantsError, match=r"^known.toml: a kind of .* and a reason needed: \{"):
        known(tmp_path, entry(fault(), [], kind, why), [])


@pytest.mark.parametrize(
    ("old", "new", "got"),
    [
        ("kind = 'time'\n", "", "after, before, function, why"),
        ("kind =", "sort =", "after, before, function, sort, why"),
        ("[[fault]]\nf", "[[fault]]\n\n[[fault]] # again\nf", "fault"),
    ],
)
def test_an_entry_has_all_its_fields_and_no_others(tmp_path, old, new, got):
    text = entry(fault(), [], "time", "so")
    assert old in text
    needed = "after, before, function, kind, why"
    refusal = f"^known.toml: an entry needs {needed}, got {got}$"
    with pytest.raises(MutantsError, match=refusal):
        known(tmp_path, text.replace(old, new), [])


@pytest.mark.parametrize(
    ("old", "new", "refusal"),
    [
        ("why = 'so'", "why = 3", "why must be of type str, got 3"),
        ("before = 'a'", "before = ['a']", "before must be of type str, got ['a']"),
        ("function = 'f'", "function = 1", "function must be of type str, got 1"),
        ("kind =", "occurrence = 'x'\nkind =", "occurrence must be of type int, got 'x'"),
        ("kind =", "file = 3\nkind =", "file must be of type str, got 3"),
        ("[[fault]]", "[[faults]]", "an entry starts with [[fault]], got faults"),
        ("[[fault]]\n", "rubbish\n[[fault]]\n", "Expected"),
        ("'so'", "'\udcff'", "'utf-8' codec can't decode byte 0xff"),
    ],
)
def test_a_broken_file_is_refused_in_one_line_and_stays(tmp_path, old, new, refusal):
    text = entry(fault(), [], "time", "so")
    assert old in text
    path, moved = tmp_path / "known.toml", tmp_path / "pruned.toml"
    path.write_text(text.replace(old, new), encoding="utf-8", errors="surrogateescape")
    kept = path.read_bytes()
    for call in (lambda: Known([], path), lambda: prune([], moved, path)):
        with pytest.raises(MutantsError, match=rf"^known.toml: {re.escape(refusal)}[^\n]*$"):
            call()
    assert path.read_bytes() == kept
    assert not moved.exists()


def test_no_entry_is_lost_when_it_cannot_be_moved(tmp_path):
    path = tmp_path / "known.toml"
    path.write_text(entry(fault(), [], "time", "so"))
    kept = path.read_text()
    (tmp_path / "pruned.toml").mkdir()
    with pytest.raises(IsADirectoryError):
        prune([], tmp_path / "pruned.toml", path)
    assert path.read_text() == kept


def test_pruning_without_dead_entries_writes_nothing(tmp_path):
    path, moved = tmp_path / "known.toml", tmp_path / "build/pruned.toml"
    path.write_text(entry(fault(), [], "time", "so"))
    before = path.stat()
    assert prune([fault()], moved, path) == []
    after = path.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert not moved.parent.exists()


def test_a_file_that_cannot_be_written_stays_as_it_was(tmp_path):
    path = tmp_path / "page.md"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        trees.write_whole(path, "new \udcff")
    assert [p.name for p in tmp_path.iterdir()] == ["page.md"]
    assert path.read_text() == "old"
    trees.write_whole(path, "new")
    assert path.read_text() == "new"


def test_nothing_is_known_without_a_file(tmp_path):
    assert Known([fault()], tmp_path / "none").kind(fault()) is None


def test_entries_that_name_no_fault_are_removed(tmp_path):
    faults = [fault(before=f"b{k}") for k in range(4)]
    blocks = ["# Why.\n", *(entry(f, faults, "time", "so") for f in faults)]
    path = tmp_path / "known.toml"
    path.write_text("\n".join(blocks))
    dead = ["f: b0 → b", "f: b2 → b"]
    assert wrong_entries(faults[1::2], path) == (dead, [])
    moved = tmp_path / "build/pruned.toml"
    assert prune(faults[1::2], moved, path) == dead
    assert path.read_text() == "\n".join([blocks[0], blocks[2], blocks[4]])
    assert moved.read_text() == f"{blocks[1]}\n{blocks[3]}\n"
    assert prune(faults[3:], moved, path) == ["f: b1 → b"]
    assert moved.read_text() == f"{blocks[1]}\n{blocks[3]}\n{blocks[2]}\n"
    assert prune(faults[3:], moved, path) == []


def test_every_known_fault_is_one_of_the_package():
    faults = all_faults(trees.ROOT)
    Known(faults)
    assert wrong_entries(faults) == ([], []), "python -m tests.mutants --prune removes dead entries"


# ---------------------------------------------------------------- the sample


MANY = [fault(line=n, after=f"{n} {k}") for n in range(30) for k in range(n % 4 + 1)]


def test_a_sample_is_the_same_for_a_seed_and_has_a_fault_of_a_line():
    first, again, other = (runner.draw(MANY, seed, 20) for seed in (5, 5, 6))
    assert first == again
    assert first != other
    assert len({f.line for f in first}) == len(first) == 20
    assert set(first) <= set(MANY)


def test_a_sample_has_as_many_faults_as_there_are_lines_at_most():
    assert sorted(f.line for f in runner.draw(MANY, 0, 100)) == list(range(30))
    assert runner.draw([], 0, 100) == []


def test_every_fault_of_a_line_may_be_drawn():
    seen = {f for seed in range(60) for f in runner.draw(MANY[:10], seed, 4)}
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


@pytest.mark.parametrize("sign", ["a, b=STEP", "*, b=STEP", "a=[STEP, 1]"])
def test_a_constant_that_is_a_default_is_reached_by_tests_that_run_its_function(project, sign):
    text = f"STEP = 2\ndef f({sign}):\n    b = 1\n    return b\ndef g(a):\n    return a\n"
    constant = next(f for f in project(text) if f.line == 1)
    tests = {"tests/test_a.py::t": 0.1, "tests/test_a.py::u": 0.1, "tests/test_a.py::v": 0.1}
    lines = {k: [f"tests/test_a.py::{t}"] for k, t in ((3, "t"), (4, "v"), (6, "u"))}
    assert nearest(constant, reaching(tests, lines), 40.0) == ([0, 2], 2)


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
    for number, failed in enumerate((["tests/test_b.py::failed"], [], ["tests/test_a.py::red"])):
        (folder / f"failed-{number}.json").write_text(json.dumps(failed))
    found = reach_module._collect(tree, folder)
    assert found["failed"] == ["tests/test_a.py::red", "tests/test_b.py::failed"]
    assert found["tests"] == ["tests/test_a.py::t", "tests/test_b.py::u", "tests/test_b.py::v"]
    assert found["seconds"] == [0.5, 0.25, 1.0]
    kept = reach_module._read(json.loads(json.dumps(found)))
    table = {n: kept.members(bits) for n, bits in kept.lines["nesvm_jit/code.py"].items() if bits}
    assert table == {1: [0], 2: [0, 1], 3: [1, 2]}
    assert kept.failed == found["failed"]


def test_reach_is_measured_anew_when_a_file_changes_that_a_test_may_read(tmp_path, monkeypatch):
    monkeypatch.setattr(reach_module, "ROOT", tmp_path)
    names = ["README.md", "docs/page.md", "nesvm_jit/a.py", "pyproject.toml"]
    monkeypatch.setattr(reach_module, "files", lambda: [*names, "tests/mutants/known.toml"])
    for name in reach_module.files():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("before")
    seen = {reach_module._fingerprint()}
    (tmp_path / "tests/mutants/known.toml").write_text("after")
    assert reach_module._fingerprint() in seen
    for name in names:
        (tmp_path / name).write_text("after")
        seen.add(reach_module._fingerprint())
    assert len(seen) == 1 + len(names)


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """measure() with a command in the place of pytest."""
    monkeypatch.setattr(reach_module, "BUILD", tmp_path)
    monkeypatch.setattr(reach_module, "_fingerprint", lambda: "key")

    def measure(program):
        command = [sys.executable, "-c", program]
        run = reach_module._run_to_the_end
        monkeypatch.setattr(
            reach_module, "_run_to_the_end", lambda _, tree, env, log: run(command, tree, env, log)
        )
        return reach_module.measure(tmp_path, False)

    return measure


def test_tests_that_cannot_be_run_measure_nothing(measured, tmp_path):
    with pytest.raises(
        MutantsError, match=r"^the tests cannot be run, pytest ended with 2: no module"
    ):
        measured("import sys; print('no module'); sys.exit(2)")
    assert not (tmp_path / "reach-compiled.json").exists()


def test_tests_that_fail_while_reach_is_measured_are_left_out_and_told(measured, monkeypatch):
    folder = reach_module.BUILD / "reach-compiled"
    program = (
        "import json, pathlib, sys\n"
        f"folder = pathlib.Path({str(folder)!r})\n"
        "(folder / 'tests-1.json').write_text(json.dumps({'t::green': 0.5}))\n"
        "(folder / 'failed-1.json').write_text(json.dumps(['t::red']))\n"
        "sys.exit(1)\n"
    )
    reach = measured(program)
    assert (reach.tests, reach.failed) == (["t::green"], ["t::red"])
    assert measured("never run").failed == ["t::red"]
    monkeypatch.setattr(run_module, "measure", lambda *_: reach)
    monkeypatch.setattr(run_module, "make_tree", lambda name: folder)
    shown, plan = [], Plan(40.0, [], False)
    run_module.measure_reaches(plan, [False], shown.append)
    assert plan.reaches == {False: reach}
    assert shown[1:] == ["left out, it fails on the unchanged package: t::red"]


def test_a_plan_names_the_tests_and_how_long_they_take():
    tests = {"tests/test_b.py::t": 0.5, "tests/test_a.py::u": 0.1, "tests/test_a.py::v": 9.0}
    reach = reaching(tests, {7: list(tests)[:2]})
    plan = Plan(40.0, [], True, {False: reach})
    job, count = plan.job(fault(line=7), False)
    assert count == 2
    assert job == {
        "files": ["tests/test_a.py", "tests/test_b.py"],
        "tests": ["tests/test_a.py::u", "tests/test_b.py::t"],
        "seconds": [0.1, 0.5],
    }
    some = Plan(40.0, ["tests/test_c.py"], True)
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


@pytest.mark.parametrize("room", ["kernels", "jit", "matrix", "part"])
def test_machine_code_of_a_faulty_tree_is_dropped_with_the_fault(project, tmp_path, room):
    """A fault in what chooses a compiled body was in the user's cache, for the unchanged sources:
    their RBF kernel was wrong from then on."""
    (found, *_) = project("x = 1\n", f"nesvm_jit/{room}/code.py")
    tree = tmp_path / "tree"
    file, code = tree / found.path, tree / "code" / "digest"
    for folder in (file.parent, code):
        folder.mkdir(parents=True)
    file.write_text("x = 1\n")
    (code / "right.nsc").write_text("right")
    with trees.with_fault(tree, found):
        (code / "new.nsc").write_text("wrong, if the fault can be in it")
    left = {f.name for f in code.iterdir()}
    assert left == ({"right.nsc", "new.nsc"} if room == "part" else {"right.nsc"})
    assert trees.environment(tree, False)["NESVM_JIT_CACHE_DIR"] == str(tree / "code")


def test_rooms_whose_sources_are_compiled_are_those_of_the_code_cache():
    rooms = {pattern.partition("/")[0] for pattern in code_cache.COMPILED}
    assert rooms == set(trees.IN_MACHINE_CODE)


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
    watch.plugin.pytest_collectreport(SimpleNamespace(failed=True, nodeid="t"))
    assert watch.answers[1] == ("noticed", "import of t", 0)


def test_a_test_that_does_not_end_is_the_answer(watch):
    watch.plugin.pytest_runtest_logstart("t::b")
    assert watch.first.wait(5.0)
    assert watch.answers[0] == ("noticed", "t::b (did not end)", 1)


def test_time_in_which_a_process_is_stopped_does_not_count(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(server_module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    clock = server_module.Clock()
    for step, expected in ((0.5, 0.5), (60.0, 1.5), (0.25, 1.75)):
        now[0] += step
        assert clock.read() == expected
    assert clock.seconds == 1.75


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
        "error: nesvm_jit/part/code.py:6 in f (t)",
        "  - b6",
        "  + a6",
    ]


def test_the_tests_of_some_files_are_counted_as_they_are():
    (found,) = verdicts("survived")
    text = page([replace(found, ran=62, reaching=0)], 0, 0.0)
    assert text.startswith("survived: nesvm_jit/part/code.py:0 in f (62 tests)\n")


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

    def refuse_red_tests(self, pure, plan):
        self.judged.append(f"baseline {pure}")

    def judge(self, found, pure, plan):
        self.judged.append((found.line, pure))
        return Verdict(found, "noticed" if found.line % 2 else "survived", "t", 1, 1, 0.0)

    def close(self):
        self.judged.append("closed")


@pytest.fixture
def fake_worker(tmp_path, monkeypatch):
    monkeypatch.setattr(FakeWorker, "judged", [], raising=False)
    monkeypatch.setattr(run_module, "Worker", FakeWorker)
    monkeypatch.setattr(runner, "BUILD", tmp_path)
    monkeypatch.setattr(trees, "BUILD", tmp_path)
    monkeypatch.setattr(document, "BUILD", tmp_path)
    path = tmp_path / "known.toml"
    path.write_text(entry(fault(before="known"), (), "time", "so"))
    monkeypatch.setattr(runner, "Known", lambda faults: Known(faults, path))
    return FakeWorker


FILES = Plan(40.0, ["tests/test_a.py"], True)


@pytest.mark.parametrize("workers", [1, 2])
def test_all_faults_are_judged_but_those_that_are_known(fake_worker, workers):
    faults = [fault(line=k, before="known" if k == 2 else "a") for k in range(5)]
    shown = []
    found = run_module.run(
        faults, runner.Known(faults), lambda f: f.line == 3, FILES, workers, shown.append
    )
    outcomes = ["survived", "noticed", "time", "noticed", "survived"]
    assert [v.outcome for v in found] == outcomes
    assert [v.fault for v in found] == faults
    judged = [x for x in fake_worker.judged if isinstance(x, tuple)]
    assert sorted(judged) == [(0, False), (1, False), (3, True), (4, False)]
    assert fake_worker.judged.count("closed") == workers
    assert fake_worker.judged[:2] == ["baseline False", "baseline True"]
    assert [line.split("]")[0] for line in shown] == [f"[{k}/5" for k in range(1, 6)]


def test_a_fault_that_cannot_be_judged_is_an_error_and_the_others_are_judged(
    fake_worker, monkeypatch
):
    judge = fake_worker.judge

    def stumbles(self, found, pure, plan):
        if found.line == 1:
            raise OSError("disk full")
        return judge(self, found, pure, plan)

    monkeypatch.setattr(fake_worker, "judge", stumbles)
    faults = [fault(line=k, before=f"b{k}") for k in range(3)]
    found = run_module.run(faults, Known(faults), lambda f: False, FILES, 1, lambda text: None)
    assert [v.outcome for v in found] == ["survived", "error", "survived"]
    assert found[1].test == "OSError: disk full"


class Server:
    """A process in the place of the server: it reads a job, and then does something."""

    def __init__(self, program):
        self.program, self.started = program, 0

    def __call__(self, command, **options):
        self.started += 1
        program = f"print('ready', flush=True); input(); {self.program}"
        return subprocess.Popen([sys.executable, "-c", program], **options)


@pytest.fixture
def worker(tmp_path, monkeypatch, project):
    """A worker whose server is a program, and a fault."""
    monkeypatch.setattr(run_module, "make_tree", lambda name: tmp_path)

    def make(program):
        server = Server(program)
        popen = SimpleNamespace(Popen=server, PIPE=subprocess.PIPE)
        monkeypatch.setattr(run_module, "subprocess", popen)
        return Worker(1), server, project("x = 2\n")[0]

    return make


def test_a_server_that_dies_is_an_error_and_another_is_started(worker):
    made, server, found = worker("import os; os.kill(os.getpid(), 9)")
    for number in (1, 2):
        verdict = made.judge(found, False, FILES)
        assert (verdict.outcome, verdict.ran) == ("error", 0)
        assert verdict.test == "the process that runs the tests died, code -9"
        assert server.started == number
    made.close()


@pytest.mark.parametrize(
    ("outcome", "refusal"),
    [
        ("noticed", "with compilation off, the unchanged package fails a test: t::a"),
        ("error", "with compilation off, the unchanged package cannot be tested: t::a"),
        ("survived", None),
    ],
)
def test_tests_that_fail_on_the_unchanged_package_are_refused(worker, outcome, refusal):
    said = json.dumps({"outcome": outcome, "test": "t::a", "ran": 1, "seconds": 0.0})
    made, server, _ = worker(f"print({said!r})")
    if refusal:
        with pytest.raises(MutantsError, match=f"^{refusal}$"):
            made.refuse_red_tests(True, FILES)
    else:
        made.refuse_red_tests(True, FILES)
    assert server.started == 1
    made.close()


def test_trees_of_processes_that_have_ended_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(trees, "BUILD", tmp_path)
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    names = {f"tree-1-{ended.pid}": False, f"tree-2-{os.getppid()}": True, "tree-1-old": True}
    for name in names:
        (tmp_path / name / "tests").mkdir(parents=True)
    trees.clear_dead_trees()
    assert {name: (tmp_path / name).exists() for name in names} == names


# ---------------------------------------------------------------- the command


def asked(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["mutants", *words])
    return runner.main()


TESTS = ("--tests", "tests/test_mutants.py", "--workers", "1")


@pytest.fixture
def faults(fake_worker, monkeypatch):
    """Those of the package: eight lines of two files."""
    found = [fault(line=k, before=f"b{k}") for k in range(6)]
    found += [fault("nesvm_jit/other.py", line=k, before=f"b{k}") for k in (6, 7)]
    monkeypatch.setattr(runner, "all_faults", lambda root: found)
    return found


def test_survivors_are_stored_and_judged_again_wherever_they_are_then(
    fake_worker, faults, monkeypatch, tmp_path, capsys
):
    assert asked(monkeypatch, *TESTS, "--only", "part/", "--seed", "1000") == 0
    stored = tmp_path / "seed-1000-part-partial.json"
    assert sorted(v["line"] for v in load(stored)[1]) == list(range(6))
    left = tomllib.loads(stored.with_suffix(".toml").read_text())["fault"]
    assert sorted(e["before"] for e in left) == ["b0", "b2", "b4"]
    assert "6 faults" in capsys.readouterr().out
    faults[:] = [replace(f, line=f.line + 10) for f in faults if f.before != "b4"]
    del fake_worker.judged[:]
    assert asked(monkeypatch, *TESTS, "--again", str(stored)) == 0
    judged = sorted(x for x in fake_worker.judged if isinstance(x, tuple))
    assert judged == [(10, False), (12, False)]
    assert len(load(tmp_path / "again.json")[1]) == 2
    lost = "not found any more: nesvm_jit/part/code.py:4 in f: b4 → b"
    assert lost in capsys.readouterr().out.splitlines()


def test_the_very_line_that_survived_is_judged_again(fake_worker, monkeypatch, tmp_path):
    twins = [fault(line=k, occurrence=n) for n, k in enumerate((10, 21, 32), start=1)]
    monkeypatch.setattr(runner, "all_faults", lambda root: twins)
    asked(monkeypatch, *TESTS)
    asked(monkeypatch, *TESTS, "--again", str(tmp_path / "seed-0-partial.json"))
    assert sorted(v["line"] for v in load(tmp_path / "again.json")[1]) == [10, 32]


def test_every_fault_of_a_line_is_judged(fake_worker, monkeypatch, tmp_path):
    lines = [*MANY, fault("nesvm_jit/other.py", line=7)]
    monkeypatch.setattr(runner, "all_faults", lambda root: lines)
    asked(monkeypatch, *TESTS, "--at", "nesvm_jit/part/code.py:7")
    assert fake_worker.judged == ["baseline False", *[(7, False)] * 4, "closed"]


def test_an_error_fails_the_run(fake_worker, faults, monkeypatch, tmp_path, capsys):
    def dies(self, found, pure, plan):
        return Verdict(found, "error", "died", 0, 0, 0.0)

    monkeypatch.setattr(fake_worker, "judge", dies)
    assert asked(monkeypatch, *TESTS) == 1
    assert "(died)" in capsys.readouterr().out
    assert not (tmp_path / "seed-0.json").exists()


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        ("--only nosuch/", "--only: no fault in a path that contains 'nosuch/'"),
        ("--at nosuch.py:3", "--at: no fault can be put into 'nosuch.py'; paths start with nes"),
        ("--at nesvm_jit/other.py", "--at needs PATH:LINE, got 'nesvm_jit/other.py'"),
        ("--at nesvm_jit/other.py:x", "--at needs PATH:LINE, got 'nesvm_jit/other.py:x'"),
        ("--at nesvm_jit/other.py:99", "--at: no fault starts in line 99 of nesvm_jit/other.py"),
        ("--count 0", "--count must be positive, got 0"),
        ("--count -3", "--count must be positive, got -3"),
        ("--workers 0", "--workers must be positive, got 0"),
        ("--budget nan", "--budget must be positive, got nan"),
        ("--tests tests/nosuch.py", "--tests: no file tests/nosuch.py"),
        ("--again nosuch.json", "nosuch.json: No such file or directory"),
        ("--again pyproject.toml", "pyproject.toml: not a stored run"),
        ("--document 77", "/seed-77.json: No such file or directory"),
        ("--document", "argument --document: expected at least one argument; --help lists"),
        ("--count x", "argument --count: invalid int value: 'x'; --help lists the options"),
        ("nosuch", "unrecognized arguments: nosuch; --help lists the options"),
        ("--at= ", "--at needs PATH:LINE, got ''"),
        ("--at nesvm_jit/other.py:7 --again x.json", "--at and --again cannot be had at once"),
        ("--document 1 --prune", "--document and --prune cannot be had at once"),
        ("--at nesvm_jit/other.py:7 --count 3", "--at has no use for --count"),
        ("--again x.json --only part/", "--again has no use for --only"),
        ("--prune --stale", "--prune has no use for --stale"),
        ("--document 1 --budget 3", "--document has no use for --budget"),
        ("--prune --workers 1", "--prune has no use for --workers"),
        ("--tests tests/test_mutants.py --stale", "--tests has no use for --stale"),
        ("--tests tests/test_mutants.py --budget 3", "--tests has no use for --budget"),
        ("--tests README.md", "--tests: paths start with tests/, got 'README.md'"),
        (f"--tests {__file__}", "--tests: paths start with tests/, got '/"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(
    faults, tmp_path, monkeypatch, capsys, words, refusal
):
    monkeypatch.chdir(trees.ROOT)
    assert asked(monkeypatch, *words.split()) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("mutants: ")
    assert refusal in err
    assert err.count("\n") == 1
    assert [p.name for p in tmp_path.iterdir()] == ["known.toml"]


def test_options_are_those_of_a_whole_sample_unless_said_otherwise():
    args = runner.parse(["--seed", "3"])
    assert (args.seed, args.count, args.budget, args.workers) == (3, WHOLE.count, WHOLE.budget, 2)
    assert (args.only, args.at, args.again, args.tests, args.stale) == (None, None, None, [], False)


def test_no_more_workers_than_faults_are_made(fake_worker, faults, monkeypatch):
    assert asked(monkeypatch, *TESTS, "--workers", "99", "--count", "3") == 0
    assert fake_worker.judged.count("closed") == 3


def test_pruning_says_so_when_all_entries_name_faults(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(runner, "all_faults", lambda root: [])
    monkeypatch.setattr(runner, "prune", lambda faults, moved: [])
    monkeypatch.setattr(runner, "wrong_entries", lambda faults: ([], []))
    assert asked(monkeypatch, "--prune") == 0
    assert capsys.readouterr().out == "every entry of known.toml names a fault\n"


def test_a_run_without_survivors_has_none_to_judge_again(faults, monkeypatch, tmp_path, capsys):
    faults[:] = [f for f in faults if f.line % 2]
    asked(monkeypatch, *TESTS)
    path = tmp_path / "seed-0-partial.json"
    assert asked(monkeypatch, *TESTS, "--again", str(path)) == 1
    assert capsys.readouterr().err == f"mutants: {path}: no survivors\n"


# ---------------------------------------------------------------- stored runs, and the page

WHOLE = Request("abc", 3, 100, "", [], 40.0, False, "", "", 2, {"equivalent": 5, "time": 7})


@pytest.mark.parametrize(
    ("change", "lack", "name"),
    [
        ({}, "", "seed-3.json"),
        ({"count": 120, "budget": 50.0}, "", "seed-3.json"),
        ({"count": 99}, "99 faults, not 100", "seed-3-partial.json"),
        ({"only": "a/b/"}, "only a/b/", "seed-3-a-b-partial.json"),
        ({"tests": ["t"]}, "the tests of t alone", "seed-3-partial.json"),
        ({"budget": 39.5}, "a budget of 39.5 s, not 40", "seed-3-partial.json"),
        ({"stale": True}, "the reach of other sources", "seed-3-partial.json"),
        ({"drawn": 3}, "2 of 3 faults judged", "seed-3-partial.json"),
        ({"again": "x"}, "some faults judged again", "again.json"),
        ({"at": "x"}, "some faults judged again", "again.json"),
        ({"at": "x", "drawn": 3}, "some faults judged again, 2 of 3", "again-partial.json"),
    ],
)
def test_only_a_whole_sample_has_the_name_of_one(tmp_path, monkeypatch, change, lack, name):
    monkeypatch.setattr(document, "BUILD", tmp_path)
    monkeypatch.setattr(document, "PAGE", tmp_path / "page.md")
    document.PAGE.write_text("a\n<!-- it writes this -->\nold\n<!-- end -->\nb\n")
    request, found = replace(WHOLE, **change), verdicts("noticed", "survived")
    path = store(tmp_path, request, found)
    assert path.name == name
    assert load(path) == (request, [v.asdict() for v in found])
    path.rename(tmp_path / "seed-3.json")
    if lack:
        with pytest.raises(MutantsError, match=f"^seed 3 is not a whole sample: {re.escape(lack)}"):
            document.write([3])
        assert "\nold\n" in document.PAGE.read_text()
    else:
        assert document.write([3]) == document.PAGE
        assert "Commit abc: " in document.PAGE.read_text()
        assert "5 faults that change nothing, 7 that cost time" in document.PAGE.read_text()


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("request", {"count": "x"}),
        ("request", {"tests": None}),
        ("request", {"known": 3}),
        ("request", {"known": {}}),
        ("request", {"more": 1}),
        ("verdicts", 3),
        ("verdicts", [1]),
        ("verdicts", [{}]),
    ],
)
def test_a_stored_run_that_lacks_something_is_none(tmp_path, part, change):
    path = store(tmp_path, WHOLE, verdicts("noticed", "survived"))
    kept = json.loads(path.read_text())
    kept[part] = {**kept[part], **change} if isinstance(change, dict) else change
    path.write_text(json.dumps(kept))
    with pytest.raises(MutantsError, match=r"/seed-3.json: not a stored run$"):
        load(path)


def test_a_folder_that_cannot_be_written_is_told_in_one_line(
    fake_worker, faults, monkeypatch, tmp_path, capsys
):
    (tmp_path / "file").touch()
    monkeypatch.setattr(runner, "BUILD", tmp_path / "file" / "mutants")
    assert asked(monkeypatch, *TESTS) == 1
    place = tmp_path / "file" / "mutants"
    assert capsys.readouterr().err == f"mutants: {place}: Not a directory\n"


def test_what_a_process_says_of_its_error_is_one_line():
    said = server_module.said_of(ValueError("first\nsecond"))
    assert said == "ValueError: first"


def test_a_sample_with_errors_is_not_whole(tmp_path):
    assert store(tmp_path, WHOLE, verdicts("noticed", "error")).name == "seed-3-partial.json"


def test_the_page_tells_the_scores_and_the_commits_of_the_runs():
    part = [v.asdict() for v in verdicts("noticed", "noticed", "survived", "equivalent", "time")]
    other = [v.asdict() for v in verdicts("noticed", path="nesvm_jit/other.py")]
    later = replace(WHOLE, commit="def", seed=4, known={"equivalent": 6, "time": 7})
    assert document.scores([WHOLE, later], {3: part, 4: other}) == (
        "Commits abc, def: noticed of those that count.\n\n"
        "| folder | seed 3 | seed 4 |\n|---|---|---|\n"
        "| other | – | 1 of 1 (100 %) |\n"
        "| part | 2 of 3 (67 %) | – |\n"
        "| all | 2 of 3 (67 %) | 1 of 1 (100 %) |\n\n"
        "known.toml holds 6 faults that change nothing, 7 that cost time.\n"
    )


# ---------------------------------------------------------------- a small project, from end to end

CACHE = """\
import hashlib
from pathlib import Path
def _digest():
    return hashlib.sha256(Path(__file__).with_name("sums.py").read_bytes()).hexdigest()
SOURCE_DIGEST = _digest()
def cache_folders():
    return Path(__file__).with_name("code"), []
"""
SUMS = """\
def total(a, b):
    return a + b
def kill(a):
    return a + 1
"""
SLOW = "def less(a):\n    return a < 3\n"
TEST_SUMS = """\
import os
from nesvm_jit.sums import kill, total
def test_total():
    assert total(2, 1) == 3
def test_kill():
    assert kill(1) == 2 or os.kill(int(open("/proc/self/stat").read().split()[3]), 9)
"""
TEST_SLOW = """\
import os, time
from pathlib import Path
from nesvm_jit.slow import less
def test_less():
    if not less(2):
        Path("PID").write_text(str(os.getpid()))
        time.sleep(60)
    assert not less(3)
"""
TEST_RED = "def test_red():\n    assert False\n"


@pytest.fixture
def small(tmp_path):
    """Runs the command in a project of its own; the server imports little ahead."""
    shutil.copytree(trees.ROOT / "tests/mutants", tmp_path / "tests/mutants")
    server = tmp_path / "tests/mutants/server.py"
    server.write_text(
        re.sub(r"AHEAD = \(.*?\n\)\n", "AHEAD = ()\n", server.read_text(), flags=re.S)
    )
    files = {
        **{"nesvm_jit/__init__.py": "", "nesvm_jit/cache.py": CACHE, "nesvm_jit/sums.py": SUMS},
        **{"tests/__init__.py": "", "tests/mutants/known.toml": "", ".gitignore": "build/\n"},
        **{"tests/test_sums.py": TEST_SUMS, "tests/test_red.py": TEST_RED},
        "nesvm_jit/slow.py": SLOW,
        "tests/test_slow.py": TEST_SLOW.replace("PID", str(tmp_path / "pid")),
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "All"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)

    def start(*words):
        return subprocess.Popen(
            [sys.executable, "-u", "-m", "tests.mutants", *words],
            cwd=tmp_path,
            env=trees.environment(tmp_path, False),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    yield start
    assert not list(tmp_path.glob("build/mutants/tree-*"))


def ended(process):
    out, err = process.communicate(timeout=100)
    assert "Traceback" not in out + err
    return process.returncode, out.splitlines(), err.splitlines()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="a test finds its parent there")
def test_faults_of_a_small_project(small, tmp_path):
    tests = ("--tests", "tests/test_sums.py", "--workers", "1")
    code, out, err = ended(small("--only", "sums.py", *tests))
    assert (code, err) == (1, [])
    outcomes = sorted(line.split()[1] for line in out[:2])
    assert outcomes == ["error", "noticed"]
    assert "the process that runs the tests died, code -9" in "\n".join(out)
    request, found = load(tmp_path / "build/mutants/seed-0-sums.py-partial.json")
    assert (request.seed, request.count, request.only, len(found)) == (0, 100, "sums.py", 2)
    head = subprocess.check_output(["git", "describe", "--always"], cwd=tmp_path, text=True)
    assert request.commit == head.strip()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="a test finds its parent there")
def test_a_reader_that_goes_away_ends_no_run(small, tmp_path):
    running = small("--only", "sums.py", "--tests", "tests/test_sums.py", "--workers", "1")
    running.stdout.close()
    with running.stderr:
        assert running.stderr.read() == ""
    assert running.wait(timeout=100) == 1
    assert len(load(tmp_path / "build/mutants/seed-0-sums.py-partial.json")[1]) == 2


def test_red_tests_of_a_small_project_are_refused(small):
    code, out, err = ended(small("--tests", "tests/test_red.py"))
    assert (code, out) == (1, [])
    assert err == ["mutants: the unchanged package fails a test: tests/test_red.py::test_red"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_keeps_what_was_judged_and_ends_every_process(small, tmp_path, number):
    tests = ("--tests", "tests/test_slow.py", "--workers", "1")
    running = small("--at", "nesvm_jit/slow.py:2", *tests)
    assert running.stdout.readline().startswith("[1/3] noticed ")
    pid = tmp_path / "pid"
    while not (pid.exists() and pid.read_text()):
        assert running.poll() is None
        time.sleep(0.05)
    running.send_signal(number)
    code, out, err = ended(running)
    stored = tmp_path / "build/mutants/again-partial.json"
    assert (code, err) == (130, [])
    assert out == [f"mutants: interrupted, 1 of 3 judged: {stored}"]
    assert [v["outcome"] for v in load(stored)[1]] == ["noticed"]
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_a_signal_ends_the_measuring_of_reach(small, tmp_path):
    """Its tests run in a session of their own, which nothing else would end."""
    (tmp_path / "tests/test_slow.py").write_text(
        TEST_SLOW.replace("if not less(2)", "if less(2)").replace("PID", str(tmp_path / "pid"))
    )
    running = small("--at", "nesvm_jit/slow.py:2")
    pid = tmp_path / "pid"
    while not (pid.exists() and pid.read_text()):
        assert running.poll() is None
        time.sleep(0.05)
    running.send_signal(signal.SIGTERM)
    assert ended(running) == (130, [], ["mutants: interrupted, nothing was judged"])
    for _ in range(100):  # until the system has taken it away
        if not Path(f"/proc/{pid.read_text()}/cmdline").exists():
            break
        time.sleep(0.05)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_reach_is_measured_by_one_run_at_a_time(measured, tmp_path):
    runs = tmp_path / "runs"
    program = f"import time; open({str(runs)!r}, 'a').write('x'); time.sleep(0.5)"
    first = threading.Thread(target=measured, args=(program,))
    first.start()
    while not runs.exists():
        assert first.is_alive()
        time.sleep(0.01)
    measured(program)  # takes what the first has measured
    first.join()
    assert len(runs.read_text()) == 1


def test_a_copy_of_a_tree_finds_its_own_digest(small, tmp_path, monkeypatch):
    """The tree keeps the digest of the unchanged sources; a package copied from it does not, nor
    does the tree when the module that finds it has a fault."""
    monkeypatch.setattr(trees, "ROOT", tmp_path)
    monkeypatch.setattr(trees, "BUILD", tmp_path / "elsewhere")
    kept = tmp_path / "nesvm_jit" / "code"
    kept.mkdir()
    (kept / "total.nsc").write_text("compiled")
    tree, copy = trees.make_tree("tree"), tmp_path / "copy"
    shutil.copytree(tree / "nesvm_jit", copy / "nesvm_jit")

    def digest(folder):
        program = (
            "from nesvm_jit.cache import SOURCE_DIGEST as s, _digest; print(s, s == _digest())"
        )
        command, env = [sys.executable, "-c", program], trees.environment(folder, False)
        return subprocess.check_output(command, cwd=folder, text=True, env=env).split()

    (before, right) = digest(tmp_path)
    assert right == "True"
    assert (tree / "code" / before / "total.nsc").read_text() == "compiled"
    assert digest(tree) == digest(copy) == [before, "True"]
    for folder in (tree, copy):
        (folder / "nesvm_jit/sums.py").write_text("edited = 1\n")
    assert digest(tree) == [before, "False"]
    assert digest(copy)[1] == "True"
    (tree / "nesvm_jit/cache.py").write_text("faulty = 1\n" + CACHE)
    assert digest(tree) == digest(copy)


@pytest.mark.parametrize(
    ("file", "text", "refusal"),
    [
        ("nesvm_jit/cache.py", "import nosuch\n" + CACHE, "the package cannot be imported: Module"),
        ("nesvm_jit/cache.py", "x = 2\n", "0 files of the package have the line"),
        ("nesvm_jit/sums.py", "x = = 2\n", "nesvm_jit/sums.py:1: invalid syntax"),
    ],
)
def test_a_broken_package_is_refused_in_one_line(small, tmp_path, file, text, refusal):
    (tmp_path / file).write_text(text)
    code, out, err = ended(small("--tests", "tests/test_sums.py"))
    assert (code, out, len(err)) == (1, [], 1)
    assert err[0].startswith(f"mutants: {refusal}")
