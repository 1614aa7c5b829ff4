"""`nesvm_jit.solve`: one binary problem, checked at the edge, solved and certified."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .errors import InputError
from .jit import one_blas_thread
from .matrix import as_matrix, as_number, as_vector, shape
from .models import MODELS, Smoothing
from .models.problem import LinearProblem
from .solvers import SCHEDULES, Continuation, Limits, Method, Run, homotopy, nesvm, warm_smoothing

SOLVERS = ("auto", "nesvm", "homotopy")
LARGEST = 1e140  # of n · C · ‖x‖²: its square is still a number
FARTHEST = 1e50  # of an entry of w⁰ or w⋆


@dataclass(frozen=True)
class Solution:
    """A solved problem and its certificate: dual_objective ≤ optimum ≤ objective."""

    w: np.ndarray
    b: float
    objective: float  # the true, non-smooth primal objective at (w, b)
    dual_objective: float  # the value of the feasible dual point `alpha`
    alpha: np.ndarray
    gap: float  # (objective − dual_objective) / objective
    certified: bool  # gap ≤ tol
    n_iter: int
    status: str  # converged, iteration_limit, time_limit, interrupted
    solver: str
    model: str
    history: dict[str, np.ndarray]  # round, mu, smoothed, objective, dual, gap, seconds, passes

    def decision_function(self, X) -> np.ndarray:
        """Xw + b."""
        from .kernels import margins

        X = as_matrix(X)
        if shape(X)[1] != len(self.w):
            raise InputError(f"X must have {len(self.w)} columns, got {shape(X)[1]}")
        return margins(X, self.w, self.b)


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
    mu: float = 5.0,
    nu: float | None = None,
    mu_start: float = 5.0,
    mu_end: float | None = None,
    epsilon: float = 1e-3,
    lipschitz: str | None = None,
    schedule: str | None = None,
    restart: bool | None = None,
    strong: bool = False,
    moving_centre: bool | None = None,
    w0: Any = None,
    b0: float = 0.0,
    w_star: Any = None,
    b_star: float = 0.0,
    max_iter: int = 100_000,
    time_limit: float | None = None,
    callback: Callable[[dict], object] | None = None,
) -> Solution:
    """Minimise R(w) + Σ c_i loss(1 − y_i(x_i·w + b)) for labels y of −1 and +1.

    model: csvm ½‖w‖² and hinge, lpsvm ‖w‖₁ and hinge, lssvm ½‖w‖² and square; c_i is C times the
    weight of the sample and of its class (a mapping from ±1, or "balanced"). The bias is free.

    solver: nesvm (Algorithm 1 at `mu`) and homotopy (Algorithm 2 from `mu_start` to `mu_end`) are
    the paper's; auto is homotopy with what goes beyond it: spectral constants, restarts, a schedule
    led by the gap. `nu` is the hinge's own smoothing in lpsvm, `mu` if not given.

    A run stops when the certified gap reaches `tol`, or when the solver's own rule holds
    (|ΔF_μ| < epsilon; at `mu_end`), or at a limit, or when the callback, called with a dict every
    round, returns true, or at Ctrl-C: the best point so far is returned with its certificate.

    Beyond the paper: lipschitz="tight", restart, strong (momentum from strong convexity, csvm and
    lssvm without bias), schedule "geometric" or "gap", moving_centre.
    """
    if kernel != "linear":
        raise InputError(f"kernel must be linear here, got {kernel!r}")
    _one_of("model", model, tuple(MODELS))
    _one_of("solver", solver, SOLVERS)
    _boolean(bias=bias, strong=strong)
    _boolean(
        **{
            k: v
            for k, v in (("restart", restart), ("moving_centre", moving_centre))
            if v is not None
        }
    )
    X = as_matrix(X)
    n, p = shape(X)
    if n == 0:
        raise InputError("X must have at least one row of each class")
    y = _labels(y, n)
    c = _costs(C, y, sample_weight, class_weight)
    machine = MODELS[model]()
    auto = solver == "auto"
    lipschitz = lipschitz or ("tight" if auto else "paper")
    _one_of("lipschitz", lipschitz, ("paper", "tight"))
    schedule = schedule or ("gap" if auto else "paper")
    _one_of("schedule", schedule, SCHEDULES)
    _positive("mu", mu)
    _positive("mu_start", mu_start)
    for name, value in (("nu", nu), ("mu_end", mu_end)):
        if value is not None:
            _positive(name, value)
    if nu is not None and model != "lpsvm":
        raise InputError(f"nu is the hinge's own smoothing in lpsvm, {model} has mu alone")
    if callback is not None and not callable(callback):
        raise InputError(f"callback must be a function, got {callback!r:.60}")
    _positive("tol", tol, zero=True)
    _positive("epsilon", epsilon, zero=True)
    if strong and (machine.strong_convexity == 0.0 or bias):
        raise InputError("strong needs a strongly convex problem: csvm or lssvm without bias")
    if not isinstance(max_iter, (int, np.integer)) or max_iter < 1:
        raise InputError(f"max_iter must be a whole number from 1, got {max_iter!r}")
    if time_limit is not None:
        _positive("time_limit", time_limit, zero=True)
    start = _point("w0", w0, as_number("b0", b0), p, bias)
    centre = _point("w_star", w_star, as_number("b_star", b_star), p, bias)
    method = Method(
        epsilon=epsilon,
        lipschitz=lipschitz,
        restart=auto if restart is None else restart,
        strong=strong,
        balanced=auto,
    )
    limits = Limits(tol, max_iter, np.inf if time_limit is None else time_limit, callback)
    loss = mu_start if solver != "nesvm" else mu
    smoothing = Smoothing(loss, loss if nu is None else nu)
    with one_blas_thread():
        problem = LinearProblem(X, y, c, machine, bias)
        if not max(problem.lipschitz("paper", smoothing), n * float(c.max())) <= LARGEST:
            raise InputError("X and C must be smaller: n · C · the largest row's square overflows")
        run = Run(problem, limits)
        if auto and machine.smoothed and start.any():
            smoothing = warm_smoothing(problem, start, smoothing)
        if solver == "nesvm":
            work = partial(nesvm, problem, start, centre, smoothing, method, run)
        else:
            end = mu_end if mu_end is not None else (1e-9 if auto else 0.01) * smoothing.loss
            moving = auto if moving_centre is None else moving_centre
            stages = Continuation(smoothing, end, schedule, moving)
            work = partial(homotopy, problem, start, centre, stages, method, run)
        return _finished(problem, run, work, smoothing, start, solver)


def _finished(problem, run: Run, work, smoothing, start, solver) -> Solution:
    """Run `work` to its end or to Ctrl-C, then certify the best point."""
    try:
        work()
    except KeyboardInterrupt:
        run.status = "interrupted"
    point = start if run.best is None else run.best
    run.objective = problem.evaluate(point, run.smoothing or smoothing).objective
    run.certify()
    assert run.alpha is not None
    w, b = problem.split(point)
    return Solution(
        w=w.copy(),
        b=b,
        objective=float(run.objective),
        dual_objective=float(run.dual),
        alpha=run.alpha,
        gap=float(run.gap),
        certified=bool(run.gap <= run.limits.tol),
        n_iter=run.rounds,
        status=run.status or "converged",
        solver=solver,
        model=problem.model.name,
        history=run.history(),
    )


# ---------------------------------------------------------------- the public edge


def _one_of(name: str, value, allowed) -> None:
    if value not in allowed:
        raise InputError(f"{name} must be one of {', '.join(allowed)}, got {value!r}")


def _boolean(**values) -> None:
    for name, value in values.items():
        if not isinstance(value, (bool, np.bool_)):
            raise InputError(f"{name} must be True or False, got {value!r:.60}")


def _positive(name: str, value, zero: bool = False) -> None:
    """A finite number above zero (or not below, with `zero`)."""
    number = isinstance(value, (int, float, np.integer, np.floating))
    if not number or not value <= sys.float_info.max or value < 0 or (value == 0 and not zero):
        shown = f"{value!r:.60}"
        raise InputError(f"{name} must be {'zero or ' * zero}positive and finite, got {shown}")


def _labels(y, n: int) -> np.ndarray:
    y = as_vector("y", y, n)
    if not (np.abs(y) == 1.0).all():
        raise InputError("y must hold -1 and +1 only")
    if n == 0 or (y == y[0]).all():
        raise InputError("y must hold both classes, -1 and +1")
    return y


def _costs(C, y: np.ndarray, sample_weight, class_weight) -> np.ndarray:
    """c_i = C · class weight · sample weight."""
    _positive("C", C)
    c = np.full(len(y), float(C))
    if sample_weight is not None:
        weights = as_vector("sample_weight", sample_weight, len(y))
        if (weights < 0).any():
            raise InputError(f"sample_weight must not be negative, got {weights.min()}")
        c *= weights
    if isinstance(class_weight, str):
        _one_of("class_weight", class_weight, ("balanced",))
        class_weight = {k: len(y) / (2 * np.count_nonzero(y == k)) for k in (-1.0, 1.0)}
    if not isinstance(class_weight, (Mapping, type(None))):
        raise InputError(f"class_weight must map -1 and 1 to weights, got {class_weight!r:.60}")
    for label, weight in (class_weight or {}).items():
        if label not in (-1, 1):
            raise InputError(f"class_weight must map -1 and 1 to weights, got label {label!r}")
        _positive(f"class_weight of {label}", weight, zero=True)
        c[y == label] *= weight
    if not (np.isfinite(c).all() and all(c[y == k].any() for k in (-1.0, 1.0))):
        raise InputError("each class must have a positive, finite weight")
    return c


def _point(name: str, w, b: float, p: int, bias: bool) -> np.ndarray:
    """[w; b], zero by default."""
    w = as_vector(name, 0.0 if w is None else w, p)
    if max(np.abs(w).max(initial=0.0), abs(b)) > FARTHEST:
        raise InputError(f"{name} and its bias must be within {FARTHEST:g} of zero")
    return np.append(w, b) if bias else w.copy()
