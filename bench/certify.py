"""What the default of each tool is truly worth, which labels are proven, and what settling costs:
tables in docs/certificate.md.

python -m bench.certify [worth] [labels] [price]
"""

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import nesvm_jit
import numpy as np
from nesvm_jit.problems.kernel import KernelProblem
from nesvm_jit.problems.linear import LinearProblem
from scipy.sparse import csr_matrix, hstack

from .common import DOCS, data_file, machine_facts, note, table, write_whole

POLISH = 20.0  # seconds for a better lower bound, of all sub-problems together
TIGHT = 1e-7  # the gap of our own machine that the others are compared with
PAGE = DOCS / "certificate.md"
END = "<!-- end -->\n"
TASKS = (("a9a", "linear"), ("usps", "linear"), ("news20bydate", "linear"))
TASKS += (("a6a", "rbf"), ("usps", "rbf"))
SHARES = (
    ("a1a", {"bias": False}),
    ("a1a", {}),
    ("a1a", {"kernel": "rbf"}),
    ("usps", {"kernel": "rbf"}),
    ("ijcnn1", {}),
)
PRICES = (("a9a", {}), ("a9a", {"bias": False}), ("a9a", {"C": 100.0}), ("w8a", {}))
PRICES += (("a6a", {"kernel": "rbf"}), ("a6a", {"kernel": "rbf", "C": 100.0}))
REPEATS = 5


# ---------------------------------------------------------------- what each tool is worth


def programs(kernel):
    """(name, command) of the programs that are installed."""
    named = {"linear": ("liblinear-train", "-s 3 -B 1"), "rbf": ("svm-train", "-t 2")}
    name, options = named[kernel]
    if shutil.which(name):
        yield f"`{name} {options}`", [name, "-q", *options.split()]


def estimators(kernel):
    """(name, estimator) of scikit-learn, and of its extension, where they are installed."""
    try:
        from sklearn.svm import SVC, LinearSVC
    except ImportError:
        return
    if kernel == "linear":
        yield '`LinearSVC(loss="hinge")`', LinearSVC(loss="hinge")
        return
    yield '`SVC(gamma="auto")`', SVC(gamma="auto")
    try:
        from sklearnex import svm as faster
    except ImportError:
        return
    yield '`sklearnex.svm.SVC(gamma="auto")`', faster.SVC(gamma="auto")


def models(file, kernel, X, y):
    """(name, seconds to train, model) of every tool with its defaults."""
    for name, command in programs(kernel):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            start = time.perf_counter()
            subprocess.run([*command, str(file), str(path)], check=True, capture_output=True)
            yield name, time.perf_counter() - start, path
    for name, estimator in estimators(kernel):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it did not converge is what the table shows
            start = time.perf_counter()
            estimator.fit(X, y)
        yield name, time.perf_counter() - start, estimator
    nesvm_jit.train(X, y, kernel=kernel, max_iter=2)  # compiles
    start = time.perf_counter()
    machine = nesvm_jit.train(X, y, kernel=kernel)
    yield f"`nesvm-jit train -t {kernel}`", time.perf_counter() - start, machine


def best_known(X, y, kernel, bias, multiclass):
    """The least objective that our own solvers find, of a bias of this kind, summed over all
    sub-problems: no optimum is above it."""
    if bias == "penalised":
        X = csr_matrix(hstack([X, np.ones((X.shape[0], 1))]))
    how = {} if multiclass is None else {"multiclass": multiclass}
    found = nesvm_jit.train(X, y, kernel=kernel, bias=bias == "free", tol=TIGHT, **how)
    return sum(p["objective"] for p in found.problems)


def rows_of(name, kernel):
    """A row of the table for every tool."""
    file = data_file(name)
    if file is None:
        note(f"no {name} in NESVM_DATA")
        return
    X, y = nesvm_jit.read_libsvm(file)
    least = {}
    for tool, seconds, model in models(file, kernel, X, y):
        note(f"{name}: {tool}")
        plain = nesvm_jit.certify(model, X, y, polish=0.0)
        found = nesvm_jit.certify(model, X, y, polish=POLISH)
        posed = found.bias, found.multiclass
        if posed not in least:
            least[posed] = best_known(X, y, kernel, *posed)
        P, D = found.objective, found.dual_objective
        slack = (min(P, least[posed]) - D) / P
        cells = [f"{seconds:.1f} s", f"{(P - plain.dual_objective) / P:.1e}", f"{plain.passes:.2g}"]
        cells += [f"{(P - D) / P:.2e}", f"{slack:.0e}", f"{found.passes:.3g}"]
        note(" | ".join(cells))
        yield [f"{name}, {kernel}", tool, *cells, f"{found.seconds:.1f} s"]


def worth():
    """The table of what each tool's default is worth."""
    heads = ["data", "model", "trained in", "gap at once", "passes", "gap polished"]
    heads += ["above the truth by at most", "passes", "in"]
    rows = [row for name, kernel in TASKS for row in rows_of(name, kernel)]
    return (
        f"C = 1, every tool with its defaults, {POLISH:g} s of polish at most; of several "
        "sub-problems gaps are of the sums. The true share that a model is above the optimum is "
        "the polished gap or less, by no more than the column after it says: the objective of our "
        f"own machine at a gap of {TIGHT:g}, less the bound. Compiling our own code may be in the "
        f"first times.\n\n{table(rows, heads)}\n"
    )


# ---------------------------------------------------------------- which labels are proven


def labels():
    """The share of test rows whose label is proven."""
    rows = []
    for name, options in SHARES:
        train, test = data_file(name), data_file(f"{name}.t")
        if train is None or test is None:
            note(f"no {name} in NESVM_DATA")
            continue
        X, y = nesvm_jit.read_libsvm(train)
        Z, _ = nesvm_jit.read_libsvm(test)
        cells = []
        for tol in (1e-3, 1e-6):
            note(f"labels of {name}, {options}, {tol:g}")
            machine = nesvm_jit.train(X, y, tol=tol, **options)
            cells.append(f"{100 * machine.certified(Z).mean():.0f} %")
        words = [options.get("kernel", "linear"), "free" if options.get("bias", True) else "none"]
        rows.append([f"{name}.t", *words, *cells])
    heads = ["rows", "kernel", "bias", "`--tol 1e-3`", "`--tol 1e-6`"]
    return f"C = 1.\n\n{table(rows, heads)}\n"


# ---------------------------------------------------------------- what settling costs


def timed(kind, name, spent):
    """Have a method of a class add up the seconds in it."""
    method = getattr(kind, name)

    def measured(*args, **given):
        start = time.perf_counter()
        try:
            return method(*args, **given)
        finally:
            spent[0] += time.perf_counter() - start

    setattr(kind, name, measured)


def price():
    """The time in settling beside the rest of a fit."""
    spent = [0.0]
    for kind in (KernelProblem, LinearProblem):
        timed(kind, "settle", spent)
    rows = []
    for name, options in PRICES:
        file = data_file(name)
        if file is None:
            note(f"no {name} in NESVM_DATA")
            continue
        X, y = nesvm_jit.read_libsvm(file)
        y, found = np.where(y > 0, 1.0, -1.0), []
        for _ in range(REPEATS + 1):  # the first compiles
            spent[0], start = 0.0, time.perf_counter()
            nesvm_jit.solve(X, y, **options)
            found.append((time.perf_counter() - start, spent[0]))
        whole, inside = (statistics.median(part) for part in zip(*found[1:], strict=True))
        words = [options.get("kernel", "linear"), "free" if options.get("bias", True) else "none"]
        cells = [f"{options.get('C', 1.0):g}", f"{1e3 * whole:.0f} ms", f"{1e3 * inside:.0f} ms"]
        rows.append([name, *words, *cells, f"{100 * inside / (whole - inside):.0f} %"])
    heads = ["data", "kernel", "bias", "C", "fit", "in settling", "of the rest"]
    return (
        f"Medians of {REPEATS}. Of linear machines the pass for the margins is in it, which fits "
        f"ended with before they were settled.\n\n{table(rows, heads)}\n"
    )


PARTS = {"worth": worth, "labels": labels, "price": price}


def main() -> None:
    asked = sys.argv[1:] or [*PARTS]
    facts = ", ".join(f"{name} {value}" for name, value in machine_facts().items())
    for name in asked:
        text = f"Written by `make bench-certify`. Machine: {facts}. {PARTS[name]()}"
        start = f"<!-- bench-certify {name} -->\n"
        before, _, rest = PAGE.read_text().partition(start)
        after = rest.partition(END)[2]
        write_whole(PAGE, lambda f, t=f"{before}{start}{text}{END}{after}": f.write(t.encode()))
        PAGE.chmod(0o644)
        print(text, end="")


if __name__ == "__main__":
    main()
