"""The gradient methods: the paper's algorithms as printed, or with what the settings, or `auto`,
ask for beyond them, on any problem that has gradients."""

from typing import Any

import numpy as np

from ..models.base import Smoothing
from ..settings import Settings
from . import accelerated, nesvm
from . import homotopy as algorithm_2
from .driver import Engine, Steps, now_and_then
from .run import Run, Smooth
from .starts import first_smoothing, warm_start


def _state_of(engine: str, s: Settings) -> type[nesvm.State]:
    """What a method remembers, which says whether it is as printed."""
    beyond = s.lipschitz != "paper" or bool(s.restart) or s.strong or s.solver == "auto"
    if engine == "nesvm":
        return accelerated.State if beyond else nesvm.State
    beyond = beyond or s.schedule != "paper" or bool(s.moving_centre)
    return accelerated.State if beyond else algorithm_2.State


def begin(
    problem: Any, run: Run, v0: np.ndarray, w_star: np.ndarray, alpha0: Any = None
) -> nesvm.State:
    """The start of a method at v⁰; from a warm one `auto` begins at a smaller μ."""
    settings = accelerated.resolve(run.settings)
    mu = first_smoothing(settings)
    if settings.solver == "auto" and problem.model.smoothed and v0.any():
        mu = warm_start(problem, v0, mu).smoothing
    if run.engine == "homotopy" and settings.moving_centre:
        w_star = v0
    L = problem.lipschitz(settings.lipschitz, mu)
    state = _state_of(run.engine, settings)
    more: dict[str, Any] = {"start": mu} if state is accelerated.State else {}
    return state(v0.copy(), w_star.copy(), mu, L, np.zeros_like(v0), **more)


def resume(problem: Smooth, run: Run, saved: dict[str, Any]) -> nesvm.State:
    """The state that was saved."""
    state = _state_of(run.engine, accelerated.resolve(run.settings))(**saved)
    state.smoothing = Smoothing(*state.smoothing)
    if isinstance(state, accelerated.State):
        state.start = Smoothing(*state.start)
    return state


def steps(problem: Smooth, run: Run, state: nesvm.State) -> Steps:
    """The loop of the method that a state is of."""
    settings = accelerated.resolve(run.settings)
    if isinstance(state, algorithm_2.State):
        first = first_smoothing(settings)
        end = accelerated.last_smoothing(settings, first)
        return algorithm_2.homotopy(problem, state, first, end, settings.epsilon)
    if not isinstance(state, accelerated.State):
        return nesvm.nesvm(problem, state, settings.epsilon)
    if run.engine == "nesvm":
        return accelerated.minimise(problem, state, settings)
    return accelerated.continue_down(problem, state, settings, run.measure_gap)


GRADIENT = Engine(begin, resume, steps, now_and_then)
