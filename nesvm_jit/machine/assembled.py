"""Assemble a machine from its solved sub-problems."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import __version__
from ..binary.costs import weights_of
from ..binary.nystroem import Landmarks, bounds_of_kernel
from ..binary.solution import Solution
from ..files.model.record import ModelRecord
from ..jit import one_blas_thread
from ..matrix.matrix import Csr, Matrix
from ..matrix.rows import as_scipy, take_rows
from ..settings import CUT_SHORT, Settings
from ..solvers.run import relative_gap
from .jobs import Job, Problem
from .machine import Machine

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


@dataclass(frozen=True)
class Found:
    """A solved sub-problem."""

    problem: Problem
    solution: Solution
    costs: np.ndarray  # the costs c of its rows
    seconds: float
    sigmoid: tuple[float, float] | None


def note_weights(
    machine: Machine,
    class_weight: Mapping[float, float] | str | None,
    classes: np.ndarray,
    sizes: np.ndarray,
) -> None:
    """Store the weights of classes with `sizes` rows in the machine's facts, if there are any."""
    weights = weights_of(class_weight, classes, sizes)
    if weights:
        kept = [float(weights.get(label, 1.0)) for label in machine.classes.tolist()]
        machine.record.extra["class_weights"] = kept


def linear_machine(
    settings: Settings, classes: np.ndarray, n_features: int, solutions: list[Solution]
) -> Machine:
    """Make a linear machine of solutions: the only one for two classes, else one per class."""
    found = _found(solutions)
    weights = np.array([s.w for s in solutions]).T
    common = _common(settings, classes, n_features, "ovr", found)
    return Machine(ModelRecord(weights=weights, **common))


def _found(solutions: list[Solution]) -> list[Found]:
    other = 1 if len(solutions) == 1 else None
    return [
        Found(Problem(i, other, None), s, np.zeros(0), float(s.history["seconds"][-1]), None)
        for i, s in enumerate(solutions)
    ]


def _common(
    settings: Settings, classes: np.ndarray, n_features: int, multiclass: str, found: list[Found]
) -> dict[str, Any]:
    """Return the fields that machines of every kind have."""
    common: dict[str, Any] = {
        "classes": classes,
        "n_features": n_features,
        "bias": [f.solution.b for f in found],
        "multiclass": multiclass,
        "model": settings.model,
        "kernel": settings.kernel,
        "extra": _facts(settings, classes, found),
    }
    sigmoids = [f.sigmoid for f in found if f.sigmoid is not None]
    if sigmoids:
        A, B = zip(*sigmoids, strict=True)
        common["probability"] = (np.array(A), np.array(B))
    return common


def machine_of(job: Job, found: list[Found]) -> Machine:
    """Make the machine of sub-problems that were solved on rows in memory."""
    settings = job.settings
    common = _common(settings, job.classes, job.X.shape[1], job.multiclass, found)
    if settings.kernel == "linear":
        weights = np.array([f.solution.w for f in found]).T
        return Machine(ModelRecord(weights=weights, **common))
    beta = np.zeros((len(job.y), len(found)))
    for k, f in enumerate(found):
        rows = slice(None) if f.problem.rows is None else f.problem.rows
        beta[rows, k] = f.solution.beta
    used = np.flatnonzero((beta != 0.0).any(axis=1))
    common["coefs"] = beta[used]
    return _kernel_machine(settings, job.X, job.y, used, common)


def _kernel_machine(
    settings: Settings, X: Matrix, y: np.ndarray, used: np.ndarray, common: dict[str, Any]
) -> Machine:
    """Make a machine whose support vectors are the rows `used`, grouped by class as in LIBSVM."""
    sv_class = np.argmax(y[used][:, None] == common["classes"][None, :], axis=1)
    by_class = np.argsort(sv_class, kind="stable")
    used = used[by_class]
    common |= {"coefs": common["coefs"][by_class], "sv_class": sv_class[by_class]}
    if settings.kernel == "precomputed":
        return Machine(ModelRecord(support_index=used, **common), used)
    kernel: dict[str, Any] = {k: getattr(settings, k) for k in ("gamma", "coef0", "degree")}
    return Machine(ModelRecord(support=_packed(take_rows(X, used)), **common, **kernel), used)


def _packed(X: Matrix) -> "csr_matrix":
    """Convert X to float64 CSR without zeros; SciPy takes three times as long for dense rows."""
    if isinstance(X, Csr):
        out = as_scipy(X).astype(np.float64)
        out.eliminate_zeros()
        return out
    from scipy.sparse import csr_matrix

    n, p = X.shape
    filled = X != 0.0
    if filled.all():
        arrays = np.array(X, np.float64).ravel(), np.tile(np.arange(p), n), p * np.arange(n + 1)
    else:
        starts = np.append(0, np.cumsum(np.count_nonzero(filled, axis=1)))
        arrays = X[filled].astype(np.float64), np.nonzero(filled)[1], starts
    out = csr_matrix(arrays, (n, p))
    out.has_canonical_format = True  # else SciPy would check every entry
    return out


def approximate_machine(job: Job, found: list[Found], marks: Landmarks) -> Machine:
    """Make a machine that was trained as a linear one on features of landmarks, which become its
    support vectors. Beside the bounds of the approximation it gets bounds of the exact kernel."""
    labels, settings = job.y[marks.numbers], job.settings
    machine = _machine_of_landmarks(settings, job.classes, job.multiclass, found, marks, labels)
    for f, certificate in zip(found, machine.record.extra["problems"], strict=True):
        if f.solution.status in CUT_SHORT:  # no time is left
            continue
        rows = f.problem.rows
        sign = np.where((job.y if rows is None else job.y[rows]) == job.classes[f.problem.i], 1, -1)
        with one_blas_thread():
            bounds = bounds_of_kernel(marks, job.X, rows, sign, f.costs, f.solution, settings)
        if bounds is not None:
            gap = relative_gap(*bounds)
            names = ("objective", "dual_objective", "gap")
            certificate["kernel"] = dict(zip(names, (*bounds, gap), strict=True))
    return machine


def approximate_machine_ovr(
    settings: Settings,
    classes: np.ndarray,
    marks: Landmarks,
    labels: np.ndarray,
    solutions: list[Solution],
) -> Machine:
    """Make such a machine of solutions by class, for landmarks with these labels."""
    return _machine_of_landmarks(settings, classes, "ovr", _found(solutions), marks, labels)


def _machine_of_landmarks(
    settings: Settings,
    classes: np.ndarray,
    multiclass: str,
    found: list[Found],
    marks: Landmarks,
    labels: np.ndarray,
) -> Machine:
    common = _common(settings, classes, marks.L.shape[1], multiclass, found)
    common["extra"]["approx"] = {"kind": "nystroem", "landmarks": len(marks.numbers)}
    weights = np.array([f.solution.w for f in found])
    common["coefs"] = marks.coefficients(weights.T)
    machine = _kernel_machine(settings, marks.L, labels, np.arange(len(labels)), common)
    machine.support_rows = marks.numbers[machine.support_rows]
    return machine


def _facts(settings: Settings, classes: np.ndarray, found: list[Found]) -> dict[str, Any]:
    rows_of = [f.problem.rows for f in found if f.problem.rows is not None]
    n = max((1 + int(rows.max()) for rows in rows_of), default=len(found[0].solution.alpha))
    support = np.zeros(n, dtype=bool)
    for f in found:
        rows = slice(None) if f.problem.rows is None else f.problem.rows
        support[rows] |= f.solution.alpha != 0.0
    return {
        "program": f"nesvm-jit {__version__}",
        "C": float(settings.C),
        "bias": bool(settings.bias),
        "tol": float(settings.tol),
        "solver": settings.solver,
        "n_samples": n,
        "n_support": int(support.sum()),
        "problems": [_certificate(classes, f) for f in found],
    }


def _certificate(classes: np.ndarray, f: Found) -> dict[str, Any]:
    s = f.solution
    sides = [float(classes[f.problem.i])]
    sides += [] if f.problem.j is None else [float(classes[f.problem.j])]
    known: dict[str, Any] = {}
    if s.bias_range is not None:
        known["bias_range"] = [float(v) for v in s.bias_range]
    if s.status in CUT_SHORT[:2] and not np.any(s.beta if s.w is None else s.w):
        known["trained"] = False  # zero everywhere, no better than no training
    return {
        "classes": sides,
        "n_samples": len(s.alpha),
        "objective": s.objective,
        "dual_objective": s.dual_objective,
        "gap": s.gap,
        "certified": s.certified,
        "iterations": s.n_iter,
        "status": s.status,
        "solver": s.solver,
        "why": s.why,
        "n_support": int(np.count_nonzero(s.alpha)),
        "seconds": round(f.seconds, 6),
        **known,
    }
