"""Programs in fresh processes, which read LIBSVM text and leave a linear model."""

import subprocess
import sys
from pathlib import Path

import numpy as np

from ..judge import Found

LONGEST = 40.0  # seconds; two such runs end before the worker's patience does


def run(*command) -> None:
    """Run a program to its end, or raise with the last line that it wrote."""
    words = [str(word) for word in command]
    done = subprocess.run(words, timeout=LONGEST, capture_output=True, text=True)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise RuntimeError(lines[-1])


def run_python(script: str, *arguments) -> None:
    """Run a script in a fresh interpreter."""
    run(sys.executable, "-c", script, *arguments)


def read_model(path: Path) -> Found:
    """The machine of a LIBLINEAR model file of two classes, which speaks for the first label."""
    head, _, weights = path.read_text().partition("\nw\n")
    fields = dict(line.split(maxsplit=1) for line in head.splitlines())
    w = float(fields["label"].split()[0]) * np.array(
        weights.split()[: int(fields["nr_feature"])], float
    )
    return Found(w)
