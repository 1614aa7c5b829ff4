"""The kernel form of a binary problem: f = Kβ + b, penalty ½βᵀKβ, or R(β) where the penalty R of
the model is not ½‖w‖² (‖β‖₁ in lpsvm)."""

from functools import partial
from typing import Any

import numpy as np

from ..checkpoint.checkpoint import Slot
from ..checkpoint.kernel_states import KernelSaving
from ..clock import must_end
from ..errors import InputError
from ..kernels.loss import HINGE, SQUARE
from ..matrix.matrix import Matrix
from ..models import MODELS
from ..problems.kernel import KernelProblem
from ..problems.kernel_rows import KernelRows
from ..problems.smoothed_kernel import SmoothedKernel
from ..settings import HALF_SQUARE, Settings
from ..solvers import gradient, least_squares, pairwise
from ..solvers.coarse import newton_in_levels, pairwise_in_levels, run_by_newton, run_in_pairs
from ..solvers.driver import always, drive, now_and_then
from ..solvers.rescue import before_rescue, is_trained, rescue
from ..solvers.run import Run
from .finish import Ending, conclude, until_interrupted, untrained
from .finish_kernel import settle_kernel, settle_smoothed
from .kernel_columns import solve_on_columns
from .kernel_matrix import (
    INDEFINITE,
    NOT_SEMIDEFINITE,
    budget_bytes,
    kernel_rows,
)
from .solution import Solution
from .start import Unfinished

LARGEST = 1e140  # that n · C · k(x, x) may be: its square is still a number


def solve_kernel(
    X: Matrix,
    y: np.ndarray,
    c: np.ndarray,
    settings: Settings,
    rows: KernelRows | None = None,
    alpha0: np.ndarray | None = None,
    slot: Slot | None = None,
    before: Unfinished | None = None,
) -> Solution:
    """A `Solution` with β in place of w; the rows of the kernel matrix may be there already, and
    pairwise steps may start from a dual point, and save their state or take up one that was."""
    if before is None and (must_end() or settings.time_limit == 0.0):
        return untrained(c, settings, must_end() or "time_limit")
    if settings.model not in HALF_SQUARE:
        return solve_on_columns(X, y, c, settings, rows, slot)
    model = MODELS[settings.model]()
    loss = model.loss
    rows = rows or kernel_rows(X, settings)
    _require_range(rows, c)
    problem = KernelProblem(rows, y, c, settings.bias, loss)
    run = Run(problem, settings, engine=settings.solver)
    if settings.solver == "auto":
        run.engine = "coordinate" if loss == HINGE else "newton"
        run.why = f"the engine of {settings.model} with a kernel"
    if before is not None:
        alpha0 = before.start.alpha0
        problem.place(alpha0 * y)
        run.go_on_after(before, problem.current())
    ending = Ending(run, partial(settle_kernel, run))
    settle = ending.settle
    left = partial(before_rescue, run) if loss == HINGE else None
    with until_interrupted(run, left):
        if run.done:
            pass
        elif run.engine == "coordinate":
            _run_pairwise(problem, ending, alpha0, slot)
        elif run.engine == "newton" and loss == SQUARE:
            with np.errstate(all="ignore"):  # what is no number ends the run uncertified
                _run_equations(problem, run, slot)
        else:
            smooth = SmoothedKernel(problem, model)
            settle = partial(settle_smoothed, smooth, run)
            _run_smoothed(smooth, run, slot)
    out_of_time = before is None and run.status == "time_limit"
    if out_of_time and loss == HINGE and not is_trained(run):
        with until_interrupted(run):
            settle = ending.settle
            rescue(problem, run, np.random.default_rng(settings.seed))
    found = conclude(run, settle)
    if run.dual > run.objective + INDEFINITE * abs(run.objective):
        raise InputError(NOT_SEMIDEFINITE)
    return found


def _run_pairwise(
    problem: KernelProblem,
    ending: Ending,
    alpha0: np.ndarray | None,
    slot: Slot | None,
) -> None:
    """Pairwise steps, from a state that was saved if there is one; on finer rows where the rounding
    of K alone keeps the gap open."""
    run = ending.run
    saving = None if slot is None else KernelSaving(slot, problem, ("coordinate",))
    state = None if saving is None else saving.take_up(run)
    if run.problem is not problem:  # the run had come to the finer rows
        assert state is not None
        run_in_pairs(run.problem, state, run, saving)
        return
    if state is not None:
        run_in_pairs(problem, state, run, saving)
    elif alpha0 is None:
        rng = np.random.default_rng(run.settings.seed)
        pairwise_in_levels(problem, run, rng, saving=saving)
    else:
        run_in_pairs(problem, pairwise.begin(problem, alpha0), run, saving)
    if problem.rows.finer is None:
        ending.go_on(
            lambda: run_in_pairs(problem, pairwise.begin(problem, problem.beta * problem.y), run)
        )
        return
    if run.status == "converged" and not ending.holds():
        run.status = ""
    if not run.done:
        ending.forget()
        beta = problem.beta
        finer = problem.on_finer_rows()
        with run.going_on(finer):
            run_in_pairs(finer, pairwise.begin(finer, beta * problem.y), run, saving)


def _require_range(rows: KernelRows, c: np.ndarray) -> None:
    """Refuse kernels whose sums would overflow."""
    with np.errstate(over="ignore"):
        largest = rows.n * float(c.max()) * float(rows.diagonal().max())
    if not largest <= LARGEST:
        raise InputError("K and C must be smaller: n · C · the largest k(x, x) overflows")


def _run_equations(problem: KernelProblem, run: Run, slot: Slot | None) -> None:
    """LS-SVM's equations, from a state that was saved if there is one."""
    saving = None if slot is None else KernelSaving(slot, problem, ("equations",))
    state = None if saving is None else saving.take_up(run)
    if state is None:
        state = least_squares.begin(problem, budget_bytes(run.settings.cache_mb))
    if saving is not None:
        saving.state = state
    drive(least_squares.least_squares(problem, state), run, always, saving=saving)


def _run_smoothed(smooth: SmoothedKernel, run: Run, slot: Slot | None) -> None:
    """The engines that minimise F_μ in the kernel's metric, from a state that was saved if there is
    one."""
    engines = ("newton", "coordinate") if run.engine == "newton" else ("gradient",)
    saving = None if slot is None else KernelSaving(slot, smooth.kernel, engines, smooth)
    state = None if saving is None else saving.take_up(run)
    if run.engine == "newton":
        _run_newton(smooth, run, state, saving)
        return
    run.problem, zero = smooth, np.zeros(smooth.n_variables)
    if state is None:
        state = gradient.begin(smooth, run, zero, zero)
    if saving is not None:
        saving.state = state
    drive(gradient.steps(smooth, run, state), run, now_and_then, saving=saving)
    if saving is not None and saving.asked and not run.done:  # it ended by itself before
        run.status = "interrupted"


def _run_newton(smooth: SmoothedKernel, run: Run, state: Any, saving: KernelSaving | None) -> None:
    """Newton's steps, then pairs of coordinates: K may be so nearly singular that only they go
    on."""
    if state is None:
        newton_in_levels(smooth, run, np.random.default_rng(run.settings.seed), saving=saving)
    elif not isinstance(state, pairwise.State):
        run_by_newton(smooth, state, run, saving)
    if run.done:
        return
    if not isinstance(state, pairwise.State):
        run.hand_over(smooth.kernel)
        state = pairwise.begin(smooth.kernel, run.alpha)
    run_in_pairs(smooth.kernel, state, run, saving)
