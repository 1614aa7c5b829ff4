"""`nesvm_jit.path`: cross-validation along C, and the machine refitted with the best."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..binary.kernel_matrix import gamma_of
from ..checkpoint.checkpoint import resume_if_same
from ..clock import Clock
from ..endings import warn_uncertified
from ..errors import InputError
from ..files.ondisk.matrix import OnDisk
from ..jit import interpreted_first
from ..machine import facts as report
from ..machine.folds import stratified_folds
from ..machine.jobs import Job, make_job
from ..machine.machine import Machine
from ..machine.train import train_silently
from ..matrix.checks import as_matrix, as_vector
from ..matrix.matrix import Csr, Matrix
from ..settings import SCORES, Settings, one_of, whole_number
from .grid import cost_grid, gamma_grid
from .result import RULES, PathResult
from .scores import all_scores
from .search import Grid, Search

COSTS = "1e-3:1e3:7"  # the seven of the paper
STATE_EVERY = 1.0  # seconds between two writes of the state file at least
INSTEAD = {
    "C": "costs",
    "gamma": "gammas",
    "probability": "train with the C chosen",
    "checkpoint": "state",
}


@interpreted_first
def path(
    X: Any,
    y: Any = None,
    costs: Any = COSTS,
    gammas: Any = None,
    folds: int = 5,
    repeats: int = 1,
    *,
    scoring: str = "accuracy",
    rule: str = "best",
    refit: bool = True,
    test: tuple[Any, Any] | None = None,
    seed: int = 0,
    model: str = "csvm",
    kernel: str = "linear",
    multiclass: str | None = None,
    sample_weight: Any = None,
    class_weight: Mapping[float, float] | str | None = None,
    state: Any = None,
    callback: Callable[[dict[str, Any]], object] | None = None,
    keep_solutions: bool = False,
    **settings: Any,
) -> PathResult:
    """Cross-validate every C (and γ), choose by `scoring` and `rule`, refit on all rows.

    costs and gammas are sequences or text: "1e-3:1e3:7" is 7 values in equal ratios, "0.1,1" these
    two. Folds are stratified and drawn by `seed`, those of the next repeat by the seed after it.
    scoring: accuracy, balanced_accuracy, f1 or auc. rule: "best", or "one_se", the smallest C whose
    mean score is within one standard error of the best. `test` is a pair (X, y) that the machine is
    scored on. `state` names a file that keeps finished columns, for the same call to go on after an
    interruption; it is removed at the end. `callback` is called every round with a dict, and a true
    answer, like Ctrl-C, ends the path with KeyboardInterrupt. `keep_solutions` lets the refitted
    machine keep what pictures of it need. The other settings are those of
    `nesvm_jit.train`; every fit goes to the certified gap `tol`, unless the time limit, which is
    that of the whole path with the refit, ends it before.
    """
    for name, value, allowed in (("scoring", scoring, SCORES), ("rule", rule, RULES)):
        one_of(name, value, allowed)
    for name, instead in INSTEAD.items():
        if name in settings:
            raise InputError(f"path takes no {name}; use {instead}")
    values = cost_grid(costs)
    given = {"seed": seed, "callback": callback, **settings}
    checked = Settings(model, kernel, C=values[-1], gamma=None, **given)
    clock = Clock(checked.time_limit)
    if isinstance(X, OnDisk):
        _require_streamable(kernel, multiclass)
        y = X.labels if y is None else y
    else:
        X = as_matrix(X, borrow=True)
    job = make_job(X, y, checked, multiclass)
    judged = _test_rows(test, refit, X.shape[1])
    drawings = whole_number("repeats", repeats, 1, 1000)
    splits = np.stack([stratified_folds(job.y, folds, seed + r) for r in range(drawings)])
    weights = _weights(sample_weight, class_weight, len(job.y))
    grid = Grid(values, _gammas(gammas, kernel, X), splits, *weights, scoring)
    search = Search(job, grid, clock)
    resumed, ignored = 0, False
    if state is None:
        fits = search.run(None)
    else:
        checkpoint, ignored = resume_if_same(state, STATE_EVERY, search.fingerprint(), clock)
        resumed = checkpoint.resumed
        try:
            with checkpoint:
                fits = search.run(checkpoint)
        finally:
            if checkpoint.empty:
                checkpoint.remove()
    seconds = {"fits": clock.now()}
    facts = (job.classes, X.shape, splits, scoring, rule, seed)
    result = PathResult(np.array(values), grid.gammas, fits, checked, *facts)
    result.seconds, result.resumed, result.ignored = seconds, resumed, ignored
    if refit:
        more = {"multiclass": multiclass, "keep_solutions": keep_solutions, **settings}
        _refit(result, job, grid, clock, more)
        if judged is not None:
            assert result.machine is not None
            result.test = judge(result.machine, *judged)
    result.seconds["total"] = clock.now()
    if state is not None:
        checkpoint.remove()
    warn_uncertified(result.outcomes(), checked.tol)
    return result


def _refit(
    result: PathResult, job: Job, grid: Grid, clock: Clock, settings: dict[str, Any]
) -> None:
    """The machine of the C and γ chosen, on all rows, in what is left of the time."""
    began = clock.now()
    asked, chosen = result.settings, result.chosen
    given = {
        **settings,
        "gamma": chosen.gamma,
        "seed": result.seed,
        "callback": asked.callback,
        "sample_weight": grid.sample_weight,
        "class_weight": grid.class_weight,
        "time_limit": clock.left(),
    }
    y = None if isinstance(job.X, OnDisk) else job.y
    result.machine = train_silently(job.X, y, asked.model, asked.kernel, chosen.C, **given)
    seconds = clock.now() - began
    result.seconds["refit"] = seconds
    result.refit = report.training(result.machine, asked.solver, {"solve": seconds})
    if result.refit["status"] == "interrupted":
        raise KeyboardInterrupt


def _weights(sample_weight: Any, class_weight: Any, n: int) -> tuple[np.ndarray | None, Any]:
    own = None if sample_weight is None else as_vector("sample_weight", sample_weight, n)
    return own, dict(class_weight) if isinstance(class_weight, Mapping) else class_weight


def _require_streamable(kernel: str, multiclass: str | None) -> None:
    if kernel != "linear":
        raise InputError(f"a path along rows on disk is linear, got kernel {kernel!r}")
    if multiclass == "ovo":
        raise InputError("rows on disk are trained one class against the rest (ovr), got ovo")


def _test_rows(test: Any, refit: bool, p: int) -> tuple[Matrix, np.ndarray] | None:
    """Rows that the machine can be judged by, checked before it is trained."""
    if test is None:
        return None
    if not refit:
        raise InputError("test is for the machine that refit=True trains")
    X = as_matrix(test[0], "X of test", borrow=True)
    if not isinstance(X, Csr) and X.shape[1] != p:
        raise InputError(f"X of test must have {p} columns, got {X.shape[1]}")
    return X, as_vector("y of test", test[1], X.shape[0])


def judge(machine: Machine, X: Matrix, y: np.ndarray) -> dict[str, Any]:
    """The four scores of a machine on rows with labels."""
    found = all_scores(y, machine.scores(X), machine.classes, machine.record.multiclass)
    return {"n_samples": len(y), **found}


def _gammas(gammas: Any, kernel: str, X: Matrix) -> list[float | None]:
    """γ as numbers; None for kernels that have none."""
    if kernel not in ("poly", "rbf"):
        if gammas is not None:
            raise InputError(f"gammas are for poly and rbf kernels, got kernel {kernel!r}")
        return [None]
    given = [None] if gammas is None else gamma_grid(gammas)
    return list(dict.fromkeys(gamma_of(gamma, X) for gamma in given))
