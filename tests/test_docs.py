"""The pages are true: examples run, output is what is printed, references are complete."""

import inspect
import re

import pytest
from bench.sessions import DOCS, PAGES, alike, play
from nesvm_jit import kernels
from nesvm_jit.cli import command

ROOT = DOCS.parent
COMMANDS = {"nesvm-jit": command, **command.commands}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_examples_run_and_print_what_is_shown(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    played = list(play(page, tmp_path))
    assert len(played) == page.read_text().count("```console\n")
    for shown, got in played:
        assert alike(shown, got), f"run `make docs`; it was:\n{shown}\nand is:\n{got}"


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("C = 1\n", "C = 1\n", True),
        ("Accuracy = 96.8% (484/500)\n", "Accuracy = 96.6% (483/500)\n", True),
        ("Accuracy = 96.8% (484/500)\n", "Accuracy = 90% (450/500)\n", False),
        ("Certified gap = 9.9e-04\n", "Certified gap = 1e-5\n", True),
        ("C = 1\n", "D = 1\n", False),
        ("C = 1\n", "C = 1\nC = 1\n", False),
    ],
)
def test_alike(a, b, same):
    assert alike(a, b) is same


def test_links_lead_somewhere():
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *DOCS.glob("*.md")]
    links = [
        (page, target)
        for page in pages
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text())
    ]
    assert len(links) > len(pages)
    for page, target in links:
        assert "://" in target or (page.parent / target).exists(), (page.name, target)


def sections(page, depth=2):
    """The text under each heading."""
    parts = re.split(rf"^{'#' * depth} (.*)\n", page.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def documented_options(text):
    """Names and default of every row of the table of options: a default of the program is in
    backticks, others are described."""
    rows = re.findall(r"^\| (`-[^|]*) \|([^|]*)\|", text, flags=re.MULTILINE)
    return {
        frozenset(re.findall(r"`(-[^`]*)`", names)): re.findall(r"^`([^`]*)`$", default.strip())
        for names, default in rows
    }


def default_text(option):
    value = option.default
    if isinstance(value, bool):
        return ["on"] if value else []
    if isinstance(value, (int, float)):
        return [f"{value:g}"]
    return [value] if isinstance(value, str) else []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_documented_with_its_default(name):
    options = [
        p for p in COMMANDS[name].params if p.param_type_name == "option" and p.name != "help"
    ]
    expected = {frozenset([*p.opts, *p.secondary_opts]): default_text(p) for p in options}
    assert documented_options(sections(DOCS / "cli.md")[name]) == expected


def test_every_command_is_documented_with_its_usage():
    assert {*sections(DOCS / "cli.md")} == {*COMMANDS}
    for name, sub in command.commands.items():
        usage = sub.get_usage(sub.context_class(sub, info_name=f"nesvm-jit {name}"))
        assert usage.removeprefix("Usage: ") in (DOCS / "cli.md").read_text()


def test_every_public_name_is_documented():
    import nesvm_jit

    api = sections(DOCS / "api.md")
    assert {*api} - {"Conventions"} == {*nesvm_jit.__all__}
    for name in nesvm_jit.__all__:
        value = getattr(nesvm_jit, name)
        if inspect.isfunction(value):
            missing = [p for p in inspect.signature(value).parameters if p not in api[name]]
            assert not missing, (name, missing)


@pytest.mark.parametrize("name", ["Machine", "Solution", "Settings", "NESVC"])
def test_every_public_attribute_is_documented(name):
    import nesvm_jit

    value = getattr(nesvm_jit, name)
    public = {a for a in vars(value) if not a.startswith(("_", "set_"))}
    public |= {*inspect.signature(value.__init__).parameters} - {"self", "record"}
    text = sections(DOCS / "api.md")[name]
    assert not [a for a in public if not re.search(rf"\b{a}\b", text)]


def test_every_kernel_is_documented():
    names = {k for k in kernels.__all__ if k != "Sweep"}
    assert {*sections(DOCS / "kernels.md")} - {"Conventions"} == names


def test_every_attribute_of_on_disk_matrices_is_documented():
    from nesvm_jit.files.ondisk.matrix import OnDisk

    public = {a for a in vars(OnDisk) if not a.startswith("_")}
    public |= {"name", "path", "n_rows", "n_cols", "n_cells", "dtype", "first_index"}
    text = sections(DOCS / "api.md")["open_matrix"]
    assert not [a for a in public if not re.search(rf"\b{a}\b", text)]
