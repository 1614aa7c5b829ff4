"""The one driver of all engines: it records, certifies, saves and ends them.

An engine is a generator of evaluations, or of None for an iteration that nothing was evaluated in.
All it remembers between two of them is in a state, so that it can be left at any of them and be
taken up again in another process. Told that the run is over, it may hand in one last evaluation.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Protocol

from ..problems.evaluation import Evaluation
from ..settings import CUT_SHORT
from .run import Run

CHECK_EVERY = 10  # iterations between two dual points: with a bias each costs up to two passes

Steps = Generator[Evaluation | None, bool | None, None]
Policy = Callable[[Run, Evaluation], bool]  # whether to make a dual point of an evaluation


class State(Protocol):
    """All that an engine remembers between two iterations: a dataclass of numbers, arrays and
    tuples of them, and perhaps a `walk`, so that a checkpoint can hold its fields."""

    settled: bool  # the loop is left next, as where μ or the engine changes: nothing is saved here


@dataclass(frozen=True)
class Engine:
    """A solver of linear problems, as the table in engines.py has it."""

    # (problem, run, v⁰, the prox-centre w⋆, α⁰ or None): the state that it starts with
    begin: Callable[..., State]
    # (problem, run, fields of a state that was saved, its tuples as lists): this state
    resume: Callable[[Any, Run, dict[str, Any]], State]
    # (problem, run, state): its loop
    steps: Callable[[Any, Run, Any], Steps]
    certify: Policy
    patience: float = float("inf")  # iterations without a smaller gap, after which it ends


class Saving(Protocol):
    """Where the state of an engine is saved."""

    asked: bool  # to end where the state can be saved
    state: Any  # of the engine that runs

    def due(self) -> bool:
        """Whether it is time to save."""

    def save(self, run: Run) -> None:
        """Save the run with the state of its engine, which is between two iterations."""

    @property
    def ready(self) -> bool:
        """Whether the state can be saved; it is not where μ or the engine changes next."""


def now_and_then(run: Run, at: Evaluation) -> bool:
    """Every tenth evaluation is certified."""
    return run.iterations % CHECK_EVERY == 0


def always(run: Run, at: Evaluation) -> bool:
    """Every evaluation is certified: here a dual point costs next to nothing."""
    return True


def where_it_may_end(run: Run, at: Evaluation) -> bool:
    """Certify where the bound may end the run, and now and then; always without a bias, where a
    dual point costs nothing."""
    problem = run.problem
    near = at.objective - problem.estimate_bound(at) <= run.settings.tol * at.objective
    return near or not problem.bias or now_and_then(run, at)


def drive(
    steps: Steps,
    run: Run,
    certify: Policy,
    patience: float = float("inf"),
    saving: Saving | None = None,
) -> None:
    """Run an engine to its end, to a limit, or until the gap has not become smaller for as many
    iterations as `patience` says."""
    ends: bool | None = None
    try:
        while run.idle < patience:
            at = steps.send(ends)
            ends = run.passed() if at is None else run.record(at, certify(run, at))
            if saving is not None and run.status in ("", "interrupted"):
                ends = _pause(run, saving)
            elif saving is not None and run.status in CUT_SHORT and saving.ready:
                saving.save(run)  # a later run may go further
            if ends and at is None:
                last = steps.send(True)
                if last is not None:
                    run.enter(last)
            if ends:
                return
    except StopIteration:
        return
    finally:
        steps.close()


def _pause(run: Run, saving: Saving) -> bool:
    """Save where that is due, or where the run was asked to end: then it ends, perhaps only in the
    next engine."""
    saving.asked = saving.asked or run.done
    ends = saving.asked and saving.ready
    run.status = "interrupted" if ends else ""
    if ends or (saving.ready and saving.due()):
        saving.save(run)
    return ends
