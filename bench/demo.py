"""Train and predict on real data through the command line: `make demo`.

The data are scikit-learn's digits: 1797 images of 8 × 8 pixels, ten classes.
"""

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

from .common import HERE

FOLDER = HERE.parent / "build" / "demo"
TRAINING_ROWS = 1297  # the other 500 are for testing
MODELS = {"linear": [], "rbf": ["-t", "rbf", "-g", "0.02", "-c", "10"]}
LONGEST = 12  # lines of output shown whole


def write_data(folder: Path) -> None:
    """digits.train and digits.test as LIBSVM text, pixels scaled to 0–1."""
    import numpy as np
    from nesvm_jit import write_libsvm
    from sklearn.datasets import load_digits

    digits = load_digits()
    order = np.random.RandomState(0).permutation(len(digits.target))  # the same in every NumPy
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in (("train", order[:TRAINING_ROWS]), ("test", order[TRAINING_ROWS:])):
        write_libsvm(folder / f"digits.{name}", digits.data[rows] / 16, digits.target[rows])


def environment() -> dict[str, str]:
    """Ours, with the scripts of this interpreter found first."""
    scripts = os.path.dirname(os.path.abspath(sys.executable))
    return {**os.environ, "PATH": scripts + os.pathsep + os.environ.get("PATH", "")}


def show(*words: str) -> str:
    """Print a command, run it in the folder of the demo, print its output, of a long one the end;
    returns the last line."""
    print(f"\n$ {shlex.join(words)}", flush=True)
    done = subprocess.run(words, cwd=FOLDER, env=environment(), stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(done.returncode)
    lines = done.stdout.splitlines()
    if len(lines) > LONGEST:
        print(f"... ({len(lines) - 4} lines, one for each sub-problem)")
        lines = lines[-4:]
    print("\n".join(lines), flush=True)
    return lines[-1]


def main() -> None:
    start = time.perf_counter()
    write_data(FOLDER)
    print(f"The digits of scikit-learn, in {os.path.relpath(FOLDER)}. The first run compiles code.")
    found = []
    for name, options in MODELS.items():
        gap = show("nesvm-jit", "train", *options, "digits.train", f"{name}.model")
        right = show("nesvm-jit", "predict", "digits.test", f"{name}.model", f"{name}.out")
        found.append(f"{name + ':':8s} {right}, {gap}")
    print("", *found, f"{time.perf_counter() - start:.1f} s in all", sep="\n")


if __name__ == "__main__":
    main()
