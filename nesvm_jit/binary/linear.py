"""Linear machines: the engine asked for, or chosen, on rows in memory, on disk or elsewhere."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..checkpoint.states import Saving
from ..errors import InputError
from ..jit import memory_bytes
from ..kernels.sweep import HINGE
from ..matrix.checks import as_vector
from ..matrix.matrix import shape
from ..matrix.rows import narrowed
from ..models import MODELS, Smoothing
from ..problems.evaluation import Evaluation
from ..problems.linear import LinearProblem, problem_in_memory
from ..settings import Settings
from ..solvers import coordinate, nesvm, newton
from ..solvers.accelerated import (
    Continuation,
    FastState,
    Method,
    continue_down,
    minimise,
    warm_start,
)
from ..solvers.auto import choose, patience, smoothing_from
from ..solvers.directions import direction
from ..solvers.driver import always, drive, now_and_then, where_it_may_end
from ..solvers.homotopy import homotopy
from ..solvers.run import Run
from .finish import limits, run_to_the_end
from .solution import Solution
from .start import Start

WEIGHT_VECTORS = 8  # as long as w, that a solver holds at least
LARGEST = 1e140  # of n · C · ‖x‖²: its square is still a number
NEWTON_START = Smoothing(
    4.0, 4.0
)  # the first Hessian sees every row, which shrink gently from there


def solve_linear(X, y, c, settings: Settings, start: Start) -> Solution:
    """A feature that no row has weighs nothing: it is left out, and zero in w."""
    (narrow,), kept = narrowed(X)
    p = shape(X)[1]
    if kept is not None:
        start = start.of_features(kept, p)
    require_memory(shape(narrow)[1])
    model = MODELS[settings.model]()
    problem = problem_in_memory(narrow, y, c, model, settings.bias)
    found = solve_problem(problem, settings, start)
    if kept is None:
        return found
    w = np.zeros(p)
    w[kept] = found.w
    return replace(found, w=w)


def require_memory(p: int) -> None:
    """Refuse more features than solvers have memory for."""
    needed = WEIGHT_VECTORS * 8.0 * p
    if needed > memory_bytes():
        raise InputError(f"X must be narrower: {p} features need {needed / 2**30:.0f} GB of memory")


def solve_problem(problem: LinearProblem, settings: Settings, start: Start) -> Solution:
    """Run the engine asked for, or chosen, on a linear problem wherever its rows are."""
    shard = problem.shard
    v0, centre = start.points(problem.n_features, settings.bias)
    first = first_smoothing(settings)
    steepest = problem.lipschitz("paper", first)
    if not max(steepest, problem.n_rows * shard.facts.largest_cost) <= LARGEST:
        raise InputError("X and C must be smaller: n · C · the largest row's square overflows")
    run = Run(problem, limits(settings), engine=settings.solver)
    if settings.solver == "auto":
        warm = bool(v0.any()) or start.alpha0 is not None
        run.engine, run.why = choose(shard.data, settings.model, warm)
    if run.engine == "coordinate" and not shard.data.resident:
        raise InputError("solver coordinate needs all rows in memory; newton works in passes")
    alpha0 = None if start.alpha0 is None else _inside_bounds(problem, start.alpha0)
    saving = None if start.slot is None else Saving(start.slot, problem)
    saved = None if saving is None else saving.take_up(run)
    engines = Engines(problem, run, settings, saving)

    def work() -> None:
        if saved is not None:
            engines.resume(saved)
        else:
            engines.begin(v0, centre, alpha0, first)
        engines.end()

    finish = partial(_finish, problem, run, v0, first)
    return run_to_the_end(run, work, finish, settings)


def _inside_bounds(problem: LinearProblem, alpha: Any) -> np.ndarray:
    """A dual point to start from: inside its box, and zero where a row costs nothing."""
    c = problem.shard.rows.c
    alpha = as_vector("alpha0", alpha, problem.n_rows)
    return np.clip(alpha, 0.0, c) if problem.model.loss == HINGE else np.where(c > 0.0, alpha, 0.0)


class Engines:
    """The engines of a linear problem, begun or taken up."""

    def __init__(self, problem: LinearProblem, run: Run, settings: Settings, saving: Saving | None):
        self._problem, self._run, self._settings, self._saving = problem, run, settings, saving

    def begin(self, v0: np.ndarray, centre: np.ndarray, alpha0: Any, first: Smoothing) -> None:
        """From v⁰ or α⁰."""
        problem, run = self._problem, self._run
        warm = bool(v0.any()) and problem.model.smoothed
        if run.engine == "newton":
            self._newton(self._newton_start(v0, alpha0, warm))
        elif run.engine in ("coordinate", "chain"):
            if alpha0 is None and warm:
                alpha0 = warm_start(problem, v0, first).bound.alpha
            longest = patience(problem.shard.data.size) if run.engine == "chain" else np.inf
            seed, tol = self._settings.seed, self._settings.tol
            b0 = problem.split(v0)[1]
            state = coordinate.begin(problem, alpha0, b0, seed, tol, longest)
            if not state.v.any():
                run.note(problem.zero())
            self._coordinate(state)
        else:
            if self._settings.solver == "auto" and warm:
                first = warm_start(problem, v0, first).smoothing
            self._gradient_method(begin_gradient(problem, v0, centre, first, self._settings))

    def resume(self, saved: dict[str, Any]) -> None:
        """From what was saved of the engine that ran."""
        problem = self._problem
        if "walk" in saved:
            self._newton(newton.State(**saved))
        elif "epoch" in saved:
            self._coordinate(coordinate.resume(problem, saved))
        else:
            saved["start"] = Smoothing(*saved["start"])
            kind = FastState if "iterations" in saved else nesvm.State
            self._gradient_method(kind(**saved))

    def _newton_start(self, v0: np.ndarray, alpha0: Any, warm: bool) -> newton.State:
        problem = self._problem
        if alpha0 is not None:
            P, margins = problem.objective_at(v0)
            value = problem.value_of(alpha0).value
        elif warm:
            _, (value, alpha0), P, margins = warm_start(problem, v0, NEWTON_START)
        else:
            return newton.begin(problem, v0, NEWTON_START)
        return newton.begin(problem, v0, smoothing_from((P - value) / P), alpha0, margins=margins)

    def _newton(self, state: newton.State) -> None:
        moving = self._settings.moving_centre is not False
        engine = newton.newton(self._problem, state, direction, moving)
        policy = where_it_may_end(self._problem)
        self._drive(engine, state, policy, newton.PATIENCE)

    def _coordinate(self, state: coordinate.State) -> None:
        """Coordinate steps; where `auto` chose them as a start, Newton's from the dual point they
        find when they become slow."""
        problem, run = self._problem, self._run
        chained = np.isfinite(state.patience)
        run.engine = "coordinate"
        run.why = "epochs of coordinate steps sufficed" if chained else run.why
        engine = coordinate.coordinate(problem, state, self._settings.tol)
        self._drive(engine, state, always)
        if run.done or not chained:
            return
        epochs = f"{run.iterations} {'epoch' if run.iterations == 1 else 'epochs'}"
        gap = f"{state.gap:.0e} then"
        run.engine = "newton"
        run.why = f"after {epochs} of coordinate steps the gap, {gap}, fell too slowly"
        at = run.latest
        assert at is not None
        mu = smoothing_from(state.gap)
        self._newton(newton.begin(problem, at.point, mu, at.alpha, margins=at.margins))

    def _gradient_method(self, state: nesvm.State) -> None:
        engine = gradient_method(self._problem, state, self._settings, self._run)
        self._drive(engine, state, now_and_then)

    def _drive(self, engine: Any, state: Any, policy: Any, patience: float = np.inf) -> None:
        if self._saving is not None:
            self._saving.state = state
        drive(engine, self._run, policy, patience, self._saving)

    def end(self) -> None:
        """An engine that was asked to end where it can be saved may have ended before."""
        if self._saving is not None and self._saving.asked and not self._run.done:
            self._run.status = "interrupted"


def _finish(problem: LinearProblem, run: Run, v0: np.ndarray, first: Smoothing) -> dict[str, Any]:
    """The best point, with exact zeros where ℓ1 asks for them, and its values afresh."""
    best = run.best or problem.at(v0, first)
    latest = run.latest or best
    if run.status != "converged" or run.alpha is None:
        for at in (best, latest):  # neither need have been certified
            run.certify(at)
    point, margins = best.point, best.margins
    P = best.objective
    if problem.model.smoothed_penalty:
        point = _sparsest(problem, best, latest, run)
    if margins is None or point is not best.point:
        P, margins = problem.objective_at(point)
    run.settle(P, problem.value_of(run.alpha))
    run.alpha = problem.shard.collect(run.alpha)
    w, b = problem.split(point)
    return {"w": w.copy(), "beta": None, "b": b, "margins": problem.shard.collect(margins)}


def _sparsest(problem: LinearProblem, best: Evaluation, latest: Evaluation, run: Run) -> np.ndarray:
    """The point with exact zeros, if its gap is still within the tolerance or what it was."""
    for zeros in problem.sparser(best.point, latest):
        P = problem.objective_at(zeros)[0]
        if best.objective >= P or P - run.dual <= run.limits.tol * P:
            return zeros
    return best.point


# ---------------------------------------------------------------- the paper's algorithms


def first_smoothing(settings: Settings) -> Smoothing:
    """μ⁰ of the paper's algorithms."""
    first = Smoothing(*(settings.mu if settings.solver == "nesvm" else settings.mu_start,) * 2)
    return first if settings.nu is None else first._replace(loss=settings.nu)


def method_of(settings: Settings) -> Method:
    """How their inner loop runs: as printed, unless settings or `auto` ask for more."""
    auto = settings.solver == "auto"
    return Method(
        epsilon=settings.epsilon,
        lipschitz=settings.lipschitz or ("tight" if auto else "paper"),
        restart=auto if settings.restart is None else settings.restart,
        strong=settings.strong,
        balanced=auto,
    )


def continuation_of(settings: Settings, first: Smoothing) -> Continuation:
    """How μ falls in Algorithm 2: as printed, unless settings or `auto` ask for more."""
    auto = settings.solver == "auto"
    end = settings.mu_end or (1e-9 if auto else 0.01) * first.loss
    moving = auto if settings.moving_centre is None else settings.moving_centre
    return Continuation(end, settings.schedule or ("gap" if auto else "paper"), moving)


def begin_gradient(
    problem: Any, v0: np.ndarray, centre: np.ndarray, first: Smoothing, settings: Settings
) -> nesvm.State:
    """Where the paper's algorithms, or what goes beyond them, start."""
    method, stages = method_of(settings), continuation_of(settings, first)
    if settings.solver != "nesvm" and stages.moving:
        centre = v0
    state = nesvm.begin(problem, v0, centre, first, method.lipschitz)
    printed = method.printed and (settings.solver == "nesvm" or stages.printed)
    return state if printed else FastState(**vars(state))


def gradient_method(problem: Any, state: nesvm.State, settings: Settings, run: Run) -> Any:
    """Algorithm 1 or 2 as printed, or with what goes beyond them, on any problem that has
    gradients."""
    method, stages = method_of(settings), continuation_of(settings, state.start)
    single = run.engine == "nesvm"
    if not isinstance(state, FastState):
        if single:
            return nesvm.nesvm(problem, state, method.epsilon)
        return homotopy(problem, state, stages.end, method.epsilon, method.lipschitz)
    if single:
        return minimise(problem, state, method)

    def measure_gap(at: Evaluation) -> float:
        run.certify(at)
        return run.gap

    return continue_down(problem, state, stages, method, measure_gap, settings.tol)
