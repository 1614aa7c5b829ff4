"""The digest of about forty models, trained in every way the package has: a redesign that changes
no result changes no digest.

python -m bench.digests --store build/digests.json       before
python -m bench.digests --against build/digests.json     after, on the same computer

BLAS differs between computers, so digests are compared on one of them only. Data are made here,
by NumPy alone.
"""

import argparse
import hashlib
import json
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import nesvm_jit
import numpy as np
from scipy.sparse import csr_matrix

Case = tuple[str, Any]


def draw(n: int = 600, p: int = 12, classes: int = 2, density: float = 1.0, seed: int = 0):
    """Overlapping clouds with whole labels from 0, and rows that are partly empty."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    X = rng.standard_normal((n, p)) + 1.2 * rng.standard_normal((classes, p))[y]
    return X * (rng.random((n, p)) < density), y.astype(float)


def add(digest: Any, value: Any) -> None:
    """Take a result into a digest: numbers by their bits, arrays by theirs."""
    if isinstance(value, np.ndarray):
        digest.update(f"{value.dtype.str}{value.shape}".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, (list, tuple)):
        for part in value:
            add(digest, part)
    else:
        digest.update(repr(value).encode())


def digest_of(*values: Any) -> str:
    digest = hashlib.sha256()
    add(digest, values)
    return digest.hexdigest()[:16]


def of_solution(s: Any) -> str:
    """Weights, certificate and every iteration, but not the clock."""
    history = [column for name, column in sorted(s.history.items()) if name != "seconds"]
    point = s.w if s.beta is None else s.beta
    facts = (s.objective, s.dual_objective, s.n_iter, s.status, s.solver)
    return digest_of(point, s.b, s.alpha, s.margins, *facts, history)


def of_machine(m: Any, X: Any) -> str:
    """Scores, probabilities and certificates."""
    facts = [
        (p["objective"], p["dual_objective"], p["iterations"], p["status"]) for p in m.problems
    ]
    odds = m.predict_proba(X) if m.record.probability is not None else None
    return digest_of(m.decision_function(X), odds, facts)


def solving(X, y, **settings) -> str:
    return of_solution(nesvm_jit.solve(X, y, **settings))


def training(X, y, **settings) -> str:
    return of_machine(nesvm_jit.train(X, y, **settings), X)


def streaming(X, y, **settings) -> str:
    with tempfile.TemporaryDirectory() as folder:
        text, disk = Path(folder) / "rows", Path(folder) / "disk"
        nesvm_jit.write_libsvm(text, csr_matrix(X), y)
        nesvm_jit.convert(text, disk)
        m = nesvm_jit.train(nesvm_jit.open_matrix(disk), **settings)
        return of_machine(m, X)


def choosing(X, y, **settings) -> str:
    found = nesvm_jit.path(X, y, **settings)
    columns = [c.tolist() for name, c in sorted(found.table.items()) if name != "seconds"]
    return digest_of(columns, of_machine(found.machine, X))


def resuming(X, y, **settings) -> str:
    """A fit that is stopped, saved and taken up again."""
    with tempfile.TemporaryDirectory() as folder:
        kept = {"checkpoint": Path(folder) / "kept", "checkpoint_every": 1e-9, **settings}
        nesvm_jit.solve(X, y, **kept, max_iter=3)
        return solving(X, y, **kept, resume=True)


def cases() -> Iterator[Case]:
    """Names and functions without arguments."""
    X, labels = draw()
    y = 2.0 * labels - 1.0
    sparse = csr_matrix(draw(density=0.3)[0])
    wide = csr_matrix(draw(300, 3000, density=0.02)[0])
    y_wide = 2.0 * draw(300, 3000)[1] - 1.0
    many, five = draw(500, 8, 5)
    weight = np.random.default_rng(1).random(600) * (np.arange(600) % 7 > 0)
    few = {"max_iter": 40}
    for model in ("csvm", "lpsvm", "lssvm"):
        for solver in ("nesvm", "homotopy", "newton", "coordinate", "auto"):
            if (model, solver) != ("lpsvm", "coordinate"):
                limits = few if solver in ("nesvm", "homotopy") else {}
                name = f"solve {model} {solver}"
                yield name, partial(solving, X, y, model=model, solver=solver, **limits)
        yield f"solve {model} no bias, sparse", partial(solving, sparse, y, model=model, bias=False)
        yield f"solve {model} weights", partial(solving, X, y, model=model, sample_weight=weight)
        yield f"solve {model} wide", partial(solving, wide, y_wide, model=model, tol=1e-2)
        yield f"train {model} 5 classes", partial(training, many, five, model=model)
        yield f"train {model} rbf", partial(training, many, five, model=model, kernel="rbf")
        yield f"train {model} streamed", partial(streaming, X, y, model=model)
    for solver in ("nesvm", "homotopy", "newton", "coordinate"):
        kernel = {"kernel": "rbf", "solver": solver, "C": 3.0, **few}
        yield f"solve csvm rbf {solver}", partial(solving, X, y, **kernel)
    tight = {"solver": "homotopy", "lipschitz": "tight", "restart": True, "schedule": "gap"}
    yield "solve tight constants", partial(solving, X, y, **tight, moving_centre=True, **few)
    strong = {"solver": "nesvm", "strong": True, "bias": False}
    yield "solve strong convexity", partial(solving, X, y, **strong, **few)
    big, y_big = draw(6000)
    yield "solve chain", partial(solving, big, 2.0 * y_big - 1.0, C=30.0, tol=1e-5)
    yield "solve float32", partial(solving, X.astype(np.float32), y)
    yield "solve poly", partial(solving, X, y, kernel="poly", degree=2, coef0=1.0)
    yield "solve precomputed", partial(solving, X @ X.T, y, kernel="precomputed")
    yield "solve C = 1000", partial(solving, X, y, C=1e3, tol=1e-6)
    yield "solve rbf C = 1000", partial(solving, X, y, kernel="rbf", C=1e3, tol=1e-6)
    yield "solve resumed", partial(resuming, X, y, solver="newton", C=10.0, tol=1e-6)
    yield "train ovo", partial(training, many, five, multiclass="ovo")
    yield "train rbf ovr", partial(training, many, five, kernel="rbf", multiclass="ovr")
    yield "train probability", partial(training, many, five, probability=True)
    yield "train rbf probability", partial(training, X, y, kernel="rbf", probability=True)
    yield "train class weights", partial(training, many, five, class_weight={0.0: 2.0, 3.0: 0.5})
    rbf = {"kernel": "rbf", "approx": "nystroem", "landmarks": 60}
    yield "train nystroem", partial(training, many, five, **rbf)
    yield "path", partial(choosing, many, five, costs=[0.1, 1.0, 10.0], folds=3)
    yield "path rbf", partial(choosing, X, y, kernel="rbf", costs=[0.1, 1.0], folds=3)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.digests", description=__doc__)
    parser.add_argument("--store", type=Path, help="write the digests to this file")
    parser.add_argument("--against", type=Path, help="compare with the digests in this file")
    parser.add_argument("--only", default="", help="the cases whose names contain this")
    args = parser.parse_args()
    before = json.loads(args.against.read_text()) if args.against else {}
    found, changed = {}, []
    for name, work in cases():
        if args.only not in name:
            continue
        found[name] = work()
        same = before.get(name, found[name]) == found[name]
        changed += [] if same else [name]
        print(f"{found[name]}  {name}{'' if same else '   CHANGED'}", flush=True)
    if args.store:
        args.store.parent.mkdir(parents=True, exist_ok=True)
        args.store.write_text(json.dumps(found, indent=1))
    if changed:
        sys.exit(f"{len(changed)} of {len(found)} changed: {', '.join(changed)}")


if __name__ == "__main__":
    main()
