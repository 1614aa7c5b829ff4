"""`nesvm_jit.solve`: one binary problem, checked at the edge, solved and certified."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from .checkpoint import Slot
from .errors import InputError
from .files.ondisk import OnDisk
from .jit import memory_bytes, one_blas_thread
from .kept import data_of, opened
from .matrix import Matrix, as_matrix, as_number, as_vector, shape
from .models import MODELS, Smoothing
from .models.part import Part
from .models.problem import LinearProblem, problem_in_memory
from .models.streamed import Streamed
from .narrow import narrowed
from .settings import Settings
from .solvers import (
    Continuation,
    Limits,
    Method,
    Run,
    Saving,
    chain,
    choose,
    coordinate,
    homotopy,
    nesvm,
    newton,
    smoothing_from,
    warm_smoothing,
)
from .weights import costs

WEIGHT_VECTORS = 8  # as long as w, that a solver holds at least
LARGEST = 1e140  # of n · C · ‖x‖²: its square is still a number
FARTHEST = 1e50  # of an entry of w⁰ or w⋆
NEWTON_START = 4.0  # μ⁰: the first Hessian sees every row, the active set shrinks gently from there


@dataclass(frozen=True)
class Solution:
    """A solved problem and its certificate: dual_objective ≤ optimum ≤ objective."""

    w: np.ndarray | None  # of a linear machine
    beta: np.ndarray | None  # of a kernel machine: f(x) = Σ β_i k(x_i, x) + b
    b: float
    objective: float  # the true, non-smooth primal objective at (w, b) or (β, b)
    dual_objective: float  # the value of the feasible dual point `alpha`
    alpha: np.ndarray
    gap: float  # (objective − dual_objective) / objective
    certified: bool  # gap ≤ tol
    n_iter: int
    status: str  # converged, iteration_limit, time_limit, interrupted
    solver: str  # the engine that finished
    why: str  # it was chosen
    model: str
    margins: np.ndarray  # x_i·w + b of every training row
    history: dict[str, np.ndarray]  # round, mu, smoothed, objective, dual, gap, seconds, passes

    def decision_function(self, X) -> np.ndarray:
        """Xw + b, of a linear machine."""
        from .kernels import margins

        if self.w is None:
            raise InputError(
                "a kernel machine decides through `train`, which keeps the rows it needs"
            )
        X = as_matrix(X)
        if shape(X)[1] != len(self.w):
            raise InputError(f"X must have {len(self.w)} columns, got {shape(X)[1]}")
        return margins(X, self.w, self.b)


@dataclass(frozen=True)
class Start:
    """Where a linear solver starts and the prox-centre of the paper's methods; zero by default.
    α⁰, a dual point, is what newton and coordinate start from best. The slot is where its state
    is saved; one that was is taken up."""

    w0: Any = None
    b0: float = 0.0
    w_star: Any = None
    b_star: float = 0.0
    alpha0: Any = None
    slot: Slot | None = None

    def of_features(self, kept: np.ndarray, p: int) -> "Start":
        """The same start for some of the p features."""
        w0, w_star = (
            None if w is None else as_vector(name, w, p)[kept]
            for name, w in (("w0", self.w0), ("w_star", self.w_star))
        )
        return replace(self, w0=w0, w_star=w_star)

    def points(self, p: int, bias: bool) -> tuple[np.ndarray, np.ndarray]:
        """[w⁰; b⁰] and [w⋆; b⋆], checked."""
        return (
            _point("w0", self.w0, as_number("b0", self.b0), p, bias),
            _point("w_star", self.w_star, as_number("b_star", self.b_star), p, bias),
        )


def solve(
    X: Any,
    y: Any,
    model: str = "csvm",
    kernel: str = "linear",
    C: float = 1.0,
    bias: bool = True,
    solver: str = "auto",
    tol: float = 1e-3,
    *,
    sample_weight: Any = None,
    class_weight: Mapping[float, float] | str | None = None,
    w0: Any = None,
    b0: float = 0.0,
    w_star: Any = None,
    b_star: float = 0.0,
    alpha0: Any = None,
    **settings: Any,
) -> Solution:
    """Minimise R(w) + Σ c_i loss(1 − y_i(x_i·w + b)) for labels y of −1 and +1, or its kernel form.

    c_i is C times the weight of the sample and of its class (a mapping from ±1, or "balanced").
    All other settings, with what they mean, are the fields of `nesvm_jit.Settings`.
    """
    checked = Settings(model, kernel, C, bias, solver, tol, **settings)
    given = any(v is not None for v in (w0, w_star, alpha0)) or b0 != 0.0 or b_star != 0.0
    if kernel != "linear" and given:
        raise InputError("w0, b0, w_star, b_star and alpha0 are for linear machines")
    if kernel != "linear" and checked.checkpoint is not None:
        raise InputError("checkpoint is for linear machines here, and for all machines in `train`")
    X = as_matrix(X)
    n, p = shape(X)
    if n == 0:
        raise InputError("X must have at least one row of each class")
    y = _labels(y, n)
    c = _costs(C, y, sample_weight, class_weight)
    start = Start(w0, b0, w_star, b_star, alpha0)

    def data() -> list:
        alpha = None if alpha0 is None else as_vector("alpha0", alpha0, n)
        return data_of(X, y, c, *start.points(p, bias), alpha)

    with opened(checked, data) as checkpoint:
        slot = None if checkpoint is None else checkpoint.slot(0)
        return solve_checked(X, y, c, checked, replace(start, slot=slot))


def solve_checked(
    X: Matrix | OnDisk,
    y: np.ndarray,
    c: np.ndarray,
    settings: Settings,
    start: Start | None = None,
) -> Solution:
    """`solve` for data that have been checked, with the cost of every row."""
    start = start or Start()
    with one_blas_thread():
        if settings.approx is not None:
            raise InputError("approx is for `train`, which keeps the landmarks")
        if isinstance(X, OnDisk):
            part = Part(Streamed(X), y, c, MODELS[settings.model](), settings.bias)
            return solve_problem(LinearProblem(part), settings, start)
        if settings.kernel == "linear":
            return _solve_linear(X, y, c, settings, start)
        from .kernelised import solve_kernel

        return solve_kernel(X, y, c, settings)


def _solve_linear(X, y, c, settings: Settings, start: Start) -> Solution:
    """A feature that no row has weighs nothing: it is left out, and zero in w."""
    (narrow,), kept = narrowed(X)
    if kept is None:
        return _solve_narrow(X, y, c, settings, start)
    p = shape(X)[1]
    found = _solve_narrow(narrow, y, c, settings, start.of_features(kept, p))
    assert found.w is not None
    w = np.zeros(p)
    w[kept] = found.w
    return replace(found, w=w)


def _solve_narrow(X, y, c, settings: Settings, start: Start) -> Solution:
    require_memory(shape(X)[1])
    machine = MODELS[settings.model]()
    return solve_problem(problem_in_memory(X, y, c, machine, settings.bias), settings, start)


def require_memory(p: int) -> None:
    """Refuse more features than solvers have memory for."""
    needed = WEIGHT_VECTORS * 8.0 * p
    if needed > memory_bytes():
        raise InputError(f"X must be narrower: {p} features need {needed / 2**30:.0f} GB of memory")


def solve_problem(problem: LinearProblem, settings: Settings, start: Start) -> Solution:
    """Run the engine asked for, or chosen, on a linear problem wherever its rows are."""
    part, n, p = problem.part, problem.n_rows, problem.n_features
    v0, centre = start.points(p, settings.bias)
    first = first_smoothing(settings)
    if not max(problem.lipschitz("paper", first), n * part.facts.largest_cost) <= LARGEST:
        raise InputError("X and C must be smaller: n · C · the largest row's square overflows")
    saving = None if start.slot is None else Saving(start.slot, problem)
    run = Run(problem, limits(settings), engine=settings.solver, saving=saving)
    if settings.solver == "auto":
        warm = bool(v0.any()) or start.alpha0 is not None
        run.engine, run.why = choose(part.data, settings.model, warm)
    if run.engine == "coordinate" and not part.data.resident:
        raise InputError("solver coordinate needs all rows in memory; newton works in passes")
    alpha0 = None
    if start.alpha0 is not None:
        alpha0 = np.clip(as_vector("alpha0", start.alpha0, n), 0.0, part.rows.c)
    work = partial(_work, problem, run.engine, v0, centre, alpha0, first, settings, run)
    if saving is not None:
        saving.take_up(run)
    run_to_the_end(run, work)
    point = v0 if run.best is None else run.best
    if run.status != "converged":  # the last dual points may be those of another point
        problem.place(point, run.smoothing or first)
        run.certify()
    if problem.model.smoothed_penalty:
        point = _sparsest(problem, point, run, run.smoothing or first)
    run.settle(problem.review(point))
    run.alpha = part.collected(run.alpha)
    w, b = problem.split(point)
    margins = part.collected(problem.margins())
    return solution(run, settings, w=w.copy(), beta=None, b=b, margins=margins)


def _sparsest(problem: LinearProblem, point: np.ndarray, run: Run, last: Smoothing) -> np.ndarray:
    """The point with exact zeros, if its gap is still within the tolerance or what it was."""
    before = run.objective
    for zeros in problem.sparser(point, last):
        run.objective = problem.review(zeros)
        if run.objective <= before or run.gap <= run.limits.tol:
            return zeros
    return point


def _work(
    problem: LinearProblem,
    engine: str,
    v0: np.ndarray,
    centre: np.ndarray,
    alpha0: np.ndarray | None,
    first: Smoothing,
    settings: Settings,
    run: Run,
) -> None:
    """Run the engine chosen; one that goes on knows better where than from these starts."""
    again = run.resumes(engine)
    if engine == "chain":
        chain(problem, settings.seed, run)
    elif engine == "newton":
        begin = Smoothing(NEWTON_START, NEWTON_START)
        if alpha0 is None and not again:
            alpha0 = _dual_start(problem, v0, _warm(problem, v0, begin))
        if alpha0 is not None and not again:
            P = problem.review(v0)
            begin = smoothing_from((P - problem.value_of(alpha0).value) / P)
        newton(problem, v0, begin, run, alpha0, settings.moving_centre is not False)
    elif engine == "coordinate":
        if alpha0 is None and not again:
            alpha0 = _dual_start(problem, v0, _warm(problem, v0, first))
        coordinate(problem, alpha0, problem.split(v0)[1], settings.seed, run)
    else:
        if settings.solver == "auto" and not again:
            first = _warm(problem, v0, first)
        gradient_methods(problem, v0, centre, first, settings, run)


def gradient_methods(problem, v0, centre, first: Smoothing, settings: Settings, run: Run) -> None:
    """The paper's algorithms, on any problem that has gradients."""
    if run.engine == "nesvm":
        nesvm(problem, v0, centre, first, _method(settings), run)
        return
    auto = settings.solver == "auto"
    end = settings.mu_end or (1e-9 if auto else 0.01) * first.loss
    moving = auto if settings.moving_centre is None else settings.moving_centre
    stages = Continuation(first, end, settings.schedule or ("gap" if auto else "paper"), moving)
    homotopy(problem, v0, centre, stages, _method(settings), run)


def _dual_start(problem: LinearProblem, v0: np.ndarray, smoothing: Smoothing) -> np.ndarray | None:
    """The dual point that a warm start leads to; none from zero."""
    if not v0.any() or not problem.model.smoothed:
        return None
    problem.evaluate(v0, smoothing)
    return problem.dual().alpha


def _warm(problem: LinearProblem, v0: np.ndarray, first: Smoothing) -> Smoothing:
    return warm_smoothing(problem, v0, first) if problem.model.smoothed and v0.any() else first


def first_smoothing(settings: Settings) -> Smoothing:
    """μ⁰ of the paper's algorithms."""
    first = Smoothing(*(settings.mu if settings.solver == "nesvm" else settings.mu_start,) * 2)
    return first if settings.nu is None else first._replace(loss=settings.nu)


def _method(settings: Settings) -> Method:
    auto = settings.solver == "auto"
    return Method(
        epsilon=settings.epsilon,
        lipschitz=settings.lipschitz or ("tight" if auto else "paper"),
        restart=auto if settings.restart is None else settings.restart,
        strong=settings.strong,
        balanced=auto,
    )


def limits(settings: Settings) -> Limits:
    """When a run must end."""
    seconds = np.inf if settings.time_limit is None else settings.time_limit
    return Limits(settings.tol, settings.max_iter, seconds, settings.callback)


def run_to_the_end(run: Run, work) -> None:
    """Run `work` to its end or to Ctrl-C, which keeps what was found."""
    try:
        work()
    except KeyboardInterrupt:
        run.status = "interrupted"


def solution(run: Run, settings: Settings, **found) -> Solution:
    """What a finished run found, with its certificate."""
    assert run.alpha is not None
    return Solution(
        objective=float(run.objective),
        dual_objective=float(run.dual),
        alpha=run.alpha,
        gap=float(run.gap),
        certified=bool(run.gap <= run.limits.tol),
        n_iter=run.rounds,
        status=run.status or "converged",
        solver=run.engine,
        why=run.why,
        model=settings.model,
        history=run.history(),
        **found,
    )


# ---------------------------------------------------------------- the public edge


def _labels(y, n: int) -> np.ndarray:
    y = as_vector("y", y, n)
    if not (np.abs(y) == 1.0).all():
        raise InputError("y must hold -1 and +1 only")
    if n == 0 or (y == y[0]).all():
        raise InputError("y must hold both classes, -1 and +1")
    return y


def _costs(C, y: np.ndarray, sample_weight, class_weight) -> np.ndarray:
    """c_i = C · class weight · sample weight."""
    c = costs(C, y, np.array([-1.0, 1.0]), sample_weight, class_weight)
    if not all(c[y == k].any() for k in (-1.0, 1.0)):
        raise InputError("each class must have a positive, finite weight")
    return c


def _point(name: str, w, b: float, p: int, bias: bool) -> np.ndarray:
    """[w; b], zero by default."""
    w = as_vector(name, 0.0 if w is None else w, p)
    if max(np.abs(w).max(initial=0.0), abs(b)) > FARTHEST:
        raise InputError(f"{name} and its bias must be within {FARTHEST:g} of zero")
    return np.append(w, b) if bias else w.copy()
