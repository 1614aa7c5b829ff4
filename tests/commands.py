"""Commands run inside the test's own process, which saves a second each, and files for them."""

import contextlib
import io
import sys
import tempfile
from typing import NamedTuple

import pytest

from .data import blobs

ENDLESS = (
    *("--solver", "homotopy", "-e", "0", "--epsilon", "0", "--mu-end", "1e-12"),
    *("--max-iter", "1000000000"),
)


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


def stream(data: bytes = b"", encoding: str = "utf-8") -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(data), encoding=encoding, write_through=True)


def command(*args, stdin: bytes = b"", encoding: str = "utf-8") -> Outcome:
    """`nesvm-jit args…` as `main` runs it; whatever is not an exit is raised."""
    from nesvm_jit.cli import main

    out, err = stream(encoding=encoding), stream()
    err.reconfigure(errors="backslashreplace")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["nesvm-jit", *map(str, args)])
        patch.setattr(sys, "stdin", stream(stdin))
        code = 0
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                main()
            except SystemExit as e:
                code = e.code or 0
    return Outcome(code, *(s.buffer.getvalue().decode(encoding) for s in (out, err)))


def done(*args, **how) -> Outcome:
    """A command that must succeed."""
    outcome = command(*args, **how)
    assert outcome.code == 0, outcome
    return outcome


def refused(*args, **how) -> str:
    """The one line of a command that must fail."""
    outcome = command(*args, **how)
    assert outcome.code in (1, 2), outcome
    assert outcome.out == ""
    assert outcome.err.startswith("nesvm-jit: "), outcome
    assert outcome.err.count("\n") == 1
    assert outcome.err.endswith("\n")
    return outcome.err


def libsvm_text(X, y, end="\n") -> str:
    rows = (
        " ".join([f"{label:g}", *(f"{j}:{v:.6g}" for j, v in enumerate(row, 1) if v)])
        for row, label in zip(X, y, strict=True)
    )
    return end.join(rows) + end


def data_file(path, labels=(1, -1), n=60, **how):
    path.write_text(libsvm_text(*blobs(labels, n, **how)))
    return path


def kernel_text(K, y, first=1) -> str:
    """LIBSVM's text of a precomputed kernel."""
    rows = (
        " ".join([f"{label:g}", f"0:{i}", *(f"{j}:{v:.17g}" for j, v in enumerate(row, 1))])
        for i, (row, label) in enumerate(zip(K, y, strict=True), first)
    )
    return "\n".join(rows) + "\n"


def folder_with(**data):
    """A fixture: a current folder of its own with a LIBSVM file for each of these (X, y), and no
    other place for temporary files."""

    @pytest.fixture
    def here(tmp_path, monkeypatch):
        folder, spare = tmp_path / "here", tmp_path / "spare"
        folder.mkdir()
        spare.mkdir()
        monkeypatch.chdir(folder)
        monkeypatch.setattr(tempfile, "tempdir", str(spare))
        for name, (X, y) in data.items():
            (folder / name).write_text(libsvm_text(X, y))
        return folder

    return here


def files_in(folder) -> list[str]:
    """The names of what lies in a folder."""
    return sorted(p.name for p in folder.iterdir())


def contents(folder) -> dict[str, bytes]:
    """The files in a folder and in those below it."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
