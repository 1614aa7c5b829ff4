"""Commands run inside the test's own process, which saves a second each, and data for them."""

import contextlib
import io
import sys
from typing import NamedTuple

import numpy as np
import pytest

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


def blobs(labels=(1, -1), n=60, p=4, seed=0):
    """Rows around a point for each label, overlapping a little."""
    rng = np.random.default_rng(seed)
    y = np.resize(np.array(labels, dtype=float), n)
    centres = {label: rng.standard_normal(p) for label in labels}
    return np.array([centres[label] for label in y]) + 0.6 * rng.standard_normal((n, p)), y


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
