"""What the default of each tool is truly worth: models of peers and our own, certified, as a table
in docs/certificate.md."""

import shutil
import subprocess
import tempfile
import time
import warnings
from pathlib import Path

import nesvm_jit

from .common import DOCS, data_file, machine_facts, note, table, write_whole

POLISH = 10.0  # seconds for a better lower bound
PAGE = DOCS / "certificate.md"
START, END = "<!-- bench-certify -->\n", "<!-- end -->\n"
TASKS = {"a9a": "linear", "a6a": "rbf"}


def programs(kernel):
    """(name, command) of the programs that are installed."""
    named = {"linear": ("liblinear-train", "-s 3 -B 1"), "rbf": ("svm-train", "-t 2")}
    name, options = named[kernel]
    if shutil.which(name):
        yield f"`{name} {options}`", [name, "-q", *options.split()]


def estimators(kernel, X):
    """(name, estimator) of scikit-learn, if it is installed."""
    try:
        from sklearn.svm import SVC, LinearSVC
    except ImportError:
        return
    if kernel == "linear":
        yield '`LinearSVC(loss="hinge")`', LinearSVC(loss="hinge")
    else:
        yield '`SVC(gamma="auto")`', SVC(gamma="auto")


def models(file, kernel, X, y):
    """(name, seconds to train, model) of every tool with its defaults."""
    for name, command in programs(kernel):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            start = time.perf_counter()
            subprocess.run([*command, str(file), str(path)], check=True, capture_output=True)
            yield name, time.perf_counter() - start, path
    for name, estimator in estimators(kernel, X):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it did not converge is what the table shows
            start = time.perf_counter()
            estimator.fit(X, y)
        yield name, time.perf_counter() - start, estimator
    nesvm_jit.train(X, y, kernel=kernel, max_iter=2)  # compiles
    start = time.perf_counter()
    machine = nesvm_jit.train(X, y, kernel=kernel)
    yield f"`nesvm-jit train -t {kernel}`", time.perf_counter() - start, machine


def rows_of(name, kernel):
    """A row of the table for every tool."""
    file = data_file(name)
    if file is None:
        note(f"no {name} in NESVM_DATA")
        return
    X, y = nesvm_jit.read_libsvm(file)
    for tool, seconds, model in models(file, kernel, X, y):
        note(f"{name}: {tool}")
        plain = nesvm_jit.certify(model, X, y, polish=0.0)
        found = nesvm_jit.certify(model, X, y, polish=POLISH)
        cells = [f"{seconds:.1f} s", f"{plain.gap:.1e}", f"{plain.passes:.2g}"]
        cells += [f"{found.gap:.1e}", f"{found.passes:.3g}", f"{found.seconds:.1f} s"]
        yield [f"{name}, {kernel}", tool, *cells]


def main() -> None:
    heads = ["data", "model", "trained in", "gap at once", "passes", "gap polished", "passes", "in"]
    rows = [row for name, kernel in TASKS.items() for row in rows_of(name, kernel)]
    facts = ", ".join(f"{name} {value}" for name, value in machine_facts().items())
    text = (
        f"Written by `make bench-certify`: C = 1, every tool with its defaults, {POLISH:g} s of "
        "polish at most; compiling our own code is not in these times.\n\n"
        f"Machine: {facts}.\n\n{table(rows, heads)}\n"
    )
    before, _, rest = PAGE.read_text().partition(START)
    after = rest.partition(END)[2]
    write_whole(PAGE, lambda f: f.write(f"{before}{START}{text}{END}{after}".encode()))
    PAGE.chmod(0o644)
    print(text, end="")


if __name__ == "__main__":
    main()
