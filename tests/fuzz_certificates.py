"""Hostile problems judged in exact arithmetic: `python -m tests.fuzz_certificates --cases 20000`.

Every case follows from the seed and its number: scales from 1e-12 to 1e12, duplicates, columns
that are nearly constant, near-singular kernels, single precision, weights of zero, all models,
engines and kernels, with and without a bias, dense, compressed and on disk, from zero and from
starts, runs that are cut short. What `certify` says of the weights that are found is judged, too.
A false bound is printed with what draws it again.
"""

import sys
import tempfile
import time
import warnings
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
from nesvm_jit import NesvmError, certify, convert, open_matrix, solve, train
from scipy.sparse import csr_matrix

from . import exact

MODELS = ("csvm", "lpsvm", "lssvm")
KERNELS = ("linear", "linear", "rbf", "poly", "precomputed")
ENGINES = ("auto", "newton", "coordinate", "nesvm", "homotopy")
TOLS = (1e-2, 1e-3, 1e-3, 1e-6, 1e-9, 1e-12)
MOST_ROUNDS = 60
HELD, SHARES = ("dense", "compressed", "on disk"), (0.65, 0.3, 0.05)


class Case(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    options: dict
    held: str  # one of HELD
    starts: dict
    again: bool  # whether what is found is certified once more


def draw(seed, number):
    """A case, as hostile as they come."""
    rng = np.random.default_rng((seed, number))
    n, p = int(rng.integers(2, 14)), int(rng.integers(1, 6))
    X = rng.standard_normal((n, p))
    shape = rng.integers(7)
    if shape == 0:
        X = np.round(X)
    elif shape == 1:
        X = X[rng.integers(0, max(1, n // 3), n)]  # duplicates
    elif shape == 2:
        X[:, 0] = 10.0 ** rng.uniform(3, 9) + X[:, 0]  # nearly constant beside its size
    elif shape == 3:
        X *= 10.0 ** rng.uniform(-4, 4, p)
    elif shape == 4:
        X *= 10.0 ** rng.uniform(-4, 4, (n, 1))
    elif shape == 5:
        X = X[rng.integers(0, max(1, n // 2), n)] + 10.0 ** rng.uniform(-12, -3) * X
    if rng.random() < 0.6:
        X *= 10.0 ** rng.uniform(-12, 12)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    if rng.random() < 0.4:
        y = np.where(X @ rng.standard_normal(p) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    weight = np.ones(n)
    if rng.random() < 0.3:
        weight = rng.choice([0.0, 1.0, 0.3, 1e-6, 1e6], n)
        weight[:2] = 1.0
    kernel = str(rng.choice(KERNELS))
    model = str(rng.choice(MODELS))
    options = {
        "model": model,
        "kernel": kernel,
        "C": float(10.0 ** rng.uniform(-3, 3))
        if rng.random() < 0.8
        else 10.0 ** rng.uniform(-9, 9),
        "bias": bool(rng.random() < 0.6),
        "solver": "auto" if rng.random() < 0.5 else str(rng.choice(ENGINES)),
        "tol": float(rng.choice(TOLS)),
        "max_iter": MOST_ROUNDS,
    }
    if options["solver"] == "coordinate" and (
        model == "lpsvm" or (kernel != "linear" and model == "lssvm")
    ):
        options["solver"] = "auto"
    if kernel in ("rbf", "poly"):
        square = float(np.square(X).sum(axis=1).max()) or 1.0
        share = 1.0 if shape in (2, 5) or rng.random() < 0.5 else 10.0 ** rng.uniform(-3, 3)
        options["gamma"] = 1.0 if shape == 2 and kernel == "rbf" else float(share / square)
    if kernel == "poly":
        options["degree"] = int(rng.integers(1, 6))
        options["coef0"] = float(rng.choice([0.0, 1.0, 10.0]))
    if kernel == "precomputed":
        X = precomputed(X)
    elif rng.random() < 0.3:
        X = X.astype(np.float32)
    if rng.random() < 0.15:
        options["max_iter"] = int(rng.integers(1, 4))
    held, starts = "dense" if kernel == "precomputed" else str(rng.choice(HELD, p=SHARES)), {}
    if kernel == "linear":
        if held != "on disk" and rng.random() < 0.2:
            size = 10.0 ** rng.uniform(-3, 3)
            starts = {
                "w0": size * rng.standard_normal(p),
                "b0": size * float(rng.standard_normal()),
            }
        if held != "on disk" and rng.random() < 0.2:
            starts["alpha0"] = options["C"] * weight * rng.uniform(-0.5, 1.5, n)
    elif held == "on disk":
        held = "dense"
    return Case(X, y, weight, options, held, starts, bool(rng.random() < 0.2))


def precomputed(X):
    """XXᵀ of whole numbers, which is exact and positive semidefinite, at a power of two."""
    size = float(np.abs(X).max()) or 1.0
    whole = np.round(X / size * 2.0**18)
    return whole @ whole.T * 2.0 ** round(2 * (np.log2(size) - 18))


class Verdict(NamedTuple):
    """What is false in the certificate of a case, and whether it reached its tolerance."""

    faults: list
    certified: bool


def solved(case):
    """The solution of a case, from where its rows are held."""
    if case.held == "on disk":
        return solved_on_disk(case)
    X = csr_matrix(case.X) if case.held == "compressed" else case.X
    return solve(X, case.y, sample_weight=case.weight, **case.starts, **case.options)


def solved_on_disk(case):
    """The same by `train`, of rows that are read from disk."""
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "rows"
        cells = [" ".join(f"{j + 1}:{float(v)!r}" for j, v in enumerate(row)) for row in case.X]
        lines = [f"{y:g} {row}\n" for y, row in zip(case.y, cells, strict=True)]
        text.write_text("".join(lines))
        convert(text, Path(folder) / "matrix", case.X.shape[1], case.X.dtype.type)
        X = open_matrix(Path(folder) / "matrix")
        how = {"classes": [1.0, -1.0], "keep_solutions": True}
        found = train(X, sample_weight=case.weight, **how, **case.options)
        return found.solutions[0].solution


def certified_again(case, problem, s):
    """What of the certificate for the weights that were found is false, in words."""
    options, found = case.options, []
    for polish, in_rationals in ((0.0, False), (0.01, False), (0.01, True)):
        proof = certify(
            (s.w, s.b),
            case.X,
            case.y,
            options["C"],
            sample_weight=case.weight,
            bias=options["bias"],
            polish=polish,
            exact=in_rationals,
        )
        P = exact.objective(problem, s.w, s.b)
        if np.isfinite(proof.objective) and Fraction(proof.objective) < P:
            found.append(f"certify: P is {float(P)!r}, said to be at most {proof.objective!r}")
        if not proof.dual_objective >= 0.0 or Fraction(proof.dual_objective) > P:
            found.append(f"certify: D is said to be at least {proof.dual_objective!r}, P is {P!r}")
    return found


def judged(case):
    """The verdict on a case; None where it is refused as input."""
    options = case.options
    c = options["C"] * case.weight
    model, kernel, bias = (options[k] for k in ("model", "kernel", "bias"))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            s = solved(case)
    except NesvmError:
        return None
    if kernel == "linear":
        problem = exact.linear(model, case.X, case.y, c, bias)
        faults = exact.judge(problem, s)
        if case.again and model == "csvm":
            faults += certified_again(case, problem, s)
        return Verdict(faults, s.certified)
    how = (options.get("gamma"), options.get("coef0", 0.0), options.get("degree", 3))
    K, off = exact.kernel_matrix(case.X, kernel, *how)
    problem = exact.with_kernel(model, K, off, case.y, c, bias)
    return Verdict(exact.judge(problem, s), s.certified)


def fuzz(cases, seed, first=0):
    """Judge this many cases; how many were refused, had a false bound, reached their tolerance."""
    refused = false = certified = 0
    began = time.perf_counter()
    for k in range(first, first + cases):
        case = draw(seed, k)
        verdict = judged(case)
        refused += verdict is None
        certified += verdict is not None and verdict.certified
        if verdict is not None and verdict.faults:
            false += 1
            words = "; ".join(verdict.faults)
            said = f"{case.options} {case.held}"
            print(f"case {k} of seed {seed}: {words}\n    {said}", flush=True)
        if (k + 1) % 1000 == 0:
            print(f"{k + 1} cases, {time.perf_counter() - began:.0f} s", file=sys.stderr)
    return refused, false, certified


def main(arguments):
    """Read --cases, --seed and --first, and say how it went."""
    given = dict(zip(arguments[::2], arguments[1::2], strict=True))
    cases, seed, first = (
        int(given.get(name, usual))
        for name, usual in (("--cases", 20000), ("--seed", 17), ("--first", 0))
    )
    refused, false, certified = fuzz(cases, seed, first)
    print(
        f"{cases} problems of seed {seed}: {false} false bounds; {certified} reached their "
        f"tolerance, {refused} were refused as input"
    )
    return 1 if false else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
