"""Every Python example in README and docs runs."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    p for p in [ROOT / "README.md", *ROOT.glob("docs/*.md")] if "```python" in p.read_text()
)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {}
    for block in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
        exec(compile(block, page.name, "exec"), namespace)


def test_links_lead_somewhere():
    for page in [ROOT / "README.md", ROOT / "CHANGELOG.md", *ROOT.glob("docs/*.md")]:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
            assert "://" in target or (page.parent / target).exists(), (page.name, target)
