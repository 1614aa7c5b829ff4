"""How every run ends: at its best point, with exact zeros where they cost nothing, its values added
up afresh; also after Ctrl-C, which is caught here and nowhere else in a solve."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from ..clock import Halt, undisturbed, watching
from ..kernels.loss import RowData
from ..models.base import Smoothing
from ..problems.certificate import DualPoint
from ..problems.evaluation import Evaluation
from ..problems.kernel import KernelProblem
from ..problems.labels import bias_range, radius_of
from ..problems.linear import LinearProblem
from ..problems.rounding import TINY, growth, norm_above, up
from ..problems.settling_kernel import SettledKernel
from ..problems.shard import Shard
from ..problems.smoothed_kernel import SmoothedKernel
from ..settings import CUT_SHORT, PAPERS, Settings
from ..solvers import newton
from ..solvers.run import COLUMNS, Run, proves, relative_gap
from .solution import Solution

QUICK_CELLS = 1 << 22  # kernel values computed again even where a run was cut short: 0.05 s
MOST_AGAIN = 3  # times that a run goes on when its tolerance is not met in exact arithmetic
# Shares of what rounding may take from margins, tried at stalled points: sums over features may be
# nearly exact; those over kernel values are judged with all of it, and are made twice.
FEARED = (1.0, 1e-2, 1e-4)
FEARED_OF_KERNELS = (1.0, 1.1, 3.0)
SMALL = (1e-4, 1e-8)  # shares of the largest coefficient, below which coefficients are tried as 0


@contextmanager
def until_interrupted(run: Run, left: Callable[[], float] | None = None) -> Iterator[None]:
    """Ctrl-C ends what is inside, and so does the end of the time that is left to the run; the run
    keeps what was found."""
    try:
        with watching(run.remaining if left is None else left):
            yield
    except Halt as halt:
        run.status = halt.status
    except KeyboardInterrupt:
        run.status = "interrupted"


class Ending:
    """How a run ends: its best point, settled once unless the run goes on."""

    def __init__(self, run: Run, settle: Callable[[], dict[str, Any]]):
        self.run, self._settle, self._tol = run, settle, run.settings.tol
        self._found: dict[str, Any] | None = None
        self._estimates: tuple[float, float, Any] = run.objective, run.dual, run.alpha

    def holds(self) -> bool:
        """Whether the tolerance is met in exact arithmetic, too."""
        run = self.run
        self._estimates = run.objective, run.dual, run.alpha
        self._found = self._settle()
        return proves(run.gap, self._tol)

    def go_on(self, steps: Callable[[], None]) -> None:
        """More steps where the tolerance was met but for rounding, to one that makes up for it."""
        run, settings = self.run, self.run.settings
        try:
            for _ in range(MOST_AGAIN):
                if run.status != "converged" or self.holds():
                    break
                tighter = run.settings.tol - 2.0 * (run.gap - self._tol)
                if not self._tol > tighter > 0.1 * self._tol:  # steps cannot make up for rounding
                    break
                run.settings, run.status = settings.derive(tol=tighter), ""
                self.forget()
                steps()
                run.status = run.status or "converged"
        finally:
            run.settings = settings

    def forget(self) -> None:
        """What was settled is not the end: the run goes on from its own point, with estimates."""
        self._found = None
        self.run.objective, self.run.dual, self.run.alpha = self._estimates

    def settle(self) -> dict[str, Any]:
        """What the solution consists of."""
        return self._found or self._settle()


def conclude(run: Run, settle: Callable[[], dict[str, Any]]) -> Solution:
    """The solution of a run: `settle` evaluates its best point afresh, and once more if Ctrl-C or
    the end of its time comes only then: what is known is then settled in less time."""
    found = None
    if run.status not in CUT_SHORT:
        with until_interrupted(run):
            found = settle()
    if found is None:
        found = _settle_undisturbed(run, settle)
    return Solution(
        objective=float(run.objective),
        dual_objective=float(run.dual),
        alpha=run.alpha,
        gap=float(run.gap),
        certified=proves(run.gap, run.settings.tol),
        n_iter=run.iterations,
        status=_ending(run.status, run.gap, run.settings),
        solver=run.engine,
        why=run.why,
        model=run.settings.model,
        history=run.history(),
        **found,
    )


def untrained(c: np.ndarray, settings: Settings, status: str) -> Solution:
    """The kernel machine that is zero everywhere, of a fit that there was no time to begin."""
    zero, costs = np.zeros(len(c)), up(float(c.sum()) * (1.0 + growth(len(c))))
    row = (0, np.nan, np.nan, costs, 0.0, 1.0, 0.0, 0.0)
    history = {name: np.array([value]) for name, value in zip(COLUMNS, row, strict=True)}
    return Solution(
        w=None,
        beta=zero,
        b=0.0,
        objective=costs,
        dual_objective=0.0,
        alpha=zero.copy(),
        gap=1.0,
        certified=proves(1.0, settings.tol),
        n_iter=0,
        status="converged" if proves(1.0, settings.tol) else status,
        solver=settings.solver,
        why="there was no time to begin",
        model=settings.model,
        margins=zero.copy(),
        history=history,
    )


def _settle_undisturbed(run: Run, settle: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What `settle` finds, once more where Ctrl-C comes in the middle of it."""
    with undisturbed():
        try:
            return settle()
        except KeyboardInterrupt:
            run.status = "interrupted"
            return settle()


def with_objective(found: Solution, settings: Settings, objective: float) -> Solution:
    """The same solution with another P; certified, and `converged`, if that proves it."""
    gap = relative_gap(objective, found.dual_objective)
    status = _ending(found.status, gap, settings)
    certified = proves(gap, settings.tol)
    return replace(found, objective=objective, gap=gap, certified=certified, status=status)


def _require_zero(run: Run, no_dual_point: Any) -> None:
    """α = 0 is feasible and worth 0: where nothing better is known, it is the bound."""
    if run.alpha is None or not run.dual >= 0.0:
        run.forget_bound(no_dual_point)


def _is_settled(run: Run) -> bool:
    """Whether the point whose values are settled is to be returned as it is: it is certified, or
    found by the paper's algorithms, or by a run that was cut short."""
    certified = proves(run.gap, run.settings.tol)
    return certified or run.settings.solver in PAPERS or run.status in CUT_SHORT


def _alternatives(
    run: Run, lifted: Callable[[], list[np.ndarray]], zero: np.ndarray, costs: float
) -> list[np.ndarray]:
    """Points that may be better than the one whose values are settled: its best multiples where
    rounding keeps it from the tolerance, and zero, whose P is the sum of all costs."""
    others = [] if _is_settled(run) else lifted()
    if not run.objective <= costs and run.settings.returned == "best":
        others.append(zero)
    return others


def _ending(status: str, gap: float, settings: Settings) -> str:
    """How a run ended whose values are settled: `converged` if they prove it, and only then."""
    if status == "interrupted":
        return status
    if proves(gap, settings.tol):
        return "converged"
    if status in ("", "converged"):  # by itself, or by bounds that did not hold afresh
        return "epsilon" if settings.solver in PAPERS else "stalled"
    return status


# ---------------------------------------------------------------- linear machines


def settle_linear(
    problem: LinearProblem, run: Run, v0: np.ndarray, first: Smoothing
) -> dict[str, Any]:
    """The best point, or v⁰, with exact zeros where ℓ1 asks for them, and its values afresh."""
    best = run.best or problem.at(v0, first)
    latest = run.latest or best
    if not best.objective <= problem.shard.facts.costs and run.settings.returned == "best":
        run.note(best := problem.zero())
    if run.status != "converged" or run.alpha is None:
        for at in (best, latest):  # neither need have been certified
            run.certify(at)
    point, tol = best.point, run.settings.tol
    if problem.model.smoothed_penalty and run.settings.returned == "best":
        point = sparsest_linear(problem, best, latest, run)
    no_dual_point = problem.zero().alpha
    alpha = no_dual_point if run.alpha is None else run.alpha
    objective, dual, margins = problem.settle(point, alpha, tol)
    run.settle(objective, dual)
    _require_zero(run, no_dual_point)
    v, f = point, margins

    def lifted() -> list[np.ndarray]:
        return [problem.lift(v, f, share) for share in FEARED]

    for other in _alternatives(run, lifted, np.zeros(len(point)), problem.shard.facts.costs):
        objective, its_margins = problem.settle_objective(other, tol)
        if objective < run.objective:
            point, margins = other, its_margins
            run.settle(objective, DualPoint(run.dual, run.alpha))
    run.alpha = problem.shard.collect(run.alpha)
    w, b = problem.split(point)
    f = problem.shard.collect(margins)
    b_range = _linear_bias_range(problem, run, w, b, f)
    return {"w": w.copy(), "beta": None, "b": b, "margins": f, "bias_range": b_range}


def _linear_bias_range(
    problem: LinearProblem, run: Run, w: np.ndarray, b: float, margins: np.ndarray
) -> tuple[float, float] | None:
    """Where every optimal b is, if there is a free one, of rows of this process: w* is in a ball
    about w where the penalty is ½‖w‖²."""
    shard = problem.shard
    if not problem.bias or not isinstance(shard, Shard) or problem.model.smoothed_penalty:
        return None
    rows, vectors = shard.rows, (margins, shard.row_norms(), shard.row_cells())
    numbers = (radius_of(run.objective, run.dual), norm_above(w), b)
    off = shard.map(_possible_change, vectors, numbers)
    return bias_range(rows.y, rows.c, margins - b, off, problem.model.loss)


def _possible_change(
    rows: RowData,
    f: np.ndarray,
    norms: np.ndarray,
    cells: np.ndarray,
    radius: float,
    size: float,
    b: float,
) -> np.ndarray:
    """How far x·w* can be from a margin less b, of any w* in the ball of this radius about a w of
    this norm."""
    off = radius * norms
    off += growth(cells + 8.0) * norms * size
    off += (cells + 1.0) * TINY
    off += growth(8.0) * (np.abs(f) + abs(b))
    return off


def sparsest_linear(
    problem: LinearProblem, best: Evaluation, latest: Evaluation, run: Run
) -> np.ndarray:
    """The point with exact zeros, if its gap is still within the tolerance or what it was."""
    for zeros in problem.sparser(best.point, latest):
        P = problem.objective_at(zeros)[0]
        if best.objective >= P or P - run.dual <= run.settings.tol * P:
            return zeros
    return best.point


# ---------------------------------------------------------------- kernel machines


def settle_kernel(run: Run) -> dict[str, Any]:
    """β, b and the margins of the best point, with its values as they are in exact arithmetic."""
    problem = run.problem  # which may be a finer one by now
    assert isinstance(problem, KernelProblem)
    beta, b = (problem.beta, 0.0) if run.best is None else problem.split(run.best.point)
    long = np.count_nonzero(beta) * problem.n_rows > QUICK_CELLS
    if long and run.status in ("time_limit", "interrupted") and _is_known(run.best):
        return _settle_at_once(problem, run)
    if run.alpha is None or not np.array_equal(beta, problem.beta):
        problem.place(beta)
        run.certify(problem.current())
    goes_on = run.engine == "coordinate" and problem.rows.finer is not None  # if not certified
    return _settle_at(problem, np.append(beta, b), run, lift=not goes_on)


def _is_known(at: Evaluation | None) -> bool:
    """Whether a point can be settled from sums that are known, of so many terms."""
    return at is not None and at.known is not None and at.known.reach < np.inf


def _settle_at_once(problem: KernelProblem, run: Run) -> dict[str, Any]:
    """The best point of a run that was cut short and the better of its bound and that of the
    latest, without any more rows of K."""
    assert run.best is not None
    found, b = problem.settle_known(run.best), float(run.best.point[-1])
    bound = found.dual
    if run.latest is not None and run.latest is not run.best and _is_known(run.latest):
        bound = max(bound, problem.settle_known(run.latest).dual, key=lambda dual: dual.value)
    run.settle(found.objective, bound)
    _require_zero(run, np.zeros(problem.n_rows))
    costs = up(float(problem.c.sum()) * (1.0 + growth(problem.n_rows)))
    if not run.objective <= costs and run.settings.returned == "best":
        zero = np.zeros(problem.n_rows)
        found, b = found._replace(beta=zero, f=zero, off=zero), 0.0
        run.settle(costs, DualPoint(run.dual, run.alpha))
    return _solution_at(problem, run, found, b)


def _solution_at(
    problem: KernelProblem, run: Run, found: SettledKernel, b: float
) -> dict[str, Any]:
    """What a solution consists of at a point whose values are settled."""
    b_range = None
    if problem.bias:
        off = found.off + radius_of(run.objective, run.dual) * problem.rows.entries.roots
        b_range = bias_range(problem.y, problem.c, found.f, off, problem.loss)
    beta = found.beta.copy()
    return {"w": None, "beta": beta, "b": b, "margins": found.f + b, "bias_range": b_range}


def settle_smoothed(smooth: SmoothedKernel, run: Run) -> dict[str, Any]:
    """The same; a point with exact zeros is taken instead where that is as good, or good enough:
    the dual point, or its support."""
    if run.alpha is None:
        run.certify(run.latest or smooth.at(np.zeros(smooth.n_variables), newton.FIRST))
    problem = smooth.kernel
    _require_zero(run, np.zeros(problem.n_rows))
    beta, b = np.zeros(problem.n_rows), 0.0
    if run.best is not None:
        beta, b = run.problem.split(run.best.point)
    if run.settings.returned == "last":
        problem.stand(beta)
        return _settle_at(problem, np.append(beta, b), run)
    problem.place(run.alpha * problem.y)
    at = problem.current()
    if _is_good_enough(at.objective, run):
        beta, b = problem.split(at.point)
    else:
        beta = sparsest_kernel(problem, beta, b, run)
    return _settle_at(problem, np.append(beta, b), run)


def _settle_at(
    problem: KernelProblem, point: np.ndarray, run: Run, lift: bool = True
) -> dict[str, Any]:
    """The point where the problem stands, or the best multiple of it, and the bound, with their
    values as they are in exact arithmetic; zero where that is better."""
    zero = np.zeros(len(point))
    if not np.isfinite(point).all():  # what overflowed is worse than nothing
        point = zero
    no_dual_point = zero[:-1]
    alpha = no_dual_point if run.alpha is None else run.alpha
    found, b = problem.settle(point, alpha), float(point[-1])
    run.settle(found.objective, found.dual)
    _require_zero(run, no_dual_point)
    v, f = np.append(found.beta, b), found.f

    def lifted() -> list[np.ndarray]:
        return [problem.lift(v, f, share) for share in FEARED_OF_KERNELS] if lift else []

    for other in _alternatives(run, lifted, zero, float(problem.c.sum())):
        settled = problem.settle(other, alpha)
        if settled.objective < run.objective:
            found, b = settled, float(other[-1])
            run.settle(found.objective, DualPoint(run.dual, run.alpha))
    return _solution_at(problem, run, found, b)


def sparsest_kernel(problem: KernelProblem, beta: np.ndarray, b: float, run: Run) -> np.ndarray:
    """β with as many exact zeros as the tolerance allows; the problem then stands there."""
    size = np.abs(beta)
    zeros = [run.alpha == 0.0, *(size <= share * size.max(initial=0.0) for share in SMALL)]
    for zero in zeros:
        sparser = np.where(zero, 0.0, beta)
        problem.stand(sparser)
        if _is_good_enough(problem.at(np.append(sparser, b)).objective, run):
            return sparser
    problem.stand(beta)
    return beta


def _is_good_enough(objective: float, run: Run) -> bool:
    """Whether this P is no worse than the best, or is within the tolerance."""
    return objective <= run.objective or objective - run.dual <= run.settings.tol * objective
