"""Linear machines: the engine asked for, or chosen, on rows in memory, on disk or elsewhere."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..checkpoint.states import Saving
from ..errors import InputError
from ..jit import ALWAYS_THERE, memory_bytes
from ..kernels.loss import HINGE
from ..matrix.checks import as_vector
from ..matrix.matrix import Matrix
from ..matrix.rows import narrowed
from ..models import MODELS
from ..models.base import Smoothing
from ..problems.labels import radius_of
from ..problems.linear import LinearProblem, problem_in_memory
from ..problems.rounding import Columns
from ..settings import PAPERS, Settings
from ..solvers.auto import choose, hand_over
from ..solvers.driver import State, always, drive
from ..solvers.engines import ENGINES
from ..solvers.linear_program import linear_program, suits
from ..solvers.run import Run
from ..solvers.starts import first_smoothing
from .centred import centre_columns
from .finish import Ending, conclude, until_interrupted, with_objective
from .finish_linear import linear_bias_range, settle_linear
from .solution import Solution
from .start import Start, Unfinished

WEIGHT_VECTORS = 8  # vectors as long as w that a solver holds at least
LARGEST = 1e140  # that n · C · ‖x‖²/μ may be: its square is still a number


def solve_rows(
    X: Matrix,
    y: np.ndarray,
    c: np.ndarray,
    settings: Settings,
    start: Start,
    columns: Columns | None = None,
    before: Unfinished | None = None,
) -> Solution:
    """The linear problem on rows in memory, as it is or as one that is the same and easier: without
    the features that no row has, which weigh nothing, and with columns far from zero moved there,
    for the engines that are not the paper's. Where `columns` says how far the entries of X may be
    off, none is left out."""
    p = X.shape[1]
    require_memory(p)  # w has all of them in the end, as on workers
    (narrow,), kept = narrowed(X) if columns is None else ((X,), None)
    start = start if kept is None else start.of_features(kept, p)
    moved, shift = narrow, None
    if settings.bias and settings.solver not in PAPERS:
        moved, shift = centre_columns(narrow)
    model = MODELS[settings.model]()
    problem = problem_in_memory(moved, y, c, model, settings.bias)
    problem.columns = columns  # the same errors where columns are moved
    start = start if shift is None else start.moved(shift)
    found = solve_problem(problem, settings, start, before)
    if shift is not None:
        same = problem_in_memory(narrow, y, c, model, settings.bias)
        same.columns = columns
        found = _moved_back(found, shift, same, settings)
    return _with_all_features(found, kept, p)


def _moved_back(
    found: Solution, shift: np.ndarray, problem: LinearProblem, settings: Settings
) -> Solution:
    """The solution of moved rows as one of the rows as they are, where b may be rounded: P, the
    margins and the range of b are those of the rows as they are. The dual point and its value are
    the same, since Σ α_i y_i is exactly zero."""
    assert found.w is not None
    b = found.b - float(found.w @ shift)
    P, margins = problem.settle_objective(np.append(found.w, b), settings.tol)
    margins = problem.shard.collect(margins)
    found = with_objective(replace(found, b=b, margins=margins), settings, P)
    assert found.w is not None
    radius = radius_of(found.objective, found.dual_objective)
    return replace(found, bias_range=linear_bias_range(problem, radius, found.w, b, margins))


def _with_all_features(found: Solution, kept: np.ndarray | None, p: int) -> Solution:
    """The same machine over all p features: those left out weigh nothing."""
    if kept is None:
        return found
    w = np.zeros(p)
    w[kept] = found.w
    return replace(found, w=w)


def solve_problem(
    problem: LinearProblem, settings: Settings, start: Start, before: Unfinished | None = None
) -> Solution:
    """Run the engine asked for, or chosen, on a linear problem wherever its rows are; from where a
    compiled call has left it, that point is `start`."""
    v0, w_star = start.points(problem.n_features, settings.bias)
    first = first_smoothing(settings)
    _require_range(problem, first)
    run = Run(problem, settings, engine=settings.solver)
    if settings.solver == "auto":
        warm = bool(v0.any()) or start.alpha0 is not None
        run.engine, run.why = choose(problem.shard.data, settings.model, warm)
    if run.engine == "coordinate" and not problem.shard.data.resident:
        raise InputError("solver coordinate needs all rows in memory; newton works in passes")
    alpha0 = None if start.alpha0 is None else _inside_bounds(problem, start.alpha0)
    if before is not None:
        run.go_on_after(before, problem.judge(v0, alpha0, problem.dual_weights(alpha0)))
    saving = None if start.slot is None else Saving(start.slot, problem)
    taken_up = None if saving is None else saving.take_up(run, _resume)
    ending = Ending(run, partial(settle_linear, problem, run, v0, first))
    with until_interrupted(run):
        engine = ENGINES[run.engine]
        state: State | None = taken_up
        last = state
        if state is None and not run.done:
            state = engine.begin(problem, run, v0, w_star, alpha0)
        while state is not None:
            if saving is not None:
                saving.state = state
            engine = ENGINES[run.engine]
            steps = engine.steps(problem, run, state)
            drive(steps, run, engine.certify, engine.patience, saving)
            last, state = state, hand_over(problem, run, state)
        stuck = not run.done and run.engine == "newton"
        if stuck and suits(problem) and not (saving is not None and saving.asked):
            drive(linear_program(problem, run), run, always)
        if saving is not None and saving.asked and not run.done:  # it ended by itself before
            run.status = "interrupted"
        if saving is None and not stuck:
            ending.go_on(partial(_go_on, problem, run, last))
    return conclude(run, ending.settle)


def _go_on(problem: LinearProblem, run: Run, state: State | None) -> None:
    """More steps of the engine that has ended the run, if one has."""
    if state is None:
        return
    engine = ENGINES[run.engine]
    drive(engine.steps(problem, run, state), run, engine.certify, engine.patience)


def _resume(problem: LinearProblem, run: Run, saved: dict[str, Any]) -> State:
    return ENGINES[run.engine].resume(problem, run, saved)


def _require_range(problem: LinearProblem, first: Smoothing) -> None:
    """Refuse data whose sums would overflow."""
    facts = problem.shard.facts
    with np.errstate(over="ignore"):
        steepest = problem.model.curvature_scale(first) * facts.steepest
        largest = problem.n_rows * max(steepest, facts.largest_cost)
    if not largest <= LARGEST:
        raise InputError("X and C must be smaller: n · C · the largest row's square overflows")


def require_memory(p: int) -> None:
    """Refuse more features than solvers have memory for."""
    needed = WEIGHT_VECTORS * 8.0 * p
    if needed > ALWAYS_THERE and needed > memory_bytes():
        raise InputError(f"X must be narrower: {p} features need {needed / 2**30:.0f} GB of memory")


def _inside_bounds(problem: LinearProblem, alpha: Any) -> np.ndarray:
    """A dual point to start from: inside its box, and zero where a row costs nothing."""
    c = problem.shard.rows.c
    alpha = as_vector("alpha0", alpha, problem.n_rows)
    return np.clip(alpha, 0.0, c) if problem.model.loss == HINGE else np.where(c > 0.0, alpha, 0.0)
