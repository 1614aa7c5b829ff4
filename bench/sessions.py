"""The sessions shown in README.md and docs/, played again: `make docs` writes what they print into
the pages, and the tests compare.

A page is one session: its `python` blocks and the commands of its `console` blocks run in their
order, in one folder that holds digits.train and digits.test of the demo.
"""

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .common import DOCS, note, write_whole
from .demo import environment, write_data

BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PAGES = [
    page
    for page in (DOCS.parent / "README.md", *sorted(DOCS.glob("*.md")))
    if BLOCK.search(page.read_text())
]
# lines whose numbers another machine, with another BLAS, may print otherwise
COURSE = re.compile(r"gap|#iter|iterations of|nSV|n support|\d s  ")
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


def play(page: Path, folder: Path) -> Iterator[tuple[str, str]]:
    """Run a page in `folder`; the commands of each console block as shown and as they went."""
    if "digits." in page.read_text():
        write_data(folder)
    namespace: dict = {}
    for kind, body in BLOCK.findall(page.read_text()):
        if kind == "python":
            exec(compile(body, page.name, "exec"), namespace)
        else:
            commands = [line[2:] for line in body.splitlines() if line.startswith("$ ")]
            yield body, "".join(f"$ {c}\n{output(c, folder)}" for c in commands)


def output(command: str, folder: Path) -> str:
    """What a command prints, errors and hints included."""
    options = {"cwd": folder, "env": environment(), "text": True, "timeout": 300}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.run(command, shell=True, **streams, **options).stdout


def alike(shown: str, got: str) -> bool:
    """The same words, and the same numbers but for the last digits and the course of a run."""
    if NUMBER.sub("0", shown) != NUMBER.sub("0", got):
        return False
    for a, b in zip(shown.splitlines(), got.splitlines(), strict=True):
        x, y = (np.array(NUMBER.findall(line), dtype=float) for line in (a, b))
        if not COURSE.search(a) and (abs(x - y) > 0.01 * np.maximum(abs(x), 0.1)).any():
            return False
    return True


def main() -> None:
    for page in PAGES:
        text = page.read_text()
        with tempfile.TemporaryDirectory() as name:
            os.chdir(name)  # Python blocks name files too
            for shown, got in play(page, Path(name)):
                text = text.replace(f"```console\n{shown}```", f"```console\n{got}```", 1)
            os.chdir(DOCS)
        if text != page.read_text():
            write_whole(page, lambda f, text=text: f.write(text.encode()))
            page.chmod(0o644)
            note(f"{page.name} brought up to date")


if __name__ == "__main__":
    main()
